//! How frames are captured.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::NonEmptyStringValueParser;
use clap::{Args as ClapArgs, ValueEnum};
use ppt_text::argument;

use super::flight::Flight;
use crate::measure::{self, Every};

/// A safety check that can be overridden.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Allow {
    /// Attach to a process that a debugger or strace traces.
    Traced,
    /// Attach to a program although its system call filter might end it.
    Seccomp,
    /// Take over a buffer that another ppt uses.
    ForeignClaim,
    /// Probe returns of functions though an exception that passes one ends the program.
    ProbeReturns,
    /// Serve metrics at an address that other machines reach: everybody there can read them.
    RemoteMetrics,
}

/// How often to poll the rings.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Rate {
    /// Busy rings up to every 0.5 ms, silent ones every 10 to 100 ms; remembers peaks.
    Peak,
    /// Every 0.5 to 100 ms, whatever the slots: wakes up rarely, but may lose a burst after silence.
    LowPower,
    /// Every 10 ms to 2 s, as in the paper; for comparison.
    Paper,
}

/// How frames are compressed.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Compress {
    /// Zstandard, level 1: smaller files.
    Zstd,
    /// LZ4: less CPU time.
    Lz4,
}

/// The clock of stamps of `option time tsc`.
#[derive(Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum StampSource {
    /// The CPU's counter if it can be trusted, otherwise the monotonic clock.
    #[default]
    Auto,
    /// The CPU's counter; fail if it cannot be trusted.
    Tsc,
    /// The monotonic clock.
    Monotonic,
}

/// What the kernel knows about the threads of a program.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum KernelPart {
    /// When threads run and wait, who wakes them, and who follows them on a CPU.
    Sched,
    /// System calls and their results.
    Syscalls,
    /// Page faults.
    Faults,
}

/// `99`, `waits`, `unwind`, or several of them: `99,waits,unwind`.
pub(super) fn stacks(text: &str) -> Result<ppt_kernel::Stacks, String> {
    use ppt_kernel::Stacks;
    let mut stacks = Stacks { hertz: Stacks::HERTZ, waits: false, unwind: false };
    for (place, word) in text.split(',').enumerate() {
        match word.parse::<u32>() {
            _ if word == "waits" => stacks.waits = true,
            _ if word == "unwind" => stacks.unwind = true,
            Ok(hertz) if place == 0 && (1..=Stacks::MAX_HERTZ).contains(&hertz) => {
                stacks.hertz = hertz;
            }
            _ => {
                let most = Stacks::MAX_HERTZ;
                return Err(format!(
                    "expected a number from 1 to {most}, `waits`, `unwind`, or several of them: \
                     99,waits,unwind"
                ));
            }
        }
    }
    Ok(stacks)
}

/// Who makes the shared memory.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Segment {
    /// ppt if the program can map what ppt makes, otherwise the program.
    Auto,
    /// ppt: System V shared memory.
    Sysv,
    /// The program: a sealed memfd that ppt fetches.
    Memfd,
}

