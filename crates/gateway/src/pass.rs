//! The life of one flow: decided, seen, and then refused, let through unseen, or looked into.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::num::NonZeroU16;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::BytesMut;
use redoma_audit::event::{Answer, Direction, Process};
use redoma_policy::{Action, Connection, Effect, Host, HostName, NetworkRule, Pinned, Protocol, Publish};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::dial::{DialError, Dialled};
use crate::http::{self, Scope, Version};
use crate::peek::{self, First};
use crate::proxy::Asked;
use crate::refuse::{self, Refusal};
use crate::stream::ClientStream;
use crate::tls::{self, AcceptError, ClientHello, ServerName};
use crate::{Client, Flow, Gateway, Reason, Target, opaque, tunnel};

/// How long a client that is refused has to say what it speaks, so that it can be told.
const LAST_WORD: Duration = Duration::from_secs(1);

/// What may happen to a connection.
#[derive(Clone, Copy, Debug)]
enum Permit {
    /// It is looked into.
    Inspect { reason: Reason, pinned: Pinned },
    /// It passes unseen.
    Opaque(Reason),
}

/// What is looked for in a client's first bytes.
#[derive(Clone, Copy)]
enum Look {
    ForAll,
    /// Where everything passes unseen but TLS for another host.
    ForTls,
}

impl Look {
    async fn at(self, client: &TcpStream, said: &mut BytesMut) -> io::Result<First> {
        match self {
            Self::ForAll => peek::first(client, said).await,
            Self::ForTls => peek::tls(client, said).await,
        }
    }
}

/// A flow on its way.
struct Passage<'g> {
    gateway: &'g Arc<Gateway>,
    flow: Arc<Flow>,
    connection: Connection<'g>,
    client: TcpStream,
    /// What the client said already.
    said: BytesMut,
    one_request: bool,
}

impl Gateway {
    /// Who a client is, as long as it can be told.
    pub(crate) async fn who(self: &Arc<Self>, client: Client) -> Option<Process> {
        let gateway = Arc::clone(self);
        tokio::task::spawn_blocking(move || gateway.who.of(client)).await.ok().flatten()
    }

    /// A connection from inside to the network.
    pub(crate) async fn out(self: &Arc<Self>, client: TcpStream, asked: Asked, process: Option<Process>) {
        let Asked { target, already: said, one_request } = asked;
        // Where loopback is the machine's own, this is how its ports are reached.
        let direction = if target.host.is_loopback() { Direction::Reach } else { Direction::Out };
        let flow = self.flows.open(target, direction, process);
        if let Host::Name(name) = &flow.target().host
            && self.inside.is_peer(name)
        {
            return self.to_peer(client, &said, &flow, name).await;
        }
        let (gateway, passing) = (Arc::clone(self), Arc::clone(&flow));
        let task = tokio::spawn(async move {
            let target = passing.target();
            let connection = gateway.policy.connection(&target.host, target.port, gateway.tier);
            let gateway = &gateway;
            Passage { gateway, flow: Arc::clone(&passing), connection, client, said, one_request }
                .pass()
                .await;
        });
        // Whatever was decided: what went wrong ended it.
        if task.await.is_err() {
            flow.blocked(Reason::Internal);
        }
    }

    /// A connection to another sandbox, which is looked after where it runs.
    async fn to_peer(self: &Arc<Self>, client: TcpStream, said: &[u8], flow: &Flow, name: &HostName) {
        flow.set_rule(Some(crate::gateway::PEER), None);
        let dialled = async {
            let (gateway, name) = (Arc::clone(self), name.clone());
            let port = NonZeroU16::new(flow.target().port).ok_or(io::ErrorKind::InvalidInput)?;
            let server = tokio::task::spawn_blocking(move || gateway.inside.dial_peer(&name, port)).await??;
            server.set_nonblocking(true)?;
            let mut server = TcpStream::from_std(server)?;
            server.write_all(said).await?;
            io::Result::Ok(server)
        };
        match dialled.await {
            Ok(server) => self.join(&client, &server, flow).await,
            Err(error) => {
                flow.set_detail(&error.to_string());
                flow.blocked(Reason::UpstreamFailed);
                opaque::reset(&client);
            }
        }
    }

