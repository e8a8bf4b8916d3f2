//! What is wanted of a capture.

use std::path::PathBuf;

use ppt_capture::Bound;
use ppt_predicate::Predicate;
use ppt_symbols::SearchPaths;

/// The format of a table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Format {
    /// Tab-separated values.
    #[default]
    Tsv,
    /// Comma-separated values.
    Csv,
    /// The same; `'` stands before text that a spreadsheet may take for a formula.
    CsvForSpreadsheet,
    /// An object per line.
    JsonLines,
}

/// How points in time are shown. A time that was not taken, or whose clock no reading covers, is an empty
/// cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeFormat {
    /// As the program wrote them; ticks are ns since the epoch.
    Own,
    /// Nanoseconds since the epoch, a number.
    Ns,
    /// `2026-11-21T15:04:05.250000000Z`, text. A time that no such text can state is a number of ns.
    Utc,
    /// Seconds since the capture began, a number with nine decimals.
    Rel,
}

/// What sorting may take.
#[derive(Debug, Clone)]
pub struct SortLimits {
    /// Bytes of memory. Beyond that, rows wait in files.
    pub memory: usize,
    /// The folder of these files, which have no names.
    pub folder: PathBuf,
}

/// The order of the rows.
#[derive(Debug, Clone, Default)]
pub enum RowOrder {
    /// That of the capture: chunk by chunk, and within a chunk in the order of its ring.
    #[default]
    Capture,
    /// By the time of each frame: that of its `@at` field, else of its drain. Rows without a time come
    /// last.
    Time(SortLimits),
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
    /// How points in time are shown. If None, and all time columns of the table are of one clock, times are
    /// as the program wrote them, and ticks are ns since the epoch. If the columns are of several clocks,
    /// all are ns since the epoch. Times of CPU clocks are of no other clock: they always stay as they are.
    pub time: Option<TimeFormat>,
    /// The order of the rows. It does not affect gaps.
    pub order: RowOrder,
    /// Write gaps instead of frames: `buffer`, `segment`, `ring`, `first_seq`, `count`, `cause`.
    /// The option `frame` does not affect gaps, but it must name a frame.
    pub gaps: bool,
    /// Add a column `thread` behind `tid`: the name of the thread, as it was last read before the frame
    /// was drained. Gaps have none.
    pub names: bool,
    /// Where the files are looked for that name code addresses. If None, an address is a number in hex.
    pub addresses: Option<SearchPaths>,
    /// The first wanted row; None means from the start.
    pub from: Option<Bound>,
    /// The last wanted row; None means to the end.
    pub to: Option<Bound>,
}
