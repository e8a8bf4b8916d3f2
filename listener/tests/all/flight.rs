//! The flight recorder: compares its windows with a plain capture of the same drain.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Cursor, Write};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use nix::time::{ClockId, clock_gettime};
use ppt_capture::{Capture, CaptureItem, Chunk, EndReason, FileHeader, FramesHead, Lost, Trigger};
use ppt_listener::{
    ClockReading, Feed, Flight, FlightOptions, LEAST_MEMORY, Listener, ListenerOptions, News,
    Process, Source, TriggerCause, TriggerHit, TriggerWatch, WindowFiles,
};
use ppt_segment::Segment;
use proptest::prelude::*;

use crate::support::*;

fn now() -> u64 {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).unwrap();
    now.tv_sec() as u64 * 1_000_000_000 + now.tv_nsec() as u64
}

/// Files in memory, on a disk that may be full.
#[derive(Clone, Default)]
struct MemoryFiles(Arc<Mutex<Disk>>);

#[derive(Default)]
struct Disk {
    is_full: bool,
    attempts: usize,
    open: Vec<u8>,
    published: Vec<Vec<u8>>,
}

impl MemoryFiles {
    fn set_full(&self, is_full: bool) {
        self.0.lock().unwrap().is_full = is_full;
    }

    fn attempts(&self) -> usize {
        self.0.lock().unwrap().attempts
    }

    fn published(&self) -> Vec<Vec<u8>> {
        self.0.lock().unwrap().published.clone()
    }
}

struct OnDisk<'a>(&'a MemoryFiles);

impl Write for OnDisk<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut disk = self.0.0.lock().unwrap();
        // The start of a file has room.
        if disk.is_full && disk.open.len() > 2000 {
            return Err(io::Error::from_raw_os_error(28 /* ENOSPC */));
        }
        disk.open.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl WindowFiles for MemoryFiles {
    fn open(&mut self, _: Option<&Process>) -> io::Result<(Box<dyn Write + '_>, FileHeader)> {
        let mut disk = self.0.lock().unwrap();
        disk.attempts += 1;
        disk.open.clear();
        drop(disk);
        let header = FileHeader { created_mono_ns: now(), ..header() };
        Ok((Box::new(OnDisk(self)), header))
    }

    fn publish(&mut self) -> io::Result<String> {
        let mut disk = self.0.lock().unwrap();
        let open = std::mem::take(&mut disk.open);
        disk.published.push(open);
        Ok(format!("window {}", disk.published.len()))
    }

    fn discard(&mut self) {
        self.0.lock().unwrap().open.clear();
    }
}

/// Triggers on each frame with such a number, and on each counter that grew by this much.
#[derive(Debug, Default)]
struct Every {
    frames: Option<u64>,
    adds: Option<u64>,
}

impl TriggerWatch for Every {
    fn introduce(&mut self, new: &[(usize, &Source)]) {
        assert!(!new.is_empty());
    }

    fn clocks(&mut self, readings: &[ClockReading]) {
        assert!(!readings.is_empty());
    }

    fn frames(&mut self, _: usize, head: &FramesHead, frames: &[u8], hits: &mut Vec<TriggerHit>) {
        assert_eq!(frames.len() as u64, u64::from(head.count) * u64::from(head.stride));
        let Some(every) = self.frames else { return };
        let seqs = (head.first_seq..head.first_seq + u64::from(head.count))
            .filter(|seq| seq.is_multiple_of(every));
        let hit = |seqno| TriggerHit { seqno, mono_ns: None, expression: "every".into() };
        hits.extend(seqs.map(hit));
    }

    fn added(&mut self, _: usize, added: &BTreeMap<u32, u64>) -> Vec<Arc<str>> {
        let is_much = |&add: &u64| self.adds.is_some_and(|much| add >= much);
        added.values().copied().filter(is_much).map(|_| "much".into()).collect()
    }
}

fn options() -> FlightOptions {
    FlightOptions {
        keep: Duration::from_secs(60),
        before: Duration::from_secs(60),
        after: Duration::ZERO,
        cooldown: Duration::ZERO,
        memory: 64 << 20,
        on_gap: false,
        counters: Duration::from_millis(5),
        compress: None,
        patience: Duration::from_secs(60),
    }
}

struct FlightSession {
    out: TapOutput,
    files: MemoryFiles,
    listener: Listener,
    flight: Flight,
}

impl FlightSession {
    fn start(segment: &Arc<Segment>, source: Source, options: FlightOptions, watch: Every) -> Self {
        let (out, files) = (TapOutput::default(), MemoryFiles::default());
        let feeds = vec![Feed::starting_now(source, segment.clone())];
        let mut begun =
            Listener::begin(out.clone(), header(), feeds, ListenerOptions::default(), None)
                .unwrap();
        let flight = begun.flight(options, Box::new(watch), Box::new(files.clone())).unwrap();
        Self { out, files, listener: begun.start().unwrap(), flight }
    }

