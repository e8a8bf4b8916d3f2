//! The processes and threads of events.

use std::collections::HashMap;

use ppt_tables::{ProcessRow, Processes};

use crate::event::{EventRole, EventRows, EventSchema};
use crate::values::WordColumn;

/// Processes and threads, numbered in the order of their first events.
#[derive(Debug)]
pub(crate) struct Threads {
    known: Processes,
    pids: PidScope,
    /// Numbers of threads, by process and thread.
    numbers: HashMap<(usize, TraceThread), usize>,
    threads: Vec<(usize, TraceThread)>,
    /// Threads of the current batch of each kind.
    batches: Vec<ThreadBatch>,
}

/// The scope in which a pid identifies one process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PidScope {
    /// In the whole trace.
    Trace,
    /// In the packets of one machine.
    Machine,
}

/// Identity of a row's thread. Captures and segments are indices of their lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct ThreadKey {
    capture: Option<i32>,
    segment: Option<i32>,
    ring: Option<i32>,
    tid: Option<i32>,
    /// Distinguishes rows without a ring, such as those of counters.
    pid: Option<i32>,
}

#[derive(Debug, Default)]
struct ThreadBatch {
    /// The lists of captures and segments that keys are indices of.
    lists: Option<[WordColumn; 2]>,
    known: HashMap<ThreadKey, usize>,
    /// Rows of one thread often follow each other.
    last: Option<(ThreadKey, usize)>,
}

/// A thread of a process.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum TraceThread {
    Tid(i32),
    /// The thread of a ring is unknown: segment, ring.
    Ring(String, i32),
    /// States of that thread, which have a track of their own.
    States(i32),
    /// No thread: spans of a frame of this name, which may end in any thread.
    Spans(String),
    /// No thread: the whole process.
    Process,
}

impl Threads {
    pub fn new(known: Processes, pids: PidScope) -> Threads {
        Threads { known, pids, numbers: HashMap::new(), threads: Vec::new(), batches: Vec::new() }
    }

    /// Announces the next rows of a kind.
    pub fn turn_to(&mut self, kind: usize, rows: &EventRows) {
        if self.batches.len() <= kind {
            self.batches.resize_with(kind + 1, ThreadBatch::default);
        }
        let batch = &mut self.batches[kind];
        let lists = [&rows.capture, &rows.segment];
        let is_same = |known: &[WordColumn; 2]| (0..2).all(|at| known[at].is_of_list(lists[at]));
        if !batch.lists.as_ref().is_some_and(is_same) {
            *batch =
                ThreadBatch { lists: Some(lists.map(WordColumn::clone)), ..ThreadBatch::default() };
        }
    }

    /// The number of the thread of a row, or of the spans of its `kind`.
    pub fn thread(&mut self, kind: usize, of: &EventSchema, rows: &EventRows, row: usize) -> usize {
        let key = ThreadKey {
            capture: rows.capture.key(row),
            segment: rows.segment.key(row),
            ring: rows.ring(row),
            tid: rows.tid(row),
            pid: rows.pid(row),
        };
        let batch = &self.batches[kind];
        if let Some((last, number)) = batch.last
            && last == key
        {
            return number;
        }
        let number = batch.known.get(&key).copied().unwrap_or_else(|| self.find(of, rows, row));
        let batch = &mut self.batches[kind];
        batch.known.insert(key, number);
        batch.last = Some((key, number));
        number
    }

    fn find(&mut self, of: &EventSchema, rows: &EventRows, row: usize) -> usize {
        let (capture, segment) = (rows.capture.get(row), rows.segment.get(row));
        let process = self.known.find(capture.unwrap_or(""), segment, rows.pid(row));
        let who = match (rows.tid(row), segment, rows.ring(row)) {
            _ if of.what == EventRole::Spans => {
                TraceThread::Spans(format!("{}.{}", of.buffer, of.frame))
            }
            (Some(tid), _, _) if of.what == EventRole::States => TraceThread::States(tid),
            (Some(tid), _, _) => TraceThread::Tid(tid),
            (None, Some(segment), Some(ring)) => TraceThread::Ring(segment.to_owned(), ring),
            _ => TraceThread::Process,
        };
        let next = self.threads.len();
        let key = (process, who);
        *self.numbers.entry(key).or_insert_with_key(|key| {
            self.threads.push(key.clone());
            next
        })
    }

    /// The process of a thread, and the thread.
    pub fn get(&self, thread: usize) -> (usize, &TraceThread) {
        let (process, who) = &self.threads[thread];
        (*process, who)
    }

    /// Name or number of a thread.
    pub fn label(&self, thread: usize) -> String {
        let (process, who) = &self.threads[thread];
        let name = |tid: i32| match self.known.thread_name(*process, tid) {
            Some(name) => name.to_owned(),
            None => format!("thread {tid}"),
        };
        // Several threads may share a name.
        let numbered = |tid: i32| match self.known.thread_name(*process, tid) {
            Some(name) => format!("{name} {tid}"),
            None => format!("thread {tid}"),
        };
        match who {
            TraceThread::Tid(tid) => name(*tid),
            TraceThread::Ring(segment, ring) => format!("ring {ring} of {segment}"),
            TraceThread::States(tid) => format!("{}: states", numbered(*tid)),
            TraceThread::Spans(name) => name.clone(),
            TraceThread::Process => "process".to_owned(),
        }
    }

    /// The name of a thread, if known.
    pub fn name(&self, thread: usize) -> Option<&str> {
        match &self.threads[thread] {
            (process, TraceThread::Tid(tid)) => self.known.thread_name(*process, *tid),
            _ => None,
        }
    }

    pub fn process(&self, process: usize) -> &ProcessRow {
        self.known.get(process)
    }

    /// The name of a process: its program, and its distinction from other processes.
    pub fn title(&self, process: usize) -> String {
        let is_first = self.is_first_of_its_pid(process);
        let process = self.process(process);
        let program = process.exe.rsplit('/').next().unwrap_or_default();
        let program = if program.is_empty() { "process" } else { program };
        match is_first {
            true if self.known.are_of_several_hosts() => format!("{program} on {}", process.host),
            true => program.to_owned(),
            false => format!("{program} {} on {}", process.pid, process.host),
        }
    }

    /// Whether its pid identifies it: no earlier process had it.
    pub fn is_first_of_its_pid(&self, process: usize) -> bool {
        match self.pids {
            PidScope::Trace => self.known.is_first_of_its_pid(process),
            PidScope::Machine => self.known.is_first_of_its_pid_there(process),
        }
    }

    /// The number of the machine of a thread.
    pub fn machine(&self, thread: usize) -> usize {
        self.known.machine(self.threads[thread].0)
    }
}
