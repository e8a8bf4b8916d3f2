//! How other commands reach a running capture: one Unix socket for each, in a folder that only its user
//! can look into. `docs/session-socket.md` describes what is said there.
//!
//! One line of JSON asks, one line answers, and the connection ends.

use std::fs::{self, DirBuilder};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::sys::socket::{getsockopt, sockopt};
use rustix::process::geteuid;
use serde::{Deserialize, Serialize};

/// The version of what is said.
pub(crate) const VERSION: u32 = 1;
/// Most bytes of a line.
const MOST: u64 = 1 << 20;
/// How long one side waits for the other.
pub(crate) const PATIENCE: Duration = Duration::from_secs(2);
/// How long somebody waits for a change, before which every CPU has to be reached.
const PATIENCE_FOR_CHANGES: Duration = Duration::from_secs(30);

/// A question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Request {
    pub v: u32,
    #[serde(flatten)]
    pub ask: Ask,
}

/// What is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "kebab-case")]
pub(crate) enum Ask {
    /// What is captured.
    List,
    /// A window, now.
    Trigger {
        /// The process that the asker means.
        pid: i32,
        #[serde(default)]
        note: String,
    },
    /// Frames, counters and histograms, to be written from now on.
    Enable {
        pid: i32,
        /// Names, `BUFFER.NAME` or `@GROUP`, with `*` and `?`.
        names: Vec<String>,
    },
    /// The same, to be written no longer.
    Disable { pid: i32, names: Vec<String> },
}

/// An answer. Further versions add keys.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Answer {
    pub v: u32,
    pub ok: bool,
    /// Why it cannot be done.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub error: String,
    /// The pid of the ppt that answers.
    pub ppt: u32,
    /// The processes that it captures.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub processes: Vec<Captured>,
    /// What `enable` or `disable` has changed, as `BUFFER.NAME`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<String>,
    /// Its flight recorder, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flight: Option<Recorder>,
}

/// A process that is captured.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Captured {
    pub pid: i32,
    pub program: String,
    pub buffers: Vec<String>,
    /// Its frames, counters and histograms.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<Choosable>,
}

/// A frame, a counter or a histogram, and whether it is written.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Choosable {
    pub buffer: String,
    pub name: String,
    pub enabled: bool,
}

/// A flight recorder.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Recorder {
    /// Where it writes windows.
    pub folder: String,
    /// How many it has written.
    pub written: u64,
    /// How many wait to be written.
    pub waiting: u64,
}

/// The folders in which this user's sessions have their sockets; the first that can be used is.
fn own_folders() -> Vec<PathBuf> {
    let uid = geteuid().as_raw();
    let first = match geteuid().is_root() {
        true => Some("/run/ppt".into()),
        false => std::env::var_os("XDG_RUNTIME_DIR")
            .map(PathBuf::from)
            .filter(|it| it.is_absolute())
            .map(|it| it.join("ppt")),
    };
    first.into_iter().chain([format!("/tmp/ppt-{uid}").into()]).collect()
}

/// Those of everybody else, where root looks, too.
fn other_folders() -> Vec<PathBuf> {
    let entries = |folder: &str| {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|it| it.path()).collect::<Vec<_>>()
    };
    let temporary = entries("/tmp").into_iter().filter(|it| {
        it.file_name().and_then(|name| name.to_str()).is_some_and(|it| it.starts_with("ppt-"))
    });
    entries("/run/user").into_iter().map(|it| it.join("ppt")).chain(temporary).collect()
}

/// Whether a folder belongs to `uid`, and only to that user.
fn is_private(folder: &Path, uid: u32) -> bool {
    fs::symlink_metadata(folder)
        .is_ok_and(|it| it.is_dir() && it.uid() == uid && it.mode() & 0o077 == 0)
}

/// The path of this ppt's socket. Makes the folder if there is none.
pub(crate) fn own_path() -> io::Result<PathBuf> {
    let mut last = io::ErrorKind::NotFound.into();
    for folder in own_folders() {
        match DirBuilder::new().mode(0o700).create(&folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => last = error,
            _ if is_private(&folder, geteuid().as_raw()) => {
                return Ok(folder.join(std::process::id().to_string()));
            }
            _ => {
                let what = format!("{} belongs to others, too", folder.display());
                last = io::Error::new(io::ErrorKind::PermissionDenied, what);
            }
        }
    }
    Err(last)
}

/// A session that answers.
pub(crate) struct Session {
    path: PathBuf,
    pub(crate) answer: Answer,
}

