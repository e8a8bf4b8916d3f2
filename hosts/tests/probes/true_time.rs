//! Sources of true time during a measurement: simulations of chronyd, ptp4l and a pulse with a known truth.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use ppt_clock::sync::{ClockReadings, Record};
use ppt_clock::times::{ClockModel, Times};
use ppt_clock::{ClockId, ClockReading};
use ppt_hosts::probe::theta::Shift;
use ppt_hosts::probe::{
    HostClock, MeasureError, Measurement, ProbeEvent, ProbeOptions, RecordSink, TimeSource,
    TimeSourceError,
};
use rustix::fs::{CWD, Mode, mkfifoat};

use crate::{ProbeLines, Serving, asked, identity, key};

/// CLOCK_REALTIME minus true time, in ns. It also drifts.
const AHEAD_NS: u64 = 2000;

/// Converts ticks to true time.
#[derive(Debug, Clone, Copy)]
struct TrueTime {
    /// The tick at which a second begins.
    tick: u64,
    second: u64,
    hz: u64,
}

impl TrueTime {
    fn new(clock: &HostClock, hz: u64) -> Self {
        let now = clock.reading(ClockId::Tick, ClockId::Realtime);
        let second = now.b_value.next_multiple_of(1_000_000_000);
        let away_ns = u128::from(second + AHEAD_NS - now.b_value);
        let tick = now.a_middle() + (away_ns * u128::from(hz) / 1_000_000_000) as u64;
        Self { tick, second, hz }
    }

    /// True time at a tick, in ns since the epoch.
    fn at(&self, tick: u64) -> i128 {
        let ticks = i128::from(tick) - i128::from(self.tick);
        i128::from(self.second) + (ticks * 1_000_000_000).div_euclid(self.hz.into())
    }
}

/// CLOCK_REALTIME at a tick between two readings, and its largest error, in ns.
fn realtime(a: &ClockReading, b: &ClockReading, tick: u64, hz: u64) -> (u64, u64) {
    let (from, to) = (a.a_middle(), b.a_middle());
    let part = (tick - from) as f64 / (to - from) as f64;
    let wide = a.a_after - a.a_before + b.a_after - b.a_before;
    let ns = (b.b_value - a.b_value) as f64;
    (a.b_value + (ns * part) as u64, wide * 1_000_000_000 / hz + (ns * 500e-6) as u64 + 2)
}

/// Simulates the kernel, which stamps an edge each true second, until the end. Returns the largest error of each
/// stamp, in ns.
fn edges(fifo: &Path, clock: &HostClock, truth: TrueTime, over: &AtomicBool) -> BTreeMap<u64, u64> {
    // Opening a FIFO for reading and writing does not wait for a reader.
    let mut fifo = OpenOptions::new().read(true).write(true).open(fifo).unwrap();
    let mut errors = BTreeMap::new();
    let mut last = clock.reading(ClockId::Tick, ClockId::Realtime);
    for k in 0.. {
        let edge = truth.tick + k * truth.hz;
        loop {
            if over.load(Relaxed) {
                return errors;
            }
            let now = clock.reading(ClockId::Tick, ClockId::Realtime);
            if now.a_before > edge {
                let (stamp, error_ns) = realtime(&last, &now, edge, truth.hz);
                let (s, ns) = (stamp / 1_000_000_000, stamp % 1_000_000_000);
                writeln!(fifo, "{s}.{ns:09}#{k}").unwrap();
                errors.insert(truth.second + k * 1_000_000_000, error_ns);
                last = now;
                break;
            }
            last = now;
            thread::sleep(Duration::from_millis(1));
        }
    }
    unreachable!("seconds end");
}

/// Simulates ptp4l, which prints the true offset of CLOCK_REALTIME, and a path delay of 3 µs.
fn ptp4l(log: &Path, clock: &HostClock, truth: TrueTime, over: &AtomicBool) {
    let mut log = OpenOptions::new().append(true).open(log).unwrap();
    while !over.load(Relaxed) {
        let now = clock.reading(ClockId::Tick, ClockId::Realtime);
        let ms = clock.reading(ClockId::Tick, ClockId::Monotonic).b_value / 1_000_000;
        let offset = i128::from(now.b_value) - truth.at(now.a_middle());
        let (s, ms) = (ms / 1000, ms % 1000);
        let line =
            format!("ptp4l[{s}.{ms:03}]: master offset {offset:10} s2 freq -5 path delay 3000");
        writeln!(log, "{line}").unwrap();
        thread::sleep(Duration::from_millis(125));
    }
}

