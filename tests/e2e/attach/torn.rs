//! A gate that is written in two halves, as a write from outside may be: threads that see one half
//! do not crash, do not map foreign segments, and do not stay off once the gate is whole.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::process::Command;
use std::time::Duration;

use crate::fixtures::flood::{self, count};
use crate::fixtures::steady::is_root;
use crate::fixtures::support::{
    Account, Attach, Bench, Target, available, ppt, record, segments_of, stopped, text, wait_until,
};

const THREADS: u64 = 4;
/// Time between the halves.
const APART: Duration = Duration::from_millis(1);
const ROUNDS: u64 = 50;

// Words of the control page.
const NONCE: u64 = 8;
const ERROR: u64 = 256;
const FAILED_GATE: u64 = 264;
const NOT_MAPPED: u64 = 296;
const FIRST_SEGMENT: u64 = 512;

/// The memory of a target, by its symbols.
struct Inside {
    memory: File,
    control: u64,
    workers: u64,
    calls: u64,
    /// How often the gate was set to 0.
    offs: u64,
}

impl Inside {
    fn new(bench: &Bench, target: &Target) -> Self {
        let program = bench.path("torn_main");
        let nm = Command::new("nm").arg(&program).output().unwrap();
        let maps = fs::read_to_string(format!("/proc/{}/maps", target.pid())).unwrap();
        let first = maps.lines().find(|line| line.ends_with(program.to_str().unwrap())).unwrap();
        let base = u64::from_str_radix(first.split('-').next().unwrap(), 16).unwrap();
        let symbols = text(&nm.stdout);
        let symbol = |suffix: &str| {
            let line = symbols.lines().find(|line| line.ends_with(suffix)).expect(suffix);
            base + u64::from_str_radix(line.split(' ').next().unwrap(), 16).unwrap()
        };
        let memory = format!("/proc/{}/mem", target.pid());
        Self {
            memory: File::options().read(true).write(true).open(memory).unwrap(),
            control: symbol("_control"),
            workers: symbol(" workers"),
            calls: symbol(" shmat_calls"),
            offs: 0,
        }
    }

    fn read(&self, address: u64) -> u64 {
        let mut bytes = [0; 8];
        self.memory.read_exact_at(&mut bytes, address).unwrap();
        u64::from_le_bytes(bytes)
    }

    fn word(&self, at: u64) -> u64 {
        self.read(self.control + at)
    }

    fn calls(&self) -> u64 {
        self.read(self.calls)
    }

    fn write(&self, at: u64, bytes: &[u8]) {
        self.memory.write_all_at(bytes, self.control + at).unwrap();
    }

    fn gate(&mut self, gate: u64) {
        self.offs += u64::from(gate == 0);
        self.write(0, &gate.to_le_bytes());
    }

    /// Writes one half of `gate`. Returns the resulting gate.
    fn half(&self, gate: u64, high: bool) -> u64 {
        let at = if high { 4 } else { 0 };
        self.write(at, &gate.to_le_bytes()[at as usize..][..4]);
        self.word(0)
    }

    /// Number of frames that each thread published in this round.
    fn published(&self) -> Vec<u64> {
        (0..THREADS).map(|thread| self.read(self.workers + thread * 40 + 32)).collect()
    }

    /// Waits until every thread publishes frames.
    fn flows(&self) {
        let before = self.published();
        let more = || self.published().iter().zip(&before).all(|(now, then)| now > &(then + 1));
        wait_until("frames flow", more);
    }

    /// Waits until the current gate has failed, and some frames have been refused without another
    /// call. Returns errno.
    fn fails(&self) -> i32 {
        let gate = self.word(0);
        wait_until("the attempt has failed", || self.word(FAILED_GATE) == gate);
        let (calls, refused) = (self.calls(), self.word(NOT_MAPPED));
        wait_until("frames are refused", || self.word(NOT_MAPPED) > refused + 10_000);
        // Each thread may have made one more attempt after the first failure.
        assert!(self.calls() < calls + THREADS, "an attempt a frame");
        let error = self.word(ERROR);
        assert_eq!(error >> 32, gate >> 32, "the error is of this gate");
        error as u32 as i32
    }
}

/// The gate's id with a generation that is higher by `by`.
fn later(gate: u64, by: u64) -> u64 {
    gate.wrapping_add(by << 32)
}

