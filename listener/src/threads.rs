//! Starting threads.

use std::thread::{self, JoinHandle};

use nix::sys::signal::{SigSet, SigmaskHow, Signal};

use crate::error::ListenerError;

/// Starts a thread with all signals blocked, because they belong to the caller. The exception is
/// SIGBUS, which a truncated segment raises: `ppt_segment` handles it.
pub(crate) fn spawn<T: Send + 'static>(
    name: &str,
    run: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>, ListenerError> {
    let mut signals = SigSet::all();
    signals.remove(Signal::SIGBUS);
    let mask = signals.thread_swap_mask(SigmaskHow::SIG_SETMASK);
    let thread = thread::Builder::new().name(name.to_owned()).spawn(run);
    if let Ok(mask) = mask {
        // The value was the mask a moment ago, so it is valid.
        let _ = mask.thread_set_mask();
    }
    thread.map_err(ListenerError::Thread)
}
