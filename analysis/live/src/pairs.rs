//! Spans while they go on: which began, which ended, and how long they took.
//!
//! Rings are drained one after the other, so an end may come before its begin: it waits. What is exact
//! is in `<frame>_spans`, which sorts all frames by their times; here, memory is bounded.

use std::collections::{HashMap, VecDeque};

use ppt_capture::Stamps;
use ppt_capture::columns::{Scale, Time};
use ppt_capture::frame_dsl::role::{Across, EDGES};
use ppt_capture::frame_dsl::schema::{FieldType, Frame, Schema};

use crate::rate::Rate;
use crate::recent::Recent;

/// Begins and ends of a kind that are remembered: without the other half, the oldest are forgotten.
const MOST: usize = 1 << 16;
/// So long an end waits for its begin, ns: longer than the drain is late.
const LATE: u64 = 2_000_000_000;

/// The spans of a kind of frames.
pub(crate) struct Pairs {
    form: Form,
    /// Begins without an end, and ends without a begin, by the process and the key.
    begins: Waiting,
    ends: Waiting,
    /// Spans that were closed.
    pub rate: Rate,
    pub lengths: Recent,
}

/// How the key, the edge and the time of a frame are read.
struct Form {
    /// Where they are, how long, and whether a 0 ends them.
    keys: Vec<(usize, usize, bool)>,
    mark: (usize, usize),
    begin: u64,
    at: Time,
    within_process: bool,
    fifo: bool,
}

impl Pairs {
    /// None: these are no spans, or nothing says when they were.
    pub fn of(schema: &Schema, frame: &Frame, stretch: Option<u64>) -> Option<Pairs> {
        let span = frame.span()?;
        let key = |field: &&ppt_capture::frame_dsl::schema::Field| {
            let is_text = matches!(field.ty, FieldType::Char { .. });
            (field.offset as usize, field.ty.size(schema) as usize, is_text)
        };
        let keys = frame.fields.iter().filter(|it| it.is_key());
        let mark = frame.fields.iter().find(|it| it.is_mark())?;
        let steps = frame.steps(schema);
        let (name, usual) = EDGES[0];
        let begin = steps.iter().find(|it| it.0 == name).map_or(usual, |it| it.1);
        let form = Form {
            keys: keys.map(|it| key(&it)).collect(),
            mark: (mark.offset as usize, mark.ty.size(schema) as usize),
            begin: u64::try_from(begin).ok()?,
            at: Time::of(frame.at()?)?,
            within_process: span.across == Across::Process,
            fifo: span.fifo,
        };
        let lengths = Recent::new(stretch);
        let (begins, ends) = (Waiting::default(), Waiting::default());
        Some(Pairs { form, begins, ends, rate: Rate::default(), lengths })
    }

    /// Takes in frames of `process`, which were drained at `now`.
    pub fn add(&mut self, rows: &[&[u8]], process: u64, now: u64, stamps: &Stamps<'_>) {
        for row in rows {
            let Some((key, is_begin, at)) = self.form.read(row, process, stamps) else { continue };
            let fifo = self.form.fifo;
            let length = match is_begin {
                // The earliest end that came too early.
                true => {
                    self.ends.take(&key, |end| end >= at, true).map(|end| end.saturating_sub(at))
                }
                false => {
                    let begin = self.begins.take(&key, |begin| begin <= at, fifo);
                    begin.map(|begin| at.saturating_sub(begin))
                }
            };
            match length {
                Some(length) => {
                    self.rate.add(now, 1);
                    self.lengths.at(now).add(length as f64);
                }
                None if is_begin => self.begins.put(key, at, now),
                None => self.ends.put(key, at, now),
            }
        }
        self.ends.forget(now);
    }

    /// Spans that were begun and not ended.
    pub fn open(&self) -> u64 {
        self.begins.count as u64
    }
}

