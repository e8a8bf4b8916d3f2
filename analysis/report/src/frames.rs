//! The facts about a kind of frames.

use ppt_query::RowUnit;
use ppt_query::arrow::array::RecordBatch;
use ppt_query::stats::{DistinctCount, Histogram, Summary};
use ppt_query::why;

/// So many of each interval.
pub const SLOWEST: usize = 20;
/// The facts about a kind of frames, of spans or of chains.
#[derive(Debug)]
pub struct FrameFacts {
    pub unit: RowUnit,
    pub buffer: String,
    pub frame: String,
    /// How it is called on the page.
    pub label: String,
    pub count: u64,
    pub time: Option<(i64, i64)>,
    pub threads: u64,
    pub rate: Option<f64>,
    /// Frames in each slice.
    pub counts: Vec<u64>,
    pub fields: Vec<FieldFacts>,
    /// Enums and the like: how often each word is there.
    pub words: Vec<FieldWords>,
    /// Keys and hashes: how many different ones there are.
    pub keys: Vec<FieldKeys>,
}

/// Values of a field that identifies things.
#[derive(Debug)]
pub struct FieldKeys {
    pub label: String,
    pub distinct: DistinctCount,
    pub count: u64,
}

/// Words of a field.
#[derive(Debug)]
pub struct FieldWords {
    /// With the step of a span or a chain whose frames set it.
    pub name: String,
    pub counts: Vec<(String, u64)>,
    pub nulls: u64,
}

/// The facts about a field of numbers.
#[derive(Debug)]
pub struct FieldFacts {
    /// Its column.
    pub name: String,
    /// How it is called on the page: with the step of a span or a chain whose frames set it.
    pub label: String,
    pub unit: String,
    /// Its name on the timeline, where it is an interval of time.
    pub interval: Option<usize>,
    pub summary: Summary,
    pub busy: Option<f64>,
    pub spread: Option<Histogram>,
    /// In each slice; empty where nothing is drawn.
    pub over: Vec<Option<Summary>>,
    /// By the words of a column.
    pub groups: Option<Groups>,
    /// Between two steps of a chain.
    pub is_step: bool,
    pub slowest: Vec<Slow>,
    /// Where the slowest were, as the kernel says.
    pub why: Vec<why::Slow>,
    /// Columns of `slowest` beside the standard ones.
    pub columns: Vec<String>,
}

/// Frames of a kind by the words of a column.
#[derive(Debug)]
pub struct Groups {
    pub column: String,
    pub rows: Vec<(String, Summary, Option<f64>)>,
}

impl FieldFacts {
    /// What all of it together took, in ns; an interval of time only.
    pub fn cost(&self) -> f64 {
        if self.interval.is_some() { self.summary.sum.float() } else { 0.0 }
    }
}

impl FrameFacts {
    /// What it costs at most.
    pub fn cost(&self) -> f64 {
        self.fields.iter().map(FieldFacts::cost).fold(0.0, f64::max)
    }
}

/// An interval, with its frame.
#[derive(Debug)]
pub struct Slow {
    /// When it began, ns since the epoch; how long it was, in ns.
    pub start: i64,
    pub length: i64,
    pub host: String,
    pub pid: String,
    pub tid: String,
    pub seqno: String,
    /// Other fields of the frame.
    pub beside: Vec<String>,
    /// The frame, for the timeline.
    pub row: RecordBatch,
}
