//! A user who would have the privileged ppt do what he may not: one test for each rule that keeps
//! it from being his deputy.
//!
//! Not here: (iv), that a pid means the process that was looked at (`Target::recheck`), for want of a
//! way to have a pid used again. (vii), that a capture of somebody else's is read as if
//! it were hostile: `capture_limits.rs`, `capture/tests`, `fuzz` capture.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::process::Command;

use crate::refusals::{refused, refused_to_nobody};
use crate::steady::{
    NOBODY, as_nobody, assert_said, build, gate, is_root, open_to_nobody, page, start,
};
use crate::support::{Account, Attach, Bench, Target, ppt, text};

/// The target `steady`, run by nobody, in a folder that is root's.
fn nobodys() -> (Bench, Target) {
    let bench = build(&[]);
    open_to_nobody(&bench);
    let mut command = as_nobody(bench.command(bench.path("steady")));
    command.arg("counters");
    let target = Target::start(command);
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
        "hard is not your own file alone; ppt does not overwrite it",
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
        "folder can be changed by everybody (its mode is 777); choose another folder with -o",
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

    // One's own file is overwritten when told to.
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
    // The folder is root's.
    let mut command = as_nobody(bench.command(bench.path("steady")));
    command.arg("counters");
    let mut target = Target::start(command);
    let (pid, before) = (target.pid(), page(&mut target));
    assert_eq!(
        refused_to_nobody(&bench, pid, &[]),
        "ppt: cannot write out.bin: Permission denied (os error 13)"
    );
    bench.write("theirs.bin", "root's");
    fs::set_permissions(bench.path("theirs.bin"), fs::Permissions::from_mode(0o666)).unwrap();
    assert_eq!(
        refused_to_nobody(&bench, pid, &["-o", "theirs.bin", "--force"]),
        "ppt: theirs.bin is not your own file alone; ppt does not overwrite it"
    );
    assert_eq!(fs::read_to_string(bench.path("theirs.bin")).unwrap(), "root's");
    assert_eq!(page(&mut target), before);
    target.finish();
}

/// The path of a mapped file is only a name: its folder leads elsewhere by now.
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
    // The very file is still to be had under the path that it was mapped by: through a link.
    fs::hard_link(bench.path("theirs/steady"), bench.path("steady")).unwrap();
    fs::remove_dir_all(bench.path("theirs")).unwrap();
    symlink(".", bench.path("theirs")).unwrap();
    assert!(fs::metadata(bench.path("theirs/steady")).unwrap().is_file());
    let attach = bench.attach(&target, &["-v"]);
    target.say("burst 100");
    let written = target.written();
    let said = attach.stop();
    assert!(said.contains("found by scan in"), "{said}");
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
    assert_said(
        &text(&output.stderr),
        "ppt: this ppt is set-user-ID or set-group-ID, and would do for anybody what only its \
         owner may: clear that bit (chmod ug-s), and use sudo, or give CAP_SYS_PTRACE to a copy \
         that only a group may run\n",
    );
    assert_eq!(page(&mut target), before);
    target.finish();
}

/// As sudo(8) runs it: the capture is the caller's, and nobody else's.
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
    let said = attach.stop();
    let announced = format!("ppt: process {pid} belongs to user {NOBODY}, and ppt runs as user 0");
    assert!(said.lines().any(|line| line == announced), "{said}");
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