    /// Writes `count` frames, no faster than the recorder takes them.
    fn write(&self, writer: &mut Writer<'_>, count: u64) {
        let mut left = count;
        while left > 0 {
            let (some, before) = (left.min(4000), self.flight.progress().frames);
            writer.write_gently(some);
            wait(|| self.flight.progress().frames >= before + some);
            left -= some;
        }
    }

    /// The plain capture, and the windows.
    fn finish(self) -> (Back, Vec<ReadWindow>) {
        let summary = self.listener.finish(EndReason::Stopped, String::new(), Vec::new());
        let back = read(self.out.bytes());
        check(&summary, &back);
        let recorder = &summary.extra_sinks[0];
        assert!(
            recorder.complete && recorder.error.is_none() && recorder.missed == 0,
            "{recorder:?}"
        );
        let windows = self
            .files
            .published()
            .into_iter()
            .map(|bytes| ReadWindow { triggers: triggers(&bytes), back: read(bytes) });
        (back, windows.collect())
    }
}

/// A window, read and checked.
struct ReadWindow {
    triggers: Vec<Trigger>,
    back: Back,
}

fn triggers(bytes: &[u8]) -> Vec<Trigger> {
    let mut capture = Capture::from_reader(Cursor::new(bytes.to_vec())).unwrap();
    let mut all = Vec::new();
    while let Some(item) = capture.read().unwrap() {
        if let CaptureItem::Chunk(Chunk::Trigger(trigger)) = item {
            all.push(trigger);
        }
    }
    all
}

impl ReadWindow {
    /// The numbers of the only ring's frames, the losses, and the range of numbers.
    fn ring(&self) -> Option<(BTreeSet<u64>, Lost, std::ops::Range<u64>)> {
        let end = self.back.end.as_ref().unwrap();
        assert!(end.rings.len() <= 1);
        let ring = end.rings.first()?;
        let key = (ring.source, ring.nonce, ring.ring);
        let frames: BTreeSet<u64> =
            self.back.frames.get(&key).into_iter().flatten().map(|frame| frame.0).collect();
        assert_eq!(frames.len() as u64, ring.captured);
        assert_eq!(ring.captured + ring.lost.total(), ring.next_seq - ring.first_seq);
        Some((frames, ring.lost, ring.first_seq..ring.next_seq))
    }

    /// Checks that the window has what `plain` has of its numbers, and everything certainly written
    /// in its time. `written` holds ranges of numbers with times before and after they were
    /// written.
    fn check(&self, plain: &BTreeSet<u64>, written: &[(std::ops::Range<u64>, u64, u64)]) {
        let held = self.triggers[0].held;
        let of_time: BTreeSet<u64> = written
            .iter()
            .filter(|(_, from, to)| *from >= held.from_ns && *to <= held.to_ns)
            .flat_map(|(seqs, ..)| seqs.clone())
            .filter(|seq| plain.contains(seq))
            .collect();
        let Some((frames, _, range)) = self.ring() else {
            assert!(of_time.is_empty(), "{} frames are missing", of_time.len());
            return;
        };
        let expected: BTreeSet<u64> = plain.range(range).copied().collect();
        assert!(frames == expected, "{} of {}", frames.len(), expected.len());
        assert!(of_time.is_subset(&frames), "{:?}", of_time.difference(&frames).next());
    }
}

#[derive(Debug, Clone)]
enum FlightStep {
    /// Writes this many frames at once.
    Write(u64),
    /// Waits until everything written has arrived.
    Drained,
    Trigger,
    Pause(u64),
}

