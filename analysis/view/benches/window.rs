//! The cost of an index and of its windows: `cargo bench -p ppt-view [-- FRAMES [THREADS]]`. The default is
//! 10 million slices of 48 bytes from 8 threads, with one level of nesting, in the page cache.

use std::error::Error;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use ppt_capture::frame_dsl::schema::{
    Extra, Field, FieldType, Frame, Interval, IntervalEnd, Schema,
};
use ppt_capture::{
    CaptureWriter, ClockId, ClockReading, End, EndReason, FileHeader, FramesHead, Process, Segment,
    Source,
};
use ppt_view::{Phase, RowId, View, WindowRequest};

const STRIDE: u32 = 48;
/// The number of frames of a full chunk of the listener.
const CHUNK: u64 = (512 << 10) / STRIDE as u64;
const WRITERS: u64 = 8;
const NONCE: u64 = 7;
const TICKS: u64 = 5_000_000_000;
const EPOCH: u64 = 1_795_238_091_000_000_000;
/// The number of slices in an outer slice.
const INNER: u64 = 9;

fn schema() -> Schema {
    let field = |name: &str, ty: FieldType, offset, edge: Option<IntervalEnd>| Field {
        name: name.into(),
        at: edge == Some(IntervalEnd::End),
        ty,
        array: None,
        offset,
        interval: edge.map(|edge| Interval { name: "handle".into(), edge }),
        unit: String::new(),
        doc: String::new(),
        attributes: Vec::new(),
        extra: Extra::new(),
    };
    let fields = vec![
        field("a", FieldType::U64, 8, None),
        field("b", FieldType::U64, 16, None),
        field("c", FieldType::U64, 24, None),
        field("handle_start", FieldType::Tsc, 32, Some(IntervalEnd::Start)),
        field("handle_end", FieldType::Tsc, 40, Some(IntervalEnd::End)),
    ];
    let (kind, doc, attributes) = ("plain".into(), String::new(), Vec::new());
    let (size, extra) = (STRIDE, Extra::new());
    let frame = Frame { name: "job".into(), kind, size, fields, doc, attributes, extra };
    Schema {
        v: 1,
        buffer: "server".into(),
        slots: 1 << 16,
        stride: STRIDE,
        frames: vec![frame],
        enums: Vec::new(),
        tags: Vec::new(),
        extra: Extra::new(),
    }
}

/// The start and the end of the slice with this number in a thread, ns. Each tenth slice contains the nine
/// before it. A slice takes about 1 µs.
fn slice(seq: u64) -> (u64, u64) {
    let noise = seq.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 55;
    let (round, place) = (seq / (INNER + 1), seq % (INNER + 1));
    let first = round * (INNER + 1) * 1000;
    match place {
        INNER => (first, first + INNER * 1000 + noise),
        _ => (first + place * 1000 + noise / 2, first + place * 1000 + 300 + noise),
    }
}

fn write(path: &Path, frames: u64) -> Result<(), Box<dyn Error>> {
    let header = FileHeader { capture_id: [7; 16], ..FileHeader::default() };
    let mut writer = CaptureWriter::create(BufWriter::new(File::create(path)?), &header)?;
    let each = frames / WRITERS;
    let reading = |a, a_value, b, b_value| ClockReading {
        a,
        a_before: a_value,
        b,
        b_value,
        a_after: a_value,
        distrusted: false,
    };
    for second in 0..=each / 1_000_000 + 2 {
        let ns = 1_000_000_000 * second;
        writer.clock(&[
            reading(ClockId::Tick, TICKS + 2 * ns, ClockId::Monotonic, ns + 1),
            reading(ClockId::Monotonic, ns + 1, ClockId::Realtime, EPOCH + ns),
        ])?;
    }
    let schema = schema();
    let rings = WRITERS as u32;
    let source = Source {
        schema_json: schema.to_json().into_bytes(),
        schema_hash: schema.hash(),
        buffer: schema.buffer,
        process: Process { pid: 4, start_time: 1, ..Process::default() },
        segments: vec![Segment { nonce: NONCE, rings, slots: 1 << 16, stride: STRIDE }],
        ..Source::default()
    };
    writer.source(0, &source)?;
    let ticks = |ns: u64| TICKS + 2 * ns;
    for first in (0..each).step_by(CHUNK as usize) {
        let next = (first + CHUNK).min(each);
        let words = |number: u64| {
            let (start, end) = slice(number);
            [number + 1, number, number, number, ticks(start), ticks(end)]
        };
        let payload: Vec<u8> = (first..next).flat_map(words).flat_map(u64::to_le_bytes).collect();
        for ring in 0..rings {
            let head = FramesHead {
                nonce: NONCE,
                ring,
                tid: 100 + ring,
                first_seq: first + 1,
                count: (next - first) as u32,
                stride: STRIDE,
                drained_mono_ns: slice(next).1 + 1,
                t_min: ticks(slice(first).1),
                t_max: ticks(slice(next - 1).1),
                frame_mask: 1,
                ..FramesHead::default()
            };
            writer.frames(&head, &payload)?;
        }
    }
    writer.end(&End::new(EndReason::Stopped, 0, 0))?.flush()?;
    Ok(())
}

