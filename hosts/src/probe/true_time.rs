//! Sources of true time: chrony, ptp4l, and the edges of a pulse per second.
//!
//! A thread per source runs while hosts are measured, and passes on [`Record::Reported`] and
//! [`Record::Pulse`] of this host. Unusable readings are dropped; they never end a measurement.

mod chrony;
mod decimal;
mod error;
mod lines;
mod pps;
mod ptp4l;
mod watched;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, Scope, Thread};

use ppt_clock::sync::Record;

use super::clock::HostClock;
use chrony::Chrony;
use pps::Edges;
use ptp4l::Ptp4l;
use watched::Watched;

pub use error::TimeSourceError;

/// A source of true time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TimeSource {
    /// chronyd of this host, queried once a second by the program `chronyc`.
    Chrony {
        /// The program's path or name.
        chronyc: PathBuf,
    },
    /// ptp4l of this host, which sets CLOCK_REALTIME (it stamps packets by software), by its log.
    Ptp4l {
        /// A file that grows, or a FIFO.
        log: PathBuf,
    },
    /// The edges of a signal that marks true seconds, as lines `SECONDS.NANOSECONDS#SEQUENCE`: when CLOCK_REALTIME saw
    /// an edge, and its number.
    Pps {
        /// A file whose content is the last edge, as the kernel's `/sys/class/pps/pps0/assert`; a file
        /// that grows; or a FIFO.
        edges: PathBuf,
    },
}

/// A reading of a source.
pub(super) struct SourceReading {
    /// Index of the source.
    pub(super) source: usize,
    /// The reading, or why it is dropped.
    pub(super) record: Result<Record, TimeSourceError>,
}

/// The threads of all sources; they end when this is dropped.
pub(super) struct TimeSources<'a> {
    stop: &'a AtomicBool,
    threads: Vec<Thread>,
    readings: Receiver<SourceReading>,
}

impl<'scope> TimeSources<'scope> {
    /// Starts the threads. The threads stop when `stop`, which must be false, is set.
    ///
    /// # Errors
    /// A source is missing.
    pub fn start<'env>(
        sources: &[TimeSource],
        clock: &'scope HostClock,
        hz: u64,
        stop: &'scope AtomicBool,
        scope: &'scope Scope<'scope, 'env>,
    ) -> Result<Self, TimeSourceError> {
        let (sender, readings) = channel();
        let mut watched: Vec<Box<dyn Watched + 'scope>> = Vec::new();
        for source in sources {
            watched.push(match source {
                TimeSource::Chrony { chronyc } => Box::new(Chrony::find(chronyc, clock)?),
                TimeSource::Ptp4l { log } => Box::new(Ptp4l::open(log, clock, hz)?),
                TimeSource::Pps { edges } => Box::new(Edges::open(edges, clock, hz)?),
            });
        }
        let mut watch = Self { stop, threads: Vec::new(), readings };
        for (index, mut source) in watched.into_iter().enumerate() {
            let sender: Sender<SourceReading> = sender.clone();
            let thread = scope.spawn(move || {
                while !stop.load(Relaxed) {
                    // The receiver may be gone; then the thread ends.
                    source.look(&mut |record| {
                        drop(sender.send(SourceReading { source: index, record }));
                    });
                    thread::park_timeout(source.pause());
                }
            });
            watch.threads.push(thread.thread().clone());
        }
        Ok(watch)
    }

    /// The readings since the last call.
    pub fn take(&self) -> impl Iterator<Item = SourceReading> {
        self.readings.try_iter()
    }
}

impl Drop for TimeSources<'_> {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
        self.threads.iter().for_each(Thread::unpark);
    }
}
