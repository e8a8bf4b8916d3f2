//! Queries, files and captures on the command line of several commands.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::args;
use crate::error::AnswerError;

/// The words of a command that takes captures and queries.
pub(super) struct SqlWords {
    pub(super) queries: Vec<PathBuf>,
    pub(super) captures: Vec<PathBuf>,
}

impl SqlWords {
    /// A word with white space is a query, unless a file has this name.
    pub(super) fn split(words: &[PathBuf]) -> SqlWords {
        let is_query = |word: &PathBuf| word.to_string_lossy().contains(char::is_whitespace);
        let (queries, captures) =
            words.iter().cloned().partition(|word| is_query(word) && !word.exists());
        SqlWords { queries, captures }
    }
}

/// The arguments `args`, with other captures.
pub(super) fn with_captures(captures: Vec<PathBuf>, args: &args::Captures) -> args::Captures {
    let (buffers, hosts) = (args.buffers.clone(), args.hosts.clone());
    args::Captures { captures, buffers, hosts, ..*args }
}

/// More than any query, model, view or baseline has. It also stops input without an end.
const MAX_BYTES: u64 = 64 << 20;

/// The text of a file; `-` is stdin.
pub(super) fn read_text(file: &Path) -> Result<String, AnswerError> {
    let fail = |error| AnswerError::Read(file.display().to_string(), error);
    let input: Box<dyn Read> = if file.as_os_str() == "-" {
        Box::new(io::stdin())
    } else {
        Box::new(std::fs::File::open(file).map_err(fail)?)
    };
    let mut text = String::new();
    input.take(MAX_BYTES + 1).read_to_string(&mut text).map_err(fail)?;
    if text.len() as u64 > MAX_BYTES {
        let why = format!("it has more than {} MiB, which no such file needs", MAX_BYTES >> 20);
        return Err(fail(io::Error::new(io::ErrorKind::FileTooLarge, why)));
    }
    Ok(text)
}
