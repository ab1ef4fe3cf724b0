//! A gateway that lets nothing through: it tells each client what it was asked for.

use std::io::{Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use redoma_jail::Wires;
use redoma_sys::Errno;
use rustix::event::{PollFd, PollFlags};
use rustix::net::{RecvFlags, SendFlags, sockopt};

/// What came, in the order in which it did.
pub(crate) struct Gateway(Receiver<String>);

impl Gateway {
    pub(crate) fn serve(wires: &Wires) -> Self {
        let (tell, told) = channel();
        for listener in &wires.capture {
            let own = address(listener);
            take(listener, &tell, move |stream| format!("tcp {}", destination(stream, own)));
        }
        for listener in &wires.proxy {
            take(listener, &tell, |_| "proxy".to_owned());
        }
        for (port, listener) in &wires.reach {
            let name = format!("reach {port}");
            take(listener, &tell, move |_| name.clone());
        }
        for socket in &wires.dns {
            echo(socket, &tell);
        }
        Self(told)
    }

    /// All there is by now.
    pub(crate) fn seen(&self) -> Vec<String> {
        self.0.try_iter().collect()
    }
}

/// Tells before it answers, so that whoever was answered has been told of.
fn take(listener: &OwnedFd, tell: &Sender<String>, name: impl Fn(&TcpStream) -> String + Send + 'static) {
    let (listener, tell) = (TcpListener::from(listener.try_clone().unwrap()), tell.clone());
    thread::spawn(move || {
        loop {
            let stream = accept(&listener);
            let name = name(&stream);
            let _ = tell.send(name.clone());
            thread::spawn(move || answer(stream, &name));
        }
    });
}

/// Reads to the end: a connection that is closed with something unread is reset.
fn answer(mut stream: TcpStream, name: &str) {
    let _ = stream.write_all(name.as_bytes());
    let _ = stream.shutdown(Shutdown::Write);
    let _ = stream.read_to_end(&mut Vec::new());
}

fn accept(listener: &TcpListener) -> TcpStream {
    loop {
        match listener.accept() {
            Ok((stream, _)) => return stream,
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => await_input(listener),
            Err(error) => panic!("{error}"),
        }
    }
}

fn echo(socket: &OwnedFd, tell: &Sender<String>) {
    let (socket, tell) = (UdpSocket::from(socket.try_clone().unwrap()), tell.clone());
    thread::spawn(move || {
        loop {
            let mut question = [0; 512];
            match socket.recv_from(&mut question) {
                Ok((length, from)) => {
                    let _ = tell.send("udp".to_owned());
                    socket.send_to(&question[..length], from).unwrap();
                }
                Err(_) => await_input(&socket),
            }
        }
    });
}

fn await_input(socket: &impl AsFd) {
    rustix::event::poll(&mut [PollFd::new(socket, PollFlags::IN)], None).unwrap();
}

pub(crate) fn address(socket: &OwnedFd) -> SocketAddr {
    rustix::net::getsockname(socket).unwrap().try_into().unwrap()
}

fn destination(stream: &TcpStream, listener: SocketAddr) -> SocketAddr {
    match listener.ip() {
        IpAddr::V4(_) => sockopt::ip_original_dst(stream).unwrap().into(),
        IpAddr::V6(_) => sockopt::ipv6_original_dst(stream).unwrap().into(),
    }
}

/// Waits for one connection: itself, the client's address, where it was to go.
pub(crate) fn accept_with_destination(listener: &OwnedFd) -> (TcpStream, SocketAddr, SocketAddr) {
    let stream = accept(&TcpListener::from(listener.try_clone().unwrap()));
    let (peer, destination) = (stream.peer_addr().unwrap(), destination(&stream, address(listener)));
    (stream, peer, destination)
}

/// The inode of the socket that is connected from `local` to `remote`, by one exact `SOCK_DIAG_BY_FAMILY` request.
/// See `sock_diag(7)`.
pub(crate) fn inode(diag: &OwnedFd, local: SocketAddr, remote: SocketAddr) -> Result<u32, Errno> {
    const BY_FAMILY: u16 = 20;
    const ERROR: u16 = 2;
    let (family, local_ip, remote_ip) = match (local.ip(), remote.ip()) {
        (IpAddr::V4(local), IpAddr::V4(remote)) => (2, local.octets().to_vec(), remote.octets().to_vec()),
        (IpAddr::V6(local), IpAddr::V6(remote)) => (10, local.octets().to_vec(), remote.octets().to_vec()),
        _ => panic!("{local} {remote}"),
    };
    let pad = |ip: Vec<u8>| ip.into_iter().chain([0; 16]).take(16).collect::<Vec<_>>();
    let mut request = Vec::new();
    // nlmsghdr: length, type, flags, sequence, port.
    request.extend(72u32.to_ne_bytes());
    request.extend(BY_FAMILY.to_ne_bytes());
    request.extend(1u16.to_ne_bytes());
    request.extend([0; 8]);
    // inet_diag_req_v2: family, protocol, no extensions, every state, then the connection, no cookie.
    request.extend([family, 6, 0, 0]);
    request.extend(u32::MAX.to_ne_bytes());
    request.extend(local.port().to_be_bytes());
    request.extend(remote.port().to_be_bytes());
    request.extend(pad(local_ip));
    request.extend(pad(remote_ip));
    request.extend([0; 4]);
    request.extend([0xff; 8]);
    assert_eq!(request.len(), 72);
    rustix::net::send(diag, &request, SendFlags::empty()).unwrap();
    let mut answer = [0; 512];
    await_input(diag);
    let (length, _) = rustix::net::recv(diag, &mut answer, RecvFlags::empty()).unwrap();
    let word = |at: usize| u32::from_ne_bytes(answer[..length][at..at + 4].try_into().unwrap());
    match u16::from_ne_bytes([answer[4], answer[5]]) {
        ERROR => Err(Errno::from_raw_os_error(-(word(16) as i32))),
        // inet_diag_msg: 4 bytes, a connection of 48, then expiry, two queues, user and inode.
        _ => Ok(word(16 + 4 + 48 + 16)),
    }
}
