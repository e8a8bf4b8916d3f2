//! Targets in unusual states: with a thread that waits in vfork(2), frozen, with code in other
//! memory than their file's, in a time namespace; and a ppt with exactly one privilege.

use std::fs;
use std::path::{Path, PathBuf};

use crate::fixtures::flood::{self, count, frames};
use crate::fixtures::steady::{self, is_root, open_to_nobody};
use crate::fixtures::support::{
    Account, Attach, Bench, Kind, Target, available, of_both_kinds, record, segments_mapped,
    segments_of, wait_until,
};

of_both_kinds! {
    a_thread_that_waits_in_vfork
    a_frozen_program
    code_in_other_memory
    code_and_headers_in_other_memory
    another_user_with_one_capability
}

/// Attaches, lets the target write 1,000 frames, and checks that they are all captured.
fn whole_session(bench: &Bench, target: Target, row: &str, case: &str) {
    let attach = bench.attach(&target, &[]);
    session(bench, target, attach, row, case);
}

fn session(bench: &Bench, mut target: Target, attach: Attach, row: &str, case: &str) {
    let agent = attach.pid();
    let written = target.run();
    attach.stop();
    assert_eq!(target.run(), 0, "off");
    target.finish();
    let info = bench.info("out.bin");
    let account = Account::of(&info);
    account.check(written);
    assert_eq!((written, account.captured), (1000, 1000));
    assert_eq!(frames(bench, "out.bin").len(), 1000);
    record(row, case, written, account, &info, segments_of(&[agent]));
}

fn state(pid: u32) -> char {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    stat.rsplit(") ").next().unwrap().chars().next().unwrap()
}

fn a_thread_that_waits_in_vfork(kind: Kind) {
    let bench = flood::build_with("vfork_main.c").of(kind);
    let target = bench.start("vfork_main", &[]);
    let pid = target.pid();
    wait_until("its first thread waits", || state(pid) == 'D');
    let attach = bench.attach(&target, &[]);
    assert_eq!(state(pid), 'D', "undisturbed");
    session(&bench, target, attach, "10", &kind.case("thread in vfork"));
}

