//! From a folder to the group that its file describes.

use std::path::{Path, PathBuf};

use super::error::ServicesError;
use super::file::{FILE_LIMIT, NAMES, parse};
use super::model::Group;
use crate::project::Project;
use crate::settings::Settings;
use crate::small_file::{Links, SmallFile};
use crate::trust::TrustStore;

/// A file that describes a group, and what it says.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// Where it is; canonical.
    pub path: PathBuf,
    /// What it says.
    pub group: Group,
    /// Whether the user trusts this very content, so that it may show what is outside its folder.
    pub trusted: bool,
    /// The folder in which it may show everything; none where that would be the whole home or system.
    pub(super) own: Option<PathBuf>,
}

impl Loaded {
    /// The file as labels say it.
    #[must_use]
    pub fn place(&self) -> String {
        self.path.to_string_lossy().into_owned()
    }

    /// A group that no file describes, of sandboxes that see at most the folder of `path`.
    #[must_use]
    pub(crate) fn of(path: PathBuf, group: Group) -> Self {
        let own = path.parent().map(Path::to_owned);
        Self { path, group, trusted: false, own }
    }
}

/// Whether a file of this name describes services.
#[must_use]
pub fn is_services_file(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    NAMES.contains(&name) || name.ends_with(".yaml") || name.ends_with(".yml") || name.ends_with(".json")
}

/// Reads `named`, or the first file of the known names in `folder`.
///
/// # Errors
/// [`ServicesError`].
pub fn load(
    named: Option<&Path>,
    folder: &Path,
    settings: &Settings,
    vars: &dyn Fn(&str) -> Option<String>,
) -> Result<Loaded, ServicesError> {
    let path = match named {
        Some(path) => folder.join(path),
        None => {
            let all = NAMES.iter().map(|name| folder.join(name));
            let found = all.into_iter().find(|path| path.symlink_metadata().is_ok());
            found.ok_or_else(|| ServicesError::NoFile { folder: folder.to_owned() })?
        }
    };
    let unread = |why: String| ServicesError::Read { path: path.clone(), why };
    let real = path.canonicalize().map_err(|error| unread(error.to_string()))?;
    let file =
        SmallFile::read(&real, FILE_LIMIT, Links::Refuse).map_err(|error| unread(error.to_string()))?;
    let bytes = file.ok_or_else(|| unread("it is gone".into()))?.bytes;
    let text = std::str::from_utf8(&bytes).map_err(|error| unread(error.to_string()))?;
    let group = parse(&real, text, vars)?;
    let trusted = TrustStore::load(&settings.homes.trust())?.trusts(&real, &bytes);
    let own = real.parent().filter(|own| is_narrow(own, settings.homes.home())).map(Path::to_owned);
    Ok(Loaded { path: real, group, trusted, own })
}

/// Whether a folder is one that a file in it may show all of.
fn is_narrow(folder: &Path, home: &Path) -> bool {
    let project = Project { root: folder.to_owned(), cwd: folder.to_owned(), git_dirs: Vec::new() };
    folder != Path::new("/") && project.check_width(home).is_ok()
}
