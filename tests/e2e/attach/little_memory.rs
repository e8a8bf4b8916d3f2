//! Programs whose memory is bounded by a control group, or locked: rings take what does not harm them.

use std::fs;
use std::path::PathBuf;

use crate::fixtures::support::{Account, Bench, Target, assert_ran, status};
use crate::fixtures::{flood, preloaded};

/// A control group with a limit of memory, which ends with this.
struct MemoryGroup {
    folder: PathBuf,
    /// Where the processes go.
    above: PathBuf,
}

impl MemoryGroup {
    /// A group of version 1 or 2 with a limit of `bytes`, if this user may make one.
    fn new(name: &str, bytes: u64) -> Option<Self> {
        let first = ("/sys/fs/cgroup/memory", "memory.limit_in_bytes");
        let second = ("/sys/fs/cgroup", "memory.max");
        [first, second].into_iter().find_map(|(root, limit)| {
            let above = PathBuf::from(root);
            let folder = above.join(format!("ppt-{name}-{}", std::process::id()));
            fs::create_dir(&folder).ok()?;
            let group = Self { folder, above };
            fs::write(group.folder.join(limit), bytes.to_string()).ok()?;
            Some(group)
        })
    }

    fn add(&self, pid: u32) {
        fs::write(self.folder.join("cgroup.procs"), pid.to_string()).unwrap();
    }

    /// The processes of the group that the kernel has ended for want of memory.
    fn killed(&self) -> u64 {
        let read = |file| fs::read_to_string(self.folder.join(file)).ok();
        let text = read("memory.oom_control").or_else(|| read("memory.events")).unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix("oom_kill "));
        line.expect("a count").parse().unwrap()
    }
}

impl Drop for MemoryGroup {
    fn drop(&mut self) {
        let pids = fs::read_to_string(self.folder.join("cgroup.procs")).unwrap_or_default();
        for pid in pids.lines() {
            let _ = fs::write(self.above.join("cgroup.procs"), pid);
        }
        let _ = fs::remove_dir(&self.folder);
    }
}

/// Threads that write at once, in a group that leaves `bytes`.
fn threads_in(name: &str, threads: &str, bytes: u64) -> Option<(MemoryGroup, Bench, Target)> {
    let Some(group) = MemoryGroup::new(name, bytes) else {
        println!("no control group of memory can be made here");
        return None;
    };
    let bench = flood::build_with("threads_main.c");
    let target = bench.start("threads_main", &[threads, threads, "20000"]);
    group.add(target.pid());
    Some((group, bench, target))
}

#[test]
fn rings_fit_into_what_a_control_group_leaves() {
    let Some((group, bench, mut target)) = threads_in("fits", "64", 24 << 20) else { return };
    let doctor = bench.ppt(&["doctor", &target.pid().to_string()]).stdout;
    assert!(doctor.contains(" KiB of its memory limit, and rings take at most "), "{doctor}");
    // Rings of the default size would take 66 × 16,384 × 56 bytes: 58 MiB.
    let attach = bench.attach(&target, &[]);
    let written = target.run();
    assert_eq!((written, group.killed()), (64 * 20_000, 0));
    let said = attach.stop();
    let bound = format!(
        "to stay within the memory limit of control group {}, which leaves ",
        group.folder.display()
    );
    let line = said.lines().find(|line| line.contains(&bound)).expect(&said);
    let left: f64 =
        line.rsplit("leaves ").next().unwrap().split(' ').next().unwrap().parse().unwrap();
    assert!((18.0..=24.0).contains(&left), "{line}");
    let account = Account::of(&bench.info("out.bin"));
    account.check(written);
    target.finish();
}

#[test]
fn a_control_group_without_room_is_not_attached() {
    let Some((group, bench, mut target)) = threads_in("full", "4", 512 << 10) else { return };
    let pid = target.pid().to_string();
    let ran = bench.ppt(&["attach", &pid, "-d", "1s"]);
    let said = "ppt: control group GROUP of process PID leaves N bytes of its memory limit, and the \
                smallest rings of buffer flood need N; beyond the limit, the kernel ends the process\n  \
                --memory SIZE allows more of what it leaves, up to all of it\n  \
                more: ppt explain control-group-full\n";
    let mut seen = ran.stderr.replace(&group.folder.display().to_string(), "GROUP");
    seen = seen.replace(&format!("process {pid}"), "process PID");
    let masked: Vec<String> = seen.split(' ').map(masked).collect();
    assert_eq!((ran.code(), masked.join(" ")), (1, said.to_owned()));
    let doctor = bench.ppt(&["doctor", &pid]);
    assert!(doctor.stdout.contains("control-group-full"), "{}", doctor.stdout);
    // The user may take more of it than a quarter.
    let attach = bench.attach(&target, &["--memory", "400K"]);
    let written = target.run();
    assert_eq!((written, group.killed()), (4 * 20_000, 0));
    attach.stop();
    Account::of(&bench.info("out.bin")).check(written);
    target.finish();
}

/// A number as `N`, with what follows it.
fn masked(word: &str) -> String {
    let digits = word.len() - word.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    if digits > 0 { format!("N{}", &word[digits..]) } else { word.to_owned() }
}

#[test]
fn rings_of_locked_memory_are_small() {
    let bench = flood::build_with("threads_main.c");
    let mut target = bench.start("threads_main", &["1", "1", "1000", "locked"]);
    let locked = |target: &Target| -> u64 {
        let text = status(target.pid(), "VmLck:").unwrap();
        text.trim_end_matches(" kB").trim().parse().unwrap()
    };
    // The stack of the thread stays locked, too.
    target.run();
    let before = locked(&target);
    if before == 0 {
        println!("this user may not lock memory");
        return target.finish();
    }
    let pid = target.pid().to_string();
    let large = bench.ppt(&["attach", &pid, "-d", "1s", "--slots", "65536"]);
    let refused = format!(
        "ppt: process {pid} locks its memory (mlockall(2)): rings get 2097152 bytes, and the smallest of \
         buffer flood need 11010048\n  --memory SIZE allows more; a thread waits some half millisecond \
         for each MiB\n  more: ppt explain locked-memory\n"
    );
    assert_ran(&large, 1, "", &refused);
    let attach = bench.attach(&target, &[]);
    let written = target.run();
    assert!(locked(&target) < before + (3 << 10), "{before} KiB, {} KiB", locked(&target));
    let said = attach.stop();
    assert!(
        said.starts_with(
            "ppt: flood: 8 rings of 4,096 slots of 56 bytes (1.8 MiB): the process locks its memory \
             (mlockall(2)), and a thread waits until all of it is mapped, some 0.9 ms\n"
        ),
        "{said}"
    );
    let account = Account::of(&bench.info("out.bin"));
    account.check(written);
    assert_eq!(account.captured, written);
    target.finish();
}

#[test]
fn the_buffers_of_a_process_share_its_memory() {
    let bench = preloaded::exchange();
    let run = ["run", "-v", "--with", "files,net,locks", "--memory", "64M", "--", "true"];
    let said = bench.ppt(&run).stderr;
    let sizes = said.lines().filter(|line| line.contains(" rings of ")).map(|line| {
        let size = line.split_once('(').unwrap().1.split_once(" MiB)").expect(line).0;
        size.parse::<f64>().unwrap()
    });
    let sizes: Vec<f64> = sizes.collect();
    assert_eq!(sizes.len(), 4, "{said}");
    // Headers are not counted.
    assert!((32.0..65.0).contains(&sizes.iter().sum()), "{sizes:?}");
}
