//! Statistics of spans keep fields of begins and fields of ends apart, and leave out keys. The table of
//! `ppt dump` is the reference.

use std::collections::{BTreeMap, HashSet};

use ppt_capture::FileHeader;
use serde_json::{Value, json};

use crate::ask::ask;
use crate::support::{self, Bench, head, schema};

const SPANS: u64 = 1000;

/// A statement: its end sets `rows`, `bytes` and `rc`, its begin `verb`, and both set `pages`. `rc` has
/// type `rc`, and the attribute names the half that sets it.
fn text(half: &str) -> String {
    let end = if half.is_empty() { "" } else { r#","half":"end""# };
    let begin = if half.is_empty() { "" } else { r#","half":"begin""# };
    format!(
        r#"{{"v":1,"buffer":"db","slots":64,"stride":48,"frames":[{{"name":"stmt","kind":"span",
        "size":48,"fields":[
        {{"name":"when","type":"ns","clock":"realtime","offset":8,"at":true}},
        {{"name":"id","type":"u64","offset":16,"key":true}},
        {{"name":"edge","type":"enum","enum":"StmtEdge","offset":24,"edge":true}},
        {{"name":"verb","type":"enum","enum":"Verb","offset":25{begin}}},
        {{"name":"rc","type":"i16","offset":26{end}}},
        {{"name":"rows","type":"u32","offset":28{end}}},
        {{"name":"bytes","type":"u64","offset":32,"unit":"B"{end}}},
        {{"name":"pages","type":"u32","offset":40}},
        {{"name":"held","type":"u32","offset":44{end}}}],"across":"process"}}],
        "enums":[{{"name":"StmtEdge","type":"u8","values":[["begin",0],["end",1]]}},
        {{"name":"Verb","type":"u8","values":[["OTHER",0],["SELECT",1],["UPDATE",2]]}}]}}"#
    )
}

/// Begin and end of each span, one after the other. No frame sets `held`.
fn capture(half: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    for seq in 1..=2 * SPANS {
        let (span, is_end) = ((seq - 1) / 2, (seq - 1) % 2 == 1);
        bytes.extend(seq.to_le_bytes());
        bytes.extend((1_700_000_000_000_000_000 + seq * 1000).to_le_bytes());
        bytes.extend((span % 137).to_le_bytes());
        let of_end = |value: u64| if is_end { value } else { 0 };
        bytes.push(u8::from(is_end));
        bytes.push(if is_end { 0 } else { (span % 3) as u8 });
        bytes.extend((of_end(if span % 2 == 0 { 101 } else { 0 }) as i16).to_le_bytes());
        bytes.extend((of_end(span % 29) as u32).to_le_bytes());
        bytes.extend(of_end(20 * (span % 29)).to_le_bytes());
        bytes.extend(((span % 10 + if is_end { 5 } else { 1 }) as u32).to_le_bytes());
        bytes.extend(0u32.to_le_bytes());
    }
    support::capture(&FileHeader::default(), &schema(&text(half)), &[(head(1, 1), bytes)])
}

fn bench(half: &str) -> Bench {
    let bench = Bench::empty();
    bench.write("out.bin", capture(half));
    bench
}

/// The rows of the table of `ppt dump`, by column.
fn dumped(bench: &Bench) -> Vec<BTreeMap<String, String>> {
    let mut table = Vec::new();
    let options = ppt_dump::DumpRequest::default();
    let outcome = ppt_dump::dump(&bench.path("out.bin"), &options, &mut table).unwrap();
    assert_eq!(outcome.rows, 2 * SPANS);
    let table = String::from_utf8(table).unwrap();
    let mut lines = table.lines().map(|line| line.split('\t').map(str::to_owned));
    let names: Vec<String> = lines.next().unwrap().collect();
    lines.map(|cells| names.iter().cloned().zip(cells).collect()).collect()
}

/// The mean of a field in the frames of one half, by `ppt dump`.
fn mean(rows: &[BTreeMap<String, String>], half: &str, field: &str) -> f64 {
    let of_half = rows.iter().filter(|row| row["edge"] == half);
    let values: Vec<f64> = of_half.map(|row| row[field].parse().unwrap()).collect();
    values.iter().sum::<f64>() / values.len() as f64
}

/// The statistics of a field, by the half.
fn told<'a>(stat: &'a Value, frame: &str, field: &str) -> BTreeMap<Option<&'a str>, &'a Value> {
    let all = stat.as_array().unwrap().iter();
    let of = all.filter(|value| value["frame"] == frame && value["field"] == field);
    of.map(|value| (value["step"].as_str(), value)).collect()
}

