//! Expressions over frames with known values.

use ppt_capture::{ClockId, ClockReading, ClockTable, FramesHead, Stamps, TimeNamespace};
use ppt_frame_dsl::Schema;
use ppt_predicate::{Chunk, FrameKind, MAX_BYTES, MAX_DEPTH, Predicate, PredicateRow, Problem};

const FILE: &str = r#"
option time ns monotonic;
enum What : i8 { TIMEOUT = -1, UPDATE = 0, AGAIN = 0, LOGIN = 2 }
frame job {
    u64 big; i32 small; f32 single; f64 real; bool yes; What what; char name[8]; bytes raw[2];
    u8 pos[2]; u32 took @unit("ns"); u32 slow @unit("us"); u32 len @unit("B");
    duration wait; interval time handle; time when @at; int "#;

/// A frame with these fields set, all others 0.
struct Bench {
    schema: Schema,
    bytes: Vec<u8>,
}

fn bench() -> Bench {
    let file = format!("{} end; }}", FILE.trim_end());
    let schema = ppt_frame_dsl::compile(file.as_bytes(), "b.frame").unwrap().schema;
    let bytes = vec![0; schema.stride as usize];
    Bench { schema, bytes }
}

impl Bench {
    fn with(mut self, name: &str, value: &[u8]) -> Bench {
        let field = self.schema.frames[0].fields.iter().find(|field| field.name == name).unwrap();
        self.bytes[field.offset as usize..][..value.len()].copy_from_slice(value);
        self
    }

    fn ask(&self, text: &str) -> Option<bool> {
        let kind = FrameKind { buffer: "b", schema: &self.schema, frame: &self.schema.frames[0] };
        let programs = Predicate::parse(text).and_then(|predicate| predicate.compile(&[kind]));
        let programs =
            programs.unwrap_or_else(|error| panic!("{error}\n{}", error.draw("where", false)));
        let mut clocks = ClockTable::default();
        clocks.add(&[ClockReading::exact(
            ClockId::Monotonic,
            0,
            ClockId::Realtime,
            1_000_000_000_000_000_000,
        )]);
        let stamps = Stamps::new(&clocks, 1, TimeNamespace::SAME);
        let head = FramesHead { ring: 3, tid: 0, drained_mono_ns: 5, ..FramesHead::default() };
        let offset = clocks.epoch_offset();
        let chunk = Chunk { stamps: &stamps, offset, head: &head, pid: 77 };
        programs[0].as_ref().unwrap().matches(&PredicateRow {
            chunk: &chunk,
            seqno: 12,
            bytes: &self.bytes,
        })
    }

    fn fails(&self, text: &str) -> Problem {
        let kind = FrameKind { buffer: "b", schema: &self.schema, frame: &self.schema.frames[0] };
        let result = Predicate::parse(text).and_then(|predicate| predicate.compile(&[kind]));
        match result {
            Ok(_) => panic!("{text} is taken"),
            Err(error) => error.problem,
        }
    }
}

#[test]
fn comparisons_of_every_type() {
    let it = bench()
        .with("big", &u64::MAX.to_le_bytes())
        .with("small", &(-5i32).to_le_bytes())
        .with("single", &0.1f32.to_le_bytes())
        .with("real", &f64::NAN.to_le_bytes())
        .with("yes", &[7])
        .with("what", &[2])
        .with("name", b"it's\0xx")
        .with("raw", &[0, 255])
        .with("pos", &[1, 2])
        .with("took", &3000u32.to_le_bytes())
        .with("len", &4096u32.to_le_bytes())
        .with("wait", &(-1_000_000i64).to_le_bytes())
        .with("handle_start", &1_000u64.to_le_bytes())
        .with("handle_end", &10_001_000u64.to_le_bytes());
    for text in [
        "big = 18446744073709551615",
        "big > 9223372036854775807 AND big <> -1",
        "-5 = small",
        "small < 0 AND NOT small >= 0 and small in (1, -5, 9) and small not in (1, 2)",
        "small between -5 and -5 and small NOT BETWEEN -4 AND 9 AND small BETWEEN -6.5 AND -4.5",
        "small < big AND pos_0 < pos_1 AND pos_0 <> pos_1",
        "single > 0.1 AND single < 0.2",
        "real > 1e300",
        "yes AND yes = true AND yes <> FALSE AND NOT NOT yes",
        "what = 'LOGIN' AND what <> 'UPDATE' AND what IN ('LOGIN', '7') AND what LIKE 'LOG%'",
        "what > 'AAA' AND what BETWEEN 'LOGA' AND 'LOGZ'",
        "name = 'it''s' AND name LIKE '%t_s' AND name NOT LIKE 'T%' AND name <> what",
        "name LIKE 'it\\''s' ESCAPE '\\' OR true",
        "raw = X'00ff' AND raw > x'00' AND raw IN (X'00ff')",
        "took = 3us AND took < 1ms AND len = 4KiB AND len < 1MB",
        "wait = -1ms AND wait < 0 AND wait < took",
        "handle = 10ms AND handle BETWEEN 9.999ms AND 0.01s AND handle < 10000001",
        "job.handle > 1ms AND b.job.handle > 1ms AND \"job\".\"handle\" > 1ms",
        "\"end\" = 0 AND end = 0",
        "seqno = 12 AND ring = 3 AND pid = 77 AND tid IS NULL",
        "drained = '2001-09-09T01:46:40.000000005Z' AND ts IS NULL",
        "handle_start > '2001-09-09 01:46:40' AND handle_start < handle_end",
        "(((small = -5)))",
    ] {
        assert_eq!(it.ask(text), Some(true), "{text}");
    }
}

#[test]
fn each_operator_is_its_own() {
    for value in [4i32, 5, 6] {
        let it = bench().with("small", &value.to_le_bytes());
        for (operator, expected) in [
            ("=", value == 5),
            ("<>", value != 5),
            ("!=", value != 5),
            ("<", value < 5),
            ("<=", value <= 5),
            (">", value > 5),
            (">=", value >= 5),
        ] {
            let mirrored = operator.replace('<', "}").replace('>', "<").replace('}', ">");
            let mirrored = if operator == "<>" { operator.to_owned() } else { mirrored };
            for text in [
                format!("small {operator} 5"),
                format!("small{operator}5"),
                format!("5 {mirrored} small"),
                format!("small {operator} 5.0"),
                format!("NOT (NOT small {operator} 5)"),
            ] {
                assert_eq!(it.ask(&text), Some(expected), "{text} of {value}");
            }
        }
    }
}

#[test]
fn null_is_neither_true_nor_false() {
    let it = bench();
    for (text, expected) in [
        ("when > '2020-01-01 00:00:00'", None),
        ("NOT when > '2020-01-01 00:00:00'", None),
        ("handle IN (1, 2)", None),
        ("handle NOT IN (1, 2)", None),
        ("handle BETWEEN 1 AND 2", None),
        ("handle = wait", None),
        ("handle > 1 OR small = 0", Some(true)),
        ("handle > 1 OR small = 1", None),
        ("handle > 1 AND small = 0", None),
        ("handle > 1 AND small = 1", Some(false)),
        ("small = 1 AND handle > 1", Some(false)),
        ("handle IS NULL AND small IS NOT NULL AND name IS NOT NULL", Some(true)),
        ("name = ''", Some(true)),
    ] {
        assert_eq!(it.ask(text), expected, "{text}");
    }
}

#[test]
fn values_of_enums_without_a_name_are_their_numbers() {
    let it = bench().with("what", &[100]);
    for (text, expected) in [
        ("what = '100'", true),
        ("what <> '100'", false),
        ("what NOT IN ('LOGIN')", true),
        ("what LIKE '1%'", true),
        ("what NOT LIKE '1__'", false),
        ("what < '2'", true),
        ("what <= '1'", false),
    ] {
        assert_eq!(it.ask(text), Some(expected), "{text}");
    }
}

#[test]
fn types_that_do_not_fit_are_refused() {
    let it = bench();
    for text in [
        "small = 'x'",
        "small > 10ms",
        "slow > 10ms",
        "wait > 4KiB",
        "took > 4KiB",
        "yes = 1",
        "what = 2",
        "name = 1",
        "name = X'00'",
        "raw = 'x'",
        "when > 10",
        "when > 10ms",
        "name = small",
        "when = wait",
    ] {
        let problem = it.fails(text);
        assert!(matches!(problem, Problem::Mismatch { .. }), "{text}: {problem}");
    }
    assert!(matches!(it.fails("when > 'now'"), Problem::NoTime { .. }));
    assert!(matches!(it.fails("small LIKE 'x'"), Problem::NoText { .. }));
    assert!(matches!(it.fails("small"), Problem::NoCondition { .. }));
    assert!(matches!(it.fails("small = NULL"), Problem::Null));
    assert!(matches!(it.fails("1 = 1"), Problem::Constant));
    assert!(matches!(it.fails("what = 'LOGN'"), Problem::NoValue { .. }));
    assert!(matches!(it.fails("what = 'AGAIN'"), Problem::NoValue { .. }), "shown as UPDATE");
    assert!(matches!(it.fails("name LIKE 'x' ESCAPE '!'"), Problem::Escape));
    assert!(matches!(it.fails("Small = 1"), Problem::NoField { .. }), "names are exact");
    assert!(matches!(it.fails("jib.small = 1"), Problem::NoKind { .. }));
}

#[test]
fn depth_and_length_are_bounded() {
    let it = bench();
    let nested = |depth: usize| format!("{}small = 0{}", "(".repeat(depth), ")".repeat(depth));
    assert_eq!(it.ask(&nested(MAX_DEPTH)), Some(true));
    assert!(matches!(it.fails(&nested(MAX_DEPTH + 1)), Problem::TooDeep { .. }));
    assert!(matches!(it.fails(&"(".repeat(MAX_BYTES)), Problem::TooDeep { .. }));
    assert_eq!(it.ask(&format!("{} small = 0", "NOT ".repeat(4000))), Some(true));
    let many = vec!["small = 0"; 1100].join(" AND ");
    assert_eq!(it.ask(&many), Some(true));
    let long = format!("small = 0{}", " ".repeat(MAX_BYTES));
    assert!(matches!(it.fails(&long), Problem::TooLong { .. }));
}

/// Frames of one buffer with these fields.
fn schema(frames: &str) -> Schema {
    ppt_frame_dsl::compile(frames.as_bytes(), "b.frame").unwrap().schema
}

fn fits(schema: &Schema, text: &str) -> Result<Vec<bool>, Problem> {
    let kinds = schema.frames.iter().map(|frame| FrameKind { buffer: "b", schema, frame });
    let programs = Predicate::parse(text).unwrap().compile(&kinds.collect::<Vec<_>>());
    programs.map(|all| all.iter().map(Option::is_some).collect()).map_err(|error| error.problem)
}

#[test]
fn kinds_without_a_field_are_left_out() {
    let schema = schema(
        "enum E { A, B } enum F { B, C }
         frame one { int a; int b; E e; } frame two { int a; int c; F e; }",
    );
    assert_eq!(fits(&schema, "a > 1"), Ok(vec![true, true]));
    assert_eq!(fits(&schema, "b > 1"), Ok(vec![true, false]));
    assert_eq!(fits(&schema, "two.a > 1"), Ok(vec![false, true]));
    assert_eq!(fits(&schema, "b > 1 OR c > 1"), Err(Problem::NoSingleKind));
    assert_eq!(fits(&schema, "e = 'A'"), Ok(vec![true, true]), "one of them has it");
    let names = |all: &[&str]| all.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    let (field, name) = ("e".to_owned(), "D".to_owned());
    let available = names(&["A", "B", "C"]);
    assert_eq!(fits(&schema, "e <> 'D'"), Err(Problem::NoValue { field, name, available }));
    let standard = ["seqno", "ring", "tid", "pid", "ts", "drained"];
    let available = names(&[&["a", "b", "e"], &standard[..], &["c"]].concat());
    let name = "d".to_owned();
    assert_eq!(fits(&schema, "b > 1 AND d > 1"), Err(Problem::NoField { name, available }));
    let (name, available) = ("tow".to_owned(), names(&["one", "two"]));
    assert_eq!(fits(&schema, "tow.a > 1"), Err(Problem::NoKind { name, available }));
}

#[test]
fn a_field_keeps_its_name_from_standard_columns() {
    let schema = schema("frame f { int ts; int Drained; }");
    assert_eq!(fits(&schema, "ts = 1 AND ppt_ts IS NULL AND ppt_drained IS NULL"), Ok(vec![true]));
    assert!(matches!(fits(&schema, "drained IS NULL"), Err(Problem::NoField { .. })));
}