impl Session {
    /// Asks it for something.
    pub(crate) fn ask(&self, ask: Ask) -> io::Result<Answer> {
        asked(&self.path, ask)
    }
}

/// The sessions of this user; for root, of everybody.
pub(crate) fn sessions() -> Vec<Session> {
    let own = own_folders();
    let mut folders = own.clone();
    if geteuid().is_root() {
        folders.extend(other_folders().into_iter().filter(|it| !own.contains(it)));
    }
    let mut sessions = Vec::new();
    for folder in folders {
        let Ok(owner) = fs::symlink_metadata(&folder).map(|it| it.uid()) else { continue };
        let is_ours = owner == geteuid().as_raw();
        if !is_private(&folder, owner) || !(is_ours || geteuid().is_root()) {
            continue;
        }
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if !entry.file_type().is_ok_and(|it| it.is_socket()) {
                continue;
            }
            match asked(&path, Ask::List) {
                Ok(answer) if answer.ok => sessions.push(Session { path, answer }),
                // A killed ppt has left it.
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused && is_ours => {
                    let _ = fs::remove_file(&path);
                }
                _ => {}
            }
        }
    }
    sessions
}

fn asked(path: &Path, ask: Ask) -> io::Result<Answer> {
    let mut stream = UnixStream::connect(path)?;
    if !is_trusted(&stream, path) {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    let patience = match ask {
        Ask::Enable { .. } | Ask::Disable { .. } => PATIENCE_FOR_CHANGES,
        Ask::List | Ask::Trigger { .. } => PATIENCE,
    };
    write(&mut stream, &Request { v: VERSION, ask })?;
    read(&stream, patience)
}

/// Whether the other side is who owns the folder.
fn is_trusted(stream: &UnixStream, path: &Path) -> bool {
    let owner = path.parent().and_then(|folder| fs::symlink_metadata(folder).ok());
    let peer = getsockopt(stream, sockopt::PeerCredentials);
    owner.zip(peer.ok()).is_some_and(|(owner, peer)| owner.uid() == peer.uid())
}

/// Whether the other side may ask for something: this user, or root.
pub(crate) fn may_ask(stream: &UnixStream) -> bool {
    let peer = getsockopt(stream, sockopt::PeerCredentials);
    peer.is_ok_and(|peer| peer.uid() == geteuid().as_raw() || peer.uid() == 0)
}

/// Reads a line.
pub(crate) fn read<T: for<'a> Deserialize<'a>>(
    stream: &UnixStream,
    patience: Duration,
) -> io::Result<T> {
    stream.set_read_timeout(Some(patience))?;
    let mut line = String::new();
    BufReader::new(stream.take(MOST)).read_line(&mut line)?;
    if line.is_empty() {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(serde_json::from_str(&line)?)
}

/// Writes a line.
pub(crate) fn write(stream: &mut UnixStream, what: &impl Serialize) -> io::Result<()> {
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut line = serde_json::to_string(what)?;
    line.push('\n');
    stream.write_all(line.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_is_one_line_of_json() {
        let ask = Ask::Trigger { pid: 4711, note: "slow\nagain".into() };
        let line = serde_json::to_string(&Request { v: 1, ask: ask.clone() }).unwrap();
        assert_eq!(line, r#"{"v":1,"ask":"trigger","pid":4711,"note":"slow\nagain"}"#);
        assert_eq!(serde_json::from_str::<Request>(&line).unwrap(), Request { v: 1, ask });
        let later = r#"{"v":1,"ask":"list","more":[1]}"#;
        assert_eq!(serde_json::from_str::<Request>(later).unwrap().ask, Ask::List);
        assert!(serde_json::from_str::<Request>(r#"{"v":1,"ask":"dance"}"#).is_err());
    }

    #[test]
    fn a_folder_that_others_share_is_not_used() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let folder = tempfile::tempdir().unwrap();
        let uid = geteuid().as_raw();
        let mode = |mode| fs::set_permissions(folder.path(), fs::Permissions::from_mode(mode));
        mode(0o700).unwrap();
        assert!(is_private(folder.path(), uid) && !is_private(folder.path(), uid + 1));
        let link = folder.path().join("link");
        symlink(folder.path(), &link).unwrap();
        assert!(!is_private(&link, uid));
        mode(0o710).unwrap();
        assert!(!is_private(folder.path(), uid));
        mode(0o700).unwrap();
    }
}
