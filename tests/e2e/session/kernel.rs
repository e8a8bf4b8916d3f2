//! `--kernel`: compares the kernel's actions on a program's threads with its own counts
//! (getrusage(2) of each thread), and with the program's knowledge.

use std::collections::{HashMap, HashSet};
use std::process::Command;
use std::sync::RwLock;

use crate::fixtures::explained::explained;
use crate::fixtures::refused::with;
use crate::fixtures::steady::{build, is_root, open_to_nobody, start_as_nobody};
use crate::fixtures::support::{
    Account, Attach, Bench, Lines, Table, available, ppt, stopped, text,
};

fn bench() -> Bench {
    let bench = Bench::new();
    bench.copy_all(&["waits.frame", "waits_main.c"]);
    bench.pptc(&["waits.frame"]);
    bench.cc(&["waits_main.c", "waits.c", "-o", "waits", "-pthread"]);
    bench
}

/// `ppt` in a mount namespace with a tracefs. `None` if that is not possible here.
pub fn with_tracefs(bench: &Bench) -> Option<Command> {
    let mount = "mount -t tracefs nodev /sys/kernel/tracing";
    let works = || {
        let tried = Command::new("unshare").args(["-m", "sh", "-c", mount]).output();
        tried.is_ok_and(|tried| tried.status.success())
    };
    if !is_root() || !available("unshare") || !works() {
        eprintln!("skipped: this kernel mounts no tracefs for us");
        return None;
    }
    let mut command = bench.command("unshare");
    command.args(["-m", "sh", "-c", &format!("{mount} && exec \"$0\" \"$@\""), ppt()]);
    Some(command)
}

/// Root needs no mounted tracefs, and mounts none.
#[test]
fn root_reads_tracepoints_where_none_are_mounted() {
    if !is_root() || !available("unshare") {
        return;
    }
    let bench = Bench::new();
    let script = "umount -a -t tracefs; sh -c 'while sleep 0.01; do :; done' & \
                  \"$0\" attach $! -q --kernel sched,syscalls -d 500ms; echo \"ended $?\"; kill $!; \
                  grep -c ' - tracefs ' /proc/self/mountinfo";
    let mut command = bench.command("unshare");
    let output = command.args(["-m", "sh", "-c", script, ppt()]).output().unwrap();
    let said = text(&output.stderr);
    if ["pid namespace", "perf_event_paranoid", "not permitted"].iter().any(|it| said.contains(it))
    {
        return eprintln!("skipped: {said}");
    }
    assert_eq!(text(&output.stdout), "ended 0\n0\n", "{said}");
    assert!(!said.contains("cannot capture"), "{said}");
    for frame in ["wakeup", "syscall_enter"] {
        let table = bench.table("out.bin", &["-b", "kernel", "--frame", frame]);
        assert!(!table.rows.is_empty(), "{frame}");
    }
}

/// The report of a thread.
#[derive(Debug)]
struct TargetThread {
    name: String,
    tid: i64,
    /// The first reading was between the first two of these times, the second one between the
    /// others.
    times: [i64; 4],
    voluntary: usize,
    involuntary: usize,
    minor: usize,
    calls: usize,
}

const THREADS: usize = 7;
/// Number of sleeps or turns of each thread.
const ROUNDS: usize = 200;

fn threads(lines: &Lines) -> Vec<TargetThread> {
    let thread = |_| {
        let line = lines.wait_for("thread ");
        let words: Vec<&str> = line.split(' ').collect();
        let numbers: Vec<i64> = words[1..].iter().map(|text| text.parse().unwrap()).collect();
        TargetThread {
            name: words[0].into(),
            tid: numbers[0],
            times: numbers[1..5].try_into().unwrap(),
            voluntary: numbers[5] as usize,
            involuntary: numbers[6] as usize,
            minor: numbers[7] as usize,
            calls: numbers[8] as usize,
        }
    };
    (0..THREADS).map(thread).collect()
}

/// The rows of one kind of frame.
struct KernelRows(Table);

