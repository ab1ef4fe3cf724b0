//! `cargo xtask generate`: what is written from the program itself, so that it cannot say anything else.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::process::{self, cargo, root};

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Write nothing; fail if a file is not what it would be
    #[arg(long)]
    pub(crate) check: bool,
}

const SHELLS: &[&str] = &["bash", "zsh", "fish"];
const PAGES: &str = "docs/reference/man";

/// Relative path and content of every generated file.
type Files = BTreeMap<PathBuf, String>;

/// Builds `redoma` and writes or checks every generated file.
pub(crate) fn run(options: &Options) -> Result<()> {
    process::run(cargo().args(["build", "--locked", "--package", "redoma-cli"]))?;
    let files = generate(&process::target().join("debug/redoma"))?;
    if options.check { check(&files) } else { write(&files) }
}

fn generate(redoma: &Path) -> Result<Files> {
    let mut files = Files::new();
    files.insert("docs/reference/policy.schema.json".into(), ask(redoma, &["policy", "schema"])?);
    for shell in SHELLS {
        let script = ask(redoma, &["completions", shell])?;
        files.insert(Path::new("packaging/completions").join(format!("redoma.{shell}")), script);
    }
    let pages = manual_pages(redoma)?;
    files.insert("docs/reference/cli.md".into(), reference(redoma, &pages)?);
    files.extend(pages.into_iter().map(|(name, page)| (Path::new(PAGES).join(name), page)));
    Ok(files)
}

/// Asks with nothing of the caller's environment, which could change colours or widths.
fn ask(redoma: &Path, args: &[&str]) -> Result<String> {
    process::output(Command::new(redoma).args(args).env_clear().env("COLUMNS", "100"))
}

fn manual_pages(redoma: &Path) -> Result<BTreeMap<String, String>> {
    let folder = tempfile::tempdir()?;
    let out = folder.path().to_str().context("the temporary folder is not UTF-8")?;
    ask(redoma, &["man", "--out", out])?;
    let mut pages = BTreeMap::new();
    for entry in fs::read_dir(folder.path())? {
        let entry = entry?;
        let name = entry.file_name().into_string().ok().context("a page's name is not UTF-8")?;
        pages.insert(name, fs::read_to_string(entry.path())?);
    }
    Ok(pages)
}

/// Every command's help on one page. A page `redoma-policy-show.1` is the command `redoma policy show`.
fn reference(redoma: &Path, pages: &BTreeMap<String, String>) -> Result<String> {
    let mut text = String::from("# Command line\n\nMade from the program by `cargo xtask generate`.\n");
    for page in pages.keys() {
        let name = command(page, pages);
        let words: Vec<&str> = name.split(' ').skip(1).chain(["--help"]).collect();
        write!(text, "\n## {name}\n\n```text\n{}\n```\n", trimmed(&ask(redoma, &words)?))?;
    }
    Ok(text)
}

/// The command of a page. A dash parts two words only where what is before it has a page: `redoma pause-idle`.
fn command(page: &str, pages: &BTreeMap<String, String>) -> String {
    let (mut path, mut name) = (String::new(), String::new());
    for part in page.strip_suffix(".1").unwrap_or(page).split('-') {
        let parent = pages.contains_key(&format!("{path}.1"));
        if !path.is_empty() {
            path.push('-');
            name.push(if parent { ' ' } else { '-' });
        }
        path.push_str(part);
        name.push_str(part);
    }
    name
}

fn trimmed(help: &str) -> String {
    help.lines().map(str::trim_end).collect::<Vec<_>>().join("\n").trim().to_owned()
}

fn write(files: &Files) -> Result<()> {
    for (name, content) in files {
        let path = root().join(name);
        if fs::read_to_string(&path).is_ok_and(|there| there == *content) {
            continue;
        }
        fs::create_dir_all(path.parent().expect("a file below a folder"))?;
        fs::write(&path, content).with_context(|| format!("cannot write {}", path.display()))?;
        println!("wrote {}", name.display());
    }
    stale(files)?.into_iter().try_for_each(|name| {
        println!("removed {}", name.display());
        fs::remove_file(root().join(&name)).with_context(|| format!("cannot remove {}", name.display()))
    })
}

fn check(files: &Files) -> Result<()> {
    let differs = |(name, content): &(&PathBuf, &String)| {
        fs::read_to_string(root().join(name)).ok().as_deref() != Some(content.as_str())
    };
    let mut wrong: Vec<PathBuf> = files.iter().filter(differs).map(|(name, _)| name.clone()).collect();
    wrong.extend(stale(files)?);
    if wrong.is_empty() {
        return Ok(());
    }
    let names: Vec<_> = wrong.iter().map(|name| name.display().to_string()).collect();
    bail!("not what the program says: {}; hint: cargo xtask generate", names.join(", "))
}

/// Pages of commands that are no more.
fn stale(files: &Files) -> Result<Vec<PathBuf>> {
    let folder = root().join(PAGES);
    if !folder.exists() {
        return Ok(Vec::new());
    }
    let entries = fs::read_dir(folder)?.collect::<std::io::Result<Vec<_>>>()?;
    let names = entries.iter().map(|entry| Path::new(PAGES).join(entry.file_name()));
    Ok(names.filter(|name| !files.contains_key(name)).collect())
}
