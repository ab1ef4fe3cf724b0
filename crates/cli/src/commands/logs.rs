//! `redoma logs`: what the services of a group wrote.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use redoma_audit::escape::printable_block;
use redoma_sandbox::driver::Label;
use redoma_sandbox::services::{Line, ServicesError, follow};
use serde::Serialize;

use super::ps;
use super::sandbox::manager;
use crate::args::ServiceLogsArgs;
use crate::exit::Exit;
use crate::printer::{GOOD, Printer, paint};

pub(crate) fn logs(args: &ServiceLogsArgs, printer: &Printer) -> anyhow::Result<Exit> {
    let which = ps::which(&args.group)?;
    let group = which.group.clone().map(String::from).unwrap_or_default();
    let manager = manager(None)?;
    let mut members = ps::members(&manager, &which)?;
    if members.is_empty() {
        return Err(ServicesError::NoGroup(group).into());
    }
    let service = |info: &redoma_sandbox::driver::Info| info.spec.labels.get(&Label::Service).cloned();
    for wanted in &args.services {
        if !members.iter().any(|(_, info)| service(info).as_ref() == Some(wanted)) {
            return Err(ServicesError::NoService { service: wanted.clone(), group }.into());
        }
    }
    if !args.services.is_empty() {
        members.retain(|(_, info)| service(info).is_some_and(|name| args.services.contains(&name)));
    }
    follow(&members, args.follow, &mut |line| show(&line, args.json, printer))?;
    Ok(Exit::OK)
}

#[derive(Serialize)]
struct Shown<'l> {
    service: &'l str,
    line: &'l str,
}

/// What a service wrote is shown, not obeyed.
fn show(line: &Line, json: bool, printer: &Printer) -> anyhow::Result<()> {
    let text = printable_block(OsStr::from_bytes(&line.bytes)).into_owned();
    let text = text.trim_end_matches('\n');
    if json {
        return printer.json_line(&Shown { service: &line.service, line: text });
    }
    let service = printable_block(&line.service).into_owned();
    Ok(printer.line(format_args!("{}  {text}", paint(GOOD, service)))?)
}
