//! The messages of an attach that failed. The agent reports what happened and why. This module adds
//! advice in terms of the command line's options.

use std::io;

use nix::errno::Errno;
use ppt_agent::doctor::{Check, Remedy};
use ppt_agent::{AgentError, Denied, MemoryRefusal, OwnRights, Rule};
use ppt_kernel::{KernelError, KernelFeature};
use ppt_text::nearest;

/// Options for starting a container in which ppt works.
const IN_CONTAINER: &str = "start it with --cap-add SYS_PTRACE (Kubernetes: \
     `securityContext: {capabilities: {add: [SYS_PTRACE]}}`, or beside a running pod: kubectl debug \
     --profile=general --target=CONTAINER)";

/// The message of the agent, with advice.
pub(crate) fn message(error: &AgentError) -> String {
    match error {
        AgentError::MemoryTooSmall { buffer, limit, rings, needed } => format!(
            "--memory {limit} is too small for buffer {buffer}: {rings} rings of the smallest size \
             need {needed} bytes"
        ),
        AgentError::NoSuchBuffer { wanted, available, .. } => {
            let meant = nearest(wanted, available.split(", "));
            let meant = meant.map_or(String::new(), |name| format!("\n  did you mean `{name}`?"));
            format!("{error}{meant}")
        }
        error => format!("{error}{}", remedy(error)),
    }
}

/// The message that the preloaded library does not see the io_uring of `process`.
pub(crate) fn unseen_by_library(process: &str) -> String {
    format!(
        "{process} has an io_uring: what it sends, receives, reads and writes through that is in no \
         frame of --with"
    )
}

/// The message about a part of `--kernel` that is missing, with advice that ppt's own rights allow.
pub(crate) fn of_kernel(error: &KernelError, rights: OwnRights) -> String {
    const CAP_DAC_OVERRIDE: u32 = 1;
    const CAP_SYS_ADMIN: u32 = 21;
    const AS_ROOT: &str = "\n  run ppt as root (sudo ppt …)";
    let remedy = match error {
        KernelError::Denied { part, paranoid } => of_perf(*part, paranoid, rights),
        KernelError::NoTracefs { .. } if rights.has(CAP_SYS_ADMIN) => {
            "\n  mount it: sudo mount -t tracefs nodev /sys/kernel/tracing".into()
        }
        KernelError::NoTracefs { .. } => {
            format!("{AS_ROOT}, or mount it: sudo mount -t tracefs nodev /sys/kernel/tracing")
        }
        KernelError::TracefsDenied { .. } if rights.has(CAP_DAC_OVERRIDE) => {
            "\n  ppt has the rights of root: a security module, a lockdown of the kernel or a container \
             keeps it from that"
                .into()
        }
        KernelError::TracefsDenied { .. } => AS_ROOT.into(),
        KernelError::PidNamespace { .. } => {
            "\n  run ppt outside of the container; without it, states have no woken_by".into()
        }
        KernelError::TooManyDescriptors { .. } => "\n  raise the limit (ulimit -Hn)".into(),
        KernelError::System { source, .. }
            if source.raw_os_error() == Some(Errno::ENFILE as i32) =>
        {
            "\n  raise fs.file-max, the limit of the whole system".into()
        }
        KernelError::Unsupported { .. } | KernelError::System { .. } => String::new(),
    };
    format!("{error}{remedy}")
}

