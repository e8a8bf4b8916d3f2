//! The times that missing frames affect.
//!
//! A loss affects the threads whose causes or effects may be missing, and all threads that exchange causes with
//! them, directly or not: their group. Other groups are not affected. The effect lasts until the queues of the
//! group are empty; then the run is one that begins there. In a closed network, some queue may never be empty.
//! But it holds at most one job a client, and all of them have been served after a few of the longest waits.

use super::disjoint_sets::DisjointSets;
use super::recorded_run::{RecordedRun, ThreadId, VertexId};

/// The effect of a loss on a queue ends after this many of the longest waits.
const WAITS: i64 = 10;

/// Times in which the actions of threads are not wholly known.
#[derive(Debug, Default)]
pub(super) struct DoubtfulTimes {
    /// For each thread, its group.
    group: Vec<usize>,
    /// For each group, the times that metrics leave out, disjoint and ascending.
    excluded: Vec<Vec<TimeRange>>,
    /// For each group, the times that are not replayed, disjoint and ascending. Each begins with one of
    /// `excluded`, and ends no later.
    unknown: Vec<Vec<TimeRange>>,
}

/// First and last time.
pub(super) type TimeRange = (i64, i64);

impl DoubtfulTimes {
    /// The times that the doubts of a recording affect.
    pub fn new(recording: &RecordedRun) -> DoubtfulTimes {
        if recording.doubts.is_empty() {
            return DoubtfulTimes::default();
        }
        let threads = recording.threads.len();
        let thread = |at: VertexId| recording.vertices[at.0 as usize].thread.0 as usize;
        let time = |at: VertexId| recording.vertices[at.0 as usize].time;
        let mut groups = DisjointSets::singletons(threads);
        let jobs = || recording.jobs.iter().map(|job| (job.put, job.take));
        for (from, to) in recording.edges.iter().copied().chain(jobs()) {
            groups.join(thread(from), thread(to));
        }
        if !recording.states.is_empty() {
            // Threads that share CPUs wait for each other.
            let mut first = std::collections::HashMap::new();
            for number in 0..threads {
                let machine = recording.machine_of(ThreadId(number as u32));
                groups.join(number, *first.entry(machine).or_insert(number));
            }
        }
        let mut unknown = vec![Vec::new(); threads];
        for doubt in &recording.doubts {
            unknown[groups.root(doubt.thread.0 as usize)].push((doubt.from, doubt.to));
        }
        let mut waits = vec![Vec::new(); threads];
        for (put, take) in jobs() {
            let group = groups.root(thread(put));
            if !unknown[group].is_empty() {
                waits[group].push((time(put), time(take)));
            }
        }
        let mut excluded = Vec::with_capacity(threads);
        for (unknown, waits) in unknown.iter_mut().zip(waits) {
            let recovery = Recovery::new(waits);
            let (mut not_replayed, mut not_counted) = (Vec::new(), Vec::new());
            for (from, to) in merged(std::mem::take(unknown)) {
                let RecoveryTimes { replayed_from, counted_from } = recovery.after(to);
                not_replayed.push((from, replayed_from));
                not_counted.push((from, counted_from));
            }
            *unknown = merged(not_replayed);
            excluded.push(merged(not_counted));
        }
        let group = (0..threads).map(|thread| groups.root(thread)).collect();
        DoubtfulTimes { group, excluded, unknown }
    }

    /// Adds the next thread, which is a part of `original`.
    pub fn add_part(&mut self, original: ThreadId) {
        self.group.push(self.group[original.0 as usize]);
    }

    /// The times of a thread that are not replayed.
    pub fn unknown(&self, thread: ThreadId) -> &[TimeRange] {
        self.group(thread.0).map_or(&[], |group| &self.unknown[group])
    }

    /// Whether a metric leaves out a time of a thread.
    pub fn touches(&self, thread: u32, range: TimeRange) -> bool {
        self.group(thread).is_some_and(|group| overlaps(&self.excluded[group], range))
    }

    /// The group of a thread; None if nothing is in doubt.
    pub fn group(&self, thread: u32) -> Option<usize> {
        self.group.get(thread as usize).copied()
    }

    /// The times that metrics leave out because of any of these threads.
    pub fn times(&self, threads: impl Iterator<Item = u32>) -> Vec<TimeRange> {
        let mut groups: Vec<_> = threads.filter_map(|thread| self.group(thread)).collect();
        groups.sort_unstable();
        groups.dedup();
        merged(groups.iter().flat_map(|&group| &self.excluded[group]).copied().collect())
    }
}

