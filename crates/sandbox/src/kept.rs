//! What a session leaves behind for `redoma undo` and `redoma changes`: a small file of JSON lines, the first written
//! when it begins, the second when it ends. What takes more room lies in a folder of its own.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use redoma_audit::SessionId;
use redoma_policy::Workspace;
use serde::{Deserialize, Serialize};

use crate::folder;
use crate::homes::Homes;
use crate::undo::Backup;

/// What is known of a session that kept something.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    /// The session in the record.
    pub session: SessionId,
    /// The project it worked on.
    pub project: PathBuf,
    /// How the workspace was mounted.
    pub workspace: Workspace,
    /// When it began, as time since 1970.
    pub began: Duration,
    /// When it ended; none while it runs, and when its keeper was killed.
    pub ended: Option<Duration>,
    /// What brings a direct workspace back.
    pub backup: Option<Backup>,
    /// The session that was undone, if this is no session but what an undo keeps of the state before it.
    #[serde(default)]
    pub undid: Option<SessionId>,
}

impl Kept {
    /// Begins now.
    pub(crate) fn begin(
        session: SessionId,
        project: &Path,
        workspace: Workspace,
        backup: Option<Backup>,
    ) -> Self {
        Self {
            session,
            project: project.to_owned(),
            workspace,
            began: now(),
            ended: None,
            backup,
            undid: None,
        }
    }

    /// What an undo of `undid` keeps: the state before it, under an id of its own, so that it can be taken back.
    ///
    /// # Errors
    /// If the kernel gives no random bytes for the id.
    pub fn of_undo(undid: SessionId, project: &Path, before: Backup) -> Result<Self, redoma_audit::Error> {
        let session = SessionId::random()?;
        let begun = Self::begin(session, project, Workspace::Direct, Some(before));
        Ok(Self { ended: Some(begun.began), undid: Some(undid), ..begun })
    }

    /// Ends now, and notes it.
    pub(crate) fn end(&mut self, homes: &Homes) -> io::Result<()> {
        let end = End { ended: now() };
        self.ended = Some(end.ended);
        let mut notes = fs::OpenOptions::new().append(true).open(notes_of(homes, self.session))?;
        notes.write_all(&line(&end)?)
    }

    /// The layer that holds an overlay workspace's changes.
    #[must_use]
    pub fn upper(&self, homes: &Homes) -> PathBuf {
        folder_of(homes, self.session).join("overlay/upper")
    }

    /// Writes it down, for [`Kept::load`].
    ///
    /// # Errors
    /// What writing says.
    pub fn save(&self, homes: &Homes) -> io::Result<()> {
        folder::private(&homes.sessions())?;
        let mut new = fs::OpenOptions::new();
        let mut notes = new.write(true).create_new(true).mode(0o600).open(notes_of(homes, self.session))?;
        notes.write_all(&line(self)?)
    }

    /// What `session` left.
    ///
    /// # Errors
    /// `NotFound` if it left nothing; what reading says otherwise.
    pub fn load(homes: &Homes, session: SessionId) -> io::Result<Self> {
        let text = fs::read(notes_of(homes, session))?;
        let mut lines = text.split(|&byte| byte == b'\n');
        let mut kept: Self = serde_json::from_slice(lines.next().unwrap_or_default())?;
        // A keeper that was killed wrote none, or half of one.
        let end = lines.next().and_then(|line| serde_json::from_slice::<End>(line).ok());
        kept.ended = kept.ended.or(end.map(|end| end.ended));
        Ok(kept)
    }

    /// All sessions that left something, the latest first.
    ///
    /// # Errors
    /// What reading the folder says.
    pub fn all(homes: &Homes) -> io::Result<Vec<Self>> {
        let entries = match fs::read_dir(homes.sessions()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let session = |name: &str| name.strip_suffix(".json")?.parse().ok();
        let names = entries.flatten().filter_map(|entry| session(entry.file_name().to_str()?));
        let mut all: Vec<Self> = names.filter_map(|session| Self::load(homes, session).ok()).collect();
        all.sort_by_key(|kept| std::cmp::Reverse(kept.began));
        Ok(all)
    }
}

/// The second line.
#[derive(Serialize, Deserialize)]
struct End {
    ended: Duration,
}

fn line(value: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    Ok(line)
}

fn notes_of(homes: &Homes, session: SessionId) -> PathBuf {
    homes.sessions().join(format!("{session}.json"))
}

/// The session's own folder in Redoma's state. It exists only where something is kept in it.
pub(crate) fn folder_of(homes: &Homes, session: SessionId) -> PathBuf {
    homes.sessions().join(session.as_str())
}

fn now() -> Duration {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
}
