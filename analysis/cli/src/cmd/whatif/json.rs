//! Predictions as JSON: an array of objects.

use std::io::{self, Write};

use ppt_query::plain_json;
use ppt_query::whatif::retime::{Figures, SpeedWorth};
use serde_json::{Map, Value, json};

pub(super) fn write(answers: &[SpeedWorth], out: &mut impl Write) -> io::Result<()> {
    let object = |answer: &SpeedWorth| {
        let speeds: Map<String, Value> = answer
            .speeds
            .iter()
            .map(|speed| (speed.activity.clone(), json!(speed.factor)))
            .collect();
        let mut predicted = figures(&answer.predicted);
        predicted["mean_lo"] = json!(answer.mean_interval.map(|interval| interval.0));
        predicted["mean_hi"] = json!(answer.mean_interval.map(|interval| interval.1));
        json!({
            "metric": answer.metric.to_string(),
            "speed": speeds,
            "was": figures(&answer.was),
            "predicted": predicted,
            "gain": answer.gain(),
            "gain_lo": answer.gain_interval.map(|interval| interval.0),
            "gain_hi": answer.gain_interval.map(|interval| interval.1),
            "critical_share": answer.critical_share,
            "missing_share": answer.missing_share,
        })
    };
    write_array(answers.iter().map(object), out)
}

/// Writes an array, an object per line.
pub(super) fn write_array(
    objects: impl Iterator<Item = Value>,
    out: &mut impl Write,
) -> io::Result<()> {
    let mut before = "[\n";
    for object in objects {
        write!(out, "{before}{}", plain_json(&object.to_string()))?;
        before = ",\n";
    }
    let empty = before == "[\n";
    out.write_all(if empty { b"[]\n" } else { b"\n]\n" })
}

pub(super) fn figures(of: &Figures) -> Value {
    json!({ "n": of.n, "mean": of.mean, "p50": of.p50, "p95": of.p95, "p99": of.p99 })
}
