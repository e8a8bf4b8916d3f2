//! Rows of several kinds in the order of time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use futures::StreamExt;
use ppt_query::QueryError;
use ppt_query::datafusion::execution::SendableRecordBatchStream;

use crate::event::Rows;
use crate::file_order::{Bounds, Sorting};
use crate::source::{FileOrder, Source, ahead};

/// The place of a row, or of what is still to be read, in the order of all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    /// When it begins, ns since the epoch.
    begin: i64,
    /// What is still to be read comes before the rows that begin as soon as it may.
    is_row: bool,
    /// What is around others comes first.
    dur: Reverse<Option<i64>>,
    kind: usize,
    /// Among rows of one kind in the order of the file: what their sequence numbers and rings say.
    seqno: i64,
    ring: Option<i32>,
}

/// Rows of sources in the order of their beginnings, the longest first. Of a sorted source, a batch is
/// in memory; of one in the order of the file, what begins later than what is still to be read.
pub struct Merge {
    feeds: Vec<Feed>,
    next: BinaryHeap<Reverse<Item>>,
    batches: usize,
}

impl std::fmt::Debug for Merge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Merge").field("kinds", &self.feeds.len()).finish_non_exhaustive()
    }
}

/// What is still to be read of a kind.
struct Feed {
    stream: SendableRecordBatchStream,
    order: FeedOrder,
}

enum FeedOrder {
    /// A batch follows when the one before has come to an end.
    Sorted,
    /// Each batch has bounds of what follows.
    File { bounds: Bounds, last_is_outer: bool },
}

/// What is next in the heap.
struct Item {
    key: Key,
    /// The rows; None: a batch of the kind is to be read.
    batch: Option<Box<Batch>>,
}

impl Item {
    /// What tells apart rows with one key: capture and segment, and of batches the one that was read
    /// first.
    fn tie(&self) -> Option<Tie<'_>> {
        self.batch.as_ref().map(|batch| batch.tie(batch.done))
    }
}

/// Capture, segment, number of the batch.
type Tie<'a> = (Option<&'a str>, Option<&'a str>, usize);

impl PartialEq for Item {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Item {}

impl PartialOrd for Item {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Item {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key.cmp(&other.key).then_with(|| self.tie().cmp(&other.tie()))
    }
}

/// A batch on its way.
struct Batch {
    rows: Rows,
    /// The rows that are events, in their order.
    order: Vec<u32>,
    /// How many of them are done.
    done: usize,
    sorting: Sorting,
    number: usize,
}

impl Batch {
    /// The place of a row that is not done.
    fn key(&self, kind: usize, at: usize) -> Key {
        let row = self.order[at] as usize;
        let (seqno, ring) = self.sorting.ties(&self.rows, row);
        let (begin, dur) = (self.rows.begin(row), Reverse(self.rows.dur(row)));
        Key { begin, is_row: true, dur, kind, seqno, ring }
    }

    fn tie(&self, at: usize) -> Tie<'_> {
        let (capture, segment) = self.rows.origin(self.order[at] as usize);
        (capture, segment, self.number)
    }

    /// Whether a row that is not done comes before another batch.
    fn is_before(&self, kind: usize, at: usize, other: &Item) -> bool {
        let row = self.order[at] as usize;
        self.rows.begin(row) < other.key.begin
            || self
                .key(kind, at)
                .cmp(&other.key)
                .then_with(|| Some(self.tie(at)).cmp(&other.tie()))
                .is_lt()
    }
}

/// Rows of one kind that follow each other.
#[derive(Debug, Clone, Copy)]
pub struct Run<'a> {
    /// The number of the kind.
    pub kind: usize,
    /// The batch.
    pub rows: &'a Rows,
    /// Which of its rows, in their order.
    pub which: &'a [u32],
}

impl Merge {
    /// The rows of `sources`, one of each kind. `memory`: bytes that rows in the order of the file may
    /// take until they are given out; where they take more, they are sorted by a query, which spills.
    ///
    /// # Errors
    /// See [`QueryError`].
    pub async fn new(sources: Vec<Source>, memory: usize) -> Result<Merge, QueryError> {
        let mut merge = Merge { feeds: Vec::new(), next: BinaryHeap::new(), batches: 0 };
        let files = sources.iter().filter(|it| matches!(it, Source::FileOrder(_))).count();
        let each = memory / files.max(1);
        for (kind, source) in sources.into_iter().enumerate() {
            let (stream, order) = match source {
                Source::Sorted(rows) => (rows.execute_stream().await?, FeedOrder::Sorted),
                Source::FileOrder(source) => match Bounds::read(&source, each).await? {
                    Some(bounds) => {
                        let FileOrder { rows, last_is_outer } = source;
                        let stream = rows.execute_stream().await?;
                        // A task would read even what is not wanted.
                        let stream = if bounds.is_at_end() { stream } else { ahead(stream) };
                        (stream, FeedOrder::File { bounds, last_is_outer })
                    }
                    None => (source.sorted()?.execute_stream().await?, FeedOrder::Sorted),
                },
            };
            merge.feeds.push(Feed { stream, order });
            merge.read(kind).await?;
        }
        Ok(merge)
    }

    /// Reads a batch of a kind.
    async fn read(&mut self, kind: usize) -> Result<(), QueryError> {
        let feed = &mut self.feeds[kind];
        loop {
            if let FeedOrder::File { bounds, .. } = &feed.order
                && bounds.is_at_end()
            {
                return Ok(());
            }
            let Some(batch) = feed.stream.next().await else { return Ok(()) };
            let batch = batch?;
            let (rows, order, sorting, still) = match &mut feed.order {
                FeedOrder::Sorted => {
                    let rows = Rows::of(&batch)?;
                    let order = (0..rows.len() as u32).collect();
                    (rows, order, Sorting::Sorted, None)
                }
                FeedOrder::File { bounds, last_is_outer } => {
                    let sorting = Sorting::File { last_is_outer: *last_is_outer };
                    let (rows, order) = sorting.sort(&batch)?;
                    (rows, order, sorting, bounds.pass(batch.num_rows()))
                }
            };
            if let Some(begin) = still {
                let dur = Reverse(Some(i64::MAX));
                let key = Key { begin, is_row: false, dur, kind, seqno: 0, ring: None };
                self.next.push(Reverse(Item { key, batch: None }));
            }
            if !order.is_empty() {
                self.batches += 1;
                let batch = Batch { rows, order, done: 0, sorting, number: self.batches };
                let key = batch.key(kind, 0);
                self.next.push(Reverse(Item { key, batch: Some(Box::new(batch)) }));
                return Ok(());
            }
            if still.is_some() {
                return Ok(());
            }
        }
    }

    /// Gives the next rows to `take`; says how many, 0 at the end.
    ///
    /// # Errors
    /// Those of the captures, and those of `take`.
    pub async fn next<E: From<QueryError>>(
        &mut self,
        take: impl FnOnce(Run<'_>) -> Result<(), E>,
    ) -> Result<usize, E> {
        loop {
            let Some(Reverse(Item { key, batch })) = self.next.pop() else { return Ok(0) };
            let kind = key.kind;
            let Some(mut batch) = batch else {
                self.read(kind).await?;
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
            take(Run { kind, rows: &batch.rows, which: &batch.order[first..end] })?;
            if end < batch.order.len() {
                let key = batch.key(kind, end);
                self.next.push(Reverse(Item { key, batch: Some(batch) }));
            } else if matches!(self.feeds[kind].order, FeedOrder::Sorted) {
                self.read(kind).await?;
            }
            return Ok(end - first);
        }
    }
}