/// Why perf_event_open(2) is refused, as far as ppt knows what it may do itself.
fn of_perf(part: KernelFeature, paranoid: &str, rights: OwnRights) -> String {
    const CAP_SYS_ADMIN: u32 = 21;
    const CAP_PERFMON: u32 = 38;
    // The highest setting with which the kernel asks for no capability.
    let highest = match part {
        KernelFeature::Switches | KernelFeature::Faults | KernelFeature::Stacks => 2,
        KernelFeature::Syscalls | KernelFeature::KernelStacks | KernelFeature::Waits => 1,
        KernelFeature::Wakeups => -1,
        KernelFeature::Probes => i32::MIN,
    };
    let is_capable = rights.has(CAP_PERFMON) || rights.has(CAP_SYS_ADMIN);
    let is_open = paranoid.parse::<i32>().is_ok_and(|paranoid| paranoid <= highest);
    match part {
        _ if is_capable && rights.is_inner => {
            ": the capabilities of ppt count only in its user namespace\n  run ppt outside of it".into()
        }
        _ if (is_capable || is_open) && rights.is_filtered => {
            ": a system call filter (seccomp) refuses perf_event_open(2) to ppt\n  run ppt outside the \
             container or sandbox that filters its system calls"
                .into()
        }
        _ if is_capable => {
            ", although it has CAP_PERFMON\n  see whether a security module or a lockdown of the kernel \
             refuses it (dmesg, ausearch -m avc)"
                .into()
        }
        KernelFeature::Probes => format!(
            ": kernel.perf_event_paranoid is {paranoid}, and ppt has no CAP_PERFMON\n  run ppt with \
             CAP_PERFMON (sudo ppt …), whatever kernel.perf_event_paranoid is"
        ),
        _ if is_open => ": it may not look into the process, and has no CAP_PERFMON\n  run ppt as the \
             user of the process, or with CAP_PERFMON (sudo ppt …)"
            .into(),
        _ => format!(
            ": kernel.perf_event_paranoid is {paranoid}, and ppt has no CAP_PERFMON\n  run ppt with \
             CAP_PERFMON (sudo ppt …), or: sudo sysctl kernel.perf_event_paranoid={highest}"
        ),
    }
}

/// The advice that follows the message; empty if there is none.
fn remedy(error: &AgentError) -> String {
    match error {
        AgentError::Denied(denied) => of_denied(denied),
        AgentError::SharesMemory { .. } => "; attach to that process instead".into(),
        AgentError::ControlGroupFull { .. } => {
            "\n  --memory SIZE allows more of what it leaves, up to all of it".into()
        }
        AgentError::LockedMemory { .. } => {
            "\n  --memory SIZE allows more; a thread waits some half millisecond for each MiB".into()
        }
        AgentError::Architecture { .. } => {
            "; use a ppt that was built for that architecture".into()
        }
        AgentError::NoBuffers { .. } => {
            "\n  is the .c file that pptc generated linked into it? A program that nobody edited shows its \
             requests if it is started by `ppt run --with net -- …`"
                .into()
        }
        AgentError::AlreadyAttached { pid, .. } => format!(
            "; end that capture first (`ppt detach {pid}`), or take over the buffer with --allow \
             foreign-claim"
        ),
        AgentError::Traced { .. } => {
            "; ppt does not interfere with a debugger by default; to attach anyway: --allow traced"
                .into()
        }
        AgentError::Seccomp { .. } => {
            " (with --segment memfd, at memfd_create(2)); if you know that the filter allows that \
             call or returns an error: --allow seccomp"
                .into()
        }
        AgentError::StrictSeccomp { .. } => {
            "; if this thread writes no frames: --allow seccomp".into()
        }
        AgentError::IpcNamespace { pid } => format!(
            "; let it make its own (--segment auto), or run ppt inside: nsenter --ipc --target \
             {pid} ppt attach {pid}"
        ),
        AgentError::StrictOvercommit { pid } => format!(
            ". Run ppt in the same IPC namespace (nsenter --ipc --target {pid}), or set \
             vm.overcommit_memory to 0"
        ),
        AgentError::NotFetched { cause, .. } => format!("\n  {}", of_fetch(cause)),
        AgentError::TableFull { .. } => {
            "; use --slots and --memory as in an earlier session, or restart the program".into()
        }
        AgentError::SegmentRefused { cause, refused, .. } => {
            format!("\n  {}", of_segment(cause, *refused))
        }
        AgentError::TicksRefused { .. } => {
            "\n  leave out `--clock tsc`; stamps then come from the monotonic clock".into()
        }
        AgentError::TooManyFiles { .. } => {
            "\n  ppt needs about 20 file descriptors, and 8 for each further process; raise the \
             limit (ulimit -n)"
                .into()
        }
        _ => String::new(),
    }
}

fn of_denied(denied: &Denied) -> String {
    let mut text = of_rule(&denied.rule).to_owned();
    if let Rule::User { theirs, .. } = denied.rule {
        text = of_user(theirs);
    }
    if denied.container {
        text += &format!("\n  ppt runs in a container: {IN_CONTAINER}");
    }
    text
}

fn of_user(theirs: u32) -> String {
    format!(
        "\n  run ppt as that user (sudo -u '#{theirs}' ppt …), or with CAP_SYS_PTRACE (sudo ppt …)"
    )
}

