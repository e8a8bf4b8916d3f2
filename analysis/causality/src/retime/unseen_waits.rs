//! Waits for other threads that no edge shows, as for a lock: a replay keeps their lengths, whatever becomes faster.
//! `RetimeModel::learn` refuses a run in which their share exceeds `MAX_UNSEEN_WAIT_SHARE`.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::moments::Moments;
use super::recorded_run::{RecordedRun, ThreadState};
use crate::turns::{ThreadInterval, take_turns};

/// A thread takes its turn within this share of the interval's mean length after the previous one, or within
/// [`MIN_HANDOVER`] ns.
const MAX_HANDOVER_SHARE: f64 = 0.1;
const MIN_HANDOVER: i64 = 100_000;
/// A smaller share of the intervals may begin just as another one ends by chance.
const MIN_HANDOVERS: f64 = 0.2;

/// The share of the time between successive vertices, where the later one has no cause, in which threads waited for
/// another thread of these programs: by the kernel's records, or, without them, where threads take turns.
pub(super) fn unseen_wait_share(
    recording: &RecordedRun,
    moments: &Moments,
    vertex_index: &[u32],
    has_cause: impl Fn(u32) -> bool,
) -> f64 {
    if recording.states.is_empty() {
        return turn_wait_share(recording, moments, vertex_index, has_cause);
    }
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

/// An interval of an activity, with the vertex at which it begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Turn {
    interval: ThreadInterval,
    begin: u32,
}

/// The same share where the kernel recorded nothing. A thread waited if threads run an interval one at a time, and the
/// time without a vertex before its turn ended as the previous thread ended its own.
fn turn_wait_share(
    recording: &RecordedRun,
    moments: &Moments,
    vertex_index: &[u32],
    has_cause: impl Fn(u32) -> bool,
) -> f64 {
    let mut waits = HashSet::new();
    for mut turns in turns(recording, moments, vertex_index).into_values() {
        turns.sort_unstable();
        let mut intervals: Vec<_> = turns.iter().map(|turn| turn.interval).collect();
        if !take_turns(&mut intervals) {
            continue;
        }
        let sum: f64 = intervals.iter().map(ThreadInterval::length).sum();
        let mean = sum / intervals.len() as f64;
        let handover = MIN_HANDOVER.max((MAX_HANDOVER_SHARE * mean) as i64);
        let handovers = turns.windows(2).filter_map(|pair| {
            let (previous, turn) = (pair[0].interval, pair[1]);
            let at = wait_before(moments, turn.begin, handover, &has_cause)?;
            let late = moments.time[at as usize].abs_diff(previous.end);
            let is_other = previous.thread != turn.interval.thread;
            (is_other && late <= handover as u64).then_some(at)
        });
        let handovers: Vec<u32> = handovers.collect();
        if handovers.len() as f64 >= MIN_HANDOVERS * turns.len() as f64 {
            waits.extend(handovers);
        }
    }
    let steps = (0..moments.len() as u32).filter(|&at| !has_cause(at));
    let all: i64 = steps.map(|at| moments.time_since_previous(at)).sum();
    let waited: i64 = waits.into_iter().map(|at| moments.time_since_previous(at)).sum();
    waited as f64 / all.max(1) as f64
}

/// The intervals and spans within a thread, by process and name.
fn turns(
    recording: &RecordedRun,
    moments: &Moments,
    vertex_index: &[u32],
) -> BTreeMap<(u32, u32), Vec<Turn>> {
    let mut turns: BTreeMap<_, Vec<Turn>> = BTreeMap::new();
    for length in recording.intervals.iter().chain(&recording.spans) {
        let [begin, end] = [length.begin, length.end].map(|vertex| vertex_index[vertex.0 as usize]);
        let thread = moments.thread[begin as usize];
        if thread != moments.thread[end as usize] {
            continue;
        }
        let [from, to] = [begin, end].map(|at| moments.time[at as usize]);
        let interval = ThreadInterval { begin: from, end: to, thread: thread.into() };
        let key = (moments.process(begin), length.name.0);
        turns.entry(key).or_default().push(Turn { interval, begin });
    }
    turns
}

/// The vertex shortly before `at`, or `at` itself, that ends a step longer than `handover`, without a cause up to there.
fn wait_before(
    moments: &Moments,
    mut at: u32,
    handover: i64,
    has_cause: impl Fn(u32) -> bool,
) -> Option<u32> {
    let begin = moments.time[at as usize];
    loop {
        let before = moments.before(at).filter(|_| !has_cause(at))?;
        if moments.time_since_previous(at) > handover {
            return Some(at);
        }
        at = before;
        if begin.saturating_sub(moments.time[at as usize]) > handover {
            return None;
        }
    }
}