impl KernelRows {
    fn of(bench: &Bench, capture: &str, frame: &str) -> Self {
        Self(bench.table(capture, &["-b", "kernel", "--frame", frame]))
    }

    /// Times of the rows of a thread that satisfy a condition.
    fn times(
        &self,
        thread: &TargetThread,
        is: impl Fn(&dyn Fn(&str) -> String) -> bool,
    ) -> Vec<i64> {
        let (thread_at, at) = (self.0.column("thread"), self.0.column("at"));
        let of = self.0.rows.iter().filter(|row| row[thread_at] == thread.tid.to_string());
        let such = of.filter(|row| is(&|name| row[self.0.column(name)].clone()));
        such.map(|row| row[at].parse().unwrap()).collect()
    }

    /// Checks that this many of them were between the two readings; the program reports the number.
    #[track_caller]
    fn check(
        &self,
        thread: &TargetThread,
        what: &str,
        said: usize,
        is: impl Fn(&dyn Fn(&str) -> String) -> bool,
    ) {
        let times = self.times(thread, is);
        let within =
            |from: i64, to: i64| times.iter().filter(|time| (from..=to).contains(time)).count();
        let [first, first_latest, last, last_latest] = thread.times;
        let (least, most) = (within(first_latest, last), within(first, last_latest));
        assert!(
            (least..=most).contains(&said),
            "{what} of {}: {said} counted, {least} to {most} captured",
            thread.name
        );
    }
}

/// Checks that the capture has everything that the kernel counted for each thread, and nothing
/// else.
fn check_switches(bench: &Bench, capture: &str, threads: &[TargetThread]) {
    let (ins, outs) =
        (KernelRows::of(bench, capture, "switch_in"), KernelRows::of(bench, capture, "switch_out"));
    for thread in threads {
        outs.check(thread, "waits", thread.voluntary, |row| row("preempted") == "0");
        outs.check(thread, "preemptions", thread.involuntary, |row| row("preempted") == "1");
        ins.check(thread, "switches in", thread.voluntary + thread.involuntary, |_| true);
        // In and out alternate.
        let mut all: Vec<_> =
            ins.times(thread, |_| true).into_iter().map(|time| (time, 1)).collect();
        all.extend(outs.times(thread, |_| true).into_iter().map(|time| (time, -1)));
        all.sort_unstable();
        let turns = all.windows(2).all(|window| window[0].1 != window[1].1);
        assert!(turns, "{}: {all:?}", thread.name);
    }
}

/// Records that the kernel omitted, by thread: perf takes no record while it takes one, and omits
/// some threads' records completely. The number depends on the machine.
#[derive(Debug, Default)]
struct Missing {
    /// It waited and ran again, without a record of the wakeup.
    wakeups: HashMap<String, usize>,
    /// It lost its CPU, without a record of the successor.
    successors: HashMap<String, usize>,
}

impl Missing {
    fn of(bench: &Bench, capture: &str) -> Self {
        let table = bench.table(capture, &["-b", "kernel"]);
        let [frame, thread, at, preempted] =
            ["frame", "thread", "at", "preempted"].map(|text| table.column(text));
        let begun = table.rows.iter().find(|row| row[frame] == "watched").map(|row| &row[at]);
        let begun: i64 = begun.expect("a thread was there").parse().unwrap();
        let mut missing = Self::default();
        let (mut waits, mut woken, mut followed) = (HashSet::new(), HashSet::new(), HashSet::new());
        for row in &table.rows {
            let thread = &row[thread];
            match row[frame].as_str() {
                "wakeup" => _ = woken.insert(thread),
                "successor" => _ = followed.insert(thread),
                "switch_out" => {
                    if !followed.remove(thread) && row[at].parse::<i64>().unwrap() > begun {
                        *missing.successors.entry(thread.clone()).or_default() += 1;
                    }
                    match row[preempted].as_str() {
                        "0" => waits.insert(thread),
                        _ => waits.remove(thread),
                    };
                }
                "switch_in" => {
                    let is_missing = waits.remove(thread) & !woken.remove(thread);
                    *missing.wakeups.entry(thread.clone()).or_default() += usize::from(is_missing);
                }
                "thread_start" | "thread_end" => {
                    for all in [&mut waits, &mut woken, &mut followed] {
                        all.remove(thread);
                    }
                }
                _ => {}
            }
        }
        missing
    }

