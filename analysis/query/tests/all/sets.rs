//! Sets of captures, names of tables, and what is wrong with either.

use std::io::Write;
use std::path::PathBuf;

use ppt_capture::frame_dsl::schema::{
    Clock, Extra, Field, FieldType, Frame, Interval, IntervalEnd, Schema,
};
use ppt_capture::{
    CaptureWriter, ClockId, ClockReading, End, EndReason, FileHeader, FramesHead, Process, Segment,
    Source,
};
use ppt_query::{CaptureSet, Engine, QueryError, SetError};

use crate::support::{
    Files, batches, explained, number, rows, sorted, with_pushdown, without_pushdown,
};

const REAL: u64 = 1_700_000_000_000_000_000;
const NONCE: u64 = 7;

fn field(name: &str, ty: FieldType, offset: u32) -> Field {
    Field {
        name: name.to_owned(),
        ty,
        array: None,
        offset,
        interval: None,
        at: false,
        unit: "B".to_owned(),
        doc: "what it is".to_owned(),
        attributes: Vec::new(),
        extra: Extra::new(),
    }
}

fn ns() -> FieldType {
    FieldType::Ns { clock: Clock::Realtime }
}

/// An interval of the wall clock at an offset, whose end places the frame in time.
fn interval(name: &str, offset: u32) -> [Field; 2] {
    let half = |edge, word: &str, offset| Field {
        interval: Some(Interval { name: name.to_owned(), edge }),
        ..field(&format!("{name}_{word}"), ns(), offset)
    };
    let end = half(IntervalEnd::End, "end", offset + 8);
    [half(IntervalEnd::Start, "start", offset), Field { at: true, ..end }]
}

/// Kinds of frames with their fields, all of `size` bytes.
fn schema(buffer: &str, frames: &[(&str, Vec<Field>)], size: u32) -> Schema {
    let frames = frames.iter().map(|(name, fields)| Frame {
        name: (*name).to_owned(),
        kind: "plain".to_owned(),
        size,
        fields: fields.clone(),
        doc: String::new(),
        attributes: Vec::new(),
        extra: Extra::new(),
    });
    let schema = Schema {
        v: 1,
        buffer: buffer.to_owned(),
        slots: 16,
        stride: size,
        frames: frames.collect(),
        enums: Vec::new(),
        tags: Vec::new(),
        extra: Extra::new(),
    };
    Schema::from_json(schema.to_json().as_bytes()).unwrap()
}

