//! Merges rows of several kinds in the order of time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use futures::StreamExt;
use ppt_query::QueryError;
use ppt_query::datafusion::execution::SendableRecordBatchStream;

use crate::event::EventRows;
use crate::events::Events;
use crate::file_order::{FileOrder, KindBatch, Sorting};
use crate::source::{Sources, TraceRows};

/// Sort key of a row, or of the unread rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct MergeKey {
    /// Begin, ns since the epoch.
    begin: i64,
    /// The unread rest sorts before rows with the same begin.
    is_row: bool,
    /// Enclosing slices come first.
    dur: Reverse<Option<i64>>,
    kind: usize,
    /// Order of rows of one kind in the file: sequence number and ring.
    seqno: i64,
    ring: Option<i32>,
}

/// Rows of all sources in the order of their begins, the longest first. One batch of each sorted source
/// is in memory, and the frames that begin later than the unread rest.
pub struct Merge {
    /// One for each kind; None if the kind is read as frames.
    sorted: Vec<Option<SendableRecordBatchStream>>,
    frames: Option<FileOrder>,
    next: BinaryHeap<Reverse<HeapItem>>,
    batches: usize,
}

impl std::fmt::Debug for Merge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Merge").field("kinds", &self.sorted.len()).finish_non_exhaustive()
    }
}

/// The next element of the heap.
struct HeapItem {
    key: MergeKey,
    /// The rows; None if they are frames, which are still to be read.
    batch: Option<Box<PendingBatch>>,
}

impl HeapItem {
    /// The order of rows with equal keys: capture and segment; of batches, the one that was read first.
    fn tie(&self) -> Option<Tie<'_>> {
        self.batch.as_ref().map(|batch| batch.tie(batch.done))
    }
}

/// Capture, segment, number of the batch.
type Tie<'a> = (Option<&'a str>, Option<&'a str>, usize);

impl PartialEq for HeapItem {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for HeapItem {}

impl PartialOrd for HeapItem {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for HeapItem {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key.cmp(&other.key).then_with(|| self.tie().cmp(&other.tie()))
    }
}

/// A batch whose rows are being returned.
struct PendingBatch {
    rows: EventRows,
    /// Indices of the rows that are events, in their order.
    order: Vec<u32>,
    /// Number of rows that were returned.
    done: usize,
    sorting: Sorting,
    number: usize,
}

impl PendingBatch {
    /// The key of a row that was not returned yet.
    fn key(&self, kind: usize, at: usize) -> MergeKey {
        let row = self.order[at] as usize;
        let (seqno, ring) = self.sorting.ties(&self.rows, row);
        let (begin, dur) = (self.rows.begin(row), Reverse(self.rows.dur(row)));
        MergeKey { begin, is_row: true, dur, kind, seqno, ring }
    }

    fn tie(&self, at: usize) -> Tie<'_> {
        let (capture, segment) = self.rows.origin(self.order[at] as usize);
        (capture, segment, self.number)
    }

    /// Whether a row that was not returned yet precedes another batch.
    fn is_before(&self, kind: usize, at: usize, other: &HeapItem) -> bool {
        let row = self.order[at] as usize;
        self.rows.begin(row) < other.key.begin
            || self
                .key(kind, at)
                .cmp(&other.key)
                .then_with(|| Some(self.tie(at)).cmp(&other.tie()))
                .is_lt()
    }
}

/// Consecutive rows of one kind.
#[derive(Debug, Clone, Copy)]
pub struct RowRun<'a> {
    /// Number of the kind.
    pub kind: usize,
    /// The batch.
    pub rows: &'a EventRows,
    /// Indices of the rows, in their order.
    pub which: &'a [u32],
}

