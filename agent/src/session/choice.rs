//! Chooses the kind of segment of a session, and makes, adopts or fetches the segments.

use std::io;

use nix::errno::Errno;
use ppt_segment::handle::SegmentKind;
use ppt_segment::{AdoptError, Segment, SegmentIdentity};

use super::attached::{AttachedBuffer, Stage};
use super::masks;
use super::options::SegmentChoice;
use crate::control::{ControlCopy, ListedSegment, SegmentLocator};
use crate::error::{AgentError, Result};
use crate::system::System;
use crate::target::Target;

/// The kind to try first.
pub(crate) fn choose(target: &Target, wanted: SegmentChoice) -> Result<SegmentKind> {
    let (system, pid) = (target.system(), target.pid());
    let theirs = system.namespace(&pid.to_string(), "ipc");
    let apart = theirs.is_some() && theirs != system.namespace("self", "ipc");
    match wanted {
        SegmentChoice::SysV if apart => Err(AgentError::IpcNamespace { pid }),
        SegmentChoice::Auto if !apart => Ok(SegmentKind::SysV),
        SegmentChoice::SysV => Ok(SegmentKind::SysV),
        SegmentChoice::Auto | SegmentChoice::Memfd => {
            if reserves_all(system) {
                Err(AgentError::StrictOvercommit { pid })
            } else {
                Ok(SegmentKind::Memfd)
            }
        }
    }
}

/// Whether the system grants only memory that it has reserved. A memfd reserves none, and a write
/// that finds no memory would kill the target by SIGBUS.
pub fn reserves_all(system: &System) -> bool {
    system.proc_text("sys/vm/overcommit_memory").as_deref() == Some("2")
}

/// Whether another kind of segment may work if System V shared memory failed with `errno`:
/// filtered, forbidden, missing, or not visible.
pub(super) fn forbidden(errno: i32) -> bool {
    use Errno::{EACCES, EIDRM, EINVAL, ENOSYS, EPERM};
    [EPERM, EACCES, ENOSYS, EINVAL, EIDRM].contains(&Errno::from_raw(errno))
}

/// Whether the target is to make the segment that it could not attach.
pub(super) fn may_fall_over(target: &Target, buffer: &AttachedBuffer, errno: i32) -> bool {
    buffer.wanted == SegmentChoice::Auto
        && buffer.kind == SegmentKind::SysV
        && forbidden(errno)
        && target.pidfd().is_some()
        && !reserves_all(target.system())
}

/// A segment of the target's table, if it is the one expected.
pub(super) fn adopt(
    target: &Target,
    listed: &ListedSegment,
    expected: SegmentIdentity,
) -> Option<Segment> {
    match listed.locator {
        SegmentLocator::SysV(id) => Segment::adopt(id, expected).ok(),
        SegmentLocator::Memfd(number) => {
            let file = target.descriptor(number).ok()?;
            Segment::adopt_file(std::os::fd::AsFd::as_fd(&file), expected).ok()
        }
    }
}

/// A segment of the target's table, whatever its geometry.
pub(super) fn adopt_any(
    target: &Target,
    listed: &ListedSegment,
    schema_hash: u64,
) -> Option<Segment> {
    let nonce = listed.nonce;
    match listed.locator {
        SegmentLocator::SysV(id) => Segment::adopt_any(id, nonce, schema_hash).ok(),
        SegmentLocator::Memfd(number) => {
            let file = target.descriptor(number).ok()?;
            let file = std::os::fd::AsFd::as_fd(&file);
            Segment::adopt_any_file(file, listed.size, nonce, schema_hash).ok()
        }
    }
}

/// Installs the segment that the target has made. Does nothing if it has not made it yet.
pub(super) fn fetch(
    target: &Target,
    attached_buffer: &mut AttachedBuffer,
    copy: &ControlCopy,
) -> Result<()> {
    let made =
        copy.segments().into_iter().find(|listed| listed.nonce == attached_buffer.segment.nonce());
    let Some(ListedSegment { locator: SegmentLocator::Memfd(number), .. }) = made else {
        return Ok(());
    };
    let failed = |cause: io::Error, what| {
        let (pid, buffer) = (target.pid(), attached_buffer.buffer.name.clone());
        AgentError::NotFetched { pid, buffer, what, cause }
    };
    let file = target.descriptor(number).map_err(|cause| failed(cause, "be fetched"))?;
    let filled = attached_buffer
        .segment
        .fill(std::os::fd::AsFd::as_fd(&file), attached_buffer.buffer.schema_hash);
    let knows_masks = filled.map_err(|error| match error {
        AdoptError::System(cause) => failed(cause, "be mapped"),
        AdoptError::Differs(what) => {
            let cause = io::Error::other(format!("its {what} is not what was asked for"));
            failed(cause, "be believed")
        }
    })?;
    attached_buffer.stage = Stage::Ready;
    // An earlier runtime ignores the masks in the control page.
    attached_buffer.asked = attached_buffer.asked.filter(|_| knows_masks);
    masks::enter(attached_buffer);
    for ring in 0..attached_buffer.plan.populate {
        // If this fails, a thread's first frames take page faults, with no other effect.
        let _ = attached_buffer.segment.populate_ring(ring, attached_buffer.plan.first_bytes());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strict_overcommit_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let system = System { proc: folder.path().into(), ..System::default() };
        assert!(!reserves_all(&system), "a kernel that does not say");
        std::fs::create_dir_all(folder.path().join("sys/vm")).unwrap();
        for (value, expected) in [("0\n", false), ("1\n", false), ("2\n", true)] {
            std::fs::write(folder.path().join("sys/vm/overcommit_memory"), value).unwrap();
            assert_eq!(reserves_all(&system), expected, "{value}");
        }
    }

    #[test]
    fn limits_are_no_reason_for_another_kind() {
        for errno in [Errno::EPERM, Errno::ENOSYS, Errno::EACCES] {
            assert!(forbidden(errno as i32));
        }
        for errno in [Errno::ENOMEM, Errno::ENOSPC, Errno::EMFILE] {
            assert!(!forbidden(errno as i32));
        }
    }
}
