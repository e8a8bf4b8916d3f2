//! One claim to detach: from the first write into a target to the last.

use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ppt_segment::abi::Claim;
use ppt_segment::handle::Kind;
use ppt_segment::{Handle, Identity, Refused, Segment};

use crate::buffer::{Buffer, DESCRIPTOR_BYTES};
use crate::claim::{self, Holder};
use crate::control::{self, CLAIM_AT, ControlCopy, OPENING_AT, TargetCounters};
use crate::error::{AgentError, Result};
use crate::plan::{Limits, Plan};
use crate::poke::{describe, held};
use crate::target::Target;

pub use crate::memory::Transport;

/// Refusals that the user lifts, one by one.
#[derive(Debug, Clone, Copy, Default)]
pub struct Allow {
    /// Attach beside a debugger.
    pub traced: bool,
    /// Attach to a target whose seccomp filter may end it.
    pub seccomp: bool,
    /// Take over a buffer whose agent lives, or cannot be looked at.
    pub foreign_claim: bool,
}

/// How to attach.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Bounds of the segments.
    pub limits: Limits,
    /// Lifted refusals.
    pub allow: Allow,
}

/// Why a buffer's part of a session is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// The process ended.
    Exited,
    /// The process runs another program now.
    Exec,
    /// The library that held the buffer was unloaded.
    Unloaded,
    /// Somebody else switched it off: `ppt detach`.
    SwitchedOff,
    /// Somebody else took it over.
    TakenOver,
}

/// One attached buffer.
#[derive(Debug)]
pub struct Attached {
    /// The buffer.
    pub buffer: Buffer,
    /// Its segment.
    pub segment: Arc<Segment>,
    /// The geometry and why.
    pub plan: Plan,
    /// Whether the segment is that of an earlier session.
    pub adopted: bool,
    /// The dead agent whose claim was taken over.
    pub took_over: Option<Holder>,
    /// Cursor of each ring when the session began.
    pub first: Vec<u64>,
    /// Frames that were written after the last session and before this one: ring, first sequence
    /// number, count.
    pub unattended: Vec<(u32, u64, u64)>,
    gate: u64,
    base: (TargetCounters, Refused),
    dropped: Dropped,
    retried: bool,
    ending: Option<Ending>,
}

/// Frames that the target refused in this session, by cause.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Dropped {
    /// No ring was free.
    pub no_ring: u64,
    /// Inside another write.
    pub nested: u64,
    /// The segment could not be mapped.
    pub not_mapped: u64,
}

/// What a look at an attached buffer found.
#[derive(Debug, Clone, Copy, Default)]
pub struct Checked {
    /// Frames that the target refused in this session.
    pub dropped: Dropped,
    /// errno of a segment that the target could not map, after a second try.
    pub unmappable: Option<i32>,
    /// The buffer's part is over.
    pub ending: Option<Ending>,
}

/// What is going on in a buffer.
#[derive(Debug, Clone)]
pub struct Status {
    /// Whether its gate is open.
    pub on: bool,
    /// Who holds it.
    pub holder: Option<Holder>,
}

/// What a detach from outside did to one buffer.
#[derive(Debug, Clone)]
pub enum Detached {
    /// Nobody was attached.
    WasOff,
    /// A living agent will notice and end its capture.
    Asked(Holder),
    /// What a dead agent had left was cleared away.
    Cleared(Option<Holder>),
}

/// Attached buffers of one target.
#[derive(Debug)]
pub struct Session {
    target: Target,
    claim: Claim,
    attached: Vec<Attached>,
    /// How long the target was held, and how its memory was written.
    pub held: Duration,
    /// How the gates were written.
    pub transport: Transport,
}

impl Session {
    /// Attaches to `buffers` of `target`: segments first, then claim, geometry and gate of each in
    /// one hold. On failure nothing is left attached.
    pub fn attach(target: Target, buffers: Vec<Buffer>, options: &Options) -> Result<Self> {
        refuse(&target, options.allow)?;
        let claim = claim::ours(target.system(), random_nonzero());
        let mut attached = Vec::with_capacity(buffers.len());
        for buffer in buffers {
            attached.push(prepare(&target, buffer, options)?);
        }
        let work = || {
            let mut transport = Transport::Writev;
            for index in 0..attached.len() {
                match open(&target, &mut attached[index], claim, options.allow) {
                    Ok(used) => transport = used,
                    Err(error) => {
                        for undo in &attached[..index] {
                            let _ = shut(&target, undo, claim);
                            let _ = release(&target, undo, claim);
                        }
                        return Err(error);
                    }
                }
            }
            Ok(transport)
        };
        let held = held(&target, options.allow.traced, work)?;
        Ok(Self { claim, attached, held: held.time, transport: held.result, target })
    }

