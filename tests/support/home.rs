//! An isolated home: its own HOME, its own Redoma folders.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::command::Tier;
use crate::project::Project;

/// HOME and REDOMA_HOME of one test, side by side in a temporary folder that goes with it.
pub struct Home {
    folder: TempDir,
}

impl Home {
    /// An empty home with a git identity in it.
    ///
    /// # Panics
    /// If the temporary folder cannot be made.
    #[must_use]
    #[allow(clippy::new_without_default, reason = "making folders is not what a default does")]
    pub fn new() -> Self {
        let folder = tempfile::Builder::new().prefix("redoma-e2e-").tempdir().unwrap();
        let home = Self { folder };
        fs::create_dir(home.path()).unwrap();
        let identity = "[user]\n\tname = Test\n\temail = test@example.com\n[init]\n\tdefaultBranch = main\n";
        home.file(".gitconfig", identity);
        home
    }

    /// What HOME is set to.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    /// What REDOMA_HOME is set to: config/, state/ and run/ appear in it.
    #[must_use]
    pub fn redoma(&self) -> PathBuf {
        self.folder.path().join("redoma")
    }

    /// A folder beside HOME that no policy grants.
    ///
    /// # Panics
    /// If it cannot be made.
    #[must_use]
    pub fn outside(&self) -> PathBuf {
        let outside = self.folder.path().join("outside");
        fs::create_dir_all(&outside).unwrap();
        outside
    }

    /// Writes a file below HOME, with its folders; secrets' usual mode 0600.
    ///
    /// # Panics
    /// If it cannot be written.
    pub fn file(&self, name: impl AsRef<Path>, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        path
    }

    /// Writes the user's policy.
    ///
    /// # Panics
    /// If it cannot be written.
    pub fn policy(&self, toml: &str) {
        let folder = self.redoma().join("config");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("policy.toml"), toml).unwrap();
    }

    /// A new git repository below HOME.
    #[must_use]
    pub fn project(&self, name: &str) -> Project<'_> {
        Project::create(self, name)
    }

    /// What `tier` can run a command in under the default profile: the landlock tier has no way to protect
    /// `.git/config` below a write grant and refuses a repository by name, so there it is a plain folder.
    #[must_use]
    pub fn project_for(&self, tier: Tier) -> Project<'_> {
        match tier {
            Tier::Full => self.project("full"),
            Tier::Landlock => self.folder("landlock"),
        }
    }

    /// A new folder below HOME that is no repository.
    #[must_use]
    pub fn folder(&self, name: &str) -> Project<'_> {
        Project::plain(self, name)
    }
}
