//! The socket on which other commands reach this session.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::time::Instant;

use crate::session::{self, PartialLine, REPLY_TIMEOUT, SessionRequest};

/// The most clients with an incomplete request. A further one replaces the oldest.
const AT_ONCE: usize = 64;

/// The most connections accepted at once: the length of a socket's queue.
const MAX_ACCEPTED: usize = 4096;

/// The socket. Only this process uses its folder.
pub(super) struct ControlSocket {
    path: PathBuf,
    listener: UnixListener,
    clients: Vec<PendingClient>,
}

/// A client with an incomplete request; the session does not wait for it.
struct PendingClient {
    stream: UnixStream,
    line: PartialLine,
    since: Instant,
}

impl ControlSocket {
    pub(super) fn open() -> io::Result<Self> {
        let path = session::own_path()?;
        // A killed ppt with the same pid may have left its socket.
        if session::is_left(&path) {
            let _ = std::fs::remove_file(&path);
        }
        let listener = UnixListener::bind(&path)?;
        listener.set_nonblocking(true)?;
        Ok(Self { path, listener, clients: Vec::new() })
    }

    /// Descriptors that become readable when a client connects or sends.
    pub(super) fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let clients = self.clients.iter().map(|client| client.stream.as_fd());
        std::iter::once(self.listener.as_fd()).chain(clients)
    }

    /// The complete requests of authorised clients.
    pub(super) fn requests(&mut self) -> Vec<(UnixStream, io::Result<SessionRequest>)> {
        let mut requests = Vec::new();
        self.read(&mut requests);
        // The limit keeps a client that connects without pause from blocking the capture.
        for _ in 0..MAX_ACCEPTED {
            match self.listener.accept() {
                Ok((stream, _)) if session::may_ask(&stream) => self.admit(stream),
                Ok(_) => {}
                // If no descriptor is left, the oldest client makes room.
                Err(error) if error.kind() != io::ErrorKind::WouldBlock => {
                    if self.clients.is_empty() {
                        break;
                    }
                    self.clients.remove(0);
                }
                Err(_) => break,
            }
        }
        self.read(&mut requests);
        requests
    }

    fn admit(&mut self, stream: UnixStream) {
        if stream.set_nonblocking(true).is_err() {
            return;
        }
        if self.clients.len() >= AT_ONCE {
            self.clients.remove(0);
        }
        self.clients.push(PendingClient {
            stream,
            line: PartialLine::default(),
            since: Instant::now(),
        });
    }

    /// Reads the received data; drops clients that take too long.
    fn read(&mut self, requests: &mut Vec<(UnixStream, io::Result<SessionRequest>)>) {
        for mut client in std::mem::take(&mut self.clients) {
            match client.line.read(&mut client.stream) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if client.since.elapsed() < REPLY_TIMEOUT {
                        self.clients.push(client);
                    }
                }
                request => requests.push((client.stream, request)),
            }
        }
    }
}

impl Drop for ControlSocket {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}
