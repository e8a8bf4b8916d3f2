//! The memory of a segment: allocates its pages and gives them back.

use std::io;
use std::sync::atomic::Ordering;

use super::Segment;
use crate::abi::PAGE;

/// Most bytes of a ring that are allocated before the first write: enough for a thread that writes
/// little.
pub const FIRST_BYTES: u64 = 256 << 10;
/// Number of free rings whose first bytes are allocated before a thread claims them.
pub const RINGS_AHEAD: usize = 2;

/// Giving memory back takes a system call per ring. For many rings of at most this size it is not
/// worthwhile, because a page or two of each stay in any case.
const SMALL_RING: u64 = 4 * PAGE;
const MANY_RINGS: u32 = 1024;

impl Segment {
    /// Allocates the pages before the slots.
    ///
    /// # Errors
    /// madvise(2) fails.
    pub fn populate_headers(&self) -> io::Result<()> {
        self.populate(0, self.geometry.slots_offset())
    }

    /// Allocates the pages for the next frames of ring `index`: `ahead` bytes, or the whole ring if
    /// it is smaller. Each further page costs the writer a page fault.
    ///
    /// # Errors
    /// madvise(2) fails.
    pub fn populate_ring(&self, index: u32, ahead: u64) -> io::Result<()> {
        let (start, bytes) = (self.ring_offset(index), self.geometry.ring_bytes());
        if bytes <= ahead {
            return self.populate(start, bytes);
        }
        let slot = self.ring(index).tail() % self.geometry.slots();
        let at = slot * self.geometry.stride() as u64;
        let before = ahead.min(bytes - at);
        self.populate(start + at, before)?;
        self.populate(start, ahead - before)
    }