    fn wakeups(&self, thread: &TargetThread) -> usize {
        self.wakeups.get(&thread.tid.to_string()).copied().unwrap_or(0)
    }

    /// Checks that exactly these are counted as lost.
    #[track_caller]
    fn check(&self, account: Account) {
        let count: usize = self.wakeups.values().chain(self.successors.values()).sum();
        assert_eq!((account.lost, account.dropped), (count as u64, 0), "{self:?}");
    }
}

fn check_wakeups(bench: &Bench, capture: &str, threads: &[TargetThread], account: Account) {
    let missing = Missing::of(bench, capture);
    missing.check(account);
    let (wakeups, successors) =
        (KernelRows::of(bench, capture, "wakeup"), KernelRows::of(bench, capture, "successor"));
    let named = |name: &str| threads.iter().find(|thread| thread.name == name).unwrap();
    for (one, other) in [("futex0", "futex1"), ("pipe0", "pipe1")] {
        for (thread, waker) in
            [(one, other), (other, one)].map(|entry| (named(entry.0), named(entry.1)))
        {
            let [_, from, to, _] = thread.times;
            let within = |times: Vec<i64>| {
                times.into_iter().filter(|time| (from..=to).contains(time)).count()
            };
            let by_it = within(wakeups.times(thread, |row| row("waker") == waker.tid.to_string()));
            // The first may have waited for the main thread.
            assert!(
                by_it + 1 + missing.wakeups(thread) >= thread.voluntary,
                "{thread:?} was woken {by_it} times by it: {missing:?}"
            );
            // The other thread has this many turns, and wakes it once in each.
            assert!(by_it <= ROUNDS, "{thread:?} was woken {by_it} times by it");
        }
    }
    let sleeper = named("sleeper");
    let by_timer = wakeups.times(sleeper, |row| row("by") == "INTERRUPT" && row("waker") == "0");
    // A timer may expire before its thread has fallen asleep, and a waiting thread was woken.
    let others =
        ["THREAD", "PROCESS"].map(|by| wakeups.times(sleeper, |row| row("by") == by).len());
    let (count, all) = (by_timer.len(), by_timer.len() + others[0] + others[1]);
    let not_seen = missing.wakeups(sleeper);
    assert!(
        sleeper.voluntary > 50
            && 2 * (count + not_seen) > sleeper.voluntary
            && all + not_seen >= sleeper.voluntary
            && count <= ROUNDS,
        "{count} wake-ups by the timer, {others:?} by others: {sleeper:?}, {missing:?}"
    );
    // On a busy machine, other threads run in between.
    let mut gave_way = 0;
    for (one, other) in [("competitor0", "competitor1"), ("competitor1", "competitor0")] {
        let (one, other) = (named(one), named(other).tid.to_string());
        let to_other = successors.times(one, |row| row("next") == other).len();
        let named = |row: &dyn Fn(&str) -> String| row("next") == other && row("name") == "waits";
        assert_eq!(successors.times(one, named).len(), to_other);
        gave_way += to_other;
    }
    assert!(gave_way > 0, "neither of two threads on one CPU ever gave way to the other");
    let known = |thread: &&TargetThread| !missing.successors.contains_key(&thread.tid.to_string());
    for thread in threads.iter().filter(known) {
        successors.check(thread, "preempted", thread.involuntary, |row| row("state") == "RUNNABLE");
    }
}

