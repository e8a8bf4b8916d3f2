//! The recorder's memory, in order of arrival.
//!
//! Windows that wait to be written share it. The memory is counted until its last user releases it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use ppt_capture::{ClockReading, Dropped, Flip, Gap, Lost, Modules};

use crate::buffer::Pool;
use crate::cells::Adds;
use crate::chunk::Frames;
use crate::masks::{Disabled, bytes};
use crate::thread_names::{CurrentNames, NameChanges};

/// Overhead of an item in bytes, in addition to its content: its queue entry and the allocator's
/// overhead of a few small blocks.
const ITEM: usize = 256;

/// Number of bytes in use.
#[derive(Debug, Default)]
pub(crate) struct HeldMemory {
    now: AtomicUsize,
    most: AtomicUsize,
}

impl HeldMemory {
    pub fn now(&self) -> usize {
        self.now.load(Relaxed)
    }

    pub fn most(&self) -> usize {
        self.most.load(Relaxed)
    }
}

/// Counts the memory of an item until its last copy is dropped.
#[derive(Debug)]
pub(crate) struct Weight {
    bytes: usize,
    held: Arc<HeldMemory>,
    pool: Arc<Pool>,
}

impl Drop for Weight {
    fn drop(&mut self) {
        self.held.now.fetch_sub(self.bytes, Relaxed);
    }
}

/// The owner of frames: their feed, and the nonce of their segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SegmentPlace {
    pub feed: usize,
    pub nonce: u64,
    /// Bytes from one frame to the next.
    pub stride: u32,
}

/// Values of cells: by row, then by cell.
pub(crate) type CellValues = BTreeMap<Option<u32>, BTreeMap<u32, u64>>;

/// An arrived item.
#[derive(Debug, Clone)]
pub(crate) enum Arrival {
    Frames {
        place: SegmentPlace,
        frames: Frames,
        lost_before: Lost,
    },
    /// Lost at the end of a ring.
    Lost {
        place: SegmentPlace,
        ring: u32,
        first_seq: u64,
        lost: Lost,
    },
    /// Frames of earlier sessions. The window assigns the source number.
    Gap(usize, Gap),
    Clocks(Arc<[ClockReading]>),
    Cells(Arc<CellsRead>),
    /// Changes of the masks of a feed's segment.
    Masks(usize, Arc<Flip>),
    /// Names of threads of a feed's process.
    Threads(usize, Arc<NameChanges>),
    /// The code mappings of a feed's process.
    Modules(usize, Modules),
    /// Number of frames that a feed has dropped so far.
    Dropped(usize, Dropped),
    Nothing,
}

/// A reading of cells.
#[derive(Debug)]
pub(crate) struct CellsRead {
    pub place: SegmentPlace,
    pub mono_ns: u64,
    /// Adds of the feed that were lost so far because no segment was mapped.
    pub not_mapped: u64,
    pub rows: Vec<Adds>,
}

impl Arrival {
    /// Bytes of memory that it uses.
    fn weight(&self) -> usize {
        ITEM + match self {
            Self::Frames { frames, .. } => frames.weight(),
            Self::Clocks(readings) => size_of_val(&**readings),
            Self::Cells(read) => read.rows.iter().map(|row| 64 + 16 * row.values.len()).sum(),
            Self::Masks(_, flip) => bytes(flip),
            Self::Threads(_, changes) => changes.bytes(),
            Self::Modules(_, modules) => modules.payload_len(),
            Self::Lost { .. } | Self::Gap(..) | Self::Dropped(..) | Self::Nothing => 0,
        }
    }

    /// The feed to which it belongs.
    pub fn feed(&self) -> Option<usize> {
        match self {
            Self::Frames { place, .. } | Self::Lost { place, .. } => Some(place.feed),
            Self::Cells(read) => Some(read.place.feed),
            Self::Gap(feed, _)
            | Self::Dropped(feed, _)
            | Self::Masks(feed, _)
            | Self::Threads(feed, _)
            | Self::Modules(feed, _) => Some(*feed),
            Self::Clocks(_) | Self::Nothing => None,
        }
    }

    fn accounts_for_frames(&self) -> bool {
        matches!(self, Self::Frames { .. } | Self::Lost { .. })
    }
}

/// An item with its time of arrival.
#[derive(Debug, Clone)]
pub(crate) struct TimedArrival {
    /// CLOCK_MONOTONIC, ns. All frames in the item were written before.
    pub come_ns: u64,
    pub entry: Arrival,
    weight: Arc<Weight>,
}

