//! The offsets of the parts of a segment. They are computed from three numbers, so that two agents
//! compute the same ones.

use crate::abi::{
    CellWords, GeometryWords, LOG2_SLOTS, MARGIN, MAX_CELLS, MAX_RINGS, MAX_STRIDE, PAGE,
    RING_PITCH, ROW_ALIGN, Section, SegmentHeader, section_kind,
};

/// Shape of a segment. Fields are within the limits of [`crate::abi`] and the size fits in i64.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Geometry {
    stride: u32,
    log2_slots: u32,
    rings: u32,
    rows: RowGeometry,
}

/// The rows of cells of a segment. [`RowGeometry::NONE`] for a buffer without metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowGeometry {
    pitch: u32,
    count: u32,
}

impl RowGeometry {
    /// A segment without cells.
    pub const NONE: RowGeometry = RowGeometry { pitch: 0, count: 0 };

    /// `count` rows of `cells` cells each.
    ///
    /// # Errors
    /// A number is 0, or larger than a segment can hold.
    pub fn new(cells: u32, count: u32) -> Result<Self, GeometryError> {
        let refuse = |what, value| Err(GeometryError { what, value });
        match (cells, count) {
            (0, _) => Ok(Self::NONE),
            (cells, _) if cells > MAX_CELLS => refuse("cells", cells as u64),
            (_, count) if !(1..=MAX_RINGS + 1).contains(&count) => refuse("rows", count as u64),
            (cells, count) => Ok(Self { pitch: Self::bytes_of(cells), count }),
        }
    }

    /// Bytes of a row of `cells` cells.
    pub fn bytes_of(cells: u32) -> u32 {
        (cells * 8).next_multiple_of(ROW_ALIGN)
    }

    /// Number of rows: the shared one, and one for each ring up to the limit.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Bytes from one row to the next.
    pub fn pitch(&self) -> u32 {
        self.pitch
    }

    /// Bytes of all rows.
    pub fn bytes(&self) -> u64 {
        self.pitch as u64 * self.count as u64
    }
}

