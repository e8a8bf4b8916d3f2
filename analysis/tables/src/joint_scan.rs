//! Several tables whose rows are frames, read together: each chunk once, in the order of the files.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchOptions, StringArray};
use arrow_schema::SchemaRef;
use ppt_capture::ChunkFile;

use crate::bounds::Bounds;
use crate::builder::Builder;
use crate::catalog::ChunkAt;
use crate::chunk_reader::{CaptureFacts, each_chunk};
use crate::error::TableError;
use crate::of_chunks::{Choice, OfChunks};
use crate::rows::KindRows;
use crate::set::CaptureSet;
use crate::standard::ChunkRows;
use crate::table::CaptureTable;

/// Bytes and rows of the frames of a batch, about: a consumer that waits for its last row holds all of it.
const BATCH_BYTES: u64 = 4 << 20;
const BATCH_ROWS: u64 = 65_536;
/// Bytes that are read at once where chunks follow each other.
const AHEAD: u64 = 1 << 20;

/// What is asked for of one of the tables.
#[derive(Debug, Clone, Copy)]
pub struct ScannedTable<'a> {
    /// The table.
    pub table: &'a dyn CaptureTable,
    /// Indices of the columns, in the order in which they are wanted.
    pub columns: &'a [usize],
    /// What need not be read. Rows may be more than the bounds ask for, never fewer.
    pub bounds: &'a Bounds,
}

/// Several tables that are read together.
#[derive(Debug)]
pub struct JointScan {
    set: Arc<CaptureSet>,
    members: Vec<Member>,
    known: Vec<CaptureFacts>,
    /// Chunks by capture and index, in the order in which they are read.
    chosen: Vec<(u32, u32)>,
    /// Where batches begin in `chosen`, and the end.
    batch_starts: Vec<usize>,
    /// By capture and owner: the members that have rows of it.
    readers: Vec<Vec<Vec<usize>>>,
    may_be_unknown: bool,
    times: ChunkTimes,
}

/// Between which times frames are, as far as the heads of chunks have them: no frame was before or after.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ChunkTimes {
    /// When they were, or else when the listener had them.
    pub taken: Option<(i64, i64)>,
    /// When the listener had them.
    pub drained: Option<(i64, i64)>,
}

impl ChunkTimes {
    fn add(&mut self, taken: Option<(i64, i64)>, drained: Option<(i64, i64)>) {
        let reach = |known: Option<(i64, i64)>, more: Option<(i64, i64)>| match (known, more) {
            (Some(known), Some(more)) => Some((known.0.min(more.0), known.1.max(more.1))),
            (known, more) => known.or(more),
        };
        self.taken = reach(self.taken, taken);
        self.drained = reach(self.drained, drained);
    }
}

