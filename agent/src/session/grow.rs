//! Grows rings without ending the session: threads move to a larger segment with their next frame.
//! The former segments are still drained, and released once no thread writes into them.

use std::sync::Arc;

use ppt_segment::abi::ring_state;
use ppt_segment::handle::SegmentKind;

use super::attached::{Access, AttachedBuffer, Former, Stage};
use super::control_page::{look, move_on, start_cursors};
use super::masks;
use super::options::SegmentChoice;
use super::prepare::{Had, obtain, refuse_filters};
use crate::allowance::{RingAllowance, RingBound};
use crate::control::ControlCopy;
use crate::error::AgentError;
use crate::plan::UserLimits;
use crate::target::Target;

/// Why rings do not grow.
#[derive(Debug)]
pub enum Stuck {
    /// Larger rings would exceed what this bounds, or the largest possible ring.
    Memory(RingBound),
    /// A larger segment cannot be made, the target's table is full, or the switch might end the
    /// target.
    Refused(AgentError),
    /// The rings cannot grow now: the target has not yet mapped the last segment, the session has
    /// ended for the buffer, or an earlier attempt failed.
    NotNow,
}

/// Grows the rings of `buffer`, for which `enough` slots would have sufficed.
pub(super) fn grow(
    by: &Access,
    buffer: &mut AttachedBuffer,
    enough: u64,
    limits: UserLimits,
) -> Result<(), Stuck> {
    let stays = |copy: &ControlCopy, gate| copy.gate() == gate && !copy.is_to_detach();
    let looked = look(by, buffer).ok().filter(|copy| stays(copy, buffer.gate));
    // If the buffer ended, the next step reports it.
    let Some(copy) = looked.filter(|_| buffer.stage == Stage::Ready && !buffer.cannot_grow) else {
        return Err(Stuck::NotNow);
    };
    let mut allowance = RingAllowance::of(by.target, limits);
    let had = refuse_filters(by.target, by.allow)
        .map_err(Stuck::Refused)
        .and_then(|_| larger(by.target, buffer, &copy, enough, &allowance));
    let had = had.inspect_err(|_| buffer.cannot_grow = true)?;
    // Making it took a while.
    let copy = match look(by, buffer) {
        Ok(copy) if stays(&copy, buffer.gate) => copy,
        _ => return Err(Stuck::NotNow),
    };
    buffer.promise = allowance.promise(had.plan.geometry.size());
    let former = replace(buffer, had);
    buffer.former.push(former);
    if buffer.is_awaiting() {
        masks::ask(buffer);
    } else {
        masks::enter(buffer);
    }
    start_cursors(buffer);
    if let Err(end) = move_on(by, buffer, &copy) {
        buffer.ends(end);
    }
    Ok(())
}

/// The next larger segment, of the same kind.
fn larger(
    target: &Target,
    buffer: &AttachedBuffer,
    copy: &ControlCopy,
    enough: u64,
    allowance: &RingAllowance,
) -> Result<Had, Stuck> {
    // The present rings are given back.
    let memory = allowance.limits.memory.saturating_add(buffer.plan.geometry.size());
    let plan = buffer.plan.grown(enough, memory);
    let plan = plan.ok_or_else(|| Stuck::Memory(allowance.bound.clone()))?;
    let kind = match buffer.kind {
        SegmentKind::SysV => SegmentChoice::SysV,
        SegmentKind::Memfd => SegmentChoice::Memfd,
    };
    obtain(target, &buffer.buffer, copy, plan, kind).map_err(Stuck::Refused)
}

/// Replaces the segment in use, and returns the former one.
fn replace(buffer: &mut AttachedBuffer, had: Had) -> Former {
    let Had { segment, kind, plan, adopted, awaited } = had;
    let base = std::mem::replace(&mut buffer.base.1, segment.refused());
    let former = Former {
        segment: std::mem::replace(&mut buffer.segment, Arc::new(segment)),
        kind: std::mem::replace(&mut buffer.kind, kind),
        plan: std::mem::replace(&mut buffer.plan, plan),
        base,
        given_back: false,
        vacated: false,
    };
    buffer.stage = if awaited { Stage::Awaiting } else { Stage::Ready };
    (buffer.adopted, buffer.retried) = (adopted, false);
    former
}

/// Goes back to the segment before the one that the target cannot map, and stays with it. Returns
/// the nonce of the unused segment. `None` if there is no earlier one.
pub(super) fn go_back(by: &Access, buffer: &mut AttachedBuffer, copy: &ControlCopy) -> Option<u64> {
    let Former { segment, kind, plan, base, .. } = buffer.former.pop()?;
    let nonce = std::mem::replace(&mut buffer.segment, segment).nonce();
    (buffer.kind, buffer.plan, buffer.base.1) = (kind, plan, base);
    (buffer.stage, buffer.cannot_grow, buffer.retried) = (Stage::Ready, true, false);
    if let Err(end) = move_on(by, buffer, copy) {
        buffer.ends(end);
    }
    Some(nonce)
}

/// Releases former segments. Memory is given back once a capture has accounted for everything in
/// it. Returns the nonces of segments from which nothing more comes.
///
/// A thread that saw the former gate may still complete its current frame. It owns a ring until
/// then, and the slot that it writes to is never given back.
pub(super) fn let_go(buffer: &mut AttachedBuffer, copy: &ControlCopy) -> Vec<u64> {
    let now = buffer.segment.nonce();
    let arrived = !buffer.is_awaiting() && copy.has_mapped(now);
    let mut vacated = Vec::new();
    for former in buffer.former.iter_mut().filter(|former| arrived && !former.vacated) {
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
