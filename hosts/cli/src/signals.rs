//! The signals that end a command: Ctrl-C (SIGINT) and SIGTERM. They end the program or its current
//! work.

use ppt_text::exit::ExitStatus;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use signal_hook::consts::{SIGINT, SIGTERM, SIGXFSZ};

/// Whether a signal ends the program. If not, the signal handler makes the next one do so.
fn ends() -> &'static Arc<AtomicBool> {
    static ENDS: OnceLock<Arc<AtomicBool>> = OnceLock::new();
    ENDS.get_or_init(|| Arc::new(AtomicBool::new(true)))
}

/// The last signal received; 0 if none.
fn last() -> &'static Arc<AtomicUsize> {
    static LAST: OnceLock<Arc<AtomicUsize>> = OnceLock::new();
    LAST.get_or_init(Arc::default)
}

/// Installs the handlers. Signals end the program until [`end_the_work`] is called.
pub(crate) fn take() -> io::Result<()> {
    for signal in [SIGINT, SIGTERM] {
        // The order matters: the default action reads the flag before the next handler sets it.
        signal_hook::flag::register_conditional_default(signal, ends().clone())?;
        signal_hook::flag::register(signal, ends().clone())?;
        let number = usize::try_from(signal).unwrap_or_default();
        signal_hook::flag::register_usize(signal, last().clone(), number)?;
    }
    // Exceeding the file size limit is then a write error, as a full disk is.
    signal_hook::flag::register(SIGXFSZ, Arc::default())?;
    Ok(())
}

/// From here on, the first signal ends the current work, which polls [`came`].
pub(crate) fn end_the_work() {
    ends().store(false, Relaxed);
}

/// Whether a signal was received.
pub(crate) fn came() -> bool {
    ends().load(Relaxed)
}

/// Ends the process by the signal received, so that a shell's loop ends, too.
pub(crate) fn interrupted() -> ExitStatus {
    let signal = match i32::try_from(last().load(Relaxed)) {
        Ok(signal) if signal != 0 => signal,
        _ => SIGINT,
    };
    let _ = signal_hook::low_level::emulate_default_handler(signal);
    ExitStatus::of_signal(signal)
}
