//! What `ppt dump --where` selects is what SQL selects: random schemas, frames with the values at the
//! edges of their types, and random expressions. DataFusion decides.

use std::path::Path;

use ppt_capture::frame_dsl::schema::{Frame, Int, Schema};
use ppt_capture::frame_dsl::{ColumnType, Measure, Style, columns};
use ppt_capture::{
    CaptureWriter, ClockId, ClockReading, End, EndReason, FileHeader, FramesHead, Process, Segment,
    Source,
};
use ppt_dump::{DumpError, DumpRequest as DumpOptions, Predicate, dump, dump_stream};
use ppt_query::Engine;
use ppt_query::summary::SummaryRequest;
use proptest::prelude::*;

use crate::random::Dice;
use crate::support::{self, Files, Row, rows, runtime, with_pushdown};

const SECOND: u64 = 1_000_000_000;
const REAL: u64 = 1_700_000_000 * SECOND;
const MONO: u64 = 5_000 * SECOND;
const BOOT: u64 = 9_000 * SECOND;
const TICK: u64 = 77_000_000;

/// Names that are keywords of SQL.
const NAMES: [&str; 12] = [
    "end", "order", "select", "case", "interval", "User", "user", "date", "exists", "cast", "ts",
    "a",
];

/// A frame file with fields of any type.
fn file(dice: &mut Dice) -> String {
    let types = [
        "i8",
        "i16",
        "i32",
        "i64",
        "u8",
        "u16",
        "u32",
        "u64",
        "f32",
        "f64",
        "bool",
        "duration",
        "Small",
        "Wide",
        "time @clock(tsc)",
        "time @clock(realtime)",
        "time @clock(monotonic)",
        "time @clock(boottime)",
        "time @clock(thread_cpu)",
        "char",
        "bytes",
    ];
    let mut names = NAMES.to_vec();
    let mut fields = String::new();
    for n in 0..1 + dice.below(9) {
        let odd =
            dice.chance(4).then(|| names.swap_remove(dice.below(names.len() as u64) as usize));
        let name = odd.map_or_else(|| format!("f{n}"), str::to_owned);
        let ty = types[dice.below(types.len() as u64) as usize];
        let (ty, clock) = ty.split_once(' ').unwrap_or((ty, ""));
        let interval = if dice.chance(3) && odd.is_none() { "interval " } else { "" };
        fields += &match ty {
            "char" | "bytes" => format!("{ty} {name}[5];"),
            _ if interval.is_empty() && dice.chance(6) => format!("{ty} {name}[2] {clock};"),
            _ => format!("{interval}{ty} {name} {clock};"),
        };
    }
    let other = if dice.chance(2) { "frame other { u8 f0; }" } else { "" };
    format!(
        "option time ns realtime;
         enum Small : i8 {{ TIMEOUT = -1, UPDATE = 0, LOGIN = 2, It_S = 9 }}
         enum Wide : u64 {{ ZERO = 0, MOST = 18446744073709551615 }}
         frame job {{ {fields} }} {other}"
    )
}

