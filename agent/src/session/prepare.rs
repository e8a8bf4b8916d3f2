//! The steps before the first write: possible refusals, and the segment of a buffer.

use std::sync::Arc;
use std::time::Instant;

use nix::errno::Errno;
use ppt_segment::handle::SegmentKind;
use ppt_segment::{Created, Masks, Segment, SegmentIdentity, User};

use super::attached::{AttachedBuffer, Dropped, Noted, Stage};
use super::choice::{adopt, choose};
use super::control_page::{check_claim, read_control};
use super::options::{Allow, AttachOptions, SegmentChoice};
use crate::allowance::RingAllowance;
use crate::buffer::Buffer;
use crate::clock;
use crate::control::{ControlCopy, TargetCounters};
use crate::danger::Danger;
use crate::error::{AgentError, MemoryRefusal, Result};
use crate::hold::{describe, is_ppt};
use crate::plan::{GeometryPlan, RingLimits};
use crate::random::{random, random_nonzero};
use crate::seccomp;
use crate::target::Target;

/// Refuses a target for reasons that are known before anything is made. Returns whether the
/// target's system call filter may kill it.
pub(crate) fn refuse(target: &Target, allow: Allow) -> Result<bool> {
    let pid = target.pid();
    if let Some(lender) = target.lender() {
        return Err(AgentError::SharesMemory { pid, lender });
    }
    let tracer = target.tracer();
    if tracer != 0 && !allow.traced && !is_ppt(target, tracer) {
        return Err(AgentError::Traced { pid, tracer: describe(target, tracer) });
    }
    refuse_filters(target, allow)
}

/// Returns whether the target's system call filter may kill it. Fails if `allow` does not permit
/// that.
pub(super) fn refuse_filters(target: &Target, allow: Allow) -> Result<bool> {
    match seccomp::danger(target) {
        Some(danger) if !allow.seccomp => Err(refused(target, danger)),
        danger => Ok(danger.is_some()),
    }
}

/// Checks some threads again, for changes since the full check.
pub(super) fn glance(target: &Target, allow: Allow) -> Result<()> {
    judge(target, seccomp::glance(target), allow)
}

/// Uses a recent check, for each buffer that the target has not mapped.
pub(super) fn glance_lately(target: &Target, allow: Allow) -> Result<()> {
    judge(target, target.danger().found(|| seccomp::glance(target)), allow)
}

fn judge(target: &Target, danger: Option<Danger>, allow: Allow) -> Result<()> {
    match danger {
        Some(danger) if !allow.seccomp => Err(refused(target, danger)),
        _ => Ok(()),
    }
}

fn refused(target: &Target, danger: Danger) -> AgentError {
    let pid = target.pid();
    match danger {
        Danger::Strict(thread) => AgentError::StrictSeccomp { pid, thread },
        Danger::Filtered(_) => AgentError::Seccomp { pid },
    }
}

/// Chooses, adopts or makes the segment of a buffer, and allocates the memory that the target will
/// need first.
pub(super) fn prepare(
    target: &Target,
    buffer: Buffer,
    options: &AttachOptions,
    allowance: &mut RingAllowance,
    limits: RingLimits,
) -> Result<AttachedBuffer> {
    let copy = read_control(target, &buffer)?.effective;
    // Sessions must not wait for a file system: this has just been read, and is about to be written.
    target.memory().set_present(buffer.control..buffer.control + ppt_segment::abi::PAGE);
    let end = buffer.address + size_of_val(&buffer.descriptor) as u64;
    target.memory().set_present(buffer.address..end);
    let took_over = check_claim(target, &buffer, &copy, options.allow)?;
    let clock = clock::decide(target.system(), &buffer.schema, options.clock)
        .map_err(|why| AgentError::TicksRefused { pid: target.pid(), why })?;
    let Had { segment, kind, plan, adopted, awaited } =
        choose_and_obtain(target, &buffer, &copy, options.segment, limits)
            .map_err(|error| allowance.refusal(error))?;
    let masks = options.choose.as_ref();
    let masks = masks.map_or(Masks::ALL_ENABLED, |mask| mask.masks(target.pid(), &buffer.schema));
    Ok(AttachedBuffer {
        buffer,
        masks,
        flips: Vec::new(),
        asked: None,
        noted: Noted::default(),
        segment: Arc::new(segment),
        plan,
        bound: allowance.bound.clone(),
        promise: allowance.promise(plan.geometry.size()),
        kind,
        wanted: options.segment,
        adopted,
        took_over,
        clock,
        first: Vec::new(),
        unattended: Vec::new(),
        cells: Default::default(),
        adds_not_mapped: 0,
        leftovers: Vec::new(),
        dropped: Dropped::default(),
        gate: 0,
        follow: options.follow,
        base: Default::default(),
        since: Instant::now(),
        counted: TargetCounters::default(),
        miscounts: false,
        former: Vec::new(),
        stage: if awaited { Stage::Awaiting } else { Stage::Ready },
        retried: false,
        cannot_grow: false,
        is_end_reported: false,
    })
}

/// Adopts the segment that suits the target best, or makes one.
fn choose_and_obtain(
    target: &Target,
    buffer: &Buffer,
    copy: &ControlCopy,
    wanted: SegmentChoice,
    limits: RingLimits,
) -> Result<Had> {
    let spare = target.spare_memory();
    let choices = GeometryPlan::choices(&buffer.schema, target.threads(), limits, spare)?;
    // Rings that grew in an earlier session need not grow again.
    let grown: Vec<_> = choices.iter().flat_map(|choice| choice.growths(limits)).collect();
    if let Some(adopted) = adopted(target, buffer, copy, &grown, wanted) {
        return populated(adopted);
    }
    let mut choices = choices.into_iter().peekable();
    loop {
        let Some(plan) = choices.next() else { unreachable!("the last one returns") };
        match new(target, buffer, copy, plan, wanted).and_then(populated) {
            // The user did not request this size.
            Err(AgentError::SegmentRefused { .. }) if choices.peek().is_some() => {}
            other => return other,
        }
    }
}