fn check_calls(bench: &Bench, capture: &str, threads: &[TargetThread]) {
    let (enters, exits) = (
        KernelRows::of(bench, capture, "syscall_enter"),
        KernelRows::of(bench, capture, "syscall_exit"),
    );
    for thread in threads {
        let (call, result) = match thread.name.as_str() {
            "sleeper" => ("getppid", std::process::id().to_string()),
            "pipe0" | "pipe1" => ("read", "1".to_owned()),
            _ => continue,
        };
        enters.check(thread, call, thread.calls, |row| row("call") == call);
        exits.check(thread, call, thread.calls, |row| {
            row("call") == call && row("result") == result
        });
    }
}

#[test]
fn switches_wakeups_calls_and_faults_are_those_that_the_kernel_counted() {
    let bench = bench();
    let _numbers = NUMBERS.read();
    let Some(mut command) = with_tracefs(&bench) else { return };
    let mut target = bench.start("waits", &[]);
    let pid = target.pid().to_string();
    command.args(["attach", &pid, "--kernel", "sched,syscalls,faults"]);
    let attach = Attach::start(command);
    target.say("go");
    let threads = threads(&target.stdout);
    assert_eq!(target.written(), 200);
    let stderr = attach.stop();
    assert!(!stderr.contains("more:"), "{stderr}");
    target.finish();
    let info = bench.info("out.bin");
    let account = Account::of(&info);
    check_switches(&bench, "out.bin", &threads);
    check_wakeups(&bench, "out.bin", &threads, account);
    check_calls(&bench, "out.bin", &threads);
    let faults = KernelRows::of(&bench, "out.bin", "page_fault");
    let sleeper = threads.iter().find(|thread| thread.name == "sleeper").unwrap();
    assert!(sleeper.minor >= 300, "{sleeper:?}");
    faults.check(sleeper, "faults", sleeper.minor, |row| row("kind") == "MINOR");
    // Two existed, six started, and all but the main thread ended.
    for (frame, count) in [("watched", 2), ("thread_start", 6), ("thread_end", 7), ("watch_end", 1)]
    {
        assert_eq!(KernelRows::of(&bench, "out.bin", frame).0.rows.len(), count, "{frame}");
    }
    let all = bench.table("out.bin", &["-b", "kernel"]).numbers("at");
    assert!(all[2..].is_sorted(), "in the order of time, behind those that say from when on");
    // The program's own frames are also there.
    assert_eq!(bench.table("out.bin", &["-b", "waits"]).rows.len(), 200);
}

/// Tests of kernel records take a read lock; a test that makes the system assign small thread ids
/// takes the write lock: ppt cannot predict such a jump, and then states the missed records.
pub(super) static NUMBERS: RwLock<()> = RwLock::new(());

/// The highest thread id, if the machine lets us choose ids.
pub(super) fn highest_number() -> Option<u32> {
    let highest = std::fs::read_to_string("/proc/sys/kernel/pid_max").unwrap();
    let open = std::fs::OpenOptions::new().write(true).open("/proc/sys/kernel/ns_last_pid");
    if let Err(error) = open {
        eprintln!("skipped: numbers of threads cannot be chosen: {error}");
        return None;
    }
    highest.trim().parse().ok()
}

/// The next thread gets an id after `last`.
pub(super) fn last_number(last: u32) {
    std::fs::write("/proc/sys/kernel/ns_last_pid", last.to_string()).unwrap();
}

#[test]
fn threads_whose_numbers_are_smaller_than_those_of_older_ones() {
    let bench = bench();
    let _alone = NUMBERS.write();
    let Some(mut command) = with_tracefs(&bench) else { return };
    let Some(highest) = highest_number() else { return };
    let mut target = bench.start("waits", &[]);
    last_number(highest - 1000);
    command.args(["attach", &target.pid().to_string(), "--kernel", "sched"]);
    let attach = Attach::start(command);
    last_number(highest - 1);
    target.say("go");
    let threads = threads(&target.stdout);
    attach.stop();
    target.finish();
    let account = Account::of(&bench.info("out.bin"));
    check_switches(&bench, "out.bin", &threads);
    check_wakeups(&bench, "out.bin", &threads, account);
}

