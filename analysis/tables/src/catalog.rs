//! The catalog of a capture: its content without the frames.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use ppt_capture::{
    Account, Capture, CaptureError, CaptureItem, CapturePlace, Cause, Chunk, ClockReading,
    ClockTable, Damage, End, FileHeader, Flip, FramesHead, Gap, ModuleTable, Modules, Passed,
    ProcessKey, SeriesPart, SourceInfo, ThreadNames, ThreadTable, Trigger,
};

/// Largest number of damaged places that are listed; all are counted.
const MAX_DAMAGED: usize = 1000;

/// The position and the head of a chunk of frames.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChunkAt {
    /// Offset in the file.
    pub offset: u64,
    /// Stored size, in bytes.
    pub len: u32,
    /// Index of [`Catalog::owners`].
    pub owner: u32,
    /// Number of its first frame.
    pub first_seq: u64,
    /// Number of frames.
    pub count: u32,
    /// Number of frames that do not carry their sequence number; 0 if only the head was read.
    pub bad: u32,
    /// As in [`FramesHead`], like the following four.
    pub drained: u64,
    pub drained_by: u64,
    pub t_min: u64,
    pub t_max: u64,
    pub mask: u64,
    /// Number of the chunk in the capture.
    pub ordinal: u64,
    /// Checksum of the payload.
    pub crc: u32,
}

/// The ring of a chunk's frames, and the thread that owned it then.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct ChunkOwner {
    pub source: u16,
    pub nonce: u64,
    pub ring: u32,
    /// 0: unknown.
    pub tid: u32,
}

/// A gap, and the time at which it was noticed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GapAt {
    pub gap: Gap,
    /// Time of the latest drain before the gap was recorded, CLOCK_MONOTONIC ns; 0: unknown.
    pub noticed: u64,
    /// For absent frames: since when they may have been written, from the previous capture.
    pub since: Option<Since>,
}

/// The time since which frames were written that follow those of a capture, CLOCK_MONOTONIC ns; 0: unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Since {
    /// The best estimate: the last drain of their ring.
    pub near: u64,
    /// A lower bound.
    pub bound: u64,
}

/// The content of a capture, without the frames.
#[derive(Debug, Default)]
pub(crate) struct Catalog {
    pub short_id: Option<[u8; 8]>,
    pub header: Option<FileHeader>,
    pub sources: Vec<SourceInfo>,
    pub clocks: ClockTable,
    pub clock_readings: Vec<ClockReading>,
    /// In the order of the file.
    pub chunks: Vec<ChunkAt>,
    /// Earlier chunks, which are not read. They bound the times of missing frames.
    pub left_out: Vec<ChunkAt>,
    pub owners: Vec<ChunkOwner>,
    pub gaps: Vec<GapAt>,
    /// Number of readings of counters and histograms.
    pub readings: usize,
    /// The triggers of a window of a flight recorder.
    pub triggers: Vec<Trigger>,
    /// The position in a series of files; None for the first file.
    pub part: Option<SeriesPart>,
    /// Frames and metrics that were enabled and disabled.
    pub flips: Vec<Flip>,
    /// The names of threads.
    pub threads: ThreadTable,
    /// The code that processes had mapped.
    pub modules: ModuleTable,
    pub account: Account,
    pub end: Option<End>,
    /// See [`ppt_capture::Finish::complete`].
    pub complete: u64,
    /// Offset at which the file was cut off, or is being written.
    pub cut: Option<u64>,
    /// Length of the file when its end was reached, in bytes.
    pub len: u64,
    pub damaged: Vec<Damage>,
    pub damages: u64,
    /// Every byte was read and checked.
    pub verified: bool,
}

impl Catalog {
    /// The catalog from the heads of chunks.
    pub fn by_heads(path: &Path) -> Result<Catalog, CaptureError> {
        let capture = Capture::open(path)?;
        Ok(CatalogReader::default().read(capture, Capture::read_heads)?)
    }

    /// The catalog from the heads of chunks in the first `bytes` bytes, as if the file ended there.
    pub fn of_beginning(file: &File, bytes: u64) -> Result<Catalog, CaptureError> {
        let capture = Capture::open_beginning(file.try_clone()?, bytes)?;
        Ok(CatalogReader::default().read(capture, Capture::read_heads)?)
    }

    /// Moves chunks of frames before the offset `from` to `left_out`.
    pub fn leave_out_before(&mut self, from: u64) {
        self.left_out.extend(self.chunks.extract_if(.., |chunk| chunk.offset < from));
    }

