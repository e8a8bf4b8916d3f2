//! Attaches to processes by name, as they start, and to all processes.

use std::os::unix::process::CommandExt;
use std::process::Command;

use crate::fixtures::explained::explained;
use crate::fixtures::flood;
use crate::fixtures::steady::{self, is_root};
use crate::fixtures::support::{Account, Attach, Bench, Target, copy_program, ppt, text};

/// A program with a unique file name per test, because other tests run at the same time.
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
    for (signal, name) in [(libc::SIGINT, "SIGINT"), (libc::SIGTERM, "SIGTERM")] {
        let attach = wait();
        attach.signal(signal);
        let stderr = attach.ended(128 + signal);
        assert!(
            stderr.contains(&format!("ppt: {name} ended the wait; no process called ")),
            "{stderr}"
        );
    }
    assert!(!bench.path("out.bin").exists(), "nobody came");
    let attach = wait();
    let target = start(&bench, &name);
    attach.stderr.wait_for(&format!("attached: pid {}", target.pid()));
    target.finish();
    attach.ended(0);
    assert_eq!(bench.info("out.bin")["end"]["reason"], "exited");
}

/// A misspelt name gets a suggestion.
#[test]
fn what_may_have_been_meant() {
    let (bench, name) = build("meant");
    let one = start(&bench, &name);
    let pid = one.pid().to_string();
    for (args, expected) in [
        (vec!["attach", "sqld"], "a pid is a number; for the process of this name: --name sqld"),
        (vec!["detach", "-p", "sqld"], "--name sqld"),
        (vec!["list", "sqld"], "`ppt list` shows the pid of each process"),
        (
            vec!["dmp", "out.bin"],
            "there is no command `dmp`; did you mean `dump`?\n  `ppt --help` lists all commands\n",
        ),
        (vec!["exprot", "out.bin"], "there is no command `exprot`; did you mean `export`?"),
        (vec!["attach", &pid, "-b", "flod"], "did you mean `flood`?"),
    ] {
        let ran = bench.ppt(&args);
        assert_eq!(ran.code(), 2, "{args:?}: {ran:?}");
        assert!(ran.stderr.contains(expected), "{args:?}: {ran:?}");
    }
    let ran = bench.ppt(&["nothing-of-that-kind"]);
    assert!(ran.code() == 2 && !ran.stderr.contains("did you mean"), "{ran:?}");
    bench.attach(&one, &[]).stop();
    for (args, expected) in [
        (["dump", "out.bin", "-b", "flod"], "no buffer is called `flod` (did you mean `flood`?)"),
        (["dump", "out.bin", "--frame", "bet"], "no frame is called `bet` (did you mean `beat`?)"),
    ] {
        let ran = bench.ppt(&args);
        assert!(ran.code() == 2 && ran.stderr.contains(expected), "{args:?}: {ran:?}");
    }
    one.finish();
}

