//! A run, timed again: a simulation of the events of queues, between which times follow from times.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use super::cause_edges::{QUEUED, Work};
use super::contention::ContendedEngine;
use super::critical::Trace;
use super::doubt::RetimeRefusal;
use super::model::RetimeModel;
use super::moments::NONE;
use super::recording::{NameId, Vertex};
use super::replay::Replay;
use super::speed::Speeds;

/// An event of a queue. Simultaneous jobs keep their recorded order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct ReplayEvent {
    time: i64,
    what: ReplayStep,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum ReplayStep {
    /// A job is in its queue.
    Put { job: u32 },
    /// A worker asks. Its last vertex is `after`, [`NONE`] for one that begins so.
    Ask { queue: u32, after: u32 },
}

/// What waits in a queue: jobs, or workers.
#[derive(Debug, Default)]
struct WaitingLine {
    jobs: VecDeque<(i64, u32)>,
    asks: VecDeque<(i64, u32)>,
}

impl RetimeModel {
    /// The run with other speeds.
    ///
    /// # Errors
    /// Threads would wait for each other for ever.
    pub fn replay(&self, speeds: &Speeds) -> Result<Replay, RetimeRefusal> {
        let times = self.contexts.each(1.0, |name| {
            let name = self.names.written(NameId(name));
            speeds.iter().find(|speed| speed.activity == name).map(|speed| speed.times)
        });
        self.time_again(&times, None).map(|entry| entry.0)
    }

    /// With the speed of each context.
    pub(super) fn time_again(
        &self,
        speeds: &[f64],
        trace: Option<Trace>,
    ) -> Result<(Replay, Option<Trace>), RetimeRefusal> {
        match &self.contention {
            Some(known) => ContendedEngine::new(self, known, speeds, trace).run(),
            None => Engine::new(self, speeds, trace).run(),
        }
    }

    /// The run with its own.
    pub(super) fn as_it_was(&self) -> Result<Replay, RetimeRefusal> {
        self.replay(&Speeds::default())
    }

    /// When a vertex is in a replay of this model.
    pub fn time(&self, replay: &Replay, vertex: Vertex) -> i64 {
        replay.time[self.place[vertex.0 as usize] as usize]
    }
}

struct Engine<'a> {
    model: &'a RetimeModel,
    /// For each context.
    speeds: &'a [f64],
    /// Of a vertex that is not settled: the latest of the edges that have come.
    time: Vec<i64>,
    /// For each vertex, how many it waits for: edges, and its program order or its worker.
    wanted: Vec<u32>,
    /// For each job, when its worker was free.
    free: Vec<i64>,
    ready: Vec<u32>,
    events: BinaryHeap<Reverse<ReplayEvent>>,
    lines: Vec<WaitingLine>,
    order: Vec<u32>,
    trace: Option<Trace>,
}

