//! The scheduling of CPUs: how threads get them, and how long they keep them.

use super::contended_engine::{ContendedEngine, ContentionEvent, QueueEntry};
use super::ready_threads::WaitingThread;
use super::thread_steps::StepPart;
use crate::retime::moments::NONE;

impl ContendedEngine<'_> {
    /// Runs a thread until it is done or preempted, if it has a CPU; otherwise, it enters the queue.
    pub(super) fn run_on(&mut self, thread: u32, now: i64, needs: i64) {
        let index = thread as usize;
        if !self.threads[index].has_cpu && !self.take_over(thread) {
            self.request_cpu(thread, now);
            return;
        }
        if self.threads[index].budget <= 0 {
            let machine = self.threads[index].machine as usize;
            let none_waits = self.machines[machine].queue.is_empty();
            if none_waits && !self.threads[index].is_forced {
                self.draw_budget(thread, 0);
            } else {
                self.preempt(thread, now);
                return;
            }
        }
        let state = &mut self.threads[index];
        state.since = now;
        let until = now + needs.min(state.budget);
        self.schedule(until, ContentionEvent::Done { thread });
    }

    /// The slice that the next part of a step begins, if none of that part has run yet.
    fn own_slice(&self, thread: u32) -> Option<u32> {
        let state = &self.threads[thread as usize];
        if state.parts.is_empty() {
            return None;
        }
        match self.contention.thread_steps.part(state.parts.start) {
            StepPart::Run { slice, is_first: true, length }
                if state.left.is_none_or(|left| {
                    left == (length as f64 / self.speed(state.to)).round() as i64
                }) =>
            {
                Some(slice)
            }
            _ => None,
        }
    }

    /// Gives a thread the CPU on which the recorded thread went on, if that is idle: another thread, which did
    /// what the recorded thread did before, has just given it back. Returns whether it has a CPU.
    fn take_over(&mut self, thread: u32) -> bool {
        let state = &self.threads[thread as usize];
        let machine = state.machine as usize;
        if state.last == NONE || state.left.is_none() || self.machines[machine].idle == 0 {
            return false;
        }
        let StepPart::Run { slice, is_first: false, .. } =
            self.contention.thread_steps.part(state.parts.start)
        else {
            return false;
        };
        let last = state.last;
        let rest = self.contention.slices.of(slice).end - self.model.moments.time[last as usize];
        if rest <= 0 {
            return false;
        }
        self.machines[machine].idle -= 1;
        let state = &mut self.threads[thread as usize];
        (state.has_cpu, state.gave_cpu_at) = (true, i64::MIN);
        self.draw_budget(thread, rest);
        if self.contention.slices.of(slice).is_cut {
            let state = &mut self.threads[thread as usize];
            (state.budget_from_slice, state.budget, state.is_forced) = (slice, rest, true);
        }
        true
    }

    /// Lets a thread without a CPU enter the queue: with the slice that it begins, or like a woken thread.
    fn request_cpu(&mut self, thread: u32, now: i64) {
        let machine = self.threads[thread as usize].machine as usize;
        let entry = match self.own_slice(thread) {
            Some(slice) => QueueEntry { model_slice: slice, is_own: true },
            None => {
                let woken = &self.contention.slices.machines[machine].woken;
                let model_slice = self.machines[machine].woken.next(woken).unwrap_or(NONE);
                QueueEntry { model_slice, is_own: false }
            }
        };
        self.enter(thread, now, entry);
    }

    /// Takes the CPU from a thread, and lets it enter the queue again.
    fn preempt(&mut self, thread: u32, now: i64) {
        let budget_from_slice = self.threads[thread as usize].budget_from_slice;
        let entry = match (self.own_slice(thread), budget_from_slice) {
            (Some(slice), _) => QueueEntry { model_slice: slice, is_own: true },
            (None, NONE) => QueueEntry { model_slice: NONE, is_own: false },
            (None, cut) => {
                QueueEntry { model_slice: self.contention.slices.of(cut).next, is_own: false }
            }
        };
        self.give_back(thread, now);
        self.enter(thread, now, entry);
    }

    /// Lets a thread enter the queue, after the delay of its model slice.
    fn enter(&mut self, thread: u32, now: i64, entry: QueueEntry) {
        self.threads[thread as usize].entry = entry;
        let slices = &self.contention.slices;
        let late = if entry.model_slice == NONE { 0 } else { slices.of(entry.model_slice).late() };
        if late > 0 {
            self.schedule(now + late, ContentionEvent::Ready { thread });
        } else {
            self.enqueue(thread, now);
        }
    }

    /// Puts a thread into the queue of its machine.
    pub(super) fn enqueue(&mut self, thread: u32, now: i64) {
        let state = &self.threads[thread as usize];
        let (QueueEntry { model_slice, is_own }, at) = (state.entry, state.machine);
        let slices = &self.contention.slices;
        let machine = &mut self.machines[at as usize];
        let waiting = WaitingThread { thread, model_slice, is_own, since: now };
        machine.queue.push(waiting, slices, &slices.machines[at as usize]);
        self.mark_dirty(at);
    }

    /// Gives idle CPUs to the first ready threads, after the time of a switch.
    pub(super) fn dispatch(&mut self, at: usize, now: i64) {
        let slices = &self.contention.slices;
        while self.machines[at].idle > 0 {
            let Some(next) = self.machines[at].queue.pop(slices) else { break };
            let machine = &mut self.machines[at];
            machine.idle -= 1;
            let waits = now > next.since;
            let recorded = (next.model_slice != NONE).then(|| slices.of(next.model_slice));
            let model_slice = match recorded {
                Some(slice) if next.is_own && slice.waited() == waits => Some(next.model_slice),
                _ => {
                    let which = usize::from(waits);
                    machine.switched[which].next(&slices.machines[at].switched[which])
                }
            };
            let switch = model_slice.map_or(0, |number| slices.of(number).switch());
            let state = &mut self.threads[next.thread as usize];
            state.has_cpu = true;
            state.gave_cpu_at = i64::MIN;
            let own = next.is_own.then_some(next.model_slice);
            self.draw_budget(next.thread, own.map_or(0, |slice| slices.of(slice).length()));
            if let Some(slice) = own.filter(|&slice| slices.of(slice).is_cut) {
                let state = &mut self.threads[next.thread as usize];
                state.budget_from_slice = slice;
                state.budget = slices.of(slice).length();
                state.is_forced = true;
            }
            self.schedule(now + switch, ContentionEvent::Resumes { thread: next.thread });
        }
    }

    /// Gives a thread the budget of the next preempted slice, but at least `least`.
    fn draw_budget(&mut self, thread: u32, least: i64) {
        let state = &mut self.threads[thread as usize];
        let machine = state.machine as usize;
        let slices = &self.contention.slices;
        let drawn = self.machines[machine].cut.next(&slices.machines[machine].cut);
        state.budget_from_slice = drawn.unwrap_or(NONE);
        state.budget = drawn.map_or(i64::MAX / 4, |slice| slices.of(slice).length()).max(least);
        state.is_forced = false;
    }

    pub(super) fn give_back(&mut self, thread: u32, now: i64) {
        let state = &mut self.threads[thread as usize];
        if std::mem::take(&mut state.has_cpu) {
            state.gave_cpu_at = now;
            let machine = state.machine;
            self.machines[machine as usize].idle += 1;
            self.mark_dirty(machine);
        }
    }

    /// Notes that a thread may get a CPU of a machine.
    fn mark_dirty(&mut self, machine: u32) {
        if !std::mem::replace(&mut self.machines[machine as usize].is_dirty, true) {
            self.dirty.push(machine);
        }
    }
}
