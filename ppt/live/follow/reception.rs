//! Where programs say hello before their first frame, and children after their first breath;
//! `codegen/runtime/c/hello.c` is the other side.
//!
//! | who says it | how |
//! |---|---|
//! | a program that a command started | one byte over an inherited socketpair, with the end of a pipe on which the answer is awaited |
//! | the same, where the descriptor was closed | a connection to an abstract socket that its environment names |
//! | a forked child | a connection to an abstract socket that was in its parent's control page |
//!
//! None of them says who it is: the kernel does. Many may wait at once. If we die, both ends of
//! everything close with us, and whoever waits goes on.

use std::io::{IoSliceMut, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{
    AddressFamily, Backlog, ControlMessageOwned, MsgFlags, SockFlag, SockType, UnixAddr,
    UnixCredentials, accept4, bind, getsockopt, listen, recvmsg, setsockopt, socket, socketpair,
    sockopt,
};
use nix::sys::stat::fstat;
use ppt_agent::follow;

use crate::failure::{Failure, failed};

/// Descriptors below are the program's: shells and servers expect theirs there.
const LOWEST: i32 = 100;
/// Descriptors that a message is believed to carry at most; the kernel closes what is more.
const PASSED: usize = 4;

/// Our end.
pub(super) struct Reception {
    /// Of the socketpair that a command inherits.
    inherited: Option<OwnedFd>,
    /// Of programs that a command started.
    programs: Option<Listening>,
    children: Listening,
}

/// The other end, which every process that is started inherits.
pub(crate) struct Guest {
    fd: OwnedFd,
    inode: u64,
    socket: u64,
    secret: u64,
}

/// Who says hello.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Who {
    /// A program that has just been loaded, or a plugin of one; waits.
    Program,
    /// A child; of a command's program, it waits.
    Child,
}

/// A process that says that it is there.
pub(super) struct Hello {
    pub(super) who: Who,
    /// Its number, in our namespace.
    pub(super) pid: i32,
    answer: Answer,
}

/// How it is answered.
enum Answer {
    /// By a byte: a fork in the sender may have copied our end of the pipe.
    Pipe(OwnedFd),
    /// By its end.
    Connection { _fd: OwnedFd },
}

/// A socket that nobody inherits.
struct Listening {
    fd: OwnedFd,
    name: u64,
}

impl Guest {
    /// What the command's environment is to have.
    pub(crate) fn variables(&self) -> [(&'static str, String); 2] {
        let inherited = format!("{}:{}", self.fd.as_raw_fd(), self.inode);
        [("PPT_RUN", inherited), ("PPT_HELLO", format!("{}:{}", self.socket, self.secret))]
    }

    /// The same as it stands there, of what nobody else has.
    pub(super) fn hello(&self) -> String {
        let [_, (name, value)] = self.variables();
        format!("{name}={value}")
    }
}

impl Listening {
    /// Under a name that nobody has; `flags` are part of it.
    fn open(flags: u64) -> Result<Self, Failure> {
        let fail = failed("make a socket");
        loop {
            let kind = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
            let fd = socket(AddressFamily::Unix, SockType::SeqPacket, kind, None).map_err(&fail)?;
            let name = ppt_agent::random() & !follow::WAITS | flags;
            let address = UnixAddr::new_abstract(&follow::name(name)).map_err(&fail)?;
            match bind(fd.as_raw_fd(), &address) {
                Ok(()) => {}
                Err(Errno::EADDRINUSE) => continue,
                Err(error) => return Err(fail(error)),
            }
            // As many as the system allows.
            listen(&fd, Backlog::MAXALLOWABLE).map_err(&fail)?;
            return Ok(Self { fd, name });
        }
    }

