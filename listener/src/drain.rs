//! The drain thread: looks at every cursor, takes what is new, sleeps.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Acquire, Ordering::Relaxed};
use std::sync::mpsc::Receiver;
use std::thread::{self, Thread};
use std::time::Duration;

use ppt_segment::Segment;

use crate::chunk::{LARGE_CHUNK, SMALL_CHUNK};
use crate::clocks;
use crate::feed::Change;
use crate::options::Options;
use crate::pace::Pace;
use crate::progress::Counters;
use crate::queue::Queue;
use crate::ring::{Outlet, RingDrain};
use crate::watched::Seen;

/// Bytes copied out of a ring at once: small enough to stay in a cache until they are sorted out.
const SCRATCH_BYTES: usize = 128 << 10;
/// Least sleep after a pass that took longer than the pace allows: the core is not ours alone.
const BREATH_NS: u64 = 50_000;
/// Open chunks up to which each may become a large one: what bounds their memory.
const FEW: usize = 8;
/// More than any thread can write in a nanosecond.
const FRAMES_PER_NS: u64 = 4;
/// Frames that may have been written before the first pass, or while it was not on time.
const HEAD_START: u64 = 1 << 32;

/// The rings of one segment.
pub(crate) struct Drained {
    part: usize,
    segment: Arc<Segment>,
    seen: Arc<Seen>,
    /// Those that somebody has written to.
    rings: Vec<Option<Box<RingDrain>>>,
    /// How far each has been drained, side by side: most looks find nothing else.
    cursors: Vec<u64>,
    /// Rings with an open chunk.
    open: Vec<usize>,
}

impl Drained {
    /// `first` are the starting cursors.
    pub fn new(part: usize, segment: Arc<Segment>, seen: Arc<Seen>, first: Vec<u64>) -> Self {
        let rings = first.iter().map(|_| None).collect();
        Self { part, segment, seen, rings, cursors: first, open: Vec::new() }
    }

    /// Takes what every ring holds; returns how far the busiest one went, in rings. `hurried`: it
    /// was looked at as often as can be.
    fn pass(
        &mut self,
        (possible, hurried): (u64, bool),
        scratch: &mut [u64],
        out: &mut Outlet<'_>,
    ) -> f64 {
        let (mut most, overrun) = (0, out.overrun);
        for (number, cursor) in self.cursors.iter_mut().enumerate() {
            let ring = self.segment.ring(number as u32);
            let unmoved = ring.tail() == *cursor;
            // What is found in a segment that lost memory was not written there.
            if self.segment.truncated() {
                break;
            }
            if unmoved {
                continue;
            }
            let new = || Box::new(RingDrain::new((self.part, number as u32), *cursor));
            let drain = self.rings[number].get_or_insert_with(new);
            let Some(tail) = drain.moved(ring, possible) else { continue };
            most = drain.backlog(tail).max(most);
            drain.drain(ring, tail, scratch, out);
            *cursor = drain.next();
            if drain.open_since().is_some() && !self.open.contains(&number) {
                self.open.push(number);
            }
        }
        if most > 0 {
            self.seen.peak.fetch_max(most, Relaxed);
        }
        let slots = self.segment.geometry().slots();
        let tight = out.overrun > overrun || (hurried && most > slots / 8 * 7);
        if tight && !self.seen.tight.swap(true, Relaxed) {
            out.counters.tell_tight();
        }
        most as f64 / slots as f64
    }

    /// When the oldest open chunk was opened.
    fn open_since(&self) -> u64 {
        let rings = self.open.iter().filter_map(|&number| self.rings[number].as_ref());
        let since = rings.filter_map(|drain| drain.open_since());
        since.min().unwrap_or(u64::MAX)
    }

    /// Hands on every chunk that is `age` ns old.
    fn flush(&mut self, age: u64, out: &mut Outlet<'_>) {
        self.open.retain(|&number| {
            let Some(drain) = &mut self.rings[number] else { return false };
            if drain.open_since().is_some_and(|since| out.now.saturating_sub(since) >= age) {
                drain.flush(out);
            }
            drain.open_since().is_some()
        });
    }

    /// Hands on all that is left: nothing more comes.
    fn close(&mut self, out: &mut Outlet<'_>) {
        self.flush(0, out);
        let closings = self.rings.iter().flatten().map(|drain| drain.closing());
        out.queue.gone(self.part, closings.collect());
    }
}

/// All that the drain thread needs.
pub(crate) struct Drain {
    pub changes: Receiver<Change<Drained>>,
    pub queue: Arc<Queue>,
    pub counters: Arc<Counters>,
    /// Set once the gates are closed: one more pass, and out.
    pub stop: Arc<AtomicBool>,
    /// To be woken when a ring has been claimed.
    pub keeper: Thread,
    pub options: Options,
}

impl Drain {
    /// Drains until told to stop.
    ///
    /// It ends: after the stop it goes no further than the cursors that it finds at each ring.
    pub fn run(self) {
        // Sleeps of half a millisecond would otherwise take 50 µs longer. Failure costs just that.
        let _ = nix::sys::prctl::set_timerslack(1);
        let mut feeds: Vec<Drained> = Vec::new();
        let mut scratch = vec![0; SCRATCH_BYTES / 8];
        let mut pace = Pace::new(&self.options);
        let age = self.options.chunk_age.as_nanos() as u64;
        let mut last = None;
        let mut hurried = false;
        loop {
            let stopping = self.stop.load(Acquire);
            let mut retired = Vec::new();
            for change in self.changes.try_iter() {
                match change {
                    Change::Add(feed) => {
                        let stride = feed.segment.geometry().stride() as usize / 8;
                        scratch.resize(scratch.len().max(stride), 0);
                        feeds.push(feed);
                        last = None;
                    }
                    Change::Retire(part) => retired.push(part),
                }
            }
            let now = clocks::monotonic();
            let since = now - last.unwrap_or(now);
            let open: usize = feeds.iter().map(|feed| feed.open.len()).sum();
            let mut out = Outlet {
                queue: &self.queue,
                counters: &self.counters,
                now,
                overrun: 0,
                full: if open <= FEW { LARGE_CHUNK } else { SMALL_CHUNK },
                pushed: false,
                claimed: false,
            };
            let possible = since.saturating_mul(FRAMES_PER_NS).saturating_add(HEAD_START);
            let mut gained = 0.0f64;
            let mut oldest = u64::MAX;
            for feed in &mut feeds {
                gained = gained.max(feed.pass((possible, hurried), &mut scratch, &mut out));
                oldest = oldest.min(feed.open_since());
            }
            if now.saturating_sub(oldest) >= age {
                feeds.iter_mut().for_each(|feed| feed.flush(age, &mut out));
            }
            if stopping || !retired.is_empty() {
                feeds.retain_mut(|feed| {
                    let goes = stopping || retired.contains(&feed.part);
                    if goes {
                        feed.close(&mut out);
                    }
                    !goes
                });
            }
            if out.pushed {
                self.queue.notify();
            }
            if out.claimed {
                self.keeper.unpark();
            }
            if stopping {
                return;
            }
            // How long the frames of a first pass took is not known: come back soon.
            let sleep = match last.replace(now) {
                Some(_) => pace.next(gained, Duration::from_nanos(since)),
                None => pace.first(),
            };
            hurried = pace.is_shortest(sleep);
            let took = clocks::monotonic() - now;
            let rest = (sleep.as_nanos() as u64).saturating_sub(took).max(BREATH_NS);
            // Woken when there are changes, and at the end.
            thread::park_timeout(Duration::from_nanos(rest));
        }
    }
}
