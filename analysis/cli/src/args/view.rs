//! Arguments of `ppt view` about what is shown.

use std::path::PathBuf;

use clap::Args as ClapArgs;

use super::captures::{Hosts, local, size, threads};

/// What `ppt view` shows, and how.
#[derive(Debug, ClapArgs)]
pub struct ViewArgs {
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
    /// `ppt view PID` passes the capture that it writes. The first byte of standard input says that the capture is
    /// there, and the end of standard input that the view ends.
    #[arg(long, hide = true)]
    pub(crate) written: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) hosts: Hosts,
}

impl ViewArgs {
    /// The process that is meant, if it is one: its id stands alone.
    pub fn process(&self) -> Option<i32> {
        let is_capture = !self.second.is_empty() || self.written.is_some() || self.hosts.is_given();
        match &self.captures[..] {
            [one] if !is_capture => one.to_str()?.parse().ok().filter(|&pid| pid > 0),
            _ => None,
        }
    }

    /// Whether it shows what another `ppt view` captures.
    pub fn is_written(&self) -> bool {
        self.written.is_some()
    }

    /// Shows this capture instead of a process.
    pub fn show(&mut self, capture: PathBuf) {
        self.captures = vec![capture];
    }
}
