//! An overlay's upper folder made of the input: listed, diffed and applied, it may change nothing outside the project.
#![no_main]

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

/// Three bytes make one entry: what, where, and what with.
fn build(top: &Path, entries: &[u8]) {
    for entry in entries.chunks_exact(3).take(64) {
        let path = top.join(name(entry[1]));
        if leads_out(top, &path) || leads_out(top, &top.join(name(entry[2]))) {
            continue;
        }
        let _possible = path.parent().map(fs::create_dir_all);
        let _made = match entry[0] % 5 {
            0 => fs::write(&path, [entry[2]; 4]),
            1 => symlink(
                ["a", "..", "../../outside", "/etc", "b/../../outside/kept"][usize::from(entry[2] % 5)],
                &path,
            ),
            2 => fs::create_dir_all(&path),
            3 => fs::set_permissions(&path, fs::Permissions::from_mode(u32::from(entry[2]) << 4 | 0o600)),
            _ => fs::hard_link(top.join(name(entry[2])), &path),
        };
    }
}

/// What builds the input must not go through the links it has made.
fn leads_out(top: &Path, path: &Path) -> bool {
    let inside = path.ancestors().take_while(|ancestor| *ancestor != top);
    inside.into_iter().any(|ancestor| ancestor.is_symlink())
}

fn name(byte: u8) -> PathBuf {
    let letter = |shift: u8| ["a", "b", "c", "..."][usize::from(byte >> shift & 3)];
    (0..=byte >> 6 & 1).map(|level| letter(level * 2)).collect()
}

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let [project, upper, outside] = ["project", "upper", "outside"].map(|name| dir.path().join(name));
    for path in [&project, &upper, &outside] {
        fs::create_dir(path).expect("a folder");
    }
    fs::write(outside.join("kept"), "kept").expect("a file");
    let (lower, above) = data.split_at(data.len() / 2);
    build(&project, lower);
    build(&upper, above);
    redoma_sandbox::changes::fuzz(&project, &upper);
    assert_eq!(fs::read(outside.join("kept")).expect("still there"), b"kept");
    assert_eq!(fs::read_dir(&outside).expect("still there").count(), 1);
});
