//! Requests for summaries, and the summaries.

use ppt_stats::{DistinctCount, Sketch, Summary};

use crate::engine::RowUnit;

/// A request for summaries.
#[derive(Debug, Clone)]
pub struct SummaryRequest {
    /// The kind of frames, or the spans or chains (`request_spans`); None for all.
    pub frame: Option<String>,
    /// Whether to include spans and chains if `frame` is None.
    pub spans_and_chains: bool,
    /// The fields to summarise; empty: all.
    pub fields: Vec<String>,
    /// Columns by which rows are grouped.
    pub by: Vec<String>,
    /// Width of slices of time, in ns; None without slices.
    pub every: Option<i64>,
    /// A filter expression for rows.
    pub filter: Option<String>,
    /// Whether to report the self time of intervals, too. It needs a sort of all slices.
    pub self_time: bool,
    /// Bytes of memory for values; further values go into a sketch.
    pub memory: usize,
    /// The field whose distribution is wanted.
    pub spread: Option<String>,
}

impl SummaryRequest {
    /// Whether the request has options that may not apply to spans and chains.
    fn is_special(&self) -> bool {
        let is_divided = !self.by.is_empty() || self.every.is_some() || self.self_time;
        is_divided || !self.fields.is_empty() || self.filter.is_some() || self.spread.is_some()
    }

    /// Whether to report spans and chains although none are named.
    pub(super) fn includes_spans_and_chains(&self) -> bool {
        self.spans_and_chains && self.frame.is_none() && !self.is_special()
    }
}

impl Default for SummaryRequest {
    fn default() -> Self {
        SummaryRequest {
            frame: None,
            spans_and_chains: false,
            fields: Vec::new(),
            by: Vec::new(),
            every: None,
            filter: None,
            self_time: false,
            memory: 1 << 30,
            spread: None,
        }
    }
}

/// The summary of a kind of frames.
#[derive(Debug, Clone)]
pub struct FrameSummary {
    /// The name of the buffer.
    pub buffer: String,
    /// The name of the frames; for spans and chains, the name of their table.
    pub frame: String,
    /// The unit of its rows.
    pub unit: RowUnit,
    /// The groups, sorted by group and slice; a single one without grouping.
    pub groups: Vec<Group>,
}

/// The summary of a group of frames.
#[derive(Debug, Clone)]
pub struct Group {
    /// The value of each column of [`SummaryRequest::by`], as text.
    pub by: Vec<Option<String>>,
    /// The begin of the slice of time, ns since the epoch; None without slices, or if times are unknown.
    pub slice: Option<i64>,
    /// Number of frames.
    pub count: u64,
    /// Times of the first and the last frame, ns since the epoch.
    pub time: Option<(i64, i64)>,
    /// Number of threads of the frames.
    pub threads: u64,
    /// The summaries of their fields.
    pub fields: Vec<FieldSummary>,
}

impl Group {
    /// Frames per second; None if no time has passed.
    pub fn rate(&self, every: Option<i64>) -> Option<f64> {
        let wall = match (every, self.time) {
            (Some(every), _) => every,
            (None, Some((first, last))) => last.checked_sub(first)?,
            (None, None) => return None,
        };
        (wall > 0).then(|| self.count as f64 * 1e9 / wall as f64)
    }
}

/// The summary of a field.
#[derive(Debug, Clone)]
pub struct FieldSummary {
    /// The name of the field or interval.
    pub name: String,
    /// The step of a span or a chain whose frames are summarised: `begin`, `end` or a step; None for all frames.
    pub step: Option<String>,
    /// The unit; may be empty.
    pub unit: String,
    /// The distribution of the values.
    pub values: SummaryValues,
}

impl FieldSummary {
    /// The name for people: `rows (end)`.
    pub fn label(&self) -> String {
        match &self.step {
            None => self.name.clone(),
            Some(step) => format!("{} ({step})", self.name),
        }
    }
}

/// The values of a field.
#[derive(Debug, Clone)]
pub enum SummaryValues {
    /// Numbers.
    Numbers {
        /// Their summary.
        summary: Box<Summary>,
        /// For an interval of time: the sum of lengths divided by the elapsed time. 1 means one thread
        /// all the time.
        busy: Option<f64>,
        /// Their distribution, if it was requested.
        spread: Option<Box<Sketch>>,
    },
    /// Words, the most frequent first.
    Words {
        /// Words, each with its number of rows.
        counts: Vec<(String, u64)>,
        /// Number of rows without a value.
        nulls: u64,
    },
    /// Keys and hashes, which identify things.
    Keys {
        /// Number of different values.
        distinct: DistinctCount,
        /// Number of rows with a value.
        count: u64,
        /// Number of rows without a value.
        nulls: u64,
    },
}
