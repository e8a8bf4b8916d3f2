//! Writes what the kernel reported into frames, and states what is missing.

use std::collections::VecDeque;
use std::sync::atomic::AtomicU64;

use ppt_segment::{RingWriter, Segment};

use crate::schema::{Builtin, KernelEvent};

/// What is missing.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MissingRecords {
    /// It happened from then until it is stated.
    pub since: u64,
    /// Whose it is, if that is known.
    pub thread: i32,
    pub cpu: u32,
    pub count: u64,
}

/// Writes frames, and states what was lost.
pub(crate) struct EventWriter<'a> {
    builtin: &'static Builtin,
    writer: RingWriter<'a, AtomicU64>,
    words: usize,
    /// The time of the latest frame.
    pub latest: u64,
    /// Records that the kernel lost, so far.
    pub lost: u64,
    /// What is missing and not stated yet.
    owed: VecDeque<MissingRecords>,
}

impl<'a> EventWriter<'a> {
    pub fn new(segment: &'a Segment) -> Self {
        let ring = segment.ring(0);
        Self {
            builtin: Builtin::get(),
            words: ring.stride() - 1,
            writer: RingWriter::new(ring),
            latest: 0,
            lost: 0,
            owed: VecDeque::new(),
        }
    }

    pub fn write(&mut self, at: u64, event: &KernelEvent) {
        self.latest = self.latest.max(at);
        let words = self.builtin.encode(at, event);
        self.writer.write(words.into_iter().take(self.words));
    }

    /// The kernel counted these.
    pub fn lose(&mut self, loss: MissingRecords) {
        self.lost = self.lost.saturating_add(loss.count);
        self.owe(loss);
    }

    pub fn owe(&mut self, loss: MissingRecords) {
        if loss.count > 0 {
            self.owed.push_back(loss);
        }
    }

    /// Skips up to `most` sequence numbers for lost records, then writes frames that describe the losses.
    pub fn state_losses(&mut self, most: u64) {
        let (mut stated, mut left) = (Vec::new(), most);
        while let Some(loss) = self.owed.front_mut().filter(|_| left > 0) {
            let count = loss.count.min(left);
            stated.push(MissingRecords { count, ..*loss });
            left -= count;
            loss.count -= count;
            if loss.count == 0 {
                self.owed.pop_front();
            }
        }
        // Names come last: this many numbers may take the place of what was before them.
        (0..most - left).for_each(|_| _ = self.writer.lose());
        for MissingRecords { since, thread, cpu, count } in stated {
            self.write(self.latest.max(since), &KernelEvent::Lost { since, thread, cpu, count });
        }
    }
}
