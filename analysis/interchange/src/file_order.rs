//! Frames in the order of files, which is roughly that of time, with the earliest begin of the unread
//! rest.

use std::cmp::{Ordering, Reverse};
use std::collections::BTreeSet;
use std::ops::Range;

use arrow_array::{BooleanArray, RecordBatch};
use arrow_schema::DataType;
use futures::future::try_join_all;
use ppt_query::arrow::compute::filter_record_batch;
use ppt_query::datafusion::error::DataFusionError;
use ppt_query::{Engine, FrameColumns, JointFrameScan, QueryError, ScanBatches};

use crate::event::EventRows;
use crate::events::Events;
use crate::frame_kind::{EventColumns, FrameKinds, TimeColumns};

/// Rows of one read.
#[derive(Debug, Clone, Copy)]
struct RowBlock {
    /// Number of rows that are events.
    wanted: usize,
    /// Bytes that stay in memory as long as one of the rows does.
    bytes: usize,
    /// Number of events from this block on.
    left: usize,
    /// Begins of the first and the last event.
    first: i64,
    last: i64,
}

impl RowBlock {
    fn new() -> RowBlock {
        RowBlock { wanted: 0, bytes: 0, left: 0, first: i64::MAX, last: i64::MIN }
    }
}

/// Reads frames in the order of files, and knows the earliest begin of the unread rest.
pub(crate) struct FileOrder {
    batches: Option<ScanBatches>,
    /// One for each batch.
    blocks: Vec<RowBlock>,
    /// Index of the batch of the next row.
    next: usize,
    kinds: Vec<FrameKinds>,
    layouts: Vec<EventColumns>,
    /// Kinds whose rows would wait for too long: queries sort them.
    sorted_by_queries: BTreeSet<usize>,
    /// Time for events that have none, ns since the epoch.
    start: i64,
    /// Whether, of equal slices, the one that was written last encloses the others.
    last_is_outer: bool,
    /// Whether there may be frames whose kind is missing in their schema.
    pub may_be_unknown: bool,
}

/// Rows of one kind of events from one read.
pub(crate) struct KindBatch {
    pub kind: usize,
    pub rows: EventRows,
    /// Indices of the rows that are events, in their order.
    pub order: Vec<u32>,
    pub sorting: Sorting,
}

impl FileOrder {
    /// Reads when the frames of `kinds` begin. Rows that wait for others take at most `memory` bytes:
    /// see [`Self::sorted_by_queries`].
    pub async fn new(
        events: &Events<'_>,
        kinds: Vec<FrameKinds>,
        memory: usize,
    ) -> Result<FileOrder, QueryError> {
        let engine = events.engine();
        let (columns, layouts): (Vec<FrameColumns>, Vec<EventColumns>) =
            kinds.iter().map(FrameKinds::columns).unzip();
        let mut order = FileOrder {
            batches: None,
            blocks: Vec::new(),
            next: 0,
            kinds,
            layouts,
            sorted_by_queries: BTreeSet::new(),
            start: events.start(),
            last_is_outer: events.last_is_outer(true),
            may_be_unknown: true,
        };
        let measured = BatchIndex::read(engine, &order.kinds, (&columns, events.start())).await?;
        let Some(measured) = measured else {
            order.sorted_by_queries =
                order.kinds.iter().flat_map(FrameKinds::each).map(|entry| entry.0).collect();
            return Ok(order);
        };
        order.may_be_unknown = measured.may_be_unknown;
        (order.sorted_by_queries, order.blocks) = measured.choose_sorted(memory);
        // Unwanted frames are not read.
        if order.next_unread_begin().is_some() {
            let together = engine.joint_frame_scan(&columns)?;
            order.batches = together.map(|all| all.read(0..all.batch_count()));
        }
        Ok(order)
    }

    /// The kinds that queries sort: number, frames, and index of the interval.
    pub fn sorted_by_queries(&self) -> impl Iterator<Item = (usize, &FrameKinds, Option<usize>)> {
        let kinds = self.kinds.iter();
        let each = kinds.flat_map(|of| of.each().map(move |(kind, interval)| (kind, of, interval)));
        each.filter(|(kind, ..)| self.sorted_by_queries.contains(kind))
    }

    /// The earliest begin of unread rows, if any of them are wanted.
    pub fn next_unread_begin(&self) -> Option<i64> {
        let block = self.blocks.get(self.next).filter(|block| block.left > 0);
        block.map(|block| block.first)
    }

