//! `ppt compare A… -- B…`: compares two sets of runs.

mod fields;
mod gates;
mod row;
mod text;

use std::io::Write;
use std::path::{Path, PathBuf};

use ppt_models::{
    Baseline, CompareError, Comparing, Comparison, Entry, Gate, Resampling, Statistic, is_called,
};
use ppt_query::{Engine, plain_json};
use ppt_text::exit::ExitStatus;
use serde_json::{Value, json};

use self::fields::{MeasuredSide, Selection};
use self::row::ComparedField;
use crate::args;
use crate::error::AnswerError;
use crate::{answer, message, open, run};

/// Maximum number of fields that a message names.
const MAX_NAMES: usize = 5;

pub(crate) fn run(args: &args::Compare) -> Result<ExitStatus, AnswerError> {
    let is_option =
        |path: &&PathBuf| path.as_os_str().as_encoded_bytes().starts_with(b"-") && !path.exists();
    if let Some(option) = args.second.iter().find(is_option) {
        let what = format!("only captures may follow `--`: put {} before it", option.display());
        return Err(AnswerError::Usage(what));
    }
    let gates = gates(&args.fail_if)?;
    let statistics = statistics(&gates);
    if args.save.as_ref() == Some(&args.to.output) {
        return Err(AnswerError::Usage("--save and -o name the same file".to_owned()));
    }
    let saved = args.baseline.as_deref().map(read_baseline).transpose()?;
    ppt_signals::end_work();
    let (engine, first, second) = match (saved, &args.second[..]) {
        (Some(saved), []) => {
            let (engine, second) = side(args, &args.captures.captures, &statistics)?;
            (engine, saved_side(args, saved), second)
        }
        (None, []) if args.save.is_some() => return save_only(args, &gates, &statistics),
        (None, [_, ..]) => {
            let (_, first) = side(args, &args.captures.captures, &statistics)?;
            let (engine, second) = side(args, &args.second, &statistics)?;
            (engine, first, second)
        }
        _ => {
            let how = "name two sets of captures: ppt compare before*.bin -- after*.bin; or one and \
                       --baseline, or one and --save";
            return Err(AnswerError::Usage(how.to_owned()));
        }
    };
    compare(args, &gates, &engine, (first, second))
}

/// Compares two sides. Writes the comparison and, if no gate fails, the file for `--save`.
fn compare(
    args: &args::Compare,
    gates: &[Gate],
    engine: &Engine,
    (first, second): (MeasuredSide, MeasuredSide),
) -> Result<ExitStatus, AnswerError> {
    let rows = compared(args, &first.entries, &second.entries)?;
    if rows.is_empty() {
        return Err(nothing_to_compare(&first, &second));
    }
    alone("first", &first.entries, &second);
    alone("second", &second.entries, &first);
    warn_of_unmeasured(" on the first side", &first);
    warn_of_unmeasured(" on the second side", &second);
    let verdict = gates::all(gates, &rows, [&first, &second])?;
    write(args, &rows, engine)?;
    if verdict.passed() {
        save(args, second.entries, engine)?;
    } else if args.save.is_some() {
        let why = if verdict.failed { "a gate failed" } else { "a gate cannot be judged" };
        message::note(format_args!("{why}, so nothing is saved"));
    }
    if rows.iter().any(|row| row.comparison.one_run()) {
        message::note(
            "a side has one run: the variation between runs is unknown, so a difference may be chance",
        );
    }
    let code = open::report_faults(engine);
    // A proven failure has priority over one that cannot be ruled out.
    Ok(match (verdict.failed, verdict.unjudged) {
        (true, _) => ExitStatus::FAILED,
        (false, true) => ExitStatus::NOT_JUDGED,
        (false, false) => code,
    })
}

/// Writes the file for `--save` from the only side.
fn save_only(
    args: &args::Compare,
    gates: &[Gate],
    statistics: &[Statistic],
) -> Result<ExitStatus, AnswerError> {
    let (engine, only) = side(args, &args.captures.captures, statistics)?;
    let names: Vec<&str> = only.fields().collect();
    for gate in gates {
        gate.select(&names).map_err(|error| AnswerError::no_field(&error))?;
    }
    warn_of_unmeasured("", &only);
    save(args, only.entries, &engine)?;
    Ok(open::report_faults(&engine))
}

