//! A user who tries to make the privileged ppt do what the user may not (confused deputy): one test
//! for each rule that prevents it.
//!
//! | rule | what is held |
//! |---|---|
//! | i | an output is a new file or the caller's own, in a folder that the caller may write to |
//! | ii | links of the target's user are not followed |
//! | iii | a set-user-id ppt does nothing |
//! | iv | a pid refers to the process that was examined |
//! | v | another user's process is announced, and its capture is the caller's |
//! | vi | privileges are dropped once they are not needed |
//! | vii | captures of other users are read without privileges, and not trusted |
//!
//! Further tests of (iv), pid reuse between any two system calls: `killed.rs`. Further tests of
//! (vii), captures with wrong content: `capture_limits.rs`, `capture_files.rs`,
//! `messages/captures.txt`, `capture/tests`, `fuzz` capture.

use std::fs;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::process::{Command, Stdio};

use crate::fixtures::refused::with;
use crate::fixtures::refused::{refused, refused_to_nobody};
use crate::fixtures::steady::{
    NOBODY, as_nobody, assert_message, build, gate, is_root, open_to_nobody, page, start,
    start_as_nobody,
};
use crate::fixtures::stepped::{self, StepMoment};
use crate::fixtures::support::{
    Account, Attach, Bench, Target, available, ppt, root, stopped, text, wait_until,
};

/// The target `steady`, run by nobody, in a folder that belongs to root.
fn nobodys() -> (Bench, Target) {
    let bench = build(&[]);
    open_to_nobody(&bench);
    let target = start_as_nobody(&bench);
    (bench, target)
}

#[test]
fn rule_i_an_output_is_a_new_file_or_ones_own() {
    let bench = build(&[]);
    let mut target = start(&bench);
    let before = page(&mut target);
    let pid = target.pid();
    let refused = |args: &[&str], expected: &str| refused(&bench, pid, args, expected);
    bench.write("old.bin", "mine");
    refused(
        &["-o", "old.bin"],
        "old.bin exists; choose another name with -o, or overwrite it with --force",
    );
    symlink("old.bin", bench.path("link")).unwrap();
    symlink("nowhere", bench.path("dangling")).unwrap();
    for name in ["link", "dangling"] {
        for force in [&["--force"][..], &[]] {
            refused(
                &[&["-o", name], force].concat(),
                &format!(
                    "{name} is a symbolic link, which ppt does not follow; choose another name \
                     with -o"
                ),
            );
        }
    }
    fs::hard_link(bench.path("old.bin"), bench.path("hard")).unwrap();
    refused(
        &["-o", "hard", "--force"],
        "hard belongs to another user or has several names (hard links), so ppt does not overwrite \
         it",
    );
    assert!(Command::new("mkfifo").arg(bench.path("fifo")).status().unwrap().success());
    refused(&["-o", "fifo", "--force"], "fifo is a FIFO; choose another name with -o");
    fs::create_dir(bench.path("folder")).unwrap();
    refused(&["-o", "folder"], "folder is a directory; choose another name with -o");
    let none = "cannot write nowhere/out.bin: No such file or directory (os error 2)";
    refused(&["-o", "nowhere/out.bin"], none);
    fs::set_permissions(bench.path("folder"), fs::Permissions::from_mode(0o777)).unwrap();
    refused(
        &["-o", "folder/out.bin"],
        "folder is a folder that everybody may write to (its mode is 777); choose another folder \
         with -o",
    );
    if is_root() {
        fs::set_permissions(bench.path("folder"), fs::Permissions::from_mode(0o755)).unwrap();
        std::os::unix::fs::chown(bench.path("folder"), Some(NOBODY), None).unwrap();
        refused(
            &["-o", "folder/out.bin"],
            "folder belongs to another user; choose another folder with -o",
        );
    }
    assert_eq!(fs::read_to_string(bench.path("old.bin")).unwrap(), "mine");
    assert!(!bench.path("nowhere").exists() && !bench.path("folder/out.bin").exists());
    assert_eq!(page(&mut target), before);

    // The user's own file is overwritten on request.
    fs::remove_file(bench.path("hard")).unwrap();
    let attach = bench.attach(&target, &["-o", "old.bin", "--force"]);
    target.say("burst 10");
    let written = target.written();
    attach.stop();
    Account::of(&bench.info("old.bin")).check(written);
    target.finish();
}

