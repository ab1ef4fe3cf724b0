use std::path::Path;

use super::branch::Branch;
use crate::driver::Name;

/// What leaves room for the names of services behind it.
const LONGEST: usize = 40;
const HASH: usize = 6;

/// What a preview is called: its repository's folder and its branch, in small letters, digits and dashes. Where that says
/// less than they do, or with `hashed`, a hash of both follows, so that `a/b` and `a-b` are two names.
#[must_use]
pub fn name(repository: &Path, branch: &Branch, hashed: bool) -> Name {
    let folder = repository.file_name().unwrap_or_default().to_string_lossy();
    let branch = match branch {
        Branch::Named(name) => name.clone(),
        Branch::Detached(id) => id[..12].to_owned(),
    };
    let whole = format!("{folder}-{branch}");
    let mut plain: String = whole.chars().map(plain).collect();
    plain = plain.trim_matches('-').to_owned();
    if plain.is_empty() {
        plain.push_str("preview");
    }
    // A slash is the usual case and as good as a dash, but only one of both can have the name without a hash.
    if plain != whole || plain.len() > LONGEST || hashed {
        let of = format!("{}\0{branch}", repository.display());
        plain.truncate(LONGEST - HASH - 1);
        plain = format!("{}-{}", plain.trim_end_matches('-'), &blake3::hash(of.as_bytes()).to_hex()[..HASH]);
    }
    plain.parse().unwrap_or_else(|_| unreachable!("letters, digits and dashes, with a dash and not ten long"))
}

fn plain(c: char) -> char {
    if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn named(branch: &str) -> String {
        name(Path::new("/src/shop"), &Branch::Named(branch.into()), false).to_string()
    }

    #[test]
    fn plain_names_stay_and_others_are_told_apart() {
        assert_eq!(named("main"), "shop-main");
        let (slash, dash) = (named("a/b"), named("a-b"));
        assert!(slash.starts_with("shop-a-b-") && dash == "shop-a-b", "{slash} {dash}");
        assert_ne!(named("Main"), named("main"));
        let long = named(&"x".repeat(300));
        assert_eq!(long.len(), LONGEST);
        let id = Branch::Detached("0123456789abcdef0123456789abcdef01234567".into());
        assert_eq!(name(Path::new("/src/shop"), &id, false).to_string(), "shop-0123456789ab");
        assert_ne!(
            name(Path::new("/a/shop"), &Branch::Named("main".into()), true),
            name(Path::new("/b/shop"), &Branch::Named("main".into()), true)
        );
    }

    proptest! {
        #[test]
        fn every_branch_has_a_name_with_room_behind_it(folder in "\\PC*", branch in "\\PC*", hashed: bool) {
            let made = name(&Path::new("/").join(folder.replace('/', "")), &Branch::Named(branch), hashed);
            prop_assert!(made.as_str().len() <= LONGEST);
        }
    }
}
