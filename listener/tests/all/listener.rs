//! Threads write into real rings, a listener drains them, and the capture is read back: whatever
//! goes wrong, every frame is in the file or in the account.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use ppt_capture::{Cause, ClockReading, Dropped, EndReason, FramesHead, Lost, Source};
use ppt_listener::{
    Feed, Filter, Listener, ListenerError, ListenerOptions, SharedFilter, Undersized,
};
use ppt_segment::{RingWriter, Segment};

use crate::support::*;

fn start(sink: &TapOutput, segments: &[&Arc<Segment>], options: ListenerOptions) -> Listener {
    let feeds = segments.iter().map(|&segment| Feed::starting_now(source(), segment.clone()));
    Listener::start(sink.clone(), header(), feeds.collect(), options).unwrap()
}

fn finish(listener: Listener) -> ppt_listener::CaptureSummary {
    listener.finish(EndReason::Stopped, String::new(), Vec::new())
}

fn is_awake(listener: &Listener, timeout: PollTimeout) -> bool {
    let mut fds = [PollFd::new(listener.wake(), PollFlags::POLLIN)];
    poll(&mut fds, timeout).unwrap() == 1
}

#[test]
fn frames_of_threads_at_full_speed_are_captured_or_counted() {
    const FRAMES: u64 = 200_000;
    let (sink, one, two) = (TapOutput::default(), segment(6, 8), segment(6, 4));
    let listener = start(&sink, &[&one, &two], ListenerOptions::default());
    thread::scope(|scope| {
        for tid in 1..=12 {
            let segment = if tid <= 8 { &one } else { &two };
            scope.spawn(move || {
                let mut writer = Writer::claim(segment, tid).unwrap();
                for frame in 0..FRAMES {
                    writer.write();
                    if frame % 1000 == 0 {
                        thread::yield_now();
                    }
                }
            });
        }
    });
    let summary = finish(listener);
    let back = read(sink.bytes());
    check(&summary, &back);
    check_cursors(&summary, &[&one, &two]);
    assert_eq!(summary.captured() + summary.lost().total(), 12 * FRAMES);
    assert_eq!(summary.lost().total(), summary.lost().overrun);
    assert!(summary.captured() > 0 && summary.lost().overrun > 0);
    assert!(summary.feeds[0].enough_slots > Some(64));
    assert_eq!(summary.feeds[0].high_water, 1.0);
    assert_eq!(summary.bytes, sink.bytes().len() as u64);
    assert!(summary.error.is_none() && summary.ended.is_none());
    assert!(back.clocks >= 2);
}

/// Rings that are polled rarely, and those that should be unclaimed: each in turn is busy, then
/// idle. The last frames of all are found at the end.
#[test]
fn rings_that_wake_up_are_drained_to_the_last_frame() {
    const RINGS: u32 = 200;
    let (sink, segment) = (TapOutput::default(), segment(8, RINGS));
    let listener = start(&sink, &[&segment], ListenerOptions::default());
    // A thread that takes a ring although lower ones are free, unlike any target of ours.
    assert!(segment.ring(RINGS - 1).claim(1));
    let mut stray = RingWriter::new(segment.ring(RINGS - 1));
    let mut writers: Vec<_> =
        (2..RINGS / 2).map(|tid| Writer::claim(&segment, tid).unwrap()).collect();
    let mut written = 0;
    for round in 0..40 {
        let busy = writers.iter_mut().enumerate().filter(|(at, _)| (at + round) % 7 < 2);
        for (_, writer) in busy {
            (0..100).for_each(|_| _ = writer.write());
            written += 100;
        }
        // So no ring overruns, and in the end only the last pass drains some rings.
        if round < 39 {
            wait(|| listener.progress().captured + listener.progress().waiting == written);
        }
    }
    let tid = 1;
    (1..=200).for_each(|seq| _ = stray.write(frame_words(tid, seq)));
    let summary = finish(listener);
    check(&summary, &read(sink.bytes()));
    check_cursors(&summary, &[&segment]);
    assert_eq!((summary.captured(), summary.lost().total()), (written + 200, 0));
}

