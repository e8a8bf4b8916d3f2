//! The replay of a run: a simulation of the events of queues. All other times follow from earlier times.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::cause_edges::{QUEUED, Work};
use super::contention::ContendedEngine;
use super::critical_paths::CriticalPaths;
use super::model::RetimeModel;
use super::moments::NONE;
use super::recorded_run::{NameId, VertexId};
use super::refusal::RetimeRefusal;
use super::replay_result::{Replay, TracedReplay};
use super::speed::Speeds;
use super::waiting_line::WaitingLine;

/// An event of a queue. Simultaneous jobs keep their recorded order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct ReplayEvent {
    time: i64,
    step: ReplayStep,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum ReplayStep {
    /// A job arrives in its queue.
    Put { job: u32 },
    /// A worker asks for a job. Its last vertex is `after`, or [`NONE`] before the first.
    Ask { queue: u32, after: u32 },
}

impl RetimeModel {
    /// Replays the run with other speeds.
    ///
    /// # Errors
    /// Threads would wait for each other forever.
    pub fn replay(&self, speeds: &Speeds) -> Result<Replay, RetimeRefusal> {
        let factors = self.contexts.each(1.0, |name| {
            let name = self.names.written(NameId(name));
            speeds.iter().find(|speed| speed.activity == name).map(|speed| speed.factor)
        });
        self.replay_with(&factors, None).map(|traced| traced.replay)
    }

    /// Replays the run with these speeds of contexts.
    pub(super) fn replay_with(
        &self,
        speeds: &[f64],
        critical_paths: Option<CriticalPaths>,
    ) -> Result<TracedReplay, RetimeRefusal> {
        match &self.contention {
            Some(contention) => {
                ContendedEngine::new(self, contention, speeds, critical_paths).run()
            }
            None => ReplayEngine::new(self, speeds, critical_paths).run(),
        }
    }

    /// Replays the run with its recorded speeds.
    pub(super) fn as_it_was(&self) -> Result<Replay, RetimeRefusal> {
        self.replay(&Speeds::default())
    }

    /// The time of a vertex in a replay of this model.
    pub fn time(&self, replay: &Replay, vertex: VertexId) -> i64 {
        replay.time[self.vertex_index[vertex.0 as usize] as usize]
    }
}

struct ReplayEngine<'a> {
    model: &'a RetimeModel,
    /// The speed of each context.
    speeds: &'a [f64],
    /// The time of each settled vertex; for others, the latest arrival of an edge so far.
    time: Vec<i64>,
    /// For each vertex, the number of predecessors without a time: the sources of edges, and the previous
    /// vertex of its thread or its worker.
    wanted: Vec<u32>,
    /// For each job, the time at which its worker was free.
    free: Vec<i64>,
    ready: Vec<u32>,
    events: BinaryHeap<Reverse<ReplayEvent>>,
    /// By queue. A worker asks with its last vertex, or [`NONE`] before the first.
    lines: Vec<WaitingLine>,
    order: Vec<u32>,
    critical_paths: Option<CriticalPaths>,
}