/// A value of a column: any, or one at the edge of its type, or of what the others have.
fn value(dice: &mut Dice, ty: ColumnType) -> Vec<u8> {
    let since = dice.below(3) * SECOND + dice.below(2);
    let integer = |dice: &mut Dice, int: Int| {
        let (least, most) = int.range();
        let all = [least, least + 1, most, most - 1, 0, 1, 2, 5];
        let value = match dice.below(10) {
            number @ 0..8 => all[number as usize],
            _ => i128::from(dice.word()),
        };
        value.to_le_bytes()[..int.size() as usize].to_vec()
    };
    match ty {
        ColumnType::Int(int) => integer(dice, int),
        ColumnType::Addr => integer(dice, Int::U64),
        ColumnType::Enum { repr, .. } if dice.chance(5) => integer(dice, repr),
        ColumnType::Enum { repr, .. } => {
            let value = [0i128, 2, -1, 9, u64::MAX.into()][dice.below(5) as usize];
            value.to_le_bytes()[..repr.size() as usize].to_vec()
        }
        ColumnType::F32 => {
            let all = [
                0.0,
                -0.0,
                1.0,
                1.5,
                0.1,
                f32::NAN,
                -f32::NAN,
                f32::INFINITY,
                f32::MIN,
                16_777_216.0,
            ];
            all[dice.below(10) as usize].to_le_bytes().to_vec()
        }
        ColumnType::F64 => {
            let all =
                [0.0, -0.0, 1.0, 1.5, 0.1, f64::NAN, -f64::NAN, f64::NEG_INFINITY, f64::MAX, 9e15];
            all[dice.below(10) as usize].to_le_bytes().to_vec()
        }
        ColumnType::Bool => vec![[0, 1, 7][dice.below(3) as usize]],
        ColumnType::Duration => {
            let all = [0, 1, -1, 1_000_000, 10_000_000, i64::MAX, i64::MIN];
            all[dice.below(7) as usize].to_le_bytes().to_vec()
        }
        ColumnType::Time(time) => {
            let word = match (dice.below(8), time.clock()) {
                (0, _) => 0,
                (1, _) => dice.word(),
                (_, None) if dice.chance(3) => (MONO + since) | 1 << 63,
                (_, None) => TICK + 3 * since,
                (_, Some(clock)) => {
                    since
                        + match clock.word() {
                            "realtime" => REAL,
                            "monotonic" => MONO,
                            "boottime" => BOOT,
                            _ => 1,
                        }
                }
            };
            word.to_le_bytes().to_vec()
        }
        ColumnType::Text { len } => {
            let all: [&[u8]; 7] =
                [b"", b"a", b"it's", b"a%_b", b"\\a\\\0x", b"\xff\xfe\xc3\xa9", b"ab\ncd"];
            let mut text = all[dice.below(7) as usize].to_vec();
            text.resize(len as usize, 0);
            text
        }
        ColumnType::Bytes { len } => {
            (0..len).map(|_| [0, 255, 7][dice.below(3) as usize]).collect()
        }
        ColumnType::Length { .. }
        | ColumnType::TimevalSeconds
        | ColumnType::TimevalMicroseconds => Vec::new(),
    }
}

fn frame(dice: &mut Dice, schema: &Schema, seq: u64) -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..schema.stride).map(|_| dice.word() as u8).collect();
    bytes[..8].copy_from_slice(&seq.to_le_bytes());
    let id = dice.below(schema.frames.len() as u64 * 4).min(schema.frames.len() as u64 * 3)
        % schema.frames.len() as u64;
    if schema.multi() {
        bytes[8..10].copy_from_slice(&(id as u16).to_le_bytes());
    }
    for column in columns(schema, &schema.frames[id as usize], Style::Sql) {
        let value = value(dice, column.ty);
        bytes[column.offset as usize..][..value.len()].copy_from_slice(&value);
    }
    bytes
}

/// A capture of one source with frames of this schema, drained now and then.
fn capture(dice: &mut Dice, schema: &Schema) -> Vec<u8> {
    let header = FileHeader {
        capture_id: [7; 16],
        host: "host".to_owned(),
        created_realtime_ns: REAL,
        created_mono_ns: MONO,
        ..FileHeader::default()
    };
    let mut writer = CaptureWriter::create(Vec::new(), &header).unwrap();
    let reading = |a, a_value, b, b_value| ClockReading {
        a,
        a_before: a_value,
        b,
        b_value,
        a_after: a_value,
        distrusted: false,
    };
    for second in [0, 5] {
        let mono = MONO + second * SECOND;
        let real = REAL + second * SECOND;
        let mut all = vec![reading(ClockId::Monotonic, mono, ClockId::Realtime, real)];
        all.push(reading(ClockId::Tick, TICK + 3 * second * SECOND, ClockId::Monotonic, mono));
        all.push(reading(ClockId::Monotonic, mono, ClockId::Boottime, BOOT + second * SECOND));
        writer.clock(&all).unwrap();
    }
    let stride = schema.stride;
    let source = Source {
        schema_json: schema.to_json().into_bytes(),
        schema_hash: schema.hash(),
        buffer: schema.buffer.clone(),
        process: Process { pid: 41, start_time: 1, exe: "/bin/x".to_owned(), ..Process::default() },
        segments: vec![Segment { nonce: 9, rings: 2, slots: 16, stride }],
        clock: "tick".to_owned(),
        ..Source::default()
    };
    writer.source(0, &source).unwrap();
    let mut next = [1, 1];
    for _ in 0..6 {
        let ring = dice.below(2) as usize;
        let count = 1 + dice.below(8);
        let first = next[ring];
        let frames: Vec<Vec<u8>> = (0..count).map(|n| frame(dice, schema, first + n)).collect();
        let head = FramesHead {
            source: 0,
            nonce: 9,
            ring: ring as u32,
            tid: [0, 100, 101][dice.below(3) as usize],
            first_seq: first,
            count: count as u32,
            stride,
            drained_mono_ns: [0, MONO + SECOND, MONO + 2 * SECOND][dice.below(3) as usize],
            drained_by_mono_ns: [0, MONO, MONO + 3 * SECOND][dice.below(3) as usize],
            ..FramesHead::default()
        };
        writer.frames(&head, &frames.concat()).unwrap();
        next[ring] += count;
    }
    let end = End::new(EndReason::Stopped, REAL + 9 * SECOND, MONO + 9 * SECOND);
    writer.end(&end).unwrap()
}

