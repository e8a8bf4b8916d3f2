//! Where causes lead, and what ways cost without waiting.

use super::moments::Moments;
use super::queues::QueuedJob;

/// The way of a job through its queue, in place of a kind of edge.
pub(super) const QUEUED: u32 = u32::MAX;
/// Where causes lead.
#[derive(Debug, Default)]
pub(super) struct CauseEdges {
    starts: Vec<u32>,
    /// (to, kind), where a kind may be [`QUEUED`].
    to: Vec<(u32, u32)>,
    /// What each kind costs at least.
    pub base: Vec<i64>,
    /// How many lead to each vertex.
    pub into: Vec<u32>,
}

impl CauseEdges {
    /// That begin at a vertex.
    pub fn from(&self, at: u32) -> &[(u32, u32)] {
        &self.to[self.starts[at as usize] as usize..self.starts[at as usize + 1] as usize]
    }

    pub fn new(moments: &Moments, edges: &[(u32, u32)], jobs: &[QueuedJob]) -> CauseEdges {
        let mut ways = CauseEdges {
            starts: vec![0; moments.len() + 1],
            into: vec![0; moments.len()],
            to: vec![(0, 0); edges.len() + jobs.len()],
            base: Vec::new(),
        };
        let mut least = MinimumCosts::default();
        let known = edges.iter().map(|&edge| (edge, least.take_in(moments, edge)));
        let queued = jobs.iter().map(|job| ((job.put, job.take), QUEUED));
        let all: Vec<_> = known.chain(queued).collect();
        ways.base = least.values;
        for &((from, to), _) in &all {
            ways.starts[from as usize + 1] += 1;
            ways.into[to as usize] += 1;
        }
        for at in 0..moments.len() {
            ways.starts[at + 1] += ways.starts[at];
        }
        let mut next = ways.starts.clone();
        for ((from, to), kind) in all {
            let at = &mut next[from as usize];
            ways.to[*at as usize] = (to, kind);
            *at += 1;
        }
        ways
    }
}

/// The program edge that ends at a vertex.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Work {
    /// Its length without waiting for edges.
    pub full: i64,
    /// Of that, what a faster activity would do faster.
    pub ran: i64,
}

impl Work {
    /// With `speed` times the speed.
    pub fn at(self, speed: f64) -> i64 {
        if speed == 1.0 {
            return self.full;
        }
        self.full - self.ran + (self.ran as f64 / speed).round() as i64
    }
}

/// The smallest step from a name to a name.
#[derive(Debug, Default)]
struct MinimumCosts {
    /// For each first name the second ones, and which value is theirs.
    kinds: Vec<Vec<(u32, u32)>>,
    values: Vec<i64>,
}

impl MinimumCosts {
    fn find(&self, moments: &Moments, (from, to): (u32, u32)) -> Option<u32> {
        let (from, to) = (moments.name[from as usize], moments.name[to as usize]);
        self.kinds.get(from as usize)?.iter().find(|kind| kind.0 == to).map(|kind| kind.1)
    }

    /// Says which value is that of the step.
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

/// For each vertex, when the last of what it needs was there; `i64::MIN` where it needs nothing.
pub(super) fn came(
    moments: &Moments,
    edges: &[(u32, u32)],
    jobs: &[(u32, u32, u64)],
    outside: &[bool],
) -> Vec<i64> {
    let mut each: Vec<_> = (0..moments.len())
        .map(|index| if outside[index] { moments.time[index] } else { i64::MIN })
        .collect();
    let mut least = MinimumCosts::default();
    let kinds: Vec<_> = edges.iter().map(|&edge| least.take_in(moments, edge)).collect();
    for (&(from, to), &kind) in edges.iter().zip(&kinds) {
        let time = moments.time[from as usize] + least.values[kind as usize];
        each[to as usize] = each[to as usize].max(time);
    }
    for &(put, take, _) in jobs {
        each[take as usize] = each[take as usize].max(moments.time[put as usize]);
    }
    each
}

/// What lies between vertices of a thread: all of it, but before those that may wait only what the
/// kernel saw running, or what such a step took at least where all was there when it began.
pub(super) fn works(moments: &Moments, came: &[i64], ran: &[i64]) -> Vec<Work> {
    let all = 0..moments.len() as u32;
    let step = |at: u32| moments.before(at).map(|before| (before, at));
    let joins = |at: u32| step(at).filter(|_| came[at as usize] != i64::MIN);
    let mut least = MinimumCosts::default();
    for step in all.clone().filter_map(joins) {
        if came[step.1 as usize] <= moments.time[step.0 as usize] {
            least.take_in(moments, step);
        }
    }
    let work = |at: u32| {
        let (took, ran) = (moments.step(at), ran[at as usize]);
        match joins(at) {
            Some(_) if ran >= 0 => Work { full: ran, ran },
            Some(step) => {
                let full = least.value(moments, step).unwrap_or(0).min(took);
                Work { full, ran: full }
            }
            None => Work { full: took, ran: if ran >= 0 { ran } else { took } },
        }
    };
    all.map(work).collect()
}

/// For each vertex, when the last of what it needs was sent; `i64::MIN` where it needs nothing.
pub(super) fn sent(moments: &Moments, edges: &[(u32, u32)], jobs: &[(u32, u32, u64)]) -> Vec<i64> {
    let mut each = vec![i64::MIN; moments.len()];
    for (from, to) in edges.iter().copied().chain(jobs.iter().map(|job| (job.0, job.1))) {
        each[to as usize] = each[to as usize].max(moments.time[from as usize]);
    }
    each
}
