//! `redoma sandbox ls`, `info` and `history`.

use redoma_audit::escape::printable;
use redoma_sandbox::Manager;
use redoma_sandbox::driver::{Driver, Info, State};

use super::create::now;
use crate::args::{ListArgs, OneArgs};
use crate::exit::Exit;
use crate::printer::{DIM, GOOD, Printer, Table, WARN, paint};

pub(super) fn list(manager: &Manager, args: &ListArgs, printer: &Printer) -> anyhow::Result<Exit> {
    let mut all = Vec::new();
    for driver in manager.drivers() {
        all.extend(driver.list()?);
    }
    if args.json {
        printer.json(&all)?;
        return Ok(Exit::OK);
    }
    if all.is_empty() {
        printer.note("there are no sandboxes");
        printer.hint("redoma sandbox create");
        return Ok(Exit::OK);
    }
    let mut table = Table::headed(&["NAME", "ID", "STATE", "IMAGE", "PORTS", "AGE", "DRIVER"]);
    for info in &all {
        let spec = &info.spec;
        let ports: Vec<String> = spec.publish.iter().map(ToString::to_string).collect();
        table.row([
            (GOOD, spec.name.to_string()),
            (DIM, spec.id.to_string()),
            (style(info.state), info.state.to_string()),
            (DIM, printable(&spec.image.to_string()).into_owned()),
            (DIM, ports.join(" ")),
            (DIM, span(now() - spec.created)),
            (DIM, info.driver.to_string()),
        ]);
    }
    printer.line(table.render())?;
    Ok(Exit::OK)
}

pub(super) fn info(manager: &Manager, args: &OneArgs, printer: &Printer) -> anyhow::Result<Exit> {
    let driven = super::find(manager, &args.id)?;
    let info = driven.driver.info(&driven.id)?;
    if args.json {
        printer.json(&info)?;
        return Ok(Exit::OK);
    }
    printer.line(describe(&info))?;
    info.notes.iter().for_each(|note| printer.note(format_args!("note: {note}")));
    Ok(Exit::OK)
}

fn describe(info: &Info) -> String {
    let spec = &info.spec;
    let amount = |text: Option<String>| text.unwrap_or_else(|| "no limit".into());
    let mut table = Table::default();
    let mut row =
        |what: &str, value: String| table.row([(DIM, what.to_owned()), (Default::default(), value)]);
    row("name", spec.name.to_string());
    row("id", spec.id.to_string());
    row("state", paint(style(info.state), info.state));
    row("driver", info.driver.to_string());
    row("image", printable(&spec.image.to_string()).into_owned());
    row("made", format!("{} ago", span(now() - spec.created)));
    row("used", format!("{} ago", span(now() - info.used)));
    let net = match (&spec.rules.net, spec.rules.allow.is_empty()) {
        (Some(net), _) => net.to_string(),
        (None, true) => "none".into(),
        (None, false) => "deny".into(),
    };
    row("network", net);
    for host in &spec.rules.allow {
        row("allowed", printable(host).into_owned());
    }
    for publish in &spec.publish {
        row("published", format!("127.0.0.1:{} leads to {}", publish.outside, publish.inside));
    }
    for mount in &spec.mounts {
        let kind = match (mount.writable, mount.overlay) {
            (_, true) => "changes kept aside",
            (true, false) => "writable",
            (false, false) => "read-only",
        };
        row("mount", format!("{} at {}, {kind}", printable(&mount.from), printable(&mount.to)));
    }
    row("memory", amount(spec.amounts.memory.map(|memory| memory.to_string())));
    row("processors", amount(spec.amounts.cpus.map(|cpus| cpus.get().to_string())));
    row("processes", amount(spec.amounts.pids.map(|pids| pids.to_string())));
    row("disk", amount(spec.amounts.disk.map(|disk| disk.to_string())));
    table.render()
}

pub(super) fn history(manager: &Manager, args: &OneArgs, printer: &Printer) -> anyhow::Result<Exit> {
    let driven = super::find(manager, &args.id)?;
    let histories = driven.able("tell what happened", |driver: &dyn Driver| driver.histories())?;
    let past = histories.history(&driven.id)?;
    if args.json {
        printer.json(&past)?;
        return Ok(Exit::OK);
    }
    let mut table = Table::headed(&["AGO", "RAN", "EXIT", "SESSION", "COMMAND"]);
    for one in &past {
        let exit = one.exit.map_or_else(|| "runs".to_owned(), |exit| exit.to_string());
        table.row([
            (DIM, span(now() - one.began_us / 1_000_000)),
            (DIM, one.ran_us.map(millis).unwrap_or_default()),
            (if one.exit == Some(0) { GOOD } else { WARN }, exit),
            (DIM, one.session.clone().unwrap_or_default()),
            (Default::default(), printable(&one.argv.join(" ")).into_owned()),
        ]);
    }
    printer.line(table.render())?;
    Ok(Exit::OK)
}

pub(crate) fn style(state: State) -> clap::builder::styling::Style {
    match state {
        State::Running => GOOD,
        State::Paused | State::Broken => WARN,
        State::Stopped => DIM,
    }
}

fn millis(micros: u64) -> String {
    format!("{}.{:03}s", micros / 1_000_000, micros / 1000 % 1000)
}

/// A time in its largest unit.
pub(crate) fn span(seconds: i64) -> String {
    match seconds.max(0) {
        seconds @ 0..60 => format!("{seconds}s"),
        seconds @ 60..3600 => format!("{}m", seconds / 60),
        seconds @ 3600..86_400 => format!("{}h", seconds / 3600),
        seconds => format!("{}d", seconds / 86_400),
    }
}
