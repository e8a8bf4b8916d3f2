//! The offsets of the parts of a segment. They are computed from three numbers, so that two agents
//! agree.

use crate::abi::{
    GeometryWords, LOG2_SLOTS, MARGIN, MAX_RINGS, MAX_STRIDE, PAGE, RING_PITCH, Section,
    SegmentHeader, section_kind,
};

/// Shape of a segment. Fields are within the limits of [`crate::abi`] and the size fits in i64.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Geometry {
    stride: u32,
    log2_slots: u32,
    rings: u32,
}

/// A number that no segment can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GeometryError {
    /// Which of the three.
    pub what: &'static str,
    /// Its value.
    pub value: u64,
}

impl std::fmt::Display for GeometryError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "a segment cannot have {} = {}", self.what, self.value)
    }
}

impl std::error::Error for GeometryError {}

impl Geometry {
    /// A geometry of `rings` rings of 2^`log2_slots` slots of `stride` bytes.
    pub fn new(stride: u32, log2_slots: u32, rings: u32) -> Result<Self, GeometryError> {
        let refuse = |what, value| Err(GeometryError { what, value });
        if !(16..=MAX_STRIDE).contains(&stride) || stride % 8 != 0 {
            return refuse("stride", stride as u64);
        }
        if !LOG2_SLOTS.contains(&log2_slots) {
            return refuse("log2_slots", log2_slots as u64);
        }
        if !(1..=MAX_RINGS).contains(&rings) {
            return refuse("rings", rings as u64);
        }
        let geometry = Self { stride, log2_slots, rings };
        match geometry.ring_bytes().checked_mul(rings as u64) {
            Some(bytes) if bytes < 1 << 46 => Ok(geometry),
            _ => refuse("rings", rings as u64),
        }
    }

    /// Bytes of one slot.
    pub fn stride(&self) -> u32 {
        self.stride
    }

    /// Slots per ring.
    pub fn slots(&self) -> u64 {
        1 << self.log2_slots
    }

    /// Slots per ring, as a power of two.
    pub fn log2_slots(&self) -> u32 {
        self.log2_slots
    }

    /// Number of rings.
    pub fn rings(&self) -> u32 {
        self.rings
    }

    /// Frames that a reader may find in a ring.
    pub fn capacity(&self) -> u64 {
        self.slots() - MARGIN as u64
    }

    /// Bytes of one ring's slots.
    pub fn ring_bytes(&self) -> u64 {
        (self.stride as u64) << self.log2_slots
    }

    /// Bytes of the segment.
    pub fn size(&self) -> u64 {
        (self.slots_offset() + self.ring_bytes() * self.rings as u64).next_multiple_of(PAGE)
    }

    /// Offset of the mask page.
    pub fn masks_offset(&self) -> u64 {
        PAGE
    }

    /// Offset of the process page.
    pub fn process_offset(&self) -> u64 {
        2 * PAGE
    }

    /// Offset of the first ring header.
    pub fn headers_offset(&self) -> u64 {
        3 * PAGE
    }

    /// Offset of the first slot.
    pub fn slots_offset(&self) -> u64 {
        (self.headers_offset() + RING_PITCH as u64 * self.rings as u64).next_multiple_of(PAGE)
    }

    /// The words that the target copies out of its control page.
    pub fn words(&self) -> GeometryWords {
        GeometryWords {
            size: self.size(),
            stride: self.stride,
            log2_slots: self.log2_slots,
            rings: self.rings,
            ring_pitch: RING_PITCH,
            masks: self.masks_offset(),
            process: self.process_offset(),
            ring_headers: self.headers_offset(),
            slots: self.slots_offset(),
        }
    }

    /// The section table of the segment's header.
    pub fn sections(&self) -> [Section; 16] {
        let mut table = [Section { kind: 0, flags: 0, offset: 0, length: 0, item: 0 }; 16];
        let headers = RING_PITCH as u64 * self.rings as u64;
        let slots = self.ring_bytes() * self.rings as u64;
        let parts = [
            (section_kind::MASKS, self.masks_offset(), PAGE, PAGE),
            (section_kind::PROCESS, self.process_offset(), PAGE, PAGE),
            (section_kind::RING_HEADERS, self.headers_offset(), headers, RING_PITCH as u64),
            (section_kind::SLOTS, self.slots_offset(), slots, self.stride as u64),
        ];
        for (entry, (kind, offset, length, item)) in table.iter_mut().zip(parts) {
            *entry = Section { kind, flags: 0, offset, length, item };
        }
        table
    }

    /// The geometry that a segment's header claims, if it is one that this code would make.
    pub fn of_header(header: &SegmentHeader) -> Option<Self> {
        let geometry = Self::new(header.stride, header.log2_slots, header.rings).ok()?;
        (header.ring_pitch == RING_PITCH
            && header.margin == MARGIN
            && header.sections == geometry.sections())
        .then_some(geometry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_follow_each_other() {
        let geometry = Geometry::new(64, 14, 64).unwrap();
        let sections = geometry.sections();
        for pair in sections[..4].windows(2) {
            assert!(pair[0].offset + pair[0].length <= pair[1].offset);
            assert_eq!(pair[1].offset % PAGE, 0);
        }
        assert!(sections[3].offset + sections[3].length <= geometry.size());
        assert_eq!(sections[4].kind, 0);
    }

    #[test]
    fn limits_are_kept() {
        assert_eq!(Geometry::new(20, 4, 1).unwrap_err().what, "stride");
        assert_eq!(Geometry::new(8, 4, 1).unwrap_err().what, "stride");
        assert_eq!(Geometry::new(64, 0, 1).unwrap_err().what, "log2_slots");
        assert_eq!(Geometry::new(64, 27, 1).unwrap_err().what, "log2_slots");
        assert_eq!(Geometry::new(64, 4, 0).unwrap_err().what, "rings");
        assert_eq!(Geometry::new(4096, 26, 65536).unwrap_err().what, "rings");
    }
}
