//! The control page of a target: bytes are copied out, decoded by offset, and never trusted.

use std::mem::offset_of;

use ppt_segment::abi::{
    CellWords, Claim, Control, DisabledWords, GeometryWords, MAX_SEGMENTS, MappedSegment,
};
use ppt_segment::handle::SegmentKind;
use ppt_segment::{Geometry, Masks};

/// A copy of a control page.
#[derive(Debug, Clone)]
pub(crate) struct ControlCopy(Vec<u8>);

/// Number of bytes of a control page that are in use.
pub(crate) const BYTES: usize = size_of::<Control>();

/// The target's own counters: frames that it refused while nothing was mapped, and frames for which
/// it could not map a segment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct TargetCounters {
    pub(crate) no_ring: u64,
    pub(crate) nested: u64,
    pub(crate) not_mapped: u64,
    /// Adds and observations made while no segment was mapped.
    pub(crate) adds_not_mapped: u64,
}

/// A segment of the target's table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ListedSegment {
    pub(crate) nonce: u64,
    pub(crate) size: u64,
    pub(crate) locator: SegmentLocator,
}

impl ListedSegment {
    pub(crate) fn kind(&self) -> SegmentKind {
        match self.locator {
            SegmentLocator::SysV(_) => SegmentKind::SysV,
            SegmentLocator::Memfd(_) => SegmentKind::Memfd,
        }
    }
}

/// The identifier by which a segment is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SegmentLocator {
    /// The System V id of the segment.
    SysV(i32),
    /// The number of the segment's descriptor in the target.
    Memfd(i32),
}

impl ControlCopy {
    pub(crate) fn new(bytes: Vec<u8>) -> Self {
        assert_eq!(bytes.len(), BYTES);
        Self(bytes)
    }

    /// An empty page, which stands for a page that a fork copied.
    pub(crate) fn blank() -> Self {
        Self(vec![0; BYTES])
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }

    fn u64_at(&self, at: usize) -> u64 {
        u64::from_le_bytes(self.0[at..at + 8].try_into().expect("8 bytes"))
    }

    fn u32_at(&self, at: usize) -> u32 {
        u32::from_le_bytes(self.0[at..at + 4].try_into().expect("4 bytes"))
    }

    pub(crate) fn gate(&self) -> u64 {
        self.u64_at(offset_of!(Control, gate))
    }

    pub(crate) fn nonce(&self) -> u64 {
        self.u64_at(offset_of!(Control, nonce))
    }

    pub(crate) fn target_pid(&self) -> u32 {
        self.u32_at(offset_of!(Control, target_pid))
    }

    pub(crate) fn generation(&self) -> u32 {
        self.u64_at(offset_of!(Control, generation)) as u32
    }

    pub(crate) fn claim(&self) -> Claim {
        let at = offset_of!(Control, claim);
        Claim {
            agent_pid: self.u64_at(at + offset_of!(Claim, agent_pid)),
            start_time: self.u64_at(at + offset_of!(Claim, start_time)),
            pid_namespace: self.u64_at(at + offset_of!(Claim, pid_namespace)),
            nonce: self.u64_at(at + offset_of!(Claim, nonce)),
        }
    }

    /// Whether another process asked the session that holds the claim to end.
    pub(crate) fn is_to_detach(&self) -> bool {
        let claim = self.claim().nonce;
        claim != 0 && self.u64_at(DETACH_AT) == claim
    }

    /// The masks of the session that holds the claim: the disabled frames, counters and histograms.
    pub(crate) fn masks(&self) -> Masks {
        let mut masks = Masks::ALL_ENABLED;
        if self.u64_at(DISABLED_AT) != self.claim().nonce {
            return masks;
        }
        for bit in 0..Masks::BITS {
            let word = self.u64_at(DISABLED_AT + 8 * (1 + bit as usize / 64));
            masks.set(bit, word >> (bit % 64) & 1 == 0);
        }
        masks
    }

    /// The errno of a segment that could not be mapped under `gate`.
    pub(crate) fn failure(&self, gate: u64) -> Option<i32> {
        let failed = self.u64_at(offset_of!(Control, failed_gate));
        let error = self.u64_at(offset_of!(Control, error));
        (gate != 0 && failed == gate && error >> 32 == gate >> 32).then_some(error as u32 as i32)
    }

    pub(crate) fn counters(&self) -> TargetCounters {
        TargetCounters {
            no_ring: self.u64_at(offset_of!(Control, no_ring)),
            nested: self.u64_at(offset_of!(Control, nested)),
            not_mapped: self.u64_at(offset_of!(Control, not_mapped)),
            adds_not_mapped: self.u64_at(offset_of!(Control, adds_not_mapped)),
        }
    }

    /// The segments that the target reports as mapped.
    pub(crate) fn segments(&self) -> Vec<ListedSegment> {
        let listed = |index: usize| {
            let at = offset_of!(Control, segments) + index * size_of::<MappedSegment>();
            let nonce = self.u64_at(at + offset_of!(MappedSegment, nonce));
            // A segment may have been mapped when only half of the handle was written. The half
            // that names the segment is complete.
            let handle = self.u64_at(at + offset_of!(MappedSegment, handle));
            let locator = match self.u64_at(offset_of!(Control, memfd) + index * 8) {
                0 if handle >> 31 & 1 == 0 => SegmentLocator::SysV(handle as i32 & i32::MAX),
                0 => return None, // being entered
                number => SegmentLocator::Memfd(i32::try_from(number - 1).ok()?),
            };
            let size = self.u64_at(at + offset_of!(MappedSegment, size));
            (nonce != 0).then_some(ListedSegment { nonce, size, locator })
        };
        (0..MAX_SEGMENTS).filter_map(listed).collect()
    }