fn of_rule(rule: &Rule) -> &'static str {
    match rule {
        Rule::Traced(_) => "; --allow traced attaches beside it",
        Rule::NotDumpable | Rule::Capabilities(_) | Rule::Unknown(false) => {
            "\n  run ppt with CAP_SYS_PTRACE (sudo ppt …)"
        }
        Rule::Yama(1) => {
            "\n  start the program by `ppt run`, have it call ppt_allow_attach(), or run ppt with \
             CAP_SYS_PTRACE (sudo ppt …), or: sudo sysctl kernel.yama.ptrace_scope=0"
        }
        Rule::Yama(2) => "\n  run ppt with it (sudo ppt …)",
        Rule::User { .. } | Rule::Yama(_) => "",
        Rule::Module(_) => "\n  see the audit log (ausearch -m avc), and allow ppt to trace it",
        Rule::Namespace => "\n  run ppt in that namespace, or as root of the machine",
        Rule::Landlock => "\n  run ppt outside the sandbox, or the program inside",
        Rule::Filtered(_) => "\n  run ppt outside the sandbox that filters its system calls",
        Rule::Unknown(true) => {
            "\n  the kernel protects this process by another rule, as hosted machines do for their \
             first process; ask the operator of this machine"
        }
    }
}

fn of_segment(cause: &io::Error, refused: MemoryRefusal) -> &'static str {
    match (refused, cause.raw_os_error().map(Errno::from_raw)) {
        (MemoryRefusal::Rings, _) => {
            "there is not enough memory for the rings of the existing threads; ask for less by \
             --slots or --memory"
        }
        (MemoryRefusal::Room, _) | (MemoryRefusal::Segment, Some(Errno::ENOMEM)) => {
            "there is not enough memory; ask for less by --slots or --memory"
        }
        (MemoryRefusal::Segment, Some(Errno::ENOSPC)) => {
            "the system's limit for shared memory is reached; see ipcs -lm, kernel.shmmni and \
             kernel.shmall"
        }
        (MemoryRefusal::Segment, Some(Errno::EINVAL)) => {
            "it is larger than kernel.shmmax allows; ask for less by --slots or --memory"
        }
        (MemoryRefusal::Segment, Some(Errno::ENOSYS)) => {
            "this kernel has no System V shared memory"
        }
        (MemoryRefusal::Segment, _) => "see shmget(2)",
    }
}

fn of_fetch(cause: &io::Error) -> &'static str {
    match cause.raw_os_error().map(Errno::from_raw) {
        Some(Errno::EPERM | Errno::EACCES) => {
            "pidfd_getfd(2) needs the right to trace the process; either the process changed its \
             user, or ppt gave up its privileges"
        }
        Some(Errno::EMFILE) => "ppt has too many open files; raise the limit (ulimit -n)",
        Some(Errno::ENOSYS) => "it needs Linux 5.6 or later",
        Some(Errno::EBADF) => "the process has closed it",
        Some(Errno::ENOMEM) => "there is not enough memory; ask for less by --slots or --memory",
        _ if cause.kind() == io::ErrorKind::Unsupported => "it needs Linux 5.6 or later",
        _ => "see pidfd_getfd(2)",
    }
}