/// Real machines do not reuse ids as fast as this test does. Missing records are counted.
#[test]
fn threads_whose_numbers_are_suddenly_smaller() {
    let bench = bench();
    let _alone = NUMBERS.write();
    let Some(mut command) = with_tracefs(&bench) else { return };
    let Some(highest) = highest_number() else { return };
    last_number(highest / 8);
    let mut target = bench.start("waits", &[]);
    command.args(["attach", &target.pid().to_string(), "--kernel", "sched"]);
    let attach = Attach::start(command);
    attach.signal(libc::SIGSTOP);
    stopped(attach.pid());
    last_number(highest - 1);
    target.say("go");
    let threads = threads(&target.stdout);
    attach.signal(libc::SIGCONT);
    attach.stop();
    target.finish();
    let account = Account::of(&bench.info("out.bin"));
    check_switches(&bench, "out.bin", &threads);
    let missing = Missing::of(&bench, "out.bin");
    missing.check(account);
    let wakeups = KernelRows::of(&bench, "out.bin", "wakeup");
    for young in threads.iter().filter(|thread| thread.name != "sleeper") {
        assert_eq!(wakeups.times(young, |_| true).len(), 0, "{young:?}");
        assert!(missing.wakeups(young) >= young.voluntary, "{young:?}: {missing:?}");
    }
}

/// Captured from its first instruction on.
#[test]
fn a_command_that_ppt_starts_is_known_from_the_beginning() {
    let bench = bench();
    let _numbers = NUMBERS.read();
    let Some(mut command) = with_tracefs(&bench) else { return };
    command.args(["run", "--kernel", "sched,syscalls", "--", "sh", "-c", "echo go | ./waits"]);
    let output = command.output().unwrap();
    let (said, stderr) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success() && !stderr.contains("more:"), "{stderr}");
    let lines = Lines::new(std::io::Cursor::new(said), "the command");
    let threads = threads(&lines);
    let account = Account::of(&bench.info("out.bin"));
    check_switches(&bench, "out.bin", &threads);
    check_wakeups(&bench, "out.bin", &threads, account);
    // The sleeper is created by the program's own code, after ppt attached.
    for (frame, count) in [("watched", 1), ("thread_start", 7), ("thread_end", 8)] {
        assert_eq!(KernelRows::of(&bench, "out.bin", frame).0.rows.len(), count, "{frame}");
    }
}

/// While ppt does not read its rings, the kernel loses records. Both the kernel and the capture
/// count them.
#[test]
fn what_the_kernel_lost_is_counted() {
    const CALLS: usize = 400_000;
    let bench = bench();
    let _numbers = NUMBERS.read();
    let Some(mut command) = with_tracefs(&bench) else { return };
    let mut target = bench.start("waits", &[]);
    command.args(["attach", &target.pid().to_string(), "--kernel", "syscalls"]);
    let attach = Attach::start(command);
    attach.signal(libc::SIGSTOP);
    stopped(attach.pid());
    target.say(&format!("calls {CALLS}"));
    target.stdout.wait_for("called");
    attach.signal(libc::SIGCONT);
    target.say("calls 1000");
    target.stdout.wait_for("called");
    attach.stop();
    target.finish();
    let info = bench.info("out.bin");
    let account = Account::of(&info);
    let kernel = info["buffers"].as_array().unwrap();
    let overrun: u64 =
        kernel.iter().map(|value| value["lost_by"]["overrun"].as_u64().unwrap()).sum();
    assert!(overrun > 0 && account.lost == overrun && account.dropped == 0, "{info}");
    let calls = |frame| {
        let calls = KernelRows::of(&bench, "out.bin", frame).0;
        calls.cells("call").into_iter().filter(|cell| *cell == "getpgid").count()
    };
    let seen = (calls("syscall_enter") + calls("syscall_exit")) as u64;
    // The capture states since when records are missing, and how many: later ones were lost after
    // that.
    let lost = KernelRows::of(&bench, "out.bin", "lost").0;
    let [since, at, count] = ["since", "at", "count"].map(|text| lost.numbers(text));
    let named: i64 = count.iter().sum();
    assert!(named > 0 && named as u64 <= account.lost, "{named} of {account:?}");
    assert!(since.iter().zip(&at).all(|(since, at)| since <= at), "{since:?} {at:?}");
    let made = 2 * (CALLS as u64 + 1000);
    // Some others may be among the lost ones: those of reading a line, and of writing one.
    let found = seen + account.lost;
    assert!((made..made + 100).contains(&found), "{made} were written, {seen} seen: {account:?}");
}