fn near(told: &Value, truth: f64) {
    let told = told.as_f64().unwrap();
    assert!((told - truth).abs() < 1e-9 * truth.abs().max(1.0), "{told}, not {truth}");
}

#[test]
fn statistics_are_of_the_half_that_sets_a_field() {
    for half in ["", "said"] {
        let bench = bench(half);
        let truth = dumped(&bench);
        let stat = bench.json(&["stat", "out.bin", "--format", "json"]);
        let of = |field: &str| told(&stat, "stmt", field);
        for field in ["rows", "bytes", "rc"] {
            let told = of(field);
            assert_eq!(told.keys().collect::<Vec<_>>(), [&Some("end")], "{half} {field}");
            let end = told[&Some("end")];
            assert_eq!(end["count"], SPANS);
            near(&end["mean"], mean(&truth, "end", field));
        }
        let pages = of("pages");
        assert_eq!(pages.len(), 2);
        for half in ["begin", "end"] {
            near(&pages[&Some(half)]["mean"], mean(&truth, half, "pages"));
        }
        // The value 0 counts like any other in the half that sets the field.
        let verb = of("verb");
        let count = |word: &str| {
            let is_it = |map: &&BTreeMap<_, _>| map["edge"] == "begin" && map["verb"] == word;
            truth.iter().filter(is_it).count()
        };
        let words = ["OTHER", "SELECT", "UPDATE"].map(|word| (word, count(word)));
        let words: BTreeMap<_, _> = words.into_iter().collect();
        assert_eq!(verb.keys().collect::<Vec<_>>(), [&Some("begin")]);
        assert_eq!(verb[&Some("begin")]["values"], json!(words));
        // A field that no program sets is reported for the half that could set it, or for both
        // together.
        let held = of("held");
        let expected = if half.is_empty() { (None, 2 * SPANS) } else { (Some("end"), SPANS) };
        assert_eq!(held.len(), 1);
        assert_eq!(held[&expected.0]["count"], expected.1, "{half}");
        // A key has no percentiles.
        let ids: HashSet<&String> = truth.iter().map(|row| &row["id"]).collect();
        let id = of("id")[&None];
        assert_eq!((&id["distinct"], &id["exact"]), (&json!(ids.len()), &json!(true)));
        assert_eq!((&id["count"], &id["p50"]), (&json!(2 * SPANS), &Value::Null));
        // The same statistics from the table of spans.
        let of = |field: &str| told(&stat, "stmt_spans", field);
        near(&of("end_rows")[&None]["mean"], mean(&truth, "end", "rows"));
        assert!(of("begin_rows").is_empty() && of("begin_rc").is_empty());
        assert!(of("end_verb").is_empty() && !of("begin_verb").is_empty());
        near(&of("begin_pages")[&None]["mean"], mean(&truth, "begin", "pages"));
        assert_eq!(of("id")[&None]["distinct"], ids.len());
        // Another program computes the same counts.
        let export = ["export", "out.bin", "--frame", "stmt", "-o", "stmt.parquet"];
        bench.done(&[&export[..], &["--format", "parquet"]].concat());
        let questions =
            json!(["SELECT avg(rows), avg(rc), count(DISTINCT id) FROM t WHERE edge = 'end'"]);
        if let Some(answers) = ask("duckdb", &bench.path("stmt.parquet"), &questions) {
            near(&answers[0][0][0], mean(&truth, "end", "rows"));
            near(&answers[0][0][1], mean(&truth, "end", "rc"));
            assert_eq!(answers[0][0][2], ids.len());
        }
    }
}

