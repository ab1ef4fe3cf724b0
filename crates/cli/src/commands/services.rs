//! `redoma up`, `down`, `ps` and `logs`: groups of services.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use anyhow::Context;
use redoma_audit::escape::printable_block;
use redoma_sandbox::driver::{Driver, DriverError, DriverName, ImageName};
use redoma_sandbox::services::{self, Group, Progress, Ups};
use redoma_sandbox::{Manager, templates};

use super::image;
use crate::args::{DownArgs, GroupArgs, GroupLogsArgs, PsArgs, UpArgs};
use crate::exit::Exit;
use crate::printer::{BOLD, DIM, GOOD, Printer, Table, WARN, paint};

pub(crate) fn up(args: &UpArgs, printer: &Printer) -> anyhow::Result<Exit> {
    let (manager, group) = open(&args.group)?;
    let trusted = manager.homes().trust();
    if args.trust {
        group.trust(&trusted)?;
    }
    group.require_trust(&trusted)?;
    let driver = driver(&manager, &args.group)?;
    let need = |name: &ImageName| match (name, driver.name()) {
        (ImageName::Reference(name), DriverName::Native) => {
            image::need(&name.parse()?, printer).map_err(|error| DriverError::Image {
                why: format!("{error:#}"),
                hint: format!("redoma image pull {name}"),
            })
        }
        _ => Ok(()),
    };
    let tell = |progress: Progress<'_>| match progress {
        Progress::Made(service) => printer.note(format_args!("{service}: made")),
        Progress::Kept(service) => printer.note(format_args!("{service}: up already")),
        Progress::Healthy(service) => printer.note(format_args!("{}: up", paint(GOOD, service))),
    };
    let template = |service: &services::Service| templates::filled_in(service);
    let ups = Ups { driver, template: &template, need: &need, tell: &tell };
    let members = services::up(&group, &ups)?;
    if args.json {
        printer.json(&members)?;
        return Ok(Exit::OK);
    }
    for member in &members {
        for port in &member.sandbox.spec.publish {
            printer.line(format_args!("{} at 127.0.0.1:{}", member.service, port.outside))?;
        }
    }
    Ok(Exit::OK)
}

pub(crate) fn down(args: &DownArgs, printer: &Printer) -> anyhow::Result<Exit> {
    let (manager, group) = open(&args.group)?;
    let ended = services::down(&group, driver(&manager, &args.group)?)?;
    if args.json {
        printer.json(&ended)?;
    } else {
        ended.iter().try_for_each(|service| printer.line(format_args!("{service}: down")))?;
    }
    Ok(Exit::OK)
}

pub(crate) fn ps(args: &PsArgs, printer: &Printer) -> anyhow::Result<Exit> {
    let (manager, group) = open(&args.group)?;
    let members = services::members(&group, driver(&manager, &args.group)?)?;
    if args.json {
        printer.json(&members)?;
        return Ok(Exit::OK);
    }
    let mut table = Table::headed(&["SERVICE", "SANDBOX", "STATE", "PORTS"]);
    for member in &members {
        let ports: Vec<String> = member.sandbox.spec.publish.iter().map(ToString::to_string).collect();
        let state = member.sandbox.state;
        let style = if state == redoma_sandbox::driver::State::Running { GOOD } else { WARN };
        table.row([
            (BOLD, member.service.clone()),
            (DIM, member.sandbox.spec.name.to_string()),
            (style, state.to_string()),
            (DIM, ports.join(" ")),
        ]);
    }
    printer.line(table.render())?;
    Ok(Exit::OK)
}

pub(crate) fn logs(args: &GroupLogsArgs, printer: &Printer) -> anyhow::Result<Exit> {
    /// A longer line is shown in pieces.
    const LONGEST: u64 = 64 << 10;
    let (manager, group) = open(&args.group)?;
    let driver = driver(&manager, &args.group)?;
    let logging = driver.logging().context("this driver keeps no logs")?;
    for member in services::members(&group, driver)? {
        if !args.services.is_empty() && !args.services.contains(&member.service) {
            continue;
        }
        let mut text = BufReader::new(logging.logs(&member.sandbox.spec.id, false)?);
        let mut line = Vec::new();
        while text.by_ref().take(LONGEST).read_until(b'\n', &mut line)? > 0 {
            let shown = printable_block(OsStr::from_bytes(&line)).into_owned();
            printer.line(format_args!("{} {}", paint(DIM, &member.service), shown.trim_end_matches('\n')))?;
            line.clear();
        }
    }
    Ok(Exit::OK)
}

fn open(args: &GroupArgs) -> anyhow::Result<(Manager, Group)> {
    let manager = super::sandbox::manager(args.driver.engine_host.as_deref())?;
    let file = args.file.clone().map_or_else(|| Group::find(Path::new(".")), Ok)?;
    Ok((manager, Group::read(&file)?))
}

fn driver<'m>(manager: &'m Manager, args: &GroupArgs) -> Result<&'m dyn Driver, DriverError> {
    manager.driver(args.driver.driver.map_or(DriverName::Native, Into::into))
}
