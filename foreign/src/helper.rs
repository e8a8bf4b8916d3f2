//! A process that asks file systems, and is given up if they do not answer.
//!
//! ```text
//! ppt ── request, a descriptor ─→ helper ── open, read ─→ file system
//!     ←─ bytes, a descriptor ────
//! ```
//! The helper is another ppt, with the rights that ppt has when it starts it. It ends when ppt does.

use std::collections::BTreeSet;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::mounts::Mounts;
use crate::request::{Answer, PIECE, Performer, Request};
use crate::subject::{Device, Subject};

/// The longest wait for an answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// An answer that takes longer counts as lost time.
const SLOW: Duration = Duration::from_millis(500);
/// The most time that ppt loses. From then on, it asks nothing.
const LOSS: Duration = Duration::from_secs(6);
/// For so long, ppt believes what it has read about mounts.
const MOUNTS_LAST: Duration = Duration::from_secs(1);
/// Most entries of what did not answer.
const REMEMBERED: usize = 64;

/// A file system that did not answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unanswered {
    /// The first process that has mapped a file of it, the path of that file, and the device.
    pub subject: Subject,
    /// The kind of the file system and where it is mounted, if that is known.
    pub mount: Option<(String, String)>,
    /// Whether it was asked. Otherwise, others had taken too long.
    pub asked: bool,
}

static STATE: Mutex<HelperState> = Mutex::new(HelperState::new());

#[derive(Debug)]
struct HelperState {
    command: Option<fn() -> Command>,
    helper: Option<Helper>,
    /// Does what a helper would, without one.
    direct: Performer,
    lost: Duration,
    /// Devices that did not answer.
    silent: BTreeSet<Device>,
    unanswered: Vec<Unanswered>,
    /// The number of these that [`unanswered`] has returned.
    told: usize,
    /// Requests without an answer.
    failures: u64,
    mounts: Option<(Instant, Mounts)>,
}

#[derive(Debug)]
struct Helper {
    process: Child,
    /// Names it also once another part of ppt has waited for it.
    pidfd: OwnedFd,
    socket: OwnedFd,
}

impl Drop for Helper {
    /// It ends when it can. It keeps nothing of ppt.
    fn drop(&mut self) {
        let _ = pidfd_send_signal(&self.pidfd, Signal::KILL);
        let _ = self.process.try_wait();
    }
}

fn state() -> MutexGuard<'static, HelperState> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// From now on, requests go to a helper. `command` starts a process that calls [`serve`].
pub fn enable(command: fn() -> Command) {
    state().command = Some(command);
}

/// Ends the helper. The next one has the rights that ppt has by then.
pub fn end() {
    state().helper = None;
}

/// The pid of the helper, if one runs. Who else collects children leaves it alone.
#[must_use]
pub fn helper() -> Option<i32> {
    let state = &mut *state();
    let ended = |helper: &mut Helper| !matches!(helper.process.try_wait(), Ok(None));
    if state.helper.as_mut().is_some_and(ended) {
        state.helper = None;
    }
    state.helper.as_ref().map(|helper| helper.process.id().cast_signed())
}

/// What did not answer since the last call.
#[must_use]
pub fn unanswered() -> Vec<Unanswered> {
    let state = &mut *state();
    let from = std::mem::replace(&mut state.told, state.unanswered.len());
    state.unanswered[from..].to_vec()
}

/// The number of requests without an answer so far.
#[must_use]
pub fn failures() -> u64 {
    state().failures
}

/// Whether the file system with this device always answers.
#[must_use]
pub fn is_local(device: Device) -> bool {
    state().mounts().is_local(device)
}

/// The device on which an absolute path is, unless links lead elsewhere.
pub(crate) fn device_of(path: &[u8]) -> Option<Device> {
    state().mounts().device_of(&String::from_utf8_lossy(path))
}

/// Fills `buffer` by requests, as far as they are answered in full.
pub(crate) fn fill<'a>(
    buffer: &mut [u8],
    subject: &Subject,
    request: impl Fn(u64) -> Request<'a>,
) -> io::Result<usize> {
    let mut done = 0;
    while done < buffer.len() {
        let length = (buffer.len() - done).min(PIECE);
        let bytes = match ask(&request(done as u64), length, subject) {
            Err(_) if done > 0 => break,
            other => other?.bytes,
        };
        let Some(room) = buffer.get_mut(done..done + bytes.len()) else { break };
        room.copy_from_slice(&bytes);
        done += bytes.len();
        if bytes.is_empty() {
            break;
        }
    }
    Ok(done)
}

/// The answer to a request, of `length` bytes at most.
pub(crate) fn ask(request: &Request<'_>, length: usize, subject: &Subject) -> io::Result<Answer> {
    state().ask(request, length, subject)
}

