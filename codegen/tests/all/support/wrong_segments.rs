//! Segments that no agent makes, and the error with which every runtime must refuse each.

use std::mem::offset_of;

use ppt_segment::abi::{CellWords, GeometryWords, MAX_RINGS, PAGE, Section, SegmentHeader};

/// Changes a geometry to one that no segment can have; the error is EPROTO.
type Spoil = fn(&mut GeometryWords);

/// Changes the location of 4 rows of 100 cells in a segment of 3 rings to an impossible one.
#[allow(dead_code, reason = "each test that includes this file uses some of it")]
type SpoilRows = fn(&mut CellWords);

#[allow(dead_code, reason = "as above")]
pub const WRONG_ROWS: [(&str, SpoilRows); 10] = [
    ("rows in the header", |rows| rows.offset = 0),
    ("rows in the slots", |rows| rows.offset -= PAGE),
    ("rows between words", |rows| rows.offset += 4),
    ("rows behind the end", |rows| rows.offset += PAGE),
    ("rows around the end", |rows| rows.offset = u64::MAX - 7),
    ("shorter rows", |rows| rows.pitch = 99 * 8),
    ("uneven rows", |rows| rows.pitch += 4),
    ("endless rows", |rows| rows.pitch = u32::MAX / 8 * 8),
    ("more rows than threads", |rows| rows.rows = 5),
    ("endlessly many rows", |rows| rows.rows = u32::MAX),
];

pub const WRONG_GEOMETRIES: [(&str, Spoil); 30] = [
    ("nothing", |g| g.size = 0),
    ("a page less", |g| g.size -= PAGE),
    ("a page more", |g| g.size += PAGE),
    ("part of a page", |g| g.size -= 8),
    ("endless", |g| g.size = u64::MAX / PAGE * PAGE),
    ("slots of another stride", |g| g.stride += 8),
    ("slots of no bytes", |g| g.stride = 0),
    ("one slot", |g| g.log2_slots = 0),
    ("twice the slots", |g| g.log2_slots += 16),
    ("too many slots", |g| g.log2_slots = 27),
    ("slots by a shift that wraps", |g| g.log2_slots += 64),
    ("no rings", |g| g.rings = 0),
    ("a page of rings more", |g| g.rings += (PAGE / 512) as u32),
    ("too many rings", |g| g.rings = MAX_RINGS + 1),
    ("ring headers over each other", |g| g.ring_pitch -= 8),
    ("ring headers between words", |g| g.ring_pitch += 4),
    ("ring headers far apart", |g| g.ring_pitch = u32::MAX / 8 * 8),
    ("masks in the header", |g| g.masks = 0),
    ("masks between words", |g| g.masks += 4),
    ("masks behind the end", |g| g.masks = g.size),
    ("masks around the end", |g| g.masks = u64::MAX - 7),
    ("counters in the header", |g| g.process = 0),
    ("counters between words", |g| g.process += 4),
    ("counters at the end", |g| g.process = g.size - 8),
    ("rings in the header", |g| g.ring_headers = 0),
    ("rings at the end", |g| g.ring_headers = g.size - 512),
    ("rings around the end", |g| g.ring_headers = u64::MAX - 511),
    ("slots in the header", |g| g.slots = 0),
    ("slots between words", |g| g.slots += 4),
    ("slots around the end", |g| g.slots = u64::MAX - 7),
];

const fn section(index: usize, offset: usize) -> usize {
    offset_of!(SegmentHeader, sections) + index * size_of::<Section>() + offset
}

/// Bytes of a header in which each bit identifies the segment; the error for a wrong one is ESTALE.
pub const WRONG_HEADERS: [(&str, usize); 14] = [
    ("magic", offset_of!(SegmentHeader, magic)),
    ("ABI version", offset_of!(SegmentHeader, abi_version)),
    ("nonce", offset_of!(SegmentHeader, nonce)),
    ("schema hash", offset_of!(SegmentHeader, schema_hash)),
    ("stride", offset_of!(SegmentHeader, stride)),
    ("slots", offset_of!(SegmentHeader, log2_slots)),
    ("rings", offset_of!(SegmentHeader, rings)),
    ("pitch", offset_of!(SegmentHeader, ring_pitch)),
    ("kind of the first part", section(0, offset_of!(Section, kind))),
    ("place of the masks", section(0, offset_of!(Section, offset))),
    ("place of the counters", section(1, offset_of!(Section, offset))),
    ("bytes of the ring headers", section(2, offset_of!(Section, length))),
    ("place of the slots", section(3, offset_of!(Section, offset))),
    ("bytes of the slots", section(3, offset_of!(Section, length))),
];
