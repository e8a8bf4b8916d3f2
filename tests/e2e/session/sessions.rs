//! One target with several sessions: consecutive, concurrent, and after an agent that died.

use std::fs;
use std::process::Command;
use std::time::Instant;

use serde_json::Value;

use crate::fixtures::explained::explained;
use crate::fixtures::flood::{self, count, frames, gaps};
use crate::fixtures::ledger::Ledger;
use crate::fixtures::steady::assert_message;
use crate::fixtures::support::{
    Account, Attach, Bench, Kind, PATIENCE, Target, fetched, first_and_latest, of_both_kinds, ppt,
    record, rounds, segments_mapped, segments_of, stopped, wait_until,
};

/// Attaches into `capture`, and ends by itself after `time`.
fn brief(bench: &Bench, target: &Target, capture: &str, time: &str, args: &[&str]) -> Brief {
    let pid = target.pid().to_string();
    let mut command = bench.command(ppt());
    command
        .args(["attach", &pid, "-v", "-o", capture, "-d", time])
        .args(bench.kind_args())
        .args(args);
    let attach = Attach::spawn(command);
    let agent = attach.pid();
    Brief { agent, said: attach.ended(0) }
}

/// Attaches into `capture` until the target has mapped `count` segments, and the agent its own: a
/// segment that only one of them has mapped is gone after the agent.
fn until_mapped(bench: &Bench, target: &Target, capture: &str, count: usize, slots: &str) -> Brief {
    let attach = bench.attach(target, &["-v", "-o", capture, "--slots", slots]);
    wait_until("the target has mapped it", || segments_mapped(target.pid()) == count);
    // The target maps a segment that it makes before the agent fetches it.
    wait_until("the agent has mapped it", || segments_mapped(attach.pid()) > 0);
    Brief { agent: attach.pid(), said: attach.stop() }
}

struct Brief {
    agent: u32,
    said: String,
}

impl Brief {
    /// How the segment was obtained, and its name.
    fn segment(&self) -> (&str, &str) {
        let line = self.said.lines().find(|line| line.contains(" segment ")).expect("-v says so");
        let mut words = line.rsplit(' ');
        let nonce = words.next().unwrap();
        assert_eq!(words.next(), Some("segment"));
        (words.find(|&word| word != "memfd").unwrap(), nonce)
    }
}

of_both_kinds! {
    the_sequence_goes_on
    a_hundred_sessions_of_eight_running_threads
    a_dead_agents_claim_is_taken_over
    detach_clears_what_a_dead_agent_left
    what_a_dead_agent_left_in_another_segment_is_stated
    threads_move_from_one_geometry_to_another
    two_geometries_in_turn
    a_ninth_geometry_is_refused
    of_two_agents_that_start_together_one_wins
}

fn the_sequence_goes_on(kind: Kind) {
    let bench = flood::build().of(kind);
    let mut target = bench.start("flood", &["2", "3000"]);
    target.run();
    assert_eq!(flood::published(&target), 0, "nobody is attached");
    let mut next = 1;
    for capture in ["1.bin", "2.bin", "3.bin"] {
        let attach = bench.attach(&target, &["-o", capture]);
        let written = target.run();
        let stderr = attach.stop();
        assert!(!stderr.contains("took over"), "{stderr}");
        let info = bench.info(capture);
        Account::of(&info).check(written);
        assert_eq!(count(&info, "lost_by", "corrupt"), 0);
        let rows = frames(&bench, capture);
        assert_eq!(rows.len(), 6000);
        for ring in [0, 1] {
            let of_ring = rows.iter().filter(|row| row.ring == ring);
            let numbers: Vec<u64> = of_ring.map(|row| row.seqno).collect();
            assert_eq!(numbers, (next..next + 3000).collect::<Vec<_>>());
        }
        assert!(gaps(&bench, capture).is_empty());
        next += 3000;
    }
    assert_eq!(segments_mapped(target.pid()), 1);
    target.finish();
}

#[derive(Debug)]
struct Size {
    maps: usize,
    descriptors: usize,
    resident_kib: u64,
}

