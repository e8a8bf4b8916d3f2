//! The listener over a segment that its target rewrites: cursors, owners, slots, headers, while
//! they are being read.

use std::io::{self, Cursor, Write};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ppt_capture::FileHeader;
use ppt_codegen::{Compiled, parse};
use ppt_dump::{Info, dump_stream};
use ppt_listener::{EndReason, Feed, Listener, ListenerOptions, Silence, Source, Unattended};
use ppt_segment::abi::{PAGE, RING_PITCH};
use ppt_segment::{
    Created, FIRST_BYTES, Geometry, RingWriter, RowGeometry, Segment, SegmentIdentity, cells,
};

const FRAMES: &[u8] = b"frame f { u64 a; char b[24]; time t; }
    counter n; counter d : i64; histogram h : u32 (0, 90, 9);";
const RINGS: u32 = 3;
const LOG2_SLOTS: u32 = 4;
/// Bytes of one step of an input: what, where, with what.
const STEP: usize = 12;
/// Steps that are taken before the listener starts.
const BEFORE: usize = 4;
/// Most steps of an input.
const STEPS: usize = 256;

/// Takes the steps, with a listener at work from the fifth on. Whatever they are, the capture is
/// whole, nothing in it is damaged, and its sums are right.
pub(crate) fn segment(input: &[u8]) {
    let compiled = parse(FRAMES, "f.frame").unwrap();
    let segment = Arc::new(create(&compiled));
    let memory = Foreign::attach(&segment);
    let mut steps = input.chunks_exact(STEP).take(STEPS);
    for step in steps.by_ref().take(BEFORE) {
        take(step, &segment, &memory);
    }
    let out = Bytes::default();
    let options = ListenerOptions {
        shortest: Duration::from_micros(50),
        silence: Silence::Fixed(Duration::from_micros(200)),
        chunk_age: Duration::from_micros(100),
        counters: Duration::from_micros(100),
        ..ListenerOptions::default()
    };
    let feeds = vec![feed(&compiled, &segment)];
    let listener = Listener::start(out.clone(), FileHeader::default(), feeds, options).unwrap();
    for step in steps {
        take(step, &segment, &memory);
    }
    let summary = listener.finish(EndReason::Stopped, String::new(), Vec::new());
    segment.refused();
    for ring in 0..RINGS {
        segment.populate_ring(ring, FIRST_BYTES).unwrap();
    }
    segment.give_back().unwrap();

    assert!(summary.complete && summary.error.is_none(), "{summary:?}");
    assert!(summary.feeds[0].rings.iter().all(ppt_listener::FrameAccount::adds_up));
    let bytes = std::mem::take(&mut *out.0.lock().unwrap());
    let info = Info::read_stream(Cursor::new(bytes.clone())).unwrap();
    assert!(info.complete, "{info:?}");
    assert_eq!((info.damages, info.mismatches), (0, 0), "{info:?}");
    let rows =
        dump_stream(Cursor::new(bytes), &ppt_dump::DumpRequest::default(), io::sink()).unwrap();
    assert_eq!(rows.rows, summary.captured());
}

fn create(compiled: &Compiled) -> Segment {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let nonce = u64::from(std::process::id()) << 32 | u64::from(NEXT.fetch_add(1, Relaxed));
    let geometry = Geometry::new(compiled.schema.stride, LOG2_SLOTS, RINGS).unwrap();
    let rows = RowGeometry::new(compiled.schema.cells(), RINGS + 1).unwrap();
    let geometry = geometry.with_rows(rows).unwrap();
    let identity = SegmentIdentity { nonce, schema_hash: compiled.schema.hash(), geometry };
    let mut key = nonce as u16 ^ std::process::id() as u16;
    let random = || {
        key = key.wrapping_mul(31).wrapping_add(17);
        key
    };
    Segment::create(identity, None, Created::default(), random).unwrap()
}

