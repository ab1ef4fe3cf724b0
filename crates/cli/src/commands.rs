//! One file per verb.

mod audit;
mod changes;
mod completions;
mod doctor;
mod down;
mod edit;
mod image;
mod kept;
mod log;
mod logs;
mod man;
mod net;
mod pause_idle;
mod policy;
mod preview;
mod proxy;
mod ps;
mod reap;
mod record;
mod redteam;
mod run;
mod sandbox;
mod sessions;
mod templates;
mod tier;
mod undo;
mod up;
mod version;
mod why;

use crate::args::Command;
use crate::exit::Exit;
use crate::printer::Printer;

/// Does what was typed.
pub(crate) fn dispatch(command: Command, printer: &Printer) -> anyhow::Result<Exit> {
    match command {
        Command::Run(args) => run::run(*args, printer),
        Command::Doctor(args) => doctor::doctor(&args, printer),
        Command::Why(args) => why::why(&args, printer),
        Command::Allow(args) => edit::edit(edit::Way::Allow, &args, printer),
        Command::Deny(args) => edit::edit(edit::Way::Deny, &args, printer),
        Command::Proxy(args) => proxy::proxy(&args, printer),
        Command::Image(args) => image::dispatch(args, printer),
        Command::Policy(args) => policy::dispatch(args.command, printer),
        Command::Changes(args) => changes::dispatch(args, printer),
        Command::Undo(args) => undo::undo(&args, printer),
        Command::Sessions(args) => sessions::sessions(&args, printer),
        Command::Log(args) => log::log(&args, printer),
        Command::Net(args) => net::dispatch(args, printer),
        Command::Audit(args) => audit::dispatch(args, printer),
        Command::Sandbox(args) => sandbox::dispatch(args, printer),
        Command::Snapshot(args) => sandbox::snapshots(args, printer),
        Command::Up(args) => up::up(&args, printer),
        Command::Down(args) => down::down(&args, printer),
        Command::Ps(args) => ps::ps(&args, printer),
        Command::Logs(args) => logs::logs(&args, printer),
        Command::Preview(args) => preview::dispatch(args, printer),
        Command::Templates(args) => templates::templates(&args, printer),
        Command::Reap(args) => reap::reap(&args, printer),
        Command::PauseIdle(args) => pause_idle::pause_idle(&args, printer),
        // `main` has seen to it before anything else.
        Command::Guest(_) => Ok(Exit::FAILED),
        Command::Keeper(args) => sandbox::keeper(&args),
        Command::Redteam(args) => redteam::redteam(&args, printer),
        Command::Completions(args) => completions::completions(&args, printer),
        Command::Man(args) => man::man(&args, printer),
        Command::Version(args) => version::version(&args, printer),
    }
}
