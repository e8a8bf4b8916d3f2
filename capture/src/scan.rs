//! Finds the chunks of a capture, even between foreign bytes, and the end of a truncated capture.

use std::io;

use crate::bytes::{get, u32_at};
use crate::chunk::{ChunkHeader, ChunkKind, FramesHead};
use crate::codec::Unpacker;
use crate::error::{CaptureError, Damage, DamageKind};
use crate::format::{self, ALIGN, MAX_HEADER, chunk, file};
use crate::header::{FileHeader, HeaderFault};
use crate::input::{Input, Stream};

/// Bytes read at a time.
const STEP: usize = 256 << 10;
/// Bytes read at a time if most of a capture is skipped: a header, and a little more.
const SPARSE_STEP: usize = 4 << 10;

/// Walks through a capture from chunk to chunk.
pub(crate) struct Scanner {
    input: Input,
    /// First half of the capture id. `None` until a chunk is found after a damaged file header.
    id: Option<[u8; 8]>,
    /// Bytes of the window that belong to the chunk returned last.
    taken: u64,
    /// The offset of the end of the last chunk, at the end of the input.
    stopped: Option<u64>,
    /// Whether only sources and clocks are loaded.
    survey: bool,
    unpacker: Unpacker,
}

/// Decides from their head whether frames are wanted.
pub(crate) type Choose<'a> = &'a dyn Fn(&FramesHead) -> bool;

/// The next part of the input.
pub(crate) enum ScanStep {
    /// A chunk whose checksums are right. Its header and payload are [`Scanner::chunk`].
    Loaded(u64, ChunkHeader),
    /// A chunk that is not wanted and was not read.
    Passed(u64, ChunkHeader),
    /// Frames that were rejected; only their head was read.
    PassedFrames(u64, ChunkHeader, FramesHead),
    /// Something else.
    Damage(Damage),
    /// The end. The last complete part ended here.
    Stop(u64),
}

/// The part of the input at the front of the window.
enum Front {
    Chunk(ChunkHeader),
    /// The input ends inside a header.
    CutOff,
    Foreign,
    Nothing,
}

/// The start of a range without chunks.
enum Lead {
    /// A chunk with this fault.
    Bad(DamageKind),
    /// A chunk that is longer than the rest of the input.
    CutOff,
    /// Not a chunk.
    Foreign,
}

impl Scanner {
    /// Reads the file header. `None` if it is damaged, but a chunk follows. A file ends after its first
    /// `limit` bytes.
    pub fn begin(
        stream: Stream,
        survey: bool,
        limit: u64,
    ) -> Result<(Scanner, Option<FileHeader>), CaptureError> {
        let mut input = Input::new(stream, SPARSE_STEP);
        input.set_limit(limit);
        let header = file_header(&mut input)?;
        let id = header.as_ref().map(|header| get(&header.capture_id, 0));
        input.set_step(if survey { SPARSE_STEP } else { STEP });
        let unpacker = Unpacker::default();
        Ok((Scanner { input, id, taken: 0, stopped: None, survey, unpacker }, header))
    }

    /// The bytes of the last loaded chunk: header, then payload, unpacked.
    pub fn chunk(&self, header: &ChunkHeader) -> (&[u8], &[u8]) {
        let len = header.header_len + header.stored_len as usize;
        let (head, stored) = self.input.window()[..len].split_at(header.header_len);
        (head, if header.is_coded() { self.unpacker.raw() } else { stored })
    }

    /// First half of the capture id, once it is known.
    pub fn id(&self) -> Option<[u8; 8]> {
        self.id
    }

    /// The offset at which the next part begins. At the end of the input, the length of the input.
    pub fn offset(&self) -> u64 {
        self.input.offset()
    }

    /// Moves back to where the last chunk of the input ended, if that has grown so far that another one may
    /// begin there. Returns whether that is so.
    pub fn go_on(&mut self, offset: u64) -> io::Result<bool> {
        let next = format::align(offset);
        if !self.input.can_seek() || self.input.file_len()? <= next {
            return Ok(false);
        }
        (self.stopped, self.taken) = (None, 0);
        self.input.rewind(next);
        Ok(true)
    }

