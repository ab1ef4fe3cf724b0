//! Which documents there are, in which order, and what lies beneath them.

use std::path::{Path, PathBuf};

use super::{Stack, not_heard};
use crate::document::Document;
use crate::{CommandLine, Notice, PolicyError, Source, Surroundings, agent, profile};

/// Most files a chain of `extends` may have.
const MAX_DEPTH: usize = 8;

/// Reads all documents: the profile, the agent's preset, then each layer with what it extends before it.
pub(super) fn collect(
    sources: &[Source],
    typed: &CommandLine,
    world: &Surroundings<'_>,
    notices: &mut Vec<Notice>,
) -> Result<Stack, PolicyError> {
    let mut ordered: Vec<&Source> = sources.iter().collect();
    ordered.sort_by_key(|source| source.layer);
    let mut gather = Gather { world, notices, profile: None, documents: Vec::new() };
    for source in ordered {
        gather.follow(source, &mut Vec::new())?;
    }
    let Gather { profile: extended, documents: written, notices, .. } = gather;

    let profile = typed.profile.clone().or(extended).unwrap_or_else(|| profile::DEFAULT.to_owned());
    let mut documents = profile::documents(&profile)?;
    let chosen = choose_agent(&written, typed, notices);
    let telemetry = wants_telemetry(&written, notices);
    let mut described = None;
    if let Some(name) = chosen {
        let (document, profile) = agent::document(&name, telemetry)?;
        documents.push(document);
        described = Some(profile);
    }
    documents.extend(written);
    Ok(Stack { documents, profile, agent: described })
}

struct Gather<'a, 'n> {
    world: &'a Surroundings<'a>,
    notices: &'n mut Vec<Notice>,
    /// The built-in profile that the last trusted document named.
    profile: Option<String>,
    documents: Vec<Document>,
}

impl Gather<'_, '_> {
    /// Takes a document in, after what it extends. `chain` holds the files on the way here.
    fn follow(&mut self, source: &Source, chain: &mut Vec<PathBuf>) -> Result<(), PolicyError> {
        let document = Document::read(source)?;
        chain.extend(source.path.clone());
        let extends = document.file.extends.as_ref().map(|name| name.get_ref().clone());
        match extends.as_deref() {
            Some(name) if is_file(name) => self.follow_file(&document, name, chain)?,
            Some(name) => self.take_profile(&document, name)?,
            None => {}
        }
        self.documents.push(document);
        Ok(())
    }

    fn follow_file(
        &mut self,
        document: &Document,
        name: &str,
        chain: &mut Vec<PathBuf>,
    ) -> Result<(), PolicyError> {
        let refuse = |message: String, help: &str| extends_error(document, message, help);
        let Some(folder) = document.path.as_deref().and_then(Path::parent) else {
            return Err(refuse("only a file can extend a file".to_owned(), "name a built-in profile"));
        };
        let path = normal(&folder.join(name));
        if chain.contains(&path) {
            let way: Vec<String> = chain.iter().map(|file| file.display().to_string()).collect();
            let message = format!("`extends` leads back: {} -> {}", way.join(" -> "), path.display());
            return Err(refuse(message, "take one `extends` out of the circle"));
        }
        if chain.len() >= MAX_DEPTH {
            let message = format!("more than {MAX_DEPTH} files extend one another");
            return Err(refuse(message, "put some of them together"));
        }
        let loaded = (self.world.load)(&path)
            .map_err(|why| refuse(format!("cannot read `{}`: {why}", path.display()), "check the path"))?;
        // What an untrusted document pulls in is no better than the document itself.
        let trusted = loaded.trusted && document.trusted;
        let source = Source { layer: document.layer, path: Some(path), text: loaded.text, trusted };
        self.follow(&source, chain)
    }

    fn take_profile(&mut self, document: &Document, name: &str) -> Result<(), PolicyError> {
        if !profile::exists(name) {
            let help = profile::hint(name);
            return Err(extends_error(document, format!("there is no profile `{name}`"), &help));
        }
        let current = self.profile.as_deref().unwrap_or(profile::DEFAULT);
        // No profile is narrower than another in everything: a stricter one may lack a deny that matters here.
        if document.trusted {
            self.profile = Some(name.to_owned());
        } else if name != current {
            let at = document.file.extends.as_ref().map_or(0, |extends| extends.span().start);
            self.notices.push(not_heard(&format!("extends = \"{name}\""), document.origin(at, name)));
        }
        Ok(())
    }
}

fn extends_error(document: &Document, message: String, help: &str) -> PolicyError {
    let span = document.file.extends.as_ref().map_or(0..0, toml::Spanned::span);
    PolicyError::Extends(Box::new(document.located(span, message).help(help)))
}

/// `./base.toml` or `/etc/x.toml`, and not `default`.
fn is_file(name: &str) -> bool {
    name.contains('/') || Path::new(name).extension().is_some_and(|extension| extension == "toml")
}

/// Takes `.` and `..` out, so that a circle is recognised however it is spelled. Links do not matter here: the depth
/// limit ends a circle through them.
fn normal(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            std::path::Component::CurDir => {}
            std::path::Component::ParentDir => {
                out.pop();
            }
            part => out.push(part),
        }
    }
    out
}

/// The agent typed, else that of the last trusted document. A preset widens, so an untrusted document has no say.
fn choose_agent(
    written: &[Document],
    typed: &CommandLine,
    notices: &mut Vec<Notice>,
) -> Option<crate::AgentName> {
    let mut chosen = None;
    for document in written {
        let Some(name) = &document.file.agent.name else { continue };
        if document.trusted {
            chosen = Some(name.get_ref().clone());
        } else if typed.agent.as_ref() != Some(name.get_ref()) {
            let origin = document.origin(name.span().start, name.get_ref().as_str());
            notices.push(not_heard(&format!("the preset of agent {}", name.get_ref()), origin));
        }
    }
    typed.agent.clone().or(chosen)
}

fn wants_telemetry(written: &[Document], notices: &mut Vec<Notice>) -> bool {
    let mut wanted = false;
    for document in written {
        let Some(telemetry) = &document.file.agent.telemetry else { continue };
        if document.trusted || !*telemetry.get_ref() {
            wanted = *telemetry.get_ref();
        } else {
            notices.push(not_heard("telemetry = true", document.origin(telemetry.span().start, "true")));
        }
    }
    wanted
}
