//! The drain thread. It reads cursors, copies new frames, and sleeps.
//!
//! It polls an idle ring often enough for a burst to fit into it ([`longest`]), and a busy ring
//! more often ([`Pace`]). Threads take the lowest free ring. So it polls only those rings of a
//! segment that may have been claimed, and all of them once a second and at the end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Acquire, Ordering::Relaxed};
use std::sync::mpsc::Receiver;
use std::thread::{self, Thread};
use std::time::Duration;

use ppt_segment::Segment;

use crate::buffer::{LARGE_CHUNK, SMALL_CHUNK};
use crate::chunk::RingPlace;
use crate::feed::FeedChange;
use crate::lanes::Lanes;
use crate::options::ListenerOptions;
use crate::pace::{Claims, Pace, longest, longest_of_many};
use crate::progress::Counters;
use crate::ring::{BLOCK, Outlet, RingDrain};
use crate::watched::RingFindings;
use ppt_capture::stamps::Stamps;

/// Shortest sleep after a pass that took longer than the pace allows, because other threads need
/// the core, too.
const BREATH_NS: u64 = 50_000;
/// Interval between two looks at all rings of a segment, including those that are probably
/// unclaimed.
const SWEEP_NS: u64 = 1_000_000_000;
/// Idle time per look at an idle ring. With thousands of rings, looks then take half a percent of a
/// CPU instead of several.
const LOOK_NS: u64 = 3_000;
/// The time that a write may take. It is part of the time until frames are in the file.
const WRITE_NS: u64 = 5_000_000;
/// The number of open chunks up to which chunks may become large. It bounds their memory.
const FEW_CHUNKS: usize = 8;
/// More frames than any thread can write in a nanosecond.
const FRAMES_PER_NS: u64 = 4;
/// Number of frames that may have been written before the first pass, or while a pass was late.
const HEAD_START: u64 = 1 << 32;

/// The rings of one segment.
pub(crate) struct DrainedSegment {
    number: usize,
    segment: Arc<Segment>,
    findings: Arc<RingFindings>,
    stamps: Arc<Stamps>,
    /// The rings that have been written to.
    rings: Vec<Option<Box<RingDrain>>>,
    /// The cursor up to which each ring has been drained. The cursors are contiguous because most looks
    /// read nothing else.
    cursors: Vec<u64>,
    /// The number of rings, from the first, that may have been claimed.
    reach: usize,
    /// Rings that received frames recently. Other rings are polled less often.
    busy: Vec<usize>,
    /// The rings in which a look found frames. The vector is kept to reuse its memory.
    moved: Vec<usize>,
    /// The longest time between two looks at a ring, by its number of slots.
    look_interval_ns: u64,
    /// The same for a segment with any number of rings.
    max_look_interval_ns: u64,
    /// The last look at all rings within reach.
    last_look_ns: Option<u64>,
    /// The last look at all rings.
    last_sweep_ns: u64,
    /// Rings with an open chunk.
    open: Vec<usize>,
    /// The earliest time at which the first frame of an open chunk may have been written.
    earliest: u64,
    /// Whether that time is unknown: a chunk has been open since the first look.
    is_unsure: bool,
}

/// A pass over rings.
#[derive(Clone, Copy)]
struct Pass {
    now: u64,
    /// Start of the previous pass.
    last: u64,
    /// The shortest sleep, ns. Anything due before its end is due now.
    shortest: u64,
    /// Whether rings were polled at the highest rate.
    hurried: bool,
    /// Whether this is the last pass, over every ring.
    is_last: bool,
}

impl DrainedSegment {
    /// `first` are the starting cursors.
    pub fn new(
        number: usize,
        segment: Arc<Segment>,
        findings: Arc<RingFindings>,
        stamps: Arc<Stamps>,
        first: Vec<u64>,
    ) -> Self {
        Self {
            number,
            segment,
            findings,
            stamps,
            rings: first.iter().map(|_| None).collect(),
            cursors: first,
            reach: 0,
            busy: Vec::new(),
            moved: Vec::new(),
            look_interval_ns: 0,
            max_look_interval_ns: 0,
            last_look_ns: None,
            last_sweep_ns: 0,
            open: Vec::new(),
            earliest: u64::MAX,
            is_unsure: false,
        }
    }

