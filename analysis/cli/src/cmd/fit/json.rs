//! Fits as JSON.

use ppt_models::{ConfidenceInterval, Crossing, CrossingRange, Limit, Prediction, ResourceUse};
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
                "term": coefficient.term, "estimate": coefficient.estimate,
                "error": coefficient.error, "t": coefficient.t, "p": coefficient.p,
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
        "runs": fit.bootstrap.as_ref().ok().map(|bootstrap| bootstrap.runs()), "level": fit.level,
        "coefficients": coefficients, "sigma": fit.sigma, "r2": fit.r2,
        "adjusted_r2": fit.adjusted_r2, "aic": fit.aic, "bic": fit.bic, "robust": robust,
        "durbin_watson": assessed.residuals.durbin_watson,
        "residuals": texts(assessed.residuals.findings.iter().map(ToString::to_string).collect()),
        "verdict": assessed.judgement.verdict.to_string(),
        "reasons": texts(assessed.judgement.reasons.iter().map(ToString::to_string).collect()),
    })
}

pub(in crate::cmd) fn prediction(prediction: &Prediction) -> Value {
    json!({
        "value": prediction.value, "mean": range(prediction.mean), "single": range(prediction.single),
        "bootstrap": prediction.bootstrap.map(range), "beyond": !prediction.beyond.is_empty(),
    })
}

fn crossing(crossing: Crossing) -> Value {
    match crossing {
        Crossing::At(at) => json!(at),
        Crossing::FromTheStart(_) => json!("from the start"),
        Crossing::Never { .. } => json!("never"),
    }
}

pub(in crate::cmd) fn limit(limit: &Limit) -> Value {
    let ends = |range: CrossingRange| json!([crossing(range.low), crossing(range.high)]);
    json!({
        "bound": limit.bound, "at": crossing(limit.crossing), "interval": ends(limit.range),
        "bootstrap": limit.bootstrap.map(ends), "there": total(&limit.at_limit),
    })
}

pub(in crate::cmd) fn total(total: &ResourceUse) -> Value {
    let parts = total.parts.iter().map(
        |part| json!({"name": part.name, "value": part.value, "uncertainty": part.uncertainty}),
    );
    json!({
        "value": total.value, "mean": range(total.mean), "single": range(total.single),
        "bootstrap": total.bootstrap.map(range), "beyond": total.beyond.is_some(),
        "parts": parts.collect::<Vec<_>>(),
        "dominant": total.dominant().map(|part| part.name.clone()),
    })
}
