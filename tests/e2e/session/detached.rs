//! Another command detaches one target while a capture of several continues: it is released at
//! once, stays off, and the capture states that.

use crate::fixtures::family::Family;
use crate::fixtures::family::{attached, follow};
use crate::fixtures::flood;
use crate::fixtures::steady::{self, assert_message};
use crate::fixtures::support::{
    Account, Attach, Bench, Kind, Lines, Ran, Target, of_both_kinds, ppt, segments_of, wait_until,
};

/// Detaches the target in `args`, and waits until its agent has released it.
fn detach(bench: &Bench, agent: u32, pid: u32, args: &[&str]) {
    let pid = pid.to_string();
    let command = [&["detach", &pid], args].concat();
    let ran = bench.ppt(&command);
    assert_eq!(ran.code(), 0, "{ran:?}");
    assert!(ran.stderr.contains(&format!("switched off; ppt with pid {agent},")), "{ran:?}");
    wait_until("it is let go", || bench.ppt(&command).stderr.contains("nobody was attached"));
    let ran = bench.ppt(&["list", &pid]);
    assert!(ran.stdout.contains(" off "), "{ran:?}");
}

/// Runs another agent, which takes long enough for the first one to search for new processes.
fn another(bench: &Bench, pid: u32) -> Ran {
    let ran = bench.ppt(&["attach", &pid.to_string(), "-o", "other.bin", "-d", "2s"]);
    assert_eq!(ran.code(), 0, "{ran:?}");
    ran
}

/// `ppt run` of a program of the folder, and the resulting pid.
fn run(bench: &Bench, command: &[&str]) -> (Target, Lines, u32) {
    let mut ppt = bench.command(ppt());
    ppt.arg("run").args(bench.kind_args()).arg("--").args(command);
    let (run, stderr) = Target::spawn_loud(ppt);
    let said = stderr.wait_for("attached: pid ");
    (run, stderr, said.split(',').next().unwrap().parse().unwrap())
}

of_both_kinds! {
    the_command
    one_of_two_workers
    the_only_one_that_is_followed
}

fn the_command(kind: Kind) {
    let bench = flood::build_with("first_main.c").of(kind);
    let (mut run, stderr, pid) = run(&bench, &["./first_main", "100", "wait"]);
    let agent = run.pid();
    assert_eq!(run.written(), 100);
    detach(&bench, agent, pid, &[]);
    another(&bench, pid);
    run.close();
    assert_eq!(run.wait().code(), Some(0), "the command's own");
    let gone = format!("process {pid} (first_main)");
    assert_message(
        &stderr.rest(),
        &format!(
            "attached: pid {pid}, buffers flood\n\
             ppt: {gone} is no longer captured: flood: switched off from outside\n\
             ppt: ./first_main ended with status 0\n\
             ppt: detached during the capture: {gone}; what was written after that is not in the \
             capture\n\
             ppt: captured {{}} frames in {{}}, lost 0, dropped 0; out.bin: {{}}"
        ),
    );
    let info = bench.info("out.bin");
    let account = Account::of(&info);
    assert_eq!((account.captured, segments_of(&[agent])), (100, 0));
}

fn one_of_two_workers(kind: Kind) {
    let bench = Family::build().of(kind);
    let mut family = Family::start(&bench);
    let attach = follow(&bench, family.target.pid(), &[]);
    let (one, other) = (family.make("fork"), family.make("fork"));
    attached(&attach.stderr, one);
    attached(&attach.stderr, other);
    assert_eq!((family.round(one), family.round(other)), (100, 100));
    let agent = attach.pid();
    detach(&bench, agent, one.pid, &[]);
    assert_eq!(family.round(one), 0, "it is off");
    another(&bench, one.pid);
    assert_eq!(family.round(one), 0, "and stays so");
    assert_eq!(family.round(other), 100);
    let stderr = attach.stop();
    let gone = format!("process {} (family_main)", one.pid);
    for line in [
        format!("\nppt: {gone} is no longer captured: flood: switched off from outside\n"),
        format!("\nppt: detached during the capture: {gone}; what was written after that is not "),
    ] {
        assert!(stderr.contains(&line), "{stderr}");
    }
    assert!(!stderr.contains("every process") && !stderr.contains("was not captured"), "{stderr}");
    let written = family.written;
    family.target.finish();
    let info = bench.info("out.bin");
    let account = Account::of(&info);
    account.check(written);
    assert_eq!((written, account.captured, segments_of(&[agent])), (300, 300, 0));
}

/// A capture whose last process was switched off states that, and not that the process has ended.
fn the_only_one_that_is_followed(kind: Kind) {
    let bench = steady::build(&[]).of(kind);
    let mut target = steady::start(&bench);
    let pid = target.pid();
    for (args, why) in [
        (&["detach"][..], "switched off from outside"),
        (
            &["attach", "-o", "other.bin", "-d", "1s", "--allow", "foreign-claim"],
            "taken over by another ppt",
        ),
    ] {
        let attach = follow(&bench, pid, &["--force"]);
        target.say("burst 2000");
        target.written();
        let ran = bench.ppt(&[args, &[&pid.to_string()]].concat());
        assert_eq!(ran.code(), 0, "{ran:?}");
        let message = format!("process {pid} (steady) is no longer captured: steady: {why}");
        assert_message(
            &attach.ended(0),
            &format!(
                "attached: pid {pid}, buffers steady\nppt: {message}\n\
                 ppt: captured {{}} frames in {{}}, lost 0, dropped 0; out.bin: {{}}"
            ),
        );
        let end = &bench.info("out.bin")["end"];
        assert_eq!((&end["reason"], &end["message"]), (&"other".into(), &message.into()));
    }
    target.finish();
}

/// Nor does it count as ended if other processes continue.
#[test]
fn the_last_one_of_several() {
    let bench = Family::build();
    let mut family = Family::start(&bench);
    let attach = follow(&bench, family.target.pid(), &[]);
    let child = family.make("fork");
    attached(&attach.stderr, child);
    detach(&bench, attach.pid(), child.pid, &[]);
    let ran = bench.ppt(&["detach", &family.target.pid().to_string()]);
    assert_eq!(ran.code(), 0, "{ran:?}");
    let stderr = attach.ended(0);
    assert!(stderr.contains("\nppt: no process is captured any more\n"), "{stderr}");
    let end = &bench.info("out.bin")["end"];
    assert_eq!(end["message"], "no process is captured any more");
    family.target.finish();
}

/// One of two buffers of a process: the other continues.
#[test]
fn one_of_two_buffers() {
    let bench = Bench::new();
    bench.copy_all(&["values_main.c", "values.frame", "clocks.frame"]);
    bench.pptc(&["values.frame", "clocks.frame"]);
    bench.cc(&["values_main.c", "values.c", "clocks.c", "-o", "values", "-lpthread"]);
    let (mut run, stderr, pid) = run(&bench, &["./values", "2", "500"]);
    detach(&bench, run.pid(), pid, &["-b", "clocks"]);
    let mut command = bench.command(ppt());
    command.args(["attach", &pid.to_string(), "-b", "clocks", "-o", "clocks.bin"]);
    let attach = Attach::start(command);
    run.run();
    run.close();
    assert_eq!(run.wait().code(), Some(0));
    attach.ended(0);
    let said = stderr.rest();
    assert!(said.contains("\nppt: clocks: switched off from outside\n"), "{said}");
    assert!(said.contains("\nppt: detached during the capture: process "), "{said}");
    let captured = |capture| Account::of(&bench.info(capture)).captured;
    assert_eq!((captured("out.bin"), captured("clocks.bin")), (3000, 1000));
}