/// A column, with literals that its values may equal.
struct TestQuery {
    name: String,
    ty: ColumnType,
    values: Vec<Option<String>>,
}

fn whole(ty: ColumnType) -> bool {
    use ColumnType::{Addr, Int, Length};
    matches!(ty, Int(_) | Addr | Length { of: Measure::Int(_), .. })
}

fn real(ty: ColumnType) -> bool {
    use ColumnType::{F32, F64, Length};
    matches!(ty, F32 | F64 | Length { of: Measure::F32 | Measure::F64, .. })
}

impl TestQuery {
    fn is_time(&self) -> bool {
        let clock = |time: ppt_capture::frame_dsl::TimeType| time.clock();
        matches!(self.ty, ColumnType::Time(time) if clock(time).is_none_or(|clock| !clock.is_cpu()))
    }

    /// A literal of the column's type.
    fn literal(&self, dice: &mut Dice) -> String {
        let values: Vec<&String> = self.values.iter().flatten().collect();
        let any =
            |dice: &mut Dice, all: &[&str]| all[dice.below(all.len() as u64) as usize].to_owned();
        let known = match values.len() {
            0 => None,
            len => Some(values[dice.below(len as u64) as usize].clone()),
        };
        let quoted = |text: &str| format!("'{}'", text.replace('\'', "''"));
        let edges = [
            "0",
            "-1",
            "1",
            "5",
            "127",
            "-128",
            "255",
            "65536",
            "2147483648",
            "-9223372036854775808",
            "9223372036854775807",
            "18446744073709551615",
            "1.5",
            "-0.5",
            "1e3",
            "9.3e18",
            "4KiB",
            "2B",
        ];
        match (self.ty, known) {
            _ if self.is_time() => {
                let mut ns =
                    self.values.iter().flatten().filter_map(|value| value.parse::<u64>().ok());
                let known = ns.next_back().filter(|_| !dice.chance(4)).unwrap_or(REAL + SECOND);
                let known = known + dice.below(3) - 1;
                let time = std::time::UNIX_EPOCH + std::time::Duration::from_nanos(known);
                if dice.chance(3) {
                    quoted(&humantime(time).replace('T', " ").replace('Z', ""))
                } else {
                    quoted(&humantime(time))
                }
            }
            (ColumnType::Text { .. }, Some(known)) if !dice.chance(4) => quoted(&known),
            (ColumnType::Text { .. }, _) => quoted(&any(dice, &["a", "b", "", "it's", "\u{fffd}"])),
            (ColumnType::Enum { .. }, Some(known)) => quoted(&known),
            (ColumnType::Enum { .. }, None) => quoted("0"),
            (ColumnType::Bytes { .. }, Some(known)) if !dice.chance(4) => format!("X'{known}'"),
            (ColumnType::Bytes { .. }, _) => any(dice, &["X'00'", "X'ff07'", "x'0700FF0700'"]),
            (ColumnType::Bool, _) => any(dice, &["true", "FALSE"]),
            (ty, Some(known)) if whole(ty) && !dice.chance(3) => known,
            (ty, _) if whole(ty) => any(dice, &edges),
            (ty, Some(known)) if real(ty) && !dice.chance(3) => {
                let number = known.parse::<f64>().unwrap();
                if number.is_finite() { format!("{number:?}") } else { "1.5".to_owned() }
            }
            (ty, _) if real(ty) => {
                any(dice, &["0", "-0.0", "0.1", "1", "16777217", "1.5", "1e300"])
            }
            (_, Some(known)) if !dice.chance(3) => known,
            _ => any(dice, &["1ms", "-1ns", "10ms", "0.01s", "0", "1", "1.5", "1000000"]),
        }
    }
}

