//! The output of an answer and its format.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args as ClapArgs, ValueEnum};
use ppt_query::ResultFormat;

use super::captures::local;

/// The output of an answer.
#[derive(Debug, ClapArgs)]
pub struct OutputArgs {
    /// Output path; `-` is stdout.
    #[arg(short, long, value_name = "PATH", default_value = "-", value_parser = local())]
    pub(crate) output: PathBuf,
    /// Overwrite the output if it exists.
    #[arg(long)]
    pub(crate) force: bool,
}

/// The format of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TextOrJson {
    /// For people.
    Text,
    /// For programs.
    Json,
}

pub(super) fn formats(text: &'static str) -> PossibleValuesParser {
    let words = ResultFormat::ALL.into_iter().map(|(word, format)| match format {
        ResultFormat::Aligned => text,
        _ => word,
    });
    PossibleValuesParser::new(words.collect::<Vec<_>>())
}
