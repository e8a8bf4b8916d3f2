//! A capture is written, mistreated and read: what comes out was put in, once, or is reported.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::io::{self, Cursor, IoSlice, Write};
use std::rc::Rc;

use ppt_capture::frame_dsl::schema::{Extra, Field, FieldType, Frame, Schema};
use ppt_capture::{
    BLOCK, Capture, CaptureError, CaptureWriter, Cause, Chunk, ClockId, ClockReading, Codec,
    Damage, DamageKind, Dropped, Drops, End, EndReason, FileHeader, FramesHead, Gap, Item, LARGE,
    Lost, Packer, RingEnd, Segment, Source,
};
use proptest::prelude::*;

const STRIDE: u32 = 24;
const NONCE: u64 = 0xfeed_beef;

/// Source, ring, sequence number, bytes.
type Row = (u16, u32, u64, Vec<u8>);

#[derive(Debug, Clone)]
enum Op {
    Frames { ring: u32, count: u32, lost: Lost },
    Gap { ring: u32, count: u64, cause: Cause },
    Clock,
    Drops(u64),
    Source,
}

struct Written {
    bytes: Vec<u8>,
    rows: Vec<Row>,
    rings: Vec<RingEnd>,
    dropped: Dropped,
}

fn schema() -> Schema {
    let field = |name: &str, offset| Field {
        name: name.to_owned(),
        ty: FieldType::U64,
        array: None,
        offset,
        interval: None,
        at: false,
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
            fields: vec![field("a", 8), field("b", 16)],
            doc: String::new(),
            attributes: Vec::new(),
            extra: Extra::new(),
        }],
        enums: Vec::new(),
        tags: Vec::new(),
        extra: Extra::new(),
    }
}

fn source() -> Source {
    let schema = schema();
    Source {
        schema_json: schema.to_json().into_bytes(),
        schema_hash: schema.hash(),
        buffer: "test".to_owned(),
        segments: vec![Segment { nonce: NONCE, rings: 4, slots: 16, stride: STRIDE }],
        tags: vec![("build".to_owned(), "r\u{1b}1".to_owned())],
        ..Source::default()
    }
}

fn header() -> FileHeader {
    FileHeader { capture_id: *b"0123456789abcdef", host: "h".to_owned(), ..FileHeader::default() }
}

