//! One claim to detach: from the first write into a target to the last.

mod choice;
mod follow;
mod grow;
mod left;
mod mailbox;
mod outside;
mod prepare;

use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ppt_segment::abi::Claim;
use ppt_segment::handle::Kind;
use ppt_segment::{Refused, Segment};

use crate::buffer::Buffer;
use crate::claim::{self, Holder};
use crate::clock::{self, ClockChoice, Distrust, StampClock};
use crate::control::{ControlCopy, TargetCounters};
use crate::error::{AgentError, Result};
use crate::plan::{Limits, Plan};
use crate::poke::{free, held};
use crate::random::random_nonzero;
use crate::target::Target;
pub(crate) use choice::choose;
use choice::{fetch, may_fall_over};
use grow::{Former, go_back, let_go};
use left::left_behind;
use mailbox::{dropped, give_up_ticks, look, open, release, reopen, shut, switched_off};
pub(crate) use prepare::refuse;
use prepare::{glance, prepare, refuse_filters};

pub use crate::memory::Transport;
pub use choice::SegmentChoice;
pub use grow::Stuck;
pub use left::Left;
pub use outside::{Detached, Status, detach, status};

/// Refusals that the user lifts, one by one.
#[derive(Debug, Clone, Copy, Default)]
pub struct Allow {
    /// Attach beside a debugger.
    pub traced: bool,
    /// Attach to a target whose seccomp filter may end it.
    pub seccomp: bool,
    /// Take over a buffer whose agent lives, or cannot be looked at.
    pub foreign_claim: bool,
}

/// How to attach.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Bounds of the segments.
    pub limits: Limits,
    /// Lifted refusals.
    pub allow: Allow,
    /// What stamps of `option time tsc` are to count.
    pub clock: ClockChoice,
    /// Who makes the segments.
    pub segment: SegmentChoice,
    /// The socket on which children that the target forks are to say hello (see
    /// [`ppt_segment::follow`]); `None` where nobody listens. Under a filter that may end the target
    /// it is left out.
    pub follow: Option<u64>,
    /// Whether the target is held.
    pub hold: Hold,
}

/// Whether a target is held by ptrace(2) while it is written to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Hold {
    /// Other agents are kept out.
    #[default]
    Held,
    /// For a process that was just forked, of which other agents know nothing, and which may start
    /// another program at this very moment: held, it would not get the rights of a set-user-ID one.
    Free,
}

/// Why a buffer's part of a session is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// The process ended.
    Exited,
    /// The process runs another program now.
    Exec,
    /// The library that held the buffer was unloaded.
    Unloaded,
    /// Somebody else switched it off: `ppt detach`.
    SwitchedOff,
    /// Somebody else took it over.
    TakenOver,
}

/// One attached buffer.
#[derive(Debug)]
pub struct Attached {
    /// The buffer.
    pub buffer: Buffer,
    /// Its segment.
    pub segment: Arc<Segment>,
    /// What kind of segment it is.
    pub kind: Kind,
    /// The target has not made its segment yet, or it has not been fetched: until then it is empty.
    pub awaited: bool,
    wanted: SegmentChoice,
    /// The geometry and why.
    pub plan: Plan,
    /// Whether the segment is that of an earlier session.
    pub adopted: bool,
    /// The dead agent whose claim was taken over.
    pub took_over: Option<Holder>,
    /// What stamps of `option time tsc` count; `None` where the buffer has none.
    pub clock: Option<StampClock>,
    /// Cursor of each ring when the session began.
    pub first: Vec<u64>,
    /// Frames that were written after the last session and before this one: ring, first sequence
    /// number, count.
    pub unattended: Vec<(u32, u64, u64)>,
    /// Other segments that hold such frames.
    pub left: Vec<Left>,
    gate: u64,
    follow: Option<u64>,
    base: (TargetCounters, Refused),
    dropped: Dropped,
    retried: bool,
    former: Vec<Former>,
    /// Its rings do not grow any more.
    stuck: bool,
    /// When its filters were last looked at.
    glanced: Option<Instant>,
    ending: Option<Ending>,
}

