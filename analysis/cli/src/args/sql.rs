//! Arguments of `ppt sql`.

use std::path::PathBuf;

use clap::Args as ClapArgs;

use super::captures::{Captures, local};
use super::output::{OutputArgs, formats};

#[derive(Debug, ClapArgs)]
pub struct Sql {
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
