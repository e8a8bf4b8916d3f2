//! Tables whose rows are the frames of chunks: which chunks are read, and how they become batches.

use std::fmt::Debug;
use std::fmt::Write;
use std::io;
use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_schema::SchemaRef;
use ppt_capture::columns::Time;
use ppt_capture::{ChunkFile, Payload, Stamps};

use crate::bounds::{Bounds, Number, Word};
use crate::builder::Builder;
use crate::catalog::{Catalog, ChunkAt};
use crate::error::TableError;
use crate::rows::Rows;
use crate::set::{CaptureSet, OwnerKeys};
use crate::standard::ChunkRows;
use crate::table::{Batches, Request, Scan};

pub(crate) use crate::chunk_table::{OfChunks, Ts, Wanted, kind_bit};

/// Rows of a batch: chunks are put together up to the first, and none is begun beyond the second.
const FEW: usize = 8192;
const MANY: usize = 65_536;
/// Bytes of text in a batch, at most about: whoever waits for its last row holds all of it.
const MANY_BYTES: usize = 4 << 20;
/// Bytes that are read at once where chunks follow each other.
const AHEAD: u64 = 1 << 20;
/// Bytes below which a scan is not divided.
const SMALL_PART: u64 = 1 << 20;

/// A scan of chunks.
#[derive(Debug)]
pub(crate) struct ChunkScan<T> {
    set: Arc<CaptureSet>,
    of: Arc<T>,
    columns: Vec<usize>,
    schema: SchemaRef,
    limit: Option<usize>,
    /// By capture: what is known of it, and of the owners of its chunks.
    known: Arc<Vec<Known>>,
    /// Chunks by capture and index, in the order in which they are read.
    chosen: Arc<Vec<(u32, u32)>>,
    /// Where the parts begin in `chosen`, and the end.
    parts: Vec<usize>,
    wanted_parts: usize,
    order: Vec<usize>,
    rows: Option<usize>,
    all_chunks: usize,
    bounds: Bounds,
}

/// What is known of a capture.
#[derive(Debug)]
pub(crate) struct Known {
    pub catalog: Arc<Catalog>,
    pub owners: Vec<OwnerKeys>,
}

impl Known {
    /// Of each capture of a set.
    pub fn of_captures(set: &CaptureSet) -> Vec<Known> {
        let captures = set.captures().iter().enumerate();
        let known = captures.map(|(index, capture)| {
            let catalog = capture.catalog().clone();
            let owners = set.owners(index, &catalog);
            Known { catalog, owners }
        });
        known.collect()
    }

    /// Bytes of a frame of a chunk.
    pub fn stride(&self, chunk: &ChunkAt) -> u64 {
        let owner = self.owners.get(chunk.owner as usize);
        owner.map_or(0, |it| self.catalog.sources[it.info].schema.stride.into())
    }

    /// Whether a chunk may hold frames whose kind their schema does not have.
    pub fn may_hold_unknown(&self, chunk: &ChunkAt) -> bool {
        let Some(owner) = self.owners.get(chunk.owner as usize) else { return false };
        let kinds = self.catalog.sources[owner.info].schema.frames.len();
        // A frame of a buffer with one kind does not say what it is.
        let known = (0..kinds).fold(0, |known, id| known | kind_bit(id));
        kinds > 1 && (chunk.mask == 0 || chunk.mask & !known != 0 || kinds > 63)
    }
}

