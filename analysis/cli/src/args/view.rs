//! What `ppt view` is told.

use std::path::PathBuf;

use clap::Args as ClapArgs;

use super::captures::{Hosts, local, size, threads};

#[derive(Debug, ClapArgs)]
pub(crate) struct View {
    /// Captures: files, patterns ('run*/*.bin'), names of rotated ones. Those that are still written are
    /// followed.
    #[arg(value_name = "CAPTURE", required = true, value_parser = local())]
    pub(crate) captures: Vec<PathBuf>,
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
    #[command(flatten)]
    pub(crate) hosts: Hosts,
}
