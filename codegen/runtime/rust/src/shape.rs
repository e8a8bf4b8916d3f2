//! The checked layout of a segment.

use ppt_segment::abi::{
    CellWords, GeometryWords, HEADER_LENGTH, LOG2_SLOTS, MAX_RINGS, PAGE, Section, ring_word,
    section_kind,
};

/// A valid geometry: masks, counters, ring headers, slots and rows of cells lie inside the segment, after the
/// header, in this order, and fill it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape(GeometryWords, CellWords);

impl Shape {
    /// Checks the geometry of the control page for slots of `stride` bytes and rows of `cells` cells.
    pub fn of(words: GeometryWords, rows: CellWords, stride: u32, cells: u64) -> Option<Self> {
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
        let mut last = end(g.slots, g.rings, u64::from(stride) << g.log2_slots)?;
        if rows.rows > 0 {
            let pitch = u64::from(rows.pitch);
            let fit = rows.rows <= g.rings + 1
                && pitch % 8 == 0
                && pitch >= cells.checked_mul(8)?
                && rows.offset >= last;
            last = end(rows.offset, rows.rows, pitch).filter(|_| fit)?;
        }
        (g.size % PAGE == 0 && g.size - last < PAGE).then_some(Self(g, rows))
    }

    /// The checked words.
    pub fn words(&self) -> &GeometryWords {
        &self.0
    }

    /// The checked rows of cells.
    pub fn rows(&self) -> &CellWords {
        &self.1
    }

    /// The size of the slots of a ring in bytes.
    pub fn ring_bytes(&self) -> u64 {
        u64::from(self.0.stride) << self.0.log2_slots
    }

    /// The head of the section table of the segment's header.
    pub fn sections(&self) -> impl Iterator<Item = Section> + Clone {
        let g = &self.0;
        let (rings, pitch) = (u64::from(g.rings), u64::from(g.ring_pitch));
        let section = |kind, offset, length, item| Section { kind, flags: 0, offset, length, item };
        let (slots, stride) = (rings * self.ring_bytes(), u64::from(g.stride));
        let (rows, row) = (u64::from(self.1.rows), u64::from(self.1.pitch));
        let cells = section(section_kind::CELLS, self.1.offset, rows * row, row);
        let sections = [
            section(section_kind::MASKS, g.masks, PAGE, PAGE),
            section(section_kind::PROCESS, g.process, PAGE, PAGE),
            section(section_kind::RING_HEADERS, g.ring_headers, rings * pitch, pitch),
            section(section_kind::SLOTS, g.slots, slots, stride),
        ];
        sections.into_iter().chain((rows > 0).then_some(cells))
    }

    /// The entry behind that, of a segment whose masks may be written at any time.
    pub fn masked_section(&self) -> Section {
        let (kind, offset) = (section_kind::MASKED, self.0.masks);
        Section { kind, flags: 0, offset, length: PAGE, item: PAGE }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wrong_segments::{WRONG_GEOMETRIES, WRONG_ROWS};
    use ppt_segment::{Geometry, RowGeometry};

    #[test]
    fn an_agents_geometry_is_a_shape() {
        for (log2_slots, rings) in [(1, 1), (10, 3), (14, 64), (26, 1), (1, MAX_RINGS)] {
            let geometry = Geometry::new(64, log2_slots, rings).unwrap();
            let shape = Shape::of(geometry.words(), CellWords::NONE, 64, 0).unwrap();
            assert!(shape.sections().eq(geometry.sections()[..4].iter().copied()));
            assert_eq!(shape.ring_bytes(), geometry.ring_bytes());
            let geometry = geometry.with_rows(RowGeometry::new(100, rings).unwrap()).unwrap();
            let shape = Shape::of(geometry.words(), geometry.cell_words(9), 64, 100).unwrap();
            assert!(shape.sections().eq(geometry.sections()[..5].iter().copied()));
            assert_eq!(shape.masked_section(), geometry.masked_sections()[5]);
        }
    }

    #[test]
    fn others_are_not() {
        for (what, spoil) in WRONG_GEOMETRIES {
            let mut words = Geometry::new(64, 4, 3).unwrap().words();
            spoil(&mut words);
            assert_eq!(Shape::of(words, CellWords::NONE, 64, 0), None, "{what}");
        }
        for (what, spoil) in WRONG_ROWS {
            let geometry = Geometry::new(64, 4, 3).unwrap();
            let geometry = geometry.with_rows(RowGeometry::new(100, 4).unwrap()).unwrap();
            let mut rows = geometry.cell_words(9);
            assert!(Shape::of(geometry.words(), rows, 64, 100).is_some());
            spoil(&mut rows);
            assert_eq!(Shape::of(geometry.words(), rows, 64, 100), None, "{what}");
        }
    }
}
