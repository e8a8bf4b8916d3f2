//! Tables become frames with the values of their cells.

use ppt_capture::{Capture, CaptureItem, Chunk};
use ppt_dump::TableFormat;
use ppt_import::csv::{self, CsvOptions};
use ppt_import::frame_dsl::Schema;
use ppt_import::{ImportError, ImportHost, Recording};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::{File, captured, captured_at, captured_of, schema};

fn imported(schema: &Schema, options: &CsvOptions, table: &str) -> Result<File, ImportError> {
    let import =
        |recording: &mut Recording<_>| csv::import(table.as_bytes(), schema, options, recording);
    Ok(File::new(&captured(schema, import)?))
}

fn said(file: &str, options: &CsvOptions, table: &str) -> String {
    imported(&schema(file), options, table).err().expect("an error").to_string()
}

const READINGS: &str = "option time ns realtime;
    enum State { OFF, ON }
    frame reading { time at; State state; f64 volts @unit(\"V\"); char probe[8]; i32 raw[2]; }";

#[test]
fn a_line_is_a_frame() {
    let table = "probe,volts,at,state,raw_0,raw_1\r\n\
                 a,1.5,2026-11-21T15:04:05.5Z,ON,-1,2\r\n\
                 \"b,c\",-0.25,1795273446000000000,OFF,3,4\r\n\
                 \"\",nan,,1,0,0\r\n";
    let file = imported(&schema(READINGS), &CsvOptions::default(), table).unwrap();
    let rows = file.rows();
    let row = |at: Value, state: &str, volts: Value, probe: &str, raw: [i32; 2]| {
        (at, json!(state), volts, json!(probe), json!(raw[0]), json!(raw[1]))
    };
    let found: Vec<_> = rows
        .iter()
        .map(|row| {
            let get = |key: &str| row[key].clone();
            (get("at"), get("state"), get("volts"), get("probe"), get("raw_0"), get("raw_1"))
        })
        .collect();
    let expected = [
        row(json!(1_795_273_445_500_000_000i64), "ON", json!(1.5), "a", [-1, 2]),
        row(json!(1_795_273_446_000_000_000i64), "OFF", json!(-0.25), "b,c", [3, 4]),
        row(Value::Null, "ON", found[2].2.clone(), "", [0, 0]),
    ];
    assert_eq!(found, expected);
    let info = file.info();
    assert_eq!(info.capture.unwrap().host, "device");
}

#[test]
fn headings_threads_and_units_are_as_told() {
    let file = schema("option time ns monotonic; frame f { time at; duration took; u32 n; }");
    let options = CsvOptions {
        names: vec![("n".to_owned(), "Number of things".to_owned())],
        skip: vec!["note".to_owned()],
        units: vec![("at".to_owned(), 1_000_000_000), ("took".to_owned(), 1_000_000)],
        delimiter: Some(b';'),
        ..CsvOptions::default()
    };
    let table = "at;took;Number of things;note;tid\n1.5;0.25;7;x;40\n2.5;1;8;y;41\n3;0;9;;40\n";
    let import =
        |recording: &mut Recording<_>| csv::import(table.as_bytes(), &file, &options, recording);
    let epoch = 1_700_000_000_000_000_000;
    let found = File::new(&captured_at(&file, epoch, import).unwrap());
    let text = found.table(TableFormat::Tsv);
    let expected = "seqno\tring\ttid\tat\ttook\tn\n1\t0\t40\t1500000000\t250000\t7\n\
                    2\t0\t40\t3000000000\t0\t9\n1\t1\t41\t2500000000\t1000000\t8\n";
    assert_eq!(text, expected);
    let info = found.info();
    assert_eq!(info.capture.unwrap().created_realtime_ns, epoch + 1_500_000_000);
}

#[test]
fn a_column_says_which_frame_a_line_is() {
    let file = "option time ns realtime; frame a { time at; u8 x; } frame b { time at; u8 y; }";
    let table = "frame,at,x,y\na,5,1,\nb,6,,2\n";
    let rows = imported(&schema(file), &CsvOptions::default(), table).unwrap().rows();
    assert_eq!((&rows[0]["x"], &rows[1]["y"]), (&json!(1), &json!(2)));
    assert!(said(file, &CsvOptions::default(), "at,x,y\n5,1,2\n").contains("--frame"));
    assert!(said(file, &CsvOptions::default(), "frame,at,x,y\nc,5,1,2\n").contains("line 2"));
    let one = CsvOptions { frame: Some("b".to_owned()), ..CsvOptions::default() };
    let rows = imported(&schema(file), &one, "at,y\n5,9\n").unwrap().rows();
    assert_eq!((&rows[0]["frame"], &rows[0]["y"]), (&json!("b"), &json!(9)));
}

#[test]
fn what_does_not_fit_is_said_with_its_place() {
    let none = CsvOptions::default();
    let file = "option time ns realtime; frame f { time at; u8 level; }";
    for (table, text) in [
        ("", "empty"),
        ("at,level\n5,256\n", "line 2, column level: \"256\" is not a whole number from 0 to 255"),
        ("at,level\n5,1\nnow,2\n", "line 3, column at: \"now\" is neither a time"),
        ("at,level\n5,1\n6\n", "line 3: the line has 1 cells, and the first line 2"),
        ("at,levle\n5,1\n", "no column level, which frame f needs (did you mean `levle`?)"),
        ("at,level,x\n5,1,2\n", "--skip x"),
        ("at,level,at\n5,1,2\n", "stands twice"),
        ("at,level\n\u{0}\u{1}\n", "neither text nor a pcap file"),
    ] {
        let said = said(file, &none, table);
        assert!(said.contains(text), "{table:?}: {said}");
    }
    let units = CsvOptions { units: vec![("level".to_owned(), 1000)], ..CsvOptions::default() };
    assert!(said(file, &units, "at,level\n5,1\n").contains("no --unit"));
    let names =
        CsvOptions { names: vec![("lvl".to_owned(), "at".to_owned())], ..CsvOptions::default() };
    assert!(said(file, &names, "at,level\n5,1\n").contains("no frame has a column lvl"));
    let ticks = "option time tsc; frame f { time at; }";
    assert!(said(ticks, &none, "at\n5\n").contains("ticks"));
}

#[test]
fn ten_thousand_threads_have_rings_of_their_own() {
    let file = schema("option time ns realtime; frame f { time at; u32 n; }");
    let mut table = "at,n,tid\n".to_owned();
    for line in 0..30_000 {
        table += &format!("{},{line},{}\n", 1_000 + line, 1 + line % 10_000);
    }
    let file = imported(&file, &CsvOptions::default(), &table).unwrap();
    let rows = file.rows();
    assert_eq!(rows.len(), 30_000);
    let mut found: Vec<_> = rows
        .iter()
        .map(|row| {
            let get = |key: &str| row[key].as_u64().unwrap();
            assert_eq!(get("seqno") - 1, get("n") / 10_000);
            (get("n"), get("tid"))
        })
        .collect();
    found.sort_unstable();
    let expected: Vec<_> = (0..30_000).map(|n| (n, 1 + n % 10_000)).collect();
    assert_eq!(found, expected);
}

/// Text that survives a cell: no NUL, and not more than 12 bytes.
fn text() -> impl Strategy<Value = String> {
    prop_oneof!["[^\u{0}]{0,3}", "[a-z,\" é]{0,9}"].prop_filter("too long", |text| text.len() <= 12)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..Default::default() })]

    /// What `ppt dump` wrote of random values is imported as the same values, from tables of both
    /// kinds.
    #[test]
    fn what_dump_writes_is_what_import_reads(
        lines in prop::collection::vec(
            (1i64.., any::<i64>(), any::<u64>(), any::<f32>(), any::<bool>(), text(),
             any::<[u8; 3]>(), 0u32..4),
            1..40,
        ),
    ) {
        let file = schema(
            "option time timeval; enum E : u8 { A, B = 200 }
             frame f { time at; i64 low; u64 high; f32 single; bool flag; E e;
                       char name[12]; bytes raw[3]; interval time lap; }",
        );
        let mut table =
            "at.tv_sec\tat.tv_usec\tlow\thigh\tsingle\tflag\te\tname\traw\tlap_start.tv_sec\t\
             lap_start.tv_usec\tlap_end.tv_sec\tlap_end.tv_usec\ttid\n".to_owned();
        for (at, signed, unsigned, single, flag, name, raw, tid) in &lines {
            let (name, raw) = (escaped(name), raw.map(|it| format!("{it:02x}")).concat());
            let e = if *flag { "B" } else { "7" };
            let flag = u8::from(*flag);
            let (seconds, micros) = (at / 1_000_000, at % 1_000_000);
            table += &format!(
                "{seconds}\t{micros}\t{signed}\t{unsigned}\t{single}\t{flag}\t{e}\t{name}\t{raw}\t\
                 {seconds}\t{micros}\t\t\t{tid}\n"
            );
        }
        let first = imported(&file, &CsvOptions::default(), &table).unwrap();
        let rows = first.rows();
        prop_assert_eq!(rows.len(), lines.len());
        // Frames of one thread keep their order.
        let mut rows: Vec<_> = rows.iter().collect();
        rows.sort_by_key(|row| (row["tid"].as_u64(), row["seqno"].as_u64()));
        let mut lines = lines;
        lines.sort_by_key(|it| it.7);
        for (row, (at, signed, unsigned, single, flag, name, raw, _)) in rows.iter().zip(&lines) {
            prop_assert_eq!(&row["at.tv_usec"], &json!(at % 1_000_000));
            prop_assert_eq!(&row["low"], &json!(signed));
            prop_assert_eq!(&row["high"], &json!(unsigned));
            if single.is_finite() {
                prop_assert_eq!(row["single"].as_f64().map(|it| it as f32), Some(*single));
            }
            prop_assert_eq!(&row["flag"], &json!(u8::from(*flag)));
            prop_assert_eq!(&row["e"], &if *flag { json!("B") } else { json!(7) });
            prop_assert_eq!(&row["name"], &json!(name));
            prop_assert_eq!(&row["raw"], &json!(raw.map(|it| format!("{it:02x}")).concat()));
        }
        // Other programs' CSV has no escapes, so those of `ppt dump` are text there.
        let is_plain = lines.iter().all(|it| !it.5.contains(|it: char| ppt_text::is_unsafe(it) || it == '\\'));
        let formats = if is_plain { &[TableFormat::Tsv, TableFormat::Csv][..] } else { &[TableFormat::Tsv] };
        for &format in formats {
            let again = imported(&file, &CsvOptions::default(), &first.table(format)).unwrap();
            // Rings are numbered in the order in which threads appear.
            let values = |file: &File| {
                let mut rows = file.rows();
                rows.iter_mut().for_each(|row| row["ring"] = Value::Null);
                rows
            };
            prop_assert_eq!(values(&again), values(&first));
        }
    }
}

