//! Tables whose rows are the frames of chunks: which chunks are read, and how they become batches.

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
use crate::chunk_reader::{CaptureFacts, ChunkReader};
use crate::error::TableError;
use crate::set::{CaptureSet, OwnerKeys};
use crate::table::{Batches, Scan, TableRequest};

pub(crate) use crate::chunk_table::{OfChunks, Ts, Wanted, kind_bit};

/// Rows of a batch: chunks are put together up to the first, and none is begun beyond the second.
const MIN_BATCH_ROWS: usize = 8192;
const MAX_BATCH_ROWS: usize = 65_536;
/// Bytes of text in a batch, about: a consumer that waits for its last row holds all of it.
const MANY_BYTES: usize = 4 << 20;
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
    known: Arc<Vec<CaptureFacts>>,
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

impl<T: OfChunks> ChunkScan<T> {
    /// Plans what is asked for; `hidden` columns are wanted, too, behind the others.
    pub fn new(
        set: &Arc<CaptureSet>,
        of: &Arc<T>,
        request: &TableRequest<'_>,
    ) -> Result<Self, TableError> {
        let bounds = request.bounds;
        let known = CaptureFacts::of_captures(set);
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
            all_chunks: known.iter().map(|facts| facts.catalog.chunks.len()).sum(),
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
        self.chosen.iter().map(|&entry| u64::from(self.chunk(entry).len)).sum()
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
        let is_first = |entry: &(u32, u32)| ring(entry).is_some() && ring(entry) == ring(first);
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
    known: &'a CaptureFacts,
    /// By owner.
    wanted: Vec<Wanted>,
    offset: Option<i128>,
}

impl<'a> Choice<'a> {
    pub fn new(
        set: &CaptureSet,
        of: &dyn OfChunks,
        capture: usize,
        known: &'a CaptureFacts,
        bounds: &Bounds,
    ) -> Self {
        let catalog = &known.catalog;
        let of_capture = bounds.has_word(BoundedText::Capture, &set.captures()[capture].id)
            && bounds.has_word(BoundedText::Host, catalog.host());
        let is_wanted = |owner: &OwnerKeys| {
            let source = &catalog.sources[owner.info].source;
            of_capture
                && bounds.has_word(BoundedText::Buffer, &source.buffer)
                && bounds.has_word(BoundedText::Segment, &format!("{:016x}", owner.nonce))
                && bounds.has(BoundedNumber::Ring, owner.ring.map(Into::into))
                && (owner.names_threads
                    || bounds.has(BoundedNumber::Tid, owner.tid.map(Into::into)))
                && bounds.has(BoundedNumber::Pid, owner.pid.map(Into::into))
        };
        let wanted = |owner: &OwnerKeys| {
            if is_wanted(owner) {
                of.wanted(capture, owner.source, bounds)
            } else {
                Wanted::NOTHING
            }
        };
        let wanted = known.owners.iter().map(wanted).collect();
        Choice { known, wanted, offset: catalog.offset() }
    }

    /// Whether frames of an owner are wanted at all.
    pub fn wants(&self, owner: usize) -> bool {
        self.wanted.get(owner).is_some_and(|wanted| wanted.kinds != 0)
    }

    fn each(&self, chunk: &ChunkAt) -> bool {
        self.wanted.get(chunk.owner as usize).is_some_and(|wanted| wanted.each)
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
        if !bounds.overlaps(BoundedNumber::Seqno, (seq(chunk.first_seq), seq(last))) {
            return false;
        }
        let drained = self.known.catalog.epoch(chunk.drained);
        let may_be = match self.drained(chunk) {
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

    /// Between which times the rows of a chunk are: when they were, or else when the listener had them.
    /// None: unknown.
    pub fn during(&self, chunk: &ChunkAt) -> Option<(i64, i64)> {
        match self.wanted.get(chunk.owner as usize)?.ts {
            Ts::At(at) => self.times(chunk, at),
            Ts::Null => self.drained(chunk),
            Ts::Other => None,
        }
    }

    /// Between which times the listener had the frames of a chunk; None: unknown.
    pub fn drained(&self, chunk: &ChunkAt) -> Option<(i64, i64)> {
        let catalog = &self.known.catalog;
        let by = catalog.epoch(chunk.drained_by.max(chunk.drained));
        catalog.epoch(chunk.drained).zip(by)
    }

    /// Between which times the frames of a chunk are; None: unknown.
    fn times(&self, chunk: &ChunkAt, at: Time) -> Option<(i64, i64)> {
        let CaptureFacts { catalog, owners } = self.known;
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
        let builders = self.columns.iter().map(|&column| {
            let words = self.of.dictionary(column);
            Builder::new(self.of.schema().field(column).data_type(), words.as_ref())
        });
        Box::new(ScanPart {
            builders: builders.collect(),
            of: self.of.clone(),
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
        let rows = |&chunk| (self.chunk(chunk).count - self.chunk(chunk).bad) as usize;
        Some(chunks.iter().map(rows).sum())
    }

    fn explain_text(&self) -> String {
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
        let asked: Vec<usize> = columns
            .iter()
            .map(|&column| self.columns.get(column).copied())
            .collect::<Option<_>>()?;
        let names = [CAPTURE, BUFFER, SEGMENT, RING, SEQNO];
        if !names.starts_with(&asked) {
            return None;
        }
        // What has no number is NULL, and nobody knows which of it belongs together.
        let numbered = |&(capture, index): &(u32, u32)| {
            let known = &self.known[capture as usize];
            let owner = known.owners.get(known.catalog.chunks[index as usize].owner as usize);
            owner.is_none_or(|owner| owner.ring.is_some())
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
            let owner = owner.map(|owner| {
                (known.catalog.sources[owner.info].source.buffer.clone(), owner.nonce, owner.ring)
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
    /// The chunks of a part, to be read in their order.
    pub fn chunks(&self, part: usize) -> ChunkReader {
        let range = self.parts[part]..self.parts[part + 1];
        ChunkReader::new(&self.set, &self.known, &self.chosen, range)
    }

    /// How many frames its chunks hold at most, whatever kinds these are; and beyond which number none is.
    pub fn frames(&self) -> (u64, u64) {
        let chunks = self.chosen.iter();
        let chunks = chunks.map(|&(capture, index)| {
            let chunk = &self.known[capture as usize].catalog.chunks[index as usize];
            (u64::from(chunk.count), chunk.first_seq.saturating_add(chunk.count.into()))
        });
        chunks.fold((0, 0), |(all, end), (count, own)| (all + count, end.max(own)))
    }

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
struct ScanPart<T> {
    of: Arc<T>,
    columns: Vec<usize>,
    schema: SchemaRef,
    chunks: ChunkReader,
    limit: usize,
    builders: Vec<Builder>,
}

impl<T: OfChunks> Iterator for ScanPart<T> {
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

impl<T: OfChunks> ScanPart<T> {
    fn batch(&mut self) -> Result<RecordBatch, TableError> {
        let mut rows = 0;
        while let Some(chunk) = self.chunks.next().filter(|_| rows < MIN_BATCH_ROWS.min(self.limit))
        {
            let full = rows + chunk.count as usize > MAX_BATCH_ROWS
                || self.builders.iter().any(|builder| builder.bytes() > MANY_BYTES);
            if rows > 0 && full {
                break;
            }
            let (of, columns, builders) = (&*self.of, &self.columns, &mut self.builders);
            let appended = self.chunks.read(|chunk| of.append(chunk, columns, builders))?;
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
