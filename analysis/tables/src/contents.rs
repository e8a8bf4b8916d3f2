//! The content of captures, for readers that process frames without tables.

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

/// The content of one capture, from the heads of its chunks.
#[derive(Debug)]
pub struct Contents {
    set: Arc<CaptureSet>,
    capture: usize,
    catalog: Arc<Catalog>,
}

/// A chunk of frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameChunk {
    /// Offset in the capture.
    pub offset: u64,
    /// Stored size, in bytes.
    pub len: u64,
    /// The number of the chunk in the capture.
    pub ordinal: u64,
    /// The checksum of its payload.
    pub crc: u32,
    /// Index of [`Contents::owners`].
    pub owner: usize,
    /// The number of its first frame in its ring.
    pub first_seq: u64,
    /// Number of frames.
    pub count: u32,
    /// Time at which its first frame was drained, CLOCK_MONOTONIC ns; 0: unknown.
    pub drained: u64,
    /// The earliest and the latest time of its frames, ns since the epoch; None if the head has no times.
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
    /// The thread; None if unknown.
    pub tid: Option<u32>,
    /// Number of the process in the set.
    pub process: u32,
}

/// A run of frames that are not in the capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MissingFrames {
    /// Index of [`Contents::sources`].
    pub source: usize,
    /// The nonce of the segment.
    pub segment: u64,
    /// The ring in the segment.
    pub ring: u32,
    /// The thread; None if unknown.
    pub tid: Option<u32>,
    /// The first number that is missing.
    pub first_seq: u64,
    /// Number of missing frames.
    pub count: u64,
    /// The cause.
    pub cause: Cause,
    /// Bounds of the times at which they were written, ns since the epoch.
    pub times: (Option<i64>, Option<i64>),
}

/// A reading of a counter in one row of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CounterReading {
    /// Index of [`Contents::sources`].
    pub source: usize,
    /// Index of the counters and histograms of the source.
    pub metric: usize,
    /// The nonce of the segment.
    pub segment: u64,
    /// The ring; None for the row that all threads share.
    pub ring: Option<u32>,
    /// Time of the reading, ns since the epoch.
    pub ts: Option<i64>,
    /// The sum of all additions since the session began.
    pub value: i64,
    /// The sum of all additions since the previous reading.
    pub delta: i64,
}

impl CaptureSet {
    /// The content of each capture, from the heads of its chunks.
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

    /// The path that the user gave.
    pub fn path(&self) -> &Path {
        &self.opened().path
    }

    /// The first 16 hex digits of its id.
    pub fn id(&self) -> &str {
        &self.opened().id
    }

    /// The file.
    pub fn file(&self) -> &Arc<File> {
        &self.opened().file
    }

    /// Number of bytes that are read.
    pub fn bytes(&self) -> u64 {
        self.opened().bytes
    }

    /// The file header; None if it is damaged.
    pub fn header(&self) -> Option<&FileHeader> {
        self.catalog.header.as_ref()
    }

    /// The name of its host.
    pub fn host(&self) -> &str {
        self.catalog.host()
    }

    /// Whether it has an end: it was closed, and no longer grows.
    pub fn has_ended(&self) -> bool {
        self.catalog.end.is_some()
    }

    /// The end chunk, if the capture was closed.
    pub fn end(&self) -> Option<&End> {
        self.catalog.end.as_ref()
    }

    /// The position in a series of files; None for the first file.
    pub fn part(&self) -> Option<&SeriesPart> {
        self.catalog.part.as_ref()
    }

    /// The counts of captured, lost and dropped frames.
    pub fn account(&self) -> &Account {
        &self.catalog.account
    }

    /// The sources of the capture.
    pub fn sources(&self) -> &[SourceInfo] {
        &self.catalog.sources
    }

    /// The clocks of the capture.
    pub fn clocks(&self) -> &ClockTable {
        &self.catalog.clocks
    }

    /// The largest error of a time, in ns.
    pub fn time_error(&self) -> i64 {
        self.opened().time_error()
    }

    /// Realtime − monotonic, ns.
    pub fn offset(&self) -> Option<i128> {
        self.catalog.offset()
    }

    /// Converts a time of the listener's monotonic clock to ns since the epoch; None for 0.
    pub fn epoch(&self, mono_ns: u64) -> Option<i64> {
        self.catalog.epoch(mono_ns)
    }

    /// The time before which no frame is outstanding, ns since the epoch: every earlier frame is in this
    /// capture or an earlier file of its series, or lost. None if unknown.
    pub fn complete(&self) -> Option<i64> {
        self.catalog.epoch(self.catalog.complete)
    }

    /// The conversion of a chunk's times.
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

    /// The number of a source's process in the set.
    pub fn process(&self, source: usize) -> u32 {
        let info = &self.catalog.sources[source];
        self.set.process(self.capture, info).max(0) as u32
    }

    /// The chunks of frames, in file order.
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

    /// The missing frames, from the heads of chunks.
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

    /// The readings of counters, in file order.
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
            // A count is at most `i64::MAX`; an up-down counter may be negative.
            let number = |value: u64| match metric.shape {
                MetricShape::UpDownCounter => value as i64,
                _ => i64::try_from(value).unwrap_or(i64::MAX),
            };
            counters.push(CounterReading {
                source: change.info,
                metric: change.metric,
                segment: change.nonce,
                ring: change.ring,
                ts: self.catalog.epoch(change.mono_ns),
                value: number(value),
                delta: number(changed.delta(cell)),
            });
        }
        Ok(counters)
    }

    /// Records damage that was found in a chunk.
    pub fn damage(&self, damage: Damage) {
        self.opened().damage(damage);
    }
}
