//! Processes that end with their test.

use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

/// A process and all that it starts: they are killed once this is dropped.
pub struct ProcessGroup {
    /// None: it has ended.
    child: Option<Child>,
}

impl ProcessGroup {
    pub fn spawn(command: &mut Command) -> ProcessGroup {
        ProcessGroup { child: Some(command.process_group(0).spawn().unwrap()) }
    }

    fn child(&mut self) -> &mut Child {
        self.child.as_mut().expect("it has ended")
    }

    /// Fails with what it said if it has ended by itself.
    #[track_caller]
    pub fn runs(&mut self) {
        if let Some(status) = self.child().try_wait().unwrap() {
            let output = self.child.take().unwrap().wait_with_output().unwrap();
            panic!("{status}: {}", String::from_utf8_lossy(&output.stderr));
        }
    }

    /// Waits until something is so. A machine that is busy may take its time.
    #[track_caller]
    pub fn until(&mut self, what: &str, mut is_so: impl FnMut() -> bool) {
        let since = Instant::now();
        while !is_so() {
            self.runs();
            assert!(since.elapsed() < Duration::from_secs(120), "waited for {what}");
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Sends a signal to all of them.
    pub fn signal(&mut self, signal: Signal) {
        let _ = kill_process_group(Pid::from_child(self.child()), signal);
    }

    pub fn wait(mut self) -> ExitStatus {
        let status = self.child().wait().unwrap();
        self.child = None;
        status
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        if self.child.is_some() {
            self.signal(Signal::KILL);
            let _ = self.child().wait();
        }
    }
}