fn frame(ring: u32, seq: u64) -> Vec<u8> {
    let words = [seq, seq.wrapping_mul(0x9e37_79b9_7f4a_7c15), u64::from(ring) << 32 | 7];
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// Each way to store frames comes up, the same one for the same count.
fn codec(count: u32) -> Option<Codec> {
    match count {
        ..4 => None,
        _ if count.is_multiple_of(2) => Some(Codec::Lz4),
        _ => Some(Codec::Zstd),
    }
}

fn write(ops: &[Op]) -> Written {
    let mut writer = CaptureWriter::create(Vec::new(), &header()).unwrap();
    writer.source(0, &source()).unwrap();
    let mut rows = Vec::new();
    let mut rings: Vec<RingEnd> = (0..4)
        .map(|ring| RingEnd { nonce: NONCE, ring, first_seq: 1, next_seq: 1, ..RingEnd::default() })
        .collect();
    let mut dropped = Dropped::default();
    for op in ops {
        match op {
            Op::Frames { ring, count, lost } => {
                let account = &mut rings[*ring as usize];
                let first_seq = account.next_seq + lost.total();
                let head = FramesHead {
                    nonce: NONCE,
                    ring: *ring,
                    first_seq,
                    count: *count,
                    stride: STRIDE,
                    lost_before: *lost,
                    ..FramesHead::default()
                };
                let seqs = first_seq..head.next_seq();
                let payload: Vec<u8> = seqs.clone().flat_map(|seq| frame(*ring, seq)).collect();
                let mut packer = Packer::new(codec(*count));
                writer.packed_frames(&head, &packer.pack(&payload)).unwrap();
                rows.extend(seqs.map(|seq| (0, *ring, seq, frame(*ring, seq))));
                account.next_seq = head.next_seq();
                account.captured += u64::from(*count);
                account.lost += *lost;
            }
            Op::Gap { ring, count, cause } => {
                let account = &mut rings[*ring as usize];
                let first_seq = account.next_seq;
                let (ring, count, cause) = (*ring, *count, *cause);
                writer
                    .gap(&Gap { source: 0, nonce: NONCE, ring, first_seq, count, cause })
                    .unwrap();
                account.next_seq += count;
                account.lost.add(cause, count);
            }
            Op::Clock => {
                let (a, b) = (ClockId::Tick, ClockId::Monotonic);
                let reading =
                    ClockReading { a, a_before: 1, b, b_value: 2, a_after: 3, distrusted: false };
                writer.clock(&[reading, reading]).unwrap();
            }
            Op::Drops(nested) => {
                dropped.nested += nested;
                writer.drops(&Drops { source: 0, dropped, mono_ns: 0 }).unwrap();
            }
            Op::Source => writer.source(0, &source()).unwrap(),
        }
    }
    let end = End {
        reason: EndReason::Duration,
        message: "done".to_owned(),
        rings: rings.clone(),
        drops: vec![(0, dropped)],
        realtime_ns: 5,
        mono_ns: 6,
    };
    Written { bytes: writer.end(&end).unwrap(), rows, rings, dropped }
}

#[derive(Default)]
struct Read {
    rows: Vec<Row>,
    damaged: Vec<Damage>,
    cut: Option<u64>,
    kinds: Vec<u16>,
}

fn read_all(capture: &mut Capture) -> Read {
    let mut all = Read::default();
    while let Some(item) = capture.read().unwrap() {
        match item {
            Item::Damage(damage) => all.damaged.push(damage),
            Item::Chunk(Chunk::Frames(frames)) => {
                let (source, ring) = (frames.head.source, frames.head.ring);
                all.rows.extend(frames.iter().map(|(seq, it)| (source, ring, seq, it.to_vec())));
            }
            Item::Chunk(Chunk::Other(kind)) => all.kinds.push(kind),
            Item::Chunk(_) => {}
        }
    }
    all.cut = capture.finish().cut;
    all
}

fn read(bytes: &[u8]) -> Result<Read, CaptureError> {
    Ok(read_all(&mut Capture::from_reader(Cursor::new(bytes.to_vec()))?))
}

/// Start and end of each chunk, by what the format promises.
fn chunks(bytes: &[u8]) -> Vec<(usize, usize)> {
    let mut at = 256;
    let mut all = Vec::new();
    while at < bytes.len() {
        let header = u32::from_le_bytes(bytes[at + 16..at + 20].try_into().unwrap()) as usize;
        let stored = u64::from_le_bytes(bytes[at + 32..at + 40].try_into().unwrap()) as usize;
        let end = (at + header + stored).next_multiple_of(64);
        all.push((at, end));
        at = end;
    }
    all
}

/// Changes a chunk header and makes its checksum right again.
fn forge(chunk: &mut [u8], change: impl FnOnce(&mut [u8])) {
    let len = u32::from_le_bytes(chunk[16..20].try_into().unwrap()) as usize;
    change(chunk);
    chunk[28..32].fill(0);
    let crc = crc32c::crc32c(&chunk[..len]);
    chunk[28..32].copy_from_slice(&crc.to_le_bytes());
}

fn small() -> Written {
    let lost = Lost { overrun: 3, disk: 0, corrupt: 1 };
    write(&[
        Op::Clock,
        Op::Frames { ring: 0, count: 3, lost: Lost::default() },
        Op::Frames { ring: 1, count: 1, lost },
        Op::Gap { ring: 0, count: 2, cause: Cause::Disk },
        Op::Drops(4),
        Op::Frames { ring: 0, count: 5, lost: Lost::default() },
        Op::Frames { ring: 0, count: 2, lost },
    ])
}

fn lost() -> impl Strategy<Value = Lost> {
    let parts = (0..3u64, 0..3u64, 0..3u64);
    parts.prop_map(|(overrun, disk, corrupt)| Lost { overrun, disk, corrupt })
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        6 => (0..4u32, 1..9u32, lost())
            .prop_map(|(ring, count, lost)| Op::Frames { ring, count, lost }),
        1 => (0..4u32, 1..9u64).prop_map(|(ring, count)| Op::Gap { ring, count, cause: Cause::Disk }),
        1 => Just(Op::Clock),
        1 => (0..9u64).prop_map(Op::Drops),
        1 => Just(Op::Source),
    ];
    proptest::collection::vec(op, 0..30)
}

