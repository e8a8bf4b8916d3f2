//! A helper that runs, and what it says.

use std::io::{BufReader, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::lab::wire::{self, Frame, HelperMessage, HelperRequest};

/// How often a helper hears that somebody is there.
const PING: Duration = Duration::from_secs(2);
/// How long a helper may take to stop its programs and to clear up.
const LEAVE: Duration = Duration::from_secs(20);
/// Bytes of what a helper says on stderr that are kept.
const MOST_SAID: usize = 4096;

/// What comes from a helper.
pub(super) enum LinkEvent {
    Frame(Frame<HelperMessage>),
    /// Nothing more will come.
    Gone(String),
    /// It says what no helper says.
    Nonsense(String),
}

/// A helper.
pub(super) struct Link {
    child: Child,
    asks: Option<Sender<HelperRequest>>,
    said: Arc<Mutex<Vec<u8>>>,
    /// Ended: nothing more is said on stderr.
    silent: Receiver<()>,
}

impl Link {
    /// Starts a helper, which is known by `number`.
    pub(super) fn start(
        mut command: Command,
        number: usize,
        heard: SyncSender<(usize, LinkEvent)>,
    ) -> std::io::Result<Link> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // Ctrl-C is for the controller, whose end ends the helpers.
        let mut child = command.process_group(0).spawn()?;
        let said = Arc::new(Mutex::new(Vec::new()));
        let (asks, questions) = channel();
        let (speaks, silent) = channel();
        if let Some(stdin) = child.stdin.take() {
            thread::spawn(move || ask(stdin, &questions));
        }
        if let Some(stderr) = child.stderr.take() {
            let said = said.clone();
            thread::spawn(move || {
                keep(stderr, &said);
                drop(speaks);
            });
        }
        if let Some(stdout) = child.stdout.take() {
            thread::spawn(move || listen(stdout, number, &heard));
        }
        Ok(Link { child, asks: Some(asks), said, silent })
    }

    pub(super) fn ask(&self, ask: HelperRequest) {
        // Of a helper that is gone, its reader tells.
        if let Some(asks) = &self.asks {
            let _ = asks.send(ask);
        }
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What it said on stderr. It has gone, so it says no more.
    pub(super) fn last_words(&mut self) -> String {
        self.leave();
        let _ = self.silent.recv_timeout(PING);
        let said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        let text = String::from_utf8_lossy(&said).trim().to_owned();
        match self.child.try_wait() {
            _ if !text.is_empty() => text,
            Ok(Some(status)) => format!("its helper ended ({status})"),
            _ => "its helper says no more".to_owned(),
        }
    }

    /// Closes the pipe.
    pub(super) fn close(&mut self) {
        self.asks = None;
    }

    /// Closes the pipe, and waits until the helper has stopped its programs.
    fn leave(&mut self) {
        self.close();
        if matches!(self.child.try_wait(), Ok(Some(_))) {
            return;
        }
        // Until it has been waited for, its number is its own.
        if let Ok(ended) = pidfd_open(Pid::from_child(&self.child), PidfdFlags::empty()) {
            let limit = Timespec::try_from(LEAVE).ok();
            let _ = poll(&mut [PollFd::new(&ended, PollFlags::IN)], limit.as_ref());
        }
        if !matches!(self.child.try_wait(), Ok(Some(_))) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.leave();
    }
}

/// Passes questions on. When nobody can ask any more, the pipe is closed.
fn ask(mut stdin: ChildStdin, questions: &Receiver<HelperRequest>) {
    loop {
        let ask = match questions.recv_timeout(PING) {
            Ok(ask) => ask,
            Err(RecvTimeoutError::Timeout) => HelperRequest::Ping,
            Err(RecvTimeoutError::Disconnected) => return,
        };
        if wire::write_message(&mut stdin, &ask).is_err() {
            return;
        }
    }
}

fn listen(stdout: impl Read, number: usize, heard: &SyncSender<(usize, LinkEvent)>) {
    let mut from = BufReader::new(stdout);
    loop {
        let (last, what) = match wire::read(&mut from) {
            Ok(Some(frame)) => (false, LinkEvent::Frame(frame)),
            Ok(None) => (true, LinkEvent::Gone(String::new())),
            Err(wire::WireError::Io(error)) => (true, LinkEvent::Gone(error.to_string())),
            Err(error) => (true, LinkEvent::Nonsense(error.to_string())),
        };
        if heard.send((number, what)).is_err() || last {
            return;
        }
    }
}

/// Keeps the end of what is said.
fn keep(mut stderr: impl Read, said: &Mutex<Vec<u8>>) {
    let mut buffer = [0; 1024];
    while let Ok(read @ 1..) = stderr.read(&mut buffer) {
        let mut said = said.lock().unwrap_or_else(PoisonError::into_inner);
        said.extend(&buffer[..read]);
        let from = said.len().saturating_sub(MOST_SAID);
        said.drain(..from);
    }
}