    /// A connection from inside to a port of this machine, which the policy named when the listener was made.
    pub(crate) async fn reach(&self, client: TcpStream, port: u16, process: Option<Process>) {
        let target = Target { host: Host::localhost(), port };
        let flow = self.flows.open(target, Direction::Reach, process);
        match dial_loopback(port).await {
            Ok(server) => self.join(&client, &server, &flow).await,
            Err(error) => {
                flow.set_detail(&format!("nobody answers on port {port} of this machine: {error}"));
                flow.blocked(Reason::UpstreamFailed);
                opaque::reset(&client);
            }
        }
    }

    /// A connection from this machine to a port inside.
    pub(crate) async fn publish(self: &Arc<Self>, client: TcpStream, publish: Publish) {
        let target = Target { host: Host::localhost(), port: publish.inside.get() };
        let flow = self.flows.open(target, Direction::Publish, None);
        match self.dial_inside(publish.inside).await {
            Ok(server) => self.join(&client, &server, &flow).await,
            Err(error) => {
                flow.set_detail(&format!("nobody answers on port {} inside: {error}", publish.inside));
                flow.blocked(Reason::UpstreamFailed);
                opaque::reset(&client);
            }
        }
    }

    async fn join(&self, client: &TcpStream, server: &TcpStream, flow: &Flow) {
        flow.opaque(Reason::Policy);
        opaque::relay(client, server, flow, &self.pipes, &|_| true).await;
    }

    /// To this machine's loopback where a rule says so, otherwise to the sandbox's.
    pub(crate) async fn dial_near(self: &Arc<Self>, target: &Target) -> Result<Dialled, DialError> {
        let reached = self.policy.network.local.reach.iter().any(|reach| reach.port.get() == target.port);
        let port = NonZeroU16::new(target.port).filter(|_| !reached);
        let stream = match port {
            Some(port) => self.dial_inside(port).await,
            None => dial_loopback(target.port).await,
        };
        let host = target.host.to_string();
        let stream = stream.map_err(|source| DialError::Connect { host, source })?;
        Ok(Dialled { stream, address: Ipv4Addr::LOCALHOST.into() })
    }

    async fn dial_inside(self: &Arc<Self>, port: NonZeroU16) -> io::Result<TcpStream> {
        let gateway = Arc::clone(self);
        let stream = tokio::task::spawn_blocking(move || gateway.inside.dial(port)).await??;
        stream.set_nonblocking(true)?;
        TcpStream::from_std(stream)
    }
}