impl<T: OfChunks> ChunkScan<T> {
    /// Plans what is asked for; `hidden` columns are wanted, too, behind the others.
    pub fn new(
        set: &Arc<CaptureSet>,
        of: &Arc<T>,
        request: &Request<'_>,
    ) -> Result<Self, TableError> {
        let bounds = request.bounds;
        let known = Known::of_captures(set);
        let mut chosen = Vec::new();
        let mut rows = bounds.is_empty().then_some(0usize);
        for (capture, known) in known.iter().enumerate() {
            let choice = Choice::new(set, of.as_ref(), capture, known, bounds);
            for (index, chunk) in known.catalog.chunks.iter().enumerate() {
                if !choice.may_hold(chunk, bounds) {
                    continue;
                }
                chosen.push((capture as u32, index as u32));
                let exact = choice.each(chunk).then_some((chunk.count - chunk.bad) as usize);
                rows = rows.zip(exact).and_then(|(rows, exact)| rows.checked_add(exact));
            }
        }
        // Each part stops by itself: what is read beyond the limit is cut by who asked for it.
        let schema = Arc::new(of.schema().project(request.columns)?);
        let mut scan = ChunkScan {
            set: set.clone(),
            of: of.clone(),
            columns: request.columns.to_vec(),
            schema,
            limit: request.limit,
            all_chunks: known.iter().map(|it| it.catalog.chunks.len()).sum(),
            known: Arc::new(known),
            chosen: Arc::new(chosen),
            parts: Vec::new(),
            wanted_parts: request.parts,
            order: Vec::new(),
            rows: rows.filter(|_| request.limit.is_none()),
            bounds: bounds.clone(),
        };
        scan.divide();
        Ok(scan)
    }

    fn chunk(&self, (capture, index): (u32, u32)) -> &ChunkAt {
        &self.known[capture as usize].catalog.chunks[index as usize]
    }

    fn bytes(&self) -> u64 {
        self.chosen.iter().map(|&it| u64::from(self.chunk(it).len)).sum()
    }

    /// Parts of about as many bytes each.
    fn divide(&mut self) {
        let bytes = self.bytes();
        let parts = (bytes.div_ceil(SMALL_PART)).clamp(1, self.wanted_parts.max(1) as u64);
        let each = bytes.div_ceil(parts).max(1);
        self.parts = vec![0];
        let mut until = 0;
        for (index, &chunk) in self.chosen.iter().enumerate() {
            if until >= each * self.parts.len() as u64 {
                self.parts.push(index);
            }
            until += u64::from(self.chunk(chunk).len);
        }
        self.parts.push(self.chosen.len());
        let seqno = self.columns.iter().position(|&column| column == SEQNO);
        self.order = seqno.filter(|_| self.is_one_ring()).into_iter().collect();
    }

    /// Whether all rows are of one ring, and in its order.
    fn is_one_ring(&self) -> bool {
        let ring = |&(capture, index): &(u32, u32)| {
            let known = &self.known[capture as usize];
            let owner = known.owners.get(known.catalog.chunks[index as usize].owner as usize)?;
            // Without a number it may be any.
            Some((capture, owner.source, owner.nonce, owner.ring?))
        };
        let mut all = self.chosen.iter();
        let Some(first) = all.next() else { return true };
        let mut last = self.chunk(*first).first_seq;
        let rising = |chunk: &(u32, u32)| {
            let seq = self.chunk(*chunk).first_seq;
            std::mem::replace(&mut last, seq) < seq
        };
        let is_first = |it: &(u32, u32)| ring(it).is_some() && ring(it) == ring(first);
        self.chosen.iter().all(is_first) && all.all(rising)
    }
}

/// Columns of every table of frames, by index: what rows are named by.
const CAPTURE: usize = 0;
const BUFFER: usize = 1;
const SEGMENT: usize = 2;
const RING: usize = 3;
const SEQNO: usize = 4;

/// What is chosen of a capture.
pub(crate) struct Choice<'a> {
    known: &'a Known,
    /// By owner.
    wanted: Vec<Wanted>,
    offset: Option<i128>,
}

impl<'a> Choice<'a> {
    pub fn new(
        set: &CaptureSet,
        of: &dyn OfChunks,
        capture: usize,
        known: &'a Known,
        bounds: &Bounds,
    ) -> Self {
        let catalog = &known.catalog;
        let of_capture = bounds.has_word(Word::Capture, &set.captures()[capture].id)
            && bounds.has_word(Word::Host, catalog.host());
        let is_wanted = |owner: &OwnerKeys| {
            let source = &catalog.sources[owner.info].source;
            of_capture
                && bounds.has_word(Word::Buffer, &source.buffer)
                && bounds.has_word(Word::Segment, &format!("{:016x}", owner.nonce))
                && bounds.has(Number::Ring, owner.ring.map(Into::into))
                && bounds.has(Number::Tid, owner.tid.map(Into::into))
                && bounds.has(Number::Pid, owner.pid.map(Into::into))
        };
        let wanted = |owner: &OwnerKeys| match is_wanted(owner) {
            true => of.wanted(capture, owner.source, bounds),
            false => Wanted::NOTHING,
        };
        let wanted = known.owners.iter().map(wanted).collect();
        Choice { known, wanted, offset: catalog.offset() }
    }

