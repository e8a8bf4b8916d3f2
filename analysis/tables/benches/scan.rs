//! What a scan costs: `cargo bench -p ppt-tables [-- FRAMES]`, 10 million frames of 48 bytes by
//! default, in the page cache. One thread.

use std::error::Error;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::cast::AsArray;
use arrow_array::types::{TimestampNanosecondType, UInt64Type};
use ppt_capture::frame_dsl::schema::{Extra, Field, FieldType, Frame, Schema};
use ppt_capture::{
    CaptureWriter, ClockId, ClockReading, End, EndReason, FileHeader, FramesHead, Segment, Source,
};
use ppt_tables::{BoundedNumber, Bounds, CaptureSet, Directory, Scan, TableRequest};

const STRIDE: u32 = 48;
/// Frames of a full chunk, as the listener makes them.
const CHUNK: u64 = (512 << 10) / STRIDE as u64;
const NONCE: u64 = 7;
const TICKS: u64 = 5_000_000_000;
const TICKS_A_FRAME: u64 = 2_100;
const EPOCH: u64 = 1_795_238_091_000_000_000;

fn schema() -> Schema {
    let field = |(name, ty, offset): (&str, FieldType, u32)| Field {
        name: name.into(),
        at: ty == FieldType::Tsc,
        ty,
        array: None,
        offset,
        interval: None,
        unit: String::new(),
        doc: String::new(),
        attributes: Vec::new(),
        extra: Extra::new(),
    };
    let fields = [
        ("a", FieldType::I32, 8),
        ("b", FieldType::I32, 12),
        ("c", FieldType::U64, 16),
        ("d", FieldType::U64, 24),
        ("e", FieldType::U64, 32),
        ("at", FieldType::Tsc, 40),
    ];
    Schema {
        v: 1,
        buffer: "stamped".into(),
        slots: 1 << 16,
        stride: STRIDE,
        frames: vec![Frame {
            name: "stamped".into(),
            kind: "plain".into(),
            size: STRIDE,
            fields: fields.into_iter().map(field).collect(),
            doc: String::new(),
            attributes: Vec::new(),
            extra: Extra::new(),
        }],
        enums: Vec::new(),
        tags: Vec::new(),
        extra: Extra::new(),
    }
}

fn write(path: &Path, frames: u64) -> Result<(), Box<dyn Error>> {
    let header = FileHeader { capture_id: [7; 16], ..FileHeader::default() };
    let mut writer = CaptureWriter::create(BufWriter::new(File::create(path)?), &header)?;
    let reading = |a, a_value, b, b_value| ClockReading {
        a,
        a_before: a_value,
        b,
        b_value,
        a_after: a_value,
        distrusted: false,
    };
    let (tick, mono) = (ClockId::Tick, ClockId::Monotonic);
    // A frame a µs.
    for second in 0..=frames / 1_000_000 + 1 {
        let ns = 1_000_000_000 * (second + 1);
        writer.clock(&[
            reading(tick, TICKS + second * 1_000_000 * TICKS_A_FRAME, mono, ns),
            reading(mono, ns, ClockId::Realtime, EPOCH + ns),
        ])?;
    }
    let schema = schema();
    let segments = vec![Segment { nonce: NONCE, rings: 1, slots: 1 << 16, stride: STRIDE }];
    writer.source(
        0,
        &Source {
            schema_json: schema.to_json().into_bytes(),
            schema_hash: schema.hash(),
            buffer: schema.buffer,
            segments,
            ..Source::default()
        },
    )?;
    let at = |seq: u64| TICKS + TICKS_A_FRAME * seq;
    for first_seq in (1..=frames).step_by(CHUNK as usize) {
        let next = (first_seq + CHUNK).min(frames + 1);
        let payload: Vec<u8> = (first_seq..next)
            .flat_map(|seq| [seq, seq, seq, seq, seq, at(seq)])
            .flat_map(u64::to_le_bytes)
            .collect();
        let head = FramesHead {
            nonce: NONCE,
            tid: 12_345,
            first_seq,
            count: (next - first_seq) as u32,
            stride: STRIDE,
            drained_mono_ns: 1_000_000_000 + 1000 * next,
            t_min: at(first_seq),
            t_max: at(next - 1),
            frame_mask: 1,
            ..FramesHead::default()
        };
        writer.frames(&head, &payload)?;
    }
    writer.end(&End::new(EndReason::Stopped, 0, 0))?.flush()?;
    Ok(())
}

