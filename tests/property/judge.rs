//! Compares what was said with what was done, by what became of the host's files.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use proptest::test_runner::TestCaseError;
use proptest::{prop_assert, prop_assert_eq};
use redoma_policy::{Access, Place, Question, Verdict, Workspace};
use redoma_sandbox::why::Act;
use redoma_tests::{Ran, Tier};

use crate::attempt::{Attempt, Change, Is, Probe};
use crate::tree::{Grove, Kept, Kind, Places, Plant, SENTINEL, below};
use crate::why::{Why, reaches_the_host};

type Judgement = Result<(), TestCaseError>;

/// What `why` said about every probe before the session began.
pub(crate) struct Said {
    read: Vec<Verdict>,
    write: Vec<Verdict>,
    /// Whether the sentinel that the path holds, if it is a folder, can be read.
    listed: Vec<bool>,
    /// The planted file that each probe leads to.
    files: Vec<Option<usize>>,
}

impl Said {
    pub(crate) fn of(why: &Why, attempt: &Attempt, grove: &Grove) -> Self {
        let all = |act| attempt.probes.iter().map(move |probe| why.path(act, &probe.path).1);
        let file = |probe: &Probe| {
            let inode = grove.file_at(&probe.path)?.inode;
            grove.files.iter().position(|file| file.inode == inode)
        };
        let listed = |probe: &Probe| reaches_the_host(&why.path(Act::Read, &probe.path.join(SENTINEL)).1);
        Self {
            listed: attempt.probes.iter().map(listed).collect(),
            read: all(Act::Read).collect(),
            write: all(Act::Write).collect(),
            files: attempt.probes.iter().map(file).collect(),
        }
    }
}

/// One session that ran, and all that is known about it.
pub(crate) struct Judge<'a> {
    pub(crate) tier: Tier,
    pub(crate) why: &'a Why,
    pub(crate) places: &'a Places,
    pub(crate) grove: &'a Grove,
    pub(crate) attempt: &'a Attempt,
    pub(crate) said: &'a Said,
    pub(crate) ran: &'a Ran,
}

