//! `redoma man`: pages made from the same definitions as the help.

use std::path::Path;

use anyhow::Context;
use clap::{Command, CommandFactory};
use clap_mangen::Man;

use crate::args::{Cli, ManArgs};
use crate::exit::Exit;
use crate::failure::hinted;
use crate::printer::Printer;

/// Prints one page, or writes all of them.
pub(crate) fn man(args: &ManArgs, printer: &Printer) -> anyhow::Result<Exit> {
    let mut root = Cli::command();
    root.build();
    match &args.out {
        Some(folder) => write_all(&root, folder)?,
        None => {
            let mut roff = Vec::new();
            page(find(&root, &args.command)?).render(&mut roff)?;
            printer.raw(&roff)?;
        }
    }
    Ok(Exit::OK)
}

fn find<'a>(root: &'a Command, path: &[String]) -> anyhow::Result<&'a Command> {
    let mut command = root;
    for name in path {
        command = command.find_subcommand(name).ok_or_else(|| {
            let parent = command.get_display_name().unwrap_or(command.get_name()).replace('-', " ");
            hinted(format!("{parent} has no command {name}"), format!("{parent} --help"))
        })?;
    }
    Ok(command)
}

fn visible(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|sub| !sub.is_hide_set())
}

/// The page of one command, named as git(1) names its pages: `redoma-policy-show`.
fn page(command: &Command) -> Man {
    Man::new(command.clone()).manual("Redoma").source(concat!("redoma ", env!("CARGO_PKG_VERSION")))
}

fn write_all(command: &Command, folder: &Path) -> anyhow::Result<()> {
    let written = page(command).generate_to(folder);
    written.with_context(|| format!("cannot write a manual page into {}", folder.display()))?;
    visible(command).try_for_each(|sub| write_all(sub, folder))
}
