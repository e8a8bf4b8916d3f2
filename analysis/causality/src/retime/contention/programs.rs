//! What each thread does between its vertices: it runs, on slices of a CPU, and it waits.

use std::ops::Range;

use super::slices::CpuSlice;
use crate::retime::cause_edges::Work;
use crate::retime::moments::Moments;
use crate::retime::recording::{RecordedState, Recording, ThreadId, ThreadState};

/// A piece of what a thread does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::retime) enum Segment {
    /// It needs a CPU for so long. The first of a slice has to get one.
    Run { slice: u32, is_first: bool, length: i64 },
    /// It needs none. A faster activity makes `scaled` shorter.
    Idle { fixed: i64, scaled: i64 },
}

/// The way to a vertex from the one before in its thread.
#[derive(Debug, Clone, Default)]
pub(in crate::retime) struct Program {
    /// Until the thread asks for what the vertex waits for; for others, all of it.
    pub before: Range<u32>,
    /// From when it is ready to run again.
    pub after: Range<u32>,
    /// The thread gave its CPU back to wait for that.
    pub blocked: bool,
    /// When it asked.
    pub asked: i64,
    /// When it was ready to run again, or else at the vertex.
    pub there: i64,
    /// For how long it ran before it asked, and at all.
    pub ran_before: i64,
    pub ran: i64,
}

/// The programs of all threads.
#[derive(Debug, Default)]
pub(in crate::retime) struct Programs {
    segments: Vec<Segment>,
    each: Vec<Program>,
    /// For each thread, when its first program begins, if that is known.
    pub begins: Vec<Option<i64>>,
    /// For each thread what it does after its last vertex; of one without vertices, all.
    pub tails: Vec<Range<u32>>,
    pub machine: Vec<u32>,
}

impl Programs {
    pub fn of(&self, at: u32) -> &Program {
        &self.each[at as usize]
    }

    pub fn segment(&self, at: u32) -> Segment {
        self.segments[at as usize]
    }

    /// So many machines.
    pub fn machines(&self) -> u32 {
        self.machine.iter().map(|machine| machine + 1).max().unwrap_or(0)
    }

    /// `came` has for each vertex when the last of what it needs was sent, or `i64::MIN`; `works` what is known
    /// of threads that the kernel's frames do not mention.
    pub fn new(
        recording: &Recording,
        moments: &Moments,
        came: &[i64],
        outside: &[bool],
        works: &[Work],
    ) -> (Programs, Vec<CpuSlice>) {
        let mut states = recording.states.clone();
        states.retain(|state| state.begin < state.end);
        states.sort_by_key(|state| (state.thread, state.begin));
        let mut of_thread: Vec<&[RecordedState]> = vec![&[]; moments.threads];
        for states in states.chunk_by(|one, other| one.thread == other.thread) {
            of_thread[states[0].thread.0 as usize] = states;
        }
        let (programs, slices) = (Programs::default(), Vec::new());
        let mut builder = ProgramBuilder { moments, came, outside, works, programs, slices };
        builder.programs.each = vec![Program::default(); moments.len()];
        for thread in 0..moments.threads as u32 {
            let machine = recording.machines.get(&ThreadId(thread));
            builder.thread(thread, machine.copied().unwrap_or(0), of_thread[thread as usize]);
        }
        (builder.programs, builder.slices)
    }
}

/// A segment and when it was.
type TimedSegment = (Segment, i64, i64);

struct ProgramBuilder<'a> {
    moments: &'a Moments,
    came: &'a [i64],
    outside: &'a [bool],
    works: &'a [Work],
    programs: Programs,
    slices: Vec<CpuSlice>,
}

/// The time up to which the states of a thread were used.
struct StateCursor<'a> {
    states: &'a [RecordedState],
    next: usize,
    machine: u32,
    /// The slice of the state that comes next, if it has begun.
    slice: Option<u32>,
    last: Option<u32>,
    /// From when on the thread is ready.
    ready: Option<i64>,
    was_cut: bool,
}

