//! Merging the file rules.

mod grants;
mod rules;

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use super::places::Places;
use super::{Merge, own_folders};
use crate::document::Entry;
use crate::{
    Alias, ByteSize, Filesystem, Grant, Layer, Notice, NoticeKind, Origin, PathPattern, PathRule,
    PolicyError, SecretRule, SecretSource, Workspace,
};

/// What git reads from a git folder and what makes it run programs or look elsewhere. `commondir` and `gitdir` lead
/// git to another folder, and so to another `config`; they are guarded also where they do not exist yet.
const GIT_GUARDED: [&str; 5] = ["hooks/", "config", "config.worktree", "commondir", "gitdir"];
/// The same below a common git folder, for its other worktrees and its submodules.
const GIT_GUARDED_BELOW: [&str; 2] =
    ["worktrees/*/{config.worktree,commondir,gitdir}", "modules/**/{hooks,config,config.worktree,commondir}"];

impl Merge<'_> {
    pub(super) fn files(&mut self, secrets: &[SecretRule]) -> Result<Filesystem, PolicyError> {
        let mut places = Places::new(self.world.paths);
        let without = self.without();
        let mut found = grants::Found::default();
        self.collect_grants(&without, &mut places, &mut found)?;
        self.add_git_grants(&mut found);
        let anchors = self.free_anchors(&found.grants);
        let mut deny = self.rules(|file| &file.filesystem.deny, "--deny", &anchors, &without, &mut places)?;
        deny.extend(self.own_rules(&mut places));
        deny.extend(secret_rules(secrets, &mut places));
        let mut protect = self.rules(|file| &file.filesystem.protect, "", &anchors, &without, &mut places)?;
        protect.extend(self.git_rules(&mut places));
        found.aliases.extend(places.place(self.world.home).aliases);
        let grants = grants::prune(found.grants);
        self.notice_shadowed(&grants, &deny);
        let (workspace, undo, undo_max) = self.workspace()?;
        let aliases = aliases(found.aliases, &grants);
        Ok(Filesystem { grants, deny, protect, aliases, workspace, undo, undo_max })
    }

    /// Texts of built-in entries that a trusted document leaves out.
    fn without(&mut self) -> HashSet<String> {
        let entries = self.entries(|file| &file.filesystem.without, "", &[]);
        let mut texts = HashSet::new();
        for entry in entries {
            if !entry.trusted() {
                self.not_heard(&format!("without = [\"{}\"]", entry.text), entry.origin());
            } else if self.is_built_in(entry.text) {
                texts.insert(entry.text.to_owned());
            } else {
                self.notices.push(Notice {
                    kind: NoticeKind::Note,
                    message: format!("`without` names `{}`, which nothing built in contains", entry.text),
                    hint: Some("redoma policy show --resolved".to_owned()),
                    origin: Some(entry.origin()),
                });
            }
        }
        texts
    }

    fn is_built_in(&self, text: &str) -> bool {
        let documents = self.stack.documents.iter().filter(|document| document.layer == Layer::Builtin);
        let mut lists = documents.flat_map(|document| {
            let files = &document.file.filesystem;
            [&files.system, &files.read, &files.write, &files.deny, &files.protect]
        });
        lists.any(|list| list.iter().any(|entry| entry.get_ref() == text))
    }

    fn own_rules(&self, places: &mut Places<'_>) -> Vec<PathRule> {
        let origin = |folder: &Path| built_in("redoma", &folder.display().to_string());
        let rules = own_folders(self.world).into_iter();
        rules.flat_map(|folder| rules::exact(places, &folder, true, &origin(&folder))).collect()
    }

    /// A linked worktree and a submodule keep their git folder elsewhere; git must write there.
    fn add_git_grants(&self, found: &mut grants::Found) {
        let project_writable = found
            .grants
            .iter()
            .any(|grant| grant.access == crate::Access::Write && self.world.project.starts_with(&grant.path));
        let access = if project_writable { crate::Access::Write } else { crate::Access::Read };
        let grants = self.world.git_dirs.iter().map(|path| Grant {
            path: path.clone(),
            access,
            origin: built_in("the project's git folder", ""),
            system: false,
        });
        found.grants.extend(grants);
    }

    fn git_rules(&self, places: &mut Places<'_>) -> Vec<PathRule> {
        let mut rules = Vec::new();
        let origin = built_in("the project's git folder", "");
        for folder in self.world.git_dirs {
            for name in GIT_GUARDED {
                let path = folder.join(name.trim_end_matches('/'));
                rules.extend(rules::exact(places, &path, name.ends_with('/'), &origin));
            }
            let globs = GIT_GUARDED_BELOW.iter();
            let globs = globs.filter_map(|glob| crate::PathGlob::new(folder.clone(), glob).ok());
            rules.extend(
                globs.map(|glob| PathRule { pattern: PathPattern::Glob(glob), origin: origin.clone() }),
            );
        }
        if !self.world.git_dirs.is_empty() {
            // The `.git` file that leads there: rewritten, it would lead git on the host to a folder made inside.
            rules.extend(rules::exact(places, &self.world.project.join(".git"), false, &origin));
        }
        rules
    }

    /// A grant that a deny rule covers whole gives nothing: say so, or its author wonders.
    fn notice_shadowed(&mut self, grants: &[Grant], deny: &[PathRule]) {
        for grant in grants.iter().filter(|grant| grant.origin.layer != Layer::Builtin) {
            if let Some(rule) = deny.iter().find(|rule| rule.pattern.covers(&grant.path)) {
                self.notices.push(Notice {
                    kind: NoticeKind::Note,
                    message: format!("{} is granted but denied by {}", grant.path.display(), rule.origin),
                    hint: None,
                    origin: Some(grant.origin.clone()),
                });
            }
        }
    }

    fn workspace(&mut self) -> Result<(Workspace, bool, ByteSize), PolicyError> {
        let (mut workspace, mut undo, mut max) = (Workspace::Direct, false, ByteSize(2 << 30));
        for document in &self.stack.documents {
            let files = &document.file.filesystem;
            if let Some(wanted) = &files.workspace {
                if document.trusted || *wanted.get_ref() == Workspace::Overlay {
                    workspace = *wanted.get_ref();
                } else if workspace != *wanted.get_ref() {
                    let origin = document.origin(wanted.span().start, "direct");
                    self.notices.push(super::not_heard("workspace = \"direct\"", origin));
                }
            }
            if let Some(wanted) = &files.undo {
                if document.trusted || *wanted.get_ref() {
                    undo = *wanted.get_ref();
                } else if undo {
                    let origin = document.origin(wanted.span().start, "false");
                    self.notices.push(super::not_heard("undo = false", origin));
                }
            }
            if let Some(wanted) = files.undo_max.as_ref().filter(|_| document.trusted) {
                max = *wanted.get_ref();
            }
        }
        let workspace = self.typed.workspace.unwrap_or(workspace);
        if workspace == Workspace::Overlay && self.typed.undo == Some(true) {
            return Err(PolicyError::Typed {
                flag: "--undo".to_owned(),
                value: "with --workspace overlay".to_owned(),
                problem: "in an overlay changes wait to be applied, so there is nothing to undo".to_owned(),
                hint: "leave out --undo, or use --workspace direct".to_owned(),
            });
        }
        let undo = self.typed.undo.unwrap_or(undo) && workspace == Workspace::Direct;
        Ok((workspace, undo, max))
    }
}