/// Every row was written, and none comes twice.
fn check_rows(read: &Read, written: &Written) {
    let known: BTreeSet<_> = written.rows.iter().collect();
    let mut seen = BTreeSet::new();
    for row in &read.rows {
        assert!(known.contains(row), "a row that nobody wrote: {row:?}");
        assert!(seen.insert(row), "a row that comes twice: {row:?}");
    }
}

proptest! {
    #[test]
    fn what_is_written_is_read(ops in ops()) {
        let written = write(&ops);
        let mut capture = Capture::from_reader(Cursor::new(written.bytes.clone())).unwrap();
        let read = read_all(&mut capture);
        prop_assert_eq!(capture.header(), Some(&header()));
        prop_assert_eq!(&read.damaged, &[]);
        prop_assert_eq!(read.cut, None);
        prop_assert_eq!(&read.rows, &written.rows);
        let end = capture.finish().end.unwrap();
        prop_assert_eq!(&end.rings, &written.rings);
        prop_assert_eq!(&end.message, "done");
        prop_assert_eq!(capture.account().mismatches(end), vec![]);
        prop_assert_eq!(capture.account().dropped(0), written.dropped);
        for (_, ring) in capture.account().rings() {
            prop_assert_eq!(ring.captured + ring.lost.total(), ring.next_seq - ring.first_seq);
            prop_assert_eq!(ring.damaged, 0);
        }
        prop_assert_eq!(&capture.sources().next().unwrap().source, &source());
        prop_assert_eq!(&capture.sources().next().unwrap().schema, &schema());
    }

    #[test]
    fn flipped_bits_invent_nothing(
        ops in ops(),
        flips in proptest::collection::vec((any::<prop::sample::Index>(), 0..8u8), 1..4),
    ) {
        let mut written = write(&ops);
        for (at, bit) in flips {
            let at = at.index(written.bytes.len());
            written.bytes[at] ^= 1 << bit;
        }
        if let Ok(read) = read(&written.bytes) {
            check_rows(&read, &written);
            prop_assert!(read.rows == written.rows || !read.damaged.is_empty());
        }
    }

    #[test]
    fn chunks_in_any_order_are_shown_once(
        ops in ops(),
        picks in proptest::collection::vec(any::<prop::sample::Index>(), 0..60),
    ) {
        let written = write(&ops);
        let chunks = chunks(&written.bytes);
        // The source first: frames of a source that is not known yet are left out.
        let mut bytes = written.bytes[..chunks[0].1].to_vec();
        let mut picked = BTreeSet::from([0]);
        for pick in picks {
            let pick = pick.index(chunks.len());
            picked.insert(pick);
            bytes.extend_from_slice(&written.bytes[chunks[pick].0..chunks[pick].1]);
        }
        let read = read(&bytes).unwrap();
        check_rows(&read, &written);
        let whole: usize = read.rows.len();
        let expected: usize = picked
            .iter()
            .map(|&pick| {
                let head = &written.bytes[chunks[pick].0..];
                let is_frames = head[20] == 2;
                if is_frames { u32::from_le_bytes(head[80..84].try_into().unwrap()) as usize } else { 0 }
            })
            .sum();
        prop_assert_eq!(whole, expected, "late chunks are used: {:?}", read.damaged);
    }

    #[test]
    fn any_bytes_are_survived(start in 0..3usize, tail in proptest::collection::vec(any::<u8>(), 0..2000)) {
        let written = small();
        let mut bytes = written.bytes[..[0, 256, chunks(&written.bytes)[0].1][start]].to_vec();
        bytes.extend_from_slice(&tail);
        if let Ok(read) = read(&bytes) {
            prop_assert_eq!(read.rows, vec![]);
        }
    }
}

