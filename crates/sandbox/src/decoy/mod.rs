//! What a denied file shows inside: content of the right kind that gives nothing, and whose values are recognised when
//! they turn up where they should not.
//!
//! The kinds are data (`data/decoys.toml`). A dotenv file keeps its names, with values of the same shape. Everything else
//! is an empty file, and a folder of no known kind an empty folder.

pub mod dotenv;
mod draw;
mod template;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use serde::Deserialize;

use draw::Draw;

/// What one session's decoys are drawn from. The same path shows the same content for as long as the session lives.
#[derive(Clone)]
pub struct Seed([u8; 32]);

impl Seed {
    /// A seed nobody can guess: getrandom(2).
    ///
    /// # Errors
    /// Those of the system call; there are none on kernels that Redoma runs on once the machine has booted.
    pub fn random() -> rustix::io::Result<Self> {
        let mut bytes = [0; 32];
        let filled = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
        if filled == bytes.len() { Ok(Self(bytes)) } else { Err(rustix::io::Errno::AGAIN) }
    }
}

impl std::fmt::Debug for Seed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Seed(..)")
    }
}

/// A value in a decoy that exists nowhere else.
#[derive(Clone, PartialEq, Eq)]
pub struct Canary {
    /// The variable or the kind of credential.
    pub name: String,
    /// The text to look for.
    pub value: String,
}

impl Canary {
    /// BLAKE3 of the value, for the record: the value itself would make the record a place to look for it.
    pub fn hash(&self) -> blake3::Hash {
        blake3::hash(self.value.as_bytes())
    }
}

impl std::fmt::Debug for Canary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Canary({}, ..)", self.name)
    }
}

/// What to show instead of a denied path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decoy {
    /// The content.
    pub content: Content,
    /// The values in it to look for later.
    pub canaries: Vec<Canary>,
}

/// A file's bytes or a folder's files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// A regular file.
    File(Vec<u8>),
    /// A folder with these files, by name.
    Folder(Vec<(PathBuf, Vec<u8>)>),
}

/// What the denied path is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Anything but a folder.
    File,
    /// A folder.
    Folder,
}

/// Makes the decoy for the denied `path`.
///
/// `original` is what the file really holds, cut by the caller to [`dotenv::SIZE_MAX`] plus one byte; it is used for
/// dotenv files only and only for their names and the shape of their values.
pub fn for_path(seed: &Seed, path: &Path, shape: Shape, original: Option<&[u8]>) -> Decoy {
    match shape {
        Shape::Folder => folder(seed, path),
        Shape::File => file(seed, path, original),
    }
}

/// Whether a path that does not exist on the host is worth a decoy all the same, for who looks for it.
pub fn is_known(path: &Path, shape: Shape) -> bool {
    match shape {
        Shape::File => TABLE.files.matches(path).is_some(),
        Shape::Folder => TABLE.folders.matches(path).is_some(),
    }
}

fn file(seed: &Seed, path: &Path, original: Option<&[u8]>) -> Decoy {
    let mut draw = Draw::new(&seed.0, path);
    if dotenv::is_dotenv(path) {
        let (content, canaries) = dotenv::placeholders(original.unwrap_or_default(), &mut draw);
        return Decoy { content: Content::File(content), canaries };
    }
    let template = TABLE.files.matches(path).map_or("", |file| &file.template);
    let (content, canaries) = template::fill(template, &mut draw);
    Decoy { content: Content::File(content), canaries }
}

fn folder(seed: &Seed, path: &Path) -> Decoy {
    let mut decoy = Decoy { content: Content::Folder(Vec::new()), canaries: Vec::new() };
    let names = TABLE.folders.matches(path).map_or(&[][..], |folder| &folder.files);
    let mut files = Vec::new();
    for name in names {
        let inner = file(seed, &path.join(name), None);
        if let Content::File(content) = inner.content {
            files.push((PathBuf::from(name), content));
        }
        decoy.canaries.extend(inner.canaries);
    }
    decoy.content = Content::Folder(files);
    decoy
}

// === the table ===

