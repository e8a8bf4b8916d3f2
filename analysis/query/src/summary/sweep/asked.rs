//! What is asked of several kinds of frames.

/// What is asked of several kinds of frames.
#[derive(Debug, Clone)]
pub struct Sweep {
    /// Bytes for values; what does not fit goes into sketches.
    pub memory: usize,
    /// The slices of time by which numbers are summarised; None: by none.
    pub slices: Option<Slices>,
    /// The first numbers of a kind, up to this many, are summarised by slices.
    pub sliced: usize,
    /// By kind: the column whose words part intervals into groups.
    pub by: Vec<Option<String>>,
    /// So many of each interval, the longest, with their frames.
    pub longest: usize,
    /// Whether a few frames are enough, from which the rest is guessed.
    pub is_sample: bool,
}

/// Slices of time, of rows from the first to the last moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slices {
    /// The first moment.
    pub first: i64,
    /// The last one.
    pub last: i64,
    /// How wide each is, in ns.
    pub every: i64,
    /// Intervals that began before are not looked at to find the first one.
    pub least: i64,
}