    /// The target.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// Becomes readable when the target ends.
    pub fn pidfd(&self) -> Option<BorrowedFd<'_>> {
        self.target.pidfd()
    }

    /// The attached buffers.
    pub fn attached(&self) -> &[Attached] {
        &self.attached
    }

    /// Looks at the control page of buffer `index`: cheap, for about once a second. A segment that
    /// could not be mapped is offered once more under a new handle.
    pub fn check(&mut self, index: usize) -> Checked {
        let Self { target, claim, attached, .. } = self;
        let it = &mut attached[index];
        let mut unmappable = None;
        if it.ending.is_none() {
            match look(target, it, *claim) {
                Ok(copy) => {
                    it.dropped = dropped(it, copy.counters());
                    unmappable = copy.failure(it.gate);
                    if copy.gate() != it.gate {
                        it.ending = Some(Ending::SwitchedOff);
                    } else if unmappable.is_some() && !it.retried {
                        it.retried = true;
                        if reopen(target, it, &copy).is_ok() {
                            unmappable = None;
                        }
                    }
                }
                Err(ending) => {
                    it.ending = Some(ending);
                    // What the target counted outside the segment is as last read.
                    let seen = TargetCounters {
                        no_ring: it.base.0.no_ring,
                        nested: it.base.0.nested,
                        not_mapped: it.base.0.not_mapped + it.dropped.not_mapped,
                    };
                    let now = dropped(it, seen);
                    it.dropped.no_ring = it.dropped.no_ring.max(now.no_ring);
                    it.dropped.nested = it.dropped.nested.max(now.nested);
                }
            }
        }
        Checked { dropped: it.dropped, unmappable, ending: it.ending }
    }

    /// Closes the gates: after this each thread completes at most the frame that it is in.
    pub fn gate_off(&mut self) {
        for it in &mut self.attached {
            if it.ending.is_none() || it.ending == Some(Ending::SwitchedOff) {
                match shut(&self.target, it, self.claim) {
                    Ok(()) => it.gate = 0,
                    Err(ending) => it.ending = it.ending.or(Some(ending)),
                }
            }
        }
    }

    /// Gives memory and claims back; call it after the last drain. Errors are of no consequence:
    /// what cannot be given back is freed with the target.
    pub fn close(self) {
        for it in &self.attached {
            // Somebody else's by now: its memory is in use.
            let ours = match look(&self.target, it, self.claim) {
                Ok(_) => true,
                Err(ending) => ending == Ending::Unloaded,
            };
            if ours {
                let _ = it.segment.give_back();
                let _ = release(&self.target, it, self.claim);
            }
        }
    }
}

/// What can be told before anything is made.
fn refuse(target: &Target, allow: Allow) -> Result<()> {
    let pid = target.pid();
    let tracer = target.tracer();
    if tracer != 0 && !allow.traced {
        return Err(AgentError::Traced { pid, tracer: describe(target, tracer) });
    }
    if !allow.seccomp && foreign_filter(target) {
        return Err(AgentError::Seccomp { pid });
    }
    let system = target.system();
    let theirs = system.namespace(&pid.to_string(), "ipc");
    if theirs.is_some() && theirs != system.namespace("self", "ipc") {
        return Err(AgentError::IpcNamespace { pid });
    }
    Ok(())
}

/// Whether the target has a system call filter that we do not share, outside a container.
fn foreign_filter(target: &Target) -> bool {
    let filters = |pid: &str| {
        let status = target.system().proc_text(&format!("{pid}/status")).unwrap_or_default();
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|value| value.trim().parse::<u32>().ok())
        };
        // Kernels before 5.9 do not count: one filter, then.
        (field("Seccomp:") == Some(2)).then(|| field("Seccomp_filters:").unwrap_or(1))
    };
    let theirs = filters(&target.pid().to_string());
    let contained = target.system().proc_text(&format!("{}/cgroup", target.pid()));
    let contained = contained.is_some_and(|cgroup| {
        ["docker", "kubepods", "containerd", "libpod", "lxc"].iter().any(|it| cgroup.contains(it))
    });
    theirs.is_some() && theirs != filters("self") && !contained
}

