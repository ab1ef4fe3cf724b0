//! Sandboxes that outlive one command: made, used, frozen, forked, thrown away, and what is left after a kill.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use redoma_tests::{Home, Project, Ran, descendants, wait_gone};
use rustix::process::{Pid, Signal, kill_process};

/// Longer than any of this takes.
const A_MOMENT: Duration = Duration::from_secs(20);

/// The sandboxes of one test; what is left of them goes with it.
struct Box<'h> {
    project: Project<'h>,
}

impl<'h> Box<'h> {
    fn new(home: &'h Home) -> Self {
        Self { project: home.folder("p") }
    }

    fn redoma(&self, words: &str) -> Ran {
        self.project.redoma(words.split_whitespace()).run()
    }

    fn shell(&self, sandbox: &str, script: &str) -> Ran {
        self.project.redoma(["sandbox", "exec", sandbox, "--", "sh", "-c", script]).run()
    }

    fn state(&self) -> PathBuf {
        self.project.home().redoma().join("state")
    }

    fn info(&self, sandbox: &str) -> serde_json::Value {
        self.redoma(&format!("sandbox info {sandbox} --json")).ok().json()
    }

    /// The keeper's process, as its own command line names it.
    fn keeper(&self, sandbox: &str) -> i32 {
        let id = self.info(sandbox)["id"].as_str().unwrap().to_owned();
        let wanted = format!("redoma\0keeper\0{id}\0");
        let is_it =
            |pid: &i32| fs::read_to_string(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line == wanted);
        let all = fs::read_dir("/proc").unwrap().flatten();
        let mut found: Vec<i32> =
            all.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(is_it).collect();
        found.sort_unstable();
        // Its own forks have its command line too: it is the one that none of the others is the parent of.
        let below: Vec<i32> = found.iter().flat_map(|pid| descendants(*pid)).collect();
        found.into_iter().find(|pid| !below.contains(pid)).expect("a keeper")
    }

    fn kill_keeper(&self, sandbox: &str) -> Vec<i32> {
        let keeper = self.keeper(sandbox);
        let inside = descendants(keeper);
        kill_process(Pid::from_raw(keeper).unwrap(), Signal::KILL).unwrap();
        assert!(wait_gone(keeper, A_MOMENT));
        inside
    }
}

impl Drop for Box<'_> {
    fn drop(&mut self) {
        let _ = self.redoma("sandbox rm --all");
    }
}

#[test]
fn a_sandbox_keeps_what_its_commands_did_until_it_is_removed() {
    let home = Home::new();
    let b = Box::new(&home);
    assert_eq!(b.redoma("sandbox create --name one").ok().out(), "one\n");
    let _ = b.shell("one", "echo kept > note; mkdir -p /srv; echo too > /srv/x").ok();
    assert_eq!(b.shell("one", "cat note /srv/x; id -u; hostname").ok().out(), "kept\ntoo\n0\none\n");
    let _ = b.shell("one", "exit 7").expect_code(7);
    let _ = b.shell("one", "kill -TERM $$").expect_code(143);
    let _ = b.redoma("sandbox exec one -- no-such-program").expect_code(127);
    let listed = b.redoma("sandbox ls --json").ok().json();
    assert_eq!((listed[0]["name"].as_str(), listed[0]["state"].as_str()), (Some("one"), Some("running")));
    let _ = b.redoma("sandbox rm one").ok();
    assert_eq!(b.redoma("sandbox ls --json").ok().json().as_array().map(Vec::len), Some(0));
    assert_eq!(fs::read_dir(b.state().join("sandboxes/names")).unwrap().count(), 0);
    let _ = b.redoma("sandbox exec one -- true").expect_code(125);
}