    /// The catalog from all of the first `len` bytes, which agrees with `ppt info`.
    pub fn by_all(file: &File, len: u64) -> Result<Catalog, CaptureError> {
        let capture =
            Capture::from_reader(FileRange { file: file.try_clone()?, offset: 0, end: len })?;
        let mut catalog = CatalogReader::default().read(capture, Capture::read)?;
        catalog.verified = true;
        Ok(catalog)
    }

    /// The position among other captures.
    pub fn place(&self) -> CapturePlace {
        CapturePlace {
            id: self.header.as_ref().map_or([0; 16], |header| header.capture_id),
            part: self.part,
            is_window: !self.triggers.is_empty(),
        }
    }

    /// The time since which frames were written that follow those of a ring in this capture.
    pub fn since(&self, nonce: u64, ring: u32) -> Since {
        let created = self.header.as_ref().map_or(0, |header| header.created_mono_ns);
        let is_of_ring = |chunk: &&ChunkAt| {
            let owner = &self.owners[chunk.owner as usize];
            (owner.nonce, owner.ring) == (nonce, ring) && chunk.drained != 0
        };
        let mut drains = self.chunks.iter().rev().filter(is_of_ring).map(|chunk| chunk.drained);
        let near = drains.next().unwrap_or(created);
        // Frames may have been written just before the last drain, and the next ones just after it.
        let bound = drains.find(|&drained| drained < near).unwrap_or(created);
        Since { near, bound }
    }

    /// Number of frames before the capture that no capture of its set has, in the gaps for which
    /// `is_wanted` is true.
    pub fn absent(&self, is_wanted: impl Fn(&Gap) -> bool) -> u64 {
        let gaps = self.gaps.iter().map(|at| &at.gap);
        let absent = gaps.filter(|gap| gap.cause == Cause::Absent && is_wanted(gap));
        absent.fold(0, |sum, gap| sum.saturating_add(gap.count))
    }

    /// The name of the host; empty if the file header is damaged.
    pub fn host(&self) -> &str {
        self.header.as_ref().map_or("", |header| &header.host)
    }

    /// Realtime − monotonic, ns: from the readings of clocks, or else from the file header.
    pub fn offset(&self) -> Option<i128> {
        let header = self.header.as_ref();
        let by_header = header.map(|header| {
            i128::from(header.created_realtime_ns) - i128::from(header.created_mono_ns)
        });
        self.clocks.epoch_offset().or(by_header)
    }

    /// Converts a time of the listener's monotonic clock to ns since the epoch; None for 0.
    pub fn epoch(&self, mono_ns: u64) -> Option<i64> {
        let mono_ns = (mono_ns != 0).then_some(mono_ns)?;
        i64::try_from(self.clocks.aligned(i128::from(mono_ns) + self.offset()?)).ok()
    }

    /// Time of the last drain, CLOCK_MONOTONIC ns.
    pub fn last_drain(&self) -> u64 {
        self.chunks.last().map_or(0, |chunk| chunk.drained)
    }
}

/// Reads a range of a file without moving the file's position, which other readers share.
struct FileRange {
    file: File,
    offset: u64,
    end: u64,
}

impl Read for FileRange {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let remaining = usize::try_from(self.end - self.offset).unwrap_or(usize::MAX);
        let room = buffer.len().min(remaining);
        let read =
            std::os::unix::fs::FileExt::read_at(&self.file, &mut buffer[..room], self.offset)?;
        self.offset += read as u64;
        Ok(read)
    }
}

#[derive(Default)]
struct CatalogReader {
    catalog: Catalog,
    owners: HashMap<ChunkOwner, u32>,
    /// Time of the latest drain.
    latest: u64,
    names: Vec<ThreadNames>,
    mapped: Vec<Modules>,
}