fn steps() -> impl Strategy<Value = Vec<FlightStep>> {
    let step = prop_oneof![
        4 => (1u64..1500).prop_map(FlightStep::Write),
        2 => Just(FlightStep::Drained),
        1 => Just(FlightStep::Trigger),
        1 => (1u64..30).prop_map(FlightStep::Pause),
    ];
    prop::collection::vec(step, 5..60)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn a_window_has_what_a_plain_capture_has_of_its_time(
        steps in steps(), before in 0u64..60, after in 0u64..30,
        every in prop_oneof![2 => Just(None), 1 => (500u64..5000).prop_map(Some)],
        on_gap: bool,
    ) {
        let segment = segment(10, 2);
        let (before, after) = (Duration::from_millis(before), Duration::from_millis(after));
        let options = FlightOptions { before, after, keep: before, on_gap, ..options() };
        let watch = Every { frames: every, adds: None };
        let session = FlightSession::start(&segment, source(), options, watch);
        let mut writer = Writer::claim(&segment, 7).unwrap();
        let (mut written, mut next, mut asked) = (Vec::new(), 1u64, 0);
        for step in steps {
            match step {
                FlightStep::Write(count) => {
                    let from = now();
                    (0..count).for_each(|_| _ = writer.write());
                    written.push((next..next + count, from, now()));
                    next += count;
                }
                FlightStep::Drained => wait(|| segment.ring(0).attended() + 1 >= next),
                FlightStep::Trigger => {
                    session.flight.trigger(TriggerCause::Hand, None, format!("{asked}"));
                    asked += 1;
                }
                FlightStep::Pause(ms) => thread::sleep(Duration::from_millis(ms)),
            }
        }
        drop(writer);
        let progress = session.flight.clone();
        let (plain, windows) = session.finish();
        let all: BTreeSet<u64> = plain.frames.values().flatten().map(|it| it.0).collect();
        windows.iter().for_each(|it| it.check(&all, &written));
        // Each trigger is in one window; each triggering frame and each loss has one.
        let triggers: Vec<&Trigger> = windows.iter().flat_map(|it| &it.triggers).collect();
        let of = |why| triggers.iter().filter(move |it| it.why == why);
        let mut notes: Vec<usize> = of(TriggerCause::Hand).map(|it| it.note.parse().unwrap()).collect();
        notes.sort_unstable();
        prop_assert_eq!(notes, (0..asked).collect::<Vec<_>>());
        let hits: BTreeSet<u64> = of(TriggerCause::On).map(|it| it.seqno.unwrap()).collect();
        let expected = all.iter().copied().filter(|seq| every.is_some_and(|it| seq % it == 0));
        prop_assert_eq!(hits, expected.collect::<BTreeSet<_>>());
        let ring = plain.end.as_ref().unwrap().rings.first().copied();
        let is_lost = ring.is_some_and(|it| it.lost.total() > 0);
        prop_assert_eq!(of(TriggerCause::Gap).count() > 0, on_gap && is_lost);
        for window in &windows {
            for trigger in &window.triggers {
                prop_assert!(trigger.wanted.from_ns <= trigger.mono_ns);
                prop_assert!(trigger.held.from_ns >= trigger.wanted.from_ns);
                let seqs = window.ring().map_or(0..0, |it| it.2);
                prop_assert!(trigger.seqno.is_none_or(|seqno| seqs.contains(&seqno)));
            }
        }
        let progress = progress.progress();
        prop_assert_eq!((progress.waiting, progress.lost, progress.missed), (0, 0, 0));
        prop_assert_eq!(progress.written, windows.len() as u64);
        prop_assert_eq!(progress.bytes, 0, "all memory is given back");
    }
}

#[test]
fn memory_is_bounded_and_a_window_says_how_much_of_it_there_is() {
    let segment = segment(14, 1);
    let options = FlightOptions { memory: LEAST_MEMORY, ..options() };
    let session = FlightSession::start(&segment, source(), options, Every::default());
    let mut writer = Writer::claim(&segment, 7).unwrap();
    // Four times the memory.
    const FRAMES: u64 = 4 * LEAST_MEMORY / STRIDE as u64;
    session.write(&mut writer, FRAMES);
    session.flight.trigger(TriggerCause::Hand, None, String::new());
    let flight = session.flight.clone();
    wait(|| flight.progress().written == 1);
    let most = flight.progress().most_bytes as u64;
    assert!(most <= LEAST_MEMORY && most > LEAST_MEMORY / 2, "{most}");
    let news = flight.news();
    let [News::Written { is_whole: false, held, wanted, content, .. }] = &news[..] else {
        panic!("{news:?}")
    };
    assert!(held.from_ns > wanted.from_ns && content.lost.total() == 0);
    let (_, windows) = session.finish();
    let (frames, _, range) = windows[0].ring().unwrap();
    assert_eq!(range.end, FRAMES + 1, "the latest are there");
    assert!(frames.len() as u64 > FRAMES / 10 && (frames.len() as u64) < FRAMES / 4);
    assert_eq!(windows[0].triggers[0].held, *held);
}

#[test]
fn a_window_that_memory_cannot_hold_has_its_trigger() {
    let segment = segment(14, 1);
    let (memory, after) = (LEAST_MEMORY, Duration::from_secs(3600));
    let options = FlightOptions { memory, after, ..options() };
    let watch = Every { frames: Some(100_000), adds: None };
    let session = FlightSession::start(&segment, source(), options, watch);
    let mut writer = Writer::claim(&segment, 7).unwrap();
    let flight = session.flight.clone();
    while flight.progress().written == 0 {
        session.write(&mut writer, 1000);
    }
    let news = flight.news();
    let News::Written { is_whole: false, held, wanted, .. } = &news[0] else { panic!("{news:?}") };
    assert!(held.to_ns < wanted.to_ns);
    drop(writer);
    let (_, windows) = session.finish();
    let (frames, ..) = windows[0].ring().unwrap();
    assert!(frames.contains(&100_000));
}