/// A segment to attach.
pub(super) struct Had {
    pub(super) segment: Segment,
    pub(super) kind: SegmentKind,
    pub(super) plan: GeometryPlan,
    /// Whether it comes from an earlier session.
    pub(super) adopted: bool,
    /// Whether the target has yet to make it.
    pub(super) awaited: bool,
}

/// Adopts the segment of `plan` if the target has one, or makes it.
pub(super) fn obtain(
    target: &Target,
    buffer: &Buffer,
    copy: &ControlCopy,
    plan: GeometryPlan,
    wanted: SegmentChoice,
) -> Result<Had> {
    match adopted(target, buffer, copy, &[plan], wanted) {
        Some(had) => populated(had),
        None => new(target, buffer, copy, plan, wanted).and_then(populated),
    }
}

fn identity(buffer: &Buffer, nonce: u64, plan: &GeometryPlan) -> SegmentIdentity {
    SegmentIdentity { nonce, schema_hash: buffer.schema_hash, geometry: plan.geometry }
}

/// The segment of the target that fits the first possible one of `plans`.
fn adopted(
    target: &Target,
    buffer: &Buffer,
    copy: &ControlCopy,
    plans: &[GeometryPlan],
    wanted: SegmentChoice,
) -> Option<Had> {
    let segments = copy.segments();
    plans.iter().find_map(|plan| {
        segments.iter().find_map(|listed| {
            let kind = listed.kind();
            let suits = match wanted {
                SegmentChoice::Auto => true,
                SegmentChoice::SysV => kind == SegmentKind::SysV,
                SegmentChoice::Memfd => kind == SegmentKind::Memfd,
            };
            let segment = adopt(target, listed, identity(buffer, listed.nonce, plan));
            // Earlier agents may be about to use a segment that they know, and would leave its
            // masks.
            let segment = segment.filter(|segment| suits && segment.is_masked())?;
            Some(Had { segment, kind, plan: *plan, adopted: true, awaited: false })
        })
    })
}

/// A new segment, or a reservation for the one that the target will make.
fn new(
    target: &Target,
    buffer: &Buffer,
    copy: &ControlCopy,
    plan: GeometryPlan,
    wanted: SegmentChoice,
) -> Result<Had> {
    if copy.is_table_full() {
        let (pid, buffer) = (target.pid(), buffer.name.clone());
        return Err(AgentError::TableFull { pid, buffer });
    }
    let (segment, kind) = make(target, identity(buffer, random_nonzero(), &plan), wanted)?;
    Ok(Had { segment, kind, plan, adopted: false, awaited: kind == SegmentKind::Memfd })
}

/// Allocates the memory that the target will need first.
fn populated(had: Had) -> Result<Had> {
    if !had.awaited {
        let fail = |cause| out_of_memory(&had.plan, cause);
        had.segment.populate_headers().map_err(fail)?;
        for ring in 0..had.plan.populate {
            had.segment.populate_ring(ring, had.plan.first_bytes()).map_err(fail)?;
        }
    }
    Ok(had)
}

fn out_of_memory(plan: &GeometryPlan, cause: std::io::Error) -> AgentError {
    AgentError::SegmentRefused { bytes: plan.populated(), cause, refused: MemoryRefusal::Rings }
}

/// A new segment, or a reservation for the one that the target will make.
fn make(
    target: &Target,
    identity: SegmentIdentity,
    wanted: SegmentChoice,
) -> Result<(Segment, SegmentKind)> {
    if choose(target, wanted)? == SegmentKind::SysV {
        let refused = match create(target, identity) {
            Ok(segment) => return Ok((segment, SegmentKind::SysV)),
            Err(refused) => refused,
        };
        // What refuses a segment to ppt may refuse it to the target, too.
        let errno = match &refused {
            AgentError::SegmentRefused { cause, .. } => cause.raw_os_error(),
            _ => None,
        };
        let elsewhere =
            [Errno::EPERM, Errno::EACCES, Errno::ENOSYS].map(|number| Some(number as i32));
        if wanted != SegmentChoice::Auto || !elsewhere.contains(&errno) {
            return Err(refused);
        }
        choose(target, SegmentChoice::Memfd)?;
    }
    let awaited = Segment::awaited(identity).map_err(|cause| AgentError::SegmentRefused {
        bytes: identity.geometry.size(),
        cause,
        refused: MemoryRefusal::Room,
    })?;
    Ok((awaited, SegmentKind::Memfd))
}

fn create(target: &Target, identity: SegmentIdentity) -> Result<Segment> {
    let (uid, gid) = target.owner();
    let other = uid != rustix::process::geteuid().as_raw();
    let clock = |id| {
        let now = rustix::time::clock_gettime(id);
        now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
    };
    let mono_ns = clock(rustix::time::ClockId::Monotonic);
    let created = Created { mono_ns, real_ns: clock(rustix::time::ClockId::Realtime) };
    let user = other.then_some(User { uid, gid });
    Segment::create(identity, user, created, || random() as u16).map_err(|cause| {
        let bytes = identity.geometry.size();
        AgentError::SegmentRefused { bytes, cause, refused: MemoryRefusal::Segment }
    })
}
