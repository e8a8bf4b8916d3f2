//! Writes a capture sequentially.

use std::io::{self, IoSlice, Write};

use ppt_clock::ClockReading;

use crate::cells::{CellRows, CellsHead};
use crate::chunk::{ChunkHeader, ChunkKind, Drops, FramesHead, Gap};
use crate::clock;
use crate::codec::Packed;
use crate::end::End;
use crate::format::index::entry;
use crate::format::{self, ALIGN, INDEX_EVERY, align, chunk};
use crate::header::FileHeader;
use crate::index::{self, IndexEntry};
use crate::masks::Flip;
use crate::modules::Modules;
use crate::series::SeriesPart;
use crate::source::Source;
use crate::thread_names::ThreadNames;
use crate::trigger::Trigger;

/// Writes a capture to `W`, which should not buffer. Each chunk takes one `write_vectored`, and
/// more only if that is a short write. So if the process is killed, at most the last chunk is
/// incomplete. Almost all payloads of at least [`ALIGNED_PAYLOAD_FROM`](crate::ALIGNED_PAYLOAD_FROM) bytes begin at multiples of
/// [`BLOCK`](crate::BLOCK).
///
/// The writer writes each source twice, not adjacently, before anything that refers to it: if one of
/// the
/// two is damaged, the other describes the frames.
///
/// After an error of `W`, the capture is valid up to its last complete chunk, and every later call
/// returns an error of the same kind without writing. A mistake of the caller (a stride of 7) is
/// `InvalidInput`: nothing is written, and the writer stays usable.
#[derive(Debug)]
pub struct CaptureWriter<W> {
    out: W,
    capture: [u8; 8],
    bytes: u64,
    ordinal: u64,
    entries: Vec<IndexEntry>,
    previous_index: u64,
    /// Sources that must be written once more, in order.
    owed: Vec<(u16, Vec<u8>)>,
    /// Whether the last chunk is a source.
    source_is_last: bool,
    /// See [`Self::set_complete`].
    complete: u64,
    failed: Option<io::ErrorKind>,
}

impl<W: Write> CaptureWriter<W> {
    /// Starts a capture by writing its file header.
    ///
    /// # Errors
    /// Writing fails.
    pub fn create(out: W, header: &FileHeader) -> io::Result<Self> {
        let mut capture = [0; 8];
        capture.copy_from_slice(&header.capture_id[..8]);
        let mut writer = CaptureWriter {
            out,
            capture,
            bytes: 0,
            ordinal: 0,
            entries: Vec::new(),
            previous_index: 0,
            owed: Vec::new(),
            source_is_last: false,
            complete: 0,
            failed: None,
        };
        writer.write([&header.encode(), &[], &[]])?;
        Ok(writer)
    }

    /// Bytes written so far.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Chunks written so far.
    pub fn chunks(&self) -> u64 {
        self.ordinal
    }

    /// Bytes of the source copies that are not written yet.
    pub fn owed(&self) -> u64 {
        let chunks = self.owed.iter().map(|(_, payload)| payload.len()).chain([0]);
        let bytes = |len: usize| align((chunk::LEN + len) as u64) + entry::LEN as u64;
        if self.owed.is_empty() { 0 } else { chunks.map(bytes).sum() }
    }

    /// Introduces source `id`, or states it again with more segments and the same schema.
    ///
    /// # Errors
    /// Writing fails, or an argument is invalid (`InvalidInput`).
    pub fn source(&mut self, id: u16, source: &Source) -> io::Result<()> {
        if id == format::NO_SOURCE {
            return Err(invalid("source 65,535 stands for none"));
        }
        let payload = source.encode().map_err(invalid)?;
        if self.owed() >= format::COPY_AFTER {
            self.copy_sources()?;
        }
        // A copy of the earlier version would revert it.
        self.owed.retain(|(owed, _)| *owed != id);
        self.state(id, &payload)?;
        self.owed.push((id, payload));
        Ok(())
    }

    fn state(&mut self, id: u16, payload: &[u8]) -> io::Result<()> {
        let entry = IndexEntry::plain(self.bytes, ChunkKind::Source, Some(id));
        self.chunk(ChunkKind::Source, Some(id), payload, entry, |_| ())
    }

    /// Writes the second copies of sources. A clock chunk, possibly without readings, separates the
    /// end of an original from the start of its copy.
    fn copy_sources(&mut self) -> io::Result<()> {
        let owed = std::mem::take(&mut self.owed);
        if self.source_is_last && !owed.is_empty() {
            self.clock(&[])?;
        }
        owed.iter().try_for_each(|(id, payload)| self.state(*id, payload))
    }

    /// Writes `head.count` frames of `head.stride` bytes, as in the ring.
    ///
    /// # Errors
    /// Writing fails, or an argument is invalid (`InvalidInput`).
    pub fn frames(&mut self, head: &FramesHead, payload: &[u8]) -> io::Result<()> {
        self.packed_frames(head, &Packed::raw(payload))
    }

