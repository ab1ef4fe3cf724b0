//! Using up what the machine has. Each is bounded: where no limit stops it, it stops itself.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

use crate::attempt::{Attempt, Outcome, Section};
use crate::stage::Stage;

const fn limit(name: &'static str, what: &'static str, run: fn(&Stage) -> Outcome) -> Attempt {
    Attempt::new(Section::Limits, name, what, run).harmful()
}

const ATTEMPTS: &[Attempt] = &[
    limit("fork-bomb", "have more processes at once than the limit", |_| processes()).under("pids = 64"),
    limit("thread-bomb", "have more threads at once than the limit", |_| threads()).under("pids = 64"),
    limit("memory-bomb", "use more memory than the limit", |_| memory()).under(MEMORY_LIMIT),
    limit("memory-file", "the same in files in memory", |_| memory_files()).under(MEMORY_LIMIT),
    limit("memory-many", "the same in many processes that each use little", |_| memory_in_children())
        .under(MEMORY_LIMIT),
    limit("tmp-fill", "fill the private /tmp", |_| fill(Path::new("/tmp"))).under(DISK),
    limit("shm-fill", "fill /dev/shm", |_| fill(Path::new("/dev/shm"))).under(DISK),
    limit("home-fill", "fill the private home", |stage| fill(&stage.home)).under(DISK).full_only(),
    limit("cpu-hog", "use more processors than the limit", |_| processors()).under("cpus = 0.05"),
    limit("outstay", "run for longer than the limit", |_| outstay()).under("time = '1s'"),
    limit("descriptor-exhaustion", "have more files open than a sandbox ever needs", |_| descriptors())
        .root()
        .optional(),
];

pub(crate) fn attempts() -> Vec<Attempt> {
    ATTEMPTS.to_vec()
}

const MEMORY_LIMIT: &str = "memory = '128MiB'";
const DISK: &str = "disk = '64MiB'";

/// Many times the limit that is asked for, and little for a machine.
const PROCESSES: usize = 256;
const MEMORY: usize = 384 << 20;
const CHUNK: usize = 1 << 20;
/// The most that a process is let open by default on any distribution is far below.
const DESCRIPTORS: usize = 1 << 16;

fn processes() -> Outcome {
    let mut children: Vec<Child> = Vec::new();
    let started = (0..PROCESSES).try_for_each(|_| {
        children.push(Command::new("sleep").arg("60").stdin(Stdio::null()).spawn()?);
        Ok::<_, io::Error>(())
    });
    for child in &mut children {
        drop(child.kill());
        drop(child.wait());
    }
    Outcome::of(started, &format!("{PROCESSES} processes at once"))
}

fn threads() -> Outcome {
    let mut threads = Vec::new();
    let started = (0..PROCESSES).try_for_each(|_| {
        let builder = thread::Builder::new().stack_size(64 << 10);
        threads.push(builder.spawn(thread::park)?);
        Ok::<_, io::Error>(())
    });
    for thread in threads {
        thread.thread().unpark();
        drop(thread.join());
    }
    Outcome::of(started, &format!("{PROCESSES} threads at once"))
}

/// A kill ends the process: no outcome is then reported, which counts as stopped.
fn memory() -> Outcome {
    let mut held = Vec::new();
    for count in 0..MEMORY / CHUNK {
        let mut chunk = Vec::new();
        if chunk.try_reserve_exact(CHUNK).is_err() {
            return Outcome::stopped(format!("no memory after {count} MiB"));
        }
        // Written to, or the kernel would hand out nothing.
        chunk.resize(CHUNK, count as u8 | 1);
        held.push(chunk);
    }
    Outcome::succeeded(format!("held {} MiB", held.iter().map(Vec::len).sum::<usize>() >> 20))
}

fn memory_files() -> Outcome {
    let file = rustix::fs::memfd_create("held", rustix::fs::MemfdFlags::CLOEXEC);
    file.map_or_else(Outcome::refused, |file| write_up_to(File::from(file)))
}

fn memory_in_children() -> Outcome {
    let script = format!("x=$(head -c {} /dev/zero | tr '\\0' x); echo ready; read _", CHUNK * 16);
    let mut children: Vec<Child> = Vec::new();
    let outcome = (0..MEMORY / CHUNK / 16).try_for_each(|_| {
        let mut child = Command::new("sh")
            .args(["-c", &script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let mut ready = String::new();
        let output = child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
        io::BufRead::read_line(&mut io::BufReader::new(output), &mut ready)?;
        children.push(child);
        if ready.is_empty() { Err(io::Error::other("a process was ended")) } else { Ok(()) }
    });
    for child in &mut children {
        drop(child.kill());
        drop(child.wait());
    }
    Outcome::of(outcome, &format!("{} MiB in {} processes", MEMORY >> 20, children.len()))
}

fn fill(folder: &Path) -> Outcome {
    let path = folder.join(format!("filler-{}", std::process::id()));
    let outcome = File::create(&path).map_or_else(Outcome::refused, write_up_to);
    drop(fs::remove_file(path));
    outcome
}

fn write_up_to(mut file: File) -> Outcome {
    let chunk = vec![1; CHUNK];
    let written = (0..MEMORY / CHUNK).try_for_each(|_| file.write_all(&chunk));
    Outcome::of(written, &format!("wrote {} MiB", MEMORY >> 20))
}

/// Spins for a second on a thread for each processor of a small machine, and compares the processor's time with the
/// clock's.
fn processors() -> Outcome {
    let start = Instant::now();
    let spinners: Vec<_> =
        (0..4).map(|_| thread::spawn(move || while start.elapsed() < Duration::from_secs(1) {})).collect();
    for spinner in spinners {
        drop(spinner.join());
    }
    let used = clock_gettime(ClockId::ProcessCPUTime);
    let used = used.tv_sec as f64 + used.tv_nsec as f64 / 1e9;
    let share = used / start.elapsed().as_secs_f64();
    // A quota is met on average, so one period more is no breach. The limit is low, so that a machine that is busy
    // with other work still gives more than that where nothing holds it back.
    if share > 0.15 {
        Outcome::succeeded(format!("used {share:.2} processors"))
    } else {
        Outcome::stopped(format!("getting {share:.2} processors"))
    }
}

fn outstay() -> Outcome {
    thread::sleep(Duration::from_secs(3));
    Outcome::succeeded("was still there after three seconds")
}

fn descriptors() -> Outcome {
    let mut held = Vec::new();
    let opened = (0..DESCRIPTORS).try_for_each(|_| {
        held.push(File::open("/dev/null")?);
        Ok::<_, io::Error>(())
    });
    Outcome::of(opened, &format!("{} files open", held.len()))
}
