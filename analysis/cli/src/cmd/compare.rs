//! `ppt compare A… -- B…`: two sets of runs, held against each other.

mod fields;
mod row;
mod words;

use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use ppt_models::{Baseline, Comparing, Comparison, Entry, Gate, Outcome, Resampling, Statistic};
use ppt_query::{Engine, plain_json};
use serde_json::{Value, json};

use self::row::Row;
use crate::args;
use crate::failure::Failure;
use crate::{message, open, run, signals};

pub(crate) fn run(args: &args::Compare) -> Result<ExitCode, Failure> {
    let is_option =
        |it: &&PathBuf| it.as_os_str().as_encoded_bytes().starts_with(b"-") && !it.exists();
    if let Some(option) = args.second.iter().find(is_option) {
        let what =
            format!("behind `--` there are captures only: put {} in front", option.display());
        return Err(Failure::Usage(what));
    }
    let gates = gates(&args.fail_if)?;
    let mut statistics = Statistic::USUAL.to_vec();
    for it in &gates {
        if !statistics.contains(&it.statistic) {
            statistics.push(it.statistic);
        }
    }
    if args.save.as_ref() == Some(&args.to.output) {
        return Err(Failure::Usage("give --save a file that is not that of -o".to_owned()));
    }
    let saved = match &args.baseline {
        Some(path) => {
            let saved = Baseline::from_json(&super::sql::read(path)?);
            Some(saved.map_err(|it| Failure::baseline(path, &it))?)
        }
        None => None,
    };
    signals::end_questions();
    let (engine, first, second) = match (saved, &args.second[..]) {
        (Some(saved), []) => {
            let (engine, entries) = side(args, &args.captures.captures, &statistics)?;
            (engine, saved.entries, entries)
        }
        (None, []) if args.save.is_some() => {
            let (engine, entries) = side(args, &args.captures.captures, &statistics)?;
            let names: Vec<&str> = entries.iter().map(|it| &it.field[..]).collect();
            for gate in &gates {
                gate.of(&names).map_err(|it| Failure::no_field(&it))?;
            }
            save(args, entries, &engine)?;
            open::tell_loss(engine.loss());
            return Ok(open::tell_troubles(&engine));
        }
        (None, [_, ..]) => {
            let (_, first) = side(args, &args.captures.captures, &statistics)?;
            let (engine, second) = side(args, &args.second, &statistics)?;
            (engine, first, second)
        }
        _ => {
            let how = "name two sets of captures: ppt compare before*.bin -- after*.bin; or one and \
                       --baseline, or one and --save";
            return Err(Failure::Usage(how.to_owned()));
        }
    };
    let rows = compared(args, &first, &second)?;
    if rows.is_empty() {
        return Err(Failure::Usage("the two sides have no field in common".to_owned()));
    }
    alone("first", &first, &second);
    alone("second", &second, &first);
    let failed = judge(&gates, &rows)?;
    let beside = args.baseline.as_deref();
    let mut output = open::output_beside(&args.to.output, args.to.force, &engine, beside)?;
    let name = output.name();
    let mut out = BufWriter::new(output.file());
    let written = match args.format {
        args::TextOrJson::Json => writeln!(out, "{}", plain_json(&object(&rows).to_string())),
        args::TextOrJson::Text => words::write(&rows, &mut out),
    };
    written.and_then(|()| out.flush()).map_err(Failure::writing(&name))?;
    drop(out);
    output.publish()?;
    match failed {
        true if args.save.is_some() => message::note("a gate failed, so nothing is saved"),
        true => {}
        false => save(args, second, &engine)?,
    }
    if rows.iter().any(|it| it.comparison.one_run()) {
        message::note(
            "a side has one run: nothing says how runs differ, and any two runs may differ so",
        );
    }
    open::tell_loss(engine.loss());
    let code = open::tell_troubles(&engine);
    Ok(if failed { ExitCode::FAILURE } else { code })
}

fn gates(texts: &[String]) -> Result<Vec<Gate>, Failure> {
    texts.iter().map(|text| text.parse().map_err(|it| Failure::gate(&it, text))).collect()
}

/// What one side measured.
fn side(
    args: &args::Compare,
    captures: &[PathBuf],
    statistics: &[Statistic],
) -> Result<(Engine, Vec<Entry>), Failure> {
    let engine = open::engine(&super::sql::of(captures.to_vec(), &args.captures))?;
    let runtime = run::runtime(engine.threads())?;
    let work = fields::measured(&engine, args.frame.as_deref(), args.by.as_deref(), statistics);
    let entries = runtime.block_on(run::question(engine.set().watch(), work))?;
    Ok((engine, entries))
}

