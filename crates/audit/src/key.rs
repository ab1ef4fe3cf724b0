//! The key that signs, and the keys that signatures are checked with.
//!
//! The secret half lies in the keys folder, which no sandbox can read. Signatures therefore show changes by whoever
//! can write the log but cannot read the key; the owner of both could always rewrite everything.

use std::collections::HashMap;
use std::io::{Read, Write};

use aws_lc_rs::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};
use rustix::fs::OFlags;

use crate::digest::{decode_hex, encode_hex};
use crate::folder::{Folder, PRIVATE, check_access};
use crate::{Digest, Error, SessionId};

const SECRET: &str = "audit.key";
const KEY_FIELD: &[u8] = br#","key":""#;
const SIG_FIELD: &[u8] = br#"","sig":""#;
const KEY_LEN: usize = 16;
const SIG_LEN: usize = 128;
/// Where the signed part of a sealed line ends, counted from its end: `","sig":"…"}`.
const UNSIGNED_LEN: usize = SIG_FIELD.len() + SIG_LEN + 2;

/// What a signature is for, so that a line cannot be moved to another file.
#[derive(Clone, Copy)]
pub(crate) enum Purpose {
    Session(SessionId),
    Ledger,
}

/// The secret half.
pub(crate) struct Signer {
    pair: Ed25519KeyPair,
    id: String,
}

/// The public halves of every key that was ever made here, by their name.
#[derive(Default)]
pub(crate) struct KeyRing(HashMap<String, Vec<u8>>);

// === impl Purpose ===

impl Purpose {
    fn message(self, line: &[u8]) -> Vec<u8> {
        match self {
            Self::Session(id) => [b"redoma audit session v1\0", id.as_str().as_bytes(), line].concat(),
            Self::Ledger => [&b"redoma audit ledger v1\0"[..], line].concat(),
        }
    }
}

// === impl Signer ===

impl Signer {
    /// Loads the key in `keys`, which is made at first use.
    ///
    /// # Errors
    /// [`Error::Key`] if the file holds no key, [`Error::Owner`] and [`Error::Mode`] if others can have it.
    pub(crate) fn load_or_create(keys: &Folder) -> Result<Self, Error> {
        match Self::load(keys)? {
            Some(signer) => Ok(signer),
            None => Self::create(keys),
        }
    }

    fn load(keys: &Folder) -> Result<Option<Self>, Error> {
        let Some(file) = keys.existing(SECRET, OFlags::RDONLY)? else { return Ok(None) };
        let path = keys.path(SECRET);
        check_access(&file, &path, PRIVATE)?;
        let mut hex = String::new();
        file.take(128)
            .read_to_string(&mut hex)
            .map_err(|source| Error::Read { path: path.clone(), source })?;
        let seed = decode_hex(hex.trim_end().as_bytes()).ok_or(Error::Key { path })?;
        Self::from_seed(keys, &seed).map(Some)
    }

    /// Two processes may be the first at the same time: the link decides, and the other takes the winner's key.
    fn create(keys: &Folder) -> Result<Self, Error> {
        let seed = crate::random::<32>()?;
        let signer = Self::from_seed(keys, &seed)?;
        // The public half comes first: a signature that nobody could check must not exist.
        write_new(keys, &public_name(&signer.id), signer.pair.public_key().as_ref())?;
        write_new(keys, SECRET, &seed)?;
        Self::load(keys)?.ok_or_else(|| Error::Key { path: keys.path(SECRET) })
    }

    fn from_seed(keys: &Folder, seed: &[u8; 32]) -> Result<Self, Error> {
        let pair =
            Ed25519KeyPair::from_seed_unchecked(seed).map_err(|_| Error::Key { path: keys.path(SECRET) })?;
        let id = key_id(pair.public_key().as_ref());
        Ok(Self { pair, id })
    }

    /// Closes a line that lacks its last brace with the name of the key and a signature over all before it.
    pub(crate) fn seal(&self, purpose: Purpose, line: &mut Vec<u8>, start: usize) {
        line.extend_from_slice(KEY_FIELD);
        line.extend_from_slice(self.id.as_bytes());
        let signature = self.pair.sign(&purpose.message(&line[start..]));
        line.extend_from_slice(SIG_FIELD);
        line.extend_from_slice(encode_hex(signature.as_ref()).as_bytes());
        line.extend_from_slice(br#""}"#);
    }
}

// === impl KeyRing ===

impl KeyRing {
    /// Reads the public halves in `keys`.
    pub(crate) fn load(keys: &Folder) -> Result<Self, Error> {
        let mut ring = Self::default();
        for name in
            keys.names()?.into_iter().filter(|name| name.starts_with("audit-") && name.ends_with(".pub"))
        {
            let mut hex = String::new();
            let file = keys.file(&name, OFlags::RDONLY)?;
            file.take(128)
                .read_to_string(&mut hex)
                .map_err(|source| Error::Read { path: keys.path(&name), source })?;
            let public: [u8; 32] =
                decode_hex(hex.trim_end().as_bytes()).ok_or(Error::Key { path: keys.path(&name) })?;
            // The name of a file says nothing; the name of a key is its hash.
            ring.0.insert(key_id(&public), public.to_vec());
        }
        Ok(ring)
    }

