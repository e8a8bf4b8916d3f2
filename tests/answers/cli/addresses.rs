//! Code addresses: their names in SQL, statistics and exports, and the table of modules.

use std::collections::BTreeMap;
use std::process::Command;

use ppt_capture::{
    CaptureWriter, FileHeader, FramesHead, Module, Modules, Process, Segment, Source,
};
use serde_json::{Value, json};

use crate::support::{Bench, schema};

const JSON: &str = r#"{"v":1,"buffer":"b","slots":16,"stride":24,"frames":[
    {"name":"call","kind":"plain","size":24,"fields":[{"name":"at","type":"addr","offset":8},
    {"name":"n","type":"u32","offset":16}]}]}"#;

/// Address at which the program is mapped.
const START: u64 = 0x5555_0000_0000;

/// A program with two functions, and a capture of six calls: three places in `work`, one in `rest`, one
/// in a missing library, and none. None if there is no compiler.
fn bench() -> Option<(Bench, BTreeMap<String, u64>)> {
    let bench = Bench::empty();
    let source = "volatile int x; void work(void) { x += 1; x += 2; } void rest(void) { x = 3; }\n\
                  int main(void) { work(); rest(); return 0; }\n";
    bench.write("prog.c", source);
    let run = |tool: &str, arguments: &[&str]| {
        let mut command = Command::new(tool);
        match command.args(arguments).current_dir(bench.folder()).output() {
            Ok(output) => Some(String::from_utf8(output.stdout).unwrap()),
            Err(error) => {
                eprintln!("skipped: {tool}: {error}");
                None
            }
        }
    };
    run("gcc", &["-O1", "-fno-inline", "-Wl,--build-id=0xabcd01", "prog.c", "-o", "prog"])?;
    let symbols = run("nm", &["prog"])?;
    let symbols: BTreeMap<String, u64> = symbols
        .lines()
        .filter_map(|line| {
            let parts: Vec<&str> = line.split_whitespace().collect();
            let [address, "T", name] = parts[..] else { return None };
            Some((name.to_owned(), START + u64::from_str_radix(address, 16).unwrap()))
        })
        .collect();
    let header = FileHeader { capture_id: [1; 16], host: "h".into(), ..FileHeader::default() };
    let mut writer = CaptureWriter::create(Vec::new(), &header).unwrap();
    let source = Source {
        schema_json: JSON.into(),
        schema_hash: schema(JSON).hash(),
        buffer: "b".into(),
        process: Process { pid: 7, start_time: 3, exe: "/prog".into(), ..Process::default() },
        segments: vec![Segment { nonce: 7, rings: 1, slots: 16, stride: 24 }],
        ..Source::default()
    };
    writer.source(0, &source).unwrap();
    let program = Module {
        start: START,
        end: START + 0x10_0000,
        address: Some(0),
        path: bench.path("prog").to_str().unwrap().into(),
        build_id: vec![0xab, 0xcd, 0x01],
        ..Module::default()
    };
    let gone = Module {
        start: START + 0x20_0000,
        end: START + 0x30_0000,
        offset: 0x1000,
        address: Some(0x2000),
        path: b"/gone/lib.so".to_vec(),
        is_deleted: true,
        ..Module::default()
    };
    let mapped = [program, gone].into();
    writer.modules(&Modules { mono_ns: 5, mapped, ..Modules::default() }).unwrap();
    let (work, rest) = (symbols["work"], symbols["rest"]);
    let calls = [work, work + 1, work + 1, rest, START + 0x20_0034, 0];
    let head = FramesHead {
        nonce: 7,
        first_seq: 1,
        count: calls.len() as u32,
        stride: 24,
        drained_mono_ns: 2000,
        ..FramesHead::default()
    };
    let frames = (1u64..).zip(calls).flat_map(|(seq, at)| {
        [seq.to_le_bytes(), at.to_le_bytes(), (seq * 10).to_le_bytes()].concat()
    });
    writer.frames(&head, &frames.collect::<Vec<u8>>()).unwrap();
    let end = ppt_capture::End::new(ppt_capture::EndReason::Stopped, 0, 10_000);
    bench.write("out.bin", writer.end(&end).unwrap());
    Some((bench, symbols))
}

const NAMES: [Option<&str>; 6] = [
    Some("work (prog)"),
    Some("work+0x1 (prog)"),
    Some("work+0x1 (prog)"),
    Some("rest (prog)"),
    Some("lib.so+0x2034"),
    None,
];

#[test]
fn addresses_have_names_in_sql() {
    let Some((bench, symbols)) = bench() else { return };
    let rows = bench.rows("SELECT at, at_symbol FROM call ORDER BY seqno");
    let named: Vec<Value> = rows.iter().map(|row| row["at_symbol"].clone()).collect();
    assert_eq!(named, NAMES.map(|name| json!(name)));
    assert_eq!(rows[0]["at"], json!(symbols["work"]));
    let rows = bench.rows(
        "SELECT function_of(at_symbol) AS f, count(*) AS n, sum(n) AS s FROM call GROUP BY 1 \
         ORDER BY 1 NULLS LAST",
    );
    let expected = json!([
        {"f": "lib.so", "n": 1, "s": 50},
        {"f": "rest (prog)", "n": 1, "s": 40},
        {"f": "work (prog)", "n": 3, "s": 60},
        {"f": null, "n": 1, "s": 60},
    ]);
    assert_eq!(json!(rows), expected);
    let chosen = bench.rows("SELECT seqno FROM call WHERE at_symbol LIKE 'work+%' ORDER BY 1");
    assert_eq!(json!(chosen), json!([{"seqno": 2}, {"seqno": 3}]));
}

#[test]
fn modules_are_a_table() {
    let Some((bench, _)) = bench() else { return };
    let rows = bench.rows(
        "SELECT pid, start_address, \"offset\", path, build_id, deleted FROM modules ORDER BY 2",
    );
    let expected = json!([
        {"pid": 7, "start_address": "0x555500000000", "offset": 0,
         "path": bench.path("prog").to_str().unwrap(), "build_id": "abcd01", "deleted": false},
        {"pid": 7, "start_address": "0x555500200000", "offset": 4096, "path": "/gone/lib.so",
         "build_id": null, "deleted": true},
    ]);
    assert_eq!(json!(rows), expected);
}

#[test]
fn statistics_put_addresses_together_by_functions() {
    let Some((bench, _)) = bench() else { return };
    let said = bench.done(&["stat", "out.bin", "--field", "n", "--by", "at"]);
    // Each function once, with its number of frames.
    for (function, frames) in [("work (prog)", 3), ("rest (prog)", 1), ("lib.so", 1)] {
        let row = format!("b\tcall\t\t{function}\t\t\t{frames}\t");
        let rows = said.lines().filter(|line| line.starts_with(&row)).count();
        assert_eq!(rows, 1, "{function}: {said}");
    }
    assert!(!said.contains("+0x"), "{said}");
}

#[test]
fn exports_have_the_names() {
    let Some((bench, _)) = bench() else { return };
    bench.done(&["export", "out.bin", "--format", "chrome", "-o", "trace.json"]);
    let trace = std::fs::read_to_string(bench.path("trace.json")).unwrap();
    assert!(trace.contains("work+0x1 (prog)") && trace.contains("lib.so+0x2034"), "{trace}");
}
