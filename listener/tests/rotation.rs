//! One session in many files: each is whole, and together they account for every frame.

mod support;

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use ppt_capture::{Dropped, EndReason};
use ppt_listener::{Ended, Feed, Listener, Options, Rotation, Summary};

use support::*;

type Sinks = Arc<Mutex<Vec<Sink>>>;

/// Another file for every call, at most `most` of them.
fn rotation(
    sinks: &Sinks,
    every: Option<Duration>,
    size: Option<u64>,
    most: usize,
) -> Rotation<Sink> {
    let sinks = sinks.clone();
    let next = move || {
        let mut sinks = sinks.lock().unwrap();
        if sinks.len() >= most {
            return Err(io::Error::from_raw_os_error(28 /* ENOSPC */));
        }
        sinks.push(Sink::default());
        Ok((sinks.last().unwrap().clone(), header()))
    };
    Rotation { every, size, next: Box::new(next) }
}

/// Reads every file; where the numbers of a ring end in one, they begin in the next.
fn read_all(sinks: &Sinks) -> Vec<Back> {
    let files: Vec<_> = sinks.lock().unwrap().iter().map(|sink| read(sink.bytes())).collect();
    let mut next = HashMap::new();
    for file in &files {
        for ring in &file.end.as_ref().expect("every file is whole").rings {
            let first = next.insert((ring.source, ring.nonce, ring.ring), ring.next_seq);
            assert!(first.is_none_or(|it| it == ring.first_seq), "{ring:?} after {first:?}");
            assert_eq!(ring.captured + ring.lost.total(), ring.next_seq - ring.first_seq);
        }
    }
    files
}

/// What the files say together is what the summary says.
fn check_sums(files: &[Back], summary: &Summary) {
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
    let (first, header) = (rotation.next)().unwrap();
    let feeds = vec![Feed::starting_now(source(), segment.clone())];
    let options = Options { chunk_age: Duration::from_millis(1), ..Options::default() };
    let listener = Listener::rotating(first, header, feeds, options, Some(rotation)).unwrap();
    thread::scope(|scope| {
        for tid in 1..=4 {
            let segment = &segment;
            scope.spawn(move || {
                let mut writer = Writer::claim(segment, tid).unwrap();
                // Half of it as fast as it can, half no faster than it is read.
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
    let sizes: Vec<_> = sinks.lock().unwrap().iter().map(|it| it.bytes().len() as u64).collect();
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
    let (first, header) = (rotation.next)().unwrap();
    let feeds = vec![Feed::starting_now(source(), segment.clone())];
    let options = Options { chunk_age: Duration::from_millis(1), ..Options::default() };
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
    let (first, header) = (rotation.next)().unwrap();
    let feeds = vec![Feed::starting_now(source(), segment.clone())];
    let options = Options { chunk_age: Duration::from_millis(1), ..Options::default() };
    let listener = Listener::rotating(first, header, feeds, options, Some(rotation)).unwrap();
    let mut writer = Writer::claim(&segment, 1).unwrap();
    while listener.progress().ended.is_none() {
        writer.write_drained(1_000, &listener);
    }
    assert_eq!(listener.progress().ended, Some(Ended::DiskError));
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
    let (first, header) = (rotation.next)().unwrap();
    let feeds = vec![Feed::starting_now(source(), small.clone())];
    let options = Options { chunk_age: Duration::from_millis(1), ..Options::default() };
    let mut listener = Listener::rotating(first, header, feeds, options, Some(rotation)).unwrap();
    let files = || sinks.lock().unwrap().len();
    let mut old = Writer::claim(&small, 7).unwrap();
    while files() < 3 {
        old.write_gently(100);
    }
    listener.extend(0, Feed::starting_now(grown(&[&small]), large.clone())).unwrap();
    // A file that begins after the former segment was let go has it among those of its source.
    let mut new = Writer::claim(&large, 8).unwrap();
    old.write();
    drop(old);
    listener.leave(0, small.nonce());
    while files() < 7 {
        new.write_gently(100);
    }
    let summary = listener.finish(EndReason::Stopped, String::new(), Vec::new());
    check_sums(&read_all(&sinks), &summary);
    let rings: Vec<_> = summary.feeds[0].rings.iter().map(|it| (it.nonce, it.next_seq)).collect();
    let cursors = [&small, &large].map(|it| (it.nonce(), it.ring(0).tail() + 1));
    assert_eq!((rings, summary.feeds.len()), (cursors.to_vec(), 1));
}
