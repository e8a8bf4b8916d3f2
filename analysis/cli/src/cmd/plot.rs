//! `ppt plot CAPTURE… 'SELECT …' -o x.svg`: the answer to a query as a picture.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use ppt_report::{Kind, Plot};

use crate::args;
use crate::failure::Failure;
use crate::{open, run, signals};

pub(crate) fn run(args: &args::Plot) -> Result<ExitCode, Failure> {
    let (queries, captures) = super::sql::queries(&args.captures.captures);
    let [query] = &queries[..] else {
        return Err(Failure::Usage(
            "give captures and one query: ppt plot out.bin 'SELECT …' -o x.svg".into(),
        ));
    };
    open::check_name(&args.to.output, "SVG")?;
    open::not_on_terminal(&args.to.output, "a picture")?;
    let query = query.to_string_lossy();
    let kind = args.kind.as_deref().map(str::parse::<Kind>).transpose().map_err(Failure::Usage)?;
    let (width, height) = (args.width, args.height);
    let plot = Plot { kind, title: args.title.clone(), width, height, ..Plot::default() };
    let captures: Vec<PathBuf> = captures;
    let engine = open::engine(&super::sql::of(captures, &args.captures))?;
    signals::end_questions();
    let mut output = open::output(&args.to.output, args.to.force, &engine)?;
    let runtime = run::runtime(engine.threads())?;
    let work = async { Ok(ppt_report::plot(&engine, &query, &plot).await?) };
    let svg = runtime.block_on(run::question(engine.set().watch(), work))?;
    output.file().write_all(svg.as_bytes()).map_err(Failure::writing(&output.name()))?;
    output.publish()?;
    open::tell_loss(&engine);
    Ok(open::tell_troubles(&engine))
}