    /// Reads until there are rows or no frame is left.
    pub async fn read(&mut self) -> Result<Vec<KindBatch>, QueryError> {
        while self.next_unread_begin().is_some() {
            let Some(batches) = &mut self.batches else { break };
            let Some(read) = batches.next().await else { break };
            self.next += 1;
            let mut all = Vec::new();
            for (table, batch) in read?.batches {
                self.split(table, &batch, &mut all)?;
            }
            if !all.is_empty() {
                return Ok(all);
            }
        }
        self.batches = None;
        Ok(Vec::new())
    }

    /// Divides the frames of a table into the events of each kind.
    fn split(
        &self,
        table: usize,
        batch: &RecordBatch,
        to: &mut Vec<KindBatch>,
    ) -> Result<(), QueryError> {
        let (kinds, layout) = (&self.kinds[table], &self.layouts[table]);
        let times = layout.times.times(batch);
        for (kind, interval) in
            kinds.each().filter(|entry| !self.sorted_by_queries.contains(&entry.0))
        {
            let rows = 0..batch.num_rows();
            let mut order: Vec<u32> =
                rows.filter(|&row| times.is_event(interval, row)).map(|row| row as u32).collect();
            if order.is_empty() {
                continue;
            }
            let of = (interval, self.start);
            let rows = if is_sparse(order.len(), batch.num_rows()) {
                let is_event = |row| Some(times.is_event(interval, row));
                let wanted = (0..batch.num_rows()).map(is_event).collect::<BooleanArray>();
                let own = filter_record_batch(batch, &wanted).map_err(DataFusionError::from)?;
                order = (0..order.len() as u32).collect();
                EventRows::of_frames(&own, layout, of)?
            } else {
                EventRows::of_frames(batch, layout, of)?
            };
            let last_is_outer = interval.is_some() && self.last_is_outer;
            let sorting = Sorting::File { last_is_outer };
            sorting.sort(&rows, &mut order);
            to.push(KindBatch { kind, rows, order, sorting });
        }
        Ok(())
    }
}

/// Events of a kind in a batch, before the batch is read completely.
#[derive(Debug, Clone, Copy)]
struct BatchEvents {
    batch: usize,
    table: usize,
    kind: usize,
    wanted: usize,
    first: i64,
    last: i64,
    /// Bytes that stay in memory as long as one of the rows does.
    bytes: usize,
    /// Whether these are the bytes of all rows of the table.
    is_whole: bool,
}

/// The events in all batches.
#[derive(Debug, Default)]
struct BatchIndex {
    batches: usize,
    /// One for each kind in each batch and table.
    entries: Vec<BatchEvents>,
    may_be_unknown: bool,
}

/// Sizes of a table's rows.
struct Measure<'a> {
    kinds: &'a FrameKinds,
    times: TimeColumns,
    /// Bytes of a row without its text.
    width: usize,
    has_text: bool,
}