    /// The longest time that a ring may go without a look, ns. Polling many rings takes time, too.
    fn effective_look_interval_ns(&self) -> u64 {
        self.look_interval_ns.max((self.reach as u64 * LOOK_NS).min(self.max_look_interval_ns))
    }

    /// The time at which all rings must be polled again.
    fn due(&self) -> u64 {
        self.last_look_ns.map_or(0, |looked| looked + self.effective_look_interval_ns())
    }

    /// Drains the rings that are due. Returns the fill rate of the busiest one in rings a second,
    /// if known.
    fn pass(&mut self, pass: Pass, out: &mut Outlet<'_>) -> Option<f64> {
        let Pass { now, .. } = pass;
        let all = pass.is_last || now + pass.shortest >= self.due();
        let is_first = self.last_look_ns.is_none();
        out.since = if all { self.last_look_ns.unwrap_or(now) } else { pass.last };
        let (since, since_busy) = (out.since, pass.last);
        let mut found = PassFindings { most: 0, rate: 0.0, since, since_busy, now };
        let overrun = out.overrun;
        if all {
            let is_sweep = pass.is_last || now >= self.last_sweep_ns + SWEEP_NS;
            if is_sweep {
                self.last_sweep_ns = now;
            }
            self.widen_reach();
            self.last_look_ns = Some(now);
            let end = if is_sweep { self.cursors.len() } else { self.reach };
            self.look(0..end, &mut found, out);
            self.forget_idle(now.saturating_sub(2 * self.effective_look_interval_ns()));
        } else {
            let busy = std::mem::take(&mut self.busy);
            self.look(busy.iter().copied(), &mut found, out);
            self.busy = busy;
        }
        self.is_unsure |= is_first && !self.open.is_empty();
        if found.most > 0 {
            self.findings.peak.fetch_max(found.most, Relaxed);
        }
        let slots = self.segment.geometry().slots();
        let undersized = out.overrun > overrun || (pass.hurried && found.most > slots / 8 * 7);
        if undersized && !self.findings.undersized.swap(true, Relaxed) {
            out.counters.tell_undersized();
        }
        // The time in which the frames of a first look were written is unknown.
        (!is_first).then(|| found.rate * 1e9 / slots as f64)
    }

    /// A thread takes the lowest free ring, so all rings above a never claimed ring were never
    /// claimed.
    fn widen_reach(&mut self) {
        let rings = self.cursors.len();
        while self.reach < rings && self.segment.ring(self.reach as u32).owner().epoch > 0 {
            self.reach += 1;
        }
    }

    /// Keeps only the busy rings that received frames after `since`.
    fn forget_idle(&mut self, since: u64) {
        let rings = &mut self.rings;
        self.busy.retain(|&number| {
            let Some(drain) = &mut rings[number] else { return false };
            drain.is_busy = drain.moved_ns > since;
            drain.is_busy
        });
    }

    /// Drains these rings. Most are idle, so the loop only reads cursors, which lets the memory
    /// accesses overlap.
    fn look(
        &mut self,
        rings: impl Iterator<Item = usize>,
        found: &mut PassFindings,
        out: &mut Outlet<'_>,
    ) {
        let mut moved = std::mem::take(&mut self.moved);
        let now = self.segment.cursors();
        moved.clear();
        moved.extend(rings.filter(|&number| now.tail(number) != self.cursors[number]));
        for &number in &moved {
            // A truncated segment holds bytes that no target wrote.
            if self.segment.truncated() {
                break;
            }
            self.take(number, found, out);
        }
        self.moved = moved;
    }

