//! Counters in captures of bounded size, in files that rotate, and of segments that no file lists:
//! no add is missing, and none counts twice.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ppt_capture::EndReason;
use ppt_listener::{
    CaptureFiles, Feed, FileHeader, Listener, ListenerOptions, Rotation, empty_size,
};
use ppt_segment::{Segment, cells};

use crate::support::*;

const CELLS: u32 = 200;
const RINGS: u32 = 8;

fn feed(segment: &Arc<Segment>) -> Feed {
    Feed::starting_now(counting_source(CELLS), segment.clone())
}

fn options() -> ListenerOptions {
    let (counters, chunk_age) = (Duration::from_millis(1), Duration::from_millis(1));
    ListenerOptions { counters, chunk_age, ..ListenerOptions::default() }
}

/// Adds `value` to each cell of each row.
fn add_everywhere(segment: &Segment, value: u64) {
    for row in 0..=RINGS {
        segment.row(row)[..CELLS as usize].iter().for_each(|cell| match row {
            0 => cells::add_shared(cell, value),
            _ => cells::add_own(cell, value),
        });
    }
}

fn everywhere(value: u64) -> BTreeMap<u32, u64> {
    (0..CELLS).map(|cell| (cell, value * u64::from(RINGS + 1))).collect()
}

/// All rows would take 29 kB; there is room for one.
#[test]
fn the_last_reading_has_room_in_a_capture_of_bounded_size() {
    let least = empty_size([counting_source(CELLS)]);
    for max_size in [least, least + 1000, least + 10_000, 40_000, 100_000] {
        for frames_too in [false, true] {
            let (sink, segment) = (TapOutput::default(), counting(12, RINGS, CELLS));
            let options = ListenerOptions { max_size: Some(max_size), ..options() };
            let listener = Listener::start(sink.clone(), header(), vec![feed(&segment)], options);
            let listener = listener.unwrap();
            let mut writers: Vec<_> =
                (1..=RINGS).map(|tid| Writer::claim(&segment, tid).unwrap()).collect();
            let mut added = 0;
            while listener.progress().ended.is_none() {
                add_everywhere(&segment, 1);
                added += 1;
                if frames_too {
                    writers.iter_mut().for_each(|writer| writer.write_drained(10, &listener));
                }
            }
            add_everywhere(&segment, 5);
            let summary = listener.finish(EndReason::MaxSize, String::new(), Vec::new());
            assert!(summary.complete && summary.bytes <= max_size, "{summary:?} of {max_size}");
            let back = read(sink.bytes());
            check(&summary, &back);
            assert_eq!(back.cells.sums(0), everywhere(added + 5), "{max_size}");
        }
    }
}

/// Rings grow when the capture is full: no file mentions the new segment, but its adds count.
#[test]
fn adds_to_a_segment_that_no_file_lists_are_not_missing() {
    let sink = TapOutput::default();
    let (small, large) = (counting(6, RINGS, CELLS), counting(7, RINGS, CELLS));
    let max_size = Some(empty_size([counting_source(CELLS)]) + 1000);
    let options = ListenerOptions { max_size, ..options() };
    let listener = Listener::start(sink.clone(), header(), vec![feed(&small)], options);
    let mut listener = listener.unwrap();
    let _small = Writer::claim(&small, 7).unwrap();
    small.row(1).iter().for_each(|cell| cells::add_own(cell, 1));
    let grown =
        ppt_listener::Source { segments: grown(&[&small]).segments, ..counting_source(CELLS) };
    listener.extend(0, Feed::starting_now(grown, large.clone())).unwrap();
    let _large = Writer::claim(&large, 8).unwrap();
    large.row(1)[..CELLS as usize].iter().for_each(|cell| cells::add_own(cell, 2));
    let summary = listener.finish(EndReason::Stopped, String::new(), Vec::new());
    assert!(summary.complete && Some(summary.bytes) <= max_size, "{summary:?}");
    let back = read(sink.bytes());
    assert_eq!(back.sources[&0].segments.len(), 1, "there is no room for another");
    assert_eq!(back.cells.sums(0), (0..CELLS).map(|cell| (cell, 3)).collect());
}

struct Many(Arc<Mutex<Vec<TapOutput>>>);

impl CaptureFiles<TapOutput> for Many {
    fn next(&mut self) -> io::Result<(TapOutput, FileHeader)> {
        let mut sinks = self.0.lock().unwrap();
        sinks.push(TapOutput::default());
        Ok((sinks.last().unwrap().clone(), header()))
    }
}

/// Adds until there are `files` files. Returns the sums and the files.
fn rotated(every: Option<Duration>, size: Option<u64>, files: usize) -> (u64, Vec<TapOutput>) {
    let (sinks, segment) = (Arc::<Mutex<Vec<TapOutput>>>::default(), counting(6, RINGS, CELLS));
    let mut rotation = Rotation { every, size, keep: None, files: Box::new(Many(sinks.clone())) };
    let (first, header) = rotation.files.next().unwrap();
    let feeds = vec![feed(&segment)];
    let listener = Listener::rotating(first, header, feeds, options(), Some(rotation)).unwrap();
    let _writers: Vec<_> = (1..=RINGS).map(|tid| Writer::claim(&segment, tid).unwrap()).collect();
    let mut added = 0;
    wait(|| {
        add_everywhere(&segment, 1);
        added += 1;
        std::thread::yield_now();
        sinks.lock().unwrap().len() >= files
    });
    let summary = listener.finish(EndReason::Stopped, String::new(), Vec::new());
    assert!(summary.complete);
    let sinks = sinks.lock().unwrap().clone();
    (added, sinks)
}

fn check_files(added: u64, sinks: &[TapOutput]) {
    let mut sums = BTreeMap::new();
    for (number, sink) in sinks.iter().enumerate() {
        let back = read(sink.bytes());
        assert!(back.end.is_some());
        assert!(back.readings > 0 || number + 1 == sinks.len(), "file {number} has nothing");
        for (cell, sum) in back.cells.sums(0) {
            *sums.entry(cell).or_default() += sum;
        }
    }
    assert_eq!(sums, everywhere(added));
}

#[test]
fn files_rotate_by_time_where_only_counters_change() {
    let (added, sinks) = rotated(Some(Duration::from_millis(20)), None, 4);
    check_files(added, &sinks);
}

/// A reading takes 29 kB, and so does the statement of the sums before it.
#[test]
fn files_rotate_by_size_where_only_counters_change() {
    for size in [10_000, 100_000, 300_000] {
        let (added, sinks) = rotated(None, Some(size), 5);
        check_files(added, &sinks);
        let longest = sinks.iter().map(|sink| sink.bytes().len() as u64).max().unwrap();
        // A file holds at least its source, twice, and one reading.
        assert!(longest <= size.max(60_000), "{longest} of {size}");
    }
}
