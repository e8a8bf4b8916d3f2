//! Rows of several kinds in the order of time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

use futures::StreamExt;
use ppt_interchange::Rows;
use ppt_query::QueryError;
use ppt_query::datafusion::execution::SendableRecordBatchStream;

use crate::failure::Failure;
use crate::run;

/// When a row begins, and how long it is: what is around others comes first.
type Key = (i64, Reverse<Option<i64>>);

/// Streams that are sorted each; a batch of each is in memory.
pub(super) struct Merge {
    parts: Vec<Part>,
    next: BinaryHeap<Reverse<(Key, usize)>>,
}

struct Part {
    stream: SendableRecordBatchStream,
    rows: Option<Rows>,
    row: usize,
    is_new: bool,
}

/// Rows of one kind that follow each other.
pub(super) struct Run<'a> {
    pub kind: usize,
    pub rows: &'a Rows,
    pub which: Range<usize>,
    /// No row of these was given before.
    pub is_new: bool,
}

impl Merge {
    pub(super) async fn of(streams: Vec<SendableRecordBatchStream>) -> Result<Merge, Failure> {
        let part = |stream| Part { stream, rows: None, row: 0, is_new: true };
        let parts: Vec<Part> = streams.into_iter().map(part).collect();
        let mut merge = Merge { parts, next: BinaryHeap::new() };
        for kind in 0..merge.parts.len() {
            merge.fill(kind).await?;
        }
        Ok(merge)
    }

    /// Has a part take its place again, with other rows where it has come to an end.
    async fn fill(&mut self, kind: usize) -> Result<(), Failure> {
        let part = &mut self.parts[kind];
        while part.rows.as_ref().is_none_or(|rows| part.row == rows.len()) {
            run::pause().await;
            let Some(batch) = part.stream.next().await else { return Ok(()) };
            let batch = batch.map_err(QueryError::from)?;
            part.rows = Some(Rows::of(&batch).map_err(QueryError::from)?);
            (part.row, part.is_new) = (0, true);
        }
        if let Some(rows) = &part.rows {
            self.next.push(Reverse((key(rows, part.row), kind)));
        }
        Ok(())
    }

    /// The next rows.
    pub(super) async fn next(&mut self, done: Option<usize>) -> Result<Option<Run<'_>>, Failure> {
        if let Some(kind) = done {
            self.fill(kind).await?;
        }
        let Some(Reverse((_, kind))) = self.next.pop() else { return Ok(None) };
        let other = self.next.peek().map(|it| it.0);
        let part = &mut self.parts[kind];
        let Some(rows) = &part.rows else { return Ok(None) };
        let first = part.row;
        let mut end = first + 1;
        while end < rows.len() && other.is_none_or(|other| (key(rows, end), kind) <= other) {
            end += 1;
        }
        part.row = end;
        let is_new = std::mem::take(&mut part.is_new);
        Ok(Some(Run { kind, rows, which: first..end, is_new }))
    }
}

fn key(rows: &Rows, row: usize) -> Key {
    (rows.begin(row), Reverse(rows.dur(row)))
}
