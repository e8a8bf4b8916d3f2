//! Checks on random captures that SQL returns the same as `ppt info` and `ppt dump`.

mod causes;
mod hosts;
mod wholes;
#[allow(dead_code, reason = "what is shared with the tests of dump is more than is used here")]
#[path = "../../../../dump/tests/all/windows.rs"]
mod windows;

use std::collections::BTreeMap;
use std::path::Path;

use ppt_capture::frame_dsl::schema::{Clock, Field, IntervalEnd, Schema};
use ppt_capture::frame_dsl::{ColumnType, Measure, Style, TimeType, columns};
use ppt_capture::{Capture, CaptureItem, ClockTable};
use ppt_dump::{DumpRequest as DumpOptions, Info, TimeFormat, dump};
use ppt_query::Engine;
use proptest::prelude::*;

use crate::random::{Dice, capture};
use crate::support::{self, Files, Row, number, rows, sorted, with_pushdown, without_pushdown};

fn cases(count: u32) -> ProptestConfig {
    ProptestConfig { cases: count, failure_persistence: None, ..ProptestConfig::default() }
}

/// The output of dump for one kind of frame: the names of its columns, and its rows.
fn dumped(path: &Path, buffer: &str, frame: &str) -> (Vec<String>, Vec<Vec<String>>) {
    let options = DumpOptions {
        buffers: vec![buffer.to_owned()],
        frame: Some(frame.to_owned()),
        time: Some(TimeFormat::Own),
        ..DumpOptions::default()
    };
    let mut out = Vec::new();
    dump(path, &options, &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    let mut lines = text.lines().map(|line| line.split('\t').map(str::to_owned).collect());
    let names = lines.next().unwrap_or_default();
    (names, lines.collect())
}

/// The bytes that dump's escapes stand for.
fn unescaped(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        (rest, _) = match (first, tail) {
            (b'\\', [b'x', a, b, tail @ ..]) => {
                let digits = std::str::from_utf8(&[*a, *b]).unwrap().to_owned();
                (tail, bytes.push(u8::from_str_radix(&digits, 16).unwrap()))
            }
            (b'\\', [b't', tail @ ..]) => (tail, bytes.push(b'\t')),
            (b'\\', [b'n', tail @ ..]) => (tail, bytes.push(b'\n')),
            (b'\\', [b'\\', tail @ ..]) => (tail, bytes.push(b'\\')),
            (other, tail) => (tail, bytes.push(*other)),
        };
    }
    bytes
}

/// The clocks of a capture, read here a second time, independently.
struct Clocks {
    table: ClockTable,
    offset: Option<i128>,
}

impl Clocks {
    fn of(path: &Path) -> Clocks {
        let mut capture = Capture::open(path).unwrap();
        let mut table = ClockTable::default();
        while let Some(item) = capture.read().unwrap() {
            if let CaptureItem::Chunk(ppt_capture::Chunk::Clock(readings)) = item {
                table.add(&readings);
            }
        }
        let header = capture.header().unwrap();
        let by_header = i128::from(header.created_realtime_ns) - i128::from(header.created_mono_ns);
        let offset = table.epoch_offset().or(Some(by_header));
        Clocks { table, offset }
    }

    /// A number of dump's output as ns since the epoch. Dump shows ticks as ticks.
    fn epoch(&self, ty: TimeType, number: i128, ahead: (i64, Option<i64>)) -> Option<i64> {
        let ns = match ty.clock() {
            None => number,
            // A time before the epoch, or after 2262, is not a time.
            Some(_) if !(1..=i128::from(i64::MAX)).contains(&number) => return None,
            Some(Clock::Realtime) => number,
            Some(Clock::Monotonic) => number - i128::from(ahead.0) + self.offset?,
            Some(Clock::Boottime) => {
                number - i128::from(ahead.1?) + self.table.boottime_offset()?
            }
            Some(Clock::ThreadCpu | Clock::ProcessCpu) => number,
        };
        i64::try_from(ns).ok()
    }
}

