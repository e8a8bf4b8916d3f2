//! The cost of an expression per frame, compared with reading the field and comparing it by hand.
//!
//! ```text
//! $ cargo bench -p ppt-predicate
//! ```

use std::hint::black_box;
use std::time::Instant;

use ppt_capture::columns::{Access, NumberAt};
use ppt_capture::{ClockTable, FramesHead, Stamps, TimeNamespace};
use ppt_predicate::{Chunk, FrameKind, Predicate, PredicateRow};

const FRAMES: usize = 16 << 10;
const ROUNDS: usize = 9;
const STRIDE: usize = 64;

const FRAME: &str = "option time ns monotonic;
    enum What : u8 { LOGIN = 1, LOGOUT, UPDATE }
    frame job { u64 n; i32 size; f64 load; What what; char name[8]; interval time handle; }";

/// The median of some rounds, in ns per frame, and the number of matching frames.
fn measured(bytes: &[u8], mut matches: impl FnMut(u64, &[u8]) -> bool) -> (f64, usize) {
    let mut found = 0;
    let mut times: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let begun = Instant::now();
            found = (1..)
                .zip(bytes.chunks_exact(STRIDE))
                .filter(|(seqno, frame)| black_box(matches(*seqno, black_box(frame))))
                .count();
            begun.elapsed().as_nanos() as f64 / FRAMES as f64
        })
        .collect();
    times.sort_by(f64::total_cmp);
    (times[ROUNDS / 2], found)
}

fn main() {
    let schema = ppt_frame_dsl::compile(FRAME.as_bytes(), "bench.frame").unwrap().schema;
    let frame = &schema.frames[0];
    assert!(frame.size as usize <= STRIDE);
    let offset = |name: &str| {
        frame
            .fields
            .iter()
            .find(|field| field.name == name)
            .map_or(0, |field| field.offset as usize)
    };
    let mut bytes = vec![0u8; FRAMES * STRIDE];
    let mut word = 1u64;
    for frame in bytes.chunks_exact_mut(STRIDE) {
        word = word.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let mut put = |name: &str, bytes: &[u8]| {
            frame[offset(name)..][..bytes.len()].copy_from_slice(bytes);
        };
        put("n", &(word >> 40).to_le_bytes());
        put("size", &((word >> 33) as i32).to_le_bytes());
        put("load", &((word >> 20) as f64).to_le_bytes());
        put("what", &[1 + (word >> 62) as u8]);
        put("name", b"worker");
        put("handle_start", &(1_000_000_000u64).to_le_bytes());
        put("handle_end", &(1_000_000_000 + (word >> 40)).to_le_bytes());
    }
    let clocks = ClockTable::default();
    let stamps = Stamps::new(&clocks, 1, TimeNamespace::SAME);
    let head = FramesHead::default();
    let chunk = Chunk { stamps: &stamps, offset: Some(0), head: &head, pid: 1 };

    let n = NumberAt::<u64>::new(offset("n"));
    let (by_hand, _) =
        measured(&bytes, |_, frame| n.get(frame).is_some_and(|number| number > 8_000_000));
    println!("{by_hand:7.2} ns a frame  by hand: n > 8000000");
    for text in [
        "n > 8000000",
        "size = 7",
        "load > 1.5",
        "what = 'LOGIN'",
        "handle > 8ms",
        "name = 'worker'",
        "name LIKE 'work%'",
        "n BETWEEN 1000 AND 8000000 AND what IN ('LOGIN', 'LOGOUT') AND NOT handle > 8ms",
    ] {
        let kind = FrameKind { buffer: "bench", schema: &schema, frame };
        let program = Predicate::parse(text).unwrap().compile(&[kind]).unwrap().remove(0).unwrap();
        let (time, found) = measured(&bytes, |seqno, bytes| {
            program.matches(&PredicateRow { chunk: &chunk, seqno, bytes }) == Some(true)
        });
        println!("{time:7.2} ns a frame  {text} ({found} of {FRAMES})");
    }
}
