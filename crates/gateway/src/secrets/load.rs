use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use http::HeaderValue;
use redoma_policy::{SecretPlace, SecretRule, SecretSource};
use zeroize::Zeroize;

use super::{AwsKey, Credential, Pair, Secret, placeholder, run};

/// Why a credential is not there.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    /// The file is not readable.
    #[error("[secrets.{name}] cannot be read from {path:?}: {source}")]
    File {
        /// The secret's name.
        name: String,
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The command did not give it.
    #[error("[secrets.{name}]: the command {program:?} gave nothing: {source}")]
    Command {
        /// The secret's name.
        name: String,
        /// The program.
        program: String,
        /// Why.
        source: io::Error,
    },
    /// There is no way to the keyring.
    #[error("[secrets.{name}] is in the keyring, and there is no program secret-tool to ask it")]
    NoKeyring {
        /// The secret's name.
        name: String,
    },
    /// The keyring has no such entry, or is locked.
    #[error("[secrets.{name}]: the keyring has no entry {entry:?}, or is locked: {source}")]
    Keyring {
        /// The secret's name.
        name: String,
        /// The entry.
        entry: String,
        /// Why.
        source: io::Error,
    },
    /// It is empty, not UTF-8, or longer than any credential.
    #[error("[secrets.{name}] is {what}, in {place}")]
    Odd {
        /// The secret's name.
        name: String,
        /// What is odd.
        what: &'static str,
        /// Where it is from.
        place: String,
    },
    /// A key's id is missing.
    #[error(
        "[secrets.{name}] signs requests for AWS, and the variable {variable} with the key's id is not set"
    )]
    NoKeyId {
        /// The secret's name.
        name: String,
        /// The variable.
        variable: String,
    },
    /// The kernel gave no random bytes.
    #[error("there are no random bytes to make a placeholder of")]
    Random,
}

impl SecretError {
    /// What to do about it.
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            Self::NoKeyring { .. } => "apt install libsecret-tools".to_owned(),
            Self::Keyring { entry, .. } => format!("secret-tool store --label={entry} service {entry}"),
            Self::NoKeyId { variable, .. } => format!("export {variable}=ID"),
            Self::File { path, .. } => format!("ls -l {}", path.display()),
            Self::Command { program, .. } => format!("run {program} by itself to see what it says"),
            Self::Odd { name, .. } => {
                format!("redoma policy show   # [secrets.{name}] says where it is from")
            }
            Self::Random => "try again".to_owned(),
        }
    }
}

/// Longer than any credential.
const LONGEST: usize = 16 << 10;

type Variable<'a> = &'a dyn Fn(&str) -> Option<OsString>;

/// The credential of a rule; none if its variable is not set.
pub(super) fn credential(
    rule: &SecretRule,
    variable: Variable<'_>,
) -> Result<Option<Credential>, SecretError> {
    let Some(real) = read(rule, variable)? else { return Ok(None) };
    let real = usable(rule, real)?;
    let aws = match &rule.place {
        SecretPlace::Aws { access_key_id, session_token } => {
            Some(aws_key(rule, access_key_id, session_token, variable)?)
        }
        _ => None,
    };
    let placeholder = placeholder::draw(&real)?;
    Ok(Some(Credential { rule: rule.clone(), real, placeholder, aws }))
}

fn read(rule: &SecretRule, variable: Variable<'_>) -> Result<Option<Vec<u8>>, SecretError> {
    let name = rule.name.clone();
    match &rule.source {
        SecretSource::Env(from) => {
            let set = variable(from).filter(|value| !value.is_empty());
            Ok(set.map(std::os::unix::ffi::OsStringExt::into_vec))
        }
        SecretSource::File(path) => {
            let read = file(path);
            read.map(Some).map_err(|source| SecretError::File { name, path: path.clone(), source })
        }
        SecretSource::Command(words) => {
            let program = words.first().cloned().unwrap_or_default();
            let output = run::output(words, LONGEST);
            output.map(Some).map_err(|source| SecretError::Command { name, program, source })
        }
        SecretSource::Keyring(entry) => keyring(rule, entry).map(Some),
    }
}

fn file(path: &Path) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    let file = File::open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file"));
    }
    // One more than there may be, so that what is too long is noticed.
    file.take(LONGEST as u64 + 1).read_to_end(&mut content)?;
    Ok(content)
}

/// Asked by libsecret's own program: it is small, and speaks the encrypted transfer of the Secret Service. An entry is
/// the value of the attribute `service`, or attributes by themselves: `service=x,account=y`.
fn keyring(rule: &SecretRule, entry: &str) -> Result<Vec<u8>, SecretError> {
    let name = rule.name.clone();
    let mut words = vec!["secret-tool".to_owned(), "lookup".to_owned()];
    if entry.contains('=') {
        let attributes = entry.split(',').filter_map(|attribute| attribute.split_once('='));
        words.extend(attributes.flat_map(|(key, value)| [key.trim().to_owned(), value.trim().to_owned()]));
    } else {
        words.extend(["service".to_owned(), entry.to_owned()]);
    }
    run::output(&words, LONGEST).map_err(|source| match source.kind() {
        io::ErrorKind::NotFound => SecretError::NoKeyring { name },
        _ => SecretError::Keyring { name, entry: entry.to_owned(), source },
    })
}

/// The value without the newline that files and programs end with.
fn usable(rule: &SecretRule, mut read: Vec<u8>) -> Result<Secret<String>, SecretError> {
    let odd = |what| SecretError::Odd { name: rule.name.clone(), what, place: rule.source.to_string() };
    let length = read.trim_ascii_end().len();
    read.truncate(length);
    if read.is_empty() {
        return Err(odd("empty"));
    }
    if read.len() > LONGEST {
        read.zeroize();
        return Err(odd("longer than any credential"));
    }
    let text = String::from_utf8(read).map_err(|error| {
        error.into_bytes().zeroize();
        odd("not UTF-8")
    })?;
    let text = Secret::new(text);
    // Whatever the place, it stands in one line.
    if text.expose().contains(char::is_control) || HeaderValue::from_str(text.expose()).is_err() {
        return Err(odd("of several lines, or has characters that no header can have"));
    }
    Ok(text)
}

fn aws_key(rule: &SecretRule, id: &str, token: &str, variable: Variable<'_>) -> Result<AwsKey, SecretError> {
    let pair = |name: &str| {
        let Some(value) = variable(name).filter(|value| !value.is_empty()) else { return Ok(None) };
        let real = usable(rule, std::os::unix::ffi::OsStringExt::into_vec(value))?;
        let placeholder = placeholder::draw(&real)?;
        Ok(Some(Pair { variable: name.to_owned(), real, placeholder }))
    };
    let missing = || SecretError::NoKeyId { name: rule.name.clone(), variable: id.to_owned() };
    Ok(AwsKey { id: pair(id)?.ok_or_else(missing)?, token: pair(token)? })
}
