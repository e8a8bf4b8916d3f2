//! The queue of threads that wait for a CPU.
//!
//! Threads enter at any position and leave at the front. The queue is a list of blocks, each with a summary of
//! the properties that decide over positions: with n threads, either takes about √n steps.

use std::collections::VecDeque;

use super::slices::{CpuSlice, Machine, Slices};
use crate::retime::moments::NONE;

/// A thread that waits.
#[derive(Debug, Clone, Copy)]
pub(super) struct WaitingThread {
    /// The index of the simulated thread.
    pub thread: u32,
    /// The slice whose properties it has, or [`NONE`].
    pub model_slice: u32,
    /// Whether the entry is that slice itself, not one like it.
    pub is_own: bool,
    pub since: i64,
}

/// Takes examples in turn, so that each property is as frequent as in the run.
#[derive(Debug, Default)]
pub(super) struct Examples(usize);

impl Examples {
    pub fn next(&mut self, examples: &[u32]) -> Option<u32> {
        self.0 += 1;
        (!examples.is_empty()).then(|| examples[(self.0 - 1) % examples.len()])
    }
}

/// The largest number of threads in a block.
const BLOCK: usize = 128;

/// The time at which a slice was granted its CPU, and its number: the order of the run.
type Granted = (i64, u32);

/// Successive threads of the queue.
#[derive(Debug)]
struct Block {
    threads: VecDeque<WaitingThread>,
    summary: BlockSummary,
}

/// The summary of some waiting threads.
#[derive(Debug, Clone, Copy)]
struct BlockSummary {
    /// All have their own slices.
    all_are_own: bool,
    /// The last of their slices in the order of the run.
    last: Granted,
    /// The earliest grant.
    granted: i64,
    /// The latest entry into the queue.
    queued: i64,
}

impl BlockSummary {
    const NONE: BlockSummary = BlockSummary {
        all_are_own: true,
        last: (i64::MIN, 0),
        granted: i64::MAX,
        queued: i64::MIN,
    };

    fn of(thread: &WaitingThread, slices: &Slices) -> BlockSummary {
        if !thread.is_own {
            // Only threads with their own slices are compared.
            return BlockSummary { all_are_own: false, ..BlockSummary::NONE };
        }
        let slice = slices.of(thread.model_slice);
        let last = (slice.granted, thread.model_slice);
        BlockSummary { all_are_own: true, last, granted: slice.granted, queued: slice.queued }
    }

    fn joined(self, other: BlockSummary) -> BlockSummary {
        BlockSummary {
            all_are_own: self.all_are_own && other.all_are_own,
            last: self.last.max(other.last),
            granted: self.granted.min(other.granted),
            queued: self.queued.max(other.queued),
        }
    }

    /// Whether the slice was in the queue together with each of these threads.
    fn queued_with_all(&self, slice: &CpuSlice) -> bool {
        self.all_are_own && slice.queued <= self.granted && self.queued <= slice.granted
    }
}

impl Block {
    fn new(threads: VecDeque<WaitingThread>, slices: &Slices) -> Block {
        let mut block = Block { threads, summary: BlockSummary::NONE };
        block.summarize(slices);
        block
    }

    fn summarize(&mut self, slices: &Slices) {
        let summaries = self.threads.iter().map(|thread| BlockSummary::of(thread, slices));
        self.summary = summaries.fold(BlockSummary::NONE, BlockSummary::joined);
    }
}

