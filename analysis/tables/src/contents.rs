//! What captures hold, for readers of frames that make no tables.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use ppt_capture::frame_dsl::metric::{Metric, MetricShape};
use ppt_capture::{
    Account, Cause, ClockTable, Damage, End, FileHeader, SeriesPart, SourceInfo, Stamps,
};

use crate::catalog::{Catalog, ChunkAt};
use crate::error::TableError;
use crate::gap_times::Neighbours;
use crate::readings::Changes;
use crate::set::{CaptureSet, Opened};

/// What the heads of the chunks of one capture say.
#[derive(Debug)]
pub struct Contents {
    set: Arc<CaptureSet>,
    capture: usize,
    catalog: Arc<Catalog>,
}

/// A chunk of frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameChunk {
    /// Where it is, from the first byte of the capture.
    pub offset: u64,
    /// Bytes of it, as it is stored.
    pub len: u64,
    /// Its number in the capture.
    pub ordinal: u64,
    /// The checksum of its payload.
    pub crc: u32,
    /// Index of [`Contents::owners`].
    pub owner: usize,
    /// The number of its first frame in its ring.
    pub first_seq: u64,
    /// How many frames it has.
    pub count: u32,
    /// When its first frame was drained, CLOCK_MONOTONIC ns; 0: unknown.
    pub drained: u64,
    /// The least and the greatest time of its frames, ns since the epoch, as far as its head has
    /// them.
    pub times: Option<(i64, i64)>,
}

/// A ring, and the thread that owned it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RingOwner {
    /// Index of [`Contents::sources`].
    pub source: usize,
    /// The nonce of its segment.
    pub segment: u64,
    /// The ring in the segment.
    pub ring: u32,
    /// The thread; None: unknown.
    pub tid: Option<u32>,
    /// The process, by a number that is the same for all captures of the set.
    pub process: u32,
}

/// Frames that are not in the capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MissingFrames {
    /// Index of [`Contents::sources`].
    pub source: usize,
    /// The nonce of the segment.
    pub segment: u64,
    /// The ring in the segment.
    pub ring: u32,
    /// The thread, where it is known.
    pub tid: Option<u32>,
    /// The first number that is missing.
    pub first_seq: u64,
    /// How many.
    pub count: u64,
    /// Why.
    pub cause: Cause,
    /// When they were written, at the earliest and at the latest: ns since the epoch.
    pub times: (Option<i64>, Option<i64>),
}

/// What a reading found in a counter, in one row of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CounterReading {
    /// Index of [`Contents::sources`].
    pub source: usize,
    /// Index of the counters and histograms of the source.
    pub metric: usize,
    /// The nonce of the segment.
    pub segment: u64,
    /// The ring; None: the row that all threads share.
    pub ring: Option<u32>,
    /// When it was read, ns since the epoch.
    pub ts: Option<i64>,
    /// What was added since the session began.
    pub value: i64,
    /// What was added since the reading before.
    pub delta: i64,
}

impl CaptureSet {
    /// What each capture holds, by the heads of its chunks.
    pub fn contents(self: &Arc<CaptureSet>) -> Vec<Contents> {
        let all = self.captures().iter().enumerate();
        let contents = all.map(|(capture, opened)| Contents {
            set: self.clone(),
            capture,
            catalog: opened.catalog().clone(),
        });
        contents.collect()
    }
}

impl Contents {
    fn opened(&self) -> &Opened {
        &self.set.captures()[self.capture]
    }

    /// The capture, as it was named.
    pub fn path(&self) -> &Path {
        &self.opened().path
    }

    /// The first 16 hex digits of its id.
    pub fn id(&self) -> &str {
        &self.opened().id
    }

    /// Its bytes.
    pub fn file(&self) -> &Arc<File> {
        &self.opened().file
    }

    /// How many bytes of it are looked at.
    pub fn bytes(&self) -> u64 {
        self.opened().bytes
    }

    /// The header of the file, if it is not damaged.
    pub fn header(&self) -> Option<&FileHeader> {
        self.catalog.header.as_ref()
    }

    /// The name of its host.
    pub fn host(&self) -> &str {
        self.catalog.host()
    }

    /// Whether it has an end: it was closed, and does not grow.
    pub fn has_ended(&self) -> bool {
        self.catalog.end.is_some()
    }

    /// Its end, if it was closed.
    pub fn end(&self) -> Option<&End> {
        self.catalog.end.as_ref()
    }

    /// Its place in a series, if it is not the first file of one.
    pub fn part(&self) -> Option<&SeriesPart> {
        self.catalog.part.as_ref()
    }

    /// What was captured, lost and dropped.
    pub fn account(&self) -> &Account {
        &self.catalog.account
    }

