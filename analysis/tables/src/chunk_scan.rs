//! Scans of chunks: selects the chunks of a table that may hold wanted rows, and turns them into batches.

use std::fmt::Debug;
use std::fmt::Write;
use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_schema::SchemaRef;
use ppt_capture::Stamps;
use ppt_capture::columns::Time;

use crate::bounds::{BoundedNumber, BoundedText, Bounds};
use crate::builder::Builder;
use crate::catalog::ChunkAt;
use crate::chunk_reader::{CaptureFacts, ChunkId, ChunkReader};
use crate::error::TableError;
use crate::set::{CaptureSet, OwnerKeys};
use crate::table::{Batches, Scan, TableRequest};

pub(crate) use crate::chunk_row_source::{ChunkRowSource, Ts, Wanted, kind_bit};

/// A batch takes chunks until it has this many rows.
const MIN_BATCH_ROWS: usize = 8192;
/// A batch takes no further chunk that would bring it above this many rows.
const MAX_BATCH_ROWS: usize = 65_536;
/// Approximate limit of a batch's text, in bytes. A consumer keeps a whole batch in memory.
const MAX_BATCH_TEXT: usize = 4 << 20;
/// A scan has at most one part for each this many bytes.
const MIN_PART_BYTES: u64 = 1 << 20;

/// A scan of chunks.
#[derive(Debug)]
pub(crate) struct ChunkScan<T> {
    set: Arc<CaptureSet>,
    source: Arc<T>,
    columns: Vec<usize>,
    schema: SchemaRef,
    limit: Option<usize>,
    /// By capture.
    facts: Arc<Vec<CaptureFacts>>,
    /// Chunks in the order of reading.
    chosen: Arc<Vec<ChunkId>>,
    /// Indices in `chosen` at which parts begin, and the end of the last one.
    parts: Vec<usize>,
    max_parts: usize,
    order: Vec<usize>,
    rows: Option<usize>,
    /// Number of chunks in all captures.
    chunk_count: usize,
    bounds: Bounds,
}

impl<T: ChunkRowSource> ChunkScan<T> {
    /// Plans a scan of the requested rows.
    pub fn new(
        set: &Arc<CaptureSet>,
        source: &Arc<T>,
        request: &TableRequest<'_>,
    ) -> Result<Self, TableError> {
        let bounds = request.bounds;
        let facts = CaptureFacts::of_captures(set);
        let mut chosen = Vec::new();
        let mut rows = bounds.is_empty().then_some(0usize);
        for (capture, facts) in facts.iter().enumerate() {
            let filter = ChunkFilter::new(set, source.as_ref(), capture, facts, bounds);
            for (index, chunk) in facts.catalog.chunks.iter().enumerate() {
                if !filter.may_hold(chunk, bounds) {
                    continue;
                }
                chosen.push(ChunkId { capture: capture as u32, index: index as u32 });
                let exact =
                    filter.frame_is_row(chunk).then_some((chunk.count - chunk.bad) as usize);
                rows = rows.zip(exact).and_then(|(rows, exact)| rows.checked_add(exact));
            }
        }
        // Each part stops at the limit by itself; the reader drops the rows beyond it.
        let schema = Arc::new(source.schema().project(request.columns)?);
        let mut scan = ChunkScan {
            set: set.clone(),
            source: source.clone(),
            columns: request.columns.to_vec(),
            schema,
            limit: request.limit,
            chunk_count: facts.iter().map(|facts| facts.catalog.chunks.len()).sum(),
            facts: Arc::new(facts),
            chosen: Arc::new(chosen),
            parts: Vec::new(),
            max_parts: request.parts,
            order: Vec::new(),
            rows: rows.filter(|_| request.limit.is_none()),
            bounds: bounds.clone(),
        };
        scan.divide();
        Ok(scan)
    }

    fn bytes(&self) -> u64 {
        self.chosen.iter().map(|&id| u64::from(self.chunk(id).len)).sum()
    }

