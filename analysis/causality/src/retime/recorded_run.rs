//! The recording of a run, from which a model is made.

use std::collections::HashMap;

/// The name of a point, of the begin or the end of an interval, or of an activity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NameId(pub(crate) u32);

/// A thread of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ThreadId(pub(crate) u32);

/// A moment of a thread of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VertexId(pub(crate) u32);

/// Moments of threads, in any order, and the relations between them. Times are nanoseconds of one clock.
#[derive(Debug, Clone, Default)]
pub struct RecordedRun {
    pub(crate) names: NameTable,
    /// The process of each thread.
    pub(crate) threads: Vec<u32>,
    pub(crate) vertices: Vec<RecordedMoment>,
    pub(crate) edges: Vec<(VertexId, VertexId)>,
    pub(crate) jobs: Vec<QueuedPut>,
    pub(crate) intervals: Vec<MeasuredLength>,
    pub(crate) spans: Vec<MeasuredLength>,
    /// Parts of intervals, which are not lengths themselves.
    pub(crate) pieces: Vec<MeasuredLength>,
    pub(crate) outside: Vec<VertexId>,
    pub(crate) ran: Vec<RanInterval>,
    pub(crate) states: Vec<RecordedState>,
    pub(crate) doubts: Vec<Doubt>,
    /// The machines of threads that are not on machine 0.
    pub(crate) machines: HashMap<ThreadId, u32>,
}

/// The state of a thread, as the kernel recorded it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThreadState {
    /// The thread runs on this CPU.
    Running {
        /// The number of the CPU.
        cpu: u32,
    },
    /// The thread waits for a CPU.
    Ready,
    /// The thread waits for another event.
    Blocked,
    /// The thread waits for another thread of these programs, which wakes it.
    WaitsForThread,
    /// The state is unknown.
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
    pub put: VertexId,
    pub take: VertexId,
    pub key: u64,
}

/// An interval, a span, or a part of one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MeasuredLength {
    pub name: NameId,
    pub begin: VertexId,
    pub end: VertexId,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct RanInterval {
    pub thread: ThreadId,
    pub begin: i64,
    pub end: i64,
}

/// A time in which the actions of a thread are not wholly known.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Doubt {
    pub thread: ThreadId,
    pub from: i64,
    pub to: i64,
}

impl RecordedRun {
    /// An empty recording.
    pub fn new() -> RecordedRun {
        RecordedRun::default()
    }

    /// The id of a name.
    pub fn name(&mut self, name: &str) -> NameId {
        self.names.intern(name)
    }

    /// Adds a thread of `process`, which is any number that no other process has.
    pub fn thread(&mut self, process: u32) -> ThreadId {
        self.threads.push(process);
        ThreadId(self.threads.len() as u32 - 1)
    }

    /// Adds a moment of a thread. Moments at the same time keep the order in which they were added.
    pub fn vertex(&mut self, thread: ThreadId, time: i64, name: NameId) -> VertexId {
        self.vertices.push(RecordedMoment { time, thread, name });
        VertexId(self.vertices.len() as u32 - 1)
    }

    /// Adds an activity: the work of its thread from `begin` to `end` can be made faster.
    pub fn interval(&mut self, name: NameId, begin: VertexId, end: VertexId) {
        self.intervals.push(MeasuredLength { name, begin, end });
    }

    /// Adds a length to measure, perhaps from one thread to another. It implies neither an order nor work.
    pub fn span(&mut self, name: NameId, begin: VertexId, end: VertexId) {
        self.spans.push(MeasuredLength { name, begin, end });
    }

    /// Adds a cause: `to` cannot be before `from`, because of a message, a wake or a step.
    pub fn edge(&mut self, from: VertexId, to: VertexId) {
        self.edges.push((from, to));
    }

    /// Adds a job that waits in a queue from `put` on until a thread is free for it (policy `fifo`). `key` is
    /// the hash by which the two were matched: a key that many jobs share identifies a queue, a distinct key a
    /// job.
    pub fn job(&mut self, put: VertexId, take: VertexId, key: u64) {
        self.jobs.push(QueuedPut { put, take, key });
    }

    /// Notes that `at` has a cause outside of the recording. It keeps its time.
    pub fn outside(&mut self, at: VertexId) {
        self.outside.push(at);
    }

    /// Adds a time in which the thread ran, by records of the kernel. A thread without any is assumed to run
    /// whenever it does not wait for an edge.
    pub fn ran(&mut self, thread: ThreadId, begin: i64, end: i64) {
        self.ran.push(RanInterval { thread, begin, end });
    }

    /// Adds a state of the thread from `begin` to `end`. If any thread has one, the threads of a machine share
    /// its CPUs, which are those on which any of them ever ran.
    pub fn state(&mut self, thread: ThreadId, begin: i64, end: i64, state: ThreadState) {
        self.states.push(RecordedState { thread, begin, end, state });
    }

    /// Notes that frames of the thread are missing or in doubt from `from` to `to`. Metrics leave out all times
    /// that this affects.
    pub fn doubt(&mut self, thread: ThreadId, from: i64, to: i64) {
        self.doubts.push(Doubt { thread, from, to });
    }

    /// Sets the machine of a thread, which is otherwise machine 0.
    pub fn machine(&mut self, thread: ThreadId, machine: u32) {
        self.machines.insert(thread, machine);
    }

    pub(super) fn machine_of(&self, thread: ThreadId) -> u32 {
        self.machines.get(&thread).copied().unwrap_or(0)
    }

    /// The number of vertices.
    pub fn len(&self) -> usize {
        self.vertices.len()
    }

    /// Whether it has no vertex.
    pub fn is_empty(&self) -> bool {
        self.vertices.is_empty()
    }
}

/// Interned names.
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
