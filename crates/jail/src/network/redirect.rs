//! What becomes of connections that leave the sandbox's loopback: the netfilter rules, as
//!
//! ```text
//! table inet redoma {
//!     chain output {
//!         type nat hook output priority -100
//!         meta l4proto udp udp dport 53 redirect
//!         meta l4proto tcp tcp dport 53 redirect to :CAPTURE
//!         meta nfproto ipv4 meta l4proto tcp ip daddr != 127.0.0.0/8 redirect to :CAPTURE
//!         meta nfproto ipv6 meta l4proto tcp ip6 daddr != ::1 redirect to :CAPTURE
//!     }
//! }
//! ```
//!
//! A redirected packet goes to loopback's own address, and the socket that takes the connection tells the address that
//! was asked for (`SO_ORIGINAL_DST`). Names are asked for on port 53 of any address, loopback included, by UDP and by
//! TCP, as RFC 7766 has it. Every other datagram finds nobody and is refused by the kernel at once.
//!
//! Where two connections, different by their destinations only, would be one after the redirection, the kernel gives the
//! second another source port on the way.

use std::net::Ipv6Addr;

use redoma_sys::nr;
use rustix::net::netlink;

use super::netlink::{Body, Request};
use crate::error::{Failure, InStep, Step};

/// Where DNS servers listen.
pub(super) const DNS: u16 = 53;

const TABLE: &str = "redoma";
const OUTPUT: &str = "output";

/// Redirects all TCP to this port, and all questions for names to port 53.
///
/// All at once or nothing: the kernel carries the messages out as one transaction.
pub(super) fn redirect_to(capture: u16) -> Result<(), Failure> {
    let mut request = Request::default();
    frame(&mut request, nr::NFNL_MSG_BATCH_BEGIN);
    add(&mut request, nr::NFT_MSG_NEWTABLE, 0, |body| body.text(attribute::TABLE_NAME, TABLE));
    add(&mut request, nr::NFT_MSG_NEWCHAIN, 0, output);
    let rules = rules(capture);
    for (place, rule) in rules.iter().enumerate() {
        // The last one answers for all: the end of the transaction cannot in kernels before 6.10.
        let flags = if place + 1 == rules.len() { nr::NLM_F_ACK } else { 0 };
        rule.append_to(&mut request, flags);
    }
    frame(&mut request, nr::NFNL_MSG_BATCH_END);
    request.send(Some(netlink::NETFILTER)).and_then(|answers| answers.all()).step(Step::Redirect)
}

struct Rule {
    matches: Vec<Match>,
    /// None leaves the port as it is.
    to: Option<u16>,
}

enum Match {
    Protocol(i32),
    Port(u16),
    NotLoopback4,
    NotLoopback6,
}

fn rules(capture: u16) -> [Rule; 4] {
    let tcp = || Match::Protocol(nr::IPPROTO_TCP);
    [
        Rule { matches: vec![Match::Protocol(nr::IPPROTO_UDP), Match::Port(DNS)], to: None },
        Rule { matches: vec![tcp(), Match::Port(DNS)], to: Some(capture) },
        Rule { matches: vec![Match::NotLoopback4, tcp()], to: Some(capture) },
        Rule { matches: vec![Match::NotLoopback6, tcp()], to: Some(capture) },
    ]
}

/// Attributes, from `linux/netfilter/nf_tables.h`.
mod attribute {
    pub(super) const LIST_ELEMENT: u16 = 1;
    pub(super) const DATA_VALUE: u16 = 1;
    pub(super) const TABLE_NAME: u16 = 1;
    pub(super) const CHAIN_TABLE: u16 = 1;
    pub(super) const CHAIN_NAME: u16 = 3;
    pub(super) const CHAIN_HOOK: u16 = 4;
    pub(super) const CHAIN_TYPE: u16 = 7;
    pub(super) const HOOK_NUMBER: u16 = 1;
    pub(super) const HOOK_PRIORITY: u16 = 2;
    pub(super) const RULE_TABLE: u16 = 1;
    pub(super) const RULE_CHAIN: u16 = 2;
    pub(super) const RULE_EXPRESSIONS: u16 = 4;
    pub(super) const EXPRESSION_NAME: u16 = 1;
    pub(super) const EXPRESSION_DATA: u16 = 2;
    pub(super) const META_REGISTER: u16 = 1;
    pub(super) const META_KEY: u16 = 2;
    pub(super) const PAYLOAD_REGISTER: u16 = 1;
    pub(super) const PAYLOAD_BASE: u16 = 2;
    pub(super) const PAYLOAD_OFFSET: u16 = 3;
    pub(super) const PAYLOAD_LENGTH: u16 = 4;
    pub(super) const COMPARE_REGISTER: u16 = 1;
    pub(super) const COMPARE_OPERATION: u16 = 2;
    pub(super) const COMPARE_DATA: u16 = 3;
    pub(super) const IMMEDIATE_REGISTER: u16 = 1;
    pub(super) const IMMEDIATE_DATA: u16 = 2;
    pub(super) const REDIRECT_PORT_REGISTER: u16 = 1;
}

/// The register that every expression here reads and writes.
const REGISTER: u32 = nr::NFT_REG_1 as u32;

