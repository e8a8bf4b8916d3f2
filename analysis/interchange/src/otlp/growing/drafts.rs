//! The rows of a range as drafts of spans, and as points of metrics.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use ppt_tables::Processes;

use super::super::attributes::{attributes, int, text};
use super::super::causes::EdgeRow;
use super::super::histograms::HistogramReadings;
use super::super::ids::{frame_of, root};
use super::super::message::{INTERNAL, KeyValue, NumberDataPoint, NumberValue, SpanMessage};
use super::super::points::{MetricPoint, number_value};
use super::super::resource::Resources;
use super::super::spans::name;
use super::super::traced_kind::TracedKind;
use super::meters::Points;
use super::state::{Cause, Draft, KnownResource, State};
use crate::event::{EventRole, EventRows, EventSchema};
use crate::merge::RowRun;
use crate::threads::{PidScope, Threads};
use crate::values::FieldValue;

/// The name of a histogram: its process, and its own name.
type HistogramName = (String, String);

/// Converts rows into drafts.
pub(super) struct Drafts<'a> {
    state: &'a mut State,
    points: &'a mut Points,
    kinds: Vec<Arc<TracedKind>>,
    threads: Threads,
    processes: Processes,
    resources: Resources,
    /// The number in the state of each process.
    known_processes: HashMap<usize, u32>,
    /// The number in the state of each thread.
    known_threads: HashMap<usize, u32>,
    names: HashMap<String, u32>,
    /// The process of each waiting begin, by its frame. The end of the span may be in another capture.
    begins: HashMap<u64, u32>,
    /// Losses that were already exported.
    told: HashSet<u64>,
    histograms: HashMap<HistogramName, (usize, usize, HistogramReadings)>,
}

