//! Receives hellos: of programs before their first frame, and of forked children after the fork.
//! `codegen/runtime/c/hello.c` is the other side.
//!
//! | sender | way |
//! |---|---|
//! | a program that a command started | one byte over an inherited socketpair, with the end of a pipe on which the answer is awaited |
//! | the same, where the descriptor was closed or shut down | a connection to an abstract socket that its environment names |
//! | a forked child | a connection to an abstract socket that was in its parent's control page |
//!
//! The kernel tells ppt the sender of each hello; the hello itself does not. Many senders may wait
//! at once. If ppt ends, the kernel closes its ends of all sockets and pipes, and the senders
//! continue.

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

/// The least number of the inherited descriptor. Shells and servers expect their own below it.
const LOWEST: i32 = 100;
/// The most descriptors that a message can carry (SCM_MAX_FD). nix would not show those of a message
/// that is cut, so ppt could not close them.
const PASSED: usize = 253;

/// ppt's ends of the sockets on which processes say hello.
pub(super) struct Reception {
    /// The end of the socketpair that a command inherits.
    inherited: Option<OwnedFd>,
    /// The socket of programs that a command started.
    programs: Option<Listening>,
    children: Listening,
}

/// The other end of the socketpair, which the command and its descendants inherit.
pub(crate) struct InheritedSocket {
    fd: OwnedFd,
    inode: u64,
    socket: u64,
    secret: u64,
}

/// The kind of the sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sender {
    /// A program or plugin that has just been loaded. It waits for the answer.
    Program,
    /// A forked child. If a command started its program, it waits for the answer.
    Child,
}

/// A hello of a process.
pub(super) struct Hello {
    pub(super) sender: Sender,
    /// The pid, in ppt's namespace.
    pub(super) pid: i32,
    answer: ReceptionReply,
}

/// The answer of ppt to a hello.
enum ReceptionReply {
    /// By a byte. Closing the pipe is not enough, because the sender may have forked, which copied
    /// ppt's end.
    Pipe(OwnedFd),
    /// By closing the connection.
    Connection { _fd: OwnedFd },
}

/// An abstract socket, which no other process inherits.
struct Listening {
    fd: OwnedFd,
    name: u64,
}

/// An accepted connection, with its sender as the kernel reports it.
struct Connection {
    fd: OwnedFd,
    pid: i32,
    user: u32,
}

impl InheritedSocket {
    /// Variables for the command's environment.
    pub(crate) fn variables(&self) -> [(&'static str, String); 2] {
        let inherited = format!("{}:{}", self.fd.as_raw_fd(), self.inode);
        [("PPT_RUN", inherited), ("PPT_HELLO", format!("{}:{}", self.socket, self.secret))]
    }

    /// A unique part of one of these variables, as it is in the environment of a process.
    pub(super) fn hello(&self) -> String {
        let [_, (name, value)] = self.variables();
        format!("{name}={value}")
    }
}

impl Listening {
    /// Binds the socket to a free name; `flags` are part of the name.
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
            // The longest queue that the system allows.
            listen(&fd, Backlog::MAXALLOWABLE).map_err(&fail)?;
            return Ok(Self { fd, name });
        }
    }

    /// The next connection, if there is one.
    fn next(&self) -> Result<Option<Connection>, Failure> {
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let fd = match accept4(self.fd.as_raw_fd(), flags) {
            // SAFETY: the kernel has just made this descriptor for ppt.
            Ok(fd) => unsafe { OwnedFd::from_raw_fd(fd) },
            Err(Errno::EAGAIN | Errno::EINTR | Errno::ECONNABORTED) => return Ok(None),
            Err(error) => return Err(failed("hear who says hello")(error)),
        };
        let peer = getsockopt(&fd, sockopt::PeerCredentials);
        Ok(peer.ok().map(|peer| Connection { fd, pid: peer.pid(), user: peer.uid() }))
    }
}

impl Reception {
    /// A reception for forked children alone, which do not wait.
    pub(super) fn of_children() -> Result<Self, Failure> {
        let children = Listening::open(0)?;
        Ok(Self { inherited: None, programs: None, children })
    }

