//! Explains EPERM: finds the rule that refused access.

use std::cell::LazyCell;
use std::fmt;

use crate::escape::escaped;
use crate::system::System;

/// The rule that denies access to a process (ptrace(2), "Ptrace access mode checking").
#[derive(Debug, Clone, PartialEq, Eq, strum::IntoStaticStr, strum::VariantNames)]
#[strum(serialize_all = "kebab-case")]
pub enum Rule {
    /// Another tracer has attached.
    Traced(i32),
    /// Another user's process.
    #[strum(serialize = "other-user")]
    User {
        /// The effective user id of the target.
        theirs: u32,
        /// Our effective user.
        ours: u32,
    },
    /// A process of the same user has capabilities that ppt does not have: its `CapPrm`.
    #[strum(serialize = "more-capabilities")]
    Capabilities(u64),
    /// Yama's ptrace_scope.
    Yama(u32),
    /// A process of the same user is not dumpable, because of setuid or prctl(2).
    NotDumpable,
    /// The target is in a user namespace where ppt's capabilities do not count.
    #[strum(serialize = "user-namespace")]
    Namespace,
    /// A security module.
    #[strum(serialize = "security-module")]
    Module(String),
    /// ppt is in a Landlock sandbox, and the process is not.
    #[strum(serialize = "landlock")]
    Landlock,
    /// A filter of ppt's own system calls. The errno of ptrace(2).
    #[strum(serialize = "ptrace-filtered")]
    Filtered(i32),
    /// No rule that ppt can check. Whether ppt has CAP_SYS_PTRACE.
    #[strum(serialize = "denied")]
    Unknown(bool),
}

/// A refused access.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denied {
    /// The process.
    pub pid: i32,
    /// The short name of the target, escaped.
    pub comm: String,
    /// The rule that refused it.
    pub rule: Rule,
    /// Whether ppt runs in a container that could be given the missing capability.
    pub container: bool,
}

impl std::error::Error for Denied {}

impl Denied {
    /// The short name of the rule, as [`crate::AgentError::code`].
    pub(crate) fn code(&self) -> &'static str {
        (&self.rule).into()
    }
}

/// The facts about a target that refused access.
pub(crate) struct DeniedTarget {
    pub(crate) pid: i32,
    pub(crate) comm: String,
    pub(crate) tracer: i32,
    pub(crate) euid: u32,
    pub(crate) uids_agree: bool,
    pub(crate) dumpable: bool,
}

/// Finds the rule. The order is that of the kernel's own checks.
pub(crate) fn explain(system: &System, seen: DeniedTarget) -> Denied {
    let ours = rustix::process::geteuid().as_raw();
    let scope = system.ptrace_scope().unwrap_or(0);
    let privileged = has_cap_sys_ptrace(system);
    let same_user = seen.uids_agree && seen.euid == ours;
    let confined = LazyCell::new(system.confined);
    let rule = if seen.tracer != 0 {
        Rule::Traced(seen.tracer)
    } else if is_in_an_outer_namespace(system, seen.pid) {
        Rule::Namespace
    } else if !privileged && !same_user {
        Rule::User { theirs: seen.euid, ours }
    } else if !privileged && !seen.dumpable {
        Rule::NotDumpable
    } else if let Some(theirs) = more_capabilities(system, seen.pid).filter(|_| !privileged) {
        Rule::Capabilities(theirs)
    } else if yama_refuses(scope, privileged) {
        Rule::Yama(scope)
    } else if let Some(module) = security_module(system, &seen.pid.to_string()) {
        Rule::Module(module)
    } else if confined.landlock > 0 {
        Rule::Landlock
    } else if let Some(errno) = confined.ptrace {
        Rule::Filtered(errno)
    } else {
        Rule::Unknown(privileged)
    };
    // A container may be given these rights.
    let container = in_container(system)
        && match rule {
            Rule::User { .. } | Rule::Capabilities(_) | Rule::NotDumpable | Rule::Filtered(_) => {
                true
            }
            Rule::Yama(scope) => scope < 3,
            Rule::Unknown(privileged) => !privileged,
            Rule::Traced(_) | Rule::Namespace | Rule::Module(_) | Rule::Landlock => false,
        };
    Denied { pid: seen.pid, comm: seen.comm, rule, container }
}