    /// Divides the chunks into parts of about the same number of bytes.
    fn divide(&mut self) {
        let bytes = self.bytes();
        let parts = (bytes.div_ceil(MIN_PART_BYTES)).clamp(1, self.max_parts.max(1) as u64);
        let part_bytes = bytes.div_ceil(parts).max(1);
        self.parts = vec![0];
        let mut bytes_before = 0;
        for (index, &id) in self.chosen.iter().enumerate() {
            if bytes_before >= part_bytes * self.parts.len() as u64 {
                self.parts.push(index);
            }
            bytes_before += u64::from(self.chunk(id).len);
        }
        self.parts.push(self.chosen.len());
        let seqno = self.columns.iter().position(|&column| column == SEQNO);
        self.order = seqno.filter(|_| self.is_one_ring()).into_iter().collect();
    }

    /// Whether all rows are of one ring, in the order of their numbers.
    fn is_one_ring(&self) -> bool {
        let ring = |&id: &ChunkId| {
            let owner = self.owner(id)?;
            // An owner without a ring number may be any ring.
            Some((id.capture, owner.source, owner.nonce, owner.ring?))
        };
        let Some(first) = self.chosen.first() else { return true };
        let of_first_ring = |id: &ChunkId| ring(id).is_some() && ring(id) == ring(first);
        let first_seq = |&id: &ChunkId| self.chunk(id).first_seq;
        self.chosen.iter().all(of_first_ring)
            && self.chosen.windows(2).all(|pair| first_seq(&pair[0]) < first_seq(&pair[1]))
    }
}

/// Indices of the columns that identify a row, the same in every table of frames.
const CAPTURE: usize = 0;
const BUFFER: usize = 1;
const SEGMENT: usize = 2;
const RING: usize = 3;
const SEQNO: usize = 4;

/// Decides which chunks of a capture may hold wanted rows.
pub(crate) struct ChunkFilter<'a> {
    facts: &'a CaptureFacts,
    /// By owner.
    wanted: Vec<Wanted>,
    /// Realtime − monotonic, ns.
    offset: Option<i128>,
}

impl<'a> ChunkFilter<'a> {
    pub fn new(
        set: &CaptureSet,
        row_source: &dyn ChunkRowSource,
        capture: usize,
        facts: &'a CaptureFacts,
        bounds: &Bounds,
    ) -> Self {
        let catalog = &facts.catalog;
        let is_capture_wanted = bounds.has_word(BoundedText::Capture, &set.captures()[capture].id)
            && bounds.has_word(BoundedText::Host, catalog.host());
        let is_wanted = |owner: &OwnerKeys| {
            let source = &catalog.sources[owner.info].source;
            is_capture_wanted
                && bounds.has_word(BoundedText::Buffer, &source.buffer)
                && bounds.has_word(BoundedText::Segment, &format!("{:016x}", owner.nonce))
                && bounds.has(BoundedNumber::Ring, owner.ring.map(Into::into))
                && (owner.names_threads
                    || bounds.has(BoundedNumber::Tid, owner.tid.map(Into::into)))
                && bounds.has(BoundedNumber::Pid, owner.pid.map(Into::into))
        };
        let wanted = |owner: &OwnerKeys| {
            if is_wanted(owner) {
                row_source.wanted(capture, owner.source, bounds)
            } else {
                Wanted::NOTHING
            }
        };
        let wanted = facts.owners.iter().map(wanted).collect();
        ChunkFilter { facts, wanted, offset: catalog.offset() }
    }

    /// Whether frames of an owner are wanted.
    pub fn wants(&self, owner: usize) -> bool {
        self.wanted.get(owner).is_some_and(|wanted| wanted.kinds != 0)
    }

    fn frame_is_row(&self, chunk: &ChunkAt) -> bool {
        self.wanted.get(chunk.owner as usize).is_some_and(|wanted| wanted.frame_is_row)
    }

