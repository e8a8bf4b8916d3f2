//! A session, from the first write into a target to the last.

mod advance;
mod attached;
mod choice;
mod control_page;
mod flip;
mod follow;
mod frame_counter;
mod grow;
mod leftover;
mod masks;
mod options;
mod outside;
mod prepare;
mod ring_owners;
mod slowdown;
mod span_watch;
mod wanted;

use std::os::fd::BorrowedFd;
use std::time::Duration;

use ppt_segment::Masks;
use ppt_segment::abi::Claim;

use crate::allowance::RingAllowance;
use crate::buffer::Buffer;
use crate::claim;
use crate::error::Result;
use crate::hold::{free, held};
use crate::memory::Transport;
use crate::plan::UserLimits;
use crate::random::random_nonzero;
use crate::target::Target;
use attached::Access;
use control_page::{look, open, release, shut};
use leftover::leftovers;
use prepare::{glance, prepare};

pub use advance::News;
pub use attached::{AttachedBuffer, BufferEnd, Dropped, FoundCells, Leftover, Unattended};
pub(crate) use choice::choose;
pub use choice::reserves_all;
pub use frame_counter::FrameCounter;
pub use grow::Stuck;

pub use options::{Allow, AttachOptions, Hold, SegmentChoice};
pub use outside::{Detached, Status, detach, status};
pub(crate) use prepare::refuse;
pub use ring_owners::RingOwners;
pub use slowdown::{IntervalStamps, NotSlowable, SlowableBuffer};
pub use span_watch::{MissedEdges, NotWatchable, SpanWatch, WatchedEdge};
pub use wanted::{Choose, Flip, FlipRing};

/// The attached buffers of one target.
#[derive(Debug)]
pub struct Session {
    target: Target,
    claim: Claim,
    limits: UserLimits,
    allow: Allow,
    attached: Vec<AttachedBuffer>,
    /// The time for which the target was held.
    pub held: Duration,
    /// The interface by which the gates were written.
    pub transport: Transport,
    /// Whether the target has a system call filter that may kill it, and `allow` permits that.
    pub filtered: bool,
}

impl Session {
    /// Attaches to `buffers` of `target`. It makes the segments first, then writes claim, geometry
    /// and gate of each buffer in one hold. If it fails, nothing stays attached.
    ///
    /// # Errors
    /// The first obstacle, with the buffer or the process that it concerns.
    pub fn attach(target: Target, buffers: Vec<Buffer>, options: &AttachOptions) -> Result<Self> {
        let filtered = refuse(&target, options.allow)?;
        let follow = options.follow.filter(|_| !filtered);
        let options = &AttachOptions { follow, ..options.clone() };
        let claim = claim::ours(target.system(), random_nonzero());
        let mut attached = Vec::with_capacity(buffers.len());
        let mut allowance = RingAllowance::of(&target, options.limits);
        for (index, left) in (1..=buffers.len()).rev().enumerate() {
            let (buffer, limits) = (buffers[index].clone(), allowance.share(left));
            attached.push(prepare(&target, buffer, options, &mut allowance, limits)?);
        }
        let by = Access { target: &target, claim, allow: options.allow };
        let work = || {
            let mut transport = Transport::Mem;
            // Making the segments took a while.
            glance(&target, options.allow)?;
            for index in 0..attached.len() {
                match open(&by, &mut attached[index]) {
                    Ok(used) => transport = used,
                    Err(error) => {
                        // Close this buffer, too: the failure may have come after our claim was written.
                        // If the claim is another agent's, nothing is written.
                        for undo in &attached[..=index] {
                            if shut(&by, undo).is_ok() {
                                let _ = release(&by, undo);
                            }
                        }
                        return Err(error);
                    }
                }
            }
            Ok(transport)
        };
        let held = match options.hold {
            Hold::Held => held(&target, options.allow.traced, work)?,
            Hold::Free => free(work)?,
        };
        let (held, transport) = (held.time, held.result);
        // Their threads are about to use the segments of this session.
        for attached_buffer in &mut attached {
            attached_buffer.leftovers = leftovers(&target, attached_buffer);
        }
        let AttachOptions { limits, allow, .. } = *options;
        Ok(Self { target, claim, limits, allow, attached, held, transport, filtered })
    }

    /// A session of a process without buffers, whose data comes from other sources. Nothing is
    /// written into the process, and it is not held.
    pub fn without_buffers(target: Target, options: &AttachOptions) -> Self {
        let claim = claim::ours(target.system(), random_nonzero());
        let AttachOptions { limits, allow, .. } = *options;
        Self {
            target,
            claim,
            limits,
            allow,
            attached: Vec::new(),
            held: Duration::ZERO,
            transport: Transport::Mem,
            filtered: false,
        }
    }

