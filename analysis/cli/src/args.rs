//! The command line, as typed.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::builder::PossibleValuesParser;
use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};
use ppt_query::whatif::retime::{Metric, Speed};
use ppt_query::{Bound, ResultFormat};
use ppt_text::argument;

mod captures;
mod examples;
mod view;

pub(crate) use captures::{Captures, Hosts, is_address};
use captures::{local, size, threads};
pub(crate) use view::ViewArgs;

/// Ask captures: statistics, SQL, other people's formats. `ppt` finds this program by its words:
/// `ppt stat` is `ppt-analysis stat`.
#[derive(Debug, Parser)]
#[command(name = "ppt-analysis", bin_name = "ppt", override_usage = "ppt-analysis <COMMAND>")]
#[command(version, max_term_width = 100, arg_required_else_help = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Say how often, how long, how much: of each kind of frame and each of its fields.
    #[command(after_help = examples::STAT)]
    Stat(Stat),
    /// Say where the slowest intervals spent their time: running, waiting, for what, and for whom.
    #[command(after_help = examples::WHY)]
    #[command(mut_arg("captures", |captures| captures.help(examples::WHY_CAPTURES)))]
    Why(WhyArgs),
    /// Say which points lead to which, and where the time goes on the way from one to another.
    Graph(Graph),
    /// Say what a faster part would be worth: by timing the run that was captured once again.
    #[command(name = "whatif", after_help = examples::WHAT_IF)]
    WhatIf(WhatIf),
    /// Answer SQL queries over captures.
    #[command(after_help = examples::SQL)]
    #[command(mut_arg("captures", |captures| captures.help(examples::SQL_CAPTURES)))]
    Sql(Sql),
    /// Turn captures into files that other programs open.
    #[command(after_help = examples::EXPORT)]
    Export(Export),
    /// Make a page of captures: one file with everything, for any browser.
    Report(Report),
    /// Show captures as a page with a timeline, on this machine, until Ctrl-C.
    #[command(after_help = examples::VIEW)]
    View(ViewArgs),
    /// Draw the answer to a query, or the stacks of threads, as SVG.
    #[command(after_help = examples::PLOT)]
    #[command(mut_arg("captures", |captures| captures.help(examples::PLOT_CAPTURES)))]
    Plot(Plot),
    /// Turn what another tool recorded, CSV or pcap, into a capture.
    Import(Import),
    /// Calibrate a formula: how a cost grows, with intervals, a verdict and a prediction.
    #[command(after_help = examples::FIT)]
    #[command(mut_arg("captures", |captures| captures.help(examples::FIT_CAPTURES)))]
    Fit(Fit),
    /// Say what resources take at a load, and at which load they run out.
    Model(ModelArgs),
    /// Hold two sets of runs against each other; fail if something became too slow.
    Compare(Compare),
    /// Show what goes on in a capture while it is written.
    // `ppt` has this word itself, and its page.
    #[command(hide = true)]
    Top(Top),
    /// Write the man pages into a folder.
    #[command(hide = true)]
    Man {
        /// A folder that exists.
        #[arg(value_name = "FOLDER")]
        folder: PathBuf,
    },
}

impl Command {
    /// Whether the command reads captures and answers a question, which may take any time and memory.
    pub(crate) fn is_question(&self) -> bool {
        !matches!(self, Command::Man { .. } | Command::View(_))
    }

    /// Whether the command continues until captures end, and finishes its work when it is asked to
    /// stop.
    pub(crate) fn follows(&self) -> bool {
        matches!(self, Command::Export(args) if args.follow.follow)
    }

    /// The value of `--memory`.
    pub(crate) fn memory(&self) -> Option<usize> {
        match self {
            Command::Stat(args) => args.captures.memory,
            Command::Why(args) => args.captures.memory,
            Command::Graph(args) => args.memory,
            Command::WhatIf(args) => args.captures.memory,
            Command::Sql(args) => args.captures.memory,
            Command::Export(args) => args.captures.memory,
            Command::Report(args) => args.captures.memory,
            Command::View(args) => args.memory,
            Command::Plot(args) => args.captures.memory,
            Command::Fit(args) => args.captures.memory,
            Command::Model(args) => args.captures.memory,
            Command::Compare(args) => args.captures.memory,
            Command::Import(_) | Command::Top(_) | Command::Man { .. } => None,
        }
    }
}

