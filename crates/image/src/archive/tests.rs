use tar::Header;

use super::*;
use crate::tape::Tape;

fn read(bytes: &[u8]) -> Result<Vec<(Entry, Vec<u8>)>, Error> {
    read_within(bytes, &Limits::default())
}

fn read_within(bytes: &[u8], limits: &Limits) -> Result<Vec<(Entry, Vec<u8>)>, Error> {
    let mut archive = Archive::new(bytes, limits);
    let mut entries = Vec::new();
    while let Some(entry) = archive.next()? {
        let mut data = Vec::new();
        archive.read_to_end(&mut data).map_err(Error::from_stream)?;
        entries.push((entry, data));
    }
    Ok(entries)
}

fn one(tape: Tape) -> (Entry, Vec<u8>) {
    read(&tape.end()).unwrap().pop().unwrap()
}

fn error(bytes: &[u8]) -> String {
    read(bytes).unwrap_err().to_string()
}

#[test]
fn entries_follow_each_other_whether_they_were_read_or_not() {
    let bytes = Tape::default().file("a", &[1; 700]).file("b", b"2").end();
    let mut archive = Archive::new(&bytes[..], &Limits::default());
    assert_eq!(archive.next().unwrap().unwrap().path, b"a");
    assert_eq!(archive.next().unwrap().unwrap().path, b"b");
    assert!(archive.next().unwrap().is_none());
    assert!(archive.finish().unwrap());
}

#[test]
fn a_cut_archive_is_an_error_but_between_entries() {
    let bytes = Tape::default().file("a", &[1; 700]).cut();
    assert_eq!(read(&bytes).unwrap().len(), 1);
    for cut in [1, 511, 513, 700, 1024, 512 + 699] {
        assert!(read(&bytes[..cut]).is_err(), "{cut}");
    }
    // All of the data is there: umoci writes such layers.
    assert_eq!(read(&bytes[..512 + 700]).unwrap()[0].1, [1; 700]);
}

#[test]
fn a_wrong_checksum_is_an_error() {
    let mut bytes = Tape::default().file("a", b"").end();
    bytes[0] = b'b';
    assert_eq!(error(&bytes), "the archive is malformed: a header's checksum is wrong");
}

#[test]
fn pax_records_say_what_a_header_cannot() {
    let tape = Tape::default().pax_more(&[("uid", b"70000"), ("mtime", b"5.25")]);
    let (entry, data) = one(tape.file("x", b"abc"));
    assert_eq!(
        (entry.uid, entry.mtime, data),
        (70000, Time { seconds: 5, nanoseconds: 250_000_000 }, b"abc".to_vec())
    );
}

#[test]
fn the_size_of_pax_is_the_size() {
    let mut header = Header::new_gnu();
    header.as_gnu_mut().unwrap().name[0] = b'x';
    header.set_mode(0o644);
    header.set_size(0);
    let (entry, data) = one(Tape::default().pax("size", b"3").raw(header, b"abc"));
    assert_eq!((entry.size, data), (3, b"abc".to_vec()));
}

#[test]
fn nobody_is_user_minus_one() {
    let bytes = Tape::default().pax("uid", b"4294967295").file("x", b"").end();
    assert_eq!(error(&bytes), "the archive is malformed: there is no user 4294967295");
}

#[test]
fn blank_numbers_are_zero_and_broken_ones_are_errors() {
    let mut header = Header::new_gnu();
    header.as_gnu_mut().unwrap().name[0] = b'x';
    header.set_size(0);
    header.as_gnu_mut().unwrap().uid = *b"        ";
    let (entry, _) = one(Tape::default().raw(header.clone(), b""));
    assert_eq!((entry.uid, entry.mode), (0, 0));
    header.as_gnu_mut().unwrap().uid = *b"9999999\0";
    assert!(read(&Tape::default().raw(header, b"").end()).is_err());
}