#[test]
fn feeds_come_and_go_while_it_runs() {
    let sink = TapOutput::default();
    let mut listener = start(&sink, &[], ListenerOptions::default());
    let segments: Vec<_> = (0..3).map(|_| segment(10, 2)).collect();
    for (number, segment) in segments.iter().enumerate() {
        assert_eq!(listener.feeds(), number);
        let mut writer = Writer::claim(segment, 7 + number as u32).unwrap();
        writer.write();
        // Frames that were written before the feed was added are between sessions.
        listener.add(vec![Feed::starting_now(source(), segment.clone())]).unwrap();
        writer.write_gently(500);
        drop(writer);
        if number < 2 {
            // A target wrote its last frames right before it ended.
            let mut writer = Writer::claim(segment, 20).unwrap();
            (0..100).for_each(|_| _ = writer.write());
            drop(writer);
            listener.dropped(number, Dropped { nested: 3, ..Dropped::default() });
            listener.retire(number);
            listener.retire(number);
            wait(|| Arc::strong_count(segment) == 1);
        }
    }
    let summary = finish(listener);
    let back = read(sink.bytes());
    check(&summary, &back);
    assert_eq!(summary.captured(), 2 * 600 + 500);
    assert_eq!(summary.lost(), Lost::default());
    assert_eq!(summary.dropped().nested, 6);
    assert_eq!(back.frames.keys().map(|key| key.0).collect::<Vec<_>>(), [0, 1, 2]);
    assert_eq!(back.account.dropped(1).nested, 3);
}

#[test]
fn a_feed_that_a_full_capture_has_no_room_for_is_not_spoken_of() {
    let sink = TapOutput::default();
    let options = ListenerOptions { max_size: Some(20_000), ..ListenerOptions::default() };
    let (one, two) = (segment(10, 2), segment(10, 2));
    let mut listener = start(&sink, &[&one], options);
    let mut writer = Writer::claim(&one, 7).unwrap();
    while listener.progress().ended.is_none() {
        writer.write();
        thread::yield_now();
    }
    listener.add(vec![Feed::starting_now(source(), two.clone())]).unwrap();
    let mut writer = Writer::claim(&two, 8).unwrap();
    (0..100).for_each(|_| _ = writer.write());
    let summary = finish(listener);
    let back = read(sink.bytes());
    assert_eq!(summary.feeds[1].lost.disk, 100);
    let end = back.end.unwrap();
    assert!(end.rings.iter().all(|ring| ring.source == 0) && end.drops.len() == 1);
    assert!(sink.bytes().len() <= 20_000);
}

#[test]
fn a_feed_goes_on_in_a_larger_segment() {
    let (sink, small, large) = (TapOutput::default(), segment(4, 2), segment(8, 2));
    let mut listener = start(&sink, &[&small, &segment(4, 2)], ListenerOptions::default());
    assert_eq!(listener.undersized(), []);
    let mut old = Writer::claim(&small, 7).unwrap();
    // However slow the drain is, it sometimes finds more than the ring holds.
    while listener.undersized().is_empty() {
        (0..100).for_each(|_| _ = old.write());
    }
    let [Undersized { feed: 0, enough_slots: enough }] = listener.undersized()[..] else {
        panic!("{:?}", listener.undersized())
    };
    assert!(enough >= 32, "{enough}");
    listener.extend(0, Feed::starting_now(grown(&[&small]), large.clone())).unwrap();
    assert_eq!(listener.undersized(), [], "that of the new segment is not");

    // Two owners, one for each segment: both are drained.
    let mut new = Writer::claim(&large, 8).unwrap();
    new.write_gently(200);
    old.write_gently(5);
    new.write_gently(200);
    drop(old);
    listener.retire_segment(0, small.nonce());
    wait(|| Arc::strong_count(&small) == 1);
    new.write_gently(200);
    assert_eq!(listener.progress().rings, 1);
    listener.dropped(0, Dropped { nested: 3, ..Dropped::default() });
    let summary = finish(listener);
    let back = read(sink.bytes());
    check(&summary, &back);
    let feed = &summary.feeds[0];
    let cursors: Vec<_> = feed.rings.iter().map(|ring| (ring.nonce, ring.next_seq - 1)).collect();
    assert_eq!(cursors, [(small.nonce(), small.ring(0).tail()), (large.nonce(), 600)]);
    assert_eq!(feed.rings[1].captured, 600);
    assert!(feed.enough_slots >= Some(32));
    assert_eq!((summary.feeds.len(), summary.dropped().nested), (2, 3));
}

