//! The text of `.sync` files: printed records read back, no bytes cause a panic, and a truncated
//! file reads as the part before the cut.

use ppt_clock::sync::{
    ClockReadings, HEADER, Host, MAX_HOSTS, MAX_HZ, OneWay, Probe, Pulse, Record, RecordError,
    SyncError, TimeSourceReport,
};
use ppt_clock::{ClockId, ClockReading};
use proptest::prelude::*;

const HOSTS: u32 = 4;

fn name() -> impl Strategy<Value = String> {
    "[a-zA-Z0-9 .:_é-]{1,32}"
}

fn two() -> impl Strategy<Value = (u32, u32)> {
    (0..HOSTS, 1..HOSTS).prop_map(|(from, by)| (from, (from + by) % HOSTS))
}

fn around() -> impl Strategy<Value = (u64, u64)> {
    any::<(u64, u64)>().prop_map(|(a, b)| (a.min(b), a.max(b)))
}

fn clocks() -> impl Strategy<Value = (ClockId, ClockId)> {
    (0..5usize, 1..5usize).prop_map(|(a, by)| (ClockId::ALL[a], ClockId::ALL[(a + by) % 5]))
}

fn record() -> impl Strategy<Value = Record> {
    let clock = (0..HOSTS, clocks(), around(), any::<u64>());
    let clock = clock.prop_map(|(host, (a, b), (a_before, a_after), b_value)| {
        let reading = ClockReading { a, a_before, b, b_value, a_after, distrusted: false };
        Record::Clock(host, reading)
    });
    let probe = (two(), any::<[u64; 6]>()).prop_map(|((from, to), numbers)| {
        let [from_tick, to_tick, t1, t2, t3, t4] = numbers;
        Record::Probe(Probe { from, to, from_tick, to_tick, t1, t2, t3, t4 })
    });
    let one_way = (two(), any::<(u64, u64)>()).prop_map(|((from, to), (from_tick, to_tick))| {
        Record::OneWay(OneWay { from, to, from_tick, to_tick })
    });
    let pulse = (0..HOSTS, any::<u64>(), around()).prop_map(|(host, second, (before, after))| {
        Record::Pulse(Pulse { host, second, tick_before: before, tick_after: after })
    });
    let said = (0..HOSTS, name(), any::<u64>(), any::<i64>(), any::<u64>());
    let said = said.prop_map(|(host, source, tick, offset_ns, error_ns)| {
        Record::Reported(TimeSourceReport { host, source, tick, offset_ns, error_ns })
    });
    let count = (name(), any::<u64>()).prop_map(|(what, n)| Record::Count(what, n));
    prop_oneof![clock, probe, one_way, pulse, said, count]
}

fn hosts() -> Vec<Record> {
    let host =
        |number| Host::new(&format!("host {number}"), "boot", 1 + u64::from(number)).unwrap();
    (0..HOSTS).map(|number| Record::Host(number, host(number))).collect()
}

fn text(records: &[Record]) -> Vec<u8> {
    let mut text = format!("{HEADER}\n").into_bytes();
    records.iter().for_each(|record| record.write_to(&mut text).unwrap());
    text
}

fn read(bytes: &[u8]) -> Result<ClockReadings, SyncError> {
    let mut readings = ClockReadings::default();
    readings.read(bytes).map(|()| readings)
}

