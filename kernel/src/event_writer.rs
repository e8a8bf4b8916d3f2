//! Writes the kernel's reports as frames, and states losses.

use std::collections::VecDeque;
use std::sync::atomic::AtomicU64;

use ppt_segment::{RingWriter, Segment};

use crate::schema::{Builtin, KernelEvent};

/// Records that are missing.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MissingRecords {
    /// The earliest time of the loss, which lasts at most until it is stated.
    pub since: u64,
    /// The thread, or 0 if it is unknown.
    pub thread: i32,
    pub cpu: u32,
    pub count: u64,
}

/// Writes frames, and states losses.
pub(crate) struct EventWriter<'a> {
    builtin: &'static Builtin,
    writer: RingWriter<'a, AtomicU64>,
    words: usize,
    /// The time of the latest frame.
    pub latest: u64,
    /// The number of records that the kernel lost so far.
    pub lost: u64,
    /// Losses that are not stated yet.
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

    /// Notes a loss that the kernel has counted.
    pub fn lose(&mut self, loss: MissingRecords) {
        self.lost = self.lost.saturating_add(loss.count);
        self.owe(loss);
    }

    /// Notes a loss that the kernel has not counted.
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
        // The frames that state losses follow: these numbers may overwrite older frames.
        (0..most - left).for_each(|_| _ = self.writer.lose());
        for MissingRecords { since, thread, cpu, count } in stated {
            self.write(self.latest.max(since), &KernelEvent::Lost { since, thread, cpu, count });
        }
    }
}
