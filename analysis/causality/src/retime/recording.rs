//! What was recorded, as the model takes it.

use std::collections::HashMap;

/// Something that has a name: a point, the begin or the end of an interval, an activity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(pub(crate) u32);

/// A thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Thread(pub(crate) u32);

/// A moment of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Vertex(pub(crate) u32);

/// Moments of threads, in any order, and what held between them. Times are nanoseconds of one clock.
#[derive(Debug, Clone, Default)]
pub struct Recording {
    pub(crate) names: Names,
    /// Each thread's process.
    pub(crate) threads: Vec<u32>,
    pub(crate) vertices: Vec<Moment>,
    pub(crate) edges: Vec<(Vertex, Vertex)>,
    pub(crate) jobs: Vec<Put>,
    pub(crate) intervals: Vec<Measured>,
    pub(crate) spans: Vec<Measured>,
    pub(crate) outside: Vec<Vertex>,
    pub(crate) ran: Vec<Ran>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment {
    pub time: i64,
    pub thread: Thread,
    pub name: Name,
}

/// A job that was put into a queue and taken from it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Put {
    pub put: Vertex,
    pub take: Vertex,
    pub key: u64,
}

/// What has a length.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Measured {
    pub name: Name,
    pub begin: Vertex,
    pub end: Vertex,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Ran {
    pub thread: Thread,
    pub begin: i64,
    pub end: i64,
}

impl Recording {
    /// Nothing yet.
    pub fn new() -> Recording {
        Recording::default()
    }

    /// The name that is written so.
    pub fn name(&mut self, name: &str) -> Name {
        self.names.of(name)
    }

    /// Another thread of `process`, which is any number that no other process has.
    pub fn thread(&mut self, process: u32) -> Thread {
        self.threads.push(process);
        Thread(self.threads.len() as u32 - 1)
    }

    /// A moment of a thread. Of those at one time, the one that was added first comes first.
    pub fn vertex(&mut self, thread: Thread, time: i64, name: Name) -> Vertex {
        self.vertices.push(Moment { time, thread, name });
        Vertex(self.vertices.len() as u32 - 1)
    }

    /// An activity: what its thread does from `begin` to `end` can be made faster.
    pub fn interval(&mut self, name: Name, begin: Vertex, end: Vertex) {
        self.intervals.push(Measured { name, begin, end });
    }

    /// A length to measure, perhaps from one thread to another. It orders nothing and is no work.
    pub fn span(&mut self, name: Name, begin: Vertex, end: Vertex) {
        self.spans.push(Measured { name, begin, end });
    }

    /// `to` cannot be before `from`: a message, a wake-up, a step.
    pub fn edge(&mut self, from: Vertex, to: Vertex) {
        self.edges.push((from, to));
    }

    /// A job that waits in a queue from `put` on until a thread is free for it (policy `fifo`). `key` is
    /// the hash by which the two were matched: one that many jobs share names a queue, one of its own
    /// names a job.
    pub fn job(&mut self, put: Vertex, take: Vertex, key: u64) {
        self.jobs.push(Put { put, take, key });
    }

    /// What `at` waits for comes from where nobody recorded, and comes when it came.
    pub fn outside(&mut self, at: Vertex) {
        self.outside.push(at);
    }

    /// The kernel says that the thread ran from `begin` to `end`. A thread for which this is never said
    /// is taken to run whenever it waits for no edge.
    pub fn ran(&mut self, thread: Thread, begin: i64, end: i64) {
        self.ran.push(Ran { thread, begin, end });
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
pub(crate) struct Names {
    written: Vec<String>,
    by: HashMap<String, u32>,
}

impl Names {
    fn of(&mut self, name: &str) -> Name {
        if let Some(&it) = self.by.get(name) {
            return Name(it);
        }
        let it = self.written.len() as u32;
        self.written.push(name.to_owned());
        self.by.insert(name.to_owned(), it);
        Name(it)
    }

    pub fn find(&self, name: &str) -> Option<Name> {
        self.by.get(name).map(|&it| Name(it))
    }

    pub fn written(&self, name: Name) -> &str {
        &self.written[name.0 as usize]
    }
}
