//! A simulation of threads on too few CPUs: clients compute, ask, and wait; workers compute.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::time::Instant;

use ppt_causality::retime::{
    RecordedRun, RetimeModel, RetimeRefusal, Speeds, ThreadId, ThreadState, VertexId,
};

use crate::retime::simulator::{SimulatorRandom, answer, mean, near, percentile};

/// The CPU time of a woken thread before it takes its job or answer, of a worker before its next job, and of a
/// switch.
const WAKE: i64 = 3_000;
const TAKE: i64 = 700;
const SWITCH: i64 = 1_000;

#[derive(Debug, Clone)]
struct Machine {
    cpus: usize,
    /// The time after which a thread is preempted if others are ready.
    quantum: i64,
    /// Times by client and job.
    think: Vec<Vec<i64>>,
    service: Vec<Vec<i64>>,
    workers: usize,
    /// A woken worker looks for a job, and another worker may have taken it by then.
    steals: bool,
}

/// The work for which a thread has or needs a CPU.
#[derive(Debug, Clone, Copy)]
enum Does {
    Think,
    Wakes(Option<(usize, usize)>),
    Looks,
    Serves((usize, usize)),
}

struct SimulatedThread {
    id: ThreadId,
    does: Does,
    /// The rest of its work.
    left: i64,
    /// The rest of its quantum.
    quantum: i64,
    cpu: Option<usize>,
    runs_since: i64,
    state: ThreadState,
    since: i64,
}

struct Simulated {
    now: i64,
    recording: RecordedRun,
    vertices: Vec<(VertexId, i64)>,
    threads: Vec<SimulatedThread>,
    ready: VecDeque<usize>,
    idle: Vec<usize>,
    events: BinaryHeap<Reverse<(i64, usize)>>,
    /// For each client, its job, time and vertex of its request, and the vertex of its answer.
    job: Vec<usize>,
    asked: Vec<(i64, Option<VertexId>)>,
    answered: Vec<Option<VertexId>>,
    begun: Vec<Option<VertexId>>,
    jobs: VecDeque<(usize, usize)>,
    free: VecDeque<usize>,
    lengths: Vec<f64>,
}

impl Machine {
    fn new(seed: u64, clients: usize, workers: usize, service: f64) -> Machine {
        let mut dice = SimulatorRandom::new(seed);
        let each = 8_000 / clients;
        let mut draw =
            |mean: f64| (0..clients).map(|_| dice.exponentials(mean, each)).collect::<Vec<_>>();
        let (think, service) = (draw(10e6), draw(service));
        Machine { cpus: 2, quantum: 1_400_000, think, service, workers, steals: false }
    }

    fn faster(&self, times: f64) -> Machine {
        let faster =
            |own: &Vec<i64>| own.iter().map(|&ns| (ns as f64 / times).round() as i64).collect();
        Machine { service: self.service.iter().map(faster).collect(), ..self.clone() }
    }

    fn run(&self) -> Simulated {
        let clients = self.think.len();
        let mut recording = RecordedRun::new();
        let mut thread = |at: usize| SimulatedThread {
            id: recording.thread(u32::from(at >= clients)),
            does: Does::Think,
            left: self.think.get(at).map_or(0, |think| think[0].max(1)),
            quantum: 0,
            cpu: None,
            runs_since: 0,
            state: ThreadState::Blocked,
            since: 0,
        };
        let threads = (0..clients + self.workers).map(&mut thread).collect();
        let mut run = Simulated {
            now: 0,
            recording,
            vertices: Vec::new(),
            threads,
            ready: VecDeque::new(),
            idle: (0..self.cpus).collect(),
            events: BinaryHeap::new(),
            job: vec![0; clients],
            asked: vec![(0, None); clients],
            answered: vec![None; clients],
            begun: vec![None; clients + self.workers],
            jobs: VecDeque::new(),
            free: (clients..clients + self.workers).collect(),
            lengths: Vec::new(),
        };
        for client in 0..clients {
            run.begun[client] = Some(run.vertex(client, "begin"));
            run.wants(client);
        }
        run.dispatch(self);
        while let Some(Reverse((time, thread))) = run.events.pop() {
            run.now = time;
            run.ran(self, thread);
            run.dispatch(self);
        }
        (0..run.threads.len()).for_each(|thread| run.becomes(thread, ThreadState::Blocked));
        run
    }
}

impl Simulated {
    fn becomes(&mut self, thread: usize, state: ThreadState) {
        let one = &mut self.threads[thread];
        if self.now > one.since {
            self.recording.state(one.id, one.since, self.now, one.state);
        }
        (one.state, one.since) = (state, self.now);
    }

    fn wants(&mut self, thread: usize) {
        self.becomes(thread, ThreadState::Ready);
        self.ready.push_back(thread);
    }

