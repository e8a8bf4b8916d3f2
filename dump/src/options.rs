//! The options of a dump.

use std::path::PathBuf;

use ppt_capture::Bound;
use ppt_predicate::Predicate;
use ppt_symbols::SearchPaths;

/// The format of a table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TableFormat {
    /// Tab-separated values.
    #[default]
    Tsv,
    /// Comma-separated values.
    Csv,
    /// CSV with a leading `'` before text that a spreadsheet may read as a formula.
    CsvForSpreadsheet,
    /// An object per line.
    JsonLines,
}

/// The format of points in time. A time that was not recorded, or that no clock reading covers, is
/// an empty cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeFormat {
    /// As the program wrote them, with ticks converted to ns since the epoch.
    Own,
    /// Nanoseconds since the epoch, a number.
    Ns,
    /// `2026-11-21T15:04:05.250000000Z`, text. A time outside the range of this format is a number
    /// of ns.
    Utc,
    /// Seconds since the start of the capture, a number with nine decimals.
    Rel,
}

/// The resources for sorting.
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
    /// The order of the capture: chunk by chunk, and within a chunk in the order of its ring.
    #[default]
    Capture,
    /// By the time of each frame: its `@at` field, or else its drain. Rows without a time come
    /// last.
    Time(SortLimits),
}

/// The options of a dump.
#[derive(Debug, Clone, Default)]
pub struct DumpRequest {
    /// Names of the wanted buffers (`NAME[#hash8][@object]`). All buffers, if empty.
    pub buffers: Vec<String>,
    /// The only wanted kind of frame. `None`: all kinds.
    pub frame: Option<String>,
    /// Only frames for which this holds. A kind of frame that lacks one of its fields has neither
    /// rows nor columns. Gaps are not affected.
    pub matching: Option<Predicate>,
    /// The format of the table.
    pub format: TableFormat,
    /// The format of points in time. If `None`, and all time columns of the table are of one clock,
    /// times are as the program wrote them, and ticks are ns since the epoch. If the columns are of
    /// several clocks, all are ns since the epoch. CPU-time clocks cannot be converted, so their
    /// times always stay as they are.
    pub time: Option<TimeFormat>,
    /// The order of the rows. It does not affect gaps.
    pub order: RowOrder,
    /// Write gaps instead of frames: `buffer`, `segment`, `ring`, `first_seq`, `count`, `cause`.
    /// The option `frame` does not affect gaps, but it must name a frame.
    pub gaps: bool,
    /// Add a column `thread` after `tid`: the name of the thread as last read before the frame was
    /// drained. Gaps have none.
    pub names: bool,
    /// The search paths for the files with function names. If `None`, an address is a hex number.
    pub addresses: Option<SearchPaths>,
    /// The first wanted row. `None`: from the start.
    pub from: Option<Bound>,
    /// The last wanted row. `None`: to the end.
    pub to: Option<Bound>,
}
