//! The jobs and the workers that wait in a queue.

use std::collections::VecDeque;

/// Two lines, each in the order of arrival; times in ns.
#[derive(Debug, Default)]
pub(super) struct WaitingLine {
    /// Time and number of each waiting job.
    pub jobs: VecDeque<(i64, u32)>,
    /// The time of each waiting request for a job, and its worker.
    pub asks: VecDeque<(i64, u32)>,
}

impl WaitingLine {
    /// Takes the first job and the first request, if there are both.
    pub fn pair(&mut self) -> Option<[(i64, u32); 2]> {
        let pair = [*self.jobs.front()?, *self.asks.front()?];
        self.jobs.pop_front();
        self.asks.pop_front();
        Some(pair)
    }
}
