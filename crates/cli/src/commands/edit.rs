//! `redoma allow TARGET` and `redoma deny TARGET`: edits of a policy file that keep its comments.

use std::path::{Path, PathBuf};

use anyhow::Context;
use redoma_audit::escape::printable;
use redoma_policy::edit::{self, EditError, Target};
use redoma_policy::{
    CommandLine, Effect, Endpoint, Host, Layer, Preset, Question, ResolvedPolicy, Source, Tier,
};
use redoma_sandbox::presets;
use redoma_sandbox::settings::{Settings, nearest_canonical};
use redoma_sandbox::trust::TrustStore;

use crate::args::EditArgs;
use crate::exit::Exit;
use crate::failure::hinted;
use crate::printer::{Printer, WARN, paint};

/// Which way a policy is edited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Allow,
    Deny,
}

/// Edits the project's policy, or the user's, and says so when another rule still decides otherwise.
pub(crate) fn edit(way: Way, args: &EditArgs, printer: &Printer) -> anyhow::Result<Exit> {
    let settings = Settings::of_process()?;
    let policy = Place::of(args, &settings)?;
    let Wanted { presets, targets } = Wanted::read(&args.target, &policy, &settings)?;
    let before = policy.source(&settings)?;
    let old = std::str::from_utf8(&before.text).context("the policy is not UTF-8")?;
    let text = presets.iter().try_fold(old.to_owned(), |text, preset| way.edit_preset(&text, preset))?;
    let text = way.edit(&text, &targets)?;
    let after = Source { text: text.clone().into_bytes(), ..before.clone() };
    super::policy::check_source(&settings, &after)?;
    if text == old {
        printer.note(format_args!("{} says so already", printable(&policy.path)));
    } else {
        settings.write_policy(&policy.path, &text)?;
        policy.keep_trust(&before, &text, &settings)?;
        for endpoint in presets.iter().flat_map(|preset| &preset.endpoints) {
            printer.note(format_args!("{} {endpoint}", way.done()));
        }
        for target in &targets {
            printer.note(format_args!("{} {target} in {}", way.done(), printable(&policy.path)));
        }
    }
    if !before.trusted && way == Way::Allow {
        printer.note(paint(WARN, "the file is not trusted yet, so what it allows does not count"));
        printer.hint("redoma policy trust");
        return Ok(Exit::OK);
    }
    for target in &targets {
        tell_contradiction(way, target, &settings, printer)?;
    }
    Ok(Exit::OK)
}

impl Way {
    fn edit(self, text: &str, targets: &[Target]) -> Result<String, EditError> {
        let step = match self {
            Self::Allow => edit::allow,
            Self::Deny => edit::deny,
        };
        targets.iter().try_fold(text.to_owned(), |text, target| step(&text, target))
    }

    fn edit_preset(self, text: &str, preset: &Preset) -> Result<String, EditError> {
        match self {
            Self::Allow => edit::allow_preset(text, preset),
            Self::Deny => {
                let host = |endpoint: &Endpoint| endpoint.host.to_string().parse();
                let hosts = preset.endpoints.iter().map(host).collect::<Result<Vec<_>, _>>()?;
                self.edit(text, &hosts)
            }
        }
    }

    fn done(self) -> &'static str {
        match self {
            Self::Allow => "allowed",
            Self::Deny => "denied",
        }
    }

    fn wants(self, effect: Effect) -> bool {
        match self {
            Self::Allow => effect == Effect::Allow,
            Self::Deny => effect != Effect::Allow,
        }
    }
}

/// What is allowed or denied.
struct Wanted {
    presets: Vec<Preset>,
    targets: Vec<Target>,
}

// === impl Wanted ===

impl Wanted {
    /// A list of presets and hosts, or one of the other targets.
    fn read(typed: &str, place: &Place, settings: &Settings) -> anyhow::Result<Self> {
        let outside = settings.outside();
        let mut wanted = Self { presets: Vec::new(), targets: Vec::new() };
        let listed = typed.split(',').any(presets::is_preset);
        let items: Vec<&str> = if listed { typed.split(',').collect() } else { vec![typed] };
        for item in items {
            if let Some(preset) = presets::resolve(item, &outside)? {
                wanted.presets.push(preset);
                continue;
            }
            let targets = edit::targets(item)
                .map_err(|error: EditError| hinted(error.to_string(), "redoma allow --help"))?;
            wanted.targets.extend(targets.into_iter().map(|target| spelled(target, place, settings)));
        }
        Ok(wanted)
    }
}

/// The file that is edited.
struct Place {
    layer: Layer,
    path: PathBuf,
}

// === impl Place ===

