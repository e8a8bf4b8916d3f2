//! Children that are forked during a capture: `ppt attach --follow` captures them as soon as it
//! learns of them, `ppt run` before their first frame.

use std::collections::BTreeMap;
use std::fs;

use crate::fixtures::family::{self, Child, Family, attached, follow, run, whole};
use crate::fixtures::rust::program;
use crate::fixtures::support::{
    Account, Bench, Kind, Target, available, of_both_kinds, record, rounds, segments_mapped,
    segments_of, wait_until,
};
use crate::fixtures::{flood, python};

of_both_kinds! {
    children_are_captured_once_they_are_attached
    children_of_a_command_are_captured_from_their_first_frame
    workers_that_are_killed_and_come_again
    a_thousand_short_children_of_a_command
}

/// A segment made by a target appears in the agent with its first frame, after a moment.
fn fetched(bench: &Bench, agent: u32, count: usize) {
    if bench.kind() == Kind::Memfd {
        wait_until("the segments are fetched", || segments_mapped(agent) == count);
    }
}

/// Children that ppt had to search for are reported at the end, and no others.
fn found_late(said: &str, late: &[Child]) {
    assert_eq!(said.matches("not captured").count(), late.len(), "{said}");
    for child in late {
        let told = format!("process {} (family_main) did not report to ppt: its first ", child.pid);
        assert!(said.contains(&told), "{said}");
    }
    assert_eq!(said.contains("by clone(2) without fork handlers"), !late.is_empty(), "{said}");
}

/// The capture marks exactly the processes that waited for ppt before their first frame.
fn captured_from_start(bench: &Bench, waited: impl Fn(i64) -> bool) {
    for buffer in bench.info("out.bin")["buffers"].as_array().unwrap() {
        let pid = buffer["pid"].as_i64().unwrap();
        assert_eq!(buffer["from_start"].as_bool().unwrap_or_default(), waited(pid), "{buffer}");
    }
}

const KINDS: [&str; 4] = ["fork", "thread", "grandchild", "daemon"];

