//! Several sinks take the frames of one drain: each has all of them, or an account of those for
//! which it was too slow, regardless of the others.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use ppt_capture::{EndReason, Lost};
use ppt_listener::{
    CaptureSummary, Closing, Ending, Feed, Frames, Introduction, Listener, ListenerOptions,
    Sink as Taker, SinkOutcome,
};
use ppt_segment::Segment;

use crate::support::*;

/// Everything that a sink was given.
#[derive(Default)]
struct SinkInput {
    /// Whether it takes nothing for now.
    closed: bool,
    /// The frames of each segment, as received.
    kept: Vec<Frames>,
    rings: BTreeMap<(usize, u32), RingTally>,
    /// The introduced segments: their feeds and starting cursors.
    parts: BTreeMap<usize, (usize, Vec<u64>)>,
    gone: Vec<usize>,
    ended: bool,
}

/// The same for a ring.
#[derive(Debug, Clone, Copy, PartialEq)]
struct RingTally {
    next_seq: u64,
    taken: u64,
    lost: Lost,
}

/// A sink that keeps everything, as a recorder in memory does, and that a test can block.
#[derive(Clone, Default)]
struct Keeping(Arc<(Mutex<SinkInput>, Condvar)>);

impl Keeping {
    fn set_closed(&self, closed: bool) {
        self.0.0.lock().unwrap().closed = closed;
        self.0.1.notify_all();
    }

    fn given(&self) -> std::sync::MutexGuard<'_, SinkInput> {
        let given = self.0.0.lock().unwrap();
        self.0.1.wait_while(given, |input| input.closed).unwrap()
    }

    /// Checks that its content is consistent, and matches the segment.
    fn check(&self, part: usize, segment: &Segment) -> RingTally {
        let given = self.given();
        assert!(given.ended);
        let mut all = RingTally { next_seq: 0, taken: 0, lost: Lost::default() };
        for (&(_, ring), tally) in given.rings.iter().filter(|(at, _)| at.0 == part) {
            assert_eq!(tally.next_seq, segment.ring(ring).tail() + 1);
            assert_eq!(tally.taken + tally.lost.total(), segment.ring(ring).tail());
            all.taken += tally.taken;
            all.lost += tally.lost;
        }
        // Nobody has overwritten them since.
        let mut taken = 0;
        for frames in given.kept.iter().filter(|frames| frames.segment_number() == part) {
            taken += u64::from(frames.count());
            let stride = frames.bytes().len() / frames.count() as usize;
            for (frame, seq) in frames.bytes().chunks(stride).zip(frames.first_seq()..) {
                let frame =
                    frame.chunks(8).map(|chunk| u64::from_le_bytes(chunk.try_into().unwrap()));
                assert!(frame.skip(1).eq(frame_words(frames.tid(), seq)), "{seq}");
            }
        }
        assert_eq!(taken, all.taken);
        all
    }
}

impl Taker for Keeping {
    fn introduce(&mut self, new: &[Introduction]) {
        let mut given = self.given();
        for introduction in new {
            let is_new = given
                .parts
                .insert(
                    introduction.segment_number,
                    (introduction.feed, introduction.first.clone()),
                )
                .is_none();
            assert!(
                is_new
                    && introduction.first.len() == introduction.segment.geometry().rings() as usize
            );
        }
    }

    fn frames(&mut self, frames: &Frames) {
        let mut given = self.given();
        let place = (frames.segment_number(), frames.ring());
        let next_seq = given.parts[&place.0].1[place.1 as usize] + 1;
        let new = || RingTally { next_seq, taken: 0, lost: Lost::default() };
        let tally = given.rings.entry(place).or_insert_with(new);
        assert_eq!(tally.next_seq + frames.lost_before().total(), frames.first_seq(), "it tiles");
        tally.next_seq = frames.first_seq() + u64::from(frames.count());
        tally.taken += u64::from(frames.count());
        tally.lost += frames.lost_before();
        given.kept.push(frames.clone());
    }

    fn gone(&mut self, part: usize, closings: &[Closing]) {
        let mut given = self.given();
        for closing in closings {
            let next_seq = given.parts[&part].1[closing.ring as usize] + 1;
            let new = || RingTally { next_seq, taken: 0, lost: Lost::default() };
            let tally = given.rings.entry((part, closing.ring)).or_insert_with(new);
            assert_eq!(tally.next_seq + closing.lost.total(), closing.next_seq, "it tiles");
            tally.next_seq = closing.next_seq;
            tally.lost += closing.lost;
        }
        given.gone.push(part);
    }

    fn due(&self) -> u64 {
        u64::MAX
    }

    fn tick(&mut self) {}

    fn end(self: Box<Self>, _: &Ending) -> SinkOutcome {
        self.given().ended = true;
        SinkOutcome { error: None, complete: true }
    }
}

fn start(
    out: &TapOutput,
    segment: &Arc<Segment>,
    options: ListenerOptions,
    extra_sinks: &[&Keeping],
) -> Listener {
    let feeds = vec![Feed::starting_now(source(), segment.clone())];
    let mut begun = Listener::begin(out.clone(), header(), feeds, options, None).unwrap();
    for &sink in extra_sinks {
        begun.add_sink(sink.clone(), 256 << 10).unwrap();
    }
    begun.start().unwrap()
}

