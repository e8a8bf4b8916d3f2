//! Where the rows of a kind come from.

use futures::StreamExt;
use ppt_query::QueryError;
use ppt_query::datafusion::common::Column;
use ppt_query::datafusion::execution::SendableRecordBatchStream;
use ppt_query::datafusion::logical_expr::SortExpr;
use ppt_query::datafusion::physical_plan::stream::RecordBatchReceiverStream;
use ppt_query::datafusion::prelude::{DataFrame, ident};

use crate::event::COLUMNS;

/// The last column of a [`FileOrder`]: whether the row is an event.
pub(crate) const WANTED: &str = "wanted";

/// The rows of a kind.
#[derive(Debug)]
pub enum Source {
    /// Sorted by their beginning, as a query sorts them.
    Sorted(DataFrame),
    /// In the order in which the captures have them.
    FileOrder(FileOrder),
}

/// Rows in the order in which the captures have them, which is about that of time.
#[derive(Debug)]
pub struct FileOrder {
    /// [`COLUMNS`], the fields, and [`WANTED`]. Its plan has one part.
    pub(crate) rows: DataFrame,
    /// Of equal slices, the one that was written last is around the others.
    pub(crate) last_is_outer: bool,
}

impl FileOrder {
    /// The same rows, sorted by a query.
    pub(crate) fn sorted(self) -> Result<DataFrame, QueryError> {
        let wanted = column(WANTED);
        let sorted = self.rows.filter(ident(wanted.as_str()))?.sort(order(self.last_is_outer))?;
        Ok(sorted.drop_columns(&[Column::new_unqualified(wanted)])?)
    }
}

/// The same batches, read by a task of its own: whoever waits for them can be interrupted.
pub(crate) fn ahead(mut stream: SendableRecordBatchStream) -> SendableRecordBatchStream {
    let mut builder = RecordBatchReceiverStream::builder(stream.schema(), 2);
    let batches = builder.tx();
    builder.spawn(async move {
        while let Some(batch) = stream.next().await {
            if batches.send(batch).await.is_err() {
                break;
            }
        }
        Ok(())
    });
    builder.build()
}

/// The name of a column of [`COLUMNS`] in SQL: no field has such a name.
pub(crate) fn column(name: &str) -> String {
    format!("ppt:{name}")
}

/// A text in SQL.
pub(crate) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// The order of events. It names every row, so that it does not depend on who sorts.
pub(crate) fn order(last_is_outer: bool) -> Vec<SortExpr> {
    let [begin, dur, _, _, capture, _, segment, ring, seqno, ..] =
        COLUMNS.map(|name| ident(column(name)));
    vec![
        begin.sort(true, true),
        dur.sort(false, false),
        seqno.sort(!last_is_outer, true),
        ring.sort(true, true),
        capture.sort(true, true),
        segment.sort(true, true),
    ]
}