#[test]
fn a_larger_segment_that_a_full_capture_has_no_room_for_is_not_spoken_of() {
    let sink = TapOutput::default();
    let options = ListenerOptions { max_size: Some(20_000), ..ListenerOptions::default() };
    let (small, large) = (segment(10, 2), segment(11, 2));
    let mut listener = start(&sink, &[&small], options);
    let mut writer = Writer::claim(&small, 7).unwrap();
    while listener.progress().ended.is_none() {
        writer.write();
        thread::yield_now();
    }
    listener.extend(0, Feed::starting_now(grown(&[&small]), large.clone())).unwrap();
    let mut writer = Writer::claim(&large, 8).unwrap();
    (0..100).for_each(|_| _ = writer.write());
    let summary = finish(listener);
    let back = read(sink.bytes());
    let large = summary.feeds[0].rings.iter().find(|ring| ring.nonce == large.nonce()).unwrap();
    assert_eq!((large.captured, large.lost.disk), (0, 100));
    assert!(back.end.unwrap().rings.iter().all(|ring| ring.nonce == small.nonce()));
    assert!(sink.bytes().len() <= 20_000);
}

#[test]
fn a_stuck_disk_does_not_stop_the_drain() {
    let (sink, segment) = (TapOutput::default(), segment(10, 2));
    let options = ListenerOptions { queue_bytes: 256 << 10, ..ListenerOptions::default() };
    let listener = start(&sink, &[&segment], options);
    sink.set_closed(true);
    let mut writer = Writer::claim(&segment, 7).unwrap();
    while listener.progress().lost.disk == 0 {
        // Continues only when the drain does.
        writer.write_drained(1000, &listener);
    }
    let progress = listener.progress();
    assert!(progress.waiting > 0 && progress.rings == 1);
    sink.set_closed(false);
    wait(|| listener.progress().waiting == 0);
    writer.write_drained(1000, &listener);

    let summary = finish(listener);
    let back = read(sink.bytes());
    check(&summary, &back);
    check_cursors(&summary, &[&segment]);
    let lost = summary.lost();
    assert!(lost.disk > 0 && lost == Lost { disk: lost.disk, ..Lost::default() });
    assert_eq!(back.frames[&(0, segment.nonce(), 0)].last().unwrap().0, segment.ring(0).tail());
    assert!(summary.complete);
}

#[test]
fn what_a_full_disk_does_not_take_is_counted() {
    let (sink, segment) = (TapOutput::default(), segment(10, 2));
    let listener = start(&sink, &[&segment], ListenerOptions::default());
    assert!(!is_awake(&listener, PollTimeout::ZERO));
    let mut writer = Writer::claim(&segment, 7).unwrap();
    writer.write_drained(1000, &listener);
    wait(|| listener.progress().captured == 1000);
    sink.set_room(100_000);
    while listener.progress().ended.is_none() {
        writer.write_drained(1000, &listener);
    }
    assert!(is_awake(&listener, PollTimeout::NONE));
    writer.write_drained(1000, &listener);

    let summary = finish(listener);
    let back = read(sink.bytes());
    check(&summary, &back);
    check_cursors(&summary, &[&segment]);
    assert_eq!(summary.ended, Some(EndReason::Failed));
    assert_eq!(summary.error.as_ref().unwrap().kind(), std::io::ErrorKind::StorageFull);
    assert!(summary.captured() > 0 && summary.lost().disk >= 1000 && !summary.complete);
    assert_eq!(summary.bytes, sink.bytes().len() as u64);
}

#[test]
fn a_disk_that_never_answers_is_given_up() {
    let (sink, segment) = (TapOutput::default(), segment(10, 2));
    let patience = Duration::from_millis(50);
    let listener =
        start(&sink, &[&segment], ListenerOptions { patience, ..ListenerOptions::default() });
    let mut writer = Writer::claim(&segment, 7).unwrap();
    writer.write_drained(1000, &listener);
    wait(|| listener.progress().captured == 1000);
    sink.set_closed(true);
    writer.write_drained(5000, &listener);
    let summary = finish(listener);
    assert_eq!(summary.error.as_ref().unwrap().kind(), std::io::ErrorKind::TimedOut);
    assert_eq!((summary.captured(), summary.lost().disk), (1000, 5000));
    check(&summary, &read(sink.bytes()));
    sink.set_closed(false);
}

