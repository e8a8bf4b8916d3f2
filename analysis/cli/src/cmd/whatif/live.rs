//! `ppt whatif` of a capture of `ppt whatif --live`: the result of an experiment.

use std::io::{self, Write};
use std::sync::Arc;

use ppt_query::arrow::array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use ppt_query::arrow::error::ArrowError;
use ppt_query::text::grouped;
use ppt_query::whatif::ExperimentAnswer;
use ppt_query::whatif::retime::{Figures, NO_GAIN};
use ppt_query::{Engine, plain};
use serde_json::json;

use super::json::{figures, write_array};
use super::text::{percent, value, write_table};
use crate::args;
use crate::error::AnswerError;
use crate::message;

/// Speeds that differ less are considered equal.
const SAME: f64 = 1e-4;

/// The result of the experiment in the captures.
pub(super) async fn ask(
    args: &args::WhatIf,
    engine: &Engine,
) -> Result<Vec<ExperimentAnswer>, AnswerError> {
    let experiment = engine.experiment().await?.unwrap_or_default();
    if !args.sweep.is_empty() {
        return Err(AnswerError::bad_whatif_question(
            "--sweep: an experiment has the speeds that it was made with",
        ));
    }
    let metrics = match (&args.metric[..], experiment.metric.as_str()) {
        ([], "") => engine.length_metrics().await?,
        ([], metric) => vec![metric.parse().map_err(AnswerError::bad_whatif_question)?],
        (metrics, _) => metrics.to_vec(),
    };
    let (mut answers, mut left_out) = (Vec::new(), Vec::new());
    for metric in &metrics {
        let values = engine.metric_values(metric).await?;
        let values = values
            .ok_or_else(|| AnswerError::bad_whatif_question("only a whole run has an `end`"))?;
        if values.is_empty() {
            return Err(AnswerError::bad_whatif_question(format!(
                "there is no `{metric}` in the run"
            )));
        }
        match experiment.answers(metric, &values) {
            Ok(found) => {
                answers.extend(found.answers);
                left_out.extend(found.left_out);
            }
            // Metrics with too few events are left out if others remain.
            Err(_) if args.metric.is_empty() && metrics.len() > 1 => {}
            Err(refusal) => return Err(AnswerError::no_experiment(&refusal)),
        }
    }
    let failure = left_out.pop_if(|_| answers.is_empty());
    for refusal in left_out {
        message::warning("no-experiment", refusal.to_string());
    }
    if let Some(refusal) = failure {
        return Err(AnswerError::no_experiment(&refusal));
    }
    let asked = |answer: &ExperimentAnswer| {
        args.speed.is_empty()
            || args.speed.iter().any(|speed| {
                (speed.factor - answer.speed).abs() < SAME
                    && (answer.activity == speed.activity
                        || answer.activity.ends_with(&format!(".{}", speed.activity)))
            })
    };
    answers.retain(asked);
    if answers.is_empty() {
        return Err(AnswerError::bad_whatif_question(
            "the experiment shows nothing of what is asked",
        ));
    }
    Ok(answers)
}

fn speed(answer: &ExperimentAnswer) -> String {
    let times = (answer.speed * 1e4).round() / 1e4;
    format!("{}={times}x", answer.activity)
}

/// Results as text.
pub(super) fn write(answers: &[ExperimentAnswer], out: &mut impl Write) -> io::Result<()> {
    for of_metric in answers.chunk_by(|one, other| one.metric == other.metric) {
        let Some(first) = of_metric.first() else { continue };
        writeln!(
            out,
            "{}   {} rounds each, {} of them in the baselines",
            plain(&first.metric.to_string()),
            first.rounds,
            grouped(first.base.n as u64)
        )?;
        let metric = &first.metric;
        let real = |x: f64| if x.is_finite() { value(metric, x) } else { String::new() };
        let row = |name: String, figures: &Figures, more: [String; 5]| {
            let [low, high, gain, gains, how] = more;
            let [p95, p99] = [figures.p95, figures.p99].map(real);
            [name, real(figures.mean), low, high, p95, p99, gain, gains, how]
        };
        let head = ["", "mean", "from", "to", "p95", "p99", "gain", "between", "how"];
        let mut lines = vec![head.map(str::to_owned)];
        lines.push(row("as it was".to_owned(), &first.base, Default::default()));
        if let Some(mean) = first.untouched {
            let figures = Figures { n: 0, mean, p50: f64::NAN, p95: f64::NAN, p99: f64::NAN };
            lines.push(row("before the rounds".to_owned(), &figures, Default::default()));
        }
        for answer in of_metric {
            let gain =
                if answer.gain.abs() < NO_GAIN { "no gain".into() } else { percent(answer.gain) };
            let gains = format!(
                "{} to {}",
                percent(answer.gain_interval.0),
                percent(answer.gain_interval.1)
            );
            let how = answer.source.word().to_owned();
            let (low, high) = answer.mean_interval;
            let more = [value(metric, low), value(metric, high), gain, gains, how];
            lines.push(row(speed(answer), &answer.figures, more));
        }
        write_table(&lines, out)?;
        writeln!(out, "  the baselines differ by {}", percent(first.aa))?;
    }
    Ok(())
}

