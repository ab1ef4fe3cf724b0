//! A gateway that lets nothing through: it tells each client what it was asked for.

use std::io::{Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use redoma_jail::Wires;
use rustix::event::{PollFd, PollFlags};
use rustix::net::sockopt;

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