#[test]
fn a_full_disk_keeps_the_window_in_memory() {
    let segment = segment(10, 1);
    let session = FlightSession::start(&segment, source(), options(), Every::default());
    session.files.set_full(true);
    let mut writer = Writer::claim(&segment, 7).unwrap();
    session.write(&mut writer, 5000);
    session.flight.trigger(TriggerCause::Hand, None, "first".into());
    wait(|| session.files.attempts() >= 2);
    session.write(&mut writer, 5000);
    session.flight.trigger(TriggerCause::Hand, None, "second".into());
    wait(|| session.flight.progress().waiting == 2);
    assert!(session.files.published().is_empty());
    let news = session.flight.news();
    assert!(matches!(&news[..], [News::Waits(error)] if error.raw_os_error() == Some(28)));
    session.files.set_full(false);
    wait(|| session.flight.progress().written == 2);
    let (_, windows) = session.finish();
    let counts =
        windows.iter().map(|window| (window.triggers[0].note.clone(), window.back.count()));
    assert_eq!(counts.collect::<Vec<_>>(), [("first".into(), 5000), ("second".into(), 10_000)]);
}

#[test]
fn a_disk_that_stays_full_does_not_keep_a_session_from_ending() {
    let segment = segment(10, 1);
    let patience = Duration::from_millis(1);
    let session = FlightSession::start(
        &segment,
        source(),
        FlightOptions { patience, ..options() },
        Every::default(),
    );
    session.files.set_full(true);
    let mut writer = Writer::claim(&segment, 7).unwrap();
    session.write(&mut writer, 5000);
    session.flight.trigger(TriggerCause::Exit, None, String::new());
    let flight = session.flight.clone();
    let (_, windows) = session.finish();
    assert!(windows.is_empty());
    assert_eq!((flight.progress().lost, flight.progress().bytes), (1, 0));
    assert!(flight.news().iter().any(|it| matches!(it, News::GivenUp(_))));
}

#[test]
fn windows_that_wait_for_the_disk_take_memory_from_what_comes() {
    let segment = segment(14, 1);
    let options = FlightOptions { memory: LEAST_MEMORY, ..options() };
    let session = FlightSession::start(&segment, source(), options, Every::default());
    session.files.set_full(true);
    let mut writer = Writer::claim(&segment, 7).unwrap();
    session.write(&mut writer, 600_000);
    session.flight.trigger(TriggerCause::Hand, None, String::new());
    wait(|| session.files.attempts() > 0);
    // Frames without room are lost to the recorder only, and its windows state that.
    session.write(&mut writer, 600_000);
    let flight = session.flight.clone();
    assert!(flight.progress().most_bytes as u64 <= LEAST_MEMORY);
    session.files.set_full(false);
    wait(|| flight.progress().written == 1);
    session.write(&mut writer, 1000);
    flight.trigger(TriggerCause::Hand, None, String::new());
    let (plain, windows) = session.finish();
    assert_eq!(plain.count(), 1_201_000);
    let (first, second) = (windows[0].ring().unwrap(), windows[1].ring().unwrap());
    assert_eq!(first.1, Lost::default(), "it was whole when its time came");
    assert!(first.2.end <= 600_001 && second.2.end == 1_201_001);
    assert!((1..=flight.progress().missed).contains(&second.1.disk));
    assert!(second.0.contains(&1_201_000));
}

#[test]
fn counters_come_with_a_window_and_trigger() {
    let segment = counting(10, 2, 3);
    let watch = Every { frames: None, adds: Some(1000) };
    let before = Duration::from_millis(1);
    let options = FlightOptions { before, keep: before, ..options() };
    let session = FlightSession::start(&segment, counting_source(3), options, watch);
    let mut writer = Writer::claim(&segment, 7).unwrap();
    session.write(&mut writer, 10);
    let row = segment.row(1);
    ppt_segment::cells::add_own(&row[0], 999);
    // After this time, the recorder has read it and has forgotten the reading.
    thread::sleep(Duration::from_millis(100));
    assert_eq!(session.flight.progress().triggers, 0);
    ppt_segment::cells::add_own(&row[1], 1000);
    wait(|| session.flight.progress().written == 1);
    drop(writer);
    let (_, windows) = session.finish();
    let window = &windows[0];
    assert_eq!(
        (window.triggers[0].why, &*window.triggers[0].expression),
        (TriggerCause::Counter, "much")
    );
    let sums = window.back.cells.sums(0);
    assert_eq!(sums.get(&1), Some(&1000), "what was added in its time");
    assert_eq!(sums.get(&2), None);
}
