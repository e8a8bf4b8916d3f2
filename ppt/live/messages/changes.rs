//! Messages about changes of an attached buffer.

use nix::errno::Errno;
use ppt_agent::{
    AttachedBuffer, BufferEnd, Distrust, MapLimits, RING_MEMORY, RingBound, SegmentKind, Stuck,
    Target,
};
use ppt_listener::EndReason;
use ppt_text::{escaped, grouped};

use crate::args;
use crate::measure::bytes;
use crate::wording;

/// The target could not map ppt's segment, so it makes the segment itself.
pub(in crate::live) fn fell_over(buffer: &AttachedBuffer, errno: i32) -> String {
    let errno = Errno::from_raw(errno);
    format!(
        "{}: shmat(2) failed with {errno}; the program makes its segment itself",
        buffer.buffer.name
    )
}

/// The rings of a buffer have grown.
pub(in crate::live) fn grew(buffer: &AttachedBuffer, before: u64) -> String {
    let geometry = buffer.plan.geometry;
    format!(
        "rings of {} grew from {} to {} slots: they were nearly full or overrun ({} rings, {})",
        buffer.buffer.name,
        grouped(before),
        grouped(geometry.slots()),
        geometry.rings(),
        bytes(geometry.size())
    )
}

/// The rings of a buffer could not grow, and why.
pub(in crate::live) fn stuck(
    buffer: &AttachedBuffer,
    stuck: &Stuck,
    args: &args::CaptureArgs,
) -> String {
    let (name, slots) = (&buffer.buffer.name, grouped(buffer.plan.geometry.slots()));
    let why = match stuck {
        Stuck::Refused(error) => wording::message(error),
        Stuck::Memory(bound) => format!("{} allows no more", bounding(bound, args)),
        Stuck::NotNow => "the program does not use its last segment yet".to_owned(),
    };
    format!("rings of {name} are too small but stay at {slots} slots: {why}")
}

/// What bounds the memory of rings.
pub(super) fn bounding(bound: &RingBound, args: &args::CaptureArgs) -> String {
    match bound {
        RingBound::Stated => format!("--memory {}", bytes(args.memory.unwrap_or(RING_MEMORY))),
        RingBound::Group { folder, left } => format!(
            "the memory limit of control group {}, which leaves {}",
            escaped(&folder.to_string_lossy()),
            bytes(*left)
        ),
        RingBound::Locked => "the process, which locks its memory (mlockall(2)),".to_owned(),
    }
}

/// The target could not map a larger segment, so the rings have their former size.
pub(in crate::live) fn went_back(buffer: &AttachedBuffer, errno: i32) -> String {
    format!(
        "rings of {} are back at {} slots, because the target could not map larger ones: {}",
        buffer.buffer.name,
        grouped(buffer.plan.geometry.slots()),
        nix::errno::Errno::from_raw(errno)
    )
}

/// A segment that the target made vanished when the target ended.
pub(in crate::live) fn never_fetched(buffer: &AttachedBuffer) -> String {
    format!(
        "{}: the program ended before its segment was fetched: the frames of its last moments, if \
         any, are not in the capture",
        buffer.buffer.name
    )
}

/// The end of a buffer, and its reason.
pub(in crate::live) fn ended(
    target: &Target,
    buffer: &AttachedBuffer,
    end: BufferEnd,
) -> (EndReason, String) {
    let (pid, name) = (target.pid(), &buffer.buffer.name);
    match end {
        BufferEnd::Exited => (EndReason::Exited, format!("process {pid} ended")),
        BufferEnd::Exec => {
            (EndReason::Exec, format!("process {pid} started another program (exec)"))
        }
        BufferEnd::Unloaded => {
            (EndReason::Unloaded, format!("{name}: its library was unloaded by process {pid}"))
        }
        BufferEnd::SwitchedOff => (EndReason::Other, format!("{name}: switched off from outside")),
        BufferEnd::TakenOver => (EndReason::Other, format!("{name}: taken over by another ppt")),
    }
}

/// The CPU's counter is no longer trusted, so stamps come from the monotonic clock.
pub(in crate::live) fn ticks_given_up(name: &str, why: &Distrust) -> String {
    format!(
        "{name}: the CPU's counter can no longer be trusted: {why}\n  stamps come from the \
         monotonic clock from now on; stamps of the last second may be wrong"
    )
}

/// The target's counters of drops have impossible values.
pub(in crate::live) fn miscounts(name: &str) -> String {
    format!(
        "{name}: the program's counters of refused frames are damaged: what it has refused since \
         is not counted"
    )
}

