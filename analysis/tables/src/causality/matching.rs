//! Matches data that leaves points with data that enters them. The input is grouped by hash type and
//! value, and sorted by time. A pass receives it in batches; `in_memory.rs` passes single endpoints.
//!
//! Memory: that of the [`Matcher`], 80 bytes for each frame that may still have an effect.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{
    Array, ArrayRef, DictionaryArray, Int32Array, Int64Array, RecordBatch, RecordBatchOptions,
    StringArray, TimestampNanosecondArray,
};
use arrow_schema::SchemaRef;
use ppt_causality::{
    Certainty, Edge, Entry, MatchCounts, Matcher, Matches, Policy, Side, Unmatched, UnmatchedReason,
};

use super::causes::Causes;
use super::endpoint::{COLUMNS, DataDirection, EndpointColumn, KEY_BYTES, hex_of, type_of};
use super::shown::{
    COUNTED, EdgeColumn, EndColumn, MatchingTable, ShownEnd, UNMATCHED_COLUMNS, UnmatchedColumn,
    edge_column,
};
use crate::builder::timestamp;
use crate::error::TableError;
use crate::set::OwnerKeys;
use crate::standard::{STANDARD, Standard};
use crate::table::{ROWS_PER_BATCH, Runner};

/// Indices of the input columns.
pub(crate) const KEY: usize = 0;
pub(crate) const WHEN: usize = 1;
const DIRECTION: usize = 2;
const OWNER: usize = 3;
const SEQNO: usize = 4;
const POINT: usize = 5;

/// The columns of endpoints that must be read for these columns. `exact`: times are exact, so [`WHEN`] is
/// the time.
pub(crate) fn columns_read(shown: MatchingTable, columns: &[usize], exact: bool) -> Vec<usize> {
    let place = |column| COLUMNS.iter().position(|other| *other == column).unwrap_or_default();
    let all = [
        EndpointColumn::Key,
        EndpointColumn::When,
        EndpointColumn::Direction,
        EndpointColumn::Owner,
        EndpointColumn::Seqno,
        EndpointColumn::Point,
    ];
    let needs_drained = needs_drained(shown, columns);
    let more =
        [(!exact).then_some(EndpointColumn::Ts), needs_drained.then_some(EndpointColumn::Drained)];
    all.into_iter().chain(more.into_iter().flatten()).map(place).collect()
}

/// Whether the columns include times of draining.
pub(crate) fn needs_drained(shown: MatchingTable, columns: &[usize]) -> bool {
    let drained = STANDARD.iter().position(|standard| *standard == Standard::Drained);
    shown == MatchingTable::Unmatched && columns.iter().any(|&column| Some(column) == drained)
}

/// Identifies a frame, with its times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MatchedFrame {
    /// Number of the owner of its ring.
    pub owner: i32,
    pub seqno: i64,
    pub ts: Option<i64>,
    pub drained: Option<i64>,
}

/// Whether frames of a point may be missing between two times.
type MayBeMissing = Box<dyn Fn(u32, i64, i64) -> bool + Send>;

/// An endpoint without a partner.
struct UnmatchedRow {
    /// Number of the hash type.
    hash_type: usize,
    /// The identity as hex digits.
    value: Arc<str>,
    unmatched: Unmatched<MatchedFrame>,
}

/// The pass that matches endpoints.
pub(crate) struct Matching {
    causes: Arc<Causes>,
    shown: MatchingTable,
    columns: Vec<usize>,
    schema: SchemaRef,
    /// By hash type; None if there is no endpoint so far.
    matchers: Vec<Option<Matcher<MatchedFrame, MayBeMissing>>>,
    key: Option<[u8; KEY_BYTES]>,
    /// Entries of the current key with the same time.
    same_time: Vec<Entry<MatchedFrame>>,
    found: Matches<MatchedFrame>,
    /// The hash types of the edges that were found.
    edge_types: Vec<usize>,
    unmatched: Vec<UnmatchedRow>,
    counts: Vec<MatchCounts>,
}

