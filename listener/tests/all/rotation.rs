//! One session in many files: each is complete, and together they account for every frame.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use ppt_capture::{Dropped, EndReason, MAX_SOURCES, SeriesPart, Source};
use ppt_listener::{
    CaptureFiles, CaptureSummary, Feed, FileHeader, Listener, ListenerError, ListenerOptions,
    Rotation,
};
use ppt_segment::Segment;
use proptest::prelude::*;

use crate::support::*;

type Sinks = Arc<Mutex<Vec<TapOutput>>>;

/// A new file per call, at most `most` of them.
fn rotation(
    sinks: &Sinks,
    every: Option<Duration>,
    size: Option<u64>,
    most: usize,
) -> Rotation<TapOutput> {
    let files = Box::new(Many { sinks: sinks.clone(), most });
    Rotation { every, size, keep: Some(3), files }
}

struct Many {
    sinks: Sinks,
    most: usize,
}

impl CaptureFiles<TapOutput> for Many {
    fn next(&mut self) -> io::Result<(TapOutput, FileHeader)> {
        let mut sinks = self.sinks.lock().unwrap();
        if sinks.len() >= self.most {
            return Err(io::Error::from_raw_os_error(28 /* ENOSPC */));
        }
        sinks.push(TapOutput::default());
        Ok((sinks.last().unwrap().clone(), header()))
    }

    /// A full file was taken away.
    fn instead(&mut self, error: &io::Error) -> Option<io::Result<(TapOutput, FileHeader)>> {
        assert_eq!(error.raw_os_error(), Some(28));
        Some(self.next())
    }
}

/// Reads every file. Checks that each ring continues in the next file at the next sequence number.
fn read_all(sinks: &Sinks) -> Vec<Back> {
    let files: Vec<_> = sinks.lock().unwrap().iter().map(|sink| read(sink.bytes())).collect();
    let mut next = HashMap::new();
    for file in &files {
        for ring in &file.end.as_ref().expect("every file is whole").rings {
            let first = next.insert((ring.nonce, ring.ring), ring.next_seq);
            assert!(first.is_none_or(|it| it == ring.first_seq), "{ring:?} after {first:?}");
            assert_eq!(ring.captured + ring.lost.total(), ring.next_seq - ring.first_seq);
        }
    }
    files
}

/// The sums over all files are those of the summary.
fn check_sums(files: &[Back], summary: &CaptureSummary) {
    assert_eq!(files.iter().map(Back::count).sum::<u64>(), summary.captured());
    let ends = files.iter().filter_map(|file| file.end.as_ref());
    let lost: u64 = ends.flat_map(|end| &end.rings).map(|ring| ring.lost.total()).sum();
    assert_eq!(lost, summary.lost().total());
}

#[test]
fn by_size_under_loss() {
    const FRAMES: u64 = 300_000;
    const SIZE: u64 = 1 << 20;
    let (sinks, segment) = (Sinks::default(), segment(8, 4));
    let mut rotation = rotation(&sinks, None, Some(SIZE), usize::MAX);
    let (first, header) = rotation.files.next().unwrap();
    let feeds = vec![Feed::starting_now(source(), segment.clone())];
    let options =
        ListenerOptions { chunk_age: Duration::from_millis(1), ..ListenerOptions::default() };
    let listener = Listener::rotating(first, header, feeds, options, Some(rotation)).unwrap();
    thread::scope(|scope| {
        for tid in 1..=4 {
            let segment = &segment;
            scope.spawn(move || {
                let mut writer = Writer::claim(segment, tid).unwrap();
                // Half of the frames at full speed, half no faster than they are read.
                (0..FRAMES / 2).for_each(|_| _ = writer.write());
                writer.write_gently(FRAMES / 2);
            });
        }
    });
    listener.dropped(0, Dropped { nested: 3, ..Dropped::default() });
    let summary = listener.finish(EndReason::Stopped, String::new(), Vec::new());
    assert_eq!(summary.captured() + summary.lost().total(), 4 * FRAMES);
    let files = read_all(&sinks);
    assert!(files.len() > 10, "{} files", files.len());
    check_sums(&files, &summary);
    let mut captured_before = 0;
    for (number, file) in (1..).zip(&files) {
        let id = crate::support::header().capture_id;
        let (series, previous, keep) = (id, id, 3);
        let part = SeriesPart { series, previous, number, keep, captured_before };
        assert_eq!(file.part, (number > 1).then_some(part), "file {number}");
        captured_before += file.count();
    }
    let sizes: Vec<_> =
        sinks.lock().unwrap().iter().map(|sink| sink.bytes().len() as u64).collect();
    assert!(sizes.iter().all(|&size| size <= SIZE), "{sizes:?}");
    assert_eq!(summary.bytes, sizes.iter().sum::<u64>());
    let (last, others) = files.split_last().unwrap();
    let reason = |file: &Back| file.end.as_ref().unwrap().reason;
    assert!(others.iter().all(|file| reason(file) == EndReason::Rotated && file.count() > 0));
    assert_eq!(reason(last), EndReason::Stopped);
    let dropped = |file: &Back| file.end.as_ref().unwrap().drops[0].1.nested;
    assert_eq!(files.iter().map(dropped).sum::<u64>(), 3);
}

