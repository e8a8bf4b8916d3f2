//! The command line of `ppt`.

use std::ffi::{OsStr, OsString};
use std::num::ParseIntError;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::builder::NonEmptyStringValueParser;
use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};

use ppt_dump::Bound;
use ppt_text::argument;

use crate::measure::{self, Every};

mod view;
mod whatif;
mod with;

pub(crate) use view::ProcessView;
pub(crate) use whatif::{AskedSpeeds, LiveWhatIf};
pub(crate) use with::{PreloadSource, With};

/// Programs beside ppt that do some of its commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PartnerProgram {
    /// Answers questions about captures; has a query engine.
    Analysis,
    /// Experiments over several hosts.
    Lab,
}

impl PartnerProgram {
    /// The name of its file.
    pub(crate) fn name(self) -> &'static str {
        match self {
            PartnerProgram::Analysis => "ppt-analysis",
            PartnerProgram::Lab => "ppt-lab",
        }
    }

    /// Its commands, and what each does.
    pub(crate) fn commands(self) -> &'static [(&'static str, &'static str)] {
        match self {
            PartnerProgram::Analysis => &ANALYSES,
            PartnerProgram::Lab => &EXPERIMENTS,
        }
    }
}

/// Commands of other programs, and what each does.
pub(crate) fn others() -> impl Iterator<Item = (&'static str, &'static str, PartnerProgram)> {
    let commands = |program: PartnerProgram| {
        program.commands().iter().map(move |(word, about)| (*word, *about, program))
    };
    commands(PartnerProgram::Analysis).chain(commands(PartnerProgram::Lab))
}

/// The program that does a command.
pub(crate) fn program(word: &OsStr) -> Option<PartnerProgram> {
    others().find(|(known, ..)| word == *known).map(|(.., program)| program)
}

const EXPERIMENTS: [(&str, &str); 2] = [
    ("sync", "Read how the clocks of other hosts go"),
    ("lab", "Run an experiment over several hosts from one file"),
];

const ANALYSES: [(&str, &str); 13] = [
    ("stat", "Count frames; show percentiles of intervals and fields"),
    ("why", "Show where the slowest intervals spent their time, with --kernel"),
    ("graph", "Show which points lead to which, and where the time goes"),
    ("whatif", "Predict what a faster part would be worth"),
    ("sql", "Answer SQL queries over captures"),
    ("export", "Turn captures into files that other programs open"),
    ("report", "Write a page for the browser"),
    ("view", "Show a timeline in the browser, also of a running program"),
    ("plot", "Draw the answer to an SQL query"),
    ("import", "Turn CSV or pcap files of other tools into a capture"),
    ("fit", "Calibrate a formula: how a cost grows, with a verdict"),
    ("model", "Compute what resources a load takes, and where they run out"),
    ("compare", "Compare two sets of runs"),
];

/// Show what a running program does, event by event.
#[derive(Parser)]
#[command(name = "ppt", version, max_term_width = 100, arg_required_else_help = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Capture the frames of a running program until it ends, or Ctrl-C.
    Attach(Attach),
    /// Start a command and capture its frames from the first one.
    #[command(after_help = RUN_STATUS)]
    Run(RunArgs),
    /// Print how a service gets the library of `ppt run --with`.
    #[command(after_help = with::EXAMPLES)]
    With(With),
    /// Switch a program's buffers off, and remove what a killed ppt left.
    Detach(Detach),
    /// List the ppt buffers of a process, or of all that you may read.
    List(List),
    /// Show what a running program does: rates, times, values, losses.
    Top(Top),
    /// Have a running ppt capture more: frames and counters by name.
    Enable(Choose),
    /// Have a running ppt capture less: frames and counters by name.
    Disable(Choose),
    /// Have a flight recorder (--flight) write what it has of a process.
    Trigger(Trigger),
    /// Turn a capture into a table.
    Dump(Dump),
    /// Print what a capture holds, and what was lost.
    Info(Info),
    /// Build an example, attach to it under load, and show the answers.
    Demo(Demo),
    /// Report what prevents attaching, on this machine or to a process.
    Doctor(Doctor),
    /// Explain a message: its meaning, its cause, and what to do.
    Explain(Explain),
    /// Print the completion script of a shell.
    #[command(after_help = COMPLETION)]
    Completion(Completion),
    /// Write the man pages of ppt and pptc into a folder.
    #[command(after_help = MAN)]
    Man(Man),
    /// Serve the metrics of the ppt that starts it, which has its standard input.
    #[command(hide = true)]
    ServeMetrics(ServeMetrics),
    #[command(external_subcommand)]
    Other(Vec<OsString>),
}