impl Size {
    fn of(pid: u32) -> Self {
        let read = |name: &str| fs::read_to_string(format!("/proc/{pid}/{name}")).unwrap();
        let status = read("status");
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        Self {
            maps: read("maps").lines().count(),
            descriptors: fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count(),
            resident_kib: resident.trim().trim_end_matches(" kB").parse().unwrap(),
        }
    }
}

fn a_hundred_sessions_of_eight_running_threads(kind: Kind) {
    let bench = flood::build().of(kind);
    let mut target = flood::start_endless(&bench, "8");
    let (mut total, mut unattended, mut rows) = (Account::default(), 0, 0);
    let mut overrun = 0;
    let mut agents = Vec::new();
    let mut segment = String::new();
    let mut next = [1; 8];
    let mut early = None;
    let mut session = |target: &Target, capture: &str, agents: &mut Vec<u32>| {
        let brief = if segment.is_empty() {
            until_mapped(&bench, target, capture, 1, "64")
        } else {
            brief(&bench, target, capture, "1ms", &["--slots", "64"])
        };
        agents.push(brief.agent);
        let (how, nonce) = brief.segment();
        let expected = if segment.is_empty() { kind.had() } else { "adopted" };
        assert_eq!(how, expected);
        assert!(segment.is_empty() || segment == nonce);
        segment = nonce.into();

        let info = bench.info(capture);
        let account = Account::of(&info);
        assert_eq!(count(&info, "lost_by", "corrupt"), 0);
        overrun += count(&info, "lost_by", "overrun");
        total.captured += account.captured;
        total.lost += account.lost;
        total.dropped += account.dropped;
        let between: Vec<_> =
            gaps(&bench, capture).into_iter().filter(|gap| gap.3 == "unattended").collect();
        // Session and gap are contiguous: the first number is that of the last session, or follows
        // the gap in between.
        for ring in info["buffers"][0]["rings"].as_array().unwrap() {
            let number = |name: &str| ring[name].as_u64().unwrap();
            let index = number("ring") as usize;
            let gap = between.iter().find(|gap| gap.0 as usize == index);
            if let Some(gap) = gap {
                assert_eq!(gap.1, next[index], "{ring}");
                next[index] += gap.2;
                unattended += gap.2;
            }
            assert_eq!(number("first_seq"), next[index], "{ring}");
            next[index] = number("next_seq");
        }
        rows += frames(&bench, capture).len() as u64;
        fs::remove_file(bench.path(capture)).unwrap();
        info
    };
    let sessions = rounds(100, 10_000);
    for round in 0..sessions {
        session(&target, "out.bin", &mut agents);
        if round == sessions / 10 {
            early = Some(Size::of(target.pid()));
        }
    }
    let (early, late) = (early.unwrap(), Size::of(target.pid()));
    target.say("stop");
    let published = flood::published(&target);
    // States the frames written after the last of them.
    let mut info = session(&target, "out.bin", &mut agents);
    assert_eq!((late.maps, late.descriptors), (early.maps, early.descriptors));
    assert!(late.resident_kib < early.resident_kib + 512, "{early:?} {late:?}");
    assert_eq!(segments_mapped(target.pid()), 1);
    target.finish();

    assert_eq!(total.captured + total.lost + unattended, published, "{total:?} {unattended}");
    assert_eq!((total.dropped, rows), (0, total.captured));
    assert!(total.captured > 0);
    assert_eq!(overrun, total.lost, "nothing else is a cause");
    info["buffers"][0]["lost_by"]["overrun"] = overrun.into();
    let leaks = segments_of(&first_and_latest(&agents));
    let attended = published - unattended;
    let case = kind.case(&format!("{sessions} sessions of 8 running threads"));
    record("46", &case, attended, total, &info, leaks);
    let case = kind.case(&format!("{sessions} sessions in one segment"));
    record("53", &case, attended, total, &info, leaks);
}