/// The cell that a table must have, by dump's row.
fn expected(
    schema: &Schema,
    (name, ty, field): (&str, ColumnType, &Field),
    cell: &dyn Fn(&str) -> String,
    (clocks, ahead): (&Clocks, (i64, Option<i64>)),
) -> Option<String> {
    let time = |name: &str, ty: TimeType| -> Option<i128> {
        let number = |name: &str| cell(name).parse::<i128>().ok();
        match ty {
            TimeType::Timeval => {
                let (seconds, rest) =
                    (number(&format!("{name}.tv_sec"))?, number(&format!("{name}.tv_usec"))?);
                // A negative half is not a time.
                let whole = (0..=i128::from(i64::MAX)).contains(&seconds) && rest >= 0;
                whole.then_some(seconds * 1_000_000_000 + rest * 1000)
            }
            _ => number(name),
        }
    };
    let halves = |edge: IntervalEnd| {
        let interval = field.interval.as_ref().unwrap();
        let frame = schema.frames.iter().find(|frame| frame.fields.iter().any(|own| own == field));
        let half = frame.unwrap().fields.iter().find(|field| {
            field.interval.as_ref().is_some_and(|own| own.name == interval.name && own.edge == edge)
        });
        half.unwrap().name.clone()
    };
    match ty {
        ColumnType::Time(ty) => {
            let known = clocks.epoch(ty, time(name, ty)?, ahead);
            known.map(|ns| ns.to_string())
        }
        ColumnType::Text { .. } => {
            Some(String::from_utf8_lossy(&unescaped(&cell(name))).into_owned())
        }
        ColumnType::Addr => {
            let digits = cell(name);
            let digits = digits.strip_prefix("0x").unwrap();
            Some(u64::from_str_radix(digits, 16).unwrap().to_string())
        }
        ColumnType::Bool => Some(if cell(name) == "0" { "0" } else { "1" }.to_owned()),
        ColumnType::Length { of, .. } => {
            let (start, end) = (halves(IntervalEnd::Start), halves(IntervalEnd::End));
            match of {
                Measure::F32 | Measure::F64 => {
                    let number = |name: &str| cell(name).parse::<f64>().unwrap();
                    Some((number(&end) - number(&start)).to_string())
                }
                Measure::Time(ty) => {
                    let ns = |name: &str| {
                        let number = time(name, ty)?;
                        let fits = (1..=i128::from(i64::MAX)).contains(&number);
                        (ty == TimeType::Ticks || fits).then_some(number)
                    };
                    let length = ns(&end)? - ns(&start)?;
                    i64::try_from(length).ok().map(|ns| ns.to_string())
                }
                Measure::Duration => {
                    let number = |name: &str| cell(name).parse::<i64>().unwrap();
                    number(&end).checked_sub(number(&start)).map(|number| number.to_string())
                }
                Measure::Int(int) => {
                    let number = |name: &str| cell(name).parse::<i128>().unwrap();
                    let (least, most) = int.range();
                    let length = number(&end) - number(&start);
                    (least..=most).contains(&length).then(|| length.to_string())
                }
            }
        }
        _ => Some(cell(name)),
    }
}

/// Whether two cells say the same: floats by their value, as their digits are another's.
fn same(ty: ColumnType, found: &Option<String>, expected: &Option<String>) -> bool {
    let single = matches!(ty, ColumnType::F32 | ColumnType::Length { of: Measure::F32, .. });
    let float = matches!(ty, ColumnType::F64 | ColumnType::Length { of: Measure::F64, .. });
    match (found, expected) {
        (Some(found), Some(expected)) if single => {
            let length = matches!(ty, ColumnType::Length { .. });
            let a = found.parse::<f32>().unwrap();
            let b = if length {
                expected.parse::<f64>().unwrap() as f32
            } else {
                expected.parse::<f32>().unwrap()
            };
            // A length is computed in 32 bits, or here in 64.
            a == b || a.is_nan() && b.is_nan() || length && (a - b).abs() <= a.abs() * 1e-6
        }
        (Some(found), Some(expected)) if float => {
            let (a, b) = (found.parse::<f64>().unwrap(), expected.parse::<f64>().unwrap());
            a == b || a.is_nan() && b.is_nan()
        }
        (found, expected) => found == expected,
    }
}

