//! From what was written to what is enforced.
//!
//! [`resolve`] reads top to bottom: collect the documents, then merge one concern after the other, each from the
//! first layer to the last. An untrusted document is heard only where it narrows; what it would widen becomes a
//! notice. The system policy's ceiling is applied last, to the result.

mod ceiling;
mod files;
mod layers;
mod limits;
mod network;
mod places;
mod variables;

pub(crate) use network::split_port;

#[cfg(test)]
mod tests;
#[cfg(test)]
mod timing;

use std::path::{Path, PathBuf};

use crate::document::{Document, Entry};
use crate::file::PolicyFile;
use crate::{
    CommandLine, Layer, Notice, NoticeKind, Origin, PolicyError, ResolvedPolicy, Source, Surroundings,
};

/// Merges sources, command line and surroundings into one policy.
///
/// Sources may come in any order; layers have theirs. A built-in profile is always beneath: the one typed, else the
/// one that the last trusted layer extends, else `default`.
///
/// # Errors
/// Anything unknown, malformed or contradictory: nothing is guessed and nothing is skipped.
pub fn resolve(
    sources: &[Source],
    typed: &CommandLine,
    world: &Surroundings<'_>,
) -> Result<ResolvedPolicy, PolicyError> {
    let mut notices = Vec::new();
    let stack = layers::collect(sources, typed, world, &mut notices)?;
    let mut merge = Merge { stack: &stack, typed, world, notices };
    let network = merge.network()?;
    let environment = merge.variables()?;
    let secrets = merge.secrets()?;
    let filesystem = merge.files(&secrets)?;
    let (limits, kernel, audit) = merge.limits()?;
    let mut policy = ResolvedPolicy {
        profile: stack.profile.clone(),
        project: world.project.to_owned(),
        home: world.paths.canonicalize(world.home).unwrap_or_else(|| world.home.to_owned()),
        agent: stack.agent.clone(),
        filesystem,
        network,
        environment,
        secrets,
        limits,
        kernel,
        audit,
        tier: typed.tier,
        notices: merge.notices,
    };
    ceiling::apply(&mut policy, &stack, typed, world)?;
    network::notice_idle_secrets(&mut policy);
    Ok(policy)
}

/// The documents, first layer first.
pub(crate) struct Stack {
    documents: Vec<Document>,
    profile: String,
    agent: Option<crate::AgentProfile>,
}

/// What the merging of each concern needs.
struct Merge<'a> {
    stack: &'a Stack,
    typed: &'a CommandLine,
    world: &'a Surroundings<'a>,
    notices: Vec<Notice>,
}

impl<'a> Merge<'a> {
    /// All entries of one list, first layer first, typed ones last.
    fn entries(
        &self,
        list: fn(&PolicyFile) -> &Vec<toml::Spanned<String>>,
        flag: &'static str,
        typed: &'a [String],
    ) -> Vec<Entry<'a>> {
        let stack: &'a Stack = self.stack;
        let written = stack.documents.iter().flat_map(|document| document.entries(list(&document.file)));
        written.chain(typed.iter().map(|text| Entry::typed(flag, text))).collect()
    }

    /// An untrusted document asked for more.
    fn not_heard(&mut self, what: &str, origin: Origin) {
        self.notices.push(not_heard(what, origin));
    }
}

fn not_heard(what: &str, origin: Origin) -> Notice {
    Notice {
        kind: NoticeKind::Untrusted,
        message: format!("not applied, since nobody has trusted the file: {what}"),
        hint: Some("redoma policy trust".to_owned()),
        origin: Some(origin),
    }
}

/// What a relative path is relative to: typed ones mean where the user stands, written ones the project.
fn base<'a>(layer: Layer, world: &Surroundings<'a>) -> &'a Path {
    match layer {
        Layer::CommandLine => world.cwd,
        _ => world.project,
    }
}

/// Expands the path of an entry; `None` is one to pass over.
fn expanded(entry: &Entry<'_>, world: &Surroundings<'_>) -> Result<Option<String>, PolicyError> {
    match places::expand(entry.text, base(entry.layer(), world), entry.layer(), world) {
        Ok(path) => Ok(Some(path)),
        Err(places::Unclear::PassOver) => Ok(None),
        Err(places::Unclear::Problem(problem, hint)) => Err(entry.error(problem, hint)),
    }
}

/// Redoma's own folders: keys, log, trust and sockets. Nothing inside reaches them, whatever is granted.
fn own_folders(world: &Surroundings<'_>) -> Vec<PathBuf> {
    let set = |name: &str| (world.vars)(name).map(PathBuf::from).filter(|path| path.is_absolute());
    if let Some(all) = set("REDOMA_HOME") {
        return vec![all];
    }
    let config = set("XDG_CONFIG_HOME").unwrap_or_else(|| world.home.join(".config"));
    let state = set("XDG_STATE_HOME").unwrap_or_else(|| world.home.join(".local/state"));
    let run = set("XDG_RUNTIME_DIR");
    [Some(config), Some(state), run].into_iter().flatten().map(|folder| folder.join("redoma")).collect()
}
