//! The commands as users call them: answers, messages, exit codes, and remaining files.

use std::fs;
use std::process::Command;

use ppt_capture::FileHeader;
use serde_json::Value;

use crate::support::{self, Bench, head, names, root};

#[test]
fn sql_answers_and_tells_what_is_missing() {
    let bench = Bench::new();
    let query = "SELECT frame, count(*) AS n FROM frames GROUP BY frame ORDER BY n";
    assert_eq!(bench.done(&["sql", "out.bin", query]), "frame\tn\nlogin\t1\npass\t5\n");
    let json = bench.done(&["sql", "out.bin", query, "--format", "json"]);
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json[1]["n"], 5);
    let output = bench.run(&["sql", "out.bin", query]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("14 of 20 frames are missing in "), "{said}");
}

#[test]
fn a_file_of_statements_shares_views() {
    let bench = Bench::new();
    let text = "CREATE VIEW few AS SELECT * FROM frames WHERE frame = 'pass'; -- it's a view;\n\
                SELECT count(*) AS n FROM few; SELECT ';' AS semicolon";
    bench.write("all.sql", text);
    assert_eq!(bench.done(&["sql", "out.bin", "-f", "all.sql"]), "n\n5\nsemicolon\n;\n");
    // With a file, every word is a capture: patterns may have white space, too.
    fs::rename(bench.path("out.bin"), bench.path("my run.bin")).unwrap();
    assert_eq!(bench.done(&["sql", "my r*.bin", "-f", "all.sql"]), "n\n5\nsemicolon\n;\n");
    let (said, code) = bench.fails(&["sql", "my nun.bin", "-f", "all.sql"]);
    assert!(said.contains("my nun.bin: No such file") && code == 1, "{said}");
}

#[test]
fn windows_are_those_of_dump() {
    let bench = Bench::new();
    let count = "SELECT count(*) AS n FROM frames";
    let counted = |more: &[&str]| {
        let args = [&["sql", "out.bin", count], more].concat();
        bench.done(&args).lines().nth(1).unwrap().parse::<u64>().unwrap()
    };
    for window in [vec!["--from", "5"], vec!["--to", "3"], vec!["--from", "2", "--to", "7"]] {
        let dumped = ppt_dump_rows(&window);
        assert_eq!(counted(&window), dumped, "{window:?}");
    }
    assert!(counted(&["--to", "@1"]) == 0 && counted(&["--from", "@1"]) == 6);
}

/// Rows of the golden table within these bounds of sequence numbers.
fn ppt_dump_rows(window: &[&str]) -> u64 {
    let table = fs::read_to_string(root().join("dump/tests/golden/capture.bin.tsv")).unwrap();
    let mut lines = table.lines();
    let names: Vec<_> = lines.next().unwrap().split('\t').collect();
    let seqno = names.iter().position(|name| *name == "seqno").unwrap();
    let bound = |name: &str| {
        let at = window.iter().position(|window| *window == name)?;
        window[at + 1].parse::<u64>().ok()
    };
    let (from, to) = (bound("--from").unwrap_or(0), bound("--to").unwrap_or(u64::MAX));
    let numbers = lines.map(|line| line.split('\t').nth(seqno).unwrap().parse::<u64>().unwrap());
    numbers.filter(|number| from <= *number && *number <= to).count() as u64
}

