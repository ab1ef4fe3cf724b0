//! The policy file, as it is written. Every section refuses keys it does not know.
//!
//! Doc comments here are what an editor shows: `schema()` turns them into descriptions.

use std::collections::BTreeMap;
use std::num::{NonZeroU16, NonZeroU32};

use schemars::JsonSchema;
use serde::Deserialize;
use toml::Spanned;

use crate::{
    Action, AgentName, ByteSize, Cpus, HostPattern, LeakAction, NamePattern, NetworkDefault, Pinned,
    Protocol, Publish, Purpose, Rate, Reach, Record, TimeSpan, UpstreamProxy, Workspace,
};

/// A list of strings, each knowing where it stands.
pub(crate) type Entries = Vec<Spanned<String>>;

/// A Redoma policy.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(title = "Redoma policy")]
pub(crate) struct PolicyFile {
    /// What to start from: a built-in profile (`default`, `strict`, `audit`, `permissive`, `empty`) or a file beside
    /// this one, such as `./base.toml`.
    #[schemars(with = "Option<String>")]
    pub(crate) extends: Option<Spanned<String>>,
    /// The agent whose preset to add.
    pub(crate) agent: AgentSection,
    /// Which files may be seen and changed.
    pub(crate) filesystem: FilesystemSection,
    /// Which hosts may be reached.
    pub(crate) network: NetworkSection,
    /// Credentials that stay outside; inside, a variable holds a placeholder that works on the named hosts only.
    #[schemars(with = "BTreeMap<String, SecretSection>")]
    pub(crate) secrets: BTreeMap<Spanned<String>, Spanned<SecretSection>>,
    /// Which variables commands get.
    pub(crate) environment: EnvironmentSection,
    /// How much a session may use.
    pub(crate) limits: LimitsSection,
    /// How the record is kept.
    pub(crate) audit: AuditSection,
    /// Kernel features that are closed unless named.
    pub(crate) kernel: KernelSection,
    /// What no later layer may go beyond. Only in the system policy, `/etc/redoma/policy.toml`.
    #[schemars(with = "Option<CeilingSection>")]
    pub(crate) ceiling: Option<Spanned<CeilingSection>>,
}

/// The agent whose preset to add.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct AgentSection {
    /// Its name, as `redoma policy agents` lists it.
    #[schemars(with = "Option<AgentName>")]
    pub(crate) name: Option<Spanned<AgentName>>,
    /// Let it report about its use to its maker.
    #[schemars(with = "Option<bool>")]
    pub(crate) telemetry: Option<Spanned<bool>>,
}

/// Which files may be seen and changed. Precedence: deny, protect, write, read. What no list names is absent.
///
/// Paths may begin with `~` or `${VARIABLE}`; relative ones mean the project. `*`, `**`, `?`, `[a-z]` and `{a,b}` make
/// a glob in `deny` and `protect`; `\` escapes. A trailing `/` marks a folder.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct FilesystemSection {
    /// Parts of the operating system: readable, never searched for deny globs. Those that do not exist are passed over.
    #[schemars(with = "Vec<String>")]
    pub(crate) system: Entries,
    /// Readable, with everything below.
    #[schemars(with = "Vec<String>")]
    pub(crate) read: Entries,
    /// Readable and writable, with everything below. `"."` is the project.
    #[schemars(with = "Vec<String>")]
    pub(crate) write: Entries,
    /// Hidden, whatever grants it. A glob that begins with `**/` holds in the project and in every folder that you
    /// grant; other globs hold below their literal beginning. `!glob` takes an exception out of the globs of this list.
    #[schemars(with = "Vec<String>")]
    pub(crate) deny: Entries,
    /// Readable where granted, but neither written, renamed nor created.
    #[schemars(with = "Vec<String>")]
    pub(crate) protect: Entries,
    /// Entries of the built-in profile or agent preset to leave out, exactly as they are written there.
    #[schemars(with = "Vec<String>")]
    pub(crate) without: Entries,
    /// Where writes to the project go: `direct` to its files, or `overlay`, where they wait for `redoma changes apply`.
    #[schemars(with = "Option<Workspace>")]
    pub(crate) workspace: Option<Spanned<Workspace>>,
    /// Keep what `redoma undo` needs. Only with the direct workspace.
    #[schemars(with = "Option<bool>")]
    pub(crate) undo: Option<Spanned<bool>>,
    /// Above this size, a project that is no git tree is not kept for undo.
    #[schemars(with = "Option<ByteSize>")]
    pub(crate) undo_max: Option<Spanned<ByteSize>>,
}