    fn access(&self) -> Access<'_> {
        Access { target: &self.target, claim: self.claim, allow: self.allow }
    }

    /// The target.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// Becomes readable when the target ends.
    pub fn pidfd(&self) -> Option<BorrowedFd<'_>> {
        self.target.pidfd()
    }

    /// The attached buffers.
    pub fn attached(&self) -> &[AttachedBuffer] {
        &self.attached
    }

    /// Whether this session is attached to `buffer`, which was just found in this process. False
    /// after an exec, and if a library was unloaded and loaded again.
    pub fn holds(&self, buffer: &Buffer) -> bool {
        self.attached.iter().any(|attached| {
            attached.end().is_none()
                && attached.buffer.address == buffer.address
                && look(&self.access(), attached).is_ok()
        })
    }

    /// Number of buffers for which the target has written its first frame, and so made the system
    /// calls of that.
    pub fn begun(&self) -> usize {
        self.attached.iter().filter(|buffer| buffer.has_begun()).count()
    }

    /// Number of buffers for which that is unknown: the target makes their segments, and ppt has
    /// not fetched them yet.
    pub fn unseen(&self) -> usize {
        self.attached.iter().filter(|buffer| buffer.is_unseen()).count()
    }

    /// Whether a segment has not been fetched yet. Frames collect in it in the meantime, so call
    /// [`Self::advance`] again soon.
    pub fn awaits(&self) -> bool {
        self.attached.iter().any(AttachedBuffer::is_awaiting)
    }

    /// Advances the state of buffer `index`, and returns its events. This may write into the
    /// target: it offers a segment that could not be mapped once more under a new handle, or asks
    /// the target to make one. It fetches a segment that the target made. It is cheap if nothing
    /// has happened. Call it about once a second.
    pub fn advance(&mut self, index: usize) -> Vec<News> {
        let by = Access { target: &self.target, claim: self.claim, allow: self.allow };
        self.attached[index].advance(&by)
    }

    /// Grows the rings of buffer `index`, for which `enough` slots would have sufficed. It closes
    /// the gate, and opens it again for a larger segment, which [`Session::attached`] returns from
    /// then on. Between these two writes the target writes no frames, as with any closed gate.
    ///
    /// # Errors
    /// Why the rings keep their size: a limit, the system, or the end of the target.
    pub fn grow(&mut self, index: usize, enough: u64) -> std::result::Result<(), Stuck> {
        let by = Access { target: &self.target, claim: self.claim, allow: self.allow };
        grow::grow(&by, &mut self.attached[index], enough, self.limits)
    }

    /// Makes the target write the frames of buffer `index` that `masks` does not disable, from each
    /// thread's next frame on. If that is impossible, the next [step](Self::advance) reports why.
    pub fn choose(&mut self, index: usize, masks: Masks) -> bool {
        let by = Access { target: &self.target, claim: self.claim, allow: self.allow };
        let attached = &mut self.attached[index];
        attached.end().is_none() && flip::flip(&by, attached, masks).is_ok()
    }

    /// Buffer `index`, to slow down its intervals.
    ///
    /// # Errors
    /// [`NotSlowable`]: other code than C and C++ of the current pptc writes the frames, the target has not
    /// made its segment yet, or it has a filter of system calls.
    pub fn slowable(&self, index: usize) -> std::result::Result<SlowableBuffer, NotSlowable> {
        slowdown::slowable(&self.access(), &self.attached[index], self.filtered)
    }

    /// Counts the frames of buffer `index` with this id.
    pub fn frame_counter(&self, index: usize, id: u16) -> FrameCounter {
        FrameCounter::new(&self.attached[index], id)
    }

    /// The threads that write frames.
    pub fn ring_owners(&self) -> RingOwners {
        RingOwners(self.attached.iter().map(|attached| attached.segment.clone()).collect())
    }

    /// Watches a span, whose frames have this id in buffer `index`.
    ///
    /// # Errors
    /// [`NotWatchable`]: the frames are no spans, their stamps are of another clock, the process is in another
    /// pid or time namespace, or it has not made its segment yet.
    pub fn span_watch(
        &self,
        index: usize,
        id: u16,
    ) -> std::result::Result<SpanWatch, NotWatchable> {
        SpanWatch::new(&self.target, &self.attached[index], id)
    }

    /// The changes of the masks of buffer `index` since the last call.
    pub fn flips(&mut self, index: usize) -> Vec<Flip> {
        std::mem::take(&mut self.attached[index].flips)
    }

    /// Closes the gates. After this, each thread completes at most the frame that it is writing.
    pub fn gate_off(&mut self) {
        let by = Access { target: &self.target, claim: self.claim, allow: self.allow };
        for buffer in &mut self.attached {
            if matches!(buffer.end(), None | Some(BufferEnd::SwitchedOff)) {
                match shut(&by, buffer) {
                    Ok(()) => buffer.gate = 0,
                    Err(end) if buffer.end().is_none() => buffer.ends(end),
                    Err(_) => {}
                }
            }
        }
    }

    /// Releases memory and claims. Call it after the last drain. It ignores errors, because the end
    /// of the target frees the rest.
    pub fn close(self) {
        (0..self.attached.len()).for_each(|index| self.close_buffer(index));
    }

    /// Releases the memory and the claim of buffer `index`. Does nothing if they were released before.
    pub fn close_buffer(&self, index: usize) {
        let (by, buffer) = (self.access(), &self.attached[index]);
        match look(&by, buffer) {
            Ok(_) | Err(BufferEnd::Unloaded) => {
                masks::leave(buffer);
                buffer.give_back();
                let _ = release(&by, buffer);
            }
            // Children of the target may have inherited the descriptor of the target's segment.
            Err(BufferEnd::Exited | BufferEnd::Exec) => buffer.give_back(),
            // Another agent owns the buffer by now, and its memory is in use.
            Err(BufferEnd::SwitchedOff | BufferEnd::TakenOver) => {}
        }
    }
}