impl ProgramBuilder<'_> {
    fn thread(&mut self, thread: u32, machine: u32, states: &[RecordedState]) {
        let mut told = StateCursor {
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
        self.programs.begins.push(begins);
        self.programs.machine.push(machine);
        let mut from = begins;
        let mut at = first;
        while let Some(here) = at {
            let to = self.moments.time[here as usize];
            let program = match from {
                Some(from) if !states.is_empty() => {
                    let segments = self.segments(&mut told, from, to);
                    self.program(here, to, segments)
                }
                _ => self.unseen(here, to),
            };
            self.programs.each[here as usize] = program;
            from = Some(to);
            at = self.moments.after(here);
        }
        let end = states.last().map_or(i64::MIN, |state| state.end);
        let from = from.unwrap_or(end);
        let rest = if states.is_empty() { Vec::new() } else { self.segments(&mut told, from, end) };
        let tail = self.keep(&rest);
        self.programs.tails.push(tail);
    }

    /// What lies between two times of a thread.
    fn segments(&mut self, told: &mut StateCursor<'_>, from: i64, to: i64) -> Vec<TimedSegment> {
        let mut all: Vec<TimedSegment> = Vec::new();
        let mut now = from;
        let idle = |length: i64, is_scaled: bool| Segment::Idle {
            fixed: if is_scaled { 0 } else { length },
            scaled: if is_scaled { length } else { 0 },
        };
        while now < to {
            let Some(state) = told.states.get(told.next) else {
                all.push((idle(to - now, true), now, to));
                break;
            };
            if state.begin > now {
                let until = state.begin.min(to);
                all.push((idle(until - now, true), now, until));
                now = until;
                continue;
            }
            let until = state.end.min(to);
            if until > now {
                match state.state {
                    ThreadState::Running { cpu } => {
                        let is_first = told.slice.is_none();
                        let slice = match told.slice {
                            Some(slice) => slice,
                            None => self.slice(told, cpu, now, state.end),
                        };
                        told.slice = Some(slice);
                        let length = until - now;
                        all.push((Segment::Run { slice, is_first, length }, now, until));
                    }
                    ThreadState::Ready => {
                        let next = told.states.get(told.next + 1);
                        let runs = next.is_some_and(|next| {
                            next.begin == state.end
                                && matches!(next.state, ThreadState::Running { .. })
                        });
                        if runs && state.end < to {
                            told.ready = Some(now);
                        } else {
                            // A vertex of a thread that has no CPU: by its clock, it has one.
                            all.push((idle(until - now, false), now, until));
                        }
                    }
                    ThreadState::Blocked => all.push((idle(until - now, false), now, until)),
                    ThreadState::Unknown => all.push((idle(until - now, true), now, until)),
                }
            }
            now = now.max(until);
            if state.end <= to {
                told.was_cut = matches!(state.state, ThreadState::Running { .. })
                    || told.was_cut && state.state == ThreadState::Ready;
                told.slice = None;
                told.next += 1;
            }
        }
        all
    }

    fn slice(&mut self, told: &mut StateCursor<'_>, cpu: u32, begin: i64, end: i64) -> u32 {
        let number = self.slices.len() as u32;
        let next = told.states.get(told.next + 1);
        let is_cut = next.is_some_and(|next| next.begin == end && next.state == ThreadState::Ready);
        let ready = told.ready.take().unwrap_or(begin);
        self.slices.push(CpuSlice {
            machine: told.machine,
            cpu,
            ready,
            begin,
            end,
            is_cut,
            follows_cut: told.was_cut,
            next: number,
            queued: ready,
            granted: begin,
            among: 0,
            place: 0,
        });
        if let Some(last) = told.last.replace(number) {
            self.slices[last as usize].next = number;
        }
        number
    }

    fn keep(&mut self, segments: &[TimedSegment]) -> Range<u32> {
        let from = self.programs.segments.len() as u32;
        self.programs.segments.extend(segments.iter().map(|timed| timed.0));
        from..self.programs.segments.len() as u32
    }

    fn program(&mut self, at: u32, time: i64, segments: Vec<TimedSegment>) -> Program {
        let (came, outside) = (self.came[at as usize], self.outside[at as usize]);
        let waits = |timed: &TimedSegment| matches!(timed.0, Segment::Idle { scaled: 0, .. });
        let wait = if outside && came == i64::MIN {
            segments.iter().rposition(waits)
        } else {
            let its = |timed: &TimedSegment| waits(timed) && timed.1 <= came && came <= timed.2;
            segments.iter().position(its).filter(|_| came != i64::MIN)
        };
        let ran = |segments: &[TimedSegment]| -> i64 {
            let length = |timed: &TimedSegment| match timed.0 {
                Segment::Run { length, .. } => length,
                Segment::Idle { .. } => 0,
            };
            segments.iter().map(length).sum()
        };
        let (before, after) = match wait {
            Some(wait) => (&segments[..wait], &segments[wait + 1..]),
            None => (&segments[..], &[][..]),
        };
        let (ran_before, ran_after) = (ran(before), ran(after));
        let (asked, there) = wait.map_or((time, time), |at| (segments[at].1, segments[at].2));
        let (before, after) = (self.keep(before), self.keep(after));
        let (blocked, ran) = (wait.is_some(), ran_before + ran_after);
        Program { before, after, blocked, asked, there, ran_before, ran }
    }

    /// The kernel's frames do not mention it.
    fn unseen(&mut self, at: u32, time: i64) -> Program {
        let Some(before) = self.moments.before(at) else {
            return Program { asked: i64::MIN, there: time, ..Program::default() };
        };
        let begin = self.moments.time[before as usize];
        let mut work = self.works[at as usize];
        let asked = begin + work.full;
        if self.came[at as usize].max(begin) <= asked {
            // It waited for nothing: all of it is its own.
            let full = time - begin;
            work = Work { full, ran: work.ran.min(full) };
        }
        let idle = Segment::Idle { fixed: work.full - work.ran, scaled: work.ran };
        let before = self.keep(&[(idle, begin, begin + work.full)]);
        let asked = begin + work.full;
        Program { before, asked, there: time, ran: work.ran, ..Program::default() }
    }
}