fn read_baseline(path: &Path) -> Result<Baseline, AnswerError> {
    let saved = Baseline::from_json(&super::input::read_text(path)?);
    saved.map_err(|error| AnswerError::baseline(path, &error))
}

/// The selected fields of a baseline.
fn saved_side(args: &args::Compare, mut saved: Baseline) -> MeasuredSide {
    let is_selected = |entry: &Entry| {
        let mut names = args.field.iter();
        args.field.is_empty() || names.any(|name| is_called(&entry.field, name))
    };
    saved.entries.retain(is_selected);
    MeasuredSide { entries: saved.entries, ..MeasuredSide::default() }
}

/// The statistics to compare: the usual ones, and those of gates.
fn statistics(gates: &[Gate]) -> Vec<Statistic> {
    let mut statistics = Statistic::USUAL.to_vec();
    for gate in gates {
        if !statistics.contains(&gate.statistic) {
            statistics.push(gate.statistic);
        }
    }
    statistics
}

fn write(args: &args::Compare, rows: &[ComparedField], engine: &Engine) -> Result<(), AnswerError> {
    let output = open::output_distinct_from(
        &args.to.output,
        args.to.force,
        engine,
        args.baseline.as_deref(),
    )?;
    answer::publish(output, |out| match args.format {
        args::TextOrJson::Json => writeln!(out, "{}", plain_json(&object(rows).to_string())),
        args::TextOrJson::Text => text::write(rows, out),
    })
}

fn gates(texts: &[String]) -> Result<Vec<Gate>, AnswerError> {
    texts.iter().map(|text| text.parse().map_err(|error| AnswerError::gate(&error, text))).collect()
}

/// The measurements of one side.
fn side(
    args: &args::Compare,
    captures: &[PathBuf],
    statistics: &[Statistic],
) -> Result<(Engine, MeasuredSide), AnswerError> {
    let engine = open::engine(&super::input::with_captures(captures.to_vec(), &args.captures))?;
    let runtime = run::runtime(engine.threads())?;
    let selection = Selection {
        frame: args.frame.as_deref(),
        fields: &args.field,
        by: args.by.as_deref(),
        statistics,
    };
    let work = fields::measured(&engine, selection);
    let measured = runtime.block_on(run::question(engine.set().watch(), work))?;
    Ok((engine, measured))
}

/// Why no field of both sides can be compared.
fn nothing_to_compare(first: &MeasuredSide, second: &MeasuredSide) -> AnswerError {
    let is_common = |field: &str| {
        first.fields().any(|other| other == field) && second.fields().any(|other| other == field)
    };
    let sides = [("first", first), ("second", second)];
    let all = sides
        .into_iter()
        .flat_map(|(side, of)| of.unmeasured.iter().map(move |unmeasured| (side, unmeasured)));
    let mut reasons =
        all.filter(|(_, unmeasured)| is_common(&unmeasured.field)).map(|(side, unmeasured)| {
            format!(
                "{}: on the {side} side, {}",
                text::called(&unmeasured.field, &unmeasured.by),
                unmeasured.why
            )
        });
    match (reasons.next(), reasons.count()) {
        (None, _) => {
            let why = "the two sides have no field in common: numbers and lengths of time are \
                       compared; keys, points in time and texts are not";
            AnswerError::Usage(why.to_owned())
        }
        (Some(reason), 0) => AnswerError::unjudged(format!("nothing can be compared: {reason}")),
        (Some(reason), more) => {
            AnswerError::unjudged(format!("nothing can be compared: {reason}; and {more} more"))
        }
    }
}

