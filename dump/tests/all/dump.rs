//! Compares one capture in every format with files in `golden/`, and reads damaged captures.

use std::io::{self, Cursor, Write};
use std::path::{Path, PathBuf};

use ppt_capture::{CaptureWriter, Cause, FileHeader, FramesHead, Gap};
use ppt_dump::{
    DumpError, DumpOutcome, DumpRequest, Info, Predicate, TableFormat, dump, dump_stream,
};

use crate::support::{NONCE, capture, end, frame, login, other_source, pass, source};

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

/// Compares with a golden file, or rewrites it.
fn check(name: &str, found: &[u8]) {
    let path = golden(name);
    if std::env::var_os("PPT_BLESS").is_some_and(|value| value == "1") {
        std::fs::write(&path, found).unwrap();
        return;
    }
    let expected = std::fs::read(&path).unwrap_or_default();
    assert!(
        expected == found,
        "{} differs; if that is meant, run again with PPT_BLESS=1\n--- expected\n{}\n--- found\n{}",
        path.display(),
        String::from_utf8_lossy(&expected),
        String::from_utf8_lossy(found),
    );
}

fn stream(bytes: &[u8], options: &DumpRequest) -> Result<(String, DumpOutcome), DumpError> {
    let mut out = Vec::new();
    let outcome = dump_stream(Cursor::new(bytes.to_vec()), options, &mut out)?;
    Ok((String::from_utf8(out).unwrap(), outcome))
}

#[test]
fn the_format_has_not_changed() {
    check("written.bin", &capture());
}

/// `capture.bin` contains its source once, as early captures did. It is never written again.
#[test]
fn tables_are_as_they_were() {
    for name in ["capture.bin", "written.bin"] {
        tables_of(&golden(name));
    }
}

fn tables_of(path: &Path) {
    let formats =
        [(TableFormat::Tsv, "tsv"), (TableFormat::Csv, "csv"), (TableFormat::JsonLines, "jsonl")];
    for (format, extension) in formats {
        for (gaps, what) in [(false, ""), (true, "gaps.")] {
            let options = DumpRequest { format, gaps, ..DumpRequest::default() };
            let mut out = Vec::new();
            let outcome = dump(path, &options, &mut out).unwrap();
            assert_eq!((outcome.damages, outcome.cut), (0, None));
            check(&format!("capture.bin.{what}{extension}"), &out);
            let (streamed, _) = stream(&std::fs::read(path).unwrap(), &options).unwrap();
            assert_eq!(streamed.as_bytes(), out, "a stream gives the same table");
        }
    }
    let options = DumpRequest { frame: Some("login".to_owned()), ..DumpRequest::default() };
    let mut out = Vec::new();
    dump(path, &options, &mut out).unwrap();
    check("capture.bin.login.tsv", &out);
}

#[test]
fn the_account_is_as_it_was() {
    for name in ["capture.bin", "written.bin"] {
        let bytes = std::fs::read(golden(name)).unwrap();
        let info = Info::read_stream(Cursor::new(bytes)).unwrap();
        let mut out = Vec::new();
        info.write_json(&mut out).unwrap();
        let json: serde_json::Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(json["buffers"][0]["lost_by"]["overrun"], 7);
        check("capture.bin.info.json", &out);
        let mut out = Vec::new();
        info.write_text(&mut out).unwrap();
        check("capture.bin.info", &out);
    }
}