impl Drop for TimedArrival {
    fn drop(&mut self) {
        if let Arrival::Frames { frames, .. } = std::mem::replace(&mut self.entry, Arrival::Nothing)
        {
            frames.give_back(&self.weight.pool);
        }
    }
}

/// The state at the beginning of a window, from earlier items.
#[derive(Debug, Clone, Default)]
pub(crate) struct Base {
    /// The last readings of the clocks.
    pub clocks: Option<Arc<[ClockReading]>>,
    pub cells: BTreeMap<SegmentPlace, CellValues>,
    pub not_mapped: BTreeMap<usize, u64>,
    pub dropped: BTreeMap<usize, Dropped>,
    pub disabled: BTreeMap<usize, Disabled>,
    pub names: BTreeMap<usize, CurrentNames>,
    pub modules: BTreeMap<usize, Modules>,
}

impl Base {
    fn take(&mut self, entry: &Arrival) {
        match entry {
            Arrival::Clocks(readings) => self.clocks = Some(readings.clone()),
            Arrival::Cells(read) => {
                self.not_mapped.insert(read.place.feed, read.not_mapped);
                let rows = self.cells.entry(read.place).or_default();
                for Adds { ring, values, .. } in &read.rows {
                    rows.entry(*ring).or_default().extend(values.iter().copied());
                }
            }
            Arrival::Masks(feed, flip) => self.disabled.entry(*feed).or_default().take(flip),
            Arrival::Threads(feed, changes) => self.names.entry(*feed).or_default().take(changes),
            Arrival::Modules(feed, modules) => _ = self.modules.insert(*feed, modules.clone()),
            Arrival::Dropped(feed, dropped) => _ = self.dropped.insert(*feed, *dropped),
            Arrival::Frames { .. } | Arrival::Lost { .. } | Arrival::Gap(..) | Arrival::Nothing => {
            }
        }
    }

    fn forget(&mut self, feed: usize) {
        self.cells.retain(|place, _| place.feed != feed);
        self.not_mapped.remove(&feed);
        self.dropped.remove(&feed);
        self.disabled.remove(&feed);
        self.names.remove(&feed);
        self.modules.remove(&feed);
    }
}

/// The stored items: recent ones, and those that open windows need.
#[derive(Debug)]
pub(crate) struct Store {
    items: VecDeque<TimedArrival>,
    base: Base,
    /// Every frame that was drained since this time is stored.
    whole_since: u64,
    /// Whether items were removed early for lack of room.
    crowded: bool,
    limit: usize,
    held: Arc<HeldMemory>,
    pool: Arc<Pool>,
}

impl Store {
    /// An empty store at time `now`, of at most `limit` bytes.
    pub fn new(now: u64, limit: usize, held: Arc<HeldMemory>, pool: Arc<Pool>) -> Self {
        let (items, base) = Default::default();
        Self { items, base, whole_since: now, crowded: false, limit, held, pool }
    }

    /// Whether there is room for `entry`.
    pub fn has_room(&self, entry: &Arrival) -> bool {
        self.held.now() + entry.weight() <= self.limit
    }

    /// Time of arrival of the oldest item.
    pub fn oldest(&self) -> Option<u64> {
        self.items.front().map(|item| item.come_ns)
    }

    /// Adds an entry that arrived at `come_ns`. The caller has made room for it.
    pub fn push(&mut self, come_ns: u64, entry: Arrival) {
        let weight = Arc::new(self.weigh(entry.weight()));
        self.items.push_back(TimedArrival { come_ns, entry, weight });
    }

    /// Counts `bytes` as long as the result lives.
    pub fn weigh(&self, bytes: usize) -> Weight {
        let now = self.held.now.fetch_add(bytes, Relaxed) + bytes;
        self.held.most.fetch_max(now, Relaxed);
        Weight { bytes, held: self.held.clone(), pool: self.pool.clone() }
    }

    /// Removes items that arrived before `before`.
    pub fn forget_before(&mut self, before: u64) {
        while self.oldest().is_some_and(|oldest| oldest < before) {
            self.pop(false);
        }
    }

    /// Removes the oldest item to make room.
    pub fn forget_oldest(&mut self) {
        self.pop(true);
    }

