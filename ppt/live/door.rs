//! The socket on which other commands reach this session.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::time::Instant;

use crate::session::{self, Line, PATIENCE, Request};

/// Most questions that are being read.
const AT_ONCE: usize = 16;

/// The socket. Nobody else has its folder.
pub(super) struct Door {
    path: PathBuf,
    listener: UnixListener,
    knocking: Vec<Knock>,
}

/// Somebody whose question is being read: the session does not wait for it.
struct Knock {
    stream: UnixStream,
    line: Line,
    since: Instant,
}

impl Door {
    pub(super) fn open() -> io::Result<Self> {
        let path = session::own_path()?;
        // A killed ppt that had this pid has left it. A living one is in another pid namespace.
        if session::is_left(&path) {
            let _ = std::fs::remove_file(&path);
        }
        let listener = UnixListener::bind(&path)?;
        listener.set_nonblocking(true)?;
        Ok(Self { path, listener, knocking: Vec::new() })
    }

    /// Readable if somebody knocks, or asks.
    pub(super) fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let listener = (self.knocking.len() < AT_ONCE).then(|| self.listener.as_fd());
        listener.into_iter().chain(self.knocking.iter().map(|it| it.stream.as_fd()))
    }

    /// The questions that have come, of those who may ask.
    pub(super) fn questions(&mut self) -> Vec<(UnixStream, io::Result<Request>)> {
        while self.knocking.len() < AT_ONCE
            && let Ok((stream, _)) = self.listener.accept()
        {
            if session::may_ask(&stream) && stream.set_nonblocking(true).is_ok() {
                self.knocking.push(Knock { stream, line: Line::default(), since: Instant::now() });
            }
        }
        let mut questions = Vec::new();
        for mut it in std::mem::take(&mut self.knocking) {
            match it.line.read(&mut it.stream) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if it.since.elapsed() < PATIENCE {
                        self.knocking.push(it);
                    }
                }
                done => questions.push((it.stream, done)),
            }
        }
        questions
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}
