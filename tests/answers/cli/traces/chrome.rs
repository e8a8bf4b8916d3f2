//! Chrome's JSON, which the test reads itself.

use std::collections::BTreeSet;
use std::fs;

use ppt_capture::FileHeader;
use serde_json::Value;

use super::{
    BEGAN, Captures, Event, all, check_nesting, check_slices, check_values, expected_missing,
    missing,
};
use crate::support::{Bench, capture, head};

impl Captures {
    /// The events of Chrome's JSON: times in ns since the epoch.
    pub(super) fn chrome(&self) -> Vec<Event> {
        let text = fs::read_to_string(self.export("chrome")).unwrap();
        let whole: Value = serde_json::from_str(&text).unwrap();
        let origin = whole["otherData"]["origin_ns_since_the_epoch"].as_str().unwrap();
        let origin: i64 = origin.parse().unwrap();
        let all = whole["traceEvents"].as_array().unwrap();
        // An event is a line: numbers there are exact.
        let lines = text.lines().filter(|line| line.starts_with("{\"ph\""));
        let lines: Vec<_> = lines.collect();
        assert_eq!(lines.len(), all.len());
        let mut named = BTreeSet::new();
        let mut events = Vec::new();
        for (line, event) in lines.into_iter().zip(all) {
            let ns = |key: &str| {
                let (_, rest) = line.split_once(&format!("\"{key}\":"))?;
                let digits: String =
                    rest.chars().take_while(|c| c.is_ascii_digit() || *c == '.').collect();
                digits.replace('.', "").parse::<i64>().ok()
            };
            let track = format!("{} {}", event["pid"], event["tid"]);
            match event["ph"].as_str().unwrap() {
                "M" => assert!(
                    event["name"] == "process_name" || named.insert(track),
                    "named twice: {event}"
                ),
                phase @ ("X" | "i") => {
                    assert!(named.contains(&track), "not named: {event}");
                    events.push(Event {
                        name: event["name"].as_str().unwrap().to_owned(),
                        cat: event["cat"].as_str().unwrap().to_owned(),
                        ts: origin + ns("ts").unwrap(),
                        dur: (phase == "X").then(|| ns("dur").unwrap()),
                        args: event["args"].as_object().unwrap().clone(),
                        track,
                        flows: Vec::new(),
                    });
                }
                other => panic!("{other}: {event}"),
            }
        }
        events
    }
}

#[test]
fn every_frame_is_in_chromes_json_once() {
    let mut slices = 0;
    for captures in all() {
        let events = captures.chrome();
        check_slices(&captures, &events);
        check_nesting(&events);
        check_values(&captures, &events, true);
        assert_eq!(missing(&events), expected_missing(&captures));
        slices += events.iter().filter(|event| event.dur.is_some()).count();
    }
    assert!(slices > 10, "{slices}");
}

/// Few frames have a second interval; the last of these begins before all others. So all rows with it
/// wait until the end, but the other rows do not.
#[test]
fn rows_that_wait_take_no_more_than_the_memory() {
    const FRAMES: u64 = 160_000;
    let text = "emit C; buffer w; option time ns realtime;\n\
                frame w { interval time a; interval time b; char name[1000]; }";
    let schema = ppt_frame_dsl::compile(text.as_bytes(), "w.frame").unwrap().schema;
    let begin = BEGAN as u64;
    let offset = |name: &str| {
        let field = schema.frames[0].fields.iter().find(|field| field.name == name).unwrap();
        field.offset as usize
    };
    let times = ["a_start", "a_end", "b_start", "b_end"].map(offset);
    let name = offset("name");
    let runs = (0..FRAMES).step_by(1000).map(|first| {
        let mut frames = Vec::new();
        for n in first..first + 1000 {
            let from = begin + 1 + n * 1000;
            // An interval that ends before it begins is left out.
            let b = match n {
                n if n == FRAMES - 1 => [begin, begin + 9],
                n if n % 2000 == 0 => [from, from + 7],
                _ => [from, from - 1],
            };
            let mut bytes = vec![0; schema.stride as usize];
            bytes[..8].copy_from_slice(&(n + 1).to_le_bytes());
            for (at, value) in times.into_iter().zip([from, from + 5, b[0], b[1]]) {
                bytes[at..][..8].copy_from_slice(&value.to_le_bytes());
            }
            bytes[name..][..1000].fill(b'a' + (n % 26) as u8);
            frames.extend(bytes);
        }
        (head(first + 1, 9), frames)
    });
    let runs: Vec<_> = runs.collect();
    let header = FileHeader { created_realtime_ns: begin, ..FileHeader::default() };
    let bench = Bench::empty();
    bench.write("out.bin", capture(&header, &schema, &runs));
    let export =
        |memory| bench.done(&["export", "out.bin", "--format", "chrome", "--memory", memory]);
    let (small, large) = (export("256M"), export("2G"));
    assert!(small == large, "the same trace");
    let slices = small.matches("\"ph\":\"X\"").count() as u64;
    assert_eq!(slices, FRAMES + FRAMES / 2000 + 1);
}
