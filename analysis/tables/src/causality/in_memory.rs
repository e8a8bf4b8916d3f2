//! Matching in memory: where all that enters and leaves points fits there in few bytes, nobody sorts rows
//! of columns.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use super::causes::Causes;
use super::compact::{Buckets, CompactIdentity, CompactKey, Endpoint, SpotNumbers};
use super::endpoint::Endpoints;
use super::matching::{MatchedFrame, Matching, ROWS};
use super::shown::Shows;
use crate::error::TableError;
use crate::of_chunks::ChunkScan;
use crate::table::{Batches, Runner, Scan, TableRequest};

/// Endpoints take at most this fraction of the memory of a query: what is beside them and what the rest of the
/// query does needs memory, too.
const SHARE: u64 = 2;

/// Reads what comes of matching, if all that `scan` finds fits into memory, and if its columns hold all that is
/// shown.
pub(crate) fn matched_in_memory(
    causes: &Arc<Causes>,
    shows: Shows,
    request: &TableRequest<'_>,
    schema: &SchemaRef,
    scan: &Arc<ChunkScan<Endpoints>>,
) -> Option<Arc<dyn Scan>> {
    let known = &causes.known;
    if !known.clocks.are_exact() {
        return None;
    }
    let (frames, end) = scan.frames();
    let places = SpotNumbers::new(known, end)?;
    let is_narrow = known.types.iter().all(|of| of.width == size_of::<u64>());
    let each = if is_narrow { size_of::<Endpoint<u64>>() } else { size_of::<Endpoint<[u64; 2]>>() };
    let endpoints = frames.checked_mul(known.most_ways() as u64)?;
    let bytes = endpoints.checked_mul(each as u64)?;
    if request.memory.is_some_and(|memory| bytes > memory as u64 / SHARE) {
        return None;
    }
    let of = MatchRequest {
        causes: causes.clone(),
        shows,
        columns: request.columns.to_vec(),
        schema: schema.clone(),
        scan: scan.clone(),
        places,
        endpoints,
        parts: scan.parts(),
    };
    Some(if is_narrow {
        Arc::new(InMemory::<u64>::new(of))
    } else {
        Arc::new(InMemory::<[u64; 2]>::new(of))
    })
}

/// What is matched, and what is shown of it.
#[derive(Debug, Clone)]
struct MatchRequest {
    causes: Arc<Causes>,
    shows: Shows,
    columns: Vec<usize>,
    schema: SchemaRef,
    scan: Arc<ChunkScan<Endpoints>>,
    places: SpotNumbers,
    /// How many there are at most.
    endpoints: u64,
    parts: usize,
}

/// A scan of what comes of matching.
#[derive(Debug)]
struct InMemory<I> {
    of: MatchRequest,
    read: Arc<Mutex<Read<I>>>,
}

/// What is read, and by which parts it is not taken yet.
#[derive(Debug)]
struct Read<I> {
    buckets: Option<Buckets<I>>,
    waiting: Vec<bool>,
}

impl<I: CompactIdentity> InMemory<I> {
    fn new(of: MatchRequest) -> InMemory<I> {
        let read = Read { buckets: None, waiting: vec![false; of.parts] };
        InMemory { of, read: Arc::new(Mutex::new(read)) }
    }
}

impl<I: CompactIdentity + std::fmt::Debug> Scan for InMemory<I> {
    fn schema(&self) -> &SchemaRef {
        &self.of.schema
    }

    fn parts(&self) -> usize {
        self.of.parts
    }

    fn read(&self, part: usize) -> Batches {
        let MatchRequest { causes, shows, columns, schema, .. } = &self.of;
        let matching = Matching::new(causes.clone(), *shows, columns.clone(), schema.clone());
        Box::new(Matched {
            of: self.of.clone(),
            read: self.read.clone(),
            part,
            bucket: part,
            buckets: None,
            sorted: Vec::new(),
            at: 0,
            key: None,
            matching: Some(matching),
            ready: VecDeque::new(),
        })
    }

