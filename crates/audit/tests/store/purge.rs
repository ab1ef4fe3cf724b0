//! Retention.

use std::fs;

use jiff::Timestamp;
use redoma_audit::verify::{Problem, Severity};

use super::*;

#[test]
fn what_is_old_goes_and_leaves_a_tombstone() {
    let bed = Bed::new();
    let (old, running) = (bed.session(2), bed.begin());
    let crashed = bed.begin().session();
    let limit = Timestamp::now();
    let young = bed.session(1);
    let purged = bed.store.purge(limit).unwrap();
    let mut gone = purged.sessions.clone();
    gone.sort();
    let mut expected = [old, crashed];
    expected.sort();
    assert_eq!(gone, expected);
    assert!(!bed.log(old).exists() && bed.log(young).exists() && bed.log(running.session()).exists());
    assert!(purged.bytes > 0);
    assert_eq!(bed.store.verify().unwrap().findings, []);
    assert_eq!(bed.store.purge(limit).unwrap().sessions, []);
}

#[test]
fn a_capture_goes_with_its_log_and_is_its_owners_only() {
    use std::os::unix::fs::PermissionsExt;

    let bed = Bed::new();
    let session = bed.session(1);
    let file = bed.store.begin_capture(session).unwrap();
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    file.set_len(1 << 20).unwrap();
    assert!(bed.store.begin_capture(session).is_err(), "a capture is never written over");
    assert!(bed.store.capture(session).unwrap().is_some());
    assert_eq!(bed.store.verify().unwrap().findings, []);
    assert!(bed.store.purge(Timestamp::now()).unwrap().bytes > 1 << 20);
    assert!(bed.store.capture(session).unwrap().is_none());
}

#[test]
fn a_tombstone_does_not_cover_up_a_change_made_before() {
    let bed = Bed::new();
    let session = bed.session(3);
    let kept: Vec<String> = lines(&bed.log(session)).into_iter().take(2).map(|line| line + "\n").collect();
    fs::write(bed.log(session), kept.concat()).unwrap();
    bed.store.purge(Timestamp::now()).unwrap();
    assert!(!bed.log(session).exists());
    let report = bed.store.verify().unwrap();
    assert_eq!(report.findings.iter().map(|f| f.problem.clone()).collect::<Vec<_>>(), [Problem::Differs]);
}

#[test]
fn a_log_put_back_after_its_purge_shows() {
    let bed = Bed::new();
    let session = bed.session(3);
    let copy = fs::read(bed.log(session)).unwrap();
    bed.store.purge(Timestamp::now()).unwrap();
    fs::write(bed.log(session), copy).unwrap();
    let report = bed.store.verify().unwrap();
    assert_eq!((report.severity(), report.findings.len()), (Some(Severity::Odd), 1), "{:?}", report.findings);
}