#[test]
fn stat_says_the_same_in_every_format() {
    let bench = Bench::new();
    let text = bench.done(&["stat", "out.bin", "--format", "text"]);
    assert!(text.contains("pass   5 frames") && text.contains("kind   99 2 · TIMEOUT 2"), "{text}");
    let json: Value =
        serde_json::from_str(&bench.done(&["stat", "out.bin", "--format", "json"])).unwrap();
    let all = json.as_array().unwrap();
    let of = |frame: &str, field: Value| {
        all.iter().find(|value| value["frame"] == frame && value["field"] == field).unwrap()
    };
    assert_eq!(of("pass", Value::Null)["count"], 5);
    assert_eq!(of("pass", "kind".into())["values"]["TIMEOUT"], 2);
    // Beyond 63 bits, and as it is.
    assert_eq!(of("pass", "bytes".into())["max"], u64::MAX - 1);
    assert_eq!(of("pass", "spent".into())["unit"], "ns");
    let rows = bench.done(&["stat", "out.bin"]);
    let line = rows.lines().find(|line| line.starts_with("demo\tpass\tspent\t")).unwrap();
    assert!(line.contains("-15.0"), "{line}");
    let grouped = bench.done(&["stat", "out.bin", "--frame", "pass", "--by", "kind,ok"]);
    assert!(grouped.contains("by_kind\tby_ok"), "{grouped}");
    let drawn = bench.done(&["stat", "out.bin", "--frame", "pass", "--hist", "who"]);
    assert!(drawn.starts_with("pass.who   5 values\n"), "{drawn}");
    let some = bench.done(&["stat", "out.bin", "--field", "spent,who"]);
    let fields: Vec<_> =
        some.lines().skip(1).map(|line| line.split('\t').nth(2).unwrap()).collect();
    assert!(fields.iter().all(|field| ["", "spent", "who"].contains(field)), "{some}");
    for name in ["spent", "who"] {
        let line = |all: &str| {
            all.lines()
                .find(|line| line.starts_with(&format!("demo\tpass\t{name}\t")))
                .map(str::to_owned)
        };
        assert!(line(&some).is_some() && line(&some) == line(&rows), "{some}");
    }
    let filtered = bench.done(&["stat", "out.bin", "--where", "who > 0", "--format", "json"]);
    let filtered: Value = serde_json::from_str(&filtered).unwrap();
    assert_eq!(filtered[0]["count"], 3, "{filtered}");
}

#[test]
fn what_is_not_there_is_a_wrong_usage() {
    let bench = Bench::new();
    for (args, said) in [
        (vec!["sql", "out.bin", "SELECT * FROM pas"], "did you mean `pass`?"),
        (vec!["sql", "out.bin", "SELECT knd FROM pass"], "there is no column `knd`"),
        (vec!["stat", "out.bin", "--frame", "pas"], "did you mean `pass`?"),
        (vec!["stat", "out.bin", "-b", "dmo"], "did you mean `demo`?"),
        (vec!["why", "out.bin", "--slowest", "0"], "from 1 to 10000"),
        (vec!["stat", "out.bin", "--by", "kin"], "there is no column `kin`"),
        (vec!["stat", "out.bin", "--field", "spnt"], "did you mean `spent`?"),
        (vec!["stat", "out.bin", "--field", "who,spnt"], "there is no column `spnt`"),
        (vec!["stat", "out.bin", "--where", "knd = 1"], "there is no column `knd`"),
        (vec!["stat", "none*.bin"], "nothing matches `none*.bin`"),
        (vec!["sql", "SELECT 1 AS x"], "name a capture"),
        (vec!["stat", "s3://a/out.bin"], "name a file, and copy it"),
        (vec!["sql", "out.bin", "SELECT 1 AS x", "-o", "s3://a/b.csv"], "name a file, and copy it"),
        (vec!["report", "out.bin", "-o", "https://a/b.html"], "name a file, and copy it"),
        (
            vec!["export", "out.bin", "--format", "parquet", "-o", "s3://a/b"],
            "an object store gets files by --follow alone",
        ),
        (
            vec!["export", "out.bin", "--format", "ctf", "-o", "s3://a/b"],
            "copy it with the tools of the store",
        ),
        (vec!["sql", "out.bin", "INSERT INTO pass SELECT * FROM pass"], "captures are not changed"),
    ] {
        let (text, code) = bench.fails(&args);
        assert!(text.contains(said) && code == 2, "{args:?}: {code} {text}");
    }
    for args in [vec!["sql", "out.bin", "SELEC 1 x"], vec!["stat", "missing.bin"]] {
        assert_eq!(bench.fails(&args).1, 1, "{args:?}");
    }
    let (text, code) = bench.fails(&["why", "out.bin"]);
    assert!(text.contains("capture with --kernel sched,syscalls,faults") && code == 1, "{text}");
    assert_eq!(bench.names(), ["out.bin"]);
}

const EXTERNAL_ELSEWHERE: &str = "CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION 's3://a/b'";
/// Writes indirectly into an existing file.
const EXTERNAL_INSERT: &str = "CREATE EXTERNAL TABLE t (x BIGINT) STORED AS PARQUET LOCATION 'a/'; \
                               EXPLAIN ANALYZE INSERT INTO t SELECT 1";
const EXTERNAL_PREPARED: &str = "CREATE EXTERNAL TABLE t (x BIGINT) STORED AS PARQUET LOCATION 'a/'; \
                                 PREPARE p AS INSERT INTO t SELECT 1; EXECUTE p";

