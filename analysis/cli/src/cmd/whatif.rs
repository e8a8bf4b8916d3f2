//! `ppt whatif CAPTURE…`: the effect of a faster part.

mod json;
mod live;
mod rows;
mod text;

use std::io::{self, Write};

use ppt_query::whatif::ExperimentAnswer;
use ppt_query::whatif::LoadedRun;
use ppt_query::whatif::retime::{
    BlockBootstrap, Metric, MetricUnavailable, RetimeModel, SpeedWorth, Speeds,
};
use ppt_query::{Engine, ResultFormat};
use ppt_text::exit::ExitStatus;

use crate::args;
use crate::error::AnswerError;
use crate::{answer, open, run};

/// Default factor of speed.
const TWICE: f64 = 2.0;

pub(crate) fn run(args: &args::WhatIf) -> Result<ExitStatus, AnswerError> {
    let speeds = Speeds::new(args.speed.clone()).map_err(AnswerError::bad_whatif_question)?;
    let engine = open::engine(&args.captures)?;
    ppt_signals::end_work();
    let output = open::output(&args.to.output, args.to.force, &engine)?;
    let runtime = run::runtime(engine.threads())?;
    let watch = engine.set().watch();
    let answers = match engine.set().has_rounds() {
        true => Answers::Live(runtime.block_on(run::question(watch, live::ask(args, &engine)))?),
        false => {
            let asked = ask(args, &speeds, &engine);
            Answers::Retimed(runtime.block_on(run::question(watch, asked))?)
        }
    };
    answer::publish(output, |out| write_answer(args, &answers, out))?;
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
) -> Result<Vec<SpeedWorth>, AnswerError> {
    let run = engine.load_run().await?;
    let metrics = metrics(args, &run);
    for metric in &metrics {
        run.evidence(metric).judge().map_err(AnswerError::no_retiming)?;
    }
    let model = RetimeModel::new(run.recording).map_err(AnswerError::no_retiming)?;
    if model.activities().is_empty() {
        return Err(AnswerError::bad_whatif_question(
            "no interval can be made faster: there are none",
        ));
    }
    let speeds = model.speeds(speeds).map_err(AnswerError::bad_whatif_question)?;
    let bootstrap = BlockBootstrap::default();
    let mut answers = Vec::new();
    for metric in &metrics {
        run::pause().await;
        let asked = model.ask(metric).map_err(|error| match error {
            MetricUnavailable::Refused(refusal) => AnswerError::no_retiming(refusal),
            other => AnswerError::bad_whatif_question(other),
        })?;
        let answered = match (&args.sweep[..], args.speed.is_empty()) {
            (_, true) => model
                .rank(&asked, TWICE, bootstrap)
                .map(|rank| rank.into_iter().map(|ranked| ranked.answer).collect()),
            ([], false) => model.answer(&asked, &speeds, bootstrap).map(|worth| vec![worth]),
            (times, false) => model.sweep(&asked, &speeds, times, bootstrap),
        };
        answers.extend(answered.map_err(AnswerError::no_retiming)?);
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
    out: &mut (impl Write + Send),
) -> io::Result<()> {
    let format = answer::format(args.format.as_deref(), &args.to.output)?;
    match (format, answers) {
        (None, Answers::Retimed(answers)) => text::write(answers, out),
        (None, Answers::Live(answers)) => live::write(answers, out),
        (Some(ResultFormat::Json), Answers::Retimed(answers)) => json::write(answers, out),
        (Some(ResultFormat::Json), Answers::Live(answers)) => live::json(answers, out),
        (Some(format), Answers::Retimed(answers)) => {
            answer::write_rows(rows::batch(answers), format, out)
        }
        (Some(format), Answers::Live(answers)) => {
            answer::write_rows(live::batch(answers), format, out)
        }
    }
}
