//! Matching in memory, if compact endpoints fit. This is faster than sorting rows of columns.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use super::causes::Causes;
use super::compact::{Buckets, CompactIdentity, CompactKey, Endpoint, SpotCodec};
use super::endpoint::Endpoints;
use super::matching::{MatchedFrame, Matching};
use super::shown::MatchingTable;
use crate::chunk_scan::ChunkScan;
use crate::error::TableError;
use crate::table::{Batches, ROWS_PER_BATCH, Runner, Scan, TableRequest};

/// Endpoints take at most 1/`MEMORY_DIVISOR` of the memory of a query, whose other operators need memory,
/// too.
const MEMORY_DIVISOR: u64 = 2;

/// A scan of the results of matching; None if the endpoints of `scan` do not fit into memory, or times are not
/// exact.
pub(crate) fn matched_in_memory(
    causes: &Arc<Causes>,
    shown: MatchingTable,
    request: &TableRequest<'_>,
    schema: &SchemaRef,
    scan: &Arc<ChunkScan<Endpoints>>,
) -> Option<Arc<dyn Scan>> {
    let directory = &causes.directory;
    if !directory.clocks.are_exact() {
        return None;
    }
    let codec = SpotCodec::new(directory, scan.end_seq())?;
    let is_narrow = directory.types.iter().all(|hash_type| hash_type.width == size_of::<u64>());
    let endpoint_bytes =
        if is_narrow { size_of::<Endpoint<u64>>() } else { size_of::<Endpoint<[u64; 2]>>() };
    let endpoints = scan.max_frames().checked_mul(directory.max_endpoints_per_frame() as u64)?;
    let bytes = endpoints.checked_mul(endpoint_bytes as u64)?;
    if request.memory.is_some_and(|memory| bytes > memory as u64 / MEMORY_DIVISOR) {
        return None;
    }
    let request = MatchRequest {
        causes: causes.clone(),
        shown,
        columns: request.columns.to_vec(),
        schema: schema.clone(),
        scan: scan.clone(),
        codec,
        endpoints,
        parts: scan.parts(),
    };
    Some(if is_narrow {
        Arc::new(InMemory::<u64>::new(request))
    } else {
        Arc::new(InMemory::<[u64; 2]>::new(request))
    })
}

/// The input of matching, and the requested columns.
#[derive(Debug, Clone)]
struct MatchRequest {
    causes: Arc<Causes>,
    shown: MatchingTable,
    columns: Vec<usize>,
    schema: SchemaRef,
    scan: Arc<ChunkScan<Endpoints>>,
    codec: SpotCodec,
    /// Largest possible number of endpoints.
    endpoints: u64,
    parts: usize,
}

/// A scan of the results of matching.
#[derive(Debug)]
struct InMemory<I> {
    request: MatchRequest,
    read: Arc<Mutex<ReadEndpoints<I>>>,
}

/// The endpoints, and the parts that have not taken theirs yet.
#[derive(Debug)]
struct ReadEndpoints<I> {
    buckets: Option<Buckets<I>>,
    /// By part.
    waiting: Vec<bool>,
}

impl<I: CompactIdentity> InMemory<I> {
    fn new(request: MatchRequest) -> InMemory<I> {
        let read = ReadEndpoints { buckets: None, waiting: vec![false; request.parts] };
        InMemory { request, read: Arc::new(Mutex::new(read)) }
    }
}

impl<I: CompactIdentity + std::fmt::Debug> Scan for InMemory<I> {
    fn schema(&self) -> &SchemaRef {
        &self.request.schema
    }

    fn parts(&self) -> usize {
        self.request.parts
    }

    fn read(&self, part: usize) -> Batches {
        let MatchRequest { causes, shown, columns, schema, .. } = &self.request;
        let matching = Matching::new(causes.clone(), *shown, columns.clone(), schema.clone());
        Box::new(Matched {
            request: self.request.clone(),
            read: self.read.clone(),
            part,
            bucket: part,
            bucket_count: None,
            sorted: Vec::new(),
            next: 0,
            key: None,
            matching: Some(matching),
            ready: VecDeque::new(),
        })
    }

    fn rows(&self, _: Option<usize>) -> Option<usize> {
        None
    }

    fn explain_text(&self) -> String {
        let table = self.request.shown.table();
        format!(
            "{table}: what leaves and enters points, by hash type and value, in memory; {}",
            self.request.scan.explain_text()
        )
    }
}

/// Reads a part: matches its buckets one after the other.
struct Matched<I> {
    request: MatchRequest,
    read: Arc<Mutex<ReadEndpoints<I>>>,
    part: usize,
    /// The next bucket.
    bucket: usize,
    /// Number of buckets, once they were read.
    bucket_count: Option<usize>,
    sorted: Vec<Endpoint<I>>,
    /// Index of the next endpoint in `sorted`.
    next: usize,
    /// The current key.
    key: Option<CompactKey<I>>,
    /// None at the end.
    matching: Option<Matching>,
    ready: VecDeque<RecordBatch>,
}

impl<I: CompactIdentity> Matched<I> {
    /// Takes and sorts its next bucket; false: no bucket is left.
    fn next_bucket(&mut self) -> Result<bool, TableError> {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let MatchRequest { scan, causes, codec, endpoints, parts, .. } = &self.request;
        if self.bucket_count.is_none() {
            // The first part reads the endpoints of all parts. If a part is read again, it reads them again.
            if !read.waiting[self.part] {
                let bits = Buckets::<I>::bits(*endpoints);
                read.buckets = Some(Buckets::read(scan, &causes.directory, *codec, bits)?);
                read.waiting.fill(true);
            }
            read.waiting[self.part] = false;
            self.bucket_count = read.buckets.as_ref().map(Buckets::len);
        }
        if self.bucket_count.is_none_or(|count| self.bucket >= count) {
            return Ok(false);
        }
        let Some(buckets) = &mut read.buckets else { return Ok(false) };
        let blocks = buckets.take(self.bucket);
        drop(read);
        blocks.sort_into(*codec, &mut self.sorted);
        (self.bucket, self.next) = (self.bucket + parts, 0);
        Ok(true)
    }

    /// Matches the next endpoints of the bucket.
    fn step(&mut self) -> Result<(), TableError> {
        let Some(matching) = &mut self.matching else { return Ok(()) };
        let codec = self.request.codec;
        let end = self.sorted.len().min(self.next + ROWS_PER_BATCH);
        for endpoint in &self.sorted[self.next..end] {
            let spot = endpoint.spot(codec);
            let key = endpoint.key(&spot);
            if self.key != Some(key) {
                matching.next_key(Some(key.bytes()))?;
                self.key = Some(key);
            }
            let when = endpoint.when(&spot);
            let (owner, seqno) = (spot.owner as i32, spot.seqno as i64);
            let frame = MatchedFrame { owner, seqno, ts: when, drained: None };
            matching.take(frame, spot.point, spot.direction, when)?;
        }
        self.next = end;
        self.ready.extend(matching.flush()?);
        Ok(())
    }

    fn batch(&mut self) -> Result<Option<RecordBatch>, TableError> {
        loop {
            if let Some(batch) = self.ready.pop_front() {
                return Ok(Some(batch));
            }
            if self.next < self.sorted.len() {
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
            self.next = 0;
        }
        batch.transpose()
    }
}
