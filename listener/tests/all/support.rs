//! A target in our own process, outputs that misbehave, and a reader that checks everything.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use ppt_capture::frame_dsl::schema::{Extra, Field, FieldType, Frame, Schema};
use ppt_capture::{
    Account, Capture, CaptureItem, CellTotals, Chunk, End, FileHeader, SeriesPart, Source,
};
use ppt_listener::{CaptureSummary, ListedSegment, Listener};
use ppt_segment::abi::{PAGE, RING_PITCH};
use ppt_segment::{Created, Geometry, RingWriter, RowGeometry, Segment, SegmentIdentity};

/// Bytes of a frame: number, thread, and six words that depend on both.
pub const STRIDE: u32 = 64;

pub fn segment(log2_slots: u32, rings: u32) -> Arc<Segment> {
    segment_of(Geometry::new(STRIDE, log2_slots, rings).unwrap())
}

/// A segment with a row of `cells` cells for each ring, and a shared row.
pub fn counting(log2_slots: u32, rings: u32, cells: u32) -> Arc<Segment> {
    let rows = RowGeometry::new(cells, rings + 1).unwrap();
    segment_of(Geometry::new(STRIDE, log2_slots, rings).unwrap().with_rows(rows).unwrap())
}

fn segment_of(geometry: Geometry) -> Arc<Segment> {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let nonce = u64::from(std::process::id()) << 32 | u64::from(number);
    let mut key = (std::process::id() + 101 * number) as u16;
    let random = || {
        key = key.wrapping_add(1);
        key
    };
    let identity = SegmentIdentity { nonce, schema_hash: 0, geometry };
    Arc::new(Segment::create(identity, None, Created::default(), random).unwrap())
}

fn schema() -> Schema {
    let field = |index: u32| Field {
        name: format!("f{index}"),
        ty: if index == 1 { FieldType::Tsc } else { FieldType::U64 },
        array: None,
        offset: 8 * index,
        interval: None,
        at: index == 1,
        unit: String::new(),
        doc: String::new(),
        attributes: Vec::new(),
        extra: Extra::new(),
    };
    Schema {
        v: 1,
        buffer: "test".to_owned(),
        slots: 16,
        stride: STRIDE,
        frames: vec![Frame {
            name: "test".to_owned(),
            kind: "plain".to_owned(),
            size: STRIDE,
            fields: (1..8).map(field).collect(),
            doc: String::new(),
            attributes: Vec::new(),
            extra: Extra::new(),
        }],
        enums: Vec::new(),
        tags: Vec::new(),
        extra: Extra::new(),
    }
}

pub fn source() -> Source {
    let schema = schema();
    Source {
        schema_json: schema.to_json().into_bytes(),
        schema_hash: schema.hash(),
        buffer: schema.buffer,
        ..Source::default()
    }
}

/// The same with `cells` counters.
pub fn counting_source(cells: u32) -> Source {
    let counter = |n| format!(r#"{{"name":"c{n}","kind":"counter","type":"u64"}}"#);
    let counters = (0..cells).map(counter).collect::<Vec<_>>().join(",");
    let plain = source();
    let text = String::from_utf8(plain.schema_json).unwrap();
    let text = format!("{},\"metrics\":[{counters}]}}", text.strip_suffix('}').unwrap());
    Source { schema_json: text.into_bytes(), ..plain }
}

/// The source of a feed that used these segments before its current one.
pub fn grown(former: &[&Segment]) -> Source {
    let listed = |segment: &&Segment| ListedSegment {
        nonce: segment.nonce(),
        rings: segment.geometry().rings(),
        slots: segment.geometry().slots() as u32,
        stride: segment.geometry().stride(),
    };
    Source { segments: former.iter().map(listed).collect(), ..source() }
}

pub fn header() -> FileHeader {
    FileHeader { capture_id: *b"0123456789abcdef", ..FileHeader::default() }
}

/// The words of a frame after its number.
pub fn frame_words(tid: u32, seq: u64) -> impl Iterator<Item = u64> {
    let mix = move |word: u64| (seq ^ u64::from(tid) << 40).wrapping_mul(2 * word + 0x9e37_79b9);
    // The first one is the time.
    [seq, u64::from(tid)].into_iter().chain((0..5).map(mix))
}

/// A thread of the target, which has claimed a ring.
pub struct Writer<'s> {
    segment: &'s Segment,
    pub ring: u32,
    epoch: u32,
    tid: u32,
    next: u64,
    writer: RingWriter<'s, AtomicU64>,
}

