//! Processes by name, as they come, and all of them.

use std::os::unix::process::CommandExt;

use crate::flood;
use crate::support::{Account, Attach, Bench, Target, ppt};

/// A program whose file name is a test's own: other tests run at the same time.
fn build(name: &str) -> (Bench, String) {
    let bench = flood::build_with("first_main.c");
    let name = format!("{name}{}", std::process::id());
    std::fs::rename(bench.path("first_main"), bench.path(&name)).unwrap();
    (bench, name)
}

fn start(bench: &Bench, name: &str) -> Target {
    let mut command = bench.command(bench.path(name));
    command.args(["1", "wait"]);
    let target = Target::spawn(command);
    assert_eq!(target.written(), 0);
    target
}

#[test]
fn the_only_one_of_a_name() {
    let (bench, name) = build("only");
    let ran = bench.ppt(&["attach", "--name", &name]);
    assert_eq!(ran.code(), 1);
    assert!(ran.stderr.contains(&format!("no process is called {name}")), "{ran:?}");
    let one = start(&bench, &name);
    let mut command = bench.command(ppt());
    command.args(["attach", "--name", &name]);
    Attach::start(command).stop();
    assert_eq!(bench.info("out.bin")["target"]["pid"], one.pid());
    let two = start(&bench, &name);
    let ran = bench.ppt(&["attach", "--force", "--name", &name]);
    assert_eq!(ran.code(), 1);
    assert!(ran.stderr.contains(&format!("2 processes are called {name}")), "{ran:?}");
    for pid in [one.pid(), two.pid()] {
        assert!(ran.stderr.contains(&format!("\n  {pid}  /")), "{ran:?}");
    }
    for wrong in [&["1", "--name", "x"][..], &["--all", "--name", "x"], &["--name", ""], &[]] {
        assert_eq!(bench.ppt(&[&["attach"], wrong].concat()).code(), 2, "{wrong:?}");
        assert_eq!(bench.ppt(&[&["detach"], wrong].concat()).code(), 2, "{wrong:?}");
    }
    two.finish();
    assert_eq!(bench.ppt(&["detach", "--name", &name]).code(), 0);
    one.finish();
}

#[test]
fn one_that_is_waited_for() {
    let (bench, name) = build("late");
    let wait = || {
        let mut command = bench.command(ppt());
        command.args(["attach", "--wait-for", &name]);
        let attach = Attach::spawn(command);
        attach.stderr.wait_for("ppt: waiting for a process called");
        attach
    };
    wait().stop();
    assert!(!bench.path("out.bin").exists(), "nobody came");
    let attach = wait();
    let target = start(&bench, &name);
    attach.stderr.wait_for(&format!("attached: pid {}", target.pid()));
    target.finish();
    attach.ended(0);
    assert_eq!(bench.info("out.bin")["end"]["reason"], "exited");
}

/// As another user, whose processes are these alone.
#[test]
fn all_of_them() {
    let (bench, name) = build("all");
    // SAFETY: no pointers.
    if unsafe { libc::geteuid() } != 0 {
        eprintln!("skipped: only root may become somebody whose processes are known");
        return;
    }
    let uid = 60_000 + std::process::id() % 5000;
    std::fs::create_dir(bench.path("out")).unwrap();
    for path in [bench.path("."), bench.path("out")] {
        std::os::unix::fs::chown(path, Some(uid), Some(uid)).unwrap();
    }
    let start = || {
        let mut command = bench.command(bench.path(&name));
        command.args(["1", "wait"]).uid(uid).gid(uid);
        let target = Target::spawn(command);
        assert_eq!(target.written(), 0);
        target
    };
    let targets = [start(), start(), start()];
    let mut command = bench.command(ppt());
    command.args(["attach", "--all", "-o", "out/out.bin"]).uid(uid).gid(uid);
    let attach = Attach::spawn(command);
    for _ in &targets {
        attach.stderr.wait_for("attached: pid ");
    }
    let mut pids = targets.each_ref().map(|it| u64::from(it.pid()));
    targets.into_iter().for_each(Target::finish);
    let said = attach.ended(0);
    assert!(said.contains("every process has ended"), "{said}");
    let info = bench.info("out/out.bin");
    let targets = info["targets"].as_array().unwrap();
    let mut seen: Vec<_> = targets.iter().map(|it| it["pid"].as_u64().unwrap()).collect();
    seen.sort_unstable();
    pids.sort_unstable();
    assert_eq!(seen, pids);
    assert_eq!(Account::of(&info), Account::default());
    assert!(bench.table("out/out.bin", &[]).columns.contains(&"pid".to_string()));
}