proptest! {
    #[test]
    fn what_is_printed_reads_back(record in record(), named in (name(), name(), 1..=MAX_HZ)) {
        let host = Host::new(&named.0, &named.1, named.2).unwrap();
        for record in [record, Record::Host(7, host)] {
            let line = record.to_string();
            prop_assert_eq!(Record::parse(line.as_bytes()), Ok(Some(record)), "{}", line);
        }
    }

    #[test]
    fn a_file_that_was_cut_reads_as_what_was_before(
        records in prop::collection::vec(record(), 0..20),
        cut: prop::sample::Index,
    ) {
        let all = [hosts(), records].concat();
        let whole = text(&all);
        let cut = cut.index(whole.len() + 1);
        let readings = read(&whole[..cut]).unwrap();
        let ends = whole[..cut].iter().filter(|&&byte| byte == b'\n').count();
        let before = match ends {
            0 => ClockReadings::default(),
            ends => read(&text(&all[..ends - 1])).unwrap(),
        };
        let part = !(cut == 0 || whole[cut - 1] == b'\n');
        prop_assert_eq!(readings.cut_lines(), u64::from(part));
        prop_assert_eq!(readings.hosts(), before.hosts());
        prop_assert_eq!(readings.probes(), before.probes());
        prop_assert_eq!(readings.one_ways(), before.one_ways());
        prop_assert_eq!(readings.pulses(), before.pulses());
        prop_assert_eq!(readings.time_sources(), before.time_sources());
        prop_assert!(readings.counts().eq(before.counts()));
        for host in 0..before.hosts().len() {
            prop_assert_eq!(readings.clocks(host), before.clocks(host));
        }
    }

    #[test]
    fn no_bytes_panic(bytes: Vec<u8>, after: Vec<u8>) {
        let _ = read(&bytes);
        let mut file = text(&hosts());
        file.extend(after);
        let _ = read(&file);
    }

    #[test]
    fn no_wrong_line_panics(
        records in prop::collection::vec(record(), 1..5),
        changes in prop::collection::vec(any::<(prop::sample::Index, u8)>(), 1..8),
    ) {
        let mut file = text(&[hosts(), records].concat());
        for (at, byte) in changes {
            let at = at.index(file.len());
            file[at] = byte;
        }
        let _ = read(&file);
    }
}

#[test]
fn lines_are_as_documented() {
    let probe = Probe { from: 0, to: 1, from_tick: 5, to_tick: 6, t1: 1, t2: 2, t3: 3, t4: 4 };
    assert_eq!(Record::Probe(probe).to_string(), "probe\t0\t1\t5\t6\t1\t2\t3\t4");
    let parsed = Record::parse(b"clock\t0\ttick\trealtime\t123\t456\t789");
    let reading = ClockReading {
        a: ClockId::Tick,
        a_before: 123,
        b: ClockId::Realtime,
        b_value: 456,
        a_after: 789,
        distrusted: false,
    };
    assert_eq!(parsed, Ok(Some(Record::Clock(0, reading))));
    let said =
        TimeSourceReport { host: 2, source: "chrony".into(), tick: 9, offset_ns: -7, error_ns: 3 };
    assert_eq!(Record::Reported(said).to_string(), "said\t2\tchrony\t9\t-7\t3");
}

#[test]
fn wrong_lines_are_named() {
    let of = |line: &str| {
        let error = read(format!("{HEADER}\nhost\t0\ta\tb\t1\n{line}\n").as_bytes()).unwrap_err();
        let SyncError::Line { line: 3, error } = error else { panic!("{error:?}") };
        error
    };
    assert_eq!(of("pulse\t1\t2\t3\t4"), RecordError::UnknownHost { host: 1 });
    assert_eq!(of("pulse\t0\t2\t3\t2"), RecordError::Backwards { before: 3, after: 2 });
    assert_eq!(of("pulse\t0\t+2\t3\t4"), RecordError::Number { field: 2 });
    assert_eq!(of("pulse\t0\t\t3\t4"), RecordError::Number { field: 2 });
    assert_eq!(of("pulse\t0\t18446744073709551616\t3\t4"), RecordError::Number { field: 2 });
    assert_eq!(of("said\t0\ts\t1\t-9223372036854775809\t4"), RecordError::Number { field: 4 });
    assert_eq!(of("pulse\t0\t2\t3"), RecordError::Fields { word: "pulse", expected: 4, found: 3 });
    let many = format!("pulse{}", "\t0".repeat(1000));
    assert_eq!(of(&many), RecordError::Fields { word: "pulse", expected: 4, found: 1000 });
    assert_eq!(of("oneway\t0\t0\t3\t4"), RecordError::SameHost { host: 0 });
    assert_eq!(of("clock\t0\ttick\tsun\t1\t2\t3"), RecordError::Clock { field: 3 });
    assert_eq!(of("clock\t0\ttick\ttick\t1\t2\t3"), RecordError::SameClock);
    assert_eq!(of("host\t0\tx\tb\t1"), RecordError::Redeclared { host: 0 });
    assert_eq!(of("host\t1\tx\tb\t0"), RecordError::TickHz);
    assert_eq!(of("host\t1\tx\u{1b}[2J\tb\t1"), RecordError::Name { field: 2 });
    assert_eq!(of(&format!("count\t{}\t1", "x".repeat(65))), RecordError::Name { field: 1 });
}

