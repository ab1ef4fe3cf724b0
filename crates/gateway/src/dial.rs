//! Connecting to what was decided on: the address that is dialled is the address that was checked.

use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use redoma_policy::{Host, Proxy, Upstream};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::{Reason, Target};

/// Finds the addresses of names, as the host does.
pub(crate) trait Resolve: Send + Sync {
    /// All addresses of `name`, best first.
    fn resolve(&self, name: String) -> Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>>;
}

/// The host's own resolver, with its files, caches and search orders. See `getaddrinfo(3)`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HostResolver;

/// Opens connections on the host.
#[derive(Clone)]
pub(crate) struct Dialer {
    resolver: Arc<dyn Resolve>,
    /// The proxy that connections go out by, where there is one.
    upstream: Option<Upstream>,
}

/// A connection that stands.
#[derive(Debug)]
pub(crate) struct Dialled {
    pub(crate) stream: TcpStream,
    pub(crate) address: IpAddr,
}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DialError {
    /// The name has no address.
    #[error("{name} could not be resolved: {source}")]
    Resolve {
        name: String,
        #[source]
        source: io::Error,
    },
    /// Every address was refused.
    #[error("{host} is at {address}: {problem}")]
    Address { host: String, address: IpAddr, problem: String },
    /// The proxy did not open a tunnel.
    #[error("the proxy {host} did not pass it on: {source}")]
    Proxy {
        host: String,
        #[source]
        source: io::Error,
    },
    /// Nobody answered.
    #[error("{host} could not be reached: {source}")]
    Connect {
        host: String,
        #[source]
        source: io::Error,
    },
}

/// How long one address may take.
const PATIENCE: Duration = Duration::from_secs(15);
/// How long an address has the race for itself (RFC 8305, section 5).
const HEAD_START: Duration = Duration::from_millis(250);
/// A name with more addresses than this is answered for balancing; these are plenty.
const MOST_ADDRESSES: usize = 8;

impl Dialer {
    pub(crate) fn new(resolver: Arc<dyn Resolve>, upstream: Option<Upstream>) -> Self {
        Self { resolver, upstream }
    }

    /// Connects to the first address of the target that `permit` lets through and that answers.
    pub(crate) async fn dial(
        &self,
        target: &Target,
        permit: &(dyn Fn(IpAddr) -> Result<(), String> + Send + Sync),
    ) -> Result<Dialled, DialError> {
        let proxy = self.upstream.as_ref().and_then(|upstream| upstream.proxy_for(&target.host));
        let (mut allowed, mut refused) = (Vec::new(), None);
        let addresses = match self.addresses(&target.host).await {
            // Behind a proxy there may be no resolver for the world; then the proxy's finds it.
            Err(_) if proxy.is_some() => Vec::new(),
            addresses => addresses?,
        };
        for address in addresses {
            match permit(address) {
                Ok(()) => allowed.push(address),
                Err(problem) => refused = Some((address, problem)),
            }
        }
        allowed.truncate(MOST_ADDRESSES);
        let host = target.host.to_string();
        if let (Some(proxy), None) = (proxy, &refused) {
            return self.dial_by(proxy, target).await;
        }
        match (allowed.is_empty(), refused) {
            // One address that is not public among others is an attack on whoever takes it: none is dialled.
            (_, Some((address, problem))) => Err(DialError::Address { host, address, problem }),
            (true, None) => Err(DialError::Resolve { name: host, source: io::ErrorKind::NotFound.into() }),
            (false, None) => {
                race(allowed, target.port).await.map_err(|source| DialError::Connect { host, source })
            }
        }
    }

    /// By a proxy's tunnel (RFC 9110, section 9.3.6). Where the proxy is, is the user's own word.
    async fn dial_by(&self, proxy: &Proxy, target: &Target) -> Result<Dialled, DialError> {
        let host = proxy.host.to_string();
        let failed = |source| DialError::Proxy { host: host.clone(), source };
        let dialled = race(self.addresses(&proxy.host).await?, proxy.port).await.map_err(failed)?;
        let tunnel = tunnel(&dialled.stream, proxy, target);
        let opened = tokio::time::timeout(PATIENCE, tunnel).await;
        opened.map_err(io::Error::from).and_then(|opened| opened).map_err(failed)?;
        Ok(dialled)
    }

