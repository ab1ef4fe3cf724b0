//! Sockets in the landlock tier with a network: whatever a command connects to, it is the relay that answers, and it knows
//! where to.
//!
//! A plain program, as `bell.rs`. Called with `inside` it is what runs in the sandbox.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test")]

use std::ffi::OsString;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::num::NonZeroU16;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use redoma_jail::{
    Blueprint, Canary, Ending, Event, Exec, Grant, Identity, Jail, Preface, Privileges, Rights, Root, Tier,
    Token, Wire,
};
use redoma_sys::Errno;
use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType, ipproto, socket, socket_with, sockopt};

/// A folder to write in and one that is not granted, the gateway's listener, a port to publish.
struct Ground {
    root: tempfile::TempDir,
    relay: TcpListener,
    publish: NonZeroU16,
    canary: TcpListener,
}

const TOKEN: [u8; 32] = [0xa5; 32];

impl Ground {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        for folder in ["write", "none"] {
            std::fs::create_dir(root.path().join(folder)).unwrap();
        }
        std::fs::write(root.path().join("none/file"), "content").unwrap();
        let listen = || TcpListener::bind("127.0.0.1:0").unwrap();
        // Free a moment ago; nobody on this machine is given it again so soon.
        let free = listen().local_addr().unwrap().port();
        Self { root, relay: listen(), publish: NonZeroU16::new(free).unwrap(), canary: listen() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().canonicalize().unwrap().join(name)
    }

    fn blueprint(&self) -> Blueprint {
        let grant = |path: PathBuf, rights| Grant { path, rights };
        let system = ["/usr", "/etc", "/bin", "/lib", "/lib64", "/proc"].map(PathBuf::from);
        let read = system.into_iter().chain([std::env::current_exe().unwrap()]).filter(|path| path.exists());
        let write = [PathBuf::from("/dev/null"), self.path("write")];
        Blueprint {
            tier: Tier::Landlock,
            identity: Identity::of_caller(false),
            privileges: Privileges::None,
            hostname: None,
            root: Root::Private,
            layout: Vec::new(),
            access: read
                .map(|path| grant(path, Rights::Read))
                .chain(write.map(|path| grant(path, Rights::Write)))
                .collect(),
            nested_userns: false,
            private_bytes: 1 << 20,
            wire: Some(Wire::OnBehalf {
                relay: self.relay.local_addr().unwrap(),
                token: Token::from(TOKEN),
                publish: vec![self.publish],
            }),
            rlimits: Vec::new(),
            canary: Canary {
                read: self.path("none/file"),
                write: self.path("none"),
                connect: self.canary.local_addr().unwrap().port(),
            },
        }
    }

    fn raise(&self) -> Jail {
        Jail::start(&self.blueprint()).unwrap().ready().unwrap().0
    }

    /// Has this program do `what` inside; what it prints.
    fn inside(&self, jail: &Jail, what: &str) -> std::io::PipeReader {
        let own = std::env::current_exe().unwrap();
        let port = self.publish.to_string();
        let argv = [own.to_str().unwrap(), "inside", what, self.root.path().to_str().unwrap(), &port];
        let exec = Exec {
            argv: argv.iter().map(OsString::from).collect(),
            environment: vec![("PATH".into(), "/usr/bin:/bin".into())],
            folder: self.path("write"),
            terminal: None,
            ..Exec::default()
        };
        let (reader, writer) = std::io::pipe().unwrap();
        let null = File::open("/dev/null").unwrap();
        jail.exec(exec, &[null.as_fd(), writer.as_fd(), writer.as_fd()]).unwrap();
        reader
    }

    /// The whole of it with a gateway: output, and the prefaces that came.
    fn run(&self, what: &str) -> (String, Vec<Option<Preface>>) {
        let jail = self.raise();
        let prefaces = gateway(self.relay.try_clone().unwrap());
        let mut output = String::new();
        self.inside(&jail, what).read_to_string(&mut output).unwrap();
        let Some(Event::Ended { ending, .. }) = jail.event().unwrap() else { panic!("no end") };
        assert_eq!(ending, Ending::Exited(0), "{output}");
        jail.end();
        (output, prefaces.try_iter().collect())
    }
}

/// Takes connections: tells what each began with, and answers one with a good preface by its destination and whatever
/// the client says, line by line.
fn gateway(relay: TcpListener) -> Receiver<Option<Preface>> {
    let (tell, told) = channel();
    std::thread::spawn(move || {
        for stream in relay.incoming() {
            let (stream, tell) = (stream.unwrap(), tell.clone());
            std::thread::spawn(move || serve(stream, &tell));
        }
    });
    told
}

