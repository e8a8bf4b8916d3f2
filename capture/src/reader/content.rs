//! Checks the content of a chunk, and adds it to the account.

use super::Capture;
use super::items::{Chunk, ReadAhead, numbered};
use crate::bytes::u64_at;
use crate::cells::Cells;
use crate::chunk::{ChunkHeader, ChunkKind, Drops, FramesHead, Gap};
use crate::clock;
use crate::end::End;
use crate::error::DamageKind;
use crate::index;
use crate::masks::Flip;
use crate::modules::Modules;
use crate::series::SeriesPart;
use crate::source::Source;
use crate::sources::SourceInfo;
use crate::thread_names::ThreadNames;
use crate::trigger::Trigger;

const LOSS_STATED_BEFORE: DamageKind =
    DamageKind::Content("a loss that another chunk already records");

impl Capture {
    /// Checks the content of a chunk, and adds it to the account.
    pub(super) fn parse(
        &mut self,
        offset: u64,
        header: &ChunkHeader,
    ) -> Result<ReadAhead, DamageKind> {
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
    pub(super) fn cells(&self, header: &ChunkHeader) -> Result<Cells<'_>, DamageKind> {
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
    pub(super) fn pass_frames(
        &mut self,
        offset: u64,
        head: &FramesHead,
    ) -> Result<bool, DamageKind> {
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