#[test]
fn a_capture_grows_no_larger_than_it_may() {
    for max_size in [20_000, 50_000, 1 << 20] {
        let (sink, segment) = (TapOutput::default(), segment(12, 4));
        let options = ListenerOptions { max_size: Some(max_size), ..ListenerOptions::default() };
        let listener = start(&sink, &[&segment], options);
        let mut writers = [7, 8].map(|tid| Writer::claim(&segment, tid).unwrap());
        while listener.progress().ended.is_none() {
            writers.iter_mut().for_each(|writer| writer.write_drained(100, &listener));
        }
        assert!(is_awake(&listener, PollTimeout::NONE));
        writers.iter_mut().for_each(|writer| writer.write_drained(100, &listener));

        let summary = listener.finish(EndReason::MaxSize, "full".to_owned(), Vec::new());
        let back = read(sink.bytes());
        check(&summary, &back);
        check_cursors(&summary, &[&segment]);
        assert_eq!(summary.ended, Some(EndReason::MaxSize));
        assert!(summary.bytes <= max_size, "{} of {max_size}", summary.bytes);
        assert!(summary.complete && summary.captured() > 0 && summary.lost().disk > 0);
        let end = back.end.unwrap();
        assert_eq!((end.reason, end.message.as_str()), (EndReason::MaxSize, "full"));
    }
}

#[test]
fn threads_that_come_and_go_are_distinguished() {
    const THREADS: u32 = 600;
    let (sink, segment) = (TapOutput::default(), segment(10, 4));
    let listener = start(&sink, &[&segment], ListenerOptions::default());
    let written = AtomicU64::new(0);
    let refused = AtomicU64::new(0);
    thread::scope(|scope| {
        for worker in 0..6 {
            let (segment, written, refused) = (&segment, &written, &refused);
            scope.spawn(move || {
                for tid in (1..=THREADS).filter(|tid| tid % 6 == worker) {
                    let thread = || match Writer::claim(segment, tid) {
                        Some(mut writer) => {
                            writer.write_gently(20);
                            written.fetch_add(20, Ordering::Relaxed);
                        }
                        None => _ = refused.fetch_add(20, Ordering::Relaxed),
                    };
                    thread::scope(|inner| _ = inner.spawn(thread));
                }
            });
        }
    });
    let dropped = Dropped { no_ring: refused.into_inner(), ..Dropped::default() };
    let summary = listener.finish(EndReason::Exited, String::new(), vec![dropped]);
    let back = read(sink.bytes());
    check(&summary, &back);
    check_cursors(&summary, &[&segment]);
    assert_eq!(summary.captured() + summary.lost().total(), written.into_inner());
    assert_eq!(summary.dropped(), dropped);
    assert_eq!(back.account.dropped(0), dropped);
    let known = back.frames.values().flatten().filter(|(_, tid)| *tid != 0).count();
    assert!(known > 0);
}

#[test]
fn a_cursor_that_makes_no_sense_closes_its_ring_only() {
    let (sink, segment) = (TapOutput::default(), segment(10, 3));
    let listener = start(&sink, &[&segment], ListenerOptions::default());
    let mut writers = [7, 8, 9].map(|tid| Writer::claim(&segment, tid).unwrap());
    writers.iter_mut().for_each(|writer| writer.write_gently(1000));
    wait(|| listener.progress().captured == 3000);
    poke(&segment, cursor_of(1), 5);
    writers[0].write_gently(1000);
    writers[2].write_gently(1000);
    wait(|| listener.progress().captured == 5000);
    poke(&segment, cursor_of(2), 1 << 63);
    writers[0].write_gently(1000);
    let summary = finish(listener);
    check(&summary, &read(sink.bytes()));
    assert_eq!((summary.captured(), summary.lost()), (6000, Lost::default()));
    let broken: Vec<_> = summary.broken().map(|(feed, one)| (feed, one.ring, one.cursor)).collect();
    assert_eq!(broken.len(), 2);
    assert_eq!((broken[0].1, broken[0].2.next, broken[0].2.tail), (1, 1000, 5));
    assert_eq!((broken[1].1, broken[1].2.next, broken[1].2.tail), (2, 2000, 1 << 63));
}

