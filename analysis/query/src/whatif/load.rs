//! Builds a recording from the rows of tables.

use std::collections::{BTreeSet, HashMap, HashSet};

use ppt_causality::retime::{
    Evidence, Metric, PointCount, RecordedRun, ThreadId, ThreadState, VertexId,
};

use super::loss::{LoadedLoss, unique_kinds};
use super::row::RowView;
use super::services::ServiceInterval;
use crate::causality::Numbering;

/// The query for edges.
pub(super) const EDGES: &str = "\
    SELECT src_capture, src_buffer, src_segment, src_ring, src_seqno, src_pid, src_tid, src_ts, src_point, \
    dst_capture, dst_buffer, dst_segment, dst_ring, dst_seqno, dst_pid, dst_tid, dst_ts, dst_point, \
    kind, type, policy, certainty FROM edges \
    WHERE src_ts IS NOT NULL AND dst_ts IS NOT NULL AND src_tid IS NOT NULL AND dst_tid IS NOT NULL \
    AND kind IN ('hash', 'span', 'chain')";
/// Columns of [`EDGES`]: the first ones of the cause and of the effect, and the cause's point.
const EDGE_SRC: usize = 0;
const EDGE_SRC_POINT: usize = 8;
const EDGE_DST: usize = 9;
/// Columns of [`EDGES`] about the edge itself.
const EDGE_KIND: usize = 18;
const EDGE_TYPE: usize = 19;
const EDGE_POLICY: usize = 20;
const EDGE_CERTAINTY: usize = 21;

/// A run, and the facts that limit predictions for it.
#[derive(Debug)]
pub struct LoadedRun {
    /// The threads, their vertices, and the edges.
    pub recording: RecordedRun,
    /// Names of spans.
    pub spans: Vec<String>,
    /// By point: number of its frames.
    points: HashMap<String, PointCount>,
    edges: u64,
    ambiguous: u64,
    foreign: Option<f64>,
}

impl LoadedRun {
    /// The facts that limit predictions of `metric`.
    pub fn evidence(&self, metric: &Metric) -> Evidence {
        let points = match metric {
            Metric::Path(from, to) => [from, to].map(|text| self.point(text)).into(),
            _ => Vec::new(),
        };
        let (edges, ambiguous, foreign) = (self.edges, self.ambiguous, self.foreign);
        Evidence { points, edges, ambiguous, foreign }
    }

    /// The sum of all points that a text names: `frame`, or `buffer.frame`.
    fn point(&self, text: &str) -> PointCount {
        let ends = |word: &str| word.split_once('.').is_some_and(|(_, frame)| frame == text);
        let named = self.points.values().filter(|point| point.name == text || ends(&point.name));
        let none = PointCount { name: text.to_owned(), count: 0 };
        named.fold(none, |sum, point| PointCount { count: sum.count + point.count, ..sum })
    }
}

/// Number of the ring, and sequence number.
type RecordedFrame = (u32, i64);

/// The order of a thread's moments at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Order {
    End,
    Point,
    Begin,
    /// The end of an interval that has no length, or that ends with a point.
    EndAtOnce,
}

#[derive(Debug, Clone, Copy)]
struct LoadedMoment {
    thread: u32,
    time: i64,
    order: Order,
    name: u32,
}

/// An interval or a span: the number of its name, and its moments.
#[derive(Debug, Clone, Copy)]
struct LoadedInterval {
    name: u32,
    begin: u32,
    end: u32,
}

/// A job that a thread puts into a queue and another one takes: moments, and the key of the job.
#[derive(Debug, Clone, Copy)]
struct LoadedJob {
    put: u32,
    take: u32,
    key: u64,
}

/// A moment with an uncertain or a missing cause, and the times of cause and effect.
#[derive(Debug, Clone, Copy)]
struct DoubtfulMoment {
    moment: u32,
    cause: i64,
    effect: i64,
}