#[test]
fn the_hosts_files_and_network_are_not_there() {
    let home = Home::new();
    let b = Box::new(&home);
    let secret = home.file("secret.txt", "the host's own");
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let _ = b.redoma("sandbox create --name one").ok();
    let read = b.shell("one", &format!("cat {}", secret.display()));
    assert_ne!(read.code(), 0);
    let _ = b.shell("one", "echo x > /usr/planted").expect_code(2);
    // Also for root, who may read the host's.
    assert!(!b.shell("one", "cat /etc/shadow").out().contains("root:"));
    let connect = format!("exec 3<>/dev/tcp/127.0.0.1/{port}");
    let refused = b.project.redoma(["sandbox", "exec", "one", "--", "bash", "-c", &connect]).run();
    assert_ne!(refused.code(), 0);
    // The same outside.
    assert!(Command::new("bash").args(["-c", &connect]).status().unwrap().success());
}

#[test]
fn a_name_is_taken_once_and_the_beginning_of_an_id_is_enough() {
    let home = Home::new();
    let b = Box::new(&home);
    let _ = b.redoma("sandbox create --name one").ok();
    let again = b.redoma("sandbox create --name one").expect_code(1);
    assert!(again.err().contains("the name one is taken"), "{}", again.err());
    let id = b.info("one")["id"].as_str().unwrap().to_owned();
    assert_eq!(b.redoma(&format!("sandbox exec {} -- echo by-id", &id[..5])).ok().out(), "by-id\n");
    let none = b.redoma("sandbox info nothing").expect_code(1);
    assert!(none.err().contains("hint: redoma sandbox ls"), "{}", none.err());
}

#[test]
fn streams_go_through_byte_for_byte() {
    let home = Home::new();
    let b = Box::new(&home);
    let _ = b.redoma("sandbox create --name one").ok();
    let bytes: Vec<u8> = (0..300_000u32).map(|n| (n % 251) as u8).collect();
    let sum =
        b.project.redoma(["sandbox", "exec", "-i", "one", "--", "sha256sum"]).stdin(bytes.clone()).run().ok();
    let mut outside = Command::new("sha256sum")
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    std::io::Write::write_all(&mut outside.stdin.take().unwrap(), &bytes).unwrap();
    assert_eq!(sum.out(), String::from_utf8(outside.wait_with_output().unwrap().stdout).unwrap());
    // Without -i there is nothing to read.
    let silent = b.project.redoma(["sandbox", "exec", "one", "--", "cat"]).stdin("typed").run().ok();
    assert_eq!(silent.out(), "");
}

#[test]
fn a_time_out_ends_all_that_a_command_started_and_nothing_else() {
    let home = Home::new();
    let b = Box::new(&home);
    let _ = b.redoma("sandbox create --name one").ok();
    let _ = b.redoma("sandbox exec -d one -- sleep 7001").ok();
    let script = "setsid sh -c 'sleep 7002 & sleep 7003' & (sleep 7004 &); sleep 7005";
    let began = Instant::now();
    let late =
        b.project.redoma(["sandbox", "exec", "--timeout", "300ms", "one", "--", "sh", "-c", script]).run();
    assert_eq!(late.code(), 124, "{}", late.err());
    assert!(began.elapsed() < A_MOMENT);
    let left = b.shell("one", "ps -eo args").ok().out();
    assert!(left.contains("sleep 7001") && !left.contains("sleep 7002"), "{left}");
    for gone in ["7003", "7004", "7005"] {
        assert!(!left.contains(&format!("sleep {gone}")), "{left}");
    }
}