    /// From here on reads no more than necessary, because the bytes after a chunk may be skipped.
    pub fn read_sparsely(&mut self) {
        self.input.set_step(SPARSE_STEP);
    }

    /// The next part. `ended` states whether the end chunk was read, after which nothing is
    /// truncated. Frames that `choose` rejects are passed if that avoids reading them.
    pub fn next(&mut self, ended: bool, choose: Option<Choose<'_>>) -> io::Result<ScanStep> {
        if let Some(offset) = self.stopped {
            return Ok(ScanStep::Stop(offset));
        }
        self.input.skip(std::mem::take(&mut self.taken))?;
        let offset = self.input.offset();
        match self.front()? {
            Front::Nothing => self.stop(offset),
            Front::CutOff => self.resync(offset, Lead::CutOff, ended),
            Front::Foreign => self.resync(offset, Lead::Foreign, ended),
            Front::Chunk(header) => self.take(offset, header, ended, choose),
        }
    }

    fn stop(&mut self, offset: u64) -> io::Result<ScanStep> {
        self.stopped = Some(offset);
        Ok(ScanStep::Stop(offset))
    }

    fn front(&mut self) -> io::Result<Front> {
        let window = self.input.fill(chunk::LEN)?;
        if window.is_empty() {
            return Ok(Front::Nothing);
        }
        if window.len() < chunk::LEN {
            return Ok(Front::CutOff);
        }
        if !ChunkHeader::begins(window, self.id) {
            return Ok(Front::Foreign);
        }
        let len = (u32_at(window, chunk::HEADER_LEN) as usize).clamp(chunk::LEN, MAX_HEADER);
        let window = self.input.fill(len)?;
        Ok(match ChunkHeader::decode(window, self.id) {
            Some(header) => Front::Chunk(header),
            None if window.len() < len => Front::CutOff,
            None => Front::Foreign,
        })
    }

    /// The chunk at the front of the window: passed or loaded.
    fn take(
        &mut self,
        offset: u64,
        header: ChunkHeader,
        ended: bool,
        choose: Option<Choose<'_>>,
    ) -> io::Result<ScanStep> {
        if let Err(kind) = header.check() {
            return self.resync(offset, Lead::Bad(kind), ended);
        }
        match (header.kind, choose) {
            (ChunkKind::Other(_), _) => {
                let len = (header.header_len as u64).saturating_add(header.stored_len);
                self.taken = len.checked_next_multiple_of(ALIGN as u64).unwrap_or(u64::MAX);
                return Ok(ScanStep::Passed(offset, header));
            }
            (ChunkKind::Source | ChunkKind::Clock | ChunkKind::Threads | ChunkKind::Modules, _) => {
            }
            (ChunkKind::Frames, Some(choose)) => {
                let head = FramesHead::decode(header.source, self.input.window());
                if head.check(header.raw_len).is_ok() && !choose(&head) && self.pass(&header)? {
                    return Ok(ScanStep::PassedFrames(offset, header, head));
                }
            }
            _ if self.survey && self.pass(&header)? => return Ok(ScanStep::Passed(offset, header)),
            _ => {}
        }
        self.load(offset, header, ended)
    }

    /// Moves to the next chunk, if the one at the front can be skipped by its length: in a file,
    /// and only if a chunk is found there. Otherwise bytes may be missing inside.
    fn pass(&mut self, header: &ChunkHeader) -> io::Result<bool> {
        if !self.input.can_seek() {
            return Ok(false);
        }
        let offset = self.input.offset();
        let len = format::align(header.header_len as u64 + header.stored_len);
        self.input.skip(len)?;
        let follows = |next: Front| match next {
            Front::Nothing => true,
            Front::Chunk(next) => header.ordinal.checked_add(1) == Some(next.ordinal),
            Front::CutOff | Front::Foreign => false,
        };
        let next = self.front()?;
        // Known only after reading behind it, because the file may have been truncated.
        let whole = self.input.offset() - offset == len;
        if whole && follows(next) {
            return Ok(true);
        }
        self.input.rewind(offset);
        Ok(false)
    }

