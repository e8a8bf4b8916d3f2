//! A window as a capture of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::sync::Arc;

use ppt_capture::{
    CaptureWriter, CellRows, CellsHead, Codec, Drops, End, EndReason, FileHeader, Flip, FramesHead,
    Gap, Lost, MAX_SOURCES, Modules, Packer, RingEnd, Source, Stretch, ThreadNames, Trigger,
};

use super::store::{Arrival, Base, CellValues, CellsRead, SegmentPlace, TimedArrival, Weight};
use super::watch::Fired;
use super::windows::{Pending, Triggered};

/// A finished window with everything that its file needs.
#[derive(Debug)]
pub(crate) struct FinishedWindow {
    pub asked: Pending<Fired>,
    /// The available part of the window, and whether the rest is missing for lack of memory.
    pub held: Stretch,
    pub crowded: bool,
    pub base: Base,
    pub items: Vec<TimedArrival>,
    /// The feeds, with all segments that they have had.
    pub feeds: BTreeMap<usize, Arc<Source>>,
    /// The time at which the window was closed, ns of CLOCK_MONOTONIC.
    pub closed_ns: u64,
    /// The memory of the list of its items.
    pub _weight: Weight,
}

/// The content of a window's file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Content {
    /// Frames.
    pub frames: u64,
    /// Frames that were lost in that time, by cause.
    pub lost: Lost,
    /// Size in bytes.
    pub bytes: u64,
}

impl FinishedWindow {
    /// The file's header: the capture begins at the start of the window.
    pub fn header(&self, header: FileHeader) -> FileHeader {
        let ago = header.created_mono_ns.saturating_sub(self.held.from_ns);
        FileHeader {
            created_realtime_ns: header.created_realtime_ns.saturating_sub(ago),
            created_mono_ns: self.held.from_ns.min(header.created_mono_ns),
            ..header
        }
    }

    /// Writes the complete file.
    pub fn write(
        &self,
        out: impl Write,
        header: &FileHeader,
        codec: Option<Codec>,
    ) -> io::Result<Content> {
        let writer = CaptureWriter::create(out, &self.header(header.clone()))?;
        let sources = BTreeMap::new();
        let packer = Packer::new(codec);
        let mut file = WindowFile {
            window: self,
            writer,
            packer,
            sources,
            rings: BTreeMap::new(),
            dropped: self.base.dropped.clone(),
        };
        file.begin()?;
        for item in &self.items {
            file.entry(&item.entry)?;
        }
        file.end()
    }
}

/// The file of a window.
struct WindowFile<'a, W> {
    window: &'a FinishedWindow,
    writer: CaptureWriter<W>,
    packer: Packer,
    /// The number of each feed.
    sources: BTreeMap<usize, u16>,
    rings: BTreeMap<(SegmentPlace, u32), RingEnd>,
    /// Number of frames that each feed has dropped so far.
    dropped: BTreeMap<usize, ppt_capture::Dropped>,
}

