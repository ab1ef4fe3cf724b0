use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use redoma_policy::{Access, Layer, Origin, PathKind, PathPattern, PathRule, ResolvedPolicy};

use crate::gitguard::{self, Before};
use crate::homes::Homes;
use crate::settings::nearest_canonical;
use crate::walk::{FileKind, Found, Match, Verdict};

/// Denied and protected paths, as they are on this machine now.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    /// Existing, to be hidden.
    pub(crate) denied: Vec<Finding>,
    /// Existing, to be kept as they are.
    pub(crate) protected: Vec<Finding>,
    /// Paths that do not exist, lie in a writable folder and must not appear.
    pub(crate) absent: Vec<PathBuf>,
    /// Rules that follow from the policy's and that it does not spell: other names of what is held, and what must not
    /// appear beside it.
    implied: Vec<(Verdict, PathRule)>,
    /// Sockets and FIFOs, behind which something of the host may listen.
    pub(crate) specials: Vec<PathBuf>,
    /// Folders that cannot be looked into.
    pub(crate) unreadable: Vec<PathBuf>,
    /// The git repositories.
    pub(crate) git: Before,
}

/// An existing path and the rule that means it.
#[derive(Clone, Debug)]
pub(crate) struct Finding {
    pub(crate) path: PathBuf,
    pub(crate) kind: FileKind,
    pub(crate) origin: Origin,
    /// Folders above that must keep their names: the rule would not mean the path under another.
    pub(crate) held_by: Vec<PathBuf>,
}

impl Finding {
    fn new(path: &Path, kind: FileKind, rule: &PathRule) -> Self {
        let held_by =
            path.ancestors().skip(1).filter(|folder| !survives_renaming(&rule.pattern, path, folder));
        Self {
            path: path.to_owned(),
            kind,
            origin: rule.origin.clone(),
            held_by: held_by.map(Path::to_owned).collect(),
        }
    }
}

/// Whether the pattern still means `path` when `folder` above it has another name, there or deeper down. If not, what
/// is denied today could be moved out of the rule's reach today and read tomorrow.
fn survives_renaming(pattern: &PathPattern, path: &Path, folder: &Path) -> bool {
    let (Ok(below), Some(_)) = (path.strip_prefix(folder), folder.file_name()) else { return true };
    let names = ["any-other-name", "any-other/name"];
    names.into_iter().all(|name| pattern.matches(&folder.with_file_name(name).join(below)))
}

/// Numbers the rules as [`matcher`] does: the deny rules, then the protect rules.
fn rules(policy: &ResolvedPolicy) -> impl Iterator<Item = (Match, &PathRule)> {
    let files = &policy.filesystem;
    let with = |verdict| move |rule| (verdict, rule);
    let all =
        files.deny.iter().map(with(Verdict::Deny)).chain(files.protect.iter().map(with(Verdict::Protect)));
    all.enumerate().map(|(at, (verdict, rule))| (Match { verdict, rule: at as u32 }, rule))
}

/// The policy's globs, for the walk, which also takes note of git repositories.
pub(crate) fn matcher(policy: &ResolvedPolicy) -> impl Fn(&Path, FileKind) -> Option<Match> + Sync + '_ {
    let globs: Vec<_> = rules(policy).filter(|(_, rule)| rule.pattern.is_glob()).collect();
    let noted = Match { verdict: Verdict::Note, rule: u32::MAX };
    move |path, kind| match globs.iter().find(|(_, rule)| rule.pattern.matches(path)) {
        Some((matched, _)) => Some(*matched),
        None => gitguard::is_mark(path, kind).then_some(noted),
    }
}

/// Tells one set of globs from another, and one numbering of rules from another.
pub(crate) fn fingerprint(policy: &ResolvedPolicy) -> Vec<u8> {
    let globs = rules(policy).filter(|(_, rule)| rule.pattern.is_glob());
    let ruled =
        globs.flat_map(|(matched, rule)| format!("{}\0{}\n", matched.rule, rule.pattern).into_bytes());
    ruled.chain(*gitguard::MARKS_VERSION).collect()
}

/// Exact paths whose other names the walk looks for. Redoma's own folders, which no policy grants, have none that
/// could be seen.
pub(crate) fn sought(policy: &ResolvedPolicy, homes: &Homes) -> Vec<(PathBuf, Match)> {
    let own = [homes.config(), homes.state(), homes.run()];
    let exact = rules(policy).filter_map(|(matched, rule)| match &rule.pattern {
        PathPattern::Exact { path, found: Some(_), .. } => Some((path, matched)),
        _ => None,
    });
    let parts = exact.flat_map(|(path, matched)| {
        // Every session leaves files there.
        let parts = if homes.root() == Some(path) { entries(path) } else { None };
        parts.unwrap_or_else(|| vec![path.clone()]).into_iter().map(move |part| (part, matched))
    });
    parts.filter(|(path, _)| !own.iter().any(|folder| path.starts_with(folder))).collect()
}

