//! Arguments of `ppt top`.

use std::path::PathBuf;

use clap::Args as ClapArgs;
use ppt_text::argument;

use super::capture::{Allow, CaptureArgs, Segment};
use crate::measure;

#[derive(ClapArgs)]
pub(crate) struct Top {
    /// Process ids, or one capture that is being written; `-` is stdin.
    #[arg(value_name = "PID|CAPTURE", required = true, value_parser = ppt_analysis::local())]
    pub(crate) targets: Vec<PathBuf>,
    /// Only this buffer (repeatable) [default: all].
    #[arg(short, long = "buffer", value_name = "BUFFER")]
    buffers: Vec<String>,
    #[command(flatten)]
    pub(crate) shown: ppt_analysis::TopOptions,
    /// Slots per thread, a power of two [default: from the frame file, else 16384 or more].
    #[arg(long, value_name = "N|auto", value_parser = measure::slots)]
    slots: Option<measure::Slots>,
    /// Maximum memory for the rings of a process [default: 256M, a quarter of what its control groups
    /// leave, or 2M if it locks its memory].
    #[arg(long, value_name = "SIZE", value_parser = argument::size)]
    memory: Option<u64>,
    /// Who makes the shared memory.
    #[arg(long, value_enum, value_name = "KIND", default_value = "auto")]
    segment: Segment,
    /// Proceed despite a safety check (repeatable).
    #[arg(long, value_delimiter = ',', value_name = "WHAT")]
    allow: Vec<Allow>,
    /// The `ppt top PID` that starts this one passes what it captures on standard input.
    #[arg(long, hide = true)]
    pub(crate) on_stdin: bool,
}

impl Top {
    /// The processes; None: captures are meant.
    pub(crate) fn pids(&self) -> Option<Vec<i32>> {
        let pid = |target: &PathBuf| target.to_str()?.parse().ok().filter(|&pid| pid > 0);
        self.targets.iter().map(pid).collect()
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
}