fn torn(high_first: bool, name: &str) {
    if !is_root() {
        return;
    }
    let bench = flood::build_with("torn_main.c");
    let mut command = flood::leisurely(&bench, "torn_main");
    command.args([&THREADS.to_string(), "0"]);
    let mut target = Target::start(command);
    let attach = bench.attach(&target, &[]);
    let agent = attach.pid();
    attach.signal(libc::SIGSTOP);
    stopped(agent);

    let mut inside = Inside::new(&bench, &target);
    let gate = inside.word(0);
    let nonce = inside.word(NONCE);
    assert_ne!((gate >> 32, nonce), (0, 0));
    inside.gate(0);
    target.say("start");

    // Nothing is mapped yet: one half names no segment of ours, the other does.
    let whole = later(gate, 1);
    let half = inside.half(whole, high_first);
    std::thread::sleep(APART);
    if high_first {
        assert_eq!(half, whole >> 32 << 32);
        let errno = inside.fails();
        assert!([libc::EINVAL, libc::ESTALE, libc::EACCES].contains(&errno), "errno {errno}");
        assert!(inside.calls() <= THREADS);
        assert_eq!(inside.word(FIRST_SEGMENT), 0, "a foreign segment is mapped");
    }
    assert_eq!(inside.half(whole, !high_first), whole);
    inside.flows();

    // From now on it is mapped: no half costs a call.
    let calls = inside.calls();
    for round in 0..ROUNDS {
        let whole = later(gate, 2 + round);
        inside.gate(0);
        inside.half(whole, high_first == (round % 2 == 0));
        std::thread::sleep(APART);
        inside.half(whole, high_first != (round % 2 == 0));
        assert_eq!(inside.word(0), whole);
    }
    inside.flows();
    // One whole gate replaces another, without 0 in between.
    inside.half(later(gate, 2 + ROUNDS), true);
    inside.flows();
    assert_eq!(inside.calls(), calls);

    // The right id and another nonce: mapped, checked, and unmapped.
    let stale = later(gate, 3 + ROUNDS);
    inside.gate(0);
    inside.write(NONCE, &(!nonce).to_le_bytes());
    inside.gate(stale);
    assert_eq!(inside.fails(), libc::ESTALE);
    assert!(inside.calls() <= calls + THREADS);
    assert_eq!(inside.word(FIRST_SEGMENT + 32), 0, "a second segment is mapped");
    // With its own nonce the same value is valid: it failed for another nonce.
    inside.gate(0);
    inside.write(NONCE, &nonce.to_le_bytes());
    inside.gate(stale);
    inside.flows();

    // A very old generation.
    inside.gate(0);
    inside.gate(gate);
    inside.flows();
    target.say("stop");
    let written = target.written();
    let published = flood::published(&target);
    attach.signal(libc::SIGCONT);
    let stderr = attach.stop();
    target.finish();

    let info = bench.info("out.bin");
    let account = Account::of(&info);
    assert_eq!(account.captured + account.lost, published, "{stderr}");
    assert_eq!(account.dropped, count(&info, "dropped", "not_mapped"));
    // A frame that finds the gate on at its begin but off at its end belongs to no session.
    let counted = published + account.dropped;
    assert!(counted <= written, "{counted} of {written}");
    assert!(written <= counted + inside.offs * THREADS, "{counted} of {written}");
    assert_eq!(flood::frames(&bench, "out.bin").len() as u64, account.captured);
    println!("{name}: {} frames met one of {} closing gates", written - counted, inside.offs);
    // Records the sum, not the target's count, which is only bounded by it.
    record("38", name, counted, account, &info, segments_of(&[agent]));
}

#[test]
fn the_generation_comes_first() {
    torn(true, "torn gate, generation first");
}

#[test]
fn the_id_comes_first() {
    torn(false, "torn gate, id first");
}

/// The agent died before the target mapped its segment, which was then removed. Its id now belongs
/// to another program's segment, and the gate still names it.
#[test]
fn an_id_that_became_another_programs() {
    if !is_root() || !available("unshare") || !available("nsenter") {
        return;
    }
    let bench = flood::build();
    bench.copy("leave_segment.c");
    bench.cc(&["leave_segment.c", "-o", "leave_segment"]);
    // Ids are chosen in a separate IPC namespace.
    let mut command = bench.command("unshare");
    command.args(["--ipc", "./flood", "2", "1000"]);
    let mut target = Target::start(command);
    let pid = target.pid().to_string();
    let inside = |words: &[&str]| {
        let mut command = bench.command("nsenter");
        command.args(["--ipc", "--target", &pid]).args(words);
        command
    };
    let script = |script: &str| {
        let output = inside(&["sh", "-c", script]).output().unwrap();
        assert!(output.status.success(), "{script}: {}", text(&output.stderr));
        text(&output.stdout)
    };
    let attach = Attach::start(inside(&[ppt(), "attach", &pid, "-o", "dead.bin"]));
    let table = script("cat /proc/sysvipc/shm");
    let words: Vec<&str> = table.lines().nth(1).unwrap().split_whitespace().collect();
    let (id, size) = (words[1], words[3]);
    attach.kill();
    assert_eq!(script("cat /proc/sysvipc/shm").lines().count(), 1, "it died with its agent");
    let made = script(&format!(
        "echo {id} > /proc/sys/kernel/shm_next_id; exec ./leave_segment 70740001 {size}"
    ));
    assert_eq!(made.trim(), id);

    let refused = target.run();
    assert_eq!((refused, flood::published(&target)), (2000, 0), "the gate was still open");
    assert_eq!(target.run(), 2000);
    assert_eq!(flood::published(&target), 0);
    assert_eq!(script(&format!("exec ./leave_segment look {id}")), "intact\n");

    let attach = Attach::start(inside(&[ppt(), "attach", &pid]));
    let agent = attach.pid();
    let written = target.run();
    let stderr = attach.stop();
    assert!(stderr.contains("took over from ppt with pid"), "{stderr}");
    target.finish();
    let info = bench.info("out.bin");
    let account = Account::of(&info);
    account.check(written);
    assert_eq!(account.captured, written);
    record("39", "id reused by another program", written, account, &info, segments_of(&[agent]));
}
