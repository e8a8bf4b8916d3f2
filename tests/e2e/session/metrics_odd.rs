//! The limits of the processes that serve metrics, and of their clients.

use std::io::{Read, Write};
use std::net::TcpListener;

use crate::fixtures::explained::explained;
use crate::fixtures::flood;
use crate::fixtures::scraped::Served;
use crate::fixtures::steady::{NOBODY, as_nobody, build, is_root, open_to_nobody, start_as_nobody};
use crate::fixtures::support::{
    Account, Attach, Bench, Target, child_of, ppt, segments_of, status, wait_until,
};

const GET: &str = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";

/// A program whose name contains characters that would end a label or control a terminal.
const HOSTILE: &str = r#"
#include "job.h"
#include <stdio.h>
#include <sys/prctl.h>
int main(void) {
    char line[8];
    prctl(PR_SET_NAME, "a\"} 1\n\\\033[2J\xff");
    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        PPT_WRITE_JOB(f) f.id = 1;
        puts("written 1");
        fflush(stdout);
    }
    return 0;
}
"#;

#[test]
fn a_hostile_name_is_a_label_and_nothing_else() {
    let bench = Bench::new();
    bench.write("job.frame", "frame job { u64 id; }\n");
    bench.pptc(&["job.frame"]);
    bench.write("main.c", HOSTILE);
    bench.cc(&["main.c", "job.c", "-o", "main"]);
    let mut target = bench.start("main", &[]);
    let served = Served::attach(&bench, &target, &[]);
    target.run();
    let scrape = served.scrape_until("the frame is there", |scrape| {
        scrape.all("ppt_frames_captured_total", &[]).any(|entry| entry.1 == 1.0)
    });
    let programs: Vec<&String> =
        scrape.all("ppt_frames_captured_total", &[]).map(|entry| &entry.0["program"]).collect();
    assert_eq!(programs, ["a\"} 1\\n\\\\x1b[2J\u{fffd}"]);
    let is_shown = |char: char| char == '\n' || !char.is_control();
    assert!(scrape.text.chars().all(is_shown), "{:?}", scrape.text);
    scrape.check_by_prometheus();
    served.attach.stop();
    target.finish();
}

/// The error if metrics cannot be served: immediate, and without side effects.
fn refused(bench: &Bench, target: &Target, args: &[&str], code: i32, expected: &str) {
    let pid = target.pid().to_string();
    let ran = bench.ppt(&[&["attach", &pid], args].concat());
    assert_eq!(ran.code(), code, "{}", ran.stderr);
    assert_eq!(explained(&ran.stderr), format!("ppt: {expected}\n"));
    assert!(!bench.path("out.bin").exists());
    bench.check_off(target);
}

#[test]
fn an_address_that_cannot_be_used_is_named_before_anything_happens() {
    let bench = flood::build();
    let target = bench.start("flood", &["1", "1"]);
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let in_use = format!(
        "port {port} of 127.0.0.1 is in use; choose another one, or port 0 for any that is free"
    );
    refused(&bench, &target, &["--metrics", &port], 1, &in_use);
    let bad = "`nowhere:9464` is no address to serve metrics at: write ADDRESS:PORT in numbers, such as \
               127.0.0.1:9464 or [::1]:9464";
    refused(&bench, &target, &["--metrics", "nowhere:9464"], 2, bad);
    let remote = "metrics at 0.0.0.0:9464 can be read by everybody who reaches this machine: what \
                  programs are called, and how much they do; to serve them there anyway: --allow \
                  remote-metrics";
    refused(&bench, &target, &["--metrics", "0.0.0.0:9464"], 2, remote);
    let absent = "metrics cannot be served at 192.0.2.1:9464: Cannot assign requested address (os \
                  error 99)";
    let args = ["--metrics", "192.0.2.1:9464", "--allow", "remote-metrics"];
    refused(&bench, &target, &args, 1, absent);
    let first = std::fs::read_to_string("/proc/sys/net/ipv4/ip_unprivileged_port_start").unwrap();
    if first.trim().parse::<u16>().unwrap() > 1 {
        let denied = "port 1 of 127.0.0.1 cannot be used: Permission denied (os error 13); ports \
                      below 1024 are for root, and metrics are served without root's rights";
        refused(&bench, &target, &["--metrics", "1"], 1, denied);
    }
    target.finish();
}

#[test]
fn other_machines_are_answered_only_if_they_may_be() {
    let bench = flood::build();
    let target = bench.start("flood", &["1", "1"]);
    let served = Served::attach(&bench, &target, &[]);
    let from = |host: &str| format!("GET /metrics HTTP/1.1\r\nHost: {host}\r\n\r\n");
    assert_eq!(served.ask(&from("evil.example")).0, "421");
    assert_eq!(served.ask(&from("127.0.0.1:1")).0, "200");
    assert_eq!(served.ask(&GET.replace("metrics", "")).0, "404");
    served.attach.stop();
    let mut command = bench.command(ppt());
    command.args(["attach", &target.pid().to_string(), "--force", "--metrics", "0.0.0.0:0"]);
    command.args(["--allow", "remote-metrics"]);
    let mut served = Served::start(command);
    served.attach.stderr.wait_for("attached:");
    served.address.set_ip([127, 0, 0, 1].into());
    assert_eq!(served.ask(&from("this.machine.example")).0, "200");
    served.attach.stop();
    target.finish();
}