impl Matching {
    pub fn new(
        causes: Arc<Causes>,
        shown: MatchingTable,
        columns: Vec<usize>,
        schema: SchemaRef,
    ) -> Matching {
        let types = causes.directory.types.len();
        Matching {
            causes,
            shown,
            columns,
            schema,
            matchers: (0..types).map(|_| None).collect(),
            key: None,
            same_time: Vec::new(),
            found: Matches::default(),
            edge_types: Vec::new(),
            unmatched: Vec::new(),
            counts: vec![MatchCounts::default(); types],
        }
    }

    /// Creates the matcher of a hash type, if it does not exist yet.
    fn start(&mut self, hash_type: usize) -> Result<(), TableError> {
        if self.matchers.get(hash_type).is_none_or(Option::is_some) {
            return Ok(());
        }
        let causes = self.causes.clone();
        causes.missing()?;
        let missing: MayBeMissing = Box::new(move |point, from, to| {
            let all = causes.missing().unwrap_or_default();
            all.get(point as usize).is_some_and(|missing| missing.between(from, to))
        });
        let rules = self.causes.rules[hash_type].clone();
        let begins = self.causes.begins();
        let begin = |point: u32| begins.get(point as usize).copied().flatten();
        let matcher = Matcher::new(rules, self.causes.limits(), missing);
        self.matchers[hash_type] = Some(matcher.with_begins(begin));
        Ok(())
    }

    /// Ends the current key, whose remaining endpoints are unmatched, and begins the next one.
    pub(super) fn next_key(&mut self, next: Option<[u8; KEY_BYTES]>) -> Result<(), TableError> {
        self.take_same_time()?;
        if let Some(key) = self.key.take() {
            let hash_type = type_of(&key);
            if let Some(Some(matcher)) = self.matchers.get_mut(hash_type) {
                self.counts[hash_type] += matcher.finish(&mut self.found);
            }
            self.keep(&key);
        }
        if let Some(next) = next {
            self.start(type_of(&next))?;
            self.key = Some(next);
        }
        Ok(())
    }

    /// Takes an endpoint of the current key. `when`: the time by which endpoints are sorted.
    pub(super) fn take(
        &mut self,
        frame: MatchedFrame,
        point: u32,
        direction: DataDirection,
        when: Option<i64>,
    ) -> Result<(), TableError> {
        let sides: &[(Side, bool)] = match direction {
            DataDirection::In => &[(Side::In, true)],
            DataDirection::Out => &[(Side::Out, true)],
            DataDirection::ImpliedOut => &[(Side::Out, false)],
            DataDirection::Through => &[(Side::Out, false), (Side::In, true)],
        };
        let capture = self.causes.directory.capture_of(frame.owner);
        let clocks = &self.causes.directory.clocks;
        let (clock, bounds) =
            (clocks.number(capture), frame.ts.and_then(|ts| clocks.around(capture, ts)));
        let (Some(ts), Some((lo, hi))) = (frame.ts, bounds) else {
            let matcher = self.key.and_then(|key| self.matchers.get_mut(type_of(&key))?.as_mut());
            if let Some(matcher) = matcher {
                for &(side, _) in sides.iter().filter(|(_, stated)| *stated) {
                    matcher.take_untimed(point, side, frame, &mut self.found);
                }
            }
            return Ok(());
        };
        if self.same_time.first().is_some_and(|first| Some(first.when()) != when) {
            self.take_same_time()?;
        }
        self.same_time.extend(sides.iter().map(|&(side, stated)| Entry {
            point,
            side,
            stated,
            lo,
            ts,
            hi,
            clock,
            thread: frame.owner as u64,
            seqno: frame.seqno as u64,
            frame,
        }));
        Ok(())
    }

