//! What is granted.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use super::super::places::{Places, literal};
use super::super::{Merge, expanded};
use super::left_out;
use crate::document::{Blame, Entry};
use crate::{Access, Alias, Grant, Layer, Notice, NoticeKind, PolicyError, pattern};

/// Grants and the links that lead to them.
#[derive(Default)]
pub(super) struct Found {
    pub(super) grants: Vec<Grant>,
    pub(super) aliases: Vec<Alias>,
}

/// Which list an entry stands in.
#[derive(Clone, Copy)]
struct List {
    access: Access,
    system: bool,
}

impl Merge<'_> {
    /// Trusted grants first: only then can be told what an untrusted document would add to them.
    pub(super) fn collect_grants(
        &mut self,
        without: &HashSet<String>,
        places: &mut Places<'_>,
        found: &mut Found,
    ) -> Result<(), PolicyError> {
        let typed = self.typed;
        let system = self.entries(|file| &file.filesystem.system, "", &[]);
        let read = self.entries(|file| &file.filesystem.read, "--read", &typed.read);
        let write = self.entries(|file| &file.filesystem.write, "--write", &typed.write);
        let lists = [
            (List { access: Access::Read, system: true }, system),
            (List { access: Access::Read, system: false }, read),
            (List { access: Access::Write, system: false }, write),
        ];
        let all =
            || lists.iter().flat_map(|(list, entries)| entries.iter().map(move |entry| (*list, *entry)));
        for (list, entry) in all().filter(|(_, entry)| entry.trusted() && !left_out(entry, without)) {
            self.grant(list, &entry, places, found)?;
        }
        for (list, entry) in all().filter(|(_, entry)| !entry.trusted()) {
            self.weigh_untrusted(list, &entry, places, &found.grants)?;
        }
        Ok(())
    }

    fn grant(
        &mut self,
        list: List,
        entry: &Entry<'_>,
        places: &mut Places<'_>,
        found: &mut Found,
    ) -> Result<(), PolicyError> {
        let Some(path) = self.granted_path(entry)? else { return Ok(()) };
        let place = places.place(&path);
        if place.kind.is_none() {
            return self.missing(list, entry, &path);
        }
        if place.target == Path::new("/") || place.target.starts_with("/proc") {
            return Err(entry.error(
                format!("`{}` cannot be granted", place.target.display()),
                "name the folders that are needed",
            ));
        }
        found.aliases.extend(place.aliases);
        let List { access, system } = list;
        found.grants.push(Grant { path: place.target, access, origin: entry.origin(), system });
        Ok(())
    }

    fn granted_path(&self, entry: &Entry<'_>) -> Result<Option<PathBuf>, PolicyError> {
        let Some(text) = expanded(entry, self.world)? else { return Ok(None) };
        if pattern::is_glob(&text) {
            let hint = "name the folder, or put a `\\` before the character if it is part of the name";
            return Err(entry.error("globs only hide and protect, they do not grant", hint));
        }
        Ok(Some(literal(&text).0))
    }

    /// What does not exist cannot be granted. For what ships with Redoma that is the usual case; only an agent's own
    /// folder is worth a word, since without it what the agent keeps is lost at the end.
    fn missing(&mut self, list: List, entry: &Entry<'_>, path: &Path) -> Result<(), PolicyError> {
        let hint = format!("mkdir -p {}", path.display());
        let agents_own = matches!(entry.blame, Blame::Document(document, ..)
            if document.name.to_string_lossy().starts_with("agent ") && list.access == Access::Write);
        let message = match entry.layer() {
            Layer::CommandLine => return Err(entry.error("there is no such path", hint)),
            Layer::Builtin if agents_own => {
                format!(
                    "{} does not exist, so what the agent keeps there ends with the session",
                    path.display()
                )
            }
            Layer::Builtin => return Ok(()),
            _ => format!("{} does not exist, so it is not granted", path.display()),
        };
        let origin = Some(entry.origin());
        self.notices.push(Notice { kind: NoticeKind::Missing, message, hint: Some(hint), origin });
        Ok(())
    }

    /// An untrusted grant gives nothing. It is worth a notice only where it would.
    fn weigh_untrusted(
        &mut self,
        list: List,
        entry: &Entry<'_>,
        places: &mut Places<'_>,
        grants: &[Grant],
    ) -> Result<(), PolicyError> {
        let Some(path) = self.granted_path(entry)? else { return Ok(()) };
        let target = places.place(&path).target;
        let enough = |grant: &Grant| grant.access >= list.access && target.starts_with(&grant.path);
        if !grants.iter().any(enough) {
            self.not_heard(&format!("{} {}", list.access, target.display()), entry.origin());
        }
        Ok(())
    }
}

/// Sorts by path and drops what another grant already gives.
pub(super) fn prune(mut grants: Vec<Grant>) -> Vec<Grant> {
    grants.sort_by(|one, other| (&one.path, other.access).cmp(&(&other.path, one.access)));
    let mut kept: Vec<Grant> = Vec::with_capacity(grants.len());
    for grant in grants {
        let given = |above: &Grant| above.access >= grant.access && grant.path.starts_with(&above.path);
        if !kept.iter().any(given) {
            kept.push(grant);
        }
    }
    kept
}