    fn populate(&self, offset: u64, length: u64) -> io::Result<()> {
        let start = offset / PAGE * PAGE;
        let end = (offset + length).next_multiple_of(PAGE).min(self.geometry.size());
        match self.mapping.advise(start, end - start, libc::MADV_POPULATE_WRITE) {
            // Before Linux 5.14: in shared memory a read allocates the page, too.
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
                for page in (start..end).step_by(PAGE as usize) {
                    self.words(page, 1)[0].load(Ordering::Relaxed);
                }
                Ok(())
            }
            other => other,
        }
    }

    /// Releases the memory of the slots, except the pages that a late writer may still touch: those
    /// of slot `tail` (a frame that is being written) and slot `tail + 1` (a frame that begins
    /// after it).
    ///
    /// # Errors
    /// madvise(2) fails.
    pub fn give_back(&self) -> io::Result<()> {
        self.give_back_around(&self.tails())
    }

    /// Releases the memory of a segment that was new in this session, of which the first
    /// `populated` rings were populated at the start. It skips rings that were never used.
    ///
    /// # Errors
    /// madvise(2) fails.
    pub fn give_back_new(&self, populated: u32) -> io::Result<()> {
        let rings = self.geometry.rings();
        let claimed = (0..rings).rfind(|&ring| self.ring(ring).owner().epoch > 0);
        let used = claimed.map_or(0, |last| last + 1).max(populated) + RINGS_AHEAD as u32;
        self.give_back_around(&self.tails()[..used.min(rings) as usize])
    }

    /// Releases the memory while rings are still read, but only if a session has accounted for
    /// every frame in them. Returns whether it did. The memory of a frame that is published at the
    /// same time stays.
    ///
    /// # Errors
    /// madvise(2) fails.
    pub fn give_back_attended(&self) -> io::Result<bool> {
        let tails = self.tails();
        let attended = (0..).zip(&tails).all(|(ring, &tail)| self.ring(ring).attended() == tail);
        if attended {
            self.give_back_around(&tails)?;
        }
        Ok(attended)
    }

    fn tails(&self) -> Vec<u64> {
        (0..self.geometry.rings()).map(|ring| self.ring(ring).tail()).collect()
    }

    fn give_back_around(&self, tails: &[u64]) -> io::Result<()> {
        let (rings, bytes) = (tails.len() as u32, self.geometry.ring_bytes());
        if rings > MANY_RINGS && bytes <= SMALL_RING {
            return Ok(());
        }
        let slots = self.geometry.slots();
        let stride = self.geometry.stride() as u64;
        let mut keep: Vec<(u64, u64)> = Vec::with_capacity(2 * tails.len());
        for (ring, tail) in (0..).zip(tails) {
            for slot in [*tail, tail.wrapping_add(1)] {
                let start = self.ring_offset(ring) + slot % slots * stride;
                keep.push((start / PAGE * PAGE, (start + stride).next_multiple_of(PAGE)));
            }
        }
        keep.sort_unstable();
        let mut from = self.geometry.slots_offset();
        let end = self.ring_offset(rings - 1) + bytes;
        for (start, stop) in keep.into_iter().chain([(end, end)]) {
            if start > from {
                self.mapping.advise(from, start - from, libc::MADV_REMOVE)?;
            }
            from = from.max(stop);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{create, identity};
    use super::super::{AdoptError, Created, SegmentIdentity};
    use super::*;
    use crate::geometry::Geometry;
    use crate::ring::{RingReader, RingWriter};

    #[test]
    #[cfg_attr(miri, ignore = "needs shared memory")]
    fn giving_back_keeps_what_a_writer_may_be_in() {
        let segment = create(80);
        segment.populate_headers().unwrap();
        segment.populate_ring(1, FIRST_BYTES).unwrap();
        let mut writer = RingWriter::new(segment.ring(1));
        for i in 0..1000 {
            writer.write([i; 7]);
        }
        // A frame that is half written when the memory is released.
        let slot = segment.ring_offset(1) + 1000 * 64;
        segment.words(slot, 8)[3].store(42, Ordering::Relaxed);
        segment.give_back().unwrap();
        assert_eq!(segment.words(slot, 8)[3].load(Ordering::Relaxed), 42);
        assert_eq!(segment.words(segment.ring_offset(1), 8)[1].load(Ordering::Relaxed), 0);
        assert_eq!(segment.ring(1).tail(), 1000, "headers stay");
        writer.write([5; 7]);
        let mut buffer = [0; 8];
        let batch = RingReader::new(segment.ring(1), 1000).poll(&mut buffer).unwrap();
        assert_eq!((batch.count, buffer), (1, [1001, 5, 5, 5, 5, 5, 5, 5]));
    }

    #[test]
    #[cfg_attr(miri, ignore = "needs shared memory")]
    fn cells_stay_when_slots_are_given_back() {
        let geometry = Geometry::new(64, 3, 3).unwrap();
        let rows = crate::RowGeometry::new(3, 4).unwrap();
        let identity =
            SegmentIdentity { geometry: geometry.with_rows(rows).unwrap(), ..identity(88) };
        let mut key = std::process::id() as u16;
        let random = || {
            key = key.wrapping_add(1);
            key
        };
        let segment = Segment::create(identity, None, Created::default(), random).unwrap();
        let cells = |segment: &Segment| {
            let rows = (0..4).map(|row| segment.row(row)[2].load(Ordering::Relaxed));
            rows.collect::<Vec<_>>()
        };
        (0..4).for_each(|row| crate::cells::add_own(&segment.row(row)[2], 40 + row as u64));
        segment.give_back().unwrap();
        assert_eq!(cells(&segment), [40, 41, 42, 43]);
        let again = Segment::adopt(segment.id().unwrap(), identity).unwrap();
        assert_eq!(cells(&again), [40, 41, 42, 43]);
        let without = SegmentIdentity { geometry, ..identity };
        let other = Segment::adopt(segment.id().unwrap(), without);
        assert!(matches!(other, Err(AdoptError::Differs("geometry"))));
    }

    #[test]
    #[cfg_attr(miri, ignore = "needs shared memory")]
    fn of_a_new_segment_what_was_used_is_given_back() {
        let of = |nonce, claimed: u32, populated: u32| {
            let segment = create(nonce);
            let mark = |ring| segment.words(segment.ring_offset(ring) + 512 * 64, 1);
            (0..3).for_each(|ring| mark(ring)[0].store(42, Ordering::Relaxed));
            (0..claimed).for_each(|ring| assert!(segment.ring(ring).claim(10)));
            segment.give_back_new(populated).unwrap();
            [0, 1, 2].map(|ring| mark(ring)[0].load(Ordering::Relaxed))
        };
        assert_eq!(of(84, 0, 0), [0, 0, 42], "those ahead, and no more");
        assert_eq!(of(85, 1, 0), [0, 0, 0]);
        assert_eq!(of(86, 0, 1), [0, 0, 0]);
        assert_eq!(of(87, 3, 3), [0, 0, 0]);
    }

    #[test]
    #[cfg_attr(miri, ignore = "needs shared memory")]
    fn what_nobody_has_read_is_not_given_back() {
        let segment = create(83);
        let mut writer = RingWriter::new(segment.ring(1));
        (0..1000).for_each(|i| _ = writer.write([i; 7]));
        assert!(!segment.give_back_attended().unwrap());
        segment.ring(1).set_attended(1000);
        // A frame that begins before the release and is published after it.
        let slot = segment.ring_offset(1) + 1000 * 64;
        segment.words(slot, 8)[3].store(42, Ordering::Relaxed);
        assert!(segment.give_back_attended().unwrap());
        assert_eq!(segment.words(slot, 8)[3].load(Ordering::Relaxed), 42);
        assert_eq!(segment.words(segment.ring_offset(1), 8)[1].load(Ordering::Relaxed), 0);
    }
}