/// Collects rows for a recording.
#[derive(Debug, Default)]
pub(super) struct Loader {
    hosts: HashMap<String, String>,
    /// (host, pid), and (process, tid).
    processes: Numbering<(String, i64)>,
    threads: Numbering<(u32, i64)>,
    rings: Numbering<[String; 4]>,
    names: Numbering<String>,
    moments: Vec<LoadedMoment>,
    intervals: Vec<LoadedInterval>,
    spans: Vec<LoadedInterval>,
    frames: HashMap<RecordedFrame, u32>,
    /// The identities that enter frames, by frame and number of the hash type.
    entered: HashMap<(RecordedFrame, u32), u64>,
    pub(super) loss: LoadedLoss,
    edges: Vec<(u32, u32)>,
    jobs: Vec<LoadedJob>,
    doubtful: Vec<DoubtfulEdge>,
    /// Moments at which data entered and whose causes may be missing.
    orphans: Vec<u32>,
    /// Moments at which data entered from outside.
    outside: HashSet<u32>,
    points: HashMap<String, PointCount>,
    causes: u64,
    ambiguous: u64,
    states: Vec<LoadState>,
}

/// An edge that is uncertain because frames are missing.
#[derive(Debug, Clone, Copy)]
struct DoubtfulEdge {
    from: u32,
    to: u32,
    /// Number of the hash type.
    hash_type: u32,
    /// The key of the job, if the edge is a queue.
    queue: Option<u64>,
}

#[derive(Debug, Clone, Copy)]
struct LoadState {
    thread: u32,
    begin: i64,
    end: i64,
    state: ThreadState,
}

impl LoadState {
    /// Whether the thread ran, or may have run.
    fn ran(&self) -> bool {
        matches!(self.state, ThreadState::Running { .. } | ThreadState::Unknown)
    }
}

impl Loader {
    pub fn capture(&mut self, row: &RowView<'_>) -> Option<()> {
        self.hosts.insert(row.text(0)?.to_owned(), row.text(1).unwrap_or_default().to_owned());
        Some(())
    }

    pub fn slice(&mut self, row: &RowView<'_>) -> Option<()> {
        let name = row.text(0)?;
        if !name.contains('.') {
            return None;
        }
        self.loss.add_buffer(row.text(6).unwrap_or_default());
        let thread = self.thread(row.text(1).unwrap_or_default(), row.long(2)?, row.long(3)?);
        let (begin, length) = (row.long(4)?, row.long(5)?);
        let last = if length == 0 { Order::EndAtOnce } else { Order::End };
        self.interval(name, thread, (begin, begin.checked_add(length)?), last);
        Some(())
    }

    /// Adds a request that a service answered, or a call that it made.
    pub fn service(&mut self, name: &str, interval: &ServiceInterval) {
        let ServiceInterval { host, pid, tid, begin, end, .. } = interval;
        let thread = self.thread(host, *pid, *tid);
        // A call ends after its answer has arrived, so the cause of its end lies within it.
        self.interval(name, thread, (*begin, *end), Order::EndAtOnce);
    }

    fn interval(&mut self, name: &str, thread: u32, (begin, end): (i64, i64), last: Order) {
        let number = self.names.number(name.to_owned());
        let [begins, ends] =
            ["begins", "ends"].map(|text| self.names.number(format!("{name} {text}")));
        let first = LoadedMoment { thread, time: begin, order: Order::Begin, name: begins };
        let begin = self.moment(first);
        let end = self.moment(LoadedMoment { thread, time: end, order: last, name: ends });
        self.intervals.push(LoadedInterval { name: number, begin, end });
    }

    pub fn point(&mut self, row: &RowView<'_>) -> Option<()> {
        let frame = self.frame(row, 0)?;
        if let (Some(of), Some(hash)) = (row.text(10), row.text(11)) {
            let of = self.names.number(of.to_owned());
            self.entered.insert((frame, of), number(hash));
        }
        if self.frames.contains_key(&frame) {
            return None;
        }
        let thread = self.thread(row.text(5).unwrap_or_default(), row.long(6)?, row.long(7)?);
        self.loss.add_buffer(row.text(1)?);
        let name = full(row.text(1)?, row.text(9)?);
        self.point_count(&name).count += 1;
        self.add_frame(frame, thread, row.long(8)?, name);
        Some(())
    }