impl<W: Write> WindowFile<'_, W> {
    fn begin(&mut self) -> io::Result<()> {
        for (number, (&feed, source)) in self.window.feeds.iter().take(MAX_SOURCES).enumerate() {
            self.writer.source(number as u16, source)?;
            self.sources.insert(feed, number as u16);
        }
        if let Some(readings) = &self.window.base.clocks {
            self.writer.clock(readings)?;
        }
        let FinishedWindow { asked, held, .. } = self.window;
        for Triggered { at, by: trigger, .. } in &asked.triggers {
            let source = trigger.feed.and_then(|feed| self.sources.get(&feed).copied());
            self.writer.trigger(&Trigger {
                source,
                mono_ns: *at,
                wanted: asked.wanted,
                held: *held,
                why: trigger.why,
                ring: trigger.ring.filter(|_| source.is_some()),
                seqno: trigger.seqno.filter(|_| source.is_some()),
                expression: trigger.expression.to_string(),
                note: trigger.note.clone(),
            })?;
        }
        if asked.more > 0 {
            self.writer.trigger(&Trigger::not_listed(asked.more, (asked.wanted, *held)))?;
        }
        for (place, rows) in &self.window.base.cells {
            let Some(&source) = self.sources.get(&place.feed) else { continue };
            let head = CellsHead {
                source,
                nonce: place.nonce,
                mono_ns: held.from_ns,
                is_base: true,
                ..CellsHead::default()
            };
            self.writer.cells(&head, &in_chunk(rows))?;
        }
        for (&feed, disabled) in &self.window.base.disabled {
            for flip in disabled.base() {
                self.masks(feed, flip)?;
            }
        }
        for (feed, names) in &self.window.base.names {
            let Some(&source) = self.sources.get(feed) else { continue };
            if let Some(names) = names.base(source, usize::MAX) {
                self.writer.thread_names(&names)?;
            }
        }
        for (feed, modules) in &self.window.base.modules {
            let Some(&source) = self.sources.get(feed) else { continue };
            self.writer.modules(&Modules { source, is_base: true, ..modules.clone() })?;
        }
        Ok(())
    }

    fn entry(&mut self, entry: &Arrival) -> io::Result<()> {
        match entry {
            Arrival::Clocks(readings) => self.writer.clock(readings),
            Arrival::Frames { place, frames, lost_before } => {
                let Some(&source) = self.sources.get(&place.feed) else { return Ok(()) };
                let chunk = &frames.chunk;
                let stamp = chunk.found.stamp();
                let head = FramesHead {
                    source,
                    nonce: place.nonce,
                    ring: chunk.ring,
                    tid: chunk.tid,
                    first_seq: chunk.first_seq,
                    count: chunk.count,
                    stride: place.stride,
                    lost_before: *lost_before,
                    drained_mono_ns: chunk.drained_ns,
                    drained_by_mono_ns: chunk.drained_by_ns,
                    t_min: stamp.t_min,
                    t_max: stamp.t_max,
                    frame_mask: stamp.frame_mask,
                };
                let packed = self.packer.pack_summed(chunk.bytes(), chunk.crc);
                self.writer.packed_frames(&head, &packed)?;
                let first_seq = chunk.first_seq - lost_before.total();
                let ring = self.ring(source, *place, chunk.ring, first_seq);
                ring.captured += u64::from(chunk.count);
                ring.lost += *lost_before;
                ring.next_seq = chunk.next_seq();
                Ok(())
            }
            Arrival::Lost { place, ring, first_seq, lost } => {
                let Some(&source) = self.sources.get(&place.feed) else { return Ok(()) };
                let mut next = *first_seq;
                for (cause, count) in lost.by_cause().into_iter().filter(|entry| entry.1 > 0) {
                    let nonce = place.nonce;
                    let gap = Gap { source, nonce, ring: *ring, first_seq: next, count, cause };
                    self.writer.gap(&gap)?;
                    next += count;
                }
                let ring = self.ring(source, *place, *ring, *first_seq);
                ring.lost += *lost;
                ring.next_seq = next;
                Ok(())
            }
            Arrival::Gap(feed, gap) => match self.sources.get(feed) {
                Some(&source) => self.writer.gap(&Gap { source, ..*gap }),
                None => Ok(()),
            },
            Arrival::Cells(read) => self.cells(read),
            Arrival::Masks(feed, flip) => self.masks(*feed, (**flip).clone()),
            Arrival::Threads(feed, changes) => match self.sources.get(feed) {
                Some(&source) if !changes.named.is_empty() => {
                    let names = changes.named.clone();
                    self.writer.thread_names(&ThreadNames { source, is_base: false, names })
                }
                _ => Ok(()),
            },
            Arrival::Modules(feed, modules) => match self.sources.get(feed) {
                Some(&source) => self.writer.modules(&Modules { source, ..modules.clone() }),
                None => Ok(()),
            },
            Arrival::Dropped(feed, dropped) => {
                self.dropped.insert(*feed, *dropped);
                Ok(())
            }
            Arrival::Nothing => Ok(()),
        }
    }

    fn masks(&mut self, feed: usize, flip: Flip) -> io::Result<()> {
        let Some(&source) = self.sources.get(&feed) else { return Ok(()) };
        self.writer.masks(&Flip { source, ..flip })
    }

    fn ring(
        &mut self,
        source: u16,
        place: SegmentPlace,
        ring: u32,
        first_seq: u64,
    ) -> &mut RingEnd {
        let nonce = place.nonce;
        self.rings.entry((place, ring)).or_insert(RingEnd {
            source,
            nonce,
            ring,
            first_seq,
            next_seq: first_seq,
            ..RingEnd::default()
        })
    }

    fn cells(&mut self, read: &CellsRead) -> io::Result<()> {
        let CellsRead { place, mono_ns, not_mapped, rows } = read;
        let Some(&source) = self.sources.get(&place.feed) else { return Ok(()) };
        let before = self.window.base.not_mapped.get(&place.feed).copied().unwrap_or_default();
        let mut chunk = CellRows::default();
        for row in rows {
            chunk.push(row.ring, row.tid, row.values.iter().copied());
        }
        let head = CellsHead {
            source,
            nonce: place.nonce,
            mono_ns: *mono_ns,
            not_mapped: not_mapped.saturating_sub(before),
            is_base: false,
        };
        self.writer.cells(&head, &chunk)
    }

    fn end(mut self) -> io::Result<Content> {
        let mut drops = Vec::new();
        for (feed, &source) in &self.sources {
            let now = self.dropped.get(feed).copied().unwrap_or_default();
            let before = self.window.base.dropped.get(feed).copied().unwrap_or_default();
            let dropped = now - before;
            if dropped.total() > 0 {
                self.writer.drops(&Drops { source, dropped, mono_ns: self.window.closed_ns })?;
            }
            drops.push((source, dropped));
        }
        let lost = self.rings.values().fold(Lost::default(), |mut sum, ring| {
            sum += ring.lost;
            sum
        });
        let frames = self.rings.values().map(|ring| ring.captured).sum();
        let ago = ppt_now::monotonic().saturating_sub(self.window.closed_ns);
        let end = End {
            reason: EndReason::Stopped,
            message: String::new(),
            rings: self.rings.into_values().collect(),
            drops,
            realtime_ns: ppt_now::realtime().saturating_sub(ago),
            mono_ns: self.window.closed_ns,
        };
        self.writer.finish(&end)?;
        Ok(Content { frames, lost, bytes: self.writer.bytes() })
    }
}

fn in_chunk(rows: &CellValues) -> CellRows {
    let mut chunk = CellRows::default();
    for (&ring, values) in rows {
        chunk.push(ring, 0, values.iter().map(|(&cell, &value)| (cell, value)));
    }
    chunk
}

impl FinishedWindow {
    /// The feeds of these items.
    pub fn feeds_of(items: &[TimedArrival]) -> BTreeSet<usize> {
        items.iter().filter_map(|item| item.entry.feed()).collect()
    }
}
