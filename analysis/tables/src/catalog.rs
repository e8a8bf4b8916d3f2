//! What a capture holds, without its frames.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use ppt_capture::{
    Account, Capture, CaptureError, CaptureItem, CapturePlace, Cause, Chunk, ClockReading,
    ClockTable, Damage, End, FileHeader, Flip, FramesHead, Gap, ModuleTable, Modules, Passed,
    ProcessKey, SeriesPart, SourceInfo, ThreadNames, ThreadTable, Trigger,
};

/// Places of damage that are listed; all are counted.
const MAX_DAMAGED: usize = 1000;

/// A chunk of frames.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChunkAt {
    /// Where it is, from the first byte.
    pub offset: u64,
    /// Bytes of it, as it is stored.
    pub len: u32,
    /// Index of [`Catalog::owners`].
    pub owner: u32,
    /// Its frames: first number, how many, and how many of them do not carry their number (0 where
    /// only its head was read).
    pub first_seq: u64,
    pub count: u32,
    pub bad: u32,
    /// As in [`FramesHead`].
    pub drained: u64,
    pub drained_by: u64,
    pub t_min: u64,
    pub t_max: u64,
    pub mask: u64,
    /// Its number in the capture, and the checksum of what it holds.
    pub ordinal: u64,
    pub crc: u32,
}

/// Whose frames a chunk holds: a ring, and the thread that owned it then.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct ChunkOwner {
    pub source: u16,
    pub nonce: u64,
    pub ring: u32,
    /// 0: unknown.
    pub tid: u32,
}

/// A gap, and when it was noticed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GapAt {
    pub gap: Gap,
    /// CLOCK_MONOTONIC of the latest drain when it was stated; 0: unknown.
    pub noticed: u64,
    /// Of what is absent: what the capture before says of when it was written.
    pub since: Option<Since>,
}

/// From when on numbers were written that follow those of a capture, CLOCK_MONOTONIC ns; 0: unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Since {
    /// As near as that is known: the last drain of their ring.
    pub near: u64,
    /// Certainly not before this.
    pub bound: u64,
}

/// What a capture holds, without its frames.
#[derive(Debug, Default)]
pub(crate) struct Catalog {
    pub short_id: Option<[u8; 8]>,
    pub header: Option<FileHeader>,
    pub sources: Vec<SourceInfo>,
    pub clocks: ClockTable,
    pub clock_readings: Vec<ClockReading>,
    /// In the order of the file.
    pub chunks: Vec<ChunkAt>,
    /// Those that are left out, which come before: they tell when frames beside them are missing.
    pub left_out: Vec<ChunkAt>,
    pub owners: Vec<ChunkOwner>,
    pub gaps: Vec<GapAt>,
    /// How many readings of counters and histograms there are.
    pub readings: usize,
    /// Why it was written, if it is a window of a flight recorder.
    pub triggers: Vec<Trigger>,
    /// Its place in a series, if it is not the first file of one.
    pub part: Option<SeriesPart>,
    /// What was enabled and disabled.
    pub flips: Vec<Flip>,
    /// The names of threads.
    pub threads: ThreadTable,
    /// What processes had mapped as code.
    pub modules: ModuleTable,
    pub account: Account,
    pub end: Option<End>,
    /// See [`ppt_capture::Finish::complete`].
    pub complete: u64,
    /// Where it was cut off, or is still being written.
    pub cut: Option<u64>,
    /// Bytes that the file had when its end was reached.
    pub len: u64,
    pub damaged: Vec<Damage>,
    pub damages: u64,
    /// Every byte was read and checked.
    pub verified: bool,
}

impl Catalog {
    /// By the heads of chunks alone.
    pub fn by_heads(path: &Path) -> Result<Catalog, CaptureError> {
        let capture = Capture::open(path)?;
        Ok(CatalogReader::default().read(capture, Capture::read_heads)?)
    }

    /// The same of the first `bytes` bytes, as if the file ended there.
    pub fn of_beginning(file: &File, bytes: u64) -> Result<Catalog, CaptureError> {
        let capture = Capture::open_beginning(file.try_clone()?, bytes)?;
        Ok(CatalogReader::default().read(capture, Capture::read_heads)?)
    }

    /// Leaves out chunks of frames that begin before the byte `from`.
    pub fn leave_out_before(&mut self, from: u64) {
        self.left_out.extend(self.chunks.extract_if(.., |chunk| chunk.offset < from));
    }

    /// By reading the first `len` bytes as a whole: what `ppt info` says of them.
    pub fn by_all(file: &File, len: u64) -> Result<Catalog, CaptureError> {
        let capture =
            Capture::from_reader(FileRange { file: file.try_clone()?, offset: 0, end: len })?;
        let mut catalog = CatalogReader::default().read(capture, Capture::read)?;
        catalog.verified = true;
        Ok(catalog)
    }

    /// Its place among other captures.
    pub fn place(&self) -> CapturePlace {
        CapturePlace {
            id: self.header.as_ref().map_or([0; 16], |header| header.capture_id),
            part: self.part,
            is_window: !self.triggers.is_empty(),
        }
    }

    /// When numbers were written that follow those of a ring in this capture.
    pub fn since(&self, nonce: u64, ring: u32) -> Since {
        let created = self.header.as_ref().map_or(0, |header| header.created_mono_ns);
        let is_of_ring = |chunk: &&ChunkAt| {
            let owner = &self.owners[chunk.owner as usize];
            (owner.nonce, owner.ring) == (nonce, ring) && chunk.drained != 0
        };
        let mut drains = self.chunks.iter().rev().filter(is_of_ring).map(|chunk| chunk.drained);
        let near = drains.next().unwrap_or(created);
        // What the last drain found may have come just before it, and what it did not find just after.
        let bound = drains.find(|&drained| drained < near).unwrap_or(created);
        Since { near, bound }
    }

    /// The numbers before the capture that no capture of its set holds: how many there are of the rings
    /// that `is_wanted` wants.
    pub fn absent(&self, is_wanted: impl Fn(&Gap) -> bool) -> u64 {
        let gaps = self.gaps.iter().map(|at| &at.gap);
        let absent = gaps.filter(|gap| gap.cause == Cause::Absent && is_wanted(gap));
        absent.fold(0, |sum, gap| sum.saturating_add(gap.count))
    }

    /// The name of the host; empty where the file header is damaged.
    pub fn host(&self) -> &str {
        self.header.as_ref().map_or("", |header| &header.host)
    }

    /// Realtime − monotonic, ns: as the clocks were read, else as the file header has them.
    pub fn offset(&self) -> Option<i128> {
        let header = self.header.as_ref();
        let by_header = header.map(|header| {
            i128::from(header.created_realtime_ns) - i128::from(header.created_mono_ns)
        });
        self.clocks.epoch_offset().or(by_header)
    }

    /// ns since the epoch at a time of the listener's monotonic clock; 0 is none.
    pub fn epoch(&self, mono_ns: u64) -> Option<i64> {
        let known = (mono_ns != 0).then_some(mono_ns)?;
        i64::try_from(self.clocks.aligned(i128::from(known) + self.offset()?)).ok()
    }

    /// When the last frames were drained.
    pub fn last_drain(&self) -> u64 {
        self.chunks.last().map_or(0, |chunk| chunk.drained)
    }
}

/// A part of a file, without moving its position: others read it, too.
struct FileRange {
    file: File,
    offset: u64,
    end: u64,
}

impl Read for FileRange {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = usize::try_from(self.end - self.offset).unwrap_or(usize::MAX);
        let room = buffer.len().min(most);
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
            // The reader refuses names of a source that it does not know.
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
