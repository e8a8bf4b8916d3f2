//! Frames that are missing, and what of the causes that does not put in doubt.
//!
//! A queue is known to be in step again when it was empty for `within` (see `Matcher`), and then its
//! edges are certain again. Where identities name things, it was never out of step: what is missing has
//! other identities. So an edge that is only possible is known all the same if no identity enters its
//! point twice, in at least 32 frames. For it to be wrong, the missing frames would
//! need to be of another thing that was on its way under the same identity at the same time.

use std::collections::{HashMap, HashSet};

use ppt_causality::retime::{Recording, ThreadId};

use super::row::RowView;

/// So many identities that come once each are names.
const NAMES: usize = 32;

/// A process: its host and its number.
type ProcessName = (String, i64);

#[derive(Debug)]
struct LoadedGap {
    process: ProcessName,
    /// None: of any thread.
    tid: Option<i64>,
    from: i64,
    to: i64,
}

/// What is missing.
#[derive(Debug, Default)]
pub(super) struct LoadedLoss {
    /// Buffers whose frames tell of the run.
    buffers: HashSet<String>,
    gaps: Vec<LoadedGap>,
    /// Frames that could not be written, at times that nobody knows.
    dropped: bool,
}

impl LoadedLoss {
    /// Frames of this buffer tell of the run.
    pub fn tells(&mut self, buffer: &str) {
        if !self.buffers.contains(buffer) {
            self.buffers.insert(buffer.to_owned());
        }
    }

    /// A row of `gaps`.
    pub fn gap(&mut self, row: &RowView<'_>) -> Option<()> {
        if !self.buffers.contains(row.text(3)?) {
            return None;
        }
        let process = (row.text(0).unwrap_or_default().to_owned(), row.long(1)?);
        // The frames of these times are there: it lies between them.
        let from = row.long(4).map_or(i64::MIN, |from| from.saturating_add(1));
        let to = row.long(5).map_or(i64::MAX, |to| to.saturating_sub(1).max(from));
        self.gaps.push(LoadedGap { process, tid: row.long(2), from, to });
        Some(())
    }

    /// A row of `account`.
    pub fn dropped(&mut self, row: &RowView<'_>) -> Option<()> {
        self.dropped |= self.buffers.contains(row.text(2)?);
        Some(())
    }

    /// Whether edges may be uncertain because of what is missing.
    pub fn is_any(&self) -> bool {
        self.dropped || !self.gaps.is_empty()
    }

    /// Whether it says when frames are missing.
    pub fn has_times(&self) -> bool {
        !self.dropped
    }

    /// Says of each thread when its frames are missing.
    pub fn doubt(
        &self,
        threads: impl Iterator<Item = (ProcessName, i64, ThreadId)>,
        recording: &mut Recording,
    ) {
        let mut all: HashMap<ProcessName, Vec<(i64, ThreadId)>> = HashMap::new();
        for (process, tid, thread) in threads {
            all.entry(process).or_default().push((tid, thread));
        }
        for gap in &self.gaps {
            let those = all.get(&gap.process).into_iter().flatten();
            for (_, thread) in those.filter(|(tid, _)| gap.tid.is_none_or(|own| own == *tid)) {
                recording.doubt(*thread, gap.from, gap.to);
            }
        }
    }
}

/// Which kinds of identities name things: for each, all that entered, in any order.
pub(super) fn names<Of: Copy + Ord + std::hash::Hash>(mut entered: Vec<(Of, u64)>) -> HashSet<Of> {
    entered.sort_unstable();
    let kinds = entered.chunk_by(|one, other| one.0 == other.0);
    let are_names = |kind: &&[(Of, u64)]| {
        kind.len() >= NAMES && kind.windows(2).all(|two| two[0].1 != two[1].1)
    };
    kinds.filter(are_names).map(|kind| kind[0].0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_once_is_a_name() {
        let ids = |of: u8, count: u64| (0..count).map(move |id| (of, id));
        let many = ids(1, 40).chain(ids(2, 31)).chain(ids(3, 40)).chain([(3, 7)]).rev();
        assert_eq!(names(many.collect::<Vec<_>>()), HashSet::from([1]));
    }
}
