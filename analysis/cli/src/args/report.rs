//! Arguments of `ppt report`.

use std::path::PathBuf;

use clap::Args as ClapArgs;

use super::captures::{Captures, local};
use super::output::OutputArgs;

#[derive(Debug, ClapArgs)]
pub struct Report {
    #[command(flatten)]
    pub(crate) captures: Captures,
    /// Add a section for each view and each SELECT of this file.
    #[arg(long, value_name = "FILE", value_parser = local())]
    pub(crate) sql: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) to: OutputArgs,
}
