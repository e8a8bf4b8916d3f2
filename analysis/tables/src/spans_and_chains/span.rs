//! Combines begins and ends of one key, in the order of time, to spans.
//!
//! Memory: the begins without an end. An end may come at any time until the capture ends.

use std::collections::VecDeque;

use super::Missing;

/// The role of a frame in its span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SpanFrame {
    Begin,
    End,
    /// The program wrote neither a begin nor an end.
    Neither,
}

/// The state of a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr, strum::EnumIter)]
#[strum(serialize_all = "snake_case")]
pub(crate) enum SpanState {
    /// The span has a begin and an end.
    Closed,
    /// The span has no end.
    Open,
    /// The span has no begin.
    Orphan,
    /// One half is absent, and may be among the missing frames.
    Lost,
}

/// The frames of a span, identified by the caller's `T`, and its state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SpanRow<T> {
    pub begin: Option<T>,
    pub end: Option<T>,
    pub state: SpanState,
    /// Length in ns, if it has both halves.
    pub dur: Option<i64>,
}

/// Pairs the halves of one key.
#[derive(Debug)]
pub(crate) struct Halves<T> {
    /// An end belongs to the earliest open begin, instead of the latest.
    fifo: bool,
    /// Begins without an end, in the order of time.
    open: VecDeque<(i64, T)>,
    /// A frame of this key has no time: it may be the other half of any unpaired frame.
    untimed: bool,
}

impl<T: Copy> Halves<T> {
    pub fn new(fifo: bool) -> Self {
        Halves { fifo, open: VecDeque::new(), untimed: false }
    }

    /// Adds the next frame: first those without a time, then the others in the order of time. Returns the row
    /// that it completes.
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

    /// The begins without an end.
    pub fn open(&self) -> impl ExactSizeIterator<Item = &T> {
        self.open.iter().map(|entry| &entry.1)
    }

    /// The begins without an end, mutable: the caller may renumber its frames.
    pub fn open_mut(&mut self) -> impl ExactSizeIterator<Item = &mut T> {
        self.open.iter_mut().map(|entry| &mut entry.1)
    }

    /// Ends the key: returns its open spans. The next key may follow.
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
