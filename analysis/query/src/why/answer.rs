//! A slow interval, the parts of its time, and the threads that it waited for.

use std::fmt;

use super::cut::{Spent, TimeUse};
use super::functions::FunctionCounts;

/// Identifies a frame.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "as the standard columns")]
pub struct FrameName {
    pub capture: String,
    pub buffer: String,
    pub segment: String,
    pub ring: Option<i64>,
    pub seqno: Option<i64>,
}

/// A slow interval.
#[derive(Debug, Clone, PartialEq)]
pub struct Slow {
    /// The frame and the interval, `job.handle`; for a span, the frame.
    pub name: String,
    /// The identity of the frame: capture, buffer, segment, ring and number.
    pub capture: String,
    #[expect(missing_docs, reason = "see `capture`")]
    pub buffer: String,
    #[expect(missing_docs, reason = "see `capture`")]
    pub segment: String,
    #[expect(missing_docs, reason = "see `capture`")]
    pub ring: Option<i64>,
    #[expect(missing_docs, reason = "see `capture`")]
    pub seqno: Option<i64>,
    /// The host and the process.
    pub host: String,
    #[expect(missing_docs, reason = "see `host`")]
    pub pid: Option<i32>,
    /// Its thread; for a span, the one that began it.
    pub tid: Option<i32>,
    /// The last name of that thread, if it is known.
    pub thread: Option<String>,
    /// When it began, ns since the epoch.
    pub ts: i64,
    /// Its length, ns: the sum of its parts.
    pub dur: i64,
    /// It is a span, during which the thread may have done other work.
    pub is_span: bool,
    /// The identity of the request: names of fields, and their values.
    pub request: Vec<(String, String)>,
    /// The parts, the largest first.
    pub parts: Vec<SlowPart>,
    /// The longest call of another service that it made, and the request there.
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
    /// When the call began, ns since the epoch.
    pub ts: i64,
    /// Its length, ns: from the first byte out to the last byte in.
    pub dur: i64,
    /// How long after its beginning the other process took it up, ns.
    pub taken_after: i64,
    /// The thread had other calls under way at the same time: this one may be another request's.
    pub had_others: bool,
    /// The name of the process that answered, if it is known.
    pub process_name: Option<String>,
    /// The request in the other process, from the beginning of the call to the last byte of the answer,
    /// and where that time went in the thread that took it up.
    pub request: Slow,
}

/// A part of a slow interval.
#[derive(Debug, Clone, PartialEq)]
pub struct SlowPart {
    /// The state of the thread.
    pub part: TimeUse,
    /// How much time.
    pub spent: Spent,
    /// The slice of the waker during the longest piece of a wait, by its own frames: the innermost
    /// slice around the end of that piece, or else the slice that overlaps it longest.
    pub doing: Option<Doing>,
    /// The same for the thread that waited: the innermost slice within the interval shows what it waited for.
    pub inside: Option<Doing>,
    /// In which slices the thread ran, the most first: each ns counts for the innermost slice in the
    /// interval. The rest of the time, it ran in no slice. Only for [`TimeUse::Running`].
    pub running_in: Vec<RunningIn>,
    /// In which functions the thread ran, by its stacks. Only for [`TimeUse::Running`].
    pub functions: FunctionCounts,
    /// The activity of the waker during the wait, and the thread that woke it. Only for the largest wait.
    pub hops: Vec<Hop>,
}

impl SlowPart {
    pub(super) fn new((part, spent): (TimeUse, Spent)) -> SlowPart {
        SlowPart {
            part,
            spent,
            doing: None,
            inside: None,
            running_in: Vec::new(),
            functions: FunctionCounts::default(),
            hops: Vec::new(),
        }
    }
}

/// The description of a slice by a frame of the preloaded library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct About {
    /// Words that all slices of the same lock, service or call share.
    pub shared: String,
    /// Words for this slice alone: ` fd 7`. May be empty.
    pub own: String,
}

impl About {
    pub(super) fn shared(shared: String) -> Self {
        Self { shared, own: String::new() }
    }
}

impl fmt::Display for About {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.shared, self.own)
    }
}

/// The slice in which a thread was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Doing {
    /// The slice.
    pub name: String,
    /// Its description by a frame of the preloaded library.
    pub about: Option<About>,
    /// Its overlap with the wait, ns.
    pub ns: i64,
    /// When it began, ns since the epoch.
    pub ts: i64,
    /// Its length, ns.
    pub dur: i64,
    /// The frame that recorded it.
    pub frame: FrameName,
    /// It was still open when the wait ended.
    pub(super) around: bool,
}

/// How long a thread ran in slices of one name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunningIn {
    /// The slices: an interval, or a span.
    pub name: String,
    /// How long it ran while one of them was the innermost, ns.
    pub ns: i64,
    /// The number of slices.
    pub slices: u64,
    /// The slice with the most of that time, which is its `ns`.
    pub longest: Doing,
}

/// The activity of a thread for which another one waited.
#[derive(Debug, Clone, PartialEq)]
pub struct Hop {
    /// The thread.
    pub thread: i32,
    /// Its last name, if it is known.
    pub name: Option<String>,
    /// The longest wait for it, from and to, ns since the epoch.
    pub within: (i64, i64),
    /// The state of this thread for most of that wait.
    pub part: TimeUse,
    /// How much time.
    pub spent: Spent,
    /// Its slice, by its own frames.
    pub doing: Option<Doing>,
}

impl Doing {
    /// Its description, or else its name.
    #[must_use]
    pub fn label(&self) -> String {
        self.about.as_ref().map_or_else(|| self.name.clone(), About::to_string)
    }

    /// The part of its description that all slices of the same lock, service or call share; or else its name.
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
pub(super) struct Longest {
    pub(super) name: String,
    /// How many intervals there are.
    pub(super) all: u64,
    /// How many are above the 99th percentile; None if there are none.
    pub(super) above: Option<usize>,
    /// How many are shown one by one.
    pub(super) slowest: usize,
    pub(super) count: usize,
    pub(super) longest: Vec<Slow>,
}
