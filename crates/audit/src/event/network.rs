//! Questions, their answers, and what went over the network.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::Text;

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

/// One connection seen by the gateway.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Flow {
    /// Its number in this session.
    pub flow: u64,
    /// The name that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<Text>,
    /// The address that was dialled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<IpAddr>,
    /// The port.
    pub port: u16,
    /// The protocol seen in the first bytes.
    pub protocol: Text,
    /// How much of it could be seen.
    pub visibility: Visibility,
    /// Why.
    pub reason: Text,
    /// The rule that decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<Text>,
    /// The process, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// Bytes from inside to outside.
    pub sent: u64,
    /// Bytes from outside to inside.
    pub received: u64,
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
    /// The addresses found on the host's side.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<IpAddr>,
}
