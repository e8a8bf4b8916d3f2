//! Reads and writes of control pages. Each write after the first follows a check that descriptor
//! and claim are still there.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use ppt_segment::abi::{CellWords, Claim, MOVING, clock_kind};
use ppt_segment::handle::SegmentKind;
use ppt_segment::{Handle, Segment, cells};

use super::attached::{Access, Attached, BufferEnd, FoundCells, Unattended};
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

/// How long a change in the target may take to become visible everywhere the agent looks.
const MOMENTS: Duration = Duration::from_millis(100);
/// How long a process that has released its memory takes to end on a busy machine.
const LAST_MOMENTS: Duration = Duration::from_secs(5);

/// The control page as it is, and the page with copied content of a fork cleared.
pub(super) fn control_of(target: &Target, buffer: &Buffer) -> Result<(ControlCopy, ControlCopy)> {
    let pid = target.pid();
    let mut bytes = vec![0; control::BYTES];
    match target.memory().read_exact(buffer.control, &mut bytes) {
        Ok(true) => {}
        Ok(false) => return Err(lost(target, &buffer.name)),
        Err(cause) => return Err(AgentError::System { action: "read", pid, cause }),
    }
    let raw = ControlCopy::new(bytes);
    let copied = raw.target_pid() != 0 && raw.target_pid() != target.ns_pid() as u32;
    Ok((if copied { ControlCopy::blank() } else { raw.clone() }, raw))
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
pub(super) fn open(by: &Access, it: &mut Attached) -> Result<Transport> {
    let Access { target, claim, allow } = *by;
    let pid = target.pid();
    recheck(target, &it.buffer)?;
    let (copy, raw) = control_of(target, &it.buffer)?;
    it.took_over = check_claim(target, &it.buffer, &copy, allow)?.or(it.took_over.take());
    let page = it.buffer.control;

    let same = copy.nonce() == it.segment.nonce();
    if raw.gate() != 0 && !same {
        write(target, page, &0u64.to_le_bytes())?;
    }
    if raw.target_pid() != 0 && raw.target_pid() != target.ns_pid() as u32 {
        // A fork copied this page. It describes mappings that this process does not have.
        write(target, page, ControlCopy::blank().bytes())?;
    }
    // Counters of refused frames never decrease; a session reports their increase.
    let counters = control_of(target, &it.buffer)?.1.counters();
    it.base = (counters, it.segment.refused());
    (it.since, it.counted) = (Instant::now(), counters);

    let generation = match copy.generation() {
        0 => random() as u32 | 1,
        last => Handle::generation_after(last),
    };
    write(target, page + OPENING_AT as u64, &opening(target, it, claim, generation))?;
    if let Some(words) = cell_words(it) {
        write(target, page + CELLS_AT as u64, &words)?;
    }
    if let (Some(StampClock::Ticks), Some(scale)) = (&it.clock, ppt_now::tick_scale()) {
        write(target, page + TICK_SCALE_AT as u64, &scale.to_le_bytes())?;
    }
    // From here on, nothing of the earlier claim counts.
    write(target, page + DISABLED_AT as u64, &masks::mask_bytes(it, claim))?;
    match it.is_awaiting() {
        true => masks::ask(it),
        false => masks::enter(it),
    }
    masks::note_rings(it);
    start_cursors(it);
    if let Some(socket) = it.follow {
        // After the claim, which invalidates the old content; in this order.
        write(target, page + FOLLOW_SOCKET_AT as u64, &socket.to_le_bytes())?;
        write(target, page + FOLLOW_CLAIM_AT as u64, &claim.nonce.to_le_bytes())?;
    }
    it.gate = handle(it, generation).word();
    let transport = write(target, page, &it.gate.to_le_bytes())?;

    let back = match control_of(target, &it.buffer) {
        Ok((_, back)) => back,
        // The first frame may have killed the target. The owner of the session investigates that.
        Err(_) if target.ended() || !target.has_memory() => return Ok(transport),
        Err(error) => return Err(error),
    };
    if back.gate() != it.gate {
        return Err(AgentError::ReadBack { pid, what: "the gate" });
    }
    if back.claim() != claim || back.nonce() != it.segment.nonce() {
        return Err(AgentError::ReadBack { pid, what: "the claim" });
    }
    Ok(transport)
}

/// The words of the control page that describe the segment of `it`.
fn opening(target: &Target, it: &Attached, claim: Claim, generation: u32) -> Vec<u8> {
    let clock = it.clock.as_ref().map_or(clock_kind::UNDECIDED, StampClock::kind);
    let (nonce, geometry) = (it.segment.nonce(), it.plan.geometry);
    let target_pid = target.ns_pid() as u32;
    Opening { nonce, geometry, clock_kind: clock, target_pid, claim, generation }.bytes()
}

/// The words that state the location of its rows of cells, if it has any. Otherwise the current
/// words belong to another segment.
fn cell_words(it: &Attached) -> Option<[u8; size_of::<CellWords>()]> {
    let words = it.plan.geometry.cell_words(it.segment.nonce());
    (words != CellWords::NONE).then(|| control::cell_bytes(words))
}

/// Makes the gate name the current segment of `it`, while threads write into another. Call it after
/// a check, which found `copy`.
///
/// The gate first closes, or states that it moves. Otherwise a thread that looks for a ring during
/// this time would find the former gate and use a description that is half of one segment and half
/// of another.
pub(super) fn move_on(
    by: &Access,
    it: &mut Attached,
    copy: &ControlCopy,
) -> std::result::Result<(), BufferEnd> {
    let Access { target, claim, .. } = *by;
    let generation = Handle::generation_after(copy.generation());
    let words = opening(target, it, claim, generation);
    it.gate = handle(it, generation).word();
    let (page, gate) = (it.buffer.control, it.gate.to_le_bytes());
    let written = write_looked_at(target, page, &between(it, generation).to_le_bytes())
        && write_looked_at(target, page + OPENING_AT as u64, &words)
        && cell_words(it)
            .is_none_or(|words| write_looked_at(target, page + CELLS_AT as u64, &words))
        && write_looked_at(target, page, &gate);
    match look(by, it)? {
        // Another process detached since the check, and this overwrote the value it wrote into the
        // gate.
        back if back.is_to_detach() => Err(leave(by, it)),
        back if written && back.gate() == it.gate && back.nonce() == it.segment.nonce() => Ok(()),
        _ => Err(switched_off(by, it)),
    }
}

/// Closes the gate because another process asked the session to end. Returns the resulting end.
pub(super) fn leave(by: &Access, it: &Attached) -> BufferEnd {
    shut(by, it).err().unwrap_or(BufferEnd::SwitchedOff)
}

/// The gate's value while it moves to another segment. Adds continue in the meantime: a counter
/// that goes up and down must not miss one of the two.
fn between(it: &Attached, generation: u32) -> u64 {
    match cell_words(it) {
        Some(_) => Handle { generation, kind: SegmentKind::SysV, id: MOVING }.word(),
        None => 0,
    }
}

/// The gate's value. The id of a segment that the target makes carries no information. It is
/// neither all ones nor, when half written, the value for off.
fn handle(it: &Attached, generation: u32) -> Handle {
    let made = (it.segment.nonce() as u32 & 0x7fff_ffff).clamp(1, 0x7fff_fffe);
    let id = match it.kind {
        SegmentKind::SysV => it.segment.id().map_or(made, |id| id as u32),
        SegmentKind::Memfd => made,
    };
    Handle { generation, kind: it.kind, id }
}

/// Notes the cursor of each ring at the start of the session, and the unread frames before it.
pub(super) fn start_cursors(it: &mut Attached) {
    it.first.clear();
    it.unattended.clear();
    it.cells = if it.adopted { found(&it.segment) } else { BTreeMap::new() };
    for index in 0..it.plan.geometry.rings() {
        let ring = it.segment.ring(index);
        let tail = ring.tail();
        if it.adopted {
            let unattended = ring.unattended(it.stated(index), tail);
            let unattended =
                unattended.map(|(first, count)| Unattended { ring: index, first, count });
            it.unattended.extend(unattended);
        }
        it.first.push(tail);
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
pub(super) fn give_up_ticks(target: &Target, it: &Attached) -> bool {
    let at = it.buffer.control + CLOCK_KIND_AT as u64;
    write_looked_at(target, at, &clock_kind::MONOTONIC.to_le_bytes())
}

/// Offers the same segment under a new handle: for a target that could not map it at first, or that
/// is to make one of the same name.
pub(super) fn reopen(target: &Target, it: &mut Attached, copy: &ControlCopy) -> Result<()> {
    let generation = Handle::generation_after(copy.generation());
    let handle = handle(it, generation);
    let at = it.buffer.control + std::mem::offset_of!(ppt_segment::abi::Control, generation) as u64;
    write(target, at, &u64::from(generation).to_le_bytes())?;
    write(target, it.buffer.control, &handle.word().to_le_bytes())?;
    it.gate = handle.word();
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
pub(super) fn look(by: &Access, it: &Attached) -> std::result::Result<ControlCopy, BufferEnd> {
    let Access { target, claim, .. } = *by;
    let mut page = vec![0; control::BYTES];
    let mut descriptor = [0; DESCRIPTOR_BYTES];
    let memory = target.memory();
    let whole = memory.read_exact(it.buffer.control, &mut page).unwrap_or(false)
        && memory.read_exact(it.buffer.address, &mut descriptor).unwrap_or(false);
    if !whole && memory.read(it.buffer.address, &mut [0]).unwrap_or(0) == 0 {
        // The address space, or that part of it, is gone.
        return Err(gone(target));
    }
    if !whole || descriptor != it.buffer.descriptor {
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
pub(super) fn switched_off(by: &Access, it: &Attached) -> BufferEnd {
    let start = Instant::now();
    while start.elapsed() < MOMENTS {
        if by.target.ended() {
            return BufferEnd::Exited;
        }
        if let Err(end) = look(by, it) {
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
    while start.elapsed() < LAST_MOMENTS {
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
pub(super) fn shut(by: &Access, it: &Attached) -> std::result::Result<(), BufferEnd> {
    let target = by.target;
    look(by, it)?;
    match write_looked_at(target, it.buffer.control, &0u64.to_le_bytes()) {
        true => Ok(()),
        false => Err(gone(target)),
    }
}

/// Writes to a page that [`look`] has just checked.
pub(super) fn write_looked_at(target: &Target, address: u64, bytes: &[u8]) -> bool {
    target.memory().write(address, bytes).is_ok_and(|(written, _)| written == bytes.len())
}

/// Clears the claim if it is still ours.
pub(super) fn release(by: &Access, it: &Attached) -> std::result::Result<(), BufferEnd> {
    let target = by.target;
    look(by, it)?;
    let nobody = Claim { agent_pid: 0, start_time: 0, pid_namespace: 0, nonce: 0 };
    let at = it.buffer.control + CLAIM_AT as u64;
    match write_looked_at(target, at, &control::claim_bytes(nobody)) {
        true => Ok(()),
        false => Err(gone(target)),
    }
}
