//! Three things that must not work, tried from inside before the first command.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::PathBuf;

use redoma_sys::Errno;
use rustix::fs::{CWD, Mode, OFlags};
use rustix::net::{AddressFamily, SocketType};

use crate::blueprint::Canary;
use crate::error::{Failure, Step};

/// Fails if any of them works: then there is no boundary, whatever the steps before have said.
pub(crate) fn sing(canary: &Canary) -> Result<(), Failure> {
    if rustix::fs::openat(CWD, &canary.read, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).is_ok() {
        return Err(Failure::at(Step::Canary, &canary.read, Errno::PERM));
    }
    let file = canary.write.join("written-by-the-canary");
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::CLOEXEC;
    if rustix::fs::openat(CWD, &file, flags, Mode::from_raw_mode(0o600)).is_ok() {
        return Err(Failure::at(Step::Canary, file, Errno::PERM));
    }
    let address = SocketAddrV4::new(Ipv4Addr::LOCALHOST, canary.connect);
    if connects(address) {
        return Err(Failure::at(Step::Canary, PathBuf::from(address.to_string()), Errno::PERM));
    }
    Ok(())
}

fn connects(address: SocketAddrV4) -> bool {
    rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None)
        .is_ok_and(|socket| rustix::net::connect(&socket, &address).is_ok())
}