fn serve(mut stream: TcpStream, tell: &std::sync::mpsc::Sender<Option<Preface>>) {
    let mut bytes = [0; Preface::LENGTH];
    if stream.read_exact(&mut bytes).is_err() {
        let _ = tell.send(None);
        return;
    }
    let preface = Preface::parse(&bytes, &Token::from(TOKEN));
    let _ = tell.send(preface);
    let Some(preface) = preface else { return };
    if writeln!(stream, "{}", preface.destination).is_err() {
        return;
    }
    let reader = BufReader::new(stream.try_clone().unwrap());
    for line in reader.lines().map_while(Result::ok) {
        if writeln!(stream, "{line}").is_err() {
            return;
        }
    }
}

// === what runs inside ===

fn inside(what: &str, root: &Path, port: u16) {
    match what {
        "connect" => connect(),
        "refused" => refused(port),
        "publish" => publish(port),
        "full" => full(root),
        "gone" => assert_eq!(connect_to(&tcp(), "192.0.2.1:1"), Err(Errno::CONNREFUSED)),
        "race" => race(),
        "many" => many(),
        other => panic!("{other}"),
    }
    println!("done");
}

/// Says who answered and has one line echoed.
fn talk(mut stream: TcpStream) {
    writeln!(stream, "hello").unwrap();
    let mut lines = BufReader::new(stream).lines();
    println!("{}", lines.next().unwrap().unwrap());
    assert_eq!(lines.next().unwrap().unwrap(), "hello");
}

fn connect() {
    for to in ["192.0.2.1:443", "127.0.0.1:80", "[2001:db8::1]:22", "[::1]:53", "[::ffff:192.0.2.7]:1"] {
        talk(TcpStream::connect(to.parse::<SocketAddr>().unwrap()).unwrap());
    }
    // With a time limit the standard library makes the socket non-blocking and expects the connection to be under way.
    talk(TcpStream::connect_timeout(&"192.0.2.2:5".parse().unwrap(), Duration::from_secs(5)).unwrap());
    let six_only = socket(AddressFamily::INET6, SocketType::STREAM, None).unwrap();
    sockopt::set_ipv6_v6only(&six_only, true).unwrap();
    connect_to(&six_only, "[2001:db8::2]:6").unwrap();
    talk(TcpStream::from(six_only));
    let nonblocking =
        socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::NONBLOCK, Some(ipproto::TCP))
            .unwrap();
    connect_to(&nonblocking, "192.0.2.3:7").unwrap();
    assert!(rustix::fs::fcntl_getfl(&nonblocking).unwrap().contains(rustix::fs::OFlags::NONBLOCK));
    rustix::io::ioctl_fionbio(&nonblocking, false).unwrap();
    talk(TcpStream::from(nonblocking));
    let small = tcp();
    sockopt::set_socket_send_buffer_size(&small, 1).unwrap();
    connect_to(&small, "192.0.2.4:8").unwrap();
    talk(TcpStream::from(small));
    println!("{}", std::process::id());
}

fn tcp() -> OwnedFd {
    socket(AddressFamily::INET, SocketType::STREAM, None).unwrap()
}

fn connect_to(socket: &OwnedFd, to: &str) -> Result<(), Errno> {
    rustix::net::connect(socket, &to.parse::<SocketAddr>().unwrap())
}

fn refused(publish: u16) {
    let make = |family, kind, protocol| socket(family, kind, protocol).map(drop);
    assert_eq!(make(AddressFamily::INET, SocketType::DGRAM, None), Err(Errno::ACCESS));
    assert_eq!(make(AddressFamily::UNIX, SocketType::STREAM, None), Err(Errno::ACCESS));
    assert_eq!(make(AddressFamily::NETLINK, SocketType::RAW, None), Err(Errno::ACCESS));
    assert_eq!(
        make(AddressFamily::INET, SocketType::STREAM, Some(ipproto::MPTCP)),
        Err(Errno::PROTONOSUPPORT)
    );
    assert!(UdpSocket::bind("127.0.0.1:0").is_err());

    let connected = tcp();
    connect_to(&connected, "192.0.2.1:1").unwrap();
    assert_eq!(connect_to(&connected, "192.0.2.2:2"), Err(Errno::ISCONN));
    // Unconnected again, it could be connected once more.
    assert_eq!(rustix::net::connect_unspec(&connected), Err(Errno::ACCESS));
    talk(TcpStream::from(connected));

    let fresh = tcp();
    let address = "127.0.0.1:1".parse::<SocketAddr>().unwrap();
    let fast = SendFlags::from_bits_retain(0x2000_0000);
    assert_eq!(rustix::net::sendto(&fresh, b"x", fast, &address), Err(Errno::NOTSUP));
    assert_eq!(rustix::net::sendto(&fresh, b"x", SendFlags::NOSIGNAL, &address), Err(Errno::ACCESS));
    assert_eq!(rustix::net::send(&fresh, b"x", SendFlags::NOSIGNAL), Err(Errno::PIPE));
    assert_eq!(connect_to(&fresh, "[::1]:1"), Err(Errno::AFNOSUPPORT));
    let bind = |to: &str| rustix::net::bind(&fresh, &to.parse::<SocketAddr>().unwrap());
    assert_eq!(bind("127.0.0.1:0"), Err(Errno::ACCESS));
    assert_eq!(bind("127.0.0.1:1"), Err(Errno::ACCESS));
    assert_eq!(bind(&format!("127.0.0.2:{publish}")), Err(Errno::ACCESS));
    // Unbound it would listen on every address.
    assert_eq!(rustix::net::listen(&fresh, 1), Err(Errno::ACCESS));

    let (pair, _other) = UnixStream::pair().unwrap();
    assert_eq!(rustix::net::connect(&pair, &address), Err(Errno::ACCESS));
    let (pipe, _writer) = std::io::pipe().unwrap();
    assert_eq!(rustix::net::connect(&pipe, &address), Err(Errno::NOTSOCK));
    assert_eq!(rustix::net::connect(rustix::stdio::stdin(), &address), Err(Errno::NOTSOCK));
}

