//! A running helper and its messages.

use std::io::{BufReader, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::lab::wire::{self, HelperMessage, HelperRequest, WireFrame};

/// Interval of the controller's keep-alive messages.
const PING: Duration = Duration::from_secs(2);
/// Time that a helper may take to stop its programs and clean up.
const LEAVE: Duration = Duration::from_secs(20);
/// Bytes of a helper's stderr that are kept.
const MOST_SAID: usize = 4096;

/// An event from a helper.
pub(super) enum LinkEvent {
    Frame(WireFrame<HelperMessage>),
    /// The helper's output has ended.
    Gone(String),
    /// The helper sent an invalid message.
    Nonsense(String),
}

/// A helper.
pub(super) struct HelperLink {
    child: Child,
    asks: Option<Sender<HelperRequest>>,
    said: Arc<Mutex<Vec<u8>>>,
    /// Ended once stderr is closed.
    silent: Receiver<()>,
}

impl HelperLink {
    /// Starts a helper, identified by `number`.
    pub(super) fn start(
        mut command: Command,
        number: usize,
        heard: SyncSender<(usize, LinkEvent)>,
    ) -> std::io::Result<HelperLink> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // Ctrl-C is handled by the controller, which then ends the helpers.
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
        Ok(HelperLink { child, asks: Some(asks), said, silent })
    }

    pub(super) fn ask(&self, ask: HelperRequest) {
        // The reader reports a helper that is gone.
        if let Some(asks) = &self.asks {
            let _ = asks.send(ask);
        }
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What it wrote to stderr. The helper is gone, so this is complete.
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
        // Its PID is not reused until it has been waited for.
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

impl Drop for HelperLink {
    fn drop(&mut self) {
        self.leave();
    }
}

/// Forwards requests. The pipe is closed once all senders are dropped.
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

/// Keeps the last bytes of stderr.
fn keep(mut stderr: impl Read, said: &Mutex<Vec<u8>>) {
    let mut buffer = [0; 1024];
    while let Ok(read @ 1..) = stderr.read(&mut buffer) {
        let mut said = said.lock().unwrap_or_else(PoisonError::into_inner);
        said.extend(&buffer[..read]);
        let from = said.len().saturating_sub(MOST_SAID);
        said.drain(..from);
    }
}
