//! What every driver must do, as one suite of tests: [`CLAUSES`]. A driver's own tests say where to try it ([`Bed`]).
//!
//! What is a capability is tried where the driver has it. Commands are those of [busybox], in few words, so that the mock
//! can know them.
//!
//! [busybox]: https://busybox.net
#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    missing_docs,
    reason = "a panic is how a test fails, and standard error is where it says where"
)]

mod capabilities;
mod commands;
mod files;
mod life;
mod terminals;

use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

use redoma_jail::Ending;

use super::{
    Amounts, Command, Driver, DriverError, Happening, ImageName, Info, Name, Owner, Process, Rules,
    SandboxId, Spec, Streams, User,
};

/// Where a driver is tried.
pub trait Bed {
    /// The driver.
    fn driver(&self) -> &dyn Driver;

    /// An image with busybox and its names on the search path, and with `/bin/sh`.
    fn image(&self) -> ImageName;
}

/// One thing that every driver does.
pub struct Clause {
    /// What it says.
    pub name: &'static str,
    /// Tries it.
    pub holds: fn(&dyn Bed),
}

macro_rules! clauses {
    ($($module:ident :: { $($name:ident),+ $(,)? }),+ $(,)?) => {
        /// All of it.
        pub const CLAUSES: &[Clause] = &[$($(
            Clause { name: stringify!($name), holds: $module::$name },
        )+)+];
    };
}

clauses! {
    life::{
        what_is_made_is_listed_and_what_is_destroyed_is_not,
        a_name_is_taken_once,
        destroying_twice_is_no_error,
        what_is_gone_cannot_be_used,
        stopping_leaves_the_files,
        destroying_ends_what_runs,
    },
    commands::{
        a_command_exits_with_its_code,
        a_signal_is_128_and_its_number,
        what_is_not_there_does_not_start,
        what_is_written_to_standard_input_arrives_and_ends,
        a_mebibyte_goes_through_unchanged,
        output_and_errors_are_two_streams,
        variables_of_the_command_come_before_the_sandboxs,
        a_command_runs_where_it_was_told_to,
        a_time_out_ends_all_that_was_started,
        who_drops_a_command_ends_it,
        what_is_detached_goes_on,
        a_signal_reaches_the_command,
        several_commands_run_at_once,
    },
    terminals::{ a_terminal_is_one, a_terminal_has_the_size_it_was_told },
    files::{
        what_is_written_is_read,
        a_part_of_a_file_is_read,
        a_mode_is_kept,
        a_folder_lists_what_is_in_it,
        what_is_absent_is_an_error,
        a_tree_comes_back_as_it_went_in,
        a_link_inside_leads_nowhere_outside,
        a_command_sees_what_was_written,
    },
    capabilities::{
        what_is_paused_stands_still_and_goes_on,
        what_does_not_run_cannot_be_paused,
        a_fork_begins_as_the_snapshot,
        a_snapshots_name_is_taken_once,
        there_is_no_fork_of_nothing,
        what_is_used_is_told,
        what_ran_is_told,
    },
}

/// Tries every clause, whatever becomes of the ones before.
///
/// # Panics
/// If one does not hold; all of them are named.
pub fn hold_all(bed: &dyn Bed) {
    let broken: Vec<&str> = CLAUSES
        .iter()
        .filter(|clause| {
            let began = std::time::Instant::now();
            let held = catch_unwind(AssertUnwindSafe(|| (clause.holds)(bed))).is_ok();
            let verdict = if held { "holds" } else { "BROKEN" };
            eprintln!("{verdict:<6} {:>6} ms  {}", began.elapsed().as_millis(), clause.name);
            !held
        })
        .map(|clause| clause.name)
        .collect();
    assert!(broken.is_empty(), "{} of {} clauses are broken: {broken:?}", broken.len(), CLAUSES.len());
}

/// A sandbox that is destroyed when the clause is over, however that ended.
struct Made<'a> {
    driver: &'a dyn Driver,
    id: SandboxId,
    info: Info,
}

/// What came of a command.
#[derive(Debug)]
struct Ran {
    happened: Happening,
    stdout: Vec<u8>,
    stderr: Vec<u8>,
}

/// Longer than anything here takes, on a machine that has much to do.
const PATIENCE: Duration = Duration::from_secs(60);

