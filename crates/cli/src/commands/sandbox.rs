//! `redoma sandbox …` and `redoma snapshot …`: sandboxes that outlive one command.

mod copy;
mod create;
mod exec;
mod list;
mod live;
mod remove;
mod snapshot;

pub(super) use create::now;
pub(super) use list::{span, style};
use redoma_oci::{Engine, OciDriver, Setup};
use redoma_sandbox::driver::{DriverError, DriverName, Mock, Name};
use redoma_sandbox::homes::Homes;
use redoma_sandbox::{Driven, Manager, disposable, gatehouse};

use crate::args::{DriverArg, KeeperArgs, SandboxArgs, SandboxCommand, SnapshotsArgs, SnapshotsCommand};
use crate::exit::Exit;
use crate::printer::Printer;

pub(crate) fn dispatch(args: SandboxArgs, printer: &Printer) -> anyhow::Result<Exit> {
    let manager = manager(None)?;
    match args.command {
        SandboxCommand::Create(args) => create::create(&args, printer),
        SandboxCommand::Exec(args) => exec::exec(&manager, args),
        SandboxCommand::Shell(args) => exec::shell(&manager, args),
        SandboxCommand::Ls(args) => list::list(&manager, &args, printer),
        SandboxCommand::Info(args) => list::info(&manager, &args, printer),
        SandboxCommand::Rm(args) => remove::remove(&manager, &args, printer),
        SandboxCommand::Logs(args) => live::logs(&manager, &args, printer),
        SandboxCommand::Stats(args) => live::stats(&manager, &args, printer),
        SandboxCommand::History(args) => list::history(&manager, &args, printer),
        SandboxCommand::Pause(args) => live::pause(&manager, &args, printer),
        SandboxCommand::Resume(args) => live::resume(&manager, &args, printer),
        SandboxCommand::Cp(args) => copy::copy(&manager, &args, printer),
        SandboxCommand::Snapshot(args) => snapshot::take(&manager, &args, printer),
        SandboxCommand::Fork(args) => snapshot::fork(&manager, &args, printer),
        SandboxCommand::Checkpoint(args) => live::checkpoint(&manager, &args, printer),
        SandboxCommand::Restore(args) => live::restore(&manager, &args, printer),
    }
}

pub(crate) fn snapshots(args: SnapshotsArgs, printer: &Printer) -> anyhow::Result<Exit> {
    let manager = manager(None)?;
    match args.command {
        SnapshotsCommand::Ls(args) => snapshot::list(&manager, &args, printer),
        SnapshotsCommand::Rm(args) => snapshot::remove(&manager, &args, printer),
        SnapshotsCommand::Diff(args) => snapshot::diff(&manager, &args, printer),
        SnapshotsCommand::Prune(args) => snapshot::prune(&manager, &args, printer),
    }
}

/// Becomes a sandbox's keeper, or that of a container's network.
pub(crate) fn keeper(args: &KeeperArgs) -> anyhow::Result<Exit> {
    let homes = Homes::from_env()?;
    Ok(Exit::of_command(match &args.id {
        Some(id) => disposable::keep(&homes, id.parse()?),
        None => gatehouse::keep(&homes),
    }))
}

/// The manager with every driver there is. An engine is spoken to when it is needed.
pub(crate) fn manager(engine: Option<&str>) -> anyhow::Result<Manager> {
    let homes = Homes::from_env()?;
    let program = std::env::current_exe().unwrap_or_else(|_| "/proc/self/exe".into());
    let setup = Setup {
        certificates: homes.config().join("engine"),
        homes: homes.clone(),
        guest: vec!["guest".into()],
        keeper: vec![program.clone().into(), "keeper".into()],
        program,
    };
    let named = engine.map(str::to_owned);
    Ok(Manager::new(homes).with_driver(DriverName::Mock, || Ok(Box::new(Mock::new()))).with_driver(
        DriverName::Oci,
        move || {
            let engine = match &named {
                Some(text) => text.parse::<Engine>(),
                None => Engine::of_environment(&|name| std::env::var(name).ok(), &|path| path.exists()),
            };
            let engine = engine.map_err(|error| DriverError::Engine {
                why: error.to_string(),
                hint: "--engine-host /var/run/docker.sock".into(),
            })?;
            Ok(Box::new(OciDriver::connect(&engine, setup.clone())?))
        },
    ))
}

/// The sandbox that is meant.
fn find<'m>(manager: &'m Manager, text: &str) -> Result<Driven<'m>, DriverError> {
    manager.find(text)
}

fn name(text: &str) -> Result<Name, DriverError> {
    text.parse().map_err(|error: redoma_sandbox::driver::InvalidName| DriverError::Invalid {
        what: "the name".into(),
        why: error.to_string(),
        hint: "choose another name".into(),
    })
}

impl From<DriverArg> for DriverName {
    fn from(typed: DriverArg) -> Self {
        match typed {
            DriverArg::Native => Self::Native,
            DriverArg::Oci => Self::Oci,
            DriverArg::Mock => Self::Mock,
        }
    }
}
