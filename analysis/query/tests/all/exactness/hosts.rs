//! Captures of several hosts on one clock: bounds hold the truth, and nothing is said that they do not bear.

mod generator;

use ppt_query::{CaptureSet, Engine, EngineOptions};
use proptest::prelude::*;

use self::generator::{HostsWorld, messages, world};
use crate::random::Dice;
use crate::support::{Files, batches, number, rows, with_pushdown, without_pushdown};

/// The world in files, with its readings.
fn files(world: &HostsWorld) -> Files {
    let files = Files::new(&world.captures);
    std::fs::write(files.folder().join("a.sync"), &world.readings).unwrap();
    files
}

fn engine(files: &Files, reference: Option<&str>, options: &EngineOptions) -> Engine {
    let set = CaptureSet::open(&files.paths).unwrap().align(&[], reference).unwrap();
    Engine::new(set, options).unwrap()
}

/// All events by their true time.
const ALL: &str = "(SELECT host, truth, time_lo, ts, time_hi FROM sent UNION ALL \
                   SELECT host, truth, time_lo, ts, time_hi FROM got UNION ALL \
                   SELECT host, truth, time_lo, ts, time_hi FROM put UNION ALL \
                   SELECT host, truth, time_lo, ts, time_hi FROM took)";

proptest! {
    #![proptest_config(super::cases(4))]

    #[test]
    fn the_truth_is_within_the_bounds(seed: u64, hosts in 2..=4usize) {
        let world = world(&mut Dice::new(seed), hosts, messages(400), 100_000);
        let files = files(&world);
        let engine = engine(&files, None, &with_pushdown());
        let all = number(&engine, &format!("SELECT count(*) FROM {ALL}"));
        prop_assert_eq!(all as u64, 4 * world.messages);
        let out = format!(
            "SELECT count(*) FROM {ALL} WHERE NOT (CAST(time_lo AS BIGINT) <= CAST(truth AS BIGINT) \
             AND CAST(truth AS BIGINT) <= CAST(time_hi AS BIGINT)) OR time_lo IS NULL OR time_hi IS NULL \
             OR NOT (time_lo <= ts AND ts <= time_hi)"
        );
        prop_assert_eq!(number(&engine, &out), 0);
        // Least delays are 100 µs each way, and 1.2 times that is what readings may leave open.
        let widest = |of: &str| number(&engine, &format!(
            "SELECT max(CAST(time_hi AS BIGINT) - CAST(time_lo AS BIGINT)) FROM {ALL} WHERE host {of} 'h0'"
        ));
        prop_assert!((100_000..600_000).contains(&widest("<>")), "{}", widest("<>"));
        prop_assert!(widest("=") <= 2, "the reference's own times are exact");
    }

    #[test]
    fn no_cause_is_missed_and_no_order_is_made_up(seed: u64, hosts in 2..=4usize, delay in 500..200_000u64) {
        let world = world(&mut Dice::new(seed), hosts, messages(400), delay);
        let files = files(&world);
        let engine = engine(&files, None, &with_pushdown());
        let count = |more: &str| number(&engine, &format!("SELECT count(*) FROM edges WHERE {more}")) as u64;
        prop_assert_eq!(count("type = 'net'"), world.messages);
        prop_assert_eq!(count("type = 'queue'"), world.messages);
        prop_assert_eq!(number(&engine, "SELECT sum(impossible) FROM matching"), 0);
        // Within a host a time is as exact as its ticks.
        prop_assert_eq!(count("type = 'queue' AND certainty = 'certain' AND latency_lo = latency_hi"), world.messages);
        let join = "FROM edges JOIN sent ON src_capture = sent.capture AND src_seqno = sent.seqno \
                    JOIN got ON dst_capture = got.capture AND dst_seqno = got.seqno";
        prop_assert_eq!(number(&engine, &format!("SELECT count(*) {join}")) as u64, world.messages);
        let truth = "CAST(got.truth AS BIGINT) - CAST(sent.truth AS BIGINT)";
        let out = format!("SELECT count(*) {join} WHERE NOT {truth} BETWEEN latency_lo AND latency_hi");
        prop_assert_eq!(number(&engine, &out), 0);
        let same = format!("SELECT count(*) {join} WHERE src_ts <> sent.ts OR dst_ts <> got.ts");
        prop_assert_eq!(number(&engine, &same), 0);
    }

    #[test]
    fn any_host_can_be_the_reference(seed: u64) {
        let world = world(&mut Dice::new(seed), 3, 300, 50_000);
        let files = files(&world);
        let of = |reference: &str| {
            let engine = engine(&files, Some(reference), &with_pushdown());
            let own = format!(
                "SELECT max(CAST(time_hi AS BIGINT) - CAST(time_lo AS BIGINT)) FROM sent WHERE host = '{reference}'"
            );
            assert!(number(&engine, &own) <= 2);
            rows(&engine, "SELECT src_capture, type, count(*) FROM edges GROUP BY 1, 2 ORDER BY 1, 2")
        };
        prop_assert_eq!(of("h0"), of("h2"));
        let set = || CaptureSet::open(&files.paths).unwrap();
        prop_assert_eq!(set().align(&[], Some("h9")).unwrap_err().code(), "no-such-host");
    }

    #[test]
    fn a_host_without_a_capture_can_be_the_reference(seed: u64) {
        let mut world = world(&mut Dice::new(seed), 3, 300, 50_000);
        world.captures.remove(0);
        let files = files(&world);
        // The clock of h0 shows the truth. Its capture is not there, so the offset of that clock is known by
        // readings that are some ns wide.
        let engine = engine(&files, Some("h0"), &with_pushdown());
        let all = number(&engine, &format!("SELECT count(*) FROM {ALL}"));
        let within = format!(
            "SELECT count(*) FROM {ALL} WHERE CAST(truth AS BIGINT) \
             BETWEEN CAST(time_lo AS BIGINT) - 100 AND CAST(time_hi AS BIGINT) + 100"
        );
        prop_assert!(all > 0);
        prop_assert_eq!(number(&engine, &within), all);
    }

    #[test]
    fn heads_leave_out_nothing_that_is_asked_for(seed: u64, from in 0..12u64, long in 1..5u64) {
        let world = world(&mut Dice::new(seed), 3, 600, 50_000);
        let files = files(&world);
        let second = |s: u64| generator::REAL + s * 1_000_000_000;
        let sql = format!(
            "SELECT host, seqno, ts, time_lo, time_hi, drained FROM got WHERE ts >= to_timestamp_nanos({}) \
             AND ts < to_timestamp_nanos({}) ORDER BY host, seqno",
            second(from), second(from + long)
        );
        let with = rows(&engine(&files, None, &with_pushdown()), &sql);
        prop_assert_eq!(with, rows(&engine(&files, None, &without_pushdown()), &sql));
    }
}