/// A sandbox to be made from the bed's image, with nothing else asked for.
///
/// # Panics
/// When there is no randomness.
#[must_use]
pub fn any_spec(bed: &dyn Bed) -> Spec {
    spec(bed)
}

fn spec(bed: &dyn Bed) -> Spec {
    let id = SandboxId::random().unwrap();
    let created = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
    Spec {
        id,
        name: format!("c-{id}").parse().unwrap(),
        owner: Owner::default(),
        image: bed.image(),
        template: None,
        rules: Rules::default(),
        publish: Vec::new(),
        mounts: Vec::new(),
        env: Vec::new(),
        workdir: Some("/".into()),
        user: User::Root,
        amounts: Amounts::default(),
        labels: Default::default(),
        peers: Default::default(),
        created: i64::try_from(created).unwrap(),
    }
}

fn any_name() -> Name {
    format!("s-{}", SandboxId::random().unwrap()).parse().unwrap()
}

fn command(argv: &[&str]) -> Command {
    Command { argv: argv.iter().map(Into::into).collect(), ..Command::default() }
}

fn shell(script: &str) -> Command {
    command(&["sh", "-c", script])
}

impl<'a> Made<'a> {
    fn new(bed: &'a dyn Bed) -> Self {
        Self::of(bed, &spec(bed))
    }

    fn of(bed: &'a dyn Bed, spec: &Spec) -> Self {
        let driver = bed.driver();
        let info = driver.create(spec).unwrap();
        Self { driver, id: spec.id, info }
    }

    fn run(&self, command: &Command) -> Ran {
        self.feed(command, Vec::new())
    }

    /// Runs a command with bytes for its standard input.
    fn feed(&self, command: &Command, stdin: Vec<u8>) -> Ran {
        let (mut process, input, output) = self.start(command).unwrap();
        let writer = std::thread::spawn(move || std::fs::File::from(input).write_all(&stdin));
        let [stdout, stderr] = output.map(read_all);
        let happened = wait(process.as_mut());
        let (stdout, stderr) = (stdout.join().unwrap(), stderr.join().unwrap());
        let _ = writer.join().unwrap();
        Ran { happened, stdout, stderr }
    }

    /// Starts a command: its process, the writing end of its input, the reading ends of its outputs.
    #[expect(clippy::type_complexity, reason = "it is three things")]
    fn start(&self, command: &Command) -> Result<(Box<dyn Process>, OwnedFd, [OwnedFd; 2]), DriverError> {
        let pipe = || rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).unwrap();
        let ((stdin, input), (out, stdout), (err, stderr)) = (pipe(), pipe(), pipe());
        let given = vec![stdin.as_fd(), stdout.as_fd(), stderr.as_fd()];
        let process = self.driver.exec(&self.id, command, &Streams { terminal: None, given })?;
        Ok((process, input, [out, err]))
    }

    fn text(&self, command: &Command) -> String {
        String::from_utf8(self.run(command).stdout).unwrap()
    }

    fn code(&self, command: &Command) -> i32 {
        self.run(command).code()
    }

    /// Waits until no process of this name is left.
    fn wait_for_none(&self, name: &str) {
        let began = std::time::Instant::now();
        while self.code(&command(&["pidof", name])) == 0 {
            assert!(began.elapsed() < PATIENCE, "{name} goes on");
        }
    }
}

impl Drop for Made<'_> {
    fn drop(&mut self) {
        if let Err(error) = self.driver.destroy(&self.id) {
            eprintln!("cannot destroy {}: {error}", self.id);
        }
    }
}

impl Ran {
    /// What a shell would say.
    fn code(&self) -> i32 {
        match self.happened {
            Happening::Ended(Ending::Exited(code)) => code,
            Happening::Ended(Ending::Signaled(signal)) => 128 + signal,
            Happening::TimedOut => 124,
            Happening::Stopped => panic!("it was stopped"),
        }
    }
}

fn read_all(end: OwnedFd) -> JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut all = Vec::new();
        let _ = std::fs::File::from(end).read_to_end(&mut all);
        all
    })
}

/// Waits for a command's end.
fn wait(process: &mut dyn Process) -> Happening {
    loop {
        match process.event().unwrap() {
            Happening::Stopped => {}
            end => return end,
        }
    }
}
