//! Who the user is to a registry: the files that `podman login` and `docker login` write.
//!
//! containers-auth.json(5). Programs that keep passwords elsewhere (`credsStore`, `credHelpers`) are not started: they are other
//! people's programs, and this one may be started where nobody is to answer their questions.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use data_encoding::{BASE64, BASE64_NOPAD};
use reqwest::header::HeaderValue;
use serde::Deserialize;
use zeroize::Zeroizing;

use super::challenge::bearer;
use crate::{Error, Reference};

/// A password or token. It is shown nowhere.
#[derive(Clone)]
pub struct Secret(Zeroizing<String>);

/// Who the user is to a registry.
#[derive(Debug, Clone)]
pub enum Credentials {
    /// Nobody.
    Anonymous,
    /// A name and a password.
    Basic {
        /// The name.
        user: String,
        /// The password, or what stands for it.
        password: Secret,
    },
    /// What is exchanged for a token each time (`identitytoken`).
    Identity(Secret),
    /// A token that is shown as it is (`registrytoken`).
    Token(Secret),
}

#[derive(Deserialize)]
struct AuthFile {
    #[serde(default)]
    auths: BTreeMap<String, Entry>,
}

#[derive(Deserialize)]
struct Entry {
    auth: Option<String>,
    username: Option<String>,
    password: Option<String>,
    identitytoken: Option<String>,
    registrytoken: Option<String>,
}

// === impl Secret ===

impl Secret {
    /// Keeps `text` to itself.
    #[must_use]
    pub fn new(text: String) -> Self {
        Self(Zeroizing::new(text))
    }

    pub(super) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}

// === impl Credentials ===

impl Credentials {
    /// What the user's files say about the registry of `reference`; variables are asked for through `var`.
    ///
    /// The first file of these that knows the registry decides: `$REGISTRY_AUTH_FILE`, which has to exist and is the only one
    /// then; `$XDG_RUNTIME_DIR/containers/auth.json`; `$DOCKER_CONFIG/config.json` or `~/.docker/config.json`.
    ///
    /// # Errors
    /// [`Error::AuthFile`].
    pub fn find(reference: &Reference, var: &dyn Fn(&str) -> Option<OsString>) -> Result<Self, Error> {
        let folder = |name: &str| var(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        if let Some(path) = folder("REGISTRY_AUTH_FILE") {
            let missing = || Error::AuthFile { path: path.clone(), why: "it does not exist".into() };
            return Ok(in_file(&path, reference)?.ok_or_else(missing)?.unwrap_or(Self::Anonymous));
        }
        let podman = folder("XDG_RUNTIME_DIR").map(|folder| folder.join("containers/auth.json"));
        let docker = folder("DOCKER_CONFIG").or_else(|| folder("HOME").map(|home| home.join(".docker")));
        for path in podman.into_iter().chain(docker.map(|folder| folder.join("config.json"))) {
            if let Some(Some(found)) = in_file(&path, reference)? {
                return Ok(found);
            }
        }
        Ok(Self::Anonymous)
    }

    /// Whom the registry sees, for messages.
    pub(super) fn who(&self) -> String {
        match self {
            Self::Anonymous => "an anonymous user".into(),
            Self::Basic { user, .. } => user.clone(),
            Self::Identity(_) | Self::Token(_) => "the owner of this token".into(),
        }
    }

    /// RFC 7617.
    pub(super) fn basic(&self) -> Option<HeaderValue> {
        let Self::Basic { user, password } = self else { return None };
        let pair = Zeroizing::new(format!("{user}:{}", password.reveal()));
        let mut value = HeaderValue::from_str(&format!("Basic {}", BASE64.encode(pair.as_bytes()))).ok()?;
        value.set_sensitive(true);
        Some(value)
    }

    /// What is shown without being asked for.
    pub(super) fn bearer(&self) -> Option<HeaderValue> {
        let Self::Token(token) = self else { return None };
        bearer(token.reveal())
    }
}

/// `None` without a file, `Some(None)` where it does not know the registry.
fn in_file(path: &Path, reference: &Reference) -> Result<Option<Option<Credentials>>, Error> {
    let failed = |why: String| Error::AuthFile { path: path.into(), why };
    let text = match std::fs::read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        other => Zeroizing::new(other.map_err(|error| failed(error.to_string()))?),
    };
    // What serde would say could quote a password.
    let file: AuthFile = serde_json::from_slice(&text)
        .map_err(|error| failed(format!("line {} is not what is expected there", error.line())))?;
    let known =
        |key: &String| file.auths.iter().find(|(name, _)| place(name) == *key).map(|(_, entry)| entry);
    let Some(entry) = keys(reference).iter().find_map(known) else { return Ok(Some(None)) };
    entry.credentials().map(Some).ok_or_else(|| failed("a password in it cannot be read".into()))
}

/// What an entry may be called, the most exact first: with as much of the repository's path as it says.
fn keys(reference: &Reference) -> Vec<String> {
    let full = format!("{}/{}", reference.registry(), reference.repository());
    let ends = full.match_indices('/').map(|(at, _)| at).rev();
    std::iter::once(full.len()).chain(ends).map(|end| full[..end].to_owned()).collect()
}

/// Docker writes URLs, and another name for its own registry.
fn place(name: &str) -> String {
    let bare = name.trim_start_matches("https://").trim_start_matches("http://");
    let bare = bare.trim_end_matches('/').trim_end_matches("/v1").trim_end_matches("/v2");
    if bare == "index.docker.io" { "docker.io".into() } else { bare.into() }
}

// === impl Entry ===