/// Whether a process is in a user namespace that is neither ours nor inside ours. Our capabilities
/// do not count there; those of the initial namespace count everywhere. The content of a uid map
/// depends on the reader's namespace, but readers in one namespace see the same content.
fn is_in_an_outer_namespace(system: &System, pid: i32) -> bool {
    let map = |pid: &str| {
        let text = system.proc_text(&format!("{pid}/uid_map"))?;
        let lines = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
        Some(lines.collect::<Vec<_>>())
    };
    match (map("self"), map(&pid.to_string())) {
        (Some(ours), Some(theirs)) => ours != ALL_USERS && theirs != ours,
        _ => false,
    }
}

/// The uid map of the initial user namespace.
const ALL_USERS: [&str; 1] = ["0 0 4294967295"];

/// What ppt itself may do, so that no advice is to get what it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OwnRights {
    /// CapEff of proc_pid_status(5).
    capabilities: u64,
    /// Whether a filter checks its system calls (seccomp).
    pub is_filtered: bool,
    /// Whether its capabilities count only in a user namespace of its own.
    pub is_inner: bool,
}

impl OwnRights {
    /// What this process may do now.
    pub fn of(system: &System) -> Self {
        let status = system.proc_text("self/status").unwrap_or_default();
        let map = system.proc_text("self/uid_map").unwrap_or_default();
        let words = map.split_whitespace().collect::<Vec<_>>().join(" ");
        Self {
            capabilities: capabilities(system, "self", "CapEff:").unwrap_or(0),
            is_filtered: status.lines().any(|line| line == "Seccomp:\t2"),
            is_inner: !words.is_empty() && words != ALL_USERS[0],
        }
    }

    /// Whether it has the capability of this number (capabilities(7), linux/capability.h).
    pub fn has(&self, number: u32) -> bool {
        self.capabilities >> number & 1 == 1
    }
}

/// Whether Yama refuses a tracer that is not an ancestor.
pub(crate) fn yama_refuses(scope: u32, privileged: bool) -> bool {
    scope == 3 || (scope > 0 && !privileged)
}

pub(crate) fn has_cap_sys_ptrace(system: &System) -> bool {
    const CAP_SYS_PTRACE: u32 = 19;
    OwnRights::of(system).has(CAP_SYS_PTRACE)
}

/// One of the capability sets of a process.
fn capabilities(system: &System, pid: &str, set: &str) -> Option<u64> {
    let status = system.proc_text(&format!("{pid}/status"))?;
    let hex = status.lines().find_map(|line| line.strip_prefix(set))?;
    u64::from_str_radix(hex.trim(), 16).ok()
}

/// The capabilities of a process, if ppt lacks some of them.
fn more_capabilities(system: &System, pid: i32) -> Option<u64> {
    let theirs = capabilities(system, &pid.to_string(), "CapPrm:")?;
    let ours = capabilities(system, "self", "CapEff:")?;
    (theirs & !ours != 0).then_some(theirs)
}

pub(crate) fn security_module(system: &System, pid: &str) -> Option<String> {
    let label = system.proc_text(&format!("{pid}/attr/current"))?;
    let label = label.trim_end_matches('\0').trim();
    (!label.is_empty() && label != "unconfined").then(|| escaped(label))
}