    fn take(&mut self, number: usize, found: &mut PassFindings, out: &mut Outlet<'_>) {
        let ring = self.segment.ring(number as u32);
        let place = RingPlace { segment: self.number, ring: number as u32 };
        let cursor = self.cursors[number];
        let marks = self.segment.is_own();
        let new = || Box::new(RingDrain::new(place, self.stamps.clone(), cursor, marks));
        let drain = self.rings[number].get_or_insert_with(new);
        let since = if drain.is_busy { found.since_busy } else { found.since };
        let passed = (found.now - since).max(1);
        let possible = passed.saturating_mul(FRAMES_PER_NS).saturating_add(HEAD_START);
        let Some(tail) = drain.check_cursor(ring, possible) else { return };
        let backlog = drain.backlog(tail);
        found.most = found.most.max(backlog);
        found.rate = found.rate.max(backlog as f64 / passed as f64);
        drain.moved_ns = found.now;
        if !std::mem::replace(&mut drain.is_busy, true) {
            self.busy.push(number);
        }
        drain.drain(ring, tail, out);
        self.cursors[number] = drain.next();
        self.findings.drain(number, self.cursors[number]);
        if let Some(since) = drain.open_since() {
            self.earliest = self.earliest.min(since);
            if !std::mem::replace(&mut drain.is_listed, true) {
                self.open.push(number);
            }
        }
    }

    /// Whether a frame in an open chunk may have been written before `late`.
    fn is_late(&mut self, late: u64) -> bool {
        if self.earliest > late {
            return false;
        }
        // Full chunks have been handed on in the meantime.
        let open = self.open.iter().filter_map(|&number| self.rings[number].as_ref());
        self.earliest = open.filter_map(|drain| drain.open_since()).min().unwrap_or(u64::MAX);
        self.earliest <= late
    }

    /// All frames that were written before this time have been handed on.
    fn upto(&self) -> u64 {
        match self.last_look_ns {
            Some(looked) if !self.is_unsure => looked.min(self.earliest),
            _ => 0,
        }
    }

    /// Hands on every chunk.
    fn flush(&mut self, out: &mut Outlet<'_>) {
        for number in self.open.drain(..) {
            if let Some(drain) = &mut self.rings[number] {
                drain.flush(out);
                drain.is_listed = false;
            }
        }
        self.earliest = u64::MAX;
        self.is_unsure = false;
    }

    /// Hands on everything that is left. Nothing more comes.
    fn close(&mut self, out: &mut Outlet<'_>) {
        self.flush(out);
        let closings = self.rings.iter().flatten().map(|drain| drain.closing());
        out.lanes.gone(self.number, &closings.collect::<Vec<_>>());
    }
}

/// The result of a pass.
struct PassFindings {
    /// The largest number of frames found in a ring.
    most: u64,
    /// Highest rate of a ring, in frames per nanosecond, regardless of its size.
    rate: f64,
    /// The time of the previous poll of these rings: the busy ones, or all.
    since: u64,
    since_busy: u64,
    now: u64,
}

/// The state of the drain thread.
pub(crate) struct Drain {
    pub changes: Receiver<FeedChange<DrainedSegment>>,
    pub lanes: Lanes,
    pub counters: Arc<Counters>,
    /// Set once the gates are closed: the thread makes one more pass and ends.
    pub stop: Arc<AtomicBool>,
    /// Unparked when a ring has been claimed.
    pub keeper: Thread,
    pub options: ListenerOptions,
}

impl Drain {
    /// Adds new segments to `feeds`. Returns the numbers of those that are retired.
    fn take_changes(&self, feeds: &mut Vec<DrainedSegment>) -> Vec<usize> {
        let mut retired = Vec::new();
        for change in self.changes.try_iter() {
            match change {
                FeedChange::Add(mut feed) => {
                    let slots = feed.segment.geometry().slots();
                    let ns = |interval: Duration| interval.as_nanos() as u64;
                    feed.look_interval_ns = ns(longest(slots, &self.options));
                    feed.max_look_interval_ns = ns(longest_of_many(slots, &self.options));
                    feeds.push(feed);
                }
                FeedChange::Retire(number) => retired.push(number),
            }
        }
        retired
    }