/// Chooses, adopts or makes the segment of a buffer and allocates what the target will need first.
fn prepare(target: &Target, buffer: Buffer, options: &Options) -> Result<Attached> {
    let pid = target.pid();
    let (copy, _) = control_of(target, &buffer)?;
    let took_over = check_claim(target, &buffer, &copy, options.allow)?;
    let plan = Plan::new(&buffer.schema, target.threads(), options.limits)?;
    let identity =
        |nonce| Identity { nonce, schema_hash: buffer.schema_hash, geometry: plan.geometry };
    let adopted = copy
        .segments()
        .into_iter()
        .find_map(|(id, nonce)| Segment::adopt(id, identity(nonce)).ok());
    let is_adopted = adopted.is_some();
    let segment = match adopted {
        Some(segment) => segment,
        None if copy.table_full() => {
            return Err(AgentError::TableFull { pid, buffer: buffer.name.clone() });
        }
        None => create(target, identity(random_nonzero()))?,
    };
    segment.populate_headers().map_err(|cause| out_of_memory(&plan, cause))?;
    for ring in 0..plan.populate {
        segment.populate_ring(ring).map_err(|cause| out_of_memory(&plan, cause))?;
    }
    Ok(Attached {
        buffer,
        segment: Arc::new(segment),
        plan,
        adopted: is_adopted,
        took_over,
        first: Vec::new(),
        unattended: Vec::new(),
        gate: 0,
        base: Default::default(),
        dropped: Dropped::default(),
        retried: false,
        ending: None,
    })
}

fn out_of_memory(plan: &Plan, cause: std::io::Error) -> AgentError {
    let bytes = plan.geometry.ring_bytes() * u64::from(plan.populate);
    AgentError::SegmentRefused {
        bytes,
        cause,
        advice: "there is not enough memory for the rings of the threads that exist; ask for less: \
                 --slots, --memory",
    }
}

fn create(target: &Target, identity: Identity) -> Result<Segment> {
    let (uid, gid) = target.owner();
    let other = uid != rustix::process::geteuid().as_raw();
    let clock = |id| {
        let now = rustix::time::clock_gettime(id);
        now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
    };
    let created = (clock(rustix::time::ClockId::Monotonic), clock(rustix::time::ClockId::Realtime));
    let owner = other.then_some((uid, gid));
    Segment::create(identity, owner, created, || random() as u16).map_err(|cause| {
        let advice = match cause.raw_os_error().map(nix::errno::Errno::from_raw) {
            Some(nix::errno::Errno::ENOSPC) => {
                "the system's limit of shared memory is reached: see ipcs -lm, kernel.shmmni and \
                 kernel.shmall"
            }
            Some(nix::errno::Errno::EINVAL) => {
                "it is larger than kernel.shmmax allows: ask for less by --slots or --memory"
            }
            Some(nix::errno::Errno::ENOMEM) => {
                "there is not enough memory: ask for less by --slots or --memory"
            }
            Some(nix::errno::Errno::ENOSYS) => "this kernel has no System V shared memory",
            _ => "see shmget(2)",
        };
        AgentError::SegmentRefused { bytes: identity.geometry.size(), cause, advice }
    })
}

/// The control page as it is, and the same with what a fork copied taken for nothing.
fn control_of(target: &Target, buffer: &Buffer) -> Result<(ControlCopy, ControlCopy)> {
    let pid = target.pid();
    let mut bytes = vec![0; control::BYTES];
    match target.memory().read_exact(buffer.control, &mut bytes) {
        Ok(true) => {}
        Ok(false) => return Err(AgentError::Ended { pid }),
        Err(cause) => return Err(AgentError::System { action: "read", pid, cause }),
    }
    let raw = ControlCopy::new(bytes);
    let copied = raw.target_pid() != 0 && raw.target_pid() != target.ns_pid() as u32;
    Ok((if copied { ControlCopy::blank() } else { raw.clone() }, raw))
}

