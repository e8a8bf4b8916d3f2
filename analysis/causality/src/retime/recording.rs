//! What was recorded, as the model takes it.

use std::collections::HashMap;

/// Something that has a name: a point, the begin or the end of an interval, an activity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NameId(pub(crate) u32);

/// A thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ThreadId(pub(crate) u32);

/// A moment of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Vertex(pub(crate) u32);

/// Moments of threads, in any order, and what held between them. Times are nanoseconds of one clock.
#[derive(Debug, Clone, Default)]
pub struct Recording {
    pub(crate) names: NameTable,
    /// Each thread's process.
    pub(crate) threads: Vec<u32>,
    pub(crate) vertices: Vec<RecordedMoment>,
    pub(crate) edges: Vec<(Vertex, Vertex)>,
    pub(crate) jobs: Vec<QueuedPut>,
    pub(crate) intervals: Vec<MeasuredLength>,
    pub(crate) spans: Vec<MeasuredLength>,
    /// Parts of intervals that are no lengths themselves.
    pub(crate) pieces: Vec<MeasuredLength>,
    pub(crate) outside: Vec<Vertex>,
    pub(crate) ran: Vec<RanInterval>,
    pub(crate) states: Vec<RecordedState>,
    pub(crate) doubts: Vec<Doubt>,
    /// By thread, where it is not machine 0.
    pub(crate) machines: HashMap<ThreadId, u32>,
}

/// What a thread does, as the kernel recorded it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThreadState {
    /// It has this CPU.
    Running {
        /// Its number.
        cpu: u32,
    },
    /// It wants a CPU and has none.
    Ready,
    /// It waits for something else.
    Blocked,
    /// Nobody knows.
    Unknown,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct RecordedState {
    pub thread: ThreadId,
    pub begin: i64,
    pub end: i64,
    pub state: ThreadState,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct RecordedMoment {
    pub time: i64,
    pub thread: ThreadId,
    pub name: NameId,
}

/// A job that was put into a queue and taken from it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct QueuedPut {
    pub put: Vertex,
    pub take: Vertex,
    pub key: u64,
}

/// What has a length.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MeasuredLength {
    pub name: NameId,
    pub begin: Vertex,
    pub end: Vertex,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct RanInterval {
    pub thread: ThreadId,
    pub begin: i64,
    pub end: i64,
}

/// What a thread did then is not wholly known.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Doubt {
    pub thread: ThreadId,
    pub from: i64,
    pub to: i64,
}

impl Recording {
    /// Nothing yet.
    pub fn new() -> Recording {
        Recording::default()
    }

    /// The name that is written so.
    pub fn name(&mut self, name: &str) -> NameId {
        self.names.intern(name)
    }

    /// Another thread of `process`, which is any number that no other process has.
    pub fn thread(&mut self, process: u32) -> ThreadId {
        self.threads.push(process);
        ThreadId(self.threads.len() as u32 - 1)
    }

    /// A moment of a thread. Of those at one time, the one that was added first comes first.
    pub fn vertex(&mut self, thread: ThreadId, time: i64, name: NameId) -> Vertex {
        self.vertices.push(RecordedMoment { time, thread, name });
        Vertex(self.vertices.len() as u32 - 1)
    }

    /// An activity: what its thread does from `begin` to `end` can be made faster.
    pub fn interval(&mut self, name: NameId, begin: Vertex, end: Vertex) {
        self.intervals.push(MeasuredLength { name, begin, end });
    }

    /// A length to measure, perhaps from one thread to another. It orders nothing and is no work.
    pub fn span(&mut self, name: NameId, begin: Vertex, end: Vertex) {
        self.spans.push(MeasuredLength { name, begin, end });
    }

    /// `to` cannot be before `from`: a message, a wake-up, a step.
    pub fn edge(&mut self, from: Vertex, to: Vertex) {
        self.edges.push((from, to));
    }

    /// A job that waits in a queue from `put` on until a thread is free for it (policy `fifo`). `key` is
    /// the hash by which the two were matched: one that many jobs share names a queue, one of its own
    /// names a job.
    pub fn job(&mut self, put: Vertex, take: Vertex, key: u64) {
        self.jobs.push(QueuedPut { put, take, key });
    }

    /// What `at` waits for comes from where nobody recorded, and comes when it came.
    pub fn outside(&mut self, at: Vertex) {
        self.outside.push(at);
    }

    /// The kernel says that the thread ran from `begin` to `end`. A thread for which this is never said
    /// is taken to run whenever it waits for no edge.
    pub fn ran(&mut self, thread: ThreadId, begin: i64, end: i64) {
        self.ran.push(RanInterval { thread, begin, end });
    }

    /// What the thread did from `begin` to `end`. Where this is said of any thread, those of one machine
    /// share its CPUs: as many as any of them ever ran on.
    pub fn state(&mut self, thread: ThreadId, begin: i64, end: i64, state: ThreadState) {
        self.states.push(RecordedState { thread, begin, end, state });
    }

    /// Something is missing of what the thread did from `from` to `to`, or in doubt. What that touches
    /// counts for no metric.
    pub fn doubt(&mut self, thread: ThreadId, from: i64, to: i64) {
        self.doubts.push(Doubt { thread, from, to });
    }

    /// The thread runs on the CPUs of this machine, not on those of machine 0.
    pub fn machine(&mut self, thread: ThreadId, machine: u32) {
        self.machines.insert(thread, machine);
    }

    pub(super) fn machine_of(&self, thread: ThreadId) -> u32 {
        self.machines.get(&thread).copied().unwrap_or(0)
    }

    /// So many vertices.
    pub fn len(&self) -> usize {
        self.vertices.len()
    }

    /// Whether there is nothing.
    pub fn is_empty(&self) -> bool {
        self.vertices.is_empty()
    }
}

/// Each name once.
#[derive(Debug, Clone, Default)]
pub(crate) struct NameTable {
    written: Vec<String>,
    by: HashMap<String, u32>,
}

impl NameTable {
    fn intern(&mut self, name: &str) -> NameId {
        if let Some(&number) = self.by.get(name) {
            return NameId(number);
        }
        let number = self.written.len() as u32;
        self.written.push(name.to_owned());
        self.by.insert(name.to_owned(), number);
        NameId(number)
    }

    pub fn find(&self, name: &str) -> Option<NameId> {
        self.by.get(name).map(|&number| NameId(number))
    }

    pub fn written(&self, name: NameId) -> &str {
        &self.written[name.0 as usize]
    }
}