    /// Writes frames that have been compressed.
    ///
    /// # Errors
    /// Writing fails, or an argument is invalid (`InvalidInput`).
    pub fn packed_frames(&mut self, head: &FramesHead, payload: &Packed<'_>) -> io::Result<()> {
        head.check(payload.raw_len as u64).map_err(invalid)?;
        self.copy_sources()?;
        let entry = IndexEntry::frames(self.bytes, head);
        self.packed(ChunkKind::Frames, Some(head.source), payload, entry, |bytes| {
            head.encode(bytes);
        })
    }

    /// States a run of missing frames that no `lost_before` states.
    ///
    /// # Errors
    /// Writing fails, or an argument is invalid (`InvalidInput`).
    pub fn gap(&mut self, gap: &Gap) -> io::Result<()> {
        gap.check().map_err(invalid)?;
        self.copy_sources()?;
        let entry = IndexEntry::gap(self.bytes, gap);
        self.chunk(ChunkKind::Gap, Some(gap.source), &[], entry, |bytes| gap.encode(bytes))
    }

    /// Every frame that was published before this time, CLOCK_MONOTONIC in ns, is in the capture by now,
    /// or in an earlier file of its series. The chunks of clocks say so from now on.
    pub fn set_complete(&mut self, mono_ns: u64) {
        self.complete = mono_ns;
    }

    /// Writes readings of clocks. The first ones should come before the first frames.
    ///
    /// # Errors
    /// Writing fails, or an argument is invalid (`InvalidInput`).
    pub fn clock(&mut self, readings: &[ClockReading]) -> io::Result<()> {
        let payload = clock::encode(readings, self.complete);
        let entry = IndexEntry::plain(self.bytes, ChunkKind::Clock, None);
        self.chunk(ChunkKind::Clock, None, &payload, entry, |_| ())
    }

    /// States the total of frames that a source has dropped since the start of the capture.
    ///
    /// # Errors
    /// Writing fails, or an argument is invalid (`InvalidInput`).
    pub fn drops(&mut self, drops: &Drops) -> io::Result<()> {
        self.copy_sources()?;
        let entry = IndexEntry::plain(self.bytes, ChunkKind::Drops, Some(drops.source));
        self.chunk(ChunkKind::Drops, Some(drops.source), &[], entry, |bytes| drops.encode(bytes))
    }

    /// States a reading of counters and histograms.
    ///
    /// # Errors
    /// Writing fails, or an argument is invalid (`InvalidInput`).
    pub fn cells(&mut self, head: &CellsHead, rows: &CellRows) -> io::Result<()> {
        self.copy_sources()?;
        let entry = IndexEntry::plain(self.bytes, ChunkKind::Cells, Some(head.source));
        self.chunk(ChunkKind::Cells, Some(head.source), rows.bytes(), entry, |bytes| {
            head.encode(bytes);
        })
    }

    /// States a change of the masks of a segment.
    ///
    /// # Errors
    /// Writing fails, or an argument is invalid (`InvalidInput`).
    pub fn masks(&mut self, flip: &Flip) -> io::Result<()> {
        self.copy_sources()?;
        let entry = IndexEntry::plain(self.bytes, ChunkKind::Masks, Some(flip.source));
        let payload = flip.payload();
        self.chunk(ChunkKind::Masks, Some(flip.source), &payload, entry, |bytes| flip.encode(bytes))
    }

    /// States the names of threads of a source's process.
    ///
    /// # Errors
    /// Writing fails, or an argument is invalid (`InvalidInput`).
    pub fn thread_names(&mut self, names: &ThreadNames) -> io::Result<()> {
        self.copy_sources()?;
        let entry = IndexEntry::plain(self.bytes, ChunkKind::Threads, Some(names.source));
        let payload = names.payload();
        self.chunk(ChunkKind::Threads, Some(names.source), &payload, entry, |bytes| {
            names.encode(bytes);
        })
    }

    /// States the code mappings of a source's process. Mappings that do not fit into a chunk are
    /// only counted: see [`Modules::fitting`].
    ///
    /// # Errors
    /// Writing fails, or an argument is invalid (`InvalidInput`).
    pub fn modules(&mut self, modules: &Modules) -> io::Result<()> {
        self.copy_sources()?;
        let entry = IndexEntry::plain(self.bytes, ChunkKind::Modules, Some(modules.source));
        let modules = modules.clone().fitting(usize::MAX);
        let payload = modules.payload();
        let source = Some(modules.source);
        self.chunk(ChunkKind::Modules, source, &payload, entry, |bytes| modules.encode(bytes))
    }

