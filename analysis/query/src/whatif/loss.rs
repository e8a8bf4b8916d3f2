//! Missing frames, and the edges that they do not make uncertain.
//!
//! After a loss, the edges of a queue are certain again once it was empty for `within` (see `Matcher`). If
//! identities are unique, the edges are correct even before: missing frames have other identities. So a
//! possible edge is accepted if no identity enters its point twice, in at least 32 frames. It would be wrong
//! only if a missing frame had the same identity at the same time.

use std::collections::{HashMap, HashSet};

use ppt_causality::retime::{RecordedRun, ThreadId};

use super::row::RowView;

/// Smallest number of different identities that show that identities are unique.
const MIN_UNIQUE: usize = 32;

/// A process: host and pid.
type ProcessName = (String, i64);

#[derive(Debug)]
struct LoadedGap {
    process: ProcessName,
    /// None: any thread.
    tid: Option<i64>,
    from: i64,
    to: i64,
}

/// The missing frames.
#[derive(Debug, Default)]
pub(super) struct LoadedLoss {
    /// Buffers whose frames are part of the run.
    buffers: HashSet<String>,
    gaps: Vec<LoadedGap>,
    /// Whether frames were dropped, at unknown times.
    dropped: bool,
}

impl LoadedLoss {
    /// Adds a buffer whose frames are part of the run.
    pub fn add_buffer(&mut self, buffer: &str) {
        if !self.buffers.contains(buffer) {
            self.buffers.insert(buffer.to_owned());
        }
    }

    /// Adds a row of `gaps`.
    pub fn gap(&mut self, row: &RowView<'_>) -> Option<()> {
        if !self.buffers.contains(row.text(3)?) {
            return None;
        }
        let process = (row.text(0).unwrap_or_default().to_owned(), row.long(1)?);
        // The frames at both times exist: the gap lies between them.
        let from = row.long(4).map_or(i64::MIN, |from| from.saturating_add(1));
        let to = row.long(5).map_or(i64::MAX, |to| to.saturating_sub(1).max(from));
        self.gaps.push(LoadedGap { process, tid: row.long(2), from, to });
        Some(())
    }

    /// Adds a row of `account`.
    pub fn dropped(&mut self, row: &RowView<'_>) -> Option<()> {
        self.dropped |= self.buffers.contains(row.text(2)?);
        Some(())
    }

    /// Whether missing frames may make edges uncertain.
    pub fn is_any(&self) -> bool {
        self.dropped || !self.gaps.is_empty()
    }

    /// Whether the times of all missing frames are known.
    pub fn has_times(&self) -> bool {
        !self.dropped
    }

    /// Records for each thread when its frames are missing.
    pub fn doubt(
        &self,
        threads: impl Iterator<Item = (ProcessName, i64, ThreadId)>,
        recording: &mut RecordedRun,
    ) {
        let mut all: HashMap<ProcessName, Vec<(i64, ThreadId)>> = HashMap::new();
        for (process, tid, thread) in threads {
            all.entry(process).or_default().push((tid, thread));
        }
        for gap in &self.gaps {
            let threads = all.get(&gap.process).into_iter().flatten();
            for (_, thread) in threads.filter(|(tid, _)| gap.tid.is_none_or(|own| own == *tid)) {
                recording.doubt(*thread, gap.from, gap.to);
            }
        }
    }
}

/// The kinds of identities that are unique. `entered`: kind and identity of all data that entered, in any
/// order.
pub(super) fn unique_kinds<Of: Copy + Ord + std::hash::Hash>(
    mut entered: Vec<(Of, u64)>,
) -> HashSet<Of> {
    entered.sort_unstable();
    let kinds = entered.chunk_by(|one, other| one.0 == other.0);
    let are_unique = |kind: &&[(Of, u64)]| {
        kind.len() >= MIN_UNIQUE && kind.windows(2).all(|two| two[0].1 != two[1].1)
    };
    kinds.filter(are_unique).map(|kind| kind[0].0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_without_repetition_are_unique() {
        let ids = |of: u8, count: u64| (0..count).map(move |id| (of, id));
        let many = ids(1, 40).chain(ids(2, 31)).chain(ids(3, 40)).chain([(3, 7)]).rev();
        assert_eq!(unique_kinds(many.collect::<Vec<_>>()), HashSet::from([1]));
    }
}