#[test]
fn groups_and_formats_say_the_same_of_halves() {
    let bench = bench("");
    let truth = dumped(&bench);
    let text = bench.done(&["stat", "out.bin", "--format", "text"]);
    assert!(text.contains("rows (end)") && text.contains("pages (begin)"), "{text}");
    assert!(!text.contains("rows (begin)") && text.contains("137 different"), "{text}");
    let table = bench.done(&["stat", "out.bin"]);
    let mut lines = table.lines().map(|line| line.split('\t').collect::<Vec<_>>());
    let names = lines.next().unwrap();
    let at = |name: &str| names.iter().position(|text| *text == name).unwrap();
    let rows: Vec<_> = lines.filter(|line| line[at("frame")] == "stmt").collect();
    let of = |field: &str| rows.iter().find(|row| row[at("field")] == field).unwrap();
    assert_eq!(of("rows")[at("step")], "end");
    near(&json!(of("rows")[at("mean")].parse::<f64>().unwrap()), mean(&truth, "end", "rows"));
    assert_eq!((of("id")[at("distinct")], of("id")[at("p50")]), ("137", ""));

    // All groups together decide which half sets a field.
    let by = ["stat", "out.bin", "--frame", "stmt", "--field", "rc", "--by", "id"];
    let by = bench.json(&[&by[..], &["--format", "json"]].concat());
    let rc: Vec<&Value> =
        by.as_array().unwrap().iter().filter(|value| value["field"] == "rc").collect();
    assert_eq!(rc.len(), 137);
    assert!(rc.iter().all(|row| row["step"] == "end"));
    assert_eq!(rc.iter().map(|row| row["count"].as_u64().unwrap()).sum::<u64>(), SPANS);

    let drawn = bench.done(&["stat", "out.bin", "--frame", "stmt", "--hist", "rows"]);
    assert!(drawn.contains("stmt.rows (end)   1,000 values"), "{drawn}");
    assert_eq!(bench.fails(&["stat", "out.bin", "--frame", "stmt", "--hist", "id"]).1, 2);
}

#[test]
fn other_commands_tell_halves_apart() {
    let bench = bench("");
    let truth = dumped(&bench);
    let rows = ["compare", "--format", "json", "out.bin", "--", "out.bin"];
    let rows = bench.json(&rows);
    let fields: Vec<&str> =
        rows.as_array().unwrap().iter().map(|value| value["field"].as_str().unwrap()).collect();
    assert!(fields.contains(&"db.stmt.end.rows") && fields.contains(&"db.stmt.begin.pages"));
    assert!(!fields.contains(&"db.stmt.begin.rows"), "{fields:?}");
    assert!(fields.iter().all(|field| !field.ends_with(".id")), "{fields:?}");
    let end = rows.as_array().unwrap().iter().find(|value| value["field"] == "db.stmt.end.rows");
    let changes = end.unwrap()["changes"].as_array().unwrap();
    let told = changes.iter().find(|change| change["statistic"] == "mean").unwrap();
    near(&told["first"], mean(&truth, "end", "rows"));

    let top = bench.done(&["top", "--once", "out.bin"]);
    assert!(top.contains("rows (end)") && !top.contains("rows (begin)"), "{top}");
    assert!(top.contains("137 different"), "{top}");
    bench.done(&["report", "out.bin", "-o", "page.html"]);
    let page = std::fs::read_to_string(bench.path("page.html")).unwrap();
    assert!(page.contains("rows (end)") && !page.contains("rows (begin)"));
    assert!(page.contains("<td>137") && !page.contains("percentiles of stmt.id"));
}

#[test]
fn a_table_of_spans_has_the_columns_of_the_halves_that_set_them() {
    let names = |bench: &Bench| -> Vec<String> {
        let csv = bench.done(&["sql", "out.bin", "SELECT * FROM stmt_spans", "--format", "csv"]);
        csv.lines().next().unwrap().split(',').map(str::to_owned).collect()
    };
    let (plain, said) = (names(&bench("")), names(&bench("said")));
    let gone = |name: &&String| !said.contains(name);
    let gone: Vec<&String> = plain.iter().filter(gone).collect();
    assert_eq!(gone, ["begin_rc", "begin_rows", "begin_bytes", "begin_held", "end_verb"]);
    assert!(said.iter().all(|name| plain.contains(name)));
}

#[test]
fn a_table_has_counters_and_histograms() {
    let bench = super::kinds::bench();
    let stat = bench.json(&["stat", "out.bin", "--format", "json"]);
    let all = stat.as_array().unwrap();
    let table = bench.done(&["stat", "out.bin", "--format", "jsonl"]);
    let rows: Vec<Value> = table.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for kind in ["counter", "histogram"] {
        let told: Vec<&Value> = all.iter().filter(|value| !value[kind].is_null()).collect();
        let rows: Vec<&Value> = rows.iter().filter(|row| !row[kind].is_null()).collect();
        assert!(!told.is_empty());
        assert_eq!(told.len(), rows.len());
        for (told, row) in told.iter().zip(rows) {
            assert_eq!((&told["buffer"], &told[kind]), (&row["buffer"], &row[kind]));
            let sum = if kind == "counter" { "value" } else { "sum" };
            assert_eq!(told[sum], row["sum"]);
            for key in ["count", "mean"].into_iter().filter(|_| kind == "histogram") {
                assert_eq!(told[key], row[key]);
                assert_eq!(told["p99"]["hi"].as_f64(), row["p99"].as_f64());
            }
        }
    }
}
