//! Arguments of `ppt view`.

use std::path::PathBuf;
use std::time::SystemTime;

use clap::Args as ClapArgs;

use super::attach::Attach;
use super::capture::{Allow, CaptureArgs, KernelPart, stacks};
use super::processes::Processes;

pub(super) const EXAMPLES: &str = "\
Examples:
  ppt view out.bin
  ppt view 4711                      a process, while it runs
  ppt view out.bin --port 8000       then, on your own machine: ssh -L 8000:127.0.0.1:8000 HOST";

#[derive(ClapArgs)]
pub(crate) struct View {
    #[command(flatten)]
    pub(crate) shown: ppt_analysis::ViewArgs,
    #[command(flatten)]
    process: OfProcess,
}

/// Options for a process alone, which ppt attaches to.
#[derive(ClapArgs)]
#[command(next_help_heading = "Of a process")]
struct OfProcess {
    /// The capture that is written, and stays [default: view-PID-TIME.bin].
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Only this buffer (repeatable) [default: all].
    #[arg(short, long = "buffer", value_name = "BUFFER")]
    buffers: Vec<String>,
    /// Also capture what the kernel does with the threads.
    #[arg(long, value_delimiter = ',', value_name = "WHAT")]
    kernel: Vec<KernelPart>,
    /// Also capture the stacks of threads.
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "99")]
    #[arg(value_name = "HZ[,waits][,unwind]", value_parser = stacks)]
    stacks: Option<ppt_kernel::Stacks>,
    /// Proceed despite a safety check of `ppt attach` (repeatable).
    #[arg(long, value_delimiter = ',', value_name = "WHAT")]
    allow: Vec<Allow>,
}

impl View {
    /// Whether there are options for making the capture.
    pub(crate) fn has_capture_options(&self) -> bool {
        let OfProcess { output, buffers, kernel, stacks, allow } = &self.process;
        let any = !(buffers.is_empty() && kernel.is_empty() && allow.is_empty());
        any || output.is_some() || stacks.is_some()
    }

    /// The `ppt attach` that makes the capture of a process.
    pub(crate) fn attach(&self, pid: i32) -> Attach {
        let OfProcess { output, buffers, kernel, stacks, allow } = &self.process;
        let output = output.clone().unwrap_or_else(|| {
            let now = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
            let now = now.replace(':', "");
            format!("view-{pid}-{}.bin", now.trim_end_matches('Z')).into()
        });
        Attach {
            processes: Processes { pid: Some(pid), pid_option: None, name: None, all: false },
            wait_for: None,
            follow: false,
            capture: CaptureArgs {
                buffers: buffers.clone(),
                kernel: kernel.clone(),
                stacks: *stacks,
                allow: allow.clone(),
                ..CaptureArgs::to(output)
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{Args, Command};

    fn parsed(text: &str) -> Result<View, clap::Error> {
        let words = ["ppt"].into_iter().chain(text.split(' '));
        Args::try_parse_from(words).map(|args| match args.command {
            Command::View(view) => view,
            _ => unreachable!("{text}"),
        })
    }

    #[test]
    fn a_number_is_a_process_and_all_else_a_capture() {
        for of_captures in [
            "view out.bin",
            "view 4711.bin",
            "view ./4711",
            "view 0",
            "view -- -4711",
            "view 4711 4712",
            "view 4711 out.bin",
            "view out.bin --port 8000",
            "view 4711 --sync a.sync",
            "view 4711 --written out.bin",
        ] {
            assert_eq!(parsed(of_captures).unwrap().shown.process(), None, "{of_captures}");
        }
        for (wrong, said) in [
            ("view 4711 --memory nonsense", "nonsense"),
            ("view 4711 --nothing", "--nothing"),
            ("view 4711 --kernel nonsense", "sched"),
        ] {
            let error = parsed(wrong).err().unwrap().to_string();
            assert!(error.contains(said), "{error}");
        }
        let view =
            parsed("view --port 8000 4711 --no-open -b store --kernel sched,faults").unwrap();
        assert_eq!((view.shown.process(), view.has_capture_options()), (Some(4711), true));
        let capture = view.attach(4711).capture;
        assert_eq!(capture.buffers, ["store"]);
        assert!(capture.kernel == [KernelPart::Sched, KernelPart::Faults] && !capture.force);
        let name = capture.output.to_str().unwrap().to_owned();
        assert!(name.starts_with("view-4711-2") && !name.contains(':'), "{name}");
        assert!(!parsed("view 4711 --no-index --threads 2").unwrap().has_capture_options());
    }
}
