//! In which order the jobs of a queue came, if who comes first is served first.
//!
//! Idle workers that are woken may take their jobs in another order than these arrived, and still each
//! job is served at once. But if a job was taken while the only free workers had been woken for other
//! jobs, it arrived before those, whatever the stamps say: a stamp is not the moment at which a job gets
//! into its queue.

use std::collections::VecDeque;

/// When jobs are in their queue, each at its put or later, and the n-th meets the n-th of `asks`. These
/// are sorted, and have beside them what the worker did before. `jobs` are (put, take), by put.
pub(super) fn arrivals(jobs: &[(i64, i64)], asks: &[(i64, i64)]) -> Vec<i64> {
    let mut takes: Vec<u32> = (0..jobs.len() as u32).collect();
    takes.sort_by_key(|&number| (jobs[number as usize].1, number));
    let mut order = Order {
        jobs,
        here: jobs.iter().map(|job| job.0).collect(),
        free: 0,
        waiting: VecDeque::new(),
        promised: Vec::new(),
    };
    let (mut put, mut ask, mut moved) = (0, 0, 0);
    for take in takes {
        let time = jobs[take as usize].1;
        // Who takes a job and is done with it at once does not ask before.
        while asks.get(ask).is_some_and(|entry| entry.0 <= time && entry.1 < time) {
            order.free += 1;
            ask += 1;
        }
        while jobs.get(put).is_some_and(|job| job.0 <= time) {
            order.waiting.push_back(put as u32);
            put += 1;
        }
        order.promise();
        moved += order.take(take);
        if moved > MOST_MOVES * jobs.len() {
            return as_taken(jobs);
        }
    }
    order.here
}

/// Who moves more jobs than this for each has no queue of this kind.
const MOST_MOVES: usize = 64;

/// Each after those that were taken before it.
fn as_taken(jobs: &[(i64, i64)]) -> Vec<i64> {
    let mut takes: Vec<usize> = (0..jobs.len()).collect();
    takes.sort_by_key(|&index| (jobs[index].1, index));
    let mut here = vec![0; jobs.len()];
    let mut latest = i64::MIN;
    for n in takes {
        let (put, take) = jobs[n];
        here[n] = if put < latest { (latest + 1).min(take) } else { put };
        latest = latest.max(here[n]);
    }
    here
}

struct Order<'a> {
    jobs: &'a [(i64, i64)],
    here: Vec<i64>,
    /// Workers that nobody waits for.
    free: usize,
    waiting: VecDeque<u32>,
    /// Jobs with a worker that has not begun.
    promised: Vec<u32>,
}

impl Order<'_> {
    fn promise(&mut self) {
        while self.free > 0
            && let Some(job) = self.waiting.pop_front()
        {
            self.promised.push(job);
            self.free -= 1;
        }
    }

    /// How many jobs it moved.
    fn take(&mut self, job: u32) -> usize {
        if let Some(at) = self.promised.iter().position(|&number| number == job) {
            self.promised.remove(at);
            return 0;
        }
        // It has the worker of another, and all that waited before it wait behind it.
        let at = self.waiting.iter().position(|&number| number == job).unwrap_or(0);
        self.waiting.remove(at);
        if let Some(other) = self.promised.pop() {
            self.waiting.push_front(other);
        }
        let passed = (at + 1).min(self.waiting.len());
        let behind = self.here[job as usize] + 1;
        for (nth, &other) in self.waiting.iter().enumerate() {
            let here = &mut self.here[other as usize];
            if nth >= passed && *here >= behind {
                break;
            }
            *here = behind.min(self.jobs[other as usize].1).max(*here);
        }
        passed
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn who_was_served_first_came_first() {
        let arrivals = |jobs: &[(i64, i64)], asks: &[i64]| {
            let asks: Vec<_> = asks.iter().map(|&number| (number, number - 1)).collect();
            super::arrivals(jobs, &asks)
        };
        // Two idle workers; the second job is awake earlier: it has overtaken nobody.
        assert_eq!(arrivals(&[(10, 30), (11, 20)], &[0, 0]), [10, 11]);
        // One worker: it has.
        assert_eq!(arrivals(&[(10, 30), (11, 20)], &[0, 25]), [12, 11]);
        // The last comes first.
        let last_first = [(1, 40), (2, 30), (3, 20), (4, 10)];
        assert_eq!(arrivals(&last_first, &[0, 15, 25, 35]), [7, 6, 5, 4]);
    }
}
