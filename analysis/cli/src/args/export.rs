//! Arguments of `ppt export`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args as ClapArgs, ValueEnum};

use super::captures::{Captures, size};
use super::values::nanoseconds;

/// The format of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    /// Columns for data frames, DuckDB, Spark; a file for each kind of frame.
    Parquet,
    /// The columns of parquet, as a stream of Arrow IPC.
    Arrow,
    /// Comma-separated values.
    Csv,
    /// An object per line.
    Jsonl,
    /// A trace for ui.perfetto.dev.
    Perfetto,
    /// A folder in the Common Trace Format, for babeltrace2 and Trace Compass.
    Ctf,
    /// JSON for Chrome's trace viewer, and for tools that read its format.
    Chrome,
    /// A folder with traces and metrics of OpenTelemetry, as protobuf.
    Otlp,
    /// Traces and metrics in one file, a line of JSON per request: for collectors.
    OtlpJson,
}

/// The storage of times in Parquet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Time {
    /// Each time twice: in µs, which every reader knows, and as NAME_ns.
    Both,
    /// Times in ns alone.
    Ns,
}

#[derive(Debug, ClapArgs)]
pub struct Export {
    #[command(flatten)]
    pub(crate) captures: Captures,
    /// Format of the export.
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub(crate) format: ExportFormat,
    /// Put `'` before text that a spreadsheet may take for a formula (--format csv).
    #[arg(long)]
    pub(crate) for_spreadsheet: bool,
    /// Only this kind of frame, or this table (request_spans, counters): one file instead of a folder.
    #[arg(long, value_name = "NAME")]
    pub(crate) frame: Option<String>,
    /// Folders for each value of these columns (host=a/frame=job/…), such as host,frame.
    #[arg(long, value_name = "COLUMN", value_delimiter = ',')]
    pub(crate) partition_by: Vec<String>,
    /// How Parquet stores times.
    #[arg(long, value_enum, default_value = "both")]
    pub(crate) time: Time,
    #[command(flatten)]
    pub(crate) follow: FollowArgs,
    #[command(flatten)]
    pub(crate) to: ExportTo,
}

/// The output of an export.
#[derive(Debug, ClapArgs)]
pub struct ExportTo {
    /// Output path; `-` is stdout. With --follow a folder, or `s3://BUCKET/PREFIX` in an object store, which
    /// AWS_… variables describe.
    #[arg(short, long, value_name = "PATH", default_value = "-")]
    pub(crate) output: PathBuf,
    /// Overwrite the output if it exists.
    #[arg(long)]
    pub(crate) force: bool,
}

/// The export of a capture that grows.
#[derive(Debug, ClapArgs)]
pub struct FollowArgs {
    /// Go on while captures grow, until they end: a new file each minute or each 64 MiB, each row in exactly
    /// one, also if the exporter is killed (--format parquet, otlp, otlp-json).
    #[arg(long, conflicts_with_all = [
        "from", "to", "partition_by", "for_spreadsheet", "force", "sync", "reference",
    ])]
    pub(crate) follow: bool,
    /// How long frames may wait for their file [default: 1m].
    #[arg(long, value_name = "TIME", value_parser = nanoseconds, requires = "follow")]
    every: Option<i64>,
    /// Size limit of a file, about, in bytes of frames as the capture stores them [default: 64M; for
    /// OpenTelemetry 4M, which are about 64M of spans].
    #[arg(long, value_name = "SIZE", value_parser = size, requires = "follow")]
    bytes: Option<usize>,
    /// How long an object store may be unreachable until the export ends with an error [default: 10m].
    #[arg(long, value_name = "TIME", value_parser = nanoseconds, requires = "follow")]
    outage: Option<i64>,
}

impl FollowArgs {
    pub(crate) fn outage(&self) -> Duration {
        self.outage.map_or(Duration::from_secs(600), |ns| Duration::from_nanos(ns.unsigned_abs()))
    }

    pub(crate) fn every(&self) -> Duration {
        self.every.map_or(Duration::from_secs(60), |ns| Duration::from_nanos(ns.unsigned_abs()))
    }

    pub(crate) fn bytes(&self, format: ExportFormat) -> u64 {
        // A span takes about 16 times the bytes of its frame.
        let most = if format == ExportFormat::Parquet { 64 << 20 } else { 4 << 20 };
        self.bytes.map_or(most, |bytes| bytes as u64).max(1)
    }
}