/// Whether ppt itself runs in a container: the remedies differ there.
pub(crate) fn in_container(system: &System) -> bool {
    let marks = ["self/root/.dockerenv", "self/root/run/.containerenv"];
    system.contained(1) || marks.iter().any(|mark| system.proc.join(mark).exists())
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Rule::Traced(tracer) => write!(f, "process {tracer} traces it"),
            Rule::User { theirs, ours } => {
                write!(f, "it belongs to user {theirs}, and ppt runs as user {ours}")
            }
            Rule::NotDumpable => f.write_str(
                "it is not dumpable (it changed its user, or called prctl(PR_SET_DUMPABLE))",
            ),
            Rule::Capabilities(theirs) => {
                write!(f, "it has capabilities that ppt does not have (its CapPrm is {theirs:x})")
            }
            Rule::Yama(1) => {
                f.write_str("kernel.yama.ptrace_scope is 1: only an ancestor may attach")
            }
            Rule::Yama(2) => {
                f.write_str("kernel.yama.ptrace_scope is 2: only CAP_SYS_PTRACE may attach")
            }
            Rule::Yama(scope) => write!(
                f,
                "kernel.yama.ptrace_scope is {scope}: nobody may attach until the machine is \
                 rebooted with a lower value"
            ),
            Rule::Module(label) => {
                write!(f, "a security module refused (its label is `{label}`)")
            }
            Rule::Namespace => f.write_str(
                "it is in another user namespace, where the capabilities of ppt do not count",
            ),
            Rule::Landlock => f.write_str(
                "ppt was started in a sandbox (Landlock), and may trace only processes in the same \
                 sandbox",
            ),
            Rule::Filtered(errno) => write!(
                f,
                "a system call filter (seccomp) refuses ptrace(2) to ppt: {}",
                nix::errno::Errno::from_raw(*errno).desc()
            ),
            Rule::Unknown(privileged) => write!(
                f,
                "{}, and no rule that ppt can check is the cause: users, capabilities, user \
                 namespaces, Yama, security labels, sandboxes of ppt itself",
                match privileged {
                    true => "ppt has CAP_SYS_PTRACE",
                    false => "it is of the same user as ppt",
                }
            ),
        }
    }
}

