//! `/v1/export`: a range of time as a file, which the browser saves. The server writes no file.
//!
//! The file is made in memory and sent when it is complete, because an incomplete download would look like a
//! small file.

use std::io::{self, Write};

use futures::TryStreamExt;
use hyper::StatusCode;
use hyper::header::{CONTENT_DISPOSITION, HeaderValue};
use ppt_interchange::{Events, Merge, Perfetto, RowRun, Trace, TraceFormat, TraceSelection};
use ppt_query::{Bound, Encoder, Engine, Processes, QueryError, ResultFormat, Window};
use serde::Deserialize;

use crate::body::{HttpAnswer, whole};
use crate::error::HttpRefusal;
use crate::session::ViewSession;
use crate::times::time;

/// The largest size of a file.
const MAX_FILE_BYTES: usize = 256 << 20;
/// The number of rows after which other tasks have their turn.
const ROWS_PER_TURN: usize = 4096;

/// A request for the rows that begin from `from` (included) to `to` (excluded).
#[derive(Debug, Deserialize)]
pub(crate) struct ExportQuery {
    format: ExportForm,
    from: String,
    to: String,
    /// A kind of frames, or a table made of frames. Parquet needs one; a trace without one has all tables.
    #[serde(default)]
    table: Option<String>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum ExportForm {
    Perfetto,
    Parquet,
}

/// The file, as an attachment.
pub(crate) async fn export(
    session: &ViewSession,
    asked: &ExportQuery,
) -> Result<HttpAnswer, HttpRefusal> {
    let (from, to) = (time(&asked.from)?, time(&asked.to)?);
    if from >= to {
        return Err(HttpRefusal::bad("nothing is between these times"));
    }
    // `--from` and `--to` have none of these.
    let last = u64::try_from(to - 1);
    let last = last.map_err(|_| HttpRefusal::bad("what is before 1970 cannot be saved"))?;
    let from = u64::try_from(from).ok().map(Bound::Epoch);
    let busy = "another file is being made: wait for its end";
    let turn = session.exporting.try_acquire();
    let _turn = turn.map_err(|_| HttpRefusal::new(StatusCode::SERVICE_UNAVAILABLE, busy))?;
    let engine =
        session.engine_of(Window { from, to: Some(Bound::Epoch(last)), buffers: Vec::new() })?;
    let (media_type, name, bytes) = match asked.format {
        ExportForm::Perfetto => {
            ("application/octet-stream", "selection.pftrace", perfetto(&engine, asked).await?)
        }
        ExportForm::Parquet => {
            ("application/vnd.apache.parquet", "selection.parquet", parquet(&engine, asked).await?)
        }
    };
    let mut answer = whole(media_type, bytes);
    let saved = HeaderValue::try_from(format!("attachment; filename=\"{name}\""));
    answer.headers_mut().extend(saved.ok().map(|saved| (CONTENT_DISPOSITION, saved)));
    Ok(answer)
}

/// A Parquet file of a kind of frames, or of a table made of frames.
async fn parquet(engine: &Engine, asked: &ExportQuery) -> Result<Vec<u8>, HttpRefusal> {
    let name =
        asked.table.as_deref().ok_or_else(|| HttpRefusal::bad("`table` names what to export"))?;
    let tables = engine.exportable(Some(name))?;
    let [table] = &tables[..] else {
        let why = "several buffers have frames of this name: `ppt export` writes a file for each";
        return Err(HttpRefusal::bad(why));
    };
    let rows = engine.context().table(table.name.clone()).await.map_err(QueryError::from)?;
    let mut batches = rows.execute_stream().await.map_err(QueryError::from)?;
    let mut encoder =
        Encoder::new(BoundedFile::default(), ResultFormat::Parquet, &batches.schema())?;
    while let Some(batch) = batches.try_next().await.map_err(QueryError::from)? {
        encoder.write(&batch)?;
    }
    Ok(encoder.finish()?.0)
}

/// A trace for Perfetto with all tables, or with one.
async fn perfetto(engine: &Engine, asked: &ExportQuery) -> Result<Vec<u8>, HttpRefusal> {
    let form = TraceFormat::Perfetto;
    let selection = match asked.table.as_deref() {
        None => TraceSelection::everything(engine, form)?,
        Some(name) => TraceSelection::named(engine, form, name)?,
    };
    let events = Events::new(engine, form);
    let (kinds, sources) = events.sources(&selection).await?;
    let mut merge = Merge::new(&events, sources, MAX_FILE_BYTES).await?;
    let (processes, readings) = (Processes::new(engine.set()), events.readings().await?);
    let mut out = BoundedFile::default();
    let mut trace = Perfetto::new(&mut out, &kinds, processes, &readings)?;
    let mut take = |run: RowRun<'_>| {
        trace.turn_to(run.kind, run.rows);
        for row in run.which.iter().map(|&row| row as usize) {
            trace.event(run.kind, run.rows, row)?;
        }
        Ok::<_, HttpRefusal>(())
    };
    let mut written = 0;
    loop {
        match merge.next(&mut take).await? {
            0 => break,
            count => written += count,
        }
        if written >= ROWS_PER_TURN {
            written = 0;
            tokio::task::yield_now().await;
        }
    }
    trace.finish()?;
    Ok(out.0)
}

/// The bytes of a file of limited size.
#[derive(Debug, Default)]
struct BoundedFile(Vec<u8>);

impl Write for BoundedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > MAX_FILE_BYTES {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl From<io::Error> for HttpRefusal {
    fn from(error: io::Error) -> HttpRefusal {
        match error.kind() {
            io::ErrorKind::FileTooLarge => HttpRefusal::new(
                StatusCode::PAYLOAD_TOO_LARGE,
                "a download has 256 MiB at most: choose less, or use `ppt export` in a terminal",
            ),
            _ => HttpRefusal::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_a_bound_and_says_so() {
        let mut out = BoundedFile(vec![0; MAX_FILE_BYTES - 3]);
        out.write_all(&[1; 3]).unwrap();
        let refusal = HttpRefusal::from(out.write_all(&[1]).unwrap_err());
        assert_eq!(refusal.status, StatusCode::PAYLOAD_TOO_LARGE);
        assert_eq!(out.0.len(), MAX_FILE_BYTES);
    }
}