#[test]
fn a_cut_at_any_byte_leaves_a_prefix() {
    let written = small();
    let mut last = 0;
    for len in 0..written.bytes.len() {
        match read(&written.bytes[..len]) {
            Err(CaptureError::Empty) => assert_eq!(len, 0),
            Err(CaptureError::Header) => assert!(len < 256, "{len}"),
            Err(error) => panic!("cut at {len}: {error}"),
            Ok(read) => {
                assert!(written.rows.starts_with(&read.rows), "cut at {len}");
                assert!(read.rows.len() >= last, "cut at {len}");
                assert_eq!(read.damaged, [], "cut at {len}");
                assert!(read.cut.unwrap() <= len as u64);
                last = read.rows.len();
            }
        }
    }
    assert_eq!(last, written.rows.len());
}

#[test]
fn every_flipped_bit_is_reported_or_harmless() {
    let written = small();
    let end = chunks(&written.bytes).last().unwrap().0 as u64;
    for bit in 0..written.bytes.len() * 8 {
        let mut bytes = written.bytes.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        let read = read(&bytes).unwrap();
        check_rows(&read, &written);
        if read.damaged.is_empty() {
            assert_eq!(read.rows, written.rows, "bit {bit}");
            // An end chunk that claims to be longer than the file looks cut off.
            assert!(read.cut.is_none() || read.cut == Some(end), "bit {bit}");
        }
    }
}

#[test]
fn zeros_at_the_end_are_a_cut() {
    let written = small();
    let chunks = chunks(&written.bytes);
    let mut bytes = written.bytes[..chunks[4].1].to_vec();
    bytes.resize(bytes.len() + 10_000, 0);
    let read = read(&bytes).unwrap();
    assert_eq!((read.damaged, read.cut), (vec![], Some(chunks[4].1 as u64)));
    assert_eq!(read.rows, written.rows[..4]);
}

#[test]
fn a_missing_chunk_is_reported_and_the_end_counts_it() {
    let written = small();
    let chunks = chunks(&written.bytes);
    let mut bytes = written.bytes.clone();
    bytes.drain(chunks[2].0..chunks[2].1);
    let mut capture = Capture::from_reader(Cursor::new(bytes)).unwrap();
    let read = read_all(&mut capture);
    let damage = Damage { offset: chunks[2].0 as u64, kind: DamageKind::Missing(1) };
    assert_eq!(read.damaged, [damage]);
    let (_, ring) = capture.account().rings().next().unwrap();
    assert_eq!((ring.first_seq, ring.captured, ring.damaged), (1, 7, 3));
    assert_eq!(ring.captured + ring.lost_with_damage().total(), ring.next_seq - ring.first_seq);
    let end = capture.finish().end.unwrap();
    assert_eq!(capture.account().mismatches(end).len(), 1);
}

#[test]
fn an_unknown_kind_is_skipped() {
    let mut written = small();
    let (start, end) = chunks(&written.bytes)[1];
    forge(&mut written.bytes[start..end], |chunk| chunk[20..22].copy_from_slice(&[200, 1]));
    let read = read(&written.bytes).unwrap();
    assert_eq!((read.damaged, read.kinds), (vec![], vec![456]));
    assert_eq!(read.rows, written.rows);
}

#[test]
fn lengths_that_lie_cost_nothing() {
    let written = small();
    let all = chunks(&written.bytes);
    for (field, value) in [(32, u64::MAX), (32, 1 << 40), (32, 1 << 28), (40, u64::MAX)] {
        for kind in [2u8, 99] {
            let mut bytes = written.bytes.clone();
            let (start, end) = all[2];
            forge(&mut bytes[start..end], |chunk| {
                chunk[20] = kind;
                chunk[field..field + 8].copy_from_slice(&value.to_le_bytes());
            });
            check_rows(&read(&bytes).unwrap(), &written);
        }
    }
}

