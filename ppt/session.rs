//! How other commands reach a running capture: one Unix socket for each, in a folder that only its
//! user can access. `docs/session-socket.md` describes the protocol.
//!
//! The client sends one line of JSON, the session answers with one line, and the connection ends.

use std::fs::{self, DirBuilder};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::sys::socket::{AddressFamily, SockFlag, SockType, UnixAddr, getsockopt, socket, sockopt};
use rustix::process::geteuid;
use serde::{Deserialize, Serialize};

/// Version of the protocol.
pub(crate) const VERSION: u32 = 1;
/// The most bytes of a line.
const MAX_LINE_BYTES: usize = 1 << 20;
/// The time for which each side waits for the other.
pub(crate) const REPLY_TIMEOUT: Duration = Duration::from_secs(2);
/// The time for which a client waits for a change, which must first reach every CPU.
const PATIENCE_FOR_CHANGES: Duration = Duration::from_secs(30);

/// A request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SessionRequest {
    pub v: u32,
    #[serde(flatten)]
    pub ask: Ask,
}

/// The question or order of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "kebab-case")]
pub(crate) enum Ask {
    /// Lists what is captured.
    List,
    /// Writes a window now.
    Trigger {
        /// The process that the client refers to.
        pid: i32,
        #[serde(default)]
        note: String,
    },
    /// Starts writing frames, counters and histograms.
    Enable {
        pid: i32,
        /// Names, `BUFFER.NAME` or `@GROUP`, with `*` and `?`.
        names: Vec<String>,
    },
    /// Stops writing them.
    Disable { pid: i32, names: Vec<String> },
}

/// An answer. Later versions add keys.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct SessionReply {
    pub v: u32,
    pub ok: bool,
    /// Why the request failed.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub error: String,
    /// The pid of the answering ppt.
    pub ppt: u32,
    /// The captured processes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub processes: Vec<Captured>,
    /// The absolute path of the capture; None if it is written into a pipe or as windows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// The changes by `enable` or `disable`, as `BUFFER.NAME`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<String>,
    /// Whether `ppt whatif --live` runs, so that the session refused.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub experiment: bool,
    /// The session's flight recorder, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flight: Option<Recorder>,
}

impl SessionReply {
    /// Whether the session captures process `pid`.
    pub(crate) fn has(&self, pid: i32) -> bool {
        self.processes.iter().any(|process| process.pid == pid)
    }
}

/// A captured process.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Captured {
    pub pid: i32,
    pub program: String,
    pub buffers: Vec<String>,
    /// The frames, counters and histograms.
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
    /// The folder of its windows.
    pub folder: String,
    /// The number of windows written.
    pub written: u64,
    /// The number of windows waiting to be written.
    pub waiting: u64,
}

/// Candidate folders for the sockets of this user's sessions, in the order of preference.
fn own_folders() -> Vec<PathBuf> {
    let uid = geteuid().as_raw();
    let first = if geteuid().is_root() {
        Some("/run/ppt".into())
    } else {
        std::env::var_os("XDG_RUNTIME_DIR")
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
            .map(|path| path.join("ppt"))
    };
    first.into_iter().chain([format!("/tmp/ppt-{uid}").into()]).collect()
}

/// The folders of all other users, which root also searches.
fn other_folders() -> Vec<PathBuf> {
    let entries = |folder: &str| {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect::<Vec<_>>()
    };
    let temporary = entries("/tmp").into_iter().filter(|entry| {
        entry
            .file_name()
            .and_then(|name| name.to_str())
            .is_some_and(|text| text.starts_with("ppt-"))
    });
    entries("/run/user").into_iter().map(|entry| entry.join("ppt")).chain(temporary).collect()
}

/// Whether a folder belongs to `uid`, and only to that user.
fn is_private(folder: &Path, uid: u32) -> bool {
    fs::symlink_metadata(folder).is_ok_and(|metadata| {
        metadata.is_dir() && metadata.uid() == uid && metadata.mode() & 0o077 == 0
    })
}

/// The path of this ppt's socket. Creates the folder if it is missing.
pub(crate) fn own_path() -> io::Result<PathBuf> {
    let mut last = io::ErrorKind::NotFound.into();
    for folder in own_folders() {
        match DirBuilder::new().mode(0o700).create(&folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => last = error,
            _ if is_private(&folder, geteuid().as_raw()) => {
                return Ok(folder.join(own_name()));
            }
            _ => {
                let message = format!("{} belongs to others, too", folder.display());
                last = io::Error::new(io::ErrorKind::PermissionDenied, message);
            }
        }
    }
    Err(last)
}

