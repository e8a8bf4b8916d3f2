//! The last name of each thread, in bounded memory.

use std::collections::HashMap;

use ppt_capture::{ProcessKey, ThreadName, ThreadNames};

/// The most threads whose names are remembered.
const MAX_NAMES: usize = 16_384;

/// The last names of the most recently named threads.
#[derive(Debug, Default)]
pub(crate) struct LastNames {
    threads: HashMap<(ProcessKey, u32), LastName>,
    /// The number of names received.
    count: u64,
}

#[derive(Debug)]
struct LastName {
    name: ThreadName,
    /// The sequence number of the name.
    number: u64,
}

impl LastNames {
    /// Adds the names in a chunk for `process`.
    pub(crate) fn add(&mut self, process: ProcessKey, names: &ThreadNames) {
        for name in &names.names {
            self.count += 1;
            let new = LastName { name: *name, number: self.count };
            match self.threads.get_mut(&(process, name.tid)) {
                Some(last) if last.name.mono_ns > name.mono_ns => {}
                Some(last) => *last = new,
                None => {
                    self.threads.insert((process, name.tid), new);
                }
            }
            if self.threads.len() > MAX_NAMES {
                self.drop_oldest_half();
            }
        }
    }

    /// The last name of a thread, which is untrusted text of the target. None if the thread has no name.
    pub(crate) fn name(&self, process: ProcessKey, tid: u32) -> Option<String> {
        let name = self.threads.get(&(process, tid))?.name.text().into_owned();
        Some(name).filter(|name| !name.is_empty())
    }

    /// Drops the names that were received first.
    fn drop_oldest_half(&mut self) {
        let mut numbers: Vec<u64> = self.threads.values().map(|last| last.number).collect();
        let (_, &mut middle, _) = numbers.select_nth_unstable(MAX_NAMES / 2);
        self.threads.retain(|_, last| last.number > middle);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn life(start_ticks: u64) -> ProcessKey {
        ProcessKey { pid: 7, start_ticks }
    }

    fn named(tid: u32, mono_ns: u64, text: &[u8]) -> ThreadName {
        let mut name = [0; 16];
        name[..text.len()].copy_from_slice(text);
        ThreadName { tid, mono_ns, name }
    }

    #[test]
    fn the_last_name_of_a_thread_counts() {
        let mut last_names = LastNames::default();
        let mut add = |process, names| {
            last_names.add(process, &ThreadNames { source: 0, is_base: false, names });
        };
        add(life(1), vec![named(8, 5, b"worker"), named(9, 5, b"")]);
        add(life(1), vec![named(8, 9, b"compactor")]);
        add(life(1), vec![named(8, 6, b"late")]);
        add(life(2), vec![named(8, 7, b"other")]);
        assert_eq!(last_names.name(life(1), 8).as_deref(), Some("compactor"));
        assert_eq!(
            last_names.name(life(2), 8).as_deref(),
            Some("other"),
            "another life of the pid"
        );
        assert_eq!((last_names.name(life(1), 9), last_names.name(life(1), 10)), (None, None));
    }

    #[test]
    fn names_of_many_threads_take_bounded_memory() {
        let mut last_names = LastNames::default();
        for (tid, mono_ns) in (1..100_000).zip(1..) {
            // Many names have the same time.
            let names = vec![named(tid, mono_ns / 50_000, b"worker")];
            last_names.add(life(1), &ThreadNames { source: 0, is_base: false, names });
            assert!(
                last_names.threads.len() <= MAX_NAMES && last_names.name(life(1), tid).is_some(),
                "{tid}"
            );
        }
    }
}