    /// Whether frames of an owner are wanted at all.
    pub fn wants(&self, owner: usize) -> bool {
        self.wanted.get(owner).is_some_and(|it| it.kinds != 0)
    }

    fn each(&self, chunk: &ChunkAt) -> bool {
        self.wanted.get(chunk.owner as usize).is_some_and(|it| it.each)
    }

    /// Whether a chunk may hold a wanted row: by the rules of `dump --from`.
    pub fn may_hold(&self, chunk: &ChunkAt, bounds: &Bounds) -> bool {
        let Some(wanted) = self.wanted.get(chunk.owner as usize) else { return false };
        // 0: nobody knows which kinds there are.
        if wanted.kinds == 0 || (chunk.mask != 0 && chunk.mask & wanted.kinds == 0) {
            return false;
        }
        if bounds.is_empty() {
            return true;
        }
        let last = chunk.first_seq.saturating_add(u64::from(chunk.count) - 1);
        let seq = |seq: u64| i64::try_from(seq).unwrap_or(i64::MAX);
        if !bounds.overlaps(Number::Seqno, (seq(chunk.first_seq), seq(last))) {
            return false;
        }
        let drained = self.known.catalog.epoch(chunk.drained);
        let by = self.known.catalog.epoch(chunk.drained_by.max(chunk.drained));
        let may_be = match drained.zip(by) {
            Some(range) => bounds.overlaps(Number::Drained, range),
            None => bounds.has(Number::Drained, None),
        };
        if !may_be {
            return false;
        }
        let by_ts = |number| match wanted.ts {
            Ts::Null => false,
            Ts::Other => true,
            Ts::At(at) => self.times(chunk, at).is_none_or(|it| bounds.overlaps(number, it)),
        };
        (bounds.range(Number::Ts).is_none() || by_ts(Number::Ts))
            && (drained.is_none() || bounds.has(Number::Time, drained) || by_ts(Number::Time))
    }

    /// Between which times the frames of a chunk are; None: unknown.
    fn times(&self, chunk: &ChunkAt, at: Time) -> Option<(i64, i64)> {
        let Known { catalog, owners } = self.known;
        let owner = owners.get(chunk.owner as usize)?;
        let namespace = catalog.sources[owner.info].source.process.time_namespace();
        let stamps = Stamps::new(&catalog.clocks, chunk.drained, namespace);
        let words = chunk.t_min..=chunk.t_max;
        let (least, greatest) = at.bounds(words, &stamps, &catalog.clocks, self.offset)?;
        let fit = |ns: i128| ns.clamp(i64::MIN.into(), i64::MAX.into()) as i64;
        Some((fit(least), fit(greatest)))
    }
}

impl<T: OfChunks> Scan for ChunkScan<T> {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn parts(&self) -> usize {
        self.parts.len() - 1
    }

    fn read(&self, part: usize) -> Batches {
        let range = self.parts[part]..self.parts[part + 1];
        let chunks = self.chosen[range.clone()].iter();
        self.set.watch().plan(chunks.map(|&it| u64::from(self.chunk(it).len)).sum());
        let builders = self.columns.iter().map(|&column| {
            let words = self.of.dictionary(column);
            Builder::new(self.of.schema().field(column).data_type(), words.as_ref())
        });
        Box::new(Reading {
            builders: builders.collect(),
            set: self.set.clone(),
            of: self.of.clone(),
            columns: self.columns.clone(),
            schema: self.schema.clone(),
            known: self.known.clone(),
            chosen: self.chosen.clone(),
            next: range.start,
            end: range.end,
            limit: self.limit.unwrap_or(usize::MAX),
            file: None,
        })
    }

