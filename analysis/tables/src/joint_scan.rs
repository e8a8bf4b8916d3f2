//! Reads several tables whose rows are frames together: each chunk once, in file order.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchOptions, StringArray};
use arrow_schema::SchemaRef;
use ppt_capture::ChunkFile;

use crate::bounds::Bounds;
use crate::builder::Builder;
use crate::catalog::ChunkAt;
use crate::chunk_reader::{CaptureFacts, ChunkId, MAX_READ, with_chunk_rows};
use crate::chunk_scan::{ChunkFilter, ChunkRowSource};
use crate::error::TableError;
use crate::rows::KindRows;
use crate::set::CaptureSet;
use crate::standard::ChunkRows;
use crate::table::CaptureTable;

/// Approximate limits of a batch, in bytes and rows of frames. A consumer keeps a whole batch in memory.
const BATCH_BYTES: u64 = 4 << 20;
const BATCH_ROWS: u64 = 65_536;

/// The rows and columns that are wanted of one of the tables.
#[derive(Debug, Clone, Copy)]
pub struct ScannedTable<'a> {
    /// The table.
    pub table: &'a dyn CaptureTable,
    /// Indices of the columns, in the wanted order.
    pub columns: &'a [usize],
    /// Bounds of the wanted rows. Rows outside of them may remain, none within is missing.
    pub bounds: &'a Bounds,
}

/// Several tables that are read together.
#[derive(Debug)]
pub struct JointScan {
    set: Arc<CaptureSet>,
    members: Vec<Member>,
    facts: Vec<CaptureFacts>,
    /// Chunks in the order of reading.
    chosen: Vec<ChunkId>,
    /// Indices in `chosen` at which batches begin, and the end of the last one.
    batch_starts: Vec<usize>,
    /// By capture and owner: indices of the members that have rows from its chunks.
    readers: Vec<Vec<Vec<usize>>>,
    may_be_unknown: bool,
    times: ChunkTimes,
}

/// Bounds of the times of frames, from the heads of chunks; ns since the epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ChunkTimes {
    /// Times of the frames; times of draining for frames without a time.
    pub taken: Option<(i64, i64)>,
    /// Times of draining.
    pub drained: Option<(i64, i64)>,
}

impl ChunkTimes {
    fn add(&mut self, taken: Option<(i64, i64)>, drained: Option<(i64, i64)>) {
        let hull = |a: Option<(i64, i64)>, b: Option<(i64, i64)>| match (a, b) {
            (Some(a), Some(b)) => Some((a.0.min(b.0), a.1.max(b.1))),
            (a, b) => a.or(b),
        };
        self.taken = hull(self.taken, taken);
        self.drained = hull(self.drained, drained);
    }
}

/// One of the tables.
#[derive(Debug)]
struct Member {
    source: Arc<dyn ChunkRowSource>,
    columns: Vec<usize>,
    schema: SchemaRef,
    words: Vec<Option<Arc<StringArray>>>,
}

impl Member {
    fn builders(&self) -> Vec<Builder> {
        let schema = self.schema.fields().iter();
        let builder = schema
            .zip(&self.words)
            .map(|(field, words)| Builder::new(field.data_type(), words.as_ref()));
        builder.collect()
    }
}

/// Rows of successive chunks.
#[derive(Debug)]
pub struct ScanBatch {
    /// The rows of each table that has some, with the table's index in the request.
    pub batches: Vec<(usize, RecordBatch)>,
    /// Total size of the frames, in bytes.
    pub bytes: usize,
    /// Number of frames whose kind is not in their schema. No table of a kind has them.
    pub unknown: u64,
}