#[test]
fn what_nothing_relates_is_not_compared() {
    let world = world(&mut Dice::new(3), 2, 50, 50_000);
    let files = Files::new(&world.captures);
    let code = |engine: &Engine| batches(engine, "SELECT count(*) FROM edges").unwrap_err().code();
    assert_eq!(code(&engine(&files, None, &with_pushdown())), "clocks-not-comparable");
    // Readings of another boot: left out where they only lie there, refused where they are named.
    let other = world.readings.replace("boot1", "boot7");
    let path = files.folder().join("b.sync");
    std::fs::write(&path, &other).unwrap();
    assert_eq!(code(&engine(&files, None, &with_pushdown())), "clocks-not-comparable");
    let set = || CaptureSet::open(&files.paths).unwrap();
    let stranger = other.replace("boot0", "boot8");
    std::fs::write(&path, stranger).unwrap();
    assert_eq!(
        set().align(std::slice::from_ref(&path), None).unwrap_err().code(),
        "sync-of-others"
    );
    std::fs::write(&path, "ppt sync 1\nhost\tx\n").unwrap();
    assert_eq!(set().align(std::slice::from_ref(&path), None).unwrap_err().code(), "bad-sync");
    let gone = files.folder().join("gone.sync");
    assert_eq!(set().align(&[gone], None).unwrap_err().code(), "bad-sync");
}

#[test]
fn a_single_host_needs_no_readings() {
    let world = world(&mut Dice::new(4), 2, 50, 50_000);
    let files = Files::new(&world.captures[..1]);
    std::fs::write(files.folder().join("a.sync"), "no readings").unwrap();
    let engine = engine(&files, None, &with_pushdown());
    assert!(number(&engine, "SELECT count(*) FROM put") > 0);
    assert!(batches(&engine, "SELECT time_lo FROM put").is_err(), "nothing is added");
}

/// From half of the probes on, one host answers by a clock that is `ns` ahead: its counter did not step.
fn contradicted(readings: &str, ns: u64) -> String {
    let probes = readings.lines().filter(|line| line.starts_with("probe")).count();
    let mut seen = 0;
    let line = |line: &str| {
        let mut words: Vec<String> = line.split('\t').map(str::to_owned).collect();
        seen += usize::from(words[0] == "probe");
        if words[0] == "probe" && seen > probes / 2 {
            for word in &mut words[6..8] {
                *word = (word.parse::<u64>().unwrap() + ns).to_string();
            }
        }
        words.join("\t") + "\n"
    };
    readings.lines().map(line).collect()
}

#[test]
fn readings_that_contradict_each_other_are_told() {
    for ns in [1_000_000, 50_000_000] {
        let world = world(&mut Dice::new(5), 2, 200, 50_000);
        let files = Files::new(&world.captures);
        let path = files.folder().join("a.sync");
        std::fs::write(&path, contradicted(&world.readings, ns)).unwrap();
        let engine = engine(&files, None, &with_pushdown());
        match batches(&engine, "SELECT count(*) FROM edges") {
            Err(error) => assert_eq!(error.code(), "clocks-not-comparable"),
            Ok(_) => {
                let unbounded = engine.set().clocks().unbounded();
                assert!(unbounded.get("h1").is_some_and(|&it| it > 0.0), "{unbounded:?}");
            }
        }
    }
}

/// Hosts that are namespaces of one machine have one clock, and numbers of processes of their own.
#[test]
fn processes_of_two_hosts_are_two() {
    let world = world(&mut Dice::new(6), 2, 50, 50_000);
    let files = files(&world);
    let engine = engine(&files, None, &with_pushdown());
    let hosts = "SELECT count(*) FROM edges WHERE src_host <> dst_host AND src_pid = dst_pid";
    let all =
        number(&engine, "SELECT count(*) FROM edges WHERE type = 'net' AND src_pid = dst_pid");
    assert_eq!((number(&engine, hosts), all), (50, 50));
}