impl Place {
    /// The project's policy unless the user's is asked for, or what stands here is too wide to be a project.
    fn of(args: &EditArgs, settings: &Settings) -> anyhow::Result<Self> {
        let too_wide = settings.project.check_width(settings.homes.home());
        if args.project {
            too_wide?;
            return Ok(Self { layer: Layer::Project, path: settings.project_policy() });
        }
        if args.user || too_wide.is_err() {
            // A link to a repository of dotfiles stays one: what it leads to is edited.
            return Ok(Self { layer: Layer::User, path: nearest_canonical(&settings.homes.user_policy()) });
        }
        Ok(Self { layer: Layer::Project, path: settings.project_policy() })
    }

    /// The file as it is; one that does not exist yet is empty, and the user's own work.
    fn source(&self, settings: &Settings) -> anyhow::Result<Source> {
        let found = settings.sources(None)?.into_iter().find(|source| source.layer == self.layer);
        Ok(found.unwrap_or_else(|| Source {
            layer: self.layer,
            path: Some(self.path.clone()),
            text: Vec::new(),
            trusted: true,
        }))
    }

    /// What was trusted stays trusted after an edit of the user's own; what was not does not become so.
    fn keep_trust(&self, before: &Source, text: &str, settings: &Settings) -> anyhow::Result<()> {
        if before.trusted && !self.trusted_by_place(settings) {
            TrustStore::trust(&settings.homes.trust(), &self.path, text.as_bytes())?;
        }
        Ok(())
    }

    fn trusted_by_place(&self, settings: &Settings) -> bool {
        self.layer == Layer::User && self.path == settings.homes.user_policy()
    }
}

/// The target with its path as one would write it in that file: relative in the project, `~` in the home. A pattern
/// stays as it was typed.
fn spelled(target: Target, place: &Place, settings: &Settings) -> Target {
    match target {
        Target::Read(path) => Target::Read(spelled_path(path, place, settings)),
        Target::Write(path) => Target::Write(spelled_path(path, place, settings)),
        other => other,
    }
}

fn spelled_path(typed: String, place: &Place, settings: &Settings) -> String {
    if typed.contains(['*', '?', '[', '{', '~']) {
        return typed;
    }
    let path = settings.project.cwd.join(&typed);
    let path: PathBuf = path.components().collect();
    let folder = if typed.ends_with('/') { "/" } else { "" };
    let below = |root: &Path| path.strip_prefix(root).ok().and_then(Path::to_str).map(str::to_owned);
    if place.layer == Layer::Project
        && let Some(inside) = below(&settings.project.root)
    {
        let inside = if inside.is_empty() { ".".to_owned() } else { inside };
        return inside + folder;
    }
    match below(settings.homes.home()) {
        Some(inside) => format!("~/{inside}{folder}"),
        None => path.to_str().map_or(typed, |path| format!("{path}{folder}")),
    }
}

/// Deny beats allow, and ceilings hold: the edit may not be enough, and the user should not find out later.
fn tell_contradiction(
    way: Way,
    target: &Target,
    settings: &Settings,
    printer: &Printer,
) -> anyhow::Result<()> {
    let policy = settings.resolve(&settings.sources(None)?, &CommandLine::default())?;
    let Some(verdict) = ask(&policy, target, settings) else { return Ok(()) };
    if way.wants(verdict.effect) {
        return Ok(());
    }
    let rule = verdict.rule.map(|rule| format!(" ({rule})")).unwrap_or_default();
    let because = printable(&verdict.because).into_owned();
    printer.note(format_args!("{} {because}{}", paint(WARN, "but:"), printable(&rule)));
    if let Some(change) = verdict.change {
        printer.note(format_args!("  {}", redoma_audit::escape::printable_block(&change.to_string())));
    }
    Ok(())
}

/// What the whole policy says about a target; `None` for one that means many things at once.
fn ask(policy: &ResolvedPolicy, target: &Target, settings: &Settings) -> Option<redoma_policy::Verdict> {
    let path = |text: &str| {
        let plain = !text.contains(['*', '?', '[', '{']);
        plain.then(|| nearest_canonical(&settings.expand(text, &settings.project.root)))
    };
    match target {
        Target::Read(text) => path(text).map(|path| policy.decide(&Question::Read(&path), Tier::Full)),
        Target::Write(text) => path(text).map(|path| policy.decide(&Question::Write(&path), Tier::Full)),
        Target::Env(name) => {
            name.is_exact().then(|| policy.decide(&Question::Env(name.as_str()), Tier::Full))
        }
        Target::Host { host, port } => {
            let host = host.only_host()?;
            let port = port.map_or(443, std::num::NonZeroU16::get);
            Some(policy.decide(&Question::Connect { host: &host, port }, Tier::Full))
        }
        Target::Reach(port) => {
            let question = Question::Connect { host: &Host::localhost(), port: port.get() };
            Some(policy.decide(&question, Tier::Full))
        }
        Target::Rule(_) => None,
    }
}