#[test]
fn what_is_not_a_frame_is_not_captured() {
    let (sink, segment) = (TapOutput::default(), segment(6, 2));
    let feed = Feed::starting_now(source(), segment.clone());
    let mut writer = Writer::claim(&segment, 7).unwrap();
    (0..20).for_each(|_| _ = writer.write());
    let slots = segment.geometry().slots_offset();
    for index in [0, 4, 5, 19] {
        poke(&segment, slots + index * u64::from(STRIDE), 77);
    }
    let listener =
        Listener::start(sink.clone(), header(), vec![feed], ListenerOptions::default()).unwrap();
    let summary = finish(listener);
    let back = read(sink.bytes());
    check(&summary, &back);
    check_cursors(&summary, &[&segment]);
    assert_eq!(summary.lost(), Lost { corrupt: 4, ..Lost::default() });
    let seqs: Vec<_> = back.frames[&(0, segment.nonce(), 0)].iter().map(|&(seq, _)| seq).collect();
    assert_eq!(seqs, [2, 3, 4].into_iter().chain(7..20).collect::<Vec<_>>());
}

#[test]
fn frames_between_sessions_belong_to_none() {
    let segment = segment(6, 3);
    let mut writer = Writer::claim(&segment, 7).unwrap();
    let first = start(&TapOutput::default(), &[&segment], ListenerOptions::default());
    writer.write_gently(100);
    assert_eq!(finish(first).captured(), 100);
    (0..30).for_each(|_| _ = writer.write());

    let sink = TapOutput::default();
    let second = start(&sink, &[&segment], ListenerOptions::default());
    writer.write_gently(10);
    let summary = finish(second);
    let back = read(sink.bytes());
    check(&summary, &back);
    check_cursors(&summary, &[&segment]);
    let (_, ring) = back.account.rings().next().unwrap();
    assert_eq!((ring.unattended, ring.first_seq, ring.next_seq), (30, 131, 141));
    assert!(Cause::Unattended.is_numbered());

    let sink = TapOutput::default();
    let summary = finish(start(&sink, &[&segment], ListenerOptions::default()));
    let ring = &summary.feeds[0].rings[0];
    assert_eq!((ring.first_seq, ring.next_seq, summary.captured()), (141, 141, 0));
    let back = read(sink.bytes());
    assert_eq!(back.account.rings().next().unwrap().1.unattended, 0, "all was attended");
}

#[test]
fn frames_reach_the_file_while_it_is_written() {
    let (sink, segment) = (TapOutput::default(), segment(10, 2));
    let listener = start(&sink, &[&segment], ListenerOptions::default());
    let before = sink.bytes().len();
    Writer::claim(&segment, 7).unwrap().write();
    sink.wait_for(before + 192 + STRIDE as usize);
    listener.dropped(0, Dropped { nested: 3, ..Dropped::default() });
    let summary = finish(listener);
    assert_eq!((summary.captured(), summary.dropped().nested), (1, 3));
    assert_eq!(read(sink.bytes()).account.dropped(0).nested, 3);
}

#[test]
fn a_listener_that_is_dropped_leaves_nothing_running() {
    let (sink, segment) = (TapOutput::default(), segment(10, 2));
    let listener = start(&sink, &[&segment], ListenerOptions::default());
    Writer::claim(&segment, 7).unwrap().write_gently(100);
    wait(|| listener.progress().captured == 100);
    drop(listener);
    wait(|| Arc::strong_count(&segment) == 1);
    wait(|| Arc::strong_count(&sink.0) == 1);
    let back = read(sink.bytes());
    assert_eq!((back.count(), back.end), (100, None));
}

#[test]
fn rings_of_dead_threads_are_freed() {
    let (sink, segment) = (TapOutput::default(), segment(6, 2));
    let mut feed = Feed::starting_now(source(), segment.clone());
    feed.alive = Some(Box::new(|tid| Some(tid != 7)));
    let listener =
        Listener::start(sink.clone(), header(), vec![feed], ListenerOptions::default()).unwrap();
    assert!(segment.ring(0).claim(7) && segment.ring(1).claim(8));
    wait(|| listener.progress().freed == 1);
    assert_eq!(listener.progress().rings, 1);
    let mut next = Writer::claim(&segment, 9).unwrap();
    assert_eq!(next.ring, 0);
    next.write();
    let summary = finish(listener);
    assert_eq!((summary.captured(), summary.freed), (1, 1));
    assert_eq!(read(sink.bytes()).frames[&(0, segment.nonce(), 0)], [(1, 9)]);
}

#[test]
fn what_cannot_begin_says_why() {
    let segment = segment(6, 2);
    let mut feed = Feed::starting_now(source(), segment.clone());
    feed.first.pop();
    let error =
        Listener::start(TapOutput::default(), header(), vec![feed], ListenerOptions::default())
            .unwrap_err();
    assert!(matches!(error, ListenerError::Feed { feed: 0, .. }), "{error}");

    let sink = TapOutput::default();
    sink.set_room(10);
    let feed = Feed::starting_now(source(), segment);
    let error =
        Listener::start(sink, header(), vec![feed], ListenerOptions::default()).unwrap_err();
    assert!(matches!(error, ListenerError::Output(_)), "{error}");
}

