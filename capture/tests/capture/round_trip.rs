//! A reader gets back what was written, from files and streams, including the indexes of a long
//! capture.

use std::io::Cursor;

use ppt_capture::{Capture, CaptureItem, Chunk, Lost};
use proptest::prelude::*;

use crate::support::{Op, header, ops, read_all, schema, source, write};

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
        prop_assert_eq!(&read.triggers, &written.triggers);
        prop_assert_eq!(&read.flips, &written.flips);
        prop_assert_eq!(&read.names, &written.names);
        prop_assert_eq!(&read.modules, &written.modules);
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
        if let CaptureItem::Chunk(Chunk::Index(previous, entries)) = item {
            indexes.push((previous, entries));
        }
    }
    assert_eq!(indexes.len(), 3);
    let frames = indexes.iter().flat_map(|(_, entries)| entries).filter(|entry| entry.count == 1);
    assert_eq!(frames.count(), 10_000);
    // From the last bytes of the file: the end, the last index, and the earlier ones.
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
