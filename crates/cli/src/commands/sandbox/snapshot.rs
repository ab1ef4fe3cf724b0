//! `redoma sandbox snapshot`, `fork`, and `redoma snapshot …`.

use anyhow::Context;
use redoma_audit::escape::printable_block;
use redoma_policy::{Publish, TimeSpan};
use redoma_sandbox::Manager;
use redoma_sandbox::driver::{Differs, Driver, DriverError, Name, SandboxId, SnapshotInfo, Snapshots, Spec};

use super::create::now;
use super::list::span;
use crate::args::{
    ForkArgs, ListArgs, SnapshotArgs, SnapshotDiffArgs, SnapshotPruneArgs, SnapshotRemoveArgs,
};
use crate::exit::Exit;
use crate::layers::amount;
use crate::printer::{BAD, DIM, GOOD, Printer, Table, WARN, paint};

pub(super) fn take(manager: &Manager, args: &SnapshotArgs, printer: &Printer) -> anyhow::Result<Exit> {
    let driven = super::find(manager, &args.id)?;
    let snapshots = driven.able("freeze a file system", |driver: &dyn Driver| driver.snapshots())?;
    let taken = snapshots.snapshot(&driven.id, &super::name(&args.name)?)?;
    if args.json {
        printer.json(&taken)?;
    } else {
        printer.line(&taken.name)?;
        printer.hint(format_args!("redoma sandbox fork {}", taken.name));
    }
    Ok(Exit::OK)
}

pub(super) fn fork(manager: &Manager, args: &ForkArgs, printer: &Printer) -> anyhow::Result<Exit> {
    let name = super::name(&args.snapshot)?;
    let snapshots = of(manager, &name)?;
    let frozen = snapshots.snapshots()?.into_iter().find(|snapshot| snapshot.name == name);
    let frozen = frozen.ok_or_else(|| DriverError::NoSnapshot(name.to_string()))?;
    let names: Vec<Option<&String>> =
        if args.name.is_empty() { vec![None] } else { args.name.iter().map(Some).collect() };
    let publish = args
        .publish
        .iter()
        .map(|typed| typed.parse().with_context(|| format!("--publish {typed} has no meaning")));
    let publish: Vec<Publish> = publish.collect::<anyhow::Result<_>>()?;
    let mut made = Vec::new();
    for wanted in names {
        let id = SandboxId::random()?;
        let wanted = match wanted {
            Some(wanted) => super::name(wanted)?,
            None => super::name(&format!("{}-{}", shortened(&name), &id.as_str()[..4]))?,
        };
        // A port of this machine leads to one sandbox, and a group's member is one.
        let labels = std::collections::BTreeMap::new();
        let publish = publish.clone();
        let spec = Spec { id, name: wanted, created: now(), publish, labels, ..frozen.of.clone() };
        made.push(snapshots.fork(&name, &spec)?);
    }
    if args.json {
        printer.json(&made)?;
    } else {
        made.iter().try_for_each(|info| printer.line(&info.spec.name))?;
    }
    Ok(Exit::OK)
}

fn shortened(name: &Name) -> &str {
    &name.as_str()[..name.as_str().len().min(50)]
}

fn of<'m>(manager: &'m Manager, name: &Name) -> Result<&'m dyn Snapshots, DriverError> {
    let driver = manager.find_snapshot(name)?;
    driver.snapshots().ok_or_else(|| DriverError::NoSnapshot(name.to_string()))
}

pub(super) fn list(manager: &Manager, args: &ListArgs, printer: &Printer) -> anyhow::Result<Exit> {
    let all = all(manager)?;
    if args.json {
        printer.json(&all)?;
        return Ok(Exit::OK);
    }
    if all.is_empty() {
        printer.note("there are no snapshots");
        printer.hint("redoma sandbox snapshot ID NAME");
        return Ok(Exit::OK);
    }
    let mut table = Table::headed(&["NAME", "OF", "IMAGE", "AGE", "DRIVER"]);
    for snapshot in &all {
        table.row([
            (GOOD, snapshot.name.to_string()),
            (DIM, snapshot.of.name.to_string()),
            (DIM, redoma_audit::escape::printable(&snapshot.image.to_string()).into_owned()),
            (DIM, span(now() - snapshot.created)),
            (DIM, snapshot.driver.to_string()),
        ]);
    }
    printer.line(table.render())?;
    Ok(Exit::OK)
}

fn all(manager: &Manager) -> Result<Vec<SnapshotInfo>, DriverError> {
    let mut all = Vec::new();
    for snapshots in manager.drivers().filter_map(Driver::snapshots) {
        all.extend(snapshots.snapshots()?);
    }
    Ok(all)
}

pub(super) fn remove(
    manager: &Manager,
    args: &SnapshotRemoveArgs,
    printer: &Printer,
) -> anyhow::Result<Exit> {
    for name in &args.names {
        let name = super::name(name)?;
        of(manager, &name)?.remove(&name)?;
        if !args.json {
            printer.line(&name)?;
        }
    }
    if args.json {
        printer.json(&args.names)?;
    }
    Ok(Exit::OK)
}

pub(super) fn prune(manager: &Manager, args: &SnapshotPruneArgs, printer: &Printer) -> anyhow::Result<Exit> {
    let age: Option<TimeSpan> = amount("--max-age", Some(&args.max_age))?;
    let oldest = age.map_or(0, |age| now() - i64::try_from(age.0.as_secs()).unwrap_or(i64::MAX));
    let old: Vec<Name> = all(manager)?
        .into_iter()
        .filter(|snapshot| snapshot.created < oldest)
        .map(|snapshot| snapshot.name)
        .collect();
    for name in &old {
        of(manager, name)?.remove(name)?;
    }
    if args.json {
        printer.json(&old)?;
    } else {
        old.iter().try_for_each(|name| printer.line(name))?;
    }
    Ok(Exit::OK)
}

/// Drivers know their own only: the first that knows both compares them.
pub(super) fn diff(manager: &Manager, args: &SnapshotDiffArgs, printer: &Printer) -> anyhow::Result<Exit> {
    let mut compared = Err(DriverError::NoSnapshot(args.before.clone()));
    for comparing in manager.drivers().filter_map(Driver::comparing) {
        compared = comparing.diff(&args.before, &args.after, args.content);
        if !matches!(compared, Err(DriverError::NoSnapshot(_))) {
            break;
        }
    }
    let compared = compared?;
    if args.json {
        printer.json(&compared)?;
        return Ok(Exit::OK);
    }
    for one in &compared {
        let (style, word) = match one.differs {
            Differs::Added => (GOOD, "added"),
            Differs::Removed => (BAD, "removed"),
            Differs::Modified => (WARN, "modified"),
            Differs::Mode => (WARN, "mode"),
            Differs::Kind => (WARN, "kind"),
        };
        let modes = match (one.before, one.after) {
            (Some(before), Some(after)) if before.mode != after.mode => {
                format!("  {:o} → {:o}", before.mode, after.mode)
            }
            _ => String::new(),
        };
        printer.line(format_args!(
            "{}  {}{}",
            paint(style, format_args!("{word:<8}")),
            one.path,
            paint(DIM, modes)
        ))?;
        for line in one.text.iter().flat_map(|text| text.lines()) {
            printer.line(printable_block(line))?;
        }
    }
    Ok(Exit::OK)
}
