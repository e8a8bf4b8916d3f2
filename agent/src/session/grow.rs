//! Grows rings without ending the session: threads move to a larger segment with their next frame.
//! The former segments are still drained, and released once no thread writes into them.

use std::sync::Arc;

use ppt_segment::abi::ring_state;
use ppt_segment::handle::SegmentKind;

use super::attached::{Access, Attached, Former, Stage};
use super::mailbox::{look, move_on, start_cursors};
use super::masks;
use super::options::SegmentChoice;
use super::prepare::{Had, obtain, refuse_filters};
use crate::control::ControlCopy;
use crate::error::AgentError;
use crate::plan::Limits;
use crate::target::Target;

/// Why rings do not grow.
#[derive(Debug)]
pub enum Stuck {
    /// Larger rings would exceed the allowed memory or the largest possible ring.
    Memory,
    /// A larger segment cannot be made, the target's table is full, or the switch might end the
    /// target.
    Refused(AgentError),
    /// The rings cannot grow now: the target has not yet mapped the last segment, the session has
    /// ended for the buffer, or an earlier attempt failed.
    NotNow,
}

/// Grows the rings of `it`, for which `enough` slots would have sufficed.
pub(super) fn grow(
    by: &Access,
    it: &mut Attached,
    enough: u64,
    limits: Limits,
) -> Result<(), Stuck> {
    let stays = |copy: &ControlCopy, gate| copy.gate() == gate && !copy.is_to_detach();
    let looked = look(by, it).ok().filter(|copy| stays(copy, it.gate));
    // If the buffer ended, the next step reports it.
    let Some(copy) = looked.filter(|_| it.stage == Stage::Ready && !it.stuck) else {
        return Err(Stuck::NotNow);
    };
    let had = refuse_filters(by.target, by.allow)
        .map_err(Stuck::Refused)
        .and_then(|_| larger(by.target, it, &copy, enough, limits));
    let had = had.inspect_err(|_| it.stuck = true)?;
    // Making it took a while.
    let copy = match look(by, it) {
        Ok(copy) if stays(&copy, it.gate) => copy,
        _ => return Err(Stuck::NotNow),
    };
    let former = replace(it, had);
    it.former.push(former);
    match it.is_awaiting() {
        true => masks::ask(it),
        false => masks::enter(it),
    }
    start_cursors(it);
    if let Err(end) = move_on(by, it, &copy) {
        it.ends(end);
    }
    Ok(())
}

/// The next larger segment, of the same kind.
fn larger(
    target: &Target,
    it: &Attached,
    copy: &ControlCopy,
    enough: u64,
    limits: Limits,
) -> Result<Had, Stuck> {
    let plan = it.plan.grown(enough, limits.memory).ok_or(Stuck::Memory)?;
    let kind = match it.kind {
        SegmentKind::SysV => SegmentChoice::SysV,
        SegmentKind::Memfd => SegmentChoice::Memfd,
    };
    obtain(target, &it.buffer, copy, plan, kind).map_err(Stuck::Refused)
}

/// Replaces the segment in use, and returns the former one.
fn replace(it: &mut Attached, had: Had) -> Former {
    let Had { segment, kind, plan, adopted, awaited } = had;
    let base = std::mem::replace(&mut it.base.1, segment.refused());
    let former = Former {
        segment: std::mem::replace(&mut it.segment, Arc::new(segment)),
        kind: std::mem::replace(&mut it.kind, kind),
        plan: std::mem::replace(&mut it.plan, plan),
        base,
        given_back: false,
        vacated: false,
    };
    it.stage = if awaited { Stage::Awaiting } else { Stage::Ready };
    (it.adopted, it.retried) = (adopted, false);
    former
}

/// Goes back to the segment before the one that the target cannot map, and stays with it. Returns
/// the nonce of the unused segment. `None` if there is no earlier one.
pub(super) fn go_back(by: &Access, it: &mut Attached, copy: &ControlCopy) -> Option<u64> {
    let Former { segment, kind, plan, base, .. } = it.former.pop()?;
    let nonce = std::mem::replace(&mut it.segment, segment).nonce();
    (it.kind, it.plan, it.base.1) = (kind, plan, base);
    (it.stage, it.stuck, it.retried) = (Stage::Ready, true, false);
    if let Err(end) = move_on(by, it, copy) {
        it.ends(end);
    }
    Some(nonce)
}

/// Releases former segments. Memory is given back once a capture has accounted for everything in
/// it. Returns the nonces of segments from which nothing more comes.
///
/// A thread that saw the former gate may still complete its current frame. It owns a ring until
/// then, and the slot that it writes to is never given back.
pub(super) fn let_go(it: &mut Attached, copy: &ControlCopy) -> Vec<u64> {
    let now = it.segment.nonce();
    let arrived = !it.is_awaiting() && copy.has_mapped(now);
    let mut vacated = Vec::new();
    for former in it.former.iter_mut().filter(|it| arrived && !it.vacated) {
        let segment = &former.segment;
        former.given_back = former.given_back || segment.give_back_attended().unwrap_or(true);
        let mut rings = 0..segment.geometry().rings();
        let free = |ring| segment.ring(ring).owner().state != ring_state::ACTIVE;
        if former.given_back && rings.all(free) {
            former.vacated = true;
            vacated.push(segment.nonce());
        }
    }
    vacated
}