/// Begin or end of the transaction.
fn frame(request: &mut Request, kind: i32) {
    let subsystem = (nr::NFNL_SUBSYS_NFTABLES as u16).to_be_bytes();
    request.message(kind as u16, 0, |body| body.structure(&[0, 0, subsystem[0], subsystem[1]]));
}

/// A message for a table of both families: its header is an `nfgenmsg`.
fn add(request: &mut Request, kind: i32, flags: i32, fill: impl FnOnce(&mut Body<'_>)) {
    let kind = (nr::NFNL_SUBSYS_NFTABLES << 8 | kind) as u16;
    request.message(kind, nr::NLM_F_CREATE | flags, |body| {
        body.structure(&[nr::NFPROTO_INET as u8, 0, 0, 0]);
        fill(body);
    });
}

/// The chain for what is made on this machine, at the priority of address translation.
fn output(body: &mut Body<'_>) {
    const PRIORITY: i32 = -100;
    body.text(attribute::CHAIN_TABLE, TABLE);
    body.text(attribute::CHAIN_NAME, OUTPUT);
    body.nest(attribute::CHAIN_HOOK, |body| {
        body.number(attribute::HOOK_NUMBER, nr::NF_INET_LOCAL_OUT as u32);
        body.number(attribute::HOOK_PRIORITY, PRIORITY as u32);
    });
    body.text(attribute::CHAIN_TYPE, "nat");
}

impl Rule {
    fn append_to(&self, request: &mut Request, flags: i32) {
        add(request, nr::NFT_MSG_NEWRULE, nr::NLM_F_APPEND | flags, |body| {
            body.text(attribute::RULE_TABLE, TABLE);
            body.text(attribute::RULE_CHAIN, OUTPUT);
            body.nest(attribute::RULE_EXPRESSIONS, |body| {
                for condition in &self.matches {
                    condition.express(body);
                }
                redirect(body, self.to);
            });
        });
    }
}

impl Match {
    fn express(&self, body: &mut Body<'_>) {
        match *self {
            Self::Protocol(number) => {
                meta(body, nr::NFT_META_L4PROTO);
                compare(body, nr::NFT_CMP_EQ, &[number as u8]);
            }
            Self::Port(port) => {
                payload(body, nr::NFT_PAYLOAD_TRANSPORT_HEADER, 2, 2);
                compare(body, nr::NFT_CMP_EQ, &port.to_be_bytes());
            }
            // The first byte of the destination, which is the network's.
            Self::NotLoopback4 => {
                family(body, nr::NFPROTO_IPV4);
                payload(body, nr::NFT_PAYLOAD_NETWORK_HEADER, 16, 1);
                compare(body, nr::NFT_CMP_NEQ, &[127]);
            }
            Self::NotLoopback6 => {
                family(body, nr::NFPROTO_IPV6);
                payload(body, nr::NFT_PAYLOAD_NETWORK_HEADER, 24, 16);
                compare(body, nr::NFT_CMP_NEQ, &Ipv6Addr::LOCALHOST.octets());
            }
        }
    }
}

// === expressions ===

fn expression(body: &mut Body<'_>, name: &str, fill: impl FnOnce(&mut Body<'_>)) {
    body.nest(attribute::LIST_ELEMENT, |body| {
        body.text(attribute::EXPRESSION_NAME, name);
        body.nest(attribute::EXPRESSION_DATA, fill);
    });
}

fn family(body: &mut Body<'_>, protocol: i32) {
    meta(body, nr::NFT_META_NFPROTO);
    compare(body, nr::NFT_CMP_EQ, &[protocol as u8]);
}

fn meta(body: &mut Body<'_>, key: i32) {
    expression(body, "meta", |body| {
        body.number(attribute::META_REGISTER, REGISTER);
        body.number(attribute::META_KEY, key as u32);
    });
}

fn payload(body: &mut Body<'_>, base: i32, offset: u32, length: u32) {
    expression(body, "payload", |body| {
        body.number(attribute::PAYLOAD_REGISTER, REGISTER);
        body.number(attribute::PAYLOAD_BASE, base as u32);
        body.number(attribute::PAYLOAD_OFFSET, offset);
        body.number(attribute::PAYLOAD_LENGTH, length);
    });
}

fn compare(body: &mut Body<'_>, operation: i32, value: &[u8]) {
    expression(body, "cmp", |body| {
        body.number(attribute::COMPARE_REGISTER, REGISTER);
        body.number(attribute::COMPARE_OPERATION, operation as u32);
        body.nest(attribute::COMPARE_DATA, |body| body.attribute(attribute::DATA_VALUE, value));
    });
}

fn redirect(body: &mut Body<'_>, to: Option<u16>) {
    if let Some(port) = to {
        expression(body, "immediate", |body| {
            body.number(attribute::IMMEDIATE_REGISTER, REGISTER);
            body.nest(attribute::IMMEDIATE_DATA, |body| {
                body.attribute(attribute::DATA_VALUE, &port.to_be_bytes());
            });
        });
    }
    expression(body, "redir", |body| {
        if to.is_some() {
            body.number(attribute::REDIRECT_PORT_REGISTER, REGISTER);
        }
    });
}
