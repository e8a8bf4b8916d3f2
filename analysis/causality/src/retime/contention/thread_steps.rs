//! The steps of threads from vertex to vertex: their running, on slices of a CPU, and waiting.

use std::ops::Range;

use super::slices::CpuSlice;
use crate::retime::cause_edges::Work;
use crate::retime::moments::Moments;
use crate::retime::recorded_run::{RecordedRun, RecordedState, ThreadId, ThreadState};

/// A part of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::retime) enum StepPart {
    /// The thread needs a CPU for `length`. Before the first part of a slice, it has to get one.
    Run { slice: u32, is_first: bool, length: i64 },
    /// The thread needs no CPU. A faster activity makes `scaled` shorter.
    Idle { fixed: i64, scaled: i64 },
}

/// The step from the previous vertex of a thread to a vertex.
#[derive(Debug, Clone, Default)]
pub(in crate::retime) struct ThreadStep {
    /// The parts until the thread waits for the causes of the vertex; all parts if it does not.
    pub before: Range<u32>,
    /// The parts after that wait.
    pub after: Range<u32>,
    /// The thread gave its CPU back in order to wait.
    pub blocked: bool,
    /// The time at which the wait began.
    pub asked: i64,
    /// The time at which the thread was ready again, or else that of the vertex.
    pub ready: i64,
    /// The CPU time before the wait.
    pub ran_before: i64,
    /// The whole CPU time.
    pub ran: i64,
}

/// The steps of all threads.
#[derive(Debug, Default)]
pub(in crate::retime) struct ThreadSteps {
    parts: Vec<StepPart>,
    of_vertices: Vec<ThreadStep>,
    /// For each thread, the time at which its first step begins, if it is known.
    pub begins: Vec<Option<i64>>,
    /// For each thread, the parts after its last vertex; all parts of a thread without vertices.
    pub tails: Vec<Range<u32>>,
    pub machine: Vec<u32>,
}

impl ThreadSteps {
    pub fn step_to(&self, at: u32) -> &ThreadStep {
        &self.of_vertices[at as usize]
    }

    pub fn part(&self, at: u32) -> StepPart {
        self.parts[at as usize]
    }

    /// The number of machines.
    pub fn machines(&self) -> u32 {
        self.machine.iter().map(|machine| machine + 1).max().unwrap_or(0)
    }

    /// `cause_times` has for each vertex the time of its last cause, or `i64::MIN`; `works` is for threads
    /// without records of the kernel.
    pub fn new(
        recording: &RecordedRun,
        moments: &Moments,
        cause_times: &[i64],
        outside: &[bool],
        works: &[Work],
    ) -> (ThreadSteps, Vec<CpuSlice>) {
        let mut states = recording.states.clone();
        states.retain(|state| state.begin < state.end);
        states.sort_by_key(|state| (state.thread, state.begin));
        let mut of_thread: Vec<&[RecordedState]> = vec![&[]; moments.threads];
        for states in states.chunk_by(|one, other| one.thread == other.thread) {
            of_thread[states[0].thread.0 as usize] = states;
        }
        let (thread_steps, slices) = (ThreadSteps::default(), Vec::new());
        let mut builder =
            ThreadStepBuilder { moments, cause_times, outside, works, thread_steps, slices };
        builder.thread_steps.of_vertices = vec![ThreadStep::default(); moments.len()];
        for thread in 0..moments.threads as u32 {
            let machine = recording.machines.get(&ThreadId(thread));
            builder.thread(thread, machine.copied().unwrap_or(0), of_thread[thread as usize]);
        }
        (builder.thread_steps, builder.slices)
    }
}

/// A part of a step, its begin and its end.
type TimedPart = (StepPart, i64, i64);

struct ThreadStepBuilder<'a> {
    moments: &'a Moments,
    cause_times: &'a [i64],
    outside: &'a [bool],
    works: &'a [Work],
    thread_steps: ThreadSteps,
    slices: Vec<CpuSlice>,
}

