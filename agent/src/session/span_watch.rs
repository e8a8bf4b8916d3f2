//! Reads the begins and ends of a span in the rings of a buffer, as soon as they are written.

use std::path::Path;
use std::sync::Arc;

use ppt_frame_dsl::role::EDGES;
use ppt_frame_dsl::schema::{Clock, Field, FieldType, STAMP_IS_MONOTONIC};
use ppt_segment::{RingReader, Segment};
use thiserror::Error;

use super::attached::AttachedBuffer;
use crate::target::Target;

/// The number of frames that are read in one step.
const STEP: usize = 64;
/// The largest number of frames of a poll. A target that writes more between two polls is not followed: polls run at a
/// real-time priority, and must end soon.
const MAX_FRAMES: u64 = 1 << 15;

/// Why a span cannot be watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum NotWatchable {
    /// The frames are no spans.
    #[error("these frames have no begin and end of their own")]
    NoSpan,
    /// Frames have stamps of another clock.
    #[error("its stamps are not `option time tsc`, nor `ns` of the monotonic clock")]
    Clock,
    /// The process is in another pid or time namespace.
    #[error("its process runs in a container, where threads have other numbers or another clock")]
    Namespace,
    /// The target makes its segment, and has not done so yet.
    #[error("it has not written a frame yet, and makes its shared memory itself: try again later")]
    Awaited,
}

/// A thread begins or ends the span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WatchedEdge {
    /// The thread.
    pub tid: i32,
    /// The stamp, in ns of CLOCK_MONOTONIC.
    pub at_ns: i64,
    /// Whether it begins the span.
    pub is_begin: bool,
}

/// Edges are missing: the rings do not show them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("edges of a span are missing")]
pub struct MissedEdges;

/// A span in a buffer of a process.
#[derive(Debug)]
pub struct SpanWatch {
    pid: i32,
    segment: Arc<Segment>,
    /// The words of a frame.
    stride: usize,
    /// None: the buffer has no other frames.
    id: Option<u16>,
    /// The offset of the byte of the edge.
    edge: usize,
    /// The word of the stamp.
    at: usize,
    is_ticks: bool,
    rings: Vec<WatchedRing>,
    words: Vec<u64>,
}

#[derive(Debug, Clone, Copy, Default)]
struct WatchedRing {
    /// The cursor of the next frame.
    next: u64,
    /// The claim of the ring, and its thread, if that belongs to the process.
    epoch: u32,
    tid: Option<i32>,
}

impl SpanWatch {
    pub(super) fn new(
        target: &Target,
        buffer: &AttachedBuffer,
        id: u16,
    ) -> Result<Self, NotWatchable> {
        let schema = &buffer.buffer.schema;
        let frame = schema.frames.get(usize::from(id)).ok_or(NotWatchable::NoSpan)?;
        let edge = frame.span().ok_or(NotWatchable::NoSpan)?.edge.offset as usize;
        let at = frame.fields.iter().find(|field| field.at).ok_or(NotWatchable::Clock)?;
        if buffer.is_awaiting() {
            return Err(NotWatchable::Awaited);
        }
        if target.ns_pid() != target.pid() || target.monotonic_offset() != 0 {
            return Err(NotWatchable::Namespace);
        }
        let rings = 0..buffer.segment.geometry().rings();
        let at_end =
            |ring| WatchedRing { next: buffer.segment.ring(ring).tail(), ..WatchedRing::default() };
        Ok(Self {
            pid: target.pid(),
            stride: schema.stride as usize / 8,
            id: schema.multi().then_some(id),
            edge,
            at: at.offset as usize / 8,
            is_ticks: is_ticks(at)?,
            rings: rings.map(at_end).collect(),
            words: vec![0; STEP * schema.stride as usize / 8],
            segment: buffer.segment.clone(),
        })
    }

    /// Calls `take` with each edge since the last poll, those of a thread in the order of time.
    ///
    /// # Errors
    /// Some are missing.
    pub fn poll(&mut self, mut take: impl FnMut(WatchedEdge)) -> Result<(), MissedEdges> {
        if self.segment.truncated() {
            return Err(MissedEdges);
        }
        let (mut result, mut left) = (Ok(()), MAX_FRAMES);
        for number in 0..self.rings.len() {
            let ring = self.segment.ring(number as u32);
            if ring.owner().epoch == 0 {
                // Threads take the lowest free ring.
                break;
            }
            let tail = ring.tail();
            // A cursor that went backwards is more than `left`, too.
            let count = tail.wrapping_sub(self.rings[number].next);
            if count > left {
                self.rings[number].next = tail;
                result = Err(MissedEdges);
                continue;
            }
            left -= count;
            while self.rings[number].next < tail {
                match self.step(number, &mut take) {
                    Ok(true) => {}
                    Ok(false) => break,
                    Err(MissedEdges) => {
                        self.rings[number].next = tail;
                        result = Err(MissedEdges);
                    }
                }
            }
        }
        result
    }

    /// Reads some frames of a ring. Returns whether there were any.
    fn step(
        &mut self,
        number: usize,
        take: &mut impl FnMut(WatchedEdge),
    ) -> Result<bool, MissedEdges> {
        let tid = self.owner(number);
        let mut reader = RingReader::new(self.segment.ring(number as u32), self.rings[number].next);
        let found = reader.poll(&mut self.words).map_err(|_| MissedEdges)?;
        self.rings[number].next = reader.next();
        if found.overrun > 0 {
            return Err(MissedEdges);
        }
        let frames = self.words[found.start..].chunks_exact(self.stride).take(found.count);
        for frame in frames.filter(|frame| self.id.is_none_or(|id| frame[1] as u16 == id)) {
            let edge = (frame[self.edge / 8] >> (self.edge % 8 * 8)) as u8;
            let [begin, end] = EDGES.map(|(_, value)| value);
            let is_begin = i128::from(edge) == begin;
            if !is_begin && i128::from(edge) != end {
                // The target wrote something else.
                return Err(MissedEdges);
            }
            let stamp = frame[self.at];
            if self.is_ticks && stamp & STAMP_IS_MONOTONIC == 0 {
                return Err(MissedEdges);
            }
            let at_ns = (stamp & !STAMP_IS_MONOTONIC) as i64;
            take(WatchedEdge { tid: tid.ok_or(MissedEdges)?, at_ns, is_begin });
        }
        Ok(found.count > 0)
    }

    /// The thread that owns a ring. A target cannot name a thread of another process.
    fn owner(&mut self, number: usize) -> Option<i32> {
        let ring = self.segment.ring(number as u32);
        let epoch = ring.owner().epoch;
        if self.rings[number].epoch != epoch {
            let tid = ring.tenure(epoch).map(|tenure| tenure.tid as i32);
            let is_its = |tid: &i32| Path::new(&format!("/proc/{}/task/{tid}", self.pid)).exists();
            self.rings[number].tid = tid.filter(is_its);
            self.rings[number].epoch = epoch;
        }
        self.rings[number].tid
    }
}

/// Whether a field has ticks, which a session with the monotonic clock makes ns with a mark.
fn is_ticks(at: &Field) -> Result<bool, NotWatchable> {
    match at.ty {
        FieldType::Tsc => Ok(true),
        FieldType::Ns { clock: Clock::Monotonic } => Ok(false),
        _ => Err(NotWatchable::Clock),
    }
}
