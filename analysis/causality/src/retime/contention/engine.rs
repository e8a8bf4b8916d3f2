//! A run, timed again, in which threads wait for CPUs: a simulation of all that happens, in the order of time.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::ops::Range;

use super::programs::Segment;
use super::queue::{Examples, RunQueue};
use super::{Contention, Program};
use crate::retime::cause_edges::QUEUED;
use crate::retime::critical::Trace;
use crate::retime::doubt::RetimeRefusal;
use crate::retime::model::RetimeModel;
use crate::retime::moments::NONE;
use crate::retime::replay::Replay;

/// What happens at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ContentionEvent {
    /// A slice ends, or a segment of it.
    Done { carrier: u32 },
    /// It goes on after a wait for anything but a CPU.
    Resumes { carrier: u32 },
    /// A job is in its queue.
    Put { job: u32 },
    /// It is ready: it wants a CPU.
    Ready { carrier: u32 },
}

/// Where a carrier is on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CarrierStage {
    /// On the way to what `to` waits for.
    Before,
    /// On the way from there to `to`.
    After,
    /// Behind the last vertex.
    Tail,
    /// Asks for a job again as soon as it is done.
    Again { queue: u32 },
}

/// One of the threads that run now. It carries what a thread of the recording did; one of several that
/// serve a queue carries what any of them did.
#[derive(Debug)]
pub(super) struct Carrier {
    pub machine: u32,
    pub to: u32,
    pub stage: CarrierStage,
    pub segments: Range<u32>,
    /// What is left of a segment that has begun.
    pub left: Option<i64>,
    /// What it still runs when all segments are over.
    pub extra: i64,
    pub has_cpu: bool,
    /// When it gave its CPU back, if nobody can have got it yet.
    pub gave: i64,
    /// It runs since then.
    pub since: i64,
    /// So long it may run until it has to give way.
    pub budget: i64,
    /// Like this slice.
    pub cut_like: u32,
    /// It gives way even if nobody waits: others than the program's threads want the CPU.
    pub is_forced: bool,
    pub entry: (u32, bool),
    /// The vertex that it settled last.
    pub last: u32,
}

#[derive(Debug, Default)]
pub(super) struct MachineNow {
    pub idle: usize,
    pub queue: RunQueue,
    pub cut: Examples,
    pub woken: Examples,
    pub switched: [Examples; 2],
    pub is_dirty: bool,
}

#[derive(Debug, Default)]
struct JobLine {
    jobs: VecDeque<(i64, u32)>,
    /// When it asked, and who.
    asks: VecDeque<(i64, u32)>,
}

/// Times a run again, with CPUs that threads wait for.
pub(in crate::retime) struct ContendedEngine<'a> {
    model: &'a RetimeModel,
    pub(super) known: &'a Contention,
    speeds: &'a [f64],
    time: Vec<i64>,
    /// For each vertex: the latest of what it waits for, how many have not come, and which thread waits.
    reached: Vec<i64>,
    wanted: Vec<u32>,
    parked: Vec<u32>,
    pub(super) carriers: Vec<Carrier>,
    pub(super) machines: Vec<MachineNow>,
    /// Machines whose queue or CPUs have changed.
    pub(super) dirty: Vec<u32>,
    lines: Vec<JobLine>,
    events: BinaryHeap<Reverse<(i64, ContentionEvent, u64)>>,
    count: u64,
    order: Vec<u32>,
    trace: Option<Trace>,
}

