//! `/v1/window` and `/v1/lengths`.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use ppt_view::{About, Cell, Phase, RowId, SliceFilter, View, ViewError, WindowRequest};
use serde::Deserialize;
use serde_json::json;

use crate::body::{self, HttpAnswer, Pieces, pieces};
use crate::error::HttpRefusal;
use crate::find::FindCondition;
use crate::layers::{self, TableRow};
use crate::row_bytes;
use crate::session::ViewSession;
use crate::times::time;

/// The most pixels of a window.
const MAX_PIXELS: u32 = 4096;
/// The most rows of a request.
const MAX_ROWS: usize = 256;

#[derive(Debug, Deserialize)]
pub(crate) struct WindowQuery {
    from: String,
    to: String,
    px: u32,
    rows: Vec<String>,
    phase: PhaseQuery,
    /// The condition of a search. Rows of the index then have only its matches, for which frames are read in
    /// each phase.
    #[serde(default, rename = "where")]
    wanted: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum PhaseQuery {
    Index,
    Frames,
}

#[derive(Debug, Deserialize)]
pub(crate) struct LengthsQuery {
    row: String,
    from: String,
    to: String,
}

impl WindowQuery {
    fn request(&self) -> Result<WindowRequest, HttpRefusal> {
        let (from, to) = (time(&self.from)?, time(&self.to)?);
        if from >= to {
            return Err(HttpRefusal::bad("a window ends after it begins"));
        }
        if !(1..=MAX_PIXELS).contains(&self.px) {
            return Err(HttpRefusal::bad(format!("a window has 1 to {MAX_PIXELS} pixels")));
        }
        if self.rows.len() > MAX_ROWS {
            return Err(HttpRefusal::bad(format!("a window has at most {MAX_ROWS} rows")));
        }
        let index_rows = self.rows.iter().filter(|row| TableRow::parse(row).is_none());
        let rows = index_rows.map(|row| row.parse::<RowId>()).collect::<Result<_, _>>()?;
        let phase = match self.phase {
            PhaseQuery::Index => Phase::Index,
            PhaseQuery::Frames => Phase::Frames,
        };
        Ok(WindowRequest { from, to, pixels: self.px, rows, phase })
    }
}

/// Sends the rows of a window one by one, first those of the index, then those from tables. Stops when the
/// reader is gone.
pub(crate) fn window(
    session: &Arc<ViewSession>,
    asked: &WindowQuery,
) -> Result<HttpAnswer, HttpRefusal> {
    let request = asked.request()?;
    let layers: Vec<TableRow> = asked.rows.iter().filter_map(|row| TableRow::parse(row)).collect();
    let (number, view) = session.view();
    let filter = |text: &String| {
        let make = || Ok(view.filter(&FindCondition::parse(text)?.slices()?)?);
        session.filter(number, text, make)
    };
    let filter = asked.wanted.as_ref().map(filter).transpose()?;
    let session = session.clone();
    let (answer, pieces) = pieces("application/octet-stream");
    tokio::spawn(async move {
        let pieces = Arc::new(pieces);
        let window = (request.from, request.to, request.pixels);
        if index_rows(view.clone(), request, filter, pieces.clone()).await && !layers.is_empty() {
            table_rows(&session, &view.about(), &layers, window, &pieces).await;
        }
    });
    Ok(answer)
}

/// Sends the rows from tables. Stops when the reader is gone.
async fn table_rows(
    session: &ViewSession,
    about: &About,
    rows: &[TableRow],
    window: (i64, i64, u32),
    pieces: &Pieces,
) {
    for group in layers::groups(rows) {
        let encoded = tokio::select! {
            encoded = encoded_group(session, about, group, window) => encoded,
            () = pieces.closed() => return,
        };
        for row in encoded {
            if !pieces.send(row.into()).await {
                return;
            }
        }
    }
}

/// The bytes of rows of one table.
async fn encoded_group(
    session: &ViewSession,
    about: &About,
    group: &[TableRow],
    window: (i64, i64, u32),
) -> Vec<Vec<u8>> {
    let cells = match session.engine() {
        Ok(engine) => layers::cells(&engine, about, group, window).await,
        Err(error) => Err(error.into()),
    };
    let encoded = |row: &TableRow, cells: Option<Vec<Cell>>| match cells {
        Some(cells) => row_bytes::encode_cells(&row.id(), cells, window.0),
        None => row_bytes::encode_failure(&row.id(), &ViewError::NoSuchRow(row.id()).to_string()),
    };
    match cells {
        Ok(cells) => group.iter().zip(cells).map(|(row, cells)| encoded(row, cells)).collect(),
        Err(refusal) => {
            group.iter().map(|row| row_bytes::encode_failure(&row.id(), &refusal.text)).collect()
        }
    }
}

/// Sends the rows of the index. False if the reader is gone.
async fn index_rows(
    view: Arc<View>,
    request: WindowRequest,
    filter: Option<Arc<SliceFilter>>,
    pieces: Arc<Pieces>,
) -> bool {
    let runtime = tokio::runtime::Handle::current();
    let work = tokio::task::spawn_blocking(move || {
        let gone = Arc::clone(pieces.gone());
        let rows: Box<dyn Iterator<Item = _>> = match &filter {
            None => Box::new(view.window(&request, &gone)),
            Some(filter) => Box::new(view.filtered(&request, filter, &gone)),
        };
        for (id, row) in request.rows.iter().zip(rows) {
            let id = id.to_string();
            let bytes = match row {
                Ok(row) => row_bytes::encode(&id, &row, request.from),
                Err(ViewError::Cancelled) => return false,
                Err(error) => row_bytes::encode_failure(&id, &error.to_string()),
            };
            let sent = runtime.block_on(pieces.send(bytes.into()));
            if !sent || gone.load(Ordering::Relaxed) {
                return false;
            }
        }
        true
    });
    work.await.unwrap_or(false)
}

/// A histogram of the lengths of slices in a row.
pub(crate) fn lengths(
    session: &ViewSession,
    asked: &LengthsQuery,
) -> Result<HttpAnswer, HttpRefusal> {
    let (from, to) = (time(&asked.from)?, time(&asked.to)?);
    let buckets = session.view().1.lengths(asked.row.parse()?, from, to)?;
    let buckets: Vec<String> = buckets.iter().map(u64::to_string).collect();
    Ok(body::json(&json!({ "buckets": buckets })))
}
