//! The drain thread: looks at every cursor, takes what is new, sleeps.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Acquire};
use std::thread::Thread;
use std::time::Duration;

use ppt_segment::Segment;

use crate::clocks;
use crate::options::Options;
use crate::pace::Pace;
use crate::progress::Counters;
use crate::queue::Queue;
use crate::ring::{Closing, Outlet, RingDrain};

/// Bytes copied out of a ring at once: small enough to stay in a cache until they are sorted out.
const SCRATCH_BYTES: usize = 128 << 10;
/// Least sleep after a pass that took longer than the pace allows: the core is not ours alone.
const BREATH_NS: u64 = 50_000;
/// Longest sleep without a look at whether it is all over.
const NAP_NS: u64 = 20_000_000;
/// More than any thread can write in a nanosecond.
const FRAMES_PER_NS: u64 = 4;
/// Frames that may have been written before the first pass, or while it was not on time.
const HEAD_START: u64 = 1 << 32;

/// All that the drain thread needs.
pub(crate) struct Drain {
    /// Segment and starting cursors of each feed.
    pub feeds: Vec<(Arc<Segment>, Vec<u64>)>,
    pub queue: Arc<Queue>,
    pub counters: Arc<Counters>,
    /// Set once the gates are closed: one more pass, and out.
    pub stop: Arc<AtomicBool>,
    /// To be woken when a ring has been claimed.
    pub keeper: Thread,
    pub options: Options,
}

impl Drain {
    /// Drains until told to stop; returns how each ring was left, feed by feed.
    ///
    /// It ends: after the stop it goes no further than the cursors that it finds at each ring.
    pub fn run(self) -> Vec<Closing> {
        // Sleeps of half a millisecond would otherwise take 50 µs longer. Failure costs just that.
        let _ = nix::sys::prctl::set_timerslack(1);
        let mut rings = self.rings();
        let widest = self.feeds.iter().map(|(segment, _)| segment.geometry().stride()).max();
        let mut scratch = vec![0; SCRATCH_BYTES.max(widest.unwrap_or(0) as usize) / 8];
        let mut pace = Pace::new(&self.options);
        let age = self.options.chunk_age.as_nanos() as u64;
        let mut oldest = u64::MAX;
        let mut last = None;
        loop {
            let stopping = self.stop.load(Acquire);
            let now = clocks::monotonic();
            let since = now - last.unwrap_or(now);
            let mut out = Outlet {
                queue: &self.queue,
                counters: &self.counters,
                now,
                pushed: false,
                claimed: false,
            };
            let gained = self.pass(&mut rings, &mut scratch, since, &mut oldest, &mut out);
            if stopping || now.saturating_sub(oldest) >= age {
                oldest = flush(&mut rings, if stopping { 0 } else { age }, &mut out);
            }
            if out.pushed {
                self.queue.notify();
            }
            if out.claimed {
                self.keeper.unpark();
            }
            if stopping {
                return rings.iter().map(|(_, ring)| ring.closing()).collect();
            }
            // How long the frames of the first pass took is not known: come back soon.
            let sleep = match last.replace(now) {
                Some(_) => pace.next(gained, Duration::from_nanos(since)),
                None => pace.first(),
            };
            let breath = clocks::monotonic() + BREATH_NS;
            self.sleep_until((now + sleep.as_nanos() as u64).max(breath));
        }
    }

    /// Sleeps, but not through the end.
    fn sleep_until(&self, then: u64) {
        while clocks::monotonic() < then && !self.stop.load(Acquire) {
            clocks::sleep_until(then.min(clocks::monotonic() + NAP_NS));
        }
    }

    /// Every ring with the number of its feed.
    fn rings(&self) -> Vec<(usize, RingDrain<'_>)> {
        let rings = self.feeds.iter().enumerate().flat_map(|(feed, (segment, first))| {
            first.iter().zip(0..).map(move |(&cursor, ring)| (feed, segment.ring(ring), cursor))
        });
        rings
            .enumerate()
            .map(|(index, (feed, ring, cursor))| (feed, RingDrain::new(index, ring, cursor)))
            .collect()
    }

    /// Takes what every ring holds; returns how far the busiest one went, in rings.
    fn pass(
        &self,
        rings: &mut [(usize, RingDrain<'_>)],
        scratch: &mut [u64],
        since: u64,
        oldest: &mut u64,
        out: &mut Outlet<'_>,
    ) -> f64 {
        let possible = since.saturating_mul(FRAMES_PER_NS).saturating_add(HEAD_START);
        let mut gained = 0.0f64;
        for (feed, ring) in rings {
            let Some(tail) = ring.moved(possible) else { continue };
            let backlog = ring.backlog(tail);
            self.counters.backlog(*feed, backlog);
            let slots = self.feeds[*feed].0.geometry().slots();
            gained = gained.max(backlog as f64 / slots as f64);
            ring.drain(tail, scratch, out);
            *oldest = ring.open_since().unwrap_or(u64::MAX).min(*oldest);
        }
        gained
    }
}

/// Hands on every chunk that is `age` ns old; returns when the oldest of the others was opened.
fn flush(rings: &mut [(usize, RingDrain<'_>)], age: u64, out: &mut Outlet<'_>) -> u64 {
    let mut oldest = u64::MAX;
    for (_, ring) in rings {
        let Some(since) = ring.open_since() else { continue };
        if out.now.saturating_sub(since) >= age {
            ring.flush(out);
        } else {
            oldest = oldest.min(since);
        }
    }
    oldest
}