#[test]
fn what_precedes_an_entry_has_a_bound() {
    let long = Tape::default().pax("comment", &vec![b'x'; 2 << 20]).file("x", b"").end();
    assert!(matches!(read(&long), Err(Error::Limit { limit: 0x10_0000, .. })));
    // The size is a lie here: nothing of it is kept in memory before it is read.
    let mut header = Header::new_gnu();
    header.set_entry_type(EntryType::GNULongName);
    header.set_size(u64::from(u32::MAX));
    assert!(matches!(read(&Tape::default().raw(header, b"").end()), Err(Error::Limit { .. })));
}

#[test]
fn a_size_that_lies_ends_the_archive() {
    let mut header = Header::new_gnu();
    header.as_gnu_mut().unwrap().name[0] = b'x';
    header.set_mode(0);
    header.set_size(5000);
    assert_eq!(
        error(&Tape::default().raw(header.clone(), b"x").end()),
        "the archive is malformed: it ends within a file"
    );
    header.set_size(u64::MAX);
    assert!(matches!(read(&Tape::default().raw(header, b"x").end()), Err(Error::Limit { .. })));
}

#[test]
fn sparse_files_of_the_old_kind() {
    let mut header = Header::new_gnu();
    header.set_entry_type(EntryType::GNUSparse);
    header.set_mode(0o644);
    header.set_size(4);
    let gnu = header.as_gnu_mut().unwrap();
    gnu.name[0] = b's';
    gnu.set_real_size(1000);
    gnu.sparse[0].set_offset(100);
    gnu.sparse[0].set_length(4);
    let (entry, data) = one(Tape::default().raw(header, b"data"));
    assert_eq!(
        (entry.size, entry.chunks, data),
        (1000, vec![Chunk { offset: 100, length: 4 }], b"data".to_vec())
    );
}

#[test]
fn sparse_files_of_the_three_pax_kinds() {
    let wanted = vec![Chunk { offset: 10, length: 2 }, Chunk { offset: 50, length: 1 }];
    let first = Tape::default().pax_more(&[
        ("GNU.sparse.size", b"90"),
        ("GNU.sparse.offset", b"10"),
        ("GNU.sparse.numbytes", b"2"),
        ("GNU.sparse.offset", b"50"),
        ("GNU.sparse.numbytes", b"1"),
    ]);
    let second = Tape::default().pax_more(&[("GNU.sparse.size", b"90"), ("GNU.sparse.map", b"10,2,50,1")]);
    for tape in [first, second] {
        let (entry, data) = one(tape.file("s", b"abc"));
        assert_eq!((entry.size, entry.chunks, data), (90, wanted.clone(), b"abc".to_vec()));
    }
    let third = Tape::default().pax_more(&[
        ("GNU.sparse.major", b"1"),
        ("GNU.sparse.minor", b"0"),
        ("GNU.sparse.name", b"real"),
        ("GNU.sparse.realsize", b"90"),
    ]);
    let mut content = b"2\n10\n2\n50\n1\n".to_vec();
    content.resize(512, 0);
    content.extend_from_slice(b"abc");
    let (entry, data) = one(third.file("GNUSparseFile.0/real", &content));
    assert_eq!((entry.path, entry.chunks, data), (b"real".to_vec(), wanted, b"abc".to_vec()));
}

#[test]
fn a_sparse_map_that_lies_is_refused() {
    for map in ["10,2,5,1", "10,4", "89,2,95,1", "10,2,50", "18446744073709551615,3", "x,3", ""] {
        let records = [("GNU.sparse.size", &b"90"[..]), ("GNU.sparse.map", map.as_bytes())];
        assert!(read(&Tape::default().pax_more(&records).file("s", b"abc").end()).is_err(), "{map}");
    }
}

proptest::proptest! {
    #[test]
    fn no_bytes_make_it_panic(mut bytes: Vec<u8>, kind: u8) {
        bytes.resize(bytes.len().next_multiple_of(512) + 1024, 7);
        bytes[156] = kind;
        bytes[257..265].copy_from_slice(b"ustar  \0");
        let mut header = Header::new_old();
        header.as_mut_bytes().copy_from_slice(&bytes[..512]);
        header.set_cksum();
        bytes[..512].copy_from_slice(header.as_bytes());
        let _ = read(&bytes);
    }
}
