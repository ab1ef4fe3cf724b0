//! Extended attributes: xattr(7).
//!
//! Those of a name in a folder are reached by `/proc/self/fd/N/name`, which names the folder by its descriptor and, with the calls
//! that follow no link, is as safe as `getxattrat(2)`, which kernels before 6.13 do not have.

use std::collections::BTreeMap;
use std::ffi::{CStr, OsStr, OsString};
use std::os::fd::{AsFd, AsRawFd};

use rustix::fs::{XattrFlags, lgetxattr, listxattr, llistxattr, lsetxattr};
use rustix::io::{Errno, Result};

/// The most that the kernel lets names, or one value, take: `XATTR_LIST_MAX` and `XATTR_SIZE_MAX`.
const MOST: usize = 64 * 1024;

/// What begins the names of overlayfs's own attributes in a mount with `userxattr`.
pub(crate) const OVERLAY: &[u8] = b"user.overlay.";

/// What begins those that overlayfs shows as its own in a mount of its own: a nested one's.
pub(crate) const NESTED: &[u8] = b"user.overlay.overlay.";

/// How often a list that grows while it is read is asked for again.
const RETRIES: usize = 16;

/// Where attributes are.
pub(crate) enum Place<'a> {
    /// Of what is open; `O_PATH` will do.
    Open(&'a dyn AsRawFd),
    /// Of a name in an open folder.
    In(&'a dyn AsRawFd, &'a OsStr),
}

impl<'a> Place<'a> {
    pub(crate) fn within(dir: &'a (impl AsFd + AsRawFd), name: &'a OsStr) -> Self {
        Self::In(dir, name)
    }

    fn path(&self) -> OsString {
        match self {
            Self::Open(file) => format!("/proc/self/fd/{}", file.as_raw_fd()).into(),
            Self::In(dir, name) => {
                let mut path = OsString::from(format!("/proc/self/fd/{}/", dir.as_raw_fd()));
                path.push(name);
                path
            }
        }
    }

    /// The names of all attributes. File systems without attributes have none.
    pub(crate) fn names(&self) -> Result<Vec<Vec<u8>>> {
        let path = self.path();
        let list = |buffer: &mut [u8]| match self {
            Self::Open(_) => listxattr(&path, buffer),
            Self::In(..) => llistxattr(&path, buffer),
        };
        let names = grown(list);
        if names == Err(Errno::OPNOTSUPP) {
            return Ok(Vec::new());
        }
        Ok(names?.split(|byte| *byte == 0).filter(|name| !name.is_empty()).map(<[u8]>::to_vec).collect())
    }

    /// The value of an attribute, if it is there.
    pub(crate) fn get(&self, name: &[u8]) -> Result<Option<Vec<u8>>> {
        let path = self.path();
        let get = |buffer: &mut [u8]| match self {
            Self::Open(_) => rustix::fs::getxattr(&path, name, buffer),
            Self::In(..) => lgetxattr(&path, name, buffer),
        };
        match grown(get) {
            Err(Errno::NODATA) => Ok(None),
            value => value.map(Some),
        }
    }

    pub(crate) fn set(&self, name: &[u8], value: &[u8]) -> Result<()> {
        match self {
            Self::Open(_) => rustix::fs::setxattr(self.path(), name, value, XattrFlags::empty()),
            Self::In(..) => lsetxattr(self.path(), name, value, XattrFlags::empty()),
        }
    }

    /// All attributes that `wanted` wants.
    pub(crate) fn all(&self, wanted: impl Fn(&[u8]) -> bool) -> Result<BTreeMap<Vec<u8>, Vec<u8>>> {
        let mut all = BTreeMap::new();
        for name in self.names()?.into_iter().filter(|name| wanted(name)) {
            if let Some(value) = self.get(&name)? {
                all.insert(name, value);
            }
        }
        Ok(all)
    }
}

/// What `call` gives, in a small buffer first.
fn grown(call: impl Fn(&mut [u8]) -> Result<usize>) -> Result<Vec<u8>> {
    let mut buffer = vec![0; 256];
    for _ in 0..RETRIES {
        match call(&mut buffer) {
            Ok(length) => {
                buffer.truncate(length);
                return Ok(buffer);
            }
            Err(Errno::RANGE) if buffer.len() < MOST => buffer.resize(MOST, 0),
            Err(error) => return Err(error),
        }
    }
    Err(Errno::AGAIN)
}

/// Whether an attribute belongs to a file's content rather than to the file system it is on: the user's own, access lists and
/// capabilities of programs.
pub(crate) fn is_content(name: &[u8]) -> bool {
    let known: [&CStr; 3] = [c"security.capability", c"system.posix_acl_access", c"system.posix_acl_default"];
    name.starts_with(b"user.") || known.iter().any(|known| known.to_bytes() == name)
}

/// The name under which a mounted chain shows an attribute, if it shows it.
pub(crate) fn shown(name: &[u8]) -> Option<Vec<u8>> {
    match name.strip_prefix(NESTED) {
        Some(rest) => Some([OVERLAY, rest].concat()),
        None => (is_content(name) && !name.starts_with(OVERLAY)).then(|| name.to_vec()),
    }
}
