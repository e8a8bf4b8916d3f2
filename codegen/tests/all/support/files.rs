//! Random frame files that are free of mistakes.

use std::fmt::Write;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

/// The types of a field, an enum of each width among them; `T` is an array where a length follows.
const TYPES: [&str; 27] = [
    "int", "float", "double", "time", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f32",
    "f64", "bool", "duration", "addr", "char", "bytes", "E0", "E1", "E2", "E3", "E4", "E5", "E6",
    "E7",
];
const ENUMS: [&str; 8] = ["i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"];
/// The types of a key.
const KEYS: [&str; 12] =
    ["int", "i8", "u16", "u32", "i64", "u64", "bool", "char[7]", "bytes[3]", "E1", "E4", "E7"];
const TIMES: [&str; 5] = ["timeval", "timespec monotonic", "ns realtime", "ns boottime", "tsc"];

/// The inputs and outputs of a point. The programs compute no hashes.
const SIDES: [&str; 4] = [
    "hash id @raw @in(a);",
    "hash128 id @raw @in(wide) @out(wider);",
    "hash id @raw @out(a), more @raw @out(b); hash128 trace @raw @in(wide);",
    "hash128 id @raw @out(wide);",
];

/// Counters and histograms: the keyword, and the text after the name.
const METRICS: [(&str, &str); 5] = [
    ("counter", ""),
    ("counter", ": i64"),
    ("histogram", ": duration"),
    ("histogram", ": u32 (0, 1024, 64)"),
    ("histogram", ": u32 (10, 20, 3)"),
];

/// A frame file without its number.
#[derive(Debug, Clone)]
pub struct FrameFile {
    time: &'static str,
    frames: Vec<OneFrame>,
    metrics: Vec<(&'static str, &'static str)>,
}

/// A frame of a file.
#[derive(Debug, Clone)]
struct OneFrame {
    kind: FrameRole,
    /// Each field: its type, its elements, and the half of a span that has it.
    fields: Vec<(&'static str, Option<u32>, &'static str)>,
}

#[derive(Debug, Clone)]
enum FrameRole {
    Plain,
    /// The arguments of `@span`, the type of the key, and whether the program sets the time.
    Span(&'static str, &'static str, bool),
    /// The arguments of `@chain`, the type of the key, and whether the program sets the time.
    Chain(&'static str, &'static str, bool),
    /// The fields that identify the data of a point, and whether the program sets the time.
    Point(&'static str, bool),
}

pub fn frame_file() -> impl Strategy<Value = FrameFile> {
    let length = prop_oneof![3 => 1u32..10, 1 => 10u32..90];
    let field = (select(&TYPES[..]), prop::option::weighted(0.4, length));
    let half = prop_oneof![3 => Just(""), 1 => Just(" @begin"), 1 => Just(" @end")];
    let field = (field, half).prop_map(|((ty, length), half)| match ty {
        "char" | "bytes" => (ty, length.or(Some(5)), half),
        _ => (ty, length, half),
    });
    let span = (select(&["", "(host)", "(process, fifo)"][..]), select(&KEYS[..]), any::<bool>());
    let span = span.prop_map(|(said, key, at)| FrameRole::Span(said, key, at));
    let chain =
        (select(&["(a, b)", "(first, second, third)"][..]), select(&KEYS[..]), any::<bool>());
    let chain = chain.prop_map(|(said, key, at)| FrameRole::Chain(said, key, at));
    let point = (select(&SIDES[..]), any::<bool>());
    let point = point.prop_map(|(sides, at)| FrameRole::Point(sides, at));
    let kind = prop_oneof![2 => Just(FrameRole::Plain), 1 => span, 1 => chain, 1 => point];
    let frame = (kind, vec(field, 1..14)).prop_map(|(kind, fields)| OneFrame { kind, fields });
    let metrics = vec(select(&METRICS[..]), 0..5);
    (select(&TIMES[..]), vec(frame, 1..5), metrics).prop_map(|(time, frames, metrics)| FrameFile {
        time,
        frames,
        metrics,
    })
}

impl FrameFile {
    /// The text, with its number in every name that C will see.
    pub fn text(&self, number: usize) -> String {
        let mut text = format!("buffer b{number};\noption time {};\n", self.time);
        for (index, word) in ENUMS.iter().enumerate() {
            writeln!(text, "enum E{index} : {word} {{ A, B }}").unwrap();
        }
        for (index, (word, ty)) in self.metrics.iter().enumerate() {
            writeln!(text, "{word} b{number}_m{index} {ty};").unwrap();
        }
        for (index, OneFrame { kind, fields }) in self.frames.iter().enumerate() {
            match kind {
                FrameRole::Plain => writeln!(text, "frame b{number}_{index} {{").unwrap(),
                FrameRole::Point(sides, at) => {
                    let at = if *at { "time stamp @at;" } else { "" };
                    writeln!(text, "frame b{number}_{index} @point {{ {sides} {at}").unwrap();
                }
                FrameRole::Span(said, key, at) | FrameRole::Chain(said, key, at) => {
                    let word = if matches!(kind, FrameRole::Span(..)) { "span" } else { "chain" };
                    let (ty, length) = key.split_at(key.find('[').unwrap_or(key.len()));
                    let at = if *at { "time stamp @at;" } else { "" };
                    writeln!(
                        text,
                        "frame b{number}_{index} @{word}{said} {{ {ty} of{length} @key; {at}"
                    )
                    .unwrap();
                }
            }
            let is_span = matches!(kind, FrameRole::Span(..));
            for (index, (ty, length, half)) in fields.iter().enumerate() {
                let half = if is_span { half } else { "" };
                let length = length.map_or(String::new(), |length| format!("[{length}]"));
                writeln!(text, "    {ty} f{index}{length}{half};").unwrap();
            }
            text.push_str("}\n");
        }
        text
    }
}
