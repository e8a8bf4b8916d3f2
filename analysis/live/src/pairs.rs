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
use ppt_capture::frame_dsl::schema::{FieldType, Frame, Schema};

use crate::rate::Rate;
use crate::recent::Recent;

/// The most open begins per frame type; the oldest ones are dropped.
const MAX_OPEN: usize = 1 << 16;
/// The most begins and ends per frame type that wait for their order. Beyond it, the earliest are
/// paired without waiting.
const MOST_PENDING: usize = 1 << 17;
/// The time that a begin or an end waits, in ns: all rings have been drained by then.
const WINDOW: u64 = 1_000_000_000;

/// The spans of a frame type.
pub(crate) struct Pairs {
    form: PairFields,
    /// Begins and ends with an order that is not known yet, the earliest first.
    pending: BinaryHeap<Reverse<SpanEdge>>,
    /// The number of arrivals.
    arrived: u64,
    /// Open begins, by process and key.
    begins: Waiting,
    /// The number of closed spans.
    pub rate: Rate,
    pub lengths: Recent,
}

/// The begin or end of a span. Those with equal times keep their order of arrival.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct SpanEdge {
    /// Time by its clock, in ns.
    at: i64,
    /// Its sequence number of arrival.
    number: u64,
    is_begin: bool,
    key: Vec<u8>,
    /// The time it was drained, in ns.
    drained: u64,
}

/// How to read the key, the edge and the time of a frame.
struct PairFields {
    /// Their offsets and lengths, and whether a 0 byte ends them.
    keys: Vec<(usize, usize, bool)>,
    mark: (usize, usize),
    begin: u64,
    at: Time,
    within_process: bool,
    fifo: bool,
}

impl Pairs {
    /// None if the frames are not spans, or have no time.
    pub fn new(schema: &Schema, frame: &Frame, stretch: Option<u64>) -> Option<Pairs> {
        let span = frame.span()?;
        let key = |field: &&ppt_capture::frame_dsl::schema::Field| {
            let is_text = matches!(field.ty, FieldType::Char { .. });
            (field.offset as usize, field.ty.size(schema) as usize, is_text)
        };
        let keys = frame.fields.iter().filter(|field| field.is_key());
        let mark = frame.fields.iter().find(|field| field.is_mark())?;
        let steps = frame.steps(schema);
        let (name, usual) = EDGES[0];
        let begin = steps.iter().find(|step| step.0 == name).map_or(usual, |step| step.1);
        let form = PairFields {
            keys: keys.map(|field| key(&field)).collect(),
            mark: (mark.offset as usize, mark.ty.size(schema) as usize),
            begin: u64::try_from(begin).ok()?,
            at: Time::from_field(frame.at()?)?,
            within_process: span.across == Across::Process,
            fifo: span.fifo,
        };
        let lengths = Recent::new(stretch);
        let (pending, begins) = (BinaryHeap::new(), Waiting::default());
        Some(Pairs { form, pending, arrived: 0, begins, rate: Rate::default(), lengths })
    }

