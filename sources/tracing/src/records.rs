//! Records of the crate `log`, which are made only while ppt is attached.

use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use tracing_log::LogTracer;

use crate::frames::tracing;

static LOGGER: OnceLock<LogTracer> = OnceLock::new();
/// Whether the program's logger is ours.
static IS_OURS: AtomicBool = AtomicBool::new(false);

/// Turns records into events of `tracing`, unless the program has a logger.
pub(crate) fn take() {
    if log::set_logger(LOGGER.get_or_init(LogTracer::new)).is_ok() {
        IS_OURS.store(true, Relaxed);
        set_level();
    }
}

/// Enables records while ppt is attached, and disables them otherwise.
pub(crate) fn set_level() {
    if IS_OURS.load(Relaxed) {
        let level = if tracing::on() { log::LevelFilter::Trace } else { log::LevelFilter::Off };
        log::set_max_level(level);
    }
}
