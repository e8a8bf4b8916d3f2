//! Who waits for a CPU, in which order.
//!
//! A thread comes in at any place and goes from the front. So the queue is a row of blocks, each of which
//! knows what decides over places: with n that wait, either takes about √n steps.

use std::collections::VecDeque;

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

/// The most threads of a block.
const BLOCK: usize = 128;

/// When a slice was granted its CPU, and its number: the order of the run.
type Granted = (i64, u32);

/// Some that wait one behind the other.
#[derive(Debug)]
struct Block {
    threads: VecDeque<WaitingThread>,
    known: Waits,
}

/// What is known of some that wait.
#[derive(Debug, Clone, Copy)]
struct Waits {
    /// They all are their own slices.
    are_own: bool,
    /// Of their slices: the last of the run, the earliest grant, the latest coming.
    last: Granted,
    granted: i64,
    queued: i64,
}

impl Waits {
    const NONE: Waits =
        Waits { are_own: true, last: (i64::MIN, 0), granted: i64::MAX, queued: i64::MIN };

    fn of(one: &WaitingThread, slices: &Slices) -> Waits {
        if !one.is_own {
            // Only those that are their own are compared.
            return Waits { are_own: false, ..Waits::NONE };
        }
        let slice = slices.of(one.like);
        let last = (slice.granted, one.like);
        Waits { are_own: true, last, granted: slice.granted, queued: slice.queued }
    }

    fn and(self, other: Waits) -> Waits {
        Waits {
            are_own: self.are_own && other.are_own,
            last: self.last.max(other.last),
            granted: self.granted.min(other.granted),
            queued: self.queued.max(other.queued),
        }
    }

    /// Whether a slice was in the queue at one time with each of them.
    fn met(&self, slice: &CpuSlice) -> bool {
        self.are_own && slice.queued <= self.granted && self.queued <= slice.granted
    }
}

impl Block {
    fn new(threads: VecDeque<WaitingThread>, slices: &Slices) -> Block {
        let mut block = Block { threads, known: Waits::NONE };
        block.learn(slices);
        block
    }

    fn learn(&mut self, slices: &Slices) {
        let each = self.threads.iter().map(|one| Waits::of(one, slices));
        self.known = each.fold(Waits::NONE, Waits::and);
    }
}

#[derive(Debug, Default)]
pub(super) struct RunQueue {
    blocks: VecDeque<Block>,
    len: usize,
    placed: [Examples; 2],
}

impl RunQueue {
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub fn pop(&mut self, slices: &Slices) -> Option<WaitingThread> {
        let block = self.blocks.front_mut()?;
        let first = block.threads.pop_front()?;
        self.len -= 1;
        if block.threads.is_empty() {
            self.blocks.pop_front();
        } else {
            block.learn(slices);
        }
        Some(first)
    }

    /// Keeps the recorded order among threads that queued together; otherwise inserts at the recorded
    /// position.
    pub fn push(&mut self, one: WaitingThread, slices: &Slices, machine: &Machine) {
        if one.like == NONE {
            self.insert(self.len, one, slices);
            return;
        }
        let slice = slices.of(one.like);
        let at = if one.is_own && self.known().met(slice) {
            self.before((slice.granted, one.like), slices)
        } else {
            let kind = usize::from(slice.follows_cut);
            let placed = if slice.among > 0 {
                Some(one.like)
            } else {
                self.placed[kind].next(&machine.placed[kind])
            };
            placed.map_or(self.len, |number| {
                let known = slices.of(number);
                let share = f64::from(known.place) / f64::from(known.among);
                (share * self.len as f64).round() as usize
            })
        };
        self.insert(at, one, slices);
    }

    fn known(&self) -> Waits {
        self.blocks.iter().map(|block| block.known).fold(Waits::NONE, Waits::and)
    }

    /// The place of the first that had its CPU no earlier. All are their own.
    fn before(&self, own: Granted, slices: &Slices) -> usize {
        let mut place = 0;
        for block in &self.blocks {
            if block.known.last >= own {
                let granted = |one: &WaitingThread| (slices.of(one.like).granted, one.like);
                let within = block.threads.iter().position(|one| granted(one) >= own);
                return place + within.unwrap_or(block.threads.len());
            }
            place += block.threads.len();
        }
        place
    }

