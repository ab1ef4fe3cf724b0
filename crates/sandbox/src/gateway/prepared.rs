use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::num::NonZeroU16;
use std::path::{Path, PathBuf};

use redoma_gateway::{Authority, Credentials, Leads, Secret, Trust};
use redoma_jail::{Cover, Piece, Token, Wire};
use redoma_policy::{Publish, ResolvedPolicy, Tier, Upstream};

use crate::decoy::Canary;
use crate::disposable::Peers;
use crate::error::RunError;

/// What the gateway needs before there is a sandbox: what is seen of it inside, and its sockets outside.
pub(crate) struct Prepared {
    pub(super) authority: Authority,
    pub(super) credentials: Credentials,
    pub(super) decoys: Vec<(String, Secret<String>)>,
    pub(super) publish: Vec<(Publish, TcpListener)>,
    pub(super) relay: Option<(TcpListener, Token)>,
    pub(super) upstream: Option<Upstream>,
    /// Where what goes over the wire is kept, if it is.
    pub(super) capture: Option<File>,
    pub(super) peers: Option<Peers>,
    trust: Trust,
    wire: Wire,
    proxy: NonZeroU16,
}

/// Where certificates are found inside (full tier); the landlock tier has them in the session's temporary folder.
const FOLDER: &str = "/run/redoma";
const CERTIFICATE: &str = "ca.pem";
const BUNDLE: &str = "ca-bundle.pem";
/// Where proxies are expected.
const PROXY_PORT: u16 = 3128;

const RESOLV_CONF: &str = "nameserver 127.0.0.1\noptions edns0\n";
/// Names of the host's own file are the gateway's to resolve, so that they are decided on as names.
const HOSTS: &str = "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n";

impl Prepared {
    /// Makes the authority and the sockets, and loads the credentials that `given` variables or other places hold. Ports
    /// that are published are taken here, so that one that is taken already is an error and no surprise.
    pub(crate) fn new(
        policy: &ResolvedPolicy,
        tier: Tier,
        session: &str,
        given: &[(OsString, OsString)],
        canaries: &[Canary],
    ) -> Result<Self, RunError> {
        let upstream = upstream(policy, given)?;
        let local = &policy.network.local;
        let variable =
            |name: &str| given.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
        let credentials = Credentials::load(&policy.secrets, &variable)?;
        let decoy = |canary: &Canary| (canary.name.clone(), Secret::new(canary.value.clone()));
        let decoys = canaries.iter().map(decoy).collect();
        let authority =
            Authority::new(session).map_err(|error| RunError::Gateway(io::Error::other(error)))?;
        let trust = Trust::of_host(&authority);
        // In the landlock tier the port inside is the host's own.
        let listens = |publish: &&Publish| tier == Tier::Full || publish.outside != publish.inside;
        let publish = local.publish.iter().filter(listens).map(listen).collect::<Result<_, _>>()?;
        let reach = local.reach.iter().map(|reach| reach.port).collect::<Vec<_>>();
        let taken = |port: &NonZeroU16| {
            reach.contains(port) || local.publish.iter().any(|publish| publish.inside == *port)
        };
        let free = (PROXY_PORT..=u16::MAX).filter_map(NonZeroU16::new).find(|port| !taken(port));
        let proxy = free.unwrap_or(NonZeroU16::MAX);
        let (wire, relay) = match tier {
            Tier::Full => (Wire::Namespace { proxy_port: proxy, reach }, None),
            Tier::Landlock => {
                let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(RunError::Gateway)?;
                let mut random = [0; 32];
                fill(&mut random).map_err(RunError::Gateway)?;
                let token = Token::from(random);
                let relay = listener.local_addr().map_err(RunError::Gateway)?;
                let publish = local.publish.iter().map(|publish| publish.inside).collect();
                (Wire::OnBehalf { relay, token, publish }, Some((listener, token)))
            }
        };
        Ok(Self {
            authority,
            credentials,
            decoys,
            publish,
            relay,
            upstream,
            capture: None,
            peers: None,
            trust,
            wire,
            proxy,
        })
    }

    /// Keeps what goes over the wire in `file`.
    pub(crate) fn capture_into(self, file: Option<File>) -> Self {
        Self { capture: file, ..self }
    }

    /// Lets names lead to other sandboxes.
    pub(crate) fn with_peers(self, peers: Peers) -> Self {
        Self { peers: Some(peers), ..self }
    }

    /// What the user should know: credentials that are not there.
    pub(crate) fn notes(&self) -> Vec<String> {
        let absent = self.credentials.absent().iter();
        absent.map(|name| format!("[secrets.{name}] is left out: its variable is not set")).collect()
    }

    /// For the blueprint.
    pub(crate) fn wire(&self) -> Wire {
        self.wire.clone()
    }

