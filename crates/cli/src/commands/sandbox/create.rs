//! `redoma sandbox create`: from what was typed to a sandbox's description.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::Context;
use redoma_policy::CommandLine;
use redoma_sandbox::driver::{
    Amounts, DriverError, DriverName, ImageName, Mount, Name, Owner, Rules, SandboxId, Spec, User,
};
use redoma_sandbox::presets;
use redoma_sandbox::settings::Settings;
use redoma_sandbox::templates::{self, Template};

use crate::args::{AmountArgs, CreateArgs, NetArg, UserArg};
use crate::commands::image;
use crate::exit::Exit;
use crate::layers::{amount, variable};
use crate::printer::Printer;

pub(super) fn create(args: &CreateArgs, printer: &Printer) -> anyhow::Result<Exit> {
    let manager = super::manager(args.driver.engine_host.as_deref())?;
    let driver = manager.driver(args.driver.driver.map_or(DriverName::Native, Into::into))?;
    let spec = spec(args, printer)?;
    if let (ImageName::Reference(name), DriverName::Native) = (&spec.image, driver.name()) {
        image::need(&name.parse()?, printer)?;
    }
    let info = driver.create(&spec)?;
    info.notes.iter().for_each(|note| printer.note(note));
    if args.json {
        printer.json(&info)?;
    } else {
        printer.line(&info.spec.name)?;
        printer.hint(format_args!("redoma sandbox shell {}", info.spec.name));
    }
    Ok(Exit::OK)
}

fn spec(args: &CreateArgs, printer: &Printer) -> anyhow::Result<Spec> {
    let settings = Settings::of_process()?;
    let id = SandboxId::random()?;
    let template = args.template.as_deref().map(templates::named).transpose()?;
    let image = template
        .map_or_else(|| image_name(args.image.as_deref(), &settings), |template| template.image.clone());
    let Allowed { hosts: allow, variables: mut env } = allowed(args, template, &settings, printer)?;
    env.extend(template.into_iter().flat_map(|template| template.env.clone()));
    env.extend(args.env.iter().filter_map(|typed| passed(typed)));
    let publish = args
        .publish
        .iter()
        .map(|typed| typed.parse().with_context(|| format!("--publish {typed} has no meaning")));
    Ok(Spec {
        id,
        name: match &args.name {
            Some(name) => super::name(name)?,
            None => name_of(&image, &id)?,
        },
        owner: Owner::default(),
        image,
        template: args.template.as_deref().map(super::name).transpose()?,
        rules: Rules { net: args.net.map(Into::into), allow, policy: policy(args.policy.as_deref())? },
        publish: publish.collect::<anyhow::Result<_>>()?,
        mounts: args.mount.iter().map(|typed| mount(typed, &settings)).collect::<Result<_, _>>()?,
        env,
        workdir: args.workdir.clone(),
        user: match args.user {
            UserArg::Root => User::Root,
            UserArg::Me => User::Me,
        },
        amounts: amounts(&args.amounts)?,
        labels: std::collections::BTreeMap::new(),
        peers: std::collections::BTreeMap::new(),
        created: now(),
    })
}

/// A path that is there is a folder; everything else is the name of an image.
fn image_name(typed: Option<&str>, settings: &Settings) -> ImageName {
    let Some(typed) = typed else { return ImageName::Host };
    let is_path = typed.starts_with(['/', '.', '~']);
    match is_path {
        true => ImageName::Folder(settings.expand(typed, &settings.project.cwd)),
        false => typed.to_owned().into(),
    }
}

/// `python:3.12` makes `python-k4vq`.
fn name_of(image: &ImageName, id: &SandboxId) -> Result<Name, DriverError> {
    let text = image.to_string();
    let last = text.rsplit('/').next().unwrap_or_default();
    let plain: String =
        last.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '-').take(40).collect();
    let plain = if plain.starts_with(|c: char| c.is_ascii_alphanumeric()) { plain } else { "box".to_owned() };
    super::name(&format!("{plain}-{}", &id.as_str()[..4]))
}

/// Hosts, and the variables that go with them.
struct Allowed {
    hosts: Vec<String>,
    variables: Vec<(String, String)>,
}

/// What presets come to is written down as hosts: it is asked of the tools once.
fn allowed(
    args: &CreateArgs,
    template: Option<&Template>,
    settings: &Settings,
    printer: &Printer,
) -> anyhow::Result<Allowed> {
    let of_template =
        template.filter(|_| args.net != Some(NetArg::None)).map(|template| template.allow.clone());
    let allow = args.allow.iter().cloned().chain(of_template.into_iter().flatten()).collect();
    let typed = CommandLine { allow, ..CommandLine::default() };
    let typed = presets::expand(&typed, &settings.outside())?;
    let (mut allow, mut env) = (typed.allow, Vec::new());
    for preset in &typed.presets {
        for endpoint in &preset.endpoints {
            let hosts = endpoint.ports.iter().map(|port| format!("{}:{port}", endpoint.host));
            let hosts: Vec<String> = hosts.collect();
            printer.note(format_args!("{} is {} ({})", preset.name, hosts.join(", "), endpoint.from));
            allow.extend(hosts);
        }
        preset.notes.iter().for_each(|note| printer.note(note));
        env.extend(preset.variables.iter().cloned());
    }
    Ok(Allowed { hosts: allow, variables: env })
}

fn policy(file: Option<&Path>) -> anyhow::Result<Option<String>> {
    let read = |file: &Path| {
        std::fs::read_to_string(file).with_context(|| format!("cannot read the policy {}", file.display()))
    };
    file.map(read).transpose()
}

/// A variable that is passed has the value that it has here; one that is not set is not passed.
pub(super) fn passed(typed: &str) -> Option<(String, String)> {
    let (name, value) = variable(typed);
    let value = value.or_else(|| std::env::var(&name).ok())?;
    Some((name, value))
}

fn mount(typed: &str, settings: &Settings) -> Result<Mount, DriverError> {
    let invalid = |why: &str| DriverError::Invalid {
        what: format!("--mount {typed}"),
        why: why.to_owned(),
        hint: "--mount .:/workspace".into(),
    };
    let (paths, kind) = match typed.rsplit_once(':') {
        Some((paths, kind @ ("ro" | "rw" | "overlay"))) if paths.contains(':') => (paths, kind),
        _ => (typed, "rw"),
    };
    let (from, to) = paths.rsplit_once(':').ok_or_else(|| invalid("it does not say where inside"))?;
    let from = settings.expand(from, &settings.project.cwd);
    let from = from.canonicalize().map_err(|error| invalid(&error.to_string()))?;
    Ok(Mount { from, to: PathBuf::from(to), writable: kind != "ro", overlay: kind == "overlay" })
}

fn amounts(typed: &AmountArgs) -> anyhow::Result<Amounts> {
    Ok(Amounts {
        cpus: amount("--cpus", typed.cpus.as_deref())?,
        memory: amount("--memory", typed.memory.as_deref())?,
        pids: amount("--pids", typed.pids.as_deref())?,
        disk: amount("--disk", typed.disk.as_deref())?,
        time: amount("--time", typed.time.as_deref())?,
    })
}

pub(crate) fn now() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}
