//! Ways out that `--net none` must close: none of them goes through a proxy or asks a resolver.

use std::fs;
use std::io::{self, Read};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr as UnixAddress, UnixDatagram, UnixStream};
use std::path::Path;
use std::time::Duration;

use redoma_sys::probe::{self, HighBits};
use rustix::net::{AddressFamily, Protocol, RawProtocol, SendFlags, SocketType, ipproto, sendto, socket};

use crate::attempt::{Attempt, Outcome, Section};
use crate::stage::{Stage, drain};

const fn way(name: &'static str, what: &'static str, run: fn(&Stage) -> Outcome) -> Attempt {
    Attempt::new(Section::NetworkNone, name, what, run)
}

const ATTEMPTS: &[Attempt] = &[
    way("tcp-host", "connect to a service on the host's loopback", |stage| {
        answered(stage, TcpStream::connect_timeout(&stage.tcp, PATIENCE))
    }),
    way("tcp-mapped", "the same by an IPv4-mapped IPv6 address", |stage| {
        let mapped = match stage.tcp.ip() {
            IpAddr::V4(address) => IpAddr::V6(address.to_ipv6_mapped()),
            address => address,
        };
        answered(stage, TcpStream::connect_timeout(&SocketAddr::new(mapped, stage.tcp.port()), PATIENCE))
    })
    .optional(),
    way("tcp-any-address", "the same by the address 0.0.0.0", |stage| {
        let address = SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), stage.tcp.port());
        answered(stage, TcpStream::connect_timeout(&address, PATIENCE))
    }),
    way("tcp-fast-open", "the same by sendto, never calling connect", |stage| {
        let connected = socket(AddressFamily::INET, SocketType::STREAM, None).and_then(|socket| {
            // MSG_FASTOPEN.
            sendto(&socket, b"", SendFlags::from_bits_retain(0x2000_0000), &stage.tcp)?;
            Ok(TcpStream::from(socket))
        });
        answered(stage, connected)
    })
    .optional(),
    way("mptcp-host", "the same by multipath TCP, another protocol to a filter", |stage| {
        let mptcp = Some(ipproto::MPTCP);
        let connected = socket(AddressFamily::INET, SocketType::STREAM, mptcp).and_then(|socket| {
            rustix::net::connect(&socket, &stage.tcp)?;
            Ok(TcpStream::from(socket))
        });
        answered(stage, connected)
    })
    .optional(),
    way("udp-host", "send a datagram to a service on the host's loopback", |stage| {
        stage.judge_read(ask(stage.udp))
    }),
    way("udp-route", "send a datagram towards the internet", |_| {
        let away = SocketAddr::new(Ipv4Addr::new(198, 51, 100, 1).into(), 9);
        Outcome::of(UdpSocket::bind("0.0.0.0:0").and_then(|socket| socket.connect(away)), "there is a route")
    })
    .optional(),
    way("dns-direct", "send a query to a public resolver", |_| {
        let resolver = SocketAddr::new(Ipv4Addr::new(9, 9, 9, 9).into(), 53);
        // Not sent where it could be: that there is a route is enough.
        Outcome::of(
            UdpSocket::bind("0.0.0.0:0").and_then(|socket| socket.connect(resolver)),
            "there is a route",
        )
    })
    .optional(),
    way("raw-socket", "make packets by hand, ICMP and any other", |_| {
        made(AddressFamily::INET, SocketType::RAW, Some(ipproto::ICMP))
    })
    .root(),
    way("ping-socket", "send an ICMP echo to the host by a socket that needs no privilege", |stage| {
        let sent = socket(AddressFamily::INET, SocketType::DGRAM, Some(ipproto::ICMP)).and_then(|socket| {
            let echo = [8, 0, 0, 0, 0, 0, 0, 1];
            sendto(&socket, &echo, SendFlags::empty(), &SocketAddr::new(stage.host_address.ip(), 0))
        });
        Outcome::of(sent, "the echo was sent")
    })
    .optional(),
    way("packet-socket", "read and write whole frames", |_| {
        made(AddressFamily::PACKET, SocketType::RAW, None)
    })
    .root(),
    way("sctp-socket", "speak SCTP", |_| made(AddressFamily::INET, SocketType::STREAM, Some(ipproto::SCTP)))
        .optional(),
    way("vsock", "speak to the hypervisor", |_| made(AddressFamily::VSOCK, SocketType::STREAM, None))
        .optional(),
    way("alg-socket", "use the kernel's ciphers, a long line of bugs", |_| {
        made(AddressFamily::from_raw(38), SocketType::SEQPACKET, None)
    })
    .optional(),
    way("xdp-socket", "read frames by XDP", |_| made(AddressFamily::from_raw(44), SocketType::RAW, None))
        .root()
        .optional(),
    way("key-socket", "manage IPsec keys", |_| made(AddressFamily::from_raw(15), SocketType::RAW, raw(2)))
        .root()
        .optional(),
    way("bluetooth-socket", "speak Bluetooth", |_| {
        made(AddressFamily::from_raw(31), SocketType::RAW, raw(1))
    })
    .optional(),
    way("tipc-socket", "speak TIPC", |_| made(AddressFamily::from_raw(30), SocketType::STREAM, None))
        .optional(),
    way("netlink-netfilter", "change the firewall", |_| netlink(12)).optional(),
    way("netlink-xfrm", "change IPsec policies", |_| netlink(6)).optional(),
    way("netlink-audit", "speak to the kernel's audit", |_| netlink(9)).optional(),
    way("netlink-connector", "listen to every process of the machine", |_| netlink(11)).optional(),
    way("netlink-uevent", "listen to the machine's devices", |_| netlink(15)).optional(),
    way("host-interfaces", "see the host's network interfaces", |_| {
        let devices = fs::read_to_string("/proc/self/net/dev").unwrap_or_default();
        let names = devices.lines().skip(2).filter_map(|line| Some(line.split_once(':')?.0.trim()));
        match names.filter(|name| *name != "lo").last() {
            Some(name) => Outcome::succeeded(format!("saw {name}")),
            None => Outcome::stopped("nothing but loopback"),
        }
    })
    .full_only()
    .optional(),
    way("host-sockets", "see the host's connections in /proc/net", |stage| {
        let table = fs::read_to_string("/proc/self/net/tcp").unwrap_or_default();
        let port = format!(":{:04X} ", stage.tcp.port());
        if table.contains(&port) {
            Outcome::succeeded("saw its port")
        } else {
            Outcome::stopped("not in sight")
        }
    })
    .full_only(),
    way("unix-abstract", "connect to an abstract socket of the host", |stage| {
        let address = UnixAddress::from_abstract_name(&stage.abstract_socket);
        answered(stage, address.and_then(|address| UnixStream::connect_addr(&address)))
    }),
    way("unix-path", "connect to a socket of the host that nothing grants", |stage| {
        answered(stage, UnixStream::connect(&stage.outside_socket))
    }),
    way("unix-path-granted", "connect to a socket of the host in a granted folder", |stage| {
        answered(stage, UnixStream::connect(&stage.granted_socket))
    }),
    way("unix-path-linked", "give that socket another name and connect to it", |stage| {
        let name = stage.project.join("socket");
        answered(stage, fs::hard_link(&stage.granted_socket, &name).and_then(|()| UnixStream::connect(name)))
    }),
    way("unix-services", "connect to what usually listens on a desktop", |_| services()).optional(),
    way("unix-pair-sendto", "name a socket of the host from a pair that is already connected", |stage| {
        Outcome::of(pair_reaches(stage), "the host's socket took it")
    }),
    way(
        "packet-socket-high-bits",
        "ask for a family with a bit set that a filter compares and the kernel drops",
        |_| Outcome::of(probe::socket_high_bits(HighBits::Packet), "the socket was made"),
    )
    .root(),
    way("alg-socket-high-bits", "the same for the kernel's ciphers", |_| {
        Outcome::of(probe::socket_high_bits(HighBits::Ciphers), "the socket was made")
    })
    .optional(),
];