    /// Passes the entries of one time to the matcher: first data that leaves.
    fn take_same_time(&mut self) -> Result<(), TableError> {
        let Some(key) = self.key else { return Ok(()) };
        let hash_type = type_of(&key);
        self.same_time.sort_unstable_by_key(Entry::order);
        if let Some(Some(matcher)) = self.matchers.get_mut(hash_type) {
            for entry in self.same_time.drain(..) {
                matcher
                    .take(entry, &mut self.found)
                    .map_err(|refusal| self.causes.refusal_error(refusal, &key))?;
            }
        }
        self.keep(&key);
        Ok(())
    }

    /// Keeps the results for a key that the table shows.
    fn keep(&mut self, key: &[u8]) {
        let hash_type = type_of(key);
        match self.shown {
            MatchingTable::Edges => self.edge_types.resize(self.found.edges.len(), hash_type),
            _ => self.found.edges.clear(),
        }
        let unmatched = self.found.unmatched.drain(..);
        if self.shown == MatchingTable::Unmatched && unmatched.len() > 0 {
            let value: Arc<str> = hex_of(key, self.causes.directory.types[hash_type].width).into();
            let row = |unmatched| UnmatchedRow { hash_type, value: value.clone(), unmatched };
            self.unmatched.extend(unmatched.map(row));
        }
    }

    /// Returns the finished rows.
    pub(super) fn flush(&mut self) -> Result<Vec<RecordBatch>, TableError> {
        let mut out = Vec::new();
        let edges = &self.found.edges;
        for (edges, types) in
            edges.chunks(ROWS_PER_BATCH).zip(self.edge_types.chunks(ROWS_PER_BATCH))
        {
            let column = |&column: &usize| self.edge_array(edges, types, edge_column(column));
            out.push(self.batch(edges.len(), column)?);
        }
        // Keeps some capacity, but not that for a value with many edges.
        self.found.edges.clear();
        self.found.edges.shrink_to(ROWS_PER_BATCH);
        self.edge_types.clear();
        for rows in std::mem::take(&mut self.unmatched).chunks(ROWS_PER_BATCH) {
            out.push(self.batch(rows.len(), |&column| self.unmatched_array(rows, column))?);
        }
        Ok(out)
    }

    fn batch(
        &self,
        rows: usize,
        column: impl FnMut(&usize) -> Result<ArrayRef, TableError>,
    ) -> Result<RecordBatch, TableError> {
        let columns = self.columns.iter().map(column).collect::<Result<Vec<_>, _>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        Ok(RecordBatch::try_new_with_options(self.schema.clone(), columns, &options)?)
    }

    /// A standard column of frames.
    fn standard(
        &self,
        standard: Standard,
        frames: impl Iterator<Item = MatchedFrame>,
    ) -> Result<ArrayRef, TableError> {
        let owner = |frame: MatchedFrame| self.causes.directory.owners.get(frame.owner as usize);
        let key = |field: fn(&OwnerKeys) -> i32| move |frame| owner(frame).map(field);
        let all = self.causes.dictionary(standard);
        Ok(match standard {
            Standard::Capture => word_column(all, frames.map(key(|keys| keys.capture)))?,
            Standard::Buffer => word_column(all, frames.map(key(|keys| keys.buffer)))?,
            Standard::Segment => word_column(all, frames.map(key(|keys| keys.segment)))?,
            Standard::Host => word_column(all, frames.map(key(|keys| keys.host)))?,
            Standard::Ring => int_column(frames.map(|frame| owner(frame)?.ring)),
            Standard::Pid => int_column(frames.map(|frame| owner(frame)?.pid)),
            Standard::Tid => int_column(frames.map(|frame| owner(frame)?.tid)),
            Standard::Seqno => {
                Arc::new(frames.map(|frame| Some(frame.seqno)).collect::<Int64Array>())
            }
            Standard::Ts => time_column(frames.map(|frame| frame.ts)),
            Standard::Drained => time_column(frames.map(|frame| frame.drained)),
        })
    }

