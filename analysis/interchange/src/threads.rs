//! The processes and threads that events belong to.

use std::collections::HashMap;

use ppt_tables::{ProcessRow, Processes};

use crate::event::{EventRole, EventRows, EventSchema};
use crate::values::WordColumn;

/// Processes and threads, numbered as they are met.
#[derive(Debug)]
pub(crate) struct Threads {
    known: Processes,
    pids: PidScope,
    /// Numbers of threads: the process, and which of its threads.
    numbers: HashMap<(usize, TraceThread), usize>,
    threads: Vec<(usize, TraceThread)>,
    /// By kind: of its batch, by the keys of the words there.
    batches: Vec<ThreadBatch>,
}

/// Where a pid names one process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PidScope {
    /// In all of the trace.
    Trace,
    /// In the packets of one machine.
    Machine,
}

/// What distinguishes the threads of rows. Captures and segments are keys of their lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct ThreadKey {
    capture: Option<i32>,
    segment: Option<i32>,
    ring: Option<i32>,
    tid: Option<i32>,
    /// Rows of no ring, as of counters, differ by it alone.
    pid: Option<i32>,
}

#[derive(Debug, Default)]
struct ThreadBatch {
    /// The lists of captures and segments that keys are numbers of.
    lists: Option<[WordColumn; 2]>,
    known: HashMap<ThreadKey, usize>,
    /// Rows of one thread often follow each other.
    last: Option<(ThreadKey, usize)>,
}

/// Which thread of a process.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum TraceThread {
    Tid(i32),
    /// Nobody knows whose the ring was: segment, ring.
    Ring(String, i32),
    /// The states of that thread, which are beside what it says of itself.
    States(i32),
    /// None of them: spans of a frame of this name, which may end in any.
    Spans(String),
    /// None of them.
    Process,
}

impl Threads {
    pub fn new(known: Processes, pids: PidScope) -> Threads {
        Threads { known, pids, numbers: HashMap::new(), threads: Vec::new(), batches: Vec::new() }
    }

    /// The next rows of a kind are of these.
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

    /// The process of a thread, and which of its threads it is.
    pub fn get(&self, thread: usize) -> (usize, &TraceThread) {
        let (process, who) = &self.threads[thread];
        (*process, who)
    }

    /// What a thread is called: its name, if one is known.
    pub fn label(&self, thread: usize) -> String {
        let (process, who) = &self.threads[thread];
        let name = |tid: i32| match self.known.thread_name(*process, tid) {
            Some(name) => name.to_owned(),
            None => format!("thread {tid}"),
        };
        // Many threads may share a name.
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

    /// The name of a thread, if one is known.
    pub fn name(&self, thread: usize) -> Option<&str> {
        match &self.threads[thread] {
            (process, TraceThread::Tid(tid)) => self.known.thread_name(*process, *tid),
            _ => None,
        }
    }

    pub fn process(&self, process: usize) -> &ProcessRow {
        self.known.get(process)
    }

    /// The name of a process: its program, and what distinguishes it from others.
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

    /// Whether its number names it: another one may have had it.
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