#[test]
fn by_time_and_only_what_has_frames() {
    let (sinks, segment) = (Sinks::default(), segment(10, 1));
    let mut rotation = rotation(&sinks, Some(Duration::from_millis(20)), None, usize::MAX);
    let (first, header) = rotation.files.next().unwrap();
    let feeds = vec![Feed::starting_now(source(), segment.clone())];
    let options =
        ListenerOptions { chunk_age: Duration::from_millis(1), ..ListenerOptions::default() };
    let listener = Listener::rotating(first, header, feeds, options, Some(rotation)).unwrap();
    let mut writer = Writer::claim(&segment, 1).unwrap();
    for files in 2..5 {
        writer.write();
        wait(|| sinks.lock().unwrap().len() == files);
    }
    let summary = listener.finish(EndReason::Stopped, String::new(), Vec::new());
    let files = read_all(&sinks);
    check_sums(&files, &summary);
    assert_eq!(files.iter().map(Back::count).collect::<Vec<_>>(), [1, 1, 1, 0]);
}

#[test]
fn without_a_next_file_the_capture_ends_whole() {
    let (sinks, segment) = (Sinks::default(), segment(10, 1));
    let mut rotation = rotation(&sinks, None, Some(64 << 10), 3);
    let (first, header) = rotation.files.next().unwrap();
    let feeds = vec![Feed::starting_now(source(), segment.clone())];
    let options =
        ListenerOptions { chunk_age: Duration::from_millis(1), ..ListenerOptions::default() };
    let listener = Listener::rotating(first, header, feeds, options, Some(rotation)).unwrap();
    let mut writer = Writer::claim(&segment, 1).unwrap();
    while listener.progress().ended.is_none() {
        writer.write_drained(1_000, &listener);
    }
    assert_eq!(listener.progress().ended, Some(EndReason::Failed));
    let summary = listener.finish(EndReason::Failed, String::new(), Vec::new());
    assert_eq!(summary.error.as_ref().unwrap().raw_os_error(), Some(28));
    let files = read_all(&sinks);
    assert_eq!(files.len(), 3);
    check_sums(&files, &summary);
    assert!(summary.lost().disk > 0);
}

#[test]
fn a_feed_that_went_on_in_another_segment() {
    let (sinks, small, large) = (Sinks::default(), segment(4, 2), segment(10, 2));
    let mut rotation = rotation(&sinks, None, Some(64 << 10), usize::MAX);
    let (first, header) = rotation.files.next().unwrap();
    let feeds = vec![Feed::starting_now(source(), small.clone())];
    let options =
        ListenerOptions { chunk_age: Duration::from_millis(1), ..ListenerOptions::default() };
    let mut listener = Listener::rotating(first, header, feeds, options, Some(rotation)).unwrap();
    let files = || sinks.lock().unwrap().len();
    let mut old = Writer::claim(&small, 7).unwrap();
    while files() < 3 {
        old.write_gently(100);
    }
    listener.extend(0, Feed::starting_now(grown(&[&small]), large.clone())).unwrap();
    // A file that begins after the former segment was released still lists it in its source.
    let mut new = Writer::claim(&large, 8).unwrap();
    old.write();
    drop(old);
    listener.retire_segment(0, small.nonce());
    while files() < 7 {
        new.write_gently(100);
    }
    let summary = listener.finish(EndReason::Stopped, String::new(), Vec::new());
    check_sums(&read_all(&sinks), &summary);
    let rings: Vec<_> =
        summary.feeds[0].rings.iter().map(|ring| (ring.nonce, ring.next_seq)).collect();
    let cursors = [&small, &large].map(|segment| (segment.nonce(), segment.ring(0).tail() + 1));
    assert_eq!((rings, summary.feeds.len()), (cursors.to_vec(), 1));
}

/// A process of the property below.
struct Target {
    feed: usize,
    segments: Vec<Arc<Segment>>,
    nested: u64,
}