#[test]
fn a_fork_begins_as_the_snapshot_and_goes_its_own_way() {
    let home = Home::new();
    let b = Box::new(&home);
    let _ = b.redoma("sandbox create --name one --memory 1GiB --env COLOUR=blue").ok();
    let _ = b.shell("one", "echo first > /root/note; rm -f /workspace/x; mkdir /workspace/d").ok();
    let _ = b.redoma("sandbox snapshot one frozen").ok();
    let _ = b.shell("one", "echo second > /root/note").ok();
    assert_eq!(b.redoma("sandbox fork frozen --name two --name three").ok().out(), "two\nthree\n");
    let _ = b.shell("two", "echo third > /root/note; rmdir /workspace/d").ok();
    let read = |sandbox| b.shell(sandbox, "cat /root/note; ls /workspace; echo $COLOUR").ok().out();
    assert_eq!(read("one"), "second\nd\nblue\n");
    assert_eq!(read("two"), "third\nblue\n");
    assert_eq!(read("three"), "first\nd\nblue\n");
    assert_eq!(b.info("two")["amounts"]["memory"], "1GiB");
    let taken = b.redoma("sandbox snapshot one frozen").expect_code(1);
    assert!(taken.err().contains("is taken"), "{}", taken.err());
    // What stands on a snapshot stands on when that is gone, and the layer goes with the last of them.
    let _ = b.redoma("snapshot rm frozen").ok();
    assert_eq!(read("three"), "first\nd\nblue\n");
    let _ = b.redoma("sandbox rm one two three").ok();
    assert_eq!(fs::read_dir(b.state().join("layers")).unwrap().count(), 0);
}

#[test]
fn a_paused_sandbox_stands_still_and_a_command_wakes_it() {
    let home = Home::new();
    let b = Box::new(&home);
    let _ = b.redoma("sandbox create --name one").ok();
    let _ = b.redoma("sandbox exec -d one -- sh -c true").ok();
    let started = b.project.redoma([
        "sandbox",
        "exec",
        "-d",
        "one",
        "--",
        "sh",
        "-c",
        "while :; do echo x >> /root/ticks; done",
    ]);
    let _ = started.run().ok();
    let _ = b.redoma("sandbox pause one").ok();
    assert_eq!(b.info("one")["state"], "paused");
    let ticks =
        b.state().join("sandboxes").join(b.info("one")["id"].as_str().unwrap()).join("upper/root/ticks");
    let length = || fs::metadata(&ticks).map_or(0, |meta| meta.len());
    let before = length();
    // Long enough for a loop that runs to write thousands of lines.
    let _ = Command::new("sleep").arg("0.2").status();
    assert_eq!(length(), before, "it goes on");
    let _ = b.shell("one", "true").ok();
    assert_eq!(b.info("one")["state"], "running");
    let deadline = Instant::now() + A_MOMENT;
    while length() == before {
        assert!(Instant::now() < deadline, "it does not go on");
    }
}

#[test]
fn a_killed_keeper_takes_everything_with_it_and_the_sandbox_goes_on() {
    let home = Home::new();
    let b = Box::new(&home);
    let _ = b.redoma("sandbox create --name one --pids 100 --net deny --publish 0:1").expect_code(1);
    let _ = b.redoma("sandbox create --name one --pids 100").ok();
    let _ = b.shell("one", "echo kept > note").ok();
    let _ = b.redoma("sandbox exec -d one -- sleep 1000").ok();
    let inside = b.kill_keeper("one");
    for pid in inside {
        assert!(wait_gone(pid, A_MOMENT), "{pid} outlived its keeper");
    }
    assert_eq!(b.info("one")["state"], "stopped");
    assert_eq!(b.shell("one", "cat note").ok().out(), "kept\n");
    let _ = b.redoma("sandbox rm one").ok();
    let gc = b.redoma("doctor --gc --json").ok().json();
    assert_eq!(gc.as_array().map(Vec::len), Some(0), "{gc}");
}

#[test]
fn what_a_killed_creation_or_removal_left_is_cleared_away() {
    let home = Home::new();
    let b = Box::new(&home);
    let _ = b.redoma("sandbox create --name one").ok();
    let sandboxes = b.state().join("sandboxes");
    // As `create` and `rm` leave it when they are killed between two steps.
    fs::create_dir_all(sandboxes.join("abcdefghij/upper/deep")).unwrap();
    fs::create_dir_all(sandboxes.join(".gone-bcdefghijk/upper")).unwrap();
    std::os::unix::fs::symlink("abcdefghij", sandboxes.join("names/half")).unwrap();
    let listed = b.redoma("sandbox ls --json").ok().json();
    assert_eq!(listed.as_array().map(Vec::len), Some(1), "{listed}");
    assert!(!sandboxes.join("abcdefghij").exists() && !sandboxes.join(".gone-bcdefghijk").exists());
    let _ = b.redoma("sandbox create --name half").ok();
}