    fn rows(&self, _: Option<usize>) -> Option<usize> {
        None
    }

    fn explain_text(&self) -> String {
        let table = self.of.shows.table();
        format!(
            "{table}: what leaves and enters points, by hash type and value, in memory; {}",
            self.of.scan.explain_text()
        )
    }
}

/// A part on its way: each bucket in turn that is its own.
struct Matched<I> {
    of: MatchRequest,
    read: Arc<Mutex<Read<I>>>,
    part: usize,
    /// The bucket that is next.
    bucket: usize,
    /// How many there are, once they are read.
    buckets: Option<usize>,
    sorted: Vec<Endpoint<I>>,
    /// The next one of `sorted`.
    at: usize,
    /// The key that it has come to.
    key: Option<CompactKey<I>>,
    /// None at the end.
    matching: Option<Matching>,
    ready: VecDeque<RecordBatch>,
}

impl<I: CompactIdentity> Matched<I> {
    /// Takes its next bucket; false: it has had all.
    fn next_bucket(&mut self) -> Result<bool, TableError> {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let MatchRequest { scan, causes, places, endpoints, parts, .. } = &self.of;
        if self.buckets.is_none() {
            // The first part reads for all; a part that comes a second time reads again.
            if !read.waiting[self.part] {
                let bits = Buckets::<I>::bits(*endpoints);
                read.buckets = Some(Buckets::read(scan, &causes.known, *places, bits)?);
                read.waiting.fill(true);
            }
            read.waiting[self.part] = false;
            self.buckets = read.buckets.as_ref().map(Buckets::len);
        }
        if self.buckets.is_none_or(|buckets| self.bucket >= buckets) {
            return Ok(false);
        }
        let Some(buckets) = &mut read.buckets else { return Ok(false) };
        let blocks = buckets.take(self.bucket);
        drop(read);
        blocks.sorted(*places, &mut self.sorted);
        (self.bucket, self.at) = (self.bucket + parts, 0);
        Ok(true)
    }

    /// Matches the next rows of its bucket.
    fn step(&mut self) -> Result<(), TableError> {
        let Some(matching) = &mut self.matching else { return Ok(()) };
        let places = self.of.places;
        let end = self.sorted.len().min(self.at + ROWS);
        for endpoint in &self.sorted[self.at..end] {
            let spot = endpoint.spot(places);
            let key = endpoint.key(&spot);
            if self.key != Some(key) {
                matching.turn(Some(key.bytes()))?;
                self.key = Some(key);
            }
            let when = endpoint.when(&spot);
            let (owner, seqno) = (spot.owner as i32, spot.seqno as i64);
            let frame = MatchedFrame { owner, seqno, ts: when, drained: None };
            matching.take(frame, spot.point, spot.way, when)?;
        }
        self.at = end;
        self.ready.extend(matching.flush()?);
        Ok(())
    }

    fn batch(&mut self) -> Result<Option<RecordBatch>, TableError> {
        loop {
            if let Some(batch) = self.ready.pop_front() {
                return Ok(Some(batch));
            }
            if self.at < self.sorted.len() {
                self.step()?;
            } else if self.matching.is_none() {
                return Ok(None);
            } else if !self.next_bucket()? {
                self.sorted = Vec::new();
                let rest = self.matching.take().map(|mut matching| matching.finish());
                self.ready.extend(rest.transpose()?.unwrap_or_default());
            }
        }
    }
}

impl<I: CompactIdentity> Iterator for Matched<I> {
    type Item = Result<RecordBatch, TableError>;

    fn next(&mut self) -> Option<Self::Item> {
        let batch = self.batch();
        if batch.is_err() {
            self.matching = None;
            self.sorted = Vec::new();
            self.at = 0;
        }
        batch.transpose()
    }
}
