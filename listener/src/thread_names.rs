//! The names of threads, for new files and for windows.

use std::collections::{BTreeMap, VecDeque};

use ppt_capture::{ThreadName, ThreadNames};

/// Number of ended threads of a feed whose names a new file states, because frames of them may
/// still come.
const ENDED: usize = 4096;

/// Changes of the thread names of a process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NameChanges {
    /// Threads that are new, or have another name.
    pub named: Vec<ThreadName>,
    /// Threads that have ended, by their kernel ids in the target's own pid namespace.
    pub ended: Vec<u32>,
}

impl NameChanges {
    /// Bytes of memory that they use.
    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&self.named[..]) + size_of_val(&self.ended[..])
    }
}

/// The current names.
#[derive(Debug, Clone, Default)]
pub(crate) struct CurrentNames {
    living: BTreeMap<u32, ThreadName>,
    /// The names of threads that ended recently, the latest at the end.
    ended: VecDeque<ThreadName>,
}

impl CurrentNames {
    pub fn take(&mut self, changes: &NameChanges) {
        for tid in &changes.ended {
            self.ended.extend(self.living.remove(tid));
        }
        let surplus = self.ended.len().saturating_sub(ENDED);
        self.ended.drain(..surplus);
        self.living.extend(changes.named.iter().map(|name| (name.tid, *name)));
    }

    /// The names that a new file of source `source` states, in at most `most` bytes: living threads
    /// come first, and the most recently named first among them. `None` if there are none.
    pub fn base(&self, source: u16, most: usize) -> Option<ThreadNames> {
        let fitting = most / ThreadNames::payload_len(1);
        let mut living: Vec<ThreadName> = self.living.values().copied().collect();
        living.sort_by_key(|name| std::cmp::Reverse(name.mono_ns));
        // The number may have been reused since.
        let ended = self.ended.iter().rev().filter(|name| !self.living.contains_key(&name.tid));
        let mut names: Vec<ThreadName> =
            living.into_iter().chain(ended.copied()).take(fitting).collect();
        names.sort_by_key(|name| (name.mono_ns, name.tid));
        (!names.is_empty()).then_some(ThreadNames { source, is_base: true, names })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(tid: u32, mono_ns: u64) -> ThreadName {
        ThreadName { tid, mono_ns, name: [tid as u8; 16] }
    }

    fn base(names: &CurrentNames, most: usize) -> Vec<(u32, u64)> {
        let base = names.base(3, most).unwrap_or_default();
        base.names.iter().map(|name| (name.tid, name.mono_ns)).collect()
    }

    #[test]
    fn a_file_begins_with_the_names_that_hold_then() {
        let mut names = CurrentNames::default();
        assert_eq!(names.base(3, usize::MAX), None);
        let first = vec![named(7, 10), named(8, 11), named(9, 12)];
        names.take(&NameChanges { named: first, ended: vec![] });
        names.take(&NameChanges { named: vec![named(7, 20)], ended: vec![8] });
        assert_eq!(base(&names, usize::MAX), [(8, 11), (9, 12), (7, 20)]);
        assert_eq!(base(&names, 64), [(9, 12), (7, 20)], "the living ones");
        assert_eq!(base(&names, 32), [(7, 20)], "the one that was named last");
        // The number of an ended thread is reused.
        names.take(&NameChanges { named: vec![named(8, 30)], ended: vec![] });
        assert_eq!(base(&names, usize::MAX), [(9, 12), (7, 20), (8, 30)]);
    }

    #[test]
    fn threads_that_come_and_go_take_bounded_memory() {
        let mut names = CurrentNames::default();
        for tid in 1..3 * ENDED as u32 {
            let ended = if tid > 1 { vec![tid - 1] } else { vec![] };
            names.take(&NameChanges { named: vec![named(tid, tid.into())], ended });
        }
        let last = 3 * ENDED as u32 - 1;
        let base = base(&names, usize::MAX);
        assert_eq!(base.len(), ENDED + 1);
        assert_eq!(base.first(), Some(&(last - ENDED as u32, u64::from(last - ENDED as u32))));
        assert_eq!(base.last(), Some(&(last, last.into())));
    }
}