impl<'a> Drafts<'a> {
    pub fn new(
        state: &'a mut State,
        points: &'a mut Points,
        kinds: &[EventSchema],
        (processes, resources): (Processes, Resources),
    ) -> Drafts<'a> {
        let traced = |kind: &EventSchema| Arc::new(TracedKind::new(kind, true));
        let names = state.threads.iter().cloned().zip(0..).collect();
        let told = state.told.iter().copied().collect();
        let begins = state.drafts.iter().filter(|draft| draft.is_end);
        let begins = begins.filter_map(|draft| Some((draft.frame?, draft.resource))).collect();
        Drafts {
            state,
            points,
            kinds: kinds.iter().map(traced).collect(),
            threads: Threads::new(processes.clone(), PidScope::Machine),
            processes,
            resources,
            known_processes: HashMap::new(),
            known_threads: HashMap::new(),
            names,
            begins,
            told,
            histograms: HashMap::new(),
        }
    }

    /// Adds rows of one kind.
    pub fn take(&mut self, run: RowRun<'_>) {
        self.threads.turn_to(run.kind, run.rows);
        let of = self.kinds[run.kind].clone();
        for row in run.which.iter().map(|&row| row as usize) {
            match of.kind.what {
                EventRole::Edge => self.edge(run.rows, row),
                EventRole::Counter => self.counters(run.kind, &of, run.rows, row),
                EventRole::Histogram => self.histogram(run.kind, &of, run.rows, row),
                _ => {
                    self.span(run.kind, &of, run.rows, row);
                    self.counters(run.kind, &of, run.rows, row);
                }
            }
        }
    }

    /// Completes the drafts and points, when no row follows.
    pub fn finish(mut self) {
        let start = self.state.start;
        let mut last: Vec<_> = std::mem::take(&mut self.histograms).into_iter().collect();
        last.sort_by(|one, other| one.0.cmp(&other.0));
        for ((process, name), (resource, number, mut readings)) in last {
            let of = self.kinds[number].clone();
            if let Some(point) = readings.point(start) {
                let point = MetricPoint::Histogram(point);
                self.points.push((resource, number, 0), &of.kind, point);
            }
            self.state.keep_histogram(&process, &name, &readings);
        }
        self.state.told = self.told.iter().copied().collect();
        self.state.told.sort_unstable();
        self.points.end_range();
    }

    /// The number of the process of a thread in the state.
    fn resource(&mut self, process: usize) -> u32 {
        if let Some(&known) = self.known_processes.get(&process) {
            return known;
        }
        let key = self.process_key(process);
        let resource = Some(self.resources.resource(&self.processes, process));
        let all = &mut self.state.resources;
        let at = match all.iter().position(|known| known.key == key) {
            Some(at) => {
                all[at].resource = resource;
                at
            }
            None => {
                all.push(KnownResource { key, resource });
                all.len() - 1
            }
        };
        self.known_processes.insert(process, at as u32);
        at as u32
    }

    fn process_key(&self, process: usize) -> String {
        let row = self.processes.get(process);
        format!("{}/{}/{}/{}", row.host, row.boot, row.pid, row.start)
    }

    /// The number of a thread in the state.
    fn thread(&mut self, thread: usize) -> u32 {
        if let Some(&known) = self.known_threads.get(&thread) {
            return known;
        }
        let (process, who) = self.threads.get(thread);
        let key = format!("{} {who:?}", self.process_key(process));
        let at = *self.names.entry(key).or_insert_with_key(|key| {
            self.state.threads.push(key.clone());
            self.state.threads.len() as u32 - 1
        });
        self.known_threads.insert(thread, at);
        at
    }

    fn edge(&mut self, rows: &EventRows, row: usize) {
        let Some(EdgeRow { cause, effect, words }) = EdgeRow::read(rows, row) else { return };
        let [word, ty] = words;
        let ts = rows.begin(row);
        let cause = Cause { cause, effect, ts, is_of_whole: false, word, ty, context: None };
        self.state.causes.push(cause);
    }

    fn span(&mut self, number: usize, of: &TracedKind, rows: &EventRows, row: usize) {
        let what = of.kind.what;
        let frame = frame_of(rows, row).filter(|_| of.kind.is_of_frames());
        let context = root((&of.kind, &of.label), 0, rows, row);
        let is_missing = what == EventRole::Missing;
        if is_missing && !self.told.insert(u64::from_be_bytes(context.span)) {
            return;
        }
        let thread = self.threads.thread(number, &of.kind, rows, row);
        let (begin, reach) = (rows.begin(row), rows.end(row));
        let mut end = reach;
        if is_missing
            && let Some(FieldValue::Int(until)) =
                rows.fields.get(2).and_then(|field| field.get(row))
        {
            end = end.max(until);
        }
        let mut attributes = attributes(&of.kind, rows, row);
        if let Some(name) = self.threads.name(thread)
            && attributes.iter().all(|attribute| attribute.key != "thread.name")
        {
            attributes.push(text("thread.name", name));
        }
        let span = SpanMessage {
            trace_id: context.trace.to_vec(),
            span_id: context.span.to_vec(),
            parent_span_id: Vec::new(),
            name: name(of, rows, row),
            kind: INTERNAL,
            start_time_unix_nano: begin as u64,
            end_time_unix_nano: end as u64,
            attributes,
            links: Vec::new(),
        };
        let (process, _) = self.threads.get(thread);
        let is_frame = what == EventRole::Frames;
        let is_first = rows.is_first_of_frame(row);
        let dur = rows.dur(row).filter(|_| !is_missing);
        let seqno = rows.seqno(row).unwrap_or(-1);
        let ties = [
            number as i64,
            if dur.is_some() { !seqno } else { seqno },
            rows.ring(row).unwrap_or(-1).into(),
        ];
        let is_whole = what == EventRole::Spans;
        let known = frame.filter(|_| is_whole).and_then(|frame| self.begins.get(&frame).copied());
        let draft = Draft {
            span: Some(span),
            resource: known.unwrap_or_else(|| self.resource(process)),
            thread: self.thread(thread),
            frame,
            reach,
            ties: ties.to_vec(),
            dur,
            is_whole,
            is_end: is_frame && is_first && of.kind.is_end_of_span(),
            is_of_whole: is_frame && (of.kind.is_end_of_span() || of.kind.chain().is_some()),
            has_edges: is_frame && is_first && of.has_edges,
            is_in_thread: !matches!(what, EventRole::Spans | EventRole::States),
            around: None,
        };
        self.state.drafts.push(draft);
    }

    /// The curves of a row: those of a counter are sums, those of frames are values of their threads.
    fn counters(&mut self, number: usize, of: &TracedKind, rows: &EventRows, row: usize) {
        if of.counters.is_empty() || !rows.is_first_of_frame(row) {
            return;
        }
        let thread = self.threads.thread(number, &of.kind, rows, row);
        let (process, _) = self.threads.get(thread);
        let resource = self.resource(process) as usize;
        let is_sum = of.kind.what == EventRole::Counter;
        for &field in &of.counters {
            let Some(mut value) = number_value(rows, field, row) else { continue };
            if let (true, NumberValue::AsInt(sum)) = (is_sum, &mut value) {
                let process = self.process_key(process);
                *sum = self.points.total(self.state, (process, of.kind.curve(field)), *sum);
            }
            let thread = rows.tid(row).filter(|_| !is_sum);
            let thread: Vec<KeyValue> =
                thread.map(|tid| int("thread.id", tid.into())).into_iter().collect();
            let point = NumberDataPoint {
                start_time_unix_nano: if is_sum { self.state.start } else { 0 },
                time_unix_nano: rows.end(row) as u64,
                attributes: thread,
                value: Some(value),
            };
            let point = match is_sum {
                true => MetricPoint::Sum(point, !of.kind.may_fall()),
                false => MetricPoint::Gauge(point),
            };
            self.points.push((resource, number, field), &of.kind, point);
        }
    }

    fn histogram(&mut self, number: usize, of: &TracedKind, rows: &EventRows, row: usize) {
        let thread = self.threads.thread(number, &of.kind, rows, row);
        let (process, _) = self.threads.get(thread);
        let resource = self.resource(process) as usize;
        let key = (self.process_key(process), of.kind.curve(0));
        let state = &self.state;
        let known = self.histograms.entry(key);
        let (.., readings) = known.or_insert_with_key(|(process, name)| {
            (resource, number, state.histogram(process, name))
        });
        if let Some(point) = readings.add(rows, row, self.state.start) {
            let point = MetricPoint::Histogram(point);
            self.points.push((resource, number, 0), &of.kind, point);
        }
    }
}
