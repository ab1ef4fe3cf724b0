//! The documentation is checked like code: links lead somewhere, and commands in examples exist with their flags.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::process::{self, root};

/// Fails with everything that is wrong in any tracked Markdown file.
pub(crate) fn check(redoma: &Path) -> Result<()> {
    let mut wrong = Vec::new();
    for page in pages()? {
        let text = fs::read_to_string(&page).with_context(|| format!("cannot read {}", page.display()))?;
        let name = page.strip_prefix(root())?.display().to_string();
        wrong.extend(broken_links(&page, &text).map(|link| format!("{name}: no such file: {link}")));
        for example in examples(&text) {
            wrong.extend(unknown_words(redoma, example)?.map(|why| format!("{name}: `{example}`: {why}")));
        }
    }
    if wrong.is_empty() { Ok(()) } else { bail!("{}", wrong.join("\n")) }
}

fn pages() -> Result<Vec<PathBuf>> {
    let mut list = Command::new("git");
    list.args(["ls-files", "--cached", "--others", "--exclude-standard", "*.md"]).current_dir(root());
    Ok(process::output(&mut list)?.lines().map(|name| root().join(name)).collect())
}

/// Relative targets of `[text](target)` that are not there.
fn broken_links<'a>(page: &'a Path, text: &'a str) -> impl Iterator<Item = &'a str> {
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let files = targets.map(|target| target.split('#').next().unwrap_or(target));
    let relative =
        files.filter(|target| !target.is_empty() && !target.contains("://") && !target.contains(' '));
    relative.filter(|target| !page.parent().is_some_and(|folder| folder.join(target).exists()))
}

/// Lines such as `$ redoma run …`, without the prompt and what a `#` explains.
fn examples(text: &str) -> impl Iterator<Item = &str> {
    let commands = text.lines().filter_map(|line| line.strip_prefix("$ "));
    commands
        .filter(|line| line.starts_with("redoma "))
        .map(|line| line.split(" #").next().unwrap_or(line).trim())
}

/// What the help of the example's command does not know: a subcommand, or a long flag before `--`.
fn unknown_words(redoma: &Path, example: &str) -> Result<Option<String>> {
    let words: Vec<&str> = example.split_whitespace().skip(1).take_while(|word| *word != "--").collect();
    let mut path: Vec<&str> = words.iter().take(1).copied().collect();
    let Some(mut help) = help(redoma, &path)? else {
        return Ok(Some(format!("there is no command `{}`", path.join(" "))));
    };
    // What has commands of its own is followed by one of them.
    if let Some(next) = words.get(1).filter(|next| !next.starts_with('-') && help.contains("\nCommands:\n")) {
        path.push(next);
        match self::help(redoma, &path)? {
            Some(inner) => help = inner,
            None => return Ok(Some(format!("there is no command `{}`", path.join(" ")))),
        }
    }
    let known: BTreeSet<&str> = help.split(|c: char| c.is_whitespace() || ",=[".contains(c)).collect();
    let flags =
        words.iter().filter(|word| word.starts_with("--")).map(|word| word.split('=').next().unwrap_or(word));
    Ok(flags
        .into_iter()
        .find(|flag| !known.contains(flag))
        .map(|flag| format!("`{}` has no {flag}", path.join(" "))))
}

/// None if there is no such command.
fn help(redoma: &Path, path: &[&str]) -> Result<Option<String>> {
    let help = Command::new(redoma).args(path).arg("--help").output().context("cannot start redoma")?;
    Ok(help.status.success().then(|| String::from_utf8_lossy(&help.stdout).into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_to_nowhere_is_found_and_others_pass() {
        let page = root().join("README.md");
        let text = "[a](xtask/Cargo.toml) [b](missing.md#part) [c](https://example.com) [d](#here)";
        assert_eq!(broken_links(&page, text).collect::<Vec<_>>(), ["missing.md"]);
    }

    #[test]
    fn examples_lose_their_prompt_and_their_comment() {
        let text = "text\n$ redoma log --json   # lines\n$ cargo test\nredoma is a word\n";
        assert_eq!(examples(text).collect::<Vec<_>>(), ["redoma log --json"]);
    }
}
