//! Changes of the masks while the gate is open: the target writes other frames from then on.

use ppt_segment::Masks;

use super::attached::{Access, AttachedBuffer, BufferEnd};
use super::choice::fetch;
use super::control_page::{look, write_checked};
use super::masks::{after, barrier, before};
use crate::control::DISABLED_AT;

/// Makes the target write the frames that `masks` does not disable, from each thread's next frame
/// on.
pub(super) fn flip(
    by: &Access,
    buffer: &mut AttachedBuffer,
    masks: Masks,
) -> Result<(), BufferEnd> {
    let changes: Vec<_> = masks.changes_from(&buffer.masks).collect();
    if changes.is_empty() {
        return Ok(());
    }
    let copy = look(by, buffer)?;
    if buffer.is_awaiting() {
        // If the target has made the segment by now, the flip is stated for it. The next step
        // reports a failure.
        let _ = fetch(by.target, buffer, &copy);
    }
    if let Some(asked) = &mut buffer.asked {
        // Whether earlier frames saw the flip is unknown.
        changes.iter().for_each(|&(bit, _)| asked.masks.set(bit, true));
    }
    let current = (!buffer.is_awaiting()).then_some(&buffer.segment);
    let segments: Vec<_> = buffer.former().chain(current).cloned().collect();
    let seen: Vec<_> = segments.iter().map(|segment| before(segment)).collect();
    let words = std::mem::replace(&mut buffer.masks, masks).words();
    for (index, (now, before)) in (0..).zip(masks.words().into_iter().zip(words)) {
        let at = buffer.buffer.control + DISABLED_AT as u64 + 8 * (index + 1);
        if now != before && !write_checked(by.target, at, &now.to_le_bytes()) {
            return Err(look(by, buffer).err().unwrap_or(BufferEnd::Exited));
        }
    }
    segments.iter().for_each(|segment| segment.set_masks(&masks));
    if changes.iter().any(|change| !change.1) {
        barrier();
    }
    let flips = segments.iter().zip(seen);
    buffer.flips.extend(flips.map(|(segment, seen)| after(segment, seen, changes.clone())));
    Ok(())
}