/// The times at which the queues of a group recover from a loss.
struct Recovery {
    /// The times in which a job waits.
    busy: Vec<TimeRange>,
    /// The longest wait.
    longest: i64,
}

struct RecoveryTimes {
    replayed_from: i64,
    counted_from: i64,
}

impl Recovery {
    fn new(waits: Vec<TimeRange>) -> Recovery {
        let longest = waits.iter().map(|wait| wait.1 - wait.0).max().unwrap_or(0);
        Recovery { busy: merged(waits), longest }
    }

    /// The times from which the run is replayed and counted after a loss that ends at `time`: as soon as no job
    /// waits. If that is too late, it is replayed at once, with the jobs that wait.
    fn after(&self, time: i64) -> RecoveryTimes {
        let at = self.busy.partition_point(|stretch| stretch.1 <= time);
        let empty = self.busy.get(at).filter(|stretch| stretch.0 <= time);
        let empty = empty.map_or(time, |stretch| stretch.1);
        let latest = time.saturating_add(self.longest.saturating_mul(WAITS));
        if empty <= latest {
            RecoveryTimes { replayed_from: empty, counted_from: empty }
        } else {
            RecoveryTimes { replayed_from: time, counted_from: latest }
        }
    }
}

/// Whether any of the disjoint, ascending `times` overlaps with a range.
pub(super) fn overlaps(times: &[TimeRange], (from, to): TimeRange) -> bool {
    let next = times.partition_point(|time| time.1 < from);
    times.get(next).is_some_and(|time| time.0 <= to)
}

fn merged(mut all: Vec<TimeRange>) -> Vec<TimeRange> {
    all.sort_unstable();
    let mut disjoint: Vec<TimeRange> = Vec::new();
    for (from, to) in all {
        match disjoint.last_mut() {
            Some(last) if from <= last.1 => last.1 = last.1.max(to),
            _ => disjoint.push((from, to)),
        }
    }
    disjoint
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The doubtful times of a client and a worker with these jobs (put, take), and of an unrelated thread.
    fn doubtful(jobs: &[TimeRange], doubts: &[(u32, TimeRange)]) -> DoubtfulTimes {
        let mut recording = RecordedRun::new();
        let name = recording.name("job");
        let threads = [0, 1, 2].map(|process| recording.thread(process));
        for &(put, take) in jobs {
            let put = recording.vertex(threads[0], put, name);
            let take = recording.vertex(threads[1], take, name);
            recording.job(put, take, 0);
        }
        for &(thread, (from, to)) in doubts {
            recording.doubt(threads[thread as usize], from, to);
        }
        DoubtfulTimes::new(&recording)
    }

    #[test]
    fn a_loss_lasts_until_its_group_waits_for_nothing() {
        let jobs = [(5, 6), (10, 30), (20, 40), (39, 50), (60, 61)];
        let known = doubtful(&jobs, &[(1, (12, 15))]);
        for thread in [0, 1] {
            let touches = |from, to| known.touches(thread, (from, to));
            assert!(touches(0, 12) && touches(13, 14) && touches(50, 60) && touches(45, 45));
            assert!(!touches(0, 11) && !touches(51, 99));
        }
        assert!(!known.touches(2, (0, 99)));
        assert_eq!(known.times([2].into_iter()), []);
        assert_eq!(known.times([0, 1, 2].into_iter()), [(12, 50)]);
        // No job waits when the loss ends.
        assert_eq!(doubtful(&jobs, &[(0, (1, 55))]).times([1].into_iter()), [(1, 55)]);
        // One loss of an unrelated thread, and one of all time.
        let all = doubtful(&jobs, &[(2, (3, 4)), (0, (i64::MIN, i64::MAX))]);
        assert_eq!(all.times([2].into_iter()), [(3, 4)]);
        assert!(all.touches(1, (7, 7)));
    }

    #[test]
    fn who_is_never_idle_is_as_usual_after_some_waits() {
        let jobs: Vec<_> = (0..100).map(|at| (at * 10, at * 10 + 15)).collect();
        let known = doubtful(&jobs, &[(1, (100, 120))]);
        assert_eq!(known.times([0].into_iter()), [(100, 270)]);
        assert_eq!(known.unknown(ThreadId(0)), [(100, 120)]);
    }
}
