//! Libraries that are unloaded, and programs that end, during a session.

use std::fs;
use std::path::PathBuf;

use super::{CREW, LINK, account, bench, check, go, hash8, host, library, load, tell};
use crate::fixtures::support::{self, Account, Bench, Target};

/// A host that has loaded one plugin.
fn one_plugin(bench: &Bench) -> Target {
    library(bench, "left", "plugin.so", "plugin_write", &[]);
    host(bench, &[]);
    let mut target = bench.start("host", &[]);
    load(bench, &mut target, "plugin.so", "local");
    target
}

#[test]
fn an_unloaded_plugin_ends_its_capture() {
    let bench = bench();
    let mut target = one_plugin(&bench);
    let attach = bench.attach(&target, &[]);
    let pid = attach.pid();
    let written = go(&mut target, 500);
    tell(&mut target, "unload 0", "unloaded");
    let stderr = attach.ended(0);
    let expected = format!("ppt: example: its library was unloaded by process {}\n", target.pid());
    assert!(stderr.contains(&expected), "{stderr}");
    // The threads that used it outlive it.
    tell(&mut target, "join", "joined");
    account(&bench, "22", "dlclose while attached", target, (pid, &stderr), written);
    assert_eq!(check(&bench.table("out.bin", &[]), "left", 1), written);
    let info = bench.ppt(&["info", "out.bin"]);
    assert!(info.stdout.contains("its library was unloaded"), "{}", info.stdout);
}

#[test]
fn memory_that_an_unloaded_plugin_left_is_not_written_to() {
    let bench = bench();
    let mut target = one_plugin(&bench);
    let attach = bench.attach(&target, &[]);
    let pid = attach.pid();
    let written = go(&mut target, 500);
    tell(&mut target, "unload 0", "unloaded");
    tell(&mut target, "reuse", "reused");
    // Immediately, mostly before the periodic check has noticed.
    let stderr = attach.stop();
    tell(&mut target, "check", "intact");
    let ran = bench.ppt(&["detach", &target.pid().to_string()]);
    assert_eq!(ran.code(), 1, "{}", ran.stderr);
    tell(&mut target, "check", "intact");
    tell(&mut target, "join", "joined");
    account(&bench, "54", "dlclose, address reused, detach", target, (pid, &stderr), written);
}

#[test]
fn a_plugin_that_is_unloaded_leaves_the_others_attached() {
    let bench = bench();
    library(&bench, "left", "libleft.so", "left_write", &[]);
    library(&bench, "right", "plugin.so", "plugin_write", &[]);
    host(&bench, &["-DFIRST=left_write", "-L.", "-lleft"]);
    let mut target = bench.start("host", &[]);
    load(&bench, &mut target, "plugin.so", "local");
    let attach = bench.attach(&target, &[]);
    let pid = attach.pid();
    let mut written = go(&mut target, 300);
    tell(&mut target, "unload 1", "unloaded");
    tell(&mut target, "reuse", "reused");
    let name = format!("example#{}", hash8(&bench, "right"));
    let line = format!("ppt: {name}: its library was unloaded by process {}", target.pid());
    attach.stderr.wait_for(&line);
    // The threads of the plugin end, others start, and the rest of the capture continues.
    tell(&mut target, "join", "joined");
    written += go(&mut target, 300);
    let stderr = attach.stop();
    tell(&mut target, "check", "intact");
    account(&bench, "22", "dlclose of one of two while attached", target, (pid, &stderr), written);
    let right = bench.table("out.bin", &["-b", &name]);
    assert_eq!(check(&right, "right", 1), CREW * 300);
    let left = bench.table("out.bin", &["-b", &format!("example#{}", hash8(&bench, "left"))]);
    assert_eq!(check(&left, "left", 2), CREW * 600);
}

#[test]
fn a_plugin_that_comes_back_is_attached_again() {
    let bench = bench();
    let mut target = one_plugin(&bench);
    let (mut pids, mut total) = (Vec::new(), 0);
    for round in 0..3 {
        let attach = bench.attach(&target, &["--force"]);
        pids.push(attach.pid());
        let written = go(&mut target, 100);
        tell(&mut target, &format!("unload {round}"), "unloaded");
        attach.ended(0);
        Account::of(&bench.info("out.bin")).check(written);
        total += written;
        load(&bench, &mut target, "plugin.so", "local");
        tell(&mut target, "join", "joined");
    }
    assert_eq!(total, 3 * CREW * 100);
    target.finish();
    assert_eq!(support::segments_of(&pids), 0);
}

/// A counter that both a target and a test map.
fn counts(file: &PathBuf) -> u64 {
    let bytes = fs::read(file).unwrap();
    let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    (0..4).map(|thread| word(thread * 64 * 8)).sum()
}

/// exit() while threads write: no crash, and only the frame in progress of each thread may be lost.
fn exits_while_writing(case: &str, prepare: impl Fn(&Bench)) {
    const THREADS: u64 = 4;
    const TIMES: u32 = 25;
    let bench = bench();
    bench.copy_all(&["exiting.c", "exiting_plugin.c"]);
    prepare(&bench);
    let file = bench.path("counts");
    let mut pids = Vec::new();
    for time in 0..TIMES {
        fs::write(&file, [0; 4096]).unwrap();
        let mut target = bench.start("exiting", &[file.to_str().unwrap()]);
        let attach = bench.attach(&target, &["--force", "--slots", "1024"]);
        pids.push(attach.pid());
        target.say("go");
        let status = target.wait();
        assert!(status.success(), "time {time}: {status}");
        let stderr = attach.ended(0);
        // A library closes its gate when its process begins to end, which may take a while.
        let ended = format!("process {} ended", target.pid());
        let closed = case.ends_with("library") && stderr.contains("example: switched off");
        assert!(stderr.contains(&ended) || closed, "{stderr}");
        let info = bench.info("out.bin");
        let account = Account::of(&info);
        let (begun, told) = (counts(&file), account.captured + account.lost + account.dropped);
        assert!(told <= begun && begun - told <= THREADS, "{begun} begun, {account:?}");
        if time + 1 == TIMES {
            let table = bench.table("out.bin", &[]);
            assert_eq!(check(&table, "left", 1), account.captured);
            support::record("54", case, told, account, &info, support::segments_of(&pids));
        }
    }
}

#[test]
fn a_program_exits_while_its_threads_write() {
    exits_while_writing("exit() with threads writing, program", |bench| {
        let sources = ["exiting.c", "exiting_plugin.c", "left/example.c"];
        bench.cc(&[&["-Ileft", "-o", "exiting"], &sources[..], &LINK].concat());
    });
}

#[test]
fn a_program_exits_while_its_threads_write_in_a_library() {
    exits_while_writing("exit() with threads writing, library", |bench| {
        let plugin = ["exiting_plugin.c", "left/example.c"];
        bench.cc(&[&["-shared", "-fPIC", "-Ileft", "-o", "libplugin.so"], &plugin[..]].concat());
        bench.cc(&[&["-o", "exiting", "exiting.c", "-L.", "-lplugin"], &LINK[..]].concat());
    });
}