/// A family whose children are captured as soon as ppt learns of them. `cannot_say` are those that
/// it has to search for.
fn followed(
    bench: &Bench,
    target: Target,
    kinds: &[&'static str],
    cannot_say: &[&'static str],
    case: &str,
) {
    let mut family = Family::new(target);
    let early = family.make("fork");
    let attach = follow(bench, family.target.pid(), &[]);
    attached(&attach.stderr, early);
    let mut children = vec![early];
    for kind in kinds.iter().chain(cannot_say) {
        let child = family.make(kind);
        attached(&attach.stderr, child);
        children.push(child);
    }
    family.write(1000);
    for &child in &children {
        assert_eq!(family.round(child), 100, "{child:?}");
    }
    let (written, agent) = (family.written, attach.pid());
    fetched(bench, agent, children.len() + 1);
    let stderr = attach.stop();
    found_late(&stderr, &children[1 + kinds.len()..]);
    family.target.finish();
    assert_eq!(written, 1000 + 100 * children.len() as u64);
    whole(bench, written, case, agent);
    captured_from_start(bench, |_| false);
}

/// The same for a command: its children are on from the start.
fn of_a_command(
    bench: &Bench,
    command: &[&str],
    kinds: &[&'static str],
    cannot_say: &[&'static str],
    case: &str,
) {
    let (target, stderr) = run(bench, &[&["--"], command].concat());
    let mut family = Family::new(target);
    family.write(1000);
    for kind in kinds {
        let child = family.make(kind);
        assert!(child.was_on, "{child:?}");
        assert_eq!(family.round(child), 100, "{child:?}");
    }
    let mut late = Vec::new();
    for kind in cannot_say {
        let child = family.make(kind);
        attached(&stderr, child);
        assert_eq!(family.round(child), 100, "{child:?}");
        late.push(child);
    }
    // The parent of a grandchild has mapped its own segment.
    let between = kinds.iter().filter(|&&kind| kind == "grandchild").count();
    let count = kinds.len() + cannot_say.len();
    let (written, agent) = (family.written, family.target.pid());
    fetched(bench, agent, count + between + 1);
    family.target.close();
    assert!(family.target.wait().success());
    found_late(&stderr.rest(), &late);
    assert_eq!(written, 1000 + 100 * count as u64);
    whole(bench, written, case, agent);
    captured_from_start(bench, |pid| !late.iter().any(|child| i64::from(child.pid) == pid));
}

fn children_are_captured_once_they_are_attached(kind: Kind) {
    let bench = Family::build().of(kind);
    let target = bench.start("family_main", &[]);
    let case = kind.case("attach --follow: a family in C");
    followed(&bench, target, &KINDS, &["clone"], &case);
}

fn children_of_a_command_are_captured_from_their_first_frame(kind: Kind) {
    let bench = Family::build().of(kind);
    let case = kind.case("ppt run: a family in C");
    of_a_command(&bench, &["./family_main"], &KINDS, &["clone"], &case);
}

#[test]
fn a_family_in_cpp() {
    if !available("g++") {
        return;
    }
    let bench = family::build_cpp();
    of_a_command(&bench, &["./family_main"], &KINDS, &["clone"], "ppt run: a family in C++");
    std::fs::remove_file(bench.path("out.bin")).unwrap();
    let target = bench.start("family_main", &[]);
    followed(&bench, target, &KINDS, &["clone"], "attach --follow: a family in C++");
}

#[test]
fn a_family_in_rust() {
    let bench = Bench::new();
    let program = program("family");
    let command = [program.to_str().unwrap()];
    of_a_command(&bench, &command, &KINDS, &[], "ppt run: a family in Rust");
    std::fs::remove_file(bench.path("out.bin")).unwrap();
    let target = Target::start(bench.command(&program));
    followed(&bench, target, &KINDS, &[], "attach --follow: a family in Rust");
}

/// Its children write as soon as they run.
#[test]
fn a_family_in_python() {
    let bench = Bench::new();
    bench.copy("flood.frame");
    bench.write("family.py", family::IN_PYTHON);
    if !python::modules(&bench, &["flood"]) {
        return;
    }
    let (target, stderr) = run(&bench, &["--", "python3", "family.py"]);
    let mut family = Family::new(target);
    family.write(1000);
    for kind in ["fork", "thread", "grandchild", "daemon", "multiprocessing"] {
        let child = family.make(kind);
        assert!(child.was_on, "{child:?}");
        assert_eq!(family.ended(child), (100, true), "{child:?}");
    }
    let (written, agent) = (family.written, family.target.pid());
    family.target.close();
    assert!(family.target.wait().success(), "{}", stderr.rest());
    assert_eq!(written, 1500);
    whole(&bench, written, "ppt run: a family in Python", agent);
}

/// No frame is torn or attributed to another process; each process's frames are those that it
/// wrote, in order.
fn in_order(bench: &Bench, captured: u64) {
    let table = bench.table("out.bin", &[]);
    assert_eq!(table.rows.len() as u64, captured);
    let columns = ["pid", "tid", "thread", "n", "a", "b", "c", "d"].map(|name| table.column(name));
    let mut last: BTreeMap<u64, u64> = BTreeMap::new();
    for row in &table.rows {
        let [pid, tid, thread, n, a, b, c, d] = columns.map(|at| row[at].parse::<u64>().unwrap());
        let word = (n * 256 + thread + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        assert_eq!([a, b, c, d], [word, !word, word.rotate_left(32), word ^ n], "torn: {row:?}");
        assert_eq!(tid, pid);
        assert!(last.insert(pid, n).is_none_or(|before| before < n), "{row:?} after {last:?}");
    }
}

/// The counts of `prefork_main.c`: frames that were begun, and those that were written.
fn counted(bench: &Bench) -> (u64, u64) {
    let words = counters(bench);
    (words.iter().step_by(2).sum(), words.iter().skip(1).step_by(2).sum())
}

/// The same for each worker, in order.
fn counters(bench: &Bench) -> Vec<u64> {
    let bytes = fs::read(bench.path("counters")).unwrap();
    bytes.chunks_exact(8).map(|chunk| u64::from_le_bytes(chunk.try_into().unwrap())).collect()
}

fn workers_that_are_killed_and_come_again(kind: Kind) {
    let bench = flood::build_with("prefork_main.c").of(kind);
    let mut target = Target::start({
        let mut command = flood::leisurely(&bench, "prefork_main");
        command.args(["counters", "3"]);
        command
    });
    let attach = follow(&bench, target.pid(), &["-v"]);
    let agent = attach.pid();
    let times = rounds(5, 100);
    for generation in 0..times {
        for _ in 0..3 {
            attach.stderr.wait_for("attached: pid ");
        }
        // Workers that are killed before their first frame would soon be left alone.
        wait_until("each worker writes", || {
            let begun = counters(&bench).into_iter().step_by(2);
            begun.skip(3 * generation).take(3).all(|number| number > 0)
        });
        if kind == Kind::Memfd {
            wait_until("a segment is fetched", || segments_mapped(agent) > 0);
        }
        target.say("kill");
        target.stdout.wait_for("killed");
    }
    target.say("quit");
    let workers: u64 = target.stdout.wait_for("workers ").parse().unwrap();
    assert!(target.wait().success());
    attach.ended(0);
    let (begun, done) = counted(&bench);
    let info = bench.info("out.bin");
    let account = Account::of(&info);
    // A killed worker may be one frame ahead; a segment that it made may be gone with it.
    let seen = account.captured + account.lost + account.dropped;
    match kind {
        Kind::SysV => assert!((done..=begun).contains(&seen), "{done} of {begun}: {account:?}"),
        Kind::Memfd => assert!(seen <= begun, "{begun}: {account:?}"),
    }
    assert!(begun <= done + workers);
    assert!(account.captured > 0);
    assert!(workers as usize >= 3 * times, "{workers}");
    in_order(&bench, account.captured);
    let case = kind.case(&format!("attach --follow: 3 workers, killed {times} times"));
    record("36", &case, seen, account, &info, segments_of(&[agent]));
}

fn a_thousand_short_children_of_a_command(kind: Kind) {
    let bench = flood::build_with("prefork_main.c").of(kind);
    let count = rounds(100, 1000);
    let (mut target, stderr) =
        run(&bench, &["-q", "--slots", "64", "--", "./prefork_main", "counters", "0"]);
    let agent = target.pid();
    let open = || fs::read_dir(format!("/proc/{agent}/fd")).unwrap().count();
    let mut short = |count: usize| {
        target.say(&format!("short {count}"));
        target.stdout.wait_for("short");
        // The last one has just ended.
        std::thread::yield_now();
    };
    short(count / 10);
    let before = open();
    short(count - count / 10);
    wait_until("nothing piles up", || open() <= before + 4);
    target.say("quit");
    let (ended, said) = (target.wait(), stderr.rest());
    assert!(ended.success(), "{said}");
    assert!(!said.contains("attached: "), "nobody waits for it: {said}");
    let (begun, done) = counted(&bench);
    assert_eq!((begun, done), (10 * count as u64, 10 * count as u64));
    let info = bench.info("out.bin");
    let account = Account::of(&info);
    if kind == Kind::SysV {
        account.check(done);
        assert_eq!(account.captured, done);
    }
    let case = kind.case(&format!("ppt run: {count} short children"));
    record("36", &case, account.captured + account.lost, account, &info, segments_of(&[agent]));
}