impl<'s> Writer<'s> {
    /// Takes the lowest free ring; None if there is none.
    pub fn claim(segment: &'s Segment, tid: u32) -> Option<Self> {
        let mut rings = 0..segment.geometry().rings();
        let ring = rings.find(|&ring| segment.ring(ring).claim(tid))?;
        let view = segment.ring(ring);
        let (epoch, next) = (view.owner().epoch, view.tail() + 1);
        Some(Self { segment, ring, epoch, tid, next, writer: RingWriter::new(view) })
    }

    pub fn write(&mut self) -> u64 {
        let seq = self.writer.write(frame_words(self.tid, self.next));
        assert_eq!(seq, self.next);
        self.next += 1;
        seq
    }

    /// Writes `count` frames, no faster than the drain takes them, regardless of the disk. No other
    /// thread may write at the same time.
    pub fn write_drained(&mut self, count: u64, listener: &Listener) {
        let drained = || {
            let progress = listener.progress();
            progress.captured + progress.lost.total() + progress.waiting
        };
        let end = self.next + count;
        while self.next < end {
            let (before, some) =
                (drained(), (end - self.next).min(self.segment.geometry().slots() / 2));
            (0..some).for_each(|_| _ = self.write());
            wait(|| drained() >= before + some);
        }
    }

    /// Writes `count` frames, no faster than they reach the file.
    pub fn write_gently(&mut self, count: u64) {
        let ring = self.segment.ring(self.ring);
        for _ in 0..count {
            let seq = self.write();
            if seq - ring.attended() > self.segment.geometry().slots() / 2 {
                wait(|| ring.attended() >= seq);
            }
        }
    }
}

impl Drop for Writer<'_> {
    fn drop(&mut self) {
        assert!(self.segment.ring(self.ring).release(self.epoch));
        self.segment.count_release();
    }
}

/// Waits until the condition holds. Fails if it never does.
pub fn wait(mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < Duration::from_secs(60), "it never happens");
        std::thread::yield_now();
    }
}

/// Writes into a ring as only a broken target would.
pub fn poke(segment: &Segment, offset: u64, value: u64) {
    assert!(offset.is_multiple_of(8) && offset < segment.geometry().size());
    // SAFETY: the kernel chooses the address, so attaching touches no existing mapping.
    let base = unsafe { libc::shmat(segment.id().unwrap(), std::ptr::null(), 0) };
    assert!(base.addr() as isize != -1, "{}", io::Error::last_os_error());
    // SAFETY: within the mapping and aligned (checked); every user accesses these words atomically.
    unsafe { AtomicU64::from_ptr(base.byte_add(offset as usize).cast()) }
        .store(value, Ordering::SeqCst);
    // SAFETY: it was attached above, and no reference to it remains.
    unsafe { libc::shmdt(base) };
}

/// Offset of a ring's cursor.
pub fn cursor_of(ring: u32) -> u64 {
    3 * PAGE + u64::from(ring) * u64::from(RING_PITCH)
}

/// An output that holds all bytes. A test can block it or make it fail.
#[derive(Clone, Default)]
pub struct TapOutput(pub Arc<(Mutex<Tap>, Condvar)>);

#[derive(Default)]
pub struct Tap {
    bytes: Vec<u8>,
    closed: bool,
    capacity: Option<usize>,
}

impl TapOutput {
    /// Blocks writes from now on, or unblocks them.
    pub fn set_closed(&self, closed: bool) {
        self.0.0.lock().unwrap().closed = closed;
        self.0.1.notify_all();
    }

    /// Lets only this many more bytes be written.
    pub fn set_room(&self, bytes: usize) {
        let mut tap = self.0.0.lock().unwrap();
        tap.capacity = Some(tap.bytes.len() + bytes);
    }

    pub fn bytes(&self) -> Vec<u8> {
        self.0.0.lock().unwrap().bytes.clone()
    }

    /// Waits until `count` bytes have been written.
    pub fn wait_for(&self, count: usize) {
        let tap = self.0.0.lock().unwrap();
        drop(self.0.1.wait_while(tap, |tap| tap.bytes.len() < count).unwrap());
    }
}

