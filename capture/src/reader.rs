//! Reads a capture: finished, truncated, damaged or still being written.
//!
//! # How a chunk is treated
//! * **Its header or content is damaged**: reported as [`Damage`]. Reading continues at the next
//!   chunk of this capture.
//! * **It was read before** (same number in the capture): reported, skipped.
//! * **It comes late** (a number that was skipped): reported, used. Frames that come before their
//!   source are skipped.
//! * **It states frames that another chunk stated**: reported, skipped. So no frame is ever
//!   returned twice.
//! * **Its kind is of a later version**: skipped by its length.
//! * **The input ends inside it**: the capture was truncated there. That is not damage.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use ppt_clock::ClockReading;

use crate::account::Account;
use crate::bytes::u64_at;
use crate::cells::Cells;
use crate::chunk::{ChunkHeader, ChunkKind, Drops, FramesHead, Gap};
use crate::clock;
use crate::codec::Codec;
use crate::end::End;
use crate::error::{CaptureError, Damage, DamageKind};
use crate::header::FileHeader;
use crate::index::{self, IndexEntry};
use crate::input::Stream;
use crate::masks::Flip;
use crate::modules::Modules;
use crate::ranges::Ranges;
use crate::scan::{Choose, ScanStep, Scanner};
use crate::series::SeriesPart;
use crate::source::Source;
use crate::sources::{SourceInfo, Sources};
use crate::thread_names::ThreadNames;
use crate::trigger::Trigger;

const LOSS_STATED_BEFORE: DamageKind =
    DamageKind::Content("a loss that another chunk already records");

/// A capture that is being read.
pub struct Capture {
    scanner: Scanner,
    header: Option<FileHeader>,
    /// The chunk numbers read so far.
    ordinals: Ranges,
    sources: Sources,
    account: Account,
    /// See [`Finish::complete`].
    complete: u64,
    end: Option<End>,
    cut: Option<u64>,
    /// Whether damage reported since the last good chunk explains missing chunks.
    explained: bool,
    damages: VecDeque<Damage>,
    ready: Option<ReadAhead>,
    finished: bool,
    /// Whether passed frames are returned.
    heads: bool,
}

/// The result of a read.
#[derive(Debug)]
pub enum CaptureItem<'a> {
    /// A good chunk.
    Chunk(Chunk<'a>),
    /// Bytes that are not a good chunk.
    Damage(Damage),
}

/// A chunk that has been checked.
#[derive(Debug)]
pub enum Chunk<'a> {
    /// A source, new or with more segments.
    Source(&'a SourceInfo),
    /// Frames that no earlier chunk contained.
    Frames(ChunkFrames<'a>),
    /// Frames of which only the head was read. Only [`Capture::read_heads`] returns this.
    Passed(Passed),
    /// Missing frames that no earlier chunk stated.
    Gap(Gap),
    /// Readings of clocks.
    Clock(Vec<ClockReading>),
    /// The frames that a known source dropped.
    Drops(Drops),
    /// A reading of counters and histograms.
    Cells(Cells<'a>),
    /// Why a window of the flight recorder was written.
    Trigger(Trigger),
    /// Changes of the masks of a segment.
    Masks(Flip),
    /// The names of threads of a known source's process.
    Threads(ThreadNames),
    /// The position of this file in a series. The first file has no such chunk.
    Series(SeriesPart),
    /// The code mappings of a known source's process.
    Modules(Modules),
    /// The offset of the previous index, and the entries since then. They are not compared with the
    /// chunks.
    Index(Option<u64>, Vec<IndexEntry>),
    /// The end.
    End(End),
    /// A kind of a later version.
    Other(u16),
}

/// The frames of one chunk.
#[derive(Debug, Clone, Copy)]
pub struct ChunkFrames<'a> {
    /// Offset of the chunk from the first byte of the capture.
    pub offset: u64,
    /// The facts that the chunk states about them.
    pub head: FramesHead,
    /// Their source.
    pub info: &'a SourceInfo,
    /// Whether `head.lost_before` is new; otherwise another chunk stated it.
    pub loss_is_new: bool,
    /// The codec, if they are compressed.
    pub codec: Option<Codec>,
    /// Bytes of the payload in the capture.
    pub stored_len: u64,
    ordinal: u64,
    payload_crc: u32,
    header_len: u64,
    payload: &'a [u8],
}

/// A chunk of frames of which only the head was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Passed {
    /// Offset of the chunk from the first byte of the capture.
    pub offset: u64,
    /// Bytes of the chunk in the file.
    pub len: u64,
    /// Its number in the capture.
    pub ordinal: u64,
    /// The checksum of its payload, as its header states it.
    pub payload_crc: u32,
    /// The facts that the chunk states about them.
    pub head: FramesHead,
    /// Whether `head.lost_before` is new; otherwise another chunk stated it.
    pub loss_is_new: bool,
}

