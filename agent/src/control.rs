//! The control page of a target: bytes copied out, decoded by offset, believed by nobody.

use std::mem::offset_of;

use ppt_segment::Geometry;
use ppt_segment::abi::{Claim, Control, GeometryWords, MAX_SEGMENTS, MappedSegment};

/// A copy of a control page.
#[derive(Debug, Clone)]
pub(crate) struct ControlCopy(Vec<u8>);

/// Bytes of a control page that mean something.
pub(crate) const BYTES: usize = size_of::<Control>();

/// What the target refused while nothing was mapped, and what it could not map.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct TargetCounters {
    pub(crate) no_ring: u64,
    pub(crate) nested: u64,
    pub(crate) not_mapped: u64,
}

impl ControlCopy {
    pub(crate) fn new(bytes: Vec<u8>) -> Self {
        assert_eq!(bytes.len(), BYTES);
        Self(bytes)
    }

    /// The page with nothing in it: what a page that a fork copied counts as.
    pub(crate) fn blank() -> Self {
        Self(vec![0; BYTES])
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }

    fn word(&self, at: usize) -> u64 {
        u64::from_le_bytes(self.0[at..at + 8].try_into().expect("8 bytes"))
    }

    fn half(&self, at: usize) -> u32 {
        u32::from_le_bytes(self.0[at..at + 4].try_into().expect("4 bytes"))
    }

    pub(crate) fn gate(&self) -> u64 {
        self.word(offset_of!(Control, gate))
    }

    pub(crate) fn nonce(&self) -> u64 {
        self.word(offset_of!(Control, nonce))
    }

    pub(crate) fn target_pid(&self) -> u32 {
        self.half(offset_of!(Control, target_pid))
    }

    pub(crate) fn generation(&self) -> u32 {
        self.word(offset_of!(Control, generation)) as u32
    }

    pub(crate) fn claim(&self) -> Claim {
        let at = offset_of!(Control, claim);
        Claim {
            agent_pid: self.word(at + offset_of!(Claim, agent_pid)),
            start_time: self.word(at + offset_of!(Claim, start_time)),
            pid_namespace: self.word(at + offset_of!(Claim, pid_namespace)),
            nonce: self.word(at + offset_of!(Claim, nonce)),
        }
    }

    /// The errno of a segment that could not be mapped under `gate`.
    pub(crate) fn failure(&self, gate: u64) -> Option<i32> {
        let failed = self.word(offset_of!(Control, failed_gate));
        let error = self.word(offset_of!(Control, error));
        (gate != 0 && failed == gate && error >> 32 == gate >> 32).then_some(error as u32 as i32)
    }

    pub(crate) fn counters(&self) -> TargetCounters {
        TargetCounters {
            no_ring: self.word(offset_of!(Control, no_ring)),
            nested: self.word(offset_of!(Control, nested)),
            not_mapped: self.word(offset_of!(Control, not_mapped)),
        }
    }

    /// Segments that the target says it has mapped: (id, nonce), System V only.
    pub(crate) fn segments(&self) -> Vec<(i32, u64)> {
        let entry = |index: usize| {
            let at = offset_of!(Control, segments) + index * size_of::<MappedSegment>();
            // A segment may have been mapped when only half of the handle was there: it is whole
            // in what names the segment.
            let handle = self.word(at + offset_of!(MappedSegment, handle));
            let (memfd, id) = (handle >> 31 & 1 == 1, handle as i32 & i32::MAX);
            let nonce = self.word(at + offset_of!(MappedSegment, nonce));
            (nonce != 0 && !memfd).then_some((id, nonce))
        };
        (0..MAX_SEGMENTS).filter_map(entry).collect()
    }

    /// Whether every entry of the table of segments is taken.
    pub(crate) fn table_full(&self) -> bool {
        (0..MAX_SEGMENTS).all(|index| {
            let at = offset_of!(Control, segments) + index * size_of::<MappedSegment>();
            self.word(at + offset_of!(MappedSegment, base)) != 0
        })
    }
}

/// What the agent writes before the gate: one contiguous range, from [`OPENING_AT`] on.
pub(crate) fn opening(
    nonce: u64,
    geometry: Geometry,
    (clock_kind, target_pid): (u32, u32),
    claim: Claim,
    generation: u32,
) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(112);
    let GeometryWords {
        size,
        stride,
        log2_slots,
        rings,
        ring_pitch,
        masks,
        process,
        ring_headers,
        slots,
    } = geometry.words();
    bytes.extend(nonce.to_le_bytes());
    bytes.extend(size.to_le_bytes());
    for half in [stride, log2_slots, rings, ring_pitch] {
        bytes.extend(half.to_le_bytes());
    }
    for word in [masks, process, ring_headers, slots] {
        bytes.extend(word.to_le_bytes());
    }
    bytes.extend(clock_kind.to_le_bytes());
    bytes.extend(target_pid.to_le_bytes());
    bytes.extend(claim_bytes(claim));
    bytes.extend(u64::from(generation).to_le_bytes());
    assert_eq!(OPENING_AT + bytes.len(), offset_of!(Control, agent_reserved));
    bytes
}

/// Where [`opening`] goes.
pub(crate) const OPENING_AT: usize = offset_of!(Control, nonce);

/// Where the kind of clock goes: 4 bytes.
pub(crate) const CLOCK_KIND_AT: usize = offset_of!(Control, clock_kind);

/// Where [`claim_bytes`] go.
pub(crate) const CLAIM_AT: usize = offset_of!(Control, claim);

/// A claim as it stands in a control page.
pub(crate) fn claim_bytes(claim: Claim) -> [u8; size_of::<Claim>()] {
    let mut bytes = [0; size_of::<Claim>()];
    let words = [claim.agent_pid, claim.start_time, claim.pid_namespace, claim.nonce];
    for (to, word) in bytes.chunks_exact_mut(8).zip(words) {
        to.copy_from_slice(&word.to_le_bytes());
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_opening_is_read_back() {
        let claim = Claim { agent_pid: 1, start_time: 2, pid_namespace: 3, nonce: 4 };
        let geometry = Geometry::new(64, 10, 4).unwrap();
        let mut page = vec![0; BYTES];
        let bytes = opening(9, geometry, (1, 77), claim, 5);
        page[OPENING_AT..OPENING_AT + bytes.len()].copy_from_slice(&bytes);
        let copy = ControlCopy::new(page);
        assert_eq!((copy.nonce(), copy.target_pid(), copy.generation()), (9, 77, 5));
        assert_eq!(copy.claim(), claim);
        assert_eq!(copy.half(CLOCK_KIND_AT), 1);
        assert_eq!(copy.gate(), 0);
        assert_eq!(copy.failure(0), None);
    }
}
