//! What a resolved policy says about the network.

mod leaks;
mod local;
mod proxy;
mod rate;
mod request;
mod rule;

use std::cmp::Reverse;
use std::fmt;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Host, HostName, TimeSpan};

pub use leaks::{LeakAction, Leaks};
pub use local::{InvalidPort, LocalPorts, Publish, Reach};
pub use proxy::{InvalidProxy, Password, Proxy, Upstream, UpstreamProxy};
pub use rate::Rate;
pub use request::RequestProblem;
pub use rule::{Action, NetworkRule, Pinned, Protocol, Purpose};

/// The network part of a [`crate::ResolvedPolicy`].
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Network {
    /// What happens to a connection that no rule names.
    pub default: NetworkDefault,
    /// Rules. A deny beats all others; else the rule that names the host most closely decides.
    pub rules: Vec<NetworkRule>,
    /// Ports of this machine.
    pub local: LocalPorts,
    /// How long a person has to answer; then the answer is no.
    pub ask_timeout: TimeSpan,
    /// The proxy through which everything goes.
    pub upstream_proxy: UpstreamProxy,
    /// What happens to secrets on their way out.
    pub leaks: Leaks,
}

/// What happens to a connection that no rule names. Ordered from strict to loose.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum NetworkDefault {
    /// There is no network, whatever the rules say.
    None,
    /// It is refused.
    #[default]
    Deny,
    /// A person is asked.
    Ask,
    /// It is let through.
    Allow,
}

/// How long a person has to answer unless a policy says otherwise.
const ASK_TIMEOUT: Duration = Duration::from_secs(120);

// === impl Network ===

impl Default for Network {
    fn default() -> Self {
        Self {
            default: NetworkDefault::default(),
            rules: Vec::new(),
            local: LocalPorts::default(),
            ask_timeout: TimeSpan(ASK_TIMEOUT),
            upstream_proxy: UpstreamProxy::default(),
            leaks: Leaks::default(),
        }
    }
}

impl Network {
    /// Whether anything inside could get a connection out, so that the gateway must run.
    #[must_use]
    pub fn needs_gateway(&self) -> bool {
        match self.default {
            NetworkDefault::None => false,
            NetworkDefault::Deny => {
                self.rules.iter().any(NetworkRule::opens)
                    || !self.local.reach.is_empty()
                    || !self.local.publish.is_empty()
            }
            NetworkDefault::Ask | NetworkDefault::Allow => true,
        }
    }

    /// The rules that decide about a host and port, the one to show first; more than one only where they name host and
    /// port equally closely and none denies.
    ///
    /// A deny beats whatever else matches; then come the rules that name the host most closely, and of those the ones
    /// that name the fewest ports. Of equals the strictest is first, and of those the one written first.
    #[must_use]
    pub fn rules_for(&self, host: &Host, port: u16) -> Vec<&NetworkRule> {
        let matching = || self.rules.iter().filter(|rule| rule.matches(host, port));
        let Some(closest) = matching().map(NetworkRule::rank).max() else { return Vec::new() };
        let mut rules: Vec<_> = matching().filter(|rule| rule.rank() == closest).collect();
        rules.sort_by_key(|rule| Reverse(rule.action));
        rules
    }

    /// Whether a rule or the default could let some port of a name be reached. Where not, the name is of no use inside,
    /// and no resolver needs to hear of it. The machine's own names are none of the network's.
    #[must_use]
    pub fn could_allow(&self, name: &HostName) -> bool {
        if self.default == NetworkDefault::None || Host::Name(name.clone()).is_loopback() {
            return false;
        }
        let meant = || self.rules.iter().filter(|rule| rule.host.matches_name(name));
        let denied = |port: Option<u16>| {
            let mut denies = meant().filter(|rule| rule.action == Action::Deny);
            denies.any(|rule| port.map_or(rule.ports.is_empty(), |port| rule.means_port(port)))
        };
        let opens = |rule: &NetworkRule| match rule.ports.as_slice() {
            // Denies that name ports never name them all.
            [] => !denied(None),
            ports => ports.iter().any(|port| !denied(Some(port.get()))),
        };
        let by_default = self.default != NetworkDefault::Deny && !denied(None);
        by_default || meant().any(|rule| rule.opens() && opens(rule))
    }
}

impl fmt::Display for NetworkDefault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "none",
            Self::Deny => "deny",
            Self::Ask => "ask",
            Self::Allow => "allow",
        })
    }
}
