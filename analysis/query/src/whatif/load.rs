//! From the rows of tables to a recording.

use std::collections::{BTreeSet, HashMap, HashSet};

use ppt_causality::retime::{
    Evidence, Metric, PointSeen, Recording, ThreadId, ThreadState, Vertex,
};

use super::loss::{LoadedLoss, names};
use super::row::RowView;
use super::services::ServiceInterval;
use crate::causality::Numbering;

/// A run, and what speaks against timing it again.
#[derive(Debug)]
pub struct LoadedRun {
    /// Threads, what they did, and what caused what.
    pub recording: Recording,
    /// Spans, by name.
    pub spans: Vec<String>,
    /// By point: how often it was.
    points: HashMap<String, PointSeen>,
    edges: u64,
    ambiguous: u64,
    foreign: Option<f64>,
}

impl LoadedRun {
    /// What speaks against believing what is said of `metric`.
    pub fn evidence(&self, metric: &Metric) -> Evidence {
        let points = match metric {
            Metric::Path(from, to) => [from, to].map(|text| self.point(text)).into(),
            _ => Vec::new(),
        };
        let (edges, ambiguous, foreign) = (self.edges, self.ambiguous, self.foreign);
        Evidence { points, edges, ambiguous, foreign }
    }

    /// All points that a text names: `frame`, or `buffer.frame`.
    fn point(&self, text: &str) -> PointSeen {
        let ends = |word: &str| word.split_once('.').is_some_and(|(_, frame)| frame == text);
        let those = self.points.values().filter(|point| point.name == text || ends(&point.name));
        let none = PointSeen { name: text.to_owned(), seen: 0 };
        those.fold(none, |all, seen| PointSeen { seen: all.seen + seen.seen, ..all })
    }
}

/// A frame: its ring, and its number there.
type RecordedFrame = (u32, i64);

/// What comes first of what a thread does at one time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Order {
    End,
    Point,
    Begin,
    /// What takes no time, or ends with a point.
    EndAtOnce,
}

#[derive(Debug, Clone, Copy)]
struct LoadedMoment {
    thread: u32,
    time: i64,
    order: Order,
    name: u32,
}

/// Rows on their way.
#[derive(Debug, Default)]
pub(super) struct Loader {
    hosts: HashMap<String, String>,
    /// (host, pid), and (process, tid).
    processes: Numbering<(String, i64)>,
    threads: Numbering<(u32, i64)>,
    rings: Numbering<[String; 4]>,
    names: Numbering<String>,
    moments: Vec<LoadedMoment>,
    /// (name, begin, end), by moment.
    intervals: Vec<(u32, u32, u32)>,
    spans: Vec<(u32, u32, u32)>,
    frames: HashMap<RecordedFrame, u32>,
    /// What identifies what enters a frame, by hash type.
    entered: HashMap<(RecordedFrame, u32), u64>,
    pub(super) loss: LoadedLoss,
    edges: Vec<(u32, u32)>,
    jobs: Vec<(u32, u32, u64)>,
    doubtful: Vec<DoubtfulEdge>,
    /// Ins whose causes may be missing.
    orphans: Vec<u32>,
    outside: HashSet<u32>,
    points: HashMap<String, PointSeen>,
    causes: u64,
    ambiguous: u64,
    states: Vec<LoadState>,
}

