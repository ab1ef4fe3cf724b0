//! Why a flow is as visible as it is.

use std::fmt;

/// Why a flow, or a request in it, was inspected, passed unseen or blocked. Its name is part of the interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// A rule says so.
    Policy,
    /// No rule names the host, and the default allows it.
    DefaultAllow,
    /// A person approved it.
    Approved,
    /// No rule names the host.
    NotListed,
    /// The name leads to an address that is not public, and no rule allows that.
    PrivateAddress,
    /// It is no well-formed host or target.
    MalformedHost,
    /// The name asked for in TLS is not the one that was dialled.
    SniMismatch,
    /// The name in the request is not the one that was dialled.
    HostMismatch,
    /// The real server name is encrypted, so that it cannot be compared.
    EncryptedHello,
    /// The client refuses the session's certificate.
    Pinned,
    /// It speaks neither TLS nor HTTP, so that there is nothing to look into.
    NotTls,
    /// The rule is for HTTP, and it is something else.
    NotHttp,
    /// It is no valid message of its protocol.
    Malformed,
    /// The rule does not let this method through.
    Method,
    /// The rule does not let this path through.
    Path,
    /// More was sent, or more often, than the rule lets through.
    Budget,
    /// A secret was on its way to where it does not belong.
    SecretDetected,
    /// A person said no.
    ApprovalDenied,
    /// Nobody answered in time.
    ApprovalTimeout,
    /// The server could not be reached, or its certificate is not valid.
    UpstreamFailed,
    /// The gateway itself failed.
    Internal,
}

impl Reason {
    /// The name, as records and lists show it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Policy => "policy",
            Self::DefaultAllow => "default-allow",
            Self::Approved => "approved",
            Self::NotListed => "not-listed",
            Self::PrivateAddress => "private-address",
            Self::MalformedHost => "malformed-host",
            Self::SniMismatch => "sni-mismatch",
            Self::HostMismatch => "host-mismatch",
            Self::EncryptedHello => "encrypted-hello",
            Self::Pinned => "pinned",
            Self::NotTls => "not-tls",
            Self::NotHttp => "not-http",
            Self::Malformed => "malformed",
            Self::Method => "method",
            Self::Path => "path",
            Self::Budget => "budget",
            Self::SecretDetected => "secret-detected",
            Self::ApprovalDenied => "approval-denied",
            Self::ApprovalTimeout => "approval-timeout",
            Self::UpstreamFailed => "upstream-failed",
            Self::Internal => "internal-error",
        }
    }
}

impl Reason {
    /// The same for those who read it once.
    pub(crate) fn in_words(self) -> &'static str {
        match self {
            Self::Policy => "a rule says so",
            Self::DefaultAllow => "the default allows it",
            Self::Approved => "a person approved it",
            Self::NotListed => "no rule allows the host",
            Self::PrivateAddress => "it leads to an address that is not public",
            Self::MalformedHost => "it is no well-formed host",
            Self::SniMismatch => "TLS asks for another host",
            Self::HostMismatch => "the request names another host",
            Self::EncryptedHello => "the name of the server is encrypted",
            Self::Pinned => "the client takes no certificate but the server's own",
            Self::NotTls => "there is nothing to look into",
            Self::NotHttp => "the rule is for HTTP",
            Self::Malformed => "it is malformed",
            Self::Method => "the rule does not let this method through",
            Self::Path => "the rule does not let this path through",
            Self::Budget => "more was sent than the rule lets through",
            Self::SecretDetected => "a secret was on its way to where it does not belong",
            Self::ApprovalDenied => "a person said no",
            Self::ApprovalTimeout => "nobody answered in time",
            Self::UpstreamFailed => "the server could not be reached",
            Self::Internal => "the gateway failed",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