/// The shortest of a few runs.
fn best<T>(mut run: impl FnMut() -> T) -> (Duration, T) {
    let once = |run: &mut dyn FnMut() -> T| {
        let start = Instant::now();
        let done = run();
        (start.elapsed(), done)
    };
    let mut best = once(&mut run);
    for _ in 0..4 {
        let next = once(&mut run);
        if next.0 < best.0 {
            best = next;
        }
    }
    best
}

fn scan(set: &Arc<CaptureSet>, columns: &[&str], bounds: &Bounds) -> Arc<dyn Scan> {
    let directory = Directory::new(set).unwrap();
    let table = &directory.plain()["stamped"];
    let index = |name: &&str| table.schema().index_of(name).unwrap();
    let columns: Vec<usize> = columns.iter().map(index).collect();
    table
        .plan(&TableRequest { columns: &columns, bounds, limit: None, parts: 1, memory: None })
        .unwrap()
        .scan
}

fn open(path: &Path) -> Arc<CaptureSet> {
    Arc::new(CaptureSet::open(&[path.to_owned()]).unwrap())
}

fn main() -> Result<(), Box<dyn Error>> {
    let frames = std::env::args().filter_map(|arg| arg.parse().ok()).next().unwrap_or(10_000_000);
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let path = folder.join(format!("scan-{frames}.bin"));
    if !path.exists() {
        write(&path, frames)?;
    }
    let bytes = std::fs::metadata(&path)?.len();
    println!("{frames} frames, {bytes} bytes");

    let all = Bounds::default();
    let (time, rows) = best(|| scan(&open(&path), &[], &all).rows(None));
    println!("count from heads, opening included: {time:.2?}, {rows:?} rows");

    let set = open(&path);
    let rate = |time: Duration| bytes as f64 / time.as_secs_f64() / 1e9;
    let (time, sum) = best(|| {
        let scan = scan(&set, &["c"], &all);
        let sum = |batch: arrow_array::RecordBatch| -> u64 {
            batch.column(0).as_primitive::<UInt64Type>().values().iter().sum()
        };
        scan.read(0).map(|batch| sum(batch.unwrap())).sum::<u64>()
    });
    println!("one column summed: {time:.2?}, {:.2} GB/s a core ({sum})", rate(time));

    let (time, last) = best(|| {
        let scan = scan(&set, &["ts"], &all);
        let last = |batch: arrow_array::RecordBatch| {
            let times = batch.column(0).as_primitive::<TimestampNanosecondType>().clone();
            times.value(times.len() - 1)
        };
        scan.read(0).map(|batch| last(batch.unwrap())).max()
    });
    println!("times of ticks: {time:.2?}, {:.2} GB/s a core ({last:?})", rate(time));

    let mut narrow = Bounds::default();
    let middle = (EPOCH + 1_000_000_000 + frames / 2 * 1000) as i64;
    narrow.within(BoundedNumber::Ts, (middle, middle + 1_000_000));
    let (time, told) = best(|| {
        let scan = scan(&open(&path), &["c", "ts"], &narrow);
        let rows: usize = scan.read(0).map(|batch| batch.unwrap().num_rows()).sum();
        (rows, scan.explain_text())
    });
    println!("a ms of it, opening included: {time:.2?}, {told:?}");
    Ok(())
}
