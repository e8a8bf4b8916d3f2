//! A field of a span is reported for the half that sets it. Keys are reported by their number.

use std::fs::File;

use ppt_capture::frame_dsl::schema::Schema;
use ppt_capture::{
    CaptureWriter, ClockId, ClockReading, End, EndReason, FileHeader, FramesHead, Segment, Source,
};
use ppt_live::{DistinctCount, FieldPicture, Picture, Tally};

const STRIDE: usize = 40;
const SECOND: u64 = 1_000_000_000;
/// Spans per second.
const SPANS: u64 = 500;

/// `rows` and `verb` are set by one half each, `pages` by both, `held` by none. The frame file restricts
/// `said` to ends.
const SCHEMA: &str = r#"{"v":1,"buffer":"db","slots":16,"stride":40,"frames":[
    {"name":"stmt","kind":"span","size":40,"fields":[
    {"name":"when","type":"ns","clock":"monotonic","offset":8,"at":true},
    {"name":"id","type":"u64","offset":16,"key":true},
    {"name":"edge","type":"enum","enum":"StmtEdge","offset":24,"edge":true},
    {"name":"verb","type":"enum","enum":"Verb","offset":25},
    {"name":"said","type":"u16","offset":26,"half":"end"},
    {"name":"rows","type":"u32","offset":28},
    {"name":"pages","type":"u32","offset":32},
    {"name":"held","type":"u32","offset":36}],"across":"process"}],
    "enums":[{"name":"StmtEdge","type":"u8","values":[["begin",0],["end",1]]},
    {"name":"Verb","type":"u8","values":[["OTHER",0],["SELECT",1]]}]}"#;

fn frame(seq: u64) -> Vec<u8> {
    let (span, is_end) = ((seq - 1) / 2, (seq - 1) % 2 == 1);
    let mut bytes = seq.to_le_bytes().to_vec();
    bytes.extend((100 * SECOND + seq).to_le_bytes());
    // Each second has its own keys.
    bytes.extend((span / SPANS * 1000 + span % 100).to_le_bytes());
    bytes.push(u8::from(is_end));
    bytes.push(if is_end { 0 } else { (span % 2) as u8 });
    bytes.extend(0u16.to_le_bytes());
    bytes.extend((if is_end { 40 } else { 0u32 }).to_le_bytes());
    bytes.extend((if is_end { 7 } else { 3u32 }).to_le_bytes());
    bytes.extend(0u32.to_le_bytes());
    bytes
}

fn picture() -> Picture {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.bin");
    let schema = Schema::from_json(SCHEMA.as_bytes()).unwrap();
    let file = File::create(&path).unwrap();
    let mut writer = CaptureWriter::create(file, &FileHeader::default()).unwrap();
    let source = Source {
        schema_json: schema.to_json().into_bytes(),
        schema_hash: schema.hash(),
        buffer: schema.buffer.clone(),
        segments: vec![Segment { nonce: 7, rings: 1, slots: 16, stride: STRIDE as u32 }],
        ..Source::default()
    };
    writer.source(0, &source).unwrap();
    let reading =
        ClockReading::exact(ClockId::Monotonic, 100 * SECOND, ClockId::Realtime, 500 * SECOND);
    writer.clock(&[reading]).unwrap();
    for second in 0..20 {
        let first_seq = 1 + second * 2 * SPANS;
        let head = FramesHead {
            nonce: 7,
            tid: 77,
            first_seq,
            count: 2 * SPANS as u32,
            stride: STRIDE as u32,
            drained_mono_ns: (100 + second) * SECOND,
            ..FramesHead::default()
        };
        let bytes: Vec<u8> = (first_seq..first_seq + 2 * SPANS).flat_map(frame).collect();
        writer.frames(&head, &bytes).unwrap();
    }
    let end = End::new(EndReason::Stopped, 9, 9);
    writer.finish(&end).unwrap();
    let tally = Tally::from_capture(&path).unwrap();
    tally.picture(tally.last())
}

#[test]
fn halves_and_keys() {
    let picture = picture();
    let fields = &picture.kinds[0].fields;
    let labels: Vec<String> = fields.iter().map(FieldPicture::label).collect();
    let expected = [
        "id",
        "edge",
        "verb (begin)",
        "said",
        "rows (end)",
        "pages (begin)",
        "pages (end)",
        "held",
    ];
    assert_eq!(labels, expected);
    let labelled = |label: &str| fields.iter().find(|field| field.label() == label).unwrap();
    let numbers = |label: &str| {
        let numbers = labelled(label).numbers.unwrap();
        (numbers.count, numbers.p50, numbers.max)
    };
    assert_eq!(numbers("rows (end)").0, 20 * SPANS);
    assert!((numbers("rows (end)").1 - 40.0).abs() < 0.1);
    assert_eq!((numbers("pages (begin)").2, numbers("pages (end)").2), (3.0, 7.0));
    let words = labelled("verb (begin)").words.as_ref().unwrap();
    assert_eq!(words.shares.len(), 2);
    let id = labelled("id");
    assert_eq!(id.distinct, Some(DistinctCount { count: 20 * 100, exact: true }));
    assert!(id.numbers.is_none());
}
