//! Spans while the capture runs: the numbers that began and ended, and their durations.
//!
//! Rings are drained one after the other, so begins and ends arrive out of order. They wait in a
//! window until their order is known, and are then paired as `<frame>_spans` pairs them. The window
//! is bounded; the table is exact.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};

use ppt_capture::Stamps;
use ppt_capture::columns::{Time, TimeScale};
use ppt_capture::frame_dsl::role::{Across, EDGES};
use ppt_capture::frame_dsl::schema::{Frame, Schema};

use crate::key_field::KeyField;
use crate::rate::Rate;
use crate::recent_numbers::RecentNumbers;

/// The most open begins per kind of frames. The oldest ones are dropped.
const MAX_OPEN: usize = 1 << 16;
/// The most begins and ends per kind of frames that wait for their order. Beyond it, the earliest are
/// paired without waiting.
const MAX_PENDING: usize = 1 << 17;
/// The time that a begin or an end waits in ns. All rings are drained within it.
const WINDOW: u64 = 1_000_000_000;

/// The spans of a kind of frames.
pub(crate) struct SpanPairs {
    reader: EdgeReader,
    /// Begins and ends with an order that is not known yet, the earliest first.
    pending: BinaryHeap<Reverse<SpanEdge>>,
    /// The number of begins and ends that arrived.
    arrived: u64,
    /// Begins without an end.
    begins: OpenBegins,
    /// Counts of closed spans.
    pub rate: Rate,
    /// Durations of closed spans in ns.
    pub lengths: RecentNumbers,
}

/// The begin or end of a span. Those with equal times keep their order of arrival.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct SpanEdge {
    /// The time of the frame by its clock, in ns.
    at: i64,
    /// The sequence number of its arrival.
    number: u64,
    is_begin: bool,
    key: Vec<u8>,
    /// The time at which the frame was drained, in ns.
    drained: u64,
}

/// Reads the key, the edge and the time of a frame.
struct EdgeReader {
    keys: Vec<KeyField>,
    /// The offset of the edge field, and its length.
    mark: (usize, usize),
    /// The value of the edge field of a begin.
    begin: u64,
    at: Time,
    within_process: bool,
    fifo: bool,
}

/// The fields of one frame that make it a begin or an end.
struct EdgeFields {
    /// The process, if spans do not cross processes, and all key fields.
    key: Vec<u8>,
    is_begin: bool,
    /// The time of the frame by its clock, in ns.
    at: i64,
}

impl SpanPairs {
    /// None if the frames are not spans, or have no time.
    pub fn new(schema: &Schema, frame: &Frame, period: Option<u64>) -> Option<SpanPairs> {
        let span = frame.span()?;
        let keys = frame.fields.iter().filter(|field| field.is_key());
        let mark = frame.fields.iter().find(|field| field.is_mark())?;
        let steps = frame.steps(schema);
        let (name, usual) = EDGES[0];
        let begin = steps.iter().find(|step| step.0 == name).map_or(usual, |step| step.1);
        let reader = EdgeReader {
            keys: keys.map(|field| KeyField::new(schema, field)).collect(),
            mark: (mark.offset as usize, mark.ty.size(schema) as usize),
            begin: u64::try_from(begin).ok()?,
            at: Time::from_field(frame.at()?)?,
            within_process: span.across == Across::Process,
            fifo: span.fifo,
        };
        let lengths = RecentNumbers::new(period);
        let (pending, begins) = (BinaryHeap::new(), OpenBegins::default());
        Some(SpanPairs { reader, pending, arrived: 0, begins, rate: Rate::default(), lengths })
    }

    /// Adds frames of `process`, drained at `now`.
    pub fn add(&mut self, rows: &[&[u8]], process: u64, now: u64, stamps: &Stamps<'_>) {
        for row in rows {
            let Some(EdgeFields { key, is_begin, at }) = self.reader.read(row, process, stamps)
            else {
                continue;
            };
            let number = self.arrived;
            self.arrived += 1;
            self.pending.push(Reverse(SpanEdge { at, number, is_begin, key, drained: now }));
            if self.pending.len() > MAX_PENDING {
                self.pair_first(now);
            }
        }
    }

    /// Pairs begins and ends that have waited long enough at `now`.
    pub fn advance(&mut self, now: u64) {
        let has_waited = |edge: &SpanEdge| edge.drained.saturating_add(WINDOW) <= now;
        while let Some(Reverse(first)) = self.pending.peek()
            && has_waited(first)
        {
            self.pair_first(now);
        }
    }