impl Judge<'_> {
    pub(crate) fn all(&self) -> Judgement {
        let after = After::look(self.places);
        for at in 0..self.attempt.probes.len() {
            self.read(at)?;
            match self.attempt.probes[at].is {
                Is::File => self.write(at, &after)?,
                Is::Absent => self.create(at, &after)?,
                Is::Folder => {}
            }
        }
        self.grove.files.iter().enumerate().try_for_each(|(at, file)| self.file(at, file, &after))?;
        self.names(&after)?;
        self.nothing_new(&after)
    }

    fn read(&self, at: usize) -> Judgement {
        let (probe, verdict) = (&self.attempt.probes[at], &self.said.read[at]);
        let shown = self.attempt.shown(self.ran, at);
        let seen = match (probe.is, self.said.files[at]) {
            (Is::File, Some(file)) => shown.contains(&self.grove.files[file].marker),
            (Is::Folder, _) if self.said.listed[at] != reaches_the_host(verdict) => return Ok(()),
            (Is::Folder, _) => shown.lines().any(|name| name == SENTINEL),
            _ => return Ok(()),
        };
        if seen && self.granted_by_another_name(at, &self.said.read) {
            return Ok(());
        }
        prop_assert_eq!(seen, reaches_the_host(verdict), "read {:?}: {:?}\n{}", probe, verdict, shown);
        Ok(())
    }

    /// A Landlock rule for a single file holds for the file, under whatever name.
    fn granted_by_another_name(&self, at: usize, verdicts: &[Verdict]) -> bool {
        let file = self.said.files[at];
        let mut names = self.said.files.iter().zip(verdicts).filter(|(leads, _)| **leads == file);
        self.tier == Tier::Landlock && file.is_some() && names.any(|(_, verdict)| reaches_the_host(verdict))
    }

    /// An existing file was changed through this path if and only if that was said.
    fn write(&self, at: usize, after: &After) -> Judgement {
        let (probe, verdict) = (&self.attempt.probes[at], &self.said.write[at]);
        // A link may lead to a file of the system.
        let Some(file) = self.said.files[at] else { return Ok(()) };
        if reaches_the_host(verdict) {
            return self.changed(at, &self.grove.files[file]);
        }
        if self.granted_by_another_name(at, &self.said.write) {
            return Ok(());
        }
        prop_assert!(!after.holds(&Probe::marker(at)), "wrote {probe:?}: {verdict:?}");
        let written = self.grove.files.iter().any(|file| file.text().contains(&Probe::marker(at)));
        prop_assert!(!written, "wrote {probe:?}: {verdict:?}");
        Ok(())
    }

    fn changed(&self, at: usize, file: &Kept) -> Judgement {
        let (probe, verdict) = (&self.attempt.probes[at], &self.said.write[at]);
        let emptied = !file.text().contains(&file.marker);
        let appended = file.text().contains(&Probe::marker(at));
        prop_assert!(appended || emptied, "could not write {probe:?}: {verdict:?}");
        if !(self.renamable(&probe.path) && file.links == 1) {
            return Ok(());
        }
        let status = file.status();
        let moved = fs::symlink_metadata(&probe.path).map_or(true, |now| now.ino() != file.inode.1);
        let done = match probe.change {
            Change::Nothing => true,
            Change::Rename => moved,
            Change::Remove | Change::Replace => status.nlink() == 0,
            Change::Mode => status.mode() & 0o777 == 0o707,
            Change::HardLink => status.nlink() != 1,
            Change::Truncate => emptied,
        };
        prop_assert!(done, "could not change {probe:?}: {verdict:?}");
        Ok(())
    }

    /// A file that is granted by itself is a mount: it can be written, its name cannot be changed.
    fn renamable(&self, path: &Path) -> bool {
        let files = &self.why.policy().filesystem;
        let folder = path.parent().unwrap();
        let writable = reaches_the_host(&self.why.decide(&Question::Write(folder)));
        writable && files.grants.iter().all(|grant| grant.path != path)
    }

    /// A missing path was made on the host if and only if that was said.
    fn create(&self, at: usize, after: &After) -> Judgement {
        let (probe, verdict) = (&self.attempt.probes[at], &self.said.write[at]);
        // Where a link leads, another probe may have made something.
        let exists = fs::symlink_metadata(&probe.path).is_ok_and(|status| !status.is_symlink());
        let written = after.holds(&Probe::marker(at));
        if reaches_the_host(verdict) {
            let done = exists || written || probe.judged || self.attempt.spoilt(probe);
            prop_assert!(done, "could not make {probe:?}: {verdict:?}");
            return Ok(());
        }
        prop_assert!(!exists || self.is_judged(&probe.end, verdict), "made {probe:?}: {verdict:?}");
        // What was made under a forbidden name may have been renamed before it was moved away.
        prop_assert!(!written || verdict.place == Place::Quarantined, "wrote {probe:?}: {verdict:?}");
        Ok(())
    }

    /// A file that no name lets one write is as it was, and the names that it has now do not either. A file that no
    /// name lets one read was never shown, by whatever detour.
    fn file(&self, at: usize, file: &Kept, after: &After) -> Judgement {
        let through = |verdicts: &[Verdict]| {
            let leading = self.said.files.iter().zip(verdicts).filter(|(leads, _)| **leads == Some(at));
            leading.map(|(_, verdict)| verdict.clone()).collect::<Vec<_>>()
        };
        let (read, write) = (through(&self.said.read), through(&self.said.write));
        if !read.iter().any(reaches_the_host) {
            prop_assert!(!self.ran.out().contains(&file.marker), "{} was shown: {read:?}", file.marker);
        }
        if write.iter().any(reaches_the_host) {
            return Ok(());
        }
        prop_assert_eq!(file.text(), Kept::content(&file.marker), "{:?}", write);
        prop_assert_eq!(file.status().nlink(), file.links, "links of {}: {:?}", &file.marker, write);
        // Without mounts nothing stands between an owner and the mode: see docs/en/tiers.md.
        if self.tier == Tier::Full {
            prop_assert_eq!(file.status().mode(), file.mode, "mode of {}: {:?}", &file.marker, write);
        }
        let open = after.names_of(file.inode).find(|name| self.host_writable(name));
        prop_assert!(open.is_none(), "{} is now {open:?}: {write:?}", file.marker);
        Ok(())
    }

    /// Every planted name is still there, unless it or a folder above it may be changed.
    fn names(&self, after: &After) -> Judgement {
        for plant in &self.grove.plants {
            let kept = after.names_of(plant.inode).any(|name| *name == plant.path);
            let above = plant.path.ancestors().take_while(|path| path.starts_with(self.top(&plant.path)));
            let free = || above.clone().any(|path| self.host_writable(path));
            prop_assert!(kept || free(), "{:?} is gone", plant);
            if plant.kind == Kind::Folder && !self.host_writable(&plant.path) {
                let names: Vec<_> = after.names_of(plant.inode).collect();
                let held = !names.is_empty() && !names.iter().any(|name| self.host_writable(name));
                prop_assert!(held, "{plant:?} is now {names:?}");
            }
        }
        Ok(())
    }

    /// Nothing was made on the host where nothing may be made.
    fn nothing_new(&self, after: &After) -> Judgement {
        let planted = |inode| self.grove.plants.iter().any(|plant| plant.inode == inode);
        for (path, _) in after.entries.iter().filter(|(_, inode)| !planted(*inode)) {
            let verdict = self.why.decide(&Question::Create { path, below: self.top(path) });
            let allowed = reaches_the_host(&verdict) || self.is_judged(path, &verdict);
            prop_assert!(allowed, "{} was made: {verdict:?}", path.display());
        }
        Ok(())
    }

    /// Whether a path lies in a repository that the session made, where what is protected is left until the end, and
    /// then if it is harmless.
    fn is_judged(&self, path: &Path, verdict: &Verdict) -> bool {
        let repository = path.ancestors().find(|folder| folder.ends_with(".git"));
        let new = |it: &Path| !self.grove.of(Kind::Folder).any(|plant| plant.path == it);
        let mut protect = self.why.policy().filesystem.protect.iter();
        repository.is_some_and(new) && protect.any(|rule| Some(&rule.origin) == verdict.rule.as_ref())
    }

    fn host_writable(&self, path: &Path) -> bool {
        reaches_the_host(&self.why.decide(&Question::Write(path)))
    }

    fn top(&self, path: &Path) -> &Path {
        self.places.all().into_iter().find(|top| path.starts_with(top)).unwrap_or(Path::new("/"))
    }
}

