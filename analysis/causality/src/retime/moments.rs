//! Vertices by thread and time, and the running times of their threads.

use super::recorded_run::RecordedRun;

/// Marks that there is no vertex, thread, job or queue.
pub(super) const NONE: u32 = u32::MAX;

/// Two vertices: begin and end of a length.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct VertexPair {
    pub begin: u32,
    pub end: u32,
}

/// All vertices, sorted by thread, then by time.
#[derive(Debug)]
pub(super) struct Moments {
    pub time: Vec<i64>,
    pub thread: Vec<u32>,
    pub name: Vec<u32>,
    pub threads: usize,
    /// For each thread, its first vertex; one more at the end.
    starts: Vec<u32>,
    processes: Vec<u32>,
}

impl Moments {
    /// Sorts the vertices of a recording. Also returns the index of each by its id.
    pub fn new(recording: &RecordedRun) -> (Moments, Vec<u32>) {
        let recorded = &recording.vertices;
        let mut order: Vec<u32> = (0..recorded.len() as u32).collect();
        order.sort_by_key(|&number| {
            (recorded[number as usize].thread, recorded[number as usize].time)
        });
        let mut vertex_index = vec![0; recorded.len()];
        for (to, &from) in order.iter().enumerate() {
            vertex_index[from as usize] = to as u32;
        }
        let threads = recording.threads.len();
        let mut starts = vec![0; threads + 1];
        for moment in recorded {
            starts[moment.thread.0 as usize + 1] += 1;
        }
        for at in 0..threads {
            starts[at + 1] += starts[at];
        }
        let sorted = || order.iter().map(|&number| recorded[number as usize]);
        let moments = Moments {
            time: sorted().map(|moment| moment.time).collect(),
            thread: sorted().map(|moment| moment.thread.0).collect(),
            name: sorted().map(|moment| moment.name.0).collect(),
            threads,
            starts,
            processes: recording.threads.clone(),
        };
        (moments, vertex_index)
    }

    pub fn len(&self) -> usize {
        self.time.len()
    }

    pub fn process(&self, at: u32) -> u32 {
        self.processes[self.thread[at as usize] as usize]
    }

    /// The previous vertex of its thread.
    pub fn before(&self, at: u32) -> Option<u32> {
        let first = self.starts[self.thread[at as usize] as usize];
        (at > first).then(|| at - 1)
    }

    /// The next vertex of its thread.
    pub fn after(&self, at: u32) -> Option<u32> {
        let end = self.starts[self.thread[at as usize] as usize + 1];
        (at + 1 < end).then_some(at + 1)
    }

    /// The first vertex of a thread, if it has any.
    pub fn first(&self, thread: u32) -> Option<u32> {
        let at = thread as usize;
        (self.starts[at] < self.starts[at + 1]).then(|| self.starts[at])
    }

    /// The last vertex of a thread that has any.
    pub fn last(&self, thread: u32) -> u32 {
        self.starts[thread as usize + 1] - 1
    }

    /// The time since the previous vertex of its thread; 0 for the first.
    pub fn time_since_previous(&self, at: u32) -> i64 {
        self.before(at).map_or(0, |before| self.time[at as usize] - self.time[before as usize])
    }
}

/// For each vertex, the CPU time of its thread since the previous vertex; −1 if it is unknown.
pub(super) fn ran(recording: &RecordedRun, moments: &Moments) -> Vec<i64> {
    let mut of_vertices = vec![-1; moments.len()];
    let mut ran = recording.ran.clone();
    ran.sort_unstable_by_key(|interval| (interval.thread, interval.begin));
    for stretches in ran.chunk_by(|one, other| one.thread == other.thread) {
        let Some(mut at) = moments.first(stretches[0].thread.0) else { continue };
        let mut next = 0;
        while let Some(to) = moments.after(at) {
            let (begin, end) = (moments.time[at as usize], moments.time[to as usize]);
            while next < stretches.len() && stretches[next].end <= begin {
                next += 1;
            }
            let within = stretches[next..].iter().take_while(|stretch| stretch.begin < end);
            let sum: i64 = within
                .map(|interval| (interval.end.min(end) - interval.begin.max(begin)).max(0))
                .sum();
            of_vertices[to as usize] = sum.min(end - begin);
            at = to;
        }
    }
    of_vertices
}
