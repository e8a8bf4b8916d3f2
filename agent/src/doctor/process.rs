//! Checks of a process.

use super::{Check, Remedy};
use crate::allowance::{RingAllowance, RingBound};
use crate::buffer::Buffer;
use crate::denied;
use crate::error::{AgentError, Failing};
use crate::escape::escaped;
use crate::hold::held;
use crate::plan::{GeometryPlan, UserLimits};
use crate::session::{Allow, SegmentChoice, choose, refuse, status};
use crate::system::System;
use crate::target::Target;

/// Checks process `pid` as an attach does, up to the first write, which it omits. It holds the
/// process for some microseconds, without stopping it.
pub fn process(system: &System, pid: i32) -> Vec<Check> {
    let target = match Target::open(system, pid) {
        Ok(target) => target,
        Err(error) => return vec![Check::failure("process", error)],
    };
    let (uid, _) = target.owner();
    let found = format!(
        "{pid} is {} ({}), of user {uid}, {} threads",
        target.comm(),
        target.exe(),
        target.threads()
    );
    let mut checks = vec![Check::good("process", found), namespaces(&target)];
    if !target.is_dumpable() {
        checks.push(Check::note(
            "dumpable",
            "the process is not dumpable; attaching needs privileges",
        ));
    }
    if let Some(label) = denied::security_module(system, &pid.to_string()) {
        checks.push(Check::note("its security label", format!("`{label}`")));
    }
    let refused = refusals(&target);
    if refused.is_empty() {
        checks.push(hold(&target));
    } else {
        checks.extend(refused);
    }
    buffers(&target, &mut checks);
    checks
}

/// Names the namespaces in which the process differs from ppt. That is no problem, because ppt can
/// attach across most of them.
fn namespaces(target: &Target) -> Check {
    let name = "namespaces";
    let system = target.system();
    let other = |(name, inode): (String, u64)| {
        system.namespace("self", &name).is_some_and(|ours| ours != inode).then_some(name)
    };
    let others: Vec<_> = target.namespaces().into_iter().filter_map(other).collect();
    if others.is_empty() {
        Check::good(name, "those of ppt")
    } else {
        Check::note(name, format!("its own: {}", others.join(", ")))
    }
}

/// All reasons to refuse the process. Each reason is allowed in turn, so that the next one shows.
fn refusals(target: &Target) -> Vec<Check> {
    let mut checks = Vec::new();
    let mut allow = Allow::default();
    while let Err(error) = refuse(target, allow) {
        let (name, lifted) = match &error {
            AgentError::Traced { .. } => ("tracer", !std::mem::replace(&mut allow.traced, true)),
            AgentError::Seccomp { .. } | AgentError::StrictSeccomp { .. } => {
                ("its system calls", !std::mem::replace(&mut allow.seccomp, true))
            }
            _ => ("refusal", false),
        };
        checks.push(Check::failure(name, error));
        if !lifted {
            break;
        }
    }
    if let Err(error) = choose(target, SegmentChoice::Auto) {
        checks.push(Check::failure("IPC namespace", error));
    }
    checks
}

/// Holds the process as an attach does, without writes. This is the kernel's own answer to what the
/// other checks conclude from files.
fn hold(target: &Target) -> Check {
    match held(target, false, || Ok(())) {
        Ok(held) => {
            let time = held.time.as_secs_f64() * 1e6;
            Check::good("permission", format!("held it for {time:.0} µs, without stopping it"))
        }
        Err(error) => Check::failure("permission", error),
    }
}

fn buffers(target: &Target, checks: &mut Vec<Check>) {
    let found = match target.buffers() {
        Ok(found) => found,
        Err(error) => return checks.push(Check::failure("buffers", error)),
    };
    for refused in &found.refused {
        checks.push(Check::problem("buffers", refused).code(Failing::BufferRefused));
    }
    let mut bytes = 0;
    match target.choose(found, &[]) {
        Ok(buffers) => {
            let allowance = RingAllowance::of(target, UserLimits::default());
            let limits = allowance.share(buffers.len());
            for buffer in &buffers {
                checks.push(buffer_of(target, buffer));
                let (threads, spare) = (target.threads(), target.spare_memory());
                match GeometryPlan::choices(&buffer.schema, threads, limits, spare) {
                    Ok(plans) => bytes += plans.first().map_or(0, GeometryPlan::populated),
                    Err(error) => {
                        checks.push(Check::failure("room for rings", allowance.refusal(error)));
                    }
                }
            }
            checks.push(room(target.system(), bytes));
            checks.extend(bound(&allowance));
        }
        // The checks above name the refused buffers.
        Err(AgentError::BufferRefused { .. }) => {}
        Err(error) => checks.push(Check::failure("buffers", error)),
    }
}

fn buffer_of(target: &Target, buffer: &Buffer) -> Check {
    let name = format!("buffer {}", buffer.name);
    let place = format!("found by {} in {}", buffer.found_by, buffer.object);
    let pid = target.pid();
    match status(target, buffer) {
        Err(error) => Check::failure(&name, error),
        Ok(status) => match status.holder {
            None => Check::good(&name, format!("{place}; nobody is attached")),
            Some(holder) if holder.alive == Some(false) => {
                Check::note(&name, format!("{place}; left by {holder}, which died"))
                    .remedy("the next attach takes it over")
            }
            Some(holder) => Check::problem(&name, format!("{place}; attached by {holder}"))
                .remedy(Remedy::TakeOver { pid })
                .code(Failing::AlreadyAttached),
        },
    }
}

/// Whether the rings that an attach allocates at once fit into free memory.
/// What bounds the memory of rings, if it is not the default.
fn bound(allowance: &RingAllowance) -> Option<Check> {
    let kib = allowance.limits.memory >> 10;
    let found = match &allowance.bound {
        RingBound::Stated => return None,
        RingBound::Group { folder, left } => format!(
            "control group {} leaves {} KiB of its memory limit, and rings take at most {kib}",
            escaped(&folder.to_string_lossy()),
            left >> 10
        ),
        RingBound::Locked => {
            format!("the process locks its memory (mlockall(2)), so rings take at most {kib} KiB")
        }
    };
    Some(Check::note("memory of rings", found))
}

fn room(system: &System, bytes: u64) -> Check {
    let name = "room for rings";
    let found = format!("an attach allocates {} KiB at once", bytes >> 10);
    match system.available_memory() {
        Some(available) if available < bytes => {
            Check::problem(name, format!("{found}, and {} KiB are available", available >> 10))
                .remedy(Remedy::SmallerRings)
                .code(Failing::SegmentRefused)
        }
        _ => Check::good(name, found),
    }
}
