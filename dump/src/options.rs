//! What is wanted of a capture.

use ppt_capture::Bound;
use ppt_predicate::Predicate;

/// The format of a table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Format {
    /// Tab-separated values.
    #[default]
    Tsv,
    /// Comma-separated values.
    Csv,
    /// An object per line.
    JsonLines,
}

/// What is wanted of a capture.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Names of the wanted buffers (`NAME[#hash8][@object]`). All buffers, if empty.
    pub buffers: Vec<String>,
    /// The only wanted kind of frame. All kinds, if None.
    pub frame: Option<String>,
    /// Only frames of which this is true. A kind of frame that lacks one of its fields has neither
    /// rows nor columns. Gaps are not affected.
    pub matching: Option<Predicate>,
    /// The format of the table.
    pub format: Format,
    /// Write gaps instead of frames: `buffer`, `segment`, `ring`, `first_seq`, `count`, `cause`.
    /// The option `frame` does not affect gaps, but it must name a frame.
    pub gaps: bool,
    /// Add a column `thread` behind `tid`: the name of the thread, as it was last read before the frame
    /// was drained. Gaps have none.
    pub names: bool,
    /// The first wanted row; None means from the start.
    pub from: Option<Bound>,
    /// The last wanted row; None means to the end.
    pub to: Option<Bound>,
}
