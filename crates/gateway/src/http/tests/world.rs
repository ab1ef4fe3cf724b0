//! A bridge between two sockets, and what it told.

use std::io;
use std::net::TcpStream as Plain;
use std::num::NonZeroU16;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use redoma_audit::Event;
use redoma_audit::event::{self, Direction, Process, Visibility};
use redoma_policy::{
    CommandLine, Layer, NetworkDefault, PathFacts, PathKind, ResolvedPolicy, Source, Surroundings, Tier,
};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use crate::guard::Guard;
use crate::http::{Scope, Version, bridge};
use crate::stream::ClientStream;
use crate::{Authority, Client, Credentials, Gateway, Inside, NobodyAnswers, Setup, Sink, Target, Who};

/// Longer than anything here takes.
pub(super) const SOON: Duration = Duration::from_secs(20);

#[derive(Default)]
pub(super) struct Told(Mutex<Vec<Event>>);

impl Sink for Told {
    fn tell(&self, event: Event) {
        self.0.lock().unwrap().push(event);
    }
}

/// A client and a server with a bridge in between.
pub(super) struct World {
    pub(super) client: TcpStream,
    pub(super) server: TcpStream,
    told: Arc<Told>,
    bridge: JoinHandle<()>,
}

/// A rule for `a.example`.
pub(super) const RULE: &str = "[[network.rule]]\nhost = \"a.example\"\nports = [80]\naction = \"inspect\"\n";

pub(super) async fn world(version: Version) -> World {
    World::new(version, RULE, |_| {}).await
}

impl World {
    pub(super) async fn new(version: Version, rule: &str, change: impl FnOnce(&mut Gateway)) -> Self {
        let told = Arc::<Told>::default();
        let scope = scope(version, rule, &told, change);
        let ((client, near), (far, server)) = (pair().await, pair().await);
        let near = ClientStream::new(near, bytes::Bytes::new(), Arc::clone(&scope.flow));
        let bridge = tokio::spawn(bridge(near, far, scope));
        Self { client, server, told, bridge }
    }

    pub(super) async fn guarded(version: Version, guard: impl Guard + 'static) -> Self {
        Self::new(version, RULE, |gateway| gateway.guard = Box::new(guard)).await
    }

    pub(super) async fn ask(&mut self, text: &str) {
        self.client.write_all(text.as_bytes()).await.unwrap();
    }

    pub(super) async fn answer(&mut self, text: &str) {
        self.server.write_all(text.as_bytes()).await.unwrap();
    }

    /// What the server hears, up to the end of `last`.
    pub(super) async fn heard(&mut self, last: &str) -> String {
        until(&mut self.server, last).await
    }

    /// What the client gets, up to the end of `last`.
    pub(super) async fn got(&mut self, last: &str) -> String {
        until(&mut self.client, last).await
    }

    /// What the client gets until it is hung up on; whether that was in order.
    pub(super) async fn got_all(&mut self) -> (String, bool) {
        all(&mut self.client).await
    }

    pub(super) async fn heard_all(&mut self) -> (String, bool) {
        all(&mut self.server).await
    }

    /// What is told when all is over.
    pub(super) async fn told(self) -> (Vec<event::Exchange>, event::Flow) {
        drop((self.client, self.server));
        tokio::time::timeout(SOON, self.bridge).await.unwrap().unwrap();
        let told = std::mem::take(&mut *self.told.0.lock().unwrap());
        let mut exchanges = Vec::new();
        let mut flow = None;
        for event in told {
            match event {
                Event::Exchange(exchange) => exchanges.push(exchange),
                Event::Flow(one) => flow = Some(one),
                _ => {}
            }
        }
        (exchanges, flow.unwrap())
    }

    /// Nothing reached the server, and the flow is blocked.
    pub(super) async fn blocked(mut self, reason: &str) {
        // Whoever has the answer need not be listened to any longer.
        drop(std::mem::replace(&mut self.client, pair().await.0));
        let (heard, _) = self.heard_all().await;
        assert_eq!(heard, "");
        let (_, flow) = self.told().await;
        assert_eq!((flow.visibility, flow.reason.as_str()), (Visibility::Blocked, reason));
    }
}

