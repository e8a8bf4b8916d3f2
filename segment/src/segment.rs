//! A segment in the agent and the listener: made or adopted, and mapped. Its content is not
//! trusted. Its geometry is the one that ppt computed, never the one that the memory states.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::abi::{
    ABI_VERSION, HEADER_LENGTH, MARGIN, MAX_FRAMES, MaskPage, PAGE, ProcessPage, RING_PITCH,
    SEGMENT_MAGIC, SHM_KEY_PREFIX, SLOWDOWN_OFFSET, Section, SegmentHeader, ring_word,
};
use crate::geometry::Geometry;
use crate::mapping::Mapping;
use crate::masks::Masks;
use crate::memfd::MemfdError;
use crate::ring::Ring;
use crate::slowdown::{self, Slowdown};
use crate::{masks, memfd, sysv};

mod memory;

pub use memory::{FIRST_BYTES, RINGS_AHEAD};

/// A mapped segment.
#[derive(Debug)]
pub struct Segment {
    mapping: Mapping,
    id: Option<i32>,
    nonce: u64,
    geometry: Geometry,
    own: bool,
    /// Whether earlier agents never adopt it.
    masked: bool,
}

/// Words from one ring header to the next.
const PITCH: usize = RING_PITCH as usize / 8;

/// The cursors of all rings of a segment.
#[derive(Debug, Clone, Copy)]
pub struct Cursors<'a>(&'a [AtomicU64]);

impl Cursors<'_> {
    /// Frames published so far in ring `index`: see [`Ring::tail`].
    ///
    /// # Panics
    /// If there are not that many rings.
    #[inline(always)]
    pub fn tail(&self, index: usize) -> u64 {
        self.0[index * PITCH + ring_word::TAIL].load(Ordering::Acquire)
    }
}

/// The identity of a segment, and the shape of its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SegmentIdentity {
    /// Random, never 0.
    pub nonce: u64,
    /// Hash of the schema's layout part.
    pub schema_hash: u64,
    /// The geometry.
    pub geometry: Geometry,
}

/// The owner of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct User {
    /// User id.
    pub uid: u32,
    /// Group id.
    pub gid: u32,
}

/// The time at which a segment was made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Created {
    /// CLOCK_MONOTONIC, ns.
    pub mono_ns: u64,
    /// CLOCK_REALTIME, ns.
    pub real_ns: u64,
}

/// Frames that the target refused, as its process page counts them: cumulative.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RefusedFrames {
    /// No ring was free.
    pub no_ring: u64,
    /// Inside another write.
    pub nested: u64,
}

/// Why a segment could not be adopted.
#[derive(Debug)]
pub enum AdoptError {
    /// A system call failed: usually, the segment is gone.
    System(io::Error),
    /// The segment is another one. The field that differs.
    Differs(&'static str),
}

impl From<MemfdError> for AdoptError {
    fn from(error: MemfdError) -> AdoptError {
        match error {
            MemfdError::System(error) => AdoptError::System(error),
            MemfdError::Unmet(requirement) => AdoptError::Differs(requirement),
        }
    }
}

impl Segment {
    /// Makes a segment that is already marked for removal. It belongs to `user`, if given.
    ///
    /// `random` yields the lower halves of keys until one is free. The memory is zero, except the
    /// header and the enable masks (all ones).
    ///
    /// # Errors
    /// shmget(2), shmat(2) or shmctl(2) fails.
    pub fn create(
        identity: SegmentIdentity,
        user: Option<User>,
        created: Created,
        mut random: impl FnMut() -> u16,
    ) -> io::Result<Self> {
        let SegmentIdentity { nonce, schema_hash, geometry } = identity;
        let id = loop {
            let key = (SHM_KEY_PREFIX | random() as u32) as i32;
            match sysv::create(key, geometry.size()) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                other => break other?,
            }
        };
        let mapping = sysv::attach(id);
        sysv::mark_removed(id)?;
        let segment =
            Self { mapping: mapping?, id: Some(id), nonce, geometry, own: false, masked: true };
        if let Some(User { uid, gid }) = user {
            sysv::set_owner(id, uid, gid)?;
        }
        segment.initialise(schema_hash, created);
        Ok(segment)
    }