fn compared(args: &args::Compare, first: &[Entry], second: &[Entry]) -> Result<Vec<Row>, Failure> {
    let pairs: Vec<(&Entry, &Entry)> = first
        .iter()
        .filter_map(|it| {
            let other = second.iter().find(|other| other.field == it.field && other.by == it.by)?;
            Some((it, other))
        })
        .collect();
    let statistics = second.first().map_or(1, |it| it.measured.statistics.len());
    let options = Comparing {
        level: args.sure.level,
        family: pairs.len() * statistics,
        resampling: Resampling { count: args.sure.resamples, seed: args.sure.seed },
        ..Comparing::default()
    };
    let row = |(one, other): (&Entry, &Entry)| {
        let comparison = Comparison::of(&one.measured, &other.measured, options)
            .map_err(|it| Failure::compare(&one.field, &it))?;
        Ok(Row { field: one.field.clone(), by: one.by.clone(), comparison })
    };
    pairs.into_iter().map(row).collect()
}

/// Whether a gate says that a change is too much. Says which, and which it cannot tell.
fn judge(gates: &[Gate], rows: &[Row]) -> Result<bool, Failure> {
    let mut failed = false;
    let names: Vec<&str> = rows.iter().map(|it| &it.field[..]).collect();
    for gate in gates {
        let fields = gate.of(&names).map_err(|it| Failure::no_field(&it))?;
        for row in rows.iter().filter(|it| fields.contains(&&it.field[..])) {
            let mut changes = row.comparison.changes.iter();
            let Some(change) = changes.find(|it| it.statistic == gate.statistic) else { continue };
            let outcome = gate.judge(change).map_err(|it| Failure::ratio(&row.field, it))?;
            let name = words::name(row);
            match outcome {
                Outcome::TooMuch => {
                    failed = true;
                    message::error("gate-failed", format_args!("{gate}: {name}: {change}"));
                }
                Outcome::Unclear => {
                    message::note(format_args!("{gate}: {name}: not shown, not ruled out"));
                }
                Outcome::Fine => {}
            }
        }
    }
    Ok(failed)
}

/// Says what only one side has: no gate judges it.
fn alone(side: &str, its: &[Entry], others: &[Entry]) {
    const SAID: usize = 5;
    let there =
        |it: &&Entry| others.iter().any(|other| (&other.field, &other.by) == (&it.field, &it.by));
    let alone: Vec<String> =
        its.iter().filter(|it| !there(it)).map(|it| words::called(&it.field, &it.by)).collect();
    if alone.is_empty() {
        return;
    }
    let more = match alone.len().saturating_sub(SAID) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let names = alone[..alone.len().min(SAID)].join(", ");
    message::note(format_args!("on the {side} side alone, so not compared: {names}{more}"));
}

/// Writes what `--save` asks for.
fn save(args: &args::Compare, entries: Vec<Entry>, engine: &Engine) -> Result<(), Failure> {
    let Some(path) = &args.save else { return Ok(()) };
    if entries.is_empty() {
        let why = "there is nothing to save: no field has values of two runs or frames";
        return Err(Failure::Usage(why.to_owned()));
    }
    let beside = args.baseline.as_deref();
    let mut output = open::output_beside(path, args.to.force, engine, beside)?;
    let text = Baseline::new(entries).to_json();
    output.file().write_all(text.as_bytes()).map_err(Failure::writing(&output.name()))?;
    Ok(output.publish()?)
}

fn object(rows: &[Row]) -> Value {
    let estimate = |it: &ppt_models::Estimate| {
        let range = |it: ppt_models::Interval| json!([it.low, it.high]);
        json!({"value": it.value, "interval": range(it.interval), "bootstrap": it.bootstrap.map(range)})
    };
    let change = |it: &ppt_models::Change| {
        json!({
            "statistic": it.statistic.to_string(), "first": it.values[0], "second": it.values[1],
            "difference": estimate(&it.difference), "ratio": it.ratio.as_ref().map(estimate),
            "effect": it.effect, "verdict": it.direction.to_string(),
        })
    };
    let row = |it: &Row| {
        json!({
            "field": it.field, "by": it.by, "one_run": it.comparison.one_run(),
            "units": [it.comparison.units[0].1, it.comparison.units[1].1],
            "above": it.comparison.above,
            "changes": it.comparison.changes.iter().map(change).collect::<Vec<_>>(),
        })
    };
    json!(rows.iter().map(row).collect::<Vec<_>>())
}
