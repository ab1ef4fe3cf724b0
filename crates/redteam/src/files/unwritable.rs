//! Changing what may only be read, and what may not even be read.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::Path;

use rustix::fs::{
    AtFlags, CWD, IFlags, Timespec, Timestamps, UTIME_NOW, XattrFlags, ioctl_getflags, ioctl_setflags,
    setxattr, utimensat,
};

use crate::attempt::{Attempt, Outcome, Section};
use crate::stage::Stage;

/// Inside there may be a private file of this name; only the host's counts.
const fn on_host(name: &'static str, what: &'static str, run: fn(&Stage) -> Outcome) -> Attempt {
    Attempt::new(Section::Files, name, what, run).on_host()
}

pub(super) const ATTEMPTS: &[Attempt] = &[
    on_host("readonly-write", "write to a file that may only be read", |stage| done(write(&stage.book()))),
    on_host("readonly-append", "append to it", |stage| done(append(&stage.book()))),
    on_host("readonly-truncate", "cut it short", |stage| done(truncate(&stage.book()))),
    on_host("readonly-reopen", "open it for reading, then that descriptor for writing", |stage| {
        done(reopen(&stage.book()))
    }),
    on_host("readonly-chmod", "change its mode", |stage| done(chmod(&stage.book()))),
    on_host("readonly-fchmod", "change its mode through a descriptor for reading", |stage| {
        done(fchmod(&stage.book()))
    }),
    on_host("readonly-chown", "set its owner", |stage| done(set_owner(&stage.book()))),
    on_host("readonly-utimes", "set its times", |stage| done(set_times(&stage.book()))),
    on_host("readonly-xattr", "give it an extended attribute", |stage| done(set_attribute(&stage.book())))
        .optional(),
    on_host("readonly-flags", "set its inode flags", |stage| done(set_flags(&stage.book()))).optional(),
    on_host("readonly-rename", "rename it", |stage| {
        done(fs::rename(stage.book(), stage.library.join("renamed")))
    }),
    on_host("readonly-unlink", "remove it", |stage| done(fs::remove_file(stage.book()))),
    on_host("readonly-replace", "rename a file of one's own over it", |stage| {
        let own = stage.project.join("own");
        done(fs::write(&own, "mine").and_then(|()| fs::rename(own, stage.book())))
    }),
    on_host("readonly-link", "give it another name and write to that", |stage| {
        let name = stage.project.join("linked");
        done(fs::hard_link(stage.book(), &name).and_then(|()| write(&name)))
    }),
    on_host("readonly-create", "make a file in a folder that may only be read", |stage| {
        done(fs::write(stage.library.join("new.txt"), "mine"))
    }),
    on_host("readonly-mkdir", "make a folder there", |stage| done(fs::create_dir(stage.library.join("new")))),
    on_host("readonly-symlink", "make a link there", |stage| {
        done(symlink("/etc/passwd", stage.library.join("new-link")))
    }),
    on_host("readonly-folder-chmod", "change that folder's mode", |stage| done(chmod(&stage.library))),
    on_host("denied-write", "write to a denied file", |stage| done(write(&stage.secret()))),
    on_host("denied-truncate", "cut a denied file short", |stage| done(truncate(&stage.secret()))),
    on_host("denied-chmod", "change a denied file's mode", |stage| done(chmod(&stage.secret()))),
    on_host("denied-chown", "set a denied file's owner", |stage| done(set_owner(&stage.secret()))),
    on_host("denied-utimes", "set a denied file's times", |stage| done(set_times(&stage.secret()))),
    on_host("denied-xattr", "give a denied file an extended attribute", |stage| {
        done(set_attribute(&stage.secret()))
    })
    .optional(),
    on_host("denied-unlink", "remove a denied file", |stage| done(fs::remove_file(stage.secret()))),
    on_host("denied-unlink-nested", "remove a denied file below the writable project", |stage| {
        done(fs::remove_file(stage.nested_secret()))
    })
    .full_only(),
    on_host("denied-remove-tree", "remove a folder of the project that holds a denied file", |stage| {
        done(fs::remove_dir_all(stage.project.join("nest")))
    })
    .full_only(),
    on_host("ungranted-write", "write to a file that nothing grants", |stage| {
        done(write(&stage.outside.join("secret.txt")))
    }),
    on_host("ungranted-create", "make a file where nothing is granted", |stage| {
        done(fs::write(stage.outside.join("new.txt"), "mine"))
    }),
    on_host("ungranted-chmod", "change the mode of a file that nothing grants", |stage| {
        done(chmod(&stage.outside.join("secret.txt")))
    }),
    on_host("ungranted-utimes", "set the times of a file that nothing grants", |stage| {
        done(set_times(&stage.outside.join("secret.txt")))
    }),
    on_host("home-shell-startup", "append to the user's .bashrc", |stage| {
        done(append(&stage.home.join(".bashrc")))
    }),
    Attempt::new(Section::Files, "system-write", "open a file of the system for writing", |_| {
        done(OpenOptions::new().append(true).open(SYSTEM_FILE).map(drop))
    })
    .root(),
    Attempt::new(
        Section::Files,
        "system-chmod",
        "set the mode of a file of the system to what it is",
        |_| {
            done(
                Path::new(SYSTEM_FILE)
                    .metadata()
                    .and_then(|now| fs::set_permissions(SYSTEM_FILE, now.permissions())),
            )
        },
    )
    .root(),
];

/// A file of the system that every machine has, and that isn't running: opening a running program for
/// writing fails for that reason alone.
const SYSTEM_FILE: &str = "/etc/passwd";

fn done(result: io::Result<()>) -> Outcome {
    Outcome::of(result, "the call was carried out")
}

fn write(path: &Path) -> io::Result<()> {
    OpenOptions::new().write(true).open(path)?.write_all(b"overwritten")
}

fn append(path: &Path) -> io::Result<()> {
    OpenOptions::new().append(true).open(path)?.write_all(b"appended")
}

fn truncate(path: &Path) -> io::Result<()> {
    OpenOptions::new().write(true).truncate(true).open(path).map(drop)
}

fn reopen(path: &Path) -> io::Result<()> {
    let reading = File::open(path)?;
    append(Path::new(&format!("/proc/self/fd/{}", reading.as_raw_fd())))
}

fn chmod(path: &Path) -> io::Result<()> {
    fs::set_permissions(path, fs::Permissions::from_mode(path.metadata()?.mode() ^ 0o020))
}

fn fchmod(path: &Path) -> io::Result<()> {
    let file = File::open(path)?;
    file.set_permissions(fs::Permissions::from_mode(file.metadata()?.mode() ^ 0o020))
}

/// To who it belongs to already, which any owner may do and which moves the change time.
fn set_owner(path: &Path) -> io::Result<()> {
    let metadata = path.metadata()?;
    chown(path, Some(metadata.uid()), Some(metadata.gid()))
}

fn set_times(path: &Path) -> io::Result<()> {
    let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
    let times = Timestamps { last_access: now, last_modification: now };
    Ok(utimensat(CWD, path, &times, AtFlags::empty())?)
}

fn set_attribute(path: &Path) -> io::Result<()> {
    Ok(setxattr(path, "user.mine", b"1", XattrFlags::empty())?)
}

fn set_flags(path: &Path) -> io::Result<()> {
    let file = File::open(path)?;
    let flags = ioctl_getflags(&file)?;
    Ok(ioctl_setflags(&file, flags ^ IFlags::NODUMP)?)
}
