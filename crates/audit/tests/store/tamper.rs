//! Every way to change the record after it was written, and what verification says.

use std::fs;

use proptest::prelude::*;
use redoma_audit::verify::{Problem, Severity};

use super::*;

/// Two sessions that ended, and all their files.
fn bed() -> (Bed, Vec<PathBuf>) {
    let bed = Bed::new();
    let (one, two) = (bed.session(3), bed.session(2));
    assert_eq!(verdict(&bed), None);
    let files = vec![bed.log(one), bed.log(two), bed.ledger()];
    (bed, files)
}

fn verdict(bed: &Bed) -> Option<Severity> {
    bed.store.verify().unwrap().severity()
}

fn problems(bed: &Bed) -> Vec<Problem> {
    bed.store.verify().unwrap().findings.into_iter().map(|finding| finding.problem).collect()
}

/// A change to the lines of a file.
type Change = Box<dyn FnOnce(&mut Vec<String>)>;

/// Changes the lines of a file.
fn relines(file: &Path, change: impl FnOnce(&mut Vec<String>)) {
    let mut all = lines(file);
    change(&mut all);
    fs::write(file, all.iter().map(|line| format!("{line}\n")).collect::<String>()).unwrap();
}

#[test]
fn an_untouched_record_is_clean_and_counted() {
    let (bed, _) = bed();
    let report = bed.store.verify().unwrap();
    assert_eq!((report.sessions, report.records, report.keys.len()), (2, 6 + 5, 1));
    assert!(report.is_untampered());
}

#[test]
fn any_byte_of_any_file_changed_shows() {
    let bed = Bed::new();
    let session = bed.session(1);
    for file in [bed.log(session), bed.ledger()] {
        let good = fs::read(&file).unwrap();
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 1 << (at % 7);
            fs::write(&file, &bad).unwrap();
            assert_eq!(verdict(&bed), Some(Severity::Tampered), "{} at {at}", file.display());
        }
        fs::write(&file, good).unwrap();
    }
    assert_eq!(verdict(&bed), None);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn any_part_cut_out_or_put_in_shows(file in 0usize..3, at: prop::sample::Index, length in 1usize..400, put: Option<Vec<u8>>) {
        let (bed, files) = bed();
        let good = fs::read(&files[file]).unwrap();
        let start = at.index(good.len());
        let end = (start + length).min(good.len());
        let put = put.unwrap_or_default();
        prop_assume!(good[start..end] != put[..]);
        fs::write(&files[file], [&good[..start], &put, &good[end..]].concat()).unwrap();
        prop_assert_eq!(verdict(&bed), Some(Severity::Tampered));
    }
}

#[test]
fn any_line_dropped_doubled_or_exchanged_shows() {
    let (bed, files) = bed();
    for file in files {
        let good = fs::read(&file).unwrap();
        for at in 0..lines(&file).len() {
            let mut changes: Vec<Change> = vec![
                Box::new(move |lines| drop(lines.remove(at))),
                Box::new(move |lines| lines.insert(at, lines[at].clone())),
                Box::new(move |lines| lines.push(lines[at].clone())),
                Box::new(move |lines| lines.truncate(at)),
            ];
            if at > 0 {
                changes.push(Box::new(move |lines| lines.swap(at - 1, at)));
            }
            for (number, change) in changes.into_iter().enumerate() {
                relines(&file, change);
                assert_eq!(
                    verdict(&bed),
                    Some(Severity::Tampered),
                    "{} line {at}, change {number}",
                    file.display()
                );
                fs::write(&file, &good).unwrap();
            }
        }
    }
}

#[test]
fn a_session_dropped_whole_shows_even_if_its_lines_in_the_ledger_go_too() {
    let (bed, files) = bed();
    fs::remove_file(&files[1]).unwrap();
    assert_eq!(problems(&bed), [Problem::Missing]);
    relines(&bed.ledger(), |lines| lines.truncate(2));
    assert_eq!(problems(&bed), [Problem::Anchor]);
    fs::remove_file(&files[0]).unwrap();
    fs::remove_file(bed.ledger()).unwrap();
    assert_eq!(problems(&bed), [Problem::Anchor]);
}

#[test]
fn a_ledger_that_was_cut_off_stays_known_when_it_goes_on() {
    let (bed, files) = bed();
    fs::remove_file(&files[1]).unwrap();
    relines(&bed.ledger(), |lines| lines.truncate(2));
    bed.session(1);
    assert_eq!(problems(&bed), [Problem::Gap]);
}

