//! The division of a recording at missing frames.
//!
//! While frames are missing, the run is not replayed: vertices keep their recorded times. Between two such
//! times lies a run of its own: threads begin at their recorded times, with queues and CPUs of their own. So a
//! gain in one part does not move the next, in which otherwise one thread would be ahead by its gain and
//! another would not.

use std::collections::HashMap;

use super::doubtful_times::DoubtfulTimes;
use super::recorded_run::{MeasuredLength, RecordedRun, ThreadId, VertexId};

impl RecordedRun {
    /// Divides the recording at all doubtful times, which losses cause.
    pub(super) fn split_at_losses(&mut self, doubtful: &mut DoubtfulTimes) {
        if self.doubts.is_empty() {
            return;
        }
        let mut parts = Parts::new(self);
        let threads: Vec<ThreadId> = self.vertices.iter().map(|vertex| vertex.thread).collect();
        let part_number = |doubtful: &DoubtfulTimes, thread: ThreadId, time: i64| {
            let unknown = doubtful.unknown(thread);
            let before = unknown.partition_point(|stretch| stretch.1 < time);
            let is_within = unknown.get(before).is_some_and(|stretch| stretch.0 <= time);
            2 * before as u32 + u32::from(is_within)
        };
        let part_of: Vec<(u32, Option<usize>)> = (self.vertices.iter())
            .map(|vertex| {
                let part = part_number(doubtful, vertex.thread, vertex.time);
                (part, doubtful.group(vertex.thread.0))
            })
            .collect();
        for (index, &(part, _)) in part_of.iter().enumerate() {
            let thread = parts.thread(self, doubtful, threads[index], part);
            self.vertices[index].thread = thread;
            if part % 2 == 1 {
                self.outside.push(VertexId(index as u32));
            }
        }
        let outside = &mut self.outside;
        let mut is_within_part = |from: VertexId, to: VertexId| {
            let is_within = part_of[from.0 as usize] == part_of[to.0 as usize]
                && part_of[to.0 as usize].0.is_multiple_of(2);
            if !is_within {
                outside.push(to);
            }
            is_within
        };
        self.edges.retain(|&(from, to)| is_within_part(from, to));
        self.jobs.retain(|job| is_within_part(job.put, job.take));
        let part: Vec<u32> = part_of.iter().map(|&(part, _)| part).collect();
        self.cut_intervals(&threads, &part);
        for mut interval in std::mem::take(&mut self.ran) {
            for (thread, begin, end) in
                parts.pieces(self, doubtful, interval.thread, (interval.begin, interval.end))
            {
                (interval.thread, interval.begin, interval.end) = (thread, begin, end);
                self.ran.push(interval);
            }
        }
        for mut state in std::mem::take(&mut self.states) {
            for (thread, begin, end) in
                parts.pieces(self, doubtful, state.thread, (state.begin, state.end))
            {
                (state.thread, state.begin, state.end) = (thread, begin, end);
                self.states.push(state);
            }
        }
    }

    /// Divides intervals among parts. `threads` and `part` are those of each vertex before the division.
    fn cut_intervals(&mut self, threads: &[ThreadId], part: &[u32]) {
        let mut ends: HashMap<(ThreadId, u32), (VertexId, VertexId)> = HashMap::new();
        for (index, vertex) in self.vertices.iter().enumerate() {
            let time = |at: VertexId| self.vertices[at.0 as usize].time;
            let own = VertexId(index as u32);
            let (first, last) = ends.entry((threads[index], part[index])).or_insert((own, own));
            if vertex.time < time(*first) {
                *first = own;
            }
            if vertex.time >= time(*last) {
                *last = own;
            }
        }
        for interval in &self.intervals {
            let [begin, end] = [interval.begin, interval.end].map(|at| at.0 as usize);
            let thread = threads[begin];
            if thread != threads[end] || part[begin] >= part[end] {
                continue;
            }
            for number in (part[begin]..=part[end]).filter(|part| part % 2 == 0) {
                let Some(&(first, last)) = ends.get(&(thread, number)) else { continue };
                let begin = if number == part[begin] { interval.begin } else { first };
                let end = if number == part[end] { interval.end } else { last };
                self.pieces.push(MeasuredLength { begin, end, ..*interval });
            }
        }
    }
}

/// The threads, processes and machines of parts, by their original and the number of the part. Odd parts are
/// the doubtful times.
struct Parts {
    /// Processes and machines of parts are numbered from here.
    first_process: u32,
    first_machine: u32,
    threads: HashMap<(ThreadId, u32), ThreadId>,
    processes: HashMap<(u32, Option<usize>, u32), u32>,
    machines: HashMap<(u32, Option<usize>, u32), u32>,
}

impl Parts {
    fn new(recording: &RecordedRun) -> Parts {
        Parts {
            first_process: recording.threads.iter().max().map_or(0, |last| last + 1),
            first_machine: recording.machines.values().max().map_or(1, |last| last + 1),
            threads: HashMap::new(),
            processes: HashMap::new(),
            machines: HashMap::new(),
        }
    }

    /// The thread of a part. The first part of a thread is the thread itself.
    fn thread(
        &mut self,
        recording: &mut RecordedRun,
        doubtful: &mut DoubtfulTimes,
        original: ThreadId,
        part: u32,
    ) -> ThreadId {
        if part == 0 {
            return original;
        }
        if let Some(&thread) = self.threads.get(&(original, part)) {
            return thread;
        }
        let group = doubtful.group(original.0);
        let process = recording.threads[original.0 as usize];
        let another = self.first_process + self.processes.len() as u32;
        let process = *self.processes.entry((process, group, part)).or_insert(another);
        let thread = recording.thread(process);
        let machine = recording.machine_of(original);
        let another = self.first_machine + self.machines.len() as u32;
        let machine = *self.machines.entry((machine, group, part)).or_insert(another);
        recording.machine(thread, machine);
        doubtful.add_part(original);
        self.threads.insert((original, part), thread);
        thread
    }

    /// Divides a time of a thread among its parts. Returns (thread, begin, end).
    fn pieces(
        &mut self,
        recording: &mut RecordedRun,
        doubtful: &mut DoubtfulTimes,
        original: ThreadId,
        (begin, end): (i64, i64),
    ) -> Vec<(ThreadId, i64, i64)> {
        let unknown = doubtful.unknown(original);
        let first = unknown.partition_point(|stretch| stretch.1 < begin);
        let mut bounds = vec![begin];
        let mut part = 2 * first as u32;
        let mut numbers = Vec::new();
        for &(from, to) in unknown[first..].iter().take_while(|stretch| stretch.0 < end) {
            numbers.push(part);
            bounds.push(from.max(begin));
            numbers.push(part + 1);
            bounds.push(to.min(end));
            part += 2;
        }
        numbers.push(part);
        bounds.push(end);
        let pieces = bounds.windows(2).zip(numbers).filter(|(piece, _)| piece[0] < piece[1]);
        let pieces: Vec<_> = pieces.map(|(piece, part)| (part, piece[0], piece[1])).collect();
        let on_thread =
            |(part, begin, end)| (self.thread(recording, doubtful, original, part), begin, end);
        pieces.into_iter().map(on_thread).collect()
    }
}
