//! Fits as text.

use std::io::{self, Write};

use ppt_models::{
    Beyond, ConfidenceInterval, Crossing, CrossingRange, Limit, Method, Prediction, ResourceUse,
    Robust,
};
use ppt_query::plain;
use ppt_query::text::{grouped, measured, three};

use super::assessed::AssessedFit;

/// A number with enough digits to distinguish the ends of its interval.
fn number(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        1e-3..1e6 => {
            let digits = (4 - value.abs().log10().floor() as i32).clamp(0, 9) as usize;
            format!("{value:.digits$}")
        }
        _ => format!("{value:.4e}"),
    }
}

fn range(interval: ConfidenceInterval) -> String {
    format!("{} to {}", number(interval.low), number(interval.high))
}

pub(in crate::cmd) fn fit(assessed: &AssessedFit, out: &mut impl Write) -> io::Result<()> {
    let fit = &assessed.fit;
    if let Some(name) = &assessed.name {
        write!(out, "{}   ", plain(name))?;
    }
    let runs = match &fit.bootstrap {
        Ok(bootstrap) => format!(", {} runs", grouped(bootstrap.runs() as u64)),
        Err(_) => String::new(),
    };
    let formula = plain(&fit.formula.to_string());
    writeln!(out, "{formula}   {} rows{runs}", grouped(fit.points as u64))?;
    let percent = three(fit.level * 100.0);
    let mut rows = vec![vec![
        String::new(),
        "estimate".to_owned(),
        format!("{percent} % by t"),
        "over runs".to_owned(),
        "p".to_owned(),
    ]];
    rows.extend(fit.coefficients.iter().map(|coefficient| {
        vec![
            plain(&coefficient.term),
            number(coefficient.estimate),
            range(coefficient.interval),
            coefficient.bootstrap.map_or("–".to_owned(), range),
            if coefficient.p < 1e-4 {
                "< 0.0001".to_owned()
            } else {
                format!("{:.4}", coefficient.p)
            },
        ]
    }));
    let width = |at: usize| rows.iter().map(|row| row[at].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..5).map(width).collect();
    for row in &rows {
        let mut line = String::from(" ");
        for (cell, width) in row.iter().zip(&widths) {
            line.push_str(&format!(" {cell:<width$} "));
        }
        writeln!(out, "{}", line.trim_end())?;
    }
    let (r2, adjusted) = (number(fit.r2), number(fit.adjusted_r2));
    let sigma = measured(fit.sigma, &assessed.unit);
    let (aic, bic) = (three(fit.aic), three(fit.bic));
    writeln!(out, "  R² {r2}, adjusted {adjusted}; rows are {sigma} off; AIC {aic}, BIC {bic}")?;
    if let Some(slopes) = &assessed.robust {
        writeln!(out, "  {}", robust(slopes))?;
    }
    if let Err(why) = &fit.bootstrap {
        writeln!(out, "  no interval over runs: {why}")?;
    }
    let disagree = fit.coefficients.iter().filter(|coefficient| coefficient.disagrees());
    let disagree: Vec<String> = disagree.map(|coefficient| plain(&coefficient.term)).collect();
    if !disagree.is_empty() {
        writeln!(
            out,
            "  the intervals of {} disagree: rows are not independent, or not equally exact; believe \
             those over runs",
            disagree.join(", ")
        )?;
    }
    for finding in &assessed.residuals.findings {
        writeln!(out, "  {finding}")?;
    }
    writeln!(out, "  {}", assessed.judgement.verdict)?;
    for reason in &assessed.judgement.reasons {
        writeln!(out, "    {}", plain(&reason.to_string()))?;
    }
    Ok(())
}