impl<'a> Engine<'a> {
    fn new(model: &'a RetimeModel, speeds: &'a [f64], trace: Option<Trace>) -> Engine<'a> {
        let vertices = model.moments.len();
        let mut engine = Engine {
            model,
            speeds,
            time: vec![i64::MIN; vertices],
            wanted: model.ways.into.clone(),
            free: vec![i64::MIN; model.jobs.len()],
            ready: Vec::new(),
            events: BinaryHeap::new(),
            lines: model.queues.iter().map(|_| WaitingLine::default()).collect(),
            order: Vec::with_capacity(vertices),
            trace,
        };
        for at in 0..vertices as u32 {
            let slot = at as usize;
            if model.outside[slot] {
                engine.time[slot] = model.moments.time[slot];
            }
            let job = model.job[slot];
            let begins = model.moments.before(at).is_none();
            if job != NONE {
                // Its queue's worker, beside its job.
                engine.wanted[slot] += 1;
                if begins {
                    let queue = model.jobs[job as usize].queue;
                    engine.lines[queue as usize].asks.push_back((i64::MIN, NONE));
                }
            } else if !begins {
                engine.wanted[slot] += 1;
            }
            if engine.wanted[slot] == 0 {
                engine.ready.push(at);
            }
        }
        engine
    }

    /// All of it.
    fn run(mut self) -> Result<(Replay, Option<Trace>), RetimeRefusal> {
        loop {
            while let Some(at) = self.ready.pop() {
                self.settle(at);
            }
            let Some(Reverse(event)) = self.events.pop() else { break };
            let queue = match event.what {
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
        Ok((Replay { time: self.time, order: self.order }, self.trace))
    }

    /// The first job, by the first worker.
    fn serve(&mut self, queue: usize) {
        let line = &mut self.lines[queue];
        let (Some(&(put, job)), Some(&(free, after))) = (line.jobs.front(), line.asks.front())
        else {
            return;
        };
        line.jobs.pop_front();
        line.asks.pop_front();
        let known = &self.model.jobs[job as usize];
        self.free[job as usize] = free;
        if let Some(trace) = &mut self.trace {
            trace.worker(job, after);
        }
        self.reach(known.take, put + self.model.queues[queue].base, known.put);
        self.fulfil(known.take);
    }

    /// An edge from `from` comes to `to`.
    fn reach(&mut self, to: u32, time: i64, from: u32) {
        if time > self.time[to as usize] {
            self.time[to as usize] = time;
            if let Some(trace) = &mut self.trace {
                trace.reach(to, from);
            }
        }
        self.fulfil(to);
    }

    fn fulfil(&mut self, at: u32) {
        let wanted = &mut self.wanted[at as usize];
        *wanted -= 1;
        if *wanted == 0 {
            self.ready.push(at);
        }
    }

    fn work(&self, at: u32, work: Work) -> i64 {
        work.at(self.speeds[self.model.context[at as usize] as usize])
    }

    /// All that `at` follows has a time: it has one, too.
    fn settle(&mut self, at: u32) {
        let model = self.model;
        let slot = at as usize;
        let (reached, job) = (self.time[slot], model.job[slot]);
        let before = model.moments.before(at);
        let free = match (job, before) {
            (NONE, Some(before)) => self.time[before as usize] + self.work(at, model.work[slot]),
            (NONE, None) => i64::MIN,
            (job, _) => self.free[job as usize],
        };
        let waits = reached > free;
        let begins = job == NONE && before.is_none() && !waits;
        let time = if begins {
            model.moments.time[slot]
        } else {
            reached.max(free) + self.rest(at, waits, reached, before)
        };
        self.time[slot] = time;
        self.order.push(at);
        if let Some(trace) = &mut self.trace {
            trace.settle(model, at, waits, &self.time);
        }
        for &(to, kind) in model.ways.from(at) {
            if kind == QUEUED {
                let job = model.job[to as usize];
                let late = model.jobs[job as usize].late;
                self.events.push(Reverse(ReplayEvent {
                    time: time + late,
                    what: ReplayStep::Put { job },
                }));
            } else {
                self.reach(to, time + model.ways.base[kind as usize], at);
            }
        }
        self.go_on(at, time);
    }

    /// What its thread does next.
    fn go_on(&mut self, at: u32, time: i64) {
        let model = self.model;
        let (queue, works) = match model.moments.after(at) {
            Some(next) if model.job[next as usize] == NONE => return self.fulfil(next),
            Some(next) => {
                let job = &model.jobs[model.job[next as usize] as usize];
                (job.queue, self.work(next, model.work[next as usize]))
            }
            None => {
                let queue = model.pool[model.moments.thread[at as usize] as usize];
                let again = model.queues.get(queue as usize).and_then(|queue| queue.again);
                let Some(again) = again else { return };
                (queue, again)
            }
        };
        let what = ReplayStep::Ask { queue, after: at };
        self.events.push(Reverse(ReplayEvent { time: time + works, what }));
    }

    /// The extra time of `at`, which depends on whether it waited in this replay.
    fn rest(&self, at: u32, waits: bool, reached: i64, before: Option<u32>) -> i64 {
        let model = self.model;
        let slot = at as usize;
        if waits == model.waited[slot] || model.twin[slot] == NONE {
            return model.rest[slot];
        }
        let twin = model.twin[slot];
        match before {
            // One that did not wait says how long such a thread is busy before it gets here.
            Some(before) if !waits && model.job[slot] == NONE => {
                let busy = self.work(at, model.work[twin as usize]);
                let free = self.time[before as usize] + busy;
                let now = self.time[before as usize] + self.work(at, model.work[slot]);
                free.max(reached) - now.max(reached)
            }
            _ => model.rest[twin as usize],
        }
    }
}
