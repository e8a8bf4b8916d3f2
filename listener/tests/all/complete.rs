//! A capture states the time up to which its frames are complete, while others are still written: every frame that
//! was published before is in an earlier chunk.

use std::collections::HashMap;
use std::io::Cursor;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use ppt_capture::{Capture, CaptureItem, Chunk, EndReason};
use ppt_listener::{Feed, Listener, ListenerOptions};

use crate::support::*;

/// A statement of a capture: the time up to which it is complete, and the last number of each ring by then.
type Statement = (u64, HashMap<u32, u64>);

fn statements(bytes: Vec<u8>) -> Vec<Statement> {
    let mut capture = Capture::from_reader(Cursor::new(bytes)).unwrap();
    let (mut statements, mut last) = (Vec::<Statement>::new(), HashMap::new());
    while let Some(item) = capture.read().unwrap() {
        let CaptureItem::Chunk(chunk) = item else { continue };
        match chunk {
            Chunk::Frames(frames) => _ = last.insert(frames.head.ring, frames.head.next_seq() - 1),
            Chunk::Clock(_) => statements.push((capture.finish().complete, last.clone())),
            _ => {}
        }
    }
    statements
}

#[test]
fn what_was_published_before_is_in_earlier_chunks_whoever_is_silent() {
    let (sink, segment) = (TapOutput::default(), segment(14, 8));
    let feed = Feed::starting_now(source(), segment.clone());
    let options = ListenerOptions::default();
    let listener = Listener::start(sink.clone(), header(), vec![feed], options).unwrap();
    let begun = ppt_now::monotonic();
    let mut silent = Writer::claim(&segment, 1).unwrap();
    silent.write();
    let is_over = AtomicBool::new(false);
    let published: Vec<(u32, Vec<u64>)> = thread::scope(|scope| {
        let writers: Vec<_> = (2..6)
            .map(|tid| {
                let (segment, is_over) = (&segment, &is_over);
                scope.spawn(move || {
                    let mut writer = Writer::claim(segment, tid).unwrap();
                    let mut times = Vec::new();
                    while !is_over.load(Ordering::Relaxed) {
                        writer.write();
                        times.push(ppt_now::monotonic());
                        // There are more threads than CPUs, so some lose theirs between any two steps.
                        if times.len().is_multiple_of(if tid == 2 { 1 } else { 50 }) {
                            thread::yield_now();
                            std::hint::black_box((0..20_000).sum::<u64>());
                        }
                    }
                    (writer.ring, times)
                })
            })
            .collect();
        // The capture states it about once a second.
        let far = |said: &Statement| said.0 > begun + 2_000_000_000;
        wait(|| {
            thread::sleep(std::time::Duration::from_millis(20));
            statements(sink.bytes()).iter().any(far)
        });
        is_over.store(true, Ordering::Relaxed);
        writers.into_iter().map(|writer| writer.join().unwrap()).collect()
    });
    listener.finish(EndReason::Stopped, String::new(), Vec::new());
    let said = statements(sink.bytes());
    assert!(said.windows(2).all(|pair| pair[0].0 <= pair[1].0), "it never goes back");
    let mut judged = 0;
    for (complete, last) in &said {
        for (ring, times) in &published {
            // Each time was read after its frame had been published.
            let before = times.partition_point(|time| time < complete) as u64;
            let there = last.get(ring).copied().unwrap_or_default();
            assert!(there >= before, "ring {ring}: {there} of {before} by {complete}");
            judged += before;
        }
    }
    assert!(judged > 1000, "{judged}");
}