    fn point(&self, points: impl Iterator<Item = u32>) -> Result<ArrayRef, TableError> {
        let directory = &self.causes.directory;
        let keys = points.map(|point| Some(directory.point_key(point as i32)));
        word_column(Some(directory.point_words.clone()), keys)
    }

    fn edge_array(
        &self,
        edges: &[Edge<MatchedFrame>],
        types: &[usize],
        column: EdgeColumn,
    ) -> Result<ArrayRef, TableError> {
        let all = edges.iter();
        let end = |end| {
            all.clone().map(move |edge| match end {
                ShownEnd::Source => edge.src,
                ShownEnd::Destination => edge.dst,
            })
        };
        let long = |field: fn(&Edge<MatchedFrame>) -> i64| {
            Arc::new(all.clone().map(|edge| Some(field(edge))).collect::<Int64Array>())
        };
        Ok(match column {
            EdgeColumn::End(shown, EndColumn::Standard(standard)) => {
                self.standard(standard, end(shown).map(|entry| entry.frame))?
            }
            EdgeColumn::End(shown, EndColumn::Point) => {
                self.point(end(shown).map(|entry| entry.point))?
            }
            EdgeColumn::Kind => word(HASH, edges.len())?,
            EdgeColumn::Type => self.types(types.iter().copied())?,
            EdgeColumn::Policy => one_of(
                &["all", "nearest", "fifo"],
                all.map(|edge| match edge.policy {
                    Policy::All => 0,
                    Policy::Nearest => 1,
                    Policy::Fifo => 2,
                }),
            )?,
            EdgeColumn::Latency => long(Edge::latency),
            EdgeColumn::LatencyLo => long(Edge::latency_lo),
            EdgeColumn::LatencyHi => long(Edge::latency_hi),
            EdgeColumn::Certainty => one_of(
                &["certain", "possible"],
                all.map(|edge| match edge.certainty {
                    Certainty::Certain => 0,
                    Certainty::Possible => 1,
                }),
            )?,
        })
    }

    fn unmatched_array(
        &self,
        rows: &[UnmatchedRow],
        column: usize,
    ) -> Result<ArrayRef, TableError> {
        let all = rows.iter().map(|row| &row.unmatched);
        if let Some(&standard) = STANDARD.get(column) {
            return self.standard(standard, all.map(|unmatched| unmatched.frame));
        }
        Ok(match UNMATCHED_COLUMNS[column - STANDARD.len()].1 {
            UnmatchedColumn::Point => self.point(all.map(|unmatched| unmatched.point))?,
            UnmatchedColumn::Side => one_of(
                &["in", "out"],
                all.map(|unmatched| match unmatched.side {
                    Side::In => 0,
                    Side::Out => 1,
                }),
            )?,
            UnmatchedColumn::Type => self.types(rows.iter().map(|row| row.hash_type))?,
            UnmatchedColumn::Hash => {
                Arc::new(StringArray::from_iter_values(rows.iter().map(|row| &*row.value)))
            }
            UnmatchedColumn::Reason => one_of(
                &["loss", "none"],
                all.map(|unmatched| match unmatched.reason {
                    UnmatchedReason::Loss => 0,
                    UnmatchedReason::None => 1,
                }),
            )?,
        })
    }

    fn types(&self, types: impl Iterator<Item = usize>) -> Result<ArrayRef, TableError> {
        let directory = &self.causes.directory;
        let keys = types.map(|hash_type| directory.type_keys.get(hash_type).copied());
        word_column(Some(directory.type_words.clone()), keys)
    }

