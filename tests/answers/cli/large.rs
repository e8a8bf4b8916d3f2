//! Integers beyond the precision of floats keep their digits, and agree everywhere.

use ppt_capture::FileHeader;
use serde_json::Value;

use crate::support::{Bench, capture, head, schema};

/// Frames with `size` 2^53 + 1, and with `offset` growing towards the maximum.
fn bench() -> Bench {
    let field =
        |name: &str, offset: u8| format!(r#"{{"name":"{name}","type":"u64","offset":{offset}}}"#);
    let (size, offset) = (field("size", 8), field("offset", 16));
    let schema = schema(&format!(
        r#"{{"v":1,"buffer":"b","slots":16,"stride":24,"frames":[
        {{"name":"write","kind":"plain","size":24,"fields":[{size},{offset}]}}]}}"#
    ));
    let header = FileHeader {
        capture_id: [5; 16],
        boot_id: "boot".to_owned(),
        created_realtime_ns: 1_700_000_000_000_000_000,
        created_mono_ns: 1_000,
        ..FileHeader::default()
    };
    let words = (1u64..=9).flat_map(|seq| [seq, (1 << 53) + 1, u64::MAX - 9 + seq]);
    let frames = words.flat_map(u64::to_le_bytes).collect();
    let bench = Bench::empty();
    bench.write("out.bin", capture(&header, &schema, &[(head(1, 5_000), frames)]));
    bench
}

const COLUMNS: [&str; 7] = ["min", "mean", "p50", "p90", "p99", "p999", "max"];

/// The row of a field in a table.
fn said(table: &str, field: &str) -> Vec<String> {
    let lines: Vec<Vec<&str>> = table.lines().map(|line| line.split('\t').collect()).collect();
    let at = |name: &str| lines[0].iter().position(|column| *column == name).unwrap();
    let row = lines.iter().find(|row| row[at("field")] == field).unwrap();
    COLUMNS.map(|name| row[at(name)].to_owned()).to_vec()
}

#[test]
fn large_numbers_do_not_contradict_each_other() {
    let bench = bench();
    for memory in ["1G", "16M"] {
        let table = bench.done(&["stat", "out.bin", "--format", "tsv", "--memory", memory]);
        assert_eq!(said(&table, "size"), ["9007199254740993"; COLUMNS.len()]);
        let json = bench.json(&["stat", "out.bin", "--format", "json", "--memory", memory]);
        let size = json.as_array().unwrap().iter().find(|value| value["field"] == "size").unwrap();
        for name in COLUMNS {
            assert_eq!(size[name], Value::from(9_007_199_254_740_993u64), "{name}");
        }
    }
    let table = bench.done(&["stat", "out.bin", "--format", "tsv"]);
    let offset = said(&table, "offset");
    let median = (u64::MAX - 4).to_string();
    assert_eq!([&offset[0], &offset[2]], [&(u64::MAX - 8).to_string(), &median]);
    let whole: Vec<u64> = offset[2..].iter().map(|cell| cell.parse().unwrap()).collect();
    assert!(whole.is_sorted() && whole[4] == u64::MAX, "{offset:?}");
}
