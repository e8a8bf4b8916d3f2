//! Frames of several sources, as they arrive.

use ppt_capture::{ClockId, ClockReading, FramesHead, Source};
use ppt_frame_dsl::Schema;
use ppt_predicate::{Predicate, Problem, Sieve};

fn schema(buffer: &str, text: &str) -> Schema {
    let text = format!("buffer {buffer}; option time tsc; {text}");
    ppt_frame_dsl::compile(text.as_bytes(), "b.frame").unwrap().schema
}

fn source(schema: &Schema) -> Source {
    Source {
        schema_json: schema.to_json().into_bytes(),
        schema_hash: schema.hash(),
        buffer: schema.buffer.clone(),
        ..Source::default()
    }
}

fn sieve(text: &str) -> Sieve {
    Sieve::new(Predicate::parse(text).unwrap())
}

/// A frame with these fields set.
fn frame(schema: &Schema, id: u16, fields: &[(&str, u64)]) -> Vec<u8> {
    let mut bytes = vec![0; schema.stride as usize];
    if schema.multi() {
        bytes[8..10].copy_from_slice(&id.to_le_bytes());
    }
    for (name, value) in fields {
        let all = &schema.frames[usize::from(id)].fields;
        let field = all.iter().find(|field| field.name == *name).unwrap();
        bytes[field.offset as usize..][..8].copy_from_slice(&value.to_le_bytes());
    }
    bytes
}

fn wants(sieve: &Sieve, number: usize, schema: &Schema, frames: &[Vec<u8>]) -> Vec<bool> {
    let head = FramesHead { first_seq: 1, stride: schema.stride, ..FramesHead::default() };
    let mut wanted = Vec::new();
    sieve.wants(number, &head, &frames.concat(), &mut wanted);
    wanted
}

#[test]
fn of_two_buffers_the_one_without_the_field_is_left_out() {
    let one = schema("one", "frame job { u64 n; } frame idle { u64 m; }");
    let two = schema("two", "frame other { u64 m; }");
    let mut sieve = sieve("n > 5 AND seqno > 1");
    sieve.introduce(&[(3, &source(&two)), (7, &source(&one))]).unwrap();
    let n = |n| frame(&one, 0, &[("n", n)]);
    let unknown = frame(&one, 0, &[]).into_iter().enumerate();
    let unknown = unknown.map(|(at, byte)| if at == 8 { 9 } else { byte }).collect();
    let frames = [n(6), n(6), n(5), frame(&one, 1, &[]), unknown];
    assert_eq!(wants(&sieve, 7, &one, &frames), [false, true, false, false, true]);
    assert_eq!(wants(&sieve, 3, &two, &[frame(&two, 0, &[("m", 9)])]), [false]);
    // Another process with the same buffer, and one that was never introduced.
    sieve.introduce(&[(8, &source(&two))]).unwrap();
    assert_eq!(wants(&sieve, 8, &two, &[frame(&two, 0, &[("m", 9)])]), [false]);
    assert_eq!(wants(&sieve, 9, &two, &[frame(&two, 0, &[("m", 9)])]), [true]);
}

#[test]
fn where_the_expression_does_not_fit_all_frames_pass() {
    let (one, two) = (schema("one", "frame a { u64 m; }"), schema("two", "frame b { u64 n; }"));
    let text = schema("text", "frame c { char n[8]; }");
    let mut sieve = sieve("n = 1");
    let error = sieve.introduce(&[(0, &source(&one))]).unwrap_err();
    assert!(matches!(error.problem, Problem::NoField { .. }), "{error}");
    assert_eq!(wants(&sieve, 0, &one, &[frame(&one, 0, &[])]), [true]);
    sieve.introduce(&[(1, &source(&two))]).unwrap();
    let frames = [0, 1].map(|n| frame(&two, 0, &[("n", n)]));
    assert_eq!(wants(&sieve, 1, &two, &frames), [false, true]);
    let error = sieve.introduce(&[(2, &source(&text))]).unwrap_err();
    assert!(matches!(error.problem, Problem::Mismatch { .. }), "{error}");
    assert_eq!(wants(&sieve, 2, &text, &[frame(&text, 0, &[])]), [true]);
    assert_eq!(wants(&sieve, 1, &two, &frames), [false, true], "as before");
    sieve.introduce(&[(3, &source(&two))]).unwrap();
    assert_eq!(wants(&sieve, 3, &two, &frames), [false, true], "that one did not spoil it");
    let other = schema("other", "frame d { u16 n; }");
    sieve.introduce(&[(4, &source(&other))]).unwrap();
    let frames = [0, 1].map(|n| frame(&other, 0, &[("n", n)]));
    assert_eq!(wants(&sieve, 4, &other, &frames), [false, true]);
}

#[test]
fn two_readings_make_lengths_of_ticks() {
    let schema = schema("one", "frame a { interval time handle; }");
    let mut sieve = sieve("handle > 10us");
    sieve.introduce(&[(0, &source(&schema))]).unwrap();
    let reading = |a, a_value, b, b_value| ClockReading {
        a,
        a_before: a_value,
        b,
        b_value,
        a_after: a_value,
        distrusted: false,
    };
    sieve.clocks(&[
        reading(ClockId::Monotonic, 1_000, ClockId::Realtime, 5_000_000),
        reading(ClockId::Tick, 3_000, ClockId::Monotonic, 1_000),
    ]);
    sieve.clocks(&[reading(ClockId::Tick, 3_003_000, ClockId::Monotonic, 1_001_000)]);
    // Three ticks a nanosecond.
    let length = |ticks: u64| {
        frame(&schema, 0, &[("handle_start", 9_000_000), ("handle_end", 9_000_000 + ticks)])
    };
    let frames = [length(30_000), length(30_003), frame(&schema, 0, &[("handle_end", 9_000_000)])];
    assert_eq!(wants(&sieve, 0, &schema, &frames), [false, true, false]);
}