impl BatchIndex {
    /// Reads when frames begin, with one part for each thread; None if the tables cannot be read
    /// together. `columns` are those that are read later.
    async fn read(
        engine: &Engine,
        kinds: &[FrameKinds],
        (columns, start): (&[FrameColumns], i64),
    ) -> Result<Option<BatchIndex>, QueryError> {
        let (read, measures): (Vec<FrameColumns>, Vec<Measure<'_>>) = kinds
            .iter()
            .zip(columns)
            .map(|(kinds, columns)| {
                let schema = columns.frame.table.schema();
                let types = columns.columns.iter().map(|&column| schema.field(column).data_type());
                let width = types.clone().map(width).sum();
                let has_text = types.clone().any(|ty| *ty == DataType::Utf8);
                let (read, times) = kinds.times();
                (read, Measure { kinds, times, width, has_text })
            })
            .unzip();
        let Some(together) = engine.joint_frame_scan(&read)? else { return Ok(None) };
        let batches = together.batch_count();
        let each = batches.div_ceil(engine.threads()).max(1);
        let parts = (0..batches).step_by(each).map(|from| from..batches.min(from + each));
        let parts = parts.map(|batches| BatchIndex::part(&together, batches, (&measures, start)));
        let parts = try_join_all(parts).await?;
        let may_be_unknown =
            together.may_be_unknown() || parts.iter().any(|part| part.may_be_unknown);
        let entries = parts.into_iter().flat_map(|part| part.entries).collect();
        Ok(Some(BatchIndex { batches, entries, may_be_unknown }))
    }

    async fn part(
        together: &JointFrameScan,
        batches: Range<usize>,
        (measures, start): (&[Measure<'_>], i64),
    ) -> Result<BatchIndex, QueryError> {
        let mut measured = BatchIndex::default();
        let mut all = together.read(batches.clone());
        for number in batches {
            let Some(read) = all.next().await else { break };
            let read = read?;
            measured.may_be_unknown |= read.unknown > 0;
            let rows: usize = read.batches.iter().map(|(_, batch)| batch.num_rows()).sum();
            for (table, batch) in &read.batches {
                let measure = &measures[*table];
                // Text is part of the frames; the room for it grows by doubling.
                let text = if measure.has_text { 2 * read.bytes / rows.max(1) } else { 0 };
                let times = measure.times.times(batch);
                for (kind, interval) in measure.kinds.each() {
                    let (mut wanted, mut first, mut last) = (0, i64::MAX, i64::MIN);
                    for row in 0..batch.num_rows() {
                        if times.is_event(interval, row) {
                            // Same rule as `EventRows::begin`.
                            let begin = times.begin(interval, row, start).max(0);
                            wanted += 1;
                            (first, last) = (first.min(begin), last.max(begin));
                        }
                    }
                    if wanted > 0 {
                        let is_whole = !is_sparse(wanted, batch.num_rows());
                        let held = if is_whole { batch.num_rows() } else { wanted };
                        let bytes = held * (measure.width + text);
                        let (batch, table) = (number, *table);
                        let entry = BatchEvents {
                            batch,
                            table,
                            kind,
                            wanted,
                            first,
                            last,
                            bytes,
                            is_whole,
                        };
                        measured.entries.push(entry);
                    }
                }
            }
        }
        Ok(measured)
    }

    /// The batches without the kinds that queries sort.
    fn blocks(&self, sorted: &BTreeSet<usize>) -> Vec<RowBlock> {
        let mut blocks = vec![RowBlock::new(); self.batches];
        let mut whole = None;
        for entry in self.entries.iter().filter(|entry| !sorted.contains(&entry.kind)) {
            let block = &mut blocks[entry.batch];
            block.wanted += entry.wanted;
            block.first = block.first.min(entry.first);
            block.last = block.last.max(entry.last);
            // Kinds of one table share its rows.
            let is_shared = entry.is_whole && whole == Some((entry.batch, entry.table));
            block.bytes += if is_shared { 0 } else { entry.bytes };
            whole = if entry.is_whole { Some((entry.batch, entry.table)) } else { whole };
        }
        look_ahead(&mut blocks);
        blocks
    }

    /// Number of events of a kind.
    fn events(&self, kind: usize) -> usize {
        self.entries.iter().filter(|entry| entry.kind == kind).map(|entry| entry.wanted).sum()
    }

    /// The kinds that queries sort, as few as possible, so that the others hold at most `memory` bytes
    /// until all earlier rows are read; and the batches without them.
    fn choose_sorted(&self, memory: usize) -> (BTreeSet<usize>, Vec<RowBlock>) {
        let mut sorted = BTreeSet::new();
        let mut blocks = self.blocks(&sorted);
        let mut kinds: BTreeSet<usize> = self.entries.iter().map(|entry| entry.kind).collect();
        while most_held(&blocks) > memory {
            // The kind with the fewest events, if that is enough; otherwise the one that helps most.
            let cost = |&kind: &usize| {
                let without = sorted.iter().copied().chain([kind]).collect();
                match most_held(&self.blocks(&without)) {
                    held if held <= memory => (false, self.events(kind)),
                    held => (true, held),
                }
            };
            let Some(kind) = kinds.iter().copied().min_by_key(cost) else { break };
            kinds.remove(&kind);
            sorted.insert(kind);
            blocks = self.blocks(&sorted);
        }
        (sorted, blocks)
    }
}

/// Replaces the first begin and the number of events of each block by those of the block and all that
/// follow.
fn look_ahead(blocks: &mut [RowBlock]) {
    let (mut first, mut left) = (i64::MAX, 0);
    for block in blocks.iter_mut().rev() {
        first = first.min(block.first);
        left += block.wanted;
        (block.first, block.left) = (first, left);
    }
}

/// Whether so few rows of a batch are wanted that only these are copied.
fn is_sparse(wanted: usize, rows: usize) -> bool {
    2 * wanted < rows
}

/// Maximum of the bytes of rows that wait until earlier rows are read.
fn most_held(blocks: &[RowBlock]) -> usize {
    // A block waits until all that follows begins after its last row.
    let mut more = vec![0isize; blocks.len() + 1];
    for (at, block) in blocks.iter().enumerate().filter(|(_, block)| block.wanted > 0) {
        let until = at + 1 + blocks[at + 1..].partition_point(|later| later.first < block.last);
        more[at] += block.bytes as isize;
        more[until.min(blocks.len())] -= block.bytes as isize;
    }
    let mut held = 0;
    let all = more.iter().map(|more| {
        held += more;
        held
    });
    all.max().unwrap_or(0) as usize
}

/// Bytes of a value, without text.
fn width(ty: &DataType) -> usize {
    match ty {
        DataType::Utf8 => size_of::<i32>(),
        DataType::Dictionary(key, _) => width(key),
        DataType::FixedSizeBinary(bytes) => *bytes as usize,
        _ => ty.primitive_width().unwrap_or(32),
    }
}

/// The order of the rows of a source.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Sorting {
    /// Sorted by a query.
    Sorted,
    /// The order of the file.
    File { last_is_outer: bool },
}

impl Sorting {
    /// The order of rows with the same begin and length.
    pub fn ties(self, rows: &EventRows, row: usize) -> (i64, Option<i32>) {
        let Sorting::File { last_is_outer } = self else { return (0, None) };
        let seqno = rows.seqno(row).map(|seqno| if last_is_outer { !seqno } else { seqno });
        (seqno.unwrap_or(i64::MIN), rows.ring(row))
    }

    /// Sorts rows into the order of events.
    fn sort(self, rows: &EventRows, order: &mut [u32]) {
        let rest = |row: usize| (Reverse(rows.dur(row)), self.ties(rows, row), rows.origin(row));
        let compare = |one: &u32, other: &u32| -> Ordering {
            let (one, other) = (*one as usize, *other as usize);
            rows.begin(one).cmp(&rows.begin(other)).then_with(|| rest(one).cmp(&rest(other)))
        };
        if !order.is_sorted_by(|one, other| compare(one, other).is_le()) {
            order.sort_by(compare);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks(of: &[(usize, i64, i64)]) -> Vec<RowBlock> {
        let block = |&(wanted, first, last): &(usize, i64, i64)| RowBlock {
            wanted,
            bytes: wanted,
            left: 0,
            first,
            last,
        };
        let mut blocks: Vec<RowBlock> = of.iter().map(block).collect();
        look_ahead(&mut blocks);
        blocks
    }

    #[test]
    fn rows_are_held_until_those_before_them_are_read() {
        assert_eq!(most_held(&blocks(&[(10, 0, 9), (10, 10, 19), (10, 20, 29)])), 10);
        assert_eq!(most_held(&blocks(&[(10, 0, 9), (10, 5, 19), (10, 20, 29)])), 20);
        assert_eq!(most_held(&blocks(&[(10, 1, 9), (10, 10, 19), (1, 0, 0)])), 21, "all");
        assert_eq!(most_held(&[]), 0);
    }

    /// One event of kind 1 in the last batch begins before all of kind 0, whose rows are in order.
    #[test]
    fn a_kind_that_others_would_wait_for_is_sorted() {
        let entry = |batch: usize, kind: usize, first: i64| BatchEvents {
            batch,
            table: kind,
            kind,
            wanted: 10 - 9 * kind,
            first,
            last: first + 9,
            bytes: 100,
            is_whole: true,
        };
        let in_order = (0..9).map(|batch| entry(batch, 0, 10 * batch as i64 + 10));
        let entries = in_order.chain([entry(8, 1, 0)]).collect();
        let measured = BatchIndex { batches: 9, entries, may_be_unknown: false };
        assert_eq!(measured.choose_sorted(10_000).0, BTreeSet::new());
        let (sorted, blocks) = measured.choose_sorted(300);
        assert_eq!(sorted, BTreeSet::from([1]));
        assert_eq!(most_held(&blocks), 100);
        assert_eq!(measured.choose_sorted(0).0, BTreeSet::from([0, 1]));
    }

    #[test]
    fn a_block_says_when_what_follows_begins() {
        let blocks = blocks(&[(10, 0, 9), (10, 5, 19), (0, i64::MAX, i64::MIN), (10, 20, 29)]);
        let told = blocks.iter().map(|block| (block.first, block.left)).collect::<Vec<_>>();
        assert_eq!(told, [(0, 30), (5, 20), (20, 10), (20, 10)]);
    }
}