    fn dispatch(&mut self, machine: &Machine) {
        while !self.ready.is_empty()
            && let Some(cpu) = self.idle.pop()
        {
            let Some(thread) = self.ready.pop_front() else { return };
            let now = self.now;
            self.now += SWITCH;
            self.becomes(thread, ThreadState::Running { cpu: cpu as u32 });
            self.now = now;
            let one = &mut self.threads[thread];
            (one.cpu, one.quantum, one.runs_since) = (Some(cpu), machine.quantum, now + SWITCH);
            self.events.push(Reverse((one.runs_since + one.left.min(one.quantum), thread)));
        }
    }

    fn leave(&mut self, thread: usize) {
        self.idle.extend(self.threads[thread].cpu.take());
        self.becomes(thread, ThreadState::Blocked);
    }

    fn vertex(&mut self, thread: usize, name: &str) -> VertexId {
        let name = self.recording.name(name);
        let vertex = self.recording.vertex(self.threads[thread].id, self.now, name);
        self.vertices.push((vertex, self.now));
        vertex
    }

    fn interval(&mut self, thread: usize, name: &str, end: VertexId) {
        let name = self.recording.name(name);
        if let Some(begin) = self.begun[thread].take() {
            self.recording.interval(name, begin, end);
        }
    }

    /// Ends a thread's quantum or its work.
    fn ran(&mut self, machine: &Machine, thread: usize) {
        let now = self.now;
        let one = &mut self.threads[thread];
        let ran = now - one.runs_since;
        (one.left, one.quantum, one.runs_since) = (one.left - ran, one.quantum - ran, now);
        if one.left == 0 && !self.does_next(machine, thread) {
            return self.leave(thread);
        }
        let one = &mut self.threads[thread];
        if one.quantum == 0 {
            if !self.ready.is_empty() {
                self.leave(thread);
                return self.wants(thread);
            }
            one.quantum = machine.quantum;
        }
        self.events.push(Reverse((now + one.left.min(one.quantum), thread)));
    }

    fn begins(&mut self, thread: usize, does: Does, length: i64) -> bool {
        let one = &mut self.threads[thread];
        (one.does, one.left) = (does, length.max(1));
        true
    }

    fn take(&mut self, machine: &Machine, thread: usize, job: (usize, usize)) -> bool {
        let taken = self.vertex(thread, "taken");
        if let Some(put) = self.asked[job.0].1 {
            self.recording.job(put, taken, (job.0 << 32 | job.1) as u64);
        }
        self.begun[thread] = Some(taken);
        self.begins(thread, Does::Serves(job), machine.service[job.0][job.1])
    }

    /// Returns whether the thread continues.
    fn does_next(&mut self, machine: &Machine, thread: usize) -> bool {
        match self.threads[thread].does {
            Does::Think => {
                let asked = self.vertex(thread, "asked");
                self.interval(thread, "think", asked);
                self.asked[thread] = (self.now, Some(asked));
                self.begins(thread, Does::Wakes(None), WAKE);
                let job = (thread, self.job[thread]);
                match self.free.pop_front() {
                    Some(worker) if machine.steals => {
                        self.jobs.push_back(job);
                        self.begins(worker, Does::Looks, WAKE);
                        self.wants(worker);
                    }
                    Some(worker) => {
                        self.begins(worker, Does::Wakes(Some(job)), WAKE);
                        self.wants(worker);
                    }
                    None => self.jobs.push_back(job),
                }
                false
            }
            Does::Wakes(Some(job)) => self.take(machine, thread, job),
            Does::Looks => match self.jobs.pop_front() {
                Some(job) => self.take(machine, thread, job),
                None => {
                    self.free.push_back(thread);
                    false
                }
            },
            Does::Wakes(None) => {
                let got = self.vertex(thread, "got");
                if let Some(answered) = self.answered[thread] {
                    self.recording.edge(answered, got);
                }
                self.lengths.push((self.now - self.asked[thread].0) as f64);
                let name = self.recording.name("request");
                if let Some(asked) = self.asked[thread].1 {
                    self.recording.span(name, asked, got);
                }
                self.begun[thread] = Some(got);
                self.job[thread] += 1;
                let think = machine.think[thread].get(self.job[thread]).copied();
                think.is_some_and(|think| self.begins(thread, Does::Think, think))
            }
            Does::Serves(job) => {
                let answered = self.vertex(thread, "answered");
                self.interval(thread, "work", answered);
                self.answered[job.0] = Some(answered);
                self.wants(job.0);
                match self.jobs.pop_front() {
                    Some(next) => self.begins(thread, Does::Wakes(Some(next)), TAKE),
                    None => {
                        self.free.push_back(thread);
                        false
                    }
                }
            }
        }
    }
}