/// Where an answer goes.
#[derive(Debug, ClapArgs)]
pub(crate) struct OutputArgs {
    /// Where to write it; `-` is stdout.
    #[arg(short, long, value_name = "PATH", default_value = "-", value_parser = local())]
    pub(crate) output: PathBuf,
    /// Overwrite the output if it exists.
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Stat {
    #[command(flatten)]
    pub(crate) captures: Captures,
    /// Only this kind of frame, or these spans or chains (request_spans).
    #[arg(long, value_name = "NAME")]
    pub(crate) frame: Option<String>,
    /// Only this field (may be given again, or several with commas) [default: all].
    #[arg(long, value_name = "FIELD", value_delimiter = ',', conflicts_with = "hist")]
    pub(crate) field: Vec<String>,
    /// Group by this column (may be given again, or several with commas).
    #[arg(long, value_name = "COLUMN", value_delimiter = ',')]
    pub(crate) by: Vec<String>,
    /// Slice the time, such as 1s or 100ms.
    #[arg(long, value_name = "TIME", value_parser = nanoseconds)]
    pub(crate) every: Option<i64>,
    /// Only rows of which this expression is true, such as "kind = 'LOGIN' AND handle > 1000".
    #[arg(long = "where", value_name = "EXPRESSION")]
    pub(crate) filter: Option<String>,
    /// Draw how the values of this field are spread.
    #[arg(long, value_name = "FIELD", conflicts_with = "format")]
    pub(crate) hist: Option<String>,
    /// Also show the self time of intervals: their lengths without the intervals inside them.
    #[arg(long = "self")]
    pub(crate) self_time: bool,
    /// Format [default: text on a terminal, else tsv].
    #[arg(long, value_name = "FORMAT", value_parser = formats("text"))]
    pub(crate) format: Option<String>,
    #[command(flatten)]
    pub(crate) to: OutputArgs,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct WhyArgs {
    #[command(flatten)]
    pub(crate) captures: Captures,
    /// Only this kind of frame (`stmt`), or its spans alone (`stmt_spans`).
    #[arg(long, value_name = "NAME")]
    pub(crate) frame: Option<String>,
    /// Only this interval; `dur` for spans [default: all].
    #[arg(long, value_name = "FIELD")]
    pub(crate) field: Option<String>,
    /// Only rows of which this expression is true, such as "kind = 'LOGIN' AND handle > 10ms".
    #[arg(long = "where", value_name = "EXPRESSION")]
    pub(crate) filter: Option<String>,
    /// Fields that say which request it was [default: the keys of spans, then enums and texts].
    #[arg(long, value_name = "FIELD", value_delimiter = ',')]
    pub(crate) show: Vec<String>,
    /// Only the summary: where all time above the 99th percentile went.
    #[arg(long)]
    pub(crate) summary: bool,
    /// How many of the slowest.
    #[arg(long, value_name = "N", default_value = "20", value_parser = slowest)]
    pub(crate) slowest: usize,
    /// Format [default: text on a terminal, else tsv].
    #[arg(long, value_name = "FORMAT", value_parser = formats("text"))]
    pub(crate) format: Option<String>,
    #[command(flatten)]
    pub(crate) to: OutputArgs,
}

/// What a graph is written as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Drawing {
    /// For programs that lay out graphs.
    Dot,
    /// A picture for browsers.
    Svg,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Graph {
    /// Captures with points: files, patterns ('run*/*.bin'), names of rotated ones; `-` is stdin.
    #[arg(value_name = "CAPTURE", required = true, value_parser = local())]
    pub(crate) captures: Vec<PathBuf>,
    /// The point where ways begin: FRAME, or BUFFER.FRAME.
    #[arg(long, value_name = "POINT", requires = "to_point")]
    pub(crate) from: Option<String>,
    /// The point where they end.
    #[arg(long = "to", value_name = "POINT", requires = "from")]
    pub(crate) to_point: Option<String>,
    /// How many of the slowest ways to show.
    #[arg(long, value_name = "N", default_value = "20", value_parser = slowest, requires = "from")]
    pub(crate) slowest: usize,
    /// Edge lines that count instead of those of the frame files.
    #[arg(long, value_name = "FILE", value_parser = local())]
    pub(crate) edges: Option<PathBuf>,
    /// Only what was captured from here on: a sequence number, a time since the start, or a time in UTC.
    #[arg(long, value_name = "WHERE", value_parser = Bound::from_str)]
    pub(crate) since: Option<Bound>,
    /// Only up to here, likewise.
    #[arg(long, value_name = "WHERE", value_parser = Bound::from_str)]
    pub(crate) until: Option<Bound>,
    /// Memory for the question: sorts that take more go to disk, everything else ends the question
    /// [default: half of what is free].
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) memory: Option<usize>,
    /// Threads that read [default: one for each CPU].
    #[arg(long, value_name = "N", value_parser = threads)]
    pub(crate) threads: Option<usize>,
    #[command(flatten)]
    pub(crate) hosts: Hosts,
    /// Draw the points instead.
    #[arg(long, value_name = "AS", conflicts_with_all = ["from", "format"])]
    pub(crate) draw: Option<Drawing>,
    /// Format [default: text on a terminal, else tsv].
    #[arg(long, value_name = "FORMAT", value_parser = formats("text"))]
    pub(crate) format: Option<String>,
    #[command(flatten)]
    pub(crate) to: OutputArgs,
}

impl Graph {
    pub(crate) fn captures(&self) -> Captures {
        Captures {
            captures: self.captures.clone(),
            buffers: Vec::new(),
            from: self.since,
            to: self.until,
            memory: self.memory,
            threads: self.threads,
            no_pushdown: false,
            hosts: self.hosts.clone(),
        }
    }
}

#[derive(Debug, ClapArgs)]
pub(crate) struct WhatIf {
    #[command(flatten)]
    pub(crate) captures: Captures,
    /// How many times as fast an interval is, job.handle=2x (may be given again for another) [default:
    /// each interval alone, twice as fast].
    #[arg(long, value_name = "INTERVAL=FACTOR", value_parser = Speed::from_str)]
    pub(crate) speed: Vec<Speed>,
    /// What to predict: an interval (job.handle) or a span (request), 'path(a, b)' between points,
    /// 'rate(job.handle)' or end (may be given again) [default: all spans, and end].
    #[arg(long, value_name = "METRIC", value_parser = Metric::from_str)]
    pub(crate) metric: Vec<Metric>,
    /// Predict for each of these factors instead, such as 1.5,2,4.
    #[arg(long, value_name = "FACTORS", value_delimiter = ',', requires = "speed", value_parser = factor)]
    pub(crate) sweep: Vec<f64>,
    /// Format [default: text on a terminal, else tsv].
    #[arg(long, value_name = "FORMAT", value_parser = formats("text"))]
    pub(crate) format: Option<String>,
    #[command(flatten)]
    pub(crate) to: OutputArgs,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Sql {
    #[command(flatten)]
    pub(crate) captures: Captures,
    /// Read the statements from this file; `-` is stdin.
    #[arg(short, long, value_name = "FILE", value_parser = local())]
    pub(crate) file: Option<PathBuf>,
    /// Format [default: table on a terminal, else tsv].
    #[arg(long, value_name = "FORMAT", value_parser = formats("table"))]
    pub(crate) format: Option<String>,
    /// Write CSV, with `'` before text that a spreadsheet may take for a formula. COPY to CSV, too.
    #[arg(long)]
    pub(crate) for_spreadsheet: bool,
    #[command(flatten)]
    pub(crate) to: OutputArgs,
}

/// What an export is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    /// Columns for data frames, DuckDB, Spark; a file for each kind of frame.
    Parquet,
    /// The same as a stream of Arrow's IPC.
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
    /// The same in one file, a line of JSON per request: for collectors.
    OtlpJson,
}

/// How Parquet has times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Time {
    /// Each twice: in µs, which every reader knows, and as NAME_ns.
    Both,
    /// In ns alone.
    Ns,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Export {
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
    /// How Parquet has times.
    #[arg(long, value_enum, default_value = "both")]
    pub(crate) time: Time,
    #[command(flatten)]
    pub(crate) follow: FollowArgs,
    #[command(flatten)]
    pub(crate) to: ExportTo,
}

/// Where an export goes.
#[derive(Debug, ClapArgs)]
pub(crate) struct ExportTo {
    /// Where to write it; `-` is stdout. With --follow a folder, or `s3://BUCKET/PREFIX`, an object store
    /// of which AWS_… variables say how it is reached.
    #[arg(short, long, value_name = "PATH", default_value = "-")]
    pub(crate) output: PathBuf,
    /// Overwrite the output if it exists.
    #[arg(long)]
    pub(crate) force: bool,
}

/// How a capture that grows is exported.
#[derive(Debug, ClapArgs)]
pub(crate) struct FollowArgs {
    /// Go on while captures grow, until they end: a new file each minute or each 64 MiB, each row in exactly
    /// one, also if the exporter is killed (--format parquet, otlp, otlp-json).
    #[arg(long, conflicts_with_all = [
        "from", "to", "partition_by", "for_spreadsheet", "force", "sync", "reference",
    ])]
    pub(crate) follow: bool,
    /// How long what was captured may wait for its file [default: 1m].
    #[arg(long, value_name = "TIME", value_parser = nanoseconds, requires = "follow")]
    every: Option<i64>,
    /// How many bytes of frames a file has at most, about, as the capture stores them [default: 64M;
    /// for OpenTelemetry 4M, which are about 64M of spans].
    #[arg(long, value_name = "SIZE", value_parser = size, requires = "follow")]
    bytes: Option<usize>,
    /// How long an object store may be away until the export ends with an error [default: 10m].
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