#[test]
fn what_is_mounted_is_guarded_as_in_a_run() {
    let home = Home::new();
    let b = Box::new(&home);
    b.project.git(&["init", "-q"]);
    b.project.file(".env", "KEY=sk_live_51Habc123\n");
    b.project.file("main.py", "print(1)\n");
    let create = b.project.redoma(["sandbox", "create", "--name", "one", "--mount", ".:/workspace"]);
    let _ = create.run().ok();
    let seen = b.shell("one", "cat .env; ls; echo changed > main.py; echo evil > .git/hooks/post-checkout");
    assert!(!seen.out().contains("51Habc123"), "{}", seen.out());
    assert!(seen.out().contains("main.py"), "{}", seen.out());
    assert_eq!(b.project.read("main.py"), "changed\n");
    assert!(!b.project.path().join(".git/hooks/post-checkout").exists());
    // What is not there yet may not appear, or the host would run it.
    let _ = b.shell("one", "echo evil > .envrc; mkdir -p .vscode; echo evil > .vscode/tasks.json");
    let _ = b.redoma("sandbox rm one").ok();
    assert!(!b.project.path().join(".envrc").exists());
    assert!(!b.project.path().join(".vscode/tasks.json").exists());
    let aside = b.project.redoma(["sandbox", "create", "--name", "two", "--mount", ".:/workspace:overlay"]);
    let _ = aside.run().ok();
    let _ = b.shell("two", "echo aside > main.py; cat main.py").ok();
    assert_eq!(b.project.read("main.py"), "changed\n");
}

#[test]
fn redomas_own_folders_are_never_mounted() {
    let home = Home::new();
    let b = Box::new(&home);
    let _ = b.redoma("sandbox create --name one").ok();
    for wide in [b.state(), home.redoma(), home.redoma().parent().unwrap().to_owned(), PathBuf::from("/")] {
        let mount = format!("{}:/workspace", wide.display());
        let refused = b.project.redoma(["sandbox", "create", "--name", "two", "--mount", &mount]).run();
        assert_eq!(refused.code(), 1, "{mount}");
        assert!(refused.err().contains("what Redoma keeps"), "{}", refused.err());
    }
}

#[test]
fn everything_that_ran_is_in_the_history_and_on_the_record() {
    let home = Home::new();
    let b = Box::new(&home);
    let _ = b.redoma("sandbox create --name one").ok();
    let _ = b.shell("one", "exit 3").expect_code(3);
    let _ = b.redoma("sandbox exec one -- echo said").ok();
    let past = b.redoma("sandbox history one --json").ok().json();
    let told: Vec<_> =
        past.as_array().unwrap().iter().map(|one| (one["argv"][0].as_str(), one["exit"].as_i64())).collect();
    assert_eq!(told, [(Some("sh"), Some(3)), (Some("echo"), Some(0))]);
    let _ = b.redoma("sandbox rm one").ok();
    let _ = b.redoma("audit verify").ok();
}

#[test]
fn a_sandbox_over_its_disk_limit_ends_and_says_so() {
    let home = Home::new();
    let b = Box::new(&home);
    let _ = b.redoma("sandbox create --name small --disk 8MiB").ok();
    let _ = b.redoma("sandbox create --name other --disk 64MiB").ok();
    let _ = b.shell("other", "head -c 16000000 /dev/zero > /root/much").ok();
    let filled = b.shell("small", "head -c 16000000 /dev/zero > /root/much; sleep 1000");
    assert_eq!(filled.code(), 125, "{}", filled.err());
    assert!(filled.err().contains("more than the 8MiB of disk"), "{}", filled.err());
    assert_eq!(b.shell("other", "echo lives").ok().out(), "lives\n");
    let _ = b.redoma("log").ok();
}