/// The name of this ppt's socket: its pid and the inode of its pid namespace, because another ppt
/// may have the same pid in another namespace. Earlier versions use the pid only.
fn own_name() -> String {
    let pid = std::process::id();
    match fs::metadata("/proc/self/ns/pid") {
        Ok(namespace) => format!("{pid}-{}", namespace.ino()),
        Err(_) => pid.to_string(),
    }
}

/// A session that answers.
pub(crate) struct SessionServer {
    path: PathBuf,
    pub(crate) answer: SessionReply,
}

impl SessionServer {
    /// Sends it a request.
    pub(crate) fn ask(&self, ask: Ask) -> io::Result<SessionReply> {
        asked(&self.path, ask)
    }
}

/// The sessions of this user; for root, of all users.
pub(crate) fn sessions() -> Vec<SessionServer> {
    let own = own_folders();
    let mut folders = own.clone();
    if geteuid().is_root() {
        folders
            .extend(other_folders().into_iter().filter(|other_folder| !own.contains(other_folder)));
    }
    let mut sessions = Vec::new();
    // Other users' sessions are not trusted, so this time limit is for all of them together.
    let end = Instant::now() + REPLY_TIMEOUT;
    for folder in folders {
        let Ok(owner) = fs::symlink_metadata(&folder).map(|metadata| metadata.uid()) else {
            continue;
        };
        let is_ours = owner == geteuid().as_raw();
        if !is_private(&folder, owner) || !(is_ours || geteuid().is_root()) {
            continue;
        }
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if !entry.file_type().is_ok_and(|file_type| file_type.is_socket()) {
                continue;
            }
            let asked =
                if is_ours { asked(&path, Ask::List) } else { asked_until(&path, Ask::List, end) };
            match asked {
                Ok(mut answer) if answer.ok => {
                    // Only processes of the session's own user are accepted, whatever the session
                    // reports.
                    answer.processes.retain(|process| is_ours || belongs_to(process.pid, owner));
                    sessions.push(SessionServer { path, answer });
                }
                // Left by a killed ppt.
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused && is_ours => {
                    let _ = fs::remove_file(&path);
                }
                _ => {}
            }
        }
    }
    sessions
}

fn asked(path: &Path, ask: Ask) -> io::Result<SessionReply> {
    let patience = match ask {
        Ask::Enable { .. } | Ask::Disable { .. } => PATIENCE_FOR_CHANGES,
        Ask::List | Ask::Trigger { .. } => REPLY_TIMEOUT,
    };
    asked_until(path, ask, Instant::now() + patience)
}

fn asked_until(path: &Path, ask: Ask, end: Instant) -> io::Result<SessionReply> {
    let mut stream = connect(path)?;
    if !is_trusted(&stream, path) {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    write(&mut stream, &SessionRequest { v: VERSION, ask })?;
    let mut line = PartialLine::default();
    let answer: SessionReply = loop {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        match line.read(&mut stream) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            done => break done?,
        }
    };
    // A ppt in another pid namespace reports pids of that namespace, so its answer is refused.
    let peer = getsockopt(&stream, sockopt::PeerCredentials)?;
    match u32::try_from(peer.pid()) {
        Ok(pid) if pid == answer.ppt => Ok(answer),
        _ => Err(io::ErrorKind::PermissionDenied.into()),
    }
}

/// Connects, unless the socket's queue is full.
fn connect(path: &Path) -> io::Result<UnixStream> {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let fd = socket(AddressFamily::Unix, SockType::Stream, flags, None)?;
    nix::sys::socket::connect(fd.as_raw_fd(), &UnixAddr::new(path)?)?;
    let stream = UnixStream::from(fd);
    stream.set_nonblocking(false)?;
    Ok(stream)
}

/// Whether no process listens there any more.
pub(crate) fn is_left(path: &Path) -> bool {
    connect(path).is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
}

/// Whether a process is a user's own.
fn belongs_to(pid: i32, user: u32) -> bool {
    fs::metadata(format!("/proc/{pid}")).is_ok_and(|metadata| metadata.uid() == user)
}

/// Whether the peer is the owner of the folder.
fn is_trusted(stream: &UnixStream, path: &Path) -> bool {
    let owner = path.parent().and_then(|folder| fs::symlink_metadata(folder).ok());
    let peer = getsockopt(stream, sockopt::PeerCredentials);
    owner.zip(peer.ok()).is_some_and(|(owner, peer)| owner.uid() == peer.uid())
}

/// Whether the peer may send requests: this user or root.
pub(crate) fn may_ask(stream: &UnixStream) -> bool {
    let peer = getsockopt(stream, sockopt::PeerCredentials);
    peer.is_ok_and(|peer| peer.uid() == geteuid().as_raw() || peer.uid() == 0)
}

