//! How threads come to CPUs, and how long they keep them.

use super::engine::{ContendedEngine, ContentionEvent};
use super::programs::Segment;
use super::queue::WaitingThread;
use crate::retime::moments::NONE;

impl ContendedEngine<'_> {
    /// It runs for as long as it needs to and may, if it has a CPU.
    pub(super) fn run_on(&mut self, carrier: u32, now: i64, needs: i64) {
        let slot = carrier as usize;
        if !self.carriers[slot].has_cpu {
            self.want(carrier, now);
            return;
        }
        if self.carriers[slot].budget <= 0 {
            let machine = self.carriers[slot].machine as usize;
            let nobody = self.machines[machine].queue.is_empty();
            if nobody && !self.carriers[slot].is_forced {
                self.draw(carrier, 0);
            } else {
                self.give_way(carrier, now);
                return;
            }
        }
        let one = &mut self.carriers[slot];
        one.since = now;
        let until = now + needs.min(one.budget);
        self.at(until, ContentionEvent::Done { carrier });
    }

    /// The slice that comes next, if it is the first of it that comes.
    fn own(&self, carrier: u32) -> Option<u32> {
        let one = &self.carriers[carrier as usize];
        if one.segments.is_empty() {
            return None;
        }
        match self.known.programs.segment(one.segments.start) {
            Segment::Run { slice, is_first: true, length }
                if one.left.is_none_or(|left| {
                    left == (length as f64 / self.speed(one.to)).round() as i64
                }) =>
            {
                Some(slice)
            }
            _ => None,
        }
    }

    fn want(&mut self, carrier: u32, now: i64) {
        let machine = self.carriers[carrier as usize].machine as usize;
        let like = match self.own(carrier) {
            Some(slice) => (slice, true),
            None => {
                let woken = &self.known.slices.machines[machine].woken;
                (self.machines[machine].woken.next(woken).unwrap_or(NONE), false)
            }
        };
        self.enter(carrier, now, like);
    }

    fn give_way(&mut self, carrier: u32, now: i64) {
        let cut_like = self.carriers[carrier as usize].cut_like;
        let like = match (self.own(carrier), cut_like) {
            (Some(slice), _) => (slice, true),
            (None, NONE) => (NONE, false),
            (None, cut) => (self.known.slices.of(cut).next, false),
        };
        self.give_back(carrier, now);
        self.enter(carrier, now, like);
    }

    fn enter(&mut self, carrier: u32, now: i64, like: (u32, bool)) {
        self.carriers[carrier as usize].entry = like;
        let late = if like.0 == NONE { 0 } else { self.known.slices.of(like.0).late() };
        if late > 0 {
            self.at(now + late, ContentionEvent::Ready { carrier });
        } else {
            self.enqueue(carrier, now);
        }
    }

    pub(super) fn enqueue(&mut self, carrier: u32, now: i64) {
        let one = &self.carriers[carrier as usize];
        let ((like, is_own), at) = (one.entry, one.machine);
        let known = &self.known.slices;
        let machine = &mut self.machines[at as usize];
        let waiting = WaitingThread { carrier, like, is_own, since: now };
        machine.queue.push(waiting, known, &known.machines[at as usize]);
        self.changes(at);
    }

    pub(super) fn dispatch(&mut self, at: usize, now: i64) {
        let slices = &self.known.slices;
        while self.machines[at].idle > 0 {
            let Some(next) = self.machines[at].queue.pop(slices) else { break };
            let machine = &mut self.machines[at];
            machine.idle -= 1;
            let waits = now > next.since;
            let known = (next.like != NONE).then(|| slices.of(next.like));
            let like = match known {
                Some(slice) if next.is_own && slice.waited() == waits => Some(next.like),
                _ => {
                    let which = usize::from(waits);
                    machine.switched[which].next(&slices.machines[at].switched[which])
                }
            };
            let switch = like.map_or(0, |number| slices.of(number).switch());
            let one = &mut self.carriers[next.carrier as usize];
            one.has_cpu = true;
            one.gave = i64::MIN;
            let own = next.is_own.then_some(next.like);
            self.draw(next.carrier, own.map_or(0, |slice| slices.of(slice).length()));
            if let Some(slice) = own.filter(|&slice| slices.of(slice).is_cut) {
                let one = &mut self.carriers[next.carrier as usize];
                one.cut_like = slice;
                one.budget = slices.of(slice).length();
                one.is_forced = true;
            }
            self.at(now + switch, ContentionEvent::Resumes { carrier: next.carrier });
        }
    }

    /// How long it may run, as another slice did, but for `least`.
    fn draw(&mut self, carrier: u32, least: i64) {
        let one = &mut self.carriers[carrier as usize];
        let machine = one.machine as usize;
        let known = &self.known.slices;
        let drawn = self.machines[machine].cut.next(&known.machines[machine].cut);
        one.cut_like = drawn.unwrap_or(NONE);
        one.budget = drawn.map_or(i64::MAX / 4, |slice| known.of(slice).length()).max(least);
        one.is_forced = false;
    }

    pub(super) fn give_back(&mut self, carrier: u32, now: i64) {
        let one = &mut self.carriers[carrier as usize];
        if std::mem::take(&mut one.has_cpu) {
            one.gave = now;
            let machine = one.machine;
            self.machines[machine as usize].idle += 1;
            self.changes(machine);
        }
    }

    /// Somebody may get a CPU of a machine.
    fn changes(&mut self, machine: u32) {
        if !std::mem::replace(&mut self.machines[machine as usize].is_dirty, true) {
            self.dirty.push(machine);
        }
    }
}