/// Which hosts may be reached.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct NetworkSection {
    /// What happens to a connection that no rule names. `none` is no network at all, whatever the rules say.
    #[schemars(with = "Option<NetworkDefault>")]
    pub(crate) default: Option<Spanned<NetworkDefault>>,
    /// Rules. A deny beats all others; else the rule that names the host most closely decides.
    #[schemars(with = "Vec<RuleSection>")]
    pub(crate) rule: Vec<Spanned<RuleSection>>,
    /// Ports of this machine.
    pub(crate) local: LocalSection,
    /// How long a person has to answer when a rule or the default asks, such as `"2m"`; then the answer is no.
    #[schemars(with = "Option<TimeSpan>")]
    pub(crate) ask_timeout: Option<Spanned<TimeSpan>>,
    /// The proxy through which everything goes: `"http://host:port"`; `"env"`, the default, is the one of the caller's
    /// `HTTPS_PROXY`; `"none"` is none. Passwords stay in the environment.
    #[schemars(with = "Option<UpstreamProxy>")]
    pub(crate) upstream_proxy: Option<Spanned<UpstreamProxy>>,
    /// What happens to secrets that are seen on their way out.
    pub(crate) leaks: LeaksSection,
}

/// What happens to secrets that are seen on their way out, by class, in requests that are looked into. A placeholder on
/// its way to a host that is not its secret's is always blocked.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct LeaksSection {
    /// Values out of the decoys that stand in denied places. `block` unless said otherwise.
    #[schemars(with = "Option<LeakAction>")]
    pub(crate) decoys: Option<Spanned<LeakAction>>,
    /// Private keys. `block` unless said otherwise.
    #[schemars(with = "Option<LeakAction>")]
    pub(crate) private_keys: Option<Spanned<LeakAction>>,
    /// What looks like a token of a cloud or a provider. `alert` unless said otherwise.
    #[schemars(with = "Option<LeakAction>")]
    pub(crate) tokens: Option<Spanned<LeakAction>>,
    /// Cards, national numbers, telephone numbers, e-mail addresses. `off` unless said otherwise.
    #[schemars(with = "Option<LeakAction>")]
    pub(crate) personal: Option<Spanned<LeakAction>>,
}

/// One rule about hosts.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RuleSection {
    /// `example.com` is that name only, `*.example.com` what lies below it, `example.com,*.example.com` both.
    pub(crate) host: HostPattern,
    /// TCP ports; 80 and 443 if left out, every port for a deny rule.
    #[serde(default)]
    pub(crate) ports: Option<Vec<NonZeroU16>>,
    /// What happens: `inspect` looks inside, `allow` does not.
    pub(crate) action: Action,
    /// What a connection must turn out to be by its first bytes: `tls` whatever is inside, `http` plain or in TLS (only
    /// with `inspect`), or `any`.
    #[serde(default)]
    #[schemars(with = "Option<Protocol>")]
    pub(crate) protocol: Option<Spanned<Protocol>>,
    /// HTTP methods let through; `GET` lets `HEAD` through too. Only with `inspect`.
    #[serde(default)]
    #[schemars(with = "Option<Vec<String>>")]
    pub(crate) methods: Option<Spanned<Vec<String>>>,
    /// Globs of request paths let through, matched against the decoded path without its query. Only with `inspect`.
    #[serde(default)]
    #[schemars(with = "Option<Vec<String>>")]
    pub(crate) paths: Option<Spanned<Vec<String>>>,
    /// Most bytes one request may carry. Only with `inspect`.
    #[serde(default)]
    #[schemars(with = "Option<ByteSize>")]
    pub(crate) max_upload: Option<Spanned<ByteSize>>,
    /// Most bytes a session may send to the rule's hosts altogether.
    #[serde(default)]
    #[schemars(with = "Option<ByteSize>")]
    pub(crate) max_upload_session: Option<Spanned<ByteSize>>,
    /// How many requests a session may make by this rule, such as `"10/s"`; with `allow`, how many connections.
    #[serde(default)]
    #[schemars(with = "Option<Rate>")]
    pub(crate) rate: Option<Spanned<Rate>>,
    /// What happens to a client that refuses our certificate. Only with `inspect`.
    #[serde(default)]
    #[schemars(with = "Option<Pinned>")]
    pub(crate) pinned: Option<Spanned<Pinned>>,
    /// Let the host's name lead to an address of a private network: RFC 1918, unique local, carrier-grade NAT.
    #[serde(default)]
    #[schemars(with = "Option<bool>")]
    pub(crate) private: Option<Spanned<bool>>,
    /// What an agent uses the host for. Not written: a preset's host lists say it.
    #[serde(skip)]
    #[schemars(skip)]
    pub(crate) purpose: Option<Purpose>,
}

/// Ports of this machine.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct LocalSection {
    /// Ports inside that the host reaches on its loopback: `"3000"`, or `"8080:3000"` for another number outside.
    #[schemars(with = "Vec<Publish>")]
    pub(crate) publish: Vec<Spanned<Publish>>,
    /// Ports of the host's loopback that the sandbox reaches: `"localhost:5432"`.
    #[schemars(with = "Vec<Reach>")]
    pub(crate) reach: Vec<Spanned<Reach>>,
}

