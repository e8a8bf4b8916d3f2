//! Contention for CPUs: if the kernel recorded the states of threads, the CPUs of a machine are a station with
//! as many servers, and ready threads wait in its queue.
//!
//! The run shows four properties of each [`CpuSlice`](slices::CpuSlice), which is a time during which a thread
//! had a CPU: the delay before it entered the queue while a CPU was idle; its position in the queue; the time
//! of the switch; and whether it was preempted. With these, the recorded run is reproduced exactly. If a thread
//! waits at other speeds but did not in the recording, or the other way round, it takes them from a slice in
//! that situation.

mod contended_engine;
mod cpu_scheduling;
mod ready_threads;
mod slices;
mod thread_steps;

pub(super) use contended_engine::ContendedEngine;
pub(super) use slices::Slices;
pub(super) use thread_steps::{ThreadStep, ThreadSteps};

use super::cause_edges::{CauseEdges, QUEUED};
use super::job_queues::{JobQueue, QueuedJob};
use super::moments::{Moments, NONE};
use super::recorded_run::{RecordedRun, RecordedState, ThreadState};

/// The parts of the model about threads, causes and queues.
#[derive(Debug, Clone, Copy)]
pub(super) struct ModelParts<'a> {
    pub moments: &'a Moments,
    pub cause_edges: &'a CauseEdges,
    pub outside: &'a [bool],
    /// For each vertex, the job that it takes, or [`NONE`].
    pub job_of_vertex: &'a [u32],
    pub jobs: &'a [QueuedJob],
    pub queues: &'a [JobQueue],
}

/// The part of the model about CPUs.
#[derive(Debug)]
pub(super) struct Contention {
    pub thread_steps: ThreadSteps,
    pub slices: Slices,
    /// For each kind of edge, the smallest time from the cause until the waiting thread is ready.
    pub min_edge_latency: Vec<i64>,
    /// For each queue, the smallest time from the arrival of a job until the waiting thread is ready.
    pub min_queue_latency: Vec<i64>,
    /// For each vertex, the time from the arrival of its last cause until its thread is ready.
    pub wake_delay: Vec<i64>,
}

/// The contention of a run, and for each vertex whether it waited.
pub(super) struct LearnedContention {
    pub contention: Contention,
    pub waited: Vec<bool>,
}

impl Contention {
    /// Learns the contention of a run. `asked` has for each job the time at which the worker that took it was free.
    pub fn learn(
        model: ModelParts<'_>,
        thread_steps: ThreadSteps,
        slices: Slices,
        asked: &[i64],
    ) -> LearnedContention {
        let (min_edge_latency, min_queue_latency) = min_latencies(&model, &thread_steps);
        let arrived = ready_arrivals(&model, &thread_steps, &min_edge_latency, &min_queue_latency);
        let mut wake_delay = vec![0; model.moments.len()];
        let mut waited = vec![false; model.moments.len()];
        for at in 0..model.moments.len() {
            let (job, step) = (model.job_of_vertex[at], thread_steps.step_to(at as u32));
            let free = if job == NONE { step.asked } else { asked[job as usize] };
            waited[at] = arrived[at] > free || (job == NONE && step.blocked);
            if waited[at] || job != NONE {
                wake_delay[at] = (step.ready - arrived[at].max(free)).max(0);
            }
        }
        let contention =
            Contention { thread_steps, slices, min_edge_latency, min_queue_latency, wake_delay };
        LearnedContention { contention, waited }
    }
}

impl ModelParts<'_> {
    /// The time at which a job is in its queue.
    fn queued_at(&self, job: usize) -> i64 {
        self.moments.time[self.jobs[job].put as usize] + self.jobs[job].late
    }

    /// Calls `take` with the cause, the effect and the kind of each edge.
    fn for_each_edge(&self, mut take: impl FnMut(usize, usize, u32)) {
        for from in 0..self.moments.len() {
            for &(to, kind) in self.cause_edges.from(from as u32) {
                take(from, to as usize, kind);
            }
        }
    }
}

/// The smallest latency of each kind of edge, and of each queue.
fn min_latencies(model: &ModelParts<'_>, thread_steps: &ThreadSteps) -> (Vec<i64>, Vec<i64>) {
    let mut edges = vec![i64::MAX; model.cause_edges.base.len()];
    let mut queues = vec![i64::MAX; model.queues.len()];
    model.for_each_edge(|from, to, kind| {
        let ready = thread_steps.step_to(to as u32).ready;
        let (least, latency) = if kind == QUEUED {
            let job = model.job_of_vertex[to] as usize;
            (&mut queues[model.jobs[job].queue as usize], ready - model.queued_at(job))
        } else {
            (&mut edges[kind as usize], ready - model.moments.time[from])
        };
        *least = (*least).min(latency.max(0));
    });
    (edges, queues)
}

/// For each vertex, the time at which its last cause would make a waiting thread ready; `i64::MIN` without causes.
fn ready_arrivals(
    model: &ModelParts<'_>,
    thread_steps: &ThreadSteps,
    edge_latency: &[i64],
    queue_latency: &[i64],
) -> Vec<i64> {
    let mut arrived: Vec<i64> = (0..model.moments.len())
        .map(|at| if model.outside[at] { thread_steps.step_to(at as u32).ready } else { i64::MIN })
        .collect();
    model.for_each_edge(|from, to, kind| {
        let arrival = if kind == QUEUED {
            let job = model.job_of_vertex[to] as usize;
            model.queued_at(job) + queue_latency[model.jobs[job].queue as usize]
        } else {
            model.moments.time[from] + edge_latency[kind as usize]
        };
        arrived[to] = arrived[to].max(arrival);
    });
    arrived
}

/// The share of the time with more threads ready to run than CPUs, on the machine where it is largest.
pub(super) fn crowded_share(recording: &RecordedRun) -> f64 {
    let mut states = recording.states.clone();
    let machine =
        |state: &RecordedState| recording.machines.get(&state.thread).copied().unwrap_or_default();
    states.sort_by_key(machine);
    let shares = states.chunk_by(|one, other| machine(one) == machine(other)).map(|states| {
        let mut cpus = Vec::new();
        let mut changes: Vec<(i64, i64)> = Vec::new();
        for state in states {
            match state.state {
                ThreadState::Running { cpu } => cpus.push(cpu),
                ThreadState::Ready => {}
                ThreadState::Blocked | ThreadState::WaitsForThread | ThreadState::Unknown => {
                    continue;
                }
            }
            changes.extend([(state.begin, 1), (state.end, -1)]);
        }
        cpus.sort_unstable();
        cpus.dedup();
        changes.sort_unstable();
        let (mut runnable, mut since, mut crowded) = (0, 0, 0);
        for &(time, change) in &changes {
            if runnable > cpus.len() as i64 {
                crowded += time - since;
            }
            (runnable, since) = (runnable + change, time);
        }
        let begin = states.iter().map(|state| state.begin).min().unwrap_or(0);
        let end = states.iter().map(|state| state.end).max().unwrap_or(0);
        crowded as f64 / (end - begin).max(1) as f64
    });
    shares.fold(0.0, f64::max)
}
