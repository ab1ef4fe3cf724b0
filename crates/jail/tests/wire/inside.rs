//! What runs in the sandbox. It panics where something is not as it should be.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use redoma_sys::probe::{Detour, set_detour};
use redoma_sys::{Errno, nr};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, ipproto, netlink, socket, socket_with,
    sockopt,
};
use rustix::thread::CapabilitySet;

pub(crate) fn run(what: &str) {
    match what.split_once(' ').unwrap_or((what, "")) {
        ("connect", _) => DESTINATIONS.iter().for_each(|to| expect(tell(to), &format!("tcp {to}"))),
        ("talk", to) => expect(tell(to), &format!("tcp {to}")),
        ("loopback", _) => loopback(),
        ("names", _) => names(),
        ("datagrams", _) => datagrams(),
        ("ports", _) => ports(),
        ("options", _) => options(),
        ("same-source", _) => same_source(),
        ("nested", _) => nested(),
        ("alone", _) => assert_eq!(error_of(TcpStream::connect("192.0.2.1:1")), Errno::NETUNREACH),
        ("gone", _) => gone(),
        ("serve", _) => serve(),
        ("none", _) => none(),
        ("inode", _) => inode(),
        ("many", _) => many(),
        _ => panic!("{what}"),
    }
    println!("done");
}

/// Each as the gateway is told of it.
pub(crate) const DESTINATIONS: &[&str] = &[
    "192.0.2.1:443",
    "192.0.2.1:1",
    "192.0.2.1:65535",
    "10.0.0.1:22",
    "169.254.169.254:80",
    "198.18.0.1:5432",
    "8.8.8.8:53",
    "127.0.0.1:53",
    "127.0.0.53:53",
    "126.255.255.255:1",
    "128.0.0.0:1",
    "[2001:db8::1]:443",
    "[2001:db8::1]:53",
    "[fd00::1]:22",
    "[::2]:1",
    "[::1]:53",
];

fn expect(got: impl AsRef<str>, wanted: &str) {
    assert_eq!(got.as_ref(), wanted);
}

/// Connects; what the other side says.
fn tell(to: &str) -> String {
    said(TcpStream::connect(to.parse::<SocketAddr>().unwrap()).unwrap())
}

fn said(mut stream: impl Read) -> String {
    let mut said = String::new();
    stream.read_to_string(&mut said).unwrap();
    said
}

fn error_of<T>(result: std::io::Result<T>) -> Errno {
    Errno::from_io_error(&result.err().unwrap()).unwrap()
}

/// Servers and clients inside find each other on every address of loopback, wherever the server listens.
fn loopback() {
    for (own, to) in [
        ("127.0.0.1", "127.0.0.1"),
        ("127.1.2.3", "127.1.2.3"),
        ("0.0.0.0", "127.0.0.1"),
        ("0.0.0.0", "0.0.0.0"),
        ("[::1]", "[::1]"),
        ("[::]", "[::1]"),
        ("[::]", "[::]"),
        ("[::]", "[::ffff:127.0.0.1]"),
    ] {
        let listener = TcpListener::bind(format!("{own}:0")).unwrap();
        let port = listener.local_addr().unwrap().port();
        let client = TcpStream::connect(format!("{to}:{port}")).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        server.write_all(b"inside").unwrap();
        drop(server);
        assert_eq!(said(client), "inside", "{own} {to}");
        let (server, client) = (UdpSocket::bind(format!("{own}:0")).unwrap(), bound_like(to));
        client.send_to(b"inside", format!("{to}:{}", server.local_addr().unwrap().port())).unwrap();
        assert_eq!(server.recv(&mut [0; 16]).unwrap(), 6);
    }
    assert_eq!(error_of(TcpStream::connect("127.0.0.1:1")), Errno::CONNREFUSED);
    assert_eq!(interfaces(), ["lo"]);
}

fn bound_like(address: &str) -> UdpSocket {
    UdpSocket::bind(if address.starts_with('[') { "[::]:0" } else { "0.0.0.0:0" }).unwrap()
}

fn interfaces() -> Vec<String> {
    let table = std::fs::read_to_string("/proc/net/dev").unwrap();
    table.lines().skip(2).map(|line| line.split(':').next().unwrap().trim().to_owned()).collect()
}