    /// Pairs all begins and ends that still wait, after the last frames arrived at `now`.
    pub fn finish(&mut self, now: u64) {
        while !self.pending.is_empty() {
            self.pair_first(now);
        }
    }

    /// Pairs the earliest begin or end that waits.
    fn pair_first(&mut self, now: u64) {
        let Some(Reverse(SpanEdge { at, is_begin, key, .. })) = self.pending.pop() else { return };
        if is_begin {
            return self.begins.put(key, at);
        }
        // An end without a begin is not counted.
        if let Some(begin) = self.begins.take_begin(&key, |begin| begin <= at, self.reader.fifo) {
            self.rate.add(now, 1);
            self.lengths.period_at(now).add(at.saturating_sub(begin) as f64);
        }
    }

    /// The number of open spans.
    pub fn open(&self) -> u64 {
        self.begins.count as u64
    }
}

impl EdgeReader {
    /// None if the frame is too short, or its time is not known.
    fn read(&self, row: &[u8], process: u64, stamps: &Stamps<'_>) -> Option<EdgeFields> {
        let mut key = if self.within_process { process.to_le_bytes().to_vec() } else { Vec::new() };
        for field in &self.keys {
            let value = field.value(row)?;
            key.extend_from_slice(value);
            // Zeros keep adjacent texts distinct.
            key.resize(key.len() + field.len - value.len(), 0);
        }
        let (at, len) = self.mark;
        let mut mark = [0; 8];
        mark.get_mut(..len)?.copy_from_slice(row.get(at..at + len)?);
        let at = match (self.at.scale(), self.at.word(row)) {
            (_, 0) => None,
            (TimeScale::Ticks, word) => stamps.epoch(word),
            (TimeScale::Ns(_), word) => i64::try_from(word).ok(),
        };
        Some(EdgeFields { key, is_begin: u64::from_le_bytes(mark) == self.begin, at: at? })
    }
}

/// Begins of spans without an end.
#[derive(Default)]
struct OpenBegins {
    /// The times of the begins of a key, earliest first.
    times: HashMap<Vec<u8>, Vec<i64>>,
    /// The key and the time of each begin, in order of time. Some of them are closed.
    order: VecDeque<(Vec<u8>, i64)>,
    /// The number of open begins.
    count: usize,
}

impl OpenBegins {
    fn put(&mut self, key: Vec<u8>, at: i64) {
        let times = self.times.entry(key.clone()).or_default();
        times.insert(times.partition_point(|time| *time <= at), at);
        self.count += 1;
        self.order.push_back((key, at));
        while self.count > MAX_OPEN {
            self.drop_first();
        }
        if self.order.len() > 2 * MAX_OPEN {
            self.drop_closed();
        }
    }

    /// Removes closed begins from the order.
    fn drop_closed(&mut self) {
        let mut open: HashMap<(&[u8], i64), usize> = HashMap::new();
        for (key, times) in &self.times {
            times.iter().for_each(|at| *open.entry((key.as_slice(), *at)).or_default() += 1);
        }
        let mut is_open = Vec::new();
        for (key, at) in self.order.iter().rev() {
            let count = open.get_mut(&(key.as_slice(), *at)).filter(|count| **count > 0);
            is_open.push(count.map(|count| *count -= 1).is_some());
        }
        let mut is_open = is_open.into_iter().rev();
        self.order.retain(|_| is_open.next().unwrap_or(false));
    }

    /// Removes the first begin of a key whose time `fits`, or the last one.
    fn take_begin(&mut self, key: &[u8], fits: impl Fn(i64) -> bool, first: bool) -> Option<i64> {
        let times = self.times.get_mut(key)?;
        let at = if first {
            times.iter().position(|time| fits(*time))
        } else {
            times.iter().rposition(|time| fits(*time))
        };
        let time = times.remove(at?);
        if times.is_empty() {
            self.times.remove(key);
        }
        self.count -= 1;
        Some(time)
    }