impl CatalogReader {
    fn read(
        mut self,
        mut capture: Capture,
        next: fn(&mut Capture) -> io::Result<Option<CaptureItem<'_>>>,
    ) -> io::Result<Catalog> {
        self.latest = capture.header().map_or(0, |header| header.created_mono_ns);
        while let Some(item) = next(&mut capture)? {
            match item {
                CaptureItem::Damage(damage) => {
                    self.catalog.damages += 1;
                    if self.catalog.damaged.len() < MAX_DAMAGED {
                        self.catalog.damaged.push(damage);
                    }
                }
                CaptureItem::Chunk(Chunk::Clock(readings)) => {
                    self.catalog.clocks.add(&readings);
                    self.catalog.clock_readings.extend(readings);
                }
                CaptureItem::Chunk(Chunk::Source(info)) => {
                    if let Some(hz) = info.source.tick_hz {
                        self.catalog.clocks.set_tick_hz(hz);
                    }
                }
                CaptureItem::Chunk(Chunk::Passed(passed)) => {
                    self.chunk(&passed, std::iter::empty());
                }
                CaptureItem::Chunk(Chunk::Frames(frames)) => {
                    self.chunk(&frames.passed(), frames.wrong());
                }
                CaptureItem::Chunk(Chunk::Gap(gap)) => self.gap(gap, self.latest),
                CaptureItem::Chunk(Chunk::Cells(_)) => self.catalog.readings += 1,
                CaptureItem::Chunk(Chunk::Trigger(trigger)) => self.catalog.triggers.push(trigger),
                CaptureItem::Chunk(Chunk::Series(part)) => self.catalog.part = Some(part),
                CaptureItem::Chunk(Chunk::Masks(flip)) => self.catalog.flips.push(flip),
                CaptureItem::Chunk(Chunk::Threads(names)) => self.names.push(names),
                CaptureItem::Chunk(Chunk::Modules(mapped)) => self.mapped.push(mapped),
                CaptureItem::Chunk(_) => {}
            }
        }
        let holes: Vec<Gap> = capture.account().holes().collect();
        holes.into_iter().for_each(|hole| self.gap(hole, 0));
        let processes: HashMap<u16, ProcessKey> =
            capture.sources().map(|info| (info.id, info.source.process.key())).collect();
        for names in &self.names {
            // The reader has checked that the source exists.
            let process = processes.get(&names.source).copied().unwrap_or_default();
            self.catalog.threads.add(process, names);
        }
        for mapped in &self.mapped {
            if let Some(info) = capture.sources().find(|info| info.id == mapped.source) {
                self.catalog.modules.add(&info.source.process, mapped);
            }
        }
        let finish = capture.finish();
        Ok(Catalog {
            short_id: capture.short_id(),
            header: capture.header().cloned(),
            sources: capture.sources().cloned().collect(),
            account: capture.account().clone(),
            end: finish.end.cloned(),
            complete: finish.complete,
            cut: finish.cut,
            len: finish.len,
            ..self.catalog
        })
    }

    fn chunk(&mut self, passed: &Passed, wrong: impl Iterator<Item = u64>) {
        let head = &passed.head;
        if head.drained_mono_ns != 0 {
            self.latest = head.drained_mono_ns;
        }
        if passed.loss_is_new {
            self.lost_before(head);
        }
        let mut bad = 0;
        let mut run: Option<Gap> = None;
        for seq in wrong {
            bad += 1;
            match &mut run {
                Some(gap) if gap.next_seq() == seq => gap.count += 1,
                _ => {
                    let done = run.replace(missing(head, seq, 1, Cause::Corrupt));
                    done.into_iter().for_each(|gap| self.gap(gap, self.latest));
                }
            }
        }
        run.into_iter().for_each(|gap| self.gap(gap, self.latest));
        let owner =
            ChunkOwner { source: head.source, nonce: head.nonce, ring: head.ring, tid: head.tid };
        let owners = &mut self.catalog.owners;
        let owner = *self.owners.entry(owner).or_insert_with(|| {
            owners.push(owner);
            owners.len() as u32 - 1
        });
        self.catalog.chunks.push(ChunkAt {
            offset: passed.offset,
            len: passed.len as u32, // a payload has at most 256 MiB
            owner,
            first_seq: head.first_seq,
            count: head.count,
            bad,
            drained: head.drained_mono_ns,
            drained_by: head.drained_by_mono_ns,
            t_min: head.t_min,
            t_max: head.t_max,
            mask: head.frame_mask,
            ordinal: passed.ordinal,
            crc: passed.payload_crc,
        });
    }

    fn lost_before(&mut self, head: &FramesHead) {
        let mut seq = head.first_seq.saturating_sub(head.lost_before.total());
        for (cause, count) in head.lost_before.by_cause().into_iter().filter(|(_, n)| *n > 0) {
            self.gap(missing(head, seq, count, cause), self.latest);
            seq += count;
        }
    }

    fn gap(&mut self, gap: Gap, noticed: u64) {
        self.catalog.gaps.push(GapAt { gap, noticed, since: None });
    }
}

fn missing(head: &FramesHead, first_seq: u64, count: u64, cause: Cause) -> Gap {
    Gap { source: head.source, nonce: head.nonce, ring: head.ring, first_seq, count, cause }
}
