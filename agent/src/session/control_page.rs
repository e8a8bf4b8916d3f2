//! Reads and writes of control pages. Each write after the first follows a check that descriptor
//! and claim are still there.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use ppt_segment::abi::{CellWords, Claim, MOVING, clock_kind};
use ppt_segment::handle::SegmentKind;
use ppt_segment::{Handle, Segment, cells};

use super::attached::{Access, AttachedBuffer, BufferEnd, FoundCells, Unattended};
use super::masks;
use super::options::Allow;
use crate::buffer::{Buffer, DESCRIPTOR_BYTES};
use crate::claim::{self, Holder};
use crate::clock::StampClock;
use crate::control::{
    self, CELLS_AT, CLAIM_AT, CLOCK_KIND_AT, ControlCopy, DISABLED_AT, FOLLOW_CLAIM_AT,
    FOLLOW_SOCKET_AT, OPENING_AT, Opening, TICK_SCALE_AT,
};
use crate::error::{AgentError, Result};
use crate::memory::Transport;
use crate::random::random;
use crate::target::Target;

/// The time after which a change in the target is visible everywhere the agent looks.
const VISIBILITY_DELAY: Duration = Duration::from_millis(100);
/// The time that a process needs to end after it has released its memory, on a busy machine.
const EXIT_DELAY: Duration = Duration::from_secs(5);

/// A control page as read from a target.
pub(super) struct ReadControl {
    /// The content that belongs to the target: empty if a fork copied the page.
    pub(super) effective: ControlCopy,
    /// The bytes in the page.
    pub(super) raw: ControlCopy,
}

/// Reads the control page of a buffer.
pub(super) fn read_control(target: &Target, buffer: &Buffer) -> Result<ReadControl> {
    let pid = target.pid();
    let mut bytes = vec![0; control::BYTES];
    match target.memory().read_exact(buffer.control, &mut bytes) {
        Ok(true) => {}
        Ok(false) => return Err(lost(target, &buffer.name)),
        Err(cause) => return Err(AgentError::System { action: "read", pid, cause }),
    }
    let raw = ControlCopy::new(bytes);
    let copied = raw.target_pid() != 0 && raw.target_pid() != target.ns_pid() as u32;
    let effective = if copied { ControlCopy::blank() } else { raw.clone() };
    Ok(ReadControl { effective, raw })
}

/// Fails if a live agent holds the buffer. Returns the dead agent that held it.
pub(super) fn check_claim(
    target: &Target,
    buffer: &Buffer,
    copy: &ControlCopy,
    allow: Allow,
) -> Result<Option<Holder>> {
    match claim::holder(target.system(), copy.claim()) {
        Some(holder) if holder.alive == Some(false) || allow.foreign_claim => Ok(Some(holder)),
        Some(holder) => Err(AgentError::AlreadyAttached {
            pid: target.pid(),
            buffer: buffer.name.clone(),
            holder,
        }),
        None => Ok(None),
    }
}

/// Fails unless the buffer is still the one that was checked when it was found.
pub(super) fn recheck(target: &Target, buffer: &Buffer) -> Result<()> {
    target.recheck()?;
    let mut now = [0; DESCRIPTOR_BYTES];
    let read = target.memory().read_exact(buffer.address, &mut now);
    match read {
        Ok(true) if now == buffer.descriptor => Ok(()),
        _ => Err(lost(target, &buffer.name)),
    }
}