    /// Writes the header and enables all frames; no other process knows the segment yet.
    fn initialise(&self, schema_hash: u64, created: Created) {
        let geometry = self.geometry;
        let header = SegmentHeader {
            magic: SEGMENT_MAGIC,
            abi_version: ABI_VERSION,
            length: HEADER_LENGTH,
            nonce: self.nonce,
            margin: MARGIN,
            reserved: 0,
            schema_hash,
            stride: geometry.stride(),
            log2_slots: geometry.log2_slots(),
            rings: geometry.rings(),
            ring_pitch: RING_PITCH,
            agent_pid: std::process::id() as u64,
            created_mono_ns: created.mono_ns,
            created_real_ns: created.real_ns,
            sections: geometry.masked_sections(),
        };
        // SAFETY: the mapping is at least a page, page-aligned, and no other process knows it yet.
        unsafe { self.mapping.base().cast::<SegmentHeader>().write_volatile(header) };
        self.set_masks(&Masks::ALL_ENABLED);
    }

    /// Creates the placeholder of a segment that the target will make. Its rings have no owner and
    /// no frame until [`Self::fill`] replaces its memory by the target's.
    ///
    /// # Errors
    /// mmap(2) fails.
    pub fn awaited(identity: SegmentIdentity) -> io::Result<Self> {
        let SegmentIdentity { nonce, geometry, .. } = identity;
        Ok(Self {
            mapping: Mapping::zeros(geometry.size())?,
            id: None,
            nonce,
            geometry,
            own: false,
            masked: true,
        })
    }

    /// Private memory of ppt, for frames that ppt itself writes. Sequence numbers may be
    /// [lost](crate::RingWriter::lose) there.
    ///
    /// # Errors
    /// memfd_create(2), ftruncate(2) or mmap(2) fails.
    pub fn create_for_self(identity: SegmentIdentity) -> io::Result<Self> {
        Ok(Self { own: true, ..Self::awaited(identity)? })
    }

    /// Whether ppt itself writes its frames.
    pub fn is_own(&self) -> bool {
        self.own
    }

    /// Replaces this segment's memory by the memfd that a target made, if that is the expected
    /// segment. Readers see the change in one step. Returns whether its maker supports masks, and
    /// so writes no frame that the control page disables.
    ///
    /// # Errors
    /// The file is not the expected segment, or cannot be mapped.
    pub fn fill(&self, file: BorrowedFd<'_>, schema_hash: u64) -> Result<bool, AdoptError> {
        let Self { nonce, geometry, .. } = *self;
        // Checked in a temporary mapping.
        let made = Self::adopt_file(file, SegmentIdentity { nonce, schema_hash, geometry })?;
        self.mapping.replace(file).map_err(AdoptError::System)?;
        self.mark();
        Ok(made.masked)
    }

    /// Tells earlier agents to keep away, unless its maker has done so. The maker never reads the
    /// entry.
    fn mark(&self) {
        let index = self.geometry.masked_index();
        let at = std::mem::offset_of!(SegmentHeader, sections) + index * size_of::<Section>();
        let Section { kind, flags, offset, length, item } = self.geometry.masked_section();
        let words = [u64::from(flags) << 32 | u64::from(kind), offset, length, item];
        let entry = self.words(at as u64, words.len());
        // The kind comes last: earlier agents accept a table without it.
        for (to, word) in entry.iter().zip(words).rev() {
            to.store(word, Ordering::Release);
        }
    }

    /// Whether its masks may be written: earlier agents, which would leave them as they are, never
    /// adopt it.
    pub fn is_masked(&self) -> bool {
        self.masked
    }