/// Checked by a test, so that it cannot fail for a user; if it did, decoys would be empty, which gives nothing either.
static TABLE: LazyLock<Table> =
    LazyLock::new(|| Table::parse(include_str!("../../data/decoys.toml")).unwrap_or_default());

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Rows {
    file: Vec<FileRow>,
    folder: Vec<FolderRow>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileRow {
    r#match: Vec<String>,
    #[expect(dead_code, reason = "for the reader of the table; a test wants it filled")]
    reason: String,
    template: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FolderRow {
    r#match: Vec<String>,
    files: Vec<String>,
}

struct Table {
    files: Kinds<FileRow>,
    folders: Kinds<FolderRow>,
}

impl Table {
    fn parse(text: &str) -> Result<Self, String> {
        let rows: Rows = toml::from_str(text).map_err(|error| error.to_string())?;
        Ok(rows.into())
    }
}

impl Default for Table {
    fn default() -> Self {
        Rows { file: Vec::new(), folder: Vec::new() }.into()
    }
}

impl From<Rows> for Table {
    fn from(rows: Rows) -> Self {
        Self {
            files: Kinds { rows: rows.file, globs: |row| &row.r#match },
            folders: Kinds { rows: rows.folder, globs: |row| &row.r#match },
        }
    }
}

/// Rows that are found by the path they are for. Nothing is compiled: a start asks about a few paths only.
struct Kinds<Row> {
    rows: Vec<Row>,
    globs: fn(&Row) -> &Vec<String>,
}

impl<Row> Kinds<Row> {
    fn matches(&self, path: &Path) -> Option<&Row> {
        let path = path.as_os_str().as_bytes();
        self.rows.iter().find(|row| (self.globs)(row).iter().any(|glob| fast_glob::glob_match(glob, path)))
    }
}

/// The last name of a path as bytes.
fn name(path: &Path) -> &[u8] {
    path.file_name().map(OsStr::as_bytes).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seed(byte: u8) -> Seed {
        Seed([byte; 32])
    }

    fn text(path: &str) -> (String, Vec<Canary>) {
        let decoy = for_path(&seed(1), Path::new(path), Shape::File, None);
        let Content::File(content) = decoy.content else { panic!("a file has a file's content") };
        (String::from_utf8(content).unwrap(), decoy.canaries)
    }

    #[test]
    fn the_table_parses_and_every_template_is_filled() {
        let table = Table::parse(include_str!("../../data/decoys.toml")).unwrap();
        for row in &table.files.rows {
            let (content, _) = template::fill(&row.template, &mut Draw::new(&[0; 32], Path::new("/x")));
            assert!(!String::from_utf8(content).unwrap().contains("{{"), "{:?}", row.r#match);
        }
        for name in
            table.folders.rows.iter().flat_map(|row| row.files.iter().map(|file| (&row.r#match, file)))
        {
            let path = Path::new(&name.0[0].replace("**", "/home/u")).join(name.1);
            assert!(table.files.matches(&path).is_some(), "{path:?} has no template");
        }
    }

    #[test]
    fn known_kinds_look_right_and_carry_canaries() {
        let (credentials, canaries) = text("/home/u/.aws/credentials");
        assert!(credentials.starts_with("[default]\naws_access_key_id = AKIA"), "{credentials}");
        assert_eq!(canaries.len(), 2);
        assert!(canaries.iter().all(|canary| credentials.contains(&canary.value)));

        let (key, canaries) = text("/home/u/.ssh/id_ed25519");
        assert!(key.starts_with("-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEA"), "{key}");
        assert!(key.ends_with("-----END OPENSSH PRIVATE KEY-----\n"));
        assert_eq!(canaries.len(), 1);

        assert!(text("/srv/tls/server.key").0.starts_with("-----BEGIN PRIVATE KEY-----\n"));
        assert!(text("/home/u/.ssh/id_rsa.pub").0.starts_with("ssh-ed25519 "));
        serde_json::from_str::<serde_json::Value>(&text("/home/u/.docker/config.json").0).unwrap();
        toml::from_str::<toml::Value>(&text("/home/u/.cargo/credentials.toml").0).unwrap();
        assert_eq!(text("/home/u/notes.txt"), (String::new(), vec![]));
    }

    #[test]
    fn a_known_folder_holds_its_files_and_another_none() {
        let decoy = for_path(&seed(1), Path::new("/home/u/.ssh"), Shape::Folder, None);
        let Content::Folder(files) = &decoy.content else { panic!("a folder has files") };
        let names: Vec<_> = files.iter().map(|(name, _)| name.to_str().unwrap()).collect();
        assert_eq!(names, ["config", "id_ed25519", "id_ed25519.pub", "known_hosts"]);
        assert_eq!(files[1].1, text("/home/u/.ssh/id_ed25519").0.into_bytes());
        let other = for_path(&seed(1), Path::new("/home/u/secrets"), Shape::Folder, None);
        assert_eq!(other, Decoy { content: Content::Folder(vec![]), canaries: vec![] });
    }

    #[test]
    fn sessions_and_paths_draw_their_own_values() {
        let of = |seed: &Seed, path: &str| for_path(seed, Path::new(path), Shape::File, None);
        let first = of(&seed(1), "/home/u/.netrc");
        assert_eq!(first, of(&seed(1), "/home/u/.netrc"));
        assert_ne!(first.canaries, of(&seed(2), "/home/u/.netrc").canaries);
        assert_ne!(first.canaries, of(&seed(1), "/root/.netrc").canaries);
        assert_ne!(Seed::random().unwrap().0, Seed::random().unwrap().0);
    }

    #[test]
    fn values_stay_out_of_debug_output() {
        let decoy = for_path(&seed(1), Path::new("/home/u/.netrc"), Shape::File, None);
        assert!(!format!("{:?}", decoy.canaries).contains(&decoy.canaries[0].value));
    }
}
