//! The choices of a caller.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use ppt_capture::Codec;

use crate::filter::SharedFilter;

/// How to choose the time between two looks at the cursors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Rate {
    /// Follow peaks at once and forget them slowly: see [`PeakHold`](crate::PeakHold).
    #[default]
    Peak,
    /// The policy of the paper (section III.C.2), to compare with: it loses bursts.
    Paper,
}

/// How long a ring may go without a look that nothing comes into.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Silence {
    /// As long as there is room for a burst of a million frames a second, even if the look comes
    /// 18 ms late (or half of the ring is filled): 10 to 100 ms, by its slots, and no longer than
    /// [`ListenerOptions::chunk_age`] allows.
    #[default]
    OfRings,
    /// So long. A burst that fills a ring in less than this is lost.
    Fixed(Duration),
}

/// How a listener works. The default suits every rate that one core can drain.
#[derive(Debug, Clone)]
pub struct ListenerOptions {
    /// How the sleep between two looks at the cursors is chosen; the paper's policy has limits of
    /// its own.
    pub rate: Rate,
    /// Shortest sleep between two looks at the cursors.
    pub shortest: Duration,
    /// How long a ring may go without a look that nothing comes into.
    pub silence: Silence,
    /// Bytes of frames that may wait for the disk.
    pub queue_bytes: usize,
    /// Bytes after which the capture ends by itself. Room is kept for what its end takes, so that
    /// the file stays below; only losses on rings that came into use after that may exceed it.
    pub max_size: Option<u64>,
    /// Time after which a frame is in the file, as long as the disk takes what comes: sleeps and the
    /// age of chunks follow from it.
    pub chunk_age: Duration,
    /// How long [`Listener::finish`] waits for the disk. What is not written then is lost by cause
    /// `disk`, and the capture has no end.
    ///
    /// [`Listener::finish`]: crate::Listener::finish
    pub patience: Duration,
    /// Reads the CPU's counter as the targets do. Another one is for tests whose targets do not
    /// read it as it is.
    pub ticks: fn() -> u64,
    /// From one reading of counters and histograms to the next.
    pub counters: Duration,
    /// How frames are stored, if not as they are.
    pub compress: Option<Codec>,
    /// Which frames the capture has; None: all. Gaps state those that are left out.
    pub filter: Option<SharedFilter>,
    /// Set while much waits for the disk: an output may then choose what is fast over what is cheap.
    pub behind: Arc<AtomicBool>,
    /// The system does not trust the CPU's counter from the start.
    pub distrust_ticks: bool,
    /// Keep [numbers](crate::Tallies) that can be shown while the capture runs.
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
