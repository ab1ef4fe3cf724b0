use std::io::Read;
use std::os::fd::OwnedFd;

use redoma_jail::Terminal;

use super::{Bed, Made, command, shell, wait};
use crate::driver::{Command, Happening, Streams};

/// Runs a command on a terminal; what it wrote there.
fn on_terminal(made: &Made<'_>, command: &Command, size: (u16, u16)) -> (Happening, String) {
    let terminal = Some(Terminal { size, streams: [true; 3] });
    let mut process = made.driver.exec(&made.id, command, &Streams { terminal, given: Vec::new() }).unwrap();
    let outer = process.take_terminal().expect("a terminal was asked for");
    assert!(process.take_terminal().is_none(), "it is given once");
    let reader = std::thread::spawn(move || read_terminal(outer));
    let happened = wait(process.as_mut());
    drop(process);
    (happened, reader.join().unwrap())
}

/// A terminal whose inner end is closed reads as an error.
fn read_terminal(outer: OwnedFd) -> String {
    let (mut outer, mut all, mut chunk) = (std::fs::File::from(outer), Vec::new(), [0; 4096]);
    while let Ok(length @ 1..) = outer.read(&mut chunk) {
        all.extend_from_slice(&chunk[..length]);
    }
    String::from_utf8_lossy(&all).into_owned()
}

pub(super) fn a_terminal_is_one(bed: &dyn Bed) {
    let made = Made::new(bed);
    let (happened, said) = on_terminal(&made, &command(&["tty"]), (24, 80));
    assert_eq!(happened, Happening::Ended(redoma_jail::Ending::Exited(0)), "{said}");
    assert!(said.contains("/dev/"), "{said}");
    assert_eq!(made.code(&shell("tty")), 1);
}

pub(super) fn a_terminal_has_the_size_it_was_told(bed: &dyn Bed) {
    let made = Made::new(bed);
    let (_, said) = on_terminal(&made, &command(&["stty", "size"]), (33, 101));
    assert_eq!(said.trim(), "33 101");
}