#[test]
fn the_edge_of_the_gate() {
    let bench = Bench::new();
    bench.copy_all(&["stamps.frame", "stamps_main.c"]);
    bench.pptc(&["stamps.frame"]);
    bench.cc(&["stamps_main.c", "stamps.c", "-o", "stamps", "-lpthread"]);
    let target = Target::start(flood::leisurely(&bench, "stamps"));
    let (mut rows, mut empty) = (0, 0);
    let mut agents = Vec::new();
    let mut last = None;
    let start = Instant::now();
    let mut sessions = 0;
    // On a busy machine, most of them end before the loop was on a CPU.
    while sessions < rounds(200, 2_000) || rows <= 100 || empty == 0 {
        assert!(start.elapsed() < *PATIENCE, "{empty} of {rows} without start");
        sessions += 1;
        agents.push(brief(&bench, &target, "out.bin", "3ms", &["--slots", "64", "--force"]).agent);
        let table = bench.table("out.bin", &[]);
        let cell = |row: &[String], name: &str| -> Option<u64> {
            let cell = &row[table.column(name)];
            (!cell.is_empty()).then(|| cell.parse().unwrap())
        };
        for row in &table.rows {
            let number = |name: &str| cell(row, name).unwrap();
            let n = number("n");
            assert!(last.replace(n) < Some(n), "{row:?}");
            assert_eq!(number("third"), n - n % 3, "{row:?}");
            match cell(row, "work_start") {
                None => empty += 1,
                Some(start) => {
                    let took = number("work_end") - start;
                    assert!((number("least")..=number("most")).contains(&took), "{row:?}");
                }
            }
            rows += 1;
        }
    }
    let info = bench.info("out.bin");
    let account = Account::of(&info);
    assert_eq!(segments_mapped(target.pid()), 1);
    target.finish();
    let written = account.captured + account.lost;
    let case = format!("attached {sessions} times while a loop stamps");
    record("51", &case, written, account, &info, segments_of(&first_and_latest(&agents)));
}

/// `{}` stands for the time since its start.
fn already(target: u32, holder: u32) -> String {
    format!(
        "ppt: buffer flood of process {target} is already attached by ppt with pid {holder}, \
         started {{}} s ago; end that capture first (`ppt detach {target}`), or take over the \
         buffer with --allow foreign-claim"
    )
}

#[test]
fn a_second_agent_is_refused() {
    let bench = flood::build();
    let mut target = bench.start("flood", &["2", "1000"]);
    let first = bench.attach(&target, &["-o", "1.bin"]);
    let mut written = target.run();
    let pid = target.pid().to_string();
    let second = bench.ppt(&["attach", &pid, "-o", "2.bin"]);
    assert_eq!(second.code(), 1);
    assert_message(second.stderr.trim(), &already(target.pid(), first.pid()));
    assert!(!bench.path("2.bin").exists());
    written += target.run();
    let agent = first.pid();
    first.stop();
    target.finish();
    let info = bench.info("1.bin");
    let account = Account::of(&info);
    account.check(written);
    assert_eq!(account.captured, written, "the first was not disturbed");
    record("15", "second agent refused", written, account, &info, segments_of(&[agent]));
}

fn of_two_agents_that_start_together_one_wins(kind: Kind) {
    let bench = flood::build().of(kind);
    let mut target = bench.start("flood", &["2", "100"]);
    let pid = target.pid().to_string();
    let start = |capture: &str| {
        let mut command = bench.command(ppt());
        command.args(["attach", &pid, "--force", "-o", capture]).args(bench.kind_args());
        Attach::spawn(command)
    };
    let mut agents = Vec::new();
    let mut last = Value::Null;
    let mut written = 0;
    let races = rounds(20, 1_000);
    for _ in 0..races {
        let mut running = vec![("1.bin", start("1.bin")), ("2.bin", start("2.bin"))];
        agents.extend(running.iter().map(|entry| entry.1.pid()));
        // The process that ends lost the race.
        let mut ended = None;
        wait_until("one of them ends", || {
            ended = running.iter_mut().position(|entry| entry.1.has_ended());
            ended.is_some()
        });
        let (_, loser) = running.remove(ended.unwrap());
        let (capture, winner) = running.remove(0);
        let loser_pid = loser.pid();
        let stderr = loser.ended(1);
        assert_message(stderr.trim(), &already(target.pid(), winner.pid()));
        assert_eq!(segments_of(&[loser_pid]), 0);
        winner.stderr.wait_for("attached:");
        target.say("go");
        written = target.written();
        winner.stop();
        last = bench.info(capture);
        let account = Account::of(&last);
        account.check(written);
        assert_eq!(account.captured, written);
    }
    assert_eq!(segments_mapped(target.pid()), 1, "no double segment");
    target.finish();
    let account = Account::of(&last);
    let case = kind.case(&format!("two agents start together, {races} times"));
    record("15", &case, written, account, &last, segments_of(&first_and_latest(&agents)));
}

