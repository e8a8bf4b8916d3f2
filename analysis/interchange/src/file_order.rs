//! Rows in the order of the file, which is about that of time: when what is still to be read begins.

use futures::StreamExt;
use ppt_query::QueryError;
use ppt_query::arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use ppt_query::arrow::compute::filter_record_batch;
use ppt_query::arrow::datatypes::{DataType, Int64Type};
use ppt_query::datafusion::error::DataFusionError;
use ppt_query::datafusion::prelude::ident;

use crate::event::{COLUMNS, Rows};
use crate::source::{FileOrder, WANTED, ahead, column};

/// Rows that were read one after the other.
#[derive(Debug, Clone, Copy)]
struct Block {
    /// How many rows were read up to its end.
    end: usize,
    /// How many of its rows are wanted.
    wanted: usize,
    /// The bytes that are in memory as long as one of them is.
    bytes: usize,
    /// How many rows are wanted from here on.
    left: usize,
    /// When the first and the last of them begin.
    first: i64,
    last: i64,
}

/// When what is still to be read begins.
#[derive(Debug)]
pub(crate) struct Bounds {
    blocks: Vec<Block>,
    /// The block of the next row.
    next: usize,
    /// Rows that were read.
    read: usize,
}

impl Bounds {
    /// Reads when the rows of `source` begin; None: more than `memory` bytes of rows would be held until
    /// others were read.
    pub async fn read(source: &FileOrder, memory: usize) -> Result<Option<Bounds>, QueryError> {
        let schema = source.rows.schema();
        let row: usize = schema.fields().iter().map(|field| width(field.data_type())).sum();
        let texts = schema.fields().iter().filter(|field| *field.data_type() == DataType::Utf8);
        let texts = texts.map(|field| ident(field.name().as_str()));
        let keys = [COLUMNS[0], WANTED].map(|name| ident(column(name)));
        let rows = source.rows.clone().select(keys.into_iter().chain(texts))?;
        let mut stream = ahead(rows.execute_stream().await?);
        let (mut blocks, mut end) = (Vec::new(), 0);
        while let Some(batch) = stream.next().await {
            let batch = batch?;
            end += batch.num_rows();
            let begins = batch.column(0).as_primitive::<Int64Type>();
            let wanted = is_wanted(batch.column(1));
            let (first, last) = (i64::MAX, i64::MIN);
            let mut block = Block { end, wanted: 0, bytes: 0, left: 0, first, last };
            let texts: Vec<_> =
                batch.columns()[2..].iter().map(|it| it.as_string::<i32>()).collect();
            let text = |row| texts.iter().map(|it| it.value_length(row) as usize).sum::<usize>();
            for row in (0..batch.num_rows()).filter(|&row| wanted(row)) {
                // As `Rows::begin` has it.
                let begin = if begins.is_valid(row) { begins.value(row).max(0) } else { 0 };
                block.wanted += 1;
                block.first = block.first.min(begin);
                block.last = block.last.max(begin);
            }
            let rows = 0..batch.num_rows();
            block.bytes = if is_sparse(block.wanted, batch.num_rows()) {
                block.wanted * row + rows.filter(|&row| wanted(row)).map(text).sum::<usize>()
            } else {
                // The room for text grows by doubling.
                batch.num_rows() * row + 2 * rows.map(text).sum::<usize>()
            };
            blocks.push(block);
        }
        look_ahead(&mut blocks);
        let fits = most_held(&blocks) <= memory;
        Ok(fits.then_some(Bounds { blocks, next: 0, read: 0 }))
    }

    /// Whether nothing that is still to be read is wanted.
    pub fn is_at_end(&self) -> bool {
        self.still().is_none()
    }

    /// Takes note of rows that were read; says when the first of those that follow begins, if there are
    /// some.
    pub fn pass(&mut self, rows: usize) -> Option<i64> {
        self.read += rows;
        while self.blocks.get(self.next).is_some_and(|block| block.end <= self.read) {
            self.next += 1;
        }
        self.still()
    }

    fn still(&self) -> Option<i64> {
        let block = self.blocks.get(self.next).filter(|block| block.left > 0);
        block.map(|block| block.first)
    }
}

/// Has each block say of all that follow what it says of itself: when the first row begins, and how many
/// are wanted.
fn look_ahead(blocks: &mut [Block]) {
    let (mut first, mut left) = (i64::MAX, 0);
    for block in blocks.iter_mut().rev() {
        first = first.min(block.first);
        left += block.wanted;
        (block.first, block.left) = (first, left);
    }
}

