//! The state of an export between ranges.

use std::collections::HashMap;

use prost::Message;

use super::super::ids::SpanContext;
use super::super::message::{Resource, SpanMessage};

/// The state of an export between ranges.
#[derive(Clone, PartialEq, Message)]
pub(super) struct State {
    /// Waiting spans.
    #[prost(message, repeated, tag = "1")]
    pub drafts: Vec<Draft>,
    /// Edges to waiting spans.
    #[prost(message, repeated, tag = "2")]
    pub causes: Vec<Cause>,
    /// Processes.
    #[prost(message, repeated, tag = "3")]
    pub resources: Vec<KnownResource>,
    /// Threads: a unique text for each.
    #[prost(string, repeated, tag = "4")]
    pub threads: Vec<String>,
    /// Totals of counters, by process and name.
    #[prost(message, repeated, tag = "5")]
    pub counters: Vec<CounterTotal>,
    /// Totals of histograms, by process and name.
    #[prost(message, repeated, tag = "6")]
    pub histograms: Vec<HistogramTotal>,
    /// The capture that was read last.
    #[prost(string, tag = "7")]
    pub capture: String,
    /// The ids of the losses in it that were already exported.
    #[prost(fixed64, repeated, tag = "8")]
    pub told: Vec<u64>,
    /// The begin of the first capture, ns since the epoch; 0 before the first range.
    #[prost(fixed64, tag = "9")]
    pub start: u64,
}

/// A span without its parent.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Draft {
    /// The span in a trace of its own.
    #[prost(message, optional, tag = "1")]
    pub span: Option<SpanMessage>,
    #[prost(uint32, tag = "2")]
    pub resource: u32,
    #[prost(uint32, tag = "3")]
    pub thread: u32,
    /// The number of its frame.
    #[prost(fixed64, optional, tag = "4")]
    pub frame: Option<u64>,
    /// The earliest end of a slice around it, ns since the epoch.
    #[prost(int64, tag = "5")]
    pub reach: i64,
    /// The order of drafts with the same begin and length: kind, sequence number and ring.
    #[prost(int64, repeated, tag = "6")]
    pub ties: Vec<i64>,
    /// The length in ns, if the span can enclose others.
    #[prost(int64, optional, tag = "7")]
    pub dur: Option<i64>,
    /// Whether it is a span with begin and end.
    #[prost(bool, tag = "8")]
    pub is_whole: bool,
    /// Whether its frame is the begin or the end of a span.
    #[prost(bool, tag = "9")]
    pub is_end: bool,
    /// Whether its frame waits for other frames of its span or chain.
    #[prost(bool, tag = "10")]
    pub is_of_whole: bool,
    /// Whether edges of its frame refer to it.
    #[prost(bool, tag = "11")]
    pub has_edges: bool,
    /// Whether it belongs to its thread, so that the slice around it there is its parent.
    #[prost(bool, tag = "12")]
    pub is_in_thread: bool,
    /// The slice around it, if that was exported.
    #[prost(message, optional, tag = "13")]
    pub around: Option<KnownContext>,
}

/// A span that was exported.
#[derive(Clone, PartialEq, Message)]
pub(super) struct KnownContext {
    #[prost(bytes = "vec", tag = "1")]
    trace: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    span: Vec<u8>,
}

/// An edge.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Cause {
    /// The number of the frame.
    #[prost(fixed64, tag = "1")]
    pub cause: u64,
    #[prost(fixed64, tag = "2")]
    pub effect: u64,
    /// The time of the cause, ns since the epoch.
    #[prost(int64, tag = "3")]
    pub ts: i64,
    /// Whether both belong to one span or chain.
    #[prost(bool, tag = "4")]
    pub is_of_whole: bool,
    #[prost(string, optional, tag = "5")]
    pub word: Option<String>,
    #[prost(string, optional, tag = "6")]
    pub ty: Option<String>,
    /// The span of the cause, if it was exported.
    #[prost(message, optional, tag = "7")]
    pub context: Option<KnownContext>,
}

/// A process.
#[derive(Clone, PartialEq, Message)]
pub(super) struct KnownResource {
    /// A unique text.
    #[prost(string, tag = "1")]
    pub key: String,
    #[prost(message, optional, tag = "2")]
    pub resource: Option<Resource>,
}

/// The total of a counter of a process.
#[derive(Clone, PartialEq, Message)]
pub(super) struct CounterTotal {
    #[prost(string, tag = "1")]
    pub process: String,
    #[prost(string, tag = "2")]
    pub name: String,
    #[prost(int64, tag = "3")]
    pub value: i64,
}