#[derive(Debug, ClapArgs)]
pub(crate) struct Report {
    #[command(flatten)]
    pub(crate) captures: Captures,
    /// Add a section for each view and each SELECT of this file.
    #[arg(long, value_name = "FILE", value_parser = local())]
    pub(crate) sql: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) to: OutputArgs,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Plot {
    #[command(flatten)]
    pub(crate) captures: Captures,
    /// What to draw [default: as the columns suggest].
    #[arg(long, value_name = "KIND", value_parser = kinds())]
    pub(crate) kind: Option<String>,
    /// Draw a flame graph of the stacks of threads that ran (`ppt attach PID --stacks`) instead of the
    /// answer to a query. Its height follows from the depth of stacks.
    #[arg(long, conflicts_with = "kind")]
    pub(crate) flame: bool,
    /// Draw where threads began to wait (`--stacks=99,waits`).
    #[arg(long, requires = "flame")]
    pub(crate) waits: bool,
    /// Draw the stacks within the slowest frames of this kind above all others.
    #[arg(long, value_name = "NAME", requires = "flame")]
    pub(crate) frame: Option<String>,
    /// The same of this interval; `dur` for spans [default: all].
    #[arg(long, value_name = "FIELD", requires = "flame")]
    pub(crate) field: Option<String>,
    /// Only of rows of which this expression is true.
    #[arg(long = "where", value_name = "EXPRESSION", requires = "flame")]
    pub(crate) filter: Option<String>,
    /// How many of the slowest.
    #[arg(long, value_name = "N", value_parser = slowest, requires = "flame")]
    pub(crate) slowest: Option<usize>,
    /// What stands above it.
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    pub(crate) title: String,
    /// Its width, in pixels.
    #[arg(long, value_name = "PIXELS", default_value = "720")]
    #[arg(value_parser = clap::value_parser!(u32).range(120..=10_000))]
    pub(crate) width: u32,
    /// Its height, in pixels.
    #[arg(long, value_name = "PIXELS", default_value = "400")]
    #[arg(value_parser = clap::value_parser!(u32).range(90..=10_000))]
    pub(crate) height: u32,
    #[command(flatten)]
    pub(crate) to: OutputArgs,
}

