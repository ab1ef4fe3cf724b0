//! `redoma doctor`: what this machine can enforce, what is missing, and how to get it.

use clap::builder::styling::Style;
use redoma_audit::escape::printable;
use redoma_jail::limits::{By, Enforced, Leftover, LeftoverKind, Limits, Wanted};
use redoma_jail::{LANDLOCK_TIER_ABI, Missing, Probes, Tier};
use redoma_sandbox::homes::Homes;
use serde::Serialize;

use crate::args::DoctorArgs;
use crate::exit::Exit;
use crate::printer::{BAD, BOLD, GOOD, HINT, Printer, Table, WARN, paint};

#[derive(Serialize)]
struct Report {
    version: &'static str,
    kernel: String,
    tier: Option<String>,
    checks: Vec<Check>,
}

/// One thing that was tried.
#[derive(Serialize)]
struct Check {
    name: &'static str,
    /// What it is for, or what was found.
    found: String,
    /// Whether nothing at all starts without it.
    needed: bool,
    missing: Option<Missing>,
}

/// Probes and reports. Exits with 1 when nothing could be started here.
pub(crate) fn doctor(args: &DoctorArgs, printer: &Printer) -> anyhow::Result<Exit> {
    if args.gc {
        return gc(args.json, printer);
    }
    let report = Report::new(&Probes::run());
    match args {
        DoctorArgs { json: true, .. } => printer.json(&report)?,
        DoctorArgs { fix_hints: true, .. } => report.hints().try_for_each(|hint| printer.line(hint))?,
        _ => report.tell(printer)?,
    }
    Ok(if report.tier.is_some() { Exit::OK } else { Exit::FAILED })
}

/// Removes what dead sessions left. Exits with 1 when something could not be removed.
fn gc(json: bool, printer: &Printer) -> anyhow::Result<Exit> {
    let left = redoma_sandbox::leftovers::gc(&Homes::from_env()?, false)?;
    if json {
        printer.json(&left)?;
    } else if left.is_empty() {
        printer.line("nothing is left over")?;
    } else {
        let mut table = Table::default();
        left.iter().for_each(|one| table.row(leftover_cells(one)));
        printer.line(table.render())?;
    }
    Ok(if left.iter().all(|one| one.removed) { Exit::OK } else { Exit::FAILED })
}

fn leftover_cells(left: &Leftover) -> [(Style, String); 3] {
    let (style, mark) = if left.removed { (GOOD, "removed") } else { (BAD, "could not be removed") };
    let kind = match left.kind {
        LeftoverKind::Cgroup => "cgroup",
        LeftoverKind::Folder => "folder",
        LeftoverKind::Planted => "in quarantine",
    };
    [(style, mark.to_owned()), (BOLD, kind.to_owned()), (Style::new(), printable(&left.path).into_owned())]
}

// === impl Report ===

impl Report {
    fn new(probes: &Probes) -> Self {
        let uname = rustix::system::uname();
        let kernel = format!("{} {}", uname.release().to_string_lossy(), uname.machine().to_string_lossy());
        Self {
            version: env!("CARGO_PKG_VERSION"),
            kernel,
            tier: probes.best_tier().map(|tier| super::tier::of_jail(tier).to_string()),
            checks: checks(probes).into_iter().chain(limits(probes)).collect(),
        }
    }

    fn tell(&self, printer: &Printer) -> anyhow::Result<()> {
        printer.line(format_args!("redoma {} on Linux {}\n", self.version, self.kernel))?;
        let mut table = Table::default();
        for check in &self.checks {
            table.row(check.cells());
        }
        printer.line(table.render())?;
        for check in &self.checks {
            check.explain(printer)?;
        }
        printer.line(format_args!("\n{}", self.conclusion()))?;
        Ok(())
    }

    fn conclusion(&self) -> String {
        match &self.tier {
            Some(tier) => format!("{} commands run in the {} tier", paint(GOOD, "ready:"), paint(BOLD, tier)),
            None => format!("{} nothing starts here", paint(BAD, "no boundary:")),
        }
    }

    fn hints(&self) -> impl Iterator<Item = &str> {
        self.checks.iter().filter_map(|check| check.missing.as_ref()).map(|missing| missing.hint.as_str())
    }
}

// === impl Check ===

impl Check {
    fn cells(&self) -> [(Style, String); 3] {
        let (style, mark) = match (&self.missing, self.needed) {
            (None, _) => (GOOD, "ok"),
            (Some(_), true) => (BAD, "missing"),
            (Some(_), false) => (WARN, "missing"),
        };
        [(style, mark.to_owned()), (BOLD, self.name.to_owned()), (Style::new(), self.found.clone())]
    }

    fn explain(&self, printer: &Printer) -> std::io::Result<()> {
        let Some(missing) = &self.missing else { return Ok(()) };
        printer.line(format_args!("\n{}: no {}", paint(BOLD, self.name), missing.what))?;
        printer.line(format_args!("  why: {}", missing.why))?;
        printer.line(format_args!("{} {}", paint(HINT, "hint:"), missing.hint))
    }
}

fn checks(probes: &Probes) -> Vec<Check> {
    let abi = probes.landlock_abi;
    let none = probes.best_tier().is_none();
    vec![
        Check {
            name: "full tier",
            found: "namespaces, Landlock and seccomp".into(),
            needed: none,
            missing: probes.missing(Tier::Full),
        },
        Check {
            name: "landlock tier",
            found: format!("Landlock version {abi} ({LANDLOCK_TIER_ABI} is needed) and seccomp"),
            needed: none,
            missing: probes.missing(Tier::Landlock),
        },
        Check {
            name: "overlay",
            found: "workspaces whose changes wait".into(),
            needed: false,
            missing: probes.overlay.clone().err(),
        },
    ]
}

/// What each limit would be enforced by here, in the tier that commands run in.
fn limits(probes: &Probes) -> Vec<Check> {
    let Some(tier) = probes.best_tier() else { return Vec::new() };
    let wanted = Wanted {
        cpus: Some(1.0),
        memory: Some(1 << 30),
        pids: Some(64),
        disk: Some(1 << 30),
        ..Wanted::default()
    };
    Limits::foresee(&wanted, tier).iter().map(limit).collect()
}

fn limit(enforced: &Enforced) -> Check {
    let by = match enforced.by {
        By::Cgroup2 => "by cgroup version 2",
        By::Cgroup1 => "by cgroup version 1",
        By::Rlimit => "by rlimit",
        By::Timer => "by the keeper's clock",
        By::Tmpfs => "by the size of private folders",
        By::Nothing => "by nothing",
    };
    let missing = enforced.caveat.as_ref().map(|why| Missing {
        what: format!("full limit on {}", enforced.limit.name()),
        why: why.clone(),
        hint: "systemd-run --user --scope -p Delegate=yes redoma doctor".to_owned(),
    });
    Check { name: enforced.limit.name(), found: format!("limited {by}"), needed: false, missing }
}