/// What a folder holds, if all of it can be told.
fn entries(folder: &Path) -> Option<Vec<PathBuf>> {
    fs::read_dir(folder).ok()?.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>().ok()
}

impl Findings {
    /// The policy with a rule more for each path that is held although no rule spells it.
    pub(crate) fn spelled_out(&self, policy: &ResolvedPolicy) -> ResolvedPolicy {
        let mut spelled = policy.clone();
        let files = &mut spelled.filesystem;
        for (verdict, rule) in &self.implied {
            let list = if *verdict == Verdict::Deny { &mut files.deny } else { &mut files.protect };
            list.push(rule.clone());
        }
        for path in self.specials.iter().chain(&self.unreadable) {
            let origin = of_redoma("sockets and what cannot be looked into");
            files.deny.push(exact(path.clone(), kind_of(path), &origin));
        }
        spelled
    }

    /// Looks up the exact paths and sorts what the walk found.
    pub(crate) fn collect(policy: &ResolvedPolicy, found: &Found) -> Self {
        let mut findings = Self {
            specials: found
                .specials
                .iter()
                .filter(|(_, kind)| *kind != FileKind::Device)
                .map(|(path, _)| path.clone())
                .collect(),
            unreadable: found.unreadable.clone(),
            git: Before::look(found),
            ..Self::default()
        };
        let numbered: Vec<_> = rules(policy).collect();
        for (matched, rule) in &numbered {
            if let PathPattern::Exact { path, found, .. } = &rule.pattern {
                // What was not there a moment ago is watched for, and comes up then.
                let kind = found.and_then(|_| kind_of(path));
                findings.look_up(policy, *matched, path, kind, rule);
            }
        }
        let ruled = found.hits.iter().filter(|hit| hit.matched.verdict != Verdict::Note);
        let hits = ruled.map(|hit| (&hit.path, hit.kind, hit.matched));
        let aliases = found.aliases.iter().map(|alias| (&alias.path, FileKind::File, alias.matched));
        for (path, kind, matched) in hits.chain(aliases) {
            let rule = numbered[matched.rule as usize].1;
            if !rule.pattern.matches(path) {
                findings.implied.push((matched.verdict, exact(path.clone(), Some(kind), &rule.origin)));
            }
            if matched.verdict == Verdict::Protect {
                findings.look_beside(policy, path, rule);
            }
            let finding = Finding::new(path, kind, rule);
            // A glob means what exists, and behind a link that leads nowhere nothing does.
            if matched.verdict == Verdict::Protect || kind != FileKind::Symlink || path.exists() {
                findings.add(matched.verdict, finding);
            }
        }
        findings.absent.sort();
        findings.absent.dedup();
        let guarded = findings.denied.iter().chain(&findings.protected).map(|finding| finding.path.as_path());
        findings.git.guarded(guarded);
        findings
    }

    /// What a protecting glob names beside an existing hit, such as `config.worktree` beside a worktree's `commondir`,
    /// may no more be made than an exact path may.
    fn look_beside(&mut self, policy: &ResolvedPolicy, hit: &Path, rule: &PathRule) {
        let PathPattern::Glob(glob) = &rule.pattern else { return };
        let beside = literal_names(glob.glob()).map(|name| hit.with_file_name(name));
        for path in beside.filter(|path| rule.pattern.matches(path) && kind_of(path).is_none()) {
            self.forbid(policy, Verdict::Protect, path, &rule.origin);
        }
    }

    /// Keeps a missing path from being made, if it can be at all.
    fn forbid(&mut self, policy: &ResolvedPolicy, verdict: Verdict, path: PathBuf, origin: &Origin) {
        if can_be_made(policy, &path) {
            self.absent.push(path.clone());
            self.implied.push((verdict, exact(path, None, origin)));
        }
    }

    fn look_up(
        &mut self,
        policy: &ResolvedPolicy,
        matched: Match,
        path: &Path,
        kind: Option<FileKind>,
        rule: &PathRule,
    ) {
        // What a denied link would lead to, if it was there, is denied as well.
        if kind == Some(FileKind::Symlink) && matched.verdict == Verdict::Deny && !path.exists() {
            self.forbid(policy, Verdict::Deny, nearest_canonical(path), &rule.origin);
        }
        match kind {
            Some(kind) => self.add(matched.verdict, Finding::new(path, kind, rule)),
            // `git init` must work; what it leaves is judged at the end.
            None if matched.verdict == Verdict::Protect && gitguard::in_absent_repository(path) => {}
            None if can_be_made(policy, path) => self.absent.push(path.to_owned()),
            None => {}
        }
    }

