//! Every way in which a capture ends: gate off, last drain, end of the file, a summary, exit code
//! 0.

use std::fs::File;
use std::io::Read;
use std::process::Stdio;

use serde_json::Value;

use crate::fixtures::explained::explained;
use crate::fixtures::output::{files, numbers};
use crate::fixtures::steady::{
    assert_message, build, check_frames, counted, gate, page, start, total,
};
use crate::fixtures::support::{
    Account, Attach, Bench, Kind, PATIENCE, Target, fetched, of_both_kinds, ppt, record,
    segments_of,
};

const SUMMARY: &str = "ppt: captured 2,000 frames in {} s ({}/s), lost 0, dropped 0; out.bin: {}";

fn end_reason(bench: &Bench) -> Value {
    let info = bench.info("out.bin");
    assert_eq!(info["complete"], true);
    info["end"]["reason"].clone()
}

/// The conditions after the capture of one burst, for any kind of end.
fn check_burst(bench: &Bench, target: &mut Target, written: u64) {
    let info = bench.info("out.bin");
    Account::of(&info).check(written);
    check_frames(&bench.table("out.bin", &[]), &info);
    assert!(!gate(target));
    bench.check_off(target);
}

/// `ppt attach` of a burst, ended by `signal`.
fn ended_by(signal: i32, ignoring: bool) {
    let bench = build(&[]);
    let mut target = start(&bench);
    let attach = if ignoring {
        let mut command = bench.command("sh");
        command.args(["-c", "trap '' INT TERM; exec \"$0\" attach \"$1\"", ppt()]);
        command.arg(target.pid().to_string());
        Attach::start(command)
    } else {
        bench.attach(&target, &[])
    };
    target.say("burst 2000");
    let written = target.written();
    let expected = format!("attached: pid {}, buffers steady\n{SUMMARY}", target.pid());
    attach.signal(signal);
    assert_message(&attach.ended(0), &expected);
    assert_eq!(end_reason(&bench), "stopped");
    check_burst(&bench, &mut target, written);
    target.finish();
}

#[test]
fn ctrl_c() {
    ended_by(libc::SIGINT, false);
}

#[test]
fn sigterm() {
    ended_by(libc::SIGTERM, false);
}

#[test]
fn ctrl_c_where_it_was_inherited_as_ignored() {
    ended_by(libc::SIGINT, true);
}

#[test]
fn sigterm_where_it_was_inherited_as_ignored() {
    ended_by(libc::SIGTERM, true);
}

#[test]
fn hang_up() {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:\t")).unwrap();
    if u64::from_str_radix(ignored, 16).unwrap() & 1 << (libc::SIGHUP - 1) != 0 {
        eprintln!("skipped: the tests run under nohup");
        return;
    }
    ended_by(libc::SIGHUP, false);
}

#[test]
fn a_hang_up_that_nohup_ignores_does_not_end_it() {
    let bench = build(&[]);
    let mut target = start(&bench);
    let mut command = bench.command("sh");
    command.args(["-c", "trap '' HUP; exec \"$0\" attach \"$1\"", ppt()]);
    command.arg(target.pid().to_string());
    let attach = Attach::start(command);
    attach.signal(libc::SIGHUP);
    target.say("burst 2000");
    let written = target.written();
    attach.stop();
    assert_eq!(written, 2000);
    check_burst(&bench, &mut target, written);
    target.finish();
}