impl Write for TapOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let tap = self.0.0.lock().unwrap();
        let mut tap = self.0.1.wait_while(tap, |tap| tap.closed).unwrap();
        let room = tap.capacity.map_or(bytes.len(), |capacity| capacity - tap.bytes.len());
        let count = bytes.len().min(room);
        if count == 0 && !bytes.is_empty() {
            return Err(io::Error::from_raw_os_error(28 /* ENOSPC */));
        }
        tap.bytes.extend_from_slice(&bytes[..count]);
        self.0.1.notify_all();
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A capture, read and checked.
pub struct Back {
    /// Numbers and thread of every frame, by source, segment and ring.
    pub frames: BTreeMap<(u16, u64, u32), Vec<(u64, u32)>>,
    pub account: Account,
    pub sources: BTreeMap<u16, Source>,
    pub end: Option<End>,
    pub part: Option<SeriesPart>,
    pub clocks: usize,
    pub cells: CellTotals,
    /// Readings of counters, except those at the start of the file.
    pub readings: usize,
}

impl Back {
    pub fn count(&self) -> u64 {
        self.frames.values().map(|frames| frames.len() as u64).sum()
    }
}

/// Reads a capture. Frames are complete, unique and in order, and belong to the thread that their
/// chunk names.
pub fn read(bytes: Vec<u8>) -> Back {
    let mut capture = Capture::from_reader(io::Cursor::new(bytes)).unwrap();
    let mut frames = BTreeMap::<_, Vec<_>>::new();
    let (mut clocks, mut readings, mut cells) = (0, 0, CellTotals::default());
    let mut part = None;
    while let Some(item) = capture.read().unwrap() {
        match item {
            CaptureItem::Damage(damage) => panic!("{damage}"),
            CaptureItem::Chunk(Chunk::Clock(_)) => clocks += 1,
            CaptureItem::Chunk(Chunk::Series(series_part)) => {
                assert!(frames.is_empty() && part.is_none());
                part = Some(series_part);
            }
            CaptureItem::Chunk(Chunk::Cells(chunk)) => {
                readings += usize::from(!chunk.head.is_base);
                cells.add(&chunk);
            }
            CaptureItem::Chunk(Chunk::Frames(chunk)) => {
                let head = chunk.head;
                assert_eq!(head.frame_mask, 1);
                assert!(
                    0 < head.drained_mono_ns && head.drained_mono_ns <= head.drained_by_mono_ns
                );
                assert_eq!((head.t_min, head.t_max), (head.first_seq, head.next_seq() - 1));
                let ring = frames.entry((head.source, head.nonce, head.ring)).or_default();
                for (seq, frame) in chunk.iter() {
                    let all: Vec<u64> = frame
                        .chunks_exact(8)
                        .map(|word| u64::from_le_bytes(word.try_into().unwrap()))
                        .collect();
                    let tid = all[2] as u32;
                    assert_eq!(all[0], seq);
                    assert!(all[1..].iter().copied().eq(frame_words(tid, seq)), "torn: {all:x?}");
                    assert!(head.tid == tid || head.tid == 0, "{tid}, not {}", head.tid);
                    assert!(ring.last().is_none_or(|&(last, _)| last < seq));
                    ring.push((seq, head.tid));
                }
            }
            CaptureItem::Chunk(_) => {}
        }
    }
    let end = capture.finish().end.cloned();
    let account = capture.account().clone();
    if let Some(end) = &end {
        assert_eq!(account.mismatches(end), []);
    }
    let sources = capture.sources().map(|source| (source.id, source.source.clone())).collect();
    Back { frames, account, sources, end, part, clocks, cells, readings }
}

/// Checks the summary against the file and for consistency.
pub fn check(summary: &CaptureSummary, back: &Back) {
    assert_eq!(summary.captured(), back.count());
    for (source, feed) in (0..).zip(&summary.feeds) {
        for ring in &feed.rings {
            assert!(ring.adds_up(), "{ring:?}");
            let frames = back.frames.get(&(source, ring.nonce, ring.ring)).map_or(0, Vec::len);
            assert_eq!(ring.captured, frames as u64, "{ring:?}");
        }
        let sum: u64 = feed.rings.iter().map(|ring| ring.captured).sum();
        let lost: u64 = feed.rings.iter().map(|ring| ring.lost.total()).sum();
        assert_eq!((feed.captured, feed.lost.total()), (sum, lost));
    }
    assert_eq!(summary.complete, back.end.is_some());
}

/// Checks that the rings were drained to the end.
pub fn check_cursors(summary: &CaptureSummary, segments: &[&Segment]) {
    for (feed, segment) in summary.feeds.iter().zip(segments) {
        for ring in &feed.rings {
            assert_eq!(ring.next_seq, segment.ring(ring.ring).tail() + 1);
            if summary.complete {
                assert_eq!(segment.ring(ring.ring).attended(), segment.ring(ring.ring).tail());
            }
        }
    }
}
