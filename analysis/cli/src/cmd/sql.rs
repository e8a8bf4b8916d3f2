//! `ppt sql CAPTURE… 'SELECT …'`.

mod answerer;
pub(crate) mod prompt;
mod session;
mod tables;

use std::io::{self, IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use ppt_query::ResultFormat;
use session::SqlSession;

use crate::args;
use crate::failure::Failure;
use crate::{open, run, signals, terms};

pub(crate) fn run(args: &args::Sql) -> Result<ExitCode, Failure> {
    // With a file of queries, every word is a capture, also a pattern with white space in it.
    let (queries, captures) = match args.file {
        Some(_) => (Vec::new(), args.captures.captures.clone()),
        None => queries(&args.captures.captures),
    };
    if captures.is_empty() {
        return Err(Failure::Usage(
            "name a capture beside the query: ppt sql out.bin 'SELECT …'".into(),
        ));
    }
    let text = match (&args.file, &queries[..]) {
        (Some(file), _) => Some(read(file)?),
        (None, [query]) => Some(query.to_string_lossy().into_owned()),
        (None, []) if !is_prompt(args) => Some(read(Path::new("-"))?),
        (None, []) => None,
        _ => return Err(Failure::Usage("give one query, or a file of them (-f)".into())),
    };
    let format = match &args.format {
        Some(word) => word.parse().map_err(Failure::Usage)?,
        None if args.for_spreadsheet => ResultFormat::Csv,
        None if args.to.output.as_os_str() == "-" && io::stdout().is_terminal() => {
            ResultFormat::Aligned
        }
        None => by_extension(&args.to.output).unwrap_or(ResultFormat::Tsv),
    };
    let format = match format.for_spreadsheet() {
        Some(format) if args.for_spreadsheet => format,
        None if args.for_spreadsheet => return Err(Failure::not_for_spreadsheets()),
        _ => format,
    };
    if format.is_binary() {
        open::not_on_terminal(&args.to.output, "this format")?;
    }
    let engine = open::engine(&all_captures(captures, &args.captures))?;
    let runtime = run::runtime(engine.threads())?;
    let (file, force) = (args.file.clone(), args.to.force);
    let for_spreadsheet = args.for_spreadsheet;
    let session = SqlSession { engine, runtime, format, for_spreadsheet, file, force };
    match text {
        Some(text) => {
            signals::end_questions();
            session.all(&text, &args.to.output)?;
        }
        None => answerer::serve(&session)?,
    }
    open::tell_loss(&session.engine);
    Ok(open::tell_troubles(&session.engine))
}

/// Whether statements are typed at a prompt.
pub(crate) fn is_prompt(args: &args::Sql) -> bool {
    let (queries, captures) = queries(&args.captures.captures);
    let has_text = args.file.is_some() || !queries.is_empty() || captures.is_empty();
    let is_typed = terms::terms().map_or_else(|| io::stdin().is_terminal(), |term| term.is_prompt);
    !has_text && is_typed
}

/// The queries among the words, and the captures.
pub(super) fn queries(words: &[PathBuf]) -> (Vec<PathBuf>, Vec<PathBuf>) {
    let is_query = |word: &PathBuf| word.to_string_lossy().contains(char::is_whitespace);
    // What is there is a capture, whatever it is called.
    words.iter().cloned().partition(|word| is_query(word) && !word.exists())
}

/// The same part of other captures.
pub(super) fn all_captures(captures: Vec<PathBuf>, asked: &args::Captures) -> args::Captures {
    let (buffers, hosts) = (asked.buffers.clone(), asked.hosts.clone());
    args::Captures { captures, buffers, hosts, ..*asked }
}

/// More than any query, model, view or baseline has; what has no end ends here.
const MOST_BYTES: u64 = 64 << 20;

/// The text of a file, or of stdin.
pub(super) fn read(file: &Path) -> Result<String, Failure> {
    let fail = |error| Failure::Read(file.display().to_string(), error);
    let from: Box<dyn Read> = if file.as_os_str() == "-" {
        Box::new(io::stdin())
    } else {
        Box::new(std::fs::File::open(file).map_err(fail)?)
    };
    let mut text = String::new();
    from.take(MOST_BYTES + 1).read_to_string(&mut text).map_err(fail)?;
    if text.len() as u64 > MOST_BYTES {
        let why = format!("it has more than {} MiB, which no such file needs", MOST_BYTES >> 20);
        return Err(fail(io::Error::new(io::ErrorKind::FileTooLarge, why)));
    }
    Ok(text)
}

pub(crate) fn by_extension(path: &Path) -> Option<ResultFormat> {
    path.extension()?.to_str()?.parse().ok()
}