impl<'a> ContendedEngine<'a> {
    pub fn new(
        model: &'a RetimeModel,
        known: &'a Contention,
        speeds: &'a [f64],
        trace: Option<Trace>,
    ) -> ContendedEngine<'a> {
        let vertices = model.moments.len();
        let machine = |at: usize| MachineNow {
            idle: known.slices.machines[at].cpus,
            ..MachineNow::default()
        };
        let mut engine = ContendedEngine {
            model,
            known,
            speeds,
            time: vec![i64::MIN; vertices],
            reached: vec![i64::MIN; vertices],
            wanted: model.ways.into.clone(),
            parked: vec![NONE; vertices],
            carriers: Vec::new(),
            machines: (0..known.slices.machines.len()).map(machine).collect(),
            dirty: Vec::new(),
            lines: model.queues.iter().map(|_| JobLine::default()).collect(),
            events: BinaryHeap::new(),
            count: 0,
            order: Vec::with_capacity(vertices),
            trace,
        };
        for at in 0..vertices {
            if model.outside[at] {
                engine.reached[at] = known.programs.of(at as u32).there;
            }
        }
        for thread in 0..model.moments.threads as u32 {
            engine.begin(thread);
        }
        engine
    }

    /// All of it.
    pub fn run(mut self) -> Result<(Replay, Option<Trace>), RetimeRefusal> {
        while let Some(Reverse((now, what, _))) = self.events.pop() {
            self.happens(now, what);
            while let Some(&Reverse((then, ..))) = self.events.peek()
                && then == now
            {
                if let Some(Reverse((_, what, _))) = self.events.pop() {
                    self.happens(now, what);
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
        Ok((Replay { time: self.time, order: self.order }, self.trace))
    }

    fn carrier(&mut self, thread: u32, to: u32, stage: CarrierStage, segments: Range<u32>) -> u32 {
        self.carriers.push(Carrier {
            machine: self.known.programs.machine[thread as usize],
            to,
            stage,
            segments,
            left: None,
            extra: 0,
            has_cpu: false,
            gave: i64::MIN,
            since: i64::MIN,
            budget: 0,
            cut_like: NONE,
            is_forced: false,
            entry: (NONE, false),
            last: NONE,
        });
        self.carriers.len() as u32 - 1
    }

    fn begin(&mut self, thread: u32) {
        let (model, programs) = (self.model, &self.known.programs);
        let begins = programs.begins[thread as usize];
        let tail = programs.tails[thread as usize].clone();
        let Some(first) = model.moments.first(thread) else {
            if let Some(begins) = begins {
                let carrier = self.carrier(thread, NONE, CarrierStage::Tail, tail);
                self.at(begins, ContentionEvent::Resumes { carrier });
            }
            return;
        };
        let job = model.job[first as usize];
        let before = programs.of(first).before.clone();
        if job != NONE {
            // What it does before its first job is no part of any, and it could have had one at once.
            if let Some(begins) = begins {
                let carrier = self.carrier(thread, NONE, CarrierStage::Tail, before);
                self.at(begins, ContentionEvent::Resumes { carrier });
            }
            let carrier = self.carrier(thread, NONE, CarrierStage::Before, 0..0);
            let queue = model.jobs[job as usize].queue as usize;
            self.lines[queue].asks.push_back((i64::MIN, carrier));
            return;
        }
        let carrier = self.carrier(thread, first, CarrierStage::Before, before);
        if let Some(begins) = begins {
            self.at(begins, ContentionEvent::Resumes { carrier });
        } else if self.wanted[first as usize] == 0 && !model.outside[first as usize] {
            self.at(model.moments.time[first as usize], ContentionEvent::Resumes { carrier });
        } else {
            self.parked[first as usize] = carrier;
            self.wake(first, i64::MIN);
        }
    }

    pub(super) fn at(&mut self, time: i64, what: ContentionEvent) {
        self.count += 1;
        self.events.push(Reverse((time, what, self.count)));
    }

    fn happens(&mut self, now: i64, what: ContentionEvent) {
        match what {
            ContentionEvent::Put { job } => {
                let queue = self.model.jobs[job as usize].queue as usize;
                self.lines[queue].jobs.push_back((now, job));
                self.serve(queue, now);
            }
            ContentionEvent::Resumes { carrier } => self.advance(carrier, now),
            ContentionEvent::Ready { carrier } => self.enqueue(carrier, now),
            ContentionEvent::Done { carrier } => {
                let one = &mut self.carriers[carrier as usize];
                let ran = now - one.since;
                one.since = now;
                one.budget -= ran;
                if let Some(left) = &mut one.left {
                    *left -= ran;
                } else {
                    one.extra -= ran;
                }
                self.advance(carrier, now);
            }
        }
    }

    /// As far as it gets without time.
    fn advance(&mut self, carrier: u32, now: i64) {
        loop {
            let one = &self.carriers[carrier as usize];
            let needs = match one.left {
                Some(left) => left,
                None if one.segments.is_empty() => one.extra,
                None => {
                    let segment = self.known.programs.segment(one.segments.start);
                    let speed = self.speed(one.to);
                    let at_speed = |length: i64| (length as f64 / speed).round() as i64;
                    match segment {
                        Segment::Run { length, .. } => {
                            let needs = if speed == 1.0 { length } else { at_speed(length) };
                            self.carriers[carrier as usize].left = Some(needs);
                            continue;
                        }
                        Segment::Idle { fixed, scaled } => {
                            self.carriers[carrier as usize].segments.start += 1;
                            let scaled = if speed == 1.0 { scaled } else { at_speed(scaled) };
                            if fixed + scaled > 0 {
                                self.give_back(carrier, now);
                                self.at(now + fixed + scaled, ContentionEvent::Resumes { carrier });
                                return;
                            }
                            continue;
                        }
                    }
                }
            };
            if needs > 0 {
                self.run_on(carrier, now, needs);
                return;
            }
            let one = &mut self.carriers[carrier as usize];
            if one.left.take().is_some() {
                one.segments.start += 1;
                continue;
            }
            if !self.arrive(carrier, now) {
                return;
            }
        }
    }

    pub(super) fn speed(&self, to: u32) -> f64 {
        if to == NONE { 1.0 } else { self.speeds[self.model.context[to as usize] as usize] }
    }

    /// All segments are over. Whether there is more to do at once.
    fn arrive(&mut self, carrier: u32, now: i64) -> bool {
        let Carrier { stage, to, .. } = self.carriers[carrier as usize];
        match stage {
            CarrierStage::Tail => {
                self.give_back(carrier, now);
                false
            }
            CarrierStage::After => self.settle(carrier, to, now),
            CarrierStage::Again { queue } => {
                self.ask(carrier, queue as usize, now);
                false
            }
            CarrierStage::Before => {
                let slot = to as usize;
                let job = self.model.job[slot];
                if job != NONE {
                    let queue = self.model.jobs[job as usize].queue as usize;
                    self.ask(carrier, queue, now);
                    return false;
                }
                let waits = self.wanted[slot] > 0
                    || self.reached[slot] > now
                    || self.reached[slot] == now && self.model.waited[slot];
                if !waits {
                    return self.go_on(carrier, to, now);
                }
                self.give_back(carrier, now);
                self.parked[slot] = carrier;
                self.wake(to, now);
                false
            }
        }
    }

    /// If all that a thread waits for has come, it goes on.
    fn wake(&mut self, at: u32, now: i64) {
        let slot = at as usize;
        let carrier = self.parked[slot];
        if carrier == NONE || self.wanted[slot] > 0 {
            return;
        }
        self.parked[slot] = NONE;
        self.waited(carrier, at, now, self.reached[slot]);
    }

    /// It waited, for what came at `came`.
    fn waited(&mut self, carrier: u32, at: u32, now: i64, came: i64) {
        let (model, known) = (self.model, self.known);
        let slot = at as usize;
        let like =
            if model.waited[slot] || model.twin[slot] == NONE { at } else { model.twin[slot] };
        let one = &mut self.carriers[carrier as usize];
        (one.to, one.stage) = (at, CarrierStage::After);
        (one.segments, one.left, one.extra) = (known.programs.of(like).after.clone(), None, 0);
        let time = (came + known.delay[like as usize]).max(now);
        self.at(time, ContentionEvent::Resumes { carrier });
    }

    /// All is there that it asks for. Whether there is more to do at once.
    fn go_on(&mut self, carrier: u32, at: u32, now: i64) -> bool {
        let (model, known) = (self.model, self.known);
        let slot = at as usize;
        let program: &Program = known.programs.of(at);
        let speed = self.speed(at);
        let one = &mut self.carriers[carrier as usize];
        (one.to, one.stage) = (at, CarrierStage::After);
        (one.segments, one.left, one.extra) = (0..0, None, 0);
        if model.waited[slot] {
            // It takes as long as one that did not wait.
            let twin = model.twin[slot];
            if twin != NONE {
                let more = (known.programs.of(twin).ran - program.ran_before).max(0);
                one.extra = (more as f64 / speed).round() as i64;
            }
            return true;
        }
        let delay = known.delay[slot];
        if program.blocked {
            // Its thread waited, though the worker that it stands for did not.
            self.carriers[carrier as usize].segments = program.after.clone();
            self.give_back(carrier, now);
        }
        if delay > 0 {
            self.at(now + delay, ContentionEvent::Resumes { carrier });
        }
        delay == 0
    }

    fn ask(&mut self, carrier: u32, queue: usize, now: i64) {
        self.lines[queue].asks.push_back((now, carrier));
        self.give_back(carrier, now);
        self.serve(queue, now);
    }

    /// The first job, by the first worker.
    fn serve(&mut self, queue: usize, now: i64) {
        let line = &mut self.lines[queue];
        let (Some(&(put, job)), Some(&(asked, carrier))) = (line.jobs.front(), line.asks.front())
        else {
            return;
        };
        line.jobs.pop_front();
        line.asks.pop_front();
        let known = &self.model.jobs[job as usize];
        let slot = known.take as usize;
        let one = &mut self.carriers[carrier as usize];
        let after = one.last;
        if let Some(trace) = &mut self.trace {
            trace.worker(job, after);
        }
        self.wanted[slot] -= 1;
        if put > self.reached[slot] {
            self.reached[slot] = put;
            if let Some(trace) = &mut self.trace {
                trace.reach(known.take, known.put);
            }
        }
        if self.wanted[slot] > 0 || self.reached[slot] > now {
            // It takes something else, too.
            self.parked[slot] = carrier;
            self.wake(known.take, now);
        } else if put > asked {
            self.waited(carrier, known.take, now, put);
        } else {
            if one.gave == now && self.machines[one.machine as usize].idle > 0 {
                // It had its CPU all the time.
                one.has_cpu = true;
                self.machines[one.machine as usize].idle -= 1;
            }
            if self.go_on(carrier, known.take, now) {
                self.at(now, ContentionEvent::Resumes { carrier });
            }
        }
    }

    /// `at` has a time. Whether there is more to do at once.
    fn settle(&mut self, carrier: u32, at: u32, now: i64) -> bool {
        let model = self.model;
        let slot = at as usize;
        self.time[slot] = now;
        self.order.push(at);
        self.carriers[carrier as usize].last = at;
        if let Some(trace) = &mut self.trace {
            let waits = model.waited[slot];
            trace.settle(model, at, waits, &self.time);
        }
        for &(to, kind) in model.ways.from(at) {
            if kind == QUEUED {
                let job = model.job[to as usize];
                let known = &model.jobs[job as usize];
                let least = self.known.queued[known.queue as usize];
                self.at(now + known.late + least, ContentionEvent::Put { job });
            } else {
                self.reach(to, now + self.known.base[kind as usize], at, now);
            }
        }
        let thread = model.moments.thread[slot] as usize;
        let one = &mut self.carriers[carrier as usize];
        (one.left, one.extra) = (None, 0);
        match model.moments.after(at) {
            Some(next) => {
                (one.to, one.stage) = (next, CarrierStage::Before);
                one.segments = self.known.programs.of(next).before.clone();
            }
            None => {
                let queue = model.pool[thread];
                let again = model.queues.get(queue as usize).and_then(|queue| queue.again);
                (one.to, one.segments) = (NONE, 0..0);
                if let Some(again) = again {
                    one.stage = CarrierStage::Again { queue };
                    one.extra = again;
                } else {
                    one.stage = CarrierStage::Tail;
                    one.segments = self.known.programs.tails[thread].clone();
                }
            }
        }
        true
    }

    /// An edge from `from` comes to `to`.
    fn reach(&mut self, to: u32, time: i64, from: u32, now: i64) {
        let slot = to as usize;
        if time > self.reached[slot] {
            self.reached[slot] = time;
            if let Some(trace) = &mut self.trace {
                trace.reach(to, from);
            }
        }
        self.wanted[slot] -= 1;
        self.wake(to, now);
    }
}
