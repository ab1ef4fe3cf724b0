//! `redoma sandbox cp`.

use std::path::Path;

use redoma_sandbox::Manager;
use redoma_sandbox::driver::{Copied, DriverError};

use crate::args::CopyArgs;
use crate::exit::Exit;
use crate::printer::Printer;

/// What a regular file is made with when it comes from standard input.
const MODE: u32 = 0o644;

pub(super) fn copy(manager: &Manager, args: &CopyArgs, printer: &Printer) -> anyhow::Result<Exit> {
    let copied = match (remote(&args.from), remote(&args.to)) {
        (None, Some((id, to))) => copy_in(manager, &args.from, id, Path::new(to))?,
        (Some((id, from)), None) => copy_out(manager, id, Path::new(from), &args.to)?,
        _ => {
            let error = DriverError::Invalid {
                what: "redoma sandbox cp".into(),
                why: "one of both has to be ID:PATH, and the other a path of this machine".into(),
                hint: "redoma sandbox cp file ID:/workspace/".into(),
            };
            return Err(error.into());
        }
    };
    copied.notes.iter().for_each(|note| printer.note(note));
    if args.json {
        printer.json(&copied)?;
    }
    Ok(Exit::OK)
}

/// `ID:PATH`; a path of this machine that has a colon is written with a slash in front of it.
fn remote(typed: &str) -> Option<(&str, &str)> {
    let (id, path) = typed.split_once(':')?;
    (!id.is_empty() && !id.contains('/')).then_some((id, path))
}

fn copy_in(manager: &Manager, from: &str, id: &str, to: &Path) -> anyhow::Result<Copied> {
    let driven = super::find(manager, id)?;
    let files = driven.driver.files(&driven.id)?;
    if from != "-" {
        return Ok(files.copy_in(Path::new(from), to)?);
    }
    files.write(to, MODE, &mut std::io::stdin())?;
    Ok(Copied { entries: 1, ..Copied::default() })
}

fn copy_out(manager: &Manager, id: &str, from: &Path, to: &str) -> anyhow::Result<Copied> {
    let driven = super::find(manager, id)?;
    let files = driven.driver.files(&driven.id)?;
    if to != "-" {
        return Ok(files.copy_out(from, Path::new(to))?);
    }
    let bytes = std::io::copy(&mut files.read(from, 0, u64::MAX)?, &mut std::io::stdout().lock())?;
    Ok(Copied { entries: 1, bytes, ..Copied::default() })
}