pub(crate) const NAME_SERVERS: &[&str] = &[
    "8.8.8.8:53",
    "192.0.2.1:53",
    "127.0.0.1:53",
    "127.0.0.53:53",
    "[2001:db8::53]:53",
    "[fd00::1]:53",
    "[::1]:53",
];

/// Each with a socket of its own, then all of a family with one, as some resolvers do.
fn names() {
    let sockets = ["0.0.0.0:0", "[::]:0"].map(|own| UdpSocket::bind(own).unwrap());
    for server in NAME_SERVERS {
        ask(&bound_like(server), server);
        ask(&sockets[usize::from(server.starts_with('['))], server);
    }
}

/// The answer comes from where the question went.
fn ask(socket: &UdpSocket, server: &str) {
    let server = address(server);
    socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let question = server.to_string();
    socket.send_to(question.as_bytes(), server).unwrap();
    let mut answer = [0; 64];
    let (length, from) = socket.recv_from(&mut answer).unwrap();
    assert_eq!((&answer[..length], from), (question.as_bytes(), server));
}

fn datagrams() {
    for to in ["8.8.8.8:443", "192.0.2.1:5353", "[2001:db8::1]:443", "127.0.0.1:123"] {
        let socket = bound_like(to);
        socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        socket.connect(to).unwrap();
        let begun = Instant::now();
        socket.send(b"x").unwrap();
        assert_eq!(error_of(socket.recv(&mut [0; 16])), Errno::CONNREFUSED, "{to}");
        assert!(begun.elapsed() < Duration::from_secs(1), "{to} {:?}", begun.elapsed());
    }
    for (kind, protocol) in [
        (SocketType::RAW, ipproto::ICMP),
        (SocketType::DGRAM, ipproto::ICMP),
        (SocketType::STREAM, ipproto::MPTCP),
        (SocketType::STREAM, ipproto::SCTP),
        (SocketType::RAW, ipproto::RAW),
    ] {
        assert_eq!(socket(AddressFamily::INET, kind, Some(protocol)).err(), Some(Errno::PROTONOSUPPORT));
    }
    assert!(socket(AddressFamily::INET, SocketType::RAW, Some(ipproto::TCP)).is_err());
    assert!(socket(AddressFamily::PACKET, SocketType::DGRAM, None).is_err());
}

fn ports() {
    for port in [super::PROXY, super::REACH] {
        for address in [SocketAddr::from((Ipv4Addr::LOCALHOST, port)), (Ipv6Addr::LOCALHOST, port).into()] {
            tell(&address.to_string());
        }
    }
}

/// What could turn a packet elsewhere is refused, or turns it nowhere else.
fn options() {
    // Every address is one's own here, and still the gateway's.
    let server = TcpListener::bind("192.0.2.1:8001").unwrap();
    server.set_nonblocking(true).unwrap();
    expect(tell("192.0.2.1:8001"), "tcp 192.0.2.1:8001");
    assert_eq!(error_of(server.accept()), Errno::AGAIN);

    let by_device = tcp(AddressFamily::INET);
    set_detour(by_device.as_fd(), Detour::Loopback).unwrap();
    connect(&by_device, "192.0.2.2:2").unwrap();
    expect(said(TcpStream::from(by_device)), "tcp 192.0.2.2:2");

    // Data with the first packet, and no connect(2).
    let fast = tcp(AddressFamily::INET);
    let flag = SendFlags::from_bits_retain(nr::MSG_FASTOPEN as u32);
    rustix::net::sendto(&fast, b"x", flag, &address("192.0.2.3:3")).unwrap();
    expect(said(TcpStream::from(fast)), "tcp 192.0.2.3:3");

    // Neither to a server inside nor to the gateway: newer kernels ask for a capability, others drop the packets.
    for over in [[127, 0, 0, 1], [192, 0, 2, 9]] {
        let flags = SocketFlags::NONBLOCK;
        let routed = socket_with(AddressFamily::INET, SocketType::STREAM, flags, None).unwrap();
        match set_detour(routed.as_fd(), Detour::Over(over)) {
            Ok(()) => assert_eq!(connect(&routed, "192.0.2.1:8001"), Err(Errno::INPROGRESS)),
            Err(errno) => assert_eq!(errno, Errno::PERM),
        }
    }
    assert_eq!(error_of(server.accept()), Errno::AGAIN);

    let v6 = tcp(AddressFamily::INET6);
    assert_eq!(set_detour(v6.as_fd(), Detour::Transparent), Err(Errno::PERM));
    assert_eq!(set_detour(v6.as_fd(), Detour::Transparent6), Err(Errno::PERM));
    assert_eq!(set_detour(v6.as_fd(), Detour::Mark), Err(Errno::PERM));
    connect(&v6, "[2001:db8::1]:4").unwrap();
    expect(said(TcpStream::from(v6)), "tcp [2001:db8::1]:4");
    let mapped = tcp(AddressFamily::INET6);
    connect(&mapped, "[::ffff:192.0.2.5]:5").unwrap();
    expect(said(TcpStream::from(mapped)), "tcp 192.0.2.5:5");
    expect(tell("[fe80::1%1]:6"), "tcp [fe80::1]:6");
    for nobody in ["255.255.255.255:1", "224.0.0.1:1", "[ff02::1%1]:1"] {
        assert!(TcpStream::connect(address(nobody)).is_err(), "{nobody}");
    }
}