/// The next step of a process. Its number is taken modulo the number of processes.
#[derive(Debug, Clone)]
enum ProcessStep {
    Begin,
    /// Writes this many frames at once, possibly more than its ring holds.
    Write(u8, u8),
    /// Refuses a frame.
    Refuse(u8),
    /// Continues in a larger segment.
    Grow(u8),
    End(u8),
    /// Waits until everything written is in a file, and another file has begun.
    Rotate(u8),
    /// The file has room for this many bytes, and is then taken away.
    TakeAway(u16),
}

fn steps() -> impl Strategy<Value = Vec<ProcessStep>> {
    let step = prop_oneof![
        2 => Just(ProcessStep::Begin),
        6 => (any::<u8>(), 1..60u8).prop_map(|(who, count)| ProcessStep::Write(who, count)),
        1 => any::<u8>().prop_map(ProcessStep::Refuse),
        1 => any::<u8>().prop_map(ProcessStep::Grow),
        2 => any::<u8>().prop_map(ProcessStep::End),
        2 => any::<u8>().prop_map(ProcessStep::Rotate),
        2 => (0..4000u16).prop_map(ProcessStep::TakeAway),
    ];
    proptest::collection::vec(step, 1..60)
}

/// The source of feed number `feed`.
fn source_of(feed: usize, former: &[Arc<Segment>]) -> Source {
    let former: Vec<_> = former.iter().map(|segment| &**segment).collect();
    let mut source = grown(&former);
    source.process.pid = feed as u32;
    source
}

fn begin(feed: usize) -> (Target, Feed) {
    let segment = segment(5, 2);
    let feed_of = Feed::starting_now(source_of(feed, &[]), segment.clone());
    (Target { feed, segments: vec![segment], nested: 0 }, feed_of)
}

fn write(target: &Target, count: u64) {
    let segment = target.segments.last().unwrap();
    let mut writer = Writer::claim(segment, 1 + target.feed as u32).unwrap();
    (0..count).for_each(|_| _ = writer.write());
}