#[test]
fn rule_i_an_output_is_where_one_may_write() {
    if !is_root() {
        return;
    }
    let bench = build(&[]);
    open_to_nobody(&bench);
    // The folder belongs to root.
    let mut target = start_as_nobody(&bench);
    let (pid, before) = (target.pid(), page(&mut target));
    assert_eq!(
        refused_to_nobody(&bench, pid, &[]),
        "ppt: cannot write out.bin: Permission denied (os error 13)"
    );
    bench.write("theirs.bin", "root's");
    fs::set_permissions(bench.path("theirs.bin"), fs::Permissions::from_mode(0o666)).unwrap();
    assert_eq!(
        refused_to_nobody(&bench, pid, &["-o", "theirs.bin", "--force"]),
        "ppt: theirs.bin belongs to another user or has several names (hard links), so ppt does \
         not overwrite it"
    );
    assert_eq!(fs::read_to_string(bench.path("theirs.bin")).unwrap(), "root's");
    assert_eq!(page(&mut target), before);
    target.finish();
}

/// The path of a mapped file is only a name: its folder may point elsewhere by now.
#[test]
fn rule_ii_a_link_of_the_targets_user_is_not_followed() {
    if !is_root() {
        return;
    }
    let bench = build(&[]);
    open_to_nobody(&bench);
    fs::create_dir(bench.path("theirs")).unwrap();
    fs::rename(bench.path("steady"), bench.path("theirs/steady")).unwrap();
    let mut command = as_nobody(bench.command(bench.path("theirs/steady")));
    command.arg("counters");
    let mut target = Target::start(command);
    // The original file is still reachable under the path by which it was mapped: through a link.
    fs::hard_link(bench.path("theirs/steady"), bench.path("steady")).unwrap();
    fs::remove_dir_all(bench.path("theirs")).unwrap();
    symlink(".", bench.path("theirs")).unwrap();
    assert!(fs::metadata(bench.path("theirs/steady")).unwrap().is_file());
    let attach = bench.attach(&target, &["-v"]);
    target.say("burst 100");
    let written = target.written();
    let stderr = attach.stop();
    assert!(stderr.contains("found by scan in"), "{stderr}");
    Account::of(&bench.info("out.bin")).check(written);
    target.finish();
}