/// Checks that the model reproduces the run, and predicts a faster one.
#[track_caller]
fn hold(machine: &Machine, times: &[f64], percent: (f64, f64)) {
    let run = machine.run();
    let model = RetimeModel::new(run.recording.clone()).unwrap();
    let replay = model.replay(&Speeds::default()).unwrap();
    for &(vertex, time) in &run.vertices {
        assert_eq!(model.time(&replay, vertex), time);
    }
    for &times in times {
        let real = machine.faster(times).run();
        let predicted = answer(&model, "request", &[&format!("work={times}x")]).predicted;
        near(predicted.mean, mean(&real.lengths), percent.0);
        near(predicted.p95, percentile(&real.lengths, 0.95), percent.1);
    }
}

#[test]
fn clients_and_one_worker_on_two_cpus() {
    hold(&Machine::new(1, 8, 1, 2e6), &[0.5, 0.8, 1.5, 2.0, 4.0], (2.0, 4.0));
}

#[test]
fn clients_and_several_workers_on_two_cpus() {
    hold(&Machine::new(2, 8, 4, 6e6), &[0.5, 0.8, 1.5, 2.0, 4.0], (2.0, 4.0));
}

#[test]
fn workers_that_steal_jobs_from_woken_ones() {
    for seed in 10..14 {
        let stealing = Machine { steals: true, ..Machine::new(seed, 8, 4, 6e6) };
        hold(&stealing, &[0.5, 0.8, 1.5, 2.0, 4.0], (5.0, 5.0));
    }
}

#[test]
fn who_is_ready_first_runs_first() {
    // No thread is preempted: a station with two servers.
    let first = |seed, workers, service| Machine {
        quantum: 1 << 40,
        ..Machine::new(seed, 8, workers, service)
    };
    hold(&first(3, 1, 2e6), &[0.5, 0.8, 1.5, 2.0, 4.0], (2.0, 4.0));
    hold(&first(4, 4, 6e6), &[0.5, 0.8, 1.5, 2.0, 4.0], (2.0, 4.0));
}

/// A run of `clients` that compute at the same time on two CPUs.
fn crowd(clients: usize) -> Machine {
    let mut dice = SimulatorRandom::new(5);
    let mut draw = |mean| (0..clients).map(|_| dice.exponentials(mean, 2)).collect::<Vec<_>>();
    let (think, service) = (draw(1e6), draw(5e5));
    Machine { cpus: 2, quantum: 1_400_000, think, service, workers: 4, steals: false }
}

#[test]
fn ten_thousand_threads_wait_for_two_cpus() {
    // No assertion on time: `--nocapture` shows it.
    for clients in [1_250, 2_500, 5_000, 10_000] {
        let machine = crowd(clients);
        let run = machine.run();
        let begin = Instant::now();
        let model = RetimeModel::new(run.recording.clone()).unwrap();
        let learned = begin.elapsed();
        let begin = Instant::now();
        let replay = model.replay(&Speeds::default()).unwrap();
        println!("{clients} threads: {learned:?} to learn, {:?} to replay", begin.elapsed());
        assert!(run.vertices.iter().all(|&(vertex, time)| model.time(&replay, vertex) == time));
        let real = mean(&machine.faster(2.0).run().lengths);
        near(answer(&model, "request", &["work=2x"]).predicted.mean, real, 4.0);
    }
}

/// A thread that waits for another one for `wait` ns of each of its steps of 1 ms, with an edge that shows it or not.
fn waiting(wait: i64, has_edge: bool) -> RecordedRun {
    let mut recording = RecordedRun::new();
    let [waiting, other] = [0, 0].map(|process| recording.thread(process));
    let [name, work] = ["step", "work"].map(|name| recording.name(name));
    let mut last = None;
    for number in 0..100 {
        let begin = number * 1_000_000;
        recording.state(waiting, begin, begin + wait, ThreadState::WaitsForThread);
        recording.state(waiting, begin + wait, begin + 1_000_000, ThreadState::Running { cpu: 0 });
        recording.state(other, begin, begin + wait.max(1), ThreadState::Running { cpu: 1 });
        recording.state(other, begin + wait.max(1), begin + 1_000_000, ThreadState::Blocked);
        let cause = recording.vertex(other, begin + wait, name);
        let vertex = recording.vertex(waiting, begin + 1_000_000, name);
        if has_edge {
            recording.edge(cause, vertex);
        }
        if let Some(last) = last.replace(vertex) {
            recording.interval(work, last, vertex);
        }
    }
    recording
}

#[test]
fn a_wait_for_a_thread_that_no_edge_shows_is_refused() {
    for (wait, has_edge, share) in
        [(200_000, false, 0.1), (200_000, true, 0.0), (60_000, false, 0.03), (0, false, 0.0)]
    {
        match RetimeModel::new(waiting(wait, has_edge)) {
            Ok(_) => assert!(share <= 0.05, "{wait} {has_edge}"),
            Err(RetimeRefusal::UnseenWaits { share: found }) => {
                // The other thread's steps are as long, and it waits for nobody.
                near(found, share, 2.0);
            }
            Err(refusal) => panic!("{wait} {has_edge}: {refusal}"),
        }
    }
}