    fn rows(&self, part: Option<usize>) -> Option<usize> {
        let all = self.rows?;
        let Some(part) = part else { return Some(all) };
        let chunks = &self.chosen[self.parts[part]..self.parts[part + 1]];
        let rows = |&chunk| (self.chunk(chunk).count - self.chunk(chunk).bad) as usize;
        Some(chunks.iter().map(rows).sum())
    }

    fn told(&self) -> String {
        let (read, all) = (self.chosen.len(), self.all_chunks);
        let mut text = format!("chunks={read} of {all} ({} pruned)", all - read);
        let _ = write!(text, ", bytes={}", self.bytes());
        if !self.bounds.is_empty() {
            let _ = write!(text, ", bounds=[{}]", self.bounds);
        }
        if let Some(limit) = self.limit {
            let _ = write!(text, ", limit={limit}");
        }
        text
    }

    fn order(&self) -> &[usize] {
        &self.order
    }

    fn ordered(&self, columns: &[usize]) -> Option<Arc<dyn Scan>> {
        let asked: Vec<usize> =
            columns.iter().map(|&it| self.columns.get(it).copied()).collect::<Option<_>>()?;
        let names = [CAPTURE, BUFFER, SEGMENT, RING, SEQNO];
        if !names.starts_with(&asked) {
            return None;
        }
        // What has no number is NULL, and nobody knows which of it belongs together.
        let numbered = |&(capture, index): &(u32, u32)| {
            let known = &self.known[capture as usize];
            let owner = known.owners.get(known.catalog.chunks[index as usize].owner as usize);
            owner.is_none_or(|it| it.ring.is_some())
        };
        if !self.chosen.iter().all(numbered) {
            return None;
        }
        let mut chosen = self.chosen.to_vec();
        let captures = self.set.captures();
        chosen.sort_by_cached_key(|&(capture, index)| {
            let known = &self.known[capture as usize];
            let chunk = &known.catalog.chunks[index as usize];
            let owner = known.owners.get(chunk.owner as usize);
            let owner = owner.map(|it| {
                (known.catalog.sources[it.info].source.buffer.clone(), it.nonce, it.ring)
            });
            (captures[capture as usize].id.clone(), owner, chunk.first_seq)
        });
        let mut scan = ChunkScan { chosen: Arc::new(chosen), ..self.again() };
        scan.divide();
        scan.order = columns.to_vec();
        Some(Arc::new(scan))
    }
}

impl<T> ChunkScan<T> {
    fn again(&self) -> Self {
        ChunkScan {
            set: self.set.clone(),
            of: self.of.clone(),
            columns: self.columns.clone(),
            schema: self.schema.clone(),
            limit: self.limit,
            known: self.known.clone(),
            chosen: self.chosen.clone(),
            parts: self.parts.clone(),
            wanted_parts: self.wanted_parts,
            order: self.order.clone(),
            rows: self.rows,
            all_chunks: self.all_chunks,
            bounds: self.bounds.clone(),
        }
    }
}

/// A part of a scan on its way.
struct Reading<T> {
    set: Arc<CaptureSet>,
    of: Arc<T>,
    columns: Vec<usize>,
    schema: SchemaRef,
    known: Arc<Vec<Known>>,
    chosen: Arc<Vec<(u32, u32)>>,
    next: usize,
    end: usize,
    limit: usize,
    builders: Vec<Builder>,
    /// The capture that is being read.
    file: Option<(u32, ChunkFile)>,
}

impl<T: OfChunks> Iterator for Reading<T> {
    type Item = Result<RecordBatch, TableError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if self.next >= self.end || self.limit == 0 {
                return None;
            }
            match self.batch() {
                Ok(batch) if batch.num_rows() == 0 => {}
                Ok(batch) => {
                    let batch = batch.slice(0, batch.num_rows().min(self.limit));
                    self.limit -= batch.num_rows();
                    return Some(Ok(batch));
                }
                Err(error) => {
                    self.next = self.end;
                    return Some(Err(error));
                }
            }
        }
    }
}

