//! From the machine, the caller and the folder to a resolved policy.
//!
//! Here the policy's files are found, read safely and judged: who could have written them decides whether they may
//! widen. What they mean is `redoma_policy`'s business.

use std::ffi::OsString;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use redoma_policy::{
    CommandLine, Layer, PathFacts, PathKind, PolicyError, ResolvedPolicy, Source, Surroundings,
};

use crate::gitguard::{self, ConfigError};
use crate::homes::{Homes, HomesError};
use crate::presets::{self, Outside, PresetError};
use crate::project::{Project, ProjectError};
use crate::shell;
use crate::small_file::{self, Links, SmallFile, SmallFileError};
use crate::trust::{TrustError, TrustStore};

/// The administrator's policy and ceiling. No variable moves it.
pub const SYSTEM_POLICY: &str = "/etc/redoma/policy.toml";
/// The project's policy, in the project's top folder.
pub const PROJECT_POLICY: &str = "redoma.toml";

/// Everything that a policy depends on but does not say.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Where Redoma keeps its own things.
    pub homes: Homes,
    /// The project of the current folder.
    pub project: Project,
    /// The caller's name, as `USER` or `LOGNAME` has it, else the number.
    pub user: String,
    /// The caller's effective user id.
    pub uid: u32,
}

/// Why no policy could be loaded.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// Redoma's own folders cannot be told.
    #[error(transparent)]
    Homes(#[from] HomesError),
    /// There is no project here.
    #[error(transparent)]
    Project(#[from] ProjectError),
    /// The list of trusted policies is not usable.
    #[error(transparent)]
    Trust(#[from] TrustError),
    /// A policy file exists and cannot be read; going on without it would be a weaker start.
    #[error("cannot read the {layer} policy {}: {why}", path.display())]
    Read {
        /// Whose policy.
        layer: Layer,
        /// The file.
        path: PathBuf,
        /// The cause.
        why: String,
    },
    /// Somebody else could have written the file.
    #[error("the {layer} policy {} is not safe to use: {why}", path.display())]
    Unsafe {
        /// Whose policy.
        layer: Layer,
        /// The file.
        path: PathBuf,
        /// Who could have written it.
        why: String,
    },
    /// A policy file cannot be written; it is as it was.
    #[error("cannot write the policy {}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// The file named on the command line is not there.
    #[error("there is no policy file {}", .0.display())]
    NoSuchPolicy(PathBuf),
    /// The policies do not resolve.
    #[error(transparent)]
    Policy(#[from] Box<PolicyError>),
    /// A preset of `--allow` came to nothing.
    #[error(transparent)]
    Preset(#[from] PresetError),
    /// What git would run on the host cannot be told.
    #[error(transparent)]
    Git(#[from] ConfigError),
}

impl SettingsError {
    /// What to do about it, as one command line.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Homes(error) => Some(error.hint()),
            Self::Project(error) => Some(error.hint()),
            Self::Trust(error) => Some(error.hint()),
            Self::Read { path, .. } => Some(format!("ls -l {}", shell::word(path))),
            Self::Unsafe { layer: Layer::System, path, .. } => {
                Some(format!("sudo chown root:root {0} && sudo chmod 644 {0}", shell::word(path)))
            }
            Self::Unsafe { path, .. } => Some(format!("chmod go-w {}", shell::word(path))),
            Self::Write { path, .. } => {
                Some(format!("ls -ld {}", shell::word(path.parent().unwrap_or(path))))
            }
            Self::NoSuchPolicy(_) => Some("redoma policy init".to_owned()),
            Self::Policy(error) => error.hint(),
            Self::Preset(error) => Some(error.hint()),
            Self::Git(error) => Some(format!("ls -l {}", shell::word(&error.path))),
        }
    }
}

// === impl Settings ===

impl Settings {
    /// The settings of this process: its environment, user and current folder.
    pub fn of_process() -> Result<Self, SettingsError> {
        let cwd = std::env::current_dir()
            .map_err(|source| ProjectError::Cwd { path: PathBuf::from("."), source })?;
        Self::at(&cwd, &|name| std::env::var_os(name))
    }

    /// The settings of this user in the folder `cwd`, with variables asked for through `var`.
    pub fn at(cwd: &Path, var: &dyn Fn(&str) -> Option<OsString>) -> Result<Self, SettingsError> {
        let homes = Homes::from_vars(var)?;
        let project = Project::discover(cwd, homes.home())?;
        let uid = rustix::process::geteuid().as_raw();
        let named =
            |name| var(name).and_then(|value| value.into_string().ok()).filter(|name| !name.is_empty());
        let user = named("USER").or_else(|| named("LOGNAME")).unwrap_or_else(|| uid.to_string());
        Ok(Self { homes, project, user, uid })
    }

    /// The project's policy file; it need not exist.
    #[must_use]
    pub fn project_policy(&self) -> PathBuf {
        self.project.root.join(PROJECT_POLICY)
    }

    /// A path as people type it: `~` is the home folder, and what is relative lies in `base`.
    #[must_use]
    pub fn expand(&self, typed: &str, base: &Path) -> PathBuf {
        match typed.strip_prefix('~') {
            Some("") => self.homes.home().to_owned(),
            Some(rest) if rest.starts_with('/') => self.homes.home().join(rest.trim_start_matches('/')),
            _ => base.join(typed),
        }
    }

    /// Reads the policy files that apply here: system, user, and the project's or `instead` of it.
    pub fn sources(&self, instead: Option<&Path>) -> Result<Vec<Source>, SettingsError> {
        let project = match instead {
            Some(path) => Some(Source { layer: Layer::Project, ..self.source(path)? }),
            None => self.own_project_policy()?,
        };
        let layers = [system_policy(Path::new(SYSTEM_POLICY))?, self.user_policy()?, project];
        Ok(layers.into_iter().flatten().collect())
    }

    /// What a disposable sandbox is under: the administrator's policy as it is now, and the one that the user named when
    /// it was made. What the user has for projects is not for it.
    pub(crate) fn sources_of_sandbox(named: Option<&str>) -> Result<Vec<Source>, SettingsError> {
        let named = named.map(|text| Source {
            layer: Layer::Project,
            path: None,
            text: text.as_bytes().to_vec(),
            trusted: true,
        });
        Ok(system_policy(Path::new(SYSTEM_POLICY))?.into_iter().chain(named).collect())
    }

    /// Writes a policy file whole. What was there before is replaced, never written through.
    pub fn write_policy(&self, path: &Path, text: &str) -> Result<(), SettingsError> {
        let failed = |source| SettingsError::Write { path: path.to_owned(), source };
        let users = path.starts_with(self.homes.config());
        if users {
            let mut private = std::fs::DirBuilder::new();
            private.recursive(true).mode(0o700).create(self.homes.config()).map_err(failed)?;
        }
        small_file::replace(path, text.as_bytes(), if users { 0o600 } else { 0o644 }).map_err(failed)
    }

    /// Resolves `sources` under the command-line layer.
    pub fn resolve(&self, sources: &[Source], typed: &CommandLine) -> Result<ResolvedPolicy, SettingsError> {
        let variables = |name: &str| std::env::var(name).ok();
        let surroundings = Surroundings {
            home: self.homes.home(),
            project: &self.project.root,
            cwd: &self.project.cwd,
            user: &self.user,
            uid: self.uid,
            git_dirs: &self.project.git_dirs,
            vars: &variables,
            paths: &HostPaths,
            load: &|path| self.extended(path).map_err(|error| error.to_string()),
        };
        let typed = presets::expand(typed, &self.outside())?;
        let mut policy = redoma_policy::resolve(sources, &typed, &surroundings).map_err(Box::new)?;
        gitguard::protect_configured(&mut policy, &self.project, self.homes.home())?;
        Ok(policy)
    }

    /// The machine as tools outside the project see it.
    #[must_use]
    pub fn outside(&self) -> Outside<'_> {
        Outside {
            home: self.homes.home(),
            project: &self.project.root,
            vars: std::env::vars_os().collect(),
            root: Path::new("/"),
        }
    }

    fn user_policy(&self) -> Result<Option<Source>, SettingsError> {
        let path = self.homes.user_policy();
        let Some(file) = read(Layer::User, &path, Links::Follow)? else { return Ok(None) };
        self.check_owner(Layer::User, &path, &file)?;
        // A link may lead into a folder that sandboxes write, such as a repository of dotfiles. What is reached
        // through one is trusted by content, as a project's file is.
        let real = path.canonicalize().unwrap_or_else(|_| path.clone());
        let in_place = self.homes.config().canonicalize().is_ok_and(|config| real.parent() == Some(&config));
        let trusted = in_place || self.trusts(&real, &file.bytes)?;
        Ok(Some(Source { layer: Layer::User, path: Some(path), text: file.bytes, trusted }))
    }

    fn own_project_policy(&self) -> Result<Option<Source>, SettingsError> {
        let path = self.project_policy();
        let Some(file) = read(Layer::Project, &path, Links::Refuse)? else { return Ok(None) };
        let trusted = self.trusts(&path, &file.bytes)?;
        Ok(Some(Source { layer: Layer::Project, path: Some(path), text: file.bytes, trusted }))
    }

    /// Reads one policy file by name; its layer follows from its place.
    ///
    /// To name a file is to trust it, unless it lies in the project, where the last session could have changed it.
    pub fn source(&self, path: &Path) -> Result<Source, SettingsError> {
        let real = path.canonicalize().map_err(|_| SettingsError::NoSuchPolicy(path.to_owned()))?;
        let layer = self.layer_of(&real);
        let file =
            read(layer, &real, Links::Refuse)?.ok_or_else(|| SettingsError::NoSuchPolicy(path.to_owned()))?;
        let inside = real.starts_with(&self.project.root);
        if !inside {
            self.check_owner(layer, &real, &file)?;
        }
        let trusted = !inside || self.trusts(&real, &file.bytes)?;
        Ok(Source { layer, path: Some(real), text: file.bytes, trusted })
    }

    fn layer_of(&self, real: &Path) -> Layer {
        if real == Path::new(SYSTEM_POLICY) {
            return Layer::System;
        }
        let user = self.homes.user_policy().canonicalize();
        if user.is_ok_and(|user| user == real) { Layer::User } else { Layer::Project }
    }

    /// A file that another policy extends. Unlike the file that names it, nobody looked at it when it was trusted, so
    /// it must lie where no sandbox writes, or be trusted itself.
    fn extended(&self, path: &Path) -> Result<Source, SettingsError> {
        let real = path.canonicalize().map_err(|_| SettingsError::NoSuchPolicy(path.to_owned()))?;
        let file = read(Layer::Project, &real, Links::Refuse)?
            .ok_or_else(|| SettingsError::NoSuchPolicy(path.to_owned()))?;
        let kept =
            [self.homes.config(), Path::new("/etc/redoma")].iter().any(|folder| real.starts_with(folder));
        if kept {
            self.check_owner(Layer::User, &real, &file)?;
        }
        let trusted = kept || self.trusts(&real, &file.bytes)?;
        Ok(Source { layer: Layer::Project, path: Some(real), text: file.bytes, trusted })
    }

    fn trusts(&self, policy: &Path, content: &[u8]) -> Result<bool, SettingsError> {
        Ok(TrustStore::load(&self.homes.trust())?.trusts(policy, content))
    }

    fn check_owner(&self, layer: Layer, path: &Path, file: &SmallFile) -> Result<(), SettingsError> {
        let own_group = rustix::process::getegid().as_raw();
        let refuse = |why| Err(SettingsError::Unsafe { layer, path: path.to_owned(), why });
        if file.uid != self.uid && file.uid != 0 {
            return refuse(format!("it belongs to user {}", file.uid));
        }
        if file.mode & 0o002 != 0 || file.mode & 0o020 != 0 && file.gid != own_group {
            return refuse(format!("others may write it (mode {:o})", file.mode));
        }
        Ok(())
    }
}

/// Reads the administrator's policy. Only root may be able to write it: it lifts nobody's ceiling but root's.
fn system_policy(path: &Path) -> Result<Option<Source>, SettingsError> {
    let Some(file) = read(Layer::System, path, Links::Follow)? else { return Ok(None) };
    if file.uid != 0 || file.mode & 0o022 != 0 {
        let why = format!("user {} or others may write it (mode {:o})", file.uid, file.mode);
        return Err(SettingsError::Unsafe { layer: Layer::System, path: path.to_owned(), why });
    }
    Ok(Some(Source { layer: Layer::System, path: Some(path.to_owned()), text: file.bytes, trusted: true }))
}

fn read(layer: Layer, path: &Path, links: Links) -> Result<Option<SmallFile>, SettingsError> {
    SmallFile::read(path, redoma_policy::MAX_FILE, links).map_err(|error| {
        let why = match error {
            SmallFileError::Io(rustix::io::Errno::LOOP) => "it is a symbolic link".to_owned(),
            other => other.to_string(),
        };
        SettingsError::Read { layer, path: path.to_owned(), why }
    })
}

/// The path a system call would end at: links followed as far as the path exists, the rest appended.
///
/// A link that leads nowhere is followed too: creating through it creates what it names.
#[must_use]
pub fn nearest_canonical(path: &Path) -> PathBuf {
    crate::why::follow(path, &|_| true)
}

/// What the policy may ask about paths, answered by this machine's file system.
#[derive(Debug, Clone, Copy)]
pub struct HostPaths;

// === impl HostPaths ===

impl PathFacts for HostPaths {
    fn canonicalize(&self, path: &Path) -> Option<PathBuf> {
        path.canonicalize().ok()
    }

    fn kind(&self, path: &Path) -> Option<PathKind> {
        let kind = path.symlink_metadata().ok()?.file_type();
        Some(match kind {
            _ if kind.is_file() => PathKind::File,
            _ if kind.is_dir() => PathKind::Folder,
            _ if kind.is_symlink() => PathKind::Link,
            _ => PathKind::Other,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    struct Machine {
        _dir: tempfile::TempDir,
        root: PathBuf,
    }

    impl Machine {
        /// A home with a configuration folder and a project.
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            let root = dir.path().canonicalize().unwrap();
            for folder in ["home", "redoma/config", "project", "elsewhere"] {
                std::fs::create_dir_all(root.join(folder)).unwrap();
            }
            Self { _dir: dir, root }
        }

        fn settings(&self) -> Settings {
            let var = |name: &str| match name {
                "HOME" => Some(self.root.join("home").into_os_string()),
                "REDOMA_HOME" => Some(self.root.join("redoma").into_os_string()),
                _ => None,
            };
            Settings::at(&self.root.join("project"), &var).unwrap()
        }

        fn write(&self, path: &str, mode: u32) -> PathBuf {
            let path = self.root.join(path);
            std::fs::write(&path, "[filesystem]\n").unwrap();
            std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
            path
        }

        fn trusted(&self, instead: Option<&Path>) -> Vec<(Layer, bool)> {
            let sources = self.settings().sources(instead).unwrap();
            let own = sources.iter().filter(|source| source.layer != Layer::System);
            own.map(|source| (source.layer, source.trusted)).collect()
        }
    }

    #[test]
    fn the_users_own_file_is_trusted_and_the_projects_is_not_until_its_content_is() {
        let machine = Machine::new();
        machine.write("redoma/config/policy.toml", 0o600);
        let project = machine.write("project/redoma.toml", 0o644);
        assert_eq!(machine.trusted(None), [(Layer::User, true), (Layer::Project, false)]);
        let content = std::fs::read(&project).unwrap();
        TrustStore::trust(&machine.settings().homes.trust(), &project, &content).unwrap();
        assert_eq!(machine.trusted(None), [(Layer::User, true), (Layer::Project, true)]);
        std::fs::write(&project, "[network]\n").unwrap();
        assert_eq!(machine.trusted(None), [(Layer::User, true), (Layer::Project, false)]);
    }

    #[test]
    fn a_user_policy_reached_through_a_link_is_not_trusted_by_its_place() {
        let machine = Machine::new();
        let real = machine.write("elsewhere/policy.toml", 0o644);
        symlink(real, machine.root.join("redoma/config/policy.toml")).unwrap();
        assert_eq!(machine.trusted(None), [(Layer::User, false)]);
    }

    #[test]
    fn a_user_policy_that_others_may_write_is_refused() {
        let machine = Machine::new();
        machine.write("redoma/config/policy.toml", 0o666);
        let error = machine.settings().sources(None).unwrap_err();
        assert!(matches!(error, SettingsError::Unsafe { layer: Layer::User, .. }), "{error}");
    }

    #[test]
    fn a_project_policy_that_is_a_link_is_refused_not_skipped() {
        let machine = Machine::new();
        let real = machine.write("elsewhere/policy.toml", 0o644);
        symlink(real, machine.root.join("project/redoma.toml")).unwrap();
        assert!(matches!(machine.settings().sources(None), Err(SettingsError::Read { .. })));
    }

    #[test]
    fn a_named_policy_counts_as_trusted_only_outside_the_project() {
        let machine = Machine::new();
        let outside = machine.write("elsewhere/policy.toml", 0o644);
        let inside = machine.write("project/other.toml", 0o644);
        assert_eq!(machine.trusted(Some(&outside)), [(Layer::Project, true)]);
        assert_eq!(machine.trusted(Some(&inside)), [(Layer::Project, false)]);
        let missing = machine.settings().sources(Some(Path::new("/nowhere.toml")));
        assert!(matches!(missing, Err(SettingsError::NoSuchPolicy(_))));
    }

    #[test]
    fn a_policy_of_ten_megabytes_is_refused_early() {
        let machine = Machine::new();
        let path = machine.write("project/redoma.toml", 0o644);
        std::fs::File::options().write(true).open(path).unwrap().set_len(10 << 20).unwrap();
        let error = machine.settings().sources(None).unwrap_err();
        assert!(error.to_string().contains("larger than 1048576 bytes"), "{error}");
    }

    #[test]
    fn a_path_that_does_not_exist_is_followed_as_far_as_it_goes() {
        let machine = Machine::new();
        let root = &machine.root;
        symlink(root.join("elsewhere"), root.join("project/link")).unwrap();
        symlink("../home/new", root.join("project/dangling")).unwrap();
        symlink("loop", root.join("project/loop")).unwrap();
        symlink("deeper/x", root.join("project/deeper")).unwrap();
        assert_eq!(nearest_canonical(&root.join("project/link/a/b")), root.join("elsewhere/a/b"));
        assert_eq!(nearest_canonical(&root.join("project/dangling")), root.join("home/new"));
        assert!(nearest_canonical(&root.join("project/loop")).starts_with(root));
        assert!(nearest_canonical(&root.join("project/deeper/y")).starts_with(root));
    }

    #[test]
    fn the_ceiling_must_be_roots_alone() {
        let machine = Machine::new();
        let path = machine.write("elsewhere/policy.toml", 0o622);
        assert!(matches!(system_policy(&path), Err(SettingsError::Unsafe { layer: Layer::System, .. })));
        assert!(system_policy(Path::new("/nowhere/policy.toml")).unwrap().is_none());
    }
}