#[test]
fn no_output_takes_the_place_of_anything() {
    let bench = Bench::new();
    let query = "SELECT * FROM pass";
    let before = fs::read(bench.path("out.bin")).unwrap();
    bench.write("there", "mine");
    let copy = |to: &str| format!("COPY (SELECT * FROM pass) TO '{to}' STORED AS CSV");
    for (args, said) in [
        (vec!["sql", "out.bin", query, "-o", "there"], "there exists"),
        (vec!["stat", "out.bin", "-o", "there"], "there exists"),
        (vec!["sql", "out.bin", query, "-o", "out.bin", "--force"], "is also the input"),
        (vec!["export", "out.bin", "--format", "csv", "-o", "there"], "there exists"),
        (vec!["sql", "out.bin", &copy("there")], "there exists"),
        (vec!["sql", "out.bin", &copy("s3://a/b")], "COPY writes files"),
        (vec!["sql", "out.bin", &format!("EXPLAIN {}", copy("there"))], "there is no plan of COPY"),
        (vec!["sql", "out.bin", &format!("EXPLAIN ANALYZE {}", copy("there"))], "no plan of COPY"),
        (vec!["sql", "out.bin", &format!("EXPLAIN ANALYZE {}", copy("new"))], "no plan of COPY"),
        (vec!["sql", "out.bin", "DROP TABLE pass"], "`pass` is part of a capture"),
        (vec!["sql", "out.bin", "DROP TABLE demo.pass"], "part of a capture"),
        (vec!["sql", "out.bin", "--from", "1", "DROP VIEW pass"], "`pass` is part of a capture"),
        (vec!["sql", "out.bin", "DROP SCHEMA demo CASCADE"], "`demo` is part of a capture"),
        (vec!["sql", "out.bin", EXTERNAL_ELSEWHERE], "LOCATION names files of this machine"),
        (vec!["sql", "out.bin", EXTERNAL_INSERT], "captures are not changed"),
        (vec!["sql", "out.bin", EXTERNAL_PREPARED], "captures are not changed"),
    ] {
        let (text, code) = bench.fails(&args);
        assert!(text.contains(said) && code != 0, "{args:?}: {code} {text}");
    }
    // A failing query leaves no partial output.
    let fails = ["sql", "out.bin", "SELECT 1 / (who - who) AS x FROM pass", "-o", "half.csv"];
    assert_eq!(bench.fails(&fails).1, 1);
    assert_eq!(bench.names(), ["out.bin", "there"]);
    assert_eq!(fs::read(bench.path("out.bin")).unwrap(), before);
    bench.done(&["sql", "out.bin", &copy("new.csv")]);
    bench.done(&["sql", "out.bin", query, "-o", "there", "--force", "--format", "csv"]);
    let read = |name: &str| fs::read_to_string(bench.path(name)).unwrap();
    assert_eq!(read("new.csv"), read("there"));
    assert_eq!(read("there").lines().count(), 6);
}

#[test]
fn exports_are_a_file_or_a_folder() {
    let bench = Bench::new();
    bench.done(&["export", "out.bin", "--format", "parquet", "-o", "all"]);
    let inside = |folder: &str| names(&bench.path(folder));
    assert_eq!(inside("all"), ["login.parquet", "pass.parquet"]);
    let csv = bench.done(&["export", "out.bin", "--format", "csv", "--frame", "pass"]);
    assert_eq!(csv.lines().count(), 6);
    let by =
        ["export", "out.bin", "--format", "jsonl", "--partition-by", "host,frame", "-o", "hive"];
    bench.done(&by);
    assert_eq!(inside("hive"), ["host=ho%1Bst"]);
    assert_eq!(inside("hive/host=ho%1Bst"), ["frame=login", "frame=pass"]);
    let part = bench.path("hive/host=ho%1Bst/frame=pass/part-0.jsonl");
    assert_eq!(fs::read_to_string(part).unwrap().lines().count(), 5);
    let again = ["export", "out.bin", "--format", "parquet", "-o", "all", "--force"];
    assert!(bench.fails(&again).0.contains("all exists"));
    let unknown = ["export", "out.bin", "--format", "csv", "--partition-by", "hots", "-o", "x"];
    assert!(bench.fails(&unknown).0.contains("there is no column `hots`"));
    assert_eq!(bench.names(), ["all", "hive", "out.bin"]);
}

