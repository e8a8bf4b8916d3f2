//! A simulation of a network of stations with queues, event by event, and the recording of a run.
//! It shares no code with the model, and wakes the worker that became idle last.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use ppt_causality::retime::{
    BlockBootstrap, Metric, MetricQuestion, RecordedRun, RetimeModel, SpeedWorth, Speeds, ThreadId,
    VertexId,
};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

/// The source of jobs.
#[derive(Debug, Clone)]
pub enum JobSource {
    /// Jobs arrive at these times.
    Open(Vec<i64>),
    /// Each client sends, waits for the answer and thinks; the times that it thinks after each answer.
    Closed(Vec<Vec<i64>>),
}

#[derive(Debug, Clone)]
pub struct Station {
    pub workers: usize,
    /// The service time of each job.
    pub service: Vec<i64>,
    /// The time until an idle worker has a job, for each job.
    pub wake: Vec<i64>,
    /// The time until a busy worker has the next job, for each job.
    pub take: Vec<i64>,
}

/// All jobs visit all stations in order, and return after the last.
#[derive(Debug, Clone)]
pub struct Network {
    pub source: JobSource,
    pub stations: Vec<Station>,
    pub way_back: Vec<i64>,
}

#[derive(Debug, Clone, Copy, Default)]
pub struct Visit {
    pub put: i64,
    pub take: i64,
    pub worker: usize,
    pub end: i64,
}

#[derive(Debug)]
pub struct SimulatedRun {
    /// Visits by station and job.
    pub visits: Vec<Vec<Visit>>,
    /// For each job, the time at which its answer was received.
    pub received: Vec<i64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum SimulatorEvent {
    Ends { station: usize, worker: usize, job: usize },
    Arrives { station: usize, job: usize },
    Returns { job: usize },
}

pub struct SimulatorRandom(ChaCha8Rng);

impl SimulatorRandom {
    pub fn new(seed: u64) -> SimulatorRandom {
        SimulatorRandom(ChaCha8Rng::seed_from_u64(seed))
    }

    pub fn uniform(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    pub fn exponential(&mut self, mean: f64) -> i64 {
        (-(1.0 - self.uniform()).ln() * mean).round() as i64
    }

    pub fn between(&mut self, low: i64, high: i64) -> i64 {
        low + (self.uniform() * (high - low) as f64) as i64
    }

    pub fn exponentials(&mut self, mean: f64, count: usize) -> Vec<i64> {
        (0..count).map(|_| self.exponential(mean)).collect()
    }

    pub fn poisson(&mut self, gap: f64, count: usize) -> JobSource {
        let mut now = 0;
        let mut next = || {
            now += self.exponential(gap);
            now
        };
        JobSource::Open((0..count).map(|_| next()).collect())
    }
}

impl Station {
    pub fn ideal(workers: usize, service: Vec<i64>) -> Station {
        Station { workers, wake: vec![0; service.len()], take: vec![0; service.len()], service }
    }

    pub fn real(workers: usize, service: Vec<i64>, dice: &mut SimulatorRandom) -> Station {
        let count = service.len();
        let wake = (0..count).map(|_| 4_000 + dice.exponential(6_000.0)).collect();
        let take = (0..count).map(|_| 150 + dice.exponential(200.0)).collect();
        Station { workers, service, wake, take }
    }
}

impl Network {
    pub fn jobs(&self) -> usize {
        self.way_back.len()
    }

    /// The same network with a faster station.
    pub fn faster(&self, station: usize, times: f64) -> Network {
        let mut network = self.clone();
        for service in &mut network.stations[station].service {
            *service = (*service as f64 / times).round() as i64;
        }
        network
    }

