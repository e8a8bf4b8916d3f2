//! Waits for other threads that no edge shows, as for a lock: a replay keeps their lengths, whatever becomes faster.

use std::collections::HashMap;

use super::moments::Moments;
use super::recording::{Recording, ThreadState};

/// The share of the time between successive vertices, where the later one has no cause, in which threads waited for
/// another thread of these programs.
pub(super) fn unseen_wait_share(
    recording: &Recording,
    moments: &Moments,
    has_cause: impl Fn(u32) -> bool,
) -> f64 {
    let mut waits: HashMap<u32, Vec<(i64, i64)>> = HashMap::new();
    for state in &recording.states {
        if state.state == ThreadState::WaitsForThread {
            waits.entry(state.thread.0).or_default().push((state.begin, state.end));
        }
    }
    if waits.is_empty() {
        return 0.0;
    }
    waits.values_mut().for_each(|waits| waits.sort_unstable());
    let (mut waited, mut all) = (0, 0);
    for at in 0..moments.len() as u32 {
        let Some(before) = moments.before(at).filter(|_| !has_cause(at)) else { continue };
        let [begin, end] = [before, at].map(|vertex| moments.time[vertex as usize]);
        all += end - begin;
        let Some(waits) = waits.get(&moments.thread[at as usize]) else { continue };
        let first = waits.partition_point(|wait| wait.1 <= begin);
        let within = waits[first..].iter().take_while(|wait| wait.0 < end);
        waited += within.map(|wait| wait.1.min(end) - wait.0.max(begin)).sum::<i64>();
    }
    waited as f64 / all.max(1) as f64
}
