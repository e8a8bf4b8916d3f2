//! What is asked of frames, and what is answered.

use ppt_stats::{DistinctCount, Sketch, Summary};

use crate::engine::RowUnit;

/// What is asked.
#[derive(Debug, Clone)]
pub struct Ask {
    /// Only this kind of frames, or these spans or chains (`request_spans`).
    pub frame: Option<String>,
    /// Spans and chains, too, where all is asked for.
    pub wholes: bool,
    /// Only these fields; without any, all.
    pub fields: Vec<String>,
    /// Columns by which rows are grouped.
    pub by: Vec<String>,
    /// Slices of time so wide, in ns.
    pub every: Option<i64>,
    /// An expression that is true of the rows that count.
    pub filter: Option<String>,
    /// Whether to report intervals without what lies in them, too. That takes a sort of all slices.
    pub self_time: bool,
    /// Bytes for values; what does not fit goes into a sketch.
    pub memory: usize,
    /// Of this field, how its values are spread.
    pub spread: Option<String>,
}

impl Ask {
    /// Whether one question is asked of all: it may not fit spans and chains.
    fn is_special(&self) -> bool {
        let parts = !self.by.is_empty() || self.every.is_some() || self.self_time;
        parts || !self.fields.is_empty() || self.filter.is_some() || self.spread.is_some()
    }

    /// Whether to report spans and chains, too, where none are named.
    pub(super) fn has_wholes(&self) -> bool {
        self.wholes && self.frame.is_none() && !self.is_special()
    }
}

impl Default for Ask {
    fn default() -> Self {
        Ask {
            frame: None,
            wholes: false,
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

/// What is said of a kind of frames.
#[derive(Debug, Clone)]
pub struct FrameSummary {
    /// Its buffer.
    pub buffer: String,
    /// Its name: that of spans and chains is the one of their table.
    pub frame: String,
    /// What is counted.
    pub unit: RowUnit,
    /// By group and slice, in their order; one where nothing is grouped.
    pub groups: Vec<Group>,
}

/// What is said of some frames of a kind.
#[derive(Debug, Clone)]
pub struct Group {
    /// What they have in common: by each column of [`Ask::by`], as text.
    pub by: Vec<Option<String>>,
    /// The beginning of their slice of time, ns since the epoch; None also where that is not known.
    pub slice: Option<i64>,
    /// How many there are.
    pub count: u64,
    /// When the first and the last of them were, ns since the epoch.
    pub time: Option<(i64, i64)>,
    /// Threads that wrote them.
    pub threads: u64,
    /// Their fields.
    pub fields: Vec<FieldSummary>,
}

impl Group {
    /// Frames a second; None where no time has passed.
    pub fn rate(&self, every: Option<i64>) -> Option<f64> {
        let wall = match (every, self.time) {
            (Some(every), _) => every,
            (None, Some((first, last))) => last.checked_sub(first)?,
            (None, None) => return None,
        };
        (wall > 0).then(|| self.count as f64 * 1e9 / wall as f64)
    }
}

/// What is said of a field.
#[derive(Debug, Clone)]
pub struct FieldSummary {
    /// Its name.
    pub name: String,
    /// Of frames of spans and chains: whose frames are summarised, `begin` or `end` or a step.
    /// None: all.
    pub step: Option<String>,
    /// What it is measured in; may be empty.
    pub unit: String,
    /// Its values.
    pub values: SummaryValues,
}

impl FieldSummary {
    /// Its name for people: `rows (end)`.
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
        /// What is said of them.
        summary: Box<Summary>,
        /// Of an interval of time: the sum of lengths over the time that passed; 1 is one thread at it
        /// all the time.
        busy: Option<f64>,
        /// How they are spread, if that was asked for.
        spread: Option<Box<Sketch>>,
    },
    /// Words, the most frequent first.
    Words {
        /// How often each is there.
        counts: Vec<(String, u64)>,
        /// Rows without one.
        nulls: u64,
    },
    /// Keys and hashes, which identify things.
    Keys {
        /// How many different ones there are.
        distinct: DistinctCount,
        /// Rows that have one.
        count: u64,
        /// Rows without one.
        nulls: u64,
    },
}
