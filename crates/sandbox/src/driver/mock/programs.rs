//! The programs that the mock knows, in the words that real ones have: just what the driver contract asks for.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use redoma_jail::Ending;
use rustix::event::{PollFd, PollFlags, Timespec};

use super::files::Tree;
use super::process::{Clock, FOREVER};

/// What a program sees of the world.
pub(super) struct Scene {
    pub(super) clock: Arc<Clock>,
    pub(super) pid: u32,
    pub(super) tree: Tree,
    pub(super) env: BTreeMap<String, String>,
    pub(super) workdir: PathBuf,
    pub(super) stdio: Stdio,
}

/// Standard input, output and error; the size of the terminal that they are, if they are one.
pub(super) struct Stdio {
    pub(super) stdin: Option<File>,
    pub(super) stdout: Option<File>,
    pub(super) stderr: Option<File>,
    pub(super) terminal: Option<Arc<Mutex<(u16, u16)>>>,
}

/// One command, or several that a shell runs one after another.
pub(super) struct Program {
    steps: Vec<Vec<String>>,
    name: String,
}

const KNOWN: [&str; 11] =
    ["true", "false", "echo", "cat", "pwd", "sleep", "tty", "stty", "pidof", "rm", "ln"];

impl Program {
    /// None where there is no such program.
    pub(super) fn of(argv: &[String]) -> Option<Self> {
        let (name, rest) = argv.split_first()?;
        if name == "sh" {
            let steps = rest.get(1)?.split([';', '\n']).map(words).collect();
            return Some(Self { steps, name: name.clone() });
        }
        KNOWN.contains(&name.as_str()).then(|| Self { steps: vec![argv.to_vec()], name: name.clone() })
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Plays it to its end, or to the deadline.
    pub(super) fn play(&self, scene: &Scene, deadline: Option<Instant>) -> Ending {
        let until = deadline.unwrap_or_else(|| Instant::now() + FOREVER);
        let mut code = 0;
        for step in &self.steps {
            match scene.step(step, until) {
                Done::Code(done) => code = done,
                Done::Exit(ending) => return ending,
            }
        }
        Ending::Exited(code)
    }
}

/// What came of one step.
enum Done {
    Code(i32),
    Exit(Ending),
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

impl Scene {
    fn step(&self, words: &[String], until: Instant) -> Done {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match words.as_slice() {
            ["exit", code] => return Done::Exit(Ending::Exited(code.parse().unwrap_or(2))),
            ["kill", signal, "$$"] => {
                let signal = signal.trim_start_matches('-').parse().unwrap_or(15);
                return Done::Exit(Ending::Signaled(signal));
            }
            ["setsid", rest @ .., "&"] | [rest @ .., "&"] => {
                let name = rest.first().copied().unwrap_or_default();
                self.clock.begin(Some(self.pid), name);
            }
            [rest @ .., ">&2"] => self.say(&self.stdio.stderr, &self.output(rest)),
            [rest @ .., ">", file] => self.tree.put(Path::new(file), 0o644, self.output(rest)),
            ["sleep", seconds] => {
                let seconds = seconds.parse().map_or(FOREVER, Duration::from_secs);
                if !self.clock.wait(self.pid, until.min(Instant::now() + seconds)) {
                    return Done::Exit(Ending::Signaled(9));
                }
            }
            ["cat"] => self.pass_on(until),
            other => {
                self.say(&self.stdio.stdout, &self.output(other));
                return Done::Code(self.code(other));
            }
        }
        Done::Code(0)
    }

    fn output(&self, words: &[&str]) -> Vec<u8> {
        let line = |text: String| (text + "\n").into_bytes();
        match words {
            ["echo", rest @ ..] => {
                let value = |word: &&str| match word.strip_prefix('$') {
                    Some(name) => self.env.get(name).cloned().unwrap_or_default(),
                    None => (*word).to_owned(),
                };
                line(rest.iter().map(value).collect::<Vec<_>>().join(" "))
            }
            ["pwd"] => line(self.workdir.display().to_string()),
            ["cat", files @ ..] => {
                files.iter().filter_map(|file| self.tree.content(Path::new(file))).flatten().collect()
            }
            ["pidof", name] => {
                let found = self.clock.named(name);
                found.iter().map(u32::to_string).collect::<Vec<_>>().join(" ").into_bytes()
            }
            ["tty"] if self.stdio.terminal.is_some() => line("/dev/pts/0".into()),
            ["stty", "size"] => {
                let size = self
                    .stdio
                    .terminal
                    .as_ref()
                    .map(|size| *size.lock().unwrap_or_else(PoisonError::into_inner));
                size.map(|(rows, columns)| line(format!("{rows} {columns}"))).unwrap_or_default()
            }
            _ => Vec::new(),
        }
    }

    fn code(&self, words: &[&str]) -> i32 {
        let done = match words {
            ["cat", files @ ..] => files.iter().all(|file| self.tree.content(Path::new(file)).is_some()),
            ["pidof", name] => !self.clock.named(name).is_empty(),
            ["tty"] => self.stdio.terminal.is_some(),
            ["rm", file] => self.tree.unlink(Path::new(file)),
            ["ln", "-s", to, at] => {
                self.tree.link(Path::new(to), Path::new(at));
                true
            }
            ["false"] => false,
            _ => true,
        };
        i32::from(!done)
    }

    /// Standard input to standard output, as long as there is any and nobody ended it.
    fn pass_on(&self, until: Instant) {
        let Some(mut stdin) = self.stdio.stdin.as_ref() else { return };
        let mut chunk = vec![0; 64 << 10];
        // To notice an end that comes from outside.
        const GLANCE: Duration = Duration::from_millis(5);
        while self.clock.wait(self.pid, Instant::now()) && Instant::now() < until {
            let glance = Timespec::try_from(GLANCE).unwrap_or_default();
            let ready = rustix::event::poll(
                &mut [PollFd::from_borrowed_fd(stdin.as_fd(), PollFlags::IN)],
                Some(&glance),
            );
            if ready.is_ok_and(|ready| ready > 0) {
                match stdin.read(&mut chunk) {
                    Ok(0) | Err(_) => return,
                    Ok(length) => self.say(&self.stdio.stdout, &chunk[..length]),
                }
            }
        }
    }

    fn say(&self, to: &Option<File>, bytes: &[u8]) {
        if let Some(mut to) = to.as_ref() {
            // A reader that is gone is no error of a story.
            let _ = to.write_all(bytes);
        }
    }
}