    /// Whether a chunk may hold a wanted row, by the same rules as `ppt dump --from`.
    pub fn may_hold(&self, chunk: &ChunkAt, bounds: &Bounds) -> bool {
        let Some(wanted) = self.wanted.get(chunk.owner as usize) else { return false };
        // A mask of 0 does not state the kinds.
        if wanted.kinds == 0 || (chunk.mask != 0 && chunk.mask & wanted.kinds == 0) {
            return false;
        }
        if bounds.is_empty() {
            return true;
        }
        let last = chunk.first_seq.saturating_add(u64::from(chunk.count) - 1);
        let seq = |seq: u64| i64::try_from(seq).unwrap_or(i64::MAX);
        if !bounds.overlaps(BoundedNumber::Seqno, (seq(chunk.first_seq), seq(last))) {
            return false;
        }
        let drained = self.facts.catalog.epoch(chunk.drained);
        let may_be = match self.times_drained(chunk) {
            Some(range) => bounds.overlaps(BoundedNumber::Drained, range),
            None => bounds.has(BoundedNumber::Drained, None),
        };
        if !may_be {
            return false;
        }
        let by_ts = |number| match wanted.ts {
            Ts::Null => false,
            Ts::Other => true,
            Ts::At(at) => self.times(chunk, at).is_none_or(|time| bounds.overlaps(number, time)),
        };
        (bounds.range(BoundedNumber::Ts).is_none() || by_ts(BoundedNumber::Ts))
            && (drained.is_none()
                || bounds.has(BoundedNumber::Time, drained)
                || by_ts(BoundedNumber::Time))
    }

    /// Bounds of the times of a chunk's rows, or of their draining if they have no times; None if unknown.
    pub fn times_taken(&self, chunk: &ChunkAt) -> Option<(i64, i64)> {
        match self.wanted.get(chunk.owner as usize)?.ts {
            Ts::At(at) => self.times(chunk, at),
            Ts::Null => self.times_drained(chunk),
            Ts::Other => None,
        }
    }

    /// Bounds of the times at which the frames of a chunk were drained; None if unknown.
    pub fn times_drained(&self, chunk: &ChunkAt) -> Option<(i64, i64)> {
        let catalog = &self.facts.catalog;
        let by = catalog.epoch(chunk.drained_by.max(chunk.drained));
        catalog.epoch(chunk.drained).zip(by)
    }

    /// Bounds of the times of a chunk's frames; None if unknown.
    fn times(&self, chunk: &ChunkAt, at: Time) -> Option<(i64, i64)> {
        let catalog = &self.facts.catalog;
        let owner = self.facts.owner(chunk)?;
        let namespace = catalog.sources[owner.info].source.process.time_namespace();
        let stamps = Stamps::new(&catalog.clocks, chunk.drained, namespace);
        let words = chunk.t_min..=chunk.t_max;
        let (least, greatest) = at.bounds(words, &stamps, &catalog.clocks, self.offset)?;
        let fit = |ns: i128| ns.clamp(i64::MIN.into(), i64::MAX.into()) as i64;
        Some((fit(least), fit(greatest)))
    }
}

impl<T: ChunkRowSource> Scan for ChunkScan<T> {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn parts(&self) -> usize {
        self.parts.len() - 1
    }

    fn read(&self, part: usize) -> Batches {
        let builders = self.columns.iter().map(|&column| {
            let words = self.source.dictionary(column);
            Builder::new(self.source.schema().field(column).data_type(), words.as_ref())
        });
        Box::new(ScanPart {
            builders: builders.collect(),
            source: self.source.clone(),
            columns: self.columns.clone(),
            schema: self.schema.clone(),
            chunks: self.chunks(part),
            limit: self.limit.unwrap_or(usize::MAX),
        })
    }

    fn rows(&self, part: Option<usize>) -> Option<usize> {
        let all = self.rows?;
        let Some(part) = part else { return Some(all) };
        let chunks = &self.chosen[self.parts[part]..self.parts[part + 1]];
        let rows = |&id| (self.chunk(id).count - self.chunk(id).bad) as usize;
        Some(chunks.iter().map(rows).sum())
    }