/// A position in the states of a thread.
struct StateCursor<'a> {
    states: &'a [RecordedState],
    next: usize,
    machine: u32,
    /// The slice of the next state, if it has begun.
    slice: Option<u32>,
    /// The last slice.
    last: Option<u32>,
    /// The time since which the thread is ready.
    ready: Option<i64>,
    was_cut: bool,
}

impl StateCursor<'_> {
    /// Whether the thread, which is ready in this state, runs next, before `to`.
    fn gets_cpu(&self, state: &RecordedState, to: i64) -> bool {
        let runs = self.states.get(self.next + 1).is_some_and(|next| {
            next.begin == state.end && matches!(next.state, ThreadState::Running { .. })
        });
        runs && state.end < to
    }

    /// Passes this state.
    fn pass(&mut self, state: &RecordedState) {
        self.was_cut = matches!(state.state, ThreadState::Running { .. })
            || self.was_cut && state.state == ThreadState::Ready;
        self.slice = None;
        self.next += 1;
    }
}

/// A part without a CPU that stays as long as it is.
fn fixed(from: i64, to: i64) -> TimedPart {
    (StepPart::Idle { fixed: to - from, scaled: 0 }, from, to)
}

/// A part without a CPU that a faster activity makes shorter.
fn scaled(from: i64, to: i64) -> TimedPart {
    (StepPart::Idle { fixed: 0, scaled: to - from }, from, to)
}