/// A line that is being read.
#[derive(Default)]
pub(crate) struct PartialLine(Vec<u8>);

impl PartialLine {
    /// Reads the line, once it is complete. Keeps the received part of an incomplete line.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] if the line is incomplete.
    pub(crate) fn read<T: for<'a> Deserialize<'a>>(
        &mut self,
        stream: &mut UnixStream,
    ) -> io::Result<T> {
        let mut bytes = [0; 4096];
        match stream.read(&mut bytes) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            Ok(0) if self.0.is_empty() => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(0) => {}
            Ok(count) => {
                self.0.extend(&bytes[..count]);
                if !bytes[..count].contains(&b'\n') && self.0.len() < MAX_LINE_BYTES {
                    return Err(io::ErrorKind::WouldBlock.into());
                }
            }
            Err(error) => return Err(error),
        }
        let line = self.0.split(|&byte| byte == b'\n').next().unwrap_or_default();
        Ok(serde_json::from_slice(line)?)
    }
}

/// Writes `message` as a line. Waits at most [`REPLY_TIMEOUT`] for a peer that does not read.
pub(crate) fn write(stream: &mut UnixStream, message: &impl Serialize) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_write_timeout(Some(REPLY_TIMEOUT))?;
    let mut line = serde_json::to_string(message)?;
    line.push('\n');
    let (mut left, end) = (line.as_bytes(), Instant::now() + REPLY_TIMEOUT);
    while !left.is_empty() && Instant::now() < end {
        let count = stream.write(left)?;
        left = &left[count..];
    }
    if left.is_empty() { Ok(()) } else { Err(io::ErrorKind::TimedOut.into()) }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};

    use super::*;

    #[test]
    fn a_question_is_one_line_of_json() {
        let ask = Ask::Trigger { pid: 4711, note: "slow\nagain".into() };
        let line = serde_json::to_string(&SessionRequest { v: 1, ask: ask.clone() }).unwrap();
        assert_eq!(line, r#"{"v":1,"ask":"trigger","pid":4711,"note":"slow\nagain"}"#);
        assert_eq!(
            serde_json::from_str::<SessionRequest>(&line).unwrap(),
            SessionRequest { v: 1, ask }
        );
        let later = r#"{"v":1,"ask":"list","more":[1]}"#;
        assert_eq!(serde_json::from_str::<SessionRequest>(later).unwrap().ask, Ask::List);
        assert!(serde_json::from_str::<SessionRequest>(r#"{"v":1,"ask":"dance"}"#).is_err());
    }

    /// Sends a request to an untrusted process at a socket, and waits for `patience`.
    fn ask_stranger(
        patience: Duration,
        does: impl FnOnce(UnixStream) + Send,
    ) -> io::Result<SessionReply> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("77");
        let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(move || does(listener.accept().unwrap().0));
            asked_until(&path, Ask::List, Instant::now() + patience)
        })
    }

    #[test]
    fn the_wait_for_strangers_is_limited() {
        let patience = Duration::from_millis(200);
        let never_done = ask_stranger(patience, |mut stream| {
            // A byte now and then, without end.
            while stream.write_all(b" ").is_ok() {
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        assert_eq!(never_done.unwrap_err().kind(), io::ErrorKind::TimedOut);
        let full = ask_stranger(patience, |mut stream| {
            let line = vec![b' '; MAX_LINE_BYTES + 1];
            let _ = stream.write_all(&line);
        });
        assert!(full.is_err());
    }

    #[test]
    fn an_answer_with_the_pid_of_another_process_is_refused() {
        let answer_as = |ppt: u32| {
            ask_stranger(Duration::from_secs(20), move |mut stream| {
                // Closing the socket before the request arrives would fail the request.
                let mut request = String::new();
                let _ = BufReader::new(&stream).read_line(&mut request);
                let _ = writeln!(stream, r#"{{"v":1,"ok":true,"ppt":{ppt}}}"#);
            })
        };
        assert!(answer_as(std::process::id()).is_ok_and(|answer| answer.ok));
        assert_eq!(answer_as(1).unwrap_err().kind(), io::ErrorKind::PermissionDenied);
        assert!(belongs_to(std::process::id().cast_signed(), geteuid().as_raw()));
        assert!(!belongs_to(std::process::id().cast_signed(), 65533));
    }

    #[test]
    fn a_socket_without_a_listener_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("77");
        let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        assert!(!is_left(&path));
        drop(listener);
        assert!(is_left(&path));
        assert!(!is_left(&folder.path().join("none")));
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
