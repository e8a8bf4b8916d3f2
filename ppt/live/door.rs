//! The socket on which other commands reach this session.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::time::Instant;

use crate::session::{self, PartialLine, REPLY_TIMEOUT, SessionRequest};

/// The most requests read at the same time. Clients send theirs at once; beyond the limit, the
/// oldest ones are dropped.
const AT_ONCE: usize = 64;

/// The most connections accepted at once: the length of a socket's queue.
const MOST_ACCEPTED: usize = 4096;

/// The socket. Only this process uses its folder.
pub(super) struct Door {
    path: PathBuf,
    listener: UnixListener,
    knocking: Vec<Knock>,
}

/// A client with an incomplete request; the session does not wait for it.
struct Knock {
    stream: UnixStream,
    line: PartialLine,
    since: Instant,
}

impl Door {
    pub(super) fn open() -> io::Result<Self> {
        let path = session::own_path()?;
        // Left by a killed ppt with the same pid.
        if session::is_left(&path) {
            let _ = std::fs::remove_file(&path);
        }
        let listener = UnixListener::bind(&path)?;
        listener.set_nonblocking(true)?;
        Ok(Self { path, listener, knocking: Vec::new() })
    }

    /// Readable if a client connects or sends.
    pub(super) fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let knocking = self.knocking.iter().map(|knock| knock.stream.as_fd());
        std::iter::once(self.listener.as_fd()).chain(knocking)
    }

    /// The complete requests of authorised clients.
    pub(super) fn questions(&mut self) -> Vec<(UnixStream, io::Result<SessionRequest>)> {
        let mut questions = Vec::new();
        self.read(&mut questions);
        // At most the length of a socket's queue, so that a client that connects without pause
        // blocks nothing.
        for _ in 0..MOST_ACCEPTED {
            match self.listener.accept() {
                Ok((stream, _)) if session::may_ask(&stream) => self.admit(stream),
                Ok(_) => {}
                // If no descriptor is left, the oldest client makes room.
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
        self.knocking.push(Knock { stream, line: PartialLine::default(), since: Instant::now() });
    }

    /// Reads the received data; drops clients that take too long.
    fn read(&mut self, questions: &mut Vec<(UnixStream, io::Result<SessionRequest>)>) {
        for mut knock in std::mem::take(&mut self.knocking) {
            match knock.line.read(&mut knock.stream) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if knock.since.elapsed() < REPLY_TIMEOUT {
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