    /// A reception for everything that a command starts, which waits until ppt has attached.
    pub(super) fn of_command() -> Result<(Self, InheritedSocket), Failure> {
        let fail = failed("make a socket");
        let flags = SockFlag::SOCK_CLOEXEC;
        let (ours, theirs) =
            socketpair(AddressFamily::Unix, SockType::SeqPacket, None, flags).map_err(&fail)?;
        setsockopt(&ours, sockopt::PassCred, &true).map_err(&fail)?;
        // exec does not close this descriptor. If the system does not allow so high a number, any
        // number will do.
        let inherited = fcntl(&theirs, FcntlArg::F_DUPFD(LOWEST))
            .or_else(|_| fcntl(&theirs, FcntlArg::F_DUPFD(3)))
            .map_err(&fail)?;
        // SAFETY: a new descriptor with no other owner.
        let fd = unsafe { OwnedFd::from_raw_fd(inherited) };
        let inode = fstat(&fd).map_err(&fail)?.st_ino;
        let (programs, children) = (Listening::open(0)?, Listening::open(follow::WAITS)?);
        let other_end =
            InheritedSocket { fd, inode, socket: programs.name, secret: ppt_agent::random() };
        Ok((Self { inherited: Some(ours), programs: Some(programs), children }, other_end))
    }

    /// The socket that children connect to.
    pub(super) fn of_forks(&self) -> u64 {
        self.children.name
    }

    /// Descriptors that become readable when a hello arrives.
    pub(super) fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let programs = self.programs.as_ref().map(|program| program.fd.as_fd());
        let inherited = self.inherited.as_ref().map(AsFd::as_fd);
        [Some(self.children.fd.as_fd()), programs, inherited].into_iter().flatten()
    }

    /// The next hello, if one has arrived. Children come first, because their parents may fork
    /// faster than ppt attaches. Messages that are no hello are ignored, as are senders whose user
    /// `knows` does not accept. Each message that is read, of any kind, takes one from `left`.
    pub(super) fn next(
        &mut self,
        left: &mut usize,
        knows: impl Fn(u32) -> bool,
    ) -> Result<Option<Hello>, Failure> {
        let listening =
            [(Sender::Child, Some(&self.children)), (Sender::Program, self.programs.as_ref())];
        for (sender, listening) in listening {
            while *left > 0
                && let Some(Connection { fd, pid, user }) =
                    listening.map_or(Ok(None), Listening::next)?
            {
                *left -= 1;
                if pid > 0 && knows(user) {
                    return Ok(Some(Hello {
                        sender,
                        pid,
                        answer: ReceptionReply::Connection { _fd: fd },
                    }));
                }
            }
        }
        match &self.inherited {
            Some(inherited) if *left > 0 => {
                *left -= 1;
                let (hello, is_open) = inherited_hello(inherited)?;
                if !is_open {
                    self.inherited = None;
                }
                Ok(hello)
            }
            _ => Ok(None),
        }
    }
}

/// The next hello, and whether there may be another one: the last process may have closed the other
/// end, and any process may have shut it down.
fn inherited_hello(socket: &OwnedFd) -> Result<(Option<Hello>, bool), Failure> {
    let mut byte = [0];
    let mut parts = [IoSliceMut::new(&mut byte)];
    let mut space = nix::cmsg_space!(UnixCredentials, [i32; PASSED]);
    let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_CMSG_CLOEXEC;
    let received = recvmsg::<()>(socket.as_raw_fd(), &mut parts, Some(&mut space), flags);
    let message = match received {
        Ok(message) => message,
        Err(Errno::EAGAIN | Errno::EINTR) => return Ok((None, true)),
        Err(error) => return Err(failed("hear who says hello")(error)),
    };
    // The kernel adds the sender to each message, also to an empty one.
    let is_open =
        message.bytes > 0 || !message.cmsgs().is_ok_and(|mut parts| parts.next().is_none());
    let (mut pid, mut passed) = (0, Vec::new());
    for part in message.cmsgs().into_iter().flatten() {
        match part {
            ControlMessageOwned::ScmCredentials(sender) => pid = sender.pid(),
            ControlMessageOwned::ScmRights(fds) => passed.extend(fds.into_iter().map(|fd| {
                // SAFETY: the kernel has just made this descriptor for ppt.
                unsafe { OwnedFd::from_raw_fd(fd) }
            })),
            _ => {}
        }
    }
    let answer = passed.pop().filter(|_| pid > 0 && passed.is_empty());
    let hello =
        |answer| Hello { sender: Sender::Program, pid, answer: ReceptionReply::Pipe(answer) };
    Ok((answer.map(hello), is_open))
}

impl Hello {
    /// Whether process `pid` belongs to the command; `None` if the hello does not prove it. Only
    /// the command inherits the socketpair. A sender that still waits is still the process of that
    /// number; the number of a killed sender may belong to another process.
    pub(super) fn is_of_us(&self) -> Option<bool> {
        match &self.answer {
            ReceptionReply::Pipe(pipe) => Some(has_reader(pipe)),
            ReceptionReply::Connection { .. } => None,
        }
    }

    /// Lets the sender continue.
    pub(super) fn answer(self) {
        // Writing into another kind of file, or into a full pipe, could block ppt. The sender never
        // passes such a descriptor.
        if let ReceptionReply::Pipe(pipe) = self.answer
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