/// Whether so few rows of a batch are wanted that only these are kept.
fn is_sparse(wanted: usize, rows: usize) -> bool {
    2 * wanted < rows
}

/// The most bytes of rows that are held until those that begin before them are read.
fn most_held(blocks: &[Block]) -> usize {
    // A block is held until all that follows begins after its last row.
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

/// The bytes of a value, without those of text.
fn width(ty: &DataType) -> usize {
    match ty {
        DataType::Utf8 => size_of::<i32>(),
        DataType::Dictionary(key, _) => width(key),
        DataType::FixedSizeBinary(bytes) => *bytes as usize,
        _ => ty.primitive_width().unwrap_or(32),
    }
}

/// Whether a row is wanted.
fn is_wanted(column: &ArrayRef) -> impl Fn(usize) -> bool + '_ {
    let wanted = column.as_boolean();
    move |row| wanted.is_valid(row) && wanted.value(row)
}

/// Who sorted rows.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Sorting {
    /// A query.
    Sorted,
    /// Nobody.
    File { last_is_outer: bool },
}

impl Sorting {
    /// What tells apart rows of one beginning and length.
    pub fn ties(self, rows: &Rows, row: usize) -> (i64, Option<i32>) {
        let Sorting::File { last_is_outer } = self else { return (0, None) };
        let seqno = rows.seqno(row).map(|seqno| if last_is_outer { !seqno } else { seqno });
        (seqno.unwrap_or(i64::MIN), rows.ring(row))
    }

    /// The rows of a batch in the order of the file, and those that are wanted in the order of events.
    pub fn sort(self, batch: &RecordBatch) -> Result<(Rows, Vec<u32>), QueryError> {
        let last = batch.num_columns() - 1;
        let wanted = batch.column(last).as_boolean();
        let columns: Vec<usize> = (0..last).collect();
        let mut of_events = batch.project(&columns).map_err(DataFusionError::from)?;
        let mut order: Vec<u32> = {
            let is_wanted = is_wanted(batch.column(last));
            (0..batch.num_rows() as u32).filter(|&row| is_wanted(row as usize)).collect()
        };
        if is_sparse(order.len(), batch.num_rows()) {
            of_events = filter_record_batch(&of_events, wanted).map_err(DataFusionError::from)?;
            order = (0..order.len() as u32).collect();
        }
        let rows = Rows::of(&of_events)?;
        let key = |row: u32| {
            let row = row as usize;
            let (seqno, ring) = self.ties(&rows, row);
            (rows.begin(row), std::cmp::Reverse(rows.dur(row)), seqno, ring)
        };
        let origin = |row: u32| rows.origin(row as usize);
        let compare = |one: u32, other: u32| {
            key(one).cmp(&key(other)).then_with(|| origin(one).cmp(&origin(other)))
        };
        if !order.is_sorted_by(|&one, &other| {
            rows.begin(one as usize) < rows.begin(other as usize) || compare(one, other).is_le()
        }) {
            order.sort_by(|&one, &other| compare(one, other));
        }
        Ok((rows, order))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bounds(of: &[(usize, i64, i64)]) -> Vec<Block> {
        let mut end = 0;
        let mut blocks: Vec<Block> = Vec::new();
        for &(wanted, first, last) in of {
            end += wanted;
            blocks.push(Block { end, wanted, bytes: wanted, left: 0, first, last });
        }
        look_ahead(&mut blocks);
        blocks
    }

    #[test]
    fn rows_are_held_until_those_before_them_are_read() {
        assert_eq!(most_held(&bounds(&[(10, 0, 9), (10, 10, 19), (10, 20, 29)])), 10);
        assert_eq!(most_held(&bounds(&[(10, 0, 9), (10, 5, 19), (10, 20, 29)])), 20);
        assert_eq!(most_held(&bounds(&[(10, 1, 9), (10, 10, 19), (1, 0, 0)])), 21, "all");
        assert_eq!(most_held(&[]), 0);
    }

    #[test]
    fn bounds_follow_rows_and_not_batches() {
        let blocks = bounds(&[(10, 0, 9), (10, 5, 19), (10, 20, 29)]);
        let mut bounds = Bounds { blocks, next: 0, read: 0 };
        assert_eq!(bounds.pass(4), Some(0));
        assert_eq!(bounds.pass(6), Some(5));
        assert_eq!(bounds.pass(19), Some(20), "a row of the last block is still to be read");
        assert_eq!(bounds.pass(1), None);
    }
}