/// Writes claim, geometry and gate, and reads them back. Runs while the target is held.
pub(super) fn open(by: &Access, buffer: &mut AttachedBuffer) -> Result<Transport> {
    let Access { target, claim, allow } = *by;
    let pid = target.pid();
    recheck(target, &buffer.buffer)?;
    let ReadControl { effective: copy, raw } = read_control(target, &buffer.buffer)?;
    buffer.took_over =
        check_claim(target, &buffer.buffer, &copy, allow)?.or(buffer.took_over.take());
    let page = buffer.buffer.control;

    let same = copy.nonce() == buffer.segment.nonce();
    if raw.gate() != 0 && !same {
        write(target, page, &0u64.to_le_bytes())?;
    }
    if raw.target_pid() != 0 && raw.target_pid() != target.ns_pid() as u32 {
        // A fork copied this page. It describes mappings that this process does not have.
        write(target, page, ControlCopy::blank().bytes())?;
    }
    // Counters of refused frames never decrease; a session reports their increase.
    let counters = read_control(target, &buffer.buffer)?.raw.counters();
    buffer.base = (counters, buffer.segment.refused());
    (buffer.since, buffer.counted) = (Instant::now(), counters);

    let generation = match copy.generation() {
        0 => random() as u32 | 1,
        last => Handle::generation_after(last),
    };
    write(target, page + OPENING_AT as u64, &opening(target, buffer, claim, generation))?;
    if let Some(words) = cell_words(buffer) {
        write(target, page + CELLS_AT as u64, &words)?;
    }
    if let (Some(StampClock::Ticks), Some(scale)) = (&buffer.clock, ppt_now::tick_scale()) {
        write(target, page + TICK_SCALE_AT as u64, &scale.to_le_bytes())?;
    }
    // From here on, nothing of the earlier claim counts.
    write(target, page + DISABLED_AT as u64, &masks::mask_bytes(buffer, claim))?;
    if buffer.is_awaiting() {
        masks::ask(buffer);
    } else {
        masks::enter(buffer);
    }
    masks::note_rings(buffer);
    start_cursors(buffer);
    if let Some(socket) = buffer.follow {
        // After the claim, which invalidates the old content; in this order.
        write(target, page + FOLLOW_SOCKET_AT as u64, &socket.to_le_bytes())?;
        write(target, page + FOLLOW_CLAIM_AT as u64, &claim.nonce.to_le_bytes())?;
    }
    buffer.gate = handle(buffer, generation).word();
    let transport = write(target, page, &buffer.gate.to_le_bytes())?;

    let back = match read_control(target, &buffer.buffer) {
        Ok(back) => back.raw,
        // The first frame may have killed the target. The owner of the session investigates that.
        Err(_) if target.ended() || !target.has_memory() => return Ok(transport),
        Err(error) => return Err(error),
    };
    if back.gate() != buffer.gate {
        return Err(AgentError::ReadBack { pid, what: "the gate" });
    }
    if back.claim() != claim || back.nonce() != buffer.segment.nonce() {
        return Err(AgentError::ReadBack { pid, what: "the claim" });
    }
    Ok(transport)
}

/// The words of the control page that describe the segment of `buffer`.
fn opening(target: &Target, buffer: &AttachedBuffer, claim: Claim, generation: u32) -> Vec<u8> {
    let clock = buffer.clock.as_ref().map_or(clock_kind::UNDECIDED, StampClock::kind);
    let (nonce, geometry) = (buffer.segment.nonce(), buffer.plan.geometry);
    let target_pid = target.ns_pid() as u32;
    Opening { nonce, geometry, clock_kind: clock, target_pid, claim, generation }.bytes()
}

/// The words that state the location of its rows of cells, if it has any. Otherwise the current
/// words belong to another segment.
fn cell_words(buffer: &AttachedBuffer) -> Option<[u8; size_of::<CellWords>()]> {
    let words = buffer.plan.geometry.cell_words(buffer.segment.nonce());
    (words != CellWords::NONE).then(|| control::cell_bytes(words))
}

/// Makes the gate name the current segment of `buffer`, while threads write into another. Call it after
/// a check, which found `copy`.
///
/// The gate first closes, or states that it moves. Otherwise a thread that looks for a ring during
/// this time would find the former gate and use a description that is half of one segment and half
/// of another.
pub(super) fn move_on(
    by: &Access,
    buffer: &mut AttachedBuffer,
    copy: &ControlCopy,
) -> std::result::Result<(), BufferEnd> {
    let Access { target, claim, .. } = *by;
    let generation = Handle::generation_after(copy.generation());
    let words = opening(target, buffer, claim, generation);
    buffer.gate = handle(buffer, generation).word();
    let (page, gate) = (buffer.buffer.control, buffer.gate.to_le_bytes());
    let written = write_checked(target, page, &between(buffer, generation).to_le_bytes())
        && write_checked(target, page + OPENING_AT as u64, &words)
        && cell_words(buffer)
            .is_none_or(|words| write_checked(target, page + CELLS_AT as u64, &words))
        && write_checked(target, page, &gate);
    match look(by, buffer)? {
        // Another process detached since the check, and this overwrote the value it wrote into the
        // gate.
        back if back.is_to_detach() => Err(leave(by, buffer)),
        back if written && back.gate() == buffer.gate && back.nonce() == buffer.segment.nonce() => {
            Ok(())
        }
        _ => Err(switched_off(by, buffer)),
    }
}

