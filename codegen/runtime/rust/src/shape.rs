//! How a segment is laid out, as far as this program has checked it.

use ppt_segment::abi::{
    GeometryWords, HEADER_LENGTH, LOG2_SLOTS, MAX_RINGS, PAGE, Section, ring_word, section_kind,
};

/// A geometry that a segment can have: masks, counters, ring headers and slots lie inside, behind
/// the header, and the slots come last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape(GeometryWords);

impl Shape {
    /// Checks what the control page says, for slots of `stride` bytes.
    pub fn of(words: GeometryWords, stride: u32) -> Option<Self> {
        let g = words;
        let shape_of_rings = g.stride == stride
            && LOG2_SLOTS.contains(&g.log2_slots)
            && (1..=MAX_RINGS).contains(&g.rings)
            && g.ring_pitch as usize >= ring_word::COUNT * 8
            && g.ring_pitch % 8 == 0;
        if !shape_of_rings {
            return None;
        }
        let end = |start: u64, count: u32, bytes: u64| {
            let end = start.checked_add(u64::from(count).checked_mul(bytes)?)?;
            let inside = start % 8 == 0 && start >= u64::from(HEADER_LENGTH) && end <= g.size;
            inside.then_some(end)
        };
        end(g.masks, 1, PAGE)?;
        end(g.process, 1, PAGE)?;
        end(g.ring_headers, g.rings, u64::from(g.ring_pitch))?;
        let end = end(g.slots, g.rings, u64::from(stride) << g.log2_slots)?;
        (g.size % PAGE == 0 && g.size - end < PAGE).then_some(Self(g))
    }

    /// The words, which have been checked.
    pub fn words(&self) -> &GeometryWords {
        &self.0
    }

    /// Bytes of one ring's slots.
    pub fn ring_bytes(&self) -> u64 {
        u64::from(self.0.stride) << self.0.log2_slots
    }

    /// The head of the section table of the segment's header.
    pub fn sections(&self) -> [Section; 4] {
        let g = &self.0;
        let (rings, pitch) = (u64::from(g.rings), u64::from(g.ring_pitch));
        let section = |kind, offset, length, item| Section { kind, flags: 0, offset, length, item };
        let (slots, stride) = (rings * self.ring_bytes(), u64::from(g.stride));
        [
            section(section_kind::MASKS, g.masks, PAGE, PAGE),
            section(section_kind::PROCESS, g.process, PAGE, PAGE),
            section(section_kind::RING_HEADERS, g.ring_headers, rings * pitch, pitch),
            section(section_kind::SLOTS, g.slots, slots, stride),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wrong_segments::WRONG_GEOMETRIES;
    use ppt_segment::Geometry;

    #[test]
    fn an_agents_geometry_is_a_shape() {
        for (log2_slots, rings) in [(1, 1), (10, 3), (14, 64), (26, 1), (1, MAX_RINGS)] {
            let geometry = Geometry::new(64, log2_slots, rings).unwrap();
            let shape = Shape::of(geometry.words(), 64).unwrap();
            assert_eq!(shape.sections(), geometry.sections()[..4]);
            assert_eq!(shape.ring_bytes(), geometry.ring_bytes());
        }
    }

    #[test]
    fn others_are_not() {
        for (what, spoil) in WRONG_GEOMETRIES {
            let mut words = Geometry::new(64, 4, 3).unwrap().words();
            spoil(&mut words);
            assert_eq!(Shape::of(words, 64), None, "{what}");
        }
    }
}