/// The result of a check, and the advice: one line each.
pub(crate) fn found_and_remedy(check: &Check) -> (String, Option<String>) {
    let found = || check.found.clone();
    let message = match &check.remedy {
        None => return (found(), None),
        Some(Remedy::Words(words)) => return (found(), Some(words.clone())),
        Some(Remedy::Container) => return (found(), Some(IN_CONTAINER.into())),
        Some(Remedy::TakeOver { pid }) => {
            let remedy =
                format!("end that capture first (ppt detach {pid}), or --allow foreign-claim");
            return (found(), Some(remedy));
        }
        Some(Remedy::SmallerRings) => {
            return (found(), Some("ask for less by --slots or --memory".into()));
        }
        Some(Remedy::LargerSegments) => {
            return (found(), Some("raise kernel.shmmax, or use --memory or --slots".into()));
        }
        Some(Remedy::LowerBound) => return (found(), Some("--memory sets a lower bound".into())),
        Some(Remedy::Failure(error)) => message(error),
        Some(Remedy::Rule(rule)) => format!("{rule}{}", of_rule(rule)),
    };
    // The first line states the problem, the others give advice.
    let mut lines = message.lines().map(str::trim);
    let found = lines.next().unwrap_or_default().to_owned();
    let rest = lines.collect::<Vec<_>>().join("; ");
    (found, (!rest.is_empty()).then_some(rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn denied(rule: Rule, container: bool) -> String {
        let denied = Denied { pid: 7, comm: "game".into(), rule, container };
        let said = message(&AgentError::Denied(Box::new(denied)));
        let rest = said.strip_prefix("no permission to attach to process 7 (game): ");
        rest.expect("the usual beginning").into()
    }

    #[test]
    fn a_refusal_says_what_helps() {
        let yama = "kernel.yama.ptrace_scope is 1: only an ancestor may attach\n  start the \
                    program by `ppt run`, have it call ppt_allow_attach(), or run ppt with \
                    CAP_SYS_PTRACE (sudo ppt …), or: sudo sysctl kernel.yama.ptrace_scope=0";
        assert_eq!(denied(Rule::Yama(1), false), yama);
        let user = "it belongs to user 8, and ppt runs as user 9\n  run ppt as that user (sudo -u \
                    '#8' ppt …), or with CAP_SYS_PTRACE (sudo ppt …)";
        assert_eq!(denied(Rule::User { theirs: 8, ours: 9 }, false), user);
        let traced = "process 9 traces it; --allow traced attaches beside it";
        assert_eq!(denied(Rule::Traced(9), false), traced);
        let module = "a security module refused (its label is `a`)\n  see the audit log \
                      (ausearch -m avc), and allow ppt to trace it";
        assert_eq!(denied(Rule::Module("a".into()), false), module);
        let capable = denied(Rule::Unknown(true), false);
        assert!(!capable.contains("sudo"), "it has what that gives: {capable}");
    }

    #[test]
    fn perf_is_not_blamed_on_a_right_that_ppt_has() {
        let said = |part, paranoid: &str, status: &str| {
            let folder = tempfile::tempdir().unwrap();
            std::fs::create_dir(folder.path().join("self")).unwrap();
            std::fs::write(folder.path().join("self/status"), status).unwrap();
            let system = ppt_agent::System { proc: folder.path().into(), ..Default::default() };
            of_perf(part, paranoid, OwnRights::of(&system))
        };
        const ALL: &str = "CapEff:\t000001ffffffffff\nSeccomp:\t";
        let filtered = said(KernelFeature::Stacks, "2", &format!("{ALL}2\n"));
        assert!(filtered.starts_with(": a system call filter (seccomp) refuses"), "{filtered}");
        let other = said(KernelFeature::Probes, "2", &format!("{ALL}0\n"));
        assert!(other.starts_with(", although it has CAP_PERFMON\n  see whether"), "{other}");
        let plain = said(KernelFeature::Waits, "2", "Seccomp:\t0\n");
        assert!(plain.ends_with("or: sudo sysctl kernel.perf_event_paranoid=1"), "{plain}");
        let theirs = said(KernelFeature::Stacks, "2", "Seccomp:\t0\n");
        assert!(theirs.starts_with(": it may not look into the process"), "{theirs}");
        let filtered = said(KernelFeature::Stacks, "2", "Seccomp:\t2\n");
        assert!(filtered.contains("seccomp"), "{filtered}");
    }

    #[test]
    fn containers_have_remedies_of_their_own() {
        let said = denied(Rule::NotDumpable, true);
        let end = "\n  ppt runs in a container: start it with --cap-add SYS_PTRACE (Kubernetes: \
                   `securityContext: {capabilities: {add: [SYS_PTRACE]}}`, or beside a running \
                   pod: kubectl debug --profile=general --target=CONTAINER)";
        assert!(said.ends_with(end), "{said}");
        assert!(!denied(Rule::NotDumpable, false).contains("--cap-add"));
    }

    #[test]
    fn checks_say_the_same_in_two_lines() {
        let system = ppt_agent::System::default();
        let checks = ppt_agent::doctor::process(&system, 1 << 30);
        let none = "no process 1073741824: it does not exist, or it has ended";
        assert_eq!(found_and_remedy(&checks[0]), (none.into(), None));
    }
}
