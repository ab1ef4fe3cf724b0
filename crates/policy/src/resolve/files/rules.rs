//! What is denied and what is protected.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::super::places::{Places, literal};
use super::super::{Merge, expanded};
use super::left_out;
use crate::document::{Blame, Entry};
use crate::file::PolicyFile;
use crate::{Origin, PathGlob, PathPattern, PathRule, PolicyError, pattern};

impl Merge<'_> {
    /// One list of all layers. Trust plays no part: a rule of these lists can only narrow.
    pub(super) fn rules(
        &self,
        list: fn(&PolicyFile) -> &Vec<toml::Spanned<String>>,
        flag: &'static str,
        anchors: &[PathBuf],
        without: &HashSet<String>,
        places: &mut Places<'_>,
    ) -> Result<Vec<PathRule>, PolicyError> {
        let typed: &[String] = if flag == "--deny" { &self.typed.deny } else { &[] };
        let entries = self.entries(list, flag, typed);
        let mut rules = Vec::with_capacity(entries.len());
        // Exceptions hold for the list they stand in, which is one document's (or the command line's) run of entries.
        for run in entries.chunk_by(same_list) {
            let kept = || run.iter().filter(|entry| !left_out(entry, without));
            let mut except = Vec::new();
            for entry in kept() {
                if let Some(glob) = entry.text.strip_prefix('!') {
                    except.extend(self.globs(entry, glob, anchors, places)?);
                }
            }
            let except: Arc<[PathGlob]> = except.into();
            for entry in kept().filter(|entry| !entry.text.starts_with('!')) {
                self.rule(entry, anchors, &except, places, &mut rules)?;
            }
        }
        Ok(rules)
    }

    fn rule(
        &self,
        entry: &Entry<'_>,
        anchors: &[PathBuf],
        except: &Arc<[PathGlob]>,
        places: &mut Places<'_>,
        rules: &mut Vec<PathRule>,
    ) -> Result<(), PolicyError> {
        let origin = entry.origin();
        if pattern::is_glob(entry.text) {
            for glob in self.globs(entry, entry.text, anchors, places)? {
                let pattern = PathPattern::Glob(glob.except(Arc::clone(except)));
                rules.push(PathRule { pattern, origin: origin.clone() });
            }
            return Ok(());
        }
        let Some(text) = expanded(entry, self.world)? else { return Ok(()) };
        let (path, folder) = literal(&text);
        if path.as_os_str().is_empty() || path == Path::new("/") {
            return Err(entry.error("the whole file system cannot be meant", "name a folder"));
        }
        rules.extend(exact(places, &path, folder, &origin));
        Ok(())
    }

    /// The globs that one written glob means: one for each folder it holds in.
    fn globs(
        &self,
        entry: &Entry<'_>,
        text: &str,
        anchors: &[PathBuf],
        places: &mut Places<'_>,
    ) -> Result<Vec<PathGlob>, PolicyError> {
        if !pattern::is_glob(text) {
            let hint = "an exception is a glob, such as \"!**/.env.example\"";
            return Err(entry.error("an exception without `*` would lift a rule that names a path", hint));
        }
        let refuse = |error: crate::InvalidGlob| entry.error(error.to_string(), "close brackets and braces");
        if text.starts_with("**/") {
            return anchors.iter().map(|at| PathGlob::new(at.clone(), text).map_err(refuse)).collect();
        }
        let Some(whole) = expanded(&Entry { text, ..*entry }, self.world)? else { return Ok(Vec::new()) };
        let (anchor, glob) = pattern::split_literal(&whole);
        let anchor = places.place(Path::new(&anchor)).target;
        Ok(vec![PathGlob::new(anchor, glob).map_err(refuse)?])
    }
}

/// A rule about one path, and about where it leads: a denied link hides what it points at too, by its own name.
pub(super) fn exact(places: &mut Places<'_>, path: &Path, folder: bool, origin: &Origin) -> Vec<PathRule> {
    let place = places.place(path);
    let rule = |path: PathBuf, found| PathRule {
        pattern: PathPattern::Exact { path, folder, found },
        origin: origin.clone(),
    };
    if place.spot == place.target {
        return vec![rule(place.spot, place.spot_kind)];
    }
    vec![rule(place.spot, place.spot_kind), rule(place.target, place.kind)]
}

fn same_list(one: &Entry<'_>, other: &Entry<'_>) -> bool {
    match (one.blame, other.blame) {
        (Blame::Document(one, ..), Blame::Document(other, ..)) => std::ptr::eq(one, other),
        (Blame::Flag(_), Blame::Flag(_)) => true,
        _ => false,
    }
}