    /// The names of the keys.
    pub(crate) fn ids(&self) -> Vec<String> {
        let mut ids: Vec<String> = self.0.keys().cloned().collect();
        ids.sort();
        ids
    }

    /// Whether `line` is sealed by one of these keys.
    ///
    /// # Errors
    /// What does not fit.
    pub(crate) fn check(&self, purpose: Purpose, line: &[u8]) -> Result<(), &'static str> {
        let signed = line.len().checked_sub(UNSIGNED_LEN).ok_or("it is not signed")?;
        let (signed, seal) = line.split_at(signed);
        let signature = seal.strip_prefix(SIG_FIELD).and_then(|rest| rest.strip_suffix(br#""}"#));
        let signature: [u8; SIG_LEN / 2] =
            signature.and_then(decode_hex).ok_or("its signature is malformed")?;
        let id = signed.len().checked_sub(KEY_LEN).and_then(|at| str::from_utf8(&signed[at..]).ok());
        let key = id.and_then(|id| self.0.get(id)).ok_or("it is signed by a key that is not known here")?;
        UnparsedPublicKey::new(&ED25519, key)
            .verify(&purpose.message(signed), &signature)
            .map_err(|_| "its signature is false")
    }
}

/// The name of a key: the first eight bytes of its hash.
fn key_id(public: &[u8]) -> String {
    encode_hex(&Digest::of(public).as_bytes()[..KEY_LEN / 2])
}

fn public_name(id: &str) -> String {
    format!("audit-{id}.pub")
}

/// Writes `name` whole or not at all; an existing file stays.
fn write_new(keys: &Folder, name: &str, bytes: &[u8]) -> Result<(), Error> {
    let draft = format!(".{name}.{}", encode_hex(&crate::random::<8>()?));
    let failed = |source| Error::Write { path: keys.path(name), source };
    let mut file = keys.file(&draft, OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL)?;
    let written = writeln!(file, "{}", encode_hex(bytes)).and_then(|()| file.sync_all());
    let linked = written.map_err(failed).and_then(|()| match keys.link(&draft, name) {
        Ok(()) | Err(rustix::io::Errno::EXIST) => Ok(()),
        Err(errno) => Err(failed(errno.into())),
    });
    keys.remove(&draft)?;
    linked
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn folder() -> (tempfile::TempDir, Folder) {
        let dir = tempfile::tempdir().unwrap();
        let keys = Folder::open(&dir.path().join("keys")).unwrap();
        (dir, keys)
    }

    fn sealed(signer: &Signer, purpose: Purpose) -> Vec<u8> {
        let mut line = br#"{"kind":"closed""#.to_vec();
        signer.seal(purpose, &mut line, 0);
        line
    }

    #[test]
    fn the_key_is_made_once_and_private() {
        let (dir, keys) = folder();
        let first = Signer::load_or_create(&keys).unwrap();
        assert_eq!(Signer::load_or_create(&keys).unwrap().id, first.id);
        let mode = std::fs::metadata(dir.path().join("keys/audit.key")).unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o600);
        assert_eq!(KeyRing::load(&keys).unwrap().ids(), std::slice::from_ref(&first.id));
        assert_eq!(keys.names().unwrap().iter().filter(|name| name.starts_with(".audit")).count(), 0);
    }

    #[test]
    fn a_key_others_can_read_is_refused_with_the_command_that_mends_it() {
        let (dir, keys) = folder();
        Signer::load_or_create(&keys).unwrap();
        let path = dir.path().join("keys/audit.key");
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o640)).unwrap();
        let error = Signer::load_or_create(&keys).err().unwrap();
        assert_eq!(error.hint().unwrap(), format!("chmod 600 '{}'", path.display()));
    }

    #[test]
    fn a_seal_holds_for_its_line_its_purpose_and_its_key_alone() {
        let (_dir, keys) = folder();
        let signer = Signer::load_or_create(&keys).unwrap();
        let ring = KeyRing::load(&keys).unwrap();
        let line = sealed(&signer, Purpose::Ledger);
        assert_eq!(ring.check(Purpose::Ledger, &line), Ok(()));
        assert!(ring.check(Purpose::Session(SessionId::random().unwrap()), &line).is_err());
        assert!(KeyRing::default().check(Purpose::Ledger, &line).is_err());
        for at in 0..line.len() {
            let mut other = line.clone();
            other[at] ^= 1;
            assert!(ring.check(Purpose::Ledger, &other).is_err(), "{at}");
        }
    }
}
