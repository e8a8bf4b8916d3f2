//! Reads the frames chunks of a file in any order, after a reader has found them.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use crate::bytes::u64_at;
use crate::chunk::{ChunkHeader, ChunkKind, FramesHead};
use crate::codec::Unpacker;
use crate::error::{Damage, DamageKind};
use crate::reader::numbered;

/// A capture whose chunks are read by their offsets. Several threads can read one file, each with
/// its own `ChunkFile`.
pub struct ChunkFile {
    file: Arc<File>,
    /// Bytes from `offset` on.
    buffer: Vec<u8>,
    filled: usize,
    offset: u64,
    unpacker: Unpacker,
}

/// The frames of one chunk.
#[derive(Debug, Clone, Copy)]
pub struct Payload<'a> {
    /// The head of the chunk.
    pub head: FramesHead,
    bytes: &'a [u8],
}

impl<'a> Payload<'a> {
    /// The bytes of all frames, `head.stride` each.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Whether every frame carries its own number.
    pub fn is_whole(&self) -> bool {
        numbered(&self.head, self.bytes).all(|(seq, frame)| u64_at(frame, 0) == seq)
    }

    /// The indices of the frames that carry their own number.
    pub fn good(&self) -> impl Iterator<Item = u32> + use<'a> {
        let frames = (0..).zip(numbered(&self.head, self.bytes));
        frames.filter(|(_, (seq, frame))| u64_at(frame, 0) == *seq).map(|(index, _)| index)
    }
}

impl ChunkFile {
    /// Reads chunks of `file`.
    pub fn new(file: Arc<File>) -> Self {
        let (buffer, unpacker) = (Vec::new(), Unpacker::default());
        ChunkFile { file, buffer, filled: 0, offset: 0, unpacker }
    }

    /// Reads the frames of the chunk at `offset`, which has `len` bytes. It reads up to `ahead`
    /// bytes at once, if that is more.
    ///
    /// # Errors
    /// The file cannot be read. The inner error is damage: the chunk is not, or no longer, the
    /// expected one.
    pub fn read(
        &mut self,
        offset: u64,
        len: u64,
        ahead: u64,
    ) -> io::Result<Result<Payload<'_>, Damage>> {
        let place = match self.place(offset, len, ahead)? {
            Some(place) => place,
            None => return Ok(Err(Damage { offset, kind: DamageKind::Length })),
        };
        let unpacker = &mut self.unpacker;
        let frames = frames(&self.buffer[place..][..len as usize], unpacker);
        Ok(frames.map_err(|kind| Damage { offset, kind }))
    }

    /// Returns the offset of the chunk in the buffer, or None if the file ends inside the chunk.
    fn place(&mut self, offset: u64, len: u64, ahead: u64) -> io::Result<Option<usize>> {
        let held = self.offset..=self.offset + self.filled as u64;
        let end = offset.checked_add(len).filter(|_| len <= isize::MAX as u64);
        let Some(end) = end else { return Ok(None) };
        if !held.contains(&offset) || !held.contains(&end) {
            // A length takes memory only if the file is that long.
            let most = self.file.metadata()?.len().saturating_sub(offset);
            let wanted = len.max(ahead).min(most) as usize;
            if self.buffer.len() < wanted {
                self.buffer.resize(wanted, 0);
            }
            (self.offset, self.filled) = (offset, 0);
            while self.filled < wanted {
                let room = &mut self.buffer[self.filled..wanted];
                match self.file.read_at(room, offset + self.filled as u64) {
                    Ok(0) => break,
                    Ok(read) => self.filled += read,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(error),
                }
            }
            if (self.filled as u64) < len {
                return Ok(None);
            }
        }
        Ok(Some((offset - self.offset) as usize))
    }
}

/// The content of a chunk of frames.
fn frames<'a>(chunk: &'a [u8], unpacker: &'a mut Unpacker) -> Result<Payload<'a>, DamageKind> {
    let header = ChunkHeader::decode(chunk, None).ok_or(DamageKind::Checksum)?;
    header.check()?;
    if header.kind != ChunkKind::Frames
        || header.header_len as u64 + header.stored_len != chunk.len() as u64
    {
        return Err(DamageKind::Length);
    }
    let (head, stored) = chunk.split_at(header.header_len);
    if crc32c::crc32c(stored) != header.payload_crc {
        return Err(DamageKind::Checksum);
    }
    let bytes = if header.is_coded() {
        unpacker.unpack(header.codec, stored, header.raw_len)?;
        unpacker.raw()
    } else {
        stored
    };
    let head = FramesHead::decode(header.source, head);
    head.check(bytes.len() as u64).map_err(DamageKind::Content)?;
    Ok(Payload { head, bytes })
}