    /// Maps a target's memfd if it is the expected segment. It writes nothing.
    ///
    /// # Errors
    /// The file is not the expected segment, or cannot be mapped.
    pub fn adopt_file(file: BorrowedFd<'_>, expected: SegmentIdentity) -> Result<Self, AdoptError> {
        let mapping = memfd::map(file, expected.geometry.size())?;
        Self::check(mapping, None, expected.nonce, expected.schema_hash)?.expect(expected.geometry)
    }

    /// Maps a target's memfd, of `size` bytes, whatever its geometry.
    ///
    /// # Errors
    /// The header does not fit, or the file cannot be mapped.
    pub fn adopt_any_file(
        file: BorrowedFd<'_>,
        size: u64,
        nonce: u64,
        schema_hash: u64,
    ) -> Result<Self, AdoptError> {
        let mapping = memfd::map(file, size)?;
        Self::check(mapping, None, nonce, schema_hash)
    }

    /// Attaches segment `id` if it is the expected one. It writes nothing.
    ///
    /// # Errors
    /// The memory is not the expected segment, or cannot be attached.
    pub fn adopt(id: i32, expected: SegmentIdentity) -> Result<Self, AdoptError> {
        Self::adopt_any(id, expected.nonce, expected.schema_hash)?.expect(expected.geometry)
    }

    /// Attaches segment `id` with any geometry that fits its size.
    ///
    /// # Errors
    /// The header does not fit, or the memory cannot be attached.
    pub fn adopt_any(id: i32, nonce: u64, schema_hash: u64) -> Result<Self, AdoptError> {
        let mapping = sysv::attach(id).map_err(AdoptError::System)?;
        Self::check(mapping, Some(id), nonce, schema_hash)
    }

    fn expect(self, geometry: Geometry) -> Result<Self, AdoptError> {
        if self.geometry == geometry { Ok(self) } else { Err(AdoptError::Differs("geometry")) }
    }

    /// Accepts a header as far as it is consistent with the size of the mapping.
    fn check(
        mapping: Mapping,
        id: Option<i32>,
        nonce: u64,
        schema_hash: u64,
    ) -> Result<Self, AdoptError> {
        if mapping.size() < PAGE as usize {
            return Err(AdoptError::Differs("size"));
        }
        // SAFETY: at least a page (checked), page-aligned, and any bytes make a SegmentHeader.
        let header = unsafe { mapping.base().cast::<SegmentHeader>().read_volatile() };
        let differs = if header.magic != SEGMENT_MAGIC {
            "magic"
        } else if header.abi_version != ABI_VERSION {
            "ABI version"
        } else if header.nonce != nonce {
            "nonce"
        } else if header.schema_hash != schema_hash {
            "schema hash"
        } else if let Some((geometry, masked)) = Geometry::of_header(&header) {
            if mapping.size() as u64 >= geometry.size() {
                return Ok(Self { mapping, id, nonce, geometry, own: false, masked });
            } else {
                "size"
            }
        } else {
            "geometry"
        };
        Err(AdoptError::Differs(differs))
    }

    /// The id by which it is attached. None if the target makes it.
    pub fn id(&self) -> Option<i32> {
        self.id
    }

    /// The nonce of the segment.
    pub fn nonce(&self) -> u64 {
        self.nonce
    }

    /// The geometry that ppt gave it.
    pub fn geometry(&self) -> Geometry {
        self.geometry
    }

    /// Whether its memory was truncated. It reads as zeros from then on.
    pub fn truncated(&self) -> bool {
        self.mapping.faulted()
    }

    fn words(&self, offset: u64, count: usize) -> &[AtomicU64] {
        let offset = offset as usize;
        assert!(offset % 8 == 0 && offset + count * 8 <= self.mapping.size());
        // SAFETY: inside the mapping and aligned (asserted); the mapping lives as long as `self`,
        // and all access to these words is atomic.
        unsafe { std::slice::from_raw_parts(self.mapping.base().add(offset).cast(), count) }
    }

