//! The end chunk of a capture: the reason, and the listener's own account.

use crate::bytes::{get, put, put_u16, put_u32, put_u64, u16_at, u32_at, u64_at};
use crate::cause::{Dropped, Lost};
use crate::chunk::{lost_at, put_lost};
use crate::error::DamageKind;
use crate::format::end::{drops, head, ring, trailer};
use crate::format::{ALIGN, chunk};

/// Why a capture ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u16)]
pub enum EndReason {
    /// On request: Ctrl-C, SIGTERM, `ppt detach`.
    Stopped = 1,
    /// The target exited, or was killed.
    Exited = 2,
    /// The target started another program (exec).
    Exec = 3,
    /// `--duration` elapsed.
    Duration = 4,
    /// `--max-size` was reached.
    MaxSize = 5,
    /// The library that holds the buffers was unloaded.
    Unloaded = 6,
    /// A failure, which the message describes.
    Failed = 7,
    /// The series continues in another capture, with the next sequence numbers.
    Rotated = 8,
    /// A reason of a later version.
    Other = 0,
}

impl EndReason {
    const KNOWN: [EndReason; 8] = [
        EndReason::Stopped,
        EndReason::Exited,
        EndReason::Exec,
        EndReason::Duration,
        EndReason::MaxSize,
        EndReason::Unloaded,
        EndReason::Failed,
        EndReason::Rotated,
    ];

    /// The name in every output.
    pub fn name(self) -> &'static str {
        match self {
            EndReason::Stopped => "stopped",
            EndReason::Exited => "exited",
            EndReason::Exec => "exec",
            EndReason::Duration => "duration",
            EndReason::MaxSize => "max_size",
            EndReason::Unloaded => "unloaded",
            EndReason::Failed => "failed",
            EndReason::Rotated => "rotated",
            EndReason::Other => "other",
        }
    }

    fn from_code(code: u16) -> EndReason {
        let known = Self::KNOWN.into_iter().find(|&reason| reason as u16 == code);
        known.unwrap_or(EndReason::Other)
    }
}

/// The account of one ring over the session: `captured + lost.total()` plus the frames that the
/// listener left out (`--where`) is `next_seq - first_seq`. The end chunk does not count those frames;
/// gaps with [`Cause::LeftOut`](crate::Cause::LeftOut) do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RingEnd {
    /// The source.
    pub source: u16,
    /// Nonce of the segment.
    pub nonce: u64,
    /// Ring in the segment.
    pub ring: u32,
    /// Cursor when the session began.
    pub first_seq: u64,
    /// Cursor of the last drain.
    pub next_seq: u64,
    /// Frames in the file.
    pub captured: u64,
    /// Frames not in the file, by cause; without those left out.
    pub lost: Lost,
}

/// The end of a capture. A truncated capture has none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct End {
    /// The reason.
    pub reason: EndReason,
    /// Further information about the reason, for people. May be empty.
    pub message: String,
    /// Every ring that was drained, including those without a frame.
    pub rings: Vec<RingEnd>,
    /// Every source with its numbers of dropped frames.
    pub drops: Vec<(u16, Dropped)>,
    /// CLOCK_REALTIME at the end, ns.
    pub realtime_ns: u64,
    /// CLOCK_MONOTONIC at the end, ns.
    pub mono_ns: u64,
}

impl End {
    /// The end of a capture without a message, rings or drops, at these times of CLOCK_REALTIME and
    /// CLOCK_MONOTONIC.
    pub fn new(reason: EndReason, realtime_ns: u64, mono_ns: u64) -> Self {
        let (message, rings, drops) = (String::new(), Vec::new(), Vec::new());
        Self { reason, message, rings, drops, realtime_ns, mono_ns }
    }