    /// Drains until it is stopped. After that, it copies each ring only up to the cursor that it
    /// finds, so that it ends.
    pub fn run(mut self) {
        // Sleeps of half a millisecond would otherwise take 50 µs longer. A failure has no other
        // effect.
        let _ = nix::sys::prctl::set_timerslack(1);
        let options = &self.options;
        let mut feeds: Vec<DrainedSegment> = Vec::new();
        let mut aside = Vec::new();
        let (mut pace, mut claims) = (Pace::new(options), Claims::default());
        let age = options.chunk_age.as_nanos() as u64;
        let shortest = options.shortest.as_nanos() as u64;
        let mut last = ppt_now::monotonic();
        let mut hurried = false;
        loop {
            let is_last = self.stop.load(Acquire);
            let retired = self.take_changes(&mut feeds);
            let now = ppt_now::monotonic();
            let since = now - std::mem::replace(&mut last, now);
            let open: usize = feeds.iter().map(|feed| feed.open.len()).sum();
            let mut out = Outlet {
                lanes: &mut self.lanes,
                counters: &self.counters,
                now,
                since: now,
                overrun: 0,
                full: if open <= FEW_CHUNKS { LARGE_CHUNK } else { SMALL_CHUNK },
                pushed: false,
                claims: 0,
                block: BLOCK,
                aside: std::mem::take(&mut aside),
            };
            let pass = Pass { now, last: now - since, shortest, hurried, is_last };
            let (rate, is_first) = pass_all(&mut feeds, pass, &retired, &mut out);
            if is_last || !retired.is_empty() {
                close(&mut feeds, is_last, &retired, &mut out);
            }
            let since = Duration::from_nanos(since);
            let due = feeds.iter().map(DrainedSegment::due).min();
            let longest = due.map_or(options.chunk_age, |due| Duration::from_nanos(due - now));
            let sleep = claims.next(out.claims, since).min(pace.next(rate, since, longest));
            // The time in which the frames of a first look were written is unknown: come back soon.
            let sleep = if is_first { pace.first() } else { sleep };
            hurried = pace.is_shortest(sleep);
            // A chunk with an older frame would be late at the next pass.
            let late = (now + sleep.as_nanos() as u64 + WRITE_NS).saturating_sub(age);
            // A sink that is behind gets no more partial chunks: full chunks use the least memory.
            let waits = open <= FEW_CHUNKS && out.lanes.are_behind();
            if !waits {
                flush_late(&mut feeds, late, &mut out);
            }
            out.lanes.upto(feeds.iter().map(DrainedSegment::upto).min().unwrap_or(now));
            if out.pushed {
                out.lanes.notify();
            }
            if out.claims > 0 {
                self.keeper.unpark();
            }
            if is_last {
                return;
            }
            aside = out.aside;
            let took = ppt_now::monotonic() - now;
            let rest = (sleep.as_nanos() as u64).saturating_sub(took).max(BREATH_NS);
            // Unparked on changes and at the end.
            thread::park_timeout(Duration::from_nanos(rest));
        }
    }
}

/// Drains the rings that are due, and all rings of `retired` segments. Returns the fill rate of the
/// busiest ring in rings a second, and whether a segment got its first look.
fn pass_all(
    feeds: &mut [DrainedSegment],
    pass: Pass,
    retired: &[usize],
    out: &mut Outlet<'_>,
) -> (f64, bool) {
    let (mut rate, mut is_first) = (0.0f64, false);
    for feed in feeds {
        let is_last = pass.is_last || retired.contains(&feed.number);
        match feed.pass(Pass { is_last, ..pass }, out) {
            Some(found) => rate = rate.max(found),
            None => is_first = true,
        }
    }
    (rate, is_first)
}

/// Closes and removes the `retired` segments, or all.
fn close(feeds: &mut Vec<DrainedSegment>, all: bool, retired: &[usize], out: &mut Outlet<'_>) {
    feeds.retain_mut(|feed| {
        let goes = all || retired.contains(&feed.number);
        if goes {
            feed.close(out);
        }
        !goes
    });
}

/// Hands on every chunk if one may have a frame from before `late`: waking the disk thread costs the
/// same for many chunks as for one.
fn flush_late(feeds: &mut [DrainedSegment], late: u64, out: &mut Outlet<'_>) {
    if feeds.iter_mut().any(|feed| feed.is_late(late)) {
        feeds.iter_mut().for_each(|feed| feed.flush(out));
    }
}