impl Entry {
    /// `None` if it says something that cannot be read; an empty one is for nobody.
    fn credentials(&self) -> Option<Option<Credentials>> {
        let given = |field: &Option<String>| field.clone().filter(|text| !text.is_empty());
        if let Some(token) = given(&self.identitytoken) {
            return Some(Some(Credentials::Identity(Secret::new(token))));
        }
        if let Some(token) = given(&self.registrytoken) {
            return Some(Some(Credentials::Token(Secret::new(token))));
        }
        let (user, password) = match given(&self.auth) {
            Some(auth) => pair(&auth)?,
            None => match (given(&self.username), given(&self.password)) {
                (Some(user), Some(password)) => (user, password),
                _ => return Some(None),
            },
        };
        Some(Some(Credentials::Basic { user, password: Secret::new(password) }))
    }
}

fn pair(auth: &str) -> Option<(String, String)> {
    let bytes = BASE64.decode(auth.as_bytes()).or_else(|_| BASE64_NOPAD.decode(auth.as_bytes())).ok()?;
    let text = String::from_utf8(bytes).ok()?;
    // Docker pads with NULs.
    let (user, password) = text.trim_end_matches('\0').split_once(':')?;
    Some((user.to_owned(), password.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct World(tempfile::TempDir);

    impl World {
        fn with(files: &[(&str, &str)]) -> Self {
            let home = tempfile::tempdir().unwrap();
            for (name, text) in files {
                let path = home.path().join(name);
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(path, text).unwrap();
            }
            Self(home)
        }

        fn find(&self, reference: &str, variables: &[(&str, &str)]) -> Result<Credentials, Error> {
            let var = |name: &str| {
                let (_, value) = variables.iter().find(|(key, _)| *key == name)?;
                Some(self.0.path().join(value).into_os_string())
            };
            Credentials::find(&reference.parse().unwrap(), &var)
        }

        fn user(&self, reference: &str, variables: &[(&str, &str)]) -> String {
            self.find(reference, variables).unwrap().who()
        }
    }

    /// `NAME:secret`.
    fn auths(entries: &[(&str, &str)]) -> String {
        let auth = |user: &str| BASE64.encode(format!("{user}:secret").as_bytes());
        let entries: BTreeMap<_, _> =
            entries.iter().map(|(key, user)| (*key, serde_json::json!({ "auth": auth(user) }))).collect();
        serde_json::json!({ "auths": entries }).to_string()
    }

    const NOBODY: &str = "an anonymous user";

    #[test]
    fn files_are_asked_in_the_order_that_podman_asks_them() {
        let world = World::with(&[
            (".docker/config.json", &auths(&[("r.example.com", "docker"), ("s.example.com", "docker")])),
            ("run/containers/auth.json", &auths(&[("r.example.com", "podman")])),
            ("own.json", &auths(&[("t.example.com", "own")])),
        ]);
        let usual = [("HOME", "."), ("XDG_RUNTIME_DIR", "run")];
        assert_eq!(world.user("r.example.com/a", &usual), "podman");
        assert_eq!(world.user("s.example.com/a", &usual), "docker");
        assert_eq!(world.user("t.example.com/a", &usual), NOBODY);
        let own = [("HOME", "."), ("REGISTRY_AUTH_FILE", "own.json")];
        assert_eq!(
            (world.user("t.example.com/a", &own), world.user("s.example.com/a", &own)),
            ("own".into(), NOBODY.into())
        );
        assert!(world.find("a", &[("REGISTRY_AUTH_FILE", "missing.json")]).is_err());
    }

    #[test]
    fn the_most_exact_entry_decides() {
        let text = auths(&[
            ("r.example.com", "all"),
            ("r.example.com/team", "team"),
            ("https://index.docker.io/v1/", "hub"),
        ]);
        let world = World::with(&[(".docker/config.json", &text)]);
        let user = |reference| world.user(reference, &[("HOME", ".")]);
        assert_eq!(
            (user("r.example.com/team/a"), user("r.example.com/teams/a")),
            ("team".into(), "all".into())
        );
        assert_eq!((user("debian"), user("r.example.com.evil.example/a")), ("hub".into(), NOBODY.into()));
    }

    #[test]
    fn passwords_are_shown_nowhere() {
        let world = World::with(&[
            (".docker/config.json", &auths(&[("r.example.com", "me")])),
            ("broken.json", r#"{"auths":{"r.example.com":{"auth":["secret"]}}}"#),
        ]);
        let found = world.find("r.example.com/a", &[("HOME", ".")]).unwrap();
        assert!(!format!("{found:?} {:?}", found.basic()).contains("secret"));
        assert_eq!(found.basic().unwrap(), "Basic bWU6c2VjcmV0");
        let error = world.find("r.example.com/a", &[("REGISTRY_AUTH_FILE", "broken.json")]).unwrap_err();
        assert!(!error.to_string().contains("secret"), "{error}");
    }

    #[test]
    fn tokens_are_kinds_of_their_own() {
        let text = r#"{"auths":{"a.example.com":{"identitytoken":"x"},"b.example.com":{"registrytoken":"y"},
            "c.example.com":{},"d.example.com":{"auth":"???"}}}"#;
        let world = World::with(&[("f", text)]);
        let find = |reference| world.find(reference, &[("REGISTRY_AUTH_FILE", "f")]);
        assert!(matches!(find("a.example.com/x"), Ok(Credentials::Identity(_))));
        assert_eq!(find("b.example.com/x").unwrap().bearer().unwrap(), "Bearer y");
        assert!(matches!(find("c.example.com/x"), Ok(Credentials::Anonymous)));
        assert!(matches!(find("d.example.com/x"), Err(Error::AuthFile { .. })));
    }
}