/// Every cell of every table of frames equals dump's cell.
fn cells_are_dumps(path: &Path, engine: &Engine) {
    let mut capture = Capture::open(path).unwrap();
    while capture.read().unwrap().is_some() {}
    let clocks = Clocks::of(path);
    let mut processes: BTreeMap<String, usize> = BTreeMap::new();
    for info in capture.sources() {
        *processes.entry(info.source.buffer.clone()).or_default() += 1;
    }
    for info in capture.sources() {
        let buffer = &info.source.buffer;
        let namespace = info.source.process.time_namespace();
        let ahead = (namespace.monotonic, namespace.boottime);
        for frame in &info.schema.frames {
            let columns = columns(&info.schema, frame, Style::Sql);
            let quoted: Vec<String> =
                columns.iter().map(|column| format!("\"{}\"", column.name)).collect();
            let pid = info.source.process.pid;
            let sql = format!(
                "SELECT segment, ring, seqno, tid, {} FROM \"{buffer}\".\"{}\" WHERE pid = {pid}",
                quoted.join(", "),
                frame.name
            );
            let mut found = rows(engine, &sql);
            let (names, all) = dumped(path, buffer, &frame.name);
            let place = |name: &str| names.iter().position(|text| text == name);
            let of_pid =
                |row: &&Vec<String>| place("pid").is_none_or(|place| row[place] == pid.to_string());
            let mut rows: Vec<&Vec<String>> = all.iter().filter(of_pid).collect();
            assert_eq!(found.len(), rows.len(), "{sql}");
            // Dump's rows in their order, by the columns that identify a row.
            let only = format!("{:016x}", info.source.segments[0].nonce);
            let cell = |row: &Vec<String>, name: &str| match place(name) {
                Some(place) => row[place].clone(),
                None if name == "segment" => only.clone(),
                None => panic!("{name} is not in {names:?}"),
            };
            let key =
                |row: &Vec<String>| (cell(row, "segment"), cell(row, "ring"), cell(row, "seqno"));
            rows.sort_by_key(|row| key(row));
            found.sort_by_key(|row| {
                let text = |at: usize| row[at].clone().unwrap();
                (text(0), text(1), text(2))
            });
            for (row, found) in rows.iter().zip(&found) {
                let cell = |name: &str| cell(row, name);
                let named = [cell("segment"), cell("ring"), cell("seqno")].map(Some);
                assert_eq!(found[..3], named, "{sql}");
                assert_eq!(found[3].clone().unwrap_or_default(), cell("tid"), "{sql}");
                for (column, found) in columns.iter().zip(&found[4..]) {
                    let field = &frame.fields[column.field];
                    let told = (column.name.as_str(), column.ty, field);
                    let expected = expected(&info.schema, told, &cell, (&clocks, ahead));
                    let context = || format!("{buffer}.{} {column:?} of {named:?}", frame.name);
                    assert!(
                        same(column.ty, found, &expected),
                        "{}: {found:?}, dump has {expected:?}",
                        context()
                    );
                }
            }
        }
    }
}

fn text(cell: &Option<String>) -> &str {
    cell.as_deref().unwrap_or_default()
}