/// The host's trees when the session is over.
struct After {
    entries: Vec<(PathBuf, (u64, u64))>,
    texts: Vec<String>,
}

impl After {
    fn look(places: &Places) -> Self {
        let tops = places.all().into_iter();
        let paths: Vec<PathBuf> = tops.flat_map(|top| [vec![top.to_owned()], below(top)].concat()).collect();
        let status = |path: PathBuf| {
            let status = fs::symlink_metadata(&path).ok()?;
            Some((path, (status.dev(), status.ino())))
        };
        let mut entries: Vec<_> = paths.into_iter().filter_map(status).collect();
        entries.sort();
        entries.dedup();
        let regular = entries.iter().filter(|(path, _)| path.symlink_metadata().is_ok_and(|it| it.is_file()));
        let texts = regular.map(|(path, _)| fs::read_to_string(path).unwrap()).collect();
        Self { entries, texts }
    }

    fn holds(&self, marker: &str) -> bool {
        self.texts.iter().any(|text| text.contains(marker))
    }

    fn names_of(&self, inode: (u64, u64)) -> impl Iterator<Item = &PathBuf> {
        self.entries.iter().filter(move |(_, other)| *other == inode).map(|(path, _)| path)
    }
}

/// Whether a tier may refuse to start: nothing but what it has no way to enforce excuses that.
pub(crate) fn refusal_is_owed(tier: Tier, why: &Why, grove: &Grove) -> bool {
    let files = &why.policy().filesystem;
    let granted = |path: &Path| files.grant_for(path).is_some_and(|grant| grant.access == Access::Write);
    let ruled = |path: &Path| files.denied(path).is_some() || files.protected(path).is_some();
    let held =
        |path: &Path| files.protected(path).is_some() || !path.exists() && files.denied(path).is_some();
    let in_writable =
        |plant: &Plant, ruled: &dyn Fn(&Path) -> bool| granted(&plant.path) && ruled(&plant.path);
    match tier {
        // A link is nothing but a name, and a mount needs something to lie on. A change set is the whole project's.
        Tier::Full => {
            grove.of(Kind::Link).any(|link| in_writable(link, &held))
                || files.workspace == Workspace::Overlay && !granted(&why.policy().project)
        }
        Tier::Landlock => grove.plants.iter().any(|plant| in_writable(plant, &ruled)),
    }
}