/// Frames and losses of the rings of a segment, from a file or a summary.
type RotationSums = BTreeMap<u64, (u64, u64)>;

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..<_>::default() })]

    /// Processes come and go while files begin and end: every file is right about itself, all of
    /// them together are right about every frame, and none mentions a feed that had ended before it
    /// began.
    #[test]
    fn processes_come_and_go(steps in steps(), size in prop_oneof![Just(None), Just(Some(20_000))]) {
        let sinks = Sinks::default();
        let mut rotation = rotation(&sinks, Some(Duration::from_millis(2)), size, usize::MAX);
        let (first, head) = rotation.files.next().unwrap();
        let options = ListenerOptions { chunk_age: Duration::from_millis(1), ..ListenerOptions::default() };
        let mut listener =
            Listener::rotating(first, head, Vec::new(), options, Some(rotation)).unwrap();
        let files = || sinks.lock().unwrap().len();
        let (mut targets, mut expected): (Vec<Target>, Vec<u64>) = Default::default();
        let mut cursors = RotationSums::new();
        // The last file that may mention a segment.
        let mut last_file = HashMap::new();
        let mut tails = |target: &Target| {
            for segment in &target.segments {
                let tails = (0..2).map(|ring| segment.ring(ring).tail()).sum();
                cursors.insert(segment.nonce(), (tails, 0));
            }
        };
        for step in steps {
            let count = targets.len();
            let pick = |who: u8| usize::from(who) % count.max(1);
            match step {
                ProcessStep::Begin => {
                    let (target, feed) = begin(listener.feeds());
                    listener.add(vec![feed]).unwrap();
                    expected.push(0);
                    targets.push(target);
                }
                _ if count == 0 => {}
                ProcessStep::Write(who, count) => write(&targets[pick(who)], count.into()),
                ProcessStep::Refuse(who) => {
                    let target = &mut targets[pick(who)];
                    target.nested += 1;
                    expected[target.feed] = target.nested;
                    let nested = Dropped { nested: target.nested, ..Dropped::default() };
                    listener.dropped(target.feed, nested);
                }
                ProcessStep::Grow(who) => {
                    let target = &mut targets[pick(who)];
                    let (former, larger) = (target.segments.last().unwrap().clone(), segment(6, 2));
                    let source = source_of(target.feed, &target.segments);
                    let more = Feed::starting_now(source, larger.clone());
                    listener.extend(target.feed, more).unwrap();
                    target.segments.push(larger);
                    listener.retire_segment(target.feed, former.nonce());
                }
                ProcessStep::End(who) => {
                    let target = targets.swap_remove(pick(who));
                    write(&target, 3);
                    listener.retire(target.feed);
                    wait(|| target.segments.iter().all(|it| Arc::strong_count(it) == 1));
                    tails(&target);
                    for segment in &target.segments {
                        last_file.insert(segment.nonce(), files());
                    }
                }
                ProcessStep::Rotate(who) => {
                    let before = files();
                    let start = std::time::Instant::now();
                    while files() == before {
                        assert!(start.elapsed() < Duration::from_secs(20), "{listener:?}");
                        write(&targets[pick(who)], 1);
                        thread::sleep(Duration::from_millis(1));
                    }
                }
                ProcessStep::TakeAway(room) => sinks.lock().unwrap().last().unwrap().set_room(room.into()),
            }
        }
        targets.iter().for_each(&mut tails);
        let summary = listener.finish(EndReason::Stopped, String::new(), Vec::new());
        // The error may be that an earlier file has no end.
        prop_assert!(summary.complete, "{:?}", summary.error);
        let files: Vec<_> = sinks.lock().unwrap().iter().map(|it| read(it.bytes())).collect();
        prop_assert_eq!(files.iter().map(Back::count).sum::<u64>(), summary.captured());

        let (mut next, mut lost) = (HashMap::new(), 0);
        let mut sums = RotationSums::new();
        let mut nested = vec![0; expected.len()];
        for (number, file) in (1..).zip(&files) {
            for (key, ring) in file.account.rings().filter(|(_, it)| it.next_seq > it.first_seq) {
                let sum: &mut (u64, u64) = sums.entry(key.nonce).or_default();
                sum.0 += ring.captured + ring.lost.total();
                lost += ring.lost.total();
                // The next file begins where this one ends.
                let first = next.insert((key.nonce, key.ring), ring.next_seq);
                prop_assert!(first.is_none_or(|it| it == ring.first_seq), "{:?} of {}", key, number);
            }
            for (&source, it) in &file.sources {
                nested[it.process.pid as usize] += file.account.dropped(source).nested;
            }
            // A file after one without an end states what that one does not.
            let is_first = files[..number - 1].last().is_none_or(|it| it.end.is_some());
            let sources = file.sources.values().filter(|_| is_first);
            for segment in sources.flat_map(|it| &it.segments) {
                let last = last_file.get(&segment.nonce);
                prop_assert!(last.is_none_or(|&last| number <= last), "file {number}");
            }
        }
        prop_assert_eq!(lost, summary.lost().total());
        cursors.retain(|_, sum| sum.0 > 0);
        prop_assert_eq!(sums, cursors);
        prop_assert_eq!(&nested, &expected);
        let dropped: Vec<_> = summary.feeds.iter().map(|it| it.dropped.nested).collect();
        prop_assert_eq!(dropped, expected);
    }
}

#[test]
fn more_processes_than_a_file_may_speak_of_come_and_go() {
    let sinks = Sinks::default();
    let mut rotation = rotation(&sinks, None, Some(1 << 20), usize::MAX);
    let (first, head) = rotation.files.next().unwrap();
    let options =
        ListenerOptions { chunk_age: Duration::from_millis(1), ..ListenerOptions::default() };
    let mut listener =
        Listener::rotating(first, head, Vec::new(), options, Some(rotation)).unwrap();
    let (stays, feed) = begin(0);
    listener.add(vec![feed]).unwrap();
    for feed in 1..MAX_SOURCES + 100 {
        let (target, feed_of) = begin(feed);
        loop {
            match listener.add(vec![Feed { source: feed_of.source.clone(), ..again(&target) }]) {
                Ok(()) => break,
                // Feeds that have ended are still in the queue.
                Err(error) => assert!(matches!(error, ListenerError::TooManySources), "{error}"),
            }
        }
        write(&target, 1);
        listener.retire(feed);
    }
    write(&stays, 7);
    let summary = listener.finish(EndReason::Stopped, String::new(), Vec::new());
    let files = read_all(&sinks);
    check_sums(&files, &summary);
    assert_eq!(summary.captured(), 7 + MAX_SOURCES as u64 + 99);
    let sources: usize = files.iter().map(|file| file.sources.len()).sum();
    let most = summary.feeds.len() + 2 * files.len() * 100;
    assert!(files.len() > 1 && sources < most, "{sources} in {} files", files.len());
}

/// The feed of a target, made again.
fn again(target: &Target) -> Feed {
    Feed::starting_now(Source::default(), target.segments[0].clone())
}