impl<'a> ChunkFrames<'a> {
    /// The chunk, without its frames.
    pub fn passed(&self) -> Passed {
        Passed {
            offset: self.offset,
            len: self.header_len + self.stored_len,
            ordinal: self.ordinal,
            payload_crc: self.payload_crc,
            head: self.head,
            loss_is_new: self.loss_is_new,
        }
    }

    /// The sequence number and the bytes of each frame that carries its own number. A frame has
    /// `head.stride` bytes, which is at least the schema's stride.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &'a [u8])> + use<'a> {
        numbered(&self.head, self.payload).filter(|(seq, frame)| u64_at(frame, 0) == *seq)
    }

    /// The bytes of all frames, one after the other.
    pub fn bytes(&self) -> &'a [u8] {
        self.payload
    }

    /// Makes `owned` a copy that does not need the capture.
    pub fn copy_to(&self, owned: &mut OwnedFrames) {
        (owned.offset, owned.head) = (self.offset, self.head);
        owned.payload.clear();
        owned.payload.extend_from_slice(self.payload);
    }

    /// The sequence numbers whose frames carry another number and are skipped.
    pub fn wrong(&self) -> impl Iterator<Item = u64> + use<'a> {
        numbered(&self.head, self.payload)
            .filter(|(seq, frame)| u64_at(frame, 0) != *seq)
            .map(|(seq, _)| seq)
    }
}

/// A copy of the frames of one chunk that does not borrow from the capture.
#[derive(Debug, Clone, Default)]
pub struct OwnedFrames {
    /// Offset of the chunk from the first byte of the capture.
    pub offset: u64,
    /// The facts that the chunk states about them.
    pub head: FramesHead,
    payload: Vec<u8>,
}

impl OwnedFrames {
    /// As [`ChunkFrames::iter`].
    pub fn iter(&self) -> impl Iterator<Item = (u64, &[u8])> {
        numbered(&self.head, &self.payload).filter(|(seq, frame)| u64_at(frame, 0) == *seq)
    }
}

/// How a capture ended. Known once [`Capture::read`] has returned `None`.
#[derive(Debug, Clone, Copy)]
pub struct Finish<'a> {
    /// The end chunk.
    pub end: Option<&'a End>,
    /// The offset at which the capture stops without an end chunk, because it was truncated or is
    /// still being written.
    pub cut: Option<u64>,
    /// The length of the input when the reader reached its end. A file may have grown since.
    pub len: u64,
    /// CLOCK_MONOTONIC in ns: every frame that was published before is in the chunks that were read,
    /// or in an earlier file of the series, or stated as lost there or later; 0 = unknown.
    pub complete: u64,
}

enum ReadAhead {
    Source(u16),
    Frames { offset: u64, header: ChunkHeader, head: FramesHead, loss_is_new: bool },
    Cells(ChunkHeader),
    Owned(Chunk<'static>),
}

impl Capture {
    /// Opens the capture at `path`. `-` is standard input. A FIFO or a device is read as a stream.
    ///
    /// # Errors
    /// The file cannot be read, or is no capture of this version.
    pub fn open(path: &Path) -> Result<Capture, CaptureError> {
        if path.as_os_str() == "-" {
            return Capture::from_reader(io::stdin());
        }
        let file = File::open(path)?;
        let kind = file.metadata()?;
        if kind.is_dir() {
            return Err(CaptureError::Directory);
        }
        let stream =
            if kind.is_file() { Stream::File(file) } else { Stream::Reader(Box::new(file)) };
        Capture::begin(stream, false, u64::MAX)
    }

    /// Reads the first `bytes` bytes of a file, as if it ended there: what is written behind them
    /// changes nothing of what is read.
    ///
    /// # Errors
    /// The file cannot be read, or is no capture of this version.
    pub fn open_beginning(file: File, bytes: u64) -> Result<Capture, CaptureError> {
        Capture::begin(Stream::File(file), false, bytes)
    }

    /// Reads a capture from a stream.
    ///
    /// # Errors
    /// The stream cannot be read, or is no capture of this version.
    pub fn from_reader(reader: impl Read + 'static) -> Result<Capture, CaptureError> {
        Capture::begin(Stream::Reader(Box::new(reader)), false, u64::MAX)
    }

