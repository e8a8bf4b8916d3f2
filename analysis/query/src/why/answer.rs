//! A slow interval, the parts of its time, and the threads that it waited for.

use std::fmt;

use super::cut::{Spent, TimeUse};
use super::functions::FunctionCounts;

/// The place where a frame was recorded: it identifies the frame.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct FrameOrigin {
    /// The first 16 digits of the capture's id.
    pub capture: String,
    /// The name of the buffer.
    pub buffer: String,
    /// The nonce of the segment.
    pub segment: String,
    /// The ring in the segment, from 0.
    pub ring: Option<i64>,
    /// The sequence number in the ring, from 1.
    pub seqno: Option<i64>,
}

/// A slow interval.
#[derive(Debug, Clone, PartialEq)]
pub struct SlowInterval {
    /// The frame and the interval, `job.handle`; for a span, the frame.
    pub name: String,
    /// The first 16 digits of the id of the frame's capture.
    pub capture: String,
    /// The name of the frame's buffer.
    pub buffer: String,
    /// The nonce of the frame's segment.
    pub segment: String,
    /// The frame's ring in the segment, from 0.
    pub ring: Option<i64>,
    /// The frame's sequence number in the ring, from 1.
    pub seqno: Option<i64>,
    /// The name of the host.
    pub host: String,
    /// The process.
    pub pid: Option<i32>,
    /// The thread; for a span, the one that began it.
    pub tid: Option<i32>,
    /// The last name of that thread, if it is known.
    pub thread: Option<String>,
    /// The begin, ns since the epoch.
    pub ts: i64,
    /// The length, ns: the sum of the parts.
    pub dur: i64,
    /// Whether the interval is a span, during which the thread may have done other work.
    pub is_span: bool,
    /// The identity of the request: names of fields, and their values.
    pub request: Vec<(String, String)>,
    /// The parts, the largest first.
    pub parts: Vec<SlowPart>,
    /// The longest call of another service during the interval, and the request there.
    pub answered_by: Option<Box<ServiceCall>>,
}

/// A call of another service, which a captured process answered.
#[derive(Debug, Clone, PartialEq)]
pub struct ServiceCall {
    /// The service: `:5432`, or the path of a Unix socket. If found by identity: the frame and the
    /// interval in the other process.
    pub service: String,
    /// The hash type by which the points of both programs identify the same request; None if it was found
    /// by the frames of `libppt-with.so`.
    pub identity: Option<String>,
    /// The begin of the call, ns since the epoch.
    pub ts: i64,
    /// The length of the call, ns: from the first byte out to the last byte in.
    pub dur: i64,
    /// Time from the begin of the call until the other process took it up, ns.
    pub taken_after: i64,
    /// Whether the thread made other calls at the same time, so that this one may belong to another request.
    pub had_others: bool,
    /// The name of the process that answered, if it is known.
    pub process_name: Option<String>,
    /// The request in the other process, from the beginning of the call to the last byte of the answer,
    /// and where that time went in the thread that took it up.
    pub request: SlowInterval,
}

/// A part of a slow interval.
#[derive(Debug, Clone, PartialEq)]
pub struct SlowPart {
    /// The state of the thread.
    pub state: TimeUse,
    /// Total, number of pieces and longest piece of the time in this state.
    pub spent: Spent,
    /// The slice of the waker during the longest piece of a wait, by the waker's frames: the innermost
    /// slice around the end of that piece, or else the slice that overlaps it longest.
    pub waker_slice: Option<ThreadSlice>,
    /// The slice of the waiting thread during that piece: the innermost one within the interval.
    pub own_slice: Option<ThreadSlice>,
    /// The slices in which the thread ran, the longest time first: each ns counts for the innermost slice in
    /// the interval. Time in no slice is left out. Only for [`TimeUse::Running`].
    pub running_in: Vec<RunningIn>,
    /// The functions in which the thread ran, by its stacks. Only for [`TimeUse::Running`].
    pub functions: FunctionCounts,
    /// The activity of the waker during the wait, and the thread that woke it. Only for the largest wait.
    pub hops: Vec<WakerHop>,
}

impl SlowPart {
    pub(super) fn new((state, spent): (TimeUse, Spent)) -> SlowPart {
        SlowPart {
            state,
            spent,
            waker_slice: None,
            own_slice: None,
            running_in: Vec::new(),
            functions: FunctionCounts::default(),
            hops: Vec::new(),
        }
    }
}

/// The description of a slice by a frame of the preloaded library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SliceDescription {
    /// Words that all slices of the same lock, service or call share.
    pub shared: String,
    /// Words for this slice alone, such as ` fd 7`. May be empty.
    pub own: String,
}

impl SliceDescription {
    pub(super) fn shared(shared: String) -> Self {
        Self { shared, own: String::new() }
    }
}

impl fmt::Display for SliceDescription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.shared, self.own)
    }
}

/// A slice of a thread during a wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadSlice {
    /// The name of the interval or span.
    pub name: String,
    /// The description by a frame of the preloaded library. None for other slices.
    pub about: Option<SliceDescription>,
    /// The overlap with the wait, ns.
    pub ns: i64,
    /// The begin, ns since the epoch.
    pub ts: i64,
    /// The length, ns.
    pub dur: i64,
    /// The frame that recorded the slice.
    pub frame: FrameOrigin,
    /// Whether the slice was still open when the wait ended.
    pub(super) around: bool,
}

/// The time that a thread ran in slices of one name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunningIn {
    /// The name of the interval or span.
    pub name: String,
    /// The time that the thread ran while such a slice was the innermost, ns.
    pub ns: i64,
    /// The number of slices.
    pub slices: u64,
    /// The slice with the most of that time; `ns` is its share.
    pub longest: ThreadSlice,
}

/// The activity of a thread for which another one waited.
#[derive(Debug, Clone, PartialEq)]
pub struct WakerHop {
    /// The thread.
    pub thread: i32,
    /// The last name of the thread, if it is known.
    pub name: Option<String>,
    /// The longest wait for the thread: from and to, ns since the epoch.
    pub within: (i64, i64),
    /// The state of the thread for most of that wait.
    pub state: TimeUse,
    /// Total, number of pieces and longest piece of the time in this state.
    pub spent: Spent,
    /// The slice of the thread during that wait, by its own frames.
    pub slice: Option<ThreadSlice>,
}

impl ThreadSlice {
    /// The description, or else the name.
    #[must_use]
    pub fn label(&self) -> String {
        self.about.as_ref().map_or_else(|| self.name.clone(), SliceDescription::to_string)
    }

    /// The part of the description that all slices of the same lock, service or call share; or else the name.
    pub(super) fn shared_words(&self) -> &str {
        self.about.as_ref().map_or(&self.name, |about| &about.shared)
    }

    /// The slice with the greater rank is preferred.
    pub(super) fn rank(&self) -> (bool, i64, i64, std::cmp::Reverse<&str>) {
        let (first, then) = if self.around { (self.ts, self.ns) } else { (self.ns, self.ts) };
        (self.around, first, then, std::cmp::Reverse(&self.name))
    }
}

/// The longest intervals of a kind: the slowest ones to show, and the whole tail.
pub(super) struct LongestIntervals {
    pub(super) name: String,
    /// The number of intervals.
    pub(super) all: u64,
    /// The number of intervals above the 99th percentile; None if there are none.
    pub(super) above: Option<usize>,
    /// The number of intervals that are shown one by one.
    pub(super) slowest: usize,
    pub(super) count: usize,
    pub(super) longest: Vec<SlowInterval>,
}
