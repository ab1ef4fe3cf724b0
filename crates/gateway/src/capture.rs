//! Connections on their way in: where each was meant to go, and who made it.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use redoma_audit::event::Direction;
use redoma_policy::{Host, Publish};
use rustix::net::sockopt;
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::dns::{self, Resolver, is_synthetic};
use crate::doors::{Parse, Relay};
use crate::proxy::{self, Asked};
use crate::{Client, Doors, Gateway, Reason, Target};

/// Everything that goes on.
pub(crate) struct Open {
    accepting: JoinSet<()>,
    /// Every task that serves a connection holds a receiver.
    serving: watch::Sender<()>,
}

/// What a connection comes in by.
#[derive(Clone)]
enum Door {
    Capture(SocketAddr),
    Proxy,
    Reach(u16),
    Relay(Arc<Parse>, usize),
    Publish(Publish),
}

/// The port of names, served here wherever it is meant to be.
const DNS: u16 = 53;
/// How long whoever connects may take to say what for, where we ask.
const GREETING: Duration = Duration::from_secs(10);
/// How long to wait when there are no descriptors left.
const BREATH: Duration = Duration::from_millis(50);

/// Starts to serve all doors.
pub(crate) fn open(gateway: &Arc<Gateway>, doors: Doors) -> io::Result<Open> {
    let resolver = Arc::new(gateway.resolver());
    let mut open = Open { accepting: JoinSet::new(), serving: watch::channel(()).0 };
    for socket in doors.dns {
        socket.set_nonblocking(true)?;
        let socket = tokio::net::UdpSocket::from_std(socket)?;
        let resolver = Arc::clone(&resolver);
        open.accepting.spawn(async move {
            let _ = dns::serve_udp(socket, resolver).await;
        });
    }
    let mut accept = |listener, door| open.accept(gateway, &resolver, listener, door);
    for listener in doors.capture {
        let own = listener.local_addr()?;
        accept(listener, Door::Capture(own))?;
    }
    for listener in doors.proxy {
        accept(listener, Door::Proxy)?;
    }
    for (port, listener) in doors.reach {
        accept(listener, Door::Reach(port.get()))?;
    }
    for (publish, listener) in doors.publish {
        accept(listener, Door::Publish(publish))?;
    }
    if let Some(Relay { listener, preface, parse }) = doors.relay {
        accept(listener, Door::Relay(parse.into(), preface))?;
    }
    Ok(open)
}

impl Open {
    fn accept(
        &mut self,
        gateway: &Arc<Gateway>,
        resolver: &Arc<Resolver>,
        listener: std::net::TcpListener,
        door: Door,
    ) -> io::Result<()> {
        listener.set_nonblocking(true)?;
        let listener = TcpListener::from_std(listener)?;
        let (gateway, resolver) = (Arc::clone(gateway), Arc::clone(resolver));
        let serving = self.serving.subscribe();
        self.accepting.spawn(async move {
            loop {
                let Ok((stream, peer)) = listener.accept().await else {
                    // Without descriptors: those who wait are served when others leave.
                    tokio::time::sleep(BREATH).await;
                    continue;
                };
                let arrival = Arrival { stream, peer, door: door.clone() };
                let (gateway, resolver) = (Arc::clone(&gateway), Arc::clone(&resolver));
                let serving = serving.clone();
                tokio::spawn(async move {
                    arrival.serve(&gateway, &resolver).await;
                    drop(serving);
                });
            }
        });
        Ok(())
    }

    /// Takes nothing more, and waits for what goes on, as long as there is time.
    pub(crate) async fn close(mut self, patience: Duration) {
        self.accepting.shutdown().await;
        let _ = tokio::time::timeout(patience, self.serving.closed()).await;
    }
}

/// A connection that came in.
struct Arrival {
    stream: TcpStream,
    peer: SocketAddr,
    door: Door,
}

impl Arrival {
    async fn serve(self, gateway: &Arc<Gateway>, resolver: &Resolver) {
        let Self { mut stream, peer, door } = self;
        let _ = stream.set_nodelay(true);
        match door {
            Door::Capture(own) => {
                let Ok(to) = original_destination(&stream, own) else { return };
                let client = Client::Socket { local: peer, remote: to };
                captured(gateway, resolver, stream, to, Some(own), client).await;
            }
            Door::Relay(parse, length) => {
                let mut preface = vec![0; length];
                let read = tokio::time::timeout(GREETING, stream.read_exact(&mut preface)).await;
                let (Ok(Ok(_)), Some((to, thread))) = (read, parse(&preface)) else { return };
                captured(gateway, resolver, stream, to, None, Client::Thread(thread)).await;
            }
            Door::Reach(port) => {
                let Ok(to) = stream.local_addr() else { return };
                let process = gateway.who(Client::Socket { local: peer, remote: to }).await;
                gateway.reach(stream, port, process).await;
            }
            Door::Publish(publish) => gateway.publish(stream, publish).await,
            Door::Proxy => {
                let Ok(to) = stream.local_addr() else { return };
                let process = gateway.who(Client::Socket { local: peer, remote: to }).await;
                let asked = tokio::time::timeout(GREETING, proxy::greet(&mut stream)).await;
                let Ok(Ok(asked)) = asked else { return };
                gateway.out(stream, asked, process).await;
            }
        }
    }
}

async fn captured(
    gateway: &Arc<Gateway>,
    resolver: &Resolver,
    stream: TcpStream,
    to: SocketAddr,
    own: Option<SocketAddr>,
    client: Client,
) {
    if to.port() == DNS {
        let _ = dns::serve_tcp(stream, resolver).await;
        return;
    }
    let process = gateway.who(client).await;
    let host = gateway.names.name_of(to.ip()).map_or_else(|| Host::from(to.ip()), Host::from);
    let target = Target { host, port: to.port() };
    let nobodys = own == Some(to) || (matches!(target.host, Host::Address(_)) && is_synthetic(to.ip()));
    if nobodys {
        let flow = gateway.flows.open(target, Direction::Out, process);
        flow.set_detail("the address is nobody's: it was not given out for a name");
        flow.blocked(Reason::MalformedHost);
        return;
    }
    let asked = Asked { target, already: BytesMut::new(), one_request: false };
    gateway.out(stream, asked, process).await;
}

/// See `SO_ORIGINAL_DST` in `ip(7)`.
fn original_destination(stream: &TcpStream, own: SocketAddr) -> io::Result<SocketAddr> {
    Ok(match own.ip() {
        IpAddr::V4(_) => sockopt::ip_original_dst(stream)?.into(),
        IpAddr::V6(_) => sockopt::ipv6_original_dst(stream)?.into(),
    })
}