    /// Reads only the sources, clocks, names of threads and modules, which must be known before the
    /// first row is written, and skips the frames. Returns `None` for an input that cannot be read
    /// twice.
    ///
    /// The damage and the account of the result are meaningless, because the frames were not read.
    ///
    /// # Errors
    /// The file cannot be read, or is no capture of this version.
    pub fn survey(path: &Path) -> Result<Option<Capture>, CaptureError> {
        if path.as_os_str() == "-" || !std::fs::metadata(path)?.is_file() {
            return Ok(None);
        }
        Capture::begin(Stream::File(File::open(path)?), true, u64::MAX).map(Some)
    }

    fn begin(stream: Stream, survey: bool, limit: u64) -> Result<Capture, CaptureError> {
        let (scanner, header) = Scanner::begin(stream, survey, limit)?;
        let mut capture = Capture {
            scanner,
            header,
            ordinals: Ranges::default(),
            sources: Sources::default(),
            account: Account::default(),
            end: None,
            complete: 0,
            cut: None,
            explained: false,
            damages: VecDeque::new(),
            ready: None,
            finished: false,
            heads: false,
        };
        if capture.header.is_none() {
            capture.damage(0, DamageKind::FileHeader);
        }
        Ok(capture)
    }

    /// The file header, or None if it is damaged.
    pub fn header(&self) -> Option<&FileHeader> {
        self.header.as_ref()
    }

    /// Where the chunk that was read last begins.
    pub fn position(&self) -> u64 {
        self.scanner.offset()
    }

    /// The sources so far.
    pub fn sources(&self) -> impl Iterator<Item = &SourceInfo> {
        self.sources.iter()
    }

    /// The sums so far.
    pub fn account(&self) -> &Account {
        &self.account
    }

    /// How the capture ended.
    pub fn finish(&self) -> Finish<'_> {
        Finish {
            end: self.end.as_ref(),
            cut: self.cut,
            len: self.scanner.offset(),
            complete: self.complete,
        }
    }