impl<'a> ReplayEngine<'a> {
    fn new(
        model: &'a RetimeModel,
        speeds: &'a [f64],
        critical_paths: Option<CriticalPaths>,
    ) -> ReplayEngine<'a> {
        let vertices = model.moments.len();
        let mut engine = ReplayEngine {
            model,
            speeds,
            time: vec![i64::MIN; vertices],
            wanted: model.cause_edges.into.clone(),
            free: vec![i64::MIN; model.jobs.len()],
            ready: Vec::new(),
            events: BinaryHeap::new(),
            lines: model.queues.iter().map(|_| WaitingLine::default()).collect(),
            order: Vec::with_capacity(vertices),
            critical_paths,
        };
        for at in 0..vertices as u32 {
            let index = at as usize;
            if model.outside[index] {
                engine.time[index] = model.moments.time[index];
            }
            let job = model.job_of_vertex[index];
            let begins = model.moments.before(at).is_none();
            if job != NONE {
                // A worker of its queue, in addition to its job.
                engine.wanted[index] += 1;
                if begins {
                    let queue = model.jobs[job as usize].queue;
                    engine.lines[queue as usize].asks.push_back((i64::MIN, NONE));
                }
            } else if !begins {
                engine.wanted[index] += 1;
            }
            if engine.wanted[index] == 0 {
                engine.ready.push(at);
            }
        }
        engine
    }

    /// Replays the whole run.
    fn run(mut self) -> Result<TracedReplay, RetimeRefusal> {
        loop {
            while let Some(at) = self.ready.pop() {
                self.settle(at);
            }
            let Some(Reverse(event)) = self.events.pop() else { break };
            let queue = match event.step {
                ReplayStep::Put { job } => {
                    let queue = self.model.jobs[job as usize].queue as usize;
                    self.lines[queue].jobs.push_back((event.time, job));
                    queue
                }
                ReplayStep::Ask { queue, after } => {
                    self.lines[queue as usize].asks.push_back((event.time, after));
                    queue as usize
                }
            };
            self.serve(queue);
        }
        let missing = self.time.len() - self.order.len();
        if missing > 0 {
            return Err(RetimeRefusal::Stuck { missing, of: self.time.len() });
        }
        Ok(TracedReplay {
            replay: Replay { time: self.time, order: self.order },
            critical_paths: self.critical_paths,
        })
    }

    /// Gives the first job to the first worker, if both wait.
    fn serve(&mut self, queue: usize) {
        let Some([(put, job), (free, after)]) = self.lines[queue].pair() else { return };
        let queued = &self.model.jobs[job as usize];
        self.free[job as usize] = free;
        if let Some(paths) = &mut self.critical_paths {
            paths.worker(job, after);
        }
        self.edge_arrived(queued.take, put + self.model.queues[queue].base, queued.put);
        self.predecessor_settled(queued.take);
    }

    /// Notes that the edge from `from` arrives at `to` at a time.
    fn edge_arrived(&mut self, to: u32, time: i64, from: u32) {
        if time > self.time[to as usize] {
            self.time[to as usize] = time;
            if let Some(paths) = &mut self.critical_paths {
                paths.reach(to, from);
            }
        }
        self.predecessor_settled(to);
    }

    fn predecessor_settled(&mut self, at: u32) {
        let wanted = &mut self.wanted[at as usize];
        *wanted -= 1;
        if *wanted == 0 {
            self.ready.push(at);
        }
    }

    /// The length of `work` at the speed of `at`.
    fn work(&self, at: u32, work: Work) -> i64 {
        work.at(self.speeds[self.model.context[at as usize] as usize])
    }

    /// Sets the time of a vertex whose predecessors all have one.
    fn settle(&mut self, at: u32) {
        let model = self.model;
        let index = at as usize;
        let (arrived, job) = (self.time[index], model.job_of_vertex[index]);
        let before = model.moments.before(at);
        let free = match (job, before) {
            (NONE, Some(before)) => self.time[before as usize] + self.work(at, model.work[index]),
            (NONE, None) => i64::MIN,
            (job, _) => self.free[job as usize],
        };
        let waits = arrived > free;
        let begins = job == NONE && before.is_none() && !waits;
        let time = if begins {
            model.moments.time[index]
        } else {
            arrived.max(free) + self.residual(at, waits, arrived, before)
        };
        self.time[index] = time;
        self.order.push(at);
        if let Some(paths) = &mut self.critical_paths {
            paths.settle(model, at, waits, &self.time);
        }
        for &(to, kind) in model.cause_edges.from(at) {
            if kind == QUEUED {
                let job = model.job_of_vertex[to as usize];
                let late = model.jobs[job as usize].late;
                let step = ReplayStep::Put { job };
                self.events.push(Reverse(ReplayEvent { time: time + late, step }));
            } else {
                self.edge_arrived(to, time + model.cause_edges.base[kind as usize], at);
            }
        }
        self.schedule_next(at, time);
    }

    /// Schedules the next step of the thread of `at`.
    fn schedule_next(&mut self, at: u32, time: i64) {
        let model = self.model;
        let (queue, works) = match model.moments.after(at) {
            Some(next) if model.job_of_vertex[next as usize] == NONE => {
                return self.predecessor_settled(next);
            }
            Some(next) => {
                let job = &model.jobs[model.job_of_vertex[next as usize] as usize];
                (job.queue, self.work(next, model.work[next as usize]))
            }
            None => {
                let queue = model.queue_of_thread[model.moments.thread[at as usize] as usize];
                let again = model.queues.get(queue as usize).and_then(|queue| queue.again);
                let Some(again) = again else { return };
                (queue, again)
            }
        };
        let step = ReplayStep::Ask { queue, after: at };
        self.events.push(Reverse(ReplayEvent { time: time + works, step }));
    }

    /// The residual of `at`, which depends on whether it waits in this replay.
    fn residual(&self, at: u32, waits: bool, arrived: i64, before: Option<u32>) -> i64 {
        let model = self.model;
        let index = at as usize;
        if waits == model.waited[index] || model.twin[index] == NONE {
            return model.residual[index];
        }
        let twin = model.twin[index];
        match before {
            // The twin, which did not wait, shows how long such a thread works before it gets here.
            Some(before) if !waits && model.job_of_vertex[index] == NONE => {
                let busy = self.work(at, model.work[twin as usize]);
                let free = self.time[before as usize] + busy;
                let now = self.time[before as usize] + self.work(at, model.work[index]);
                free.max(arrived) - now.max(arrived)
            }
            _ => model.residual[twin as usize],
        }
    }
}