    /// Whether the target has the segment of this name in its table.
    pub(crate) fn has_mapped(&self, nonce: u64) -> bool {
        self.segments().iter().any(|listed| listed.nonce == nonce)
    }

    /// Whether every entry of the table of segments is taken.
    pub(crate) fn is_table_full(&self) -> bool {
        (0..MAX_SEGMENTS).all(|index| {
            let at = offset_of!(Control, segments) + index * size_of::<MappedSegment>();
            self.u64_at(at + offset_of!(MappedSegment, base)) != 0
        })
    }
}

/// The words that the agent writes before the gate. They are one contiguous range from
/// [`OPENING_AT`] on.
pub(crate) struct Opening {
    pub(crate) nonce: u64,
    pub(crate) geometry: Geometry,
    pub(crate) clock_kind: u32,
    pub(crate) target_pid: u32,
    pub(crate) claim: Claim,
    pub(crate) generation: u32,
}

impl Opening {
    /// The bytes as in a control page.
    pub(crate) fn bytes(&self) -> Vec<u8> {
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
        } = self.geometry.words();
        bytes.extend(self.nonce.to_le_bytes());
        bytes.extend(size.to_le_bytes());
        for half in [stride, log2_slots, rings, ring_pitch] {
            bytes.extend(half.to_le_bytes());
        }
        for word in [masks, process, ring_headers, slots] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend(self.clock_kind.to_le_bytes());
        bytes.extend(self.target_pid.to_le_bytes());
        bytes.extend(claim_bytes(self.claim));
        bytes.extend(u64::from(self.generation).to_le_bytes());
        assert_eq!(OPENING_AT + bytes.len(), offset_of!(Control, follow_socket));
        bytes
    }
}

/// The offset of an [`Opening`].
pub(crate) const OPENING_AT: usize = offset_of!(Control, nonce);

/// The offset of the kind of clock, which has 4 bytes.
pub(crate) const CLOCK_KIND_AT: usize = offset_of!(Control, clock_kind);

/// The offset of the duration of a tick.
pub(crate) const TICK_SCALE_AT: usize = offset_of!(Control, tick_scale);

/// The offsets of the socket to which forked children report, and of the nonce of the claim, which
/// is written after the socket.
pub(crate) const FOLLOW_SOCKET_AT: usize = offset_of!(Control, follow_socket);
pub(crate) const FOLLOW_CLAIM_AT: usize = offset_of!(Control, follow_claim);

/// The offset of [`cell_bytes`].
pub(crate) const CELLS_AT: usize = offset_of!(Control, cells);

/// The location of the rows of cells, as bytes of a control page.
pub(crate) fn cell_bytes(words: CellWords) -> [u8; size_of::<CellWords>()] {
    let CellWords { nonce, offset, pitch, rows } = words;
    let halves = u64::from(rows) << 32 | u64::from(pitch);
    let mut bytes = [0; size_of::<CellWords>()];
    for (to, word) in bytes.chunks_exact_mut(8).zip([nonce, offset, halves]) {
        to.copy_from_slice(&word.to_le_bytes());
    }
    bytes
}

/// The offset of [`disabled_bytes`].
pub(crate) const DISABLED_AT: usize = offset_of!(Control, disabled);

/// The session's disabled masks, as bytes of a control page.
pub(crate) fn disabled_bytes(words: DisabledWords) -> Vec<u8> {
    let DisabledWords { nonce, bits } = words;
    std::iter::once(nonce).chain(bits).flat_map(u64::to_le_bytes).collect()
}

/// The offset of the word that names the session that is to end.
pub(crate) const DETACH_AT: usize = offset_of!(Control, detach);

/// The offset of [`claim_bytes`].
pub(crate) const CLAIM_AT: usize = offset_of!(Control, claim);

/// A claim, as bytes of a control page.
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
        let opening =
            Opening { nonce: 9, geometry, clock_kind: 1, target_pid: 77, claim, generation: 5 };
        let bytes = opening.bytes();
        page[OPENING_AT..OPENING_AT + bytes.len()].copy_from_slice(&bytes);
        let copy = ControlCopy::new(page);
        assert_eq!((copy.nonce(), copy.target_pid(), copy.generation()), (9, 77, 5));
        assert_eq!(copy.claim(), claim);
        assert_eq!(copy.u32_at(CLOCK_KIND_AT), 1);
        assert_eq!(copy.gate(), 0);
        assert_eq!(copy.failure(0), None);
    }

    #[test]
    fn segments_are_found_where_they_are() {
        let mut page = vec![0; BYTES];
        let mut put = |at: usize, word: u64| page[at..at + 8].copy_from_slice(&word.to_le_bytes());
        let row = |index| offset_of!(Control, segments) + index * size_of::<MappedSegment>();
        for (index, handle) in
            [7 << 32 | 5, 7 << 32 | 1 << 31 | 9, 1 << 31, 5].into_iter().enumerate()
        {
            put(row(index) + offset_of!(MappedSegment, handle), handle);
            put(row(index) + offset_of!(MappedSegment, nonce), 100 + index as u64);
        }
        put(offset_of!(Control, memfd) + 8, 257);
        // A handle of which only half was written when the segment was made.
        put(offset_of!(Control, memfd) + 24, 258);
        let found: Vec<_> = ControlCopy::new(page)
            .segments()
            .iter()
            .map(|segment| (segment.nonce, segment.locator))
            .collect();
        let expected = [
            (100, SegmentLocator::SysV(5)),
            (101, SegmentLocator::Memfd(256)),
            (103, SegmentLocator::Memfd(257)),
        ];
        assert_eq!(found, expected);
    }
}