    fn explain_text(&self) -> String {
        let (read, all) = (self.chosen.len(), self.chunk_count);
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
        let own: Vec<usize> = columns
            .iter()
            .map(|&column| self.columns.get(column).copied())
            .collect::<Option<_>>()?;
        if ![CAPTURE, BUFFER, SEGMENT, RING, SEQNO].starts_with(&own) {
            return None;
        }
        // An owner without a ring number has NULL there, and may be several rings.
        let has_ring = |&id: &ChunkId| self.owner(id).is_none_or(|owner| owner.ring.is_some());
        if !self.chosen.iter().all(has_ring) {
            return None;
        }
        let mut chosen = self.chosen.to_vec();
        let captures = self.set.captures();
        chosen.sort_by_cached_key(|&id| {
            let sources = &self.facts[id.capture as usize].catalog.sources;
            let owner = self
                .owner(id)
                .map(|owner| (sources[owner.info].source.buffer.clone(), owner.nonce, owner.ring));
            (captures[id.capture as usize].id.clone(), owner, self.chunk(id).first_seq)
        });
        let mut scan = ChunkScan { chosen: Arc::new(chosen), ..self.clone_scan() };
        scan.divide();
        scan.order = columns.to_vec();
        Some(Arc::new(scan))
    }
}

impl<T> ChunkScan<T> {
    /// A reader of the chunks of a part.
    pub fn chunks(&self, part: usize) -> ChunkReader {
        let range = self.parts[part]..self.parts[part + 1];
        ChunkReader::new(&self.set, &self.facts, &self.chosen, range)
    }

    /// Number of frames of all kinds in its chunks, at most.
    pub fn max_frames(&self) -> u64 {
        self.chosen.iter().map(|&id| u64::from(self.chunk(id).count)).sum()
    }

    /// All frames of its chunks have numbers below this one.
    pub fn end_seq(&self) -> u64 {
        let end = |chunk: &ChunkAt| chunk.first_seq.saturating_add(chunk.count.into());
        self.chosen.iter().map(|&id| end(self.chunk(id))).max().unwrap_or(0)
    }

    fn chunk(&self, id: ChunkId) -> &ChunkAt {
        &self.facts[id.capture as usize].catalog.chunks[id.index as usize]
    }

    fn owner(&self, id: ChunkId) -> Option<&OwnerKeys> {
        self.facts[id.capture as usize].owner(self.chunk(id))
    }

    /// A clone, also if the row source is not `Clone`.
    fn clone_scan(&self) -> Self {
        ChunkScan {
            set: self.set.clone(),
            source: self.source.clone(),
            columns: self.columns.clone(),
            schema: self.schema.clone(),
            limit: self.limit,
            facts: self.facts.clone(),
            chosen: self.chosen.clone(),
            parts: self.parts.clone(),
            max_parts: self.max_parts,
            order: self.order.clone(),
            rows: self.rows,
            chunk_count: self.chunk_count,
            bounds: self.bounds.clone(),
        }
    }
}

/// Reads the batches of a part of a scan.
struct ScanPart<T> {
    source: Arc<T>,
    columns: Vec<usize>,
    schema: SchemaRef,
    chunks: ChunkReader,
    limit: usize,
    builders: Vec<Builder>,
}

impl<T: ChunkRowSource> Iterator for ScanPart<T> {
    type Item = Result<RecordBatch, TableError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if self.chunks.next().is_none() || self.limit == 0 {
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
                    self.chunks.stop();
                    return Some(Err(error));
                }
            }
        }
    }
}

impl<T: ChunkRowSource> ScanPart<T> {
    fn batch(&mut self) -> Result<RecordBatch, TableError> {
        let mut rows = 0;
        while let Some(chunk) = self.chunks.next().filter(|_| rows < MIN_BATCH_ROWS.min(self.limit))
        {
            let full = rows + chunk.count as usize > MAX_BATCH_ROWS
                || self.builders.iter().any(|builder| builder.bytes() > MAX_BATCH_TEXT);
            if rows > 0 && full {
                break;
            }
            let (source, columns, builders) = (&*self.source, &self.columns, &mut self.builders);
            let appended = self.chunks.read(|chunk| source.append(chunk, columns, builders))?;
            rows += appended.unwrap_or(0);
        }
        self.finish(rows)
    }

    fn finish(&mut self, rows: usize) -> Result<RecordBatch, TableError> {
        let columns = self.builders.iter_mut().map(Builder::finish).collect::<Result<_, _>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        Ok(RecordBatch::try_new_with_options(self.schema.clone(), columns, &options)?)
    }
}