/// Closes the gate because another process asked the session to end. Returns the resulting end.
pub(super) fn leave(by: &Access, buffer: &AttachedBuffer) -> BufferEnd {
    shut(by, buffer).err().unwrap_or(BufferEnd::SwitchedOff)
}

/// The gate's value while it moves to another segment. Adds continue in the meantime: a counter
/// that goes up and down must not miss one of the two.
fn between(buffer: &AttachedBuffer, generation: u32) -> u64 {
    match cell_words(buffer) {
        Some(_) => Handle { generation, kind: SegmentKind::SysV, id: MOVING }.word(),
        None => 0,
    }
}

/// The gate's value. The id of a segment that the target makes carries no information. It is
/// neither all ones nor, when half written, the value for off.
fn handle(buffer: &AttachedBuffer, generation: u32) -> Handle {
    let made = (buffer.segment.nonce() as u32 & 0x7fff_ffff).clamp(1, 0x7fff_fffe);
    let id = match buffer.kind {
        SegmentKind::SysV => buffer.segment.id().map_or(made, |id| id as u32),
        SegmentKind::Memfd => made,
    };
    Handle { generation, kind: buffer.kind, id }
}

/// Notes the cursor of each ring at the start of the session, and the unread frames before it.
pub(super) fn start_cursors(buffer: &mut AttachedBuffer) {
    buffer.first.clear();
    buffer.unattended.clear();
    buffer.cells = if buffer.adopted { found(&buffer.segment) } else { BTreeMap::new() };
    for index in 0..buffer.plan.geometry.rings() {
        let ring = buffer.segment.ring(index);
        let tail = ring.tail();
        if buffer.adopted {
            let unattended = ring.unattended(buffer.stated(index), tail);
            let unattended =
                unattended.map(|(first, count)| Unattended { ring: index, first, count });
            buffer.unattended.extend(unattended);
        }
        buffer.first.push(tail);
    }
}

/// The non-zero cells of the shared row and of the rows of rings that were ever claimed.
fn found(segment: &Segment) -> FoundCells {
    let geometry = segment.geometry();
    let claimed = (0..geometry.rings()).filter(|&ring| segment.ring(ring).owner().epoch > 0);
    let rows = std::iter::once(0).chain(claimed.map(|ring| ring + 1));
    let rows = rows.filter(|&row| row < geometry.rows().count());
    let read = |row| segment.row(row).iter().map(cells::read).collect();
    rows.map(|row| (row, read(row))).collect()
}

/// Switches from ticks, which the system no longer trusts, to the monotonic clock. Call it after a
/// check.
pub(super) fn give_up_ticks(target: &Target, buffer: &AttachedBuffer) -> bool {
    let at = buffer.buffer.control + CLOCK_KIND_AT as u64;
    write_checked(target, at, &clock_kind::MONOTONIC.to_le_bytes())
}

/// Offers the same segment under a new handle: for a target that could not map it at first, or that
/// is to make one of the same name.
pub(super) fn reopen(
    target: &Target,
    buffer: &mut AttachedBuffer,
    copy: &ControlCopy,
) -> Result<()> {
    let generation = Handle::generation_after(copy.generation());
    let handle = handle(buffer, generation);
    let at =
        buffer.buffer.control + std::mem::offset_of!(ppt_segment::abi::Control, generation) as u64;
    write(target, at, &u64::from(generation).to_le_bytes())?;
    write(target, buffer.buffer.control, &handle.word().to_le_bytes())?;
    buffer.gate = handle.word();
    Ok(())
}

pub(super) fn write(target: &Target, address: u64, bytes: &[u8]) -> Result<Transport> {
    let pid = target.pid();
    let wanted = bytes.len();
    match target.memory().write(address, bytes) {
        Ok((written, transport)) if written == wanted => Ok(transport),
        Ok((0, _)) => Err(match gone(target) {
            BufferEnd::Exited => AgentError::Ended { pid },
            _ => AgentError::ProgramChanged { pid },
        }),
        Ok((written, _)) => Err(AgentError::PartialWrite { pid, written, wanted }),
        Err(cause) => Err(AgentError::System { action: "write into", pid, cause }),
    }
}