#[test]
fn a_series_of_files_has_every_frame_once() {
    let bench = bench();
    let _numbers = NUMBERS.read();
    let Some(mut command) = with_tracefs(&bench) else { return };
    let mut target = bench.start("waits", &[]);
    command.args(["attach", &target.pid().to_string(), "--kernel", "syscalls"]);
    command.args(["--rotate", "1M"]);
    let attach = Attach::start(command);
    for _ in 0..8 {
        target.say("calls 10000");
        target.stdout.wait_for("called");
    }
    attach.stop();
    target.finish();
    let names = bench.names("").into_iter().filter(|name| name.ends_with(".bin"));
    let names: Vec<_> = names.collect();
    assert!(names.len() > 2, "{names:?}");
    let mut found = 0;
    for name in &names {
        found += Account::of(&bench.info(name)).lost;
        for frame in ["syscall_enter", "syscall_exit"] {
            let rows = KernelRows::of(&bench, name, frame).0;
            found +=
                rows.cells("call").into_iter().filter(|cell| *cell == "getpgid").count() as u64;
        }
    }
    // Such a flood may overload a busy machine, and the lost records may include a few others.
    assert!((160_000..160_500).contains(&found), "{found}");
}

/// Switches and faults of the user's own program need no privileges; for the rest, ppt names the
/// missing ones.
#[test]
fn without_rights_the_rest_is_captured() {
    if !is_root() || !available("setpriv") {
        return;
    }
    let paranoid = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap();
    let scope = std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").unwrap_or("0".into());
    if paranoid.trim() != "2" || scope.trim() != "0" {
        eprintln!("skipped: perf_event_paranoid is {paranoid}, ptrace_scope {scope}");
        return;
    }
    let bench = build(&[]);
    open_to_nobody(&bench);
    std::fs::create_dir(bench.path("ours")).unwrap();
    std::os::unix::fs::chown(bench.path("ours"), Some(65534), Some(65534)).unwrap();
    let mut target = start_as_nobody(&bench);
    let mut command = with(&bench, "-all");
    command.args(["attach", &target.pid().to_string(), "-o", "ours/out.bin"]);
    command.args(["--kernel", "sched,faults,syscalls"]);
    let attach = Attach::start(command);
    target.say("burst 1000");
    let written = target.written();
    let said = explained(&attach.stop());
    assert!(said.contains("ppt cannot capture system calls: "), "{said}");
    assert!(said.contains("ppt cannot capture wake-ups and successors: "), "{said}");
    target.finish();
    let table = |frame| KernelRows::of(&bench, "ours/out.bin", frame).0.rows.len();
    assert!(table("switch_in") > 0 && table("switch_out") > 0);
    assert_eq!((table("wakeup"), table("syscall_enter")), (0, 0));
    let own = bench.table("ours/out.bin", &["-b", "steady"]).rows.len();
    assert_eq!(own as u64, written);
}

#[test]
fn an_unknown_word_is_reported() {
    let bench = Bench::new();
    let ran = bench.ppt(&["attach", "1", "--kernel", "sched,colour"]);
    assert_eq!(ran.code(), 2, "{ran:?}");
    let expected = "invalid value 'colour' for '--kernel <WHAT>'";
    assert!(ran.stderr.contains(expected) && ran.stderr.contains("syscalls"), "{ran:?}");
}