fn a_dead_agents_claim_is_taken_over(kind: Kind) {
    let bench = flood::build().of(kind);
    let mut target = bench.start("flood", &["4", "0"]);
    let dead = bench.attach(&target, &["-o", "dead.bin"]);
    target.say("start");
    // The file has content by then.
    let has_grown = |capture| fs::metadata(bench.path(capture)).unwrap().len() > 1 << 20;
    wait_until("the capture has grown", || has_grown("dead.bin"));
    let killed = dead.pid();
    dead.kill();
    let next = bench.attach(&target, &["-o", "next.bin"]);
    let agent = next.pid();
    wait_until("the next one has, too", || has_grown("next.bin"));
    let said = next.stop();
    let line = format!("ppt: flood: took over from ppt with pid {killed}, which died");
    assert_eq!(said.lines().next(), Some(&*line));
    target.say("stop");
    let published = flood::published(&target);
    // The frames after that session.
    let third = brief(&bench, &target, "third.bin", "1ms", &[]);
    assert!(!third.said.contains("took over"), "{}", third.said);
    target.finish();

    let info = bench.info("dead.bin");
    assert_eq!(info["complete"], false);
    let before = frames(&bench, "dead.bin");
    assert_eq!(before.len() as u64, Account::of(&info).captured);
    let info = bench.info("next.bin");
    let account = Account::of(&info);
    let after = frames(&bench, "next.bin");
    assert_eq!(after.len() as u64, account.captured);
    for ring in 0..4 {
        let of = |rows: &[flood::Beat]| -> Vec<u64> {
            rows.iter().filter(|row| row.ring == ring).map(|row| row.seqno).collect()
        };
        let (before, after) = (of(&before), of(&after));
        if let (Some(last), Some(first)) = (before.last(), after.first()) {
            assert!(last < first, "the sequence goes on");
        }
    }
    // Every number is accounted for: up to the dead agent's last drain, and from there on.
    let unattended = |capture: &str| -> Vec<(u64, u64, u64, String)> {
        gaps(&bench, capture).into_iter().filter(|gap| gap.3 == "unattended").collect()
    };
    let sum = |gaps: &[(u64, u64, u64, String)]| gaps.iter().map(|gap| gap.2).sum::<u64>();
    let first = unattended("next.bin");
    let drained_by_the_dead: u64 = (0..4)
        .map(|ring| {
            let begun = |info: &Value| {
                let rings = info["buffers"][0]["rings"].as_array().unwrap();
                let ring = rings.iter().find(|value| value["ring"] == ring).unwrap();
                ring["first_seq"].as_u64().unwrap()
            };
            first.iter().find(|gap| gap.0 == ring).map_or(begun(&info), |gap| gap.1) - 1
        })
        .sum();
    let rest = sum(&unattended("third.bin"));
    let session = account.captured + account.lost;
    assert_eq!(drained_by_the_dead + sum(&first) + session + rest, published);
    assert!(drained_by_the_dead >= before.len() as u64);
    let leaks = segments_of(&[killed, agent, third.agent]);
    record("14", &kind.case("listener killed under load"), session, account, &info, leaks);
}

