//! Larger rings without an end of the session: another segment, which threads move to with their
//! next frame. The former ones are drained on, and let go once nobody writes into them.

use std::sync::Arc;

use ppt_segment::abi::ring_state;
use ppt_segment::handle::Kind;
use ppt_segment::{Refused, Segment};

use super::mailbox::{look, move_on, start_cursors};
use super::prepare::{Had, obtain, refuse_filters};
use super::{Attached, SegmentChoice, Session};
use crate::control::ControlCopy;
use crate::error::AgentError;
use crate::plan::Plan;
use crate::target::Target;

/// A segment that frames went to earlier in the session.
#[derive(Debug)]
pub(super) struct Former {
    pub(super) segment: Arc<Segment>,
    /// What the target had refused by it when the session came to it.
    pub(super) base: Refused,
    kind: Kind,
    plan: Plan,
    /// Its memory has been given back.
    given_back: bool,
    /// Nobody owns a ring of it any more.
    left: bool,
}

/// Why rings stay as they are.
#[derive(Debug)]
pub enum Stuck {
    /// Larger ones do not fit into the memory that was allowed, or are larger than any can be.
    Memory,
    /// There is none to be had, or no room for it in the target's table, or to come to it might
    /// end the target.
    Refused(AgentError),
    /// It is no time to grow: the target has not come to the last segment yet, the buffer's part
    /// is over, or they were stuck before.
    NotNow,
}

impl Session {
    /// Has the rings of buffer `index` grow, where `enough` slots would have been enough: the gate
    /// closes, and opens again for a larger segment, which is what [`Session::attached`] has from now on. Between the two, for the time of two
    /// writes, frames are not written, as with any closed gate.
    pub fn grow(&mut self, index: usize, enough: u64) -> Result<(), Stuck> {
        let Self { target, claim, attached, limits, allow, .. } = self;
        let it = &mut attached[index];
        let looked = look(target, it, *claim).ok().filter(|copy| copy.gate() == it.gate);
        // What ended is told by the next check.
        let Some(copy) = looked.filter(|_| it.ending.is_none() && !it.awaited && !it.stuck) else {
            return Err(Stuck::NotNow);
        };
        let had = refuse_filters(target, *allow)
            .map_err(Stuck::Refused)
            .and_then(|_| larger(target, it, &copy, (enough, limits.memory)));
        let had = had.inspect_err(|_| it.stuck = true)?;
        // Making it took a while.
        let copy = match look(target, it, *claim) {
            Ok(copy) if copy.gate() == it.gate => copy,
            _ => return Err(Stuck::NotNow),
        };
        let former = replace(it, had);
        it.former.push(former);
        start_cursors(it);
        it.ending = move_on(target, it, *claim, &copy).err();
        Ok(())
    }
}

/// The next larger segment, of the same kind.
fn larger(
    target: &Target,
    it: &Attached,
    copy: &ControlCopy,
    (enough, memory): (u64, u64),
) -> Result<Had, Stuck> {
    let plan = it.plan.grown(enough, memory).ok_or(Stuck::Memory)?;
    let kind = match it.kind {
        Kind::SysV => SegmentChoice::SysV,
        Kind::Memfd => SegmentChoice::Memfd,
    };
    obtain(target, &it.buffer, copy, plan, kind).map_err(Stuck::Refused)
}

/// Puts another segment in the place of the one that frames went to, which is returned.
fn replace(it: &mut Attached, had: Had) -> Former {
    let Had { segment, kind, plan, adopted, awaited } = had;
    let base = std::mem::replace(&mut it.base.1, segment.refused());
    let former = Former {
        segment: std::mem::replace(&mut it.segment, Arc::new(segment)),
        kind: std::mem::replace(&mut it.kind, kind),
        plan: std::mem::replace(&mut it.plan, plan),
        base,
        given_back: false,
        left: false,
    };
    (it.adopted, it.awaited, it.retried) = (adopted, awaited, false);
    former
}

/// Back to the segment before the one that the target cannot map; it stays with that. Returns the
/// nonce of the segment that nobody came to; `None` if there is none before.
pub(super) fn go_back(
    target: &Target,
    it: &mut Attached,
    copy: &ControlCopy,
    claim: ppt_segment::abi::Claim,
) -> Option<u64> {
    let Former { segment, kind, plan, base, .. } = it.former.pop()?;
    let nonce = std::mem::replace(&mut it.segment, segment).nonce();
    (it.kind, it.plan, it.base.1) = (kind, plan, base);
    (it.awaited, it.stuck, it.retried) = (false, true, false);
    it.ending = move_on(target, it, claim, copy).err();
    Some(nonce)
}

/// Lets go of what threads have left behind: memory is given back once a capture has accounted for
/// all that is in it. Returns the nonces of segments that nothing more comes out of.
///
/// A thread that knew the former gate may still complete the frame that it is in: it owns a ring as
/// long, and the slot that it writes to is never given back.
pub(super) fn let_go(it: &mut Attached, copy: &ControlCopy) -> Vec<u64> {
    let now = it.segment.nonce();
    let arrived = !it.awaited && copy.has_mapped(now);
    let mut left = Vec::new();
    for former in it.former.iter_mut().filter(|it| arrived && !it.left) {
        let segment = &former.segment;
        former.given_back = former.given_back || segment.give_back_attended().unwrap_or(true);
        let mut rings = 0..segment.geometry().rings();
        let free = |ring| segment.ring(ring).owner().state != ring_state::ACTIVE;
        if former.given_back && rings.all(free) {
            former.left = true;
            left.push(segment.nonce());
        }
    }
    left
}

impl Attached {
    /// The segments that frames went to earlier in the session, which may still be drained.
    pub fn former(&self) -> impl Iterator<Item = &Arc<Segment>> {
        self.former.iter().map(|former| &former.segment)
    }

    /// Gives the memory of all its segments back.
    pub(super) fn give_back(&self) {
        let left = self.left.iter().map(|left| &left.segment);
        for segment in left.chain(self.former()).chain([&self.segment]) {
            let _ = segment.give_back();
        }
    }
}
