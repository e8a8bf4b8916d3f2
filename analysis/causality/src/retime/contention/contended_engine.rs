//! The replay of a run in which threads wait for CPUs: a simulation of all events in the order of time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

use super::ready_threads::{Examples, RunQueue};
use super::thread_steps::StepPart;
use super::{Contention, ThreadStep};
use crate::retime::cause_edges::QUEUED;
use crate::retime::critical_paths::CriticalPaths;
use crate::retime::model::RetimeModel;
use crate::retime::moments::NONE;
use crate::retime::refusal::RetimeRefusal;
use crate::retime::replay_result::{Replay, TracedReplay};
use crate::retime::waiting_line::WaitingLine;

/// An event of the simulation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ContentionEvent {
    /// A slice ends, or a part of it.
    Done { thread: u32 },
    /// A thread continues after a wait for anything but a CPU.
    Resumes { thread: u32 },
    /// A job arrives in its queue.
    Put { job: u32 },
    /// A thread needs a CPU.
    Ready { thread: u32 },
}

/// The progress of a simulated thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ThreadStage {
    /// On the way to the point where it waits for the causes of `to`.
    Before,
    /// On the way from that point to `to`.
    After,
    /// After the last vertex.
    Tail,
    /// On the way to ask for a job after its last one.
    Again { queue: u32 },
}

/// A simulated thread. It does what a thread of the recording did; if it serves a queue, it does what any of
/// the threads of that queue did.
#[derive(Debug)]
pub(super) struct SimulatedThread {
    pub machine: u32,
    pub to: u32,
    pub stage: ThreadStage,
    pub parts: Range<u32>,
    /// The rest of the CPU time of a part that has begun.
    pub left: Option<i64>,
    /// CPU time to run after all parts.
    pub extra: i64,
    pub has_cpu: bool,
    /// The time at which it gave its CPU back.
    pub gave_cpu_at: i64,
    /// The time since which it runs.
    pub since: i64,
    /// The CPU time until it is preempted.
    pub budget: i64,
    /// The slice from which the budget is taken.
    pub budget_from_slice: u32,
    /// Whether the thread is preempted even if no thread waits, as threads of other programs need the
    /// CPU.
    pub is_forced: bool,
    pub entry: QueueEntry,
    /// The last vertex that it settled.
    pub last: u32,
}

/// The entry of a thread into the queue for CPUs.
#[derive(Debug, Clone, Copy)]
pub(super) struct QueueEntry {
    /// The slice whose properties it has, or [`NONE`].
    pub model_slice: u32,
    /// Whether the entry is that slice itself, not one like it.
    pub is_own: bool,
}

#[derive(Debug, Default)]
pub(super) struct MachineState {
    pub idle: usize,
    pub queue: RunQueue,
    pub cut: Examples,
    pub woken: Examples,
    pub switched: [Examples; 2],
    pub is_dirty: bool,
}

/// Replays a run in which threads wait for CPUs.
pub(in crate::retime) struct ContendedEngine<'a> {
    pub(super) model: &'a RetimeModel,
    pub(super) contention: &'a Contention,
    speeds: &'a [f64],
    time: Vec<i64>,
    /// For each vertex, the latest arrival of a cause so far.
    arrived: Vec<i64>,
    /// For each vertex, the number of causes that have not arrived.
    wanted: Vec<u32>,
    /// For each vertex, the index of the thread that waits for its causes.
    parked: Vec<u32>,
    pub(super) threads: Vec<SimulatedThread>,
    pub(super) machines: Vec<MachineState>,
    /// Machines whose queue or CPUs have changed.
    pub(super) dirty: Vec<u32>,
    /// By queue. Simulated threads ask.
    lines: Vec<WaitingLine>,
    events: BinaryHeap<Reverse<(i64, ContentionEvent, u64)>>,
    count: u64,
    order: Vec<u32>,
    critical_paths: Option<CriticalPaths>,
}