#[test]
fn a_target_that_scribbles_over_a_header_harms_that_ring_only() {
    let (sink, segment) = (TapOutput::default(), segment(10, 2));
    let listener = start(&sink, &[&segment], ListenerOptions::default());
    let mut writer = Writer::claim(&segment, 7).unwrap();
    let mut random = 1u64;
    for round in 0..2000 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let word = random >> 58;
        // Alternates between any number and one that could be a cursor.
        let value = if round % 2 == 0 { random } else { random >> 40 };
        poke(&segment, cursor_of(1) + 8 * word, value);
        writer.write_gently(5);
    }
    // Only now is it certain that the whole ring was looked at in that state.
    poke(&segment, cursor_of(1), u64::MAX);
    wait(|| listener.progress().captured >= 10_000);
    let summary = finish(listener);
    check(&summary, &read(sink.bytes()));
    assert_eq!(summary.broken().map(|(_, broken)| broken.ring).collect::<Vec<_>>(), [1]);
    let healthy = &summary.feeds[0].rings[0];
    assert_eq!((healthy.captured, healthy.lost), (10_000, Lost::default()));
}

/// Selects frames by sequence number and ring.
#[derive(Debug, Default)]
struct Few {
    clocks: usize,
    fed: Vec<usize>,
}

fn is_wanted(ring: u32, seq: u64) -> bool {
    // Runs of all lengths, and one ring whose frames are all rejected.
    ring != 2 && !(seq / (1 + u64::from(ring))).is_multiple_of(3) && seq % 1000 < 700
}

impl Filter for Few {
    fn introduce(&mut self, new: &[(usize, &Source)]) {
        self.fed.extend(new.iter().map(|entry| entry.0));
    }

    fn clocks(&mut self, _: &[ClockReading]) {
        self.clocks += 1;
    }

    fn wants(&mut self, feed: usize, head: &FramesHead, frames: &[u8], wanted: &mut Vec<bool>) {
        assert!(self.clocks >= 2 && self.fed.contains(&feed));
        for (frame, seq) in frames.chunks_exact(head.stride as usize).zip(head.first_seq..) {
            assert_eq!(frame[..8], seq.to_le_bytes());
            wanted.push(is_wanted(head.ring, seq));
        }
    }
}

#[test]
fn what_is_not_wanted_is_stated() {
    const FRAMES: u64 = 50_000;
    for (max_size, log2_slots) in [(None, 16), (None, 6), (Some(300_000), 16)] {
        let (sink, segment) = (TapOutput::default(), segment(log2_slots, 8));
        let filter: SharedFilter = Arc::new(Mutex::new(Few::default()));
        let options =
            ListenerOptions { filter: Some(filter), max_size, ..ListenerOptions::default() };
        let listener = start(&sink, &[&segment], options);
        thread::scope(|scope| {
            for tid in 1..=8 {
                let segment = &segment;
                scope.spawn(move || {
                    let mut writer = Writer::claim(segment, tid).unwrap();
                    (0..FRAMES).for_each(|_| _ = writer.write());
                });
            }
        });
        let summary = finish(listener);
        let back = read(sink.bytes());
        check(&summary, &back);
        check_cursors(&summary, &[&segment]);
        assert_eq!(back.account.mismatches(back.end.as_ref().unwrap()), []);
        let (captured, left_out) = (summary.captured(), summary.left_out());
        assert_eq!(captured + left_out + summary.lost().total(), 8 * FRAMES);
        assert!(captured > 0 && left_out > 0, "{captured} {left_out}");
        for ((_, _, ring), frames) in &back.frames {
            assert!(frames.iter().all(|&(seq, _)| is_wanted(*ring, seq)));
        }
        if summary.lost().total() == 0 {
            let wanted = back.account.rings().map(|(key, account)| {
                (account.first_seq..account.next_seq)
                    .filter(|&seq| is_wanted(key.ring, seq))
                    .count() as u64
            });
            assert_eq!(wanted.sum::<u64>(), captured);
        }
        assert!(max_size.is_none_or(|max| sink.bytes().len() as u64 <= max));
    }
}