fn compared(
    args: &args::Compare,
    first: &[Entry],
    second: &[Entry],
) -> Result<Vec<ComparedField>, AnswerError> {
    let pairs: Vec<(&Entry, &Entry)> = first
        .iter()
        .filter_map(|entry| {
            let other =
                second.iter().find(|other| other.field == entry.field && other.by == entry.by)?;
            Some((entry, other))
        })
        .collect();
    let statistics = second.first().map_or(1, |second| second.measured.statistics.len());
    let options = Comparing {
        level: args.sure.level,
        family: pairs.len() * statistics,
        resampling: Resampling { count: args.sure.resamples, seed: args.sure.seed },
        ..Comparing::default()
    };
    let row = |(one, other): (&Entry, &Entry)| {
        let comparison = Comparison::between(&one.measured, &other.measured, options)
            .map_err(|error| AnswerError::compare(&one.field, &error))?;
        Ok(ComparedField { field: one.field.clone(), by: one.by.clone(), comparison })
    };
    pairs.into_iter().map(row).collect()
}

/// Reports fields that only one side has: no gate judges them.
fn alone(side: &str, its: &[Entry], others: &MeasuredSide) {
    let is_in_others = |entry: &&Entry| {
        let measured = others.entries.iter().map(|other| (&other.field, &other.by));
        let unmeasured = others.unmeasured.iter().map(|other| (&other.field, &other.by));
        measured.chain(unmeasured).any(|other| other == (&entry.field, &entry.by))
    };
    let alone: Vec<String> = its
        .iter()
        .filter(|entry| !is_in_others(entry))
        .map(|entry| text::called(&entry.field, &entry.by))
        .collect();
    if alone.is_empty() {
        return;
    }
    let more = match alone.len().saturating_sub(MAX_NAMES) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let names = alone[..alone.len().min(MAX_NAMES)].join(", ");
    message::note(format_args!("on the {side} side alone, so not compared: {names}{more}"));
}

/// Reports fields that cannot be compared, and why. Fields without values are not reported.
fn warn_of_unmeasured(side: &str, of: &MeasuredSide) {
    let has_values = |why: &CompareError| *why != CompareError::NoValues;
    let mut fields = of.unmeasured.iter().filter(|field| has_values(&field.why));
    for field in fields.by_ref().take(MAX_NAMES) {
        let name = text::called(&field.field, &field.by);
        message::note(format_args!("not compared: {name}:{side} {}", field.why));
    }
    let more = fields.count();
    if more > 0 {
        message::note(format_args!("not compared:{side} {more} more fields or groups"));
    }
}

/// Writes the file for `--save`.
fn save(args: &args::Compare, entries: Vec<Entry>, engine: &Engine) -> Result<(), AnswerError> {
    let Some(path) = &args.save else { return Ok(()) };
    if entries.is_empty() {
        let why = "there is nothing to save: no field has values of two runs or frames";
        return Err(AnswerError::Usage(why.to_owned()));
    }
    let baseline = args.baseline.as_deref();
    let output = open::output_distinct_from(path, args.to.force, engine, baseline)?;
    let text = Baseline::new(entries).to_json();
    answer::publish(output, |out| out.write_all(text.as_bytes()))
}

fn object(rows: &[ComparedField]) -> Value {
    let estimate = |estimate: &ppt_models::Estimate| {
        let range = |interval: ppt_models::ConfidenceInterval| json!([interval.low, interval.high]);
        json!({"value": estimate.value, "interval": range(estimate.interval), "bootstrap": estimate.bootstrap.map(range)})
    };
    let change = |change: &ppt_models::Change| {
        json!({
            "statistic": change.statistic.to_string(), "first": change.values[0], "second": change.values[1],
            "difference": estimate(&change.difference), "ratio": change.ratio.as_ref().map(estimate),
            "effect": change.effect, "verdict": change.direction.to_string(),
        })
    };
    let row = |field: &ComparedField| {
        json!({
            "field": field.field, "by": field.by, "one_run": field.comparison.one_run(),
            "units": [field.comparison.units[0].1, field.comparison.units[1].1],
            "above": field.comparison.above,
            "changes": field.comparison.changes.iter().map(change).collect::<Vec<_>>(),
        })
    };
    json!(rows.iter().map(row).collect::<Vec<_>>())
}
