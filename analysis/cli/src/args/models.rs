//! Arguments of `ppt fit`, `ppt model` and `ppt compare`.

use std::path::PathBuf;

use clap::Args as ClapArgs;

use super::captures::{Captures, local};
use super::output::{OutputArgs, TextOrJson};

/// The confidence level of intervals, and the resampling behind them.
#[derive(Debug, ClapArgs)]
pub struct IntervalArgs {
    /// Part of all cases in which an interval holds the truth.
    #[arg(long, value_name = "PART", default_value = "0.95", value_parser = level)]
    pub(crate) level: f64,
    /// Resamples of the bootstrap over runs.
    #[arg(long, value_name = "N", default_value = "2000", value_parser = resamples)]
    pub(crate) resamples: usize,
    /// Seed of the random numbers; the same seed gives the same intervals.
    #[arg(long, value_name = "N", default_value = "1")]
    pub(crate) seed: u64,
}

impl IntervalArgs {
    pub(crate) fn options(&self) -> ppt_models::FitOptions {
        let resampling = ppt_models::Resampling { count: self.resamples, seed: self.seed };
        ppt_models::FitOptions { level: self.level, resampling }
    }
}

#[derive(Debug, ClapArgs)]
pub struct Fit {
    #[command(flatten)]
    pub(crate) captures: Captures,
    /// The SELECT whose rows the formula is fitted to.
    #[arg(long, value_name = "SELECT")]
    pub(crate) sql: String,
    /// The column with the run of a row [default: capture, if the SELECT has it].
    #[arg(long, value_name = "COLUMN")]
    pub(crate) run: Option<String>,
    /// Predict here, such as n=1000 (may be given again, for another column).
    #[arg(long, value_name = "COLUMN=VALUE", value_parser = point)]
    pub(crate) at: Vec<(String, f64)>,
    /// Say where the response reaches this.
    #[arg(long, value_name = "BOUND")]
    pub(crate) limit: Option<f64>,
    /// Draw it, too: the measurements, the formula with its interval, and the residuals.
    #[arg(long, value_name = "PATH", value_parser = local())]
    pub(crate) svg: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) sure: IntervalArgs,
    /// Format.
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "text")]
    pub(crate) format: TextOrJson,
    #[command(flatten)]
    pub(crate) to: OutputArgs,
}

#[derive(Debug, ClapArgs)]
pub struct ModelArgs {
    /// The resources and their components.
    #[arg(value_name = "MODEL.toml")]
    pub(crate) model: PathBuf,
    #[command(flatten)]
    pub(crate) captures: Captures,
    /// Predict at this load.
    #[arg(long, value_name = "LOAD")]
    pub(crate) at: Option<f64>,
    /// Draw it, too: each resource with its bound, and each formula with its measurements.
    #[arg(long, value_name = "PATH", value_parser = local())]
    pub(crate) svg: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) sure: IntervalArgs,
    /// Format.
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "text")]
    pub(crate) format: TextOrJson,
    #[command(flatten)]
    pub(crate) to: OutputArgs,
}

#[derive(Debug, ClapArgs)]
pub struct Compare {
    #[command(flatten)]
    pub(crate) captures: Captures,
    /// The captures of the second set, behind `--`.
    #[arg(value_name = "SECOND", last = true)]
    pub(crate) second: Vec<PathBuf>,
    /// Only this kind of frame, or these spans or chains (request_spans).
    #[arg(long, value_name = "NAME")]
    pub(crate) frame: Option<String>,
    /// Compare group by group of this column.
    #[arg(long, value_name = "COLUMN")]
    pub(crate) by: Option<String>,
    /// Compare only this field: its name, or more of where it is, as in 'job.handle' (may be given
    /// again).
    #[arg(long, value_name = "FIELD")]
    pub(crate) field: Vec<String>,
    /// Fail if this is shown, such as 'job.handle p99 > 1.1x' (may be given again).
    #[arg(long, value_name = "CHANGE")]
    pub(crate) fail_if: Vec<String>,
    /// Save the measurements of the (second) set in this file.
    #[arg(long, value_name = "FILE")]
    pub(crate) save: Option<PathBuf>,
    /// Compare with the measurements that --save wrote, in place of a first set.
    #[arg(long, value_name = "FILE")]
    pub(crate) baseline: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) sure: IntervalArgs,
    /// Format.
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "text")]
    pub(crate) format: TextOrJson,
    #[command(flatten)]
    pub(crate) to: OutputArgs,
}

fn level(text: &str) -> Result<f64, String> {
    let level = text.parse().ok().filter(|value| *value > 0.0 && *value < 1.0);
    level.ok_or("a level is above 0 and below 1, such as 0.95".into())
}

fn resamples(text: &str) -> Result<usize, String> {
    let count = text.parse().ok().filter(|index| (100..=1_000_000).contains(index));
    count.ok_or("from 100 to 1000000".into())
}

/// Parses `n=1000`.
fn point(text: &str) -> Result<(String, f64), String> {
    let parts = text.split_once('=').and_then(|(name, value)| Some((name, value.parse().ok()?)));
    let (name, value) = parts.ok_or("a point is a column and its value, such as n=1000")?;
    Ok((name.to_owned(), value))
}
