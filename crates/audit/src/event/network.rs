//! Questions, their answers, and what went over the network.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::{Digest, Text};

/// The answer to a question put to the policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It may be done.
    Allow,
    /// It may not.
    Deny,
    /// A human is asked.
    Ask,
}

/// A question was decided.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Decision {
    /// The question.
    pub question: Question,
    /// What it was about: a path, a host and port, a variable.
    pub target: Text,
    /// The answer.
    pub verdict: Verdict,
    /// The rule that decided.
    pub rule: Text,
    /// Where the rule stands: `file:line`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Text>,
    /// The smallest change that would decide otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<Text>,
    /// Who asked.
    pub by: DecisionBy,
}

/// What can be asked of the policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Question {
    /// May this file be read?
    Read,
    /// May this file be written?
    Write,
    /// May this program be started?
    Exec,
    /// May this host be reached?
    Connect,
    /// May this variable pass?
    Env,
    /// May this limit be raised?
    Limit,
}

/// Who asked for a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DecisionBy {
    /// The canary, before the command.
    Canary,
    /// The keeper.
    Keeper,
    /// The gateway.
    Gateway,
    /// A sensor, after the kernel had refused.
    Sensor,
}

/// A human answered an `ask`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Approval {
    /// The question.
    pub question: Question,
    /// What it was about.
    pub target: Text,
    /// The answer.
    pub answer: Answer,
    /// Who answered, and from where: `terminal`, `dashboard`.
    pub by: Text,
}

/// The answer to an `ask`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// Yes, this time.
    Once,
    /// Yes, for this session.
    Session,
    /// Yes, and write it into the policy.
    Always,
    /// No.
    Deny,
    /// Nobody answered in time, which is a no.
    Expired,
}

/// One connection seen by the gateway: written when its verdict is known and once more, with the same number, when it
/// ends. The last record of a number counts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Flow {
    /// Its number in this session.
    pub flow: u64,
    /// Whether it goes on.
    pub open: bool,
    /// From where to where.
    #[serde(default)]
    pub direction: Direction,
    /// The name that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<Text>,
    /// The address that was dialled; without a name, the one that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<IpAddr>,
    /// The port.
    pub port: u16,
    /// The protocol seen in the first bytes: `tls`, `http/1.1`, `h2`, `ssh`, …; empty while nothing was seen.
    pub protocol: Text,
    /// How much of it could be seen.
    pub visibility: Visibility,
    /// Why: `policy`, `not-listed`, `sni-mismatch`, ….
    pub reason: Text,
    /// The rule that decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<Text>,
    /// The smallest change that would decide otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<Text>,
    /// What went wrong, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<Text>,
    /// Who opened it, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<Process>,
    /// What TLS agreed on, where it was looked into.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<Tls>,
    /// Bytes from inside to outside.
    pub sent: u64,
    /// Bytes from outside to inside.
    pub received: u64,
    /// How long it has been open, in microseconds.
    #[serde(default)]
    pub duration_us: u64,
}

/// From where to where a connection goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// From inside to the network.
    #[default]
    Out,
    /// From inside to a port of this machine (`reach`).
    Reach,
    /// From this machine to a port inside (`publish`).
    Publish,
}

/// A process inside, and how it came to be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// Its number as the host counts.
    pub pid: u32,
    /// Its number as it sees itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inside: Option<u32>,
    /// Its program file.
    pub path: Text,
    /// Its arguments.
    pub argv: crate::Argv,
    /// The program files of its parents, nearest first, up to the session's command.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parents: Vec<Text>,
}

/// What TLS agreed on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Tls {
    /// The name that the client asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sni: Option<Text>,
    /// The protocol that both agreed on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alpn: Option<Text>,
    /// The version towards the client, `TLSv1.3` for instance.
    pub version: Text,
    /// The cipher suite towards the client.
    pub cipher: Text,
    /// The version towards the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upstream_version: Option<Text>,
    /// The server's certificate: SHA-256 in hexadecimal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub certificate: Option<Text>,
}

/// One request and its answer inside an inspected flow: written when the answer's head is known and once more, with the
/// same numbers, when both bodies are through. The last record counts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Exchange {
    /// The flow's number.
    pub flow: u64,
    /// The request's number in the flow, from 0.
    pub number: u64,
    /// When the request's head was there, in microseconds since the epoch.
    pub started_us: u64,
    /// How long until the answer's head was there, in microseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered_us: Option<u64>,
    /// How long until both bodies were through, in microseconds; none while they are on their way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_us: Option<u64>,
    /// `HTTP/1.1` or `HTTP/2`.
    pub version: Text,
    /// The method.
    pub method: Text,
    /// The URL.
    pub url: Text,
    /// The request.
    pub request: Message,
    /// The status code; none when there was no answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response: Option<Message>,
    /// Why the gateway refused it, or why it failed: a reason as flows have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<Text>,
    /// The names of the credentials that were put in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub credentials: Vec<Text>,
}

/// A request or an answer, as far as it is kept.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Message {
    /// Names and values, in order.
    pub headers: Vec<(Text, Text)>,
    /// The body's length as it went over the wire.
    pub bytes: u64,
    /// The BLAKE3 hash of the body as it went over the wire; none while it is on its way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<Digest>,
    /// The beginning of the body, decoded and redacted; none if it is empty or no text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preview: Option<Text>,
}

/// How much of a flow could be seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Visibility {
    /// Decoded.
    Inspected,
    /// Allowed, not inspected.
    Opaque,
    /// Blocked.
    Blocked,
}

/// One name asked of the resolver.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Dns {
    /// The name.
    pub name: Text,
    /// The record type, `AAAA` for instance.
    pub record: Text,
    /// What was decided.
    pub verdict: Verdict,
    /// The rule that decided.
    pub rule: Text,
    /// The addresses that were answered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<IpAddr>,
}
