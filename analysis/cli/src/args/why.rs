//! Arguments of `ppt why`.

use clap::Args as ClapArgs;

use super::captures::Captures;
use super::output::{OutputArgs, formats};
use super::values::slowest;

#[derive(Debug, ClapArgs)]
pub struct WhyArgs {
    #[command(flatten)]
    pub(crate) captures: Captures,
    /// Only this kind of frame (`stmt`), or its spans alone (`stmt_spans`).
    #[arg(long, value_name = "NAME")]
    pub(crate) frame: Option<String>,
    /// Only this interval; `dur` for spans [default: all].
    #[arg(long, value_name = "FIELD")]
    pub(crate) field: Option<String>,
    /// Only rows of which this expression is true, such as "kind = 'LOGIN' AND handle > 10ms".
    #[arg(long = "where", value_name = "EXPRESSION")]
    pub(crate) filter: Option<String>,
    /// Fields that identify the request [default: the keys of spans, then enums and texts].
    #[arg(long, value_name = "FIELD", value_delimiter = ',')]
    pub(crate) show: Vec<String>,
    /// Only the summary: where all time above the 99th percentile went.
    #[arg(long)]
    pub(crate) summary: bool,
    /// Number of slowest intervals.
    #[arg(long, value_name = "N", default_value = "20", value_parser = slowest)]
    pub(crate) slowest: usize,
    /// Format [default: text on a terminal, else tsv].
    #[arg(long, value_name = "FORMAT", value_parser = formats("text"))]
    pub(crate) format: Option<String>,
    #[command(flatten)]
    pub(crate) to: OutputArgs,
}