impl fmt::Display for Denied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pid, comm, rule, .. } = self;
        write!(f, "no permission to attach to process {pid} ({comm}): {rule}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::confined::Confined;

    /// A proc root with these files, by path and text.
    fn system(files: &[(&str, &str)]) -> (tempfile::TempDir, System) {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let confined = Confined::default;
        let system = System { proc: folder.path().into(), confined, ..System::default() };
        (folder, system)
    }

    const NONE: (&str, &str) = ("self/status", "Name:\tppt\nCapEff:\t0000000000000000\n");
    const PTRACE: (&str, &str) = ("self/status", "Name:\tppt\nCapEff:\t0000000000080000\n");

    fn seen() -> DeniedTarget {
        DeniedTarget {
            pid: 7,
            comm: "game".into(),
            tracer: 0,
            euid: rustix::process::geteuid().as_raw(),
            uids_agree: true,
            dumpable: true,
        }
    }

    /// The rule that refuses `seen`.
    fn rule(files: &[(&str, &str)], seen: DeniedTarget) -> Rule {
        let (_folder, system) = system(files);
        explain(&system, seen).rule
    }

    fn yama(scope: &'static str) -> (&'static str, &'static str) {
        ("sys/kernel/yama/ptrace_scope", scope)
    }

    #[test]
    fn yama_is_named_by_its_scope() {
        assert_eq!(rule(&[NONE, yama("1\n")], seen()), Rule::Yama(1));
        assert_eq!(rule(&[NONE, yama("2\n")], seen()), Rule::Yama(2));
        for privileges in [NONE, PTRACE] {
            assert_eq!(rule(&[privileges, yama("3\n")], seen()), Rule::Yama(3));
        }
    }

    #[test]
    fn yama_is_not_blamed_for_what_it_allows() {
        assert_eq!(rule(&[NONE, yama("0\n")], seen()), Rule::Unknown(false));
        assert_eq!(rule(&[], seen()), Rule::Unknown(false), "a kernel that tells nothing");
        assert_eq!(rule(&[PTRACE, yama("2\n")], seen()), Rule::Unknown(true));
    }

    /// No remedy suggests a right that the user already has.
    #[test]
    fn containers_are_blamed_where_they_could_give_more() {
        let in_pod = ("1/cgroup", "0::/kubepods/pod1\n");
        let container = |files: &[_]| {
            let (_folder, system) = system(files);
            explain(&system, seen()).container
        };
        assert!(container(&[NONE, in_pod, yama("1\n")]));
        assert!(!container(&[PTRACE, in_pod]), "it has the capability");
        assert!(!container(&[NONE, in_pod, yama("3\n")]), "which helps nobody");
        assert!(!container(&[NONE, yama("1\n")]));
    }

    #[test]
    fn our_rights_are_those_of_our_status() {
        let (_folder, bare) =
            system(&[("self/status", "CapEff:\t0000004000000000\nSeccomp:\t2\n")]);
        let rights = OwnRights::of(&bare);
        assert!(rights.has(38) && !rights.has(21) && rights.is_filtered && !rights.is_inner);
        let map = ("self/uid_map", "         0       1000          1\n");
        let (_folder, inner) = system(&[("self/status", "Seccomp:\t0\n"), map]);
        let rights = OwnRights::of(&inner);
        assert!(!rights.has(38) && !rights.is_filtered && rights.is_inner);
    }

    #[test]
    fn what_confines_ppt_is_named() {
        let (_folder, plain) = system(&[PTRACE]);
        let landlock = || Confined { landlock: 2, ptrace: None };
        let found = explain(&System { confined: landlock, ..plain.clone() }, seen()).rule;
        assert_eq!(found, Rule::Landlock);
        let filtered = || Confined { landlock: 0, ptrace: Some(1) };
        let found = explain(&System { confined: filtered, ..plain }, seen()).rule;
        assert_eq!(found, Rule::Filtered(1));
        let said = found.to_string();
        assert!(said.contains("refuses ptrace(2) to ppt: Operation not permitted"), "{said}");
    }

    #[test]
    fn capabilities_of_an_inner_namespace_do_not_count_outside() {
        let ours = ("self/uid_map", "         0       1000          1\n");
        let outside = ("7/uid_map", "         0 4294967295 4294967295\n");
        assert_eq!(rule(&[PTRACE, ours, outside], seen()), Rule::Namespace);
        let first = ("self/uid_map", "         0          0 4294967295\n");
        let inside = ("7/uid_map", "         0       1000          1\n");
        assert_ne!(rule(&[PTRACE, first, inside], seen()), Rule::Namespace);
        let beside = ("7/uid_map", "         0       1000          1\n");
        assert_ne!(rule(&[PTRACE, ours, beside], seen()), Rule::Namespace);
    }

    #[test]
    fn a_security_module_is_named_by_its_label() {
        let label = ("7/attr/current", "system_u:system_r:game_t:s0\0");
        let expected = Rule::Module("system_u:system_r:game_t:s0".into());
        assert_eq!(rule(&[NONE, label], seen()), expected);
        assert_eq!(rule(&[PTRACE, yama("1\n"), label], seen()), expected);
        let hostile = ("7/attr/current", "a\x1b[31m\n");
        assert!(!rule(&[NONE, hostile], seen()).to_string().contains('\x1b'));
    }

    #[test]
    fn the_kernel_asks_for_users_before_anything_else() {
        let ours = rustix::process::geteuid().as_raw();
        let theirs = DeniedTarget { euid: ours + 1, dumpable: false, ..seen() };
        let expected = Rule::User { theirs: ours + 1, ours };
        assert_eq!(rule(&[NONE, yama("3\n")], theirs), expected);
        let hidden = DeniedTarget { dumpable: false, ..seen() };
        assert_eq!(rule(&[NONE, yama("1\n")], hidden), Rule::NotDumpable);
        let traced = DeniedTarget { tracer: 9, ..seen() };
        assert_eq!(rule(&[NONE, yama("1\n")], traced), Rule::Traced(9));
    }

    /// Example: a server that may bind to low ports.
    #[test]
    fn more_capabilities_than_ours_are_named() {
        let theirs = ("7/status", "Name:\tgame\nCapPrm:\t0000000000000400\n");
        let expected = Rule::Capabilities(0x400);
        assert_eq!(rule(&[NONE, theirs], seen()), expected);
        assert_eq!(rule(&[NONE, theirs, yama("1\n")], seen()), expected, "asked before Yama");
        assert_ne!(rule(&[PTRACE, theirs], seen()), expected);
        let ours = ("self/status", "Name:\tppt\nCapEff:\t0000000000000c00\n");
        assert_ne!(rule(&[ours, theirs], seen()), expected);
    }
}