impl Attached {
    /// Why a thread that comes to the segment might be ended by that. The first one makes system
    /// calls, and so does everyone once more under a new handle, which is what a segment that could
    /// not be mapped gets.
    fn may_be_ended(
        &mut self,
        target: &Target,
        copy: &ControlCopy,
        allow: Allow,
    ) -> Option<AgentError> {
        if copy.has_mapped(self.segment.nonce()) {
            return None;
        }
        if copy.failure(self.gate).is_some() {
            return refuse_filters(target, allow).err();
        }
        if self.glanced.is_some_and(|it| it.elapsed() < GLANCES) {
            return None;
        }
        self.glanced = Some(Instant::now());
        glance(target, allow).err()
    }
}

/// How often the filters of a target that has not mapped its segment are looked at, at most.
const GLANCES: Duration = Duration::from_millis(500);

/// Frames that the target refused in this session, by cause.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Dropped {
    /// No ring was free.
    pub no_ring: u64,
    /// Inside another write.
    pub nested: u64,
    /// The segment could not be mapped.
    pub not_mapped: u64,
}

/// What a look at an attached buffer found.
#[derive(Debug, Default)]
pub struct Checked {
    /// Frames that the target refused in this session.
    pub dropped: Dropped,
    /// errno of a segment that the target could not map, after a second try.
    pub unmappable: Option<i32>,
    /// errno of a segment that the target could not attach: it is to make one itself.
    pub fell_over: Option<i32>,
    /// errno of a larger segment that the target could not map, and its nonce: frames go to the one
    /// before it again.
    pub went_back: Option<(i32, u64)>,
    /// Nonces of former segments that nothing more comes out of.
    pub left: Vec<u64>,
    /// Why the buffer cannot be captured any more: the segment that the target made could not be
    /// had, or its first frame might end it.
    pub failed: Option<AgentError>,
    /// The buffer's part is over.
    pub ending: Option<Ending>,
    /// Ticks can no longer be trusted, and from now on the monotonic clock is taken instead; said
    /// once, with the reason.
    pub ticks_given_up: Option<Distrust>,
}

/// Attached buffers of one target.
#[derive(Debug)]
pub struct Session {
    target: Target,
    claim: Claim,
    limits: Limits,
    allow: Allow,
    attached: Vec<Attached>,
    /// How long the target was held, and how its memory was written.
    pub held: Duration,
    /// How the gates were written.
    pub transport: Transport,
    /// The target has a system call filter that may end it, and that was allowed.
    pub filtered: bool,
}