fn detach_clears_what_a_dead_agent_left(kind: Kind) {
    let bench = flood::build().of(kind);
    let mut target = bench.start("flood", &["2", "500"]);
    let pid = target.pid().to_string();
    let dead = bench.attach(&target, &[]);
    target.run();
    assert_eq!(flood::published(&target), 1000);
    let killed = dead.pid();
    dead.kill();
    let list = || bench.ppt(&["list", &pid]).stdout;
    assert!(list().contains(&format!("left by ppt with pid {killed}, which died")), "{}", list());

    let detached = bench.ppt(&["detach", &pid]);
    let said =
        format!("flood: switched off, and cleared what ppt with pid {killed} left when it died\n");
    assert_eq!((detached.code(), detached.stderr), (0, said));
    let again = bench.ppt(&["detach", &pid]);
    assert_eq!((again.code(), &*again.stderr), (0, "flood: nobody was attached\n"));
    assert!(list().contains(" off "), "{}", list());
    target.run();
    assert_eq!(flood::published(&target), 0);

    let attach = bench.attach(&target, &["-o", "next.bin"]);
    let written = target.run();
    let said = attach.stop();
    assert!(!said.contains("took over"), "{said}");
    target.finish();
    let account = Account::of(&bench.info("next.bin"));
    assert_eq!((account.captured, account.lost, account.dropped), (written, 0, 0));
}

fn what_a_dead_agent_left_in_another_segment_is_stated(kind: Kind) {
    let bench = flood::build().of(kind);
    let mut target = bench.start("flood", &["4", "3000"]);
    let mut written = 0;
    let mut agents = Vec::new();
    // Twice, so that the last session finds two such segments.
    for (count, capture, slots) in [(1, "1.bin", "128"), (2, "2.bin", "256")] {
        let dead = bench.attach(&target, &["-o", capture, "--slots", slots]);
        written += target.run();
        fetched(&dead, count);
        dead.signal(libc::SIGSTOP);
        stopped(dead.pid());
        written += target.run();
        agents.push(dead.pid());
        dead.kill();
    }
    let mut ledger = Ledger::default();
    // A third one, and then one of the first two again: stated frames are not stated twice.
    for (capture, slots) in [("3.bin", "512"), ("4.bin", "128"), ("5.bin", "256")] {
        let attach = bench.attach(&target, &["-o", capture, "--slots", slots]);
        agents.push(attach.pid());
        written += target.run();
        attach.stop();
    }
    target.finish();
    for capture in ["1.bin", "2.bin", "3.bin", "4.bin", "5.bin"] {
        ledger.take(&bench, capture);
    }
    assert_eq!(ledger.total(), written, "{ledger:?}");
    assert!(ledger.unattended >= 2 * 12_000, "{ledger:?}");
    let stated = |capture: &str| {
        let gaps = gaps(&bench, capture).into_iter().filter(|gap| gap.3 == "unattended");
        gaps.map(|gap| gap.2).sum::<u64>()
    };
    assert!(stated("2.bin") >= 12_000 && stated("3.bin") >= 12_000);
    assert_eq!((stated("4.bin"), stated("5.bin")), (0, 0));
    assert_eq!(segments_of(&agents), 0);
}

fn threads_move_from_one_geometry_to_another(kind: Kind) {
    let bench = flood::build().of(kind);
    let mut target = flood::start_endless(&bench, "8");
    let first = until_mapped(&bench, &target, "1.bin", 1, "64");
    let second = until_mapped(&bench, &target, "2.bin", 2, "128");
    assert_eq!((first.segment().0, second.segment().0), (kind.had(), kind.had()));
    assert_ne!(first.segment().1, second.segment().1);
    target.say("stop");
    target.written();
    let published = flood::published(&target);
    // Both once more, for the frames written after each.
    let mut sum = 0;
    for (capture, slots) in [("3.bin", "64"), ("4.bin", "128")] {
        let brief = brief(&bench, &target, capture, "1ms", &["--slots", slots]);
        assert_eq!(brief.segment().0, "adopted");
    }
    assert_eq!(segments_mapped(target.pid()), 2);
    target.finish();
    for capture in ["1.bin", "2.bin", "3.bin", "4.bin"] {
        let info = bench.info(capture);
        let account = Account::of(&info);
        assert_eq!((account.dropped, count(&info, "lost_by", "corrupt")), (0, 0));
        assert_eq!(frames(&bench, capture).len() as u64, account.captured);
        let gaps = gaps(&bench, capture);
        let unattended = gaps.iter().filter(|gap| gap.3 == "unattended").map(|gap| gap.2);
        sum += account.captured + account.lost + unattended.sum::<u64>();
    }
    assert_eq!(sum, published);
}

