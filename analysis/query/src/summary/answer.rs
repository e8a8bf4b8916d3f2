//! What is asked of frames, and what is answered.

use ppt_stats::{Sketch, Summary};

/// What is asked.
#[derive(Debug, Clone)]
pub struct Ask {
    /// Only this kind of frames.
    pub frame: Option<String>,
    /// Only these fields; without any, all.
    pub fields: Vec<String>,
    /// Columns by which rows are grouped.
    pub by: Vec<String>,
    /// Slices of time so wide, in ns.
    pub every: Option<i64>,
    /// An expression that is true of the rows that count.
    pub filter: Option<String>,
    /// Whether intervals are told without what lies in them, too. That takes a sort of all slices.
    pub self_time: bool,
    /// Bytes for values; what does not fit is told by a sketch.
    pub memory: usize,
    /// Of this field, how its values are spread.
    pub spread: Option<String>,
}

impl Default for Ask {
    fn default() -> Self {
        Ask {
            frame: None,
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
    /// Its name.
    pub frame: String,
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
    /// What it is measured in; may be empty.
    pub unit: String,
    /// Its values.
    pub values: Values,
}

/// The values of a field.
#[derive(Debug, Clone)]
pub enum Values {
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
}