impl Form {
    fn read(&self, row: &[u8], process: u64, stamps: &Stamps<'_>) -> Option<(Vec<u8>, bool, i64)> {
        let mut key = if self.within_process { process.to_le_bytes().to_vec() } else { Vec::new() };
        for &(at, len, is_text) in &self.keys {
            let bytes = row.get(at..at + len)?;
            let end = bytes.iter().position(|it| *it == 0).filter(|_| is_text).unwrap_or(len);
            key.extend_from_slice(&bytes[..end]);
            // Texts have an end, so that two of them are not as one.
            key.resize(key.len() + len - end, 0);
        }
        let (at, len) = self.mark;
        let mut mark = [0; 8];
        mark.get_mut(..len)?.copy_from_slice(row.get(at..at + len)?);
        let at = match (self.at.scale(), self.at.word(row)) {
            (_, 0) => None,
            (Scale::Ticks, word) => stamps.epoch(word),
            (Scale::Ns(_), word) => i64::try_from(word).ok(),
        };
        Some((key, u64::from_le_bytes(mark) == self.begin, at?))
    }
}

/// Halves of spans, by key.
#[derive(Default)]
struct Waiting {
    all: HashMap<Vec<u8>, Vec<i64>>,
    /// In the order in which they came: key, time, and when they came.
    order: VecDeque<(Vec<u8>, i64, u64)>,
    count: usize,
}

impl Waiting {
    fn put(&mut self, key: Vec<u8>, at: i64, now: u64) {
        let times = self.all.entry(key.clone()).or_default();
        times.insert(times.partition_point(|it| *it <= at), at);
        self.count += 1;
        self.order.push_back((key, at, now));
        while self.count > MOST {
            self.forget_first();
        }
        // Those that found their other half are still in the order.
        if self.order.len() > 2 * MOST {
            let all = &self.all;
            let mut left: HashMap<(&[u8], i64), usize> = HashMap::new();
            for (key, times) in all {
                times.iter().for_each(|at| *left.entry((key.as_slice(), *at)).or_default() += 1);
            }
            let mut keep = Vec::new();
            for (key, at, _) in self.order.iter().rev() {
                let count = left.get_mut(&(key.as_slice(), *at)).filter(|it| **it > 0);
                keep.push(count.map(|it| *it -= 1).is_some());
            }
            let mut keep = keep.into_iter().rev();
            self.order.retain(|_| keep.next().unwrap_or(false));
        }
    }

    /// The first of those that fit, or the last.
    fn take(&mut self, key: &[u8], fits: impl Fn(i64) -> bool, first: bool) -> Option<i64> {
        let times = self.all.get_mut(key)?;
        let at = match first {
            true => times.iter().position(|it| fits(*it)),
            false => times.iter().rposition(|it| fits(*it)),
        };
        let time = times.remove(at?);
        if times.is_empty() {
            self.all.remove(key);
        }
        self.count -= 1;
        Some(time)
    }

    /// Lets go of what came too long ago.
    fn forget(&mut self, now: u64) {
        while self.order.front().is_some_and(|it| it.2 < now.saturating_sub(LATE)) {
            self.forget_first();
        }
    }

    fn forget_first(&mut self) {
        if let Some((key, at, _)) = self.order.pop_front() {
            self.take(&key, |it| it == at, true);
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

    #[test]
    fn the_oldest_are_forgotten_where_too_many_wait() {
        let mut waiting = Waiting::default();
        for at in 0..MOST as i64 + 10 {
            waiting.put(at.to_le_bytes().to_vec(), at, 1);
        }
        assert_eq!((waiting.count, waiting.all.len()), (MOST, MOST));
        assert_eq!(waiting.take(&9i64.to_le_bytes(), |_| true, true), None);
        assert_eq!(waiting.take(&10i64.to_le_bytes(), |_| true, true), Some(10));
        waiting.forget(LATE + 2);
        assert_eq!((waiting.count, waiting.all.len(), waiting.order.len()), (0, 0, 0));
    }

    #[test]
    fn the_order_does_not_grow_with_what_was_paired() {
        let mut waiting = Waiting::default();
        waiting.put(b"stays".to_vec(), 7, 1);
        for at in 0..5 * MOST as i64 {
            waiting.put(b"key".to_vec(), at, 1);
            assert_eq!(waiting.take(b"key", |it| it <= at, false), Some(at));
        }
        assert!(waiting.order.len() <= 2 * MOST, "{}", waiting.order.len());
        assert_eq!(waiting.count, 1);
        assert_eq!(waiting.take(b"stays", |_| true, true), Some(7));
    }
}
