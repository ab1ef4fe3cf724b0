//! What `redoma why` says about a path: the question as the kernel would meet it, and the policy as it is enforced.
//!
//! The decision is [`ResolvedPolicy::decide`]'s. Enforcement hides more names than the rules spell: those that a link or
//! a hard link gives to what is denied, and sockets of the host. So the same search is made here as before a run.

use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

use redoma_policy::{Effect, Origin, PathRule, Place, Question, ResolvedPolicy, Tier, Verdict};

use crate::error::RunError;
use crate::gitguard;
use crate::homes::Homes;
use crate::view::{self, Findings};
use crate::walk::{FileKind, Limits};

/// What would be done with a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// See what it holds, or list a folder.
    Read,
    /// Change it, or make it if it does not exist.
    Write,
    /// Run it.
    Exec,
}

/// A policy together with what it means on this machine now.
#[derive(Clone, Debug)]
pub struct Why {
    policy: ResolvedPolicy,
    tier: Tier,
    /// Hidden folders: without mounts nothing above them can be listed either.
    hidden_folders: Vec<(PathBuf, Origin)>,
}

impl Why {
    /// Looks up what the policy's rules hit.
    ///
    /// # Errors
    /// What would keep a run from starting: a granted folder that cannot be searched.
    pub fn new(policy: &ResolvedPolicy, tier: Tier, homes: &Homes) -> Result<Self, RunError> {
        let findings = Findings::collect(policy, &view::search(policy, homes, Limits::default())?);
        let folders = findings.denied.iter().filter(|finding| finding.kind == FileKind::Dir);
        let hidden_folders = folders.map(|finding| (finding.path.clone(), finding.origin.clone())).collect();
        Ok(Self { policy: findings.spelled_out(policy), tier, hidden_folders })
    }

    /// The rules, with a rule more for each name that is hidden or protected and that no rule spells.
    #[must_use]
    pub fn policy(&self) -> &ResolvedPolicy {
        &self.policy
    }

    /// Decides about an absolute path as it would be typed inside, and says where it leads there.
    #[must_use]
    pub fn path(&self, act: Act, typed: &Path) -> (PathBuf, Verdict) {
        let path = self.followed(typed);
        let verdict = match act {
            Act::Read => self.unlisted(&path).unwrap_or_else(|| self.decide(&Question::Read(&path))),
            Act::Exec => self.decide(&Question::Exec(&path)),
            Act::Write if path.symlink_metadata().is_ok() => self.decide(&Question::Write(&path)),
            Act::Write => self.create(&path),
        };
        (path, verdict)
    }

    /// Decides as the policy does.
    #[must_use]
    pub fn decide(&self, question: &Question<'_>) -> Verdict {
        self.policy.decide(question, self.tier)
    }

    fn create(&self, path: &Path) -> Verdict {
        let verdict = self.decide(&Question::Create { path, below: existing(path) });
        let protects = |rule: &PathRule| Some(&rule.origin) == verdict.rule.as_ref();
        let protected = || self.policy.filesystem.protect.iter().any(protects);
        match verdict.place {
            Place::Quarantined if gitguard::in_absent_repository(path) && protected() => {
                let because =
                    "a new repository is judged when the session ends: what git would run is moved away";
                Verdict { because: because.to_owned(), ..verdict }
            }
            _ => verdict,
        }
    }

    /// Landlock's right to list a folder holds for all below it, so it is not given where that would tell the names in
    /// a hidden folder.
    fn unlisted(&self, folder: &Path) -> Option<Verdict> {
        let granted = || self.decide(&Question::Read(folder)).effect == Effect::Allow;
        if self.tier != Tier::Landlock || !granted() {
            return None;
        }
        let (hidden, origin) = self.hidden_folders.iter().find(|(hidden, _)| hidden.starts_with(folder))?;
        Some(Verdict {
            effect: Effect::Deny,
            rule: Some(origin.clone()),
            because: format!("without namespaces it cannot be listed, since {} is denied", hidden.display()),
            change: None,
            place: Place::Absent,
        })
    }

    fn followed(&self, typed: &Path) -> PathBuf {
        follow(typed, &|link| self.shows(link))
    }

    /// Whether a link is there inside. Without mounts the host's folders can be walked through, whatever they hold.
    fn shows(&self, link: &Path) -> bool {
        let again = || self.policy.filesystem.aliases.iter().any(|alias| alias.link == link);
        let seen = || self.decide(&Question::Read(link)).effect == Effect::Allow;
        self.tier == Tier::Landlock || again() || seen() || self.leads_nowhere_yet(link)
    }

    /// A deny glob means what exists, and behind such a link nothing does: what is made there is the session's own.
    fn leads_nowhere_yet(&self, link: &Path) -> bool {
        let files = &self.policy.filesystem;
        let above = link.parent().unwrap_or(link);
        let by_name = |rule: &PathRule| rule.pattern.is_glob() && !rule.pattern.covers(above);
        let mut rules = files.deny.iter().filter(|rule| rule.pattern.covers(link));
        !link.exists() && files.grant_for(link).is_some() && rules.all(by_name)
    }
}

/// The deepest of what exists above a path. A folder, unless the path can be made only in the place of a file.
fn existing(path: &Path) -> &Path {
    path.ancestors().skip(1).find(|above| above.symlink_metadata().is_ok()).unwrap_or(Path::new("/"))
}

/// As [`crate::settings::nearest_canonical`], but a link that `shows` does not know stays as it is, as if nothing was
/// there.
pub(crate) fn follow(path: &Path, shows: &dyn Fn(&Path) -> bool) -> PathBuf {
    // As many links as the kernel follows in all (path_resolution(7)): links may lead in circles.
    let mut links_left = 40;
    let mut end = PathBuf::new();
    let mut ahead: Vec<_> = steps(path);
    while let Some(step) = ahead.pop() {
        match step {
            Step::Root => end = PathBuf::from("/"),
            Step::Up => drop(end.pop()),
            Step::Name(name) => {
                end.push(name);
                if links_left > 0
                    && let Ok(target) = end.read_link()
                    && shows(&end)
                {
                    links_left -= 1;
                    end.pop();
                    ahead.extend(steps(&target));
                }
            }
        }
    }
    end
}

enum Step {
    Root,
    Up,
    Name(OsString),
}

/// The last one first.
fn steps(path: &Path) -> Vec<Step> {
    let step = |component: Component<'_>| match component {
        Component::RootDir | Component::Prefix(_) => Some(Step::Root),
        Component::ParentDir => Some(Step::Up),
        Component::CurDir => None,
        Component::Normal(name) => Some(Step::Name(name.into())),
    };
    path.components().rev().filter_map(step).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_are_followed_as_far_as_they_are_there() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("a/b")).unwrap();
        symlink("a", root.join("link")).unwrap();
        symlink("../../link/new", root.join("a/b/dangling")).unwrap();
        symlink("loop", root.join("loop")).unwrap();
        let all = |path: &str| follow(&root.join(path), &|_| true);
        assert_eq!(all("link/b/../c"), root.join("a/c"));
        assert_eq!(all("link/b/dangling/x"), root.join("a/new/x"));
        assert!(all("loop/x").starts_with(&root));
        let but_one = |path: &str| follow(&root.join(path), &|link| link != root.join("link"));
        assert_eq!(but_one("link/b/x"), root.join("link/b/x"));
        assert_eq!(but_one("a/b/dangling"), root.join("link/new"));
    }
}