#[test]
fn rule_iii_a_set_user_id_ppt_does_nothing() {
    if !is_root() {
        return;
    }
    let (bench, mut target) = nobodys();
    let before = page(&mut target);
    fs::set_permissions(bench.path("ppt"), fs::Permissions::from_mode(0o4755)).unwrap();
    let mut command = as_nobody(bench.command(bench.path("ppt")));
    let output = command.args(["attach", &target.pid().to_string()]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_message(
        &text(&output.stderr),
        "ppt: this ppt is set-user-ID or set-group-ID, so anybody could use its owner's rights; \
         clear that bit (chmod ug-s), and use sudo, or give CAP_SYS_PTRACE to a copy that only a \
         group may run\n",
    );
    assert_eq!(page(&mut target), before);
    target.finish();
}

/// A process that ends after ppt has looked at it, and another one that then has its pid: no byte
/// of that is changed.
struct Reused {
    pid: u32,
    other: Target,
    page: String,
}

impl Reused {
    /// Ends `target`; its pid goes to a program of root.
    fn of(bench: &Bench, mut target: Target) -> Self {
        let pid = target.pid();
        target.signal(libc::SIGKILL);
        target.wait();
        let program = bench.path("steady").display().to_string();
        let mut other = bench.start("as_pid", &[&pid.to_string(), &program, "counters"]);
        let page = page(&mut other);
        Self { pid, other, page }
    }

    fn untouched(mut self) {
        assert_eq!(page(&mut self.other), self.page);
        assert!(!gate(&mut self.other));
        self.other.finish();
    }
}

/// With its program at a fixed address: both processes use the same addresses.
fn reusable() -> Bench {
    let bench = build(&["-no-pie"]);
    bench.copy("as_pid.c");
    bench.cc(&["as_pid.c", "-o", "as_pid"]);
    open_to_nobody(&bench);
    bench
}

#[test]
fn rule_iv_a_pid_means_the_process_that_was_looked_at() {
    if !is_root() {
        return;
    }
    let bench = reusable();
    let theirs = || start_as_nobody(&bench);
    let attach = |pid: u32, at: StepMoment, accident: &mut dyn FnMut()| {
        let _ = fs::remove_file(bench.path("out.bin"));
        let mut command = bench.command(ppt());
        command.args(["attach", &pid.to_string()]);
        stepped::run(command, at, |_| accident())
    };
    let target = theirs();
    let whole = attach(target.pid(), StepMoment::Never, &mut || ());
    assert_eq!((whole.code, whole.attached), (Some(0), true), "{}", whole.said);
    target.finish();

    // Right before the kernel is asked for the trace, which it would grant for the other process.
    let mut target = Some(theirs());
    let pid = target.as_ref().map_or(0, Target::pid);
    let mut reused = None;
    let outcome = attach(pid, StepMoment::Hold, &mut || {
        reused = target.take().map(|target| Reused::of(&bench, target));
    });
    assert_eq!((outcome.code, outcome.attached), (Some(1), false), "{}", outcome.said);
    assert_message(&outcome.said, &format!("ppt: process {pid} ended while ppt was attaching"));
    assert!(!bench.path("out.bin").exists());
    reused.expect("it has happened").untouched();

    // A second lookup finds the other process, so the messages are about that.
    let target = theirs();
    let attach = bench.attach(&target, &[]);
    let reused = meanwhile(&bench, target, &attach);
    assert_message(
        &attach.ended(0),
        &format!(
            "ppt: process {0} belongs to user 65534, and ppt runs as user 0\nattached: pid {0}, \
             buffers steady\nppt: process {0} ended\nppt: captured 100 frames in {{}} s ({{}}/s), \
             lost 0, dropped 0; out.bin: {{}}",
            reused.pid
        ),
    );
    reused.untouched();
}

/// While `ppt` is stopped, the attached process writes some frames, and is then replaced by another
/// process.
fn meanwhile(bench: &Bench, mut target: Target, attach: &Attach) -> Reused {
    attach.signal(libc::SIGSTOP);
    stopped(attach.pid());
    target.say("burst 100");
    target.written();
    let reused = Reused::of(bench, target);
    attach.signal(libc::SIGCONT);
    reused
}

/// The same if the memory of the process is accessed by its pid at each call.
#[test]
fn rule_iv_holds_for_writes_by_pid() {
    if !is_root() || !available("setpriv") {
        return;
    }
    let bench = reusable();
    std::os::unix::fs::chown(bench.path(""), Some(NOBODY), Some(NOBODY)).unwrap();
    let target = start(&bench);
    let mut command = with(&bench, "-all,+sys_ptrace");
    command.args(["attach", &target.pid().to_string(), "-q"]);
    let attach = Attach::start(command);
    let reused = meanwhile(&bench, target, &attach);
    let stderr = attach.ended(0);
    assert_message(&stderr, &format!("attached: pid {}, buffers steady", reused.pid));
    reused.untouched();
    let account = Account::of(&bench.info("out.bin"));
    assert_eq!(account, Account { captured: 100, ..Account::default() });
}

/// Like sudo(8): the capture belongs to the caller only.
#[test]
fn rule_v_another_users_process_is_announced_and_the_capture_is_the_callers() {
    if !is_root() {
        return;
    }
    let (bench, mut target) = nobodys();
    let pid = target.pid();
    let mut command = bench.command(ppt());
    command.env("SUDO_UID", "1234").env("SUDO_GID", "1234");
    command.args(["attach", &pid.to_string(), "-v"]);
    let attach = Attach::start(command);
    target.say("burst 100");
    let written = target.written();
    let stderr = attach.stop();
    let announced = format!("ppt: process {pid} belongs to user {NOBODY}, and ppt runs as user 0");
    assert!(stderr.lines().any(|line| line == announced), "{stderr}");
    let metadata = fs::metadata(bench.path("out.bin")).unwrap();
    assert_eq!((metadata.uid(), metadata.gid(), metadata.mode() & 0o7777), (1234, 1234, 0o600));
    Account::of(&bench.info("out.bin")).check(written);
    target.finish();
}

/// Each thread's line of `/proc/PID/task/*/status` that starts with `name`.
fn of_threads(pid: u32, name: &str) -> Vec<String> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let value = |task: fs::DirEntry| {
        let status = fs::read_to_string(task.path().join("status")).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap().trim().to_string()
    };
    threads.map(|task| value(task.unwrap())).collect()
}