fn publish(port: u16) {
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)).unwrap();
    assert_eq!(listener.local_addr().unwrap(), SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    println!("listening");
    let (mut stream, _) = listener.accept().unwrap();
    writeln!(stream, "from inside").unwrap();
    // What was accepted is connected for good.
    assert_eq!(rustix::net::connect_unspec(&stream), Err(Errno::ACCESS));
}

/// Nobody takes connections: they fail in time, whether the socket blocks or not, and init has time for other calls.
fn full(root: &Path) {
    let file = root.join("write/file");
    std::fs::write(&file, "").unwrap();
    let mut failed = 0;
    let mut held = Vec::new();
    while failed < 4 {
        let flags = if failed % 2 == 0 { SocketFlags::NONBLOCK } else { SocketFlags::empty() };
        let socket = socket_with(AddressFamily::INET, SocketType::STREAM, flags, None).unwrap();
        let begun = Instant::now();
        match connect_to(&socket, "192.0.2.1:1") {
            Ok(()) => held.push(socket),
            Err(Errno::TIMEDOUT) => failed += 1,
            Err(other) => panic!("{other:?}"),
        }
        assert!(begun.elapsed() < Duration::from_secs(2), "init was held up");
        assert!(held.len() < 1000, "the relay takes everything");
        rustix::fs::chmod(&file, rustix::fs::Mode::from_raw_mode(0o600)).unwrap();
    }
}

/// Other threads write, toggle and replace the socket while it is being connected.
fn race() {
    const TIMES: usize = 400;
    let mut good = 0;
    for _ in 0..TIMES {
        let socket = tcp();
        let done = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            let disturb = |disturb: fn(&OwnedFd)| {
                let (socket, done) = (&socket, &done);
                scope.spawn(move || {
                    while !done.load(std::sync::atomic::Ordering::Relaxed) {
                        disturb(socket);
                    }
                })
            };
            disturb(|socket| {
                let _ = rustix::net::send(socket, FORGED, SendFlags::NOSIGNAL | SendFlags::DONTWAIT);
            });
            disturb(|socket| {
                let _ = rustix::io::ioctl_fionbio(socket, true);
                let _ = rustix::io::ioctl_fionbio(socket, false);
            });
            good += usize::from(connect_to(&socket, "192.0.2.9:9").is_ok());
            done.store(true, std::sync::atomic::Ordering::Relaxed);
        });
    }
    println!("{good}");
}

/// Longer than a preface, so that it is taken for a whole one wherever it comes first.
const FORGED: &[u8] = &[0x5a; 100];

fn many() {
    const TIMES: u32 = 2000;
    let begun = Instant::now();
    for _ in 0..TIMES {
        // The relay answers once it has told of it.
        let mut answer = String::new();
        BufReader::new(TcpStream::connect("192.0.2.1:443").unwrap()).read_line(&mut answer).unwrap();
    }
    println!("{} connections a second", f64::from(TIMES) / begun.elapsed().as_secs_f64());
}

// === tests ===