/// Writes a time as frame files and people do.
fn humantime(time: std::time::SystemTime) -> String {
    let ns = time.duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos() as i64;
    ppt_query::text::time(ns)
}

fn name(dice: &mut Dice, name: &str, is_field: bool) -> String {
    let reserved = ["and", "or", "not", "is", "in", "like", "between", "null", "true", "false"];
    match dice.below(5) {
        0 if is_field => format!("job.{name}"),
        1 if is_field => format!("made.\"job\".\"{name}\""),
        2 => format!("\"{name}\""),
        _ if reserved.contains(&name) => format!("\"{name}\""),
        _ => name.to_owned(),
    }
}

fn test(dice: &mut Dice, all: &[TestQuery]) -> String {
    let one = &all[dice.below(all.len() as u64) as usize];
    let of = name(dice, &one.name, true);
    let not = if dice.chance(3) { "NOT " } else { "" };
    let operators = ["=", "<>", "!=", "<", "<=", ">", ">="];
    let operator = operators[dice.below(7) as usize];
    let is_text = matches!(one.ty, ColumnType::Text { .. } | ColumnType::Enum { .. });
    match dice.below(10) {
        0 => format!("{of} IS {not}NULL"),
        1 => format!("{of} {not}BETWEEN {} AND {}", one.literal(dice), one.literal(dice)),
        2 | 3 => {
            let list = (0..1 + dice.below(5)).map(|_| one.literal(dice));
            let mut list: Vec<String> = list.collect();
            // Lists of whole numbers and floats become decimals or floats, by their order.
            let fraction = |text: &String| whole(one.ty) && text.contains(['.', 'e']);
            let first = fraction(&list[0]);
            list.retain(|text| fraction(text) == first);
            format!("{of} {not}IN ({})", list.join(", "))
        }
        4 | 5 if is_text => {
            let pattern = one.literal(dice);
            let pattern = pattern[1..pattern.len() - 1].replace(['a', 'O'], "_");
            let ways = [format!("%{pattern}"), format!("{pattern}%"), pattern.clone()];
            let pattern = &ways[dice.below(3) as usize];
            let escape = if dice.chance(3) { " ESCAPE '\\'" } else { "" };
            format!("{of} {not}LIKE '{pattern}'{escape}")
        }
        6 => {
            let number = |ty| whole(ty) || real(ty) || matches!(ty, ColumnType::Duration);
            let same = all.iter().filter(|query| {
                number(query.ty) && number(one.ty)
                    || query.is_time() && one.is_time()
                    || query.ty == ColumnType::Bool && one.ty == ColumnType::Bool
                    || matches!(
                        (query.ty, one.ty),
                        (
                            ColumnType::Text { .. },
                            ColumnType::Text { .. } | ColumnType::Enum { .. }
                        )
                    )
                    || matches!(
                        (query.ty, one.ty),
                        (ColumnType::Enum { .. }, ColumnType::Text { .. })
                    )
            });
            let same: Vec<&TestQuery> = same.collect();
            match same.len() {
                0 => format!("{of} {operator} {}", one.literal(dice)),
                len => {
                    let other = same[dice.below(len as u64) as usize];
                    let other = name(dice, &other.name, true);
                    format!("{of} {operator} {other}")
                }
            }
        }
        7 if one.ty == ColumnType::Bool => of,
        8 => format!("{} {operator} {of}", one.literal(dice)),
        _ => format!("{of} {operator} {}", one.literal(dice)),
    }
}

