//! The sandbox's own `/proc`.

use std::os::fd::OwnedFd;
use std::path::Path;

use redoma_sys::{Errno, MountAttributes};
use rustix::fs::{Mode, OFlags};

use super::{Kind, Root, attach, pin, stored_tree};
use crate::blueprint::Cover;
use crate::error::{Failure, InStep, Step};

impl Root {
    /// A fresh proc shows this pid namespace only. What acts on the whole machine is read-only or covered: these
    /// files check for user 0 by its number, which the host's root has inside too.
    pub(super) fn mount_proc(&mut self, proc: &OwnedFd, nested_userns: bool) -> Result<(), Failure> {
        const READ_ONLY: [&str; 12] = [
            "sys",
            "sysrq-trigger",
            "irq",
            "bus",
            "fs",
            "acpi",
            "scsi",
            "asound",
            "driver",
            "dynamic_debug",
            "tty",
            "mtrr",
        ];
        const HIDDEN: [&str; 13] = [
            "kcore",
            "kmsg",
            "keys",
            "key-users",
            "timer_list",
            "sched_debug",
            "latency_stats",
            "kpagecount",
            "kpageflags",
            "kpagecgroup",
            "vmallocinfo",
            "slabinfo",
            "pagetypeinfo",
        ];
        self.attach_at(proc, Path::new("/proc"), Kind::Folder)?;
        if !nested_userns {
            self.forbid_nested().step(Step::ForbidNested)?;
        }
        self.share_watches().step(Step::ShareWatches)?;
        for name in READ_ONLY {
            self.where_present(&Path::new("/proc").join(name), |_, at, path| pin(&path, at, true))?;
        }
        let empty = self.store(&Cover::File(Vec::new(), 0o444)).step_at(Step::Create, "/proc")?;
        for name in HIDDEN {
            self.where_present(&Path::new("/proc").join(name), |_, at, path| {
                let tree = stored_tree(&empty, MountAttributes::READ_ONLY).step_at(Step::Place, at)?;
                attach(&tree, &path, "").step_at(Step::Place, at)
            })?;
        }
        Ok(())
    }

    /// The filter refuses new namespaces already; this holds where a hole in it would not. `namespaces(7)`.
    fn forbid_nested(&self) -> Result<(), Errno> {
        let flags = OFlags::WRONLY | OFlags::CLOEXEC;
        let limit =
            rustix::fs::openat(&self.folder, "proc/sys/user/max_user_namespaces", flags, Mode::empty())?;
        rustix::io::write(&limit, b"0").map(drop)
    }

    /// What may be watched is counted per user, and the keeper watches too: commands get half. See `inotify(7)`.
    fn share_watches(&self) -> Result<(), Errno> {
        for (host, own) in
            [("max_user_watches", "max_inotify_watches"), ("max_user_instances", "max_inotify_instances")]
        {
            let all = std::fs::read_to_string(Path::new("/proc/sys/fs/inotify").join(host));
            let Some(all) = all.ok().and_then(|text| text.trim().parse::<u64>().ok()) else { continue };
            let path = Path::new("proc/sys/user").join(own);
            let limit =
                rustix::fs::openat(&self.folder, path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
            rustix::io::write(&limit, (all / 2).to_string().as_bytes())?;
        }
        Ok(())
    }
}