/// Counts, losses and sums equal those of `ppt info`.
fn sums_are_infos(paths: &[std::path::PathBuf], engine: &Engine) {
    let infos = Info::read_all(paths).unwrap();
    let mut account: Vec<Row> = Vec::new();
    let mut rings: Vec<Row> = Vec::new();
    let mut frames: BTreeMap<String, u64> = BTreeMap::new();
    let mut lost: BTreeMap<(String, String), u64> = BTreeMap::new();
    for info in &infos {
        let id = info.capture.as_ref().unwrap().id[..16].to_owned();
        for buffer in &info.buffers {
            // The name in info may be longer than that of the buffer.
            let name = buffer.name.split(['#', '@', '.']).next().unwrap().to_owned();
            *frames.entry(name.clone()).or_default() += buffer.frames;
            let dropped = &buffer.dropped;
            let others = [("left_out", buffer.left_out), ("absent", buffer.absent)];
            let others = others.into_iter().filter(|entry| entry.1 > 0);
            let counts = [
                ("captured", buffer.frames),
                ("overrun", buffer.lost_by.overrun),
                ("disk", buffer.lost_by.disk),
                ("corrupt", buffer.lost_by.corrupt),
                ("no_ring", dropped.no_ring),
                ("nested", dropped.nested),
                ("not_mapped", dropped.not_mapped),
            ];
            for (cause, count) in counts.into_iter().chain(others) {
                let cells = [&id, &name, &buffer.pid.to_string(), cause, &count.to_string()];
                account.push(cells.iter().map(|cell| Some((*cell).to_owned())).collect());
            }
            for (cause, count) in buffer.lost_by.by_cause() {
                *lost.entry((name.clone(), cause.name().to_owned())).or_default() += count;
            }
            *lost.entry((name.clone(), "unattended".to_owned())).or_default() += buffer.unattended;
            *lost.entry((name.clone(), "left_out".to_owned())).or_default() += buffer.left_out;
            *lost.entry((name.clone(), "absent".to_owned())).or_default() += buffer.absent;
            for ring in &buffer.rings {
                let numbers = [ring.first_seq, ring.next_seq, ring.frames, ring.lost];
                let others = [ring.left_out, ring.unattended, ring.absent];
                let names = [&id, &name, &ring.segment, &ring.ring.to_string()].map(Clone::clone);
                let numbers = numbers.into_iter().chain(others).map(|number| number.to_string());
                rings.push(names.into_iter().chain(numbers).map(Some).collect());
            }
        }
    }
    account.sort();
    rings.sort();
    assert_eq!(sorted(engine, "SELECT capture, buffer, pid, cause, count FROM account"), account);
    assert_eq!(
        sorted(
            engine,
            "SELECT capture, buffer, segment, ring, first_seq, next_seq, frames, lost, left_out, \
             unattended, absent FROM rings"
        ),
        rings
    );
    lost.retain(|_, count| *count > 0);
    let gaps = sorted(engine, "SELECT buffer, cause, sum(count) FROM gaps GROUP BY buffer, cause");
    let gaps: BTreeMap<(String, String), u64> = gaps
        .iter()
        .map(|row| ((text(&row[0]).into(), text(&row[1]).into()), text(&row[2]).parse().unwrap()))
        .collect();
    assert_eq!(gaps, lost);
    let all = infos.iter().flat_map(|info| &info.buffers);
    assert_eq!(
        number(engine, "SELECT count(*) FROM frames"),
        all.map(|table| table.frames as i64).sum::<i64>()
    );
    for (buffer, count) in frames {
        let of = |sql: &str| number(engine, sql) as u64;
        let unknown =
            of(&format!("SELECT count(*) FROM frames WHERE buffer = '{buffer}' AND frame IS NULL"));
        let known: u64 = engine
            .tables()
            .iter()
            .filter_map(|(name, _)| name.strip_prefix(&format!("{buffer}.")).map(str::to_owned))
            .filter(|name| name != "ppt_gaps") // the same as gaps
            .map(|name| of(&format!("SELECT count(*) FROM \"{buffer}\".\"{name}\"")))
            .sum();
        assert_eq!(known + unknown, count, "{buffer}");
    }
}

/// Queries with bounds of everything that is in heads.
fn queries(dice: &mut Dice) -> Vec<String> {
    let real = 1_700_000_000_000_000_000i64;
    let mut at = || format!("to_timestamp_nanos({})", real + dice.below(4_000_000_000) as i64);
    let (a, b, c, d) = (at(), at(), at(), at());
    let n = 1 + dice.below(12);
    vec![
        format!("SELECT * FROM frames WHERE ts >= {a} AND ts < {b}"),
        format!("SELECT * FROM frames WHERE drained BETWEEN {c} AND {d}"),
        format!("SELECT * FROM frames WHERE coalesce(ts, drained) > {a}"),
        format!("SELECT buffer, seqno FROM frames WHERE coalesce(ts, drained) <= {b}"),
        format!("SELECT * FROM two.job WHERE ts > {a} OR seqno = {n}"),
        format!("SELECT * FROM \"one\".\"only\" WHERE seqno IN ({n}, {}) AND ring = 1", n + 1),
        format!("SELECT count(*) FROM frames WHERE seqno < {n} AND tid = 100"),
        "SELECT seqno FROM frames WHERE frame = 'job' AND pid = 41".to_owned(),
        "SELECT frame, count(*), max(drained) FROM frames GROUP BY frame".to_owned(),
        "SELECT * FROM tri.x".to_owned(),
        "SELECT * FROM tri.\"X\" WHERE buffer = 'tri' AND host = 'host0'".to_owned(),
        "SELECT count(*) FROM two.\"only\"".to_owned(),
        "SELECT count(*), count(ts) FROM \"one\".\"only\"".to_owned(),
        "SELECT * FROM \"none\".y".to_owned(),
        "SELECT segment, ring, seqno FROM frames ORDER BY capture, buffer, segment, ring, seqno"
            .to_owned(),
        "SELECT name, seqno, dur FROM slices WHERE pid = 40 AND name LIKE 'job.%'".to_owned(),
        "SELECT * FROM slices".to_owned(),
        "SELECT * FROM slices WHERE tid = 101 AND depth > 0".to_owned(),
        "SELECT name, sum(self), count(*) FROM slices GROUP BY name".to_owned(),
        "SELECT * FROM sources".to_owned(),
        "SELECT * FROM clocks".to_owned(),
        "SELECT * FROM captures".to_owned(),
        "SELECT bucket(ts, '100ms') AS t, count(*) FROM frames GROUP BY t".to_owned(),
    ]
}