    /// Simulates the network.
    pub fn run(&self) -> SimulatedRun {
        let mut events = BinaryHeap::new();
        let mut at = |time, what| events.push(Reverse((time, what)));
        let first = |job| SimulatorEvent::Arrives { station: 0, job };
        match &self.source {
            JobSource::Open(times) => {
                times.iter().enumerate().for_each(|(job, &time)| at(time, first(job)));
            }
            JobSource::Closed(clients) => {
                let mut job = 0;
                for think in clients {
                    at(think[0], first(job));
                    job += think.len();
                }
            }
        }
        let next_of = self.next();
        let mut visits = vec![vec![Visit::default(); self.jobs()]; self.stations.len()];
        let mut received = vec![0; self.jobs()];
        let mut waiting: Vec<VecDeque<usize>> = vec![VecDeque::new(); self.stations.len()];
        let mut idle: Vec<Vec<usize>> =
            self.stations.iter().map(|station| (0..station.workers).collect()).collect();
        while let Some(Reverse((now, what))) = events.pop() {
            let mut serve = |station: usize, worker: usize, job: usize, take: i64| {
                let visit: &mut Visit = &mut visits[station][job];
                visit.take = take;
                visit.worker = worker;
                visit.end = take + self.stations[station].service[job];
                events.push(Reverse((visit.end, SimulatorEvent::Ends { station, worker, job })));
            };
            match what {
                SimulatorEvent::Arrives { station, job } => {
                    match idle[station].pop() {
                        Some(index) => {
                            serve(station, index, job, now + self.stations[station].wake[job]);
                        }
                        None => waiting[station].push_back(job),
                    }
                    visits[station][job].put = now;
                }
                SimulatorEvent::Ends { station, worker, job } => {
                    match waiting[station].pop_front() {
                        Some(next) => {
                            serve(station, worker, next, now + self.stations[station].take[next]);
                        }
                        None => idle[station].push(worker),
                    }
                    let next = if station + 1 < self.stations.len() {
                        (now, SimulatorEvent::Arrives { station: station + 1, job })
                    } else {
                        (now + self.way_back[job], SimulatorEvent::Returns { job })
                    };
                    events.push(Reverse(next));
                }
                SimulatorEvent::Returns { job } => {
                    received[job] = now;
                    if let Some((next, think)) = next_of[job] {
                        events.push(Reverse((now + think, first(next))));
                    }
                }
            }
        }
        SimulatedRun { visits, received }
    }

    /// For each job, the next job of its client, and the time to think before it.
    fn next(&self) -> Vec<Option<(usize, i64)>> {
        let JobSource::Closed(clients) = &self.source else { return vec![None; self.jobs()] };
        let mut next = Vec::new();
        for think in clients {
            let from = next.len();
            next.extend((1..think.len()).map(|index| Some((from + index, think[index]))));
            next.push(None);
        }
        next
    }

    /// The recording that ppt would make of a run.
    pub fn record(&self, run: &SimulatedRun) -> Recorded {
        self.record_without(run, &[])
    }

    /// The same recording without the frames of these bursts.
    pub fn record_without(&self, run: &SimulatedRun, bursts: &[Burst]) -> Recorded {
        let mut recording = RecordedRun::new();
        let mut sent = vec![None; self.jobs()];
        let mut received = vec![None; self.jobs()];
        let mut client = 0;
        let mut add_client = |recording: &mut RecordedRun, think: &[i64], from: usize, answers| {
            let thread = recording.thread(0);
            let own = Lost::new(bursts, Writer::Client(client));
            client += 1;
            own.doubt(recording, thread);
            let [send, receive, think_name] =
                ["sent", "received", "think"].map(|text| recording.name(text));
            let mut before: Option<VertexId> = None;
            for job in from..from + think.len() {
                let vertex = |recording: &mut RecordedRun, time, name| {
                    (!own.at(time)).then(|| recording.vertex(thread, time, name))
                };
                let put = vertex(recording, run.visits[0][job].put, send);
                sent[job] = put;
                if let (Some(before), Some(put)) = (before, put) {
                    recording.interval(think_name, before, put);
                }
                if answers {
                    before = vertex(recording, run.received[job], receive);
                    received[job] = before.map(|at| (thread, at));
                }
            }
        };
        match &self.source {
            JobSource::Open(times) => add_client(&mut recording, times, 0, false),
            JobSource::Closed(clients) => {
                let mut from = 0;
                for think in clients {
                    add_client(&mut recording, think, from, true);
                    from += think.len();
                }
            }
        }
        let requests = sent.clone();
        let mut puts = sent;
        let mut ends = vec![Vec::new(); self.jobs()];
        for (at, (station, visits)) in self.stations.iter().zip(&run.visits).enumerate() {
            let threads: Vec<(ThreadId, Lost)> = (0..station.workers)
                .map(|worker| {
                    let thread = recording.thread(at as u32 + 1);
                    let own = Lost::new(bursts, Writer::Worker(at, worker));
                    own.doubt(&mut recording, thread);
                    (thread, own)
                })
                .collect();
            let [take, handle, begin, end] = ["take", "handle", "begin", "end"]
                .map(|text| recording.name(&format!("{text}{at}")));
            // An end and the next take may be at the same time.
            let mut order: Vec<_> = visits.iter().enumerate().collect();
            order.sort_by_key(|entry| (entry.1.take, entry.1.end));
            for (job, visit) in order {
                let (thread, own) = &threads[visit.worker];
                let put = puts[job].take();
                if !own.at(visit.take) {
                    let taken = recording.vertex(*thread, visit.take, take);
                    match put {
                        Some(put) => recording.job(put, taken, job as u64),
                        None => no_cause(&mut recording, *thread, taken, visit.take),
                    }
                }
                // One frame has both times, and is written at the second.
                if !own.at(visit.end) {
                    let begun = recording.vertex(*thread, visit.take, begin);
                    let done = recording.vertex(*thread, visit.end, end);
                    recording.interval(handle, begun, done);
                    ends[job].push(done);
                    puts[job] = Some(done);
                }
            }
        }
        let request = recording.name("request");
        for (job, &last) in puts.iter().enumerate() {
            let mut end = last;
            if let Some((thread, at)) = received[job] {
                match last {
                    Some(last) => recording.edge(last, at),
                    None => no_cause(&mut recording, thread, at, run.received[job]),
                }
                end = Some(at);
            }
            let there = !matches!(self.source, JobSource::Closed(_)) || received[job].is_some();
            if let (Some(begin), Some(end), true) = (requests[job], end, there) {
                recording.span(request, begin, end);
            }
        }
        Recorded { recording, ends }
    }