#[test]
fn frames_that_cannot_be_are_refused() {
    let written = small();
    let (start, end) = chunks(&written.bytes)[2];
    let forged = |change: &dyn Fn(&mut [u8])| {
        let mut bytes = written.bytes.clone();
        forge(&mut bytes[start..end], change);
        let read = read(&bytes).unwrap();
        check_rows(&read, &written);
        assert!(!read.damaged.is_empty());
        read.rows.len()
    };
    let without = written.rows.len() - 3;
    let put = |at: usize, value: u32| {
        move |chunk: &mut [u8]| {
            chunk[at..at + 4].copy_from_slice(&value.to_le_bytes());
        }
    };
    assert_eq!(forged(&put(24, 9)), without, "unknown source");
    assert_eq!(forged(&put(64, 9)), without, "unknown segment");
    assert_eq!(forged(&put(84, 4)), without, "unknown ring");
    assert_eq!(forged(&put(80, 4)), without, "count × stride");
    assert_eq!(forged(&put(92, 8)), without, "stride");
    assert_eq!(forged(&put(26, 1)), without, "codec");
    assert_eq!(forged(&put(72, 2)), without, "numbers that the frames do not carry");
    assert_eq!(forged(&|chunk: &mut [u8]| chunk[72..80].fill(255)), without, "number overflow");
}

#[test]
fn compressed_frames_that_cannot_be_are_damage() {
    let lost = Lost::default();
    let written = write(&[
        Op::Frames { ring: 0, count: 9, lost },
        Op::Frames { ring: 0, count: 10, lost },
        Op::Frames { ring: 0, count: 2, lost },
    ]);
    let all = chunks(&written.bytes);
    for (chunk, count, code) in [(1, 9, 1), (2, 10, 2)] {
        let (start, end) = all[chunk];
        assert_eq!(written.bytes[start + 26], code);
        let damage = |change: &dyn Fn(&mut [u8])| {
            let mut bytes = written.bytes.clone();
            forge(&mut bytes[start..end], change);
            let read = read(&bytes).unwrap();
            check_rows(&read, &written);
            assert_eq!(read.rows.len(), written.rows.len() - count);
            read.damaged[0].kind.to_string()
        };
        let put = |at: usize, value: u64| {
            move |chunk: &mut [u8]| chunk[at..at + 8].copy_from_slice(&value.to_le_bytes())
        };
        let raw = count as u64 * u64::from(STRIDE);
        let undone = "compressed frames that do not decompress to their length";
        for len in [0, raw - 24, raw + 24, 16 << 20] {
            assert_eq!(damage(&put(40, len)), undone, "{len} bytes");
        }
        let lengths = "a chunk whose lengths contradict each other";
        for len in [(16 << 20) + 1, 1 << 40, u64::MAX] {
            assert_eq!(damage(&put(40, len)), lengths, "{len} bytes");
        }
        assert_eq!(damage(&|chunk: &mut [u8]| chunk[26] ^= 3), undone, "the other codec");
        let unknown = "a chunk stored with codec 3, which this version does not know: a newer \
                       ppt reads it";
        assert_eq!(damage(&|chunk: &mut [u8]| chunk[26] = 3), unknown);
        let garbage = |chunk: &mut [u8]| {
            let stored = u64::from_le_bytes(chunk[32..40].try_into().unwrap()) as usize;
            chunk[192..192 + stored].fill(0xa5);
            let crc = crc32c::crc32c(&chunk[192..192 + stored]);
            chunk[56..60].copy_from_slice(&crc.to_le_bytes());
        };
        assert_eq!(damage(&garbage), undone, "garbage");
    }
    // Only frames are.
    let mut bytes = written.bytes.clone();
    let (start, end) = all[0];
    forge(&mut bytes[start..end], |chunk| chunk[26] = 1);
    let read = read(&bytes).unwrap();
    assert!(matches!(read.damaged[0].kind, DamageKind::Codec(1)), "{:?}", read.damaged);
}

