//! Operations through an io_uring are in no frame, and ppt reports that.

use serde_json::Value;

use crate::fixtures::explained::explained;
use crate::fixtures::preloaded::{Requests, preload};
use crate::fixtures::support::{Bench, Target, ppt};

/// `ring_main`, which knows nothing of ppt.
fn ring() -> Bench {
    let bench = Bench::new();
    bench.copy("with/ring_main.c");
    bench.cc(&["ring_main.c", "-o", "ring"]);
    bench
}

fn preloaded(bench: &Bench) -> Target {
    let mut command = bench.command(bench.path("ring"));
    command.env("LD_PRELOAD", preload(bench));
    Target::start(command)
}

/// Makes the ring. Returns false with a message if the kernel refuses.
fn opened(target: &mut Target) -> bool {
    target.say("open");
    let (made, refused) = ("ring", "refused ");
    let line = target.stdout.wait_for("r");
    let line = format!("r{line}");
    assert!(line == made || line.starts_with(refused), "{line}");
    if line != made {
        eprintln!("skipped: the kernel makes no io_uring here: {line}");
    }
    line == made
}

/// A descriptor that is there when ppt comes.
#[test]
fn an_existing_ring_is_reported() {
    let bench = ring();
    let mut target = preloaded(&bench);
    if !opened(&mut target) {
        return;
    }
    let pid = target.pid().to_string();
    let ran = bench.ppt(&["attach", &pid, "-d", "10ms"]);
    assert_eq!(ran.code(), 0, "{ran:?}");
    let message = format!(
        "ppt: process {pid} (ring) has an io_uring: what it sends, receives, reads and writes through \
         that is in no frame of --with\n"
    );
    let stderr = explained(&ran.stderr);
    assert!(stderr.contains(&message) && stderr.len() < ran.stderr.len(), "{ran:?}");

    let ran = bench.ppt(&["doctor", "--json", &pid]);
    let report: Value = serde_json::from_str(&ran.stdout).unwrap();
    let checks = report["checks"].as_array().unwrap();
    let check = checks.iter().find(|check| check["check"] == "--with").unwrap();
    assert_eq!((&check["verdict"], &check["code"]), (&"note".into(), &"io-uring".into()));
    assert!(check["found"].as_str().unwrap().contains("the process has an io_uring"), "{check}");
    target.finish();
}

/// A descriptor that comes while ppt is there. The frames are those of the other requests alone.
#[test]
fn a_later_ring_is_reported() {
    let bench = ring();
    let mut command = bench.command(ppt());
    command.args(["run", "--with", "net", "--", "./ring"]);
    let (mut run, said) = Target::spawn_loud(command);
    run.stdout.wait_for("ready");
    run.say("plain 20");
    run.stdout.wait_for("plain 20");
    if !opened(&mut run) {
        return;
    }
    run.say("ring 30");
    run.stdout.wait_for("through 30");
    said.wait_for("ppt: process ");
    run.close();
    assert!(run.wait().success());
    let said = said.rest();
    assert_eq!(said.matches("(ring) has an io_uring").count(), 1, "{said}");
    explained(&said);
    let requests = Requests::of(&bench, "out.bin");
    assert_eq!((requests.served.len(), requests.called.len()), (20, 20));
    assert_eq!(requests.counters["open"], 0);
}

/// ppt does not mention a program without the library, or without a ring.
#[test]
fn rings_without_the_library_are_not_reported() {
    let bench = ring();
    let mut plain = preloaded(&bench);
    let ran = bench.ppt(&["attach", &plain.pid().to_string(), "-d", "10ms"]);
    assert_eq!((ran.code(), ran.stderr.contains("io_uring")), (0, false), "{ran:?}");
    plain.close();
    assert!(plain.wait().success());
}
