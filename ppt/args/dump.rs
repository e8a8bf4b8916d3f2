//! Arguments of `ppt dump` and `ppt info`.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args as ClapArgs, ValueEnum};
use ppt_dump::Bound;

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum OutputFormat {
    Tsv,
    Csv,
    Jsonl,
}

/// How points in time are shown.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum TimeFormat {
    /// As the program wrote them; ticks are nanoseconds since the epoch.
    Own,
    /// Nanoseconds since the epoch.
    Ns,
    /// UTC, such as 2026-11-21T15:04:05.250000000Z.
    Utc,
    /// Seconds since the capture began.
    Rel,
}

/// How code addresses are shown.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum AddressForm {
    /// As functions, such as processCommand+0x12 (redis-server).
    Name,
    /// As numbers in hex.
    Raw,
}

/// The order of rows.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum RowOrder {
    /// As the capture has them: ring by ring.
    Capture,
    /// By the time of each frame.
    Time,
}

#[derive(ClapArgs)]
pub(crate) struct Dump {
    /// The capture; `-` is stdin.
    #[arg(value_name = "FILE")]
    pub(crate) capture: PathBuf,
    /// Further captures, for which there is a message.
    #[arg(hide = true)]
    pub(crate) others: Vec<PathBuf>,
    /// Only this buffer (repeatable) [default: all].
    #[arg(short, long = "buffer", value_name = "BUFFER")]
    pub(crate) buffers: Vec<String>,
    /// Only this kind of frame, with only its columns.
    #[arg(long, value_name = "NAME")]
    pub(crate) frame: Option<String>,
    /// Only frames of which this is true, such as "kind = 'LOGIN' AND handle > 10ms".
    #[arg(long = "where", value_name = "EXPRESSION", conflicts_with = "gaps")]
    pub(crate) matching: Option<String>,
    /// Format of the table [default: tsv].
    #[arg(long, value_enum)]
    pub(crate) format: Option<OutputFormat>,
    /// Write CSV, with `'` before text that a spreadsheet may take for a formula.
    #[arg(long)]
    pub(crate) for_spreadsheet: bool,
    /// Where to write the table; `-` is stdout.
    #[arg(short, long, value_name = "PATH", default_value = "-")]
    pub(crate) output: PathBuf,
    /// Replace that file if it exists.
    #[arg(long)]
    pub(crate) force: bool,
    /// How points in time are shown [default: as the program wrote them; ns if a table has several clocks].
    #[arg(long, value_enum, value_name = "FORMAT", conflicts_with = "gaps")]
    pub(crate) time: Option<TimeFormat>,
    /// Order of the rows. To sort, ppt takes 64 MiB of memory, and then files in $TMPDIR.
    #[arg(long, value_enum, default_value = "capture", conflicts_with = "gaps")]
    pub(crate) order: RowOrder,
    /// List the missing frames instead of the captured ones.
    #[arg(long)]
    pub(crate) gaps: bool,
    /// Add a column with the names of threads.
    #[arg(long, conflicts_with = "gaps")]
    pub(crate) names: bool,
    /// How code addresses are shown.
    #[arg(long, value_enum, value_name = "FORM", default_value = "name", conflicts_with = "gaps")]
    pub(crate) addresses: AddressForm,
    /// Only from here on, including the bound: a sequence number (500), a time since the capture
    /// began (1.5s), or a time in UTC (2026-11-21T15:04:05.5Z, or @ and seconds since the epoch).
    #[arg(long, value_name = "WHERE", value_parser = Bound::from_str)]
    pub(crate) from: Option<Bound>,
    /// Only up to here, including the bound, in the same notation.
    #[arg(long, value_name = "WHERE", value_parser = Bound::from_str)]
    pub(crate) to: Option<Bound>,
}

#[derive(ClapArgs)]
pub(crate) struct Info {
    /// The captures; `-` is stdin. Or readings of clocks by `ppt sync`, which count as one.
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// Say how well clocks are known: the files are readings of clocks.
    #[arg(long)]
    pub(crate) sync: bool,
    /// The host whose clock gives the times [default: the first one of the readings].
    #[arg(long, value_name = "HOST", requires = "sync")]
    pub(crate) reference: Option<String>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}