    /// Makes threads write the frames that `masks` has not disabled, from their next load of the
    /// mask on.
    pub fn set_masks(&self, masks: &Masks) {
        let offset = self.geometry.masks_offset() + std::mem::offset_of!(MaskPage, enable) as u64;
        if masks::put(self.words(offset, MAX_FRAMES / 64), masks) {
            let epoch = std::mem::offset_of!(MaskPage, epoch) as u64;
            self.words(self.geometry.masks_offset() + epoch, 1)[0].fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The words by which the agent makes an interval take longer.
    pub fn slowdown(&self) -> Slowdown<'_> {
        let masks = self.geometry.masks_offset();
        let enable = masks + std::mem::offset_of!(MaskPage, enable) as u64;
        let words = self.words(masks + SLOWDOWN_OFFSET, slowdown::WORDS);
        Slowdown::new(self.words(enable, MAX_FRAMES / 64), words)
    }

    /// Ring `index`.
    ///
    /// # Panics
    /// If there are not that many rings.
    pub fn ring(&self, index: u32) -> Ring<'_, AtomicU64> {
        assert!(index < self.geometry.rings());
        let header = self.geometry.headers_offset() + index as u64 * RING_PITCH as u64;
        Ring::new(
            self.words(header, ring_word::COUNT),
            self.words(self.ring_offset(index), self.geometry.ring_bytes() as usize / 8),
            self.geometry.stride() as usize / 8,
        )
    }