fn two_geometries_in_turn(kind: Kind) {
    let bench = flood::build().of(kind);
    let mut target = bench.start("flood", &["3", "50"]);
    let mut names: [Option<String>; 2] = [None, None];
    let mut agents = Vec::new();
    let mut last = (0, Account::default(), Value::Null);
    for round in 0..20 {
        let slots = ["256", "512"][round % 2];
        let attach = bench.attach(&target, &["-v", "--force", "--slots", slots]);
        agents.push(attach.pid());
        let written = target.run();
        let brief = Brief { agent: attach.pid(), said: attach.stop() };
        let (how, nonce) = brief.segment();
        match &names[round % 2] {
            None => assert_eq!(how, kind.had()),
            Some(name) => assert_eq!((how, nonce), ("adopted", &**name)),
        }
        names[round % 2] = Some(nonce.into());
        let info = bench.info("out.bin");
        let account = Account::of(&info);
        account.check(written);
        assert_eq!(account.captured, written);
        last = (written, account, info);
    }
    assert_eq!(segments_mapped(target.pid()), 2);
    target.finish();
    let (written, account, info) = last;
    record(
        "56",
        &kind.case("two geometries in turn"),
        written,
        account,
        &info,
        segments_of(&agents),
    );
}

fn a_ninth_geometry_is_refused(kind: Kind) {
    let bench = flood::build().of(kind);
    let mut target = bench.start("flood", &["1", "10"]);
    let slots: Vec<String> = (1..=9).map(|log2| (1u32 << log2).to_string()).collect();
    for slots in &slots[..8] {
        let attach = bench.attach(&target, &["--force", "--slots", slots]);
        target.run();
        attach.stop();
    }
    let pid = target.pid();
    let ninth = bench.ppt(&["attach", &pid.to_string(), "-o", "9.bin", "--slots", &slots[8]]);
    let expected = format!(
        "ppt: buffer flood of process {pid} has mapped segments of 8 geometries (numbers of slots \
         and rings), which is the limit; use --slots and --memory as in an earlier session, or \
         restart the program\n"
    );
    assert_eq!((ninth.code(), explained(&ninth.stderr)), (1, expected));
    assert!(!bench.path("9.bin").exists());
    let attach = bench.attach(&target, &["-v", "--force", "--slots", &slots[7]]);
    assert!(Brief { agent: 0, said: attach.stop() }.segment().0 == "adopted");
    assert_eq!(segments_mapped(pid), 8);
    target.finish();
}

/// Whether a segment exists.
fn exists(id: &str) -> bool {
    let table = fs::read_to_string("/proc/sysvipc/shm").unwrap();
    table.lines().any(|line| line.split_whitespace().nth(1) == Some(id))
}

#[test]
fn a_segment_that_was_left_is_swept_by_the_next_command() {
    let bench = Bench::new();
    bench.copy("leave_segment.c");
    bench.cc(&["leave_segment.c", "-o", "leave_segment"]);
    let leave = |key: u32| {
        let made = Command::new(bench.path("leave_segment")).arg(format!("{key:x}")).output();
        String::from_utf8(made.unwrap().stdout).unwrap().trim().to_owned()
    };
    let unique = std::process::id() & 0xffff;
    let (ours, theirs) = (leave(0x7074_0000 | unique), leave(0x7075_0000 | unique));
    assert!(!ours.is_empty() && !theirs.is_empty());
    bench.ppt(&["list", "1"]);
    assert!(!exists(&ours), "what an agent left");
    assert!(exists(&theirs), "the segment of another program");
    // SAFETY: no pointer is followed; the segment is our own.
    unsafe { libc::shmctl(theirs.parse().unwrap(), libc::IPC_RMID, std::ptr::null_mut()) };
    assert!(!exists(&theirs));
}
