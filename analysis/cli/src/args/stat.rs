//! Arguments of `ppt stat`.

use clap::Args as ClapArgs;

use super::captures::Captures;
use super::output::{OutputArgs, formats};
use super::values::nanoseconds;

#[derive(Debug, ClapArgs)]
pub struct Stat {
    #[command(flatten)]
    pub(crate) captures: Captures,
    /// Only this kind of frame, or these spans or chains (request_spans).
    #[arg(long, value_name = "NAME")]
    pub(crate) frame: Option<String>,
    /// Only this field (may be given again, or several with commas) [default: all].
    #[arg(long, value_name = "FIELD", value_delimiter = ',', conflicts_with = "hist")]
    pub(crate) field: Vec<String>,
    /// Group by this column (may be given again, or several with commas).
    #[arg(long, value_name = "COLUMN", value_delimiter = ',')]
    pub(crate) by: Vec<String>,
    /// Slice the time, such as 1s or 100ms.
    #[arg(long, value_name = "TIME", value_parser = nanoseconds)]
    pub(crate) every: Option<i64>,
    /// Only rows of which this expression is true, such as "kind = 'LOGIN' AND handle > 1000".
    #[arg(long = "where", value_name = "EXPRESSION")]
    pub(crate) filter: Option<String>,
    /// Draw how the values of this field are spread.
    #[arg(long, value_name = "FIELD", conflicts_with = "format")]
    pub(crate) hist: Option<String>,
    /// Also show the self time of intervals: their lengths without the intervals inside them.
    #[arg(long = "self")]
    pub(crate) self_time: bool,
    /// Format [default: text on a terminal, else tsv].
    #[arg(long, value_name = "FORMAT", value_parser = formats("text"))]
    pub(crate) format: Option<String>,
    #[command(flatten)]
    pub(crate) to: OutputArgs,
}
