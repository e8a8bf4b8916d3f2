//! `ppt sql CAPTURE… 'SELECT …'`.

mod prompt;
mod session;

use std::io::{self, IsTerminal, Read};
use std::path::Path;
use std::process::ExitCode;

use ppt_query::Format;
use session::Session;

use crate::args;
use crate::failure::Failure;
use crate::{open, run, signals};

pub(crate) fn run(args: &args::Sql) -> Result<ExitCode, Failure> {
    let is_query = |word: &std::path::PathBuf| word.to_string_lossy().contains(char::is_whitespace);
    // What is there is a capture, whatever it is called.
    let is_query = |word: &std::path::PathBuf| is_query(word) && !word.exists();
    let words = args.captures.captures.iter().cloned();
    let (queries, captures): (Vec<_>, Vec<_>) = words.partition(is_query);
    if captures.is_empty() {
        return Err(Failure::Usage(
            "name a capture beside the query: ppt sql out.bin 'SELECT …'".into(),
        ));
    }
    let text = match (&args.file, &queries[..]) {
        (Some(file), []) => Some(read(file)?),
        (None, [query]) => Some(query.to_string_lossy().into_owned()),
        (None, []) if !io::stdin().is_terminal() => Some(read(Path::new("-"))?),
        (None, []) => None,
        _ => return Err(Failure::Usage("give one query, or a file of them (-f)".into())),
    };
    let format = match &args.format {
        Some(word) => word.parse().map_err(Failure::Usage)?,
        None if args.to.output.as_os_str() == "-" && io::stdout().is_terminal() => Format::Aligned,
        None => by_extension(&args.to.output).unwrap_or(Format::Tsv),
    };
    let asked = args::Captures { captures, ..clone(&args.captures) };
    let engine = open::engine(&asked)?;
    let runtime = run::runtime(engine.threads())?;
    let session = Session { engine, runtime, format, force: args.to.force };
    match text {
        Some(text) => {
            signals::end_questions();
            session.all(&text, &args.to.output)?;
        }
        None => prompt::run(&session)?,
    }
    open::tell_loss(session.engine.loss());
    Ok(open::tell_troubles(&session.engine))
}

fn clone(captures: &args::Captures) -> args::Captures {
    args::Captures {
        captures: captures.captures.clone(),
        buffers: captures.buffers.clone(),
        ..*captures
    }
}

fn read(file: &Path) -> Result<String, Failure> {
    let fail = |error| Failure::Read(file.display().to_string(), error);
    if file.as_os_str() != "-" {
        return std::fs::read_to_string(file).map_err(fail);
    }
    let mut text = String::new();
    io::stdin().read_to_string(&mut text).map_err(fail)?;
    Ok(text)
}

pub(crate) fn by_extension(path: &Path) -> Option<Format> {
    path.extension()?.to_str()?.parse().ok()
}