/// A freezable control group of either version; thawed, emptied and removed when dropped.
struct Freezer {
    folder: PathBuf,
    switch: (&'static str, &'static str, &'static str),
}

impl Freezer {
    fn all(name: &str) -> Vec<Self> {
        let first = ("freezer.state", "FROZEN", "THAWED");
        let second = ("cgroup.freeze", "1", "0");
        let roots = [
            ("/sys/fs/cgroup/freezer", first),
            ("/sys/fs/cgroup", second),
            ("/sys/fs/cgroup/unified", second),
        ];
        let make = |(root, switch): (&str, (&'static str, _, _))| {
            let folder = Path::new(root).join(name);
            fs::create_dir(&folder).ok()?;
            let made = Self { folder, switch };
            made.folder.join(switch.0).exists().then_some(made)
        };
        roots.into_iter().filter_map(make).collect()
    }

    fn freeze(&self, pid: u32) {
        fs::write(self.folder.join("cgroup.procs"), pid.to_string()).unwrap();
        let (file, on, _) = self.switch;
        fs::write(self.folder.join(file), on).unwrap();
        wait_until("it is frozen", || match file {
            "freezer.state" => self.read(file).trim() == on,
            _ => self.read("cgroup.events").contains("frozen 1"),
        });
    }

    fn read(&self, file: &str) -> String {
        fs::read_to_string(self.folder.join(file)).unwrap()
    }

    fn thaw(&self) {
        let (file, _, off) = self.switch;
        let _ = fs::write(self.folder.join(file), off);
    }
}

impl Drop for Freezer {
    fn drop(&mut self) {
        self.thaw();
        let above = self.folder.parent().unwrap().join("cgroup.procs");
        for pid in fs::read_to_string(self.folder.join("cgroup.procs")).unwrap_or_default().lines()
        {
            let _ = fs::write(&above, pid);
        }
        let _ = fs::remove_dir(&self.folder);
    }
}

fn a_frozen_program(kind: Kind) {
    let bench = flood::build_with("remapped_main.c").of(kind);
    let name = format!("ppt-test-{}-{kind:?}", std::process::id());
    let freezers = Freezer::all(&name);
    if freezers.is_empty() {
        eprintln!("skipped: no control group can be made here");
    }
    for freezer in freezers {
        let target = bench.start("remapped_main", &[]);
        let freezer = freezer; // thawed before the target is ended, in any case
        let version = if freezer.switch.0 == "cgroup.freeze" { "2" } else { "1" };
        freezer.freeze(target.pid());
        let attach = bench.attach(&target, &["--force"]);
        assert_eq!(segments_mapped(target.pid()), 0, "it cannot have done anything");
        // Nor is that needed for a detach.
        let stderr = attach.stop();
        assert!(stderr.contains("captured 0 frames"), "{stderr}");
        let attach = bench.attach(&target, &["--force"]);
        let folder = freezer.folder.clone();
        drop(freezer);
        assert!(!folder.exists(), "{} is left", folder.display());
        session(
            &bench,
            target,
            attach,
            "10",
            &kind.case(&format!("frozen cgroup, version {version}")),
        );
    }
}

fn remapped(kind: Kind, what: &str, case: &str) {
    let bench = flood::build_with("remapped_main.c").of(kind);
    let target = bench.start("remapped_main", &[what]);
    let program = bench.path("remapped_main").display().to_string();
    let maps = fs::read_to_string(format!("/proc/{}/maps", target.pid())).unwrap();
    let of_program: Vec<&str> = maps.lines().filter(|line| line.ends_with(&program)).collect();
    let executed = of_program.iter().filter(|line| line.contains("r-xp")).count();
    assert_eq!(executed, 0, "none of its code is its file's: {maps}");
    let data = of_program.iter().filter(|line| line.contains("rw-p")).count();
    assert!(data > 1, "its data is several mappings: {maps}");
    whole_session(&bench, target, "18", &kind.case(case));
}

fn code_in_other_memory(kind: Kind) {
    remapped(kind, "code", "code remapped, data split");
}

fn code_and_headers_in_other_memory(kind: Kind) {
    remapped(kind, "all", "code and headers remapped, data split");
}

/// CAP_SYS_PTRACE permits tracing any process, but not opening its files in /proc.
fn another_user_with_one_capability(kind: Kind) {
    if !is_root() || !available("setpriv") {
        return;
    }
    let bench = steady::build(&[]).of(kind);
    open_to_nobody(&bench);
    fs::create_dir(bench.path("theirs")).unwrap();
    let nobody = Some(steady::NOBODY);
    std::os::unix::fs::chown(bench.path("theirs"), nobody, nobody).unwrap();
    let mut target = steady::start(&bench);
    let mut command = bench.command("setpriv");
    let id = steady::NOBODY.to_string();
    command.args(["--reuid", &id, "--regid", &id, "--clear-groups"]);
    command.args(["--inh-caps", "+sys_ptrace", "--ambient-caps", "+sys_ptrace"]);
    let (program, capture) = (bench.path("ppt"), "theirs/out.bin");
    command.arg(program).args(["attach", &target.pid().to_string(), "-v", "-o", capture]);
    command.args(bench.kind_args());
    let attach = Attach::start(command);
    let agent = attach.pid();
    target.say("burst 1000");
    let written = target.written();
    let stderr = attach.stop();
    assert!(stderr.contains("wrote by process_vm_writev"), "{stderr}");
    assert!(!steady::gate(&mut target));
    target.finish();
    let info = bench.info(capture);
    let account = Account::of(&info);
    account.check(written);
    assert_eq!((written, account.captured), (1000, 1000));
    assert_eq!(count(&info, "lost_by", "corrupt"), 0);
    let case = kind.case("another user with CAP_SYS_PTRACE only");
    record("7", &case, written, account, &info, segments_of(&[agent]));
}
