//! `ppt restore-weights PID…`: the process that ppt starts for `--pause-host`.
//!
//! Threads in the span are heavier to the scheduler for some milliseconds. If ppt is killed then, or stopped, this
//! process makes them ordinary again. Its standard input is a pipe, into which ppt writes while it lives.

use std::io::Read;
use std::os::fd::AsFd;
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use ppt_text::exit::ExitStatus;

use crate::{args, weights};

/// If ppt has not written for so long, it is stopped or dead.
const PATIENCE: Duration = Duration::from_millis(100);
/// The size of a read: more than ppt writes meanwhile.
const BEATS: usize = 4096;

pub(crate) fn run(args: &args::RestoreWeights) -> ExitStatus {
    // ps(1) would otherwise show the name `exe`.
    let _ = nix::sys::prctl::set_name(c"ppt-weights");
    // Without the right, it can still restore the threads of its own user.
    let _ = ppt_kernel::keep_only_nice();
    // A process that cannot be restored keeps none of the others from it.
    let restore = || {
        let results = args.pids.iter().map(|&pid| weights::restore(pid, &args.except));
        results.filter(Result::is_err).count() == 0
    };
    let timeout = PollTimeout::try_from(PATIENCE).unwrap_or(PollTimeout::MAX);
    let mut input = std::io::stdin().lock();
    loop {
        let mut waits = [PollFd::new(input.as_fd(), PollFlags::POLLIN)];
        match poll(&mut waits, timeout) {
            Ok(0) => {
                restore();
            }
            Err(nix::errno::Errno::EINTR) => {}
            _ => match input.read(&mut [0; BEATS]) {
                Ok(length) if length > 0 => {}
                _ => break,
            },
        }
    }
    // A thread that has just been made heavier is found the second time.
    if restore() & restore() { ExitStatus::DONE } else { ExitStatus::FAILED }
}