impl ThreadStepBuilder<'_> {
    fn thread(&mut self, thread: u32, machine: u32, states: &[RecordedState]) {
        let mut cursor = StateCursor {
            states,
            next: 0,
            machine,
            slice: None,
            last: None,
            ready: None,
            was_cut: false,
        };
        let first = self.moments.first(thread);
        let begins = states.first().map(|state| state.begin);
        let begins = begins
            .filter(|&begin| first.is_none_or(|first| begin <= self.moments.time[first as usize]));
        self.thread_steps.begins.push(begins);
        self.thread_steps.machine.push(machine);
        let mut from = begins;
        let mut at = first;
        while let Some(here) = at {
            let to = self.moments.time[here as usize];
            let step = match from {
                Some(from) if !states.is_empty() => {
                    let parts = self.parts(&mut cursor, from, to);
                    self.step(here, to, parts)
                }
                _ => self.unseen(here, to),
            };
            self.thread_steps.of_vertices[here as usize] = step;
            from = Some(to);
            at = self.moments.after(here);
        }
        let end = states.last().map_or(i64::MIN, |state| state.end);
        let from = from.unwrap_or(end);
        let tail = if states.is_empty() { Vec::new() } else { self.parts(&mut cursor, from, end) };
        let tail = self.keep(&tail);
        self.thread_steps.tails.push(tail);
    }

    /// The parts between two times of a thread.
    fn parts(&mut self, cursor: &mut StateCursor<'_>, from: i64, to: i64) -> Vec<TimedPart> {
        let mut parts: Vec<TimedPart> = Vec::new();
        let mut now = from;
        while now < to {
            let Some(state) = cursor.states.get(cursor.next) else {
                parts.push(scaled(now, to));
                break;
            };
            if state.begin > now {
                let until = state.begin.min(to);
                parts.push(scaled(now, until));
                now = until;
                continue;
            }
            let until = state.end.min(to);
            if until > now {
                parts.extend(self.state_part(cursor, state, (now, until), to));
            }
            now = now.max(until);
            if state.end <= to {
                cursor.pass(state);
            }
        }
        parts
    }

    /// The part from `now` to `until`, during a state of the cursor. None if the thread is ready, and has a CPU before
    /// `to`.
    fn state_part(
        &mut self,
        cursor: &mut StateCursor<'_>,
        state: &RecordedState,
        (now, until): (i64, i64),
        to: i64,
    ) -> Option<TimedPart> {
        match state.state {
            ThreadState::Running { cpu } => Some(self.run(cursor, cpu, (now, until), state.end)),
            ThreadState::Ready if cursor.gets_cpu(state, to) => {
                cursor.ready = Some(now);
                None
            }
            // A vertex lies here, so that by its own clock the thread has a CPU.
            ThreadState::Ready => Some(fixed(now, until)),
            ThreadState::Blocked | ThreadState::WaitsForThread => Some(fixed(now, until)),
            ThreadState::Unknown => Some(scaled(now, until)),
        }
    }

    /// The part from `now` to `until` on a CPU, which the thread has until `end`.
    fn run(
        &mut self,
        cursor: &mut StateCursor<'_>,
        cpu: u32,
        (now, until): (i64, i64),
        end: i64,
    ) -> TimedPart {
        let is_first = cursor.slice.is_none();
        let slice = match cursor.slice {
            Some(slice) => slice,
            None => self.slice(cursor, cpu, now, end),
        };
        cursor.slice = Some(slice);
        (StepPart::Run { slice, is_first, length: until - now }, now, until)
    }

    fn slice(&mut self, cursor: &mut StateCursor<'_>, cpu: u32, begin: i64, end: i64) -> u32 {
        let number = self.slices.len() as u32;
        let next = cursor.states.get(cursor.next + 1);
        let is_cut = next.is_some_and(|next| next.begin == end && next.state == ThreadState::Ready);
        let ready = cursor.ready.take().unwrap_or(begin);
        self.slices.push(CpuSlice {
            machine: cursor.machine,
            cpu,
            ready,
            begin,
            end,
            is_cut,
            follows_cut: cursor.was_cut,
            next: number,
            queued: ready,
            granted: begin,
            among: 0,
            rank: 0,
        });
        if let Some(last) = cursor.last.replace(number) {
            self.slices[last as usize].next = number;
        }
        number
    }

    fn keep(&mut self, parts: &[TimedPart]) -> Range<u32> {
        let from = self.thread_steps.parts.len() as u32;
        self.thread_steps.parts.extend(parts.iter().map(|timed| timed.0));
        from..self.thread_steps.parts.len() as u32
    }

    fn step(&mut self, at: u32, time: i64, parts: Vec<TimedPart>) -> ThreadStep {
        let (caused, outside) = (self.cause_times[at as usize], self.outside[at as usize]);
        let waits = |timed: &TimedPart| matches!(timed.0, StepPart::Idle { scaled: 0, .. });
        let wait = if outside && caused == i64::MIN {
            parts.iter().rposition(waits)
        } else {
            let ends_wait =
                |timed: &TimedPart| waits(timed) && timed.1 <= caused && caused <= timed.2;
            parts.iter().position(ends_wait).filter(|_| caused != i64::MIN)
        };
        let ran = |parts: &[TimedPart]| -> i64 {
            let length = |timed: &TimedPart| match timed.0 {
                StepPart::Run { length, .. } => length,
                StepPart::Idle { .. } => 0,
            };
            parts.iter().map(length).sum()
        };
        let (before, after) = match wait {
            Some(wait) => (&parts[..wait], &parts[wait + 1..]),
            None => (&parts[..], &[][..]),
        };
        let (ran_before, ran_after) = (ran(before), ran(after));
        let (asked, ready) = wait.map_or((time, time), |at| (parts[at].1, parts[at].2));
        let (before, after) = (self.keep(before), self.keep(after));
        let (blocked, ran) = (wait.is_some(), ran_before + ran_after);
        ThreadStep { before, after, blocked, asked, ready, ran_before, ran }
    }

    /// The step of a thread without records of the kernel.
    fn unseen(&mut self, at: u32, time: i64) -> ThreadStep {
        let Some(before) = self.moments.before(at) else {
            return ThreadStep { asked: i64::MIN, ready: time, ..ThreadStep::default() };
        };
        let begin = self.moments.time[before as usize];
        let mut work = self.works[at as usize];
        let asked = begin + work.full;
        if self.cause_times[at as usize].max(begin) <= asked {
            // It did not wait: the whole time is work.
            let full = time - begin;
            work = Work { full, ran: work.ran.min(full) };
        }
        let idle = StepPart::Idle { fixed: work.full - work.ran, scaled: work.ran };
        let before = self.keep(&[(idle, begin, begin + work.full)]);
        let asked = begin + work.full;
        ThreadStep { before, asked, ready: time, ran: work.ran, ..ThreadStep::default() }
    }
}
