//! Tells the forked children of a target whether to report to ppt.

use super::Session;
use super::attached::Access;
use super::control_page::{look, write};
use crate::control::FOLLOW_CLAIM_AT;
use crate::seccomp;

impl Session {
    /// Stops children of the target from reporting to ppt if the target has begun to filter its
    /// system calls, because the calls of their fork handlers might kill them. Call it about once a
    /// second.
    pub fn mind_filters(&mut self) {
        let Self { target, claim, allow, attached, .. } = self;
        let by = Access { target, claim: *claim, allow: *allow };
        if attached.iter().all(|buffer| buffer.follow.is_none())
            || seccomp::glance(target).is_none()
        {
            return;
        }
        for attached_buffer in attached {
            if attached_buffer.follow.take().is_some() && look(&by, attached_buffer).is_ok() {
                let at = attached_buffer.buffer.control + FOLLOW_CLAIM_AT as u64;
                let _ = write(target, at, &0u64.to_le_bytes());
            }
        }
    }
}