/// As `ppt explain where` states, `ppt info` shows the fields that an expression may name.
#[test]
fn the_account_shows_the_fields_that_an_expression_may_name() {
    let info = Info::read(&golden("written.bin")).unwrap();
    let mut text = Vec::new();
    info.write_text(&mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    let mut count = 0;
    for kind in info.buffers.iter().flat_map(|buffer| &buffer.fields) {
        for field in &kind.fields {
            let matching = Some(Predicate::parse(&format!("\"{}\" IS NULL", field.name)).unwrap());
            let frame = Some(kind.kind.clone());
            let options = DumpRequest { frame, matching, ..DumpRequest::default() };
            dump(&golden("written.bin"), &options, io::sink()).unwrap();
            assert!(text.contains(&format!("{} ({}", field.name, field.ty)), "{text}");
            count += 1;
        }
    }
    assert!(count >= 8, "{text}");
}

#[test]
fn json_lines_are_json_and_no_format_lets_control_characters_through() {
    for format in [TableFormat::Tsv, TableFormat::Csv, TableFormat::JsonLines] {
        let (text, _) =
            stream(&capture(), &DumpRequest { format, ..DumpRequest::default() }).unwrap();
        let odd = |c: &char| c.is_control() && !matches!(c, '\n' | '\t');
        assert_eq!(text.chars().find(odd), None);
        if format == TableFormat::JsonLines {
            for line in text.lines() {
                serde_json::from_str::<serde_json::Value>(line).unwrap();
            }
        }
    }
}

#[test]
fn several_buffers_share_a_table() {
    let mut writer = CaptureWriter::create(Vec::new(), &FileHeader::default()).unwrap();
    writer.source(0, &source()).unwrap();
    writer.source(1, &other_source()).unwrap();
    writer.frames(&head(1, 1, 1, 16), &frame(1, &5i64.to_le_bytes(), 16)).unwrap();
    writer.frames(&head(0, 1, 1, 120), &frame(1, &login(9), 120)).unwrap();
    let bytes = writer.end(&end(&[])).unwrap();

    let (text, _) = stream(&bytes, &DumpRequest::default()).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("seqno\tring\ttid\tbuffer\tframe\tkind\twho\t"), "{}", lines[0]);
    assert!(lines[0].ends_with("\tcount"), "{}", lines[0]);
    assert!(lines[1].starts_with("1\t0\t\tother\tonly\t\t\t") && lines[1].ends_with("\t5"));
    assert!(lines[2].starts_with("1\t0\t\tdemo\tlogin\t\t9\t") && lines[2].ends_with('\t'));

    let only = DumpRequest { buffers: vec!["other".to_owned()], ..DumpRequest::default() };
    assert_eq!(stream(&bytes, &only).unwrap().0, "seqno\tring\ttid\tcount\n1\t0\t\t5\n");
    let wrong = DumpRequest { buffers: vec!["dem".to_owned()], ..DumpRequest::default() };
    let error = stream(&bytes, &wrong).unwrap_err();
    assert!(error.is_usage());
    assert_eq!(
        error.to_string(),
        "no buffer is called `dem` (did you mean `demo`?); the capture has: demo, other"
    );
    let wrong = DumpRequest { frame: Some("\u{1b}x".to_owned()), ..DumpRequest::default() };
    let error = stream(&bytes, &wrong).unwrap_err();
    let expected = r"no frame is called `\x1bx`; the chosen buffers have: login, only, pass";
    assert_eq!(error.to_string(), expected);
}

#[test]
fn no_rows_still_make_a_header() {
    let mut writer = CaptureWriter::create(Vec::new(), &FileHeader::default()).unwrap();
    writer.source(0, &other_source()).unwrap();
    let bytes = writer.end(&end(&[])).unwrap();
    assert_eq!(stream(&bytes, &DumpRequest::default()).unwrap().0, "seqno\tring\ttid\tcount\n");
    let gaps = DumpRequest { gaps: true, ..DumpRequest::default() };
    let (text, _) = stream(&bytes, &gaps).unwrap();
    assert_eq!(text, "buffer\tsegment\tring\tfirst_seq\tcount\tcause\n");
}

#[test]
fn a_frame_of_an_unknown_kind_is_damage() {
    let mut writer = CaptureWriter::create(Vec::new(), &FileHeader::default()).unwrap();
    writer.source(0, &source()).unwrap();
    let mut payload = frame(1, &login(9), 120);
    payload.extend(frame(2, &[7, 7], 120));
    payload.extend(frame(3, &login(11), 120));
    writer.frames(&head(0, 1, 3, 120), &payload).unwrap();
    let (text, outcome) = stream(&writer.end(&end(&[])).unwrap(), &DumpRequest::default()).unwrap();
    assert_eq!((text.lines().count(), outcome.rows, outcome.damages), (3, 2, 1));
    let said = outcome.damaged[0].to_string();
    assert!(said.contains("frame 2 of ring 0 has the frame id 1799"), "{said}");
}

#[test]
fn a_late_buffer_is_shown_where_the_format_allows() {
    let mut writer = CaptureWriter::create(Vec::new(), &FileHeader::default()).unwrap();
    writer.source(1, &other_source()).unwrap();
    writer.frames(&head(1, 1, 1, 16), &frame(1, &5i64.to_le_bytes(), 16)).unwrap();
    writer.source(0, &source()).unwrap();
    writer.frames(&head(0, 1, 1, 120), &frame(1, &login(9), 120)).unwrap();
    let bytes = writer.end(&end(&[])).unwrap();

    let (text, outcome) = stream(&bytes, &DumpRequest::default()).unwrap();
    assert_eq!((text.lines().count(), outcome.unshown), (2, 1));
    let json = DumpRequest { format: TableFormat::JsonLines, ..DumpRequest::default() };
    let (text, outcome) = stream(&bytes, &json).unwrap();
    assert_eq!((text.lines().count(), outcome.unshown), (2, 0));

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.bin");
    std::fs::write(&path, &bytes).unwrap();
    let mut out = Vec::new();
    let outcome = dump(&path, &DumpRequest::default(), &mut out).unwrap();
    assert_eq!((outcome.rows, outcome.unshown), (2, 0), "a file is surveyed first");
}

