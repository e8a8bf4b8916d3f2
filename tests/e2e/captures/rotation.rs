//! One session in many captures, also under kill -9: together they account for every frame.

use std::collections::BTreeMap;
use std::fs;

use serde_json::{Value, json};

use crate::fixtures::flood::{self, count, frames};
use crate::fixtures::support::{Account, Bench, Target, record, rounds, segments_of, wait_until};

const THREADS: usize = 8;

/// The captures of a run, first to last.
pub fn captures(bench: &Bench, stem: &str) -> Vec<String> {
    let entries = fs::read_dir(bench.path("")).unwrap();
    let names = entries.map(|it| it.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> =
        names.filter(|it| it.starts_with(stem) && it.ends_with(".bin")).collect();
    names.sort();
    names
}

/// Every number of every ring, by what the captures together say of it.
#[derive(Debug, Default)]
pub struct Ledger {
    /// The number that each ring of each segment goes on with.
    next: BTreeMap<(String, u64), u64>,
    pub captured: u64,
    pub lost: u64,
    pub unattended: u64,
    /// What of the losses is by these two.
    disk: u64,
    corrupt: u64,
}

impl Ledger {
    /// Takes in a capture: it goes on where the last one ended, but for what it says was
    /// unattended; that may repeat the end of a capture that was cut.
    pub fn take(&mut self, bench: &Bench, capture: &str) -> Value {
        let ran = bench.ppt(&["info", "--json", capture]);
        let info: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{ran:?}"));
        let account = Account::of(&info);
        assert_eq!(frames(bench, capture).len() as u64, account.captured);
        let table = bench.table(capture, &["--gaps"]);
        let cells = ["segment", "ring", "first_seq", "count", "cause"].map(|it| table.column(it));
        let mut unattended = BTreeMap::new();
        for row in &table.rows {
            let [segment, ring, first, count, cause] = cells.map(|at| &row[at]);
            let number = |cell: &str| cell.parse::<u64>().unwrap();
            if cause == "unattended" {
                let key = (segment.clone(), number(ring));
                let twice = unattended.insert(key, (number(first), number(count)));
                assert_eq!(twice, None, "{capture}: {row:?}");
            }
        }
        self.disk += count(&info, "lost_by", "disk");
        self.corrupt += count(&info, "lost_by", "corrupt");
        for ring in info["buffers"][0]["rings"].as_array().unwrap() {
            let number = |name: &str| ring[name].as_u64().unwrap();
            let key = (ring["segment"].as_str().unwrap().to_owned(), number("ring"));
            let gap = unattended.remove(&key);
            let next = self.next.entry(key).or_insert(1);
            if let Some((first, count)) = gap {
                assert!(first <= *next, "{capture}: {ring} after {next}, gap from {first}");
                self.unattended += (first + count).saturating_sub(*next);
                *next = (*next).max(first + count);
            }
            // A ring that nobody wrote to may be listed with the number it would begin with.
            if number("first_seq") != number("next_seq") {
                assert_eq!(number("first_seq"), *next, "{capture}: {ring}");
                *next = number("next_seq");
            }
            self.captured += number("frames");
            self.lost += number("lost");
        }
        assert!(unattended.is_empty(), "{capture}: of rings that it does not list: {unattended:?}");
        info
    }

    pub fn total(&self) -> u64 {
        self.captured + self.lost + self.unattended
    }

    /// The account of all captures; `info` of the last one gets the causes of them all.
    pub fn sum_up(&self, info: &mut Value) -> Account {
        let overrun = self.lost - self.disk - self.corrupt;
        info["buffers"][0]["lost_by"] =
            json!({"overrun": overrun, "disk": self.disk, "corrupt": self.corrupt});
        Account { captured: self.captured, lost: self.lost, dropped: 0 }
    }
}

fn start(bench: &Bench) -> Target {
    flood::start_endless(bench, &THREADS.to_string())
}

#[test]
fn by_size() {
    let bench = flood::build();
    let mut target = start(&bench);
    let attach = bench.attach(&target, &["--rotate", "1M", "--slots", "1024"]);
    let agent = attach.pid();
    wait_until("there are six files", || captures(&bench, "out").len() >= 6);
    target.say("stop");
    let written = target.written();
    flood::published(&target);
    let said = attach.stop();
    assert!(said.contains("out.*.bin"), "{said}");
    let names = captures(&bench, "out");
    assert_eq!(names[0], "out.000001.bin");
    let (mut ledger, mut last) = (Ledger::default(), Value::Null);
    for name in &names {
        last = ledger.take(&bench, name);
        assert_eq!(last["complete"], true, "{name}");
        assert!(fs::metadata(bench.path(name)).unwrap().len() <= 1 << 20, "{name}");
    }
    assert_eq!(ledger.captured + ledger.lost, written, "{ledger:?}");
    target.finish();
    assert_eq!(segments_of(&[agent]), 0);
    assert_eq!(last["end"]["reason"], "stopped");
}

#[test]
fn only_the_last_ones_are_kept() {
    let bench = flood::build();
    let target = start(&bench);
    let attach = bench.attach(&target, &["--rotate", "1M", "--keep", "2", "--slots", "1024"]);
    wait_until("the first ones are gone", || {
        captures(&bench, "out").first().is_some_and(|it| it.as_str() >= "out.000005.bin")
    });
    attach.stop();
    let names = captures(&bench, "out");
    assert_eq!(names.len(), 2, "{names:?}");
    assert_eq!(bench.info(&names[0])["end"]["reason"], "rotated");
}

#[test]
fn what_makes_no_sense_is_refused() {
    let bench = flood::build();
    let target = start(&bench);
    let pid = target.pid().to_string();
    for (args, code, expected) in [
        (&["--keep", "2"][..], 2, "--rotate"),
        (&["--rotate", "1M", "-o", "-"], 2, "stdout"),
        (&["--rotate", "1M", "--max-size", "5M"], 2, "--max-size"),
        (&["--rotate", "10"], 2, "unit"),
        (&["--rotate", "1K"], 2, "no smaller than 1M"),
        (&["--rotate", "1ms"], 2, "no shorter than 1s"),
        (&["--rotate", "1M"], 1, "out.000003.bin exists"),
    ] {
        bench.write("out.000003.bin", "");
        let ran = bench.ppt(&[&["attach", &pid], args].concat());
        assert_eq!(ran.code(), code, "{args:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(expected), "{args:?}: {}", ran.stderr);
    }
    assert_eq!(captures(&bench, "out"), ["out.000003.bin"]);
}

/// Sessions come and go, some of them by kill -9, all of them in many files; the target never
/// rests, and in the end not one frame is unaccounted for.
#[test]
fn soak() {
    let sessions = rounds(12, 600);
    let bench = flood::build();
    let mut target = start(&bench);
    let (mut ledger, mut agents, mut files, mut killed) = (Ledger::default(), vec![], 0, 0);
    let (mut early, mut late) = (0, 0);
    for session in 0..sessions {
        let stem = format!("s{session:04}");
        let output = format!("{stem}.bin");
        let attach = bench.attach(&target, &["-o", &output, "--rotate", "1M", "--slots", "1024"]);
        agents.push(attach.pid());
        let enough = 2 + session % 3;
        wait_until("it has some files", || captures(&bench, &stem).len() >= enough);
        if session % 2 == 0 {
            attach.kill();
            killed += 1;
        } else {
            attach.stop();
        }
        for name in captures(&bench, &stem) {
            // Killed before its first chunk, the last one says nothing.
            if fs::metadata(bench.path(&name)).unwrap().len() > 4096 {
                ledger.take(&bench, &name);
            }
            fs::remove_file(bench.path(&name)).unwrap();
            files += 1;
        }
        late = resident_kib(target.pid());
        if session == sessions / 4 {
            early = late;
        }
    }
    target.say("stop");
    target.written();
    let published = flood::published(&target);
    // States what was written after the last session.
    let last = bench.attach(&target, &["-o", "last.bin", "--slots", "1024"]);
    agents.push(last.pid());
    last.stop();
    let mut info = ledger.take(&bench, "last.bin");
    assert_eq!(ledger.total(), published, "{ledger:?}");
    assert!(late < early + 1024, "{early} KiB resident, then {late}");
    target.finish();
    let account = ledger.sum_up(&mut info);
    let case = format!("{sessions} sessions in {files} files, {killed} of them killed");
    let attended = published - ledger.unattended;
    record("14", &case, attended, account, &info, segments_of(&agents));
}

fn resident_kib(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|it| it.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}