/// A credential that stays outside is not read from its file inside either, whatever grants the file.
fn secret_rules(secrets: &[SecretRule], places: &mut Places<'_>) -> Vec<PathRule> {
    let file = |secret: &SecretRule| match &secret.source {
        SecretSource::File(path) if path.is_absolute() => rules::exact(places, path, false, &secret.origin),
        _ => Vec::new(),
    };
    secrets.iter().flat_map(file).collect()
}

/// The origin of a rule that Redoma itself adds.
fn built_in(name: &str, text: &str) -> Origin {
    Origin {
        layer: Layer::Builtin,
        file: Some(Arc::from(Path::new(name))),
        line: None,
        text: Arc::from(text),
    }
}

/// Links worth making again: each once, none inside a grant, where the link itself is seen.
fn aliases(mut aliases: Vec<Alias>, grants: &[Grant]) -> Vec<Alias> {
    let shown = |alias: &Alias| grants.iter().any(|grant| alias.link.starts_with(&grant.path));
    aliases.retain(|alias| !shown(alias));
    aliases.sort();
    aliases.dedup();
    aliases
}

/// The folders in which a pattern that begins with `**/` holds, besides the project: whatever a person granted,
/// unless it holds the whole home (a search there would take minutes).
impl Merge<'_> {
    fn free_anchors(&self, grants: &[Grant]) -> Vec<std::path::PathBuf> {
        let mut anchors = vec![self.world.project.to_owned()];
        let theirs = grants.iter().filter(|grant| grant.origin.layer != Layer::Builtin && !grant.system);
        for grant in theirs {
            let inside = anchors.iter().any(|anchor| grant.path.starts_with(anchor));
            if !inside && !self.world.home.starts_with(&grant.path) {
                anchors.push(grant.path.clone());
            }
        }
        anchors
    }
}

/// An entry that is left out by its text.
fn left_out(entry: &Entry<'_>, without: &HashSet<String>) -> bool {
    entry.layer() == Layer::Builtin && without.contains(entry.text)
}