impl JointScan {
    /// Plans a scan of `tables`; None if the rows of one of them are not frames.
    ///
    /// # Errors
    /// A table has no column of a requested number.
    pub fn new(
        set: &Arc<CaptureSet>,
        tables: &[ScannedTable<'_>],
    ) -> Result<Option<JointScan>, TableError> {
        let mut members = Vec::new();
        for wanted in tables {
            let Some(chunked) = wanted.table.chunked() else { return Ok(None) };
            let schema = Arc::new(wanted.table.schema().project(wanted.columns)?);
            let words = wanted.columns.iter().map(|&column| chunked.0.dictionary(column)).collect();
            members.push(Member {
                source: chunked.0,
                columns: wanted.columns.to_vec(),
                schema,
                words,
            });
        }
        let facts = CaptureFacts::of_captures(set);
        let mut scan = JointScan {
            set: set.clone(),
            members,
            facts,
            chosen: Vec::new(),
            batch_starts: vec![0],
            readers: Vec::new(),
            may_be_unknown: false,
            times: ChunkTimes::default(),
        };
        let (mut bytes, mut rows) = (0, 0);
        for capture in 0..scan.facts.len() {
            let facts = &scan.facts[capture];
            let filters = tables.iter().zip(&scan.members).map(|(wanted, member)| {
                ChunkFilter::new(set, member.source.as_ref(), capture, facts, wanted.bounds)
            });
            let filters: Vec<_> = filters.collect();
            let readers_of = |owner: usize| {
                (0..filters.len()).filter(|&member| filters[member].wants(owner)).collect()
            };
            let readers: Vec<Vec<usize>> = (0..facts.owners.len()).map(readers_of).collect();
            for (index, chunk) in facts.catalog.chunks.iter().enumerate() {
                let owner = chunk.owner as usize;
                let members = readers.get(owner).into_iter().flatten();
                let mut is_read = false;
                for &member in members {
                    let filter = &filters[member];
                    if filter.may_hold(chunk, tables[member].bounds) {
                        is_read = true;
                        scan.times.add(filter.times_taken(chunk), filter.times_drained(chunk));
                    }
                }
                if !is_read {
                    scan.may_be_unknown |= facts.may_hold_unknown(chunk);
                    continue;
                }
                let size = u64::from(chunk.count) * facts.stride(chunk);
                if bytes > 0
                    && (bytes + size > BATCH_BYTES || rows + u64::from(chunk.count) > BATCH_ROWS)
                {
                    scan.batch_starts.push(scan.chosen.len());
                    (bytes, rows) = (0, 0);
                }
                scan.chosen.push(ChunkId { capture: capture as u32, index: index as u32 });
                (bytes, rows) = (bytes + size, rows + u64::from(chunk.count));
            }
            scan.readers.push(readers);
        }
        scan.batch_starts.push(scan.chosen.len());
        Ok(Some(scan))
    }

    /// The columns of a table, by the index of the table.
    pub fn schema(&self, table: usize) -> &SchemaRef {
        &self.members[table].schema
    }

    /// The number of batches.
    pub fn batch_count(&self) -> usize {
        self.batch_starts.len() - 1
    }

    /// Bounds of the times of the frames.
    pub fn times(&self) -> ChunkTimes {
        self.times
    }

    /// Whether skipped chunks may hold frames whose kind is not in their schema.
    pub fn may_be_unknown(&self) -> bool {
        self.may_be_unknown
    }

    /// Reads a range of batches, in order.
    pub fn read(
        self: &Arc<Self>,
        batches: Range<usize>,
    ) -> impl Iterator<Item = Result<ScanBatch, TableError>> + Send + use<> {
        let chosen = &self.chosen[self.batch_starts[batches.start]..self.batch_starts[batches.end]];
        let bytes = chosen.iter().map(|&id| u64::from(self.chunk(id).len)).sum();
        self.set.watch().plan(bytes);
        let mut reading = JointScanReader {
            scan: self.clone(),
            builders: self.members.iter().map(Member::builders).collect(),
            rows: vec![0; self.members.len()],
            kinds: KindRows::default(),
            file: None,
        };
        batches.map(move |batch| reading.batch(batch))
    }

    fn chunk(&self, id: ChunkId) -> &ChunkAt {
        &self.facts[id.capture as usize].catalog.chunks[id.index as usize]
    }

    /// Bytes from the beginning of a chunk to the end of the last chunk that one read covers.
    fn ahead(&self, place: usize) -> u64 {
        let ChunkId { capture, .. } = self.chosen[place];
        let first = self.chunk(self.chosen[place]);
        let mut end = first.offset + u64::from(first.len);
        for &next in self.chosen[place + 1..].iter().take_while(|next| next.capture == capture) {
            let chunk = self.chunk(next);
            let further = chunk.offset + u64::from(chunk.len);
            if chunk.offset != end.next_multiple_of(64) || further - first.offset > MAX_READ {
                break;
            }
            end = further;
        }
        end - first.offset
    }
}

/// Reads the batches of a scan.
struct JointScanReader {
    scan: Arc<JointScan>,
    /// By table.
    builders: Vec<Vec<Builder>>,
    /// By table: number of rows in the current batch.
    rows: Vec<usize>,
    kinds: KindRows,
    /// The open capture, and its index.
    file: Option<(u32, ChunkFile)>,
}

impl JointScanReader {
    fn batch(&mut self, batch: usize) -> Result<ScanBatch, TableError> {
        let scan = self.scan.clone();
        let mut read = ScanBatch { batches: Vec::new(), bytes: 0, unknown: 0 };
        for place in scan.batch_starts[batch]..scan.batch_starts[batch + 1] {
            self.append(place, &mut read)?;
        }
        for (number, member) in scan.members.iter().enumerate() {
            let rows = std::mem::take(&mut self.rows[number]);
            if rows == 0 {
                continue;
            }
            let columns = self.builders[number].iter_mut().map(Builder::finish);
            let columns = columns.collect::<Result<_, _>>()?;
            let options = RecordBatchOptions::new().with_row_count(Some(rows));
            let batch =
                RecordBatch::try_new_with_options(member.schema.clone(), columns, &options)?;
            read.batches.push((number, batch));
        }
        Ok(read)
    }