    fn pop(&mut self, for_room: bool) {
        let Some(item) = self.items.pop_front() else { return };
        self.base.take(&item.entry);
        if item.entry.accounts_for_frames() {
            self.whole_since = self.whole_since.max(item.come_ns);
            self.crowded |= for_room;
        }
        if !for_room {
            self.crowded = false;
        }
    }

    /// Records that frames that arrived at `come_ns` had no room.
    pub fn missed(&mut self, come_ns: u64) {
        self.whole_since = self.whole_since.max(come_ns);
        self.crowded = true;
    }

    /// The time since which every frame is stored, and whether lack of room is the reason for it.
    pub fn whole_since(&self) -> (u64, bool) {
        (self.whole_since, self.crowded)
    }

    /// All items that arrived since `from_ns`, and the state at that time.
    pub fn since(&self, from_ns: u64) -> (Base, Vec<TimedArrival>) {
        let first = self.items.partition_point(|item| item.come_ns < from_ns);
        let mut base = self.base.clone();
        self.items.range(..first).for_each(|arrival| base.take(&arrival.entry));
        (base, self.items.range(first..).cloned().collect())
    }

    /// Whether an item of `feed` is stored.
    pub fn has(&self, feed: usize) -> bool {
        self.items.iter().any(|item| item.entry.feed() == Some(feed))
    }

    /// Forgets the state of a feed that has no stored item any more.
    pub fn forget(&mut self, feed: usize) {
        self.base.forget(feed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buffer::WordBuffer;
    use crate::chunk::Chunk;

    const PLACE: SegmentPlace = SegmentPlace { feed: 0, nonce: 7, stride: 16 };

    fn frames(bytes: usize) -> Arrival {
        let chunk = Chunk { count: 1, frames: WordBuffer::new(bytes), ..Chunk::default() };
        Arrival::Frames { place: PLACE, frames: chunk.into(), lost_before: Lost::default() }
    }

    fn store(limit: usize) -> Store {
        Store::new(5, limit, Arc::default(), Arc::default())
    }

    #[test]
    fn memory_counts_until_the_last_window_has_let_it_go() {
        let mut store = store(10_000);
        store.push(10, frames(4000));
        store.push(20, frames(4000));
        assert!(!store.has_room(&frames(4000)) && store.has_room(&frames(100)));
        let full = store.held.now();
        let (_, window) = store.since(0);
        store.forget_oldest();
        assert_eq!((store.held.now(), store.oldest()), (full, Some(20)), "the window has it");
        assert_eq!(store.whole_since(), (10, true));
        drop(window);
        assert!(store.held.now() < full && store.has_room(&frames(4000)));
        store.forget_before(21);
        assert_eq!((store.held.now(), store.held.most()), (0, full));
        assert_eq!(store.whole_since(), (20, false), "nothing went before its time");
    }

    #[test]
    fn a_window_begins_with_what_was_known_before() {
        let mut store = store(1 << 20);
        let cells = |values: &[(u32, u64)]| {
            let adds = Adds { ring: Some(1), tid: 9, values: values.to_vec() };
            let read = CellsRead { place: PLACE, mono_ns: 0, not_mapped: 3, rows: vec![adds] };
            Arrival::Cells(Arc::new(read))
        };
        let dropped = |nested| Arrival::Dropped(0, Dropped { nested, ..Dropped::default() });
        store.push(10, cells(&[(0, 5), (2, 1)]));
        store.push(11, dropped(4));
        store.push(12, cells(&[(0, 6)]));
        store.push(13, dropped(9));
        store.forget_before(11);
        let known = |from| {
            let (base, items) = store.since(from);
            let row = base.cells.get(&PLACE).and_then(|rows| rows.get(&Some(1)).cloned());
            let dropped = base.dropped.get(&0).map_or(0, |dropped| dropped.nested);
            (row.unwrap_or_default().into_iter().collect::<Vec<_>>(), dropped, items.len())
        };
        assert_eq!(known(0), (vec![(0, 5), (2, 1)], 0, 3));
        assert_eq!(known(12), (vec![(0, 5), (2, 1)], 4, 2));
        assert_eq!(known(13), (vec![(0, 6), (2, 1)], 4, 1));
        assert!(store.has(0) && !store.has(1));
        store.forget_before(99);
        store.forget(0);
        assert!(store.base.cells.is_empty() && store.base.dropped.is_empty());
        assert_eq!(store.whole_since(), (5, false), "no frame went");
    }
}
