//! Critical paths: what each vertex waited for last, and the share of an activity in the path to it.

use super::model::RetimeModel;
use super::moments::NONE;

/// For each vertex, the one that decided its time. They form a forest. A second pointer for each vertex finds
/// in logarithmic time where the path to it was at an earlier time (Myers 1983).
#[derive(Debug)]
pub(super) struct CriticalPaths {
    /// For each context, whether it is of the activity.
    marked: Vec<bool>,
    /// For each job, the last vertex of its worker before it.
    worker: Vec<u32>,
    by: Vec<u32>,
    jump: Vec<u32>,
    depth: Vec<u32>,
    /// For each vertex, the time of the activity on the path to it.
    taken: Vec<i64>,
}

impl CriticalPaths {
    pub fn new(model: &RetimeModel, marked: Vec<bool>) -> CriticalPaths {
        let vertices = model.moments.len();
        CriticalPaths {
            marked,
            worker: vec![NONE; model.jobs.len()],
            by: vec![NONE; vertices],
            jump: vec![NONE; vertices],
            depth: vec![0; vertices],
            taken: vec![0; vertices],
        }
    }

    pub fn worker(&mut self, job: u32, after: u32) {
        self.worker[job as usize] = after;
    }

    pub fn reach(&mut self, to: u32, from: u32) {
        self.by[to as usize] = from;
    }

    pub fn settle(&mut self, model: &RetimeModel, at: u32, waits: bool, time: &[i64]) {
        let index = at as usize;
        let mut took = 0;
        if !waits {
            let job = model.job_of_vertex[index];
            let before = || model.moments.before(at).unwrap_or(NONE);
            self.by[index] = if job == NONE { before() } else { self.worker[job as usize] };
            if self.marked[model.context[index] as usize] {
                took = model.work[index].ran;
            }
        }
        let by = self.by[index];
        if by == NONE {
            return;
        }
        let by = by as usize;
        self.taken[index] = self.taken[by] + took.min(time[index] - time[by]);
        self.depth[index] = self.depth[by] + 1;
        let jump = self.jump[by];
        let depth = |number: u32| if number == NONE { 0 } else { self.depth[number as usize] };
        let far = if jump == NONE { NONE } else { self.jump[jump as usize] };
        let even = jump != NONE && self.depth[by] - depth(jump) == depth(jump) - depth(far);
        self.jump[index] = if even { far } else { by as u32 };
    }

    /// The time of the activity on the path to `end`, from the time `begin` on.
    pub fn taken(&self, end: u32, begin: i64, time: &[i64]) -> i64 {
        let mut at = end as usize;
        // Go up as far as times are later than `begin`.
        loop {
            let later = |number: u32| number != NONE && time[number as usize] > begin;
            if later(self.jump[at]) {
                at = self.jump[at] as usize;
            } else if later(self.by[at]) {
                at = self.by[at] as usize;
            } else {
                break;
            }
        }
        let since = self.taken[end as usize] - self.taken[at];
        let by = self.by[at];
        if by == NONE || time[at] <= begin {
            return since;
        }
        // The activity is assumed at the end of the edge.
        since + (self.taken[at] - self.taken[by as usize]).min(time[at] - begin)
    }
}
