//! What is written, and what is refused.

use std::os::unix::fs::{PermissionsExt, symlink};

use redoma_audit::{Digest, Error, Store};

use super::*;

#[test]
fn each_line_holds_the_hash_of_the_line_before() {
    let bed = Bed::new();
    let session = bed.session(3);
    let log = lines(&bed.log(session));
    assert_eq!(log.len(), 1 + 3 + 2);
    for (number, pair) in log.windows(2).enumerate() {
        let start = format!(r#"{{"seq":{},"prev":"{}","at":""#, number + 1, Digest::of(pair[0].as_bytes()));
        assert!(pair[1].starts_with(&start), "{}", pair[1]);
    }
    let ledger = lines(&bed.ledger());
    assert!(log[0].contains(&Digest::of(ledger[0].as_bytes()).to_string()));
    assert!(ledger[1].contains(&format!(r#""records":6,"hash":"{}""#, Digest::of(log[5].as_bytes()))));
}

#[test]
fn everything_is_private() {
    let bed = Bed::new();
    let session = bed.session(0);
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o7777;
    for file in [bed.log(session), bed.ledger(), bed.dir.path().join("config/keys/audit.head")] {
        assert_eq!(mode(&file), 0o600, "{}", file.display());
    }
    for folder in ["state", "state/audit", "config", "config/keys"] {
        assert_eq!(mode(&bed.dir.path().join(folder)), 0o700, "{folder}");
    }
}

#[test]
fn a_folder_others_can_write_to_is_refused() {
    let bed = Bed::new();
    let folder = bed.dir.path().join("state/audit");
    std::fs::set_permissions(&folder, PermissionsExt::from_mode(0o770)).unwrap();
    let error =
        Store::open(&bed.dir.path().join("state"), &bed.dir.path().join("config/keys")).err().unwrap();
    assert!(matches!(&error, Error::Mode { mode: 0o770, .. }), "{error}");
    assert_eq!(error.hint().unwrap(), format!("chmod 700 '{}'", folder.display()));
}

#[test]
fn a_folder_of_somebody_else_is_refused() {
    // Root's own folder for an ordinary user, and for root one that it gives away.
    let dir = tempfile::tempdir().unwrap();
    let foreign = if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(dir.path(), Some(65534), None).unwrap();
        dir.path()
    } else {
        Path::new("/usr")
    };
    let error = Store::open(&dir.path().join("state"), foreign).err().unwrap();
    assert!(matches!(error, Error::Owner { .. }), "{error}");
}

#[test]
fn a_link_in_place_of_the_folder_the_ledger_or_the_log_is_refused() {
    let bed = Bed::new();
    let target = bed.dir.path().join("target");
    std::fs::write(&target, "").unwrap();
    symlink(&target, bed.ledger()).unwrap();
    let error = bed.store.begin(meta()).err().unwrap();
    assert!(matches!(error, Error::Open { .. }), "{error}");
    let again = meta();
    std::fs::remove_file(bed.ledger()).unwrap();
    symlink(&target, bed.log(again.session)).unwrap();
    assert!(bed.store.begin(again).is_err());
    assert_eq!(std::fs::read(&target).unwrap(), b"");
    let elsewhere = tempfile::tempdir().unwrap();
    symlink(elsewhere.path(), elsewhere.path().join("audit")).unwrap();
    assert!(matches!(
        Store::open(elsewhere.path(), &bed.dir.path().join("config/keys")),
        Err(Error::Folder { .. })
    ));
}

#[test]
fn a_session_that_could_not_begin_leaves_no_log() {
    let bed = Bed::new();
    std::fs::create_dir(bed.ledger()).unwrap();
    let meta = meta();
    let session = meta.session;
    assert!(bed.store.begin(meta).is_err());
    assert!(!bed.log(session).exists());
    assert_eq!(std::fs::read_dir(bed.dir.path().join("state/audit")).unwrap().count(), 1);
}

#[test]
fn an_id_is_used_once() {
    let bed = Bed::new();
    let meta = meta();
    bed.store.begin(meta.clone()).unwrap().end(end()).unwrap();
    assert!(matches!(bed.store.begin(meta), Err(Error::Open { .. })));
}

#[test]
fn a_prefix_finds_the_one_session_it_can_mean() {
    let bed = Bed::new();
    let mut ids = Vec::new();
    for id in ["abcdefghij", "abcdefghik", "zbcdefghij"] {
        let meta = SessionMeta { session: id.parse().unwrap(), ..meta() };
        ids.push(meta.session);
        bed.store.begin(meta).unwrap().end(end()).unwrap();
    }
    assert_eq!(bed.store.find("z").unwrap(), ids[2]);
    assert_eq!(bed.store.find("abcdefghik").unwrap(), ids[1]);
    assert!(matches!(bed.store.find("abc"), Err(Error::Ambiguous { .. })));
    assert!(matches!(bed.store.find("b"), Err(Error::NoSession { .. })));
    assert!(matches!(bed.store.find("../ledger"), Err(Error::SessionId { .. })));
}

#[test]
fn a_store_that_waits_for_the_disk_keeps_the_same_record() {
    let bed = Bed::new();
    let dir = bed.dir.path();
    let store = Store::open_synced(&dir.join("state"), &dir.join("config/keys")).unwrap();
    let mut log = store.begin(meta()).unwrap();
    log.append(&event(1)).unwrap();
    log.checkpoint().unwrap();
    assert_eq!(log.end(end()).unwrap().records, 5);
    assert_eq!(bed.store.verify().unwrap().findings, []);
}

#[test]
fn a_secret_does_not_reach_the_file() {
    let bed = Bed::new();
    let argv =
        Argv::new(["deploy", "--token", "hunter2hunter2", "AKIAIOSFODNN7EXAMPLE", "DB_PASSWORD=tr0ub4dor"]);
    let meta = SessionMeta { argv, ..meta() };
    let session = meta.session;
    bed.store.begin(meta).unwrap().end(end()).unwrap();
    let log = std::fs::read_to_string(bed.log(session)).unwrap();
    assert!(log.contains("deploy"));
    for secret in ["hunter2", "AKIAIOSFODNN7EXAMPLE", "tr0ub4dor"] {
        assert!(!log.contains(secret), "{log}");
    }
}

#[test]
fn signatures_come_while_a_long_session_runs() {
    let bed = Bed::new();
    let mut log = bed.begin();
    (0..9000).for_each(|number| log.append(&event(number)).unwrap());
    let kinds = |text: &str| lines(&bed.log(log.session())).iter().filter(|line| line.contains(text)).count();
    assert_eq!(kinds("\"kind\":\"checkpoint\""), 2);
    assert_eq!(lines(&bed.ledger()).iter().filter(|line| line.contains("\"kind\":\"marked\"")).count(), 2);
    assert_eq!(bed.store.verify().unwrap().findings, []);
}
