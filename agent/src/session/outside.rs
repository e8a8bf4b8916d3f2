//! Operations on a buffer without attaching to it.

use ppt_segment::Masks;
use ppt_segment::abi::Claim;

use super::choice::adopt_any;
use super::control_page::{ReadControl, read_control, recheck, write};
use super::options::Allow;
use crate::buffer::Buffer;
use crate::claim::{self, Holder};
use crate::control::{self, CLAIM_AT, DETACH_AT};
use crate::error::{AgentError, Result};
use crate::hold::held;
use crate::target::Target;

/// The state of a buffer.
#[derive(Debug, Clone)]
pub struct Status {
    /// Whether its gate is open.
    pub on: bool,
    /// The gate is open only because a fork copied it. Nobody is attached, and the target refuses
    /// every frame, which costs more than a closed gate. This happens only in programs of older
    /// versions and in sandboxes.
    pub copied: bool,
    /// The agent that holds it.
    pub holder: Option<Holder>,
}

/// The result of a detach from outside.
#[derive(Debug, Clone)]
pub enum Detached {
    /// Nobody was attached.
    WasOff,
    /// A living agent will notice it and end its capture.
    Asked(Holder),
    /// The remains of a dead agent were removed.
    Cleared(Option<Holder>),
}

/// Whether a buffer is on, and its holder.
///
/// # Errors
/// The process cannot be read.
pub fn status(target: &Target, buffer: &Buffer) -> Result<Status> {
    let ReadControl { effective: copy, raw } = read_control(target, buffer)?;
    let holder = claim::holder(target.system(), copy.claim());
    Ok(Status { on: raw.gate() != 0, copied: copy.gate() != raw.gate(), holder })
}

/// Switches a buffer off from outside. A living agent then ends its capture; the remains of a dead
/// agent are removed.
///
/// # Errors
/// The process cannot be written to, or the buffer is held by an agent that `allow` does not
/// override.
pub fn detach(target: &Target, buffer: &Buffer, allow: Allow) -> Result<Detached> {
    if let Some(lender) = target.lender() {
        return Err(AgentError::SharesMemory { pid: target.pid(), lender });
    }
    let work = || {
        recheck(target, buffer)?;
        let ReadControl { effective: copy, raw } = read_control(target, buffer)?;
        let holder = claim::holder(target.system(), copy.claim());
        if raw.gate() == 0 && holder.is_none() {
            return Ok(Detached::WasOff);
        }
        // Before the gate: a session whose rings are growing right now may open the gate again over
        // this value, and then finds this request.
        let session = copy.claim().nonce;
        write(target, buffer.control + DETACH_AT as u64, &session.to_le_bytes())?;
        write(target, buffer.control, &0u64.to_le_bytes())?;
        if let Some(holder) = holder.clone().filter(|holder| holder.alive != Some(false)) {
            return Ok(Detached::Asked(holder));
        }
        // All segments, because the dead agent's rings may have grown.
        for listed in copy.segments() {
            if let Some(segment) = adopt_any(target, &listed, buffer.schema_hash) {
                if segment.is_masked() {
                    segment.set_masks(&Masks::ALL_ENABLED);
                }
                let _ = segment.give_back();
            }
        }
        let nobody = Claim { agent_pid: 0, start_time: 0, pid_namespace: 0, nonce: 0 };
        write(target, buffer.control + CLAIM_AT as u64, &control::claim_bytes(nobody))?;
        Ok(Detached::Cleared(holder))
    };
    Ok(held(target, allow.traced, work)?.result)
}