    /// The length of each request, by job.
    pub fn requests(&self, run: &SimulatedRun) -> Vec<f64> {
        let last = run.visits.last().unwrap();
        let end = |job: usize| match self.source {
            JobSource::Open(_) => last[job].end,
            JobSource::Closed(_) => run.received[job],
        };
        (0..self.jobs()).map(|job| (end(job) - run.visits[0][job].put) as f64).collect()
    }

    /// The rate of requests in 1/s.
    pub fn rate(&self, run: &SimulatedRun) -> f64 {
        let ends = || match self.source {
            JobSource::Open(_) => {
                run.visits.last().unwrap().iter().map(|visit| visit.end).collect()
            }
            JobSource::Closed(_) => run.received.clone(),
        };
        let (first, last) = (ends().into_iter().min().unwrap(), ends().into_iter().max().unwrap());
        (self.jobs() - 1) as f64 / (last - first) as f64 * 1e9
    }
}

/// The writer of frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Writer {
    Client(usize),
    /// The indexes of the station and of its worker.
    Worker(usize, usize),
}

/// All frames of a writer between two times are missing.
#[derive(Debug, Clone, Copy)]
pub struct Burst {
    pub writer: Writer,
    pub from: i64,
    pub to: i64,
}

struct Lost(Vec<(i64, i64)>);

impl Lost {
    fn new(bursts: &[Burst], writer: Writer) -> Lost {
        let lost = bursts.iter().filter(|burst| burst.writer == writer);
        Lost(lost.map(|burst| (burst.from, burst.to)).collect())
    }

    fn at(&self, time: i64) -> bool {
        self.0.iter().any(|&(from, to)| from <= time && time <= to)
    }

    fn doubt(&self, recording: &mut RecordedRun, thread: ThreadId) {
        self.0.iter().for_each(|&(from, to)| recording.doubt(thread, from, to));
    }
}

/// Notes that the cause of `at` is missing.
fn no_cause(recording: &mut RecordedRun, thread: ThreadId, at: VertexId, time: i64) {
    recording.outside(at);
    recording.doubt(thread, time, time);
}

pub struct Recorded {
    pub recording: RecordedRun,
    /// For each job and station, the vertex where the service ends.
    pub ends: Vec<Vec<VertexId>>,
}

impl Recorded {
    pub fn model(&self) -> RetimeModel {
        RetimeModel::new(self.recording.clone()).unwrap()
    }
}

pub fn speeds(texts: &[&str]) -> Speeds {
    Speeds::new(texts.iter().map(|text| text.parse().unwrap()).collect()).unwrap()
}

pub fn ask(model: &RetimeModel, metric: &str) -> MetricQuestion {
    model.ask(&metric.parse::<Metric>().unwrap()).unwrap()
}

pub fn answer(model: &RetimeModel, metric: &str, texts: &[&str]) -> SpeedWorth {
    let speeds = model.speeds(&speeds(texts)).unwrap();
    model.answer(&ask(model, metric), &speeds, BlockBootstrap::default()).unwrap()
}

pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

pub fn percentile(values: &[f64], share: f64) -> f64 {
    let mut values = values.to_vec();
    values.sort_unstable_by(f64::total_cmp);
    values[((values.len() - 1) as f64 * share).round() as usize]
}

/// Checks that a prediction is within `percent` percent of the real value.
#[track_caller]
pub fn near(predicted: f64, real: f64, percent: f64) {
    let off = (predicted / real - 1.0) * 100.0;
    assert!(off.abs() <= percent, "{predicted} is {off:.2} % off {real}");
}

/// Checks predictions of a faster station against a run with it: the mean and p95 of requests, and the rate.
#[track_caller]
pub fn hold(network: &Network, station: usize, times: f64, percent: (f64, f64)) {
    let model = network.record(&network.run()).model();
    let speed = format!("handle{station}={times}x");
    let predicted = answer(&model, "request", &[&speed]);
    let faster = network.faster(station, times);
    let real = faster.run();
    let requests = faster.requests(&real);
    near(predicted.predicted.mean, mean(&requests), percent.0);
    near(predicted.predicted.p95, percentile(&requests, 0.95), percent.1);
    near(answer(&model, "rate(request)", &[&speed]).predicted.mean, faster.rate(&real), percent.0);
}
