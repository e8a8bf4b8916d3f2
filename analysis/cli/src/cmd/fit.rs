//! `ppt fit CAPTURE… --sql 'SELECT n, busy …' 'busy ~ 1 + n + n^2'`.

pub(super) mod assessed;
pub(super) mod json;
pub(super) mod picture;
pub(super) mod text;

use std::io::{self, Write};
use std::path::PathBuf;

use ppt_models::{Fit, Formula, Prediction, Resource, RunTable};
use ppt_query::plain_json;
use ppt_query::text::grouped;
use ppt_text::exit::ExitStatus;

use self::assessed::AssessedFit;
use crate::args;
use crate::error::AnswerError;
use crate::{answer, message, numbers, open, run};

pub(crate) fn run(args: &args::Fit) -> Result<ExitStatus, AnswerError> {
    // An existing file is a capture, whatever its name.
    let is_formula = |path: &PathBuf| path.to_string_lossy().contains('~') && !path.exists();
    let (formulas, captures): (Vec<_>, Vec<_>) =
        args.captures.captures.iter().cloned().partition(is_formula);
    let ([text], false) = (&formulas[..], captures.is_empty()) else {
        let how = "give captures and one formula: ppt fit out.bin --sql 'SELECT …' 'busy ~ n'";
        return Err(AnswerError::Usage(how.to_owned()));
    };
    let text = text.to_string_lossy();
    let formula: Formula = text.parse().map_err(|error| AnswerError::formula(&error, &text))?;
    let engine = open::engine(&super::input::with_captures(captures, &args.captures))?;
    ppt_signals::end_work();
    let output = open::output(&args.to.output, args.to.force, &engine)?;
    let drawing = picture::open(args.svg.as_deref(), &args.to, &engine)?;
    let runtime = run::runtime(engine.threads())?;
    let work = numbers::select(&engine, &args.sql);
    let rows = runtime.block_on(run::question(engine.set().watch(), work))?;
    let table = left_out(None, rows.table(args.run.as_deref(), &formula)?);
    let fit = Fit::new(&formula, &table, args.sure.options());
    let fit = fit.map_err(|error| AnswerError::fit(&error, &text))?;
    let at: Vec<(&str, f64)> = args.at.iter().map(|entry| (&entry.0[..], entry.1)).collect();
    let predicted = match at[..] {
        [] => None,
        _ => Some(fit.predict(&at).map_err(|error| AnswerError::predict(&error))?),
    };
    let limit = match (args.limit, formula.inputs().first()) {
        (None, _) => None,
        (Some(bound), load) => {
            let load = load.copied().unwrap_or_default();
            let resource = Resource::from_fit(load, fit.clone())
                .map_err(|error| AnswerError::resource(&error))?;
            Some((load, resource.limit(bound).map_err(|error| AnswerError::predict(&error))?))
        }
    };
    let assessed = AssessedFit::new(None, String::new(), fit);
    let limit = limit.as_ref().map(|limit| (limit.0, &limit.1));
    answer::publish(output, |out| write(args, &assessed, predicted.as_ref(), limit, out))?;
    if let Some(drawing) = drawing {
        let at = args.at.iter().map(|entry| entry.1).reduce(f64::max);
        let until = picture::until(at, limit.map(|limit| limit.1));
        picture::write(&[picture::panels(&assessed, &table, until)], drawing)?;
    }
    Ok(open::report_faults(&engine))
}

/// Reports how many rows of a table are left out. `of`: the component.
pub(super) fn left_out(of: Option<&str>, (table, rows): (RunTable, usize)) -> RunTable {
    if rows > 0 {
        let of = of.map_or_else(String::new, |text| format!("{text}: "));
        let (rows, all) = (grouped(rows as u64), grouped((rows + table.rows()) as u64));
        message::note(format_args!(
            "{of}{rows} of {all} rows have NULL for a number and are left out"
        ));
    }
    table
}

fn write(
    args: &args::Fit,
    assessed: &AssessedFit,
    predicted: Option<&Prediction>,
    limit: Option<(&str, &ppt_models::Limit)>,
    out: &mut impl Write,
) -> io::Result<()> {
    if args.format == args::TextOrJson::Json {
        let mut object = json::fit(assessed);
        object["prediction"] = serde_json::json!(predicted.map(json::prediction));
        object["limit"] = serde_json::json!(limit.map(|(_, limit)| json::limit(limit)));
        return writeln!(out, "{}", plain_json(&object.to_string()));
    }
    text::fit(assessed, out)?;
    if let Some(prediction) = predicted {
        text::prediction(&args.at, prediction, &assessed.unit, out)?;
    }
    if let Some((load, limit)) = limit {
        text::limit(load, limit, &assessed.unit, out)?;
    }
    Ok(())
}
