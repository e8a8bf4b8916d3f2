//! Runs a question to its end: shows progress, and ends it at Ctrl-C.
//!
//! Outputs have no name before they are complete, so an interrupted command leaves nothing behind.

use std::future::Future;
use std::time::{Duration, Instant};

use ppt_query::{QueryError, ScanProgress};
use tokio::runtime::{Builder, Runtime};

use crate::error::AnswerError;
use crate::message::StatusLine;

/// Interval between checks of signals.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Time of a question after which progress is shown.
const PROGRESS_DELAY: Duration = Duration::from_secs(1);

/// Stack size of a thread, bytes. Recursion over the longest allowed expression fits. The kernel provides
/// the memory as the stack grows.
pub(crate) const STACK: usize = 32 << 20;

/// A runtime with this many threads.
pub(crate) fn runtime(threads: usize) -> Result<Runtime, AnswerError> {
    let mut builder = Builder::new_multi_thread();
    let built = builder.worker_threads(threads).thread_stack_size(STACK).enable_all().build();
    built.map_err(|error| AnswerError::System("start threads", error))
}

/// Yields to the runtime, so that a long loop notices Ctrl-C.
pub(crate) async fn pause() {
    tokio::task::yield_now().await;
}

/// Runs `work` after [`ppt_signals::end_work`]. `watch` counts the bytes that `work` reads. `work` must [pause]
/// in its loops.
pub(crate) async fn question<T>(
    watch: &ScanProgress,
    work: impl Future<Output = Result<T, AnswerError>>,
) -> Result<T, AnswerError> {
    watch.reset();
    let began = Instant::now();
    let mut status = StatusLine::default();
    let mut work = std::pin::pin!(work);
    let mut ticks = tokio::time::interval(POLL_INTERVAL);
    loop {
        tokio::select! {
            biased;
            _ = ticks.tick() => {
                if ppt_signals::came() {
                    watch.cancel();
                    return Err(QueryError::Cancelled.into());
                }
                let (read, all) = watch.bytes();
                if began.elapsed() > PROGRESS_DELAY && all > 0 {
                    let percent = 100.0 * read as f64 / all as f64;
                    let mib = read >> 20;
                    status.show(format_args!("ppt: {percent:.0} % read ({mib} MiB)"));
                }
            }
            done = &mut work => return done,
        }
    }
}
