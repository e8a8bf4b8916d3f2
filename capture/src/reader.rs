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

mod content;
mod items;

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use self::items::ReadAhead;
pub(crate) use self::items::numbered;
pub use self::items::{CaptureItem, Chunk, ChunkFrames, Finish, OwnedFrames, Passed};
use crate::account::Account;
use crate::chunk::FramesHead;
use crate::end::End;
use crate::error::{CaptureError, Damage, DamageKind};
use crate::header::FileHeader;
use crate::input::Stream;
use crate::ranges::Ranges;
use crate::scan::{Choose, ScanStep, Scanner};
use crate::sources::{SourceInfo, Sources};

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

    /// Reads the first `bytes` bytes of a file, as if it ended there. Bytes written behind them
    /// have no effect.
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

    /// The offset of the chunk that was read last.
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

    /// Returns the next chunk or damage, or None after the last one.
    ///
    /// # Errors
    /// Reading the input fails.
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
    /// Reading the input fails.
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
    /// Reading the input fails.
    pub fn read_heads(&mut self) -> io::Result<Option<CaptureItem<'_>>> {
        self.heads = true;
        self.scanner.read_sparsely();
        self.read_some(Some(&|_| false))
    }

    /// Lets a capture that was read to its end be read on from there: a file that has no end chunk may have
    /// grown. Nothing that was read is read again.
    ///
    /// # Errors
    /// Reading the input fails.
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
}