/// An edge that may be another, as frames are missing.
#[derive(Debug, Clone, Copy)]
struct DoubtfulEdge {
    from: u32,
    to: u32,
    /// The hash type, and whether it is a queue, with the key of the job.
    of: u32,
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
    /// Who may have run is taken to have run.
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
        self.loss.tells(row.text(6).unwrap_or_default());
        let thread = self.thread(row.text(1).unwrap_or_default(), row.long(2)?, row.long(3)?);
        let (begin, length) = (row.long(4)?, row.long(5)?);
        let last = if length == 0 { Order::EndAtOnce } else { Order::End };
        self.interval(name, thread, (begin, begin.checked_add(length)?), last);
        Some(())
    }

    /// A request that a service answered, or a call that it made.
    pub fn service(&mut self, name: &str, interval: &ServiceInterval) {
        let ServiceInterval { host, pid, tid, begin, end, .. } = interval;
        let thread = self.thread(host, *pid, *tid);
        // A call ends where its answer has come in: what it waited for is within it.
        self.interval(name, thread, (*begin, *end), Order::EndAtOnce);
    }

    fn interval(&mut self, name: &str, thread: u32, (begin, end): (i64, i64), last: Order) {
        let of = self.names.number(name.to_owned());
        let [begins, ends] =
            ["begins", "ends"].map(|text| self.names.number(format!("{name} {text}")));
        let first = LoadedMoment { thread, time: begin, order: Order::Begin, name: begins };
        let begin = self.moment(first);
        let end = self.moment(LoadedMoment { thread, time: end, order: last, name: ends });
        self.intervals.push((of, begin, end));
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
        self.loss.tells(row.text(1)?);
        let name = full(row.text(1)?, row.text(9)?);
        self.seen(&name).seen += 1;
        self.at(frame, thread, row.long(8)?, name);
        Some(())
    }

    pub fn edge(&mut self, row: &RowView<'_>) -> Option<()> {
        let (src, dst) = (self.end(row, 0)?, self.end(row, 9)?);
        let (from, to) = (self.frames[&src], self.frames[&dst]);
        let possible = row.text(21) == Some("possible");
        self.causes += 1;
        let of = row.text(19).map(|text| self.names.number(text.to_owned()));
        let key = of.and_then(|number| self.entered.get(&(dst, number)).copied());
        let queue = (row.text(20) == Some("fifo")).then(|| key.unwrap_or_default());
        let depends = queue.is_some() || row.text(20) == Some("nearest");
        if let (true, true, Some(of)) = (possible, depends, of)
            && self.loss.is_any()
        {
            self.doubtful.push(DoubtfulEdge { from, to, of, queue });
            return Some(());
        }
        self.ambiguous += u64::from(possible);
        match (row.text(18), queue) {
            (Some("span"), _) => {
                let name = row.text(8)?;
                let name = self.names.number(name.to_owned());
                self.spans.push((name, from, to));
                // Who ends it elsewhere does so after its begin, but how long after says nothing.
                return Some(());
            }
            (Some("hash"), Some(key)) => self.jobs.push((from, to, key)),
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

    /// Columns that name a frame, from `first` on.
    fn frame(&mut self, row: &RowView<'_>, first: usize) -> Option<RecordedFrame> {
        let text = |at: usize| row.text(first + at).unwrap_or_default().to_owned();
        let ring = row.long(first + 3).map_or_else(String::new, |long| long.to_string());
        let ring = self.rings.number([text(0), text(1), text(2), ring]);
        Some((ring, row.long(first + 4)?))
    }

    /// An end of an edge, which is no point where it belongs to a span or a chain.
    fn end(&mut self, row: &RowView<'_>, first: usize) -> Option<RecordedFrame> {
        let frame = self.frame(row, first)?;
        if !self.frames.contains_key(&frame) {
            let host = self.hosts.get(row.text(first)?).cloned().unwrap_or_default();
            let thread = self.thread(&host, row.long(first + 5)?, row.long(first + 6)?);
            let name = full(row.text(first + 1)?, row.text(first + 8)?);
            self.at(frame, thread, row.long(first + 7)?, name);
        }
        Some(frame)
    }

    fn at(&mut self, frame: RecordedFrame, thread: u32, time: i64, name: String) {
        let name = self.names.number(name);
        let moment = self.moment(LoadedMoment { thread, time, order: Order::Point, name });
        self.frames.insert(frame, moment);
    }

    fn seen(&mut self, name: &str) -> &mut PointSeen {
        let seen = self.points.entry(name.to_owned()).or_default();
        if seen.name.is_empty() {
            name.clone_into(&mut seen.name);
        }
        seen
    }

    /// Threads of a host share its CPUs.
    fn machines(&self, threads: &[ThreadId], recording: &mut Recording) {
        let mut hosts = Numbering::default();
        for (&thread, &(process, _)) in threads.iter().zip(self.threads.all()) {
            let (host, _) = &self.processes.all()[process as usize];
            recording.machine(thread, hosts.number(host.clone()));
        }
    }

    /// Edges that are known by their identities are like others; who has a cause that is in doubt, or
    /// missing, comes when it came. Returns moments with these, each with the times of cause and effect.
    fn settle(&mut self) -> Vec<(u32, i64, i64)> {
        let name = |moment: u32| self.moments[moment as usize].name;
        let asked: HashSet<(u32, u32)> =
            self.doubtful.iter().map(|edge| (name(edge.to), edge.of)).collect();
        let entered = self.entered.iter().filter_map(|(&(frame, of), &hash)| {
            let kind = (name(*self.frames.get(&frame)?), of);
            asked.contains(&kind).then_some((kind, hash))
        });
        let named = if self.loss.has_times() { names(entered.collect()) } else { HashSet::new() };
        // What never has a cause in the captures lacks none.
        let ends = self.edges.iter().map(|edge| edge.1).chain(self.jobs.iter().map(|job| job.1));
        let caused: HashSet<u32> =
            ends.chain(self.doubtful.iter().map(|edge| edge.to)).map(name).collect();
        let time = |moment: u32| self.moments[moment as usize].time;
        let orphans = self.orphans.iter().filter(|&&moment| caused.contains(&name(moment)));
        let mut doubts: Vec<_> =
            orphans.map(|&moment| (moment, time(moment), time(moment))).collect();
        for edge in std::mem::take(&mut self.doubtful) {
            let DoubtfulEdge { from, to, of, queue } = edge;
            if !named.contains(&(self.moments[to as usize].name, of)) {
                let times = [from, to].map(|moment| self.moments[moment as usize].time);
                doubts.extend([from, to].map(|moment| (moment, times[0], times[1])));
                self.outside.insert(to);
            } else if let Some(key) = queue {
                self.jobs.push((from, to, key));
            } else {
                self.edges.push((from, to));
            }
        }
        doubts
    }

    pub fn finish(mut self) -> LoadedRun {
        let doubts = self.settle();
        let mut recording = Recording::new();
        let names: Vec<_> = self.names.all().iter().map(|text| recording.name(text)).collect();
        let threads: Vec<ThreadId> =
            self.threads.all().iter().map(|entry| recording.thread(entry.0)).collect();
        let mut order: Vec<u32> = (0..self.moments.len() as u32).collect();
        order.sort_by_key(|&n| {
            let loaded_moment = &self.moments[n as usize];
            (loaded_moment.thread, loaded_moment.time, loaded_moment.order)
        });
        let mut vertices: Vec<Option<Vertex>> = vec![None; self.moments.len()];
        for n in order {
            let moment = &self.moments[n as usize];
            let (thread, name) = (threads[moment.thread as usize], names[moment.name as usize]);
            vertices[n as usize] = Some(recording.vertex(thread, moment.time, name));
        }
        let vertex = |number: u32| vertices[number as usize].expect("each moment has its vertex");
        for &(name, begin, end) in &self.intervals {
            recording.interval(names[name as usize], vertex(begin), vertex(end));
        }
        for &(name, begin, end) in &self.spans {
            recording.span(names[name as usize], vertex(begin), vertex(end));
        }
        self.edges.iter().for_each(|&(from, to)| recording.edge(vertex(from), vertex(to)));
        for &(put, take, key) in &self.jobs {
            recording.job(vertex(put), vertex(take), key);
        }
        // What has one cause that is known does not come from elsewhere.
        let known: HashSet<u32> =
            self.edges.iter().map(|edge| edge.1).chain(self.jobs.iter().map(|job| job.1)).collect();
        self.outside.difference(&known).for_each(|&number| recording.outside(vertex(number)));
        for (moment, from, to) in doubts {
            let thread = threads[self.moments[moment as usize].thread as usize];
            recording.doubt(thread, from, to);
        }
        let owners = threads.iter().zip(self.threads.all()).map(|(&thread, &(process, tid))| {
            (self.processes.all()[process as usize].clone(), tid, thread)
        });
        self.loss.doubt(owners, &mut recording);
        ran(&self.states, &threads, &mut recording);
        self.machines(&threads, &mut recording);
        let spans: BTreeSet<_> =
            self.spans.iter().map(|span| self.names.all()[span.0 as usize].clone()).collect();
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

/// The name of a point and its buffer.
fn full(buffer: &str, point: &str) -> String {
    format!("{buffer}.{point}")
}

/// The last digits identify as well as all.
fn number(hash: &str) -> u64 {
    let from = hash.len().saturating_sub(16);
    hash.get(from..).and_then(|hash| u64::from_str_radix(hash, 16).ok()).unwrap_or_default()
}

/// Before the kernel's first frame of a thread, and after the last, it is taken to run.
fn ran(states: &[LoadState], threads: &[ThreadId], recording: &mut Recording) {
    let mut told: HashMap<u32, (i64, i64)> = HashMap::new();
    for state in states {
        let thread = threads[state.thread as usize];
        if state.ran() {
            recording.ran(thread, state.begin, state.end);
        }
        recording.state(thread, state.begin, state.end, state.state);
        let told = told.entry(state.thread).or_insert((state.begin, state.end));
        *told = (told.0.min(state.begin), told.1.max(state.end));
    }
    for (thread, (begin, end)) in told {
        recording.ran(threads[thread as usize], i64::MIN, begin);
        recording.ran(threads[thread as usize], end, i64::MAX);
    }
}

/// For which share of the time a thread was ready to run and had no processor, though the program's threads
/// ran on fewer than any of them ever ran on: others had it.
fn foreign(states: &[LoadState]) -> Option<f64> {
    let cpu = |state: &LoadState| match state.state {
        ThreadState::Running { cpu } => Some(cpu),
        _ => None,
    };
    let processors = states.iter().filter_map(cpu).collect::<HashSet<_>>().len() as i64;
    let begin = states.iter().map(|state| state.begin).min()?;
    let end = states.iter().map(|state| state.end).max()?;
    if processors == 0 || begin >= end {
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
        if waiting > 0 && running < processors {
            foreign += time - since;
        }
        (running, waiting, since) = (running + runs, waiting + waits, time);
    }
    Some(foreign as f64 / (end - begin) as f64)
}