fn tcp(family: AddressFamily) -> OwnedFd {
    socket(family, SocketType::STREAM, None).unwrap()
}

fn address(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

fn connect(socket: &OwnedFd, to: &str) -> Result<(), Errno> {
    rustix::net::connect(socket, &address(to))
}

/// Of the same address and port, at the same time, to two destinations.
fn same_source() {
    for (family, pair) in [
        (AddressFamily::INET, ["192.0.2.1:1", "192.0.2.1:2"]),
        (AddressFamily::INET6, ["[2001:db8::1]:3", "[2001:db8::2]:3"]),
    ] {
        let own = if family == AddressFamily::INET { "127.0.0.1:40000" } else { "[::1]:40000" };
        let begun = Instant::now();
        let both = pair.map(|to| {
            let socket = tcp(family);
            sockopt::set_socket_reuseaddr(&socket, true).unwrap();
            rustix::net::bind(&socket, &address(own)).unwrap();
            connect(&socket, to).unwrap();
            (TcpStream::from(socket), to)
        });
        for (stream, to) in both {
            expect(said(stream), &format!("tcp {to}"));
        }
        // Packets that were dropped would be sent again after a second.
        assert!(begun.elapsed() < Duration::from_millis(900), "{:?}", begun.elapsed());
    }
}

/// In a user namespace below: with all capabilities, none of them over the network.
fn nested() {
    let capable = rustix::thread::capabilities(None).unwrap().effective;
    assert!(capable.contains(CapabilitySet::NET_ADMIN | CapabilitySet::NET_RAW));
    let netfilter = socket(AddressFamily::NETLINK, SocketType::RAW, Some(netlink::NETFILTER));
    assert_eq!(netfilter.err(), Some(Errno::PROTONOSUPPORT));
    let routes = socket(AddressFamily::NETLINK, SocketType::RAW, None).unwrap();
    assert_eq!(ask_to_take_loopback_down(&routes), Err(Errno::PERM));
    assert_eq!(error_of(UdpSocket::bind("127.0.0.2:53")), Errno::ACCESS);
    let raw = socket(AddressFamily::INET, SocketType::RAW, Some(ipproto::TCP));
    assert_eq!(raw.err(), Some(Errno::PERM));
    let transparent = set_detour(tcp(AddressFamily::INET).as_fd(), Detour::Transparent);
    assert_eq!(transparent, Err(Errno::PERM));
    expect(tell("192.0.2.1:1"), "tcp 192.0.2.1:1");
}

/// `RTM_NEWLINK` for interface 1 with the flag IFF_UP cleared.
fn ask_to_take_loopback_down(routes: &OwnedFd) -> Result<(), Errno> {
    let mut request = Vec::new();
    request.extend(32u32.to_ne_bytes());
    request.extend(nr::RTM_NEWLINK.to_ne_bytes());
    request.extend(((nr::NLM_F_REQUEST | nr::NLM_F_ACK) as u16).to_ne_bytes());
    request.extend([0; 8]);
    for word in [0, 1, 0, nr::IFF_UP as u32] {
        request.extend(u32::to_ne_bytes(word));
    }
    rustix::net::send(routes, &request, SendFlags::empty())?;
    let mut answer = [0; 128];
    rustix::net::recv(routes, &mut answer, RecvFlags::empty())?;
    match i32::from_ne_bytes(answer[16..20].try_into().unwrap()) {
        0 => Ok(()),
        code => Err(Errno::from_raw_os_error(-code)),
    }
}

fn gone() {
    for to in ["192.0.2.1:443", "[2001:db8::1]:443", "127.0.0.1:53"] {
        assert_eq!(error_of(TcpStream::connect(to)), Errno::CONNREFUSED);
    }
    assert_eq!(error_of(TcpStream::connect(("127.0.0.1", super::PROXY))), Errno::CONNREFUSED);
    let names = UdpSocket::bind("0.0.0.0:0").unwrap();
    names.connect("8.8.8.8:53").unwrap();
    names.send(b"x").unwrap();
    assert_eq!(error_of(names.recv(&mut [0; 16])), Errno::CONNREFUSED);
}

pub(crate) const V4_ONLY: u16 = 3000;
pub(crate) const V6_ONLY: u16 = 3001;
/// Takes one connection and leaves the others waiting.
pub(crate) const BUSY: u16 = 3002;

fn serve() {
    let servers = [
        (TcpListener::bind(("127.0.0.1", V4_ONLY)).unwrap(), V4_ONLY),
        (TcpListener::bind(("::1", V6_ONLY)).unwrap(), V6_ONLY),
    ];
    let busy = tcp(AddressFamily::INET);
    rustix::net::bind(&busy, &SocketAddr::from((Ipv4Addr::LOCALHOST, BUSY))).unwrap();
    rustix::net::listen(&busy, 0).unwrap();
    println!("listening");
    for (server, port) in servers {
        let (mut stream, peer) = server.accept().unwrap();
        assert!(peer.ip().is_loopback());
        stream.read_exact(&mut [0]).unwrap();
        writeln!(stream, "from {port}").unwrap();
    }
    let busy = TcpListener::from(busy);
    let (mut first, _) = busy.accept().unwrap();
    // Until the keeper has had enough.
    assert_eq!(first.read(&mut [0]).unwrap(), 0);
}

fn none() {
    assert_eq!(error_of(TcpStream::connect("192.0.2.1:443")), Errno::NETUNREACH);
    assert_eq!(error_of(TcpStream::connect("[2001:db8::1]:443")), Errno::NETUNREACH);
    assert_eq!(error_of(UdpSocket::bind("0.0.0.0:0").unwrap().connect("8.8.8.8:53")), Errno::NETUNREACH);
    assert_eq!(error_of(TcpStream::connect(("127.0.0.1", super::PROXY))), Errno::CONNREFUSED);
}

/// Keeps one connection of each family until the other side ends it.
fn inode() {
    for to in ["192.0.2.1:443", "[2001:db8::1]:443"] {
        let mut stream = TcpStream::connect(to).unwrap();
        println!("{}", rustix::fs::fstat(&stream).unwrap().st_ino);
        stream.read_to_end(&mut Vec::new()).unwrap();
    }
}

pub(crate) const MANY: usize = 3000;

/// To many destinations at once, so that there are more connections than a few ports could be for.
fn many() {
    for network in ["192.0.2", "2001:db8:"] {
        let begun = Instant::now();
        let mut slowest = Duration::ZERO;
        for number in 0..MANY {
            let to = match network {
                "192.0.2" => format!("192.0.2.{}:{}", number % 250 + 1, number + 1),
                _ => format!("[2001:db8::{:x}]:{}", number % 250 + 1, number + 1),
            };
            let begun = Instant::now();
            expect(tell(&to), &format!("tcp {to}"));
            slowest = slowest.max(begun.elapsed());
        }
        println!("{network}: {} connections in {:?}, the slowest took {slowest:?}", MANY, begun.elapsed());
    }
}