impl Passage<'_> {
    async fn pass(self) {
        let verdict = &self.connection.verdict;
        let rule = verdict.rule.as_ref().map(ToString::to_string);
        let change = verdict.change.as_ref().map(ToString::to_string);
        self.flow.set_rule(rule.as_deref(), change.as_deref());
        match self.permit().await {
            Ok(Permit::Opaque(reason)) => self.pass_unseen(reason).await,
            Ok(Permit::Inspect { reason, pinned }) => self.look_into(reason, pinned).await,
            Err(reason) => {
                let (because, change) = match reason {
                    Reason::ApprovalDenied | Reason::ApprovalTimeout => {
                        (reason.in_words().to_owned(), Some(format!("redoma allow {}", self.flow.target())))
                    }
                    _ => (self.connection.verdict.because.clone(), change),
                };
                self.flow.set_rule(rule.as_deref(), change.as_deref());
                self.refuse(Refusal::new(reason, because).unless(change)).await;
            }
        }
    }

    /// What the policy says, and the person whom it may ask.
    async fn permit(&self) -> Result<Permit, Reason> {
        let target = self.flow.target();
        let rule = self.connection.rule;
        match self.connection.verdict.effect {
            Effect::Deny if rule.is_some() => Err(Reason::Policy),
            Effect::Deny if is_near(&target.host) => Err(Reason::PrivateAddress),
            Effect::Deny => Err(Reason::NotListed),
            Effect::Ask => match self.gateway.approvals.answer(target, self.flow.process()).await {
                Answer::Once | Answer::Session | Answer::Always => {
                    Ok(Permit::Inspect { reason: Reason::Approved, pinned: Pinned::Opaque })
                }
                Answer::Deny => Err(Reason::ApprovalDenied),
                Answer::Expired => Err(Reason::ApprovalTimeout),
            },
            Effect::Allow if target.host.is_loopback() || !self.connection.inspected() => {
                Ok(Permit::Opaque(Reason::Policy))
            }
            Effect::Allow => Ok(match rule {
                Some(rule) => Permit::Inspect { reason: Reason::Policy, pinned: rule.pinned },
                None => Permit::Inspect { reason: Reason::DefaultAllow, pinned: Pinned::Opaque },
            }),
        }
    }

    /// Nothing is looked at but the name in a TLS client's first message, which must be the one that was decided on.
    async fn pass_unseen(mut self, reason: Reason) {
        let gateway = Arc::clone(self.gateway);
        if let Some(rule) = self.connection.rule
            && let Err(refusal) = gateway.budgets.count_one(rule)
        {
            return self.refuse(refusal).await;
        }
        let (first, dialled) = self.meet(Look::ForTls).await;
        let server = match dialled {
            Ok(dialled) => dialled.stream,
            Err(error) => return self.fail(&error).await,
        };
        match first {
            First::Tls(hello) if !hello.means(&self.flow.target().host) => {
                return self.refuse(sni_mismatch(&hello)).await;
            }
            First::Tls(hello) if hello.encrypted => {
                return self
                    .refuse(Refusal::new(Reason::EncryptedHello, "the server's name is encrypted"))
                    .await;
            }
            _ => {}
        }
        if let Err(refusal) = self.fits(&first) {
            return self.refuse(refusal).await;
        }
        self.flow.set_protocol(first.name());
        self.relay(server, reason).await;
    }

    /// What is TLS or HTTP is looked into; what is neither can't be.
    async fn look_into(mut self, reason: Reason, pinned: Pinned) {
        let target = self.flow.target().clone();
        if pinned == Pinned::Opaque && self.gateway.pinned.contains(&target, self.program()) {
            return self.pass_unseen(Reason::Pinned).await;
        }
        let (first, dialled) = self.meet(Look::ForAll).await;
        let server = match dialled {
            Ok(dialled) => dialled.stream,
            Err(error) => return self.fail(&error).await,
        };
        if let Err(refusal) = self.fits(&first) {
            return self.refuse(refusal).await;
        }
        self.flow.set_protocol(first.name());
        match first {
            First::Tls(hello) if !hello.means(&target.host) => self.refuse(sni_mismatch(&hello)).await,
            First::Tls(hello) => self.open_tls(&hello, server, reason, pinned).await,
            First::Http1 => self.bridge(server, Version::One, reason).await,
            First::Http2 => self.bridge(server, Version::Two, reason).await,
            First::Malformed => {
                self.refuse(Refusal::new(Reason::Malformed, "it begins like HTTP or TLS and is neither"))
                    .await;
            }
            First::Other | First::Nothing | First::Server => self.relay(server, Reason::NotTls).await,
        }
    }

    /// Whether the rule takes such a connection at all.
    fn fits(&self, first: &First) -> Result<(), Refusal> {
        let Some(rule) = self.connection.rule else { return Ok(()) };
        let is_tls = matches!(first, First::Tls(_));
        let is_http = matches!(first, First::Http1 | First::Http2);
        let wanted = match rule.protocol {
            Protocol::Tls if !is_tls => "TLS",
            _ if is_for_http(rule) && !is_tls && !is_http => "HTTP",
            _ => return Ok(()),
        };
        Err(Refusal::new(
            Reason::NotTls,
            format!("the rule is for {wanted}, and this is something else ({})", rule.origin),
        ))
    }

    /// Dials while the client begins to speak; or the server does, as in SSH.
    async fn meet(&mut self, look: Look) -> (First, Result<Dialled, DialError>) {
        let target = self.flow.target();
        let permit = |address: IpAddr| {
            let permitted = self.gateway.policy.may_resolve_to(&self.connection, address);
            permitted.map_err(|problem| problem.to_string())
        };
        let mut dial = std::pin::pin!(self.gateway.dial(target, &permit));
        let mut dialled = None;
        let mut said = std::mem::take(&mut self.said);
        let first = loop {
            let server =
                dialled.as_ref().and_then(|dialled: &Result<Dialled, DialError>| dialled.as_ref().ok());
            let speaks = async {
                match server {
                    Some(dialled) => drop(dialled.stream.readable().await),
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                // Who speaks first is clear when only one has; of both, the client's first bytes say more.
                biased;
                first = look.at(&self.client, &mut said) => break first.unwrap_or(First::Nothing),
                done = &mut dial, if dialled.is_none() => {
                    let failed = done.is_err();
                    dialled = Some(done);
                    if failed {
                        let first = tokio::time::timeout(LAST_WORD, look.at(&self.client, &mut said)).await;
                        break first.ok().and_then(Result::ok).unwrap_or(First::Nothing);
                    }
                }
                () = speaks => break First::Server,
            }
        };
        let dialled = match dialled {
            Some(dialled) => dialled,
            None => dial.await,
        };
        self.said = said;
        if let Ok(dialled) = &dialled {
            self.flow.set_address(dialled.address);
        }
        (first, dialled)
    }

    /// Bytes as they come, both ways.
    async fn relay(self, mut server: TcpStream, reason: Reason) {
        self.flow.opaque(reason);
        let sent = self.connection.rule.and_then(|rule| {
            rule.max_upload_session.map(|limit| (self.gateway.budgets.sent_by(rule), limit.0))
        });
        let may_send = |bytes: u64| match &sent {
            Some((sent, limit)) => sent.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes) <= *limit,
            None => true,
        };
        if !may_send(self.said.len() as u64) {
            self.flow.blocked(Reason::Budget);
            return opaque::reset(&self.client);
        }
        if server.write_all(&self.said).await.is_ok() {
            self.flow.sent(&self.said);
            opaque::relay(&self.client, &server, &self.flow, &self.gateway.pipes, &may_send).await;
        }
    }

    /// Plain HTTP.
    async fn bridge(self, server: TcpStream, version: Version, reason: Reason) {
        self.flow.inspected(reason);
        let mut scope = Scope::new(Arc::clone(self.gateway), Arc::clone(&self.flow), version, false);
        scope.one_request = self.one_request;
        http::bridge(ClientStream::new(self.client, self.said.freeze(), self.flow), server, scope).await;
    }

    /// TLS: with the server first, so that the client hears of what the server agreed to.
    async fn open_tls(mut self, hello: &ClientHello, server: TcpStream, reason: Reason, pinned: Pinned) {
        let target = self.flow.target().clone();
        let connected = self.gateway.upstream.connect(server, &target.host, &hello.protocols()).await;
        let server = match connected {
            Ok(server) => server,
            Err(error) => {
                return self.refuse_tls(hello, Refusal::new(Reason::UpstreamFailed, error.to_string())).await;
            }
        };
        let protocol = server.get_ref().1.alpn_protocol().map(<[u8]>::to_vec);
        let client =
            ClientStream::new(self.client, std::mem::take(&mut self.said).freeze(), Arc::clone(&self.flow));
        let accepted = self.gateway.inspector.accept(client, &target.host, protocol.as_deref()).await;
        let (client, mut details) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => return refused_by_client(self.gateway, &self.flow, &error, pinned),
        };
        tls::add_details(&server, &mut details);
        self.flow.set_tls(details);
        self.flow.inspected(reason);
        let http_only = self.connection.rule.is_some_and(is_for_http);
        tunnel::inside(self.gateway, self.flow, client, server, protocol.as_deref(), http_only).await;
    }

    /// A server that can't be reached.
    async fn fail(self, error: &DialError) {
        let change = match error {
            DialError::Address { address, .. } => {
                let unreachable = self.gateway.policy.may_resolve_to(&self.connection, *address).err();
                unreachable
                    .map(|unreachable| unreachable.change(*address, self.flow.target().port).to_string())
            }
            _ => None,
        };
        if change.is_some() {
            self.flow.set_rule(
                self.connection.verdict.rule.as_ref().map(ToString::to_string).as_deref(),
                change.as_deref(),
            );
        }
        self.refuse(Refusal::new(error.reason(), error.to_string()).unless(change)).await;
    }

    /// Tells the client why, in its own protocol if it says something in one.
    async fn refuse(mut self, refusal: Refusal) {
        self.flow.set_detail(refusal.because());
        self.flow.blocked(refusal.reason);
        let first = tokio::time::timeout(LAST_WORD, peek::first(&self.client, &mut self.said)).await;
        match first {
            Ok(Ok(First::Tls(hello))) => self.refuse_tls(&hello, refusal).await,
            Ok(Ok(First::Http1)) => self.answer(Version::One, refusal).await,
            Ok(Ok(First::Http2)) => self.answer(Version::Two, refusal).await,
            _ => opaque::reset(&self.client),
        }
    }

    async fn answer(self, version: Version, refusal: Refusal) {
        let client = ClientStream::new(self.client, self.said.freeze(), Arc::clone(&self.flow));
        refuse::serve(client, version, refusal, self.flow).await;
    }

    async fn refuse_tls(self, hello: &ClientHello, refusal: Refusal) {
        self.flow.set_detail(refusal.because());
        self.flow.blocked(refusal.reason);
        let protocols = hello.protocols();
        let (protocol, version) = match protocols.first().map(Vec::as_slice) {
            Some(tls::HTTP2) => (Some(tls::HTTP2), Version::Two),
            Some(tls::HTTP1) => (Some(tls::HTTP1), Version::One),
            // It speaks another protocol, in which we can say nothing.
            Some(_) => return opaque::reset(&self.client),
            None => (None, Version::One),
        };
        let name = hello.name_or(&self.flow.target().host);
        let client = ClientStream::new(self.client, self.said.freeze(), Arc::clone(&self.flow));
        // Certificates are for well-formed names; whoever refuses one has heard enough.
        if let Ok((client, _)) = self.gateway.inspector.accept(client, &name, protocol).await {
            refuse::serve(client, version, refusal, self.flow).await;
        }
    }

    /// The program that connected.
    fn program(&self) -> Option<String> {
        self.flow.process().map(|process| process.path.as_str().to_owned())
    }
}

