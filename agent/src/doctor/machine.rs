//! Checks of the machine.

use super::trials::Trials;
use super::{Check, CheckVerdict, Remedy};
use crate::allowance::RING_MEMORY;
use crate::denied::{self, Rule};
use crate::error::Failing;
use crate::escape::escaped;
use crate::system::System;
use ppt_now::reads_the_counter;

/// Checks the machine and ppt itself. It makes and removes a small segment.
pub fn machine(system: &System) -> Vec<Check> {
    let trials = Trials::run(system);
    let mut checks = vec![
        kernel(system),
        proc_mount(system),
        privileges(system),
        yama(system),
        security_modules(system, &trials),
    ];
    checks.extend(container(system));
    checks.extend([
        system_calls(system, &trials),
        shared_memory(system, &trials),
        memory(system),
        clock(system),
    ]);
    checks
}

fn kernel(system: &System) -> Check {
    let release = escaped(&system.proc_text("sys/kernel/osrelease").unwrap_or_default());
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse::<u32>);
    let mut number = || numbers.next()?.ok();
    let found =
        format!("Linux {release}; this ppt attaches to {} programs", std::env::consts::ARCH);
    match (number(), number()) {
        (Some(major), Some(minor)) if (major, minor) < (4, 14) => {
            Check::problem("kernel", found).remedy("ppt needs Linux 4.14, better 5.6")
        }
        (Some(major), Some(minor)) if (major, minor) < (5, 6) => Check::note("kernel", found)
            .remedy("before Linux 5.6 the end of a program is noticed later"),
        (Some(_), Some(_)) => Check::good("kernel", found),
        _ => Check::note("kernel", "its release cannot be read"),
    }
}

fn proc_mount(system: &System) -> Check {
    let name = "/proc";
    if system.proc_text("self/status").is_none() {
        return Check::problem(name, "it is not mounted, or cannot be read")
            .remedy("mount -t proc proc /proc");
    }
    let mounts = system.proc_text("self/mounts").unwrap_or_default();
    // Device, folder, type, options. The mount that was made last is on top.
    let fields = |line: &str| line.split(' ').map(String::from).collect::<Vec<_>>();
    let proc = mounts.lines().map(fields).rfind(|texts| texts.len() > 3 && texts[1] == "/proc");
    let options = proc.map_or(String::new(), |proc| proc[3].clone());
    let hidden = options.split(',').find_map(|piece| piece.strip_prefix("hidepid="));
    match hidden {
        None | Some("0" | "off") => Check::good(name, "all processes are visible"),
        Some(how) if denied::has_cap_sys_ptrace(system) => {
            Check::good(name, format!("hidepid={how}, which CAP_SYS_PTRACE sees through"))
        }
        Some(how) => {
            let found = format!("hidepid={how}: processes of other users are hidden from ppt");
            Check::note(name, found).remedy("run ppt as their user, or as root (sudo ppt …)")
        }
    }
}

fn privileges(system: &System) -> Check {
    let user = rustix::process::geteuid().as_raw();
    if denied::has_cap_sys_ptrace(system) {
        Check::good("privileges", format!("user {user}, with CAP_SYS_PTRACE"))
    } else {
        Check::note(
            "privileges",
            format!("user {user} without CAP_SYS_PTRACE: this user's processes only"),
        )
        .remedy("for those of others: sudo ppt …")
        .code(Rule::User { theirs: 0, ours: user })
    }
}

fn yama(system: &System) -> Check {
    let name = "ptrace";
    match system.ptrace_scope() {
        None => Check::good(name, "no Yama in this kernel"),
        Some(scope) if denied::yama_refuses(scope, denied::has_cap_sys_ptrace(system)) => {
            let rule = Rule::Yama(scope);
            Check::problem(name, rule.to_string()).code(&rule).remedy(Remedy::Rule(rule))
        }
        Some(scope) => Check::good(name, format!("kernel.yama.ptrace_scope is {scope}")),
    }
}

