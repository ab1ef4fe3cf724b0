//! How many requests a second go through the gateway, looked into, and how long each takes: `requests [SECONDS] [BYTES]
//! [CONNECTIONS]`.
//!
//! The server is on an address of this machine, its certificate is verified, and every exchange is told to a keeper that
//! reads it. The same client asks the same server directly, so that the ratio is what the gateway costs.

use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use redoma_audit::event::Process;
use redoma_gateway::{
    Authority, Client, Credentials, Doors, Gateway, Inside, Keeper, Link, NobodyAnswers, Setup, Who,
};
use redoma_policy::{
    CommandLine, Layer, NetworkDefault, PathFacts, PathKind, ResolvedPolicy, Source, Surroundings, Tier,
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection, StreamOwned};

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Where the process that measures finds what the gateway takes for the machine's authorities.
const ROOTS: &str = "SSL_CERT_FILE";
const KEY: &str = "REQUESTS_KEY";

fn main() -> Result<(), Failure> {
    if std::env::var_os(KEY).is_none() { again_with_roots() } else { measure() }
}

/// The gateway reads the machine's authorities; here they are the server's own certificate.
fn again_with_roots() -> Result<(), Failure> {
    let folder = tempfile::tempdir()?;
    let address = own_address()?;
    let made = rcgen::generate_simple_self_signed([address.to_string()])?;
    let (certificate, key) = (folder.path().join("cert.pem"), folder.path().join("key.der"));
    std::fs::write(&certificate, made.cert.pem())?;
    std::fs::write(&key, made.signing_key.serialize_der())?;
    let status = Command::new(std::env::current_exe()?)
        .args(std::env::args_os().skip(1))
        .env(ROOTS, &certificate)
        .env(KEY, &key)
        .status()?;
    if status.success() { Ok(()) } else { Err("it failed".into()) }
}

fn measure() -> Result<(), Failure> {
    let argument = |number: usize, otherwise: usize| {
        std::env::args().nth(number).and_then(|text| text.parse().ok()).unwrap_or(otherwise)
    };
    let (seconds, bytes, connections) = (argument(1, 3), argument(2, 1024), argument(3, 1));
    let time = Duration::from_secs(seconds as u64);
    let address = own_address()?;
    let own = rustls_native_certs::load_native_certs().certs.remove(0);
    let server = serve(address, &own, bytes)?;
    let authority = Authority::new("bench")?;
    let inside = authority.certificate().clone();
    let proxy = gateway(server, authority)?;
    let direct = many(connections, &own, server, None, bytes, time)?;
    let through = many(connections, &inside, server, Some(proxy), bytes, time)?;
    let added = through.median.saturating_sub(direct.median);
    say(&format!("direct   {direct}\nthrough  {through}\nadded    {added:?} at the median\n"))?;
    Ok(())
}

fn say(text: &str) -> io::Result<()> {
    io::stdout().lock().write_all(text.as_bytes())
}

/// An address of this machine that is not loopback, which is never inspected.
fn own_address() -> io::Result<IpAddr> {
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    socket.connect("198.51.100.1:9")?;
    Ok(socket.local_addr()?.ip())
}

// === the server ===

fn serve(address: IpAddr, own: &CertificateDer<'static>, bytes: usize) -> Result<SocketAddr, Failure> {
    let key = std::fs::read(std::env::var_os(KEY).ok_or("no key")?)?;
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key));
    let config = ServerConfig::builder().with_no_client_auth().with_single_cert(vec![own.clone()], key)?;
    let config = Arc::new(config);
    let listener = TcpListener::bind((address, 0))?;
    let local = listener.local_addr()?;
    let answer =
        format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {bytes}\r\n\r\n");
    let answer: Arc<[u8]> = [answer.as_bytes(), &vec![b'x'; bytes]].concat().into();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (config, answer) = (Arc::clone(&config), Arc::clone(&answer));
            std::thread::spawn(move || answer_all(stream, config, &answer));
        }
    });
    Ok(local)
}

fn answer_all(stream: TcpStream, config: Arc<ServerConfig>, answer: &[u8]) -> Result<(), Failure> {
    stream.set_nodelay(true)?;
    let mut stream = StreamOwned::new(ServerConnection::new(config)?, stream);
    let mut heard = vec![0; 4096];
    let mut length = 0;
    loop {
        length += match stream.read(&mut heard[length..])? {
            0 => return Ok(()),
            read => read,
        };
        if heard[..length].ends_with(b"\r\n\r\n") {
            stream.write_all(answer)?;
            length = 0;
        }
    }
}

// === the client ===