    /// Appends the rows of a chunk.
    fn append(&mut self, place: usize, read: &mut ScanBatch) -> Result<(), TableError> {
        let scan = self.scan.clone();
        let ChunkId { capture, .. } = scan.chosen[place];
        let chunk = scan.chunk(scan.chosen[place]);
        if scan.set.watch().is_cancelled() {
            return Err(TableError::Cancelled);
        }
        scan.set.watch().count(chunk.len.into());
        let opened = &scan.set.captures()[capture as usize];
        if self.file.as_ref().is_none_or(|(open, _)| *open != capture) {
            self.file = Some((capture, ChunkFile::new(opened.file.clone())));
        }
        let Some((_, file)) = &mut self.file else { return Ok(()) };
        let failed =
            |error: io::Error| TableError::Read { path: opened.path.clone(), error: error.into() };
        let ahead = scan.ahead(place);
        let payload = match file.read(chunk.offset, chunk.len.into(), ahead).map_err(failed)? {
            Ok(payload) => payload,
            Err(damage) => {
                opened.damage(damage);
                return Ok(());
            }
        };
        let facts = &scan.facts[capture as usize];
        let readers = &scan.readers[capture as usize][chunk.owner as usize];
        let (kinds, builders, rows) = (&mut self.kinds, &mut self.builders, &mut self.rows);
        with_chunk_rows(facts, capture as usize, chunk, payload, |found| {
            read.bytes += found.rows.bytes.len();
            let count = found.catalog.sources[found.owner.info].schema.frames.len();
            let mut of_kinds = None;
            if count > 1 {
                kinds.group(found.rows, count);
                read.unknown += kinds.unknown;
                of_kinds = Some(&*kinds);
            }
            let found = ChunkRows { kinds: of_kinds, ..*found };
            for &reader in readers {
                let member = &scan.members[reader];
                rows[reader] +=
                    member.source.append(&found, &member.columns, &mut builders[reader]);
            }
        });
        Ok(())
    }
}
