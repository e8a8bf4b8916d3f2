//! A capture with every kind of record besides plain frames: spans, a chain, counters, histograms,
//! states of threads, and a trigger.

use ppt_capture::frame_dsl::Schema;
use ppt_capture::frame_dsl::schema::FieldType;
use ppt_capture::{
    CaptureWriter, CellRows, CellsHead, ClockId, ClockReading, End, EndReason, FileHeader,
    FramesHead, Process, Segment, Source, Stretch, Trigger, TriggerCause,
};

const SECOND: u64 = 1_000_000_000;
const MONO: u64 = 7_000 * SECOND;
const REAL: u64 = 1_795_238_091 * SECOND;
const PID: u32 = 4211;
/// Requests of each thread.
const ROUNDS: u64 = 200;
/// Frames of a chunk.
const CHUNK: usize = 100;

const FRAMES: &str = "
buffer shop;
option time ns monotonic;
enum Verb : u8 { GET, PUT }
frame job { Verb verb; interval time handle; }
frame request @span { u64 id @key; Verb verb; u32 bytes @unit(\"B\"); }
frame encode @chain(start, dsp, send) { u64 n @key; }
counter bytes_in @unit(\"B\");
counter inflight : i64;
histogram handling : duration;
histogram queue : u32 (0, 64, 8);
";

fn schema(source: &str) -> Schema {
    ppt_frame_dsl::compile(source.as_bytes(), "made.frame").unwrap().schema
}

/// The schema of the program's frames. Everything except identifiers contains `text`: descriptions,
/// units, and a field of text.
fn own(text: &str) -> Schema {
    if text.is_empty() {
        return schema(FRAMES);
    }
    let fields = "Verb verb; interval time handle; char note[96];";
    let source = FRAMES.replace("Verb verb; interval time handle;", fields);
    let mut schema = schema(&source);
    for it in &mut schema.enums {
        it.doc = format!("enum {text}");
    }
    for frame in &mut schema.frames {
        frame.doc = format!("frame {text}");
        for field in &mut frame.fields {
            field.doc = format!("field {text}");
            if field.unit == "B" {
                field.unit = format!("B{text}");
            }
        }
    }
    schema
}

fn kernel() -> Schema {
    let source = include_str!("../../../../kernel/src/kernel.frame");
    schema(&format!("{source}\nenum Call : u16 {{ read = 0, futex = 1 }}\n"))
}

/// A frame of a kind with these fields, and `text` in every field of text.
fn frame((schema, text): (&Schema, &str), seq: u64, kind: &str, fields: &[(&str, u64)]) -> Vec<u8> {
    let id = schema.frames.iter().position(|frame| frame.name == kind).unwrap();
    let mut bytes = vec![0; schema.stride as usize];
    bytes[..8].copy_from_slice(&seq.to_le_bytes());
    bytes[8..10].copy_from_slice(&(id as u16).to_le_bytes());
    for (name, value) in fields {
        let found = schema.frames[id].fields.iter().find(|field| field.name == *name);
        let field = found.unwrap_or_else(|| panic!("{kind} has no {name}"));
        let len = field.ty.size(schema) as usize;
        bytes[field.offset as usize..][..len].copy_from_slice(&value.to_le_bytes()[..len]);
    }
    for field in &schema.frames[id].fields {
        if let FieldType::Char { len } = field.ty {
            let shown = &text.as_bytes()[..text.len().min(len as usize)];
            bytes[field.offset as usize..][..shown.len()].copy_from_slice(shown);
        }
    }
    bytes
}

/// Frames of one ring, in the order of time.
#[derive(Default)]
struct MadeRing(Vec<(u64, &'static str, Fields)>);

/// Names and values of fields.
type Fields = Vec<(&'static str, u64)>;

impl MadeRing {
    fn tell(&mut self, at: u64, kind: &'static str, fields: &[(&'static str, u64)]) {
        self.0.push((at, kind, fields.to_vec()));
    }

    fn write(
        mut self,
        writer: &mut CaptureWriter<Vec<u8>>,
        (number, schema, text): (u16, &Schema, &str),
        (ring, tid): (u32, u32),
    ) -> u64 {
        self.0.sort_by_key(|entry| entry.0);
        for (number_of_chunk, chunk) in self.0.chunks(CHUNK).enumerate() {
            let first_seq = (number_of_chunk * CHUNK) as u64 + 1;
            let told = (first_seq..).zip(chunk);
            let bytes: Vec<u8> = told
                .flat_map(|(seq, entry)| frame((schema, text), seq, entry.1, &entry.2))
                .collect();
            let (t_min, t_max) = (chunk[0].0, chunk[chunk.len() - 1].0);
            let head = FramesHead {
                source: number,
                nonce: 9,
                ring,
                tid,
                first_seq,
                count: chunk.len() as u32,
                stride: schema.stride,
                drained_mono_ns: t_max + 1_000_000,
                t_min,
                t_max,
                frame_mask: u64::MAX >> (64 - schema.frames.len()),
                ..FramesHead::default()
            };
            writer.frames(&head, &bytes).unwrap();
        }
        self.0.len() as u64
    }
}

/// Writes the capture and returns it with its number of frames. `text` is part of every text that a
/// target can choose.
pub fn write(text: &str) -> (Vec<u8>, u64) {
    let header = FileHeader {
        capture_id: [8; 16],
        host: format!("till{text}"),
        boot_id: "boot".to_owned(),
        created_realtime_ns: REAL,
        created_mono_ns: MONO,
        ..FileHeader::default()
    };
    let mut writer = CaptureWriter::create(Vec::new(), &header).unwrap();
    // Ticks are ns of CLOCK_MONOTONIC.
    let reading = |a, b, ahead: u64, second: u64| {
        let now = MONO + second * SECOND;
        ClockReading { a, a_before: now, b, b_value: now + ahead, a_after: now, distrusted: false }
    };
    let real = reading(ClockId::Monotonic, ClockId::Realtime, REAL - MONO, 0);
    let ticks = [0, 6].map(|second| reading(ClockId::Tick, ClockId::Monotonic, 0, second));
    writer.clock(&[real, ticks[0], ticks[1]]).unwrap();
    let own = own(text);
    let kernel = kernel();
    for (number, schema, kind) in [(0, &own, ""), (1, &kernel, "kernel")] {
        let segment = Segment { nonce: 9, rings: 4, slots: 4096, stride: schema.stride };
        let source = Source {
            schema_json: schema.to_json().into_bytes(),
            schema_hash: schema.hash(),
            kind: kind.to_owned(),
            buffer: schema.buffer.clone(),
            object: text.to_owned(),
            process: Process {
                pid: PID,
                comm: text.to_owned(),
                exe: format!("/opt/shopd{text}"),
                ..Process::default()
            },
            tags: match text {
                "" => Vec::new(),
                text => vec![(format!("tag{text}"), format!("value{text}"))],
            },
            segments: vec![segment],
            clock: "tick".to_owned(),
            ..Source::default()
        };
        writer.source(number, &source).unwrap();
    }
    let mut captured = 0;
    let mut by_kernel = MadeRing::default();
    for ring in 0..2u64 {
        let tid = 100 + ring;
        let thread = ("thread", tid);
        let mut its = MadeRing::default();
        for n in 0..ROUNDS {
            let id = ring << 32 | n;
            let at = MONO + SECOND + n * 20_000_000 + ring * 3_000_000;
            // The thread runs, waits in a call, is woken late, and runs.
            let ran = 100_000 + n * 1_000;
            let waited = 400_000 + n % 7 * 150_000;
            let late = 50_000;
            let end = at + ran + waited + late + 20_000;
            let cpu = ("cpu", ring);
            by_kernel.tell(at - 10, "switch_in", &[thread, cpu, ("at", at - 10)]);
            let called = at + ran;
            let call = [thread, cpu, ("call", n % 2), ("at", called - 10)];
            by_kernel.tell(called - 10, "syscall_enter", &call);
            let out = [thread, cpu, ("preempted", 0), ("at", called)];
            by_kernel.tell(called, "switch_out", &out);
            let woken = called + waited;
            let wakeup = [thread, cpu, ("by", 0), ("waker", 100 + (1 - ring)), ("at", woken)];
            by_kernel.tell(woken, "wakeup", &wakeup);
            by_kernel.tell(woken + late, "switch_in", &[thread, cpu, ("at", woken + late)]);
            let back = woken + late + 10;
            let exit = [thread, cpu, ("call", n % 2), ("result", 1), ("at", back)];
            by_kernel.tell(back, "syscall_exit", &exit);
            let out = [thread, cpu, ("preempted", 0), ("at", end + 30)];
            by_kernel.tell(end + 30, "switch_out", &out);
            let verb = ("verb", n % 2);
            its.tell(at, "request", &[("id", id), verb, ("edge", 0), ("at", at)]);
            its.tell(at + 1, "encode", &[("n", id), ("step", 0), ("at", at + 1)]);
            its.tell(end, "job", &[verb, ("handle_start", at), ("handle_end", end)]);
            if n % 10 != 3 {
                its.tell(end + 1, "encode", &[("n", id), ("step", 1), ("at", end + 1)]);
            }
            its.tell(end + 2, "encode", &[("n", id), ("step", 2), ("at", end + 2)]);
            if n % 20 != 7 {
                let fields = [("id", id), ("edge", 1), ("bytes", n), ("at", end + 5)];
                its.tell(end + 5, "request", &fields);
            }
        }
        captured += its.write(&mut writer, (0, &own, text), (ring as u32, tid as u32));
    }
    let last = by_kernel.0.iter().map(|entry| entry.0).max().unwrap() + 1;
    by_kernel.tell(last, "watch_end", &[("at", last)]);
    captured += by_kernel.write(&mut writer, (1, &kernel, text), (0, 0));
    readings(&mut writer, &own);
    let whole = Stretch { from_ns: MONO, to_ns: MONO + 6 * SECOND };
    let trigger = Trigger {
        source: None,
        mono_ns: MONO + 3 * SECOND,
        wanted: whole,
        held: whole,
        why: TriggerCause::Hand,
        ring: None,
        seqno: None,
        expression: String::new(),
        note: format!("look here{text}"),
    };
    writer.trigger(&trigger).unwrap();
    let end = End {
        reason: EndReason::Stopped,
        message: text.to_owned(),
        rings: Vec::new(),
        drops: Vec::new(),
        realtime_ns: REAL + 6 * SECOND,
        mono_ns: MONO + 6 * SECOND,
    };
    (writer.end(&end).unwrap(), captured)
}

/// Each second: 1,000 bytes more, one request in flight more or, later, less, and values of histograms.
fn readings(writer: &mut CaptureWriter<Vec<u8>>, schema: &Schema) {
    let metrics = schema.metrics();
    let first = |name: &str| metrics.iter().find(|metric| metric.name == name).unwrap().cells.start;
    for second in 1..=5u64 {
        let level = if second <= 3 { second } else { 6 - second };
        let cells = [
            (first("bytes_in"), 1_000 * second),
            (first("inflight"), level),
            (first("handling"), 1_000_000 * second),
            // The bucket of about 1 ms, one of a few ns, and each second a value beyond the range.
            (first("handling") + 3, 4 * second),
            (first("handling") + 500, second),
            (first("queue"), 0),
            (first("queue") + 4, 10 * second),
        ];
        let mut rows = CellRows::default();
        let mut cells = cells.to_vec();
        cells.sort_unstable();
        rows.push(Some(0), 100, cells);
        let mono_ns = MONO + second * SECOND;
        let head = CellsHead { nonce: 9, mono_ns, ..CellsHead::default() };
        writer.cells(&head, &rows).unwrap();
    }
}
