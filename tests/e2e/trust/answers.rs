//! Answers run without the rights of whoever attaches: captures may come from anybody.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::fixtures::steady::{NOBODY, is_root};
use crate::fixtures::support::{
    Bench, available, child_of, copy_program, ppt, root, send, status, wait_until,
};

/// The sets of capabilities in /proc/PID/status.
const SETS: [&str; 4] = ["CapInh:", "CapPrm:", "CapEff:", "CapAmb:"];
/// Bits of capabilities (capabilities(7)).
const DAC_OVERRIDE: u64 = 1 << 1;
const DAC_READ_SEARCH: u64 = 1 << 2;
const SYS_PTRACE: u64 = 1 << 19;

/// A question that waits for its capture on standard input.
struct Waiting {
    supervisor: Child,
    question: u32,
}

impl Waiting {
    fn start(mut command: Command) -> Self {
        command.args(["stat", "-"]).stdin(Stdio::piped()).stdout(Stdio::null());
        let supervisor = command.spawn().unwrap();
        let pid = supervisor.id();
        let children = || fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
        wait_until("there is a question", || children().is_ok_and(|text| !text.is_empty()));
        let question = child_of(pid);
        // It is prepared when it has opened what it waits for.
        let name = || fs::read_to_string(format!("/proc/{question}/comm")).unwrap_or_default();
        wait_until("the question has its name", || name() == "ppt-question\n");
        Self { supervisor, question }
    }

    /// The user of both processes, and all capabilities that one of them has in any set.
    fn rights(&self) -> (String, u64) {
        let both = [self.supervisor.id(), self.question];
        let ids = both.map(|pid| ["Uid:", "Gid:"].map(|name| status(pid, name).unwrap())).concat();
        // The real one, the effective one, the saved one and that of the file system.
        let all: Vec<&str> = ids.iter().flat_map(|four| four.split_whitespace()).collect();
        let user = all[0];
        assert!(all.iter().all(|id| *id == user), "{all:?}");
        let of = |pid: u32| {
            let set = |name: &str| u64::from_str_radix(&status(pid, name).unwrap(), 16).unwrap();
            SETS.iter().fold(0, |all, name| all | set(name))
        };
        assert_eq!(status(self.question, "NoNewPrivs:").unwrap(), "1");
        (user.to_owned(), of(both[0]) | of(both[1]))
    }

    fn end(mut self) {
        send(self.supervisor.id(), libc::SIGTERM);
        assert!(!self.supervisor.wait().unwrap().success());
        wait_until("the question has ended", || {
            !Path::new(&format!("/proc/{}", self.question)).exists()
        });
    }
}

/// As setcap(8) would: the file gives its processes these capabilities. None: the file system cannot.
fn give(path: &Path, capabilities: u64) -> Option<()> {
    // struct vfs_cap_data of linux/capability.h, version 2, effective: permitted and inheritable, low and high.
    let [low, high] = [capabilities as u32, (capabilities >> 32) as u32];
    let words = [0x0200_0001, low, 0, high, 0].map(u32::to_le_bytes).concat();
    let flags = rustix::fs::XattrFlags::empty();
    let given = rustix::fs::setxattr(path, c"security.capability", &words, flags);
    given.inspect_err(|error| eprintln!("skipped: capabilities of files: {error}")).ok()
}

#[test]
fn a_question_has_no_rights_but_to_read() {
    if !is_root() || !available("setpriv") {
        return;
    }
    let bench = Bench::new();
    fs::set_permissions(bench.path(""), fs::Permissions::from_mode(0o755)).unwrap();
    let copy = bench.path("ppt");
    copy_program(ppt(), &copy);
    let user = NOBODY.to_string();
    let as_nobody = |caps: &str| {
        let mut command = bench.command("setpriv");
        command.args(["--reuid", &user, "--regid", &user, "--clear-groups"]);
        command.args(["--inh-caps", caps, "--ambient-caps", caps]).arg(&copy);
        command
    };
    let under_sudo = || {
        let mut command = bench.command(&copy);
        command.env("SUDO_UID", &user).env("SUDO_GID", &user);
        command
    };
    let check = |command: Command, expected: (&str, &[u64])| {
        let waiting = Waiting::start(command);
        let (user, rights) = waiting.rights();
        assert!(
            user == expected.0 && expected.1.contains(&rights),
            "{user} {rights:x} {expected:?}"
        );
        waiting.end();
    };
    check(bench.command(&copy), ("0", &[DAC_READ_SEARCH, DAC_OVERRIDE]));
    check(under_sudo(), (&user, &[0]));
    check(as_nobody("-all"), (&user, &[0]));
    check(as_nobody("-all,+sys_ptrace,+dac_override"), (&user, &[0]));
    // `ppt lab` lets the user who called sudo read the captures of root.
    check(as_nobody("-all,+sys_ptrace,+dac_read_search"), (&user, &[DAC_READ_SEARCH]));
    // A copy for a group that may attach (docs/security.md).
    if give(&copy, SYS_PTRACE | DAC_OVERRIDE | DAC_READ_SEARCH).is_some() {
        check(as_nobody("-all"), (&user, &[0]));
        check(under_sudo(), (&user, &[0]));
        check(bench.command(&copy), ("0", &[DAC_READ_SEARCH, DAC_OVERRIDE]));
    }
}

/// The capture of a user is read as that user, also where only that user may.
#[test]
fn under_sudo_a_question_reads_what_its_user_may() {
    if !is_root() {
        return;
    }
    let bench = Bench::new();
    fs::set_permissions(bench.path(""), fs::Permissions::from_mode(0o755)).unwrap();
    let ask = |owner: u32| {
        fs::copy(root().join("dump/tests/golden/capture.bin"), bench.path("out.bin")).unwrap();
        fs::set_permissions(bench.path("out.bin"), fs::Permissions::from_mode(0o600)).unwrap();
        chown(bench.path("out.bin"), Some(owner), Some(owner)).unwrap();
        let mut command = bench.command(ppt());
        command.env("SUDO_UID", NOBODY.to_string()).env("SUDO_GID", NOBODY.to_string());
        command.args(["stat", "out.bin"]).output().unwrap()
    };
    let done = ask(NOBODY);
    assert!(done.status.success(), "{done:?}");
    let refused = ask(0);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("Permission denied"), "{refused:?}");
}
