//! Attributes of fields, events at the same time, and hostile names.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::builder::StringDictionaryBuilder;
use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, BooleanArray, Int32Array, Int64Array, RecordBatch, UInt64Array};
use arrow_schema::{DataType, Field};
use ppt_interchange::{
    COLUMNS, Chrome, ClockPair, Ctf, EventRole, EventRows, EventSchema, Perfetto, Trace,
};
use ppt_tables::Processes;
use serde_json::Value;

/// A name that breaks out of its quotes if they are not escaped.
const HOSTILE: &str = "</script>\"\\\u{1b}[31m\n";

fn words(words: &[&str]) -> ArrayRef {
    let mut builder = StringDictionaryBuilder::<Int32Type>::new();
    words.iter().for_each(|text| builder.append_value(text));
    Arc::new(builder.finish())
}

/// Slices of one thread: begin, length.
fn rows(slices: &[(i64, Option<i64>)]) -> EventRows {
    let count = slices.len();
    let same = |word: &str| words(&vec![word; count]);
    let longs = |all: Vec<Option<i64>>| Arc::new(Int64Array::from(all)) as ArrayRef;
    let ints = |number: i32| Arc::new(Int32Array::from(vec![number; count])) as ArrayRef;
    let yes = || Arc::new(BooleanArray::from(vec![true; count])) as ArrayRef;
    let numbers = |first: u64| {
        Arc::new(UInt64Array::from_iter_values(first..first + count as u64)) as ArrayRef
    };
    let columns: Vec<ArrayRef> = vec![
        longs(slices.iter().map(|slice| Some(slice.0)).collect()),
        longs(slices.iter().map(|slice| slice.1).collect()),
        yes(),
        yes(),
        same("c"),
        same("b"),
        same("s"),
        ints(0),
        longs((1..=count as i64).map(Some).collect()),
        same("h"),
        ints(7),
        ints(8),
        same(HOSTILE),
        numbers(70),
        numbers(u64::MAX - 100),
    ];
    let names = COLUMNS.iter().copied().chain(["what", "load", "call"]);
    EventRows::from_batch(&RecordBatch::try_from_iter(names.zip(columns)).unwrap()).unwrap()
}

fn kind(interval: bool) -> EventSchema {
    let field = |name: &str, ty, attributes: &str| {
        let said = [("attributes", attributes), ("unit", "B")];
        let said = said.map(|(key, text)| (key.to_owned(), text.to_owned()));
        Field::new(name, ty, true).with_metadata(HashMap::from(said))
    };
    let text = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
    EventSchema {
        what: EventRole::Frames,
        buffer: "b".to_owned(),
        frame: "job".to_owned(),
        interval: interval.then(|| "handle".to_owned()),
        fields: vec![
            field("what", text, "name"),
            field("load", DataType::UInt64, "unit counter"),
            field("call", DataType::UInt64, "flow"),
        ],
        seqno: "seqno".to_owned(),
    }
}

fn written(trace: &mut impl Trace, slices: &[(i64, Option<i64>)]) {
    let rows = rows(slices);
    trace.turn_to(0, &rows);
    (0..rows.len()).for_each(|row| trace.event(0, &rows, row).unwrap());
    trace.finish().unwrap();
}

const SLICES: [(i64, Option<i64>); 4] =
    [(1000, Some(50)), (1010, Some(10)), (1020, Some(100)), (1060, None)];

#[test]
fn chrome_has_names_curves_and_flows() {
    let mut out = Vec::new();
    let mut trace = Chrome::new(&mut out, &[kind(true)], Processes::default()).unwrap();
    written(&mut trace, &SLICES);
    let whole: Value = serde_json::from_slice(&out).unwrap();
    let all = whole["traceEvents"].as_array().unwrap();
    let of = |phase: &str| all.iter().filter(|value| value["ph"] == phase).collect::<Vec<_>>();
    let slices = of("X");
    assert_eq!(slices.len(), 3);
    assert_eq!(slices[0]["name"], HOSTILE);
    assert_eq!(slices[0]["bind_id"], format!("0x{:x}", u64::MAX - 100));
    assert_eq!(slices[0]["tid"], slices[1]["tid"], "one lies in the other");
    assert_ne!(slices[0]["tid"], slices[2]["tid"], "they overlap");
    assert_eq!(slices[2]["ts"], 0.02);
    assert_eq!(of("i").len(), 1);
    let curve: Vec<_> = of("C").iter().map(|value| value["args"]["B"].as_f64().unwrap()).collect();
    assert_eq!(curve, [70.0, 71.0, 72.0, 73.0]);
    assert_eq!(of("C")[0]["ts"], 0.05, "when the frame was written");
    assert_eq!(whole["otherData"]["origin_ns_since_the_epoch"], "1000");
}

#[test]
fn perfettos_packets_are_complete() {
    let mut out = Vec::new();
    let reading = |at| ClockPair { monotonic: at, realtime: 900 + at };
    let readings = [reading(5), reading(10), reading(7)];
    let mut trace =
        Perfetto::new(&mut out, &[kind(true)], Processes::default(), &readings).unwrap();
    written(&mut trace, &SLICES);
    // Each packet is field 1 of the trace, without gaps.
    let (mut rest, mut packets) = (&out[..], 0);
    while let Some((&tag, after)) = rest.split_first() {
        assert_eq!(tag, 0x0a);
        let (mut len, mut shift, mut after) = (0usize, 0, after);
        loop {
            let byte = after[0];
            len |= usize::from(byte & 0x7f) << shift;
            (shift, after) = (shift + 7, &after[1..]);
            if byte < 0x80 {
                break;
            }
        }
        rest = &after[len..];
        packets += 1;
    }
    // 2 readings, names, 2 tracks and 1 below, 1 of the curve; 3 begin and end, 1 instant, 4 values.
    assert_eq!(packets, 2 + 1 + 2 + 1 + 1 + 6 + 1 + 4);
    let text = |needle: &[u8]| out.windows(needle.len()).any(|window| window == needle);
    assert!(text(HOSTILE.as_bytes()) && text(b"job.load") && text(b"at the same time"));
}

#[test]
fn ctf_describes_what_is_in_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut hostile = kind(false);
    hostile.frame = HOSTILE.to_owned();
    let mut trace = Ctf::new(folder.path(), &[hostile]).unwrap();
    written(&mut trace, &SLICES);
    let metadata = std::fs::read_to_string(folder.path().join("metadata")).unwrap();
    assert!(metadata.starts_with("/* CTF 1.8 */\n"));
    assert!(metadata.contains(r#"name = "b:</script>\"\\"#), "{metadata}");
    assert!(!metadata.contains('\u{1b}') && metadata.contains("\tuint64_t _load;\n"));
    let stream = std::fs::read(folder.path().join("stream-0")).unwrap();
    assert_eq!(stream[..4], 0xC1FC_1FC1u32.to_le_bytes());
    let bits = u64::from_le_bytes(stream[24..32].try_into().unwrap());
    assert_eq!(bits, stream.len() as u64 * 8, "one packet");
}