    /// Returns the next chunk or damage, or None after the last one. Errors are those of the input.
    ///
    /// # Errors
    /// Those of the input.
    pub fn read(&mut self) -> io::Result<Option<CaptureItem<'_>>> {
        self.read_some(None)
    }

    /// Reads as [`Self::read`] does, but skips the frames of chunks whose head `choose` rejects, if
    /// the capture is a file. Their heads still count in the account. A stream returns all frames.
    ///
    /// Skipped frames are not checked. Damage is found in the chosen chunks, and wherever a chunk
    /// does not end where the next one begins.
    ///
    /// # Errors
    /// Those of the input.
    pub fn read_chosen(
        &mut self,
        choose: &dyn Fn(&FramesHead) -> bool,
    ) -> io::Result<Option<CaptureItem<'_>>> {
        self.scanner.read_sparsely();
        self.read_some(Some(choose))
    }

    /// Reads as [`Self::read`] does, but reads only the heads of frames, if the capture is a file,
    /// and returns them as [`Chunk::Passed`].
    ///
    /// # Errors
    /// Those of the input.
    pub fn read_heads(&mut self) -> io::Result<Option<CaptureItem<'_>>> {
        self.heads = true;
        self.scanner.read_sparsely();
        self.read_some(Some(&|_| false))
    }

    /// Lets a capture that was read to its end be read on from there: a file that has no end chunk may have
    /// grown. Nothing that was read is read again.
    ///
    /// # Errors
    /// Those of the input.
    pub fn go_on(&mut self) -> io::Result<()> {
        if let Some(cut) = self.cut
            && self.finished
            && self.scanner.go_on(cut)?
        {
            (self.finished, self.cut) = (false, None);
        }
        Ok(())
    }

    /// The first half of the capture's id. It is known even if the file header is damaged, because
    /// the chunks repeat it.
    pub fn short_id(&self) -> Option<[u8; 8]> {
        self.scanner.id()
    }

    fn read_some(&mut self, choose: Option<Choose<'_>>) -> io::Result<Option<CaptureItem<'_>>> {
        while self.damages.is_empty() && self.ready.is_none() && !self.finished {
            self.advance(choose)?;
        }
        if let Some(damage) = self.damages.pop_front() {
            return Ok(Some(CaptureItem::Damage(damage)));
        }
        let ready = self.ready.take();
        Ok(ready.and_then(|ready| self.lend(ready)).map(CaptureItem::Chunk))
    }

    fn lend(&self, ready: ReadAhead) -> Option<Chunk<'_>> {
        Some(match ready {
            ReadAhead::Owned(chunk) => chunk,
            ReadAhead::Source(id) => Chunk::Source(self.sources.get(id).ok()?),
            ReadAhead::Cells(header) => Chunk::Cells(self.cells(&header).ok()?),
            ReadAhead::Frames { offset, header, head, loss_is_new } => Chunk::Frames(ChunkFrames {
                offset,
                head,
                info: self.sources.get(head.source).ok()?,
                loss_is_new,
                codec: header.codec(),
                stored_len: header.stored_len,
                ordinal: header.ordinal,
                payload_crc: header.payload_crc,
                header_len: header.header_len as u64,
                payload: self.scanner.chunk(&header).1,
            }),
        })
    }

    /// Reads one chunk, or one range without a chunk: fills `damages` and `ready`.
    fn advance(&mut self, choose: Option<Choose<'_>>) -> io::Result<()> {
        match self.scanner.next(self.end.is_some(), choose)? {
            ScanStep::Stop(offset) => {
                self.finished = true;
                self.cut = self.end.is_none().then_some(offset);
            }
            ScanStep::Damage(damage) => self.damage(damage.offset, damage.kind),
            ScanStep::Passed(offset, header) => {
                if self.place(offset, header.ordinal) {
                    self.ready = Some(ReadAhead::Owned(Chunk::Other(header.kind.code())));
                }
            }
            ScanStep::PassedFrames(offset, header, head) => {
                if self.place(offset, header.ordinal) {
                    match self.pass_frames(offset, &head) {
                        Ok(loss_is_new) => {
                            self.explained = false;
                            let len = header.header_len as u64 + header.stored_len;
                            let (ordinal, payload_crc) = (header.ordinal, header.payload_crc);
                            let passed =
                                Passed { offset, len, ordinal, payload_crc, head, loss_is_new };
                            let passed = self.heads.then_some(Chunk::Passed(passed));
                            self.ready = passed.map(ReadAhead::Owned);
                        }
                        Err(kind) => self.damage(offset, kind),
                    }
                }
            }
            ScanStep::Loaded(offset, header) => {
                if self.place(offset, header.ordinal) {
                    match self.parse(offset, &header) {
                        Ok(ready) => {
                            self.explained = false;
                            self.ready = Some(ready);
                        }
                        Err(kind) => self.damage(offset, kind),
                    }
                }
            }
        }
        Ok(())
    }

    fn damage(&mut self, offset: u64, kind: DamageKind) {
        self.explained = true;
        self.damages.push_back(Damage { offset, kind });
    }

    /// Records chunk number `ordinal`. Returns whether it is used.
    fn place(&mut self, offset: u64, ordinal: u64) -> bool {
        let expected = self.ordinals.end().unwrap_or(0);
        if ordinal == u64::MAX || !self.ordinals.insert(ordinal, ordinal + 1) {
            self.damage(offset, DamageKind::Repeated);
            return false;
        }
        if ordinal < expected {
            self.damage(offset, DamageKind::OutOfPlace);
        } else if ordinal > expected && !self.explained {
            self.damage(offset, DamageKind::Missing(ordinal - expected));
        }
        true
    }

    /// Checks the content of a chunk, and adds it to the account.
    fn parse(&mut self, offset: u64, header: &ChunkHeader) -> Result<ReadAhead, DamageKind> {
        let source = header.source;
        let (head, payload) = self.scanner.chunk(header);
        let chunk = match header.kind {
            ChunkKind::Source => {
                let (new, schema) = Source::decode(payload)?;
                self.sources.introduce(source, new, schema)?;
                return Ok(ReadAhead::Source(source));
            }
            ChunkKind::Frames => {
                let head = FramesHead::decode(source, head);
                head.check(payload.len() as u64).map_err(DamageKind::Content)?;
                self.check_source(&head)?;
                return self.take_frames(offset, *header, head);
            }
            ChunkKind::Gap => {
                let gap = Gap::decode(source, head)?;
                self.sources.with_ring(source, gap.nonce, gap.ring)?;
                self.account.gap(&gap)?;
                Chunk::Gap(gap)
            }
            ChunkKind::Clock => {
                let readings = clock::decode(payload)?;
                self.complete = self.complete.max(clock::complete(payload));
                Chunk::Clock(readings)
            }
            ChunkKind::Drops => {
                self.sources.get(source)?;
                let drops = Drops::decode(source, head);
                self.account.drops(&drops);
                Chunk::Drops(drops)
            }
            ChunkKind::Index => {
                let (previous, entries) = index::decode(payload)?;
                Chunk::Index(previous, entries)
            }
            ChunkKind::End => {
                let end = End::decode(payload)?;
                for ring in &end.rings {
                    self.sources.with_ring(ring.source, ring.nonce, ring.ring)?;
                }
                for (source, _) in &end.drops {
                    self.sources.get(*source)?;
                }
                self.account.end(&end)?;
                self.end = Some(end.clone());
                Chunk::End(end)
            }
            ChunkKind::Cells => {
                self.cells(header)?;
                return Ok(ReadAhead::Cells(*header));
            }
            ChunkKind::Trigger => {
                let trigger = Trigger::decode(source, head, payload)?;
                match (trigger.source, trigger.ring) {
                    (Some(source), Some((nonce, ring))) => {
                        self.sources.with_ring(source, nonce, ring)?;
                    }
                    (Some(source), None) => _ = self.sources.get(source)?,
                    (None, _) => {}
                }
                Chunk::Trigger(trigger)
            }
            ChunkKind::Masks => {
                let nonce = u64_at(head, crate::format::masks::NONCE);
                let (info, rings) = self.of_segment(source, nonce)?;
                Chunk::Masks(Flip::decode((source, head), payload, (&info.schema, rings))?)
            }
            ChunkKind::Threads => {
                self.sources.get(source)?;
                Chunk::Threads(ThreadNames::decode(source, head, payload)?)
            }
            ChunkKind::Modules => {
                self.sources.get(source)?;
                Chunk::Modules(Modules::decode(source, head, payload)?)
            }
            ChunkKind::Series => Chunk::Series(SeriesPart::decode(payload)?),
            ChunkKind::Other(code) => Chunk::Other(code),
        };
        Ok(ReadAhead::Owned(chunk))
    }

    /// The cells of the chunk that was loaded last.
    fn cells(&self, header: &ChunkHeader) -> Result<Cells<'_>, DamageKind> {
        let (head, payload) = self.scanner.chunk(header);
        let nonce = u64_at(head, crate::format::cells::NONCE);
        let (info, rings) = self.of_segment(header.source, nonce)?;
        Cells::decode((header.source, head), payload, (rings, info.cells()))
    }

    /// A source, and the number of rings of one of its segments.
    fn of_segment(&self, source: u16, nonce: u64) -> Result<(&SourceInfo, u32), DamageKind> {
        let info = self.sources.get(source)?;
        match info.source.segments.iter().find(|segment| segment.nonce == nonce) {
            Some(segment) => Ok((info, segment.rings)),
            None => Err(DamageKind::Content("a segment that its source does not have")),
        }
    }

    fn check_source(&self, head: &FramesHead) -> Result<(), DamageKind> {
        let info = self.sources.with_ring(head.source, head.nonce, head.ring)?;
        if head.stride < info.schema.stride {
            return Err(DamageKind::Content("frames shorter than their schema says"));
        }
        Ok(())
    }

    /// Adds unread frames to the account. Returns whether their loss is new.
    fn pass_frames(&mut self, offset: u64, head: &FramesHead) -> Result<bool, DamageKind> {
        self.check_source(head)?;
        let loss_is_new = self.account.frames(head, 0)?;
        if !loss_is_new {
            self.damage(offset, LOSS_STATED_BEFORE);
        }
        Ok(loss_is_new)
    }

    fn take_frames(
        &mut self,
        offset: u64,
        header: ChunkHeader,
        head: FramesHead,
    ) -> Result<ReadAhead, DamageKind> {
        let (_, payload) = self.scanner.chunk(&header);
        let mut wrong = numbered(&head, payload).filter(|(seq, frame)| u64_at(frame, 0) != *seq);
        let first_wrong = wrong.next().map(|(seq, frame)| (seq, u64_at(frame, 0)));
        let bad = first_wrong.map_or(0, |_| 1 + wrong.count() as u32);
        let loss_is_new = self.account.frames(&head, bad)?;
        if !loss_is_new {
            self.damage(offset, LOSS_STATED_BEFORE);
        }
        if let Some((expected, found)) = first_wrong {
            let ring = head.ring;
            self.damage(offset, DamageKind::Sequence { ring, expected, found, frames: bad });
        }
        Ok(ReadAhead::Frames { offset, header, head, loss_is_new })
    }
}

/// The frames of a payload with their expected numbers. `head` has been checked.
pub(crate) fn numbered<'a>(
    head: &FramesHead,
    payload: &'a [u8],
) -> impl Iterator<Item = (u64, &'a [u8])> + use<'a> {
    (head.first_seq..).zip(payload.chunks_exact(head.stride as usize))
}