fn cpu() -> Duration {
    let used = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after = used.rsplit(')').next().unwrap_or_default();
    let words: Vec<u64> = after.split(' ').skip(12).take(2).flat_map(str::parse).collect();
    Duration::from_millis(10 * words.iter().sum::<u64>())
}

fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|word| word.parse().ok()).unwrap_or(0)
}

fn timed<T>(what: &str, run: impl FnOnce() -> T) -> (Duration, T) {
    let (start, used) = (Instant::now(), cpu());
    let done = run();
    let took = start.elapsed();
    println!("{what}: {took:.1?}, CPU {:.1?}", cpu() - used);
    (took, done)
}

/// Times of a thousand random windows of the rows, sorted.
fn windows(view: &View, rows: &[RowId], (from, to): (i64, i64), phase: Phase) -> Vec<Duration> {
    let (mut word, cancel) = (7u64, AtomicBool::new(false));
    let mut random = |most: u64| {
        word = word.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (word >> 20) % most.max(1)
    };
    let all = (to - from) as u64;
    let mut times: Vec<Duration> = (0..1000)
        .map(|_| {
            let width = all >> random(20);
            let from = from + random(all - width) as i64;
            let (to, rows) = (from + width as i64 + 1, rows.to_vec());
            let request = WindowRequest { from, to, pixels: 2000, rows, phase };
            let start = Instant::now();
            let rows = view.window(&request, &cancel);
            let cells: usize = rows.map(|row| row.map_or(0, |row| row.cells.len())).sum();
            std::hint::black_box(cells);
            start.elapsed()
        })
        .collect();
    times.sort();
    times
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1).filter_map(|arg| arg.parse().ok());
    let frames = arguments.next().unwrap_or(10_000_000);
    let threads = arguments.next().unwrap_or(1) as usize;
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("out.bin");
    write(&path, frames)?;
    let cache = folder.path().join("cache");
    let open = || View::open(std::slice::from_ref(&path), Some(&cache), 256 << 20);
    let (_, view) = timed("heads", open);
    let view = view?;
    let before = view.about();
    println!("rows by heads: {}", before.rows.len());
    let cancel = AtomicBool::new(false);
    let build = || view.build(threads, &|_| {}, &cancel);
    let (took, cost) = timed(&format!("build, {threads} threads"), build);
    let each = took.as_nanos() as f64 / frames as f64;
    println!("{:?}: {each:.1} ns a frame", cost?);
    let bytes = view.index_bytes(0).len();
    let of_frames = 100.0 * bytes as f64 / (frames * u64::from(STRIDE)) as f64;
    println!(
        "index: {bytes} bytes, {:.3} a frame, {of_frames:.3} % of frames",
        bytes as f64 / frames as f64
    );
    println!("most memory: {} KiB", resident());
    let about = view.about();
    let is_depth = |row: &RowId| matches!(row, RowId::Depth { .. });
    let rows: Vec<RowId> = about.rows.iter().map(|row| row.id).filter(is_depth).collect();
    let range = (about.from.unwrap_or(0), about.to.unwrap_or(1));
    let slices: u64 = about.rows.iter().filter(|row| is_depth(&row.id)).map(|row| row.count).sum();
    println!("rows: {}, slices: {slices}", rows.len());
    for phase in [Phase::Index, Phase::Frames] {
        let times = windows(&view, &rows, range, phase);
        let at = |part: usize| times[(times.len() * part / 1000).min(times.len() - 1)];
        println!(
            "{phase:?}, {} rows, 2000 px: median {:.2?}, p99 {:.2?}, most {:.2?}",
            rows.len(),
            at(500),
            at(990),
            at(1000)
        );
    }
    timed("save", || view.save()).1?;
    let (_, again) = timed("open with what was kept", open);
    let again = again?;
    timed("build with what was kept", || again.build(threads, &|_| {}, &cancel)).1?;
    println!("most memory: {} KiB", resident());
    Ok(())
}
