//! Arguments of `ppt view`.

use std::path::PathBuf;

use clap::Args as ClapArgs;

use super::captures::{Hosts, local, size, threads};

#[derive(Debug, ClapArgs)]
pub(crate) struct ViewArgs {
    /// A process id, or captures: files, patterns ('run*/*.bin'), names of rotated ones. Those that are
    /// still written are followed.
    #[arg(value_name = "PID|CAPTURE", required_unless_present = "second", value_parser = local())]
    pub(crate) captures: Vec<PathBuf>,
    /// Captures that stand beside them, behind `--`: before and after. Alone, they are what is shown.
    #[arg(value_name = "SECOND", last = true, value_parser = local())]
    pub(crate) second: Vec<PathBuf>,
    /// The port of 127.0.0.1 on which the page is [default: any that is free].
    #[arg(long, value_name = "PORT", default_value_t = 0, hide_default_value = true)]
    pub(crate) port: u16,
    /// Print the address, and open no browser.
    #[arg(long)]
    pub(crate) no_open: bool,
    /// The folder where the index of a capture is kept, so that it opens at once the next time
    /// [default: $XDG_CACHE_HOME/ppt/view].
    #[arg(long, value_name = "FOLDER", value_parser = local())]
    pub(crate) index: Option<PathBuf>,
    /// Keep no index.
    #[arg(long, conflicts_with = "index")]
    pub(crate) no_index: bool,
    /// Memory for frames that are looked at, and for each question [default: 256M, and half of what is
    /// free].
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) memory: Option<usize>,
    /// Threads that read [default: one for each CPU].
    #[arg(long, value_name = "N", value_parser = threads)]
    pub(crate) threads: Option<usize>,
    /// `ppt view PID` passes it: the first byte of standard input says that the capture is there, and the end
    /// of standard input that the view ends.
    #[arg(long, hide = true)]
    pub(crate) until_input_ends: bool,
    #[command(flatten)]
    pub(crate) hosts: Hosts,
    #[command(flatten)]
    pub(crate) process: OfProcess,
}

/// Options of `ppt view PID` alone, which attaches: `ppt` handles them.
#[derive(Debug, ClapArgs)]
#[command(next_help_heading = "Of a process")]
pub(crate) struct OfProcess {
    /// The capture that is written, and stays [default: view-PID-TIME.bin].
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Only this buffer (repeatable) [default: all].
    #[arg(short, long = "buffer", value_name = "BUFFER")]
    buffers: Vec<String>,
    /// Also capture what the kernel does with the threads: sched, syscalls, faults.
    #[arg(long, value_name = "WHAT")]
    kernel: Vec<String>,
    /// Also capture the stacks of threads.
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "99")]
    #[arg(value_name = "HZ[,waits]")]
    stacks: Option<String>,
    /// Proceed despite a safety check of `ppt attach` (repeatable).
    #[arg(long, value_name = "WHAT")]
    allow: Vec<String>,
}

impl OfProcess {
    /// Whether any of them is given.
    pub(crate) fn is_given(&self) -> bool {
        let words = [&self.buffers, &self.kernel, &self.allow];
        self.output.is_some()
            || self.stacks.is_some()
            || words.iter().any(|texts| !texts.is_empty())
    }
}