    /// What the full tier's view shows besides: certificates, the resolver, and no names of the host's.
    pub(crate) fn pieces(&self) -> Vec<Piece> {
        let file = |content: &[u8]| Cover::File(content.to_vec(), 0o444);
        let folder = Cover::Folder(vec![
            (CERTIFICATE.into(), self.trust.certificate.clone(), 0o444),
            (BUNDLE.into(), self.trust.bundle.clone(), 0o444),
        ]);
        let mut pieces = vec![Piece::Cover { at: FOLDER.into(), with: folder }];
        let configured = [("/etc/resolv.conf", RESOLV_CONF), ("/etc/hosts", HOSTS)];
        for (path, content) in configured {
            let at = resolved(Path::new(path));
            pieces.extend(at.map(|at| Piece::Cover { at, with: file(content.as_bytes()) }));
        }
        let replaced = self.trust.replaced.iter();
        pieces.extend(replaced.map(|(at, content)| Piece::Cover { at: at.clone(), with: file(content) }));
        pieces
    }

    /// The same for a view that is not made of the host's system folders.
    pub(crate) fn pieces_of_image(&self) -> Vec<Piece> {
        let file = |content: &[u8]| Cover::File(content.to_vec(), 0o444);
        let folder = Cover::Folder(vec![
            (CERTIFICATE.into(), self.trust.certificate.clone(), 0o444),
            (BUNDLE.into(), self.trust.bundle.clone(), 0o444),
        ]);
        let own = [
            Piece::Cover { at: FOLDER.into(), with: folder },
            Piece::Cover { at: "/etc/resolv.conf".into(), with: file(RESOLV_CONF.as_bytes()) },
        ];
        let replaced = Trust::bundles().map(|at| Piece::Replace { at, with: file(&self.trust.bundle) });
        own.into_iter().chain(replaced).collect()
    }

    /// Writes what somebody else shows inside: the folder of certificates, and the resolver's configuration beside it.
    pub(crate) fn write_outside(&self, folder: &Path) -> io::Result<()> {
        fs::create_dir_all(folder)?;
        self.write_into(folder)?;
        fs::write(folder.join("resolv.conf"), RESOLV_CONF)
    }

    /// Writes what the landlock tier's commands read into their folder for temporary files.
    pub(crate) fn write_into(&self, folder: &Path) -> io::Result<()> {
        fs::write(folder.join(CERTIFICATE), &self.trust.certificate)?;
        fs::write(folder.join(BUNDLE), &self.trust.bundle)
    }

    /// What programs inside are told, `folder` being where the landlock tier has the certificates.
    pub(crate) fn variables(&self, folder: Option<&Path>) -> Vec<(String, OsString)> {
        let at = |name: &str| folder.unwrap_or(Path::new(FOLDER)).join(name).into_os_string();
        let mut variables: Vec<(String, OsString)> = Trust::variables()
            .map(|(name, leads)| match leads {
                Leads::ToCertificate => (name.to_owned(), at(CERTIFICATE)),
                Leads::ToBundle => (name.to_owned(), at(BUNDLE)),
            })
            .collect();
        variables.extend(self.credentials.variables().into_iter().map(|(name, shown)| (name, shown.into())));
        match self.wire {
            Wire::Namespace { .. } => {
                variables
                    .push(("REDOMA_PROXY".to_owned(), format!("http://127.0.0.1:{}", self.proxy).into()));
            }
            // Questions for names go over TCP: that is what is passed on.
            Wire::OnBehalf { .. } => variables.push(("RES_OPTIONS".to_owned(), "use-vc".into())),
        }
        variables
    }
}

/// The proxy that the caller's environment or the policy names.
pub(crate) fn upstream(
    policy: &ResolvedPolicy,
    variables: &[(OsString, OsString)],
) -> Result<Option<Upstream>, RunError> {
    let value = |name: &str| {
        let found = variables.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.to_string_lossy().into_owned())
    };
    Ok(policy.network.upstream_proxy.choose(&value)?)
}

fn listen(publish: &Publish) -> Result<(Publish, TcpListener), RunError> {
    let port = publish.outside.get();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port));
    Ok((*publish, listener.map_err(|source| RunError::Publish { port, source })?))
}

/// Where a file of the host's is, or would be, after all links.
fn resolved(path: &Path) -> Option<PathBuf> {
    if let Ok(real) = fs::canonicalize(path) {
        return Some(real);
    }
    let target = fs::read_link(path).ok()?;
    Some(path.parent()?.join(target))
}

fn fill(random: &mut [u8]) -> io::Result<()> {
    let mut filled = 0;
    while filled < random.len() {
        filled += rustix::rand::getrandom(&mut random[filled..], rustix::rand::GetRandomFlags::empty())?;
    }
    Ok(())
}