pub(crate) fn attempts() -> Vec<Attempt> {
    ATTEMPTS.to_vec()
}

/// A service of this machine answers in much less.
const PATIENCE: Duration = Duration::from_secs(2);

/// Where services listen that would carry out a command, hand out a secret or show the screen.
const SERVICES: &[&str] = &[
    "/run/dbus/system_bus_socket",
    "/var/run/docker.sock",
    "/run/containerd/containerd.sock",
    "/run/podman/podman.sock",
    "/run/systemd/private",
    "/run/systemd/journal/stdout",
    "/run/snapd.socket",
    "/run/libvirt/libvirt-sock",
    "/tmp/.X11-unix/X0",
    "/run/nscd/socket",
    "/run/udev/control",
    "/run/cups/cups.sock",
];

/// Variables that name such a socket.
const VARIABLES: &[&str] =
    &["SSH_AUTH_SOCK", "GPG_AGENT_INFO", "TMUX", "VSCODE_IPC_HOOK_CLI", "PULSE_SERVER"];

/// Below `$XDG_RUNTIME_DIR`.
const USER_SERVICES: &[&str] = &[
    "bus",
    "systemd/private",
    "gnupg/S.gpg-agent",
    "wayland-0",
    "pulse/native",
    "pipewire-0",
    "docker.sock",
];

fn raw(number: u32) -> Option<Protocol> {
    RawProtocol::new(number).map(Protocol::from_raw)
}

fn made(family: AddressFamily, kind: SocketType, protocol: Option<Protocol>) -> Outcome {
    Outcome::of(socket(family, kind, protocol), "the socket was made")
}

fn netlink(protocol: u32) -> Outcome {
    made(AddressFamily::NETLINK, SocketType::RAW, raw(protocol))
}

/// Success when the answer is the host's: a connection alone may have ended at something of Redoma's.
fn answered<S: Read, E: Into<io::Error>>(stage: &Stage, connected: Result<S, E>) -> Outcome {
    stage.judge_read(connected.map_err(Into::into).and_then(drain))
}

fn ask(service: SocketAddr) -> io::Result<Vec<u8>> {
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    socket.set_read_timeout(Some(PATIENCE))?;
    // Connected, so that an ICMP refusal ends the wait.
    socket.connect(service)?;
    socket.send(b"hello")?;
    let mut answer = vec![0; 512];
    let length = socket.recv(&mut answer)?;
    answer.truncate(length);
    Ok(answer)
}

fn services() -> Outcome {
    let fixed = SERVICES.iter().map(|path| (*path).to_owned());
    let named = VARIABLES.iter().filter_map(|name| std::env::var(name).ok());
    let runtime = std::env::var("XDG_RUNTIME_DIR").unwrap_or_default();
    let user = USER_SERVICES.iter().map(|name| format!("{runtime}/{name}"));
    let found = fixed.chain(named).chain(user).filter(|path| Path::new(path).exists());
    Outcome::any(found.map(|path| Outcome::of(UnixStream::connect(&path), &format!("reached {path}"))))
}

/// A datagram socket sends to whatever name it is given, connected or not.
fn pair_reaches(stage: &Stage) -> io::Result<()> {
    let (one, _other) = UnixDatagram::pair()?;
    one.send_to_addr(b"hello", &UnixAddress::from_abstract_name(&stage.abstract_datagram)?).map(drop)
}
