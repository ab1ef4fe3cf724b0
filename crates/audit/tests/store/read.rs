//! Lists, reading and following.

use std::io::Write;
use std::sync::mpsc;
use std::thread;

use redoma_audit::{Error, SessionState};

use super::*;

#[test]
fn what_was_written_is_read_back() {
    let bed = Bed::new();
    let meta = meta();
    let mut log = bed.store.begin(meta.clone()).unwrap();
    log.append(&event(7)).unwrap();
    log.end(end()).unwrap();
    let records: Vec<_> = bed.store.read(meta.session).unwrap().map(Result::unwrap).collect();
    assert!(records.iter().zip(0..).all(|(record, seq)| record.seq == seq));
    assert_eq!(records[0].event, Event::SessionStart(meta.clone()));
    assert_eq!(records[1].event, event(7));
    assert_eq!(records[2].event, Event::SessionEnd(end()));
    assert!(matches!(records[3].event, Event::Checkpoint(_)));
    let written: Vec<_> = records.iter().map(|record| record.json().to_string()).collect();
    assert_eq!(written, lines(&bed.log(meta.session)));
}

#[test]
fn a_kind_of_another_version_is_kept_whole() {
    let line = format!(
        r#"{{"seq":0,"prev":"{}","at":"2031-01-01T00:00:00.000000Z","kind":"teleport","to":[1,2]}}"#,
        Digest::of(b"")
    );
    let record = redoma_audit::Record::parse(line.as_bytes()).unwrap();
    let Event::Other(unknown) = record.event else { panic!("{record:?}") };
    assert_eq!((unknown.kind(), unknown.fields()["to"].to_string()), ("teleport", "[1,2]".into()));
}

#[test]
fn sessions_are_listed_newest_first_with_what_became_of_them() {
    let bed = Bed::new();
    let ended = bed.session(2);
    let crashed = bed.begin();
    let (unfinished, running) = (crashed.session(), bed.begin());
    drop(crashed);
    let list: Vec<_> = bed.store.sessions().unwrap().map(Result::unwrap).collect();
    let brief: Vec<_> =
        list.iter().map(|summary| (summary.session, summary.state, summary.records)).collect();
    let expected = [
        (running.session(), SessionState::Running, 1),
        (unfinished, SessionState::Unfinished, 1),
        (ended, SessionState::Ended, 5),
    ];
    assert_eq!(brief, expected);
    assert_eq!(list[2].end, Some(end()));
    assert_eq!(list[2].meta.as_ref().unwrap().argv.to_string(), "cargo test");
    assert_eq!(list[2].bytes, std::fs::metadata(bed.log(ended)).unwrap().len());
}

#[test]
fn long_records_at_both_ends_do_not_hide_what_became_of_a_session() {
    let bed = Bed::new();
    let long = "a b\u{7}".repeat(1300);
    let mut meta = meta();
    meta.argv = Argv::new([long.as_str(); 4]);
    let log = bed.store.begin(meta.clone()).unwrap();
    let outcome = Outcome::Failed { reason: long.as_str().into() };
    log.end(SessionEnd { outcome: outcome.clone(), usage: Usage::default() }).unwrap();
    let list: Vec<_> = bed.store.sessions().unwrap().map(Result::unwrap).collect();
    assert_eq!(list[0].meta, Some(meta));
    assert_eq!(list[0].end.as_ref().unwrap().outcome, outcome);
}

#[test]
fn a_torn_tail_is_reported_behind_everything_whole_and_left_alone() {
    let bed = Bed::new();
    let mut log = bed.begin();
    let session = log.session();
    log.append(&event(1)).unwrap();
    drop(log);
    let mut file = std::fs::OpenOptions::new().append(true).open(bed.log(session)).unwrap();
    file.write_all(b"{\"seq\":2,\"pr").unwrap();
    let before = std::fs::read(bed.log(session)).unwrap();
    let records: Vec<_> = bed.store.read(session).unwrap().collect();
    assert_eq!(records.len(), 3);
    assert!(matches!(records[2], Err(Error::Torn { bytes: 12, .. })));
    let summary = bed.store.sessions().unwrap().next().unwrap().unwrap();
    assert_eq!((summary.state, summary.records), (SessionState::Unfinished, 2));
    assert_eq!(std::fs::read(bed.log(session)).unwrap(), before);
}

#[test]
fn following_shows_each_record_as_it_is_written_and_stops_at_the_end() {
    let bed = Bed::new();
    let mut log = bed.begin();
    let records = bed.store.follow(log.session()).unwrap();
    let (send, receive) = mpsc::channel();
    let follower =
        thread::spawn(move || records.for_each(|record| send.send(record.unwrap().event).unwrap()));
    assert!(matches!(receive.recv().unwrap(), Event::SessionStart(_)));
    for number in 0..100 {
        log.append(&event(number)).unwrap();
        assert_eq!(receive.recv().unwrap(), event(number));
    }
    log.end(end()).unwrap();
    assert_eq!(receive.recv().unwrap(), Event::SessionEnd(end()));
    follower.join().unwrap();
    assert_eq!(receive.iter().count(), 1);
}

#[test]
fn following_stops_when_the_keeper_is_gone() {
    for _ in 0..50 {
        let bed = Bed::new();
        let log = bed.begin();
        let mut records = bed.store.follow(log.session()).unwrap();
        records.next().unwrap().unwrap();
        let follower = thread::spawn(move || records.count());
        drop(log);
        assert_eq!(follower.join().unwrap(), 0);
    }
}

#[test]
fn following_a_session_that_has_ended_is_reading_it() {
    let bed = Bed::new();
    let session = bed.session(3);
    assert_eq!(bed.store.follow(session).unwrap().count(), 6);
}