    /// The cursors of all rings, for fast access to many.
    pub fn cursors(&self) -> Cursors<'_> {
        let count = self.geometry.rings() as usize * PITCH;
        Cursors(self.words(self.geometry.headers_offset(), count))
    }

    fn ring_offset(&self, index: u32) -> u64 {
        self.geometry.slots_offset() + self.geometry.ring_bytes() * index as u64
    }

    /// The cells of row `index`: 0 is the shared one, `r + 1` that of ring `r`. Reading a row that
    /// was never written allocates its memory.
    ///
    /// # Panics
    /// If there are not that many rows.
    pub fn row(&self, index: u32) -> &[AtomicU64] {
        let rows = self.geometry.rows();
        assert!(index < rows.count());
        let offset = self.geometry.rows_offset() + index as u64 * rows.pitch() as u64;
        self.words(offset, rows.pitch() as usize / 8)
    }

    /// The target's counters of refused frames.
    pub fn refused(&self) -> RefusedFrames {
        let offset = self.geometry.process_offset();
        let words = self.words(offset, size_of::<ProcessPage>() / 8);
        let read = |at: usize| words[at / 8].load(Ordering::Relaxed);
        RefusedFrames {
            no_ring: read(std::mem::offset_of!(ProcessPage, no_ring)),
            nested: read(std::mem::offset_of!(ProcessPage, nested)),
        }
    }

    /// Signals to the target that a ring became free, so that a thread without a ring tries again.
    pub fn count_release(&self) {
        let offset = std::mem::offset_of!(ProcessPage, released) as u64;
        self.words(self.geometry.process_offset() + offset, 1)[0].fetch_add(1, Ordering::Release);
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::ring::RingWriter;
    use std::os::fd::AsFd;

    pub fn identity(nonce: u64) -> SegmentIdentity {
        SegmentIdentity { nonce, schema_hash: 5, geometry: Geometry::new(64, 10, 3).unwrap() }
    }

    pub fn create(nonce: u64) -> Segment {
        let mut key = std::process::id() as u16;
        Segment::create(identity(nonce), None, Created { mono_ns: 1, real_ns: 2 }, || {
            key = key.wrapping_add(1);
            key
        })
        .unwrap()
    }

    #[test]
    #[cfg_attr(miri, ignore = "needs shared memory")]
    fn a_removed_segment_is_adopted_while_it_is_held() {
        let first = create(77);
        RingWriter::new(first.ring(2)).write([1, 2, 3]);
        let id = first.id().unwrap();
        let second = Segment::adopt(id, identity(77)).unwrap();
        assert_eq!(second.ring(2).tail(), 1);
        drop(first);
        assert_eq!(Segment::adopt(id, identity(77)).unwrap().ring(2).tail(), 1);
        drop(second);
        assert!(matches!(Segment::adopt(id, identity(77)), Err(AdoptError::System(_))));
    }

    /// A segment as made by a target.
    fn made_by_a_target(nonce: u64) -> (Segment, std::os::fd::OwnedFd) {
        let SegmentIdentity { geometry, schema_hash, .. } = identity(nonce);
        let file = memfd::tests::make(geometry.size() as i64, libc::F_SEAL_SHRINK);
        let mapping = memfd::map(file.as_fd(), geometry.size()).unwrap();
        let segment = Segment { mapping, id: None, nonce, geometry, own: false, masked: false };
        segment.initialise(schema_hash, Created::default());
        (segment, file)
    }

    #[test]
    #[cfg_attr(miri, ignore = "needs shared memory")]
    fn an_awaited_segment_is_empty_until_it_is_filled() {
        let (theirs, file) = made_by_a_target(81);
        let ours = Segment::awaited(identity(81)).unwrap();
        let (before, ring) = (ours.ring(2), theirs.ring(2));
        assert_eq!((before.tail(), before.owner().state), (0, 0));
        assert_eq!((0..3).map(|ring| ours.cursors().tail(ring)).sum::<u64>(), 0);
        RingWriter::new(ring).write([1, 2, 3]);
        assert_eq!(before.tail(), 0);
        ours.fill(file.as_fd(), 5).unwrap();
        assert_eq!(before.tail(), 1, "the same ring, whoever held it");
        RingWriter::new(ring).write([1, 2, 3]);
        assert_eq!(before.tail(), 2);
        assert_eq!([0, 1, 2].map(|ring| ours.cursors().tail(ring)), [0, 0, 2]);
        ours.give_back().unwrap();
    }

    #[test]
    #[cfg_attr(miri, ignore = "needs shared memory")]
    fn an_awaited_segment_is_filled_by_no_other() {
        let (_, file) = made_by_a_target(82);
        let differs = |nonce, schema_hash| {
            let ours = Segment::awaited(identity(nonce)).unwrap();
            match ours.fill(file.as_fd(), schema_hash).unwrap_err() {
                AdoptError::Differs(what) => what,
                AdoptError::System(error) => panic!("{error}"),
            }
        };
        assert_eq!(differs(83, 5), "nonce");
        assert_eq!(differs(82, 6), "schema hash");
        let stdin = std::io::stdin();
        let ours = Segment::awaited(identity(82)).unwrap();
        assert!(matches!(ours.fill(stdin.as_fd(), 5), Err(AdoptError::Differs("kind of file"))));
        let SegmentIdentity { geometry, .. } = identity(82);
        let adopted = Segment::adopt_any_file(file.as_fd(), geometry.size(), 82, 5).unwrap();
        assert_eq!(adopted.geometry(), geometry);
    }

    #[test]
    #[cfg_attr(miri, ignore = "needs shared memory")]
    fn another_segment_is_not_adopted() {
        let segment = create(78);
        let id = segment.id().unwrap();
        let mut other = identity(79);
        assert!(matches!(Segment::adopt(id, other), Err(AdoptError::Differs("nonce"))));
        other = identity(78);
        other.schema_hash = 6;
        assert!(matches!(Segment::adopt(id, other), Err(AdoptError::Differs("schema hash"))));
        other = identity(78);
        other.geometry = Geometry::new(64, 9, 3).unwrap();
        assert!(matches!(Segment::adopt(id, other), Err(AdoptError::Differs("geometry"))));
    }
}