#[test]
fn more_sources_than_a_capture_may_speak_of_are_refused() {
    let (sink, segment) = (TapOutput::default(), segment(5, 1));
    let feed = || Feed::starting_now(source(), segment.clone());
    let feeds = (0..MAX_SOURCES).map(|_| feed()).collect();
    let mut listener =
        Listener::start(sink.clone(), header(), feeds, ListenerOptions::default()).unwrap();
    let error = listener.add(vec![feed()]).unwrap_err();
    assert!(matches!(error, ListenerError::TooManySources), "{error}");
    assert_eq!((listener.feeds(), error.code()), (MAX_SOURCES, "too-many-sources"));
    // The existing sources can be stated again.
    listener.extend(0, Feed::starting_now(grown(&[&segment]), self::segment(5, 1))).unwrap();
    let summary = listener.finish(EndReason::Stopped, String::new(), Vec::new());
    assert!(summary.complete);
    assert_eq!(read(sink.bytes()).sources.len(), MAX_SOURCES);
}

/// Files that are taken away, one after the other: each holds its number of bytes and then fails.
struct TakenAway {
    sinks: Sinks,
    rooms: Vec<usize>,
}

impl TakenAway {
    fn open(&mut self) -> TapOutput {
        let sink = TapOutput::default();
        if let Some(room) = self.rooms.pop() {
            sink.set_room(room);
        }
        self.sinks.lock().unwrap().push(sink.clone());
        sink
    }
}

impl CaptureFiles<TapOutput> for TakenAway {
    fn next(&mut self) -> io::Result<(TapOutput, FileHeader)> {
        unreachable!("none is full")
    }

    fn begun(&mut self) -> io::Result<()> {
        let sinks = self.sinks.lock().unwrap();
        assert!(sinks.last().unwrap().bytes().len() > 256, "it says where frames come from");
        Ok(())
    }

    fn instead(&mut self, error: &io::Error) -> Option<io::Result<(TapOutput, FileHeader)>> {
        assert_eq!(error.raw_os_error(), Some(28));
        Some(Ok((self.open(), header())))
    }
}

/// A file may be taken away at any moment: in frames, in clocks, in a gap, or in its first chunks.
#[test]
fn where_files_are_taken_away_all_is_in_the_others() {
    const FRAMES: u64 = 60_000;
    let (sinks, segment) = (Sinks::default(), segment(8, 4));
    let mut rooms: Vec<usize> = (0..60).map(|index| 5_000 + index * index * 97).collect();
    // Some have no room even for their initial chunks.
    rooms.extend([100, 700, 20_000, 300, 300, 40_000]);
    let mut files = TakenAway { sinks: sinks.clone(), rooms };
    let first = files.open();
    let rotation = Rotation { every: None, size: None, keep: None, files: Box::new(files) };
    let feeds = vec![Feed::starting_now(source(), segment.clone())];
    let options =
        ListenerOptions { chunk_age: Duration::from_millis(1), ..ListenerOptions::default() };
    let listener = Listener::rotating(first, header(), feeds, options, Some(rotation)).unwrap();
    thread::scope(|scope| {
        for tid in 1..=4 {
            let segment = &segment;
            scope.spawn(move || {
                let mut writer = Writer::claim(segment, tid).unwrap();
                (0..FRAMES / 2).for_each(|_| _ = writer.write());
                writer.write_gently(FRAMES / 2);
            });
        }
    });
    listener.dropped(0, Dropped { nested: 3, ..Dropped::default() });
    let summary = listener.finish(EndReason::Stopped, String::new(), Vec::new());
    assert!(summary.error.is_none() && summary.complete, "{summary:?}");
    assert_eq!(summary.captured() + summary.lost().total(), 4 * FRAMES);
    let sinks = sinks.lock().unwrap();
    assert!(sinks.len() > 60, "{}", sinks.len());
    let (mut rings, mut captured, mut lost) = (HashMap::new(), 0, 0);
    for sink in sinks.iter().filter(|sink| sink.bytes().len() > 256) {
        let file = read(sink.bytes());
        captured += file.count();
        for (name, ring) in
            file.account.rings().filter(|(_, account)| account.next_seq > account.first_seq)
        {
            lost += ring.lost.total();
            // Frames and losses continue where those of the previous file ended.
            let next = rings.insert(name, ring.next_seq);
            assert!(next.is_none_or(|it| it == ring.first_seq), "{ring:?} after {next:?}");
        }
    }
    assert_eq!((captured, lost), (summary.captured(), summary.lost().total()));
    let last = read(sinks.last().unwrap().bytes()).end.expect("the last one is whole");
    assert_eq!(last.drops[0].1.nested, 3);
}
