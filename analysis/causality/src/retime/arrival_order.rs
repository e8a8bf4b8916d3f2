//! The order in which the jobs of a queue arrived, derived from the order in which they were taken.
//!
//! The queue is served first come, first served. Idle workers that are woken may still take their jobs in
//! another order than these arrived. But if a job was taken while all free workers had been woken for other
//! jobs, it arrived before those, whatever the stamps: a stamp is not the moment at which a job enters its
//! queue.

use std::collections::VecDeque;

/// The time at which each job is in its queue: at its put or later. The n-th job meets the n-th of the sorted
/// `asks`, each the time at which a worker is free, and that of its previous vertex. `jobs` are (put, take), by
/// put.
pub(super) fn queue_arrivals(jobs: &[(i64, i64)], asks: &[(i64, i64)]) -> Vec<i64> {
    let mut takes: Vec<u32> = (0..jobs.len() as u32).collect();
    takes.sort_by_key(|&number| (jobs[number as usize].1, number));
    let mut order = ArrivalOrder {
        jobs,
        arrived: jobs.iter().map(|job| job.0).collect(),
        free: 0,
        waiting: VecDeque::new(),
        promised: Vec::new(),
    };
    let (mut put, mut ask, mut moved) = (0, 0, 0);
    for take in takes {
        let time = jobs[take as usize].1;
        // A worker that is done with a job at once does not ask before it takes that job.
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
        if moved > MAX_MOVES * jobs.len() {
            return as_taken(jobs);
        }
    }
    order.arrived
}

/// If jobs move more often than this on average, the queue is not first come, first served.
const MAX_MOVES: usize = 64;

/// Arrivals in the order in which the jobs were taken.
fn as_taken(jobs: &[(i64, i64)]) -> Vec<i64> {
    let mut takes: Vec<usize> = (0..jobs.len()).collect();
    takes.sort_by_key(|&index| (jobs[index].1, index));
    let mut arrived = vec![0; jobs.len()];
    let mut latest = i64::MIN;
    for n in takes {
        let (put, take) = jobs[n];
        arrived[n] = if put < latest { (latest + 1).min(take) } else { put };
        latest = latest.max(arrived[n]);
    }
    arrived
}

struct ArrivalOrder<'a> {
    jobs: &'a [(i64, i64)],
    arrived: Vec<i64>,
    /// The number of idle workers without a promised job.
    free: usize,
    waiting: VecDeque<u32>,
    /// Jobs whose worker was woken but has not taken them yet.
    promised: Vec<u32>,
}

impl ArrivalOrder<'_> {
    fn promise(&mut self) {
        while self.free > 0
            && let Some(job) = self.waiting.pop_front()
        {
            self.promised.push(job);
            self.free -= 1;
        }
    }

    /// Takes a job. Returns the number of jobs that it overtook.
    fn take(&mut self, job: u32) -> usize {
        if let Some(at) = self.promised.iter().position(|&number| number == job) {
            self.promised.remove(at);
            return 0;
        }
        // It took the worker of another job, and overtook all jobs that waited before it.
        let at = self.waiting.iter().position(|&number| number == job).unwrap_or(0);
        self.waiting.remove(at);
        if let Some(other) = self.promised.pop() {
            self.waiting.push_front(other);
        }
        let passed = (at + 1).min(self.waiting.len());
        let behind = self.arrived[job as usize] + 1;
        for (nth, &other) in self.waiting.iter().enumerate() {
            let arrived = &mut self.arrived[other as usize];
            if nth >= passed && *arrived >= behind {
                break;
            }
            *arrived = behind.min(self.jobs[other as usize].1).max(*arrived);
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
            super::queue_arrivals(jobs, &asks)
        };
        // Two idle workers: the worker of the second job woke up earlier, which is no overtaking.
        assert_eq!(arrivals(&[(10, 30), (11, 20)], &[0, 0]), [10, 11]);
        // One worker: the second job overtook the first.
        assert_eq!(arrivals(&[(10, 30), (11, 20)], &[0, 25]), [12, 11]);
        // The last job was taken first.
        let last_first = [(1, 40), (2, 30), (3, 20), (4, 10)];
        assert_eq!(arrivals(&last_first, &[0, 15, 25, 35]), [7, 6, 5, 4]);
    }
}
