//! The causes of missing frames: one closed list, which every output shares. `docs/architecture.md`
//! states where each is decided.

use std::ops::{AddAssign, Sub};

use serde::{Serialize, Serializer};

/// Why a frame that was written is not in the capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u16)]
pub enum Cause {
    /// Lost: the writer overwrote it before it was drained.
    Overrun = 1,
    /// Lost: the disk was too slow, or failed.
    Disk = 2,
    /// Lost: the ring or the file did not hold a frame.
    Corrupt = 3,
    /// Dropped: more threads than rings.
    NoRing = 4,
    /// Dropped: written while another frame of the same thread was being written.
    Nested = 5,
    /// Dropped: the segment was not mapped in the target.
    NotMapped = 6,
    /// Neither: written between two sessions, when no session was attached.
    Unattended = 7,
    /// Neither: the caller asked for other frames only.
    LeftOut = 8,
    /// Neither: written between captures that are read together, and in none of them. No capture
    /// states it.
    Absent = 9,
}

/// The second number, which marks frames that were left out. Their first number is that of
/// unattended frames: readers that do not know the second number treat them as unattended, which no
/// sum contains.
const BY_CHOICE: u16 = 1;

impl Cause {
    /// Every cause, in the order of every output.
    pub const ALL: [Cause; 9] = [
        Cause::Overrun,
        Cause::Disk,
        Cause::Corrupt,
        Cause::NoRing,
        Cause::Nested,
        Cause::NotMapped,
        Cause::Unattended,
        Cause::LeftOut,
        Cause::Absent,
    ];

    /// The numbers in the file: the cause and the second number.
    pub fn file_code(self) -> (u16, u16) {
        match self {
            Cause::LeftOut => (Cause::Unattended as u16, BY_CHOICE),
            other => (other as u16, 0),
        }
    }

    /// The cause with these numbers. An unknown second number of a later version is ignored.
    pub fn from_code(code: (u16, u16)) -> Option<Cause> {
        let find = |code| Self::ALL.into_iter().find(|cause| cause.file_code() == code);
        find(code).or_else(|| find((code.0, 0)))
    }

    /// The name in every output: `overrun`, `no_ring`, …
    pub fn name(self) -> &'static str {
        match self {
            Cause::Overrun => "overrun",
            Cause::Disk => "disk",
            Cause::Corrupt => "corrupt",
            Cause::NoRing => "no_ring",
            Cause::Nested => "nested",
            Cause::NotMapped => "not_mapped",
            Cause::Unattended => "unattended",
            Cause::LeftOut => "left_out",
            Cause::Absent => "absent",
        }
    }

    /// The name in text for people: `no ring`.
    pub fn text(self) -> String {
        self.name().replace('_', " ")
    }

    /// The names of all causes in `docs/troubleshooting.md`.
    pub fn doc_codes() -> impl Iterator<Item = String> {
        Self::ALL.into_iter().map(|cause| cause.name().replace('_', "-"))
    }

    /// Whether such frames had a sequence number, so that a gap in a capture can state this cause.
    pub fn is_numbered(self) -> bool {
        self.is_loss() || matches!(self, Cause::Unattended | Cause::LeftOut)
    }

    /// Whether such frames are lost: they should be in the file.
    pub fn is_loss(self) -> bool {
        matches!(self, Cause::Overrun | Cause::Disk | Cause::Corrupt)
    }
}

/// Frames that had a sequence number and are not in the file, by cause.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Lost {
    /// [`Cause::Overrun`].
    pub overrun: u64,
    /// [`Cause::Disk`].
    pub disk: u64,
    /// [`Cause::Corrupt`].
    pub corrupt: u64,
}

impl Lost {
    /// All causes together.
    pub fn total(&self) -> u64 {
        self.overrun.saturating_add(self.disk).saturating_add(self.corrupt)
    }

    /// Each cause with its count, in the order of [`Cause::ALL`].
    pub fn by_cause(&self) -> [(Cause, u64); 3] {
        [(Cause::Overrun, self.overrun), (Cause::Disk, self.disk), (Cause::Corrupt, self.corrupt)]
    }

    /// Adds `count` to `cause`. Returns whether `cause` is a cause of lost frames.
    pub fn add(&mut self, cause: Cause, count: u64) -> bool {
        let slot = match cause {
            Cause::Overrun => &mut self.overrun,
            Cause::Disk => &mut self.disk,
            Cause::Corrupt => &mut self.corrupt,
            Cause::NoRing
            | Cause::Nested
            | Cause::NotMapped
            | Cause::Unattended
            | Cause::LeftOut
            | Cause::Absent => return false,
        };
        *slot = slot.saturating_add(count);
        true
    }
}

/// An object: each cause by its name.
impl Serialize for Lost {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.by_cause().map(|(cause, count)| (cause.name(), count)))
    }
}

impl AddAssign for Lost {
    fn add_assign(&mut self, other: Lost) {
        for (cause, count) in other.by_cause() {
            self.add(cause, count);
        }
    }
}

/// Frames that the writer refused before they got a sequence number, by cause.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Dropped {
    /// [`Cause::NoRing`].
    pub no_ring: u64,
    /// [`Cause::Nested`].
    pub nested: u64,
    /// [`Cause::NotMapped`].
    pub not_mapped: u64,
}

impl Dropped {
    /// All causes together.
    pub fn total(&self) -> u64 {
        self.no_ring.saturating_add(self.nested).saturating_add(self.not_mapped)
    }

    /// Each cause with its count, in the order of [`Cause::ALL`].
    pub fn by_cause(&self) -> [(Cause, u64); 3] {
        [
            (Cause::NoRing, self.no_ring),
            (Cause::Nested, self.nested),
            (Cause::NotMapped, self.not_mapped),
        ]
    }
}

/// An object: each cause by its name.
impl Serialize for Dropped {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.by_cause().map(|(cause, count)| (cause.name(), count)))
    }
}

impl AddAssign for Dropped {
    fn add_assign(&mut self, other: Dropped) {
        self.no_ring = self.no_ring.saturating_add(other.no_ring);
        self.nested = self.nested.saturating_add(other.nested);
        self.not_mapped = self.not_mapped.saturating_add(other.not_mapped);
    }
}

/// The difference: the counts since an earlier value.
impl Sub for Lost {
    type Output = Lost;

    fn sub(self, before: Lost) -> Lost {
        Lost {
            overrun: self.overrun.saturating_sub(before.overrun),
            disk: self.disk.saturating_sub(before.disk),
            corrupt: self.corrupt.saturating_sub(before.corrupt),
        }
    }
}

/// The difference: the counts since an earlier value.
impl Sub for Dropped {
    type Output = Dropped;

    fn sub(self, before: Dropped) -> Dropped {
        Dropped {
            no_ring: self.no_ring.saturating_sub(before.no_ring),
            nested: self.nested.saturating_sub(before.nested),
            not_mapped: self.not_mapped.saturating_sub(before.not_mapped),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_come_back() {
        for cause in Cause::ALL {
            assert_eq!(Cause::from_code(cause.file_code()), Some(cause));
        }
        assert_eq!(Cause::from_code((0, 0)), None);
        assert_eq!(Cause::from_code((8, 0)), None);
        assert_eq!(Cause::from_code((2, 9)), Some(Cause::Disk), "of a later version");
        assert_eq!(Cause::LeftOut.file_code().0, Cause::Unattended.file_code().0);
    }
}