    /// Removes the earliest begin.
    fn drop_first(&mut self) {
        if let Some((key, at)) = self.order.pop_front() {
            self.take_begin(&key, |time| time == at, true);
        } else {
            // Without an order, no begin is open.
            self.times.clear();
            self.count = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ppt_capture::{ClockTable, Process};

    const SCHEMA: &str = r#"{"v":1,"buffer":"net","slots":16,"stride":24,"frames":[
        {"name":"request","kind":"span","size":24,"across":"process","fields":[
        {"name":"id","type":"u8","offset":10,"key":true},
        {"name":"edge","type":"enum","enum":"Edge","offset":11,"edge":true},
        {"name":"at","type":"ns","clock":"realtime","offset":16,"at":true,"stamp":true}]}],
        "enums":[{"name":"Edge","type":"u8","values":[["begin",0],["end",1]]}]}"#;

    fn pairs() -> SpanPairs {
        let schema = Schema::from_json(SCHEMA.as_bytes()).unwrap();
        SpanPairs::new(&schema, &schema.frames[0], None).unwrap()
    }

    /// Adds a chunk that was drained at `now`: begins (0) and ends (1), each with its time.
    fn drain(pairs: &mut SpanPairs, now: u64, halves: &[(u8, u64)]) {
        let row = |&(edge, at): &(u8, u64)| {
            let mut row = vec![0; 24];
            (row[10], row[11]) = (7, edge);
            row[16..].copy_from_slice(&at.to_le_bytes());
            row
        };
        let rows: Vec<Vec<u8>> = halves.iter().map(row).collect();
        let rows: Vec<&[u8]> = rows.iter().map(Vec::as_slice).collect();
        let clocks = ClockTable::default();
        let stamps = Stamps::new(&clocks, now, Process::default().time_namespace());
        pairs.add(&rows, 1, now, &stamps);
    }

    fn lengths(pairs: &mut SpanPairs, now: u64) -> (u64, f64) {
        (pairs.rate.total(), pairs.lengths.period_at(now).max.unwrap_or_default())
    }

    #[test]
    fn halves_are_paired_by_their_times_and_not_by_the_order_of_the_drain() {
        let mut pairs = pairs();
        // Nested spans: the ring with the outer begin is drained first.
        drain(&mut pairs, 100, &[(0, 1), (1, 20)]);
        drain(&mut pairs, 100, &[(0, 10), (1, 30)]);
        pairs.advance(99 + WINDOW);
        assert_eq!(pairs.rate.total(), 0, "the order is not known yet");
        pairs.advance(100 + WINDOW);
        assert_eq!(lengths(&mut pairs, 100 + WINDOW), (2, 29.0));
        assert_eq!(pairs.open(), 0);
    }

    #[test]
    fn the_end_of_a_capture_pairs_what_waits() {
        let mut pairs = pairs();
        drain(&mut pairs, 100, &[(1, 20), (0, 40)]);
        drain(&mut pairs, 100, &[(0, 10)]);
        pairs.finish(100);
        assert_eq!(lengths(&mut pairs, 100), (1, 10.0));
        assert_eq!(pairs.open(), 1);
    }

    #[test]
    fn the_window_is_bounded() {
        let mut pairs = pairs();
        let begins: Vec<(u8, u64)> = (0..MAX_PENDING as u64 + 10).map(|at| (0, at + 1)).collect();
        drain(&mut pairs, 1, &begins);
        assert_eq!((pairs.pending.len(), pairs.open()), (MAX_PENDING, 10));
        pairs.finish(1);
        assert_eq!(pairs.open(), MAX_OPEN as u64, "the oldest begins are forgotten");
    }

    #[test]
    fn the_oldest_are_forgotten_where_too_many_wait() {
        let mut begins = OpenBegins::default();
        for at in 0..MAX_OPEN as i64 + 10 {
            begins.put(at.to_le_bytes().to_vec(), at);
        }
        assert_eq!((begins.count, begins.times.len()), (MAX_OPEN, MAX_OPEN));
        assert_eq!(begins.take_begin(&9i64.to_le_bytes(), |_| true, true), None);
        assert_eq!(begins.take_begin(&10i64.to_le_bytes(), |_| true, true), Some(10));
    }

    #[test]
    fn the_order_does_not_grow_with_what_was_paired() {
        let mut begins = OpenBegins::default();
        begins.put(b"stays".to_vec(), 7);
        for at in 0..5 * MAX_OPEN as i64 {
            begins.put(b"key".to_vec(), at);
            assert_eq!(begins.take_begin(b"key", |time| time <= at, false), Some(at));
        }
        assert!(begins.order.len() <= 2 * MAX_OPEN, "{}", begins.order.len());
        assert_eq!(begins.count, 1);
        assert_eq!(begins.take_begin(b"stays", |_| true, true), Some(7));
    }
}