proptest! {
    #![proptest_config(cases(12))]

    #[test]
    fn what_sql_says_is_what_info_and_dump_say(seed in any::<u64>(), clocks in any::<bool>()) {
        let files = Files::new(&[capture(seed, 1, clocks)]);
        for options in [with_pushdown(), without_pushdown()] {
            let engine = files.engine(&options);
            cells_are_dumps(&files.paths[0], &engine);
            sums_are_infos(&files.paths, &engine);
        }
    }

    #[test]
    fn what_is_pushed_down_changes_no_answer(seed in any::<u64>(), clocks in any::<bool>()) {
        let files = Files::new(&[capture(seed, 1, clocks), capture(seed ^ 5, 2, true)]);
        let (with, without) =
            (files.engine(&with_pushdown()), files.engine(&without_pushdown()));
        sums_are_infos(&files.paths, &with);
        for sql in queries(&mut Dice::new(seed)) {
            let (found, expected) = (sorted(&with, &sql), sorted(&without, &sql));
            prop_assert_eq!(found, expected, "{}", sql);
        }
    }

    #[test]
    fn damage_is_said_and_its_account_is_infos(
        seed in any::<u64>(),
        damage in any::<windows::Damage>(),
    ) {
        let bytes = damage.of(&capture(seed, 1, true));
        let files = Files::new(&[bytes]);
        let Ok(info) = Info::read(&files.paths[0]) else { return Ok(()) };
        if info.capture.is_none() {
            return Ok(());
        }
        let engine = files.engine(&with_pushdown());
        engine.set().verify().unwrap();
        sums_are_infos(&files.paths, &engine);
        let without = files.engine(&without_pushdown());
        for sql in queries(&mut Dice::new(seed)) {
            // Damage may have taken the source of a table.
            if support::batches(&without, &sql).is_ok() {
                prop_assert_eq!(sorted(&engine, &sql), sorted(&without, &sql), "{}", sql);
            }
        }
        let troubles = engine.set().troubles();
        let damages: u64 = troubles.iter().map(|trouble| trouble.damages).sum();
        prop_assert_eq!(damages, info.damages);
        prop_assert_eq!(troubles.iter().find_map(|trouble| trouble.cut), info.cut);
    }
}

#[test]
fn ordering_by_what_names_a_row_is_read_that_way() {
    let files = Files::new(&[capture(3, 1, true), capture(4, 2, true)]);
    let engine = files.engine(&with_pushdown());
    let sql = "SELECT capture, buffer, segment, ring, seqno FROM frames \
               ORDER BY capture, buffer, segment, ring, seqno";
    let plan = support::explained(&engine, sql);
    assert!(!plan.contains("SortExec"), "{plan}");
    let found = rows(&engine, sql);
    let mut expected = found.clone();
    expected.sort_by_key(|row| {
        let number = |at: usize| text(&row[at]).parse::<i64>().unwrap();
        (row[0].clone(), row[1].clone(), row[2].clone(), number(3), number(4))
    });
    assert_eq!(found, expected);
    assert!(found.len() > 10);
}