impl<T: OfChunks> Reading<T> {
    /// Bytes from a chunk on that are wanted together with it: those of chunks right behind it.
    fn ahead(&self, capture: u32, first: &ChunkAt) -> u64 {
        let known = &self.known[capture as usize].catalog.chunks;
        let mut end = first.offset + u64::from(first.len);
        for &(other, index) in &self.chosen[self.next + 1..self.end] {
            let chunk = &known.get(index as usize).filter(|_| other == capture);
            let follows = chunk.filter(|it| it.offset == end.next_multiple_of(64));
            let Some(chunk) = follows else { break };
            let further = chunk.offset + u64::from(chunk.len);
            if further - first.offset > AHEAD {
                break;
            }
            end = further;
        }
        end - first.offset
    }

    fn batch(&mut self) -> Result<RecordBatch, TableError> {
        let mut rows = 0;
        while self.next < self.end && rows < FEW.min(self.limit) {
            let (capture, index) = self.chosen[self.next];
            let chunk = self.known[capture as usize].catalog.chunks[index as usize];
            let full = rows + chunk.count as usize > MANY
                || self.builders.iter().any(|it| it.bytes() > MANY_BYTES);
            if rows > 0 && full {
                break;
            }
            if self.set.watch().is_cancelled() {
                return Err(TableError::Cancelled);
            }
            self.set.watch().count(chunk.len.into());
            let opened = &self.set.captures()[capture as usize];
            let ahead = self.ahead(capture, &chunk);
            if self.file.as_ref().is_none_or(|(of, _)| *of != capture) {
                self.file = Some((capture, ChunkFile::new(opened.file.clone())));
            }
            let Some((_, file)) = &mut self.file else { break };
            let failed = |error: io::Error| TableError::Read {
                path: opened.path.clone(),
                error: error.into(),
            };
            match file.read(chunk.offset, chunk.len.into(), ahead).map_err(failed)? {
                Err(damage) => opened.damage(damage),
                Ok(payload) => {
                    let known = &self.known[capture as usize];
                    let chunk = (capture as usize, &chunk);
                    rows +=
                        append(&*self.of, known, chunk, payload, &self.columns, &mut self.builders);
                }
            }
            self.next += 1;
        }
        self.finish(rows)
    }

    fn finish(&mut self, rows: usize) -> Result<RecordBatch, TableError> {
        let columns = self.builders.iter_mut().map(Builder::finish).collect::<Result<_, _>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        Ok(RecordBatch::try_new_with_options(self.schema.clone(), columns, &options)?)
    }
}

/// Appends the rows of a chunk of a capture; says how many.
fn append(
    of: &impl OfChunks,
    known: &Known,
    place: (usize, &ChunkAt),
    payload: Payload<'_>,
    columns: &[usize],
    to: &mut [Builder],
) -> usize {
    each_chunk(known, place, payload, |chunk| of.append(chunk, columns, to)).unwrap_or(0)
}

/// Gives the rows of a chunk of a capture to `take`. None: another chunk is there now, because the file
/// was written over.
pub(crate) fn each_chunk<R>(
    known: &Known,
    (capture, at): (usize, &ChunkAt),
    payload: Payload<'_>,
    take: impl FnOnce(&ChunkRows<'_>) -> R,
) -> Option<R> {
    let Known { catalog, owners } = known;
    let owner = owners.get(at.owner as usize).filter(|it| {
        let head = &payload.head;
        (it.source, it.nonce, at.first_seq, at.count)
            == (head.source, head.nonce, head.first_seq, head.count)
    })?;
    let whole = payload.is_whole();
    let good: Vec<u32> = if whole { Vec::new() } else { payload.good().collect() };
    let rows = Rows {
        bytes: payload.bytes(),
        stride: payload.head.stride as usize,
        which: (!whole).then_some(&good),
    };
    let namespace = catalog.sources[owner.info].source.process.time_namespace();
    let stamps = Stamps::new(&catalog.clocks, at.drained, namespace);
    let offset = catalog.offset();
    let kinds = None;
    Some(take(&ChunkRows { capture, catalog, at, owner, rows, kinds, stamps: &stamps, offset }))
}
