//! Contention for CPUs: where the kernel recorded what each thread did, the CPUs of a machine are a station
//! with as many servers, and threads that are ready wait in its queue.
//!
//! The run shows four things of each [`CpuSlice`](slices::CpuSlice), which is a time during which a thread had a
//! CPU: how long the thread was kept from the queue though a CPU was idle; which of the waiting threads it
//! came before; what the switch took; and whether it had to give the CPU back. With these, the run as it was
//! comes out exactly. Where speeds make a thread wait that did not, or the other way round, it takes them
//! from a slice that was in that situation.

mod engine;
mod processors;
mod programs;
mod queue;
mod slices;

pub(super) use engine::ContendedEngine;
pub(super) use programs::{Program, Programs};
pub(super) use slices::Slices;

use super::cause_edges::{CauseEdges, QUEUED};
use super::moments::{Moments, NONE};
use super::queues::{JobQueue, QueuedJob};
use super::recording::{RecordedState, Recording, ThreadState};

/// What the model knows of threads, causes and queues.
#[derive(Debug, Clone, Copy)]
pub(super) struct Causes<'a> {
    pub moments: &'a Moments,
    pub ways: &'a CauseEdges,
    pub outside: &'a [bool],
    /// For each vertex the job that it takes.
    pub job: &'a [u32],
    pub jobs: &'a [QueuedJob],
    pub queues: &'a [JobQueue],
}

/// What the model knows of CPUs.
#[derive(Debug)]
pub(super) struct Contention {
    pub programs: Programs,
    pub slices: Slices,
    /// For each kind of way, the least time until what it brings is there.
    pub base: Vec<i64>,
    /// The same for each queue.
    pub queued: Vec<i64>,
    /// For each vertex: after what it waited for is there, until its thread is ready to run again.
    pub delay: Vec<i64>,
}

impl Contention {
    /// And for each vertex whether it waited. `asked` has for each job when the worker was free that it met.
    pub fn new(
        model: Causes<'_>,
        programs: Programs,
        slices: Slices,
        asked: &[i64],
    ) -> (Contention, Vec<bool>) {
        let time = &model.moments.time;
        let here = |job: usize| time[model.jobs[job].put as usize] + model.jobs[job].late;
        let there = |at: usize| programs.of(at as u32).there;
        let mut base = vec![i64::MAX; model.ways.base.len()];
        let mut queued = vec![i64::MAX; model.queues.len()];
        let each = |take: &mut dyn FnMut(usize, usize, u32)| {
            for from in 0..model.moments.len() {
                for &(to, kind) in model.ways.from(from as u32) {
                    take(from, to as usize, kind);
                }
            }
        };
        each(&mut |from, to, kind| {
            let (least, took) = if kind == QUEUED {
                let job = model.job[to] as usize;
                (&mut queued[model.jobs[job].queue as usize], there(to) - here(job))
            } else {
                (&mut base[kind as usize], there(to) - time[from])
            };
            *least = (*least).min(took.max(0));
        });
        let mut reached: Vec<i64> = (0..model.moments.len())
            .map(|at| if model.outside[at] { there(at) } else { i64::MIN })
            .collect();
        each(&mut |from, to, kind| {
            let came = if kind == QUEUED {
                let job = model.job[to] as usize;
                here(job) + queued[model.jobs[job].queue as usize]
            } else {
                time[from] + base[kind as usize]
            };
            reached[to] = reached[to].max(came);
        });
        let mut delay = vec![0; model.moments.len()];
        let mut waited = vec![false; model.moments.len()];
        for at in 0..model.moments.len() {
            let (job, program) = (model.job[at], programs.of(at as u32));
            let ready = if job == NONE { program.asked } else { asked[job as usize] };
            waited[at] = reached[at] > ready || (job == NONE && program.blocked);
            if waited[at] || job != NONE {
                delay[at] = (program.there - reached[at].max(ready)).max(0);
            }
        }
        (Contention { programs, slices, base, queued, delay }, waited)
    }
}

/// The share of the time with more threads ready to run than CPUs, on the machine where it is largest.
pub(super) fn crowded(recording: &Recording) -> f64 {
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
                ThreadState::Blocked | ThreadState::Unknown => continue,
            }
            changes.extend([(state.begin, 1), (state.end, -1)]);
        }
        cpus.sort_unstable();
        cpus.dedup();
        changes.sort_unstable();
        let (mut there, mut since, mut crowded) = (0, 0, 0);
        for &(time, change) in &changes {
            if there > cpus.len() as i64 {
                crowded += time - since;
            }
            (there, since) = (there + change, time);
        }
        let begin = states.iter().map(|state| state.begin).min().unwrap_or(0);
        let end = states.iter().map(|state| state.end).max().unwrap_or(0);
        crowded as f64 / (end - begin).max(1) as f64
    });
    shares.fold(0.0, f64::max)
}