/// A credential that stays outside.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SecretSection {
    /// Where the real one is kept.
    pub(crate) from: SecretKind,
    /// With `from = "env"`: the caller's variable, if it has another name.
    #[serde(default)]
    pub(crate) variable: Option<String>,
    /// With `from = "file"`: the file.
    #[serde(default)]
    pub(crate) path: Option<String>,
    /// With `from = "keyring"`: the entry.
    #[serde(default)]
    pub(crate) entry: Option<String>,
    /// With `from = "command"`: the program and its arguments.
    #[serde(default)]
    pub(crate) command: Option<Vec<String>>,
    /// The only hosts it is sent to.
    pub(crate) hosts: Vec<HostPattern>,
    /// The header that carries it. Without `header`, `query`, `basic` and `aws` it is any header.
    #[serde(default)]
    pub(crate) header: Option<String>,
    /// The key of the query whose value it is.
    #[serde(default)]
    pub(crate) query: Option<String>,
    /// The user whose password it is in basic authentication; `"*"` is any.
    #[serde(default)]
    pub(crate) basic: Option<String>,
    /// It is an AWS secret access key: requests are signed with it again.
    #[serde(default)]
    pub(crate) aws: Option<AwsSection>,
}

/// What belongs to an AWS secret access key.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct AwsSection {
    /// The caller's variable that holds the key's id; `AWS_ACCESS_KEY_ID` if left out.
    pub(crate) access_key_id: String,
    /// The caller's variable that holds the session's token, if there is one; `AWS_SESSION_TOKEN` if left out.
    pub(crate) session_token: String,
}

impl Default for AwsSection {
    fn default() -> Self {
        let [access_key_id, session_token] = ["AWS_ACCESS_KEY_ID", "AWS_SESSION_TOKEN"].map(str::to_owned);
        Self { access_key_id, session_token }
    }
}

/// Where a real credential is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum SecretKind {
    /// In a variable of the caller's.
    Env,
    /// In a file.
    File,
    /// In the desktop keyring.
    Keyring,
    /// In a command's output.
    Command,
}

/// Which variables commands get. Nothing else passes.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct EnvironmentSection {
    /// Names, or globs such as `LC_*`. What looks like a credential, or makes programs load code, passes only by its
    /// exact name.
    #[schemars(with = "Vec<String>")]
    pub(crate) pass: Vec<Spanned<NamePattern>>,
    /// Names or globs that never pass.
    #[schemars(with = "Vec<String>")]
    pub(crate) deny: Vec<Spanned<NamePattern>>,
    /// Variables with a value of the policy's own.
    #[schemars(with = "BTreeMap<String, String>")]
    pub(crate) set: BTreeMap<Spanned<String>, String>,
}

/// How much a session may use.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct LimitsSection {
    /// Processors, such as `2.0`.
    pub(crate) cpus: Option<Cpus>,
    /// Memory, swap included.
    pub(crate) memory: Option<ByteSize>,
    /// Processes and threads alive at once.
    pub(crate) pids: Option<NonZeroU32>,
    /// Bytes written to private folders.
    pub(crate) disk: Option<ByteSize>,
    /// From start to end; then the whole process tree is ended.
    pub(crate) time: Option<TimeSpan>,
    /// Refuse to start when a limit cannot be enforced on this machine.
    pub(crate) strict: Option<bool>,
}

/// How the record is kept.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct AuditSection {
    /// How long sessions are kept, such as `"90d"`.
    pub(crate) retention: Option<TimeSpan>,
    /// How much is recorded.
    pub(crate) record: Option<Record>,
}

/// Kernel features that are closed unless named.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct KernelSection {
    /// Let programs inside make user namespaces, for nested sandboxes such as a browser's.
    #[schemars(with = "Option<bool>")]
    pub(crate) nested_userns: Option<Spanned<bool>>,
}

/// What no later layer may go beyond. What is left out has no ceiling.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct CeilingSection {
    /// Folders outside which nothing is granted, not even for reading; parts of the operating system excepted.
    #[schemars(with = "Option<Vec<String>>")]
    pub(crate) read: Option<Entries>,
    /// Folders outside which nothing is granted for writing.
    #[schemars(with = "Option<Vec<String>>")]
    pub(crate) write: Option<Entries>,
    /// Hosts beside which no rule allows anything.
    #[schemars(with = "Option<Vec<HostPattern>>")]
    pub(crate) hosts: Option<Vec<HostPattern>>,
    /// The loosest network default.
    pub(crate) network: Option<NetworkDefault>,
    /// `false`: no rule lets a name lead to a private network.
    pub(crate) private: Option<bool>,
    /// `false`: no layer opens nested user namespaces.
    pub(crate) nested_userns: Option<bool>,
}