struct Measured {
    rate: f64,
    median: Duration,
    slow: Duration,
}

impl std::fmt::Display for Measured {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:>7.0} requests/s, median {:?}, p99 {:?}", self.rate, self.median, self.slow)
    }
}

fn many(
    connections: usize,
    root: &CertificateDer<'static>,
    server: SocketAddr,
    proxy: Option<SocketAddr>,
    bytes: usize,
    time: Duration,
) -> Result<Measured, Failure> {
    let began = Instant::now();
    let all: Vec<_> = (0..connections)
        .map(|_| {
            let root = root.clone();
            std::thread::spawn(move || ask(root, server, proxy, bytes, time))
        })
        .collect();
    let mut taken = Vec::new();
    for one in all {
        taken.extend(one.join().map_err(|_| "a client panicked")??);
    }
    let rate = taken.len() as f64 / began.elapsed().as_secs_f64();
    taken.sort_unstable();
    Ok(Measured { rate, median: taken[taken.len() / 2], slow: taken[taken.len() * 99 / 100] })
}

fn ask(
    root: CertificateDer<'static>,
    server: SocketAddr,
    proxy: Option<SocketAddr>,
    bytes: usize,
    time: Duration,
) -> Result<Vec<Duration>, Failure> {
    let mut roots = RootCertStore::empty();
    roots.add(root)?;
    let config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    let connection = ClientConnection::new(Arc::new(config), ServerName::from(server.ip()))?;
    let mut stream = TcpStream::connect(proxy.unwrap_or(server))?;
    stream.set_nodelay(true)?;
    if proxy.is_some() {
        write!(stream, "CONNECT {server} HTTP/1.1\r\nHost: {server}\r\n\r\n")?;
        let mut answer = [0; 39];
        stream.read_exact(&mut answer)?;
    }
    let mut stream = StreamOwned::new(connection, stream);
    let request = format!(
        "GET /v1/messages?beta=true HTTP/1.1\r\nHost: {server}\r\nUser-Agent: bench/1.0\r\nAccept: application/json\r\n\
         Accept-Encoding: gzip, br\r\nAuthorization: Bearer 0123456789abcdef\r\n\r\n"
    );
    let mut heard = vec![0; bytes + 4096];
    let (mut taken, until) = (Vec::new(), Instant::now() + time);
    while Instant::now() < until {
        let began = Instant::now();
        stream.write_all(request.as_bytes())?;
        let mut length = 0;
        loop {
            length += match stream.read(&mut heard[length..])? {
                0 => return Err("it hung up".into()),
                read => read,
            };
            let head = heard[..length].windows(4).take(2048).position(|four| four == b"\r\n\r\n");
            if head.is_some_and(|head| length == head + 4 + bytes) {
                break;
            }
        }
        taken.push(began.elapsed());
    }
    Ok(taken)
}

// === the gateway ===

fn gateway(server: SocketAddr, authority: Authority) -> Result<SocketAddr, Failure> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let policy = policy(server)?;
    let (mut keeper, link) = Keeper::pair()?;
    std::thread::spawn(move || {
        loop {
            let mut ready = [rustix::event::PollFd::new(&keeper, rustix::event::PollFlags::IN)];
            let _ = rustix::event::poll(&mut ready, None);
            match keeper.receive() {
                Ok(Some(told)) => drop(told),
                _ => return,
            }
        }
    });
    let sink = Link::new(link)?;
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        runtime.block_on(async {
            let gateway = Gateway::new(Setup {
                policy,
                tier: Tier::Full,
                sink,
                approver: Arc::new(NobodyAnswers),
                who: Arc::new(Nobody),
                inside: Arc::new(Nobody),
                authority,
                upstream: None,
                recorder: None,
                credentials: Credentials::default(),
                decoys: Vec::new(),
            });
            let doors = Doors { proxy: vec![listener], ..Doors::default() };
            gateway.serve(doors, std::future::pending()).await
        })
    });
    Ok(address)
}

struct Nobody;

impl Who for Nobody {
    fn of(&self, _: Client) -> Option<Process> {
        None
    }
}

impl Inside for Nobody {
    fn dial(&self, _: std::num::NonZeroU16) -> io::Result<TcpStream> {
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

fn policy(server: SocketAddr) -> Result<ResolvedPolicy, Failure> {
    let (host, port) = (server.ip(), server.port());
    let text =
        format!("[[network.rule]]\nhost = \"{host}\"\nports = [{port}]\naction = \"inspect\"\n").into_bytes();
    let source = Source { layer: Layer::User, path: None, text, trusted: true };
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
    Ok(redoma_policy::resolve(&[source], &typed, &world)?)
}