/// Why a target cannot map its segment, and what helps.
pub(in crate::live) fn unmappable(target: &Target, buffer: &AttachedBuffer, errno: i32) -> String {
    let errno = Errno::from_raw(errno);
    let of_limits = || why_at_limit(errno, target.map_limits());
    let otherwise = || why_unmappable(errno, buffer.kind == SegmentKind::Memfd).to_owned();
    let why = of_limits().unwrap_or_else(otherwise);
    format!("{}: the target could not map the segment: {errno}\n  {why}", buffer.buffer.name)
}

/// The limit that an errno means, if the process has one.
fn why_at_limit(errno: Errno, limits: MapLimits) -> Option<String> {
    /// Lines of its list that are no mappings of its own, and mappings that come and go.
    const NEAR: u64 = 8;
    let MapLimits { mappings, most, locked, space } = limits;
    match (errno, most, locked, space) {
        (Errno::ENOMEM, Some(most), ..) if mappings + NEAR >= most => Some(format!(
            "it has as many mappings as vm.max_map_count allows ({}): raise that, by sudo sysctl \
             vm.max_map_count={}",
            grouped(most),
            2 * most
        )),
        (Errno::ENOMEM, .., None) => Some(
            "it has no limit of its address space (ulimit -v), but there is no room for the segment: ask \
             for less by --memory"
                .to_owned(),
        ),
        (Errno::EAGAIN, _, Some(locked), _) => Some(format!(
            "it locks its memory (mlockall(2)), of which ulimit -l allows {}: raise that, or ask for \
             less by --memory",
            bytes(locked)
        )),
        _ => None,
    }
}

/// The meaning of an errno of the slow path. `made`: the target makes the segment itself.
fn why_unmappable(errno: Errno, made: bool) -> &'static str {
    match errno {
        Errno::EPERM if made => "its system call filter (seccomp) refuses memfd_create(2)",
        Errno::EPERM => "its system call filter (seccomp) refuses shmat(2)",
        Errno::EACCES if made => "vm.memfd_noexec or a security module refuses memfd_create(2)",
        Errno::EACCES => {
            "it may not attach the segment: its user changed, or a security module \
                          refuses shmat(2)"
        }
        Errno::ENOMEM if made => {
            "it has no room for the segment, or no memory: see ulimit -v; ask for less by --memory"
        }
        Errno::ENOMEM => "it has no room for the mapping: see ulimit -v; ask for less by --memory",
        Errno::EFBIG => {
            "the segment is larger than its files may be: see ulimit -f; ask for less by --memory"
        }
        Errno::EINVAL | Errno::EIDRM if !made => {
            "it does not see the segment: it may be in another IPC namespace"
        }
        Errno::ESTALE if !made => {
            "the segment that it found is not the one that ppt made: it may be in another IPC \
             namespace, or the segment is damaged"
        }
        // The generated code refused ppt's request; no system call failed.
        Errno::EPROTO => {
            "it refuses the geometry of the segment: it was built by an incompatible pptc, or its \
             memory is damaged"
        }
        Errno::ENOSYS if made => "it cannot call memfd_create(2)",
        Errno::ENOSYS => "it cannot call shmat(2)",
        Errno::EMFILE if made => "it has too many open files: see ulimit -n",
        Errno::ENFILE => "the system has too many open files: see fs.file-max",
        Errno::EMFILE => "it has too many segments mapped",
        Errno::ENOSPC => "its table of segments is full",
        _ if made => "see memfd_create(2)",
        _ => "see shmat(2)",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_one_that_the_process_has() {
        let free = MapLimits { mappings: 100, most: Some(65_530), ..MapLimits::default() };
        let why = |errno, limits| why_at_limit(errno, limits).unwrap_or_default();
        let full = MapLimits { mappings: 65_529, space: Some(1 << 30), ..free };
        assert!(why(Errno::ENOMEM, full).contains("as vm.max_map_count allows (65,530)"));
        let bounded = MapLimits { space: Some(1 << 30), ..free };
        assert_eq!(why_at_limit(Errno::ENOMEM, bounded), None, "ulimit -v");
        assert!(why(Errno::ENOMEM, free).starts_with("it has no limit of its address space"));
        let locked = MapLimits { locked: Some(1 << 20), ..free };
        assert!(why(Errno::EAGAIN, locked).contains("of which ulimit -l allows 1.0 MiB: raise"));
        assert_eq!(why_at_limit(Errno::EAGAIN, free), None);
        assert_eq!(why_at_limit(Errno::EPERM, full), None);
    }

    #[test]
    fn a_refused_geometry_is_not_another_namespace() {
        for made in [false, true] {
            let why = why_unmappable(Errno::EPROTO, made);
            assert!(why.starts_with("it refuses the geometry of the segment"), "{why}");
        }
        assert!(why_unmappable(Errno::ESTALE, false).contains("not the one that ppt made"));
        for unseen in [Errno::EINVAL, Errno::EIDRM] {
            assert!(why_unmappable(unseen, false).starts_with("it does not see the segment"));
        }
    }
}
