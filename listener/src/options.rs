//! The choices of a caller.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use ppt_capture::Codec;

use crate::filter::SharedFilter;

/// The policy for the interval between two looks at the cursors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Rate {
    /// Follow peaks at once and let them decay slowly: see [`PeakHold`](crate::PeakHold).
    #[default]
    Peak,
    /// The policy of the paper (section III.C.2), for comparison: it loses bursts.
    Paper,
}

/// The longest time that an idle ring may go without a look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Silence {
    /// As long as there is room for a burst of a million frames a second, even if the look comes 18
    /// ms late (or half of the ring is filled): 10 to 100 ms, depending on its slots, and no longer
    /// than [`ListenerOptions::chunk_age`] allows.
    #[default]
    OfRings,
    /// At most this time. A burst that fills a ring in less time loses frames.
    Fixed(Duration),
}

/// Options of a listener. The default suits every rate that one core can drain.
#[derive(Debug, Clone)]
pub struct ListenerOptions {
    /// The policy for the sleep between two looks at the cursors; the paper's policy has its own
    /// limits.
    pub rate: Rate,
    /// Shortest sleep between two looks at the cursors.
    pub shortest: Duration,
    /// The longest time that an idle ring may go without a look.
    pub silence: Silence,
    /// Bytes of frames that may wait for the disk.
    pub queue_bytes: usize,
    /// Size at which the capture ends by itself, in bytes. Room is reserved for its end, so that
    /// the file stays below; only losses on rings that are first used after that may exceed it.
    pub max_size: Option<u64>,
    /// Time until a frame is in the file, as long as the disk keeps up. Sleeps and the age of
    /// chunks follow from it.
    pub chunk_age: Duration,
    /// The time for which [`Listener::finish`] waits for the disk. Frames that are not written by then
    /// are
    /// lost by cause `disk`, and the capture has no end.
    ///
    /// [`Listener::finish`]: crate::Listener::finish
    pub patience: Duration,
    /// Reads the CPU's counter as the targets do. Tests replace it if their targets read another
    /// one.
    pub ticks: fn() -> u64,
    /// Interval between readings of counters and histograms.
    pub counters: Duration,
    /// The compression of frames. `None`: uncompressed.
    pub compress: Option<Codec>,
    /// Selects the frames of the capture. `None`: all. Gaps state those that are left out.
    pub filter: Option<SharedFilter>,
    /// Set while much data waits for the disk. An output may then prefer speed over low cost.
    pub behind: Arc<AtomicBool>,
    /// The system does not trust the CPU's counter, from the start.
    pub distrust_ticks: bool,
    /// Keep [numbers](crate::Tallies) for display while the capture runs.
    pub tally: bool,
}

impl Default for ListenerOptions {
    fn default() -> Self {
        Self {
            rate: Rate::Peak,
            shortest: Duration::from_micros(500),
            silence: Silence::OfRings,
            queue_bytes: 64 << 20,
            max_size: None,
            chunk_age: Duration::from_millis(35),
            patience: Duration::from_secs(60),
            ticks: ppt_now::ticks,
            counters: Duration::from_secs(1),
            compress: None,
            filter: None,
            behind: Arc::default(),
            distrust_ticks: false,
            tally: false,
        }
    }
}
