//! `redoma sandbox exec` and `shell`.

use std::ffi::OsString;
use std::os::fd::AsFd;

use redoma_policy::TimeSpan;
use redoma_sandbox::driver::Command;
use redoma_sandbox::{Driven, Manager, attach};

use crate::args::{ExecArgs, ShellArgs};
use crate::exit::Exit;
use crate::layers::amount;

/// The name of the log of what was detached by hand.
const LOG: &str = "exec";

pub(super) fn exec(manager: &Manager, args: ExecArgs) -> anyhow::Result<Exit> {
    let Driven { driver, id } = super::find(manager, &args.id)?;
    let timeout: Option<TimeSpan> = amount("--timeout", args.timeout.as_deref())?;
    let mut command = Command {
        argv: args.command,
        env: args.env.iter().filter_map(|typed| super::create::passed(typed)).map(os).collect(),
        workdir: args.workdir,
        timeout: timeout.map(|timeout| timeout.0),
        detached: args.detach,
        ..Command::default()
    };
    if args.detach {
        command.log = Some(super::name(LOG)?);
        let null = attach::nowhere()?;
        let null = null.as_fd();
        driver.exec(&id, &command, &attach::on([null; 3]))?;
        return Ok(Exit::OK);
    }
    let wanted = attach::Wanted { interactive: args.interactive, terminal: args.tty };
    if args.tty {
        command.env.extend(terminal_type());
    }
    let end = attach::run(driver, &id, &command, wanted)?;
    Ok(Exit::of_command(end.exit_code()))
}

pub(super) fn shell(manager: &Manager, args: ShellArgs) -> anyhow::Result<Exit> {
    let Driven { driver, id } = super::find(manager, &args.id)?;
    // bash where there is one; every image has a sh.
    let find = "command -v bash >/dev/null && exec bash -i; exec sh -i";
    let command = Command {
        argv: ["/bin/sh", "-c", find].map(OsString::from).to_vec(),
        env: terminal_type().into_iter().collect(),
        workdir: args.workdir,
        ..Command::default()
    };
    let end = attach::run(driver, &id, &command, attach::Wanted { interactive: true, terminal: true })?;
    Ok(Exit::of_command(end.exit_code()))
}

fn terminal_type() -> Option<(OsString, OsString)> {
    std::env::var_os("TERM").map(|value| ("TERM".into(), value))
}

fn os((name, value): (String, String)) -> (OsString, OsString) {
    (name.into(), value.into())
}
