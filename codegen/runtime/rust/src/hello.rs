//! Reports to ppt: `codegen/runtime/c/hello.c` in Rust.
//!
//! `ppt run` leaves one end of a socketpair to its command, and names it in `PPT_RUN=FD:INODE`. A
//! program or library with buffers reports on it as soon as it is loaded, continues when ppt has
//! attached, and maps its segments at once. If the descriptor has been closed or shut down,
//! `PPT_HELLO=SOCKET:SECRET` names a socket to connect to. Forked children connect to the socket that
//! their parent's control page named. This code runs before `main` and in forked children, so it
//! neither allocates nor locks, and leaves errno alone.

use std::ffi::CStr;
use std::mem::{MaybeUninit, offset_of, size_of};
use std::ptr;

use ppt_segment::follow::name;

use super::errno::{errno, set_errno};
use super::list::buffers;
use super::slow::map_early;

/// Runs as early as a program can, because other constructors may write frames.
#[used]
#[unsafe(link_section = ".init_array.00101")]
pub(super) static LOADED: extern "C" fn() = loaded;

extern "C" fn loaded() {
    let saved = errno();
    report();
    // All buffers of a program are attached together.
    if buffers().filter(|buffer| map_early(buffer)).count() > 0 {
        report(); // what we have made is fetched while we wait
    }
    set_errno(saved);
}

/// Announces the process to the ppt that the environment names.
fn report() {
    // SAFETY: called when code is loaded: before `main`, or in a dlopen, beside which nobody may
    // change the environment, for every library may read it.
    let asked = |name| unsafe { asked(name) };
    let is_answered = asked(c"PPT_RUN").and_then(run_socket).is_some_and(say_hello);
    let otherwise = || asked(c"PPT_HELLO").and_then(socket_of);
    if let (false, Some(socket)) = (is_answered, otherwise()) {
        greet(socket, true);
    }
}

/// A variable of the environment, which set-user-ID programs ignore.
///
/// # Safety
/// Nobody changes the environment until the last use of what is returned.
unsafe fn asked<'a>(name: &CStr) -> Option<&'a [u8]> {
    // SAFETY: no pointers.
    if unsafe { libc::getauxval(libc::AT_SECURE) } != 0 {
        return None;
    }
    // SAFETY: a string that ends; what is found stays as it is (contract).
    unsafe {
        let text = libc::getenv(name.as_ptr());
        (!text.is_null()).then(|| CStr::from_ptr(text).to_bytes())
    }
}

/// Parses `SOCKET:SECRET`.
fn socket_of(text: &[u8]) -> Option<u64> {
    number(&text[..text.iter().position(|&byte| byte == b':')?])
}

/// The socket of `ppt run`. Its inode is checked, as the descriptor may have been closed, or reused for another
/// file.
fn run_socket(text: &[u8]) -> Option<i32> {
    let (descriptor, inode) = parse(text)?;
    let mut found = MaybeUninit::<libc::stat>::uninit();
    // SAFETY: `found` is ours to fill.
    if unsafe { libc::fstat(descriptor, found.as_mut_ptr()) } != 0 {
        return None;
    }
    // SAFETY: it has been filled.
    let found = unsafe { found.assume_init() };
    let is_it = found.st_mode & libc::S_IFMT == libc::S_IFSOCK && found.st_ino == inode;
    is_it.then_some(descriptor)
}

/// Parses `FD:INODE`, which has digits only.
fn parse(text: &[u8]) -> Option<(i32, u64)> {
    let colon = text.iter().position(|&byte| byte == b':')?;
    let descriptor = number(&text[..colon])?.try_into().ok()?;
    Some((descriptor, number(&text[colon + 1..])?))
}

fn number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0u64, |number, byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        number.checked_mul(10)?.checked_add(digit)
    })
}