fn finish(listener: Listener) -> CaptureSummary {
    listener.finish(EndReason::Stopped, String::new(), Vec::new())
}

#[test]
fn each_is_given_what_comes_and_goes() {
    let (out, one, two) = (TapOutput::default(), segment(10, 2), segment(10, 2));
    let larger = segment(12, 2);
    let sinks = [Keeping::default(), Keeping::default()];
    let mut listener = start(&out, &one, ListenerOptions::default(), &[&sinks[0], &sinks[1]]);
    let mut writer = Writer::claim(&one, 7).unwrap();
    writer.write_drained(1000, &listener);
    listener.add(vec![Feed::starting_now(source(), two.clone())]).unwrap();
    let mut second = Writer::claim(&two, 8).unwrap();
    second.write_gently(500);
    listener.extend(0, Feed::starting_now(grown(&[&one]), larger.clone())).unwrap();
    drop(writer);
    listener.retire_segment(0, one.nonce());
    let mut third = Writer::claim(&larger, 9).unwrap();
    third.write_gently(200);
    let summary = finish(listener);
    check(&summary, &read(out.bytes()));
    assert_eq!(summary.captured(), 1700);
    for (sink, extra) in sinks.iter().zip(&summary.extra_sinks) {
        assert_eq!((extra.missed, extra.complete, extra.error.is_none()), (0, true, true));
        let taken = [(0, &one), (1, &two), (2, &larger)]
            .map(|(part, segment)| sink.check(part, segment).taken);
        assert_eq!(taken, [1000, 500, 200]);
        let given = sink.given();
        assert_eq!(given.parts.values().map(|it| it.0).collect::<Vec<_>>(), [0, 1, 0]);
        assert_eq!(given.gone, [0, 1, 2]);
    }
}

#[test]
fn one_that_is_too_slow_makes_no_other_lose() {
    let (out, segment) = (TapOutput::default(), segment(10, 2));
    let [slow, other] = [Keeping::default(), Keeping::default()];
    let listener = start(&out, &segment, ListenerOptions::default(), &[&slow, &other]);
    let mut writer = Writer::claim(&segment, 7).unwrap();
    writer.write_drained(1000, &listener);
    slow.set_closed(true);
    // Several times the capacity of its queue.
    let mut written = 1000;
    while written < 40_000 {
        writer.write_drained(1000, &listener);
        written += 1000;
        // The other sinks have taken the frames.
        wait(|| listener.progress().waiting == 0);
    }
    slow.set_closed(false);
    writer.write_drained(1000, &listener);
    let summary = finish(listener);
    check(&summary, &read(out.bytes()));
    assert_eq!((summary.captured(), summary.lost()), (41_000, Lost::default()));
    assert_eq!(other.check(0, &segment).taken, 41_000);
    let its = slow.check(0, &segment);
    assert!(its.taken >= 1000 && its.lost.disk > 0, "{its:?}");
    assert_eq!(its.lost, Lost { disk: its.lost.disk, ..Lost::default() });
    assert_eq!((summary.extra_sinks[0].missed, summary.extra_sinks[1].missed), (its.lost.disk, 0));
}

#[test]
fn a_stuck_disk_takes_nothing_from_the_sinks_beside_it() {
    let (out, segment) = (TapOutput::default(), segment(10, 2));
    let extra = Keeping::default();
    let options = ListenerOptions { queue_bytes: 256 << 10, ..ListenerOptions::default() };
    let listener = start(&out, &segment, options, &[&extra]);
    out.set_closed(true);
    let mut writer = Writer::claim(&segment, 7).unwrap();
    let mut written = 0;
    while listener.progress().lost.disk == 0 {
        writer.write_drained(1000, &listener);
        written += 1000;
        let taken =
            || extra.given().kept.iter().map(|frames| u64::from(frames.count())).sum::<u64>();
        // An old chunk is handed on although it is not full and the disk is behind.
        wait(|| taken() == written);
    }
    out.set_closed(false);
    let summary = finish(listener);
    check(&summary, &read(out.bytes()));
    assert!(summary.lost().disk > 0);
    assert_eq!(extra.check(0, &segment).taken, written);
    assert_eq!(summary.extra_sinks[0].missed, 0);
}

#[test]
fn one_that_never_answers_is_given_up() {
    let (out, segment) = (TapOutput::default(), segment(10, 2));
    let extra = Keeping::default();
    let patience = Duration::from_millis(50);
    let options = ListenerOptions { patience, ..ListenerOptions::default() };
    let listener = start(&out, &segment, options, &[&extra]);
    let mut writer = Writer::claim(&segment, 7).unwrap();
    extra.set_closed(true);
    writer.write_drained(1000, &listener);
    let summary = finish(listener);
    check(&summary, &read(out.bytes()));
    assert!(summary.complete && summary.captured() == 1000);
    let it = &summary.extra_sinks[0];
    assert_eq!(it.error.as_ref().unwrap().kind(), std::io::ErrorKind::TimedOut);
    assert!(!it.complete);
    extra.set_closed(false);
}