/// Many clients that connect, send partial requests and read nothing: the capture is not affected,
/// and scrapers get responses.
#[test]
fn a_crowd_disturbs_neither_the_capture_nor_others() {
    let bench = flood::build();
    let mut target = bench.start("flood", &["4", "20000"]);
    let served = Served::attach(&bench, &target, &[]);
    let mut crowd: Vec<_> = (0..1000).map(|_| served.connect()).collect();
    let many = GET.repeat(100);
    for (number, stream) in crowd.iter_mut().enumerate() {
        let said = [GET, "GET /metrics HTTP/1.1\r\nHo", "", &many][number % 4];
        // Some of them are closed by now.
        let _ = stream.write_all(said.as_bytes());
    }
    let written = target.run();
    let last = served.scrape_until("all frames are there", |scrape| {
        scrape.count("ppt_frames_written_total", &[]) == written
    });
    let server = child_of(served.attach.pid());
    let memory = status(server, "VmHWM:").unwrap();
    let kilobytes: u64 = memory.split(' ').next().unwrap().parse().unwrap();
    assert!(kilobytes < 64 << 10, "{memory}");
    for mut stream in crowd {
        let _ = stream.read_to_end(&mut Vec::new());
    }
    served.attach.stop();
    let account = Account::of(&bench.info("out.bin"));
    account.check(written);
    assert_eq!(last.count("ppt_frames_captured_total", &[]), account.captured);
    target.finish();
}

/// The process that owns the port has no privileges, and ends with ppt for any reason.
#[test]
fn who_serves_may_do_nothing() {
    if !is_root() {
        return;
    }
    let bench = flood::build();
    let mut target = bench.start("flood", &["1", "3"]);
    let mut agents = Vec::new();
    for killed in [false, true] {
        let served = Served::attach(&bench, &target, &["--force"]);
        agents.push(served.attach.pid());
        let server = child_of(served.attach.pid());
        let of = |field: &str| status(server, field).unwrap();
        assert_eq!(of("Name:"), "ppt-metrics");
        let ids = [NOBODY; 4].map(|number| number.to_string()).join("\t");
        assert_eq!((of("Uid:"), of("Gid:")), (ids.clone(), ids));
        assert_eq!(of("Groups:"), NOBODY.to_string());
        assert_eq!((of("CapPrm:"), of("NoNewPrivs:")), ("0".repeat(16), "1".to_owned()));
        target.run();
        if killed {
            served.attach.kill();
        } else {
            _ = served.attach.stop();
        }
        wait_until("it has ended", || {
            status(server, "State:").is_none_or(|status| status.starts_with('Z'))
        });
    }
    target.finish();
    assert_eq!(segments_of(&agents), 0);
}

#[test]
fn ones_own_program_takes_no_rights_to_show() {
    if !is_root() {
        return;
    }
    let bench = build(&[]);
    open_to_nobody(&bench);
    std::os::unix::fs::chown(bench.path(""), Some(NOBODY), Some(NOBODY)).unwrap();
    let mut target = start_as_nobody(&bench);
    let mut command = as_nobody(bench.command(bench.path("ppt")));
    command.args(["attach", &target.pid().to_string(), "--metrics", "[::1]:0"]);
    let served = Served::start(command);
    served.attach.stderr.wait_for("attached:");
    target.say("burst 1000");
    let written = target.written();
    served.scrape_until("all frames are there", |scrape| {
        scrape.count("ppt_frames_captured_total", &[]) == written
    });
    served.attach.stop();
    target.finish();
}

/// Without the serving process, the capture continues, and ppt reports that once.
#[test]
fn who_serves_is_killed() {
    let bench = flood::build();
    let mut target = bench.start("flood", &["1", "3000"]);
    let served = Served::attach(&bench, &target, &[]);
    let server = child_of(served.attach.pid());
    // SAFETY: no pointers; the process has not been waited for by this test's ppt.
    assert_eq!(unsafe { libc::kill(server as i32, libc::SIGKILL) }, 0);
    served.attach.stderr.wait_for("ppt: metrics are no longer served");
    let written = target.run();
    let stderr = served.attach.stop();
    let expected = "ppt: metrics are no longer served: their process has ended with signal: 9 \
                    (SIGKILL); the capture goes on\n";
    assert_eq!(explained(&stderr).matches(expected.trim_end()).count(), 1, "{stderr}");
    Account::of(&bench.info("out.bin")).check(written);
    target.finish();
}

#[test]
fn only_ppt_starts_the_server() {
    let bench = Bench::new();
    let ran = bench.ppt(&["serve-metrics", "127.0.0.1:0"]);
    assert_eq!(ran.code(), 2);
    let said = "only `ppt attach --metrics` and `ppt run --metrics` start this command";
    assert!(ran.stderr.contains(said), "{}", ran.stderr);
    let help = bench.ppt(&["--help"]).stdout;
    assert!(!help.contains("serve-metrics"), "{help}");
    let mut command = bench.command(ppt());
    command.args(["run", "--metrics", "x", "--", "true"]);
    let said = Attach::spawn(command).ended(125);
    assert!(said.contains("more: ppt explain bad-address"), "{said}");
}