#[derive(Debug)]
struct Member {
    of: Arc<dyn OfChunks>,
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

/// Rows of chunks that follow each other.
#[derive(Debug)]
pub struct ScanBatch {
    /// Of each table that has rows: its number among those that were asked for, and the rows.
    pub batches: Vec<(usize, RecordBatch)>,
    /// Bytes of the frames.
    pub bytes: usize,
    /// Frames whose kind their schema does not have: they are in no table of a kind.
    pub unknown: u64,
}

impl JointScan {
    /// Plans to read `tables`; None: one of them is not made of whole frames.
    ///
    /// # Errors
    /// See [`TableError`].
    pub fn new(
        set: &Arc<CaptureSet>,
        tables: &[ScannedTable<'_>],
    ) -> Result<Option<JointScan>, TableError> {
        let mut members = Vec::new();
        for asked in tables {
            let Some(chunked) = asked.table.chunked() else { return Ok(None) };
            let schema = Arc::new(asked.table.schema().project(asked.columns)?);
            let words = asked.columns.iter().map(|&column| chunked.0.dictionary(column)).collect();
            members.push(Member { of: chunked.0, columns: asked.columns.to_vec(), schema, words });
        }
        let known = CaptureFacts::of_captures(set);
        let mut together = JointScan {
            set: set.clone(),
            members,
            known,
            chosen: Vec::new(),
            batch_starts: vec![0],
            readers: Vec::new(),
            may_be_unknown: false,
            times: ChunkTimes::default(),
        };
        let (mut bytes, mut rows) = (0, 0);
        for capture in 0..together.known.len() {
            let of = &together.known[capture];
            let choices = tables.iter().zip(&together.members).map(|(asked, member)| {
                (Choice::new(set, member.of.as_ref(), capture, of, asked.bounds), asked.bounds)
            });
            let choices: Vec<_> = choices.collect();
            let reads = |owner: usize| {
                let wants = |entry: &(usize, &(Choice<'_>, &Bounds))| entry.1.0.wants(owner);
                choices.iter().enumerate().filter(wants).map(|entry| entry.0).collect::<Vec<_>>()
            };
            let readers: Vec<Vec<usize>> = (0..of.owners.len()).map(reads).collect();
            for (index, chunk) in of.catalog.chunks.iter().enumerate() {
                let owner = chunk.owner as usize;
                let all = readers.get(owner).into_iter().flatten();
                let mut is_read = false;
                for (choice, bounds) in all.map(|&member| &choices[member]) {
                    if choice.may_hold(chunk, bounds) {
                        is_read = true;
                        together.times.add(choice.during(chunk), choice.drained(chunk));
                    }
                }
                if !is_read {
                    together.may_be_unknown |= of.may_hold_unknown(chunk);
                    continue;
                }
                let size = u64::from(chunk.count) * of.stride(chunk);
                if bytes > 0
                    && (bytes + size > BATCH_BYTES || rows + u64::from(chunk.count) > BATCH_ROWS)
                {
                    together.batch_starts.push(together.chosen.len());
                    (bytes, rows) = (0, 0);
                }
                together.chosen.push((capture as u32, index as u32));
                (bytes, rows) = (bytes + size, rows + u64::from(chunk.count));
            }
            together.readers.push(readers);
        }
        together.batch_starts.push(together.chosen.len());
        Ok(Some(together))
    }

    /// The columns of a table, by its number.
    pub fn schema(&self, table: usize) -> &SchemaRef {
        &self.members[table].schema
    }

    /// How many batches there are.
    pub fn batch_count(&self) -> usize {
        self.batch_starts.len() - 1
    }

    /// Between which times the frames are.
    pub fn times(&self) -> ChunkTimes {
        self.times
    }

    /// Whether chunks that nobody reads may hold frames whose kind their schema does not have.
    pub fn may_be_unknown(&self) -> bool {
        self.may_be_unknown
    }

    /// Reads some batches, in their order.
    pub fn read(
        self: &Arc<Self>,
        batches: Range<usize>,
    ) -> impl Iterator<Item = Result<ScanBatch, TableError>> + Send + use<> {
        let chosen = &self.chosen[self.batch_starts[batches.start]..self.batch_starts[batches.end]];
        let bytes = chosen.iter().map(|&entry| u64::from(self.chunk(entry).len)).sum();
        self.set.watch().plan(bytes);
        let mut reading = JointScanReader {
            of: self.clone(),
            builders: self.members.iter().map(Member::builders).collect(),
            rows: vec![0; self.members.len()],
            kinds: KindRows::default(),
            file: None,
        };
        batches.map(move |batch| reading.batch(batch))
    }

    fn chunk(&self, (capture, index): (u32, u32)) -> &ChunkAt {
        &self.known[capture as usize].catalog.chunks[index as usize]
    }

    /// Bytes from a chunk on that are wanted together with it: those of chunks right behind it.
    fn ahead(&self, place: usize) -> u64 {
        let (capture, _) = self.chosen[place];
        let first = self.chunk(self.chosen[place]);
        let mut end = first.offset + u64::from(first.len);
        for &next in self.chosen[place + 1..].iter().take_while(|next| next.0 == capture) {
            let chunk = self.chunk(next);
            let further = chunk.offset + u64::from(chunk.len);
            if chunk.offset != end.next_multiple_of(64) || further - first.offset > AHEAD {
                break;
            }
            end = further;
        }
        end - first.offset
    }
}

/// Batches on their way.
struct JointScanReader {
    of: Arc<JointScan>,
    /// By table.
    builders: Vec<Vec<Builder>>,
    /// By table: rows of this batch.
    rows: Vec<usize>,
    kinds: KindRows,
    /// The capture that is being read.
    file: Option<(u32, ChunkFile)>,
}

impl JointScanReader {
    fn batch(&mut self, batch: usize) -> Result<ScanBatch, TableError> {
        let of = self.of.clone();
        let mut read = ScanBatch { batches: Vec::new(), bytes: 0, unknown: 0 };
        for place in of.batch_starts[batch]..of.batch_starts[batch + 1] {
            self.append(place, &mut read)?;
        }
        for (number, member) in of.members.iter().enumerate() {
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
        let of = self.of.clone();
        let (capture, _) = of.chosen[place];
        let chunk = of.chunk(of.chosen[place]);
        if of.set.watch().is_cancelled() {
            return Err(TableError::Cancelled);
        }
        of.set.watch().count(chunk.len.into());
        let opened = &of.set.captures()[capture as usize];
        if self.file.as_ref().is_none_or(|(of, _)| *of != capture) {
            self.file = Some((capture, ChunkFile::new(opened.file.clone())));
        }
        let Some((_, file)) = &mut self.file else { return Ok(()) };
        let failed =
            |error: io::Error| TableError::Read { path: opened.path.clone(), error: error.into() };
        let ahead = of.ahead(place);
        let payload = match file.read(chunk.offset, chunk.len.into(), ahead).map_err(failed)? {
            Ok(payload) => payload,
            Err(damage) => {
                opened.damage(damage);
                return Ok(());
            }
        };
        let known = &of.known[capture as usize];
        let readers = &of.readers[capture as usize][chunk.owner as usize];
        let (kinds, builders, rows) = (&mut self.kinds, &mut self.builders, &mut self.rows);
        each_chunk(known, (capture as usize, chunk), payload, |found| {
            read.bytes += found.rows.bytes.len();
            let count = found.catalog.sources[found.owner.info].schema.frames.len();
            let mut of_kinds = None;
            if count > 1 {
                kinds.find(found.rows, count);
                read.unknown += kinds.unknown;
                of_kinds = Some(&*kinds);
            }
            let found = ChunkRows { kinds: of_kinds, ..*found };
            for &reader in readers {
                let member = &of.members[reader];
                rows[reader] += member.of.append(&found, &member.columns, &mut builders[reader]);
            }
        });
        Ok(())
    }
}