    /// The chunk at the front of the window, with its payload.
    fn load(&mut self, offset: u64, header: ChunkHeader, ended: bool) -> io::Result<ScanStep> {
        // check() bounds both: no overflow, and the window grows only with the available bytes.
        let len = header.header_len + header.stored_len as usize;
        let window = self.input.fill(len)?;
        if window.len() < len {
            return self.resync(offset, Lead::CutOff, ended);
        }
        if crc32c::crc32c(&window[header.header_len..len]) != header.payload_crc {
            return self.resync(offset, Lead::Bad(DamageKind::Checksum), ended);
        }
        if header.is_coded() {
            let stored = &window[header.header_len..len];
            let unpacked = self.unpacker.unpack(header.codec, stored, header.raw_len);
            if let Err(kind) = unpacked {
                return self.resync(offset, Lead::Bad(kind), ended);
            }
        }
        self.id = Some(header.capture);
        self.taken = format::align(len as u64);
        Ok(ScanStep::Loaded(offset, header))
    }

    /// Moves to the next chunk, and classifies the bytes before it. It ignores the lengths of a
    /// damaged chunk, because the next chunk may lie inside them.
    fn resync(&mut self, offset: u64, lead: Lead, ended: bool) -> io::Result<ScanStep> {
        let mut zeros = true;
        let found = loop {
            let window = self.input.fill(ALIGN)?;
            zeros &= window.iter().take(ALIGN).all(|&byte| byte == 0);
            self.input.skip(ALIGN as u64)?;
            match self.front()? {
                Front::Chunk(_) => break true,
                Front::Nothing => break false,
                Front::CutOff | Front::Foreign => {}
            }
        };
        if !found {
            self.stopped = Some(offset);
        }
        let cut = !found && !ended;
        let bytes = self.input.offset() - offset;
        let kind = match lead {
            Lead::Bad(kind) => kind,
            Lead::CutOff if cut => return Ok(ScanStep::Stop(offset)),
            // Space that was never written, because power was lost.
            Lead::Foreign if cut && zeros => return Ok(ScanStep::Stop(offset)),
            Lead::CutOff | Lead::Foreign => DamageKind::NotAChunk { bytes },
        };
        Ok(ScanStep::Damage(Damage { offset, kind }))
    }
}

/// Reads the file header and moves the window after it. `None` if it is damaged but a chunk
/// follows, to which the window is moved.
fn file_header(input: &mut Input) -> Result<Option<FileHeader>, CaptureError> {
    let window = input.fill(file::LEN)?;
    if window.is_empty() {
        return Err(CaptureError::Empty);
    }
    let len = match window.get(file::HEADER_LEN..file::HEADER_LEN + 4) {
        Some(len) => (u32_at(len, 0) as usize).clamp(file::LEN, MAX_HEADER),
        None => file::LEN,
    };
    let begins = window.starts_with(&file::MAGIC_VALUE[..window.len().min(8)]);
    let fault = match FileHeader::decode(if begins { input.fill(len)? } else { window }) {
        Ok((header, len)) => {
            input.skip(len as u64)?;
            return Ok(Some(header));
        }
        Err(HeaderFault::Newer(found)) => return Err(CaptureError::Newer { found }),
        Err(fault) => fault,
    };
    let window = input.fill(MAX_HEADER)?;
    let chunk = (ALIGN..window.len())
        .step_by(ALIGN)
        .find(|&at| ChunkHeader::decode(&window[at..], None).is_some());
    match (chunk, fault) {
        (Some(at), _) => {
            input.skip(at as u64)?;
            Ok(None)
        }
        (None, HeaderFault::Checksum { version }) if version > format::VERSION => {
            Err(CaptureError::Newer { found: version })
        }
        (None, _) if begins => Err(CaptureError::Header),
        (None, _) => Err(CaptureError::NotACapture),
    }
}
