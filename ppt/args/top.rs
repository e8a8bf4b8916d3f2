//! Arguments of `ppt top`. `ppt-analysis` shows the capture.

use std::ffi::OsString;
use std::time::Duration;

use clap::Args as ClapArgs;
use ppt_text::argument;

use super::capture::{Allow, CaptureArgs, Segment};
use crate::measure;

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

    /// Arguments for the view.
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