#[test]
fn files_of_others_are_refused_and_later_lines_left_out() {
    assert_eq!(read(b"hello\n"), Err(SyncError::NotSync));
    assert_eq!(read(b"hello"), Err(SyncError::NotSync));
    assert_eq!(read(b"ppt sync 0\n"), Err(SyncError::NotSync));
    assert_eq!(read(b"ppt sync 2\nhost\n"), Err(SyncError::Newer { found: 2 }));
    let later = read(b"ppt sync 1\nquantum\t\xff\n\ncount\tlost\t3\ncount\tlost\t4\n").unwrap();
    assert_eq!(later.unknown_lines(), 2);
    assert!(later.counts().eq([("lost", 7)]));
}

#[test]
fn hosts_of_two_files_are_one_by_name_and_boot() {
    let file = |hosts: [&str; 2]| {
        let [a, b] = hosts;
        let text = format!(
            "{HEADER}\nhost\t0\t{a}\t1000\nhost\t1\t{b}\t1000\nclock\t1\ttick\trealtime\t1\t2\t3\n\
             probe\t0\t1\t1\t2\t3\t4\t5\t6\n"
        );
        text.into_bytes()
    };
    let mut readings = ClockReadings::default();
    readings.read(&file(["a\tone", "b\ttwo"])).unwrap();
    readings.read(&file(["c\tthree", "a\tone"])).unwrap();
    readings.read(&file(["a\tone", "b\tafter"])).unwrap();
    let hosts: Vec<_> = readings.hosts().iter().map(|host| (host.name(), host.boot_id())).collect();
    assert_eq!(hosts, [("a", "one"), ("b", "two"), ("c", "three"), ("b", "after")]);
    let pairs: Vec<_> = readings.probes().iter().map(|probe| (probe.from, probe.to)).collect();
    assert_eq!(pairs, [(0, 1), (2, 0), (0, 3)]);
    assert_eq!([0, 1, 2, 3, 4].map(|it| readings.clocks(it).len()), [1, 1, 0, 1, 0]);
    // A file with a wrong line adds nothing.
    let before = readings.clone();
    assert!(readings.read(b"ppt sync 1\nhost\t0\tz\tz\t1\ncount\tx\n").is_err());
    assert_eq!(readings, before);
    // Two indices of one host are not a pair.
    assert!(readings.read(&file(["a\tone", "a\tone"])).is_err());
}

#[test]
fn hosts_without_end_are_refused() {
    let host = |index: usize| format!("host\t{index}\tname {index}\tboot\t1\n");
    let hosts = |range: std::ops::Range<usize>| -> String { range.map(host).collect() };
    let mut readings = ClockReadings::default();
    readings.read(format!("{HEADER}\n{}", hosts(0..MAX_HOSTS)).as_bytes()).unwrap();
    let before = readings.clone();
    let more = format!("{HEADER}\n{}", hosts(MAX_HOSTS - 1..MAX_HOSTS + 1));
    let refused = readings.read(more.as_bytes()).unwrap_err();
    assert!(matches!(refused, SyncError::Line { error: RecordError::TooManyHosts, .. }));
    assert_eq!(readings, before);
}