/// As `ppt attach` makes it of an adopted segment.
fn feed(compiled: &Compiled, segment: &Arc<Segment>) -> Feed {
    let source = Source {
        schema_json: compiled.schema.to_json().into_bytes(),
        schema_hash: compiled.schema.hash(),
        buffer: compiled.schema.buffer.clone(),
        ..Source::default()
    };
    let feed = Feed::starting_now(source, segment.clone());
    let unattended: Vec<Unattended> = feed.unattended.clone();
    Feed { populated: 1, unattended, alive: Some(Box::new(|tid| Some(tid % 2 == 0))), ..feed }
}

/// One step of a hostile target.
fn take(step: &[u8], segment: &Segment, memory: &Foreign) {
    let (what, ring, at) =
        (step[0], u32::from(step[1]) % RINGS, u16::from_le_bytes([step[2], step[3]]));
    let value = u64::from_le_bytes(step[4..12].try_into().expect("8 bytes"));
    let header = 3 * PAGE + u64::from(ring) * u64::from(RING_PITCH);
    let view = segment.ring(ring);
    let row = segment.row(step[1] as u32 % (RINGS + 1));
    let cell = usize::from(at) % row.len();
    match what % 12 {
        // The cursor: anywhere, or some way from where it is.
        0 => memory.store(header, value),
        1 => memory.store(header, view.tail().wrapping_add(value as i16 as u64)),
        2 => memory.store(header, view.tail().wrapping_add(1 << (value % 64))),
        // Owner, history, attended: any word of the header.
        3 => memory.store(header + u64::from(at) % u64::from(RING_PITCH) / 8 * 8, value),
        // What a slot says its number is.
        4 => memory
            .store(memory.slot(segment, ring, at), view.tail().wrapping_add(value as i8 as u64)),
        // Anything at all.
        5 => memory.store(u64::from(at) * 8 % segment.geometry().size(), value),
        // What an honest target does.
        6 | 7 => {
            let mut writer = RingWriter::new(view);
            for n in 0..value % 40 {
                if view.tail() < 1 << 61 {
                    writer.write([n, value, at.into()]);
                }
            }
        }
        8 => _ = view.claim(at.into()) || view.release(view.owner().epoch),
        // What an honest target adds, and what others leave in a cell.
        10 => cells::add_shared(&row[cell], value),
        11 => {
            let pitch = u64::from(segment.geometry().rows().pitch());
            let row = segment.geometry().rows_offset() + u64::from(step[1]) % 4 * pitch;
            memory.store(row + 8 * cell as u64, value);
        }
        // A moment, in which the listener comes by.
        _ => std::thread::sleep(Duration::from_micros(value % 200)),
    }
}

/// The segment as the target has it mapped.
struct Foreign {
    base: *mut u8,
    size: u64,
}

impl Foreign {
    fn attach(segment: &Segment) -> Self {
        // SAFETY: attaching where the kernel likes touches nothing that exists.
        let base = unsafe { libc::shmat(segment.id().unwrap(), std::ptr::null(), 0) };
        assert!(base.addr() as isize != -1, "{}", io::Error::last_os_error());
        Self { base: base.cast(), size: segment.geometry().size() }
    }

    fn slot(&self, segment: &Segment, ring: u32, slot: u16) -> u64 {
        let geometry = segment.geometry();
        let slot = u64::from(slot) % geometry.slots() * u64::from(geometry.stride());
        geometry.slots_offset() + u64::from(ring) * geometry.ring_bytes() + slot
    }

    fn store(&self, offset: u64, value: u64) {
        assert!(offset.is_multiple_of(8) && offset + 8 <= self.size);
        // SAFETY: within the mapping and aligned (asserted); everybody uses these words atomically.
        unsafe { AtomicU64::from_ptr(self.base.add(offset as usize).cast()) }.store(value, Relaxed);
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        // SAFETY: it was attached once, and nothing refers to it any more.
        unsafe { libc::shmdt(self.base.cast()) };
    }
}

/// A file that is read back.
#[derive(Clone, Default)]
struct Bytes(Arc<Mutex<Vec<u8>>>);

impl Write for Bytes {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