fn scope(version: Version, rule: &str, told: &Arc<Told>, change: impl FnOnce(&mut Gateway)) -> Scope {
    let mut gateway = Gateway::new(Setup {
        policy: policy(rule),
        tier: Tier::Full,
        sink: Arc::<Told>::clone(told),
        approver: Arc::new(NobodyAnswers),
        who: Arc::new(Nobody),
        inside: Arc::new(Nobody),
        authority: Authority::new("test").unwrap(),
        upstream: None,
        recorder: None,
        credentials: Credentials::default(),
        decoys: Vec::new(),
    });
    change(Arc::get_mut(&mut gateway).unwrap());
    let target = Target { host: "a.example".parse().unwrap(), port: 80 };
    let flow = gateway.flows.open(target, Direction::Out, None);
    flow.inspected(crate::Reason::Policy);
    Scope::new(gateway, flow, version, false)
}

/// A client and a server in memory, for a clock that stands still while something is on its way.
pub(super) fn in_memory() -> (DuplexStream, DuplexStream) {
    let ((client, near), (far, server)) = (tokio::io::duplex(4096), tokio::io::duplex(4096));
    tokio::spawn(bridge(near, far, scope(Version::One, RULE, &Arc::default(), |_| {})));
    (client, server)
}

/// Reads up to the end of `last`.
pub(super) async fn read_to<S: AsyncRead + Unpin>(stream: &mut S, last: &str) -> String {
    let mut heard = Vec::new();
    while !heard.ends_with(last.as_bytes()) {
        heard.push(stream.read_u8().await.unwrap());
    }
    String::from_utf8(heard).unwrap()
}

async fn until(stream: &mut TcpStream, last: &str) -> String {
    let mut heard = Vec::new();
    while !heard.ends_with(last.as_bytes()) {
        let read = tokio::time::timeout(SOON, stream.read_u8()).await;
        let Ok(Ok(byte)) = read else { panic!("{read:?} after {:?}", String::from_utf8_lossy(&heard)) };
        heard.push(byte);
    }
    String::from_utf8(heard).unwrap()
}

/// An answer's head, and what there is of its text.
pub(super) async fn head(mut stream: impl AsyncRead + Unpin) -> String {
    let mut heard = Vec::new();
    while !heard.ends_with(b"\n")
        || !heard.windows(4).any(|four| four == b"\r\n\r\n")
        || heard.ends_with(b"\r\n")
    {
        let read = tokio::time::timeout(SOON, stream.read_buf(&mut heard)).await;
        if !matches!(read, Ok(Ok(length)) if length > 0) {
            break;
        }
    }
    String::from_utf8_lossy(&heard).into_owned()
}

pub(super) async fn rest(stream: &mut TcpStream) -> (String, bool) {
    all(stream).await
}

async fn all(stream: &mut TcpStream) -> (String, bool) {
    let mut heard = Vec::new();
    let end = tokio::time::timeout(SOON, stream.read_to_end(&mut heard)).await.expect("an end");
    (String::from_utf8_lossy(&heard).into_owned(), end.is_ok())
}

/// Both ends of a connection.
pub(super) async fn pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (one, other) = tokio::join!(TcpStream::connect(address), listener.accept());
    let (one, (other, _)) = (one.unwrap(), other.unwrap());
    one.set_nodelay(true).unwrap();
    other.set_nodelay(true).unwrap();
    (one, other)
}

struct Nobody;

impl Who for Nobody {
    fn of(&self, _: Client) -> Option<Process> {
        None
    }
}

impl Inside for Nobody {
    fn dial(&self, _: NonZeroU16) -> io::Result<Plain> {
        Err(io::ErrorKind::ConnectionRefused.into())
    }
}

impl PathFacts for Nobody {
    fn canonicalize(&self, _: &Path) -> Option<PathBuf> {
        None
    }

    fn kind(&self, _: &Path) -> Option<PathKind> {
        None
    }
}

fn policy(text: &str) -> ResolvedPolicy {
    let source = Source { layer: Layer::User, path: None, text: text.to_owned().into_bytes(), trusted: true };
    let typed = CommandLine {
        profile: Some("empty".to_owned()),
        net: Some(NetworkDefault::Deny),
        ..CommandLine::default()
    };
    let none = Path::new("/nowhere");
    let world = Surroundings {
        home: none,
        project: none,
        cwd: none,
        git_dirs: &[],
        user: "nobody",
        uid: 0,
        vars: &|_| None,
        paths: &Nobody,
        load: &|_| Err("there are no files".to_owned()),
    };
    redoma_policy::resolve(&[source], &typed, &world).unwrap()
}
