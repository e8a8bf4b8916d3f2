//! OpenTelemetry's protocol in files, as collectors read and write it.
//!
//! Each event is a span, which is as long as the interval, and instants are 0 ns long. Its parent is the
//! slice of its thread around it, or the span that caused it; its other causes are links. Spans are
//! written as they begin, except spans that a later edge may cause: they are written when they end.

mod attributes;
mod batch;
mod causes;
mod growing;
mod histograms;
mod ids;
mod json;
mod message;
mod open_slices;
mod points;
mod resource;
mod spans;
mod traced_kind;

use std::collections::HashMap;
use std::io::{self, Write};
use std::sync::Arc;

use ppt_tables::Processes;

pub use batch::Encoding;
use batch::write_metrics;
pub use growing::{GrowingOtlp, OtlpFiles, RangeWholes, ReadRange};
use histograms::HistogramReadings;
use message::{KeyValue, NumberDataPoint};
use points::{MetricId, MetricPoint, Points};
pub use resource::Resources;
use spans::SpanMaker;
use traced_kind::TracedKind;

use crate::event::{EventRole, EventRows, EventSchema, Trace};
use crate::threads::{PidScope, Threads};

/// Traces and metrics for OpenTelemetry.
#[derive(Debug)]
pub struct Otlp<W> {
    traces: W,
    /// None if metrics are between the traces.
    metrics: Option<W>,
    encoding: Encoding,
    kinds: Vec<Arc<TracedKind>>,
    threads: Threads,
    processes: Processes,
    resources: Resources,
    /// The begin of all sums, ns since the epoch.
    start: u64,
    spans: SpanMaker,
    points: Points,
    /// The readings of histograms, by process and kind.
    readings: HashMap<(usize, usize), HistogramReadings>,
}

impl<W: Write> Otlp<W> {
    /// Traces of events of `kinds`, and their metrics, in a file of their own or between the traces.
    /// The sums of counters begin at `start`, ns since the epoch.
    pub fn new(
        (traces, metrics): (W, Option<W>),
        encoding: Encoding,
        kinds: &[EventSchema],
        (processes, resources): (Processes, Resources),
        start: i64,
    ) -> Otlp<W> {
        let are_known = kinds.iter().any(|kind| kind.what == EventRole::Edge);
        let told = |kind: &EventSchema| Arc::new(TracedKind::new(kind, are_known));
        Otlp {
            traces,
            metrics,
            encoding,
            kinds: kinds.iter().map(told).collect(),
            threads: Threads::new(processes.clone(), PidScope::Machine),
            processes,
            resources,
            start: u64::try_from(start).unwrap_or(0),
            spans: SpanMaker::default(),
            points: Points::default(),
            readings: HashMap::new(),
        }
    }

    fn write_spans(&mut self) -> io::Result<()> {
        let resource = |number| self.resources.resource(&self.processes, number);
        self.spans.made.write(&mut self.traces, self.encoding, resource)
    }

    fn write_points(&mut self) -> io::Result<()> {
        let resource = |number| self.resources.resource(&self.processes, number);
        let out = self.metrics.as_mut().unwrap_or(&mut self.traces);
        write_metrics(out, self.encoding, self.points.take(), resource)
    }

    fn span(&mut self, number: usize, rows: &EventRows, row: usize) -> io::Result<()> {
        let of = self.kinds[number].clone();
        let thread = self.threads.thread(number, &of.kind, rows, row);
        self.spans.span(&of, (&self.threads, thread), rows, row);
        self.write_spans()
    }

    /// The curves of a row: those of a counter are sums, those of frames are values of their threads.
    fn counters(&mut self, number: usize, rows: &EventRows, row: usize) -> io::Result<()> {
        let of = self.kinds[number].clone();
        if of.counters.is_empty() || !rows.is_first_of_frame(row) {
            return Ok(());
        }
        let thread = self.threads.thread(number, &of.kind, rows, row);
        let (process, _) = self.threads.get(thread);
        for &field in &of.counters {
            let Some(value) = points::number_value(rows, field, row) else { continue };
            let is_sum = of.kind.what == EventRole::Counter;
            let thread = rows.tid(row).filter(|_| !is_sum);
            let thread: Vec<KeyValue> =
                thread.map(|tid| attributes::int("thread.id", tid.into())).into_iter().collect();
            let point = NumberDataPoint {
                start_time_unix_nano: if is_sum { self.start } else { 0 },
                time_unix_nano: rows.end(row) as u64,
                attributes: thread,
                value: Some(value),
            };
            let point = if is_sum {
                MetricPoint::Sum(point, !of.kind.may_fall())
            } else {
                MetricPoint::Gauge(point)
            };
            self.point((process, number, field), point)?;
        }
        Ok(())
    }

    fn histogram(&mut self, number: usize, rows: &EventRows, row: usize) -> io::Result<()> {
        let of = self.kinds[number].clone();
        let thread = self.threads.thread(number, &of.kind, rows, row);
        let (process, _) = self.threads.get(thread);
        let readings = self.readings.entry((process, number)).or_default();
        match readings.add(rows, row, self.start) {
            Some(point) => self.point((process, number, 0), MetricPoint::Histogram(point)),
            None => Ok(()),
        }
    }

    fn point(&mut self, of: MetricId, point: MetricPoint) -> io::Result<()> {
        let kind = &self.kinds[of.1].kind;
        let name = || {
            let unit = kind.fields[of.2].metadata().get("unit").cloned();
            [kind.curve(of.2), unit.unwrap_or_default()]
        };
        if self.points.push(of, name, point) { self.write_points() } else { Ok(()) }
    }
}

impl<W: Write> Trace for Otlp<W> {
    fn turn_to(&mut self, kind: usize, rows: &EventRows) {
        self.threads.turn_to(kind, rows);
    }

    fn event(&mut self, number: usize, rows: &EventRows, row: usize) -> io::Result<()> {
        match self.kinds[number].kind.what {
            EventRole::Edge => self.spans.edge(rows, row),
            EventRole::Counter => self.counters(number, rows, row)?,
            EventRole::Histogram => self.histogram(number, rows, row)?,
            _ => {
                self.span(number, rows, row)?;
                self.counters(number, rows, row)?;
            }
        }
        Ok(())
    }

    fn dropped_links(&self) -> u64 {
        self.spans.dropped_links()
    }

    fn finish(&mut self) -> io::Result<()> {
        self.spans.release(None);
        self.spans.made.close();
        self.write_spans()?;
        let mut last: Vec<_> = std::mem::take(&mut self.readings).into_iter().collect();
        last.sort_by_key(|&(of, _)| of);
        for ((process, number), mut readings) in last {
            if let Some(point) = readings.point(self.start) {
                self.point((process, number, 0), MetricPoint::Histogram(point))?;
            }
        }
        self.write_points()?;
        self.traces.flush()?;
        self.metrics.as_mut().map_or(Ok(()), Write::flush)
    }
}