#[test]
fn a_chunk_inside_of_frames_is_no_chunk() {
    // Frames that hold a whole other capture: damage to their chunk must not make it visible.
    let inner = small();
    let mut writer = CaptureWriter::create(
        Vec::new(),
        &FileHeader { capture_id: *b"another capture!", ..FileHeader::default() },
    )
    .unwrap();
    writer.source(0, &source()).unwrap();
    let mut payload = inner.bytes[256..].to_vec();
    payload.resize(payload.len().next_multiple_of(STRIDE as usize), 0);
    let count = payload.len() as u32 / STRIDE;
    let head =
        FramesHead { nonce: NONCE, first_seq: 1, count, stride: STRIDE, ..FramesHead::default() };
    writer.frames(&head, &payload).unwrap();
    let end = writer.bytes();
    writer.clock(&[]).unwrap();
    let mut bytes = vec![];
    bytes.extend_from_slice(
        &writer
            .end(&End {
                reason: EndReason::Stopped,
                message: String::new(),
                rings: vec![],
                drops: vec![],
                realtime_ns: 0,
                mono_ns: 0,
            })
            .unwrap(),
    );
    bytes[end as usize - 64] ^= 1;
    let read = read(&bytes).unwrap();
    assert_eq!(read.rows, []);
    assert_eq!(read.damaged.len(), 1, "{:?}", read.damaged);
}

#[test]
fn what_is_no_capture_is_said() {
    let error = |bytes: &[u8]| read(bytes).map(|_| ()).unwrap_err().to_string();
    assert!(error(b"").contains("empty"));
    assert!(error(b"hello\n").contains("not a capture"));
    assert!(error(&[0; 100_000]).contains("not a capture"));
    let mut bytes = small().bytes;
    bytes[8] = 9;
    bytes[16..20].fill(0);
    let crc = crc32c::crc32c(&bytes[..256]);
    bytes[16..20].copy_from_slice(&crc.to_le_bytes());
    let newer = error(&bytes);
    assert!(newer.contains("version 9") && newer.contains("version 1"), "{newer}");

    let folder = tempfile::tempdir().unwrap();
    let opened = Capture::open(folder.path()).map(|_| ());
    assert!(matches!(opened, Err(CaptureError::Directory)));
    let opened = Capture::open(&folder.path().join("absent")).map(|_| ());
    assert!(matches!(opened, Err(CaptureError::Io(_))));
}

#[test]
fn a_file_reads_like_a_stream_and_a_survey_skips_frames() {
    let ops = vec![Op::Frames { ring: 0, count: 4000, lost: Lost::default() }; 20];
    let written = write(&ops);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.bin");
    std::fs::write(&path, &written.bytes).unwrap();
    let read = read_all(&mut Capture::open(&path).unwrap());
    assert!(read.rows == written.rows && read.damaged.is_empty() && read.cut.is_none());
    let mut survey = Capture::survey(&path).unwrap().unwrap();
    let read = read_all(&mut survey);
    assert_eq!((read.rows, read.damaged), (vec![], vec![]));
    assert_eq!(survey.sources().count(), 1);
}

#[test]
fn a_long_capture_has_indexes_that_lead_back() {
    let written = write(&vec![Op::Frames { ring: 0, count: 1, lost: Lost::default() }; 10_000]);
    let mut capture = Capture::from_reader(Cursor::new(written.bytes.clone())).unwrap();
    let mut indexes = Vec::new();
    while let Some(item) = capture.read().unwrap() {
        if let Item::Chunk(Chunk::Index(previous, entries)) = item {
            indexes.push((previous, entries));
        }
    }
    assert_eq!(indexes.len(), 3);
    let frames = indexes.iter().flat_map(|(_, entries)| entries).filter(|it| it.count == 1);
    assert_eq!(frames.count(), 10_000);
    // From the last bytes of the file: the end, the last index, the ones before.
    let word = |at: usize| u64::from_le_bytes(written.bytes[at..at + 8].try_into().unwrap());
    let trailer = written.bytes.len() - 32;
    assert_eq!(written.bytes[word(trailer) as usize + 20], 7);
    let mut index = word(trailer + 8);
    let mut found = 0;
    while index != 0 {
        assert_eq!(written.bytes[index as usize + 20], 6);
        index = word(index as usize + 64);
        found += 1;
    }
    assert_eq!(found, 3);
    for (_, entries) in &indexes {
        for entry in entries {
            assert_eq!(&written.bytes[entry.offset as usize..][..8], b"\x89ppt-ch1");
        }
    }
}

