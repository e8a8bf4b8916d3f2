//! Counts frames of one kind in the rings of a buffer, where they are as soon as they are written.

use std::sync::Arc;

use ppt_segment::{RingReader, Segment};

use super::attached::AttachedBuffer;

/// Frames that are looked at in one step.
const STEP: usize = 256;

/// Counts frames of one kind.
#[derive(Debug)]
pub struct FrameCounter {
    segment: Arc<Segment>,
    /// Words of a frame.
    stride: usize,
    /// None: the buffer has no other frames.
    id: Option<u16>,
    /// Where the next look into each ring begins.
    next: Vec<u64>,
    count: u64,
}

impl FrameCounter {
    pub(super) fn new(buffer: &AttachedBuffer, id: u16) -> Self {
        let schema = &buffer.buffer.schema;
        Self {
            segment: buffer.segment.clone(),
            stride: schema.stride as usize / 8,
            id: schema.multi().then_some(id),
            next: Vec::new(),
            count: 0,
        }
    }

    /// Counts from now on.
    pub fn restart(&mut self) {
        let rings = 0..self.segment.geometry().rings();
        self.next = rings.map(|ring| self.segment.ring(ring).tail()).collect();
        self.count = 0;
    }

    /// The frames so far. It stops counting when there are `enough`, and at frames that are written
    /// meanwhile: a thread may write as fast as this counts.
    pub fn count(&mut self, enough: u64) -> u64 {
        let mut words = vec![0u64; STEP * self.stride];
        for (ring, next) in (0..).zip(&mut self.next) {
            let end = self.segment.ring(ring).tail();
            while *next < end && self.count < enough && !self.segment.truncated() {
                let mut reader = RingReader::new(self.segment.ring(ring), *next);
                let Ok(found) = reader.poll(&mut words) else { break };
                if found.count == 0 && found.overrun == 0 {
                    break;
                }
                *next = reader.next();
                let frames = words[found.start..].chunks_exact(self.stride).take(found.count);
                let is_it = |frame: &&[u64]| self.id.is_none_or(|id| frame[1] as u16 == id);
                self.count += frames.filter(is_it).count() as u64;
            }
        }
        self.count
    }
}