/// A user who may not read other users' processes gets a message that says whose they are.
#[test]
fn processes_that_are_not_readable_are_counted() {
    if !is_root() {
        return;
    }
    let bench = steady::build(&[]);
    steady::open_to_nobody(&bench);
    let mut list = steady::as_nobody(bench.command(bench.path("ppt")));
    let output = list.arg("list").output().unwrap();
    let stderr = text(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    let line = stderr.lines().find(|line| line.contains(" not readable; ")).unwrap_or_default();
    assert!(line.starts_with("ppt: ") && line.contains(" of root"), "{stderr}");
    assert!(line.ends_with("; `sudo ppt list` lists the buffers of every process"), "{stderr}");
}

/// Another user's processes, all from one test.
struct Theirs {
    bench: Bench,
    name: String,
    uid: u32,
}

impl Theirs {
    /// `None` if a test cannot become another user. `nth` distinguishes tests.
    fn new(name: &str, nth: u32) -> Option<Self> {
        let (bench, name) = build(name);
        if !is_root() {
            eprintln!("skipped: only root may become somebody whose processes are known");
            return None;
        }
        let uid = 60_000 + nth * 1000 + std::process::id() % 1000;
        std::fs::create_dir(bench.path("out")).unwrap();
        // That user may not reach the folder in which ppt was built.
        copy_program(ppt(), bench.path("ppt"));
        for path in [bench.path("."), bench.path("out")] {
            std::os::unix::fs::chown(path, Some(uid), Some(uid)).unwrap();
        }
        Some(Self { bench, name, uid })
    }

    fn start(&self) -> Target {
        let mut command = self.bench.command(self.bench.path(&self.name));
        command.args(["1", "wait"]).uid(self.uid).gid(self.uid);
        let target = Target::spawn(command);
        assert_eq!(target.written(), 0);
        target
    }

    fn command(&self, program: &str, args: &[&str]) -> Command {
        let mut command = self.bench.command(program);
        command.args(args).uid(self.uid).gid(self.uid);
        command
    }
}

#[test]
fn all_of_them() {
    let Some(theirs) = Theirs::new("all", 0) else { return };
    let targets = [theirs.start(), theirs.start(), theirs.start()];
    let attach = Attach::spawn(theirs.command("./ppt", &["attach", "--all", "-o", "out/out.bin"]));
    for _ in &targets {
        attach.stderr.wait_for("attached: pid ");
    }
    let mut pids = targets.each_ref().map(|target| u64::from(target.pid()));
    targets.into_iter().for_each(Target::finish);
    let said = attach.ended(0);
    assert!(said.contains("every process has ended"), "{said}");
    let info = theirs.bench.info("out/out.bin");
    let targets = info["targets"].as_array().unwrap();
    let mut seen: Vec<_> = targets.iter().map(|target| target["pid"].as_u64().unwrap()).collect();
    seen.sort_unstable();
    pids.sort_unstable();
    assert_eq!(seen, pids);
    assert_eq!(Account::of(&info), Account::default());
    assert!(theirs.bench.table("out/out.bin", &[]).columns.contains(&"pid".to_string()));
}

/// More processes than open files allowed: the limit is raised as far as possible, and the
/// processes beyond it are named.
#[test]
fn as_many_as_files_may_be_open() {
    const ALL: usize = 12;
    let Some(theirs) = Theirs::new("many", 1) else { return };
    let targets: Vec<Target> = (0..ALL).map(|_| theirs.start()).collect();
    // The search takes a while; a second of capture is enough for these few processes.
    let attach = |soft: u32, hard: u32| {
        let script = format!(
            "ulimit -Sn {soft}; ulimit -Hn {hard}; \
             exec \"$0\" attach --all --force -d 1s -o out/out.bin"
        );
        let output = theirs.command("sh", &["-c", &script, "./ppt"]).output().unwrap();
        let said = explained(&text(&output.stderr));
        let attached = said.matches("attached: pid ").count();
        (output.status.code(), attached, said)
    };
    let (code, attached, said) = attach(40, 400);
    assert_eq!((code, attached), (Some(0), ALL), "{said}");
    let (code, attached, said) = attach(40, 100);
    assert_eq!(code, Some(0), "{said}");
    assert!((2..ALL).contains(&attached), "{said}");
    let info = theirs.bench.info("out/out.bin");
    assert_eq!(info["targets"].as_array().unwrap().len(), attached);
    let line = said.lines().find(|line| line.contains("are left out")).expect(&said);
    let (what, pids) = line.rsplit_once(": ").unwrap();
    let rest = ALL - attached;
    let expected = format!(
        "ppt: {rest} more processes have ppt buffers and are left out, because at most 100 files may \
         be open (ulimit -n)"
    );
    assert_eq!(what, expected);
    let pids: Vec<u32> = pids.split(", ").map(|pid| pid.parse().unwrap()).collect();
    let ours: Vec<u32> = targets.iter().map(Target::pid).collect();
    assert!(pids.len() == rest && pids.iter().all(|pid| ours.contains(pid)), "{said}");
    let (code, attached, said) = attach(40, 45);
    assert_eq!((code, attached), (Some(1), 0));
    assert!(said.contains("Too many open files"), "{said}");
    targets.into_iter().for_each(Target::finish);
}