    pub fn edge(&mut self, row: &RowView<'_>) -> Option<()> {
        let (src, dst) = (self.end(row, EDGE_SRC)?, self.end(row, EDGE_DST)?);
        let (from, to) = (self.frames[&src], self.frames[&dst]);
        let possible = row.text(EDGE_CERTAINTY) == Some("possible");
        self.causes += 1;
        let hash_type = row.text(EDGE_TYPE).map(|text| self.names.number(text.to_owned()));
        let key = hash_type.and_then(|number| self.entered.get(&(dst, number)).copied());
        let queue = (row.text(EDGE_POLICY) == Some("fifo")).then(|| key.unwrap_or_default());
        let depends = queue.is_some() || row.text(EDGE_POLICY) == Some("nearest");
        if let (true, true, Some(hash_type)) = (possible, depends, hash_type)
            && self.loss.is_any()
        {
            self.doubtful.push(DoubtfulEdge { from, to, hash_type, queue });
            return Some(());
        }
        self.ambiguous += u64::from(possible);
        match (row.text(EDGE_KIND), queue) {
            (Some("span"), _) => {
                let name = row.text(EDGE_SRC_POINT)?;
                let name = self.names.number(name.to_owned());
                self.spans.push(LoadedInterval { name, begin: from, end: to });
                // The end of a span follows its begin, but its distance does not depend on it.
                return Some(());
            }
            (Some("hash"), Some(key)) => self.jobs.push(LoadedJob { put: from, take: to, key }),
            _ => self.edges.push((from, to)),
        }
        Some(())
    }

    pub fn unmatched(&mut self, row: &RowView<'_>) -> Option<()> {
        let frame = self.frame(row, 0)?;
        if row.text(6) == Some("in") {
            let moment = *self.frames.get(&frame)?;
            self.outside.insert(moment);
            if row.text(7) == Some("loss") {
                self.orphans.push(moment);
            }
        }
        Some(())
    }

    pub fn state(&mut self, row: &RowView<'_>) -> Option<()> {
        let thread = self.thread(row.text(0).unwrap_or_default(), row.long(1)?, row.long(2)?);
        let begin = row.long(3)?;
        let end = begin.checked_add(row.long(4)?)?;
        let cpu = row.long(6).and_then(|cpu| u32::try_from(cpu).ok());
        let state = match (row.text(5)?, cpu) {
            ("running", Some(cpu)) => ThreadState::Running { cpu },
            ("runnable", _) => ThreadState::Ready,
            // The kernel's frames name a waker of the same process so.
            ("blocked", _) if row.text(7) == Some("THREAD") => ThreadState::WaitsForThread,
            ("blocked", _) => ThreadState::Blocked,
            _ => ThreadState::Unknown,
        };
        self.states.push(LoadState { thread, begin, end, state });
        Some(())
    }

    fn thread(&mut self, host: &str, pid: i64, tid: i64) -> u32 {
        let process = self.processes.number((host.to_owned(), pid));
        self.threads.number((process, tid))
    }

    fn moment(&mut self, moment: LoadedMoment) -> u32 {
        self.moments.push(moment);
        self.moments.len() as u32 - 1
    }

    /// The frame that the columns from `first` on identify.
    fn frame(&mut self, row: &RowView<'_>, first: usize) -> Option<RecordedFrame> {
        let text = |at: usize| row.text(first + at).unwrap_or_default().to_owned();
        let ring = row.long(first + 3).map_or_else(String::new, |long| long.to_string());
        let ring = self.rings.number([text(0), text(1), text(2), ring]);
        Some((ring, row.long(first + 4)?))
    }

    /// The frame at an end of an edge, which is added if it is not a point, but of a span or a chain.
    fn end(&mut self, row: &RowView<'_>, first: usize) -> Option<RecordedFrame> {
        let frame = self.frame(row, first)?;
        if !self.frames.contains_key(&frame) {
            let host = self.hosts.get(row.text(first)?).cloned().unwrap_or_default();
            let thread = self.thread(&host, row.long(first + 5)?, row.long(first + 6)?);
            let name = full(row.text(first + 1)?, row.text(first + 8)?);
            self.add_frame(frame, thread, row.long(first + 7)?, name);
        }
        Some(frame)
    }

