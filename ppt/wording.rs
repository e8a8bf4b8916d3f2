//! The messages of an attach that failed. The agent reports what happened and why. This module adds
//! advice in terms of the command line's options.

use std::io;

use nix::errno::Errno;
use ppt_agent::doctor::{Check, Remedy};
use ppt_agent::{AgentError, Denied, MemoryRefusal, Rule};
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

/// The message about a part of `--kernel` that is missing, with advice.
pub(crate) fn of_kernel(error: &KernelError) -> String {
    let remedy = match error {
        KernelError::Denied { part: KernelFeature::Probes, .. } => {
            "\n  run ppt with CAP_PERFMON (sudo ppt …), whatever kernel.perf_event_paranoid is"
        }
        KernelError::Denied { .. } => {
            "\n  run ppt with CAP_PERFMON (sudo ppt …), or: sudo sysctl kernel.perf_event_paranoid=-1"
        }
        KernelError::NoTracefs { .. } => {
            "\n  run ppt as root (sudo ppt …), or mount it: sudo mount -t tracefs nodev /sys/kernel/tracing"
        }
        KernelError::TracefsDenied { .. } => "\n  run ppt as root (sudo ppt …)",
        KernelError::PidNamespace { .. } => {
            "\n  run ppt outside of the container; without it, states have no woken_by"
        }
        KernelError::TooManyDescriptors { .. } => "\n  raise the limit (ulimit -Hn)",
        KernelError::Unsupported { .. } | KernelError::System { .. } => "",
    };
    format!("{error}{remedy}")
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