#[test]
fn text_of_a_target_meets_no_terminal() {
    let bench = Bench::new();
    for args in [
        vec!["sql", "out.bin", "SELECT host FROM frames", "--format", "table"],
        vec!["sql", "out.bin", "SELECT host FROM frames", "--format", "json"],
        vec!["stat", "out.bin", "--by", "host", "--format", "text"],
    ] {
        let text = bench.done(&args);
        assert!(!text.contains('\u{1b}') && text.contains("1b"), "{args:?}: {text}");
    }
}

/// A capture of a frame `it` with a field `said` of the given type and texts, on the given host.
fn texts(ty: &str, host: &str, texts: &[&[u8]]) -> Vec<u8> {
    let json = format!(
        r#"{{"v":1,"buffer":"b","slots":16,"stride":72,"frames":[{{"name":"it","kind":"plain",
        "size":72,"fields":[{{"name":"said",{ty},"offset":8}}]}}]}}"#
    );
    let id = texts.iter().fold(1u8, |id, text| text.iter().fold(id, |id, byte| id ^ byte));
    let header =
        FileHeader { capture_id: [id; 16], host: host.to_owned(), ..FileHeader::default() };
    let frames = (1u64..).zip(texts).flat_map(|(seq, text)| {
        let mut frame = seq.to_le_bytes().to_vec();
        frame.extend(*text);
        frame.resize(72, 0);
        frame
    });
    support::capture(&header, &support::schema(&json), &[(head(1, 1), frames.collect())])
}

/// Texts of up to 64 bytes.
const TEXT: &str = r#""type":"char","len":64"#;

#[test]
fn text_of_a_target_is_data_wherever_it_goes() {
    let bench = Bench::new();
    let hostile: [&[u8]; 7] = [
        b"=HYPERLINK(\"http://a\",\"b\")",
        b"@SUM(1)",
        b"+1+cmd|' /C calc'!A0",
        b"-2+3",
        b"</script><script>alert(1)</script>",
        b"\x1b]0;gone\x07\x1b[2J",
        b"\xff\xfe not UTF-8",
    ];
    let host = "=1+1<script>alert(2)</script>";
    bench.write("bad.bin", texts(TEXT, host, &hostile));
    let query = "SELECT said, host FROM it ORDER BY seqno";
    for args in [
        vec!["sql", "bad.bin", query, "--format", "csv", "--for-spreadsheet"],
        vec!["export", "bad.bin", "--format", "csv", "--for-spreadsheet"],
    ] {
        let csv = bench.done(&args);
        let lines = || csv.lines().skip(1);
        assert_eq!(lines().count(), hostile.len());
        // Spreadsheets take cells that begin like these as formulas, quoted or not.
        let cells =
            lines().flat_map(|line| line.split(',')).map(|text| text.trim_start_matches('"'));
        let formulas = cells
            .filter(|cell| cell.parse::<f64>().is_err() && cell.starts_with(['=', '+', '-', '@']));
        assert_eq!(formulas.collect::<Vec<_>>(), [""; 0], "{args:?}");
        assert_eq!(lines().filter(|line| line.contains("'=1+1<script>")).count(), hostile.len());
        assert!(csv.contains("\u{fffd}\u{fffd} not UTF-8"), "{csv}");
    }
    let markup = ["sql", "stat", "report", "plot", "plot"].map(|word| match word {
        "sql" => vec![word, "bad.bin", query, "--format", "md"],
        "stat" => vec![word, "bad.bin", "--by", "said", "--format", "text"],
        "report" => vec![word, "bad.bin"],
        _ => vec![
            word,
            "bad.bin",
            "SELECT said, count(*) AS n FROM it GROUP BY said",
            "--kind",
            "bars",
        ],
    });
    for args in markup {
        let text = bench.done(&args);
        let is_markup = args[0] != "stat";
        assert!(!(is_markup && text.contains("<script>alert")), "{args:?}: {text}");
        assert!(!text.contains('\u{1b}') && !text.contains('\u{7}'), "{args:?}: {text}");
    }
    for format in ["chrome", "jsonl"] {
        let text = bench.done(&["export", "bad.bin", "--format", format]);
        assert!(!text.contains('\u{1b}') && text.contains("HYPERLINK"), "{text}");
    }
}