fn every_connection_comes_to_the_relay_with_its_destination() {
    let (output, prefaces) = Ground::new().run("connect");
    let expected = [
        "192.0.2.1:443",
        "127.0.0.1:80",
        "[2001:db8::1]:22",
        "[::1]:53",
        "192.0.2.7:1",
        "192.0.2.2:5",
        "[2001:db8::2]:6",
        "192.0.2.3:7",
        "192.0.2.4:8",
    ];
    let lines: Vec<_> = output.lines().collect();
    assert_eq!(lines[..expected.len()], expected, "{output}");
    let pid: u32 = lines[expected.len()].parse().unwrap();
    assert_eq!(prefaces.len(), expected.len());
    assert!(prefaces.iter().all(|preface| preface.is_some_and(|preface| preface.pid == pid)), "{prefaces:?}");
}

fn no_other_socket_and_no_other_way_to_connect() {
    let (output, prefaces) = Ground::new().run("refused");
    assert_eq!(output, "192.0.2.1:1\ndone\n");
    assert_eq!(prefaces.len(), 1, "{prefaces:?}");
}

fn a_published_port_is_reached_from_this_machine() {
    let ground = Ground::new();
    let jail = ground.raise();
    let mut output = BufReader::new(ground.inside(&jail, "publish")).lines();
    assert_eq!(output.next().unwrap().unwrap(), "listening");
    let mut answer = String::new();
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, ground.publish.get())).unwrap();
    stream.read_to_string(&mut answer).unwrap();
    assert_eq!(answer, "from inside\n");
    assert_eq!(output.next().unwrap().unwrap(), "done");
}

fn a_gateway_that_takes_nothing_holds_nobody_up() {
    let ground = Ground::new();
    rustix::net::listen(&ground.relay, 4).unwrap();
    let jail = ground.raise();
    let mut output = String::new();
    ground.inside(&jail, "full").read_to_string(&mut output).unwrap();
    assert_eq!(output, "done\n");
    let begun = Instant::now();
    jail.end();
    assert!(begun.elapsed() < Duration::from_secs(2));
}

fn without_a_gateway_there_is_no_connection() {
    let ground = Ground::new();
    let jail = ground.raise();
    rustix::net::shutdown(&ground.relay, rustix::net::Shutdown::Both).unwrap();
    let mut output = String::new();
    ground.inside(&jail, "gone").read_to_string(&mut output).unwrap();
    assert_eq!(output, "done\n");
}

fn what_is_written_before_the_preface_spoils_the_connection_only() {
    let (output, prefaces) = Ground::new().run("race");
    let (good, _) = output.split_once('\n').unwrap();
    let seen = prefaces.iter().flatten().inspect(|preface| {
        assert_eq!(preface.destination, "192.0.2.9:9".parse().unwrap());
    });
    println!("{good} answered as connected, {} with a preface of {}", seen.count(), prefaces.len());
    assert!(good.parse::<usize>().unwrap() > 0, "{output}");
}

fn connections_are_made_quickly() {
    let (output, prefaces) = Ground::new().run("many");
    print!("{output}");
    assert_eq!(prefaces.iter().flatten().count(), 2000);
}

const TESTS: &[(&str, fn())] = &[
    (
        "every_connection_comes_to_the_relay_with_its_destination",
        every_connection_comes_to_the_relay_with_its_destination,
    ),
    ("no_other_socket_and_no_other_way_to_connect", no_other_socket_and_no_other_way_to_connect),
    ("a_published_port_is_reached_from_this_machine", a_published_port_is_reached_from_this_machine),
    ("a_gateway_that_takes_nothing_holds_nobody_up", a_gateway_that_takes_nothing_holds_nobody_up),
    ("without_a_gateway_there_is_no_connection", without_a_gateway_there_is_no_connection),
    (
        "what_is_written_before_the_preface_spoils_the_connection_only",
        what_is_written_before_the_preface_spoils_the_connection_only,
    ),
    ("connections_are_made_quickly", connections_are_made_quickly),
];

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let has = |word: &str| arguments.iter().any(|argument| argument == word);
    match arguments.as_slice() {
        [word, what, root, port] if word == "inside" => {
            return inside(what, Path::new(root), port.parse().unwrap());
        }
        _ if has("--list") && has("--ignored") => return,
        _ => {}
    }
    let named = arguments.iter().filter(|argument| !argument.starts_with('-')).collect::<Vec<_>>();
    for (name, test) in TESTS {
        match has("--list") {
            true => println!("{name}: test"),
            // Each in a process of its own, for the gateway's threads of one are in the way of the next.
            false if named.is_empty() => run_alone(name),
            false if named.iter().any(|wanted| wanted.as_str() == *name) => {
                println!("{name}");
                test();
            }
            false => {}
        }
    }
}

fn run_alone(name: &str) {
    let status = std::process::Command::new(std::env::current_exe().unwrap()).arg(name).status().unwrap();
    assert!(status.success(), "{name}: {status}");
}
