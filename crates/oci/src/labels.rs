//! The engine's labels: what a sandbox is, beside the sandbox. There is no other list.

use std::collections::HashMap;

use redoma_sandbox::driver::{DriverError, Name, SandboxId, Spec};

/// Tells what one user of one machine made from everything else an engine has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Realm(String);

/// What a container or an image is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The container that commands run in.
    Sandbox,
    /// The container whose network it shares.
    Helper,
    /// A frozen file system.
    Snapshot,
}

const REALM: &str = "redoma.realm";
const KIND: &str = "redoma.kind";
const ID: &str = "redoma.id";
const NAME: &str = "redoma.name";
const OWNER: &str = "redoma.owner";
const SPEC: &str = "redoma.spec";
const DIGEST: &str = "redoma.digest";
const TAKEN: &str = "redoma.taken";
const TOOL: &str = "redoma.tool";
const STARTS: &str = "redoma.starts";

/// What an image starts by itself: its entrypoint, and the arguments.
pub(crate) type Starts = (Vec<String>, Vec<String>);

impl Realm {
    /// Of whoever keeps `state`, on this machine. Two machines may use one engine.
    pub(crate) fn of(state: &std::path::Path) -> Self {
        let machine = std::fs::read("/etc/machine-id").unwrap_or_default();
        let user = rustix::process::getuid().as_raw();
        let all = [machine.as_slice(), &user.to_le_bytes(), state.as_os_str().as_encoded_bytes()].concat();
        Self(blake3::hash(&all).to_hex()[..16].to_owned())
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// The name of a container in the engine. Names are the engine's to keep unique.
    pub(crate) fn container(&self, name: &Name) -> String {
        format!("redoma-{}-{name}", &self.0[..8])
    }

    /// The name of the container that holds a sandbox's network; never one of [`Self::container`]'s.
    pub(crate) fn helper(&self, id: &SandboxId) -> String {
        format!("redoma-{}.net.{id}", &self.0[..8])
    }

    /// The labels of a sandbox, its helper, or a snapshot of it.
    pub(crate) fn labels(&self, kind: Kind, spec: &Spec, digest: &str) -> HashMap<String, String> {
        let owner = spec.owner.0.as_ref().map(Name::to_string).unwrap_or_default();
        let spec_text = serde_json::to_string(spec).unwrap_or_default();
        [
            (REALM, self.0.clone()),
            (KIND, kind.as_str().into()),
            (ID, spec.id.to_string()),
            (NAME, spec.name.to_string()),
            (OWNER, owner),
            (SPEC, spec_text),
            (DIGEST, digest.into()),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into()
    }

    /// The labels of a snapshot, as instructions that make an image of a container. Their values have neither blanks nor
    /// quotes, nor what an engine would take for a variable: the specification goes in hexadecimal.
    pub(crate) fn changes(
        &self,
        name: &Name,
        of: &Spec,
        digest: &str,
        taken: i64,
        starts: &Starts,
    ) -> String {
        let mut labels = self.labels(Kind::Snapshot, of, digest);
        let spec_text = serde_json::to_vec(of).unwrap_or_default();
        labels.insert(SPEC.into(), to_hex(&spec_text));
        labels.insert(NAME.into(), name.to_string());
        labels.insert(TAKEN.into(), taken.to_string());
        let line = |(label, value): (&String, &String)| format!("LABEL {label}={value}");
        labels.insert(STARTS.into(), to_hex(&serde_json::to_vec(starts).unwrap_or_default()));
        labels.iter().filter(|(_, value)| !value.is_empty()).map(line).collect::<Vec<_>>().join("\n")
    }

    /// The labels of a container with this program inside, which is called so.
    pub(crate) fn with_tool(
        &self,
        kind: Kind,
        spec: &Spec,
        digest: &str,
        argv: &[String],
        starts: &Starts,
    ) -> HashMap<String, String> {
        let mut labels = self.labels(kind, spec, digest);
        labels.insert(STARTS.into(), serde_json::to_string(starts).unwrap_or_default());
        labels.insert(TOOL.into(), serde_json::to_string(argv).unwrap_or_default());
        labels
    }

    /// What to ask the engine for: one label, since engines join several in different ways.
    pub(crate) fn filter(&self) -> HashMap<String, Vec<String>> {
        HashMap::from([("label".to_owned(), vec![format!("{REALM}={}", self.0)])])
    }

    /// Whether labels are those of something of ours; of this sandbox, if it has to be.
    pub(crate) fn owns(&self, labels: &HashMap<String, String>, kind: Kind, id: Option<&str>) -> bool {
        let is = |name: &str, value: &str| labels.get(name).is_some_and(|found| found == value);
        is(REALM, &self.0) && is(KIND, kind.as_str()) && id.is_none_or(|id| is(ID, id))
    }
}

impl Kind {
    fn as_str(self) -> &'static str {
        match self {
            Self::Sandbox => "sandbox",
            Self::Helper => "helper",
            Self::Snapshot => "snapshot",
        }
    }
}

/// The specification that labels hold.
pub(crate) fn spec(labels: &HashMap<String, String>) -> Result<Spec, DriverError> {
    let bytes = value(labels, SPEC);
    serde_json::from_slice(&bytes).map_err(|error| DriverError::Unreadable {
        what: "the label",
        path: SPEC.into(),
        why: error.to_string(),
    })
}

/// What the image of a container, or of a snapshot, starts by itself.
pub(crate) fn starts(labels: &HashMap<String, String>) -> Option<Starts> {
    serde_json::from_slice(&value(labels, STARTS)).ok()
}

/// JSON, which a snapshot's labels have in hexadecimal.
fn value(labels: &HashMap<String, String>, name: &str) -> Vec<u8> {
    let text = labels.get(name).map_or("", String::as_str);
    if text.starts_with(['{', '[']) { text.as_bytes().to_vec() } else { from_hex(text) }
}

fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What is no hexadecimal is no JSON either.
fn from_hex(text: &str) -> Vec<u8> {
    let digits = text.as_bytes().chunks_exact(2);
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    digits.map_while(byte).collect()
}

pub(crate) fn digest(labels: &HashMap<String, String>) -> Option<String> {
    labels.get(DIGEST).filter(|digest| !digest.is_empty()).cloned()
}

/// How this program is called inside: another version of it may have made the container.
pub(crate) fn tool(labels: &HashMap<String, String>) -> Option<Vec<String>> {
    serde_json::from_str(labels.get(TOOL)?).ok()
}

/// A snapshot's own name, and when it was taken.
pub(crate) fn taken(labels: &HashMap<String, String>) -> Option<(Name, i64)> {
    Some((labels.get(NAME)?.parse().ok()?, labels.get(TAKEN)?.parse().ok()?))
}
