//! Interactive programs, typed at like a person types.

use std::path::Path;

use redoma_tests::{Home, Tier, requires};

#[test]
fn ctrl_c_ends_the_command_with_130() {
    let home = Home::new();
    let mut terminal = home.project("p").shell("echo go; exec sleep 1000").terminal();
    terminal.expect("go");
    terminal.send([3]);
    assert_eq!(terminal.finish().0, 130);
}

#[test]
fn a_resize_arrives() {
    let home = Home::new();
    let script = "sleep 1000 & trap 'stty size; exit 0' WINCH; echo go; wait";
    let mut terminal = home.project("p").inside(["bash", "-c", script]).terminal();
    terminal.expect("go");
    terminal.resize(40, 132);
    terminal.expect("40 132");
    assert_eq!(terminal.finish().0, 0);
}

#[test]
fn the_first_size_is_the_callers() {
    let home = Home::new();
    let terminal = home.project("p").inside(["stty", "size"]).terminal();
    let (code, shown) = terminal.finish();
    assert_eq!(code, 0, "{shown}");
    assert!(shown.contains("24 80"), "{shown}");
}

#[test]
fn colours_pass_untouched() {
    let home = Home::new();
    let mut terminal = home.project("p").shell("printf '\\033[31mred\\033[0m\\n'").terminal();
    terminal.expect("\x1b[31mred\x1b[0m");
    assert_eq!(terminal.finish().0, 0);
}

#[test]
fn a_paste_of_a_megabyte_arrives_whole() {
    let home = Home::new();
    let script = "stty raw -echo; printf go; head -c 1000000 | md5sum";
    let mut terminal = home.project("p").shell(script).terminal();
    terminal.expect("go");
    terminal.send(vec![b'x'; 1_000_000]);
    // The digest of a million times `x`, from md5sum(1) outside.
    terminal.expect(&digest_outside());
    assert_eq!(terminal.finish().0, 0);
}

fn digest_outside() -> String {
    let script = "head -c 1000000 /dev/zero | tr '\\0' x | md5sum | cut -d' ' -f1";
    let output = std::process::Command::new("sh").args(["-c", script]).output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[test]
fn the_end_of_input_key_ends_cat() {
    let home = Home::new();
    let mut terminal = home.project("p").inside(["cat"]).terminal();
    terminal.send("line\n");
    terminal.expect("line\r\nline\r\n");
    terminal.send([4]);
    assert_eq!(terminal.finish().0, 0);
}

#[test]
fn less_pages() {
    requires!("less");
    let home = Home::new();
    let project = home.project("p");
    let lines: String = (1..200).map(|n| format!("line {n}\n")).collect();
    project.file("text", lines);
    let mut terminal = project.inside(["less", "text"]).terminal();
    terminal.expect("line 20");
    terminal.send("G");
    terminal.expect("line 199");
    terminal.send("q");
    assert_eq!(terminal.finish().0, 0);
}

#[test]
fn vim_edits_and_saves() {
    requires!("vim");
    let home = Home::new();
    let project = home.project("p");
    project.file("note.txt", "first\n");
    let mut terminal = project.inside(["vim", "-u", "NONE", "-n", "note.txt"]).terminal();
    terminal.expect("first");
    terminal.send("osecond\x1b:wq\r");
    assert_eq!(terminal.finish().0, 0);
    assert_eq!(project.read("note.txt"), "first\nsecond\n");
}

#[test]
fn top_and_htop_draw_and_quit() {
    requires!("top", "htop");
    let home = Home::new();
    for program in ["top", "htop"] {
        let mut terminal = home.project(program).inside([program]).terminal();
        terminal.expect("PID");
        terminal.send("q");
        let (code, shown) = terminal.finish();
        assert_eq!(code, 0, "{program}: {shown}");
    }
}

#[test]
fn pythons_prompt_answers() {
    requires!("python3");
    let home = Home::new();
    let mut terminal = home.project("p").inside(["/usr/bin/python3", "-q"]).terminal();
    terminal.expect(">>> ");
    terminal.send("6 * 7\n");
    terminal.expect("42");
    terminal.send("exit(3)\n");
    assert_eq!(terminal.finish().0, 3);
}

#[test]
fn nothing_can_be_typed_into_the_outer_terminal() {
    requires!("python3");
    let home = Home::new();
    for tier in Tier::ALL {
        let project = home.project_for(tier);
        // TIOCSTI would leave these bytes for the shell that runs after redoma.
        let script = "import fcntl, termios
for byte in b'touch pwned\\n':
    try:
        fcntl.ioctl(0, termios.TIOCSTI, bytes([byte]))
    except OSError as error:
        print('refused', error.errno)
        break
else:
    print('injected')";
        let mut terminal = project.inside(["/usr/bin/python3", "-c", script]).tier(tier).terminal();
        terminal.expect("refused");
        assert_eq!(terminal.finish().0, 0);
        assert!(!Path::new(project.path()).join("pwned").exists());
    }
}

#[test]
fn the_outer_terminal_is_as_before_after_raw_mode() {
    let home = Home::new();
    let project = home.project("p");
    let outer =
        project.redoma(["run", "--net", "none", "--", "sh", "-c", "stty raw -echo; echo raw"]).build();
    let words: Vec<String> = std::iter::once(outer.get_program())
        .chain(outer.get_args())
        .map(|word| format!("'{}'", word.to_str().unwrap()))
        .collect();
    let script =
        format!("before=$(stty -g); {}; test \"$(stty -g)\" = \"$before\" && echo restored", words.join(" "));
    let mut terminal = project.on_terminal(&script);
    terminal.expect("raw");
    terminal.expect("restored");
    assert_eq!(terminal.finish().0, 0);
}

#[test]
fn a_shell_has_job_control() {
    let home = Home::new();
    for tier in Tier::ALL {
        let project = home.project_for(tier);
        let mut terminal = project.inside(["bash", "--norc", "--noprofile", "-i"]).tier(tier).terminal();
        // Written in two parts, so that the echo of what is typed does not look like the prompt.
        terminal.send("PS1='rea''dy> '\n");
        terminal.expect("ready> ");
        // What it answers shows that it runs in the foreground; only then is a key for it and not for the shell.
        terminal.send("sed -u s/^/got:/\n");
        terminal.send("one\n");
        terminal.expect("got:one");
        terminal.send([26]); // Ctrl-Z
        terminal.expect("Stopped");
        terminal.expect("ready> ");
        terminal.send("fg\n");
        terminal.send("two\n");
        terminal.expect("got:two");
        terminal.send([3]); // Ctrl-C
        terminal.expect("ready> ");
        terminal.send("exit 7\n");
        assert_eq!(terminal.finish().0, 7, "{tier:?}");
    }
}