    /// Its sources.
    pub fn sources(&self) -> &[SourceInfo] {
        &self.catalog.sources
    }

    /// Its clocks.
    pub fn clocks(&self) -> &ClockTable {
        &self.catalog.clocks
    }

    /// How far a time can be from the truth, ns.
    pub fn time_error(&self) -> i64 {
        self.opened().time_error()
    }

    /// Realtime − monotonic, ns.
    pub fn offset(&self) -> Option<i128> {
        self.catalog.offset()
    }

    /// ns since the epoch at a time of the listener's monotonic clock; 0 is none.
    pub fn epoch(&self, mono_ns: u64) -> Option<i64> {
        self.catalog.epoch(mono_ns)
    }

    /// Every frame that was published before this time, ns since the epoch, is in it, or in an earlier
    /// file of its series, or lost; None: nobody says so.
    pub fn complete(&self) -> Option<i64> {
        self.catalog.epoch(self.catalog.complete)
    }

    /// Converts the times of a chunk.
    pub fn stamps(&self, chunk: &FrameChunk) -> Stamps<'_> {
        let owner = &self.catalog.owners[chunk.owner];
        let mut sources = self.catalog.sources.iter();
        let info = sources.find(|info| info.id == owner.source);
        let namespace = info
            .map_or(ppt_capture::TimeNamespace::SAME, |info| info.source.process.time_namespace());
        Stamps::new(&self.catalog.clocks, chunk.drained, namespace)
    }

    /// The owners of its chunks.
    pub fn owners(&self) -> Vec<RingOwner> {
        let keys = self.set.owners(self.capture, &self.catalog);
        let owners = keys.iter().zip(&self.catalog.owners).map(|(keys, owner)| RingOwner {
            source: keys.info,
            segment: owner.nonce,
            ring: owner.ring,
            tid: (owner.tid != 0).then_some(owner.tid),
            process: keys.process.max(0) as u32,
        });
        owners.collect()
    }

    /// The number of the process of a source, the same for all captures of the set.
    pub fn process(&self, source: usize) -> u32 {
        let info = &self.catalog.sources[source];
        self.set.process(self.capture, info).max(0) as u32
    }

    /// Its chunks of frames, in the order of the file.
    pub fn chunks(&self) -> Vec<FrameChunk> {
        let neighbours = Neighbours::new(&self.catalog);
        let chunk = |at: &ChunkAt| FrameChunk {
            offset: at.offset,
            len: at.len.into(),
            ordinal: at.ordinal,
            crc: at.crc,
            owner: at.owner as usize,
            first_seq: at.first_seq,
            count: at.count,
            drained: at.drained,
            times: neighbours.bounds(at),
        };
        self.catalog.chunks.iter().map(chunk).collect()
    }

    /// What is missing in it, by its heads.
    pub fn missing(&self) -> Vec<MissingFrames> {
        let neighbours = Neighbours::new(&self.catalog);
        let missing = self.catalog.gaps.iter().filter_map(|at| {
            let gap = &at.gap;
            let source = self.catalog.sources.iter().position(|info| info.id == gap.source)?;
            Some(MissingFrames {
                source,
                segment: gap.nonce,
                ring: gap.ring,
                tid: neighbours.tid(gap),
                first_seq: gap.first_seq,
                count: gap.count,
                cause: gap.cause,
                times: neighbours.times(at),
            })
        });
        missing.collect()
    }

    /// What readings found in counters, in the order of the file.
    ///
    /// # Errors
    /// The capture cannot be read.
    pub fn counters(&self) -> Result<Vec<CounterReading>, TableError> {
        let mut changes = Changes::new(self.opened().readings()?);
        let mut counters = Vec::new();
        while let Some(changed) = changes.next(&self.catalog.sources) {
            let change = &changed.change;
            let metric: &Metric = &self.catalog.sources[change.info].metrics[change.metric];
            if metric.shape.is_histogram() {
                continue;
            }
            let cell = metric.cells.start;
            let value = changed.cells.get(&cell).copied().unwrap_or_default();
            // A count that does not fit becomes the largest number; a level may be negative.
            let told = |value: u64| match metric.shape {
                MetricShape::UpDownCounter => value as i64,
                _ => i64::try_from(value).unwrap_or(i64::MAX),
            };
            counters.push(CounterReading {
                source: change.info,
                metric: change.metric,
                segment: change.nonce,
                ring: change.ring,
                ts: self.catalog.epoch(change.mono_ns),
                value: told(value),
                delta: told(changed.delta(cell)),
            });
        }
        Ok(counters)
    }

    /// Notes damage that was found in a chunk.
    pub fn damage(&self, damage: Damage) {
        self.opened().damage(damage);
    }
}