/// A chronyc whose name states its behaviour.
fn chronyc(folder: &Path, name: &str) -> PathBuf {
    let program = folder.join(name);
    symlink(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/probes/chronyc"), &program).unwrap();
    program
}

/// Measures with these sources until `enough` returns true.
fn ask(
    clock: &HostClock,
    sources: Vec<TimeSource>,
    enough: &dyn Fn(&[ProbeEvent], &ServerText) -> bool,
) -> (Result<(), MeasureError>, ProbeLines, Vec<ProbeEvent>) {
    let serving = Serving::new("b");
    let (stop, mut events, said) = (AtomicBool::new(false), Vec::new(), ServerText::default());
    let mut sink = Counting { lines: ProbeLines::default(), said: &said };
    let me = identity("asks", clock);
    let patience = Duration::from_secs(600);
    let options = ProbeOptions { duration: None, patience, sources, ..ProbeOptions::default() };
    let hosts = [asked(serving.address)];
    let measurement = Measurement { hosts: &hosts, key: &key(), me: &me, clock, options: &options };
    let mut tell = |event| {
        events.push(event);
        stop.store(enough(&events, &said), Relaxed);
    };
    let result = measurement.run(&stop, &mut sink, &mut tell).map(drop);
    (result, sink.lines, events)
}

/// The number of readings of each source.
#[derive(Default)]
struct ServerText {
    pulses: Cell<u32>,
    ptp4l: Cell<u32>,
    chrony: Cell<u32>,
}

struct Counting<'a> {
    lines: ProbeLines,
    said: &'a ServerText,
}

impl RecordSink for Counting<'_> {
    fn put(&mut self, record: &Record) -> io::Result<()> {
        let count = match record {
            Record::Pulse(_) => Some(&self.said.pulses),
            Record::Reported(report) if report.source == "ptp4l" => Some(&self.said.ptp4l),
            Record::Reported(_) => Some(&self.said.chrony),
            _ => None,
        };
        count.into_iter().for_each(|cell| cell.set(cell.get() + 1));
        self.lines.put(record)
    }

    fn keep(&mut self) -> io::Result<()> {
        self.lines.keep()
    }
}

fn left_out(events: &[ProbeEvent]) -> Vec<&ProbeEvent> {
    events.iter().filter(|event| matches!(event, ProbeEvent::LeftOut { .. })).collect()
}

#[test]
fn what_references_say_holds_the_truth() {
    let shift = Shift {
        theta: "ppm=35,offset=55ms"
            .parse::<ppt_hosts::probe::theta::ClockEquation>()
            .unwrap()
            .theta,
        origin: ppt_now::ticks(),
        hz: HostClock::default().tick_hz(),
    };
    let clock = HostClock::shifted(shift);
    let hz = identity("asks", &clock).host.tick_hz();
    let folder = tempfile::tempdir().unwrap();
    let (fifo, log) = (folder.path().join("pps"), folder.path().join("ptp4l.log"));
    mkfifoat(CWD, &fifo, Mode::RUSR | Mode::WUSR).unwrap();
    File::create(&log).unwrap();
    let sources = vec![
        TimeSource::Pps { edges: fifo.clone() },
        TimeSource::Ptp4l { log: log.clone() },
        TimeSource::Chrony { chronyc: chronyc(folder.path(), "tells") },
    ];
    let over = AtomicBool::new(false);
    let truth = TrueTime::new(&clock, hz);
    let (lines, errors) = thread::scope(|scope| {
        let edges = scope.spawn(|| edges(&fifo, &clock, truth, &over));
        scope.spawn(|| ptp4l(&log, &clock, truth, &over));
        let (result, lines, events) = ask(&clock, sources, &|_, said| {
            said.pulses.get() >= 3 && said.ptp4l.get() >= 8 && said.chrony.get() >= 2
        });
        over.store(true, Relaxed);
        result.unwrap();
        assert!(left_out(&events).is_empty(), "{events:?}");
        (lines, edges.join().unwrap())
    });
    let readings = lines.readings();
    assert_eq!(readings.counts().find(|it| it.0 == "unsaid"), Some(("unsaid", 0)));

    for pulse in readings.pulses() {
        let error = i128::from(errors[&pulse.second]);
        let (second, before) = (i128::from(pulse.second), truth.at(pulse.tick_before));
        let after = truth.at(pulse.tick_after);
        assert!(
            before <= second + error && second <= after + 1 + error,
            "{pulse:?}: {before} {after}"
        );
        println!("pulse: {} ns wide", after - before);
    }
    let chrony =
        readings.time_sources().iter().find(|time_source| time_source.source == "chrony").unwrap();
    assert!(chrony.offset_ns == 1404 && chrony.error_ns >= 976 + 654, "{chrony:?}");

    // With the pulses alone, and with ptp4l alone.
    let error = i128::from(errors.values().copied().max().unwrap()) + 1000;
    for (leave, trusts_reports) in [("said\t", false), ("pulse\t", true)] {
        let is_kept = |text: &&str| !text.starts_with(leave) && !text.contains("\tchrony\t");
        let text = String::from_utf8(lines.text.clone()).unwrap();
        let text: String = text.split_inclusive('\n').filter(is_kept).collect();
        let mut readings = ClockReadings::default();
        readings.read(text.as_bytes()).unwrap();
        let model = ClockModel { trusts_reports, ..ClockModel::default() };
        let times = Times::of_truth(&readings, &model).unwrap();
        assert_eq!(times.steps(), []);
        let ticks: Vec<_> =
            readings.clocks(0).iter().filter(|clock| clock.a == ClockId::Tick).collect();
        for reading in &ticks {
            let (tick, at) = (reading.a_before, times.at(0, reading.a_before).unwrap());
            let true_ns = truth.at(tick);
            assert!(at.lo <= true_ns + error && true_ns <= at.hi + error, "{at:?} {true_ns}");
        }
        assert!(!ticks.is_empty());
    }
}

