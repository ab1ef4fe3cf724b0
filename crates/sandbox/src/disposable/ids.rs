//! Users by the names that an image gives them. Its files are hostile: they are read through the sandbox's own root,
//! bounded, and what is found is a number that means nothing outside.

use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::PathBuf;

use redoma_jail::Ids;
use rustix::fs::{FileType, Mode, OFlags, ResolveFlags};

use crate::driver::DriverError;

/// Larger files of users are nobody's.
const MOST: usize = 1 << 20;

/// `user`, `user:group`, `7` or `7:8`, as an image's `USER` has it; none for user 0.
///
/// # Errors
/// [`DriverError::Image`] for a name that the image does not have.
pub(crate) fn look_up(named: &str, root: BorrowedFd<'_>) -> Result<Option<(Ids, PathBuf)>, DriverError> {
    let (user, group) = named.split_once(':').map_or((named, None), |(user, group)| (user, Some(group)));
    if matches!(user, "" | "0" | "root") {
        return Ok(None);
    }
    let unknown = |what: &str, name: &str| DriverError::Image {
        why: format!("its commands run as {what} {name:?}, whom it does not have"),
        hint: "add `--user root` to the command, or mend the image".into(),
    };
    let users = read(root, "etc/passwd");
    let entry =
        users.lines().map(fields).find(|entry| entry.first() == Some(&user) || entry.get(2) == Some(&user));
    let number = |entry: &Vec<&str>, at: usize| entry.get(at).and_then(|text| text.parse::<u32>().ok());
    let id = entry.as_ref().and_then(|entry| number(entry, 2)).or_else(|| user.parse().ok());
    let id = id.ok_or_else(|| unknown("user", user))?;
    let groups = read(root, "etc/group");
    let main = match group {
        Some(group) => {
            let entry = groups.lines().map(fields).find(|entry| entry.first() == Some(&group));
            entry.and_then(|entry| number(&entry, 2)).or_else(|| group.parse().ok())
        }
        None => Some(entry.as_ref().and_then(|entry| number(entry, 3)).unwrap_or(0)),
    };
    let main = main.ok_or_else(|| unknown("group", group.unwrap_or_default()))?;
    let name = entry.as_ref().and_then(|entry| entry.first().copied()).unwrap_or(user);
    let member =
        |entry: &Vec<&str>| entry.get(3).is_some_and(|members| members.split(',').any(|one| one == name));
    let further = groups.lines().map(fields).filter(member).filter_map(|entry| number(&entry, 2)).take(32);
    let home = entry.as_ref().and_then(|entry| entry.get(5).copied()).filter(|home| home.starts_with('/'));
    let ids = Ids { user: id, group: main, groups: further.collect() };
    Ok(Some((ids, home.unwrap_or("/").into())))
}

fn fields(line: &str) -> Vec<&str> {
    line.split(':').collect()
}

/// A file of the sandbox's; nothing where there is none, or it is no file.
fn read(root: BorrowedFd<'_>, path: &str) -> String {
    let open = || -> rustix::io::Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        rustix::fs::openat2(root, path, flags, Mode::empty(), resolve)
    };
    let Ok(file) = open() else { return String::new() };
    let is_file = rustix::fs::fstat(&file)
        .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile);
    let mut text = Vec::new();
    let read = std::io::Read::take(std::fs::File::from(file), MOST as u64);
    match is_file && std::io::Read::read_to_end(&mut { read }, &mut text).is_ok() {
        true => String::from_utf8_lossy(&text).into_owned(),
        false => String::new(),
    }
}
