//! The names in git's index, which are never ignored, whatever `.gitignore` says.
//!
//! After gitformat-index(5), versions 2 to 4. The file is hostile: it is read with bounds, and one that makes no sense
//! lists no names.

/// Larger than the index of any repository known.
pub(super) const SIZE_MAX: u64 = 256 << 20;

/// The names that git tracks, in byte order.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Tracked(Vec<Vec<u8>>);

impl Tracked {
    /// With SHA-1 names the object name takes 20 bytes, with SHA-256 32; the index does not say which, so both are tried.
    pub(super) fn parse(index: &[u8]) -> Self {
        let mut names = names(index, 20).or_else(|| names(index, 32)).unwrap_or_default();
        names.sort();
        Self(names)
    }

    /// Whether the file, or something below the folder, is tracked.
    pub(super) fn has(&self, rel: &[u8], is_dir: bool) -> bool {
        if !is_dir {
            return self.0.binary_search_by(|name| name.as_slice().cmp(rel)).is_ok();
        }
        let prefix = [rel, b"/"].concat();
        let at = self.0.partition_point(|name| name.as_slice() < prefix.as_slice());
        self.0.get(at).is_some_and(|name| name.starts_with(&prefix))
    }
}

fn names(index: &[u8], hash: usize) -> Option<Vec<Vec<u8>>> {
    let mut input = index.strip_prefix(b"DIRC")?;
    let (version, count) = (number(&mut input)?, number(&mut input)?);
    // Each entry takes more than 62 bytes: a count that cannot be is no reason to reserve memory.
    let mut names: Vec<Vec<u8>> = Vec::with_capacity((count as usize).min(input.len() / 62));
    for _ in 0..count {
        let start = input;
        let flags_at = 40 + hash;
        let flags = u16::from_be_bytes(input.get(flags_at..flags_at + 2)?.try_into().ok()?);
        let extended = if version >= 3 && flags & 0x4000 != 0 { 2 } else { 0 };
        input = input.get(flags_at + 2 + extended..)?;
        let name = match version {
            2 | 3 => plain(&mut input, start)?,
            4 => compressed(&mut input, names.last().map_or(&[], Vec::as_slice))?,
            _ => return None,
        };
        // The flags repeat the length: what tells SHA-1 from SHA-256, and an index from something else.
        if name.is_empty() || name.len() > 4096 || name.len().min(0xfff) != usize::from(flags & 0xfff) {
            return None;
        }
        names.push(name);
    }
    // At least the checksum follows.
    (input.len() >= hash).then_some(names)
}

fn number(input: &mut &[u8]) -> Option<u32> {
    let (number, rest) = input.split_first_chunk::<4>()?;
    *input = rest;
    Some(u32::from_be_bytes(*number))
}

/// Up to the NUL, then NULs up to a multiple of eight from the entry's start.
fn plain<'a>(input: &mut &'a [u8], start: &'a [u8]) -> Option<Vec<u8>> {
    let end = input.iter().take(4097).position(|byte| *byte == 0)?;
    let name = input[..end].to_vec();
    let length = (start.len() - input.len() + end + 8) & !7;
    *input = start.get(length..)?;
    Some(name)
}

/// How much to cut from the name before, then what to add.
fn compressed(input: &mut &[u8], before: &[u8]) -> Option<Vec<u8>> {
    let cut = offset(input)?;
    let end = input.iter().take(4097).position(|byte| *byte == 0)?;
    let kept = before.get(..before.len().checked_sub(cut)?)?;
    let name = [kept, &input[..end]].concat();
    *input = &input[end + 1..];
    Some(name)
}

/// The variable-length integer of pack files' offset deltas.
fn offset(input: &mut &[u8]) -> Option<usize> {
    let mut value = 0_usize;
    for at in 0..5 {
        let (byte, rest) = input.split_first()?;
        *input = rest;
        value = (value << 7) | usize::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            return Some(value);
        }
        value += usize::from(at < 4);
    }
    None
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use proptest::prelude::*;

    use super::*;

    fn git(dir: &std::path::Path, arguments: &[&str]) {
        let run =
            Command::new("git").args(["-c", "index.threads=1"]).args(arguments).current_dir(dir).output();
        let output = run.expect("git is needed to make an index to read");
        assert!(output.status.success(), "{output:?}");
    }

    fn index_of(options: &[&str], version: &str) -> Vec<u8> {
        let dir = tempfile::tempdir().unwrap();
        git(dir.path(), &[&["init", "-q"], options].concat());
        for name in ["a", "b/c", "b/long name that is no multiple of eight", "b/d/e", "é"] {
            std::fs::create_dir_all(dir.path().join(name).parent().unwrap()).unwrap();
            std::fs::write(dir.path().join(name), "x").unwrap();
        }
        git(dir.path(), &["add", "."]);
        git(dir.path(), &["update-index", "--index-version", version]);
        std::fs::read(dir.path().join(".git/index")).unwrap()
    }

    #[test]
    fn every_version_gives_the_same_names() {
        let (sha1, sha256) = (["--object-format=sha1"], ["--object-format=sha256"]);
        for (options, version) in [(&sha1, "2"), (&sha1, "4"), (&sha256, "2"), (&sha256, "4")] {
            let tracked = Tracked::parse(&index_of(options, version));
            assert_eq!(tracked.0.len(), 5, "{options:?} {version}");
            assert!(
                tracked.has(b"b/d/e", false)
                    && tracked.has(b"b/d", true)
                    && tracked.has("é".as_bytes(), false)
            );
            assert!(
                !tracked.has(b"b", false) && !tracked.has(b"b/d/e", true) && !tracked.has(b"b/dd", false)
            );
        }
    }

    #[test]
    fn what_is_no_index_lists_nothing() {
        let good = index_of(&["--object-format=sha1"], "2");
        assert_eq!(Tracked::parse(&good[..good.len() / 2]), Tracked::default());
        assert_eq!(Tracked::parse(b"DIRC\0\0\0\x02\xff\xff\xff\xff"), Tracked::default());
        assert_eq!(Tracked::parse(b""), Tracked::default());
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(version in 2_u32..5, mut tail in prop::collection::vec(any::<u8>(), 0..300)) {
            let mut index = b"DIRC".to_vec();
            index.extend(version.to_be_bytes());
            index.append(&mut tail);
            Tracked::parse(&index);
        }
    }
}