/// How an answer is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TextOrJson {
    /// For people.
    Text,
    /// For programs.
    Json,
}

/// How sure intervals are.
#[derive(Debug, ClapArgs)]
pub(crate) struct IntervalArgs {
    /// Part of all cases in which an interval holds the truth.
    #[arg(long, value_name = "PART", default_value = "0.95", value_parser = level)]
    pub(crate) level: f64,
    /// Resamples of the bootstrap over runs.
    #[arg(long, value_name = "N", default_value = "2000", value_parser = resamples)]
    pub(crate) resamples: usize,
    /// Where its random numbers begin; the same seed gives the same intervals.
    #[arg(long, value_name = "N", default_value = "1")]
    pub(crate) seed: u64,
}

impl IntervalArgs {
    pub(crate) fn options(&self) -> ppt_models::FitOptions {
        let resampling = ppt_models::Resampling { count: self.resamples, seed: self.seed };
        ppt_models::FitOptions { level: self.level, resampling }
    }
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Fit {
    #[command(flatten)]
    pub(crate) captures: Captures,
    /// The SELECT whose rows the formula is fitted to.
    #[arg(long, value_name = "SELECT")]
    pub(crate) sql: String,
    /// The column that says of which run a row is [default: capture, if the SELECT has it].
    #[arg(long, value_name = "COLUMN")]
    pub(crate) run: Option<String>,
    /// Predict here, such as n=1000 (may be given again, for another column).
    #[arg(long, value_name = "COLUMN=VALUE", value_parser = point)]
    pub(crate) at: Vec<(String, f64)>,
    /// Say where the response reaches this.
    #[arg(long, value_name = "BOUND")]
    pub(crate) limit: Option<f64>,
    /// Draw it, too: what was measured, the formula with its interval, and the residuals.
    #[arg(long, value_name = "PATH", value_parser = local())]
    pub(crate) svg: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) sure: IntervalArgs,
    /// Format.
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "text")]
    pub(crate) format: TextOrJson,
    #[command(flatten)]
    pub(crate) to: OutputArgs,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ModelArgs {
    /// The resources and their components.
    #[arg(value_name = "MODEL.toml")]
    pub(crate) model: PathBuf,
    #[command(flatten)]
    pub(crate) captures: Captures,
    /// Predict at this load.
    #[arg(long, value_name = "LOAD")]
    pub(crate) at: Option<f64>,
    /// Draw it, too: each resource with its bound, and each formula with what was measured.
    #[arg(long, value_name = "PATH", value_parser = local())]
    pub(crate) svg: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) sure: IntervalArgs,
    /// Format.
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "text")]
    pub(crate) format: TextOrJson,
    #[command(flatten)]
    pub(crate) to: OutputArgs,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Compare {
    #[command(flatten)]
    pub(crate) captures: Captures,
    /// The captures of the second set, behind `--`.
    #[arg(value_name = "SECOND", last = true)]
    pub(crate) second: Vec<PathBuf>,
    /// Only this kind of frame, or these spans or chains (request_spans).
    #[arg(long, value_name = "NAME")]
    pub(crate) frame: Option<String>,
    /// Compare group by group of this column.
    #[arg(long, value_name = "COLUMN")]
    pub(crate) by: Option<String>,
    /// Compare only this field: its name, or more of where it is, as in 'job.handle' (may be given
    /// again).
    #[arg(long, value_name = "FIELD")]
    pub(crate) field: Vec<String>,
    /// Fail if this is shown, such as 'job.handle p99 > 1.1x' (may be given again).
    #[arg(long, value_name = "CHANGE")]
    pub(crate) fail_if: Vec<String>,
    /// Keep what the (second) set measured in this file.
    #[arg(long, value_name = "FILE")]
    pub(crate) save: Option<PathBuf>,
    /// Compare with what --save kept, in place of a first set.
    #[arg(long, value_name = "FILE")]
    pub(crate) baseline: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) sure: IntervalArgs,
    /// Format.
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "text")]
    pub(crate) format: TextOrJson,
    #[command(flatten)]
    pub(crate) to: OutputArgs,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Import {
    /// A table with a line of headings (CSV, or separated by tabs), a pcap or a pcapng file; `-` is
    /// stdin.
    #[arg(value_name = "FILE")]
    pub(crate) input: PathBuf,
    /// Frame file that says what a line or a packet is.
    #[arg(long, value_name = "FRAME_FILE")]
    pub(crate) schema: PathBuf,
    /// The kind of frame that each line is [default: the only one, or the column `frame` says].
    #[arg(long, value_name = "NAME")]
    pub(crate) frame: Option<String>,
    /// A column of the frame file has another heading (repeatable).
    #[arg(long = "column", value_name = "FIELD=HEADING", value_parser = pair)]
    pub(crate) columns: Vec<(String, String)>,
    /// Leave out the column with this heading (repeatable).
    #[arg(long, value_name = "HEADING")]
    pub(crate) skip: Vec<String>,
    /// The numbers of a time or a duration are in s, ms or us [default: ns] (repeatable).
    #[arg(long = "unit", value_name = "FIELD=UNIT", value_parser = unit)]
    pub(crate) units: Vec<(String, u64)>,
    /// What separates cells [default: a tab if the headings have one, else a comma].
    #[arg(long, value_name = "CHARACTER", value_parser = delimiter)]
    pub(crate) delimiter: Option<u8>,
    /// UTC when the clocks `monotonic` and `boottime` of the input were at 0 [default: 1970].
    #[arg(long, value_name = "TIME", value_parser = Bound::from_str)]
    pub(crate) epoch: Option<Bound>,
    /// The times are of the clocks of the host that this capture was made on: its points and those of
    /// the input can be joined.
    #[arg(long, value_name = "CAPTURE", conflicts_with_all = ["epoch", "host"], value_parser = local())]
    pub(crate) clock_of: Option<PathBuf>,
    /// By how much the times may be off, such as 600us [default: 0].
    #[arg(long, value_name = "TIME", value_parser = nanoseconds)]
    pub(crate) clock_error: Option<i64>,
    /// Name of the host in the capture [default: the name of the input].
    #[arg(long, value_name = "NAME")]
    pub(crate) host: Option<String>,
    /// Id of the process in the capture.
    #[arg(long, value_name = "PID", default_value = "0", hide_default_value = true)]
    pub(crate) pid: u32,
    /// Metadata for the capture (repeatable).
    #[arg(long = "tag", value_name = "NAME=VALUE", value_parser = pair)]
    pub(crate) tags: Vec<(String, String)>,
    #[command(flatten)]
    pub(crate) to: OutputArgs,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Top {
    /// A capture that is being written; `-` is stdin.
    #[arg(value_name = "CAPTURE", value_parser = local())]
    pub(crate) capture: PathBuf,
    /// Print one table, and end.
    #[arg(long)]
    pub(crate) once: bool,
    /// Show threads first, or print them, instead of frames.
    #[arg(long)]
    pub(crate) threads: bool,
    /// How often to draw; of a stream, how long to look before --once prints [default: 1s].
    #[arg(long, value_name = "TIME", value_parser = nanoseconds)]
    every: Option<i64>,
    /// Show only what has this text in its name.
    #[arg(long, value_name = "TEXT")]
    pub(crate) filter: Option<String>,
    /// How much of the latest frames to keep for the key `w`.
    #[arg(long, value_name = "SIZE", value_parser = size, default_value = "64M")]
    pub(crate) keep: usize,
}

impl Top {
    pub(crate) fn every(&self) -> Duration {
        self.every.map_or(Duration::from_secs(1), |ns| Duration::from_nanos(ns.unsigned_abs()))
    }
}

fn kinds() -> PossibleValuesParser {
    PossibleValuesParser::new(ppt_report::PlotForm::ALL.map(|form| form.0))
}

fn formats(text: &'static str) -> PossibleValuesParser {
    let words = ResultFormat::ALL.into_iter().map(|(word, format)| match format {
        ResultFormat::Aligned => text,
        _ => word,
    });
    PossibleValuesParser::new(words.collect::<Vec<_>>())
}

fn pair(text: &str) -> Result<(String, String), String> {
    let pair = text.split_once('=').filter(|(name, value)| !name.is_empty() && !value.is_empty());
    let pair = pair.map(|(name, value)| (name.to_owned(), value.to_owned()));
    pair.ok_or_else(|| "two names with = between them".to_owned())
}

fn unit(text: &str) -> Result<(String, u64), String> {
    let (name, unit) = pair(text)?;
    let unit = match unit.as_str() {
        "s" => 1_000_000_000,
        "ms" => 1_000_000,
        "us" => 1000,
        "ns" => 1,
        _ => return Err("a field, = and its unit: s, ms, us or ns".to_owned()),
    };
    Ok((name, unit))
}

fn delimiter(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        [one] if one.is_ascii() && !one.is_ascii_alphanumeric() && !b"\"\r\n".contains(one) => {
            Ok(*one)
        }
        _ if text == "\\t" => Ok(b'\t'),
        _ => Err("one ASCII character, such as ; or |".to_owned()),
    }
}