fn standard(dice: &mut Dice) -> String {
    let n = dice.below(8);
    let all = [
        format!("seqno > {n}"),
        format!("ring = {}", n % 3),
        format!("tid IN (100, {n})"),
        "tid IS NULL".to_owned(),
        "pid BETWEEN 41 AND 50".to_owned(),
        format!(
            "drained >= '{}'",
            humantime(std::time::UNIX_EPOCH + std::time::Duration::from_nanos(REAL + SECOND))
        ),
        "drained IS NOT NULL".to_owned(),
        "true".to_owned(),
    ];
    all[n as usize].clone()
}

fn expression(dice: &mut Dice, all: &[TestQuery], depth: u32) -> String {
    match dice.below(7) {
        0 | 1 if depth > 0 => {
            let word = if dice.chance(2) { " AND " } else { "\n or " };
            let parts: Vec<String> =
                (0..2 + dice.below(2)).map(|_| expression(dice, all, depth - 1)).collect();
            parts.join(word)
        }
        2 if depth > 0 => format!("NOT ({})", expression(dice, all, depth - 1)),
        3 if depth > 0 => format!("({})", expression(dice, all, depth - 1)),
        4 => format!("not {}", test(dice, all)),
        5 => standard(dice),
        _ => test(dice, all),
    }
}

/// Numbers of the rows that dump selects: ring and sequence number.
fn dumped(path: &Path, text: &str) -> Result<Vec<Row>, DumpError> {
    let matching = Predicate::parse(text)?;
    let options = DumpOptions {
        frame: Some("job".to_owned()),
        matching: Some(matching),
        ..DumpOptions::default()
    };
    let mut out = Vec::new();
    dump(path, &options, &mut out)?;
    let mut streamed = Vec::new();
    dump_stream(std::fs::File::open(path).unwrap(), &options, &mut streamed)?;
    assert_eq!(streamed, out);
    let text = String::from_utf8(out).unwrap();
    let cells = |line: &str| {
        let mut cells = line.split('\t').map(str::to_owned);
        let seqno = cells.next();
        vec![cells.next(), seqno]
    };
    let mut rows: Vec<Row> = text.lines().skip(1).map(cells).collect();
    rows.sort();
    Ok(rows)
}

/// The columns of the frame, with their values.
fn asked(engine: &Engine, schema: &Schema, frame: &Frame) -> Vec<TestQuery> {
    let columns = columns(schema, frame, Style::Sql);
    let quoted: Vec<String> = columns.iter().map(|column| format!("\"{}\"", column.name)).collect();
    let all = rows(engine, &format!("SELECT {} FROM made.job", quoted.join(", ")));
    let of = |(place, column): (usize, &ppt_capture::frame_dsl::Column)| TestQuery {
        name: column.name.clone(),
        ty: column.ty,
        values: all.iter().map(|row| row[place].clone()).collect(),
    };
    columns.iter().enumerate().map(of).collect()
}

/// How many rows `ppt stat --where` counts.
fn counted(engine: &Engine, text: &str) -> u64 {
    let request = SummaryRequest {
        frame: Some("job".to_owned()),
        filter: Some(text.to_owned()),
        ..SummaryRequest::default()
    };
    let answer = runtime().block_on(engine.summary(&request));
    let answer = answer.unwrap_or_else(|error| panic!("{text}: {error}"));
    answer.iter().flat_map(|summary| &summary.groups).map(|group| group.count).sum()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, failure_persistence: None,
        max_shrink_iters: 0, ..ProptestConfig::default() })]

    #[test]
    fn dump_selects_what_sql_selects(seed: u64) {
        let dice = &mut Dice::new(seed);
        let text = file(dice);
        let compiled = ppt_frame_dsl::compile(text.as_bytes(), "made.frame");
        // Two fields may have got names that differ by case, or one of an interval's.
        let Ok(compiled) = compiled else { return Ok(()) };
        let schema = compiled.schema;
        let files = Files::new(&[capture(dice, &schema)]);
        let engine = files.engine(&with_pushdown());
        let all = asked(&engine, &schema, &schema.frames[0]);
        for _ in 0..24 {
            let text = expression(dice, &all, 2);
            let found = dumped(&files.paths[0], &text);
            let found = match found {
                Ok(found) => found,
                Err(DumpError::Predicate(error)) => panic!("{error}\n{}", error.draw(&text, false)),
                Err(error) => panic!("{text}: {error}"),
            };
            let sql = ppt_predicate::to_sql(&text);
            let sql = format!("SELECT ring, seqno FROM made.job WHERE {sql}");
            let expected = support::sorted(&engine, &sql);
            prop_assert_eq!(&found, &expected, "{}\n{}\n{:?}", text, sql, schema.frames[0]);
            prop_assert_eq!(counted(&engine, &text), found.len() as u64, "{}", text);
        }
    }
}