/// A chunk: number of the source, ring, thread, and the words of its frames behind their numbers.
type SetPart<'a> = (u16, u32, u32, &'a [&'a [u64]]);

fn written(id: u8, schemas: &[Schema], parts: &[SetPart<'_>]) -> CaptureWriter<Vec<u8>> {
    let header = FileHeader {
        capture_id: [id; 16],
        host: "host".to_owned(),
        boot_id: "boot".to_owned(),
        created_realtime_ns: REAL,
        ..FileHeader::default()
    };
    let mut writer = CaptureWriter::create(Vec::new(), &header).unwrap();
    let (a, b) = (ClockId::Monotonic, ClockId::Realtime);
    let (a_before, a_after) = (1, 1);
    let reading = ClockReading { a, a_before, b, b_value: REAL, a_after, distrusted: false };
    writer.clock(&[reading]).unwrap();
    let rings = parts.iter().map(|part| part.1 + 1).max().unwrap_or(0).max(4);
    for (number, schema) in (0..).zip(schemas) {
        let nonce = NONCE + u64::from(number);
        let source = Source {
            schema_json: schema.to_json().into_bytes(),
            schema_hash: schema.hash(),
            buffer: schema.buffer.clone(),
            process: Process { pid: 9, ..Process::default() },
            segments: vec![Segment { nonce, rings, slots: 16, stride: schema.stride }],
            ..Source::default()
        };
        writer.source(number, &source).unwrap();
    }
    let mut next = std::collections::HashMap::new();
    for (number, (source, ring, tid, frames)) in (1..).zip(parts) {
        let first = next.entry((*source, *ring)).or_insert(1u64);
        let first_seq = *first;
        *first += frames.len() as u64;
        let stride = schemas[usize::from(*source)].stride;
        let mut payload = Vec::new();
        for (seq, words) in (first_seq..).zip(*frames) {
            let start = payload.len();
            payload.extend(
                std::iter::once(&seq).chain(*words).flat_map(|number| number.to_le_bytes()),
            );
            payload.resize(start + stride as usize, 0);
        }
        let times = frames.iter().filter_map(|words| words.get(1).copied());
        let head = FramesHead {
            source: *source,
            nonce: NONCE + u64::from(*source),
            ring: *ring,
            tid: *tid,
            first_seq,
            count: frames.len() as u32,
            stride,
            drained_mono_ns: 1000 * number,
            t_min: times.clone().min().unwrap_or(0),
            t_max: times.max().unwrap_or(0),
            ..FramesHead::default()
        };
        writer.frames(&head, &payload).unwrap();
    }
    writer
}

fn end() -> End {
    End::new(EndReason::Stopped, REAL + 9, 9)
}

fn capture(id: u8, schemas: &[Schema], parts: &[SetPart<'_>]) -> Vec<u8> {
    written(id, schemas, parts).end(&end()).unwrap()
}

/// `count` chunks of one frame a second, numbered.
fn seconds(id: u8, count: u64) -> Vec<u8> {
    let schema = schema("b", &[("it", interval("run", 8).into())], 24);
    let words: Vec<Vec<u64>> = (0..count).map(|n| vec![at(n), at(n) + 5]).collect();
    let frames: Vec<Vec<&[u64]>> = words.iter().map(|words| vec![&words[..]]).collect();
    let parts: Vec<SetPart<'_>> = frames.iter().map(|frame| (0, 0, 1, &frame[..])).collect();
    capture(id, &[schema], &parts)
}

fn at(second: u64) -> u64 {
    REAL + second * 1_000_000_000
}

fn cells(row: &[Option<String>]) -> Vec<&str> {
    row.iter().map(|cell| cell.as_deref().unwrap_or("NULL")).collect()
}

#[test]
fn one_that_is_named_twice_counts_once() {
    let (short, long) = (seconds(1, 3), seconds(1, 5));
    let files = Files::new(&[short, long, seconds(2, 4)]);
    let mut paths = files.paths.clone();
    paths.push(files.folder().join("*.bin"));
    let engine = Engine::new(CaptureSet::open(&paths).unwrap(), &with_pushdown()).unwrap();
    assert_eq!(number(&engine, "SELECT count(*) FROM it"), 5 + 4);
    let captures = sorted(&engine, "SELECT capture, frames FROM captures");
    let expected = [["0101010101010101", "5"], ["0202020202020202", "4"]];
    assert_eq!(captures.iter().map(|row| cells(row)).collect::<Vec<_>>(), expected);
}

#[test]
fn parts_that_were_rotated_are_one_set() {
    let files = Files::new(&[]);
    for part in 1..4u8 {
        let path = files.folder().join(format!("out.{part:06}.bin"));
        std::fs::write(path, seconds(part, part.into())).unwrap();
    }
    let set = CaptureSet::open(&[files.folder().join("out.bin")]).unwrap();
    let engine = Engine::new(set, &with_pushdown()).unwrap();
    assert_eq!(number(&engine, "SELECT count(*) FROM it"), 1 + 2 + 3);
}

#[test]
fn what_is_no_capture_is_said() {
    let files = Files::new(&[Vec::new(), b"not a capture at all".to_vec()]);
    let code = |paths: &[PathBuf]| CaptureSet::open(paths).unwrap_err().code();
    assert_eq!(code(&files.paths[..1]), "empty-capture");
    assert_eq!(code(&files.paths[1..]), "not-a-capture");
    assert_eq!(code(&[files.folder().to_owned()]), "not-a-capture");
    assert_eq!(code(&[files.folder().join("none.bin")]), "cannot-read");
    assert_eq!(code(&[files.folder().join("z*.bin")]), "no-match");
    assert_eq!(code(&[]), "no-capture");
}

#[test]
fn schemas_of_one_frame_are_one_table_if_they_fit() {
    let old = schema("b", &[("it", vec![field("a", FieldType::U64, 8)])], 16);
    let two = vec![field("a", FieldType::U64, 16), field("ts", FieldType::U32, 8)];
    let new = schema("b", &[("it", two)], 24);
    let other = schema("b", &[("it", vec![field("a", FieldType::I32, 8)])], 16);
    let parts: [SetPart<'_>; 1] = [(0, 0, 1, &[&[3, 4]])];
    let files = Files::new(&[
        capture(1, &[old], &parts),
        capture(2, &[new], &parts),
        capture(3, &[other], &parts),
    ]);
    let set = CaptureSet::open(&files.paths[..2]).unwrap();
    let engine = Engine::new(set, &with_pushdown()).unwrap();
    let rows = sorted(&engine, "SELECT capture, a, ts, ppt_ts, drained FROM it");
    let drained = (REAL + 999).to_string();
    assert_eq!(cells(&rows[0]), ["0101010101010101", "3", "NULL", "NULL", &drained]);
    assert_eq!(cells(&rows[1]), ["0202020202020202", "4", "3", "NULL", &drained]);

    let set = CaptureSet::open(&files.paths).unwrap();
    let Err(QueryError::Set(error @ SetError::Conflict(_))) = Engine::new(set, &with_pushdown())
    else {
        panic!("they do not fit")
    };
    let said = error.to_string();
    assert!(said.contains("`b.it` has a column `a` of two types"), "{said}");
    assert!(said.contains("0.bin") && said.contains("2.bin"), "{said}");
}

#[test]
fn names_that_clash_all_have_a_way() {
    let one = |name: &'static str| (name, vec![field("n", FieldType::U64, 16)]);
    let kinds = [one("gaps"), one("Gaps"), one("select"), one("job"), one("JOB")];
    let a = schema("a", &kinds, 24);
    let b = schema("b", &[("job", vec![field("n", FieldType::U64, 8)])], 24);
    let hostile = schema("ppt", &[("frames", vec![field("n", FieldType::U64, 8)])], 24);
    let frames: [&[u64]; 5] = [&[0, 10], &[1, 11], &[2, 12], &[3, 13], &[4, 14]];
    let parts: [SetPart<'_>; 3] = [(0, 0, 1, &frames), (1, 0, 1, &[&[20]]), (2, 0, 1, &[&[30]])];
    let files = Files::new(&[capture(1, &[a, b, hostile], &parts)]);
    for options in [with_pushdown(), without_pushdown()] {
        let engine = files.engine(&options);
        let n = |table: &str| number(&engine, &format!("SELECT n FROM {table}"));
        assert_eq!(number(&engine, "SELECT count(*) FROM gaps"), 0, "the fixed table");
        assert_eq!([n("ppt_gaps"), n("a.gaps"), n("a.ppt_gaps"), n("Gaps")], [10, 10, 10, 11]);
        assert_eq!([n("\"select\""), n("a.job"), n("b.job"), n("JOB")], [12, 13, 20, 14]);
        assert_eq!(n("ppt_ppt.frames"), 30, "no buffer of a frame file is called so");
        let said = |sql: &str| batches(&engine, sql).unwrap_err().to_string();
        assert!(said("SELECT * FROM job").contains("`a.job` or `b.job`"));
        let missing = said("SELECT * FROM fraems");
        assert!(missing.contains("did you mean `frames`?"), "{missing}");
        let missing = said("SELECT hsot FROM frames");
        assert!(missing.contains("hsot") && missing.contains("host"), "{missing}");
    }
}

#[test]
fn an_interval_takes_the_name_of_a_standard_column() {
    let fields = [interval("ts", 8).to_vec(), vec![field("ring_", FieldType::U64, 24)]].concat();
    let it = schema("b", &[("it", fields)], 32);
    let files = Files::new(&[capture(1, &[it], &[(0, 3, 1, &[&[at(1), at(2), 5]])])]);
    let engine = files.engine(&with_pushdown());
    let rows = rows(&engine, "SELECT ts, ppt_ts, ring, ring_ FROM it WHERE ppt_ts IS NOT NULL");
    let second = at(2).to_string();
    assert_eq!(cells(&rows[0]), ["1000000000", &second, "3", "5"]);
    let schema = engine.tables().into_iter().find(|table| table.0 == "it").unwrap().1;
    let meta = |name: &str| schema.schema().field_with_name(name).unwrap().metadata().clone();
    assert_eq!(meta("ts")["role"], "length");
    assert_eq!(meta("ts_end")["role"], "at");
    assert_eq!(
        (meta("ring_")["unit"].as_str(), meta("ring_")["doc"].as_str()),
        ("B", "what it is")
    );
}

#[test]
fn heads_tell_what_need_not_be_read() {
    let files = Files::new(&[seconds(1, 50), seconds(2, 50)]);
    let engine = files.engine(&with_pushdown());
    let time = |second: u64| format!("to_timestamp_nanos({})", at(second));
    let told = |what: &str, sql: &str| {
        let plan = explained(&engine, sql);
        assert!(plan.contains(what), "{sql}: {what} is not in {plan}");
    };
    let few = format!("SELECT run FROM it WHERE ts >= {} AND ts < {}", time(10), time(13));
    told("chunks=6 of 100 (94 pruned)", &few);
    assert_eq!(rows(&engine, &few).len(), 6);
    told("columns=[ts, run]", &few);
    told("chunks=4 of 100", "SELECT run FROM it WHERE seqno BETWEEN 7 AND 8");
    told("chunks=1 of 100", "SELECT run FROM it WHERE seqno = 7 AND capture = '0101010101010101'");
    told("chunks=0 of 100", "SELECT run FROM it WHERE tid = 2 OR tid IN (3, 4)");
    told("chunks=0 of 100", "SELECT run FROM it WHERE ring = 1");
    told("chunks=100 of 100", "SELECT run FROM it WHERE tid = 2 OR ring = 1");
    told("chunks=0 of 100", "SELECT run FROM it WHERE pid = 1");
    let plan = explained(&engine, "SELECT count(*) FROM it");
    assert!(!plan.contains("CaptureScan"), "known without reading: {plan}");
    told("limit=2", "SELECT run FROM it LIMIT 2");
    assert_eq!(rows(&engine, "SELECT run FROM it LIMIT 2").len(), 2);
    let part = format!("SELECT run FROM it WHERE coalesce(ts, drained) <= {}", time(0));
    told("bounds=[time<=", &part);
    assert!(
        explained(
            &engine,
            "SELECT seqno FROM frames WHERE capture = '0101010101010101' ORDER BY seqno"
        )
        .contains("CaptureScan")
    );
}

#[test]
fn a_capture_that_grows_is_read_up_to_its_last_whole_chunk() {
    let bytes = seconds(1, 20);
    let schema = schema("b", &[("it", interval("run", 8).into())], 24);
    let words = [at(0), at(1)];
    let growing = written(3, &[schema], &[(0, 0, 1, &[&words])]);
    drop(growing);
    let files = Files::new(&[bytes[..bytes.len() * 2 / 3].to_vec()]);
    let engine = files.engine(&with_pushdown());
    let before = number(&engine, "SELECT count(*) FROM it");
    assert!((5..20).contains(&before), "{before}");
    let cut = engine.set().troubles()[0].cut.unwrap();
    // The rest comes: this set stays as it was opened.
    let mut file = std::fs::OpenOptions::new().append(true).open(&files.paths[0]).unwrap();
    file.write_all(&bytes[bytes.len() * 2 / 3..]).unwrap();
    engine.set().verify().unwrap();
    assert_eq!(number(&engine, "SELECT count(*) FROM it"), before);
    assert_eq!(number(&engine, "SELECT frames FROM captures"), before);
    assert!(cut < bytes.len() as u64);
    assert_eq!(number(&files.engine(&with_pushdown()), "SELECT count(*) FROM it"), 20);
}

#[test]
fn a_damaged_chunk_is_left_out_and_said() {
    let mut bytes = seconds(1, 20);
    let at = bytes.len() / 2;
    // Inside a payload: only its checksum shows it.
    let frames = bytes.windows(8).position(|window| window == self::at(9).to_le_bytes()).unwrap();
    bytes[frames] ^= 1;
    assert!(at > 0);
    let files = Files::new(&[bytes]);
    let engine = files.engine(&with_pushdown());
    assert_eq!(number(&engine, "SELECT count(run) FROM it"), 19);
    let troubles = engine.set().troubles();
    assert_eq!((troubles[0].damages, troubles[0].damaged.len()), (1, 1));
    assert_eq!(number(&engine, "SELECT sum(count) FROM account WHERE cause = 'corrupt'"), 1);
    assert_eq!(number(&engine, "SELECT count(*) FROM it"), 19, "known by now");
    assert_eq!(rows(&engine, "SELECT first_seq, cause FROM gaps").len(), 1);
}

#[test]
fn a_damaged_end_is_said_once_all_is_read() {
    let mut bytes = seconds(1, 3);
    let last = bytes.len() - 1;
    let end = bytes[..last].iter().rposition(|&byte| byte != 0).unwrap();
    bytes[end] ^= 1;
    let files = Files::new(&[bytes]);
    let engine = files.engine(&with_pushdown());
    engine.set().verify().unwrap();
    let troubles = engine.set().troubles();
    assert_eq!(troubles[0].damages, 1, "{troubles:?}");
    assert!(troubles[0].cut.is_some());
}

#[test]
fn no_frame_is_no_rows() {
    let schema = schema("b", &[("it", interval("run", 8).into())], 24);
    let files = Files::new(&[capture(1, &[schema], &[])]);
    for options in [with_pushdown(), without_pushdown()] {
        let engine = files.engine(&options);
        for (name, _) in engine.tables() {
            let sql = format!("SELECT * FROM {name}");
            let count = rows(&engine, &sql).len();
            let some = ["account", "captures", "clocks", "sources"].contains(&name.as_str());
            assert_eq!(count > 0, some, "{name}");
        }
    }
}

#[test]
fn slices_nest_over_buffers_and_captures() {
    let a = schema("a", &[("outer", interval("run", 8).into())], 24);
    let b = schema("b", &[("inner", interval("step", 8).into())], 24);
    let both = [a, b];
    // The outer frame is written last, in a part that was begun later.
    let first = capture(1, &both, &[(1, 0, 5, &[&[at(2), at(3)], &[at(4), at(6)]])]);
    let last = capture(2, &both, &[(0, 0, 5, &[&[at(1), at(10)]]), (1, 1, 6, &[&[at(2), at(3)]])]);
    let files = Files::new(&[first, last]);
    for options in [with_pushdown(), without_pushdown()] {
        let engine = files.engine(&options);
        let rows = rows(
            &engine,
            "SELECT name, tid, dur, depth, parent_buffer, parent_seqno, self FROM slices \
             ORDER BY tid, ts, dur DESC",
        );
        let expected = [
            ["outer.run", "5", "9000000000", "0", "NULL", "NULL", "6000000000"],
            ["inner.step", "5", "1000000000", "1", "a", "1", "1000000000"],
            ["inner.step", "5", "2000000000", "1", "a", "1", "2000000000"],
            ["inner.step", "6", "1000000000", "0", "NULL", "NULL", "1000000000"],
        ];
        assert_eq!(rows.iter().map(|row| cells(row)).collect::<Vec<_>>(), expected);
        assert_eq!(number(&engine, "SELECT sum(self) FROM slices WHERE tid = 5"), 9_000_000_000);
    }
}

#[test]
fn overlap_pairs_what_overlaps() {
    let a = schema("a", &[("x", interval("run", 8).into())], 24);
    let b = schema("b", &[("y", interval("step", 8).into())], 24);
    let x: [&[u64]; 3] = [&[at(0), at(10)], &[at(20), at(30)], &[at(40), at(40)]];
    let y: [&[u64]; 4] =
        [&[at(5), at(25)], &[at(10), at(12)], &[at(40), at(41)], &[at(29), at(31)]];
    let parts: [SetPart<'_>; 3] = [(0, 0, 5, &x), (1, 0, 5, &y), (1, 1, 6, &y)];
    let files = Files::new(&[capture(1, &[a, b], &parts)]);
    let engine = files.engine(&with_pushdown());
    for name in ["x", "y"] {
        let sql = format!(
            "CREATE VIEW s{name} AS SELECT tid, seqno, ts, dur FROM slices WHERE buffer = '{}'",
            if name == "x" { "a" } else { "b" }
        );
        batches(&engine, &sql).unwrap();
    }
    let swept =
        sorted(&engine, "SELECT a_seqno, b_seqno, a_tid, b_tid, ts, dur FROM overlap('sx', 'sy')");
    let joined = sorted(
        &engine,
        "SELECT a.seqno, b.seqno, a.tid, b.tid, greatest(a.ts, b.ts), \
         least(arrow_cast(a.ts, 'Int64') + a.dur, arrow_cast(b.ts, 'Int64') + b.dur) \
         - arrow_cast(greatest(a.ts, b.ts), 'Int64') \
         FROM sx a JOIN sy b ON a.tid = b.tid \
         WHERE (a.ts = b.ts) OR (a.ts < b.ts \
         AND arrow_cast(b.ts, 'Int64') < arrow_cast(a.ts, 'Int64') + a.dur) OR (b.ts < a.ts \
         AND arrow_cast(a.ts, 'Int64') < arrow_cast(b.ts, 'Int64') + b.dur)",
    );
    assert_eq!(swept, joined);
    assert_eq!(swept.len(), 4, "{swept:?}");
    let all = rows(&engine, "SELECT * FROM overlap('sx', 'sy', 'seqno')");
    assert_eq!(all.len(), 4, "whatever the thread: {all:?}");
    let said = |sql: &str| batches(&engine, sql).unwrap_err().to_string();
    assert!(said("SELECT * FROM overlap('sx', 'gaps')").contains("has no column"));
    assert!(said("SELECT * FROM overlap('sx')").contains("two tables"));
}

#[test]
fn buckets_begin_at_multiples_of_their_width() {
    let files = Files::new(&[seconds(1, 10)]);
    let engine = files.engine(&with_pushdown());
    let rows =
        rows(&engine, "SELECT bucket(ts, '4s') AS t, count(*) FROM it GROUP BY t ORDER BY t");
    let expected: [[String; 2]; 3] =
        [(0, "4"), (4, "4"), (8, "2")].map(|(at, n)| [self::at(at).to_string(), n.to_owned()]);
    let found: Vec<Vec<&str>> = rows.iter().map(|row| cells(row)).collect();
    assert_eq!(found, expected.each_ref().map(|row| row.each_ref().map(String::as_str)));
    assert_eq!(number(&engine, "SELECT bucket(-1, '10ns')"), -10);
    let said = |sql: &str| batches(&engine, sql).unwrap_err().to_string();
    assert!(said("SELECT bucket(ts, '0s') FROM it").contains("more than 0"));
    assert!(said("SELECT bucket(ts, 'soon') FROM it").contains("no width"));
    assert!(said("SELECT bucket(tid, 1.5) FROM it").contains("such as '100ms'"));
}

#[test]
fn a_query_keeps_to_its_memory_or_says_so() {
    let files = Files::new(&[seconds(1, 2000)]);
    let mut options = with_pushdown();
    options.memory = Some(100_000);
    let engine = files.engine(&options);
    let error =
        batches(&engine, "SELECT array_agg(a.seqno) FROM it a CROSS JOIN it b").unwrap_err();
    assert_eq!(error.code(), "query-memory", "{error}");
}

/// Rings whose numbers are in no column.
const UNNUMBERED: [u32; 2] = [u32::MAX - 1, u32::MAX - 2];

#[test]
fn nulls_are_where_the_query_has_them() {
    let it = schema("b", &[("it", interval("run", 8).into())], 24);
    let times: Vec<[u64; 2]> = (0..8).map(|n| [at(n), at(n) + 5]).collect();
    let frames: Vec<&[u64]> = times.iter().map(|time| &time[..]).collect();
    let parts: Vec<SetPart<'_>> =
        [UNNUMBERED[0], 3, UNNUMBERED[1], UNNUMBERED[0], 3, UNNUMBERED[1]]
            .map(|ring| (0, ring, 1, &frames[..]))
            .to_vec();
    let all = Files::new(&[capture(1, std::slice::from_ref(&it), &parts)]);
    // Nothing but these: two rings are not one.
    let alone: Vec<SetPart<'_>> = parts.iter().filter(|part| part.1 != 3).copied().collect();
    let alone = Files::new(&[capture(2, &[it], &alone)]);
    for files in [&all, &alone] {
        let (with, without) = (files.engine(&with_pushdown()), files.engine(&without_pushdown()));
        for nulls in ["", " NULLS FIRST", " NULLS LAST", " DESC", " DESC NULLS LAST"] {
            let by = ["capture", "buffer", "segment", "ring", "seqno"]
                .map(|text| format!("{text}{nulls}"));
            for by in [&by[..], &by[4..]] {
                let sql = format!("SELECT ring, seqno FROM it ORDER BY {}", by.join(", "));
                let found = rows(&with, &sql);
                let has_ring = by.len() > 1;
                // Rows with equal sort keys have no order.
                let told = |rows: Vec<Vec<Option<String>>>| -> Vec<Vec<Option<String>>> {
                    let from = usize::from(!has_ring);
                    rows.into_iter().map(|row| row[from..].to_vec()).collect()
                };
                assert_eq!(told(found), told(rows(&without, &sql)), "{sql}");
            }
        }
        let nulls = number(&with, "SELECT count(*) FROM it WHERE ring IS NULL");
        assert_eq!(nulls, 32, "{:?}", with.set().troubles());
        let first = |sql: &str| rows(&with, sql)[0][0].clone();
        assert_eq!(first("SELECT ring FROM it ORDER BY ring NULLS FIRST"), None);
    }
}

/// A window of a flight recorder shows its trigger.
#[test]
fn triggers_are_rows() {
    use ppt_capture::{
        CaptureWriter, End, EndReason, FileHeader, Segment, Stretch, Trigger, TriggerCause,
    };
    let schema = schema("b", &[("it", interval("run", 8).into())], 24);
    let source = ppt_capture::Source {
        schema_json: schema.to_json().into_bytes(),
        schema_hash: schema.hash(),
        buffer: "b".into(),
        segments: vec![Segment { nonce: 7, rings: 2, slots: 2, stride: 24 }],
        ..Default::default()
    };
    let second = 1_000_000_000;
    let header = FileHeader {
        capture_id: [1; 16],
        created_realtime_ns: 100 * second,
        created_mono_ns: 10 * second,
        ..FileHeader::default()
    };
    let mut writer = CaptureWriter::create(Vec::new(), &header).unwrap();
    writer.source(0, &source).unwrap();
    let of_frame = Trigger {
        source: Some(0),
        mono_ns: 12 * second,
        wanted: Stretch { from_ns: 10 * second, to_ns: 13 * second },
        held: Stretch { from_ns: 10 * second, to_ns: 13 * second },
        why: TriggerCause::On,
        ring: Some((7, 1)),
        seqno: Some(5),
        expression: "run > 1ms".into(),
        note: String::new(),
    };
    writer.trigger(&of_frame).unwrap();
    let by_hand = Trigger {
        source: None,
        mono_ns: 13 * second,
        why: TriggerCause::Hand,
        ring: None,
        seqno: None,
        expression: String::new(),
        note: "slow".into(),
        ..of_frame
    };
    writer.trigger(&by_hand).unwrap();
    let end = End::new(EndReason::Stopped, 0, 14 * second);
    let files = Files::new(&[writer.end(&end).unwrap()]);
    for options in [with_pushdown(), without_pushdown()] {
        let engine = files.engine(&options);
        let rows = rows(
            &engine,
            "SELECT why, ts, expression, buffer, segment, ring, seqno, note FROM triggers ORDER BY ts",
        );
        let text = |cell: &str| Some(cell.to_owned());
        let times = ["102000000000", "103000000000"].map(text);
        let [frame, hand] = times;
        let segment = text("0000000000000007");
        let first =
            [text("on"), frame, text("run > 1ms"), text("b"), segment, text("1"), text("5"), None];
        let second = [text("hand"), hand, None, None, None, None, None, text("slow")];
        assert_eq!(rows, [first.to_vec(), second.to_vec()]);
    }
}