#[test]
fn a_cut_or_damaged_capture_gives_the_rows_of_its_good_chunks() {
    let bytes = capture();
    let (whole, _) = stream(&bytes, &DumpRequest::default()).unwrap();
    let lines: Vec<&str> = whole.lines().collect();
    for len in (256..bytes.len()).step_by(7) {
        let (text, outcome) = stream(&bytes[..len], &DumpRequest::default()).unwrap();
        assert_eq!(outcome.damages, 0);
        assert!(outcome.cut.is_some());
        let rows = text.lines().skip(1);
        assert!(rows.clone().eq(lines.iter().copied().skip(1).take(rows.count())), "cut at {len}");
        let info = Info::read_stream(Cursor::new(bytes[..len].to_vec())).unwrap();
        assert!(!info.complete);
        for ring in info.buffers.iter().flat_map(|buffer| &buffer.rings) {
            assert_eq!(ring.frames + ring.lost, ring.next_seq - ring.first_seq);
        }
    }
    for at in (0..bytes.len()).step_by(5) {
        let mut bytes = bytes.clone();
        bytes[at] ^= 0x10;
        let (text, _) = stream(&bytes, &DumpRequest::default()).unwrap();
        // A damaged source or clock changes the columns and times. Damaged rows are tested bit by
        // bit in ppt-capture.
        assert!(text.lines().count() <= lines.len(), "byte {at}");
        Info::read_stream(Cursor::new(bytes)).unwrap();
    }
}

#[test]
fn damage_shows_up_as_gaps_of_the_cause_corrupt() {
    let mut writer = CaptureWriter::create(Vec::new(), &FileHeader::default()).unwrap();
    writer.source(1, &other_source()).unwrap();
    let mut at = 0;
    for seq in [1, 2, 4] {
        if seq == 4 {
            let (ring, first_seq, count) = (0, 3, 1);
            let (source, nonce, cause) = (1, NONCE, Cause::Disk);
            writer.gap(&Gap { source, nonce, ring, first_seq, count, cause }).unwrap();
        }
        writer.frames(&head(1, seq, 1, 16), &frame(seq, &[0; 8], 16)).unwrap();
        if seq == 2 {
            at = writer.bytes() as usize - 60;
        }
    }
    let mut bytes = writer.end(&end(&[(1, 5, 3, 1)])).unwrap();
    bytes[at] ^= 1;
    let gaps = DumpRequest { gaps: true, ..DumpRequest::default() };
    let (text, outcome) = stream(&bytes, &gaps).unwrap();
    let rows: Vec<&str> = text.lines().skip(1).collect();
    let nonce = format!("{NONCE:016x}");
    assert_eq!(
        rows,
        [format!("other\t{nonce}\t0\t3\t1\tdisk"), format!("other\t{nonce}\t0\t2\t1\tcorrupt")]
    );
    assert_eq!(outcome.damages, 1);
    let info = Info::read_stream(Cursor::new(bytes)).unwrap();
    let buffer = &info.buffers[0];
    assert_eq!((buffer.frames, buffer.lost, buffer.lost_by.corrupt, buffer.damaged), (2, 2, 1, 1));
}

#[test]
fn a_closed_pipe_stays_one() {
    struct Closed;
    impl Write for Closed {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    for format in [TableFormat::Tsv, TableFormat::Csv, TableFormat::JsonLines] {
        let options = DumpRequest { format, ..DumpRequest::default() };
        let error = dump_stream(Cursor::new(capture()), &options, Closed).unwrap_err();
        let kind = match error {
            DumpError::Output(error) => error.kind(),
            other => panic!("{other}"),
        };
        assert_eq!(kind, io::ErrorKind::BrokenPipe);
    }
}

fn head(source: u16, first_seq: u64, count: u32, stride: u32) -> FramesHead {
    FramesHead { source, nonce: NONCE, first_seq, count, stride, ..FramesHead::default() }
}

#[test]
fn a_frame_shorter_than_the_stride_shows_nothing_of_what_follows() {
    let mut writer = CaptureWriter::create(Vec::new(), &FileHeader::default()).unwrap();
    writer.source(0, &source()).unwrap();
    let mut payload = frame(1, &login(9), 120);
    payload[16..].copy_from_slice(&pass(1)[8..]);
    writer.frames(&head(0, 1, 1, 120), &payload).unwrap();
    let bytes = writer.end(&end(&[])).unwrap();
    let options = DumpRequest { frame: Some("login".to_owned()), ..DumpRequest::default() };
    assert_eq!(stream(&bytes, &options).unwrap().0, "seqno\tring\ttid\twho\n1\t0\t\t9\n");
}
