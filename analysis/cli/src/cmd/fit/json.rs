//! Fits for programs.

use ppt_models::{ConfidenceInterval, Limit, Meets, Prediction, Total};
use serde_json::{Value, json};

use super::assessed::AssessedFit;

fn range(interval: ConfidenceInterval) -> Value {
    json!([interval.low, interval.high])
}

pub(in crate::cmd) fn fit(assessed: &AssessedFit) -> Value {
    let fit = &assessed.fit;
    let coefficients: Vec<Value> = fit
        .coefficients
        .iter()
        .map(|coefficient| {
            json!({
                "term": coefficient.term, "estimate": coefficient.estimate, "error": coefficient.error, "t": coefficient.t, "p": coefficient.p,
                "interval": range(coefficient.interval), "bootstrap": coefficient.bootstrap.map(range),
                "disagree": coefficient.disagrees(),
            })
        })
        .collect();
    let robust = assessed.robust.as_ref().map(|robust| {
        let slope = |slope: &ppt_models::Slope| {
            json!({"term": slope.term, "estimate": slope.estimate, "interval": slope.interval.map(range)})
        };
        json!(robust.slopes.iter().map(slope).collect::<Vec<_>>())
    });
    let texts = |all: Vec<String>| json!(all);
    json!({
        "name": assessed.name, "formula": fit.formula.to_string(), "rows": fit.points,
        "runs": fit.bootstrap.as_ref().ok().map(|it| it.runs()), "level": fit.level,
        "coefficients": coefficients, "sigma": fit.sigma, "r2": fit.r2,
        "adjusted_r2": fit.adjusted_r2, "aic": fit.aic, "bic": fit.bic, "robust": robust,
        "durbin_watson": assessed.residuals.durbin_watson,
        "residuals": texts(assessed.residuals.findings.iter().map(ToString::to_string).collect()),
        "verdict": assessed.judgement.verdict.to_string(),
        "reasons": texts(assessed.judgement.reasons.iter().map(ToString::to_string).collect()),
    })
}

pub(in crate::cmd) fn prediction(it: &Prediction) -> Value {
    json!({
        "value": it.value, "mean": range(it.mean), "single": range(it.single),
        "bootstrap": it.bootstrap.map(range), "beyond": !it.beyond.is_empty(),
    })
}

fn meets(it: Meets) -> Value {
    match it {
        Meets::At(at) => json!(at),
        Meets::FromTheStart(_) => json!("from the start"),
        Meets::Never { .. } => json!("never"),
    }
}

pub(in crate::cmd) fn limit(it: &Limit) -> Value {
    let ends = |entry: (Meets, Meets)| json!([meets(entry.0), meets(entry.1)]);
    json!({
        "bound": it.bound, "at": meets(it.meets), "interval": ends(it.range),
        "bootstrap": it.bootstrap.map(ends), "there": total(&it.there),
    })
}

pub(in crate::cmd) fn total(it: &Total) -> Value {
    let parts = it.parts.iter().map(
        |part| json!({"name": part.name, "value": part.value, "uncertainty": part.uncertainty}),
    );
    json!({
        "value": it.value, "mean": range(it.mean), "single": range(it.single),
        "bootstrap": it.bootstrap.map(range), "beyond": it.beyond.is_some(),
        "parts": parts.collect::<Vec<_>>(),
        "dominant": it.dominant().map(|it| it.name.clone()),
    })
}