    /// One row for each hash type that has endpoints.
    fn counts_batch(&self) -> Result<RecordBatch, TableError> {
        let rows: Vec<(usize, &MatchCounts)> =
            self.counts.iter().enumerate().filter(|entry| entry.1.ins + entry.1.outs > 0).collect();
        self.batch(rows.len(), |&column| match column.checked_sub(1) {
            None => self.types(rows.iter().map(|row| row.0)),
            Some(column) => {
                let count = |counts: &MatchCounts| counted(counts)[column];
                let all = rows.iter().map(|row| i64::try_from(count(row.1)).ok());
                Ok(Arc::new(all.collect::<Int64Array>()))
            }
        })
    }
}

/// The counts, in the order of [`COUNTED`].
fn counted(counts: &MatchCounts) -> [u64; COUNTED.len()] {
    [
        counts.outs,
        counts.ins,
        counts.certain,
        counts.possible,
        counts.impossible,
        counts.unmatched_outs,
        counts.unmatched_ins,
        counts.lost,
    ]
}

/// The kind of edges between points.
pub(crate) const HASH: &str = "hash";

fn word_column(
    all: Option<Arc<StringArray>>,
    keys: impl Iterator<Item = Option<i32>>,
) -> Result<ArrayRef, TableError> {
    let all = all.unwrap_or_else(|| Arc::new(StringArray::new_null(0)));
    Ok(Arc::new(DictionaryArray::try_new(keys.collect::<Int32Array>(), all)?))
}

fn one_of(all: &[&str], keys: impl Iterator<Item = i32>) -> Result<ArrayRef, TableError> {
    word_column(Some(Arc::new(StringArray::from_iter_values(all))), keys.map(Some))
}

fn word(word: &str, rows: usize) -> Result<ArrayRef, TableError> {
    one_of(&[word], std::iter::repeat_n(0, rows))
}

fn int_column(all: impl Iterator<Item = Option<i32>>) -> ArrayRef {
    Arc::new(all.collect::<Int32Array>())
}

fn time_column(all: impl Iterator<Item = Option<i64>>) -> ArrayRef {
    let all = all.collect::<TimestampNanosecondArray>();
    Arc::new(all.with_data_type(timestamp()))
}

impl Runner for Matching {
    fn push(&mut self, batch: RecordBatch) -> Result<Vec<RecordBatch>, TableError> {
        let keys = batch.column(KEY).as_fixed_size_binary().clone();
        let whens = batch.column(WHEN).as_primitive::<Int64Type>().clone();
        let directions = batch.column(DIRECTION).as_primitive::<Int32Type>().clone();
        let owners = batch.column(OWNER).as_primitive::<Int32Type>().clone();
        let seqnos = batch.column(SEQNO).as_primitive::<Int64Type>().clone();
        let points = batch.column(POINT).as_primitive::<Int32Type>().clone();
        let long = |column: &ArrayRef| column.as_primitive::<Int64Type>().clone();
        let is_exact = self.causes.directory.clocks.are_exact();
        let mut more = batch.columns()[POINT + 1..].iter();
        let stamps = if is_exact { whens.clone() } else { more.next().map_or(whens.clone(), long) };
        let drained = more.next().map(long);
        for row in 0..batch.num_rows() {
            let key = keys.value(row);
            if self.key.as_ref().map(|current| &current[..]) != Some(key) {
                self.next_key(key.try_into().ok())?;
            }
            let frame = MatchedFrame {
                owner: owners.value(row),
                seqno: seqnos.value(row),
                ts: stamps.is_valid(row).then(|| stamps.value(row)),
                drained: drained
                    .as_ref()
                    .filter(|drained| drained.is_valid(row))
                    .map(|drained| drained.value(row)),
            };
            let when = whens.is_valid(row).then(|| whens.value(row));
            self.take(
                frame,
                points.value(row) as u32,
                DataDirection::numbered(directions.value(row)),
                when,
            )?;
        }
        self.flush()
    }

    fn finish(&mut self) -> Result<Vec<RecordBatch>, TableError> {
        self.next_key(None)?;
        let mut out = self.flush()?;
        if self.shown == MatchingTable::Counts {
            out.push(self.counts_batch()?);
        }
        Ok(out)
    }
}
