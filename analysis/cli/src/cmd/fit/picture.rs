//! Fits as pictures: measurements, formula, and residuals.

use std::io::Write;
use std::path::Path;

use ppt_models::{Crossing, Limit, Resource, RunTable};
use ppt_output::Output;
use ppt_query::Engine;
use ppt_report::{Panel, PanelLine};

use super::assessed::AssessedFit;
use crate::error::AnswerError;
use crate::{answer, args, open};

/// Number of points of a curve.
const PLACES: usize = 120;

/// A fit with its measurements, up to `until`; and its residuals.
pub(in crate::cmd) fn panels(
    assessed: &AssessedFit,
    table: &RunTable,
    until: Option<f64>,
) -> [Panel; 2] {
    let (fit, unit) = (&assessed.fit, &assessed.unit);
    let of = assessed.name.as_deref().unwrap_or_default();
    let up = match of {
        "" => fit.formula.to_string(),
        name => format!("{name}: {}", fit.formula),
    };
    let fitted = || fit.fitted.iter().copied();
    let measured = fit.response().iter().copied();
    let by_fit = match &unit[..] {
        "" => "fitted value".to_owned(),
        unit => format!("fitted value, {unit}"),
    };
    let inputs = fit.formula.inputs();
    let column = match inputs[..] {
        [one] => table.column(one).map(|values| (one, values)),
        _ => None,
    };
    let panel = match column {
        Some((input, values)) => Panel {
            across: input.to_owned(),
            points: values.iter().copied().zip(measured).collect(),
            lines: vec![curve(values, until, |at| {
                let predicted = fit.predict(&[(input, at)]).ok()?;
                let interval = predicted.believed();
                Some((predicted.value, interval.low, interval.high))
            })],
            ..Panel::default()
        },
        // With several inputs, the picture shows measurements against predictions.
        None => Panel {
            across: by_fit.clone(),
            points: fitted().zip(measured).collect(),
            lines: vec![curve(&fit.fitted, None, |at| Some((at, at, at)))],
            ..Panel::default()
        },
    };
    let left = Panel {
        across: by_fit,
        up: "residual".to_owned(),
        unit: unit.clone(),
        points: fitted().zip(fit.residuals.iter().copied()).collect(),
        level: Some(0.0),
        ..Panel::default()
    };
    [Panel { up, unit: unit.clone(), ..panel }, left]
}

/// The total of a resource, with its bound; and its components.
pub(in crate::cmd) fn total(
    name: &str,
    load: &str,
    unit: &str,
    resource: &Resource,
    loads: &[f64],
    until: Option<f64>,
    bound: Option<f64>,
) -> [Panel; 2] {
    let all = curve(loads, until, |at| {
        let predict = resource.predict(at).ok()?;
        Some((predict.value, predict.believed().low, predict.believed().high))
    });
    let at = all.points.iter().filter_map(|point| Some((point.0, resource.predict(point.0).ok()?)));
    let mut parts: Vec<PanelLine> = Vec::new();
    for (load, total) in at {
        parts.resize_with(total.parts.len(), PanelLine::default);
        for (line, part) in parts.iter_mut().zip(total.parts) {
            line.points.push((load, part.value));
            line.name = part.name;
        }
    }
    let panel = |up: &str, lines, level| Panel {
        across: load.to_owned(),
        up: up.to_owned(),
        unit: unit.to_owned(),
        points: Vec::new(),
        lines,
        level,
    };
    let of = parts.first().filter(|_| parts.len() == 1).map(|part| part.name.clone());
    [panel(name, vec![all], bound), panel(&of.unwrap_or_default(), parts, None)]
}

/// The right end of a picture: where the bound is reached, or where a prediction is requested.
pub(in crate::cmd) fn until(at: Option<f64>, limit: Option<&Limit>) -> Option<f64> {
    let met = match limit.map(|limit| limit.crossing) {
        Some(Crossing::At(met)) => Some(met),
        _ => None,
    };
    at.into_iter().chain(met).reduce(f64::max)
}

/// A curve and its band over all of `values`, and up to `until`.
fn curve(
    values: &[f64],
    until: Option<f64>,
    value: impl Fn(f64) -> Option<(f64, f64, f64)>,
) -> PanelLine {
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().chain(until).fold(f64::NEG_INFINITY, f64::max);
    let place = |index: usize| low + (high - low) * index as f64 / PLACES as f64;
    let places = (0..=PLACES).map(place);
    let found = places.filter_map(|at| value(at).map(|value| ((at, value.0), (value.1, value.2))));
    let (points, band) = found.unzip();
    PanelLine { name: String::new(), points, band }
}

/// Opens the file of a picture before the work, and checks that it differs from the answer's.
pub(in crate::cmd) fn open(
    path: Option<&Path>,
    to: &args::OutputArgs,
    engine: &Engine,
) -> Result<Option<Output>, AnswerError> {
    if path == Some(&*to.output) {
        return Err(AnswerError::Usage("--svg and -o name the same file".to_owned()));
    }
    let Some(path) = path else { return Ok(None) };
    open::check_name(path, "SVG")?;
    open::output(path, to.force, engine).map(Some)
}

/// Writes the rows of a picture.
pub(in crate::cmd) fn write(rows: &[[Panel; 2]], output: Output) -> Result<(), AnswerError> {
    let svg = ppt_report::panels("", rows);
    answer::publish(output, |out| out.write_all(svg.as_bytes()))
}