/// Takes `room` bytes, in writes of at most `most`, then fails.
struct Narrow(Rc<RefCell<(usize, usize)>>, usize, io::ErrorKind);

impl Write for Narrow {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_vectored(&[IoSlice::new(bytes)])
    }

    fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        let mut state = self.0.borrow_mut();
        state.1 += 1;
        let len = parts.iter().map(|part| part.len()).sum::<usize>().min(self.1).min(state.0);
        state.0 -= len;
        if len == 0 { Err(self.2.into()) } else { Ok(len) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_chunk_is_one_write_and_a_failed_writer_says_so() {
    let state = Rc::new(RefCell::new((1000, 0)));
    let out = Narrow(Rc::clone(&state), usize::MAX, io::ErrorKind::StorageFull);
    let mut writer = CaptureWriter::create(out, &header()).unwrap();
    let head = FramesHead { first_seq: 1, count: 1, stride: 24, ..FramesHead::default() };
    writer.frames(&head, &frame(0, 1)).unwrap();
    assert_eq!((state.borrow().1, writer.bytes()), (2, 512));
    let wrong = writer.frames(&FramesHead { stride: 7, ..head }, &[0; 7]).unwrap_err();
    assert_eq!(wrong.kind(), io::ErrorKind::InvalidInput);
    writer.frames(&head, &frame(0, 1)).unwrap();
    for _ in 0..2 {
        let failed = writer.frames(&head, &frame(0, 1)).unwrap_err();
        assert_eq!(failed.kind(), io::ErrorKind::StorageFull);
    }
    assert_eq!((state.borrow().1, writer.bytes()), (5, 768), "no write after the failed one");

    let state = Rc::new(RefCell::new((usize::MAX, 0)));
    let out = Narrow(Rc::clone(&state), 100, io::ErrorKind::BrokenPipe);
    let mut writer = CaptureWriter::create(out, &header()).unwrap();
    writer.frames(&head, &frame(0, 1)).unwrap();
    assert_eq!(usize::MAX - state.borrow().0, 512, "short writes are continued");
}

/// Wherever the file stands, but for places right before a block, which leave no room for a head.
#[test]
fn large_payloads_begin_at_blocks() {
    let mut writer = CaptureWriter::create(Vec::new(), &header()).unwrap();
    writer.source(0, &source()).unwrap();
    let (mut seq, mut at_blocks, mut starts) = (1, 0, BTreeSet::new());
    for count in (0..80).flat_map(|small| [1 + 7 * small % 160, LARGE / STRIDE as usize + 1]) {
        let frames: Vec<u8> = (seq..seq + count as u64).flat_map(|seq| frame(0, seq)).collect();
        let head =
            FramesHead { nonce: NONCE, first_seq: seq, stride: STRIDE, ..Default::default() };
        let before = writer.bytes() as usize;
        writer.frames(&FramesHead { count: count as u32, ..head }, &frames).unwrap();
        seq += count as u64;
        if frames.len() >= LARGE {
            let start = writer.bytes() as usize - frames.len().next_multiple_of(64);
            let is_near = BLOCK - before % BLOCK < 192;
            assert!(start.is_multiple_of(BLOCK) || is_near, "{before}: {start}");
            at_blocks += usize::from(start.is_multiple_of(BLOCK));
            starts.insert(before % BLOCK);
        }
    }
    assert!(at_blocks > 70 && starts.len() > 30, "{at_blocks} {}", starts.len());
    let end = End {
        reason: EndReason::Duration,
        message: String::new(),
        rings: Vec::new(),
        drops: Vec::new(),
        realtime_ns: 1,
        mono_ns: 1,
    };
    let back = read(&writer.end(&end).unwrap()).unwrap();
    assert!(back.damaged.is_empty());
    assert!(back.rows.iter().map(|row| row.2).eq(1..seq));
    assert!(back.rows.iter().all(|row| row.3 == frame(0, row.2)));
}
