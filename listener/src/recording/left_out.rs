//! Leaves out frames that the filter rejects: a file states their number.

use std::io::Write;

use ppt_capture::{Cause, Gap, Lost};

use super::Recording;
use crate::account::FrameAccount;
use crate::chunk::Frames;
use crate::filter::{FilteredRun, SharedFilter, locked, parts};
use crate::limit;

impl<W: Write> Recording<W> {
    /// Writes the frames that the filter accepts, and states the others.
    pub(super) fn take_wanted(&mut self, frames: &Frames, filter: &SharedFilter) {
        let (feed, _, head) = self.head(frames);
        let mut wanted = std::mem::take(&mut self.wanted);
        wanted.clear();
        locked(filter).wants(feed, &head, frames.chunk.bytes(), &mut wanted);
        wanted.resize(frames.chunk.count as usize, true);
        let parts = match self.origins.get(feed) {
            Some(origin) => parts(frames, &wanted, head.stride as usize / 8, &origin.stamps),
            None => vec![FilteredRun::Wanted(frames.clone())],
        };
        self.wanted = wanted;
        for part in parts {
            match part {
                FilteredRun::Wanted(frames) => while !self.take_frames(&frames) {},
                FilteredRun::LeftOut { before, count } => {
                    self.leave_out(feed, frames, (before, count));
                }
            }
        }
    }

    /// States that `count` of `frames` are left out, after `before` others. They are lost if the
    /// file can state nothing more.
    pub(super) fn leave_out(&mut self, feed: usize, frames: &Frames, (before, count): (u32, u32)) {
        let chunk = &frames.chunk;
        let (segment_number, ring, count) = (chunk.segment_number, chunk.ring, u64::from(count));
        let lost = if before == 0 { frames.lost_before } else { Lost::default() };
        let (is_in_file, account) = self.ledger().with(segment_number, ring, |entry| {
            entry.lose(lost);
            (entry.is_in_file(), entry.account)
        });
        let rings = self.ledger().rings_in_file() + u64::from(!is_in_file);
        let size = self.rotation.as_ref().and_then(|rotation| rotation.size);
        if !self.file.written(rings).fits(size, limit::GAPS) && self.has_content() {
            self.rotate();
        }
        let open = self.file.is_open() && self.file.source_of(feed).is_some();
        let fits = open && self.file.written(rings).fits(self.max_size, limit::GAPS);
        if fits {
            // Gaps are contiguous: earlier losses come first.
            self.gaps(Some(segment_number));
        } else {
            self.file.fill();
        }
        let FrameAccount { nonce, next_seq: first_seq, .. } = account;
        let stated = fits
            && self.written(|file| {
                let Some(source) = file.source_of(feed) else { return false };
                let gap = Gap { source, nonce, ring, first_seq, count, cause: Cause::LeftOut };
                file.write(|writer| writer.gap(&gap))
            });
        let (account, cursor) = self.ledger().with(segment_number, ring, |entry| {
            if stated {
                entry.leave_out(count);
            } else {
                entry.lose(Lost { disk: count, ..Lost::default() });
            }
            (entry.account, entry.stated())
        });
        self.attended(&account, cursor);
        self.states_more |= stated;
        if stated { self.counters.left_out(count) } else { self.counters.lost(count) }
    }
}