impl HelperState {
    const fn new() -> HelperState {
        HelperState {
            command: None,
            helper: None,
            direct: Performer { open: None },
            lost: Duration::ZERO,
            silent: BTreeSet::new(),
            unanswered: Vec::new(),
            told: 0,
            failures: 0,
            mounts: None,
        }
    }

    fn ask(
        &mut self,
        request: &Request<'_>,
        length: usize,
        subject: &Subject,
    ) -> io::Result<Answer> {
        let Some(command) = self.command else { return self.direct.perform(request, length) };
        let is_silent = subject.device.is_some_and(|device| self.silent.contains(&device));
        let limit = PATIENCE.min(LOSS.saturating_sub(self.lost));
        if is_silent || limit.is_zero() {
            self.note(subject, is_silent);
            return Err(io::ErrorKind::TimedOut.into());
        }
        let (bytes, file) = request.encode(length);
        let mut room = vec![0; 4 + PIECE];
        let start = Instant::now();
        let mut attempt = |helper: &mut Option<Helper>| {
            let helper = match helper {
                Some(helper) => helper,
                none => none.insert(Helper::start(command())?),
            };
            send(&helper.socket, &bytes, file)?;
            helper.wait(limit)?;
            match receive(&helper.socket, &mut room)? {
                (answer, file) if !answer.is_empty() => Ok((answer.to_vec(), file)),
                _ => Err(io::ErrorKind::UnexpectedEof.into()),
            }
        };
        let is_over = |answered: &io::Result<_>| {
            answered.as_ref().is_err_and(|error| error.kind() != io::ErrorKind::TimedOut)
        };
        let mut answered = attempt(&mut self.helper);
        // Somebody may have ended the helper, which says nothing of the file system.
        if is_over(&answered) {
            self.helper = None;
            answered = attempt(&mut self.helper);
        }
        let took = start.elapsed();
        if took > SLOW {
            self.lost += took;
        }
        let (bytes, file) = match answered {
            Ok(answer) => answer,
            Err(error) => {
                self.helper = None;
                self.silent.extend(subject.device);
                self.note(subject, true);
                return Err(error);
            }
        };
        let (status, bytes) = bytes.split_at_checked(4).ok_or(io::ErrorKind::UnexpectedEof)?;
        match i32::from_le_bytes(status.try_into().expect("4 bytes")) {
            0 => Ok(Answer { bytes: bytes.to_vec(), file }),
            error => Err(io::Error::from_raw_os_error(error)),
        }
    }

    fn mounts(&mut self) -> &Mounts {
        match &mut self.mounts {
            Some((when, _)) if when.elapsed() < MOUNTS_LAST => {}
            mounts => *mounts = Some((Instant::now(), Mounts::read())),
        }
        &self.mounts.as_ref().expect("they have just been read").1
    }

    /// Notes that a subject has no answer, once for each file system.
    fn note(&mut self, subject: &Subject, asked: bool) {
        self.failures += 1;
        let is_same = |known: &Unanswered| match subject.device {
            None => known.subject.path == subject.path,
            device => known.subject.device == device,
        };
        if self.unanswered.len() < REMEMBERED && !self.unanswered.iter().any(is_same) {
            let mount = subject.device.and_then(|device| self.mounts().named(device));
            self.unanswered.push(Unanswered { subject: subject.clone(), mount, asked });
        }
    }
}

impl Helper {
    fn start(mut command: Command) -> io::Result<Helper> {
        let socket = SocketType::SEQPACKET;
        let (ours, theirs) = socketpair(AddressFamily::UNIX, socket, SocketFlags::CLOEXEC, None)?;
        command.env_clear().current_dir("/").stdin(theirs);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        // What ends ppt by the terminal lets ppt finish first.
        let process = command.process_group(0).spawn()?;
        let pidfd = pidfd_open(Pid::from_child(&process), PidfdFlags::empty())?;
        Ok(Helper { process, pidfd, socket: ours })
    }

    /// Waits for an answer.
    fn wait(&self, limit: Duration) -> io::Result<()> {
        // A helper that has no CPU yet waits for nobody. It is as patient as the machine is busy.
        const ROUNDS: u32 = 20;
        for _ in 0..ROUNDS {
            let start = Instant::now();
            while let Some(left) = limit.checked_sub(start.elapsed()) {
                let left = Timespec::try_from(left).unwrap_or_default();
                match poll(&mut [PollFd::new(&self.socket, PollFlags::IN)], Some(&left)) {
                    Ok(0) | Err(rustix::io::Errno::INTR) => {}
                    other => return Ok(other.map(drop)?),
                }
            }
            if !self.is_runnable() {
                break;
            }
        }
        Err(io::ErrorKind::TimedOut.into())
    }