fn security_modules(system: &System, trials: &Trials) -> Check {
    let name = "security modules";
    let security = |path: &str| system.proc_text(&format!("self/root/sys/{path}"));
    // "1 1": the current and the pending value.
    let denies = security("fs/selinux/booleans/deny_ptrace")
        .is_some_and(|security| security.starts_with('1'));
    let enforces = security("fs/selinux/enforce").as_deref() == Some("1");
    if enforces && denies {
        return Check::problem(name, "SELinux forbids ptrace(2) to everybody (deny_ptrace)")
            .remedy("sudo setsebool deny_ptrace 0")
            .code(Rule::Module(String::new()));
    }
    if trials.landlock > 0 {
        let found = "ppt was started in a sandbox (Landlock) and may trace only processes in the \
                     same sandbox";
        let remedy = "run ppt outside the sandbox";
        return Check::note(name, found).remedy(remedy).code(Rule::Landlock);
    }
    if let Some(label) = denied::security_module(system, "self") {
        let found = if enforces {
            format!("SELinux enforces its rules; ppt runs as `{label}`")
        } else {
            format!("ppt runs as `{label}`")
        };
        let remedy = "if attaching is refused: ausearch -m avc";
        return Check::note(name, found).remedy(remedy).code(Rule::Module(label));
    }
    match security("kernel/security/lsm").filter(|list| !list.is_empty()) {
        Some(list) => Check::good(name, format!("{}; none confines ppt", escaped(&list))),
        None => Check::good(name, "none confines ppt"),
    }
}

fn container(system: &System) -> Option<Check> {
    let name = "container";
    denied::in_container(system).then(|| {
        if denied::has_cap_sys_ptrace(system) {
            Check::good(name, "ppt runs in one, with CAP_SYS_PTRACE")
        } else {
            Check::note(name, "ppt runs in one, without CAP_SYS_PTRACE").remedy(Remedy::Container)
        }
    })
}

fn system_calls(system: &System, trials: &Trials) -> Check {
    let name = "system calls";
    let status = system.proc_text("self/status").unwrap_or_default();
    let filter = status.lines().find_map(|line| line.strip_prefix("Seccomp:")).map(str::trim);
    let filtered = match filter {
        Some("2") => "a filter (seccomp) applies to ppt",
        _ => "no filter applies to ppt",
    };
    let help = if denied::in_container(system) {
        Remedy::Container
    } else {
        "run ppt outside the sandbox that filters its system calls".into()
    };
    match (trials.ptrace, trials.writev) {
        (Some(errno), _) => {
            let found = format!("{filtered}: ptrace(2) is refused: {}", errno.desc());
            Check::problem(name, found).remedy(help).code(Rule::Filtered(errno as i32))
        }
        (None, Some(errno)) => Check::note(
            name,
            format!("{filtered}: process_vm_writev(2) is refused: {}", errno.desc()),
        )
        .remedy("/proc/PID/mem is used; where that is forbidden, too, nothing can be written"),
        (None, None) => Check::good(name, format!("{filtered}; ppt tried the calls that it needs")),
    }
}

fn shared_memory(system: &System, trials: &Trials) -> Check {
    let name = "shared memory";
    if let Some(cause) = &trials.segment {
        let help = match cause.raw_os_error().map(nix::errno::Errno::from_raw) {
            Some(nix::errno::Errno::ENOSPC) => "ipcs -lm; raise kernel.shmmni or kernel.shmall",
            Some(nix::errno::Errno::EINVAL) => "raise kernel.shmmax",
            _ => "see shmget(2)",
        };
        return Check::problem(name, format!("cannot make a segment: {cause}"))
            .remedy(help)
            .code(Failing::SegmentRefused);
    }
    let limit = |file: &str| system.proc_text(&format!("sys/kernel/{file}"))?.parse::<u64>().ok();
    let used = system.proc_text("sysvipc/shm").map_or(0, |table| table.lines().skip(1).count());
    let segments = limit("shmmni").map_or(String::new(), |limit| format!(" of {limit}"));
    let found = format!("System V works; {used}{segments} segments are in use");
    match limit("shmmax").filter(|&largest| largest < RING_MEMORY) {
        Some(largest) => Check::note(name, format!("{found}; none is larger than {largest} bytes"))
            .remedy(Remedy::LargerSegments)
            .code(Failing::SegmentRefused),
        None => Check::good(name, found),
    }
}

fn memory(system: &System) -> Check {
    let bound = RING_MEMORY >> 20;
    match system.available_memory() {
        Some(bytes) if bytes >> 20 < bound => {
            let found = format!("{} MiB are available, a buffer may use {bound}", bytes >> 20);
            Check::note("memory", found).remedy(Remedy::LowerBound)
        }
        Some(bytes) => Check::good("memory", format!("{} MiB are available", bytes >> 20)),
        None => Check::note("memory", "the available memory cannot be read"),
    }
}