#[derive(Debug, Default)]
pub(super) struct RunQueue {
    blocks: VecDeque<Block>,
    len: usize,
    ranked: [Examples; 2],
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
            block.summarize(slices);
        }
        Some(first)
    }

    /// Keeps the recorded order among threads that queued together; otherwise inserts at the recorded
    /// position.
    pub fn push(&mut self, thread: WaitingThread, slices: &Slices, machine: &Machine) {
        if thread.model_slice == NONE {
            self.insert(self.len, thread, slices);
            return;
        }
        let slice = slices.of(thread.model_slice);
        let at = if thread.is_own && self.summary().queued_with_all(slice) {
            self.before((slice.granted, thread.model_slice), slices)
        } else {
            let kind = usize::from(slice.follows_cut);
            let ranked = if slice.among > 0 {
                Some(thread.model_slice)
            } else {
                self.ranked[kind].next(&machine.ranked[kind])
            };
            ranked.map_or(self.len, |number| {
                let example = slices.of(number);
                let share = f64::from(example.rank) / f64::from(example.among);
                (share * self.len as f64).round() as usize
            })
        };
        self.insert(at, thread, slices);
    }

    fn summary(&self) -> BlockSummary {
        self.blocks.iter().map(|block| block.summary).fold(BlockSummary::NONE, BlockSummary::joined)
    }

    /// The position of the first thread that got its CPU no earlier. Every waiting thread must have its
    /// own slice.
    fn before(&self, own: Granted, slices: &Slices) -> usize {
        let mut position = 0;
        for block in &self.blocks {
            if block.summary.last >= own {
                let granted = |thread: &WaitingThread| {
                    (slices.of(thread.model_slice).granted, thread.model_slice)
                };
                let within = block.threads.iter().position(|thread| granted(thread) >= own);
                return position + within.unwrap_or(block.threads.len());
            }
            position += block.threads.len();
        }
        position
    }

    fn insert(&mut self, at: usize, thread: WaitingThread, slices: &Slices) {
        self.len += 1;
        let (mut number, mut position) = (0, at);
        while let Some(block) = self.blocks.get(number)
            && position > block.threads.len()
        {
            position -= block.threads.len();
            number += 1;
        }
        let Some(block) = self.blocks.get_mut(number) else {
            self.blocks.push_back(Block::new([thread].into(), slices));
            return;
        };
        block.threads.insert(position, thread);
        block.summary = block.summary.joined(BlockSummary::of(&thread, slices));
        if block.threads.len() > BLOCK {
            let back = block.threads.split_off(BLOCK / 2);
            block.summarize(slices);
            self.blocks.insert(number + 1, Block::new(back, slices));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same queue as one list, in which every pair is compared.
    #[derive(Default)]
    struct PlainQueue {
        waiting: Vec<WaitingThread>,
        ranked: [Examples; 2],
    }

    impl PlainQueue {
        fn push(&mut self, one: WaitingThread, slices: &Slices, machine: &Machine) {
            if one.model_slice == NONE {
                self.waiting.push(one);
                return;
            }
            let of = |other: &WaitingThread| slices.of(other.model_slice);
            let slice = of(&one);
            let met = |other: &WaitingThread| {
                let other = of(other);
                slice.queued <= other.granted && other.queued <= slice.granted
            };
            let met = |other: &WaitingThread| other.is_own && met(other);
            let at = if one.is_own && self.waiting.iter().all(met) {
                let key = |other: &WaitingThread| (of(other).granted, other.model_slice);
                let first = self.waiting.iter().position(|other| key(other) >= key(&one));
                first.unwrap_or(self.waiting.len())
            } else {
                let kind = usize::from(slice.follows_cut);
                let ranked = if slice.among > 0 {
                    Some(one.model_slice)
                } else {
                    self.ranked[kind].next(&machine.ranked[kind])
                };
                ranked.map_or(self.waiting.len(), |number| {
                    let share =
                        f64::from(slices.of(number).rank) / f64::from(slices.of(number).among);
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
                rank: if among > 0 { below(u64::from(among) + 1) as u32 } else { 0 },
            }
        };
        let all: Vec<CpuSlice> = (0..count).map(slice).collect();
        let ranked = [false, true].map(|kind| {
            let those = (0..count).filter(|&number| {
                let slice = &all[number as usize];
                slice.among > 0 && slice.follows_cut == kind
            });
            those.collect()
        });
        Slices { all, machines: vec![Machine { ranked, ..Machine::default() }] }
    }

    #[test]
    fn blocks_keep_the_order_of_one_list() {
        for seed in 0..40 {
            let slices = slices(seed, 3_000);
            let machine = &slices.machines[0];
            let (mut queue, mut plain) = (RunQueue::default(), PlainQueue::default());
            for number in 0..3_000u32 {
                let model_slice = if seed % 3 == 0 && number % 11 == 0 { NONE } else { number };
                let is_own = model_slice != NONE && (seed % 2 == 0 || number % 5 != 0);
                let one = WaitingThread { thread: number, model_slice, is_own, since: 0 };
                queue.push(one, &slices, machine);
                plain.push(one, &slices, machine);
                let pops = if number % 100 == 99 { seed as usize * 2 } else { 0 };
                for _ in 0..pops {
                    let first = (!plain.waiting.is_empty()).then(|| plain.waiting.remove(0));
                    let popped = queue.pop(&slices);
                    let thread = |waiting: WaitingThread| waiting.thread;
                    assert_eq!(popped.map(thread), first.map(thread));
                }
                assert_eq!(queue.is_empty(), plain.waiting.is_empty());
            }
            while let Some(one) = queue.pop(&slices) {
                assert_eq!(one.thread, plain.waiting.remove(0).thread);
            }
            assert!(plain.waiting.is_empty());
        }
    }
}
