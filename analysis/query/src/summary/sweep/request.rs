//! The request for summaries of several kinds of frames.

/// A request for summaries of several kinds of frames.
#[derive(Debug, Clone)]
pub struct Sweep {
    /// Bytes of memory for values; further values go into sketches.
    pub memory: usize,
    /// The slices of time for numbers; None without slices.
    pub slices: Option<TimeSlices>,
    /// Largest number of fields of a kind that are summarised by slices.
    pub sliced: usize,
    /// By kind: the column by whose words intervals are grouped.
    pub by: Vec<Option<String>>,
    /// Number of longest intervals of each field, which are returned with their frames.
    pub longest: usize,
    /// Whether to read only a sample of the frames.
    pub is_sample: bool,
}

/// Slices of time. All times are in ns since the epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeSlices {
    /// The first time, ns since the epoch.
    pub first: i64,
    /// The last time, ns since the epoch.
    pub last: i64,
    /// The width of a slice, in ns.
    pub every: i64,
    /// Intervals that began earlier are ignored in the search for the first one.
    pub least: i64,
}