    /// A link is hidden by hiding what it leads to. One that leads nowhere is but a name, and so is a protected one.
    fn add(&mut self, verdict: Verdict, finding: Finding) {
        let list = match verdict {
            Verdict::Deny => &mut self.denied,
            Verdict::Protect => &mut self.protected,
            Verdict::Note => return,
        };
        let target =
            (finding.kind == FileKind::Symlink).then(|| fs::canonicalize(&finding.path).ok()).flatten();
        let by_name = verdict == Verdict::Protect || target.is_none();
        if let Some(target) = target {
            let kind = kind_of(&target).unwrap_or(FileKind::File);
            self.implied.push((verdict, exact(target.clone(), Some(kind), &finding.origin)));
            list.push(Finding { path: target, kind, ..finding.clone() });
        }
        if by_name {
            list.push(finding);
        }
    }
}

/// The names that a glob spells out in its last part: one, or those in braces.
fn literal_names(glob: &str) -> impl Iterator<Item = &str> {
    let last = glob.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    let names = last.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).unwrap_or(last);
    names.split(',').filter(|name| !name.is_empty() && !name.contains(['*', '?', '[', ']', '{', '}', '\\']))
}

/// Whether a session may make things where the path would be. Below a file that is granted by itself nothing can be.
fn can_be_made(policy: &ResolvedPolicy, path: &Path) -> bool {
    let grant = policy.filesystem.grant_for(path);
    grant.is_some_and(|grant| grant.access == Access::Write && grant.path.is_dir())
}

fn exact(path: PathBuf, found: Option<FileKind>, origin: &Origin) -> PathRule {
    let found = found.map(|kind| match kind {
        FileKind::Dir => PathKind::Folder,
        FileKind::File => PathKind::File,
        FileKind::Symlink => PathKind::Link,
        FileKind::Socket | FileKind::Fifo | FileKind::Device => PathKind::Other,
    });
    let folder = found == Some(PathKind::Folder);
    PathRule { pattern: PathPattern::Exact { path, folder, found }, origin: origin.clone() }
}

/// What no policy says and no policy can lift.
fn of_redoma(text: &str) -> Origin {
    let file = Some(Arc::from(Path::new("redoma")));
    Origin { layer: Layer::Builtin, file, line: None, text: Arc::from(text) }
}

fn kind_of(path: &Path) -> Option<FileKind> {
    let kind = fs::symlink_metadata(path).ok()?.file_type();
    Some(match () {
        () if kind.is_dir() => FileKind::Dir,
        () if kind.is_symlink() => FileKind::Symlink,
        () if kind.is_socket() => FileKind::Socket,
        () if kind.is_fifo() => FileKind::Fifo,
        () if kind.is_block_device() || kind.is_char_device() => FileKind::Device,
        () => FileKind::File,
    })
}

#[cfg(test)]
mod tests {
    use redoma_policy::PathGlob;

    use super::*;

    #[test]
    fn an_exact_path_holds_all_its_folders_and_a_glob_those_it_names() {
        let held = |pattern: &PathPattern, path: &str| -> Vec<PathBuf> {
            let path = Path::new(path);
            let folders = path.ancestors().skip(1).filter(|folder| !survives_renaming(pattern, path, folder));
            folders.map(Path::to_owned).collect()
        };
        let glob = |text| PathPattern::Glob(PathGlob::new("/p".into(), text).expect("a glob"));
        let exact = PathPattern::Exact { path: "/p/a/b/key".into(), folder: false, found: None };
        let folders = ["/p/a/b", "/p/a", "/p"].map(PathBuf::from);
        assert_eq!(held(&exact, "/p/a/b/key"), folders);
        assert_eq!(
            held(&glob("**/.env"), "/p/a/b/.env"),
            folders[2..3],
            "any folder in the project may be renamed"
        );
        assert_eq!(held(&glob("**/b/*.key"), "/p/a/b/x.key"), [folders[0].clone(), folders[2].clone()]);
    }

    #[test]
    fn the_names_a_glob_spells_out_are_known() {
        let names = |glob| literal_names(glob).collect::<Vec<_>>();
        assert_eq!(
            names(".git/worktrees/*/{config.worktree,commondir,gitdir}"),
            ["config.worktree", "commondir", "gitdir"]
        );
        assert_eq!(names("**/.vscode/"), [".vscode"]);
        assert_eq!(names("**/*.key"), [""; 0]);
        assert_eq!(names("a/{*.pem,b?,id}"), ["id"]);
    }
}