/// Announces the process by one byte and the end of a pipe, and waits for an answer on that pipe, or for the
/// end of the process that could send it. The kernel adds the identity of the sender. Returns false
/// without an answer: whoever inherits the socket may have shut it down.
fn say_hello(socket: i32) -> bool {
    let mut answer = [0; 2];
    // SAFETY: room for two descriptors.
    if unsafe { libc::pipe2(answer.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
        return false;
    }
    let sent = send(socket, answer[1]);
    close(answer[1]);
    let end = |fd, events| libc::pollfd { fd, events, revents: 0 };
    let mut ends = [end(answer[0], libc::POLLIN), end(socket, 0)];
    if sent {
        // SAFETY: an array and its length.
        while unsafe { libc::poll(ends.as_mut_ptr(), 2, -1) } < 0 && errno() == libc::EINTR {}
    }
    close(answer[0]);
    ends[0].revents != 0
}

fn send(socket: i32, descriptor: i32) -> bool {
    const FD: u32 = size_of::<i32>() as u32;
    let mut byte = 0u8;
    let mut part = libc::iovec { iov_base: (&raw mut byte).cast(), iov_len: 1 };
    // SAFETY: no pointers.
    let space = unsafe { libc::CMSG_SPACE(FD) } as usize;
    // More than that, and aligned as a header is.
    let mut passed = [0u64; 8];
    debug_assert!(space <= size_of_val(&passed));
    // SAFETY: zeros are a message without anything; some systems have fields for padding.
    let mut message: libc::msghdr = unsafe { MaybeUninit::zeroed().assume_init() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = passed.as_mut_ptr().cast();
    message.msg_controllen = space as _;
    // SAFETY: the first header lies in `passed`, with room for one descriptor behind it.
    unsafe {
        let head = libc::CMSG_FIRSTHDR(&raw const message);
        (*head).cmsg_level = libc::SOL_SOCKET;
        (*head).cmsg_type = libc::SCM_RIGHTS;
        (*head).cmsg_len = libc::CMSG_LEN(FD) as _;
        ptr::write_unaligned(libc::CMSG_DATA(head).cast(), descriptor);
    }
    loop {
        // SAFETY: everything that the message points to outlives the call.
        let sent = unsafe { libc::sendmsg(socket, &raw const message, libc::MSG_NOSIGNAL) };
        if sent >= 0 || errno() != libc::EINTR {
            return sent == 1;
        }
    }
}

fn close(descriptor: i32) {
    // SAFETY: a descriptor of our own, closed once. By syscall(2), for close(2) may cancel the
    // thread.
    unsafe { libc::syscall(libc::SYS_close, descriptor) };
}

/// Announces the process by connecting to an abstract socket, and waits, if requested, until the connection
/// ends: ppt has attached, or has ended. The kernel adds the identity of the sender. Returns false if no
/// process listens.
pub(super) fn greet(socket: u64, waits: bool) -> bool {
    const ABSTRACT: usize = offset_of!(libc::sockaddr_un, sun_path) + 1;
    // SAFETY: zeros are an address without a name.
    let mut address: libc::sockaddr_un = unsafe { MaybeUninit::zeroed().assume_init() };
    address.sun_family = libc::AF_UNIX as libc::sa_family_t;
    let name = name(socket);
    address.sun_path[1..].iter_mut().zip(name).for_each(|(to, byte)| *to = byte as _);
    let length = ABSTRACT + name.len();
    let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: no pointers.
    let fd = unsafe { libc::socket(libc::AF_UNIX, kind, 0) };
    if fd < 0 {
        return true;
    }
    // A full queue is waited for, but not long: once ppt has ended, anybody may take the name.
    let mut tries = if waits { 100 } else { 0 };
    let connected = loop {
        // SAFETY: an address and its length. By syscall(2), for connect(2) may cancel the thread.
        let done = unsafe { libc::syscall(libc::SYS_connect, fd, &raw const address, length) };
        match errno() {
            _ if done == 0 => break true,
            libc::EINTR => {}
            libc::EAGAIN if tries > 0 => tries -= 1,
            _ => break false,
        }
        let mut pause = libc::timespec { tv_sec: 0, tv_nsec: 10_000_000 };
        let none = ptr::null::<libc::c_void>();
        // SAFETY: no descriptors, a limit of time, and no mask of signals.
        unsafe { libc::syscall(libc::SYS_ppoll, none, 0, &raw mut pause, none, 0) };
    };
    let nobody = !connected && errno() == libc::ECONNREFUSED;
    if connected && waits && trusts(fd) {
        let mut end = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        let none = ptr::null::<libc::c_void>();
        // SAFETY: one descriptor, no limit of time and no mask of signals.
        while unsafe { libc::syscall(libc::SYS_ppoll, &raw mut end, 1, none, none, 0) } < 0
            && errno() == libc::EINTR
        {}
    }
    close(fd);
    !nobody
}

/// Whether the superuser or the same user is at the other end of a connection: the process waits for no one
/// else.
fn trusts(fd: i32) -> bool {
    let mut peer = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut size = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: room for the answer, and how much of it.
    let asked = unsafe {
        let (level, option) = (libc::SOL_SOCKET, libc::SO_PEERCRED);
        libc::getsockopt(fd, level, option, (&raw mut peer).cast(), &raw mut size)
    };
    // SAFETY: no pointers.
    asked == 0 && (peer.uid == 0 || peer.uid == unsafe { libc::geteuid() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_two_numbers_are_a_socket() {
        assert_eq!(parse(b"100:4711"), Some((100, 4711)));
        assert_eq!(parse(b"0:18446744073709551615"), Some((0, u64::MAX)));
        for bad in [
            "",
            ":",
            "3",
            "3:",
            ":3",
            "-3:4",
            "3:-4",
            "3:4 ",
            " 3:4",
            "3:4:5",
            "+3:4",
            "0x3:4",
            "2147483648:4",
            "3:18446744073709551616",
            "99999999999999999999999:1",
        ] {
            assert_eq!(parse(bad.as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn a_number_and_a_secret_are_a_socket() {
        assert_eq!(socket_of(b"18446744073709551614:17"), Some(u64::MAX - 1));
        for bad in ["", ":", "17", ":17", "-1:17", "x:17", "18446744073709551616:1"] {
            assert_eq!(socket_of(bad.as_bytes()), None, "{bad}");
        }
    }
}
