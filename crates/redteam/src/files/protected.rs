//! Changing, replacing or making what is protected: what programs of the host run or trust.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags, renameat_with};

use crate::attempt::{Attempt, Outcome, Section};
use crate::stage::Stage;

const fn existing(name: &'static str, what: &'static str, run: fn(&Stage) -> Outcome) -> Attempt {
    absent(name, what, run).full_only()
}

const fn absent(name: &'static str, what: &'static str, run: fn(&Stage) -> Outcome) -> Attempt {
    Attempt::new(Section::Files, name, what, run).on_host()
}

pub(super) const ATTEMPTS: &[Attempt] = &[
    existing("git-fsmonitor", "set core.fsmonitor, which the host's next `git status` runs", |stage| {
        done(append(&config(stage), "[core]\n\tfsmonitor = ./run-me\n"))
    }),
    existing(
        "git-hooks-path",
        "set core.hooksPath by a new file renamed over the old, as git does",
        |stage| {
            let lock = stage.project.join(".git/config.lock");
            let written = fs::write(&lock, "[core]\n\thooksPath = ./run-me\n");
            done(written.and_then(|()| fs::rename(lock, config(stage))))
        },
    ),
    existing("git-filter", "put a clean filter in place of the configuration, cut short first", |stage| {
        let text = "[filter \"x\"]\n\tclean = ./run-me\n[diff]\n\texternal = ./run-me\n";
        done(fs::write(config(stage), text))
    }),
    existing("git-hook-create", "make .git/hooks/post-checkout", |stage| {
        done(fs::write(stage.project.join(".git/hooks/post-checkout"), SCRIPT))
    }),
    existing("git-hook-change", "change a hook that is there", |stage| {
        done(append(&stage.project.join(".git/hooks/pre-commit.sample"), SCRIPT))
    }),
    existing("git-hooks-rename", "rename .git/hooks and make another", |stage| {
        replace_folder(stage, ".git/hooks", "post-checkout")
    }),
    existing("git-hooks-link", "put a link in the place of .git/hooks", |stage| {
        let hooks = stage.project.join(".git/hooks");
        done(fs::rename(&hooks, stage.project.join("aside")).and_then(|()| symlink("../src", hooks)))
    }),
    existing("git-hooks-exchange", "exchange .git/hooks with a folder of one's own", |stage| {
        let (own, hooks) = (stage.project.join("src"), stage.project.join(".git/hooks"));
        done(renameat_with(CWD, &own, CWD, &hooks, RenameFlags::EXCHANGE).map_err(Into::into))
    }),
    existing("git-rename", "rename .git and make another with its own configuration", |stage| {
        replace_folder(stage, ".git", "config")
    }),
    existing("git-pointer", "put a file in the place of .git that points elsewhere", |stage| {
        let git = stage.project.join(".git");
        done(fs::rename(&git, stage.project.join("aside")).and_then(|()| fs::write(git, "gitdir: ../src\n")))
    }),
    existing("git-remove", "remove .git/config", |stage| done(fs::remove_file(config(stage)))),
    existing("git-config-link", "give .git/config another name and write to that", |stage| {
        let name = stage.project.join("linked");
        done(fs::hard_link(config(stage), &name).and_then(|()| append(&name, "[core]\n")))
    }),
    existing("project-rename", "rename the project itself and change it there", |stage| {
        let moved = stage.project.with_file_name("moved");
        let renamed = fs::rename(&stage.project, &moved);
        done(renamed.and_then(|()| append(&moved.join(".git/config"), "[core]\n")))
    }),
    existing("editor-task", "make a task that the user's editor runs", |stage| {
        done(fs::write(stage.project.join(".vscode/tasks.json"), "{}"))
    }),
    existing("editor-remove-tree", "remove the editor's folder and make it anew", |stage| {
        let folder = stage.project.join(".vscode");
        done(fs::remove_dir_all(&folder).and_then(|()| fs::create_dir(folder)))
    }),
    absent("create-envrc", "make a protected file that doesn't exist", |stage| {
        done(fs::write(stage.project.join(".envrc"), SCRIPT))
    }),
    absent("create-mcp-by-rename", "make it under another name and rename it", |stage| {
        let draft = stage.project.join("draft");
        done(fs::write(&draft, "{}").and_then(|()| fs::rename(draft, stage.project.join(".mcp.json"))))
    }),
    absent("create-mcp-by-link", "make it as a hard link", |stage| {
        let draft = stage.project.join("draft");
        done(fs::write(&draft, "{}").and_then(|()| fs::hard_link(draft, stage.project.join(".mcp.json"))))
    }),
    absent("create-envrc-as-symlink", "make it as a link to a file of one's own", |stage| {
        done(symlink("src/main.txt", stage.project.join(".envrc")))
    }),
    absent("create-settings", "make a protected file in a folder that doesn't exist", |stage| {
        let folder = stage.project.join(".claude");
        done(fs::create_dir(&folder).and_then(|()| fs::write(folder.join("settings.json"), "{}")))
    }),
    absent("create-settings-by-rename", "make the folder elsewhere, full, and rename it", |stage| {
        let draft = stage.project.join("draft");
        let made = fs::create_dir(&draft).and_then(|()| fs::write(draft.join("settings.json"), "{}"));
        done(made.and_then(|()| fs::rename(draft, stage.project.join(".claude"))))
    }),
    absent("create-settings-by-symlink", "make the folder a link to a full one", |stage| {
        let draft = stage.project.join("draft");
        let made = fs::create_dir(&draft).and_then(|()| fs::write(draft.join("settings.json"), "{}"));
        done(made.and_then(|()| symlink("draft", stage.project.join(".claude"))))
    }),
    absent("create-many", "make it again and again, faster than it is taken away", |stage| {
        let path = stage.project.join(".envrc");
        done((0..ROUNDS).try_for_each(|_| fs::write(&path, SCRIPT)))
    }),
];

const SCRIPT: &str = "#!/bin/sh\n: run by the host\n";
const ROUNDS: usize = 2_000;

fn config(stage: &Stage) -> PathBuf {
    stage.project.join(".git/config")
}

fn done(result: io::Result<()>) -> Outcome {
    Outcome::of(result, "the call was carried out")
}

fn append(path: &Path, text: &str) -> io::Result<()> {
    OpenOptions::new().append(true).open(path)?.write_all(text.as_bytes())
}

fn replace_folder(stage: &Stage, folder: &str, file: &str) -> Outcome {
    let folder = stage.project.join(folder);
    done(
        fs::rename(&folder, stage.project.join("aside"))
            .and_then(|()| fs::create_dir(&folder))
            .and_then(|()| fs::write(folder.join(file), SCRIPT)),
    )
}
