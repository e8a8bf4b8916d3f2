//! Runs a question to its end: says how far it is, and ends it at Ctrl-C.
//!
//! Outputs have no name before they are whole, so whoever is interrupted leaves nothing behind.

use std::future::Future;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use ppt_query::{QueryError, Watch};
use signal_hook::consts::{SIGINT, SIGTERM};
use tokio::runtime::{Builder, Runtime};

use crate::failure::Failure;
use crate::message::StatusLine;

/// How often signals are looked for.
const LOOK: Duration = Duration::from_millis(50);
/// What takes longer says how far it is.
const LONG: Duration = Duration::from_secs(1);

/// Whether somebody pressed Ctrl-C.
fn flag() -> &'static Arc<AtomicBool> {
    static FLAG: OnceLock<Arc<AtomicBool>> = OnceLock::new();
    FLAG.get_or_init(Arc::default)
}

/// Takes signals from here on: the first ends a question, the second the program.
pub(crate) fn take_signals() -> Result<(), Failure> {
    let fail = |error| Failure::System("set up signals", error);
    for signal in [SIGINT, SIGTERM] {
        let flag = flag().clone();
        // In this order: what is set by the first is met by the second.
        signal_hook::flag::register_conditional_shutdown(signal, 128 + signal, flag.clone())
            .map_err(fail)?;
        signal_hook::flag::register(signal, flag).map_err(fail)?;
    }
    Ok(())
}

/// Ends as somebody does whom Ctrl-C ended: a shell's loop ends, too.
pub(crate) fn interrupted() -> ExitCode {
    let _ = signal_hook::low_level::emulate_default_handler(SIGINT);
    ExitCode::from(130)
}

/// A runtime with so many threads.
pub(crate) fn runtime(threads: usize) -> Result<Runtime, Failure> {
    let built = Builder::new_multi_thread().worker_threads(threads).enable_time().build();
    built.map_err(|error| Failure::System("start threads", error))
}

/// Runs `work`, which reads what `watch` watches.
pub(crate) async fn question<T>(
    watch: &Watch,
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    watch.reset();
    flag().store(false, Relaxed);
    let began = Instant::now();
    let mut status = StatusLine::default();
    let mut work = std::pin::pin!(work);
    let mut ticks = tokio::time::interval(LOOK);
    loop {
        tokio::select! {
            biased;
            _ = ticks.tick() => {
                if flag().load(Relaxed) {
                    watch.cancel();
                    return Err(QueryError::Cancelled.into());
                }
                let (read, all) = watch.bytes();
                if began.elapsed() > LONG && all > 0 {
                    let percent = 100.0 * read as f64 / all as f64;
                    let mib = read >> 20;
                    status.show(format_args!("ppt: {percent:.0} % read ({mib} MiB)"));
                }
            }
            done = &mut work => return done,
        }
    }
}