#[test]
fn files_go_in_and_out_without_a_shell() {
    let home = Home::new();
    let b = Box::new(&home);
    let _ = b.redoma("sandbox create --name one").ok();
    b.project.file("tree/deep/run.sh", "#!/bin/sh\necho ran\n");
    let cp = |from: &str, to: &str| b.project.redoma(["sandbox", "cp", from, to]).run();
    let _ = cp("tree", "one:/srv").ok();
    assert_eq!(b.shell("one", "sh /srv/deep/run.sh").ok().out(), "ran\n");
    let _ = b.shell("one", "echo result > /root/result; ln -s /etc/passwd /root/link").ok();
    let _ = cp("one:/root/result", "got.txt").ok();
    assert_eq!(b.project.read("got.txt"), "result\n");
    assert_eq!(cp("one:/root/result", "-").ok().out(), "result\n");
    let piped = b.project.redoma(["sandbox", "cp", "-", "one:/root/piped"]).stdin("from a pipe").run();
    let _ = piped.ok();
    assert_eq!(b.shell("one", "cat /root/piped").ok().out(), "from a pipe");
    let missing = cp("one:/root/nothing", "x");
    assert_eq!(missing.code(), 1);
    assert!(missing.err().contains("hint:"), "{}", missing.err());
}

#[test]
fn a_difference_between_snapshots_is_told_without_asking_the_image() {
    let home = Home::new();
    let b = Box::new(&home);
    let _ = b.redoma("sandbox create --name one").ok();
    let _ = b.shell("one", "cd /root; echo a > same; echo b > gone; echo c > changed; echo d > mode").ok();
    let _ = b.redoma("sandbox snapshot one first").ok();
    // The same size, and the same time as before.
    let change = "cd /root; rm gone; touch -r changed t; echo C > changed; touch -r t changed; rm t; chmod 755 mode; echo e > new";
    let _ = b.shell("one", change).ok();
    let _ = b.redoma("sandbox snapshot one second").ok();
    let differences = b.redoma("snapshot diff first second --json").ok().json();
    let told: Vec<_> = differences
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (one["path"].as_str().unwrap(), one["differs"].as_str().unwrap()))
        .filter(|(path, _)| *path != "/root")
        .collect();
    let wanted = [
        ("/root/changed", "modified"),
        ("/root/gone", "removed"),
        ("/root/mode", "mode"),
        ("/root/new", "added"),
    ];
    assert_eq!(told, wanted);
    let text = b.redoma("snapshot diff --content first second").ok().out();
    assert!(text.contains("-c\n+C"), "{text}");
    let _ = b.redoma("snapshot rm first second").ok();
}

#[test]
fn fifty_noisy_sandboxes_leave_a_quiet_one_in_peace() {
    const NOISY: usize = 50;
    let home = Home::new();
    let b = Box::new(&home);
    let _ = b.redoma("sandbox create --name quiet").ok();
    let _ = b.shell("quiet", "echo kept > note").ok();
    for number in 0..NOISY {
        let _ = b.redoma(&format!("sandbox create --name noisy{number}")).ok();
        let noise =
            "while :; do echo $RANDOM >> /root/noise; head -c 65536 /dev/zero > /tmp/z; sleep 0.2; done";
        let started =
            b.project.redoma(["sandbox", "exec", "-d", &format!("noisy{number}"), "--", "bash", "-c", noise]);
        let _ = started.run().ok();
    }
    let seen = b.shell("quiet", "cat note; ps -e -o comm= | grep -c '^sleep$' || true; ls /root").ok().out();
    assert_eq!(seen, "kept\n0\n", "it sees nobody else");
    let _ = b.shell("quiet", "kill -9 -1 2>/dev/null; true");
    let listed = b.redoma("sandbox ls --json").ok().json();
    let alive = listed.as_array().unwrap().iter().filter(|one| one["state"] == "running").count();
    assert_eq!(alive, NOISY + 1);
}
