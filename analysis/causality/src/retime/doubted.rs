//! What is touched where frames are missing.
//!
//! A loss touches the threads whose causes or effects may be missing, and threads that exchange causes with
//! them: their group. Other groups are as if nothing had been lost. In time it lasts until nothing waits in
//! the queues of the group. From then on the run is one that begins there: nobody waits for what came
//! before. In a closed network, some queue may always hold something. But there, at most as many wait as
//! there are clients, and all have been served again after a few of the longest waits.

use super::groups::Groups;
use super::recording::{Recording, ThreadId, Vertex};

/// After a loss and this many of the longest waits, a queue is no longer what the loss made it.
const WAITS: i64 = 10;

/// Times in which what threads did is not wholly known.
#[derive(Debug, Default)]
pub(super) struct Doubted {
    /// For each thread, its group.
    group: Vec<usize>,
    /// For each group, times apart from each other, ascending: where metrics count nothing, …
    untold: Vec<Vec<TimeRange>>,
    /// … and where the run is not timed again. These end no later.
    unknown: Vec<Vec<TimeRange>>,
}

/// From one time to another, both included.
pub(super) type TimeRange = (i64, i64);

impl Doubted {
    /// What `recording` says of it.
    pub fn new(recording: &Recording) -> Doubted {
        if recording.doubts.is_empty() {
            return Doubted::default();
        }
        let threads = recording.threads.len();
        let thread = |at: Vertex| recording.vertices[at.0 as usize].thread.0 as usize;
        let time = |at: Vertex| recording.vertices[at.0 as usize].time;
        let mut groups = Groups::apart(threads);
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
        let mut untold = Vec::with_capacity(threads);
        for (unknown, waits) in unknown.iter_mut().zip(waits) {
            let ends = Ends::new(waits);
            let all = merged(std::mem::take(unknown));
            let both = all.into_iter().map(|(from, to)| (from, ends.of(to)));
            let (mut cut, mut told) = (Vec::new(), Vec::new());
            for (from, (known, as_usual)) in both {
                cut.push((from, known));
                told.push((from, as_usual));
            }
            *unknown = merged(cut);
            untold.push(merged(told));
        }
        let group = (0..threads).map(|thread| groups.root(thread)).collect();
        Doubted { group, untold, unknown }
    }

    /// Another thread, which is part of this one.
    pub fn add_part(&mut self, of: ThreadId) {
        self.group.push(self.group[of.0 as usize]);
    }

    /// When the run of a thread is not timed again.
    pub fn unknown(&self, thread: ThreadId) -> &[TimeRange] {
        self.group(thread.0).map_or(&[], |group| &self.unknown[group])
    }

    /// Whether what a thread did from one time to another may be wrong.
    pub fn touches(&self, thread: u32, (from, to): TimeRange) -> bool {
        self.group(thread).is_some_and(|group| within(&self.untold[group], (from, to)))
    }

    /// The group of a thread, where anything is in doubt.
    pub fn group(&self, thread: u32) -> Option<usize> {
        self.group.get(thread as usize).copied()
    }

    /// When it may be of any of these threads.
    pub fn times(&self, threads: impl Iterator<Item = u32>) -> Vec<TimeRange> {
        let mut groups: Vec<_> = threads.filter_map(|thread| self.group(thread)).collect();
        groups.sort_unstable();
        groups.dedup();
        merged(groups.iter().flat_map(|&group| &self.untold[group]).copied().collect())
    }
}

/// When the queues of a group are as usual again.
struct Ends {
    /// When something waits.
    busy: Vec<TimeRange>,
    longest: i64,
}

impl Ends {
    fn new(waits: Vec<TimeRange>) -> Ends {
        let longest = waits.iter().map(|wait| wait.1 - wait.0).max().unwrap_or(0);
        Ends { busy: merged(waits), longest }
    }

    /// When the run goes on after a loss that ends at `time`, and when it is as usual: both as soon as
    /// nothing waits; if that is too late, it goes on at once with what waits.
    fn of(&self, time: i64) -> TimeRange {
        let at = self.busy.partition_point(|stretch| stretch.1 <= time);
        let empty = self.busy.get(at).filter(|stretch| stretch.0 <= time);
        let empty = empty.map_or(time, |stretch| stretch.1);
        let as_usual = time.saturating_add(self.longest.saturating_mul(WAITS));
        if empty <= as_usual { (empty, empty) } else { (time, as_usual) }
    }
}

/// Whether any of `times` has something of a stretch.
pub(super) fn within(times: &[TimeRange], (from, to): TimeRange) -> bool {
    let next = times.partition_point(|time| time.1 < from);
    times.get(next).is_some_and(|time| time.0 <= to)
}

fn merged(mut all: Vec<TimeRange>) -> Vec<TimeRange> {
    all.sort_unstable();
    let mut apart: Vec<TimeRange> = Vec::new();
    for (from, to) in all {
        match apart.last_mut() {
            Some(last) if from <= last.1 => last.1 = last.1.max(to),
            _ => apart.push((from, to)),
        }
    }
    apart
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A client and a worker, with their jobs as (put, take), and a thread that has nothing to do with them.
    fn doubted(jobs: &[TimeRange], doubts: &[(u32, TimeRange)]) -> Doubted {
        let mut recording = Recording::new();
        let name = recording.name("job");
        let threads = [0, 1, 2].map(|process| recording.thread(process));
        for &(put, take) in jobs {
            let put = recording.vertex(threads[0], put, name);
            let take = recording.vertex(threads[1], take, name);
            recording.job(put, take, 0);
        }
        doubts.iter().for_each(|&(of, (from, to))| recording.doubt(threads[of as usize], from, to));
        Doubted::new(&recording)
    }

    #[test]
    fn a_loss_lasts_until_its_group_waits_for_nothing() {
        let jobs = [(5, 6), (10, 30), (20, 40), (39, 50), (60, 61)];
        let known = doubted(&jobs, &[(1, (12, 15))]);
        for thread in [0, 1] {
            let touches = |from, to| known.touches(thread, (from, to));
            assert!(touches(0, 12) && touches(13, 14) && touches(50, 60) && touches(45, 45));
            assert!(!touches(0, 11) && !touches(51, 99));
        }
        assert!(!known.touches(2, (0, 99)));
        assert_eq!(known.times([2].into_iter()), []);
        assert_eq!(known.times([0, 1, 2].into_iter()), [(12, 50)]);
        // Nothing waits where it ends.
        assert_eq!(doubted(&jobs, &[(0, (1, 55))]).times([1].into_iter()), [(1, 55)]);
        // Of a thread that nothing is exchanged with, and of all time.
        let all = doubted(&jobs, &[(2, (3, 4)), (0, (i64::MIN, i64::MAX))]);
        assert_eq!(all.times([2].into_iter()), [(3, 4)]);
        assert!(all.touches(1, (7, 7)));
    }

    #[test]
    fn who_is_never_idle_is_as_usual_after_some_waits() {
        let jobs: Vec<_> = (0..100).map(|at| (at * 10, at * 10 + 15)).collect();
        let known = doubted(&jobs, &[(1, (100, 120))]);
        assert_eq!(known.times([0].into_iter()), [(100, 270)]);
        assert_eq!(known.unknown(ThreadId(0)), [(100, 120)]);
    }
}