    async fn addresses(&self, host: &Host) -> Result<Vec<IpAddr>, DialError> {
        match host {
            Host::Address(address) => Ok(vec![*address]),
            Host::Name(name) => {
                let found = self.resolver.resolve(name.as_str().to_owned()).await;
                let found = found.map_err(|source| DialError::Resolve { name: name.to_string(), source })?;
                Ok(found.into_iter().map(|address| address.to_canonical()).collect())
            }
        }
    }
}

/// The first connection that stands; each address starts a moment after the one before, or as soon as that failed.
async fn race(addresses: Vec<IpAddr>, port: u16) -> io::Result<Dialled> {
    let mut waiting = addresses.into_iter();
    let mut running = JoinSet::new();
    let mut last = io::Error::from(io::ErrorKind::NotFound);
    loop {
        if let Some(address) = waiting.next() {
            running.spawn(connect(address, port));
        } else if running.is_empty() {
            return Err(last);
        }
        let more = !waiting.as_slice().is_empty();
        let ended = tokio::select! {
            ended = running.join_next() => ended,
            () = tokio::time::sleep(HEAD_START), if more => None,
        };
        match ended {
            Some(Ok(Ok(dialled))) => return Ok(dialled),
            Some(Ok(Err(error))) => last = error,
            Some(Err(panicked)) => last = io::Error::other(panicked),
            None => {}
        }
    }
}

async fn connect(address: IpAddr, port: u16) -> io::Result<Dialled> {
    let stream = tokio::time::timeout(PATIENCE, TcpStream::connect(SocketAddr::new(address, port))).await??;
    stream.set_nodelay(true)?;
    Ok(Dialled { stream, address })
}