    fn add_frame(&mut self, frame: RecordedFrame, thread: u32, time: i64, name: String) {
        let name = self.names.number(name);
        let moment = self.moment(LoadedMoment { thread, time, order: Order::Point, name });
        self.frames.insert(frame, moment);
    }

    fn point_count(&mut self, name: &str) -> &mut PointCount {
        let point = self.points.entry(name.to_owned()).or_default();
        if point.name.is_empty() {
            name.clone_into(&mut point.name);
        }
        point
    }

    /// Assigns threads to hosts: the threads of a host share its CPUs.
    fn machines(&self, threads: &[ThreadId], recording: &mut RecordedRun) {
        let mut hosts = Numbering::default();
        for (&thread, &(process, _)) in threads.iter().zip(self.threads.all()) {
            let (host, _) = &self.processes.all()[process as usize];
            recording.machine(thread, hosts.number(host.clone()));
        }
    }

    /// Accepts uncertain edges whose identities are unique. All other uncertain edges are dropped, so
    /// their effects keep their times. Returns the moments with an uncertain or a missing cause.
    fn settle(&mut self) -> Vec<DoubtfulMoment> {
        let name = |moment: u32| self.moments[moment as usize].name;
        let uncertain: HashSet<(u32, u32)> =
            self.doubtful.iter().map(|edge| (name(edge.to), edge.hash_type)).collect();
        let entered = self.entered.iter().filter_map(|(&(frame, of), &hash)| {
            let kind = (name(*self.frames.get(&frame)?), of);
            uncertain.contains(&kind).then_some((kind, hash))
        });
        let unique =
            if self.loss.has_times() { unique_kinds(entered.collect()) } else { HashSet::new() };
        // A point that never has a cause in the captures lacks none.
        let ends = self.edges.iter().map(|edge| edge.1).chain(self.jobs.iter().map(|job| job.take));
        let caused: HashSet<u32> =
            ends.chain(self.doubtful.iter().map(|edge| edge.to)).map(name).collect();
        let time = |moment: u32| self.moments[moment as usize].time;
        let orphans = self.orphans.iter().filter(|&&moment| caused.contains(&name(moment)));
        let mut doubts: Vec<DoubtfulMoment> = orphans
            .map(|&moment| DoubtfulMoment { moment, cause: time(moment), effect: time(moment) })
            .collect();
        for edge in std::mem::take(&mut self.doubtful) {
            let DoubtfulEdge { from, to, hash_type, queue } = edge;
            if !unique.contains(&(self.moments[to as usize].name, hash_type)) {
                let [cause, effect] = [from, to].map(|moment| self.moments[moment as usize].time);
                doubts.extend([from, to].map(|moment| DoubtfulMoment { moment, cause, effect }));
                self.outside.insert(to);
            } else if let Some(key) = queue {
                self.jobs.push(LoadedJob { put: from, take: to, key });
            } else {
                self.edges.push((from, to));
            }
        }
        doubts
    }

