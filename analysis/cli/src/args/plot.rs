//! Arguments of `ppt plot`.

use clap::Args as ClapArgs;
use clap::builder::PossibleValuesParser;

use super::captures::Captures;
use super::output::OutputArgs;
use super::values::slowest;

#[derive(Debug, ClapArgs)]
pub struct Plot {
    #[command(flatten)]
    pub(crate) captures: Captures,
    /// What to draw [default: as the columns suggest].
    #[arg(long, value_name = "KIND", value_parser = kinds())]
    pub(crate) kind: Option<String>,
    /// Draw a flame graph of the stacks of threads that ran (`ppt attach PID --stacks`) instead of the
    /// answer to a query. Its height follows from the depth of stacks.
    #[arg(long, conflicts_with = "kind")]
    pub(crate) flame: bool,
    /// Draw where threads began to wait (`--stacks=99,waits`).
    #[arg(long, requires = "flame")]
    pub(crate) waits: bool,
    /// Draw the stacks within the slowest frames of this kind above all others.
    #[arg(long, value_name = "NAME", requires = "flame")]
    pub(crate) frame: Option<String>,
    /// Only the slowest values of this interval; `dur` for spans [default: all].
    #[arg(long, value_name = "FIELD", requires = "flame")]
    pub(crate) field: Option<String>,
    /// Only rows for which this expression is true.
    #[arg(long = "where", value_name = "EXPRESSION", requires = "flame")]
    pub(crate) filter: Option<String>,
    /// Number of slowest intervals.
    #[arg(long, value_name = "N", value_parser = slowest, requires = "flame")]
    pub(crate) slowest: Option<usize>,
    /// Title of the plot.
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    pub(crate) title: String,
    /// Width of the plot, in pixels.
    #[arg(long, value_name = "PIXELS", default_value = "720")]
    #[arg(value_parser = clap::value_parser!(u32).range(120..=10_000))]
    pub(crate) width: u32,
    /// Height of the plot, in pixels.
    #[arg(long, value_name = "PIXELS", default_value = "400")]
    #[arg(value_parser = clap::value_parser!(u32).range(90..=10_000))]
    pub(crate) height: u32,
    #[command(flatten)]
    pub(crate) to: OutputArgs,
}

fn kinds() -> PossibleValuesParser {
    PossibleValuesParser::new(ppt_report::PlotForm::ALL.map(|form| form.0))
}