fn refused_by_client(gateway: &Gateway, flow: &Flow, error: &AcceptError, pinned: Pinned) {
    flow.set_detail(&error.to_string());
    match error {
        AcceptError::Pinned(_) => {
            if pinned == Pinned::Opaque {
                let program = flow.process().map(|process| process.path.as_str().to_owned());
                gateway.pinned.add(flow.target(), program);
            }
            flow.blocked(Reason::Pinned);
        }
        AcceptError::Certificate(_) => flow.blocked(Reason::Internal),
        AcceptError::Io(_) => flow.blocked(Reason::Malformed),
    }
}

fn sni_mismatch(hello: &ClientHello) -> Refusal {
    let because = match &hello.server_name {
        ServerName::Named(name) => format!("TLS asks for {name}, which is not what was connected to"),
        ServerName::Malformed | ServerName::Absent => {
            "TLS asks for something that is no host name".to_owned()
        }
    };
    Refusal::new(Reason::SniMismatch, because)
}

/// Whether the rule lets only HTTP through: it says so, or limits what only HTTP has.
fn is_for_http(rule: &NetworkRule) -> bool {
    let limited = !rule.methods.is_empty() || !rule.paths.is_empty() || rule.max_upload.is_some();
    rule.protocol == Protocol::Http || (rule.action != Action::Allow && limited)
}

/// Whether it is an address that is not the internet's.
fn is_near(host: &Host) -> bool {
    matches!(host, Host::Address(address) if redoma_policy::scope(*address) != redoma_policy::Scope::Public)
}

async fn dial_loopback(port: u16) -> io::Result<TcpStream> {
    match TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await {
        Ok(stream) => Ok(stream),
        Err(error) => TcpStream::connect((Ipv6Addr::LOCALHOST, port)).await.map_err(|_| error),
    }
}
