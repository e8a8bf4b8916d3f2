//! `ppt sql CAPTURE… 'SELECT …'`.

mod answerer;
pub(crate) mod prompt;
mod session;
mod tables;

use std::io::{self, IsTerminal};
use std::path::Path;

use ppt_query::ResultFormat;
use ppt_text::exit::ExitStatus;
use session::SqlSession;

use super::input::{SqlWords, read_text, with_captures};
use crate::args;
use crate::error::AnswerError;
use crate::{open, question_settings, run};

pub(crate) fn run(args: &args::Sql) -> Result<ExitStatus, AnswerError> {
    // With a file of queries, every word is a capture, also a pattern with white space in it.
    let SqlWords { queries, captures } = match args.file {
        Some(_) => SqlWords { queries: Vec::new(), captures: args.captures.captures.clone() },
        None => SqlWords::split(&args.captures.captures),
    };
    if captures.is_empty() {
        return Err(AnswerError::Usage(
            "name a capture as well as the query: ppt sql out.bin 'SELECT …'".into(),
        ));
    }
    let text = match (&args.file, &queries[..]) {
        (Some(file), _) => Some(read_text(file)?),
        (None, [query]) => Some(query.to_string_lossy().into_owned()),
        (None, []) if !is_prompt(args) => Some(read_text(Path::new("-"))?),
        (None, []) => None,
        _ => return Err(AnswerError::Usage("give one query, or a file of them (-f)".into())),
    };
    let format = match &args.format {
        Some(word) => word.parse().map_err(AnswerError::Usage)?,
        None if args.for_spreadsheet => ResultFormat::Csv,
        None if args.to.output.as_os_str() == "-" && io::stdout().is_terminal() => {
            ResultFormat::Aligned
        }
        None => open::format_by_extension(&args.to.output).unwrap_or(ResultFormat::Tsv),
    };
    let format = match format.for_spreadsheet() {
        Some(format) if args.for_spreadsheet => format,
        None if args.for_spreadsheet => return Err(AnswerError::not_for_spreadsheets()),
        _ => format,
    };
    if format.is_binary() {
        open::not_on_terminal(&args.to.output, "this format")?;
    }
    let engine = open::engine(&with_captures(captures, &args.captures))?;
    let runtime = run::runtime(engine.threads())?;
    let (file, force) = (args.file.clone(), args.to.force);
    let for_spreadsheet = args.for_spreadsheet;
    let session = SqlSession { engine, runtime, format, for_spreadsheet, file, force };
    match text {
        Some(text) => {
            ppt_signals::end_work();
            session.all(&text, &args.to.output)?;
        }
        None => answerer::serve(&session)?,
    }
    Ok(open::report_faults(&session.engine))
}

/// Whether statements are typed at a prompt.
pub(crate) fn is_prompt(args: &args::Sql) -> bool {
    let SqlWords { queries, captures } = SqlWords::split(&args.captures.captures);
    let has_text = args.file.is_some() || !queries.is_empty() || captures.is_empty();
    let is_typed = question_settings::settings()
        .map_or_else(|| io::stdin().is_terminal(), |settings| settings.is_prompt);
    !has_text && is_typed
}