    pub fn finish(mut self) -> LoadedRun {
        let doubts = self.settle();
        let mut recording = RecordedRun::new();
        let names: Vec<_> = self.names.all().iter().map(|text| recording.name(text)).collect();
        let threads: Vec<ThreadId> =
            self.threads.all().iter().map(|entry| recording.thread(entry.0)).collect();
        let mut order: Vec<u32> = (0..self.moments.len() as u32).collect();
        order.sort_by_key(|&n| {
            let LoadedMoment { thread, time, order, .. } = self.moments[n as usize];
            (thread, time, order)
        });
        let mut vertices: Vec<Option<VertexId>> = vec![None; self.moments.len()];
        for n in order {
            let moment = &self.moments[n as usize];
            let (thread, name) = (threads[moment.thread as usize], names[moment.name as usize]);
            vertices[n as usize] = Some(recording.vertex(thread, moment.time, name));
        }
        let vertex = |number: u32| vertices[number as usize].expect("each moment has its vertex");
        for &LoadedInterval { name, begin, end } in &self.intervals {
            recording.interval(names[name as usize], vertex(begin), vertex(end));
        }
        for &LoadedInterval { name, begin, end } in &self.spans {
            recording.span(names[name as usize], vertex(begin), vertex(end));
        }
        self.edges.iter().for_each(|&(from, to)| recording.edge(vertex(from), vertex(to)));
        for &LoadedJob { put, take, key } in &self.jobs {
            recording.job(vertex(put), vertex(take), key);
        }
        // Data with a known cause does not come from outside.
        let caused: HashSet<u32> = self
            .edges
            .iter()
            .map(|edge| edge.1)
            .chain(self.jobs.iter().map(|job| job.take))
            .collect();
        self.outside.difference(&caused).for_each(|&number| recording.outside(vertex(number)));
        for DoubtfulMoment { moment, cause, effect } in doubts {
            let thread = threads[self.moments[moment as usize].thread as usize];
            recording.doubt(thread, cause, effect);
        }
        let owners = threads.iter().zip(self.threads.all()).map(|(&thread, &(process, tid))| {
            (self.processes.all()[process as usize].clone(), tid, thread)
        });
        self.loss.doubt(owners, &mut recording);
        ran(&self.states, &threads, &mut recording);
        self.machines(&threads, &mut recording);
        let spans: BTreeSet<_> =
            self.spans.iter().map(|span| self.names.all()[span.name as usize].clone()).collect();
        LoadedRun {
            recording,
            spans: spans.into_iter().collect(),
            points: self.points,
            edges: self.causes,
            ambiguous: self.ambiguous,
            foreign: foreign(&self.states),
        }
    }
}

/// `buffer.point`.
fn full(buffer: &str, point: &str) -> String {
    format!("{buffer}.{point}")
}

/// The last 16 hex digits of a hash as a number: they suffice as identity.
fn number(hash: &str) -> u64 {
    let from = hash.len().saturating_sub(16);
    hash.get(from..).and_then(|hash| u64::from_str_radix(hash, 16).ok()).unwrap_or_default()
}

/// Records when threads ran. Before the first and after the last state, a thread counts as running.
fn ran(states: &[LoadState], threads: &[ThreadId], recording: &mut RecordedRun) {
    let mut covered: HashMap<u32, (i64, i64)> = HashMap::new();
    for state in states {
        let thread = threads[state.thread as usize];
        if state.ran() {
            recording.ran(thread, state.begin, state.end);
        }
        recording.state(thread, state.begin, state.end, state.state);
        let covered = covered.entry(state.thread).or_insert((state.begin, state.end));
        *covered = (covered.0.min(state.begin), covered.1.max(state.end));
    }
    for (thread, (begin, end)) in covered {
        recording.ran(threads[thread as usize], i64::MIN, begin);
        recording.ran(threads[thread as usize], end, i64::MAX);
    }
}

/// The share of time in which a thread waited for a CPU although the program used fewer CPUs than it ever
/// used: other programs used the rest. None: no states.
fn foreign(states: &[LoadState]) -> Option<f64> {
    let cpu = |state: &LoadState| match state.state {
        ThreadState::Running { cpu } => Some(cpu),
        _ => None,
    };
    let cpus = states.iter().filter_map(cpu).collect::<HashSet<_>>().len() as i64;
    let begin = states.iter().map(|state| state.begin).min()?;
    let end = states.iter().map(|state| state.end).max()?;
    if cpus == 0 || begin >= end {
        return None;
    }
    let mut changes: Vec<(i64, i64, i64)> = Vec::new();
    for state in states {
        let (runs, waits) = match state.state {
            ThreadState::Running { .. } => (1, 0),
            ThreadState::Ready => (0, 1),
            _ => continue,
        };
        changes.push((state.begin, runs, waits));
        changes.push((state.end, -runs, -waits));
    }
    changes.sort_unstable();
    let (mut running, mut waiting, mut since, mut foreign) = (0, 0, begin, 0);
    for (time, runs, waits) in changes {
        if waiting > 0 && running < cpus {
            foreign += time - since;
        }
        (running, waiting, since) = (running + runs, waiting + waits, time);
    }
    Some(foreign as f64 / (end - begin) as f64)
}
