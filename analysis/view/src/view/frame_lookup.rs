//! Looks up frames: their names, fields, threads and places.

use ppt_capture::columns::frame_id;
use ppt_tables::FrameChunk;

use super::View;
use crate::cell::FramePlace;
use crate::chunk_reader::ChunkReader;
use crate::error::ViewError;
use crate::frame_fields::{FrameFields, FrameName, fields};
use crate::layout::Track;
use crate::row::RowId;

/// A frame in a chunk.
#[derive(Clone, Copy)]
struct ChunkFrame {
    /// The number of the chunk in the view.
    chunk: usize,
    /// The number of the frame in the chunk.
    frame: u32,
}

impl View {
    /// The name of a frame. None if the view has no frame at `place`.
    pub fn frame_name(&self, place: FramePlace) -> Option<FrameName> {
        let entry = self.layout.chunks.get(place.chunk as usize)?;
        if place.frame >= entry.chunk.count {
            return None;
        }
        let contents = &self.layout.captures[entry.capture];
        let owner = contents.owners()[entry.chunk.owner];
        Some(FrameName {
            capture: contents.id().to_owned(),
            buffer: contents.sources()[entry.source].source.buffer.clone(),
            segment: owner.segment,
            ring: owner.ring,
            seqno: entry.chunk.first_seq.saturating_add(place.frame.into()),
        })
    }

    /// The fields of a frame.
    ///
    /// # Errors
    /// The view does not have the frame, or its capture cannot be read.
    pub fn frame(&self, name: &FrameName) -> Result<FrameFields, ViewError> {
        let ChunkFrame { chunk, frame } = self.find(name).ok_or(ViewError::NoSuchFrame)?;
        let entry = &self.layout.chunks[chunk];
        let contents = &self.layout.captures[entry.capture];
        let info = &contents.sources()[entry.source];
        let writer = contents.owners()[entry.chunk.owner].tid;
        let threads = self.layout.other_threads(entry);
        let stamps = contents.stamps(&entry.chunk);
        let read = ChunkReader::new(&self.layout).frame(chunk, frame, |bytes| {
            let id = if info.schema.multi() { usize::from(frame_id(bytes)) } else { 0 };
            let kind = info.schema.frames.get(id)?;
            Some(FrameFields {
                name: name.clone(),
                frame: kind.name.clone(),
                tid: threads
                    .and_then(|threads| threads.of(bytes))
                    .map(i32::cast_unsigned)
                    .or(writer),
                pid: info.source.process.pid,
                host: contents.host().to_owned(),
                fields: fields(&info.schema, kind, bytes, &stamps, contents.offset()),
            })
        })?;
        read.flatten().ok_or(ViewError::NoSuchFrame)
    }

    /// The row of the thread that a frame is about. None if the view does not have the frame.
    pub fn thread_row(&self, name: &FrameName) -> Option<RowId> {
        let chunk = self.find(name)?.chunk;
        let has_chunk = |track: &Track| track.chunks.contains(&chunk);
        let thread = self.layout.tracks.iter().position(has_chunk)?;
        Some(RowId::Thread(thread as u32))
    }

    /// The numbers of a frame in this view. None if the view does not have the frame.
    pub fn frame_place(&self, name: &FrameName) -> Option<FramePlace> {
        let ChunkFrame { chunk, frame } = self.find(name)?;
        Some(FramePlace { chunk: chunk as u32, frame })
    }

    /// Finds a frame in the share of its thread.
    fn find(&self, name: &FrameName) -> Option<ChunkFrame> {
        let capture =
            self.layout.captures.iter().position(|capture| capture.id() == name.capture)?;
        let contents = &self.layout.captures[capture];
        let owners: Vec<bool> = contents
            .owners()
            .iter()
            .map(|owner| {
                (owner.segment, owner.ring) == (name.segment, name.ring)
                    && contents.sources()[owner.source].source.buffer == name.buffer
            })
            .collect();
        let in_chunk = |chunk: &FrameChunk| {
            let frame = name.seqno.checked_sub(chunk.first_seq)?;
            u32::try_from(frame).ok().filter(|&number| number < chunk.count)
        };
        let mut candidates = self.layout.chunks.iter().enumerate().filter_map(|(chunk, entry)| {
            let is_owner = entry.capture == capture && owners[entry.chunk.owner];
            let frame = in_chunk(&entry.chunk).filter(|_| is_owner)?;
            Some(ChunkFrame { chunk, frame })
        });
        let first = candidates.next()?;
        let Some(threads) = self.layout.other_threads(&self.layout.chunks[first.chunk]) else {
            return Some(first);
        };
        // The candidates are the shares of one chunk.
        let mut reader = ChunkReader::new(&self.layout);
        let mut shares = std::iter::once(first).chain(candidates);
        let found = shares.find(|&ChunkFrame { chunk, frame }| {
            let share = self.layout.chunks[chunk].share;
            let is_in_share = reader.frame(chunk, frame, |bytes| share.has(threads, bytes));
            matches!(is_in_share, Ok(Some(true)))
        });
        found.or(Some(first))
    }
}
