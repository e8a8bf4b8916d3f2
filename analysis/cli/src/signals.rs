//! Ctrl-C, and SIGTERM.

use std::io;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use signal_hook::consts::{SIGINT, SIGTERM, SIGXFSZ};

/// Whether a signal ends the program; one that does not makes the next one do so.
fn ends() -> &'static Arc<AtomicBool> {
    static ENDS: OnceLock<Arc<AtomicBool>> = OnceLock::new();
    ENDS.get_or_init(|| Arc::new(AtomicBool::new(true)))
}

/// Takes signals. A file that may not grow is an error of whoever writes it, as a full disk is.
pub(crate) fn take() -> io::Result<()> {
    for signal in [SIGINT, SIGTERM] {
        // In this order: what is set by the first is met by the second.
        signal_hook::flag::register_conditional_default(signal, ends().clone())?;
        signal_hook::flag::register(signal, ends().clone())?;
    }
    signal_hook::flag::register(SIGXFSZ, Arc::default())?;
    Ok(())
}

/// From here on the first signal ends the question that is answered, the second the program.
pub(crate) fn end_questions() {
    ends().store(false, Relaxed);
}

/// From here on a signal ends the program: it waits, and there is nothing to tidy up.
pub(crate) fn end_the_program() {
    ends().store(true, Relaxed);
}

/// Whether a signal came that ends a question.
pub(crate) fn came() -> bool {
    ends().load(Relaxed)
}

/// Ends as somebody does whom Ctrl-C ended: a shell's loop ends, too.
pub(crate) fn interrupted() -> ExitCode {
    let _ = signal_hook::low_level::emulate_default_handler(SIGINT);
    ExitCode::from(130)
}