    /// States a trigger of the window that the capture is.
    ///
    /// # Errors
    /// Writing fails, or an argument is invalid (`InvalidInput`).
    pub fn trigger(&mut self, trigger: &Trigger) -> io::Result<()> {
        self.copy_sources()?;
        let entry = IndexEntry::plain(self.bytes, ChunkKind::Trigger, trigger.source);
        let payload = trigger.payload();
        self.chunk(ChunkKind::Trigger, trigger.source, &payload, entry, |bytes| {
            trigger.encode(bytes);
        })
    }

    /// States the position of this file in a series. It comes before the frames.
    ///
    /// # Errors
    /// Writing fails, or an argument is invalid (`InvalidInput`).
    pub fn series(&mut self, part: &SeriesPart) -> io::Result<()> {
        self.copy_sources()?;
        let entry = IndexEntry::plain(self.bytes, ChunkKind::Series, None);
        self.chunk(ChunkKind::Series, None, &part.encode(), entry, |_| ())
    }

    /// Writes the last index and the end, flushes, and returns the output.
    ///
    /// # Errors
    /// Writing fails, or an argument is invalid (`InvalidInput`).
    pub fn end(mut self, end: &End) -> io::Result<W> {
        self.finish(end)?;
        Ok(self.out)
    }

    /// Writes the last index and the end, and flushes. The caller must not write after that.
    ///
    /// # Errors
    /// Writing fails, or an argument is invalid (`InvalidInput`).
    pub fn finish(&mut self, end: &End) -> io::Result<()> {
        self.copy_sources()?;
        self.index()?;
        let payload = end.encode(self.bytes, self.previous_index);
        if payload.len() as u64 > format::MAX_PAYLOAD {
            return Err(invalid("the end takes more than 256 MiB"));
        }
        let entry = IndexEntry::plain(self.bytes, ChunkKind::End, None);
        self.chunk(ChunkKind::End, None, &payload, entry, |_| ())?;
        self.out.flush()
    }

    fn index(&mut self) -> io::Result<()> {
        let payload = index::encode(self.previous_index, &self.entries);
        let offset = self.bytes;
        self.entries.clear();
        let entry = IndexEntry::plain(offset, ChunkKind::Index, None);
        self.chunk(ChunkKind::Index, None, &payload, entry, |_| ())?;
        // An index is found through the next one, and not listed in it.
        self.entries.clear();
        self.previous_index = offset;
        Ok(())
    }

    fn chunk(
        &mut self,
        kind: ChunkKind,
        source: Option<u16>,
        payload: &[u8],
        entry: IndexEntry,
        fill: impl FnOnce(&mut [u8]),
    ) -> io::Result<()> {
        self.packed(kind, source, &Packed::raw(payload), entry, fill)
    }

    fn packed(
        &mut self,
        kind: ChunkKind,
        source: Option<u16>,
        payload: &Packed<'_>,
        entry: IndexEntry,
        fill: impl FnOnce(&mut [u8]),
    ) -> io::Result<()> {
        let mut header = ChunkHeader::new(kind, self.capture, source, self.ordinal, payload);
        if kind == ChunkKind::Frames && payload.stored.len() >= format::ALIGNED_PAYLOAD_FROM {
            // Up to the next block. If that is too near, the payload begins at its usual place.
            let block = format::BLOCK - (self.bytes % format::BLOCK as u64) as usize;
            header.header_len = header.header_len.max(block);
        }
        let (header, payload) = (header.encode(fill), payload.stored);
        let padding = payload.len().next_multiple_of(ALIGN) - payload.len();
        self.write([&header, payload, &[0; ALIGN][..padding]])?;
        self.ordinal += 1;
        self.source_is_last = kind == ChunkKind::Source;
        self.entries.push(entry);
        if self.entries.len() >= INDEX_EVERY && kind != ChunkKind::Index {
            self.index()
        } else {
            Ok(())
        }
    }

    fn write(&mut self, parts: [&[u8]; 3]) -> io::Result<()> {
        if let Some(kind) = self.failed {
            return Err(io::Error::new(kind, "an earlier write of this capture failed"));
        }
        let len: usize = parts.iter().map(|part| part.len()).sum();
        match write_all(&mut self.out, &mut parts.map(IoSlice::new)) {
            Ok(()) => {
                self.bytes += len as u64;
                Ok(())
            }
            Err(error) => {
                self.failed = Some(error.kind());
                Err(error)
            }
        }
    }
}

fn invalid(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, what)
}

/// `Write::write_all_vectored`, which is not stable.
fn write_all(out: &mut impl Write, mut parts: &mut [IoSlice<'_>]) -> io::Result<()> {
    // Removes leading empty slices, so that an empty list means that nothing is left to write.
    IoSlice::advance_slices(&mut parts, 0);
    while !parts.is_empty() {
        match out.write_vectored(parts) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => IoSlice::advance_slices(&mut parts, written),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