/// A number that no segment can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GeometryError {
    /// The name of the number.
    pub what: &'static str,
    /// The value that is not allowed.
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
    ///
    /// # Errors
    /// A number is 0, or larger than a segment can hold.
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
        let geometry = Self { stride, log2_slots, rings, rows: RowGeometry::NONE };
        match geometry.ring_bytes().checked_mul(rings as u64) {
            Some(bytes) if bytes < 1 << 46 => Ok(geometry),
            _ => refuse("rings", rings as u64),
        }
    }

    /// Adds rows of cells. Their number is at most one more than the number of rings.
    ///
    /// # Errors
    /// The segment would be larger than a segment can be.
    pub fn with_rows(self, rows: RowGeometry) -> Result<Self, GeometryError> {
        if rows.count <= self.rings + 1 {
            Ok(Self { rows, ..self })
        } else {
            Err(GeometryError { what: "rows", value: rows.count as u64 })
        }
    }

    /// Sets the number of slots of each ring to 2^`log2_slots`.
    ///
    /// # Errors
    /// The segment would be larger than a segment can be.
    pub fn with_slots(self, log2_slots: u32) -> Result<Self, GeometryError> {
        Self::new(self.stride, log2_slots, self.rings)?.with_rows(self.rows)
    }

    /// The rows of cells.
    pub fn rows(&self) -> RowGeometry {
        self.rows
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

    /// Largest number of frames that a reader can find in a ring.
    pub fn capacity(&self) -> u64 {
        self.slots() - MARGIN as u64
    }

    /// Bytes of one ring's slots.
    pub fn ring_bytes(&self) -> u64 {
        (self.stride as u64) << self.log2_slots
    }

    /// Bytes of the segment.
    pub fn size(&self) -> u64 {
        (self.rows_offset() + self.rows.bytes()).next_multiple_of(PAGE)
    }

    /// Offset of the first row of cells, and the end of the slots' pages: slots are given back by
    /// pages, cells never.
    pub fn rows_offset(&self) -> u64 {
        (self.slots_offset() + self.ring_bytes() * self.rings as u64).next_multiple_of(PAGE)
    }

    /// The location of the rows of segment `nonce`. All zero without cells.
    pub fn cell_words(&self, nonce: u64) -> CellWords {
        let RowGeometry { pitch, count } = self.rows;
        match count {
            0 => CellWords::NONE,
            rows => CellWords { nonce, offset: self.rows_offset(), pitch, rows },
        }
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

    /// The words that the target copies from its control page.
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
        let pitch = self.rows.pitch as u64;
        let cells = (section_kind::CELLS, self.rows_offset(), self.rows.bytes(), pitch);
        let cells = (self.rows != RowGeometry::NONE).then_some(cells);
        for (entry, (kind, offset, length, item)) in
            table.iter_mut().zip(parts.into_iter().chain(cells))
        {
            *entry = Section { kind, flags: 0, offset, length, item };
        }
        table
    }

    /// The sections of a segment whose masks may be written: with an entry that earlier agents do not
    /// know.
    pub fn masked_sections(&self) -> [Section; 16] {
        let mut table = self.sections();
        table[self.masked_index()] = self.masked_section();
        table
    }

    /// The index of the section of masks.
    pub(crate) fn masked_index(&self) -> usize {
        4 + usize::from(self.rows != RowGeometry::NONE)
    }

    /// The section of masks.
    pub(crate) fn masked_section(&self) -> Section {
        let (kind, offset) = (section_kind::MASKED, self.masks_offset());
        Section { kind, flags: 0, offset, length: PAGE, item: PAGE }
    }

    /// The geometry in a segment's header, if this code could have made it, and whether the
    /// segment's masks may be written.
    pub fn of_header(header: &SegmentHeader) -> Option<(Self, bool)> {
        let geometry = Self::new(header.stride, header.log2_slots, header.rings).ok()?;
        let geometry = geometry.with_rows(Self::rows_of(&header.sections[4])?).ok()?;
        let masked = header.sections == geometry.masked_sections();
        (header.ring_pitch == RING_PITCH
            && header.margin == MARGIN
            && (masked || header.sections == geometry.sections()))
        .then_some((geometry, masked))
    }

    /// The rows that a section describes, if it is a section of cells or empty.
    fn rows_of(section: &Section) -> Option<RowGeometry> {
        if section.kind != section_kind::CELLS {
            return Some(RowGeometry::NONE);
        }
        let pitch = u32::try_from(section.item)
            .ok()
            .filter(|number| *number > 0 && number % ROW_ALIGN == 0)?;
        let count = u32::try_from(section.length / section.item).ok()?;
        RowGeometry::new(pitch / 8, count).ok()
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
    fn rows_follow_the_slots() {
        let plain = Geometry::new(64, 4, 3).unwrap();
        let geometry = plain.with_rows(RowGeometry::new(17, 4).unwrap()).unwrap();
        assert_eq!((geometry.rows().pitch(), geometry.rows().count()), (256, 4));
        let [slots, cells, none] = *geometry.sections()[3..].first_chunk().unwrap();
        assert_eq!(slots, plain.sections()[3]);
        assert_eq!((cells.kind, cells.offset % PAGE, cells.length), (5, 0, 1024));
        assert!(slots.offset + slots.length <= cells.offset && none.kind == 0);
        assert_eq!(geometry.size(), plain.size() + PAGE);
        let words = geometry.cell_words(9);
        assert_eq!((words.nonce, words.offset), (9, cells.offset));
        assert_eq!(plain.cell_words(9).nonce, 0, "nothing is said of a segment without");
        let most = geometry.with_slots(26).unwrap();
        assert_eq!((most.rows(), most.slots()), (geometry.rows(), 1 << 26));
        assert_eq!(plain.with_rows(RowGeometry::new(17, 5).unwrap()).unwrap_err().what, "rows");
        assert_eq!(RowGeometry::new(17, 0).unwrap_err().what, "rows");
        assert_eq!(RowGeometry::new(MAX_CELLS + 1, 1).unwrap_err().what, "cells");
        assert_eq!(RowGeometry::new(0, 9), Ok(RowGeometry::NONE));
    }

    /// The first release compares the whole table with one without cells.
    #[test]
    fn a_header_says_whether_there_are_rows() {
        let plain = Geometry::new(64, 4, 3).unwrap();
        let geometry = plain.with_rows(RowGeometry::new(17, 4).unwrap()).unwrap();
        let header = |sections| SegmentHeader {
            magic: 0,
            abi_version: 1,
            length: 0,
            nonce: 1,
            margin: MARGIN,
            reserved: 0,
            schema_hash: 0,
            stride: 64,
            log2_slots: 4,
            rings: 3,
            ring_pitch: RING_PITCH,
            agent_pid: 0,
            created_mono_ns: 0,
            created_real_ns: 0,
            sections,
        };
        for it in [geometry, plain] {
            assert_eq!(Geometry::of_header(&header(it.sections())), Some((it, false)));
            assert_eq!(Geometry::of_header(&header(it.masked_sections())), Some((it, true)));
        }
        type Spoil = fn(&mut Section);
        let mut sections = plain.masked_sections();
        sections[4].offset += PAGE;
        assert_eq!(Geometry::of_header(&header(sections)), None);
        let spoils: [Spoil; 6] = [
            |section| section.item = 0,
            |section| section.item = u64::MAX,
            |section| section.item += 8,
            |section| section.length += 256,
            |section| section.length = u64::MAX,
            |section| section.offset += PAGE,
        ];
        for spoil in spoils {
            let mut sections = geometry.sections();
            spoil(&mut sections[4]);
            assert_eq!(Geometry::of_header(&header(sections)), None);
        }
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