impl<'a> ContendedEngine<'a> {
    pub fn new(
        model: &'a RetimeModel,
        contention: &'a Contention,
        speeds: &'a [f64],
        critical_paths: Option<CriticalPaths>,
    ) -> ContendedEngine<'a> {
        let vertices = model.moments.len();
        let machine = |at: usize| MachineState {
            idle: contention.slices.machines[at].cpus,
            ..MachineState::default()
        };
        let mut engine = ContendedEngine {
            model,
            contention,
            speeds,
            time: vec![i64::MIN; vertices],
            arrived: vec![i64::MIN; vertices],
            wanted: model.cause_edges.into.clone(),
            parked: vec![NONE; vertices],
            threads: Vec::new(),
            machines: (0..contention.slices.machines.len()).map(machine).collect(),
            dirty: Vec::new(),
            lines: model.queues.iter().map(|_| WaitingLine::default()).collect(),
            events: BinaryHeap::new(),
            count: 0,
            order: Vec::with_capacity(vertices),
            critical_paths,
        };
        for at in 0..vertices {
            if model.outside[at] {
                engine.arrived[at] = contention.thread_steps.step_to(at as u32).ready;
            }
        }
        for recorded in 0..model.moments.threads as u32 {
            engine.begin(recorded);
        }
        engine
    }

    /// Replays the whole run.
    pub fn run(mut self) -> Result<TracedReplay, RetimeRefusal> {
        while let Some(Reverse((now, event, _))) = self.events.pop() {
            self.handle(now, event);
            while let Some(&Reverse((then, ..))) = self.events.peek()
                && then == now
            {
                if let Some(Reverse((_, event, _))) = self.events.pop() {
                    self.handle(now, event);
                }
            }
            let mut dirty = std::mem::take(&mut self.dirty);
            dirty.sort_unstable();
            for machine in dirty {
                self.machines[machine as usize].is_dirty = false;
                self.dispatch(machine as usize, now);
            }
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

    /// Adds a simulated thread that does what a thread of the recording did. Returns its index.
    fn add_thread(&mut self, recorded: u32, to: u32, stage: ThreadStage, parts: Range<u32>) -> u32 {
        self.threads.push(SimulatedThread {
            machine: self.contention.thread_steps.machine[recorded as usize],
            to,
            stage,
            parts,
            left: None,
            extra: 0,
            has_cpu: false,
            gave_cpu_at: i64::MIN,
            since: i64::MIN,
            budget: 0,
            budget_from_slice: NONE,
            is_forced: false,
            entry: QueueEntry { model_slice: NONE, is_own: false },
            last: NONE,
        });
        self.threads.len() as u32 - 1
    }

    /// Begins the simulation of a thread of the recording.
    fn begin(&mut self, recorded: u32) {
        let (model, thread_steps) = (self.model, &self.contention.thread_steps);
        let begins = thread_steps.begins[recorded as usize];
        let tail = thread_steps.tails[recorded as usize].clone();
        let Some(first) = model.moments.first(recorded) else {
            if let Some(begins) = begins {
                let thread = self.add_thread(recorded, NONE, ThreadStage::Tail, tail);
                self.schedule(begins, ContentionEvent::Resumes { thread });
            }
            return;
        };
        let job = model.job_of_vertex[first as usize];
        let before = thread_steps.step_to(first).before.clone();
        if job != NONE {
            // Its work before the first job belongs to none, and it could have taken a job at once.
            if let Some(begins) = begins {
                let thread = self.add_thread(recorded, NONE, ThreadStage::Tail, before);
                self.schedule(begins, ContentionEvent::Resumes { thread });
            }
            let thread = self.add_thread(recorded, NONE, ThreadStage::Before, 0..0);
            let queue = model.jobs[job as usize].queue as usize;
            self.lines[queue].asks.push_back((i64::MIN, thread));
            return;
        }
        let thread = self.add_thread(recorded, first, ThreadStage::Before, before);
        if let Some(begins) = begins {
            self.schedule(begins, ContentionEvent::Resumes { thread });
        } else if self.wanted[first as usize] == 0 && !model.outside[first as usize] {
            self.schedule(model.moments.time[first as usize], ContentionEvent::Resumes { thread });
        } else {
            self.parked[first as usize] = thread;
            self.wake(first, i64::MIN);
        }
    }

    pub(super) fn schedule(&mut self, time: i64, event: ContentionEvent) {
        self.count += 1;
        self.events.push(Reverse((time, event, self.count)));
    }

    fn handle(&mut self, now: i64, event: ContentionEvent) {
        match event {
            ContentionEvent::Put { job } => {
                let queue = self.model.jobs[job as usize].queue as usize;
                self.lines[queue].jobs.push_back((now, job));
                self.serve(queue, now);
            }
            ContentionEvent::Resumes { thread } => self.advance(thread, now),
            ContentionEvent::Ready { thread } => self.enqueue(thread, now),
            ContentionEvent::Done { thread } => {
                let state = &mut self.threads[thread as usize];
                let ran = now - state.since;
                state.since = now;
                state.budget -= ran;
                if let Some(left) = &mut state.left {
                    *left -= ran;
                } else {
                    state.extra -= ran;
                }
                self.advance(thread, now);
            }
        }
    }

    /// Lets a thread continue until it needs time.
    fn advance(&mut self, thread: u32, now: i64) {
        loop {
            let state = &self.threads[thread as usize];
            let (left, extra, has_parts) = (state.left, state.extra, !state.parts.is_empty());
            let continues = match left {
                Some(left) => self.run_part(thread, now, left),
                None if has_parts => self.begin_part(thread, now),
                None => self.end_parts(thread, now, extra),
            };
            if !continues {
                return;
            }
        }
    }

    /// Begins the next part of a thread. Returns whether the thread continues at once.
    fn begin_part(&mut self, thread: u32, now: i64) -> bool {
        let state = &self.threads[thread as usize];
        let speed = self.speed(state.to);
        match self.contention.thread_steps.part(state.parts.start) {
            StepPart::Run { length, .. } => {
                self.threads[thread as usize].left = Some(at_speed(length, speed));
                true
            }
            StepPart::Idle { fixed, scaled } => {
                self.threads[thread as usize].parts.start += 1;
                self.idle(thread, now, fixed + at_speed(scaled, speed))
            }
        }
    }

    /// Lets a thread be without a CPU for a time. Returns whether it continues at once.
    fn idle(&mut self, thread: u32, now: i64, time: i64) -> bool {
        if time > 0 {
            self.give_back(thread, now);
            self.schedule(now + time, ContentionEvent::Resumes { thread });
        }
        time <= 0
    }

    /// Runs the rest of a part that has begun. Returns whether the thread continues at once.
    fn run_part(&mut self, thread: u32, now: i64, left: i64) -> bool {
        if left > 0 {
            self.run_on(thread, now, left);
            return false;
        }
        let state = &mut self.threads[thread as usize];
        state.left = None;
        state.parts.start += 1;
        true
    }

    /// Runs the CPU time after all parts. Returns whether the thread continues at once.
    fn end_parts(&mut self, thread: u32, now: i64, extra: i64) -> bool {
        if extra > 0 {
            self.run_on(thread, now, extra);
            return false;
        }
        self.arrive(thread, now)
    }

    pub(super) fn speed(&self, to: u32) -> f64 {
        if to == NONE { 1.0 } else { self.speeds[self.model.context[to as usize] as usize] }
    }

    /// Handles the end of all parts. Returns whether the thread continues at once.
    fn arrive(&mut self, thread: u32, now: i64) -> bool {
        let SimulatedThread { stage, to, .. } = self.threads[thread as usize];
        match stage {
            ThreadStage::Tail => {
                self.give_back(thread, now);
                false
            }
            ThreadStage::After => self.settle(thread, to, now),
            ThreadStage::Again { queue } => {
                self.ask(thread, queue as usize, now);
                false
            }
            ThreadStage::Before => {
                let index = to as usize;
                let job = self.model.job_of_vertex[index];
                if job != NONE {
                    let queue = self.model.jobs[job as usize].queue as usize;
                    self.ask(thread, queue, now);
                    return false;
                }
                let waits = self.wanted[index] > 0
                    || self.arrived[index] > now
                    || self.arrived[index] == now && self.model.waited[index];
                if !waits {
                    return self.proceed(thread, to, now);
                }
                self.give_back(thread, now);
                self.parked[index] = thread;
                self.wake(to, now);
                false
            }
        }
    }

    /// Lets the thread that waits for the causes of a vertex continue, if all of them have arrived.
    fn wake(&mut self, at: u32, now: i64) {
        let index = at as usize;
        let thread = self.parked[index];
        if thread == NONE || self.wanted[index] > 0 {
            return;
        }
        self.parked[index] = NONE;
        self.end_wait(thread, at, now, self.arrived[index]);
    }

    /// Ends a wait for a cause that arrived at `arrival`.
    fn end_wait(&mut self, thread: u32, at: u32, now: i64, arrival: i64) {
        let (model, contention) = (self.model, self.contention);
        let index = at as usize;
        let like =
            if model.waited[index] || model.twin[index] == NONE { at } else { model.twin[index] };
        let state = &mut self.threads[thread as usize];
        (state.to, state.stage) = (at, ThreadStage::After);
        state.parts = contention.thread_steps.step_to(like).after.clone();
        (state.left, state.extra) = (None, 0);
        let time = (arrival + contention.wake_delay[like as usize]).max(now);
        self.schedule(time, ContentionEvent::Resumes { thread });
    }

    /// Lets a thread pass a vertex without waiting. Returns whether it continues at once.
    fn proceed(&mut self, thread: u32, at: u32, now: i64) -> bool {
        let (model, contention) = (self.model, self.contention);
        let index = at as usize;
        let step: &ThreadStep = contention.thread_steps.step_to(at);
        let speed = self.speed(at);
        let state = &mut self.threads[thread as usize];
        (state.to, state.stage) = (at, ThreadStage::After);
        (state.parts, state.left, state.extra) = (0..0, None, 0);
        if model.waited[index] {
            // It takes as long as a vertex that did not wait.
            let twin = model.twin[index];
            if twin != NONE {
                let more = (contention.thread_steps.step_to(twin).ran - step.ran_before).max(0);
                state.extra = (more as f64 / speed).round() as i64;
            }
            return true;
        }
        let delay = contention.wake_delay[index];
        if step.blocked {
            // The thread waited, though the worker whose job it takes did not.
            self.threads[thread as usize].parts = step.after.clone();
            self.give_back(thread, now);
        }
        if delay > 0 {
            self.give_back(thread, now);
            self.schedule(now + delay, ContentionEvent::Resumes { thread });
        }
        delay == 0
    }

    fn ask(&mut self, thread: u32, queue: usize, now: i64) {
        self.lines[queue].asks.push_back((now, thread));
        self.give_back(thread, now);
        self.serve(queue, now);
    }

    /// Gives the first job to the first worker, if both wait.
    fn serve(&mut self, queue: usize, now: i64) {
        let Some([(put, job), (asked, thread)]) = self.lines[queue].pair() else { return };
        let queued = &self.model.jobs[job as usize];
        let index = queued.take as usize;
        let state = &mut self.threads[thread as usize];
        let after = state.last;
        if let Some(paths) = &mut self.critical_paths {
            paths.worker(job, after);
        }
        self.wanted[index] -= 1;
        if put > self.arrived[index] {
            self.arrived[index] = put;
            if let Some(paths) = &mut self.critical_paths {
                paths.reach(queued.take, queued.put);
            }
        }
        if self.wanted[index] > 0 || self.arrived[index] > now {
            // The vertex has another cause, too.
            self.parked[index] = thread;
            self.wake(queued.take, now);
        } else if put > asked {
            self.end_wait(thread, queued.take, now, put);
        } else {
            if state.gave_cpu_at == now && self.machines[state.machine as usize].idle > 0 {
                // It keeps the CPU that it has just given back.
                state.has_cpu = true;
                self.machines[state.machine as usize].idle -= 1;
            }
            if self.proceed(thread, queued.take, now) {
                self.schedule(now, ContentionEvent::Resumes { thread });
            }
        }
    }

    /// Sets the time of a vertex, and the next stage of its thread. The thread continues at once.
    fn settle(&mut self, thread: u32, at: u32, now: i64) -> bool {
        let model = self.model;
        let index = at as usize;
        self.time[index] = now;
        self.order.push(at);
        self.threads[thread as usize].last = at;
        if let Some(paths) = &mut self.critical_paths {
            let waits = model.waited[index];
            paths.settle(model, at, waits, &self.time);
        }
        for &(to, kind) in model.cause_edges.from(at) {
            if kind == QUEUED {
                let job = model.job_of_vertex[to as usize];
                let queued = &model.jobs[job as usize];
                let latency = self.contention.min_queue_latency[queued.queue as usize];
                self.schedule(now + queued.late + latency, ContentionEvent::Put { job });
            } else {
                let latency = self.contention.min_edge_latency[kind as usize];
                self.edge_arrived(to, now + latency, at, now);
            }
        }
        let recorded = model.moments.thread[index] as usize;
        let state = &mut self.threads[thread as usize];
        (state.left, state.extra) = (None, 0);
        match model.moments.after(at) {
            Some(next) => {
                (state.to, state.stage) = (next, ThreadStage::Before);
                state.parts = self.contention.thread_steps.step_to(next).before.clone();
            }
            None => {
                (state.to, state.stage) = (NONE, ThreadStage::Tail);
                state.parts = self.contention.thread_steps.tails[recorded].clone();
                let queue = model.queue_of_thread[recorded];
                if let Some(again) = model.queues.get(queue as usize).and_then(|queue| queue.again)
                {
                    // Its last work belongs to no job, and it could take another one.
                    let next =
                        self.add_thread(recorded as u32, NONE, ThreadStage::Again { queue }, 0..0);
                    self.threads[next as usize].last = at;
                    self.schedule(now + again, ContentionEvent::Resumes { thread: next });
                }
            }
        }
        true
    }

    /// Notes that the effect of `from` arrives at `to` at a time.
    fn edge_arrived(&mut self, to: u32, time: i64, from: u32, now: i64) {
        let index = to as usize;
        if time > self.arrived[index] {
            self.arrived[index] = time;
            if let Some(paths) = &mut self.critical_paths {
                paths.reach(to, from);
            }
        }
        self.wanted[index] -= 1;
        self.wake(to, now);
    }
}

/// A length at a speed: 2 is twice as fast.
fn at_speed(length: i64, speed: f64) -> i64 {
    if speed == 1.0 { length } else { (length as f64 / speed).round() as i64 }
}
