//! The command line of `ppt`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};

mod attach;
mod capture;
#[cfg(feature = "answers")]
mod demo;
mod dump;
mod flight;
mod list;
mod processes;
mod session;
#[cfg(feature = "answers")]
mod top;
#[cfg(feature = "answers")]
mod view;
#[cfg(feature = "answers")]
mod whatif;
mod with;

pub(crate) use attach::{Attach, Detach, RunArgs};
pub(crate) use capture::{Allow, CaptureArgs, Compress, KernelPart, Rate, Segment, StampSource};
#[cfg(feature = "answers")]
pub(crate) use demo::{Demo, DemoProgram};
pub(crate) use dump::{AddressForm, Dump, Info, OutputFormat, RowOrder, TimeFormat};
pub(crate) use list::{Doctor, List};
pub(crate) use processes::ProcessChoice;
use processes::pid;
pub(crate) use session::{Choose, Trigger};
#[cfg(feature = "answers")]
pub(crate) use top::Top;
#[cfg(feature = "answers")]
pub(crate) use view::View;
#[cfg(feature = "answers")]
pub(crate) use whatif::{AskedSpeeds, LiveWhatIf};
pub(crate) use with::{PreloadSource, With};

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
    #[cfg(feature = "answers")]
    Top(Top),
    /// Show a timeline in the browser, also of a running program.
    #[cfg(feature = "answers")]
    #[command(after_help = view::EXAMPLES)]
    View(View),
    #[cfg(feature = "answers")]
    #[command(flatten)]
    Question(ppt_analysis::Question),
    /// `ppt whatif --live`, which is parsed by itself: its options have other values.
    #[cfg(feature = "answers")]
    #[command(skip)]
    LiveWhatIf(LiveWhatIf),
    #[cfg(feature = "hosts")]
    #[command(flatten)]
    Hosts(ppt_lab::HostsCommand),
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
    #[cfg(feature = "answers")]
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
    /// Make the weights of threads ordinary again if the ppt that starts it ends.
    #[command(hide = true)]
    RestoreWeights(RestoreWeights),
    /// Read files and memory for the ppt that starts it.
    #[command(hide = true)]
    ReadForeign,
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

#[derive(ClapArgs)]
pub(crate) struct ServeMetrics {
    /// Where.
    pub(crate) address: ppt_metrics::MetricsAddress,
}

#[derive(ClapArgs)]
pub(crate) struct RestoreWeights {
    /// The processes.
    #[arg(value_name = "PID", required = true, value_parser = pid)]
    pub(crate) pids: Vec<i32>,
    /// Threads that stay as they are.
    #[arg(long, value_name = "TID")]
    pub(crate) except: Vec<i32>,
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