    /// Adds frames of `process`, drained at `now`.
    pub fn add(&mut self, rows: &[&[u8]], process: u64, now: u64, stamps: &Stamps<'_>) {
        for row in rows {
            let Some((key, is_begin, at)) = self.form.read(row, process, stamps) else { continue };
            let number = self.arrived;
            self.arrived += 1;
            self.pending.push(Reverse(SpanEdge { at, number, is_begin, key, drained: now }));
            if self.pending.len() > MOST_PENDING {
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

    /// The last frames have arrived, at `now`: pairs those that still wait.
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
        // An end without a begin belongs to no span that could be counted.
        if let Some(begin) = self.begins.take_begin(&key, |begin| begin <= at, self.form.fifo) {
            self.rate.add(now, 1);
            self.lengths.at(now).add(at.saturating_sub(begin) as f64);
        }
    }

    /// The number of open spans.
    pub fn open(&self) -> u64 {
        self.begins.count as u64
    }
}

impl PairFields {
    fn read(&self, row: &[u8], process: u64, stamps: &Stamps<'_>) -> Option<(Vec<u8>, bool, i64)> {
        let mut key = if self.within_process { process.to_le_bytes().to_vec() } else { Vec::new() };
        for &(at, len, is_text) in &self.keys {
            let bytes = row.get(at..at + len)?;
            let end = bytes.iter().position(|byte| *byte == 0).filter(|_| is_text).unwrap_or(len);
            key.extend_from_slice(&bytes[..end]);
            // A terminator keeps adjacent texts distinct.
            key.resize(key.len() + len - end, 0);
        }
        let (at, len) = self.mark;
        let mut mark = [0; 8];
        mark.get_mut(..len)?.copy_from_slice(row.get(at..at + len)?);
        let at = match (self.at.scale(), self.at.word(row)) {
            (_, 0) => None,
            (TimeScale::Ticks, word) => stamps.epoch(word),
            (TimeScale::Ns(_), word) => i64::try_from(word).ok(),
        };
        Some((key, u64::from_le_bytes(mark) == self.begin, at?))
    }
}

/// Begins of spans, by key.
#[derive(Default)]
struct Waiting {
    all: HashMap<Vec<u8>, Vec<i64>>,
    /// In order of time: key, time.
    order: VecDeque<(Vec<u8>, i64)>,
    count: usize,
}

impl Waiting {
    fn put(&mut self, key: Vec<u8>, at: i64) {
        let times = self.all.entry(key.clone()).or_default();
        times.insert(times.partition_point(|time| *time <= at), at);
        self.count += 1;
        self.order.push_back((key, at));
        while self.count > MAX_OPEN {
            self.forget_first();
        }
        // Closed spans remain in this order.
        if self.order.len() > 2 * MAX_OPEN {
            let all = &self.all;
            let mut left: HashMap<(&[u8], i64), usize> = HashMap::new();
            for (key, times) in all {
                times.iter().for_each(|at| *left.entry((key.as_slice(), *at)).or_default() += 1);
            }
            let mut keep = Vec::new();
            for (key, at) in self.order.iter().rev() {
                let count = left.get_mut(&(key.as_slice(), *at)).filter(|index| **index > 0);
                keep.push(count.map(|count| *count -= 1).is_some());
            }
            let mut keep = keep.into_iter().rev();
            self.order.retain(|_| keep.next().unwrap_or(false));
        }
    }

    /// The first match, or the last.
    fn take_begin(&mut self, key: &[u8], fits: impl Fn(i64) -> bool, first: bool) -> Option<i64> {
        let times = self.all.get_mut(key)?;
        let at = if first {
            times.iter().position(|time| fits(*time))
        } else {
            times.iter().rposition(|time| fits(*time))
        };
        let time = times.remove(at?);
        if times.is_empty() {
            self.all.remove(key);
        }
        self.count -= 1;
        Some(time)
    }

    fn forget_first(&mut self) {
        if let Some((key, at)) = self.order.pop_front() {
            self.take_begin(&key, |number| number == at, true);
        } else {
            // Nothing is in no order.
            self.all.clear();
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

    fn pairs() -> Pairs {
        let schema = Schema::from_json(SCHEMA.as_bytes()).unwrap();
        Pairs::new(&schema, &schema.frames[0], None).unwrap()
    }

    /// The chunk of a ring drained at `now`: begins (0) and ends (1), each with its time.
    fn drain(pairs: &mut Pairs, now: u64, halves: &[(u8, u64)]) {
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

    fn lengths(pairs: &mut Pairs, now: u64) -> (u64, f64) {
        (pairs.rate.total(), pairs.lengths.at(now).max.unwrap_or_default())
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
        let begins: Vec<(u8, u64)> = (0..MOST_PENDING as u64 + 10).map(|at| (0, at + 1)).collect();
        drain(&mut pairs, 1, &begins);
        assert_eq!((pairs.pending.len(), pairs.open()), (MOST_PENDING, 10));
        pairs.finish(1);
        assert_eq!(pairs.open(), MAX_OPEN as u64, "the oldest begins are forgotten");
    }

    #[test]
    fn the_oldest_are_forgotten_where_too_many_wait() {
        let mut waiting = Waiting::default();
        for at in 0..MAX_OPEN as i64 + 10 {
            waiting.put(at.to_le_bytes().to_vec(), at);
        }
        assert_eq!((waiting.count, waiting.all.len()), (MAX_OPEN, MAX_OPEN));
        assert_eq!(waiting.take_begin(&9i64.to_le_bytes(), |_| true, true), None);
        assert_eq!(waiting.take_begin(&10i64.to_le_bytes(), |_| true, true), Some(10));
    }

    #[test]
    fn the_order_does_not_grow_with_what_was_paired() {
        let mut waiting = Waiting::default();
        waiting.put(b"stays".to_vec(), 7);
        for at in 0..5 * MAX_OPEN as i64 {
            waiting.put(b"key".to_vec(), at);
            assert_eq!(waiting.take_begin(b"key", |it| it <= at, false), Some(at));
        }
        assert!(waiting.order.len() <= 2 * MAX_OPEN, "{}", waiting.order.len());
        assert_eq!(waiting.count, 1);
        assert_eq!(waiting.take_begin(b"stays", |_| true, true), Some(7));
    }
}
