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
const MAX_STDERR_BYTES: usize = 4096;

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
    requests: Option<Sender<HelperRequest>>,
    stderr_tail: Arc<Mutex<Vec<u8>>>,
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
        let stderr_tail = Arc::new(Mutex::new(Vec::new()));
        let (requests, received) = channel();
        let (speaks, silent) = channel();
        if let Some(stdin) = child.stdin.take() {
            thread::spawn(move || forward(stdin, &received));
        }
        if let Some(stderr) = child.stderr.take() {
            let stderr_tail = stderr_tail.clone();
            thread::spawn(move || {
                keep(stderr, &stderr_tail);
                drop(speaks);
            });
        }
        if let Some(stdout) = child.stdout.take() {
            thread::spawn(move || listen(stdout, number, &heard));
        }
        Ok(HelperLink { child, requests: Some(requests), stderr_tail, silent })
    }

    pub(super) fn ask(&self, request: HelperRequest) {
        // The reader reports a helper that is gone.
        if let Some(requests) = &self.requests {
            let _ = requests.send(request);
        }
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The end of the helper's stderr. The helper is gone, so this is complete.
    pub(super) fn last_output(&mut self) -> String {
        self.leave();
        let _ = self.silent.recv_timeout(PING);
        let stderr_tail = self.stderr_tail.lock().unwrap_or_else(PoisonError::into_inner);
        let text = String::from_utf8_lossy(&stderr_tail).trim().to_owned();
        match self.child.try_wait() {
            _ if !text.is_empty() => text,
            Ok(Some(status)) => format!("its helper ended ({status})"),
            _ => "its helper is silent".to_owned(),
        }
    }

    /// Closes the pipe.
    pub(super) fn close(&mut self) {
        self.requests = None;
    }

    /// Closes the pipe, and waits until the helper has stopped its programs.
    fn leave(&mut self) {
        self.close();
        if matches!(self.child.try_wait(), Ok(Some(_))) {
            return;
        }
        // The PID of the helper is not reused until it has been waited for.
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
fn forward(mut stdin: ChildStdin, requests: &Receiver<HelperRequest>) {
    loop {
        let request = match requests.recv_timeout(PING) {
            Ok(request) => request,
            Err(RecvTimeoutError::Timeout) => HelperRequest::Ping,
            Err(RecvTimeoutError::Disconnected) => return,
        };
        if wire::write_message(&mut stdin, &request).is_err() {
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
fn keep(mut stderr: impl Read, stderr_tail: &Mutex<Vec<u8>>) {
    let mut buffer = [0; 1024];
    while let Ok(read @ 1..) = stderr.read(&mut buffer) {
        let mut stderr_tail = stderr_tail.lock().unwrap_or_else(PoisonError::into_inner);
        stderr_tail.extend(&buffer[..read]);
        let from = stderr_tail.len().saturating_sub(MAX_STDERR_BYTES);
        stderr_tail.drain(..from);
    }
}