impl Session {
    /// Attaches to `buffers` of `target`: segments first, then claim, geometry and gate of each in
    /// one hold. On failure nothing is left attached.
    pub fn attach(target: Target, buffers: Vec<Buffer>, options: &Options) -> Result<Self> {
        let filtered = refuse(&target, options.allow)?;
        let follow = options.follow.filter(|_| !filtered);
        let options = &Options { follow, ..options.clone() };
        let claim = claim::ours(target.system(), random_nonzero());
        let mut attached = Vec::with_capacity(buffers.len());
        for buffer in buffers {
            attached.push(prepare(&target, buffer, options)?);
        }
        let work = || {
            let mut transport = Transport::Mem;
            // Segments took a while to make.
            glance(&target, options.allow)?;
            for index in 0..attached.len() {
                match open(&target, &mut attached[index], claim, options.allow) {
                    Ok(used) => transport = used,
                    Err(error) => {
                        // This one, too: it may have failed after our claim was in it. Where it is
                        // somebody else's, nothing is written.
                        for undo in &attached[..=index] {
                            if shut(&target, undo, claim).is_ok() {
                                let _ = release(&target, undo, claim);
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
        // Their threads are on their way to the segments of this session.
        for it in &mut attached {
            it.left = left_behind(&target, it);
        }
        let Options { limits, allow, .. } = *options;
        Ok(Self { target, claim, limits, allow, attached, held, transport, filtered })
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
    pub fn attached(&self) -> &[Attached] {
        &self.attached
    }

    /// Whether `buffer`, just found in this process, is one that this session is attached to: not
    /// so after an exec, nor when a library came back after it had been unloaded.
    pub fn holds(&self, buffer: &Buffer) -> bool {
        self.attached.iter().any(|it| {
            it.ending.is_none()
                && it.buffer.address == buffer.address
                && look(&self.target, it, self.claim).is_ok()
        })
    }

    /// Whether a segment is still to be fetched: what is written meanwhile sits in it, so look again
    /// soon.
    pub fn awaits(&self) -> bool {
        self.attached.iter().any(|it| it.awaited && it.ending.is_none())
    }

    /// Looks at the control page of buffer `index`: cheap, for about once a second. A segment that
    /// could not be mapped is offered once more under a new handle, or the target asked to make
    /// one; the one that it made is fetched.
    pub fn check(&mut self, index: usize) -> Checked {
        let Self { target, claim, allow, attached, .. } = self;
        let it = &mut attached[index];
        let (mut unmappable, mut fell_over, mut failed) = (None, None, None);
        let (mut went_back, mut left) = (None, Vec::new());
        let mut ticks_given_up = None;
        if it.ending.is_none() {
            match look(target, it, *claim) {
                Ok(copy) => {
                    if it.awaited {
                        // Who has closed its descriptors because it exits did nothing wrong.
                        let exits = || target.ended() || !target.has_memory();
                        failed = fetch(target, it, &copy).err().filter(|_| !exits());
                    }
                    let refused = it.may_be_ended(target, &copy, *allow);
                    if let Some(error) = refused.filter(|_| shut(target, it, *claim).is_ok()) {
                        (it.gate, failed) = (0, Some(error));
                    }
                    it.dropped = dropped(it, copy.counters());
                    left = let_go(it, &copy);
                    unmappable = copy.failure(it.gate);
                    if it.clock == Some(StampClock::Ticks)
                        && let Err(why) = clock::trusted(target.system())
                        && give_up_ticks(target, it)
                    {
                        it.clock = Some(StampClock::Distrusted(why.clone()));
                        ticks_given_up = Some(why);
                    }
                    if failed.is_some() {
                        unmappable = None; // It is over.
                    } else if copy.gate() != it.gate {
                        it.ending = Some(switched_off(target, it, *claim));
                    } else if let Some(errno) = unmappable.filter(|_| !it.retried) {
                        if may_fall_over(target, it, errno) {
                            (it.kind, it.awaited, fell_over) = (Kind::Memfd, true, unmappable);
                        } else {
                            it.retried = true;
                        }
                        if reopen(target, it, &copy).is_ok() {
                            unmappable = None;
                        }
                    } else if let Some(errno) = unmappable
                        && let Some(nonce) = go_back(target, it, &copy, *claim)
                    {
                        (went_back, unmappable) = (Some((errno, nonce)), None);
                    }
                }
                Err(ending) => {
                    it.ending = Some(ending);
                    // What the target counted outside the segment is as last read.
                    let seen = TargetCounters {
                        no_ring: it.base.0.no_ring,
                        nested: it.base.0.nested,
                        not_mapped: it.base.0.not_mapped + it.dropped.not_mapped,
                    };
                    let now = dropped(it, seen);
                    it.dropped.no_ring = it.dropped.no_ring.max(now.no_ring);
                    it.dropped.nested = it.dropped.nested.max(now.nested);
                }
            }
        }
        let (dropped, ending) = (it.dropped, it.ending);
        Checked { dropped, unmappable, fell_over, went_back, left, failed, ending, ticks_given_up }
    }

    /// Closes the gates: after this each thread completes at most the frame that it is in.
    pub fn gate_off(&mut self) {
        for it in &mut self.attached {
            if it.ending.is_none() || it.ending == Some(Ending::SwitchedOff) {
                match shut(&self.target, it, self.claim) {
                    Ok(()) => it.gate = 0,
                    Err(ending) => it.ending = it.ending.or(Some(ending)),
                }
            }
        }
    }

    /// Gives memory and claims back; call it after the last drain. Errors are of no consequence:
    /// what cannot be given back is freed with the target.
    pub fn close(self) {
        for it in &self.attached {
            match look(&self.target, it, self.claim) {
                Ok(_) | Err(Ending::Unloaded) => {
                    it.give_back();
                    let _ = release(&self.target, it, self.claim);
                }
                // Children of the target may have inherited the descriptor of what it made.
                Err(Ending::Exited | Ending::Exec) => it.give_back(),
                // Somebody else's by now: its memory is in use.
                Err(Ending::SwitchedOff | Ending::TakenOver) => {}
            }
        }
    }
}
