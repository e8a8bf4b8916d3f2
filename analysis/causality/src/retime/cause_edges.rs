//! Edges from causes to effects, and their costs without waiting.

use super::job_queues::QueuedJob;
use super::moments::Moments;

/// Stands for the kind of an edge: a job passes through its queue.
pub(super) const QUEUED: u32 = u32::MAX;

/// The edges from causes to effects, by cause.
#[derive(Debug, Default)]
pub(super) struct CauseEdges {
    starts: Vec<u32>,
    /// Pairs of effect and kind, which may be [`QUEUED`].
    to: Vec<(u32, u32)>,
    /// The smallest cost of each kind.
    pub base: Vec<i64>,
    /// The number of edges to each vertex.
    pub into: Vec<u32>,
}

impl CauseEdges {
    /// The edges that begin at a vertex.
    pub fn from(&self, at: u32) -> &[(u32, u32)] {
        &self.to[self.starts[at as usize] as usize..self.starts[at as usize + 1] as usize]
    }

    pub fn new(moments: &Moments, edges: &[(u32, u32)], jobs: &[QueuedJob]) -> CauseEdges {
        let mut cause_edges = CauseEdges {
            starts: vec![0; moments.len() + 1],
            into: vec![0; moments.len()],
            to: vec![(0, 0); edges.len() + jobs.len()],
            base: Vec::new(),
        };
        let mut least = MinimumCosts::default();
        let plain = edges.iter().map(|&edge| (edge, least.take_in(moments, edge)));
        let queued = jobs.iter().map(|job| ((job.put, job.take), QUEUED));
        let all: Vec<_> = plain.chain(queued).collect();
        cause_edges.base = least.values;
        for &((from, to), _) in &all {
            cause_edges.starts[from as usize + 1] += 1;
            cause_edges.into[to as usize] += 1;
        }
        for at in 0..moments.len() {
            cause_edges.starts[at + 1] += cause_edges.starts[at];
        }
        let mut next = cause_edges.starts.clone();
        for ((from, to), kind) in all {
            let at = &mut next[from as usize];
            cause_edges.to[*at as usize] = (to, kind);
            *at += 1;
        }
        cause_edges
    }
}

/// The cost of the program edge that ends at a vertex.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Work {
    /// The length without waiting for edges, ns.
    pub full: i64,
    /// The part of it that a faster activity makes shorter.
    pub ran: i64,
}

impl Work {
    /// The length at a speed: 2 is twice as fast.
    pub fn at(self, speed: f64) -> i64 {
        if speed == 1.0 {
            return self.full;
        }
        self.full - self.ran + (self.ran as f64 / speed).round() as i64
    }
}

/// The smallest cost of a step between each two names.
#[derive(Debug, Default)]
struct MinimumCosts {
    /// For each first name, pairs of the second name and the index of their value.
    kinds: Vec<Vec<(u32, u32)>>,
    values: Vec<i64>,
}

impl MinimumCosts {
    fn find(&self, moments: &Moments, (from, to): (u32, u32)) -> Option<u32> {
        let (from, to) = (moments.name[from as usize], moments.name[to as usize]);
        self.kinds.get(from as usize)?.iter().find(|kind| kind.0 == to).map(|kind| kind.1)
    }

    /// Notes the cost of a step. Returns the index of its value.
    fn take_in(&mut self, moments: &Moments, step: (u32, u32)) -> u32 {
        let took = moments.time[step.1 as usize] - moments.time[step.0 as usize];
        if let Some(kind) = self.find(moments, step) {
            let value = &mut self.values[kind as usize];
            *value = took.min(*value);
            return kind;
        }
        let (from, to) = (moments.name[step.0 as usize], moments.name[step.1 as usize]);
        let kind = self.values.len() as u32;
        let from = from as usize;
        self.kinds.resize(self.kinds.len().max(from + 1), Vec::new());
        self.kinds[from].push((to, kind));
        self.values.push(took);
        kind
    }

    fn value(&self, moments: &Moments, step: (u32, u32)) -> Option<i64> {
        self.find(moments, step).map(|number| self.values[number as usize])
    }
}

/// For each vertex, the time at which the last of its causes arrived; `i64::MIN` without causes.
pub(super) fn cause_arrivals(
    moments: &Moments,
    edges: &[(u32, u32)],
    jobs: &[(u32, u32, u64)],
    outside: &[bool],
) -> Vec<i64> {
    let mut arrivals: Vec<_> = (0..moments.len())
        .map(|index| if outside[index] { moments.time[index] } else { i64::MIN })
        .collect();
    let mut least = MinimumCosts::default();
    let kinds: Vec<_> = edges.iter().map(|&edge| least.take_in(moments, edge)).collect();
    for (&(from, to), &kind) in edges.iter().zip(&kinds) {
        let time = moments.time[from as usize] + least.values[kind as usize];
        arrivals[to as usize] = arrivals[to as usize].max(time);
    }
    for &(put, take, _) in jobs {
        arrivals[take as usize] = arrivals[take as usize].max(moments.time[put as usize]);
    }
    arrivals
}

/// The work between vertices of a thread: the whole time. Before a vertex that may wait, it is the time for
/// which the kernel saw the thread running, or else the smallest time of such a step among those that began
/// after all causes had arrived.
pub(super) fn works(moments: &Moments, cause_arrivals: &[i64], ran: &[i64]) -> Vec<Work> {
    let vertices = 0..moments.len() as u32;
    let step = |at: u32| moments.before(at).map(|before| (before, at));
    let joins = |at: u32| step(at).filter(|_| cause_arrivals[at as usize] != i64::MIN);
    let mut least = MinimumCosts::default();
    for step in vertices.clone().filter_map(joins) {
        if cause_arrivals[step.1 as usize] <= moments.time[step.0 as usize] {
            least.take_in(moments, step);
        }
    }
    let work = |at: u32| {
        let (took, ran) = (moments.time_since_previous(at), ran[at as usize]);
        match joins(at) {
            Some(_) if ran >= 0 => Work { full: ran, ran },
            Some(step) => {
                let full = least.value(moments, step).unwrap_or(0).min(took);
                Work { full, ran: full }
            }
            None => Work { full: took, ran: if ran >= 0 { ran } else { took } },
        }
    };
    vertices.map(work).collect()
}

/// For each vertex, the time of the last of its causes; `i64::MIN` without causes.
pub(super) fn cause_times(
    moments: &Moments,
    edges: &[(u32, u32)],
    jobs: &[(u32, u32, u64)],
) -> Vec<i64> {
    let mut times = vec![i64::MIN; moments.len()];
    for (from, to) in edges.iter().copied().chain(jobs.iter().map(|job| (job.0, job.1))) {
        times[to as usize] = times[to as usize].max(moments.time[from as usize]);
    }
    times
}
