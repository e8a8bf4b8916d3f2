//! The socket on which other commands reach this session.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::time::Instant;

use crate::session::{self, Line, PATIENCE, Request};

/// Most questions that are being read. Who asks does so at once: if more connect, the oldest ones have to
/// go.
const AT_ONCE: usize = 64;

/// Most connections that are accepted at once: as many as the queue of a socket holds.
const MOST_ACCEPTED: usize = 4096;

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
        // A killed ppt that had this pid has left it.
        if session::is_left(&path) {
            let _ = std::fs::remove_file(&path);
        }
        let listener = UnixListener::bind(&path)?;
        listener.set_nonblocking(true)?;
        Ok(Self { path, listener, knocking: Vec::new() })
    }

    /// Readable if somebody knocks, or asks.
    pub(super) fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let knocking = self.knocking.iter().map(|knock| knock.stream.as_fd());
        std::iter::once(self.listener.as_fd()).chain(knocking)
    }

    /// The questions that have come, of those who may ask.
    pub(super) fn questions(&mut self) -> Vec<(UnixStream, io::Result<Request>)> {
        let mut questions = Vec::new();
        self.read(&mut questions);
        // As many as the queue of a socket holds: who connects without a pause keeps nobody busy.
        for _ in 0..MOST_ACCEPTED {
            match self.listener.accept() {
                Ok((stream, _)) if session::may_ask(&stream) => self.admit(stream),
                Ok(_) => {}
                // Where no descriptor is left, the oldest one makes room.
                Err(error) if error.kind() != io::ErrorKind::WouldBlock => {
                    if self.knocking.is_empty() {
                        break;
                    }
                    self.knocking.remove(0);
                }
                Err(_) => break,
            }
        }
        self.read(&mut questions);
        questions
    }

    fn admit(&mut self, stream: UnixStream) {
        if stream.set_nonblocking(true).is_err() {
            return;
        }
        if self.knocking.len() >= AT_ONCE {
            self.knocking.remove(0);
        }
        self.knocking.push(Knock { stream, line: Line::default(), since: Instant::now() });
    }

    /// Reads what has come; those who wait for too long are left.
    fn read(&mut self, questions: &mut Vec<(UnixStream, io::Result<Request>)>) {
        for mut knock in std::mem::take(&mut self.knocking) {
            match knock.line.read(&mut knock.stream) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if knock.since.elapsed() < PATIENCE {
                        self.knocking.push(knock);
                    }
                }
                done => questions.push((knock.stream, done)),
            }
        }
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}
