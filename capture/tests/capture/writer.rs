//! The layout of chunks in a file: one write each, large ones at the start of a block.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::io::{self, IoSlice, Write};
use std::rc::Rc;

use ppt_capture::{ALIGNED_PAYLOAD_FROM, BLOCK, CaptureWriter, End, EndReason, FramesHead};

use crate::support::{NONCE, STRIDE, frame, header, read, source};

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

/// For any position in the file, except right before a block, where a head does not fit.
#[test]
fn large_payloads_begin_at_blocks() {
    let mut writer = CaptureWriter::create(Vec::new(), &header()).unwrap();
    writer.source(0, &source()).unwrap();
    let (mut seq, mut at_blocks, mut starts) = (1, 0, BTreeSet::new());
    for count in
        (0..80).flat_map(|small| [1 + 7 * small % 160, ALIGNED_PAYLOAD_FROM / STRIDE as usize + 1])
    {
        let frames: Vec<u8> = (seq..seq + count as u64).flat_map(|seq| frame(0, seq)).collect();
        let head =
            FramesHead { nonce: NONCE, first_seq: seq, stride: STRIDE, ..Default::default() };
        let before = writer.bytes() as usize;
        writer.frames(&FramesHead { count: count as u32, ..head }, &frames).unwrap();
        seq += count as u64;
        if frames.len() >= ALIGNED_PAYLOAD_FROM {
            let start = writer.bytes() as usize - frames.len().next_multiple_of(64);
            let is_near = BLOCK - before % BLOCK < 192;
            assert!(start.is_multiple_of(BLOCK) || is_near, "{before}: {start}");
            at_blocks += usize::from(start.is_multiple_of(BLOCK));
            starts.insert(before % BLOCK);
        }
    }
    assert!(at_blocks > 70 && starts.len() > 30, "{at_blocks} {}", starts.len());
    let end = End::new(EndReason::Duration, 1, 1);
    let back = read(&writer.end(&end).unwrap()).unwrap();
    assert!(back.damaged.is_empty());
    assert!(back.rows.iter().map(|row| row.2).eq(1..seq));
    assert!(back.rows.iter().all(|row| row.3 == frame(0, row.2)));
}