    fn insert(&mut self, at: usize, one: WaitingThread, slices: &Slices) {
        self.len += 1;
        let (mut number, mut place) = (0, at);
        while let Some(block) = self.blocks.get(number)
            && place > block.threads.len()
        {
            place -= block.threads.len();
            number += 1;
        }
        let Some(block) = self.blocks.get_mut(number) else {
            self.blocks.push_back(Block::new([one].into(), slices));
            return;
        };
        block.threads.insert(place, one);
        block.known = block.known.and(Waits::of(&one, slices));
        if block.threads.len() > BLOCK {
            let rest = block.threads.split_off(BLOCK / 2);
            block.learn(slices);
            self.blocks.insert(number + 1, Block::new(rest, slices));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same in one list, with every pair compared.
    #[derive(Default)]
    struct PlainQueue {
        waiting: Vec<WaitingThread>,
        placed: [Examples; 2],
    }

    impl PlainQueue {
        fn push(&mut self, one: WaitingThread, slices: &Slices, machine: &Machine) {
            if one.like == NONE {
                self.waiting.push(one);
                return;
            }
            let of = |other: &WaitingThread| slices.of(other.like);
            let slice = of(&one);
            let met = |other: &WaitingThread| {
                let other = of(other);
                slice.queued <= other.granted && other.queued <= slice.granted
            };
            let met = |other: &WaitingThread| other.is_own && met(other);
            let at = if one.is_own && self.waiting.iter().all(met) {
                let key = |other: &WaitingThread| (of(other).granted, other.like);
                let first = self.waiting.iter().position(|other| key(other) >= key(&one));
                first.unwrap_or(self.waiting.len())
            } else {
                let kind = usize::from(slice.follows_cut);
                let placed = if slice.among > 0 {
                    Some(one.like)
                } else {
                    self.placed[kind].next(&machine.placed[kind])
                };
                placed.map_or(self.waiting.len(), |number| {
                    let share =
                        f64::from(slices.of(number).place) / f64::from(slices.of(number).among);
                    (share * self.waiting.len() as f64).round() as usize
                })
            };
            self.waiting.insert(at, one);
        }
    }

    fn slices(seed: u64, count: u32) -> Slices {
        let mut dice = seed;
        let mut below = |limit: u64| {
            dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (dice >> 33) % limit
        };
        let slice = |number| {
            let queued = below(50) as i64;
            let granted = queued + below(2_000) as i64;
            let among = below(20) as u32;
            CpuSlice {
                machine: 0,
                cpu: 0,
                ready: queued,
                begin: granted,
                end: granted + 9,
                is_cut: false,
                follows_cut: below(2) == 1,
                next: number,
                queued,
                granted,
                among,
                place: if among > 0 { below(u64::from(among) + 1) as u32 } else { 0 },
            }
        };
        let all: Vec<CpuSlice> = (0..count).map(slice).collect();
        let placed = [false, true].map(|kind| {
            let those = (0..count).filter(|&number| {
                let slice = &all[number as usize];
                slice.among > 0 && slice.follows_cut == kind
            });
            those.collect()
        });
        Slices { all, machines: vec![Machine { placed, ..Machine::default() }] }
    }

    #[test]
    fn blocks_keep_the_order_of_one_list() {
        for seed in 0..40 {
            let slices = slices(seed, 3_000);
            let machine = &slices.machines[0];
            let (mut queue, mut plain) = (RunQueue::default(), PlainQueue::default());
            for number in 0..3_000u32 {
                let like = if seed % 3 == 0 && number % 11 == 0 { NONE } else { number };
                let is_own = like != NONE && (seed % 2 == 0 || number % 5 != 0);
                let one = WaitingThread { carrier: number, like, is_own, since: 0 };
                queue.push(one, &slices, machine);
                plain.push(one, &slices, machine);
                let pops = if number % 100 == 99 { seed as usize * 2 } else { 0 };
                for _ in 0..pops {
                    let first = (!plain.waiting.is_empty()).then(|| plain.waiting.remove(0));
                    let popped = queue.pop(&slices);
                    assert_eq!(popped.map(|it| it.carrier), first.map(|it| it.carrier));
                }
                assert_eq!(queue.is_empty(), plain.waiting.is_empty());
            }
            while let Some(one) = queue.pop(&slices) {
                assert_eq!(one.carrier, plain.waiting.remove(0).carrier);
            }
            assert!(plain.waiting.is_empty());
        }
    }
}
