//! Evaluates readings of two clocks with a known truth, and unreadable files.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use ppt_dump::{SyncInfo, SyncInfoError};

const BOOTS: [&str; 2] =
    ["00000000-0000-4000-8000-00000000000a", "00000000-0000-4000-8000-00000000000b"];

/// The ticks of a host at a time, in ns: those of b are 100 ppm faster.
fn tick(host: usize, t: u64) -> u64 {
    let own = 1_000_000_000 + t;
    if host == 0 { own } else { own + t / 10_000 + 5_000_000 }
}

/// Probes every 100 ms, with a delay of 300 ns there and 500 ns back.
fn readings(seconds: u64) -> String {
    let mut text = "ppt sync 1\n".to_owned();
    for (host, (name, boot)) in ["a", "b"].into_iter().zip(BOOTS).enumerate() {
        writeln!(text, "host\t{host}\t{name}\t{boot}\t1000000000").unwrap();
    }
    let realtime = |host: usize, t: u64| 1_700_000_000_000_000_000 + tick(host, t);
    for number in 1..seconds * 10 {
        let t = number * 100_000_000;
        for (host, at) in [(0, t - 5_000), (1, t - 5_000), (0, t + 5_000), (1, t + 5_000)] {
            let (tick, shown) = (tick(host, at), realtime(host, at));
            writeln!(text, "clock\t{host}\ttick\trealtime\t{}\t{shown}\t{}", tick - 20, tick + 20)
                .unwrap();
        }
        let (t2, t3, t4) = (t + 300, t + 1_300, t + 1_800);
        let ticks = (tick(0, t - 100), tick(1, t2 + 100));
        let stamps = (realtime(0, t), realtime(1, t2), realtime(1, t3), realtime(0, t4));
        writeln!(
            text,
            "probe\t0\t1\t{}\t{}\t{}\t{}\t{}\t{}",
            ticks.0, ticks.1, stamps.0, stamps.1, stamps.2, stamps.3
        )
        .unwrap();
    }
    text
}

fn file(folder: &tempfile::TempDir, text: &str) -> PathBuf {
    let path = folder.path().join("c.sync");
    fs::write(&path, text).unwrap();
    path
}

#[test]
fn rates_and_widths_are_those_of_the_truth() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(&folder, &readings(20));
    assert!(SyncInfo::is_sync(&path));
    let info = SyncInfo::read(&[path], None).unwrap();
    assert_eq!((&*info.reference, info.hosts.len(), info.steps.len()), ("a", 2, 0));
    let b = &info.hosts[1];
    assert!((b.ppm.unwrap() - 100.0).abs() < 0.1, "{b:?}");
    assert_eq!((b.unknown, b.contradicted, b.widths.len()), (0.0, false, 11));
    let [least, median, most] = b.width_ns.unwrap();
    // 800 ns of delay, and the brackets.
    assert!((800..1_100).contains(&median) && least <= median && most < 3_000, "{b:?}");
    let pair = &info.pairs[0];
    assert_eq!((pair.probes, pair.least_ns), (199, Some(800)), "{pair:?}");
    let mut text = Vec::new();
    info.write_text(&mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    for part in [
        "clock of a",
        "rate      +100.0",
        "between   a and b: 199 probes, least way there and back 800 ns",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    let mut json = Vec::new();
    info.write_json(&mut json).unwrap();
    let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
    assert_eq!(json["hosts"][1]["width_ns"][1], median);
}

#[test]
fn by_the_other_clock_the_rate_is_the_inverse() {
    let folder = tempfile::tempdir().unwrap();
    let info = SyncInfo::read(&[file(&folder, &readings(20))], Some("b")).unwrap();
    assert!((info.hosts[0].ppm.unwrap() + 99.99).abs() < 0.1, "{:?}", info.hosts[0]);
    assert_eq!(info.reference, "b");
}

#[test]
fn a_step_of_a_counter_is_reported() {
    let text = readings(20);
    let stepped: String = text
        .lines()
        .map(|line| {
            let mut words: Vec<String> = line.split('\t').map(str::to_owned).collect();
            let later = |word: &str| {
                word.parse::<u64>().is_ok_and(|number| number % 1_000_000_000_000 > 11_000_000_000)
            };
            let shift =
                |word: &mut String| *word = (word.parse::<u64>().unwrap() + 3_000_000).to_string();
            // In the second half, the ticks of b are 3 ms ahead, but not the time that its clock
            // shows.
            if words[0] == "clock" && words[1] == "1" && later(&words[4]) {
                shift(&mut words[4]);
                shift(&mut words[6]);
            }
            if words[0] == "probe" && later(&words[4]) {
                shift(&mut words[4]);
            }
            words.join("\t") + "\n"
        })
        .collect();
    let folder = tempfile::tempdir().unwrap();
    let info = SyncInfo::read(&[file(&folder, &stepped)], None).unwrap();
    let [step] = &info.steps[..] else { panic!("{:?}", info.steps) };
    assert!(step.by_ns.0 <= 3_000_000 && 3_000_000 <= step.by_ns.1, "{step:?}");
    assert_eq!(info.hosts[1].ppm, None, "a step is no rate");
    assert!(info.hosts[1].unknown > 0.0 && info.hosts[1].unknown < 0.5, "{:?}", info.hosts[1]);
}

#[test]
fn true_time_is_shown_if_a_host_observed_it() {
    let folder = tempfile::tempdir().unwrap();
    let text = readings(20);
    let hosts = |text: &str| SyncInfo::read(&[file(&folder, text)], None).unwrap().hosts;
    assert_eq!(hosts(&text)[0].true_time, None);
    let edge = |second: u64| {
        let (before, after) =
            (tick(0, second * 1_000_000_000 - 900), tick(0, second * 1_000_000_000 + 700));
        format!(
            "pulse\t0\t{}\t{before}\t{after}\n",
            1_700_000_000_000_000_000 + second * 1_000_000_000
        )
    };
    let pulses: String = (1..19).map(edge).collect();
    for (number, host) in hosts(&(text.clone() + &pulses)).iter().enumerate() {
        let true_time = host.true_time.unwrap();
        // Edges are seen within 1.6 µs, and the other host adds 800 ns of delay.
        assert!(
            !true_time.said && true_time.width_ns[1] < 2_000 + 1_200 * number as u64,
            "{true_time:?}"
        );
    }
    let report = format!("said\t1\tchrony\t{}\t250\t4000\n", tick(1, 9_000_000_000));
    assert!(hosts(&(text + &report))[1].true_time.is_some_and(|true_time| true_time.said));
}

#[test]
fn what_cannot_be_read_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let read =
        |text: &str, reference| SyncInfo::read(&[file(&folder, text)], reference).unwrap_err();
    let text = readings(2);
    for (error, code) in [
        (read("pptc", None), "bad-sync"),
        (read("ppt sync 1\n", None), "bad-sync"),
        (read(&text.replacen("probe\t0\t1", "probe\t0\t7", 1), None), "bad-sync"),
        (read(&text, Some("c")), "no-such-host"),
        (SyncInfo::read(&[folder.path().join("none")], None).unwrap_err(), "cannot-read"),
    ] {
        assert_eq!(error.code(), code, "{error}");
    }
    let cut = SyncInfo::read(&[file(&folder, &text[..text.len() - 3])], None).unwrap();
    assert_eq!(cut.cut_lines, 1);
    let none = SyncInfo::read(&[], None).unwrap_err();
    assert!(matches!(none, SyncInfoError::Empty));
}
