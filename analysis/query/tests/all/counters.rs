//! The tables `counters` and `histograms`: held against a model of each reading, against `ppt info`, and
//! against DuckDB over the same rows.

use std::collections::BTreeMap;
use std::io::Cursor;

use ppt_capture::frame_dsl::Schema;
use ppt_capture::frame_dsl::metric::{Metric, MetricShape};
use ppt_capture::{
    CaptureWriter, CellRows, CellsHead, ClockId, ClockReading, End, EndReason, FileHeader, Process,
    Segment, Source,
};
use ppt_dump::Info;
use ppt_query::{Encoder, EngineOptions, ResultFormat, TotalValue, Window};
use serde_json::{Value, json};

use crate::ask::ask;
use crate::random::Dice;
use crate::support::{Files, Row, batches, number, rows, sorted, with_pushdown, without_pushdown};

const REAL: u64 = 1_700_000_000_000_000_000;
const NONCES: [u64; 2] = [7, 8];
const RINGS: u32 = 3;

/// A buffer with frames, and one of counters alone.
fn schemas() -> [Schema; 2] {
    let text = |buffer: &str, hidden: &str| {
        format!(
            r#"{{"v":1,"buffer":"{buffer}","slots":2,"stride":16,"frames":[{{"name":"job","kind":"plain","size":16,"fields":[{{"name":"n","type":"u64","offset":8}}]{hidden}}}],"metrics":[{{"name":"seen","kind":"counter","type":"u64","unit":"B"}},{{"name":"waits","kind":"histogram","type":"duration"}},{{"name":"level","kind":"counter","type":"i64"}},{{"name":"sizes","kind":"histogram","type":"u32","from":10,"to":20,"buckets":4}}]}}"#
        )
    };
    [("one", ""), ("alone", r#","hidden":true"#)]
        .map(|(buffer, hidden)| Schema::from_json(text(buffer, hidden).as_bytes()).unwrap())
}

/// Source, segment and ring; the cells of that row that are not 0.
type Cells = BTreeMap<(u16, u64, Option<u32>), BTreeMap<u32, u64>>;

/// What readings state, and what is in the tables for that.
#[derive(Default)]
struct CounterModel {
    counters: Vec<Row>,
    /// What the last reading of a histogram says.
    histograms: BTreeMap<(u16, u64, Option<u32>, String), Vec<Row>>,
}

fn text(value: impl ToString) -> Option<String> {
    Some(value.to_string())
}

impl CounterModel {
    /// A reading found these cells of a row changed.
    fn read(
        &mut self,
        id: u8,
        place: (u16, u64, Option<u32>),
        schema: &Schema,
        before: &BTreeMap<u32, u64>,
        after: &BTreeMap<u32, u64>,
        tid: u32,
    ) {
        let (source, nonce, ring) = place;
        let of = |cells: &BTreeMap<u32, u64>, cell: u32| cells.get(&cell).copied().unwrap_or(0);
        let changed =
            |metric: &Metric| metric.cells.clone().any(|cell| of(before, cell) != of(after, cell));
        for metric in schema.metrics().iter().filter(|metric| changed(metric)) {
            let first = metric.cells.start;
            let fixed = |is_added: bool| {
                let ring = ring.map(|ring| ring.to_string());
                let tid = (is_added && tid != 0).then(|| tid.to_string());
                let id = text(format!("{id:02x}").repeat(8));
                let segment = text(format!("{nonce:016x}"));
                let name = text(&metric.name);
                vec![id, text(&schema.buffer), segment, ring, tid, name]
            };
            if !metric.shape.is_histogram() {
                let value = of(after, first);
                let delta = value.wrapping_sub(of(before, first));
                let own = vec![text(value as i64), text(delta as i64)];
                self.counters.push([fixed(true), own].concat());
                continue;
            }
            let buckets = (first + 1..metric.cells.end).filter(|&cell| of(after, cell) > 0);
            let bucket = |cell: u32| {
                let (lo, hi) = metric.shape.bucket(cell - first).unwrap();
                let bound =
                    |number: Option<i128>| number.filter(|number| *number < 1 << 63).and_then(text);
                let added = of(after, cell) - of(before, cell);
                let counts =
                    vec![text(of(after, cell)), text(of(after, first) as i64), text(added)];
                let unit = if metric.name == "waits" { "ns" } else { "" };
                let unit = (!unit.is_empty()).then(|| unit.to_owned());
                [fixed(added > 0), vec![bound(lo), bound(hi)], counts, vec![unit]].concat()
            };
            let place = (source, nonce, ring, metric.name.clone());
            self.histograms.insert(place, buckets.map(bucket).collect());
        }
    }
}

/// A capture whose file begins with `base`, if it begins anywhere; what it ends with.
fn capture(
    id: u8,
    dice: &mut Dice,
    base: Option<&Cells>,
    model: &mut CounterModel,
) -> (Vec<u8>, Cells) {
    let header = FileHeader {
        capture_id: [id; 16],
        host: "host".to_owned(),
        boot_id: "boot".to_owned(),
        created_realtime_ns: REAL,
        ..FileHeader::default()
    };
    let mut writer = CaptureWriter::create(Vec::new(), &header).unwrap();
    writer.clock(&[ClockReading::exact(ClockId::Monotonic, 1, ClockId::Realtime, REAL)]).unwrap();
    let schemas = schemas();
    for (number, schema) in (0..).zip(&schemas) {
        let segment = |nonce| Segment { nonce, rings: RINGS, slots: 2, stride: 16 };
        let source = Source {
            schema_json: schema.to_json().into_bytes(),
            schema_hash: schema.hash(),
            buffer: schema.buffer.clone(),
            process: Process { pid: 9, ..Process::default() },
            segments: NONCES.map(segment).into(),
            ..Source::default()
        };
        writer.source(number, &source).unwrap();
    }
    let mut cells = base.cloned().unwrap_or_default();
    for (&(source, nonce, ring), row) in base.into_iter().flatten() {
        let mut rows = CellRows::default();
        rows.push(ring, 0, row.iter().map(|(&cell, &value)| (cell, value)));
        let head = CellsHead { source, nonce, is_base: true, ..CellsHead::default() };
        writer.cells(&head, &rows).unwrap();
    }
    for reading in 1..20 + dice.below(20) {
        let (source, nonce) = (dice.below(2) as u16, NONCES[dice.below(2) as usize]);
        let schema = &schemas[usize::from(source)];
        let mut rows = CellRows::default();
        let first = u64::from(dice.chance(2));
        for row in first..1 + dice.below(u64::from(RINGS) + 1) {
            let ring = (row as u32).checked_sub(1);
            let tid = ring.map_or(0, |_| dice.below(3) as u32);
            let place = (source, nonce, ring);
            let before = cells.get(&place).cloned().unwrap_or_default();
            let after = cells.entry(place).or_default();
            let mut add = |cell: u32, add: u64| {
                let value = after.entry(cell).or_default();
                *value = value.wrapping_add(add);
            };
            for metric in schema.metrics() {
                let first = metric.cells.start;
                let buckets = u64::from(metric.cells.end - first) - 1;
                for _ in 0..dice.below(4) {
                    let value = dice.below(1000);
                    match metric.shape {
                        MetricShape::Counter => add(first, value),
                        MetricShape::UpDownCounter => add(first, value.wrapping_sub(500)),
                        MetricShape::Exponential | MetricShape::Linear { .. } => {
                            add(first, value + 1);
                            add(first + 1 + dice.below(buckets) as u32, 1);
                        }
                    }
                }
            }
            let changed = after
                .iter()
                .filter(|(cell, value)| before.get(cell).copied().unwrap_or(0) != **value);
            rows.push(ring, tid, changed.map(|(&cell, &value)| (cell, value)));
            model.read(id, place, schema, &before, after, tid);
        }
        let head = CellsHead { source, nonce, mono_ns: reading, ..CellsHead::default() };
        writer.cells(&head, &rows).unwrap();
    }
    let end = End::new(EndReason::Stopped, REAL + 99, 99);
    (writer.end(&end).unwrap(), cells)
}

const COUNTERS: &str =
    "SELECT capture, buffer, segment, ring, tid, name, value, delta FROM counters";
const LAST: &str = "SELECT capture, buffer, segment, ring, tid, name, lo, hi, count, sum, delta, \
    unit FROM (SELECT *, max(ts) OVER (PARTITION BY capture, buffer, segment, ring, name) AS last \
     FROM histograms) WHERE ts = last";

fn info(bytes: &[u8]) -> Info {
    Info::read_stream(Cursor::new(bytes.to_vec())).unwrap()
}

#[test]
fn they_are_what_the_readings_state() {
    for seed in 0..20 {
        let mut dice = Dice::new(seed);
        let mut model = CounterModel::default();
        let (first, cells) = capture(1, &mut dice, None, &mut model);
        let (next, _) = capture(2, &mut dice, Some(&cells), &mut model);
        let (other, _) = capture(3, &mut dice, None, &mut CounterModel::default());
        let files = Files::new(&[first.clone(), next.clone()]);
        for options in [with_pushdown(), without_pushdown()] {
            let engine = files.engine(&options);
            model.counters.sort();
            assert_eq!(sorted(&engine, COUNTERS), model.counters, "seed {seed}");
        }
        let engine = files.engine(&with_pushdown());
        let infos = [info(&first), info(&next)];
        let buffers = || infos.iter().flat_map(|info| &info.buffers);
        let mut sums: BTreeMap<(String, String), i128> = BTreeMap::new();
        for buffer in buffers() {
            for counter in &buffer.counters {
                let name = (buffer.name.clone(), counter.name.clone());
                *sums.entry(name).or_default() += counter.value;
            }
        }
        let summed = "SELECT buffer, name, sum(delta) FROM counters GROUP BY buffer, name";
        let summed = sorted(&engine, summed);
        // What a file begins with was added before it.
        for (id, info) in ["01", "02"].iter().zip(&infos) {
            let of_file = |buffer: &str, name: &str| {
                format!(
                    "SELECT coalesce(sum(delta), 0) FROM histograms WHERE buffer = '{buffer}' \
                     AND name = '{name}' AND capture = '{}'",
                    id.repeat(8)
                )
            };
            for buffer in &info.buffers {
                for histogram in &buffer.histograms {
                    let added = number(&engine, &of_file(&buffer.name, &histogram.name));
                    assert_eq!(added as u64, histogram.count, "seed {seed}, {}", histogram.name);
                }
            }
        }
        let told =
            sums.into_iter().map(|((buffer, name), sum)| vec![text(buffer), text(name), text(sum)]);
        assert_eq!(summed, told.collect::<Vec<_>>(), "seed {seed}");
        // In a file that goes on from nothing, the last reading says what the file has.
        let files = Files::new(std::slice::from_ref(&other));
        let engine = files.engine(&with_pushdown());
        for buffer in info(&other).buffers {
            for histogram in buffer.histograms {
                let of = format!("buffer = '{}' AND name = '{}'", buffer.name, histogram.name);
                let count = number(&engine, &format!("SELECT sum(count) FROM ({LAST}) WHERE {of}"));
                assert_eq!(count as u64, histogram.count, "seed {seed}, {of}");
                let added = format!("SELECT sum(delta) FROM histograms WHERE {of}");
                assert_eq!(number(&engine, &added) as u64, histogram.count, "seed {seed}, {of}");
                let sum = number(
                    &engine,
                    &format!(
                        "SELECT sum(s) FROM (SELECT segment, ring, max(sum) AS s FROM ({LAST}) \
                         WHERE {of} GROUP BY segment, ring)"
                    ),
                );
                assert_eq!(i128::from(sum), histogram.sum, "seed {seed}, {of}");
            }
        }
    }
}

#[test]
fn the_last_reading_of_a_histogram_counts() {
    for seed in 50..70 {
        let mut dice = Dice::new(seed);
        let mut model = CounterModel::default();
        let (one, _) = capture(1, &mut dice, None, &mut model);
        let engine = Files::new(&[one]);
        let engine = engine.engine(&with_pushdown());
        let mut expected: Vec<Row> = model.histograms.into_values().flatten().collect();
        expected.sort();
        assert_eq!(sorted(&engine, LAST), expected, "seed {seed}");
        let outside = "SELECT count(*) FROM histograms WHERE lo IS NULL AND hi IS NULL OR lo >= hi";
        assert_eq!(number(&engine, outside), 0);
        // Whoever wants few rows gets few.
        assert_eq!(rows(&engine, "SELECT name FROM histograms LIMIT 3").len(), 3);
    }
}

#[test]
fn duckdb_adds_them_up_to_the_same() {
    let captures: Vec<_> = (1..6u8)
        .map(|id| capture(id, &mut Dice::new(id.into()), None, &mut CounterModel::default()).0)
        .collect();
    let files = Files::new(&captures);
    let engine = files.engine(&with_pushdown());
    for (table, queries) in [
        (
            "counters",
            [
                "SELECT buffer, name, unit, count(*), sum(delta), count(tid), count(ring) FROM t \
                 GROUP BY 1, 2, 3 ORDER BY 1, 2",
                "SELECT capture, buffer, segment, ring, name, sum(delta), max(value) FROM t \
                 GROUP BY 1, 2, 3, 4, 5 ORDER BY 1, 2, 3, 4 NULLS FIRST, 5",
            ],
        ),
        (
            "histograms",
            [
                "SELECT buffer, name, lo, hi, count(*), sum(count), max(sum), sum(delta) FROM t \
                 GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3 NULLS FIRST, 4",
                "SELECT capture, host, pid, ring, count(*), min(lo), max(hi), count(tid) FROM t \
                 GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4 NULLS FIRST",
            ],
        ),
    ] {
        let path = files.folder().join(format!("{table}.parquet"));
        let what = format!("SELECT * FROM {table}");
        let answer = batches(&engine, &what).unwrap();
        let file = std::fs::File::create(&path).unwrap();
        let mut encoder = Encoder::new(file, ResultFormat::Parquet, &answer[0].schema()).unwrap();
        answer.iter().for_each(|batch| encoder.write(batch).unwrap());
        encoder.finish().unwrap();
        let Some(answers) = ask("duckdb", &path, &json!(queries)) else { return };
        for (query, answer) in queries.iter().zip(answers) {
            let text = |value: &Value| match value {
                Value::Null => None,
                Value::String(text) => Some(text.clone()),
                other => Some(other.to_string()),
            };
            let rows_of = |row: &Value| row.as_array().unwrap().iter().map(text).collect();
            let expected: Vec<Row> = answer.as_array().unwrap().iter().map(rows_of).collect();
            assert!(!expected.is_empty());
            assert_eq!(rows(&engine, &query.replace("FROM t", &format!("FROM {table}"))), expected);
        }
    }
}

/// A buffer of counters can be queried alone. The totals are those of `ppt info`, for rotated files together.
#[test]
fn totals_of_a_buffer_are_those_of_info() {
    let mut dice = Dice::new(7);
    let (first, cells) = capture(1, &mut dice, None, &mut CounterModel::default());
    let (next, _) = capture(2, &mut dice, Some(&cells), &mut CounterModel::default());
    let files = Files::new(&[first.clone(), next.clone()]);
    let window = Window { buffers: vec!["alone".to_owned()], ..Window::default() };
    let engine = files.engine(&EngineOptions { window, ..with_pushdown() });
    assert_eq!(number(&engine, "SELECT count(DISTINCT buffer) FROM counters"), 1);
    let totals = engine.totals().unwrap();
    assert!(totals.iter().all(|total| total.buffer == "alone"));
    let infos = [info(&first), info(&next)];
    let buffers =
        || infos.iter().flat_map(|info| &info.buffers).filter(|info| info.name == "alone");
    for total in &totals {
        let name = &total.name;
        match &total.value {
            TotalValue::Counter(sum) => {
                let all =
                    buffers().flat_map(|buffer| &buffer.counters).filter(|info| info.name == *name);
                assert_eq!(*sum, all.map(|total| total.value).sum::<i128>(), "{name}");
            }
            TotalValue::Histogram(histogram, _) => {
                let all = || {
                    buffers()
                        .flat_map(|buffer| &buffer.histograms)
                        .filter(|info| info.name == *name)
                };
                assert_eq!(histogram.count, all().map(|total| total.count).sum::<u64>(), "{name}");
                assert_eq!(i128::from(histogram.sum), all().map(|total| total.sum).sum(), "{name}");
                let counts = histogram.buckets.iter().map(|bucket| bucket.2).sum::<u64>();
                assert_eq!(counts, histogram.count, "{name}");
            }
        }
    }
    assert_eq!(totals.len(), 4);
}