#[test]
fn a_log_in_place_of_another_shows() {
    let (bed, files) = bed();
    fs::copy(&files[0], &files[1]).unwrap();
    let problems = problems(&bed);
    assert!(problems.contains(&Problem::Origin) && problems.contains(&Problem::Differs), "{problems:?}");
}

#[test]
fn a_log_that_no_ledger_knows_shows() {
    let (bed, files) = bed();
    fs::copy(&files[0], bed.log(SessionId::random().unwrap())).unwrap();
    assert!(problems(&bed).contains(&Problem::Unknown));
}

#[test]
fn a_record_signed_with_another_key_shows() {
    let (bed, _) = bed();
    let other = Bed::new();
    other.session(1);
    let audit = |bed: &Bed| bed.dir.path().join("state/audit");
    fs::remove_dir_all(audit(&bed)).unwrap();
    fs::rename(audit(&other), audit(&bed)).unwrap();
    let report = bed.store_again().verify().unwrap();
    assert!(report.findings.iter().any(|f| matches!(f.problem, Problem::Seal(_))), "{:?}", report.findings);
}

#[test]
fn a_record_rewritten_by_who_has_no_key_shows() {
    let (bed, files) = bed();
    // The whole chain is made to fit again, which takes no key; the signatures then do not.
    relines(&files[0], |lines| {
        lines[1] = lines[1].replace("number 0", "number 9");
        for at in 2..lines.len() {
            let prev = Digest::of(lines[at - 1].as_bytes()).to_string();
            let start = lines[at].find("\"prev\":\"").unwrap() + 8;
            lines[at].replace_range(start..start + Digest::HEX_LEN, &prev);
        }
    });
    let problems = problems(&bed);
    assert_eq!(problems, [Problem::Differs, Problem::Seal("its signature is false")]);
}

#[test]
fn a_crash_is_told_from_tampering() {
    let bed = Bed::new();
    let mut log = bed.begin();
    log.append(&event(0)).unwrap();
    log.checkpoint().unwrap();
    log.append(&event(1)).unwrap();
    let file = bed.log(log.session());
    assert_eq!(verdict(&bed), None, "while it runs");
    drop(log);
    assert_eq!(problems(&bed), [Problem::Unfinished { unsigned: 1 }]);
    let good = fs::read(&file).unwrap();
    fs::write(&file, &good[..good.len() - 9]).unwrap();
    let report = bed.store.verify().unwrap();
    assert_eq!(report.severity(), Some(Severity::Incomplete), "{:?}", report.findings);
    // What was signed cannot go: the ledger has it, too.
    relines(&file, |lines| lines.truncate(2));
    assert_eq!(verdict(&bed), Some(Severity::Tampered));
}

#[test]
fn a_lock_held_by_another_does_not_hide_a_change() {
    let bed = Bed::new();
    let mut crashed = bed.begin();
    let files = [bed.log(bed.session(3)), bed.log(crashed.session())];
    crashed.checkpoint().unwrap();
    drop(crashed);
    for file in files {
        let good = fs::read(&file).unwrap();
        relines(&file, |lines| lines.truncate(1));
        let lock = fs::File::open(&file).unwrap();
        lock.lock().unwrap();
        assert_eq!(verdict(&bed), Some(Severity::Tampered));
        fs::write(&file, good).unwrap();
    }
}

#[test]
fn a_torn_ledger_goes_on_and_the_tear_is_known_but_not_held_against_it() {
    let (bed, _) = bed();
    let good = fs::read(bed.ledger()).unwrap();
    for torn in ["{\"seq\":4,\"prev\":\"00", "\n", "{\"seq\":4\n", "x\ny\n"] {
        fs::write(bed.ledger(), [&good, torn.as_bytes()].concat()).unwrap();
        let next = bed.session(1);
        let expected = [Problem::Torn { bytes: torn.len() as u64 }];
        assert_eq!(problems(&bed), expected, "{torn:?}");
        fs::remove_file(bed.log(next)).unwrap();
        fs::write(bed.ledger(), &good).unwrap();
        fs::write(bed.dir.path().join("config/keys/audit.head"), "").unwrap();
    }
}

#[test]
fn a_ledger_that_ends_in_rubbish_names_the_way_out() {
    let (bed, _) = bed();
    fs::write(bed.ledger(), "rubbish\n".repeat(10_000)).unwrap();
    let error = bed.store.begin(meta()).err().unwrap();
    let hint = error.hint().unwrap();
    let done = std::process::Command::new("sh").args(["-c", &hint]).status().unwrap();
    assert!(done.success(), "{hint}");
    bed.session(1);
    assert!(problems(&bed).contains(&Problem::Gap));
}