fn level(text: &str) -> Result<f64, String> {
    let level = text.parse().ok().filter(|value| *value > 0.0 && *value < 1.0);
    level.ok_or("a level is above 0 and below 1, such as 0.95".into())
}

fn slowest(text: &str) -> Result<usize, String> {
    let count = text.parse().ok().filter(|index| (1..=10_000).contains(index));
    count.ok_or("from 1 to 10000".into())
}

fn factor(text: &str) -> Result<f64, String> {
    let factor = text.strip_suffix('x').unwrap_or(text).parse().ok();
    factor
        .filter(|factor: &f64| *factor > 0.0 && factor.is_finite())
        .ok_or("a factor above 0, such as 2x".into())
}

fn resamples(text: &str) -> Result<usize, String> {
    let count = text.parse().ok().filter(|index| (100..=1_000_000).contains(index));
    count.ok_or("from 100 to 1000000".into())
}

/// Parses `n=1000`.
fn point(text: &str) -> Result<(String, f64), String> {
    let parts = text.split_once('=').and_then(|(name, value)| Some((name, value.parse().ok()?)));
    let (name, value) = parts.ok_or("a point is a column and its value, such as n=1000")?;
    Ok((name.to_owned(), value))
}

fn nanoseconds(text: &str) -> Result<i64, String> {
    i64::try_from(argument::duration(text)?.as_nanos()).map_err(|error| error.to_string())
}
