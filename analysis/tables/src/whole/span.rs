//! Begins and ends of one key, in the order of time, become spans.
//!
//! What is kept are the begins that have no end yet: an end may come for the first of them as late as
//! the capture ends. Nothing else takes memory, however many spans the key has.

use std::collections::VecDeque;

use super::Missing;

/// What a frame is to its span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SpanFrame {
    Begin,
    End,
    /// Neither: its program broke the rules.
    Neither,
}

/// What became of a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr, strum::EnumIter)]
#[strum(serialize_all = "snake_case")]
pub(crate) enum SpanState {
    /// Begun and ended.
    Closed,
    /// It has no end.
    Open,
    /// It has no begin.
    Orphan,
    /// One half is not there, and may have been among the frames that are missing.
    Lost,
}

/// A row: the frames of a span, with the caller's name for it, and what became of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SpanRow<T> {
    pub begin: Option<T>,
    pub end: Option<T>,
    pub state: SpanState,
    /// Its length, where both halves are there, in ns.
    pub dur: Option<i64>,
}

/// The halves of one key, on their way.
#[derive(Debug)]
pub(crate) struct Halves<T> {
    /// An end belongs to the earliest begin without one, not to the latest.
    fifo: bool,
    /// Begins without an end, in the order of time.
    open: VecDeque<(i64, T)>,
    /// A frame of this key says no time: what is left over may be its other half.
    untimed: bool,
}

impl<T: Copy> Halves<T> {
    pub fn new(fifo: bool) -> Self {
        Halves { fifo, open: VecDeque::new(), untimed: false }
    }

    /// The next frame: those without a time first, the others in the order of time. Returns the row
    /// that is done with it.
    pub fn add_half(
        &mut self,
        half: SpanFrame,
        ts: Option<i64>,
        frame: T,
        missing: &Missing,
    ) -> Option<SpanRow<T>> {
        let Some(ts) = ts else {
            self.untimed = true;
            let (begin, end) = match half {
                SpanFrame::Begin => (Some(frame), None),
                SpanFrame::End | SpanFrame::Neither => (None, Some(frame)),
            };
            return Some(SpanRow { begin, end, state: SpanState::Lost, dur: None });
        };
        let begun = match half {
            SpanFrame::Begin => {
                self.open.push_back((ts, frame));
                return None;
            }
            SpanFrame::End if self.fifo => self.open.pop_front(),
            SpanFrame::End => self.open.pop_back(),
            SpanFrame::Neither => None,
        };
        Some(match begun {
            Some((begun, begin)) => {
                let (begin, end) = (Some(begin), Some(frame));
                SpanRow { begin, end, state: SpanState::Closed, dur: ts.checked_sub(begun) }
            }
            None => {
                let may_be_lost = self.untimed || missing.until(ts);
                let state = if may_be_lost { SpanState::Lost } else { SpanState::Orphan };
                SpanRow { begin: None, end: Some(frame), state, dur: None }
            }
        })
    }

    /// Begins that have no end so far: as many frames must be kept.
    pub fn open(&self) -> impl ExactSizeIterator<Item = &T> {
        self.open.iter().map(|entry| &entry.1)
    }

    /// The same, to be named again.
    pub fn open_mut(&mut self) -> impl ExactSizeIterator<Item = &mut T> {
        self.open.iter_mut().map(|entry| &mut entry.1)
    }

    /// No more frames of the key: what is left over. The next key may follow.
    pub fn finish<'a>(
        &mut self,
        missing: &'a Missing,
    ) -> impl Iterator<Item = SpanRow<T>> + use<'a, T> {
        let untimed = std::mem::take(&mut self.untimed);
        std::mem::take(&mut self.open).into_iter().map(move |(ts, begin)| {
            let may_be_lost = untimed || missing.since(ts);
            let state = if may_be_lost { SpanState::Lost } else { SpanState::Open };
            SpanRow { begin: Some(begin), end: None, state, dur: None }
        })
    }
}
