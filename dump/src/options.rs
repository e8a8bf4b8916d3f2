//! What is wanted of a capture.

use ppt_capture::Bound;

/// What a table looks like.
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
    /// Buffers by name (`NAME[#hash8][@object]`); none: all.
    pub buffers: Vec<String>,
    /// The only kind of frame that is wanted.
    pub frame: Option<String>,
    /// What the table looks like.
    pub format: Format,
    /// Gaps instead of frames: `buffer`, `segment`, `ring`, `first_seq`, `count`, `cause`. Of the
    /// options above only `frame` has no meaning for them, though it must name a frame.
    pub gaps: bool,
    /// The first row that is wanted; None: from the start.
    pub from: Option<Bound>,
    /// The last row that is wanted; None: to the end.
    pub to: Option<Bound>,
}