impl Merge {
    /// The rows of the `sources` of `events`. `memory`: the maximum bytes of waiting frames. Kinds that
    /// would need more are sorted by queries, which spill.
    ///
    /// # Errors
    /// A capture cannot be read, or the query is cancelled or exceeds its memory.
    pub async fn new(
        events: &Events<'_>,
        sources: Sources,
        memory: usize,
    ) -> Result<Merge, QueryError> {
        let Sources { all, frames, .. } = sources;
        let sorted = all.iter().map(|_| None).collect();
        let mut merge = Merge { sorted, frames: None, next: BinaryHeap::new(), batches: 0 };
        let frames = FileOrder::new(events, frames, memory).await?;
        for (kind, of, interval) in frames.sorted_by_queries() {
            let rows = events.sorted(of, interval).await?;
            merge.sorted[kind] = Some(rows.execute_stream().await?);
        }
        let may_be_unknown = frames.may_be_unknown;
        merge.frames = Some(frames);
        for (kind, source) in all.into_iter().enumerate() {
            let rows = match source {
                TraceRows::Sorted(rows) => Some(rows),
                TraceRows::Unknown(rows) => Some(rows).filter(|_| may_be_unknown),
                TraceRows::Frames => None,
            };
            if let Some(rows) = rows {
                merge.sorted[kind] = Some(rows.execute_stream().await?);
            }
            merge.read(kind).await?;
        }
        merge.read_frames().await?;
        Ok(merge)
    }

    /// Reads a batch of a sorted kind.
    async fn read(&mut self, kind: usize) -> Result<(), QueryError> {
        while let Some(stream) = &mut self.sorted[kind] {
            let Some(batch) = stream.next().await else {
                self.sorted[kind] = None;
                return Ok(());
            };
            let rows = EventRows::from_batch(&batch?)?;
            if !rows.is_empty() {
                let order = (0..rows.len() as u32).collect();
                self.push(KindBatch { kind, rows, order, sorting: Sorting::Sorted });
                return Ok(());
            }
        }
        Ok(())
    }

    /// Reads frames.
    async fn read_frames(&mut self) -> Result<(), QueryError> {
        let Some(frames) = &mut self.frames else { return Ok(()) };
        let batches = frames.read().await?;
        if let Some(begin) = frames.next_unread_begin() {
            let (is_row, dur, kind) = (false, Reverse(Some(i64::MAX)), 0);
            let key = MergeKey { begin, is_row, dur, kind, seqno: 0, ring: None };
            self.next.push(Reverse(HeapItem { key, batch: None }));
        }
        batches.into_iter().for_each(|batch| self.push(batch));
        Ok(())
    }

    fn push(&mut self, batch: KindBatch) {
        self.batches += 1;
        let KindBatch { kind, rows, order, sorting } = batch;
        let batch = PendingBatch { rows, order, done: 0, sorting, number: self.batches };
        let key = batch.key(kind, 0);
        self.next.push(Reverse(HeapItem { key, batch: Some(Box::new(batch)) }));
    }

    /// Passes the next rows to `take`, and returns their number, 0 at the end.
    ///
    /// # Errors
    /// A capture cannot be read, or `take` fails.
    pub async fn next<E: From<QueryError>>(
        &mut self,
        take: impl FnOnce(RowRun<'_>) -> Result<(), E>,
    ) -> Result<usize, E> {
        loop {
            let Some(Reverse(HeapItem { key, batch })) = self.next.pop() else { return Ok(0) };
            let kind = key.kind;
            let Some(mut batch) = batch else {
                self.read_frames().await?;
                continue;
            };
            let other = self.next.peek().map(|item| &item.0);
            let first = batch.done;
            let mut end = first + 1;
            while end < batch.order.len()
                && other.is_none_or(|other| batch.is_before(kind, end, other))
            {
                end += 1;
            }
            batch.done = end;
            take(RowRun { kind, rows: &batch.rows, which: &batch.order[first..end] })?;
            if end < batch.order.len() {
                let key = batch.key(kind, end);
                self.next.push(Reverse(HeapItem { key, batch: Some(batch) }));
            } else {
                self.read(kind).await?;
            }
            return Ok(end - first);
        }
    }
}
