//! Where programs say hello before their first frame; `codegen/runtime/c/hello.c` is the other side.
//!
//! A socketpair: one end is ours, the other one is inherited by whatever the command starts. A hello
//! is one byte, with the end of a pipe on which the answer is awaited, so that many may wait at
//! once. Who it is from the kernel tells, not the sender. If we die, both ends of everything close
//! with us, and whoever waits goes on.

use std::io::{IoSliceMut, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{
    AddressFamily, ControlMessageOwned, MsgFlags, SockFlag, SockType, UnixCredentials, recvmsg,
    setsockopt, socketpair, sockopt,
};
use nix::sys::stat::fstat;

use crate::failure::{Failure, failed};

/// Descriptors below are the program's: shells and servers expect theirs there.
const LOWEST: i32 = 100;
/// Descriptors that a message is believed to carry at most; the kernel closes what is more.
const PASSED: usize = 4;

/// Our end.
pub(super) struct Reception(OwnedFd);

/// The other end, which every process that is started inherits.
pub(super) struct Guest {
    fd: OwnedFd,
    inode: u64,
}

/// A process that waits for an answer.
pub(super) struct Hello {
    /// Its number, in our namespace.
    pub(super) pid: i32,
    answer: OwnedFd,
}

impl Guest {
    /// What PPT_RUN says.
    pub(super) fn name(&self) -> String {
        format!("{}:{}", self.fd.as_raw_fd(), self.inode)
    }
}

impl AsFd for Reception {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Reception {
    /// Makes both ends.
    pub(super) fn open() -> Result<(Self, Guest), Failure> {
        let fail = failed("make a socket");
        let flags = SockFlag::SOCK_CLOEXEC;
        let (ours, theirs) =
            socketpair(AddressFamily::Unix, SockType::SeqPacket, None, flags).map_err(&fail)?;
        setsockopt(&ours, sockopt::PassCred, &true).map_err(&fail)?;
        // Not closed by exec. Where so high a number is not allowed, any will do.
        let inherited = fcntl(&theirs, FcntlArg::F_DUPFD(LOWEST))
            .or_else(|_| fcntl(&theirs, FcntlArg::F_DUPFD(3)))
            .map_err(&fail)?;
        // SAFETY: a new descriptor that nobody else knows.
        let fd = unsafe { OwnedFd::from_raw_fd(inherited) };
        let inode = fstat(&fd).map_err(&fail)?.st_ino;
        Ok((Self(ours), Guest { fd, inode }))
    }

    /// The next hello, if one is there. What is none is ignored; an error means that there will be
    /// no more.
    pub(super) fn next(&self) -> Result<Option<Hello>, Failure> {
        let mut byte = [0];
        let mut parts = [IoSliceMut::new(&mut byte)];
        let mut space = nix::cmsg_space!(UnixCredentials, [i32; PASSED]);
        let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_CMSG_CLOEXEC;
        let received = recvmsg::<()>(self.0.as_raw_fd(), &mut parts, Some(&mut space), flags);
        let message = match received {
            Ok(message) => message,
            Err(Errno::EAGAIN | Errno::EINTR) => return Ok(None),
            Err(error) => return Err(failed("hear who says hello")(error)),
        };
        let (mut pid, mut passed) = (0, Vec::new());
        for part in message.cmsgs().into_iter().flatten() {
            match part {
                ControlMessageOwned::ScmCredentials(sender) => pid = sender.pid(),
                ControlMessageOwned::ScmRights(fds) => passed.extend(fds.into_iter().map(|fd| {
                    // SAFETY: the kernel has just made it for us.
                    unsafe { OwnedFd::from_raw_fd(fd) }
                })),
                _ => {}
            }
        }
        let answer = passed.pop().filter(|_| pid > 0 && passed.is_empty());
        Ok(answer.map(|answer| Hello { pid, answer }))
    }
}

impl Hello {
    /// Whether the sender still waits: only then the process of that number is the one meant.
    pub(super) fn is_waiting(&self) -> bool {
        let mut fds = [PollFd::new(self.answer.as_fd(), PollFlags::POLLOUT)];
        let polled = poll(&mut fds, PollTimeout::ZERO);
        let gone = PollFlags::POLLERR | PollFlags::POLLHUP | PollFlags::POLLNVAL;
        polled.is_ok() && !fds[0].revents().unwrap_or(gone).intersects(gone)
    }

    /// Lets the sender go on. A byte, for a fork in the sender may have copied our end of the pipe.
    pub(super) fn answer(self) {
        // What is no pipe with room for a byte might block us; nothing of ours passes that.
        if self.is_waiting() {
            let _ = std::fs::File::from(self.answer).write(&[0]);
        }
    }
}
