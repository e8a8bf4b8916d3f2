//! The facts about one kind of frames that a page shows.

use ppt_query::RowUnit;
use ppt_query::arrow::array::RecordBatch;
use ppt_query::stats::{DistinctCount, Histogram, Summary};
use ppt_query::why;

/// Number of slowest intervals that a page lists for each field.
pub const SLOWEST: usize = 20;
/// Facts about one kind of frames, spans or chains.
#[derive(Debug)]
pub struct FrameFacts {
    pub unit: RowUnit,
    pub buffer: String,
    pub frame: String,
    /// Name on the page.
    pub label: String,
    pub count: u64,
    pub time: Option<(i64, i64)>,
    pub threads: u64,
    pub rate: Option<f64>,
    /// Number of frames in each slice.
    pub counts: Vec<u64>,
    pub fields: Vec<FieldFacts>,
    /// Counts of the values of enums and other short texts.
    pub words: Vec<FieldWords>,
    /// Counts of distinct keys and hashes.
    pub keys: Vec<FieldKeys>,
}

/// Distinct values of a field that identifies things.
#[derive(Debug)]
pub struct FieldKeys {
    pub label: String,
    pub distinct: DistinctCount,
    pub count: u64,
}

/// Counts of the values of a field.
#[derive(Debug)]
pub struct FieldWords {
    /// Includes the step of the span or chain whose frames set the field.
    pub name: String,
    pub counts: Vec<(String, u64)>,
    pub nulls: u64,
}

/// Facts about a numeric field.
#[derive(Debug)]
pub struct FieldFacts {
    /// Name of the column.
    pub name: String,
    /// Name on the page. Includes the step of the span or chain whose frames set the field.
    pub label: String,
    pub unit: String,
    /// Index of its name on the timeline, if it is an interval of time.
    pub interval: Option<usize>,
    pub summary: Summary,
    pub busy: Option<f64>,
    pub spread: Option<Histogram>,
    /// Summary of each slice; empty if no chart is drawn.
    pub over: Vec<Option<Summary>>,
    /// Summaries for each value of another column.
    pub groups: Option<Groups>,
    /// Whether the interval is between two steps of a chain.
    pub is_step: bool,
    pub slowest: Vec<SlowestRow>,
    /// What the threads of the slowest intervals did, by the kernel's record.
    pub why: Vec<why::SlowInterval>,
    /// Names of the columns in [`SlowestRow::cells`].
    pub columns: Vec<String>,
}

/// Summaries for each value of a column.
#[derive(Debug)]
pub struct Groups {
    pub column: String,
    pub rows: Vec<GroupFacts>,
}

/// Summary of the frames that have one value of a column.
#[derive(Debug)]
pub struct GroupFacts {
    pub value: String,
    pub summary: Summary,
    /// Sum of the lengths, divided by the time that passed.
    pub busy: Option<f64>,
}

impl FieldFacts {
    /// Sum of all values in ns; 0 if the field is not an interval.
    pub fn cost(&self) -> f64 {
        if self.interval.is_some() { self.summary.sum.float() } else { 0.0 }
    }
}

impl FrameFacts {
    /// The largest cost of its fields, in ns.
    pub fn cost(&self) -> f64 {
        self.fields.iter().map(FieldFacts::cost).fold(0.0, f64::max)
    }
}

/// One of the slowest intervals, with its frame.
#[derive(Debug)]
pub struct SlowestRow {
    /// Beginning, ns since the epoch.
    pub start: i64,
    pub length: i64,
    pub host: String,
    pub pid: String,
    pub tid: String,
    pub seqno: String,
    /// Other fields of the frame, in the order of [`FieldFacts::columns`].
    pub cells: Vec<String>,
    /// The frame, for the timeline.
    pub row: RecordBatch,
}