const COMPLETION: &str = "\
Examples:
  source <(ppt completion bash)          in ~/.bashrc
  source <(ppt completion zsh)           in ~/.zshrc
  ppt completion fish | source           in config.fish";

const MAN: &str = "\
Example:
  ppt man ~/.local/share/man/man1";

const RUN_STATUS: &str = "Exit status: the command's; 128 + N if signal N ended it; 125 if ppt itself \
failed or was used wrongly; 126 if the command cannot be executed; 127 if it is not found.";

/// The processes, named in exactly one way.
#[derive(ClapArgs)]
#[group(id = "which", required = true, multiple = false)]
pub(crate) struct Processes {
    /// Process id.
    #[arg(value_name = "PID", value_parser = pid_or_hint)]
    pid: Option<i32>,
    /// Process id, as an option.
    #[arg(short = 'p', long = "pid", value_name = "PID", value_parser = pid_or_hint)]
    pid_option: Option<i32>,
    /// The process of this name that has ppt buffers; it must be the only one.
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    name: Option<String>,
    /// Every process that has ppt buffers and that you may attach to.
    #[arg(long)]
    all: bool,
}

/// Reads a pid. Who writes a name instead learns how to name a process.
fn pid_or_hint(text: &str) -> Result<i32, String> {
    read_pid(text, &format!("for the process of this name: --name {text}"))
}

/// Reads a pid, for a command that takes no name.
fn pid(text: &str) -> Result<i32, String> {
    read_pid(text, "`ppt list` shows the pid of each process that has ppt buffers")
}

/// Reads a pid. The hint is for those who write a word instead.
fn read_pid(text: &str, hint: &str) -> Result<i32, String> {
    let is_word = text.chars().any(char::is_alphabetic);
    text.parse().map_err(|error: ParseIntError| {
        if is_word { format!("a pid is a number; {hint}") } else { error.to_string() }
    })
}

/// The selected processes.
#[derive(Clone, Copy)]
pub(crate) enum ProcessChoice<'a> {
    /// This one.
    Pid(i32),
    /// The one of this name.
    Name(&'a str),
    /// The one of this name, as soon as there is one.
    WaitFor(&'a str),
    /// Every one that there is.
    All,
}

impl Processes {
    pub(crate) fn choice(&self) -> ProcessChoice<'_> {
        match (&self.name, self.all) {
            (Some(name), _) => ProcessChoice::Name(name),
            (None, true) => ProcessChoice::All,
            // Without a name there is a number, or nothing at all was asked for.
            (None, false) => ProcessChoice::Pid(self.pid.or(self.pid_option).unwrap_or_default()),
        }
    }
}

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
fn stacks(text: &str) -> Result<ppt_kernel::Stacks, String> {
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

#[derive(ClapArgs)]
pub(crate) struct Attach {
    #[command(flatten)]
    processes: Processes,
    /// Wait for a process of this name that has ppt buffers.
    #[arg(long, value_name = "NAME", group = "which")]
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    wait_for: Option<String>,
    /// Also capture the children that the process forks: existing and future ones.
    #[arg(long)]
    pub(crate) follow: bool,
    #[command(flatten)]
    pub(crate) capture: CaptureArgs,
}

impl Attach {
    pub(crate) fn choice(&self) -> ProcessChoice<'_> {
        self.wait_for.as_deref().map_or_else(|| self.processes.choice(), ProcessChoice::WaitFor)
    }
}

#[derive(ClapArgs)]
pub(crate) struct ServeMetrics {
    /// Where.
    pub(crate) address: ppt_metrics::MetricsAddress,
}