#[test]
fn missing_references_are_reported_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let clock = HostClock::default();
    let error = |source: TimeSource| match ask(&clock, vec![source], &|_, _| true) {
        (Err(MeasureError::TimeSource(error)), lines, _) => {
            assert!(lines.text.is_empty());
            error
        }
        (other, ..) => panic!("{other:?}"),
    };
    let chrony = |name: &str| {
        let chronyc = chronyc(folder.path(), name);
        error(TimeSource::Chrony { chronyc })
    };
    assert_eq!(
        error(TimeSource::Chrony { chronyc: "no-such-chronyc".into() }).to_string(),
        "there is no program no-such-chronyc"
    );
    assert!(matches!(
        error(TimeSource::Chrony { chronyc: "/".into() }),
        TimeSourceError::Program { .. }
    ));
    let stopped = chrony("stopped");
    assert!(
        matches!(&stopped, TimeSourceError::Unanswered { output, .. } if output == "506 Cannot talk to daemon"),
        "{stopped:?}"
    );
    assert!(matches!(chrony("newer"), TimeSourceError::Line { .. }));
    assert!(matches!(chrony("hangs"), TimeSourceError::Slow { .. }));
    let path = folder.path().join("none");
    let none = TimeSourceError::NoFile { path: path.clone() };
    assert_eq!(error(TimeSource::Pps { edges: path.clone() }), none);
    assert_eq!(error(TimeSource::Ptp4l { log: path }), none);
    let path = folder.path().to_owned();
    assert_eq!(error(TimeSource::Pps { edges: path.clone() }), TimeSourceError::NotAFile { path });
}

/// An invalid reading is reported once, counted each time, and does not end the measurement.
#[test]
fn unusable_readings_are_reported_and_counted() {
    let folder = tempfile::tempdir().unwrap();
    let fifo = folder.path().join("pps");
    mkfifoat(CWD, &fifo, Mode::RUSR | Mode::WUSR).unwrap();
    let mut writer = OpenOptions::new().read(true).write(true).open(&fifo).unwrap();
    let now = ppt_now::realtime() / 1_000_000_000;
    // Two lines of another format, and an edge of last year.
    writeln!(writer, "hello\nagain\n{}.000000000#2", now - 31_536_000).unwrap();
    let sources = vec![
        TimeSource::Pps { edges: fifo.clone() },
        TimeSource::Chrony { chronyc: chronyc(folder.path(), "waits") },
    ];
    let clock = HostClock::default();
    let over = AtomicBool::new(false);
    let (result, lines, events) = thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Relaxed) {
                // Half a second from any second.
                let second = ppt_now::realtime() / 1_000_000_000;
                (&writer).write_all(format!("{second}.500000000#1\n").as_bytes()).unwrap();
                thread::sleep(Duration::from_millis(100));
            }
        });
        let asked = ask(&clock, sources, &|events, _| left_out(events).len() >= 3);
        over.store(true, Relaxed);
        asked
    });
    result.unwrap();
    let path = || fifo.clone();
    let line = TimeSourceError::Line { of: path(), line: "hello".to_owned() };
    let unclear = TimeSourceError::UnclearSecond { path: path(), off_ms: -500 };
    for (place, error) in [(0, line), (0, unclear), (1, TimeSourceError::Unsynchronised)] {
        assert!(events.contains(&ProbeEvent::LeftOut { place, error }), "{events:?}");
    }
    assert_eq!(left_out(&events).len(), 3, "{events:?}");
    let readings = lines.readings();
    let unsaid = readings.counts().find(|count| count.0 == "unsaid").unwrap().1;
    assert!(unsaid >= 4, "{unsaid}");
    assert!(readings.pulses().is_empty() && readings.time_sources().is_empty());
}
