//! The socket on which other commands reach this session.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;

use crate::session;

/// The socket. Nobody else has its folder.
pub(super) struct Door {
    path: PathBuf,
    listener: UnixListener,
}

impl Door {
    pub(super) fn open() -> io::Result<Self> {
        let path = session::own_path()?;
        // A killed ppt that had this pid.
        let _ = std::fs::remove_file(&path);
        let listener = UnixListener::bind(&path)?;
        listener.set_nonblocking(true)?;
        Ok(Self { path, listener })
    }

    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }

    /// Who knocks, if it is somebody who may.
    pub(super) fn next(&self) -> Option<UnixStream> {
        let (stream, _) = self.listener.accept().ok()?;
        stream.set_nonblocking(false).ok()?;
        session::may_ask(&stream).then_some(stream)
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}
