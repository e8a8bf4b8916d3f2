//! Writes the answer of a command to its output.

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::Path;

use ppt_output::Output;
use ppt_query::arrow::array::RecordBatch;
use ppt_query::arrow::error::ArrowError;
use ppt_query::{AnyOutput, Encoder, ResultFormat};

use crate::error::AnswerError;
use crate::open;

/// The format that `word` or the output's extension names. None is text for people, the default on a
/// terminal.
pub(crate) fn format(word: Option<&str>, output: &Path) -> io::Result<Option<ResultFormat>> {
    let on_terminal = output.as_os_str() == "-" && io::stdout().is_terminal();
    Ok(match word {
        Some("text") => None,
        Some(word) => Some(word.parse::<ResultFormat>().map_err(io::Error::other)?),
        None if on_terminal => None,
        None => Some(open::format_by_extension(output).unwrap_or(ResultFormat::Tsv)),
    })
}

/// Writes rows in `format`.
pub(crate) fn write_rows(
    rows: Result<RecordBatch, ArrowError>,
    format: ResultFormat,
    out: &mut (impl Write + Send),
) -> io::Result<()> {
    let rows = rows.map_err(io::Error::other)?;
    let out: AnyOutput<'_> = Box::new(out);
    let mut encoder = Encoder::new(out, format, &rows.schema())?;
    encoder.write(&rows)?;
    encoder.finish()?;
    Ok(())
}

/// Gives `output` the content that `write` writes, and its name.
pub(crate) fn publish(
    mut output: Output,
    write: impl FnOnce(&mut BufWriter<&File>) -> io::Result<()>,
) -> Result<(), AnswerError> {
    let mut out = BufWriter::new(output.file());
    let written = write(&mut out).and_then(|()| out.flush());
    written.map_err(AnswerError::writing(&output.name()))?;
    drop(out);
    Ok(output.publish()?)
}
