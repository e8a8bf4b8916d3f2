//! Changes of what the target writes, while the gate is open.

use ppt_segment::Masks;

use super::attached::{Access, Attached, BufferEnd};
use super::choice::fetch;
use super::mailbox::{look, write_looked_at};
use super::masks::{after, barrier, before};
use crate::control::DISABLED_AT;

/// Makes the target write the frames that `masks` does not disable, from each thread's next frame
/// on.
pub(super) fn flip(by: &Access, it: &mut Attached, masks: Masks) -> Result<(), BufferEnd> {
    let changes: Vec<_> = masks.changes_from(&it.masks).collect();
    if changes.is_empty() {
        return Ok(());
    }
    let copy = look(by, it)?;
    if it.is_awaiting() {
        // If the target has made the segment by now, the flip is stated for it. The next step
        // reports a failure.
        let _ = fetch(by.target, it, &copy);
    }
    if let Some(asked) = &mut it.asked {
        // Whether earlier frames saw the flip is unknown.
        changes.iter().for_each(|&(bit, _)| asked.masks.set(bit, true));
    }
    let current = (!it.is_awaiting()).then_some(&it.segment);
    let segments: Vec<_> = it.former().chain(current).cloned().collect();
    let seen: Vec<_> = segments.iter().map(|it| before(it)).collect();
    let words = std::mem::replace(&mut it.masks, masks).words();
    for (index, (now, before)) in (0..).zip(masks.words().into_iter().zip(words)) {
        let at = it.buffer.control + DISABLED_AT as u64 + 8 * (index + 1);
        if now != before && !write_looked_at(by.target, at, &now.to_le_bytes()) {
            return Err(look(by, it).err().unwrap_or(BufferEnd::Exited));
        }
    }
    segments.iter().for_each(|segment| segment.set_masks(&masks));
    if changes.iter().any(|it| !it.1) {
        barrier();
    }
    let flips = segments.iter().zip(seen);
    it.flips.extend(flips.map(|(segment, seen)| after(segment, seen, changes.clone())));
    Ok(())
}