#[test]
fn what_does_not_fit_is_said() {
    let bench = Bench::new();
    bench.write("old.bin", texts(TEXT, "host", &[b"one"]));
    bench.write("new.bin", texts(r#""type":"i32""#, "host", &[b"two"]));
    let (said, code) = bench.fails(&["stat", "old.bin", "new.bin"]);
    assert!(said.contains("`b.it` has a column `said` of two types: ") && code == 1, "{said}");
    assert!(said.contains("old.bin") && said.contains("new.bin"), "{said}");
    assert!(said.ends_with("  more: ppt explain captures-differ\n"), "{said}");

    let large = "SELECT array_agg(value) AS all FROM generate_series(1, 10000000)";
    let (said, code) = bench.fails(&["sql", "out.bin", large, "--memory", "1M"]);
    assert!(
        said.contains("ppt: out of memory: the question needs more than --memory 1M"),
        "{said}"
    );
    assert!(said.ends_with("  more: ppt explain query-memory\n") && code == 1, "{said}");
}

/// The section `## Questions to captures` explains exactly the messages that exist.
#[test]
fn every_message_is_explained() {
    let page = fs::read_to_string(root().join("docs/troubleshooting.md")).unwrap();
    let (_, rest) = page.split_once("\n## Questions to captures\n").unwrap();
    let ours: Vec<_> = rest.split("\n## ").next().unwrap().split("\n### ").skip(1).collect();
    // The codes of `error.rs`, `supervisor/end.rs`, `cmd/compare.rs` and
    // `cmd/graph.rs` in analysis/cli/src.
    let models = [
        "formula",
        "no-fit",
        "model-file",
        "no-prediction",
        "not-for-spreadsheets",
        "no-experiment",
        "no-retiming",
        "no-comparison",
        "gate",
        "gate-failed",
        "not-judged",
        "unknown-point",
        "idle-edge",
        "never-meets",
        "import-clock",
        "no-bounds",
        "capture-gone",
        "late-frames",
        "kernel-not-followed",
        "halves-let-go",
        "links-let-go",
        "question-killed",
        "text-too-long",
        "port-in-use",
    ];
    let codes: Vec<_> = ppt_query::QueryError::codes()
        .chain(ppt_report::ReportError::CODES)
        .chain(ppt_import::ImportError::CODES)
        .chain(ppt_delivery::DeliveryError::codes())
        .chain(models)
        .collect();
    for code in &codes {
        assert!(page.contains(&format!("\n### {code}\n")), "not explained: {code}");
    }
    for section in ours {
        let code = section.lines().next().unwrap();
        assert!(codes.contains(&code), "nothing says so: {code}");
    }
}

#[test]
fn reports_and_plots_are_written() {
    let bench = Bench::new();
    bench.done(&["report", "out.bin", "-o", "report.html"]);
    let page = fs::read_to_string(bench.path("report.html")).unwrap();
    assert!(page.starts_with("<!") && page.contains("pass"));
    let plot = bench.done(&["plot", "out.bin", "SELECT seqno FROM pass"]);
    assert!(plot.contains("<svg"), "{plot}");
}

#[test]
fn man_pages_render_without_warnings() {
    let bench = Bench::empty();
    bench.done(&["man", "."]);
    let names = bench.names();
    for word in [
        "compare", "export", "fit", "graph", "import", "lab", "model", "plot", "report", "sql",
        "stat", "sync", "view", "whatif", "why",
    ] {
        assert!(names.contains(&format!("ppt-{word}.1")), "{names:?}");
    }
    for page in names.iter().map(|name| bench.path(name)) {
        let roff = fs::read_to_string(&page).unwrap();
        assert!(roff.contains(".SH EXIT STATUS"), "{}", page.display());
        let has_3 = roff.contains(".B 3\nA gate cannot be judged");
        assert_eq!(has_3, page.ends_with("ppt-compare.1"), "{}", page.display());
        let groff =
            Command::new("groff").args(["-man", "-ww", "-Tutf8", "-Kutf8"]).arg(&page).output();
        let Ok(groff) = groff else { continue };
        assert_eq!(String::from_utf8_lossy(&groff.stderr), "", "{}", page.display());
        let text = String::from_utf8_lossy(&groff.stdout).into_owned();
        assert!(text.contains("General Commands Manual"), "{}", page.display());
    }
}

#[test]
fn a_page_counts_what_the_account_counts() {
    let bench = Bench::new();
    let sum = "SELECT sum(count) AS n FROM account WHERE cause = 'captured'";
    let account = bench.done(&["sql", "out.bin", sum]);
    let captured = account.lines().nth(1).unwrap();
    let page = bench.done(&["report", "out.bin"]);
    assert!(captured == "6" && page.contains(&format!("<body data-rows=\"{captured}\"")));
}