/// Text as `ppt dump` writes it between tabs.
fn escaped(text: &str) -> String {
    let escape = |c: char| match c {
        '\\' => "\\\\".to_owned(),
        '\t' => "\\t".to_owned(),
        '\n' => "\\n".to_owned(),
        c if c.is_control() => {
            let mut bytes = [0; 4];
            c.encode_utf8(&mut bytes).bytes().map(|byte| format!("\\x{byte:02x}")).collect()
        }
        c => c.to_string(),
    };
    text.chars().map(escape).collect()
}

#[test]
fn an_input_may_have_the_clocks_of_a_host() {
    let epoch = 1_795_000_000_000_000_000;
    let host = ImportHost {
        name: "desk".to_owned(),
        boot_id: "11111111-2222-3333-4444-555555555555".to_owned(),
        epoch_ns: epoch,
        asleep_ns: 700,
    };
    let import = |clock: &str, word: u64| {
        let schema = schema(&format!("option time ns {clock}; frame f {{ time at; u32 n; }}"));
        let table = format!("at,n\n{word},1\n{},2\n", word + 50);
        let import = |recording: &mut Recording<_>| {
            csv::import(table.as_bytes(), &schema, &CsvOptions::default(), recording)
        };
        File::new(&captured_of(&schema, host.clone(), 300, import).unwrap())
    };
    // The same moment by each clock; in every case these are the clocks of the host.
    for (clock, word) in
        [("realtime", epoch + 9_000), ("monotonic", 9_000), ("boottime", 9_000 + 700)]
    {
        let file = import(clock, word);
        let info = file.info();
        let capture = info.capture.unwrap();
        assert_eq!((capture.host, capture.boot_id), (host.name.clone(), host.boot_id.clone()));
        let found = ImportHost::from_capture(&file.path).unwrap().expect("a host");
        assert_eq!((found.epoch_ns, found.asleep_ns), (epoch, 700), "{clock}");
        let mut capture = Capture::open(&file.path).unwrap();
        let mut readings = Vec::new();
        while let Some(item) = capture.read().unwrap() {
            if let CaptureItem::Chunk(Chunk::Clock(some)) = item {
                readings.extend(some);
            }
        }
        let widths: Vec<_> =
            readings.iter().map(|reading| (reading.a_before, reading.a_after)).collect();
        assert_eq!(widths, [(9_000 - 300, 9_000 + 300); 2], "{clock}");
    }
    // A capture without a boot id gives no clocks.
    let without = captured(&schema("frame f { u32 n; }"), |_| Ok(())).unwrap();
    assert!(ImportHost::from_capture(&File::new(&without).path).unwrap().is_none());
}