fn clock(system: &System) -> Check {
    let path = "self/root/sys/devices/system/clocksource/clocksource0/current_clocksource";
    let Some(source) = system.proc_text(path).map(|text| escaped(&text)) else {
        return Check::note("clock", "the clock source cannot be read");
    };
    let verdict = if reads_the_counter(&source) { CheckVerdict::Good } else { CheckVerdict::Note };
    let check = Check::new(verdict, "clock", format!("the clock source is {source}"));
    match verdict {
        CheckVerdict::Note => check.remedy(
            "with it, reading the time enters the kernel, so times in frames cost the program more",
        ),
        _ => check,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: (&str, &str) = ("self/status", "Name:\tppt\nCapEff:\t0000000000000000\n");
    const PTRACE: (&str, &str) = ("self/status", "Name:\tppt\nCapEff:\t0000000000080000\n");

    /// A check of a machine with these files in procfs.
    fn on(files: &[(&str, &str)], check: impl Fn(&System) -> Check) -> Check {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        check(&System { proc: folder.path().into(), ..System::default() })
    }

    #[test]
    fn yama_stands_in_the_way_of_those_it_refuses() {
        let scope = |scope| ("sys/kernel/yama/ptrace_scope", scope);
        let check = |status, text| on(&[status, scope(text)], yama);
        for (status, text, verdict) in [
            (NONE, "0", CheckVerdict::Good),
            (NONE, "1", CheckVerdict::Problem),
            (PTRACE, "1", CheckVerdict::Good),
            (NONE, "2", CheckVerdict::Problem),
            (PTRACE, "2", CheckVerdict::Good),
            (NONE, "3", CheckVerdict::Problem),
            (PTRACE, "3", CheckVerdict::Problem),
        ] {
            let check = check(status, text);
            assert_eq!(check.verdict, verdict, "{check:?}");
            assert!(check.found.starts_with(&format!("kernel.yama.ptrace_scope is {text}")));
            assert_eq!(check.code, (verdict == CheckVerdict::Problem).then_some("yama"));
        }
        let one = check(NONE, "1").remedy.unwrap();
        assert!(matches!(one, Remedy::Rule(Rule::Yama(1))), "{one:?}");
        assert_eq!(on(&[NONE], yama).verdict, CheckVerdict::Good, "a kernel without Yama");
    }

    #[test]
    fn selinux_is_told_from_a_label() {
        let modules = |system: &System| security_modules(system, &Trials::default());
        let enforce = ("self/root/sys/fs/selinux/enforce", "1");
        let denied = ("self/root/sys/fs/selinux/booleans/deny_ptrace", "1 1");
        let label = ("self/attr/current", "staff_u:staff_r:staff_t:s0\0");
        let check = on(&[PTRACE, enforce, denied, label], modules);
        assert_eq!(check.verdict, CheckVerdict::Problem);
        let remedy = |words: &str| words == "sudo setsebool deny_ptrace 0";
        assert!(matches!(&check.remedy, Some(Remedy::Words(words)) if remedy(words)));
        assert_eq!(check.code, Some("security-module"));

        let allowed = ("self/root/sys/fs/selinux/booleans/deny_ptrace", "0 0");
        let check = on(&[NONE, enforce, allowed, label], modules);
        assert_eq!(check.verdict, CheckVerdict::Note);
        assert_eq!(
            check.found,
            "SELinux enforces its rules; ppt runs as `staff_u:staff_r:staff_t:s0`"
        );
        let check = on(&[NONE, ("self/attr/current", "docker-default (enforce)\n")], modules);
        assert_eq!(check.found, "ppt runs as `docker-default (enforce)`");
        assert_eq!(on(&[NONE], modules).verdict, CheckVerdict::Good);
    }

    #[test]
    fn hidden_processes_are_noticed() {
        let mounts =
            |options: &str| format!("sysfs /sys sysfs rw 0 0\nproc /proc proc {options} 0 0\n");
        let check =
            |status, options: &str| on(&[status, ("self/mounts", &mounts(options))], proc_mount);
        assert_eq!(check(NONE, "rw,relatime").verdict, CheckVerdict::Good);
        assert_eq!(check(NONE, "rw,hidepid=off").verdict, CheckVerdict::Good);
        for how in ["1", "2", "invisible", "ptraceable"] {
            let options = format!("rw,nosuid,hidepid={how}");
            let hidden = check(NONE, &options);
            assert_eq!(hidden.verdict, CheckVerdict::Note);
            assert!(hidden.found.starts_with(&format!("hidepid={how}: ")), "{hidden:?}");
            assert_eq!(check(PTRACE, &options).verdict, CheckVerdict::Good);
        }
        assert_eq!(on(&[], proc_mount).verdict, CheckVerdict::Problem, "no procfs at all");
    }

    #[test]
    fn containers_are_told_what_to_add() {
        let inside = |system: &System| container(system).expect("seen");
        for mark in ["self/root/.dockerenv", "self/root/run/.containerenv"] {
            let check = on(&[NONE, (mark, "")], inside);
            assert_eq!(check.verdict, CheckVerdict::Note);
            assert!(matches!(check.remedy, Some(Remedy::Container)));
            assert_eq!(on(&[PTRACE, (mark, "")], inside).verdict, CheckVerdict::Good);
        }
        let pod = ("1/cgroup", "0::/kubepods/pod1\n");
        assert!(matches!(on(&[NONE, pod], inside).remedy, Some(Remedy::Container)));
    }

    #[test]
    fn refused_calls_stand_in_the_way() {
        use nix::errno::Errno;
        let filter = ("self/status", "Seccomp:\t2\n");
        let refused = |trials: Trials| on(&[filter], |system| system_calls(system, &trials));
        let ptrace = refused(Trials { ptrace: Some(Errno::EPERM), ..Trials::default() });
        assert_eq!(ptrace.verdict, CheckVerdict::Problem);
        assert!(
            ptrace.found.starts_with("a filter (seccomp) applies to ppt: ptrace(2)"),
            "{ptrace:?}"
        );
        let writev = refused(Trials { writev: Some(Errno::ENOSYS), ..Trials::default() });
        assert_eq!((ptrace.code, writev.verdict), (Some("ptrace-filtered"), CheckVerdict::Note));
        assert_eq!(refused(Trials::default()).verdict, CheckVerdict::Good);

        let full = Trials {
            segment: Some(std::io::Error::from_raw_os_error(Errno::ENOSPC as i32)),
            ..Trials::default()
        };
        let full = on(&[], |system| shared_memory(system, &full));
        assert_eq!(full.verdict, CheckVerdict::Problem);
        let remedy = |check: &Check| format!("{:?}", check.remedy);
        assert!(remedy(&full).contains("kernel.shmmni"), "{full:?}");
        assert_eq!(full.code, Some("segment-refused"));
        let small = ("sys/kernel/shmmax", "33554432\n");
        let small = on(&[small], |system| shared_memory(system, &Trials::default()));
        assert_eq!(small.verdict, CheckVerdict::Note);
    }

    #[test]
    fn kernels_clocks_and_memory_are_judged() {
        fn verdict(path: &str, text: &str, check: fn(&System) -> Check) -> CheckVerdict {
            on(&[(path, text)], check).verdict
        }
        let release = "sys/kernel/osrelease";
        assert_eq!(verdict(release, "3.10.0-1160.el7", kernel), CheckVerdict::Problem);
        assert_eq!(verdict(release, "4.18.0-553", kernel), CheckVerdict::Note);
        assert_eq!(verdict(release, "6.1.0", kernel), CheckVerdict::Good);
        assert_eq!(verdict("x", "", kernel), CheckVerdict::Note);
        let source = "self/root/sys/devices/system/clocksource/clocksource0/current_clocksource";
        assert_eq!(verdict(source, "tsc\n", clock), CheckVerdict::Good);
        assert_eq!(verdict(source, "hpet\n", clock), CheckVerdict::Note);
        let memory_of = |kb: u64| format!("MemTotal: 9 kB\nMemAvailable:   {kb} kB\n");
        assert_eq!(verdict("meminfo", &memory_of(1 << 20), memory), CheckVerdict::Good);
        assert_eq!(verdict("meminfo", &memory_of(1 << 10), memory), CheckVerdict::Note);
    }

    #[test]
    fn this_machine_makes_segments() {
        let check = shared_memory(&System::default(), &Trials::run(&System::default()));
        assert_ne!(check.verdict, CheckVerdict::Problem, "{check:?}");
    }
}
