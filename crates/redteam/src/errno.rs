use std::io;

use rustix::io::Errno;

/// Names of the errors a refusal comes with, as `errno(3)` spells them.
const NAMES: &[(Errno, &str)] = &[
    (Errno::ACCESS, "EACCES"),
    (Errno::AFNOSUPPORT, "EAFNOSUPPORT"),
    (Errno::AGAIN, "EAGAIN"),
    (Errno::BADF, "EBADF"),
    (Errno::BUSY, "EBUSY"),
    (Errno::CONNREFUSED, "ECONNREFUSED"),
    (Errno::EXIST, "EEXIST"),
    (Errno::FAULT, "EFAULT"),
    (Errno::HOSTUNREACH, "EHOSTUNREACH"),
    (Errno::INVAL, "EINVAL"),
    (Errno::IO, "EIO"),
    (Errno::ISDIR, "EISDIR"),
    (Errno::LOOP, "ELOOP"),
    (Errno::MFILE, "EMFILE"),
    (Errno::NETUNREACH, "ENETUNREACH"),
    (Errno::NODEV, "ENODEV"),
    (Errno::NOENT, "ENOENT"),
    (Errno::NOEXEC, "ENOEXEC"),
    (Errno::NOKEY, "ENOKEY"),
    (Errno::NOMEM, "ENOMEM"),
    (Errno::NOSPC, "ENOSPC"),
    (Errno::NOSYS, "ENOSYS"),
    (Errno::NOTDIR, "ENOTDIR"),
    (Errno::NOTSUP, "EOPNOTSUPP"),
    (Errno::NOTTY, "ENOTTY"),
    (Errno::NXIO, "ENXIO"),
    (Errno::PERM, "EPERM"),
    (Errno::PROTONOSUPPORT, "EPROTONOSUPPORT"),
    (Errno::ROFS, "EROFS"),
    (Errno::SRCH, "ESRCH"),
    (Errno::STALE, "ESTALE"),
    (Errno::TIMEDOUT, "ETIMEDOUT"),
    (Errno::XDEV, "EXDEV"),
];

/// The errno's name, its number when it has no entry above, or the error's own words.
pub(crate) fn name(error: &io::Error) -> String {
    let Some(number) = error.raw_os_error() else { return error.to_string() };
    NAMES
        .iter()
        .find(|(errno, _)| errno.raw_os_error() == number)
        .map_or_else(|| format!("errno {number}"), |(_, name)| (*name).to_owned())
}

/// Whether a filter, a missing capability or a missing call answered, rather than the call itself.
pub(crate) fn is_refusal(error: &io::Error) -> bool {
    [Errno::PERM, Errno::ACCESS, Errno::NOSYS]
        .iter()
        .any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}
