//! Files left in the project for the host to trip over, and the devices lent to a sandbox.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, makedev, mknodat, openat2};

use crate::attempt::{Attempt, Outcome, Section};
use crate::plant::Planted;
use crate::stage::Stage;

const fn left(name: &'static str, what: &'static str, run: fn(&Stage) -> Outcome) -> Attempt {
    Attempt::new(Section::Files, name, what, run).judged(dangerous_file)
}

pub(super) const ATTEMPTS: &[Attempt] = &[
    left("setuid-chmod", "leave a setuid program in the project", |stage| {
        done(program(stage).and_then(|path| fs::set_permissions(path, fs::Permissions::from_mode(0o4755))))
    }),
    left("setuid-fchmod", "the same through a descriptor", |stage| {
        let file = program(stage).and_then(fs::File::open);
        done(file.and_then(|file| file.set_permissions(fs::Permissions::from_mode(0o4755))))
    }),
    left("setuid-create", "the same by the mode at creation", |stage| {
        let path = stage.project.join("born-setuid");
        done(OpenOptions::new().write(true).create_new(true).mode(0o4755).open(path).map(drop))
    }),
    left("setuid-openat2", "the same with the mode in memory, where no filter sees it", |stage| {
        let flags = OFlags::CREATE | OFlags::WRONLY;
        let mode = Mode::SUID | Mode::RWXU;
        let path = stage.project.join("born-setuid-2");
        done(openat2(CWD, path, flags, mode, ResolveFlags::empty()).map(drop).map_err(Into::into))
    }),
    left("setgid-chmod", "leave a setgid program in the project", |stage| {
        done(program(stage).and_then(|path| fs::set_permissions(path, fs::Permissions::from_mode(0o2755))))
    }),
    left("device-char", "leave the memory's device node in the project", |stage| {
        done(node(stage, FileType::CharacterDevice, 1, 1))
    })
    .root()
    .harmful(),
    left("device-block", "leave a disk's device node in the project", |stage| {
        done(node(stage, FileType::BlockDevice, 8, 0))
    })
    .root()
    .harmful(),
    Attempt::new(
        Section::Files,
        "device-chmod",
        "set the mode of the host's /dev/null to what it is",
        |_| {
            let path = Path::new("/dev/null");
            done(path.metadata().and_then(|now| fs::set_permissions(path, now.permissions())))
        },
    )
    .root(),
    Attempt::new(Section::Files, "device-open", "open the memory, a disk, a hypervisor or a tunnel", |_| {
        let devices = DEVICES.iter().map(Path::new).filter(|path| path.exists());
        Outcome::any(devices.map(|path| done(OpenOptions::new().read(true).write(true).open(path).map(drop))))
    })
    .root()
    .optional(),
];

const DEVICES: &[&str] = &[
    "/dev/mem",
    "/dev/port",
    "/dev/kmsg",
    "/dev/kvm",
    "/dev/net/tun",
    "/dev/fuse",
    "/dev/sda",
    "/dev/vda",
    "/dev/nvme0n1",
    "/dev/loop-control",
    "/dev/uinput",
    "/dev/tty1",
    "/dev/console",
    "/dev/vhost-vsock",
];

fn done(result: io::Result<()>) -> Outcome {
    Outcome::of(result, "the call was carried out")
}

fn program(stage: &Stage) -> io::Result<PathBuf> {
    let path = stage.project.join("program");
    fs::write(&path, "#!/bin/sh\n")?;
    Ok(path)
}

fn node(stage: &Stage, kind: FileType, major: u32, minor: u32) -> io::Result<()> {
    Ok(mknodat(CWD, stage.project.join("node"), kind, Mode::RUSR, makedev(major, minor))?)
}

fn dangerous_file(planted: &Planted) -> Option<String> {
    let entries = fs::read_dir(&planted.stage().project).ok()?.flatten();
    entries.map(|entry| entry.path()).find_map(|path| {
        let metadata = path.symlink_metadata().ok()?;
        let kind = metadata.file_type();
        let special = kind.is_char_device() || kind.is_block_device();
        let privileged = kind.is_file() && metadata.mode() & 0o6000 != 0;
        (special || privileged).then(|| format!("{} was left on the host", path.display()))
    })
}