/// Reads descriptor and control page through the held descriptor, which does not follow an exec.
pub(super) fn look(
    by: &Access,
    buffer: &AttachedBuffer,
) -> std::result::Result<ControlCopy, BufferEnd> {
    let Access { target, claim, .. } = *by;
    let mut page = vec![0; control::BYTES];
    let mut descriptor = [0; DESCRIPTOR_BYTES];
    let memory = target.memory();
    let whole = memory.read_exact(buffer.buffer.control, &mut page).unwrap_or(false)
        && memory.read_exact(buffer.buffer.address, &mut descriptor).unwrap_or(false);
    if !whole && memory.read(buffer.buffer.address, &mut [0]).unwrap_or(0) == 0 {
        // The address space, or that part of it, is gone.
        return Err(gone(target));
    }
    if !whole || descriptor != buffer.buffer.descriptor {
        return Err(BufferEnd::Unloaded);
    }
    let copy = ControlCopy::new(page);
    match copy.claim().nonce {
        nonce if nonce == claim.nonce => Ok(copy),
        // No agent has ever attached to this buffer: it was loaded at the address of the former
        // one.
        0 if copy.generation() == 0 => Err(BufferEnd::Unloaded),
        0 => Err(BufferEnd::SwitchedOff),
        _ => Err(BufferEnd::TakenOver),
    }
}

/// Why a gate that we left open is closed. A library that is about to be unloaded, as at exit(3),
/// closes its own gate; the cause becomes visible within moments.
pub(super) fn switched_off(by: &Access, buffer: &AttachedBuffer) -> BufferEnd {
    let start = Instant::now();
    while start.elapsed() < VISIBILITY_DELAY {
        if by.target.ended() {
            return BufferEnd::Exited;
        }
        if let Err(end) = look(by, buffer) {
            return end;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    BufferEnd::SwitchedOff
}

/// Exit, exec or unload. An exiting process has no memory from the moment its former memory is gone
/// until it has ended. So a process that has memory after that runs another program.
fn gone(target: &Target) -> BufferEnd {
    let start = Instant::now();
    while start.elapsed() < EXIT_DELAY {
        if target.ended() || target.has_only_zombies() {
            return BufferEnd::Exited;
        }
        if target.maps_same_memory() {
            return BufferEnd::Unloaded;
        }
        // In this order: it may exit between the two.
        if target.has_memory() {
            return BufferEnd::Exec;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    BufferEnd::Exec
}

/// Why a buffer that was found a moment ago is gone.
fn lost(target: &Target, buffer: &str) -> AgentError {
    let pid = target.pid();
    match gone(target) {
        BufferEnd::Exited => AgentError::Ended { pid },
        BufferEnd::Exec => AgentError::ProgramChanged { pid },
        _ => AgentError::Unloaded { pid, buffer: buffer.into() },
    }
}

/// Closes the gate if it is still ours.
pub(super) fn shut(by: &Access, buffer: &AttachedBuffer) -> std::result::Result<(), BufferEnd> {
    let target = by.target;
    look(by, buffer)?;
    if write_checked(target, buffer.buffer.control, &0u64.to_le_bytes()) {
        Ok(())
    } else {
        Err(gone(target))
    }
}

/// Writes to a page that [`look`] has just checked.
pub(super) fn write_checked(target: &Target, address: u64, bytes: &[u8]) -> bool {
    target.memory().write(address, bytes).is_ok_and(|(written, _)| written == bytes.len())
}

/// Clears the claim if it is still ours.
pub(super) fn release(by: &Access, buffer: &AttachedBuffer) -> std::result::Result<(), BufferEnd> {
    let target = by.target;
    look(by, buffer)?;
    let nobody = Claim { agent_pid: 0, start_time: 0, pid_namespace: 0, nonce: 0 };
    let at = buffer.buffer.control + CLAIM_AT as u64;
    if write_checked(target, at, &control::claim_bytes(nobody)) {
        Ok(())
    } else {
        Err(gone(target))
    }
}
