//! The gateway as a whole: what its flows share, and its life.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use redoma_audit::event::Verdict;
use redoma_policy::{Host, HostName, ResolvedPolicy, Tier};

use crate::approve::Approvals;
use crate::budget::Budgets;
use crate::dial::{DialError, Dialer, Dialled, HostResolver};
use crate::dns::{Names, Opinion, Resolver};
use crate::guard::Guard;
use crate::opaque::Pipes;
use crate::pinned::PinnedClients;
use crate::scan::Watchful;
use crate::tls::{Authority, Inspector, Upstream};
use crate::{Approver, Credentials, Doors, Flows, Inside, Recorder, Secret, Sink, Target, Who, capture};

/// What a gateway is made of.
pub struct Setup {
    /// What is enforced.
    pub policy: ResolvedPolicy,
    /// How the sandbox is confined.
    pub tier: Tier,
    /// Where events go.
    pub sink: Arc<dyn Sink>,
    /// Who answers questions.
    pub approver: Arc<dyn Approver>,
    /// Who knows the processes inside.
    pub who: Arc<dyn Who>,
    /// The way inside.
    pub inside: Arc<dyn Inside>,
    /// The session's certificate authority.
    pub authority: Authority,
    /// The proxy that connections go out by.
    pub upstream: Option<redoma_policy::Upstream>,
    /// What is put in on the way.
    pub credentials: Credentials,
    /// The values of decoys, by their names.
    pub decoys: Vec<(String, Secret<String>)>,
    /// Who keeps what goes over the wire, if somebody does.
    pub recorder: Option<Arc<Recorder>>,
}

/// The only way out of a sandbox.
pub struct Gateway {
    pub(crate) policy: ResolvedPolicy,
    pub(crate) tier: Tier,
    pub(crate) sink: Arc<dyn Sink>,
    pub(crate) who: Arc<dyn Who>,
    pub(crate) inside: Arc<dyn Inside>,
    pub(crate) names: Arc<Names>,
    pub(crate) dialer: Dialer,
    pub(crate) flows: Flows,
    pub(crate) approvals: Approvals,
    pub(crate) inspector: Inspector,
    pub(crate) upstream: Upstream,
    pub(crate) pinned: PinnedClients,
    pub(crate) budgets: Budgets,
    pub(crate) guard: Box<dyn Guard>,
    pub(crate) pipes: Arc<Pipes>,
}

/// What decides about the names of other sandboxes.
pub(crate) const PEER: &str = "another sandbox of its group";

/// How long flows have to come to their end once nothing runs inside any more: what was sent still arrives.
const LAST_WORDS: Duration = Duration::from_millis(1500);

impl Gateway {
    /// Joins the parts; nothing is opened yet.
    #[must_use]
    pub fn new(setup: Setup) -> Arc<Self> {
        let Setup { policy, tier, sink, approver, who, inside, authority, .. } = setup;
        let Setup { upstream, credentials, decoys, recorder, .. } = setup;
        let guard = Box::new(Watchful::new(policy.network.leaks, credentials, decoys));
        let approvals = Approvals::new(approver, policy.network.ask_timeout.0);
        Arc::new(Self {
            policy,
            tier,
            flows: Flows::new(Arc::clone(&sink)).recorded_by(recorder.clone()),
            sink,
            who,
            inside,
            names: Arc::default(),
            dialer: Dialer::new(Arc::new(HostResolver), upstream),
            approvals,
            inspector: Inspector::new(authority, recorder),
            upstream: Upstream::default(),
            pinned: PinnedClients::default(),
            budgets: Budgets::default(),
            guard,
            pipes: Arc::default(),
        })
    }

    /// Serves until `over`, then lets what goes on come to its end.
    ///
    /// # Errors
    /// When a door cannot be served at all.
    pub async fn serve(self: Arc<Self>, doors: Doors, over: impl Future<Output = ()>) -> io::Result<()> {
        let open = capture::open(&self, doors)?;
        over.await;
        open.close(LAST_WORDS).await;
        Ok(())
    }

    /// What answers questions for names.
    pub(crate) fn resolver(self: &Arc<Self>) -> Resolver {
        let gateway = Arc::clone(self);
        Resolver {
            names: Arc::clone(&self.names),
            sink: Arc::clone(&self.sink),
            opinion: Box::new(move |name| gateway.opinion(name)),
        }
    }

    /// A connection to where a target was decided on; loopback is the sandbox's own, but for ports that it may reach.
    pub(crate) async fn dial(
        self: &Arc<Self>,
        target: &Target,
        permit: &(dyn Fn(IpAddr) -> Result<(), String> + Send + Sync),
    ) -> Result<Dialled, DialError> {
        if target.host.is_loopback() {
            self.dial_near(target).await
        } else {
            self.dialer.dial(target, permit).await
        }
    }

    fn opinion(&self, name: &HostName) -> Opinion {
        let is_peer = self.inside.is_peer(name);
        let allowed = is_peer || self.policy.network.could_allow(name);
        let verdict = if allowed { Verdict::Allow } else { Verdict::Deny };
        let rule = self.policy.network.rules.iter().find(|rule| rule.host.matches(&Host::Name(name.clone())));
        let rule = rule.filter(|_| !is_peer).map_or_else(
            || match is_peer {
                true => PEER.to_owned(),
                false => format!("default = {}", self.policy.network.default),
            },
            |rule| rule.origin.to_string(),
        );
        Opinion { verdict, rule }
    }
}