/// Asks for a tunnel, and reads the answer and not a byte more: the server may speak first.
async fn tunnel(stream: &TcpStream, proxy: &Proxy, target: &Target) -> io::Result<()> {
    const LONGEST: usize = 16 << 10;
    let credentials = proxy.user.as_ref().map(|user| {
        let password = proxy.password.as_ref().map_or("", |password| password.expose());
        let pair = data_encoding::BASE64.encode(format!("{user}:{password}").as_bytes());
        format!("Proxy-Authorization: Basic {pair}\r\n")
    });
    let credentials = credentials.unwrap_or_default();
    let mut request =
        &format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n{credentials}\r\n").into_bytes()[..];
    while !request.is_empty() {
        stream.writable().await?;
        match stream.try_write(request) {
            Ok(length) => request = &request[length..],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    let (mut head, mut seen) = (Vec::new(), vec![0; LONGEST]);
    while !head.ends_with(b"\r\n\r\n") {
        if head.len() >= LONGEST {
            return Err(io::Error::other("its answer has no end"));
        }
        let length = stream.peek(&mut seen).await?;
        if length == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        // As much as belongs to the head.
        let whole = [&head[..], &seen[..length]].concat();
        let end = memchr::memmem::find(&whole, b"\r\n\r\n").map_or(whole.len(), |at| at + 4);
        let mut part = vec![0; end - head.len()];
        match stream.try_read(&mut part) {
            Ok(read) => head.extend_from_slice(&part[..read]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    let line = head.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let status = line.split(|byte| *byte == b' ').nth(1).unwrap_or_default();
    match status {
        [b'2', _, _] => Ok(()),
        b"407" => Err(io::Error::other("it wants other credentials (407)")),
        _ => Err(io::Error::other(format!("it answered {}", line.escape_ascii()))),
    }
}

// === impl DialError ===

impl DialError {
    /// As flows have it.
    pub(crate) fn reason(&self) -> Reason {
        match self {
            Self::Address { .. } => Reason::PrivateAddress,
            Self::Resolve { .. } | Self::Connect { .. } | Self::Proxy { .. } => Reason::UpstreamFailed,
        }
    }
}

// === impl HostResolver ===

impl Resolve for HostResolver {
    fn resolve(&self, name: String) -> Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>> {
        Box::pin(async move {
            let hosts = tokio::task::spawn_blocking(|| std::fs::read_to_string(HOSTS)).await?;
            let listed = listed(&name, &hosts.unwrap_or_default());
            if !listed.is_empty() {
                return Ok(listed);
            }
            // The dot keeps the host's search domains out: what is resolved is the name that was decided on. It also
            // keeps the C library from its own look at the file above.
            let name = if name.contains('.') { format!("{name}.") } else { name };
            let found = tokio::net::lookup_host((name, 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    }
}

const HOSTS: &str = "/etc/hosts";

/// The addresses of a name in `hosts(5)`.
fn listed(name: &str, hosts: &str) -> Vec<IpAddr> {
    let lines = hosts.lines().map(|line| line.split('#').next().unwrap_or_default());
    let address = |line: &str| {
        let mut words = line.split_whitespace();
        let address = words.next()?.parse().ok()?;
        words.any(|word| word.eq_ignore_ascii_case(name)).then_some(address)
    };
    lines.filter_map(address).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tokio::net::TcpListener;

    struct Fixed(Vec<Vec<IpAddr>>, AtomicUsize);

    impl Resolve for Fixed {
        fn resolve(&self, _: String) -> Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>> {
            let turn = self.1.fetch_add(1, Ordering::Relaxed);
            let found = self.0[turn.min(self.0.len() - 1)].clone();
            Box::pin(std::future::ready(Ok(found)))
        }
    }

    fn dialer(answers: &[&[&str]]) -> Dialer {
        let answers = answers.iter().map(|one| one.iter().map(|a| a.parse().unwrap()).collect()).collect();
        Dialer::new(Arc::new(Fixed(answers, AtomicUsize::new(0))), None)
    }

    fn target(host: &str, port: u16) -> Target {
        Target { host: host.parse().unwrap(), port }
    }

    async fn listener() -> (TcpListener, u16) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        (listener, port)
    }

    #[tokio::test]
    async fn the_first_address_that_answers_is_taken() {
        let (_listener, port) = listener().await;
        let dialer = dialer(&[&["127.0.0.9", "127.0.0.1"]]);
        let permit = |_: IpAddr| Ok(());
        let dialled = dialer.dial(&target("a.example", port), &permit).await.unwrap();
        assert_eq!(dialled.address, "127.0.0.1".parse::<IpAddr>().unwrap());
    }

    #[tokio::test]
    async fn one_refused_address_refuses_the_name() {
        let (_listener, port) = listener().await;
        let dialer = dialer(&[&["127.0.0.1", "::ffff:10.0.0.1"]]);
        let permit = |address: IpAddr| match address.to_string().as_str() {
            "10.0.0.1" => Err("private".to_owned()),
            _ => Ok(()),
        };
        let error = dialer.dial(&target("a.example", port), &permit).await.unwrap_err();
        assert_eq!(error.reason(), Reason::PrivateAddress);
        assert_eq!(error.to_string(), "a.example is at 10.0.0.1: private");
    }

    #[tokio::test]
    async fn an_answer_that_changes_is_checked_each_time_and_asked_once() {
        let (_listener, port) = listener().await;
        let dialer = dialer(&[&["127.0.0.1"], &["10.0.0.1"]]);
        let permit = |address: IpAddr| {
            if address.is_loopback() { Ok(()) } else { Err("private".to_owned()) }
        };
        assert!(dialer.dial(&target("a.example", port), &permit).await.is_ok());
        assert!(dialer.dial(&target("a.example", port), &permit).await.is_err());
    }

    #[test]
    fn names_of_the_hosts_file_are_known() {
        let hosts = "127.0.0.1 localhost # a.example\n10.0.0.1\tA.example b\n::1 a.example\nx a.example\n";
        let addresses: Vec<IpAddr> = vec!["10.0.0.1".parse().unwrap(), "::1".parse().unwrap()];
        assert_eq!(listed("a.example", hosts), addresses);
        assert_eq!(listed("c.example", hosts), [] as [IpAddr; 0]);
    }

    #[tokio::test]
    async fn nobody_there_is_said_in_words() {
        let dialer = dialer(&[&["127.0.0.1"]]);
        let error = dialer.dial(&target("a.example", 1), &|_| Ok(())).await.unwrap_err();
        assert_eq!(error.reason(), Reason::UpstreamFailed);
        assert!(error.to_string().starts_with("a.example could not be reached"), "{error}");
    }
}