    fn is_runnable(&self) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.process.id()));
        stat.is_ok_and(|stat| stat.rsplit_once(')').is_some_and(|(_, rest)| rest.starts_with(" R")))
    }
}

/// Answers the requests that arrive at stdin, until ppt ends. A process that [`enable`] names calls this.
pub fn serve() {
    // Whoever waits for the end of ppt's descriptors does not wait for this process.
    let entries = std::fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    let numbers: Vec<i32> =
        entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    numbers
        .into_iter()
        .filter(|&number| number > 2)
        .for_each(|number| _ = nix::unistd::close(number));
    let socket = io::stdin();
    let (mut performer, mut room) = (Performer::default(), vec![0; PIECE]);
    while let Ok((bytes, file)) = receive(&socket, &mut room) {
        if bytes.is_empty() {
            break;
        }
        let answered = performer.answer(bytes, file);
        let status = answered.as_ref().err().map_or(0, |error| error.raw_os_error().unwrap_or(5));
        let Answer { bytes, file } = answered.unwrap_or_default();
        let message = [&i32::to_le_bytes(status)[..], &bytes].concat();
        if send(&socket, &message, file.as_ref().map(AsFd::as_fd)).is_err() {
            break;
        }
    }
}

fn send(socket: impl AsFd, bytes: &[u8], file: Option<BorrowedFd<'_>>) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let files = file.map(|file| [file]);
    if let Some(files) = &files {
        control.push(SendAncillaryMessage::ScmRights(files));
    }
    sendmsg(socket, &[IoSlice::new(bytes)], &mut control, SendFlags::NOSIGNAL)?;
    Ok(())
}

fn receive(socket: impl AsFd, room: &mut [u8]) -> io::Result<(&[u8], Option<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC;
    let got = recvmsg(socket, &mut [IoSliceMut::new(room)], &mut control, flags)?;
    let files = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(files) => Some(files),
        _ => None,
    });
    let file = files.flatten().next();
    Ok((&room[..got.bytes], file))
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;
    use crate::request::Memory;

    fn subject(minor: u32) -> Subject {
        Subject { pid: 7, path: format!("/{minor}"), device: Some((0, minor)) }
    }

    /// The answer about a file system with this number.
    fn asked(state: &mut HelperState, minor: u32) -> io::Result<Answer> {
        let request = Request::Memory { memory: Memory::Pid(1), address: 0 };
        state.ask(&request, 1, &subject(minor))
    }

    fn outcomes(state: &HelperState) -> Vec<(u32, bool)> {
        let outcome = |found: &Unanswered| (found.subject.device.unwrap().1, found.asked);
        state.unanswered.iter().map(outcome).collect()
    }

    #[test]
    fn a_helper_that_is_silent_is_given_up() {
        let sleeping = || {
            let mut command = Command::new("/bin/sleep");
            command.arg("600");
            command
        };
        let mut state = HelperState { command: Some(sleeping), ..HelperState::new() };
        assert!(asked(&mut state, 1).is_err() && state.helper.is_none());
        assert!(state.lost >= PATIENCE);
        let lost = state.lost;
        assert!(asked(&mut state, 1).is_err());
        assert_eq!(state.lost, lost, "it is not asked again");
        state.lost = LOSS;
        assert!(asked(&mut state, 2).is_err());
        assert_eq!(state.lost, LOSS, "nor is another one");
        assert_eq!((outcomes(&state), state.failures), (vec![(1, true), (2, false)], 3));
    }

    #[test]
    fn a_helper_that_ends_or_cannot_start_is_no_answer() {
        for program in ["/bin/true", "/nowhere"] {
            let command = match program {
                "/bin/true" => || Command::new("/bin/true"),
                _ => || Command::new("/nowhere"),
            };
            let mut state = HelperState { command: Some(command), ..HelperState::new() };
            assert!(asked(&mut state, 1).is_err());
            assert_eq!(outcomes(&state), [(1, true)], "{program}");
        }
    }

    #[test]
    fn what_is_asked_for_arrives_at_the_other_end() {
        let (ours, theirs) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
                .unwrap();
        let file = std::fs::File::open("/proc/self/exe").unwrap();
        let request = Request::Read { file: file.as_fd(), serial: 1, offset: 1 };
        let (bytes, descriptor) = request.encode(3);
        send(&ours, &bytes, descriptor).unwrap();
        let mut room = vec![0; PIECE];
        let (bytes, file) = receive(&theirs, &mut room).unwrap();
        assert_eq!(Performer::default().answer(bytes, file).unwrap().bytes, b"ELF");
        assert!(Performer::default().answer(b"short", None).is_err());
        drop(ours);
        assert!(receive(&theirs, &mut room).unwrap().0.is_empty(), "the end");
    }
}