/// How frames are captured, and where they are written.
#[derive(ClapArgs)]
pub(crate) struct CaptureArgs {
    /// The capture to write; `-` is stdout.
    #[arg(short, long, value_name = "FILE", default_value = "out.bin")]
    pub(crate) output: PathBuf,
    /// Only this buffer (repeatable) [default: all].
    #[arg(short, long = "buffer", value_name = "BUFFER")]
    pub(crate) buffers: Vec<String>,
    /// Have the program write only these frames, counters and histograms, by name, by BUFFER.NAME or by
    /// @GROUP; `*` and `?` stand for others. Several are separated by commas.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    pub(crate) only: Vec<String>,
    /// Have it write all but these.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    pub(crate) except: Vec<String>,
    /// Capture only frames of which this is true, such as "kind = 'LOGIN' AND handle > 10ms". The
    /// others are counted.
    #[arg(long = "where", value_name = "EXPRESSION")]
    pub(crate) matching: Option<String>,
    /// Stop after this time, for example 10s or 1m30s.
    #[arg(short, long, value_name = "TIME", value_parser = argument::duration)]
    pub(crate) duration: Option<Duration>,
    /// Stop before the capture exceeds this size, for example 500M.
    #[arg(long, value_name = "SIZE", value_parser = argument::size)]
    pub(crate) max_size: Option<u64>,
    /// Begin another file after this time (60s) or size (1G): out.000001.bin, out.000002.bin, ….
    #[arg(long, value_name = "TIME|SIZE", value_parser = measure::every,
          conflicts_with = "max_size")]
    pub(crate) rotate: Option<Every>,
    /// Keep only the last N files of --rotate.
    #[arg(long, value_name = "N", requires = "rotate",
          value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) keep: Option<u32>,
    /// Compress frames, chunk by chunk.
    #[arg(long, value_name = "CODEC")]
    pub(crate) compress: Option<Compress>,
    /// Slots per thread, a power of two [default: from the frame file, else 16384 or more]. `auto`
    /// begins with that number, or with the number of an earlier capture, and grows rings that are
    /// too small.
    #[arg(long, value_name = "N|auto", value_parser = measure::slots)]
    pub(crate) slots: Option<measure::Slots>,
    /// Maximum memory for the rings of a process [default: 256M, a quarter of what its control groups
    /// leave, or 2M if it locks its memory].
    #[arg(long, value_name = "SIZE", value_parser = argument::size)]
    pub(crate) memory: Option<u64>,
    /// How often to poll the rings.
    #[arg(long, value_name = "POLICY", default_value = "peak")]
    pub(crate) rate: Rate,
    /// How often to read counters and histograms.
    #[arg(long, value_name = "TIME", value_parser = argument::duration, default_value = "1s")]
    pub(crate) counters: Duration,
    /// The clock of stamps of `option time tsc`.
    #[arg(long, value_enum, value_name = "CLOCK", default_value = "auto")]
    pub(crate) clock: StampSource,
    /// Who makes the shared memory.
    #[arg(long, value_enum, value_name = "KIND", default_value = "auto")]
    pub(crate) segment: Segment,
    /// Also capture what the kernel does with the threads, into a buffer `kernel`; several words are
    /// separated by commas.
    #[arg(long, value_delimiter = ',', value_name = "WHAT")]
    pub(crate) kernel: Vec<KernelPart>,
    /// Also capture the stacks of threads that run, so often for each second that a thread runs, into a
    /// buffer `stacks`; with `,waits` also where threads begin to wait; with `,unwind` also of programs that
    /// were built without frame pointers.
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "99")]
    #[arg(value_name = "HZ[,waits][,unwind]", value_parser = stacks)]
    pub(crate) stacks: Option<ppt_kernel::Stacks>,
    /// Also capture each call of a function, or each hit of a USDT probe (PROVIDER:NAME, where `*` and `?`
    /// stand for others), into a buffer `probes` (repeatable). `list` prints the USDT probes.
    #[arg(long = "probe", value_name = "[FILE:]NAME")]
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    pub(crate) probes: Vec<String>,
    /// Stop a probe that is hit more often in a second.
    #[arg(long, value_name = "N", default_value_t = 100_000, requires = "probes",
          value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) probe_limit: u64,
    /// Serve counters, histograms and the account of the capture for Prometheus while it runs, at
    /// http://ADDRESS/metrics: 127.0.0.1:9464, a port alone, or port 0 for any that is free.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) metrics: Option<String>,
    /// Replace the capture if it exists.
    #[arg(long)]
    pub(crate) force: bool,
    /// Proceed despite a safety check (repeatable).
    #[arg(long, value_delimiter = ',', value_name = "WHAT")]
    pub(crate) allow: Vec<Allow>,
    /// Print how ppt found and reached the buffers.
    #[arg(short, long)]
    pub(crate) verbose: bool,
    /// Print no progress and no summary.
    #[arg(short, long)]
    pub(crate) quiet: bool,
    // Its heading holds for all that follows.
    #[command(flatten)]
    pub(crate) flight: Flight,
}

impl CaptureArgs {
    /// Of everything, into a file.
    #[cfg(feature = "answers")]
    pub(super) fn to(output: PathBuf) -> Self {
        Self {
            output,
            buffers: Vec::new(),
            only: Vec::new(),
            except: Vec::new(),
            matching: None,
            duration: None,
            max_size: None,
            rotate: None,
            keep: None,
            compress: None,
            slots: None,
            memory: None,
            rate: Rate::Peak,
            counters: Duration::from_secs(1),
            clock: StampSource::Auto,
            segment: Segment::Auto,
            kernel: Vec::new(),
            stacks: None,
            probes: Vec::new(),
            probe_limit: 0,
            flight: Flight::default(),
            metrics: None,
            force: false,
            allow: Vec::new(),
            verbose: false,
            quiet: false,
        }
    }

    /// Whether stdout takes the capture.
    pub(crate) fn to_stdout(&self) -> bool {
        self.output.as_os_str() == "-"
    }
}
