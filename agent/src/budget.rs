//! The cost limits of a search: for one process, and for all processes of a search.
//!
//! Any user can map thousands of huge files, in many processes. So a search of all processes, which
//! may run as root, has a bounded share for each process and one common amount for everything
//! beyond the shares.

/// Smallest charge for a read, because there may be any number of small reads.
const MIN_CHARGE: u64 = 16 << 10;

/// The amount that has been read, and the number of system calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Spent {
    /// Bytes of processes' memory.
    pub memory: u64,
    /// Bytes of files.
    pub files: u64,
    /// Reads of either.
    pub reads: u64,
    /// Files that were opened.
    pub opened: u64,
}

/// Bytes that may still be read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Purse {
    /// Bytes left for this process.
    left: u64,
    /// The part of `left` that every process has for itself.
    own: u64,
    /// Bytes left beyond the shares, for all processes together.
    common: u64,
    /// Number of requests that could not be met in full.
    pub(crate) refusals: u64,
}

/// Bounds of [`Purse`]: for one process, the share of that for each process, and the common amount.
#[derive(Debug, Clone, Copy)]
struct Bounds {
    process: u64,
    share: u64,
    common: u64,
}

impl Purse {
    fn new(bounds: Bounds) -> Self {
        Self { left: bounds.process, own: bounds.share, common: bounds.common, refusals: 0 }
    }

    /// Takes up to `wanted` bytes. Returns the number taken, 0 when nothing is left.
    pub(crate) fn take(&mut self, wanted: u64) -> u64 {
        let granted = wanted.max(MIN_CHARGE).min(self.left);
        let own = granted.min(self.own);
        let common = (granted - own).min(self.common);
        self.own -= own;
        self.common -= common;
        self.left -= own + common;
        if own + common < MIN_CHARGE { 0 } else { wanted.min(own + common) }
    }

    /// Takes all of `wanted`, or nothing.
    pub(crate) fn take_all(&mut self, wanted: u64) -> bool {
        let room = self.left.min(self.own.saturating_add(self.common));
        let enough = wanted.max(MIN_CHARGE) <= room && self.take(wanted) > 0;
        self.refusals += u64::from(!enough);
        enough
    }
}

/// The number of bytes that a search may still read, and the number that it has read.
#[derive(Debug)]
pub(crate) struct Budget {
    pub(crate) memory: Purse,
    pub(crate) files: Purse,
    pub(crate) spent: Spent,
    bounds: (Bounds, Bounds),
}

impl Budget {
    /// The budget for one process that a user named.
    pub(crate) fn of_one() -> Self {
        Self::new(
            Bounds { process: 512 << 20, share: 512 << 20, common: 0 },
            Bounds { process: 256 << 20, share: 256 << 20, common: 0 },
        )
    }

    /// The budget for a search of every process.
    pub(crate) fn of_many() -> Self {
        Self::new(
            Bounds { process: 256 << 20, share: 8 << 20, common: 4 << 30 },
            Bounds { process: 64 << 20, share: 4 << 20, common: 1 << 30 },
        )
    }

    fn new(memory: Bounds, files: Bounds) -> Self {
        Self {
            memory: Purse::new(memory),
            files: Purse::new(files),
            spent: Spent::default(),
            bounds: (memory, files),
        }
    }

    /// Starts the next process.
    pub(crate) fn next(&mut self) {
        let (memory, files) = self.bounds;
        self.memory = Purse { common: self.memory.common, ..Purse::new(memory) };
        self.files = Purse { common: self.files.common, ..Purse::new(files) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn a_process_has_its_share_and_what_is_left_of_the_common_part() {
        let bounds = Bounds { process: 8 * MIB, share: 2 * MIB, common: 9 * MIB };
        let mut budget = Budget::new(bounds, bounds);
        assert_eq!(budget.memory.take(100 * MIB), 8 * MIB);
        assert_eq!(budget.memory.take(1), 0, "more than a process may");
        budget.next();
        assert_eq!(budget.memory.take(100 * MIB), 5 * MIB, "what the common part still had");
        budget.next();
        assert_eq!(budget.memory.take(100 * MIB), 2 * MIB, "its share, at least");
        assert_eq!(budget.files.take(MIB), MIB, "memory and files are apart");
    }

    #[test]
    fn small_reads_come_to_an_end_too() {
        let bounds = Bounds { process: MIB, share: MIB, common: 0 };
        let mut purse = Purse::new(bounds);
        let reads =
            std::iter::repeat_with(|| purse.take(1)).take_while(|&number| number > 0).count();
        assert_eq!(reads as u64, MIB / MIN_CHARGE);
    }

    #[test]
    fn all_or_nothing() {
        let mut purse = Purse::new(Bounds { process: MIB, share: MIB, common: 0 });
        assert!(!purse.take_all(MIB + 1));
        assert!(purse.take_all(MIB));
        assert!(!purse.take_all(1));
    }
}