#[derive(ClapArgs)]
pub(crate) struct RunArgs {
    /// The command and its arguments.
    #[arg(value_name = "COMMAND", required = true, trailing_var_arg = true)]
    pub(crate) command: Vec<OsString>,
    /// Preload a library that writes frames from inside of programs that nobody edited: `net` has their
    /// requests, `locks` their waits for locks, `files` their operations on files.
    #[arg(long, value_name = "SOURCES", value_delimiter = ',')]
    pub(crate) with: Vec<PreloadSource>,
    #[command(flatten)]
    pub(crate) capture: CaptureArgs,
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
    /// Maximum memory for the rings of each buffer.
    #[arg(long, value_name = "SIZE", value_parser = argument::size, default_value = "256M")]
    pub(crate) memory: u64,
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
    fn to(output: PathBuf) -> Self {
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
            memory: 256 << 20,
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

/// What is kept in memory until something happens.
#[derive(ClapArgs, Clone, Debug, Default)]
#[command(next_help_heading = "Flight recorder")]
pub(crate) struct Flight {
    /// Keep the frames of the last TIME in memory. When something triggers, write those around it as a
    /// capture into the folder -o. `ppt trigger` triggers by hand.
    #[arg(id = "flight", long, value_name = "TIME", value_parser = argument::duration,
          requires = "output",
          conflicts_with_all = ["max_size", "rotate", "keep", "matching", "force"])]
    pub(crate) time: Option<Duration>,
    /// Maximum memory for the frames of --flight.
    #[arg(id = "memory_flight", long = "memory-flight", value_name = "SIZE", value_parser = argument::size,
          default_value = "256M", requires = "flight")]
    pub(crate) memory: u64,
    /// What to write of the time before a trigger [default: all of --flight].
    #[arg(long, value_name = "TIME", value_parser = argument::duration, requires = "flight")]
    pub(crate) before: Option<Duration>,
    /// What to write of the time after a trigger.
    #[arg(long, value_name = "TIME", value_parser = argument::any_duration, default_value = "0s",
          requires = "flight")]
    pub(crate) after: Duration,
    /// Trigger at a frame of which this is true, such as "job.handle > 10ms" (repeatable).
    #[arg(long = "on", value_name = "EXPRESSION", requires = "flight")]
    pub(crate) on: Vec<String>,
    /// Trigger where frames were lost.
    #[arg(long, requires = "flight")]
    pub(crate) on_gap: bool,
    /// Trigger when a process ends, however it does.
    #[arg(long, requires = "flight")]
    pub(crate) on_exit: bool,
    /// Trigger if this is true of what was added to counters since they were read before, such as
    /// "errors > 0" (repeatable).
    #[arg(long, value_name = "EXPRESSION", requires = "flight")]
    pub(crate) on_counter: Vec<String>,
    /// After a trigger, ignore others for so long.
    #[arg(long, value_name = "TIME", value_parser = argument::any_duration, default_value = "0s",
          requires = "flight")]
    pub(crate) cooldown: Duration,
    /// Keep only the last N windows.
    #[arg(long, value_name = "N", default_value_t = 100, requires = "flight",
          value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max: u32,
}

#[derive(ClapArgs)]
pub(crate) struct Top {
    /// Process ids, or one capture that is being written.
    #[arg(value_name = "PID|CAPTURE", required = true)]
    targets: Vec<OsString>,
    /// Only this buffer (repeatable) [default: all].
    #[arg(short, long = "buffer", value_name = "BUFFER")]
    buffers: Vec<String>,
    /// Print one table, and end.
    #[arg(long)]
    pub(crate) once: bool,
    /// Show threads first, or print them, instead of frames.
    #[arg(long)]
    threads: bool,
    /// How often to draw; of a process, how long to look before --once prints [default: 1s].
    #[arg(long, value_name = "TIME", value_parser = argument::duration)]
    every: Option<Duration>,
    /// Show only what has this text in its name.
    #[arg(long, value_name = "TEXT")]
    filter: Option<String>,
    /// How much of the latest frames to keep for the key `w` [default: 64M].
    #[arg(long, value_name = "SIZE", value_parser = argument::size)]
    keep: Option<u64>,
    /// Slots per thread, a power of two [default: from the frame file, else 16384 or more].
    #[arg(long, value_name = "N|auto", value_parser = measure::slots)]
    slots: Option<measure::Slots>,
    /// Maximum memory for the rings of each buffer.
    #[arg(long, value_name = "SIZE", value_parser = argument::size, default_value = "256M")]
    memory: u64,
    /// Who makes the shared memory.
    #[arg(long, value_enum, value_name = "KIND", default_value = "auto")]
    segment: Segment,
    /// Proceed despite a safety check (repeatable).
    #[arg(long, value_delimiter = ',', value_name = "WHAT")]
    allow: Vec<Allow>,
}

impl Top {
    /// The processes; None: a capture is meant.
    pub(crate) fn pids(&self) -> Option<Vec<i32>> {
        self.targets
            .iter()
            .map(|target| target.to_str()?.parse().ok().filter(|&pid| pid > 0))
            .collect()
    }

    /// The capture that goes to the view.
    pub(crate) fn capture(&self) -> CaptureArgs {
        CaptureArgs {
            buffers: self.buffers.clone(),
            slots: self.slots,
            memory: self.memory,
            segment: self.segment,
            allow: self.allow.clone(),
            quiet: true,
            ..CaptureArgs::to("-".into())
        }
    }