    /// The payload, for an end chunk at `offset` with the last index at `index`.
    pub(crate) fn encode(&self, offset: u64, index: u64) -> Vec<u8> {
        let body = head::LEN
            + self.rings.len() * ring::LEN
            + self.drops.len() * drops::LEN
            + self.message.len();
        let len = (chunk::LEN + body + trailer::LEN).next_multiple_of(ALIGN) - chunk::LEN;
        let mut bytes = Vec::with_capacity(len);

        let mut first = [0; head::LEN];
        put_u16(&mut first, head::REASON, self.reason as u16);
        put_u32(&mut first, head::RINGS, self.rings.len() as u32);
        put_u32(&mut first, head::DROPS, self.drops.len() as u32);
        put_u32(&mut first, head::MESSAGE_LEN, self.message.len() as u32);
        put_u64(&mut first, head::REALTIME, self.realtime_ns);
        put_u64(&mut first, head::MONOTONIC, self.mono_ns);
        bytes.extend_from_slice(&first);
        for one in &self.rings {
            bytes.extend_from_slice(&one.encode());
        }
        for (source, dropped) in &self.drops {
            let mut one = [0; drops::LEN];
            put_u64(&mut one, drops::NO_RING, dropped.no_ring);
            put_u64(&mut one, drops::NESTED, dropped.nested);
            put_u64(&mut one, drops::NOT_MAPPED, dropped.not_mapped);
            put_u16(&mut one, drops::SOURCE, *source);
            bytes.extend_from_slice(&one);
        }
        bytes.extend_from_slice(self.message.as_bytes());

        bytes.resize(len - trailer::LEN, 0);
        let mut last = [0; trailer::LEN];
        put_u64(&mut last, trailer::END, offset);
        put_u64(&mut last, trailer::INDEX, index);
        put(&mut last, trailer::MAGIC, trailer::MAGIC_VALUE);
        bytes.extend_from_slice(&last);
        bytes
    }

    pub(crate) fn decode(payload: &[u8]) -> Result<End, DamageKind> {
        let (first, rest) = payload.split_at_checked(head::LEN).ok_or(DamageKind::Length)?;
        let (rings, rest) = split(rest, u32_at(first, head::RINGS), ring::LEN)?;
        let (dropped, rest) = split(rest, u32_at(first, head::DROPS), drops::LEN)?;
        let (message, rest) = split(rest, u32_at(first, head::MESSAGE_LEN), 1)?;
        let last = rest.last_chunk::<{ trailer::LEN }>().ok_or(DamageKind::Length)?;
        if get(last, trailer::MAGIC) != trailer::MAGIC_VALUE {
            return Err(DamageKind::Content("the end chunk has no trailer"));
        }
        Ok(End {
            reason: EndReason::from_code(u16_at(first, head::REASON)),
            message: String::from_utf8_lossy(message).into_owned(),
            rings: rings.chunks_exact(ring::LEN).map(RingEnd::decode).collect(),
            drops: dropped.chunks_exact(drops::LEN).map(decode_drops).collect(),
            realtime_ns: u64_at(first, head::REALTIME),
            mono_ns: u64_at(first, head::MONOTONIC),
        })
    }
}

impl RingEnd {
    fn encode(&self) -> [u8; ring::LEN] {
        let mut bytes = [0; ring::LEN];
        put_u64(&mut bytes, ring::NONCE, self.nonce);
        put_u32(&mut bytes, ring::RING, self.ring);
        put_u16(&mut bytes, ring::SOURCE, self.source);
        put_u64(&mut bytes, ring::FIRST_SEQ, self.first_seq);
        put_u64(&mut bytes, ring::NEXT_SEQ, self.next_seq);
        put_u64(&mut bytes, ring::CAPTURED, self.captured);
        put_lost(&mut bytes, ring::LOST, &self.lost);
        bytes
    }

    fn decode(bytes: &[u8]) -> RingEnd {
        RingEnd {
            source: u16_at(bytes, ring::SOURCE),
            nonce: u64_at(bytes, ring::NONCE),
            ring: u32_at(bytes, ring::RING),
            first_seq: u64_at(bytes, ring::FIRST_SEQ),
            next_seq: u64_at(bytes, ring::NEXT_SEQ),
            captured: u64_at(bytes, ring::CAPTURED),
            lost: lost_at(bytes, ring::LOST),
        }
    }
}

fn decode_drops(bytes: &[u8]) -> (u16, Dropped) {
    let dropped = Dropped {
        no_ring: u64_at(bytes, drops::NO_RING),
        nested: u64_at(bytes, drops::NESTED),
        not_mapped: u64_at(bytes, drops::NOT_MAPPED),
    };
    (u16_at(bytes, drops::SOURCE), dropped)
}

/// `count` items of `size` bytes from the front of `bytes`, and the rest.
fn split(bytes: &[u8], count: u32, size: usize) -> Result<(&[u8], &[u8]), DamageKind> {
    let len = (count as usize).checked_mul(size).ok_or(DamageKind::Length)?;
    bytes.split_at_checked(len).ok_or(DamageKind::Length)
}
