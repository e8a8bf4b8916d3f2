//! `ppt whatif CAPTURE…`: the effect of a faster part.

mod json;
mod live;
mod rows;
mod text;

use std::io::{self, BufWriter, IsTerminal, Write};
use std::process::ExitCode;

use ppt_query::whatif::LoadedRun;
use ppt_query::whatif::live::ExperimentAnswer;
use ppt_query::whatif::retime::{
    Metric, MetricUnavailable, Resampling, RetimeModel, SpeedWorth, Speeds,
};
use ppt_query::{Encoder, Engine, ResultFormat};

use crate::args;
use crate::failure::Failure;
use crate::{open, run, signals};

/// Default factor of speed.
const TWICE: f64 = 2.0;

pub(crate) fn run(args: &args::WhatIf) -> Result<ExitCode, Failure> {
    let speeds = Speeds::new(args.speed.clone()).map_err(Failure::asked)?;
    let engine = open::engine(&args.captures)?;
    signals::end_questions();
    let mut output = open::output(&args.to.output, args.to.force, &engine)?;
    let runtime = run::runtime(engine.threads())?;
    let watch = engine.set().watch();
    let answers = match engine.set().has_rounds() {
        true => Answers::Live(runtime.block_on(run::question(watch, live::ask(args, &engine)))?),
        false => {
            let asked = ask(args, &speeds, &engine);
            Answers::Retimed(runtime.block_on(run::question(watch, asked))?)
        }
    };
    let name = output.name();
    let mut out = BufWriter::new(output.file());
    write_answer(args, &answers, &mut out).map_err(Failure::writing(&name))?;
    drop(out);
    output.publish()?;
    open::warn_of_loss(&engine);
    Ok(open::report_faults(&engine))
}

/// The answers.
enum Answers {
    /// A replay of a captured run.
    Retimed(Vec<SpeedWorth>),
    /// An experiment with slower programs.
    Live(Vec<ExperimentAnswer>),
}

async fn ask(
    args: &args::WhatIf,
    speeds: &Speeds,
    engine: &Engine,
) -> Result<Vec<SpeedWorth>, Failure> {
    let run = engine.run().await?;
    let metrics = metrics(args, &run);
    for metric in &metrics {
        run.evidence(metric).judge().map_err(Failure::refused)?;
    }
    let model = RetimeModel::new(run.recording).map_err(Failure::refused)?;
    if model.activities().is_empty() {
        return Err(Failure::asked("no interval can be made faster: there are none"));
    }
    let speeds = model.speeds(speeds).map_err(Failure::asked)?;
    let resampling = Resampling::default();
    let mut answers = Vec::new();
    for metric in &metrics {
        run::pause().await;
        let asked = model.ask(metric).map_err(|error| match error {
            MetricUnavailable::Refused(refusal) => Failure::refused(refusal),
            other => Failure::asked(other),
        })?;
        let answered = match (&args.sweep[..], args.speed.is_empty()) {
            (_, true) => model
                .rank(&asked, TWICE, resampling)
                .map(|rank| rank.into_iter().map(|ranked| ranked.answer).collect()),
            ([], false) => model.answer(&asked, &speeds, resampling).map(|worth| vec![worth]),
            (times, false) => model.sweep(&asked, &speeds, times, resampling),
        };
        answers.extend(answered.map_err(Failure::refused)?);
    }
    Ok(answers)
}

/// The requested metrics, or else each kind of spans and the end.
fn metrics(args: &args::WhatIf, run: &LoadedRun) -> Vec<Metric> {
    if !args.metric.is_empty() {
        return args.metric.clone();
    }
    run.spans.iter().map(|span| Metric::Length(span.clone())).chain([Metric::End]).collect()
}

fn write_answer(
    args: &args::WhatIf,
    answers: &Answers,
    mut out: impl Write + Send,
) -> io::Result<()> {
    let on_terminal = args.to.output.as_os_str() == "-" && io::stdout().is_terminal();
    let by_extension = open::format_by_extension(&args.to.output);
    let format = match args.format.as_deref() {
        Some("text") => None,
        Some(word) => Some(word.parse::<ResultFormat>().map_err(io::Error::other)?),
        None if on_terminal => None,
        None => Some(by_extension.unwrap_or(ResultFormat::Tsv)),
    };
    match (format, answers) {
        (None, Answers::Retimed(answers)) => text::write(answers, &mut out)?,
        (None, Answers::Live(answers)) => live::write(answers, &mut out)?,
        (Some(ResultFormat::Json), Answers::Retimed(answers)) => json::write(answers, &mut out)?,
        (Some(ResultFormat::Json), Answers::Live(answers)) => live::json(answers, &mut out)?,
        (Some(format), answers) => {
            let batch = match answers {
                Answers::Retimed(answers) => rows::batch(answers),
                Answers::Live(answers) => live::batch(answers),
            };
            let batch = batch.map_err(io::Error::other)?;
            let mut encoder = Encoder::new(&mut out, format, &batch.schema())?;
            encoder.write(&batch)?;
            encoder.finish()?;
        }
    }
    out.flush()
}