    /// What the view is to know.
    pub(crate) fn of_view(&self) -> Vec<OsString> {
        let mut words = Vec::new();
        if self.once {
            words.push("--once".into());
        }
        if self.threads {
            words.push("--threads".into());
        }
        if let Some(every) = self.every {
            words.extend(["--every".into(), format!("{}ns", every.as_nanos()).into()]);
        }
        if let Some(filter) = &self.filter {
            words.push(format!("--filter={filter}").into());
        }
        if let Some(keep) = self.keep {
            words.extend(["--keep".into(), keep.to_string().into()]);
        }
        words
    }
}

#[derive(ClapArgs)]
pub(crate) struct Detach {
    #[command(flatten)]
    pub(crate) processes: Processes,
    /// Only this buffer (repeatable) [default: all].
    #[arg(short, long = "buffer", value_name = "BUFFER")]
    pub(crate) buffers: Vec<String>,
    /// Proceed despite a safety check (repeatable).
    #[arg(long, value_delimiter = ',', value_name = "WHAT")]
    pub(crate) allow: Vec<Allow>,
}

#[derive(ClapArgs)]
#[group(id = "of", required = true, multiple = false)]
pub(crate) struct Of {
    /// Process id.
    #[arg(value_name = "PID", value_parser = pid)]
    pid: Option<i32>,
    /// Process id, as an option.
    #[arg(short = 'p', long = "pid", value_name = "PID", value_parser = pid)]
    pid_option: Option<i32>,
}

#[derive(ClapArgs)]
pub(crate) struct Trigger {
    #[command(flatten)]
    of: Of,
    /// Text for the window, which says why.
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub(crate) note: String,
}

impl Trigger {
    pub(crate) fn pid(&self) -> i32 {
        self.of.pid.or(self.of.pid_option).unwrap_or_default()
    }
}

#[derive(ClapArgs)]
pub(crate) struct Choose {
    /// Process id.
    #[arg(value_name = "PID", value_parser = pid)]
    pid: i32,
    /// Names, BUFFER.NAME or @GROUP; `*` and `?` stand for others.
    #[arg(value_name = "NAME", required = true, value_delimiter = ',')]
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    names: Vec<String>,
}

impl Choose {
    /// The process, and the names.
    pub(crate) fn process_and_names(&self) -> (i32, Vec<String>) {
        (self.pid, self.names.clone())
    }
}

#[derive(ClapArgs)]
pub(crate) struct List {
    /// Process id [default: every process].
    #[arg(value_name = "PID", value_parser = pid)]
    pid: Option<i32>,
    /// Process id, as an option.
    #[arg(short = 'p', long = "pid", value_name = "PID", value_parser = pid, conflicts_with = "pid")]
    pid_option: Option<i32>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

impl List {
    pub(crate) fn pid(&self) -> Option<i32> {
        self.pid.or(self.pid_option)
    }
}

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

#[derive(ClapArgs)]
pub(crate) struct Doctor {
    /// Process id [default: check only the machine].
    #[arg(value_name = "PID", value_parser = pid)]
    pid: Option<i32>,
    /// Process id, as an option.
    #[arg(short = 'p', long = "pid", value_name = "PID", value_parser = pid, conflicts_with = "pid")]
    pid_option: Option<i32>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

impl Doctor {
    pub(crate) fn pid(&self) -> Option<i32> {
        self.pid.or(self.pid_option)
    }
}

#[derive(ClapArgs)]
pub(crate) struct Explain {
    /// Name of the message, as printed after `more:` [default: list all names].
    #[arg(value_name = "CODE")]
    pub(crate) code: Option<String>,
}

/// A shell for which there is a completion script.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Shell {
    Bash,
    Zsh,
    Fish,
}

#[derive(ClapArgs)]
pub(crate) struct Completion {
    /// The shell.
    #[arg(value_name = "SHELL")]
    pub(crate) shell: Shell,
}

#[derive(ClapArgs)]
pub(crate) struct Man {
    /// A folder that exists.
    #[arg(value_name = "FOLDER")]
    pub(crate) folder: PathBuf,
}

/// A program that `ppt demo` shows.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DemoProgram {
    /// A game server with 70 users, and the table of its frames.
    Game,
    /// A server with slow requests, and their cause: a lock that is held during a write to a slow disk.
    Slow,
}

#[derive(ClapArgs)]
pub(crate) struct Demo {
    /// The program to show.
    #[arg(value_enum, value_name = "PROGRAM", default_value = "game")]
    pub(crate) program: DemoProgram,
    /// Number of simulated users [default: 70; of `slow`: 8].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=500))]
    pub(crate) users: Option<u32>,
    /// How long to capture [default: 5s; of `slow`: 3s].
    #[arg(short, long, value_name = "TIME", value_parser = argument::duration)]
    pub(crate) duration: Option<Duration>,
}