/// The robust slopes, with the method that found them.
fn robust(robust: &Robust) -> String {
    let how = match robust.method {
        Method::TheilSen => "Theil and Sen".to_owned(),
        Method::TheilSenOfSome(pairs) => {
            format!("Theil and Sen, of {} pairs", grouped(pairs as u64))
        }
        Method::Huber => "Huber".to_owned(),
    };
    let slope = |slope: &ppt_models::Slope| {
        let range =
            slope.interval.map(|interval| format!(" ({})", range(interval))).unwrap_or_default();
        format!("{} {}{range}", plain(&slope.term), number(slope.estimate))
    };
    let slopes: Vec<String> = robust.slopes.iter().map(slope).collect();
    format!("without wild rows ({how}): {}", slopes.join(", "))
}

fn beyond(outside: &Beyond) -> String {
    let (low, high) = (three(outside.measured.low), three(outside.measured.high));
    format!("{} was measured from {low} to {high} only", plain(&outside.column))
}

pub(in crate::cmd) fn prediction(
    at: &[(String, f64)],
    prediction: &Prediction,
    unit: &str,
    out: &mut impl Write,
) -> io::Result<()> {
    let at: Vec<String> =
        at.iter().map(|(name, value)| format!("{} = {}", plain(name), three(*value))).collect();
    let (mean, single) = (range(prediction.believed()), range(prediction.believed_single()));
    let value = measured(prediction.value, unit);
    writeln!(out, "  at {}: {value} ({mean}); a single row {single}", at.join(", "))?;
    prediction.beyond.iter().try_for_each(|outside| writeln!(out, "    {}", beyond(outside)))
}

fn crossing(crossing: Crossing) -> String {
    match crossing {
        Crossing::At(at) => three(at.floor()),
        other => other.to_string(),
    }
}

pub(in crate::cmd) fn limit(
    load: &str,
    limit: &Limit,
    unit: &str,
    out: &mut impl Write,
) -> io::Result<()> {
    let bound = measured(limit.bound, unit);
    let CrossingRange { low, high } = limit.believed();
    let load = plain(load);
    let (at, low, high) = (crossing(limit.crossing), crossing(low), crossing(high));
    writeln!(out, "  {bound} is reached at {load} = {at} ({low} to {high})")?;
    limit.at_limit.beyond.iter().try_for_each(|outside| writeln!(out, "    {}", beyond(outside)))
}

/// The total of a resource, and its components.
pub(in crate::cmd) fn total(
    load: &str,
    at: f64,
    total: &ResourceUse,
    unit: &str,
    out: &mut impl Write,
) -> io::Result<()> {
    let (mean, single) = (range(total.believed()), range(total.believed_single()));
    let value = measured(total.value, unit);
    let (load, at) = (plain(load), three(at));
    writeln!(out, "  at {load} = {at}: {value} ({mean}); a single measurement {single}")?;
    total.beyond.iter().try_for_each(|outside| writeln!(out, "    {}", beyond(outside)))?;
    parts(total, unit, out)
}

/// The share of each component, and the component with most of the uncertainty.
pub(in crate::cmd) fn parts(
    total: &ResourceUse,
    unit: &str,
    out: &mut impl Write,
) -> io::Result<()> {
    let names = total.parts.iter().map(|part| plain(&part.name).chars().count()).max().unwrap_or(0);
    for part in &total.parts {
        let (name, value) = (plain(&part.name), measured(part.value, unit));
        let share = match part.uncertainty {
            share if share.is_finite() => match (share * 100.0).round() {
                // The errors of the component cancel errors of others.
                percent if percent < 0.0 => format!("takes {} % of the uncertainty away", -percent),
                percent => format!("{} % of the uncertainty", percent.abs()),
            },
            _ => "nothing is uncertain".to_owned(),
        };
        writeln!(out, "    {name:<names$}  {value}, {share}")?;
    }
    match total.dominant() {
        Some(part) if total.parts.len() > 1 && part.uncertainty.is_finite() => {
            writeln!(out, "    model {} more finely next", plain(&part.name))
        }
        _ => Ok(()),
    }
}
