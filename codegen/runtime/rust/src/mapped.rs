//! A mapped segment: the addresses of its parts.

use std::mem::offset_of;
use std::slice;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use ppt_segment::abi::{
    ABI_VERSION, MAX_FRAMES, MaskPage, ProcessPage, SEGMENT_MAGIC, SegmentHeader, ring_word,
};
use ppt_segment::ring::Ring;

use super::shape::Shape;

/// The number of words of the target's counters.
pub(super) const PROCESS_WORDS: usize = size_of::<ProcessPage>() / 8;

/// The start of a mapped segment. All access to it is atomic: other processes share it.
///
/// Invariant: a whole header is mapped there, as long as this value is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Base(usize);

impl Base {
    /// # Safety
    /// A page or more is mapped at `address`, which is aligned to pages and of exposed provenance;
    /// nobody unmaps it before the last use of this value.
    pub unsafe fn new(address: usize) -> Self {
        Self(address)
    }

    /// The address, as in the table of mapped segments.
    pub fn address(self) -> u64 {
        self.0 as u64
    }

    fn at(self, offset: u64) -> *const AtomicU64 {
        std::ptr::with_exposed_provenance(self.0.wrapping_add(offset as usize))
    }

    /// The word at a byte offset of the header.
    fn header(self, offset: usize) -> u64 {
        assert!(offset % 8 == 0 && offset + 8 <= size_of::<SegmentHeader>());
        // SAFETY: a word of the header (asserted), which is mapped (invariant).
        unsafe { (*self.at(offset as u64)).load(Relaxed) }
    }

    /// The name of the segment.
    pub fn nonce(self) -> u64 {
        self.header(offset_of!(SegmentHeader, nonce))
    }

    /// Whether the header is that of segment `nonce`, and its parts are those of `shape`.
    pub fn is(self, nonce: u64, schema_hash: u64, shape: &Shape) -> bool {
        let g = shape.words();
        let halves = |low: u32, high: u32| u64::from(high) << 32 | u64::from(low);
        let words = [
            (offset_of!(SegmentHeader, magic), SEGMENT_MAGIC),
            (offset_of!(SegmentHeader, nonce), nonce),
            (offset_of!(SegmentHeader, schema_hash), schema_hash),
            (offset_of!(SegmentHeader, stride), halves(g.stride, g.log2_slots)),
            (offset_of!(SegmentHeader, rings), halves(g.rings, g.ring_pitch)),
        ];
        let sections = shape.sections();
        let sections = sections.flat_map(|section| {
            [halves(section.kind, section.flags), section.offset, section.length, section.item]
        });
        let first = offset_of!(SegmentHeader, sections);
        self.header(offset_of!(SegmentHeader, abi_version)) as u32 == ABI_VERSION
            && words.iter().all(|(offset, word)| self.header(*offset) == *word)
            && (first..).step_by(8).zip(sections).all(|(offset, word)| self.header(offset) == word)
    }
}

/// A segment that this process has mapped and never unmaps.
///
/// Invariant: `shape` lies in the mapping, which is there until the process ends.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mapped {
    base: Base,
    shape: Shape,
}

impl Mapped {
    /// # Safety
    /// `shape.words().size` bytes are mapped at `base`, until the process ends.
    pub unsafe fn new(base: Base, shape: Shape) -> Self {
        Self { base, shape }
    }

    /// The number of rings.
    pub fn rings(&self) -> u32 {
        self.shape.words().rings
    }

    /// The mask of frames.
    pub fn enable(&self) -> &'static [AtomicU64; MAX_FRAMES / 64] {
        let offset = self.shape.words().masks + offset_of!(MaskPage, enable) as u64;
        // SAFETY: a page from there on lies in the mapping (`Shape`), aligned to words.
        unsafe { &*self.base.at(offset).cast() }
    }

    /// The counters of refused frames.
    pub fn process(&self) -> &'static [AtomicU64; PROCESS_WORDS] {
        // SAFETY: as above.
        unsafe { &*self.base.at(self.shape.words().process).cast() }
    }

    /// The first cell of row `index`: 0 is the shared row, `r + 1` that of ring `r`. None if there is no such
    /// row.
    pub fn row(&self, index: u32) -> Option<*const AtomicU64> {
        let rows = self.shape.rows();
        let offset = rows.offset + u64::from(index) * u64::from(rows.pitch);
        (index < rows.rows).then(|| self.base.at(offset))
    }

    /// Ring `index` and its slots.
    ///
    /// # Panics
    /// There is no such ring.
    pub fn ring(&self, index: u32) -> (&'static [AtomicU64], Ring<'static, AtomicU64>) {
        let (g, bytes) = (self.shape.words(), self.shape.ring_bytes());
        assert!(index < g.rings);
        let index = u64::from(index);
        let header = self.base.at(g.ring_headers + index * u64::from(g.ring_pitch));
        let slots = self.base.at(g.slots + index * bytes);
        // SAFETY: there are that many rings (asserted), whose headers and slots lie in the mapping
        // (`Shape`), aligned to words.
        let (header, slots) = unsafe {
            (
                slice::from_raw_parts(header, ring_word::COUNT),
                slice::from_raw_parts(slots, bytes as usize / 8),
            )
        };
        (slots, Ring::new(header, slots, g.stride as usize / 8))
    }
}