/// Expressions that a planner may take for true or false, though they are NULL where the field is.
#[test]
fn several_tests_of_a_field_are_null_where_it_is() {
    let text = "option time ns realtime; frame job { interval time a @clock(thread_cpu); i32 n; }";
    let schema = ppt_frame_dsl::compile(text.as_bytes(), "made.frame").unwrap().schema;
    let files = Files::new(&[capture(&mut Dice::new(5), &schema)]);
    let engine = files.engine(&with_pushdown());
    let known = counted(&engine, "a IS NOT NULL");
    assert!(0 < known && known < counted(&engine, "true"));
    for text in [
        "a NOT IN (1000000) OR a NOT IN (5)",
        "NOT a IN (1000000) OR NOT job.a IN (5, 6)",
        "NOT (a IN (1000000) AND a IN (5ms, 7ms))",
        "NOT ((a = 1ms OR a = 2ms) AND (a = 3ms OR 4ms = a))",
        "NOT (a IN (3ms, 4ms) AND a NOT IN (3ms, 4ms))",
        "a <> 7 OR NOT a IN (8, 9)",
        "a NOT IN (1) OR (n = 5000 AND a IS NULL) OR a NOT IN (2)",
        "NOT (a = 3 AND a = 4)",
    ] {
        let found = dumped(&files.paths[0], text).unwrap();
        let sql = ppt_predicate::to_sql(text);
        let sql = format!("SELECT ring, seqno FROM made.job WHERE {sql}");
        assert_eq!(found, support::sorted(&engine, &sql), "{text}");
        assert_eq!((found.len() as u64, counted(&engine, text)), (known, known), "{text}");
    }
    let told = "SELECT n NOT IN (1) OR n NOT IN (2), a NOT IN (1) OR a NOT IN (2) AS it FROM job";
    let nulls = format!("SELECT count(*) FROM ({told}) WHERE it IS NULL");
    let nulls = support::number(&engine, &nulls) as u64;
    assert_eq!(nulls, counted(&engine, "a IS NULL"));
}

/// Tests that look different but are equivalent.
#[test]
fn several_tests_of_a_field_are_all_made() {
    let text = "option time ns realtime; frame job { i32 n; time t @clock(realtime); }";
    let schema = ppt_frame_dsl::compile(text.as_bytes(), "made.frame").unwrap().schema;
    let files = Files::new(&[capture(&mut Dice::new(7), &schema)]);
    let engine = files.engine(&with_pushdown());
    let (fives, all) = (counted(&engine, "n = 5"), counted(&engine, "n >= 5"));
    assert!(0 < fives && fives < all);
    for (text, count) in [
        ("5 = n AND n = 5", fives),
        ("n IN (5) AND 5 = n", fives),
        ("n = 5 AND (n IN (5, 6) AND 5 = n)", fives),
        ("n >= 5 AND 5 < n", all - fives),
        ("5 < n AND n >= 5", all - fives),
        ("5 <= n AND n > 5 AND 5 <> n", all - fives),
        (
            "t = '2023-11-14T22:13:20Z' AND '2023-11-14 22:13:20' = t",
            counted(&engine, "t = '2023-11-14T22:13:20Z'"),
        ),
    ] {
        assert_eq!(dumped(&files.paths[0], text).unwrap().len() as u64, count, "{text}");
        assert_eq!(counted(&engine, text), count, "{text}");
        let of_parts = text.replacen(" AND ", ") WHERE ", 1);
        let sql = format!("SELECT count(*) FROM (SELECT * FROM made.job WHERE {of_parts}");
        assert_eq!(support::number(&engine, &sql) as u64, count, "{sql}");
    }
}
