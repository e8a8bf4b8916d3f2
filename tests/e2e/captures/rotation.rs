//! One session in many captures, also with kill -9: together they account for every frame.

use std::collections::BTreeMap;
use std::fs;

use serde_json::Value;

use crate::fixtures::flood;
use crate::fixtures::ledger::{Ledger, captures};
use crate::fixtures::support::{Account, Bench, Target, record, rounds, segments_of, wait_until};

const THREADS: usize = 8;

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
    let stderr = attach.stop();
    assert!(stderr.contains("out.*.bin"), "{stderr}");
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
        captures(&bench, "out").first().is_some_and(|capture| capture.as_str() >= "out.000005.bin")
    });
    attach.stop();
    let names = captures(&bench, "out");
    assert_eq!(names.len(), 2, "{names:?}");
    let info = bench.info(&names[0]);
    assert_eq!(info["end"]["reason"], "rotated");
    let number = |name: &str| name[4..10].parse::<u64>().unwrap();
    assert_eq!(info["series"]["number"], number(&names[0]));
    assert_eq!(bench.info(&names[1])["series"]["removed"], number(&names[0]) - 1);
    let text = bench.ppt(&["info", &names[1]]).stdout;
    let removed = format!("--keep: files 1 to {} were removed", number(&names[0]) - 1);
    assert!(text.contains(&removed), "{text}");
}

/// The frames of a missing file are neither lost nor forgotten.
#[test]
fn a_missing_file_is_in_the_account_of_all() {
    let bench = flood::build();
    let mut target = start(&bench);
    let attach = bench.attach(&target, &["--rotate", "1M", "--slots", "1024"]);
    wait_until("there are six files", || captures(&bench, "out").len() >= 6);
    target.say("stop");
    let written = target.written();
    attach.stop();
    let names = captures(&bench, "out");
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let all = infos(&bench, &names);
    assert!(all.iter().all(|info| info["absent"].is_null()), "{all:?}");
    assert_eq!(all.iter().map(held).sum::<u64>(), written);

    fs::remove_file(bench.path(names[2])).unwrap();
    let rest = [&names[..2], &names[3..]].concat();
    let all = infos(&bench, &rest);
    let absent = |info: &Value| info["buffers"][0]["absent"].as_u64().unwrap_or(0);
    let mut last = BTreeMap::new();
    for ring in all.iter().flat_map(|info| info["buffers"][0]["rings"].as_array().unwrap()) {
        let next = ring["next_seq"].as_u64().unwrap();
        let most = last.entry((ring["segment"].to_string(), ring["ring"].as_u64())).or_insert(next);
        *most = next.max(*most);
    }
    // A ring without mention in a later file may end in the missing one.
    let numbers: u64 = last.values().map(|next| next - 1).sum();
    assert_eq!(all.iter().map(|it| held(it) + absent(it)).sum::<u64>(), numbers);
    assert!(numbers <= written);
    assert!(absent(&all[2]) > 0, "{}", all[2]);
    let after = &all[2]["absent"][0]["after"];
    assert!(all[..2].iter().any(|info| info["capture"]["id"] == *after), "{after}");
    let files = &all[2]["absent"][0]["files"];
    assert_eq!((&files["first"], &files["removed"]), (&3.into(), &false.into()));
    let text = bench.ppt(&[&["info"], &rest[..]].concat()).stdout;
    let said = "file 3 of the series is not among these captures";
    assert!(text.contains(said) && text.contains("file      out.000004.bin\n"), "{text}");
    target.finish();
}

/// The accounts of several captures.
fn infos(bench: &Bench, names: &[&str]) -> Vec<Value> {
    let ran = bench.ppt(&[&["info", "--json"], names].concat());
    serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{ran:?}"))
}

/// The frames that a capture accounts for.
fn held(info: &Value) -> u64 {
    let account = Account::of(info);
    account.captured + account.lost
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

/// Sessions start and end, some by kill -9, all with many files; the target never pauses, and in
/// the end every frame is accounted for.
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
            // If it was killed before its first chunk, the last file states nothing.
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
    // States the frames that were written after the last session.
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
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}