    /// The next one that connects, and its user.
    fn next(&self) -> Result<Option<(i32, u32, OwnedFd)>, Failure> {
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let fd = match accept4(self.fd.as_raw_fd(), flags) {
            // SAFETY: the kernel has just made it for us.
            Ok(fd) => unsafe { OwnedFd::from_raw_fd(fd) },
            Err(Errno::EAGAIN | Errno::EINTR | Errno::ECONNABORTED) => return Ok(None),
            Err(error) => return Err(failed("hear who says hello")(error)),
        };
        let peer = getsockopt(&fd, sockopt::PeerCredentials);
        Ok(peer.ok().map(|peer| (peer.pid(), peer.uid(), fd)))
    }
}

impl Reception {
    /// For children alone, which do not wait.
    pub(super) fn of_children() -> Result<Self, Failure> {
        let children = Listening::open(0)?;
        Ok(Self { inherited: None, programs: None, children })
    }

    /// For all that a command starts, and waits to be attached to.
    pub(super) fn of_command() -> Result<(Self, Guest), Failure> {
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
        let (programs, children) = (Listening::open(0)?, Listening::open(follow::WAITS)?);
        let guest = Guest { fd, inode, socket: programs.name, secret: ppt_agent::random() };
        Ok((Self { inherited: Some(ours), programs: Some(programs), children }, guest))
    }

    /// The socket that children are to find.
    pub(super) fn of_forks(&self) -> u64 {
        self.children.name
    }

    /// Readable when somebody says hello.
    pub(super) fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let programs = self.programs.as_ref().map(|it| it.fd.as_fd());
        let inherited = self.inherited.as_ref().map(AsFd::as_fd);
        [Some(self.children.fd.as_fd()), programs, inherited].into_iter().flatten()
    }

    /// The next hello, if one is there: children first, whose parents may fork faster than we
    /// attach. What is none is ignored, and so is who belongs to a user that `knows` none of. No
    /// more than `left` are heard, whatever they are.
    pub(super) fn next(
        &mut self,
        left: &mut usize,
        knows: impl Fn(u32) -> bool,
    ) -> Result<Option<Hello>, Failure> {
        let listening =
            [(Who::Child, Some(&self.children)), (Who::Program, self.programs.as_ref())];
        for (who, listening) in listening {
            while *left > 0
                && let Some((pid, user, fd)) = listening.map_or(Ok(None), Listening::next)?
            {
                *left -= 1;
                if pid > 0 && knows(user) {
                    return Ok(Some(Hello { who, pid, answer: Answer::Connection { _fd: fd } }));
                }
            }
        }
        match &self.inherited {
            Some(inherited) if *left > 0 => {
                *left -= 1;
                inherited_hello(inherited)
            }
            _ => Ok(None),
        }
    }
}

fn inherited_hello(socket: &OwnedFd) -> Result<Option<Hello>, Failure> {
    let mut byte = [0];
    let mut parts = [IoSliceMut::new(&mut byte)];
    let mut space = nix::cmsg_space!(UnixCredentials, [i32; PASSED]);
    let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_CMSG_CLOEXEC;
    let received = recvmsg::<()>(socket.as_raw_fd(), &mut parts, Some(&mut space), flags);
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
    Ok(answer.map(|answer| Hello { who: Who::Program, pid, answer: Answer::Pipe(answer) }))
}

impl Hello {
    /// Whether the process of that number is one of the command; `None` where that does not follow
    /// from how it said hello. Only the command inherits the socketpair, and only who still waits is
    /// the process of that number: who was killed may have left it to another.
    pub(super) fn is_of_us(&self) -> Option<bool> {
        match &self.answer {
            Answer::Pipe(pipe) => Some(has_reader(pipe)),
            Answer::Connection { .. } => None,
        }
    }

    /// Lets the sender go on.
    pub(super) fn answer(self) {
        // What is no pipe with room for a byte might block us; nothing of ours passes that.
        if let Answer::Pipe(pipe) = self.answer
            && has_reader(&pipe)
        {
            let _ = std::fs::File::from(pipe).write(&[0]);
        }
    }
}

fn has_reader(pipe: &OwnedFd) -> bool {
    let mut fds = [PollFd::new(pipe.as_fd(), PollFlags::POLLOUT)];
    let polled = poll(&mut fds, PollTimeout::ZERO);
    let gone = PollFlags::POLLERR | PollFlags::POLLHUP | PollFlags::POLLNVAL;
    polled.is_ok() && !fds[0].revents().unwrap_or(gone).intersects(gone)
}