#[test]
fn rule_vi_rights_are_given_up_after_the_attach_and_the_detach_works() {
    if !is_root() {
        return;
    }
    const SYS_PTRACE: u64 = 1 << 19;
    let (bench, mut target) = nobodys();
    let attach = bench.attach(&target, &[]);
    for name in ["CapEff:", "CapPrm:", "CapInh:", "CapAmb:"] {
        let sets = of_threads(attach.pid(), name);
        assert!(sets.len() >= 4, "{sets:?}");
        for set in sets {
            let set = u64::from_str_radix(&set, 16).unwrap();
            assert_eq!(set & !SYS_PTRACE, 0, "{name} {set:x}");
        }
    }
    assert!(of_threads(attach.pid(), "NoNewPrivs:").iter().all(|it| it == "1"));
    target.say("burst 1000");
    let written = target.written();
    assert!(gate(&mut target));
    attach.stop();
    assert!(!gate(&mut target));
    Account::of(&bench.info("out.bin")).check(written);
    target.finish();
}

/// Root reads a capture that another user made for root to read: with no privilege except to open
/// it, and trusting nothing.
#[test]
fn rule_vii_a_capture_of_somebody_elses_is_read_without_rights_and_not_believed() {
    if !is_root() {
        return;
    }
    const DAC_READ_SEARCH: u64 = 1 << 2;
    let bench = Bench::new();
    let whole = fs::read(root().join("dump/tests/golden/capture.bin")).unwrap();
    let theirs = |bytes: &[u8]| {
        fs::write(bench.path("theirs.bin"), bytes).unwrap();
        fs::set_permissions(bench.path("theirs.bin"), fs::Permissions::from_mode(0o600)).unwrap();
        std::os::unix::fs::chown(bench.path("theirs.bin"), Some(NOBODY), Some(NOBODY)).unwrap();
    };
    theirs(&whole);
    let intact = bench.ppt(&["dump", "theirs.bin"]);
    assert_eq!((intact.code(), &*intact.stderr), (0, ""));

    assert!(Command::new("mkfifo").arg(bench.path("pipe")).status().unwrap().success());
    for what in ["dump", "info"] {
        let mut command = bench.command(ppt());
        command.args([what, "pipe"]).stdout(Stdio::piped());
        let mut reader = command.spawn().unwrap();
        let pid = reader.id();
        // It waits for the writer.
        wait_until("it has given up what it does not need", || {
            of_threads(pid, "NoNewPrivs:").iter().all(|of_thread| of_thread == "1")
                && ["CapEff:", "CapPrm:"].iter().all(|name| {
                    let sets = of_threads(pid, name);
                    let set = |text: &String| u64::from_str_radix(text, 16).unwrap();
                    sets.iter().all(|text| set(text) & !DAC_READ_SEARCH == 0)
                })
        });
        fs::write(bench.path("pipe"), &whole).unwrap();
        let mut said = String::new();
        reader.stdout.take().unwrap().read_to_string(&mut said).unwrap();
        assert!(reader.wait().unwrap().success(), "{what}: {said}");
        assert!(what == "info" || said == intact.stdout, "{said}");
    }

    let mut flipped = whole.clone();
    flipped[100] ^= 1;
    let header = whole[..100].to_vec();
    let text = b"seqno\tring\n1\t0\n".repeat(20);
    let cut = whole[..300].to_vec();
    for (bytes, code, expected) in [
        (flipped, 1, "at byte 0: the file header is damaged"),
        (text, 1, "this is not a capture; it does not begin with a capture's header"),
        (header, 1, "the capture is cut off or damaged in its first bytes, so ppt cannot read it"),
        (cut, 0, "the capture was cut off at byte 256; all 0 rows before that are in the table"),
    ] {
        theirs(&bytes);
        let ran = bench.ppt(&["dump", "theirs.bin"]);
        assert_message(&ran.stderr, &format!("ppt: theirs.bin: {expected}\n"));
        assert_eq!(ran.code(), code, "{expected}");
    }
}