/// Fails if somebody alive holds the buffer; returns the dead one that did.
fn check_claim(
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

/// Fails unless the buffer is still what was checked when it was found.
fn recheck(target: &Target, buffer: &Buffer) -> Result<()> {
    target.recheck()?;
    let mut now = [0; DESCRIPTOR_BYTES];
    let read = target.memory().read_exact(buffer.address, &mut now);
    match read {
        Ok(true) if now == buffer.descriptor => Ok(()),
        _ => {
            target.recheck()?;
            Err(AgentError::ProgramChanged { pid: target.pid() })
        }
    }
}

/// Writes claim, geometry and gate, and reads them back. Runs while the target is held.
fn open(target: &Target, it: &mut Attached, claim: Claim, allow: Allow) -> Result<Transport> {
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
        // What a fork copied describes mappings that this process does not have.
        write(target, page, ControlCopy::blank().bytes())?;
    }
    // Counters of what was refused never go down; a session reports what they rise by.
    let counters = control_of(target, &it.buffer)?.1.counters();
    it.base = (counters, it.segment.refused());
    start_cursors(it);

    let generation = match copy.generation() {
        0 => random() as u32 | 1,
        last => Handle::generation_after(last),
    };
    let handle = Handle { generation, kind: Kind::SysV, id: it.segment.id() as u32 };
    let words = control::opening(
        it.segment.nonce(),
        it.plan.geometry,
        target.ns_pid() as u32,
        claim,
        generation,
    );
    write(target, page + OPENING_AT as u64, &words)?;
    let transport = write(target, page, &handle.word().to_le_bytes())?;
    it.gate = handle.word();

    let back = control_of(target, &it.buffer)?.1;
    if back.gate() != it.gate {
        return Err(AgentError::ReadBack { pid, what: "the gate" });
    }
    if back.claim() != claim || back.nonce() != it.segment.nonce() {
        return Err(AgentError::ReadBack { pid, what: "the claim" });
    }
    Ok(transport)
}

/// Where the session begins in each ring, and what nobody read before it.
fn start_cursors(it: &mut Attached) {
    it.first.clear();
    it.unattended.clear();
    for index in 0..it.plan.geometry.rings() {
        let ring = it.segment.ring(index);
        let (tail, attended) = (ring.tail(), ring.attended());
        if attended < tail && it.adopted {
            it.unattended.push((index, attended + 1, tail - attended));
        }
        it.first.push(tail);
    }
}

/// The same segment under a new handle: for a target that could not map it at first.
fn reopen(target: &Target, it: &mut Attached, copy: &ControlCopy) -> Result<()> {
    let generation = Handle::generation_after(copy.generation());
    let handle = Handle { generation, kind: Kind::SysV, id: it.segment.id() as u32 };
    let at = it.buffer.control + std::mem::offset_of!(ppt_segment::abi::Control, generation) as u64;
    write(target, at, &u64::from(generation).to_le_bytes())?;
    write(target, it.buffer.control, &handle.word().to_le_bytes())?;
    it.gate = handle.word();
    Ok(())
}

fn write(target: &Target, address: u64, bytes: &[u8]) -> Result<Transport> {
    let pid = target.pid();
    let wanted = bytes.len();
    match target.memory().write(address, bytes) {
        Ok((written, transport)) if written == wanted => Ok(transport),
        Ok((written, _)) => Err(AgentError::PartialWrite { pid, written, wanted }),
        Err(cause) => Err(AgentError::System { action: "write into", pid, cause }),
    }
}

/// Reads descriptor and control page through the held descriptor, which follows no exec.
fn look(target: &Target, it: &Attached, claim: Claim) -> std::result::Result<ControlCopy, Ending> {
    let mut page = vec![0; control::BYTES];
    let mut descriptor = [0; DESCRIPTOR_BYTES];
    let memory = target.memory();
    let whole = memory.read_exact(it.buffer.control, &mut page).unwrap_or(false)
        && memory.read_exact(it.buffer.address, &mut descriptor).unwrap_or(false);
    if !whole && memory.read(it.buffer.address, &mut [0]).unwrap_or(0) == 0 {
        // That address space is gone, or that part of it.
        return Err(gone(target));
    }
    if !whole || descriptor != it.buffer.descriptor {
        return Err(Ending::Unloaded);
    }
    let copy = ControlCopy::new(page);
    match copy.claim().nonce {
        nonce if nonce == claim.nonce => Ok(copy),
        0 => Err(Ending::SwitchedOff),
        _ => Err(Ending::TakenOver),
    }
}

