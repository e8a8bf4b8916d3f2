//! Truncated, modified and reordered captures: nothing is invented, and missing parts are reported.

use std::collections::BTreeSet;
use std::io::Cursor;

use ppt_capture::{
    Capture, CaptureError, CaptureWriter, Damage, DamageKind, End, EndReason, FileHeader,
    FramesHead,
};
use proptest::prelude::*;

use crate::support::{
    NONCE, STRIDE, check_rows, chunks, ops, read, read_all, small, source, write,
};

proptest! {
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

    /// This applies to the first copy of a source, too.
    #[test]
    fn twenty_bad_bytes_cost_the_chunks_that_they_hit(
        ops in ops(),
        at in any::<prop::sample::Index>(),
        early in any::<bool>(),
    ) {
        let written = write(&ops);
        let most = written.bytes.len() - 20;
        let at = at.index(if early { most.min(4096) } else { most });
        let mut bytes = written.bytes.clone();
        bytes[at..at + 20].iter_mut().for_each(|byte| *byte ^= 0xff);
        let mut rows = written.rows.iter();
        let mut left = Vec::new();
        for (start, end) in chunks(&written.bytes) {
            let head = &written.bytes[start..end];
            if head[20] == 2 {
                let count = u32::from_le_bytes(head[80..84].try_into().unwrap());
                let of_chunk = rows.by_ref().take(count as usize).cloned();
                let header = u32::from_le_bytes(head[16..20].try_into().unwrap()) as usize;
                let stored = u64::from_le_bytes(head[32..40].try_into().unwrap()) as usize;
                // After that come zeros, which are never read.
                let hit = start < at + 20 && at < start + header + stored;
                left.extend(of_chunk.filter(|_| !hit));
            }
        }
        let read = read(&bytes).unwrap();
        prop_assert!(read.rows == left, "{}: {:?}", at, read.damaged);
    }

    #[test]
    fn chunks_in_any_order_are_shown_once(
        ops in ops(),
        picks in proptest::collection::vec(any::<prop::sample::Index>(), 0..60),
    ) {
        let written = write(&ops);
        let chunks = chunks(&written.bytes);
        // The source comes first: frames of an unknown source are skipped.
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
            // An end chunk that claims to be longer than the file looks truncated.
            assert!(read.cut.is_none() || read.cut == Some(end), "bit {bit}");
        }
    }
}

#[test]
fn zeros_at_the_end_are_a_cut() {
    let written = small();
    let chunks = chunks(&written.bytes);
    let mut bytes = written.bytes[..chunks[5].1].to_vec();
    bytes.resize(bytes.len() + 10_000, 0);
    let read = read(&bytes).unwrap();
    assert_eq!((read.damaged, read.cut), (vec![], Some(chunks[5].1 as u64)));
    assert_eq!(read.rows, written.rows[..4]);
}

#[test]
fn a_missing_chunk_is_reported_and_the_end_counts_it() {
    let written = small();
    let chunks = chunks(&written.bytes);
    let mut bytes = written.bytes.clone();
    bytes.drain(chunks[3].0..chunks[3].1);
    let mut capture = Capture::from_reader(Cursor::new(bytes)).unwrap();
    let read = read_all(&mut capture);
    let damage = Damage { offset: chunks[3].0 as u64, kind: DamageKind::Missing(1) };
    assert_eq!(read.damaged, [damage]);
    let (_, ring) = capture.account().rings().next().unwrap();
    assert_eq!((ring.first_seq, ring.captured, ring.damaged), (1, 7, 3));
    assert_eq!(ring.captured + ring.lost_with_damage().total(), ring.next_seq - ring.first_seq);
    let end = capture.finish().end.unwrap();
    assert_eq!(capture.account().mismatches(end).len(), 1);
}

#[test]
fn a_chunk_inside_of_frames_is_no_chunk() {
    // Frames that contain a whole other capture: damage to their chunk must not expose it.
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
    assert!(newer.contains("version 9") && newer.contains("versions up to 1"), "{newer}");

    let folder = tempfile::tempdir().unwrap();
    let opened = Capture::open(folder.path()).map(|_| ());
    assert!(matches!(opened, Err(CaptureError::Directory)));
    let opened = Capture::open(&folder.path().join("absent")).map(|_| ());
    assert!(matches!(opened, Err(CaptureError::Io(_))));
}