/// Results as JSON: an array of objects.
pub(super) fn json(answers: &[ExperimentAnswer], out: &mut impl Write) -> io::Result<()> {
    let object = |answer: &ExperimentAnswer| {
        let mut predicted = figures(&answer.figures);
        predicted["mean_lo"] = json!(answer.mean_interval.0);
        predicted["mean_hi"] = json!(answer.mean_interval.1);
        json!({
            "metric": answer.metric.to_string(),
            "speed": { answer.activity.as_str(): answer.speed },
            "how": answer.source.word(),
            "was": figures(&answer.base),
            "predicted": predicted,
            "gain": answer.gain,
            "gain_lo": answer.gain_interval.0,
            "gain_hi": answer.gain_interval.1,
            "base_mean": answer.base.mean,
            "untouched_mean": answer.untouched,
            "rounds": answer.rounds,
            "aa": answer.aa,
        })
    };
    write_array(answers.iter().map(object), out)
}

/// Results as a table.
pub(super) fn batch(answers: &[ExperimentAnswer]) -> Result<RecordBatch, ArrowError> {
    let text = |of: &dyn Fn(&ExperimentAnswer) -> String| -> ArrayRef {
        Arc::new(StringArray::from_iter_values(answers.iter().map(of)))
    };
    let real = |of: &dyn Fn(&ExperimentAnswer) -> f64| -> ArrayRef {
        let finite = |answer| Some(of(answer)).filter(|value| value.is_finite());
        Arc::new(answers.iter().map(finite).collect::<Float64Array>())
    };
    let whole = |of: &dyn Fn(&ExperimentAnswer) -> usize| -> ArrayRef {
        Arc::new(
            answers.iter().map(|answer| i64::try_from(of(answer)).ok()).collect::<Int64Array>(),
        )
    };
    RecordBatch::try_from_iter_with_nullable([
        ("metric", text(&|answer| answer.metric.to_string()), true),
        ("speed", text(&speed), true),
        ("how", text(&|answer| answer.source.word().to_owned()), true),
        ("n", whole(&|answer| answer.figures.n), true),
        ("was_mean", real(&|answer| answer.base.mean), true),
        ("was_p50", real(&|answer| answer.base.p50), true),
        ("was_p95", real(&|answer| answer.base.p95), true),
        ("was_p99", real(&|answer| answer.base.p99), true),
        ("mean", real(&|answer| answer.figures.mean), true),
        ("mean_lo", real(&|answer| answer.mean_interval.0), true),
        ("mean_hi", real(&|answer| answer.mean_interval.1), true),
        ("p50", real(&|answer| answer.figures.p50), true),
        ("p95", real(&|answer| answer.figures.p95), true),
        ("p99", real(&|answer| answer.figures.p99), true),
        ("gain", real(&|answer| answer.gain), true),
        ("gain_lo", real(&|answer| answer.gain_interval.0), true),
        ("gain_hi", real(&|answer| answer.gain_interval.1), true),
        ("base_mean", real(&|answer| answer.base.mean), true),
        ("untouched_mean", real(&|answer| answer.untouched.unwrap_or(f64::NAN)), true),
        ("rounds", whole(&|answer| answer.rounds), true),
        ("aa", real(&|answer| answer.aa), true),
    ])
}