#[test]
fn ctrl_c_while_it_writes() {
    let bench = build(&[]);
    let mut target = start(&bench);
    let attach = bench.attach(&target, &[]);
    target.say("run");
    while *counted(&bench).start() < 50_000 {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    let agent = attach.pid();
    attach.stop();
    assert_eq!(end_reason(&bench), "stopped");
    assert!(!gate(&mut target));
    target.say("halt");
    let begun = target.written();
    target.finish();
    let info = bench.info("out.bin");
    let account = Account::of(&info);
    // The frame during which the gate was closed belongs to the next session, or to none.
    assert!((begun - 1..=begun).contains(&total(account)), "{account:?} of {begun}");
    check_frames(&bench.table("out.bin", &[]), &info);
    record("42", "Ctrl-C under load", total(account), account, &info, segments_of(&[agent]));
}

#[test]
fn the_duration_is_over() {
    let bench = build(&[]);
    let mut target = start(&bench);
    let attach = bench.attach(&target, &["-d", "1s"]);
    target.say("burst 2000");
    let written = target.written();
    let pid = target.pid();
    let stderr = attach.ended(0);
    assert_message(&stderr, &format!("attached: pid {pid}, buffers steady\n{SUMMARY}"));
    assert_eq!(end_reason(&bench), "duration");
    check_burst(&bench, &mut target, written);
    target.finish();
}

#[test]
fn the_capture_has_its_full_size() {
    const MAX: u64 = 3 << 20;
    let bench = build(&[]);
    let mut target = start(&bench);
    let attach = bench.attach(&target, &["--max-size", "3M"]);
    target.say("run");
    let (pid, agent) = (target.pid(), attach.pid());
    let stderr = attach.ended(0);
    assert_message(
        stderr.split("\nppt: --slots").next().unwrap(),
        &format!(
            "attached: pid {pid}, buffers steady\nppt: the capture has its full size\n\
             ppt: captured {{}} frames in {{}} s ({{}}/s), lost {{}} ({{}}), dropped 0; out.bin: {{}}"
        ),
    );
    assert_eq!(end_reason(&bench), "max_size");
    let size = std::fs::metadata(bench.path("out.bin")).unwrap().len();
    assert!(size <= MAX && size > MAX * 9 / 10, "{size}");
    // It continues without writing.
    assert!(!gate(&mut target));
    target.say("halt");
    target.written();
    target.finish();
    let info = bench.info("out.bin");
    let account = Account::of(&info);
    // The frame during which the gate was closed belongs to the next session, or to none.
    let begun = *counted(&bench).end();
    assert!((begun - 1..=begun).contains(&total(account)), "{account:?} of {begun}");
    check_frames(&bench.table("out.bin", &[]), &info);
    record("34", "max size", total(account), account, &info, segments_of(&[agent]));
}

#[test]
fn a_size_without_room_for_one_frame_is_a_mistake_of_usage() {
    let bench = build(&[]);
    let mut target = start(&bench);
    let pid = target.pid().to_string();
    let before = page(&mut target);
    let ran = bench.ppt(&["attach", &pid, "--max-size", "1"]);
    let expected = "ppt: --max-size 1 B is too small: a capture without any frame takes {} KiB\n";
    assert_message(&ran.stderr, expected);
    assert_eq!((ran.code(), files(&bench).len()), (2, 0));
    let ran = bench.ppt(&["run", "--max-size", "1K", "--", "true"]);
    assert_message(&ran.stderr, &expected.replace("1 B", "1.0 KiB"));
    assert_eq!((ran.code(), files(&bench).len()), (125, 0));
    // Its message is sufficient: the smallest accepted size, to the byte.
    let mut least = 1..64 << 10;
    while least.len() > 1 {
        let middle = least.start + least.len() as u64 as usize / 2;
        let size = middle.to_string();
        let ran = bench.ppt(&["attach", &pid, "--max-size", &size, "-d", "1ms", "--force"]);
        match ran.code() {
            0 => least.end = middle,
            _ => least.start = middle,
        }
    }
    assert_eq!(page(&mut target).split(' ').next(), before.split(' ').next());
    let size = (least.end + 4096).to_string();
    let attach = bench.attach(&target, &["--force", "--max-size", &size]);
    target.say("burst 1000");
    target.written();
    attach.ended(0);
    let captured = numbers(&bench, "out.bin").len();
    assert!((1..1000).contains(&captured), "{captured}");
    assert!(std::fs::metadata(bench.path("out.bin")).unwrap().len() <= least.end as u64 + 4096);
    target.finish();
}

of_both_kinds! {
    the_target_exits
    the_target_is_killed_while_it_writes
    the_target_executes_another_program
    detached_from_outside
}

fn the_target_exits(kind: Kind) {
    let bench = build(&[]).of(kind);
    let mut target = start(&bench);
    let attach = bench.attach(&target, &[]);
    target.say("burst 2000");
    let written = target.written();
    let (pid, agent) = (target.pid(), attach.pid());
    fetched(&attach, 1);
    target.finish();
    let stderr = attach.ended(0);
    assert_message(
        &stderr,
        &format!("attached: pid {pid}, buffers steady\nppt: process {pid} ended\n{SUMMARY}"),
    );
    assert_eq!(end_reason(&bench), "exited");
    let info = bench.info("out.bin");
    let account = Account::of(&info);
    account.check(written);
    check_frames(&bench.table("out.bin", &[]), &info);
    record("13", &kind.case("exit of the target"), written, account, &info, segments_of(&[agent]));
}

fn the_target_is_killed_while_it_writes(kind: Kind) {
    let bench = build(&[]).of(kind);
    let mut target = start(&bench);
    let attach = bench.attach(&target, &[]);
    target.say("run");
    while *counted(&bench).start() < 50_000 {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    let (pid, agent) = (target.pid(), attach.pid());
    fetched(&attach, 1);
    target.signal(libc::SIGKILL);
    target.wait();
    let stderr = attach.ended(0);
    assert!(stderr.contains(&format!("\nppt: process {pid} ended\nppt: captured ")), "{stderr}");
    assert_eq!(end_reason(&bench), "exited");
    let info = bench.info("out.bin");
    let account = Account::of(&info);
    let counted = counted(&bench);
    assert!(counted.contains(&total(account)), "{account:?} of {counted:?}");
    check_frames(&bench.table("out.bin", &[]), &info);
    record(
        "13",
        &kind.case("kill -9 mid-write"),
        total(account),
        account,
        &info,
        segments_of(&[agent]),
    );
}

fn the_target_executes_another_program(kind: Kind) {
    // Both at fixed addresses: the first one's addresses hold the other's data.
    let bench = build(&["-no-pie"]).of(kind);
    bench.copy("other.c");
    bench.cc(&["-no-pie", "other.c", "-o", "other"]);
    let mut target = start(&bench);
    let page = u64::from_str_radix(page(&mut target).split(' ').next().unwrap(), 16).unwrap();
    let attach = bench.attach(&target, &[]);
    target.say("burst 2000");
    let written = target.written();
    let (pid, agent) = (target.pid(), attach.pid());
    fetched(&attach, 1);
    target.say(&format!("exec {}", bench.path("other").display()));
    let covers = target.stdout.wait_for("covers ");
    let covers: Vec<u64> =
        covers.split(' ').map(|address| u64::from_str_radix(&address[2..], 16).unwrap()).collect();
    assert!(covers[0] <= page && page + 4096 <= covers[1], "{page:x} in {covers:x?}");
    let stderr = attach.ended(0);
    assert_message(
        &stderr,
        &format!(
            "attached: pid {pid}, buffers steady\n\
             ppt: process {pid} started another program (exec)\n{SUMMARY}"
        ),
    );
    assert_eq!(end_reason(&bench), "exec");
    target.say("");
    assert_eq!(target.stdout.wait_for("i"), "ntact", "nothing was written into the new program");
    target.finish();
    let info = bench.info("out.bin");
    Account::of(&info).check(written);
    record(
        "4",
        &kind.case("exec while attached"),
        written,
        Account::of(&info),
        &info,
        segments_of(&[agent]),
    );
}

fn detached_from_outside(kind: Kind) {
    let bench = build(&[]).of(kind);
    let mut target = start(&bench);
    let attach = bench.attach(&target, &[]);
    target.say("burst 2000");
    let written = target.written();
    let (pid, agent) = (target.pid(), attach.pid());
    let detach = bench.ppt(&["detach", &pid.to_string()]);
    assert_message(
        &detach.stderr,
        &format!(
            "steady: switched off; ppt with pid {agent}, started {{}} s ago ends its capture\n"
        ),
    );
    assert_eq!(detach.code(), 0);
    let start = std::time::Instant::now();
    let stderr = attach.ended(0);
    assert!(start.elapsed() < *PATIENCE / 10, "it looks once a second");
    assert_message(
        &stderr,
        &format!(
            "attached: pid {pid}, buffers steady\nppt: steady: switched off from outside\n{SUMMARY}"
        ),
    );
    check_burst(&bench, &mut target, written);
    let again = bench.ppt(&["detach", &pid.to_string()]);
    assert_eq!(again.stderr, "steady: nobody was attached\n");
    target.finish();
}

#[test]
fn a_target_that_writes_nothing() {
    let bench = build(&[]);
    let mut target = start(&bench);
    let attach = bench.attach(&target, &[]);
    attach.stderr.wait_for("ppt: waiting for the first frame: the program has not reached a write");
    let (pid, agent) = (target.pid(), attach.pid());
    assert_message(
        &attach.stop(),
        &format!(
            "attached: pid {pid}, buffers steady\n\
             ppt: waiting for the first frame: the program has not reached a write yet\n\
             ppt: captured 0 frames in {{}} s (0/s), lost 0, dropped 0; out.bin: {{}}"
        ),
    );
    check_burst(&bench, &mut target, 0);
    assert_eq!(bench.table("out.bin", &[]).columns.len(), 6, "a header line all the same");
    target.say("burst 10");
    assert_eq!(target.written(), 0, "off");
    target.finish();
    let info = bench.info("out.bin");
    record("42", "idle target", 0, Account::of(&info), &info, segments_of(&[agent]));
}

#[test]
fn stdout_is_a_capture_too() {
    let bench = build(&[]);
    let mut target = start(&bench);
    let mut command = bench.command(ppt());
    command.args(["attach", "-o", "-", &target.pid().to_string()]);
    let file = File::create(bench.path("out.bin")).unwrap();
    let attach = Attach::spawn_into(command, file.into());
    attach.stderr.wait_for("attached:");
    target.say("burst 2000");
    let written = target.written();
    let expected = SUMMARY.replace("out.bin", "stdout");
    let pid = target.pid();
    assert_message(&attach.stop(), &format!("attached: pid {pid}, buffers steady\n{expected}"));
    assert_eq!(end_reason(&bench), "stopped");
    check_burst(&bench, &mut target, written);
    target.finish();
}

#[test]
fn a_pipe_that_closes_early_is_no_error() {
    let bench = build(&[]);
    let mut target = start(&bench);
    let mut command = bench.command(ppt());
    command.args(["attach", "-o", "-", &target.pid().to_string()]);
    let (mut reader, writer) = std::io::pipe().unwrap();
    let attach = Attach::spawn_into(command, Stdio::from(writer));
    attach.stderr.wait_for("attached:");
    reader.read_exact(&mut [0; 256]).unwrap();
    drop(reader);
    target.say("run");
    let pid = target.pid();
    let stderr = attach.ended(0);
    assert_message(
        stderr.split("\nppt: --slots").next().unwrap(),
        &format!(
            "attached: pid {pid}, buffers steady\n\
             ppt: captured 0 frames in {{}} s (0/s), lost {{}}, dropped 0; stdout: {{}}"
        ),
    );
    assert!(!gate(&mut target));
    target.say("halt");
    target.written();
    target.finish();
}

#[test]
fn quiet_says_what_scripts_wait_for_and_no_more() {
    let bench = build(&[]);
    let mut target = start(&bench);
    let attach = bench.attach(&target, &["-q"]);
    target.say("burst 2000");
    let written = target.written();
    assert_eq!(attach.stop(), format!("attached: pid {}, buffers steady", target.pid()));
    check_burst(&bench, &mut target, written);
    target.finish();
}

#[test]
fn verbose_says_how() {
    let bench = build(&[]);
    let mut target = start(&bench);
    let attach = bench.attach(&target, &["-v", "-o", "one.bin"]);
    target.say("burst 2000");
    let mut written = target.written();
    let pid = target.pid();
    let object = bench.path("steady");
    let expected = format!(
        "ppt: steady: 64 rings of 4,096 slots of 32 bytes ({{}} MiB)\n\
         ppt: steady: found by symtab in {}; MADE segment {{}}\n\
         ppt: wrote by /proc/PID/mem, held the target for {{}} µs\n\
         attached: pid {pid}, buffers steady\n{SUMMARY}",
        object.display()
    );
    assert_message(&attach.stop(), &expected.replace("MADE", "made").replace("out.bin", "one.bin"));
    let attach = bench.attach(&target, &["-v"]);
    target.say("burst 2000");
    written = target.written() - written;
    assert_message(&attach.stop(), &expected.replace("MADE", "adopted"));
    check_burst(&bench, &mut target, written);
    target.finish();
}

/// A target with the buffers `clocks` and `values`.
fn two_buffers() -> Bench {
    let bench = Bench::new();
    bench.copy_all(&["values_main.c", "values.frame", "clocks.frame"]);
    bench.pptc(&["values.frame", "clocks.frame"]);
    bench.cc(&["values_main.c", "values.c", "clocks.c", "-o", "values", "-lpthread"]);
    bench
}

#[test]
fn several_buffers_are_one_capture_or_the_chosen_one() {
    let bench = two_buffers();
    let mut target = bench.start("values", &["2", "500"]);
    let attach = bench.attach(&target, &[]);
    let pid = target.pid();
    target.run();
    let stderr = attach.stop();
    assert!(stderr.contains(&format!("attached: pid {pid}, buffers clocks, values\n")), "{stderr}");
    target.finish();
    let info = bench.info("out.bin");
    let frames = |info: &Value| {
        let buffers = info["buffers"].as_array().unwrap().iter();
        buffers
            .map(|buffer| {
                (buffer["name"].as_str().unwrap().into(), buffer["frames"].as_u64().unwrap())
            })
            .collect::<Vec<(String, u64)>>()
    };
    assert_eq!(frames(&info), [("clocks".into(), 1000), ("values".into(), 3000)]);
    assert_eq!(bench.table("out.bin", &[]).columns[3], "buffer");

    let mut target = bench.start("values", &["2", "500"]);
    let attach = bench.attach(&target, &["-b", "clocks", "-o", "one.bin"]);
    target.run();
    attach.stop();
    target.finish();
    assert_eq!(frames(&bench.info("one.bin")), [("clocks".into(), 1000)]);
}

#[test]
fn a_buffer_that_is_not_there_is_a_mistake_of_usage() {
    let bench = two_buffers();
    let mut target = bench.start("values", &[]);
    let pid = target.pid().to_string();
    let expected = format!("ppt: process {pid} has no buffer `nosuch`; it has: clocks, values\n");
    for command in ["attach", "detach"] {
        let ran = bench.ppt(&[command, &pid, "-b", "nosuch"]);
        assert_eq!((ran.code(), explained(&ran.stderr)), (2, expected.clone()));
    }
    assert!(!bench.path("out.bin").exists());
    target.run();
    target.finish();
}
