//! Arguments of `ppt whatif`.

use std::str::FromStr;

use clap::Args as ClapArgs;
use ppt_query::whatif::retime::{Metric, Speed};

use super::captures::Captures;
use super::output::{OutputArgs, formats};

#[derive(Debug, ClapArgs)]
pub struct WhatIf {
    #[command(flatten)]
    pub(crate) captures: Captures,
    /// How many times as fast an interval is, job.handle=2x (may be given again for another) [default:
    /// each interval alone, twice as fast].
    #[arg(long, value_name = "INTERVAL=FACTOR", value_parser = Speed::from_str)]
    pub(crate) speed: Vec<Speed>,
    /// What to predict: an interval (job.handle) or a span (request), 'path(a, b)' between points,
    /// 'rate(job.handle)' or end (may be given again) [default: all spans, and end].
    #[arg(long, value_name = "METRIC", value_parser = Metric::from_str)]
    pub(crate) metric: Vec<Metric>,
    /// Predict for each of these factors instead, such as 1.5,2,4.
    #[arg(long, value_name = "FACTORS", value_delimiter = ',', requires = "speed", value_parser = factor)]
    pub(crate) sweep: Vec<f64>,
    /// Format [default: text on a terminal, else tsv].
    #[arg(long, value_name = "FORMAT", value_parser = formats("text"))]
    pub(crate) format: Option<String>,
    #[command(flatten)]
    pub(crate) to: OutputArgs,
}

fn factor(text: &str) -> Result<f64, String> {
    let factor = text.strip_suffix('x').unwrap_or(text).parse().ok();
    factor
        .filter(|factor: &f64| *factor > 0.0 && factor.is_finite())
        .ok_or("a factor above 0, such as 2x".into())
}
