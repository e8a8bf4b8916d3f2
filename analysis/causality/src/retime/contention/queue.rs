//! Who waits for a CPU, in which order.

use super::slices::{CpuSlice, Machine, Slices};
use crate::retime::moments::NONE;

/// One that waits.
#[derive(Debug, Clone, Copy)]
pub(super) struct WaitingThread {
    pub carrier: u32,
    /// The slice from which it has what is known of its wait.
    pub like: u32,
    /// It is that slice, not just like it.
    pub is_own: bool,
    pub since: i64,
}

/// Takes examples one after the other, so that they come as often as they did.
#[derive(Debug, Default)]
pub(super) struct Examples(usize);

impl Examples {
    pub fn next(&mut self, of: &[u32]) -> Option<u32> {
        self.0 += 1;
        (!of.is_empty()).then(|| of[(self.0 - 1) % of.len()])
    }
}

#[derive(Debug, Default)]
pub(super) struct RunQueue {
    waiting: Vec<WaitingThread>,
    placed: [Examples; 2],
}

impl RunQueue {
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub fn pop(&mut self) -> Option<WaitingThread> {
        (!self.waiting.is_empty()).then(|| self.waiting.remove(0))
    }

    /// In the order of the run, where these met; else as far in front as it was there.
    pub fn push(&mut self, one: WaitingThread, slices: &Slices, machine: &Machine) {
        if one.like == NONE {
            self.waiting.push(one);
            return;
        }
        let slice = slices.of(one.like);
        let of = |other: &WaitingThread| slices.of(other.like);
        let met = |other: &WaitingThread| other.is_own && slice.met(of(other));
        let at = if one.is_own && self.waiting.iter().all(met) {
            let key = |slice: &CpuSlice, number: u32| (slice.granted, number);
            let before = |other: &WaitingThread| key(of(other), other.like) < key(slice, one.like);
            self.waiting.iter().position(|other| !before(other)).unwrap_or(self.waiting.len())
        } else {
            let kind = usize::from(slice.follows_cut);
            let placed = if slice.among > 0 {
                Some(one.like)
            } else {
                self.placed[kind].next(&machine.placed[kind])
            };
            placed.map_or(self.waiting.len(), |number| {
                let known = slices.of(number);
                let share = f64::from(known.place) / f64::from(known.among);
                (share * self.waiting.len() as f64).round() as usize
            })
        };
        self.waiting.insert(at, one);
    }
}