/// The total of a histogram of a process.
#[derive(Clone, PartialEq, Message)]
pub(in crate::otlp) struct HistogramTotal {
    #[prost(string, tag = "1")]
    pub process: String,
    #[prost(string, tag = "2")]
    pub name: String,
    #[prost(message, repeated, tag = "3")]
    pub buckets: Vec<BucketTotal>,
    #[prost(message, repeated, tag = "4")]
    pub cells: Vec<CellTotal>,
}

/// A bucket of all threads.
#[derive(Clone, PartialEq, Message)]
pub(in crate::otlp) struct BucketTotal {
    #[prost(int64, optional, tag = "1")]
    pub lo: Option<i64>,
    #[prost(int64, optional, tag = "2")]
    pub hi: Option<i64>,
    #[prost(uint64, tag = "3")]
    pub count: u64,
}

/// The cells of a ring: a bucket, or, without a count, the sum of all values.
#[derive(Clone, PartialEq, Message)]
pub(in crate::otlp) struct CellTotal {
    #[prost(string, tag = "1")]
    pub capture: String,
    #[prost(string, tag = "2")]
    pub segment: String,
    #[prost(int32, optional, tag = "3")]
    pub ring: Option<i32>,
    #[prost(int64, optional, tag = "4")]
    pub lo: Option<i64>,
    #[prost(uint64, optional, tag = "5")]
    pub count: Option<u64>,
    #[prost(int64, tag = "6")]
    pub sum: i64,
}

impl From<SpanContext> for KnownContext {
    fn from(context: SpanContext) -> KnownContext {
        KnownContext { trace: context.trace.to_vec(), span: context.span.to_vec() }
    }
}

impl CounterTotal {
    pub fn key(&self) -> (&str, &str) {
        (&self.process, &self.name)
    }
}

impl HistogramTotal {
    pub fn key(&self) -> (&str, &str) {
        (&self.process, &self.name)
    }
}

impl KnownContext {
    pub fn get(&self) -> Option<SpanContext> {
        let trace = self.trace.as_slice().try_into().ok()?;
        Some(SpanContext { trace, span: self.span.as_slice().try_into().ok()? })
    }
}

impl Draft {
    pub fn begin(&self) -> i64 {
        self.span.as_ref().map_or(0, |span| span.start_time_unix_nano as i64)
    }

    pub fn end(&self) -> i64 {
        self.span.as_ref().map_or(0, |span| span.end_time_unix_nano as i64)
    }

    /// The context of the span if it has no parent.
    pub fn own_context(&self) -> SpanContext {
        let known = self.span.as_ref().and_then(|span| {
            let trace = span.trace_id.as_slice().try_into().ok()?;
            Some(SpanContext { trace, span: span.span_id.as_slice().try_into().ok()? })
        });
        known.unwrap_or(SpanContext { trace: [0; 16], span: [0; 8] })
    }
}

impl State {
    /// Whether all references of drafts are valid, and totals are in order.
    pub fn is_sound(&self) -> bool {
        let are_sorted = self.counters.is_sorted_by(|one, next| one.key() < next.key())
            && self.histograms.is_sorted_by(|one, next| one.key() < next.key());
        are_sorted
            && self.drafts.iter().all(|draft| {
                draft
                    .span
                    .as_ref()
                    .is_some_and(|span| span.trace_id.len() == 16 && span.span_id.len() == 8)
                    && (draft.resource as usize) < self.resources.len()
                    && (draft.thread as usize) < self.threads.len()
            })
    }

    /// Begins with rows of this capture. Losses of other captures are not read again.
    pub fn turn_to(&mut self, capture: &str) {
        if self.capture != capture {
            self.capture = capture.to_owned();
            self.told.clear();
        }
    }

    /// Removes processes and threads without drafts.
    pub fn forget_unused(&mut self) {
        let State { drafts, resources, threads, .. } = self;
        renumber(resources, drafts, |draft| &mut draft.resource);
        renumber(threads, drafts, |draft| &mut draft.thread);
    }
}

/// Keeps the elements of `all` to which drafts refer, and renumbers them.
fn renumber<T>(all: &mut Vec<T>, drafts: &mut [Draft], number: impl Fn(&mut Draft) -> &mut u32) {
    let mut numbers: HashMap<u32, u32> = HashMap::new();
    for draft in drafts.iter_mut() {
        let next = numbers.len() as u32;
        let number = number(draft);
        *number = *numbers.entry(*number).or_insert(next);
    }
    let mut kept: Vec<(u32, T)> = Vec::with_capacity(numbers.len());
    for (at, one) in std::mem::take(all).into_iter().enumerate() {
        kept.extend(numbers.get(&(at as u32)).map(|&number| (number, one)));
    }
    kept.sort_by_key(|&(number, _)| number);
    all.extend(kept.into_iter().map(|(_, one)| one));
}