/// Exit, exec or unload: a process that exits says so within moments.
fn gone(target: &Target) -> Ending {
    const MOMENTS: Duration = Duration::from_millis(100);
    let start = Instant::now();
    while start.elapsed() < MOMENTS {
        if target.ended() {
            return Ending::Exited;
        }
        if target.maps_same_memory() {
            return Ending::Unloaded;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Ending::Exec
}

fn dropped(it: &Attached, now: TargetCounters) -> Dropped {
    let (base, refused_base) = it.base;
    let refused = it.segment.refused();
    let rise = |now: u64, base: u64| now.saturating_sub(base);
    Dropped {
        no_ring: rise(now.no_ring, base.no_ring) + rise(refused.no_ring, refused_base.no_ring),
        nested: rise(now.nested, base.nested) + rise(refused.nested, refused_base.nested),
        not_mapped: rise(now.not_mapped, base.not_mapped),
    }
}

/// Closes a gate that is still ours.
fn shut(target: &Target, it: &Attached, claim: Claim) -> std::result::Result<(), Ending> {
    look(target, it, claim)?;
    match write_looked_at(target, it.buffer.control, &0u64.to_le_bytes()) {
        true => Ok(()),
        false => Err(gone(target)),
    }
}

/// Writes where [`look`] has just looked: through the held descriptor, or by system call where the
/// system forbids that.
fn write_looked_at(target: &Target, address: u64, bytes: &[u8]) -> bool {
    let held = target.memory().write_held(address, bytes);
    let written = held.or_else(|_| target.memory().write(address, bytes));
    written.is_ok_and(|(written, _)| written == bytes.len())
}

/// Clears a claim that is still ours.
fn release(target: &Target, it: &Attached, claim: Claim) -> std::result::Result<(), Ending> {
    look(target, it, claim)?;
    let nobody = Claim { agent_pid: 0, start_time: 0, pid_namespace: 0, nonce: 0 };
    let at = it.buffer.control + CLAIM_AT as u64;
    match write_looked_at(target, at, &control::claim_bytes(nobody)) {
        true => Ok(()),
        false => Err(gone(target)),
    }
}

/// Whether a buffer is on, and who holds it.
pub fn status(target: &Target, buffer: &Buffer) -> Result<Status> {
    let (copy, _) = control_of(target, buffer)?;
    Ok(Status { on: copy.gate() != 0, holder: claim::holder(target.system(), copy.claim()) })
}

/// Switches a buffer off from outside: a living agent ends its capture, a dead one's remains are
/// cleared away.
pub fn detach(target: &Target, buffer: &Buffer, allow: Allow) -> Result<Detached> {
    let work = || {
        recheck(target, buffer)?;
        let (copy, raw) = control_of(target, buffer)?;
        let holder = claim::holder(target.system(), copy.claim());
        if raw.gate() == 0 && holder.is_none() {
            return Ok(Detached::WasOff);
        }
        write(target, buffer.control, &0u64.to_le_bytes())?;
        if let Some(holder) = holder.clone().filter(|holder| holder.alive != Some(false)) {
            return Ok(Detached::Asked(holder));
        }
        for (id, nonce) in copy.segments() {
            let left = || Segment::adopt_any(id, nonce, buffer.schema_hash).ok();
            if let Some(segment) = (nonce == copy.nonce()).then(left).flatten() {
                let _ = segment.give_back();
            }
        }
        let nobody = Claim { agent_pid: 0, start_time: 0, pid_namespace: 0, nonce: 0 };
        write(target, buffer.control + CLAIM_AT as u64, &control::claim_bytes(nobody))?;
        Ok(Detached::Cleared(holder))
    };
    Ok(held(target, allow.traced, work)?.result)
}

fn random() -> u64 {
    getrandom::u64().unwrap_or_else(|_| {
        // Only where /dev/urandom is missing, too: unique is all that is needed.
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        (now.tv_nsec as u64) << 32 ^ now.tv_sec as u64 ^ u64::from(std::process::id()) << 16
    })
}

fn random_nonzero() -> u64 {
    random().max(1)
}
