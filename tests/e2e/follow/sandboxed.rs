//! Workers that sandbox themselves right after the fork: their first frame must not kill them.

use crate::fixtures::family::{follow, run, whole};
use crate::fixtures::flood;
use crate::fixtures::support::{Kind, Target, of_both_kinds};

/// A sandbox, and whether prepare is called before it.
const SANDBOXES: [(&str, u32); 4] = [("filter", 0), ("filter", 1), ("strict", 0), ("strict", 1)];

/// Creates `count` workers, one after the other. Returns how many a signal killed, and the number
/// of frames.
fn workers(target: &mut Target, count: u32, mode: &str, init: u32, prepare: u32) -> (u64, u64) {
    target.say(&format!("workers {count} {mode} {init} {prepare}"));
    let answer = target.stdout.wait_for("ended ");
    let numbers: Vec<u64> = answer.split(' ').map(|piece| piece.parse().unwrap()).collect();
    (numbers[0], numbers[1])
}

of_both_kinds! {
    workers_of_a_command_sandbox_themselves
    workers_of_a_command_close_every_descriptor
}

/// They wait until they are attached to, and map at once.
fn workers_of_a_command_sandbox_themselves(kind: Kind) {
    let bench = flood::build_with("sandboxed_main.c").of(kind);
    let (mut target, stderr) = run(&bench, &["--", "./sandboxed_main"]);
    target.say("write 10");
    let mut written = target.written();
    for (mode, prepare) in SANDBOXES {
        for init in [0, 5, 50] {
            let ended = workers(&mut target, 5, mode, init, prepare);
            assert_eq!(ended, (0, 100), "{mode}, {init} ms, prepare: {prepare}");
            written += ended.1;
        }
    }
    let agent = target.pid();
    target.close();
    assert!(target.wait().success(), "{}", stderr.rest());
    whole(&bench, written, "run: workers that sandbox themselves", agent);
}

/// This may include a segment that they have made, if ppt had not fetched it by then.
fn workers_of_a_command_close_every_descriptor(kind: Kind) {
    let bench = flood::build_with("sandboxed_main.c").of(kind);
    let (mut target, stderr) = run(&bench, &["--", "./sandboxed_main"]);
    let (killed, written) = workers(&mut target, 20, "closed", 0, 0);
    assert_eq!((killed, written), (0, 400));
    let agent = target.pid();
    target.close();
    assert!(target.wait().success(), "{}", stderr.rest());
    whole(&bench, written, "run: workers that close every descriptor", agent);
}

/// Whether the kernel keeps the exit status of a reaped process.
fn ends_are_kept() -> bool {
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    let numbers =
        release.split(|c: char| !c.is_ascii_digit()).map_while(|piece| piece.parse().ok());
    numbers.take(2).collect::<Vec<u32>>() >= vec![6, 15]
}

/// They do not wait: one may reach its filter with its first frame, but no later one does. A kill
/// by strict mode cannot be distinguished from another kill, so ppt needs four without frames in
/// between.
fn few_at_most(mode: &str, init: u32, prepare: u32) {
    let most = if mode == "filter" && ends_are_kept() { 1 } else { 4 };
    let bench = flood::build_with("sandboxed_main.c");
    let mut target = bench.start("sandboxed_main", &[]);
    let attach = follow(&bench, target.pid(), &[]);
    target.say("write 10");
    assert_eq!(target.written(), 10);
    // A worker that is attached to too late is in no danger, so several may be needed. A worker
    // that is attached to early writes its frames, and resets the count.
    let mut killed = 0;
    for _ in 0..60 {
        match workers(&mut target, 1, mode, init, prepare) {
            (0, 0) => {}
            (0, _) => killed = 0,
            (one, _) => killed += one,
        }
        if killed == most {
            break;
        }
    }
    if killed == most {
        attach.stderr.wait_for("ppt: process ");
        killed += workers(&mut target, 10, mode, 50, prepare).0;
    }
    assert!(killed <= most, "{mode}, {init} ms, prepare: {prepare}: {killed} were killed");
    target.say("write 10");
    assert_eq!(target.written(), 10, "their parent is captured");
    let stderr = attach.stop();
    target.finish();
    // ppt may have found one under its filter before it was killed.
    assert!(stderr.matches("no more").count() <= 1, "{stderr}");
    if killed == most {
        assert!(
            stderr.contains("no more forked processes of its program are captured"),
            "{stderr}"
        );
        assert!(stderr.contains("were left alone, and not captured"), "{stderr}");
    }
}

#[test]
fn sandboxed_workers_are_left_alone_after_the_first() {
    for (mode, prepare) in SANDBOXES {
        for init in [5, 50] {
            few_at_most(mode, init, prepare);
        }
    }
}

/// Children that end by themselves, or write frames before a signal kills them, do not count.
#[test]
fn workers_without_a_sandbox_are_captured() {
    let bench = flood::build_with("sandboxed_main.c");
    let mut target = bench.start("sandboxed_main", &[]);
    let attach = follow(&bench, target.pid(), &[]);
    assert_eq!(workers(&mut target, 10, "none", 0, 0).0, 0);
    let mut written = 0;
    while written == 0 {
        let one = workers(&mut target, 5, "none", 50, 0);
        assert_eq!(one.0, 0);
        written = one.1;
    }
    let stderr = attach.stop();
    target.finish();
    assert!(!stderr.contains("no more"), "{stderr}");
}
