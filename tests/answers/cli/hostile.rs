//! A capture with hostile texts: no output for people contains them unescaped, and other programs read
//! back the captured texts.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::every;
use crate::support::Bench;

/// Control characters of terminals, directions, characters without width, and markup of every kind of
/// output.
const HOSTILE: &str = "=\u{1b}[31m\u{9b}\u{61c}\u{200b}\u{200f}\u{2028}\u{202e}\u{2060}\u{2069}\u{feff}\t\n\r\
    '\"\\x\\</title><script>alert(1)</script>|";
/// Bytes of the field that holds the text.
const LONGEST: usize = 96;

/// Characters that no output contains unescaped, defined independently of the program.
fn is_obeyed(char: char) -> bool {
    let code = u32::from(char);
    let ranges = [(0, 0x1f), (0x7f, 0x9f), (0x61c, 0x61c), (0x200b, 0x200f), (0x2028, 0x202e)];
    let more = [(0x2060, 0x2069), (0xfeff, 0xfeff)];
    ranges.iter().chain(&more).any(|&(first, last)| (first..=last).contains(&code))
}

#[track_caller]
fn harmless(what: &str, text: &str, kept: &[char]) {
    let found = text.find(|char| is_obeyed(char) && char != '\n' && !kept.contains(&char));
    if let Some(at) = found {
        let around: String = text[at..].chars().take(40).collect();
        panic!("{what}: {around:?}");
    }
}

fn bench() -> Bench {
    assert!(HOSTILE.len() <= LONGEST, "{}", HOSTILE.len());
    let bench = Bench::empty();
    bench.write("out.bin", every::write(HOSTILE).0);
    bench
}

/// Runs a command, checks that stdout and stderr are harmless, and returns stdout.
#[track_caller]
fn run(bench: &Bench, args: &[&str], kept: &[char]) -> String {
    let output = bench.run(args);
    let said = String::from_utf8(output.stderr).unwrap();
    harmless(&format!("{args:?} says"), &said, &[]);
    assert!(output.status.success(), "{args:?}: {said}");
    let text = String::from_utf8(output.stdout).unwrap();
    harmless(&format!("{args:?}"), &text, kept);
    text
}

const TEXTS: [(&str, &[char]); 6] =
    [("table", &[]), ("tsv", &['\t']), ("csv", &[]), ("jsonl", &[]), ("json", &[]), ("md", &[])];

#[test]
fn answers_are_harmless_in_every_format() {
    let bench = bench();
    let tables = "SELECT table_schema AS schema, table_name AS name FROM information_schema.tables";
    let tables = bench.rows(tables);
    assert!(tables.len() > 10, "{tables:?}");
    let mut shown = String::new();
    for table in tables {
        let [schema, name] = ["schema", "name"].map(|column| table[column].as_str().unwrap());
        let query = format!("SELECT * FROM \"{schema}\".\"{name}\" LIMIT 20");
        for (format, kept) in TEXTS {
            shown += &run(&bench, &["sql", "out.bin", &query, "--format", format], kept);
        }
    }
    assert!(shown.contains("alert(1)"), "the text is there");
    // A name of a column is text as well.
    let query = format!("SELECT 1 AS \"{}\"", HOSTILE.replace('"', "\"\""));
    for (format, kept) in TEXTS {
        run(&bench, &["sql", "out.bin", &query, "--format", format], kept);
    }
}

#[test]
fn commands_are_harmless() {
    let bench = bench();
    bench.write("other.bin", every::write("").0);
    for (format, kept) in TEXTS {
        let format = if format == "table" { "text" } else { format };
        for args in [
            vec!["stat", "out.bin"],
            vec!["stat", "out.bin", "--frame", "job", "--by", "note"],
            vec!["why", "out.bin", "--frame", "job", "--show", "note"],
            vec!["why", "out.bin", "--summary"],
            vec!["whatif", "out.bin", "--speed", "handle=2x"],
        ] {
            run(&bench, &[&args[..], &["--format", format]].concat(), kept);
        }
    }
    run(&bench, &["stat", "out.bin", "--frame", "job", "--hist", "handle"], &[]);
    let fit = "SELECT note, seqno AS x, 2 * seqno AS y FROM job";
    let plot = "SELECT note, count(*) AS n FROM job GROUP BY note";
    for args in [
        vec!["plot", "out.bin", plot, "--kind", "bars", "--title", HOSTILE],
        vec!["compare", "out.bin", "--baseline", "other.bin"],
        vec!["fit", "out.bin", fit, "y ~ x"],
    ] {
        let output = bench.run(&args);
        harmless(&format!("{args:?} says"), &String::from_utf8(output.stderr).unwrap(), &[]);
        let text = String::from_utf8(output.stdout).unwrap();
        harmless(&format!("{args:?}"), &text, &[]);
        assert!(!text.contains("<script"), "{args:?}: {text}");
    }
}

#[test]
fn pages_have_text_and_no_markup() {
    let bench = bench();
    let views = format!(
        "CREATE VIEW \"{0}\" AS SELECT note AS \"{0}\" FROM job",
        HOSTILE.replace('"', "\"\"")
    );
    bench.write("views.sql", views);
    let page = run(&bench, &["report", "out.bin", "--sql", "views.sql"], &[]);
    assert!(page.contains("&lt;script&gt;alert(1)"), "the text is there");
    assert_eq!(page.matches("<script").count(), 2, "the data, and the script");
    assert_eq!(page.matches("</script").count(), 2);
    assert_eq!(page.matches("</title").count(), page.matches("<title").count());
    // The script shows texts from the data.
    let data = page.split("id=data>").nth(1).unwrap().split("</script>").next().unwrap();
    each(&serde_json::from_str(data).unwrap(), &|text| harmless("the data", text, &[]));
    let plot = "SELECT note, count(*) AS n FROM job GROUP BY note";
    let svg = run(&bench, &["plot", "out.bin", plot, "--kind", "bars"], &[]);
    assert!(svg.contains("&lt;script&gt;") && !svg.contains("<script"), "{svg}");
    let query = "SELECT note FROM job LIMIT 1";
    let md = run(&bench, &["sql", "out.bin", query, "--format", "md"], &[]);
    assert!(md.contains("&lt;script>") && !md.contains("<script"), "{md}");
    assert_eq!(md.lines().count(), 3, "{md}");
}

fn each(value: &Value, check: &impl Fn(&str)) {
    match value {
        Value::String(text) => check(text),
        Value::Array(values) => values.iter().for_each(|value| each(value, check)),
        Value::Object(fields) => fields.iter().for_each(|(name, value)| {
            check(name);
            each(value, check);
        }),
        _ => {}
    }
}

#[test]
fn exports_are_harmless_where_people_open_them() {
    let bench = bench();
    for format in ["csv", "jsonl", "chrome", "otlp-json"] {
        let to = format!("all.{format}");
        run(&bench, &["export", "out.bin", "--format", format, "-o", &to], &[]);
        files(&bench.path(&to), &|path, text| harmless(&path.display().to_string(), text, &[]));
    }
    run(&bench, &["export", "out.bin", "--format", "ctf", "-o", "ctf"], &[]);
    let text = fs::read(bench.path("ctf").join("metadata")).unwrap();
    harmless("CTF", &String::from_utf8_lossy(&text), &['\t']);
    run(&bench, &["export", "out.bin", "--format", "otlp", "-o", "otlp"], &[]);
    let follow = ["export", "out.bin", "--follow", "--format", "parquet", "-o", "followed"];
    run(&bench, &follow, &[]);
    for folder in ["otlp", "followed"] {
        names(&bench.path(folder), &|name| harmless(&format!("{name:?}"), name, &[]));
    }
    let manifest = fs::read_to_string(bench.path("followed/_ppt-manifest.json")).unwrap();
    harmless("the manifest", &manifest, &[]);
    let by = ["export", "out.bin", "--format", "csv", "--partition-by", "host", "-o", "by-host"];
    run(&bench, &by, &[]);
    files(&bench.path("by-host"), &|path, text| {
        harmless(&format!("{path:?}"), path.to_str().unwrap(), &[]);
        harmless(&format!("{path:?}"), text, &[]);
    });
}

/// Checks all names in a folder.
fn names(folder: &Path, check: &impl Fn(&str)) {
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        check(entry.file_name().to_str().unwrap());
        if entry.path().is_dir() {
            names(&entry.path(), check);
        }
    }
}

fn files(path: &Path, check: &impl Fn(&Path, &str)) {
    if path.is_dir() {
        fs::read_dir(path).unwrap().for_each(|entry| files(&entry.unwrap().path(), check));
    } else {
        check(path, &fs::read_to_string(path).unwrap());
    }
}

#[test]
fn messages_are_harmless() {
    let bench = bench();
    // File names have no line ends here: they are escaped, but separate the words of a usage.
    let name = HOSTILE.replace('/', "_");
    let quoted = HOSTILE.replace('"', "\"\"");
    let unknown_table = format!("SELECT * FROM \"{quoted}\"");
    let unknown_column = format!("SELECT \"{quoted}\" FROM job");
    let no_sql = format!("SELECT {HOSTILE}");
    let cast = "SELECT CAST(note AS INT) FROM job";
    let filter = format!("note = '{}' AND x", HOSTILE.replace('\'', "''"));
    for args in [
        vec!["stat", &name],
        vec!["sql", "out.bin", &unknown_table],
        vec!["sql", "out.bin", &unknown_column],
        vec!["sql", "out.bin", &no_sql],
        vec!["sql", "out.bin", cast],
        vec!["stat", "out.bin", "--frame", HOSTILE],
        vec!["stat", "out.bin", "--field", HOSTILE],
        vec!["stat", "out.bin", "--by", HOSTILE],
        vec!["stat", "out.bin", "--where", HOSTILE],
        vec!["stat", "out.bin", "--where", &filter],
        vec!["stat", "out.bin", "-b", HOSTILE],
        vec!["stat", "out.bin", "--format", HOSTILE],
        vec!["stat", "out.bin", "--reference", HOSTILE],
        vec!["stat", "out.bin", HOSTILE],
        vec!["why", "out.bin", "--show", HOSTILE],
        vec!["whatif", "out.bin", "--speed", HOSTILE],
        vec!["graph", "out.bin", "--from", HOSTILE, "--to", HOSTILE],
        vec!["plot", "out.bin", &unknown_column],
        vec!["report", "out.bin", "--sql", &name],
        vec!["export", "out.bin", "--format", "csv", "--frame", HOSTILE],
        vec!["export", "out.bin", "--format", "csv", "--partition-by", HOSTILE, "-o", "x"],
        vec!["fit", "out.bin", "SELECT seqno AS x FROM job", HOSTILE],
        vec!["import", &name, "--schema", &name, "-o", "x.bin"],
        vec![HOSTILE],
    ] {
        let (said, code) = bench.fails(&args);
        harmless(&format!("{args:?}"), &said, &[]);
        assert!(code != 0 && !said.is_empty(), "{args:?}: {code} {said}");
    }
    bench.write(
        "bad.frame",
        format!("frame f {{ u32 a @unit(\"{0}; }}\n{0}", HOSTILE.replace('"', "'")),
    );
    bench.write("t.csv", "a\n1\n");
    let (said, _) = bench.fails(&["import", "t.csv", "--schema", "bad.frame", "-o", "x.bin"]);
    harmless("a frame file", &said, &[]);
}

/// Undoes the escapes of a cell.
fn unescaped(cell: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = cell.chars();
    while let Some(char) = rest.next() {
        match (char, char == '\\') {
            (_, true) => match rest.next().unwrap() {
                't' => bytes.push(b'\t'),
                'n' => bytes.push(b'\n'),
                '\\' => bytes.push(b'\\'),
                'x' => {
                    let digits: String = rest.by_ref().take(2).collect();
                    bytes.push(u8::from_str_radix(&digits, 16).unwrap());
                }
                other => panic!("{other} in {cell}"),
            },
            (char, _) => bytes.extend(char.to_string().bytes()),
        }
    }
    String::from_utf8(bytes).unwrap()
}

/// The cells of the second line of CSV.
fn csv_row(text: &str) -> Vec<String> {
    let mut reader = csv::ReaderBuilder::new().from_reader(text.as_bytes());
    let record = reader.records().next().unwrap().unwrap();
    record.iter().map(str::to_owned).collect()
}

#[test]
fn programs_get_the_data_back() {
    let bench = bench();
    let query = "SELECT note, host, '''=1' AS quoted, -7 AS number, '-7' AS text FROM job LIMIT 1";
    // The head of a capture has room for this part of the host's name.
    let host = format!("till{HOSTILE}");
    let host = &host
        [..host.char_indices().map(|found| found.0).take_while(|at| *at <= 64).last().unwrap()];
    let expected = [HOSTILE, host, "'=1", "-7", "-7"];
    let ask = |format: &[&str]| bench.done(&[&["sql", "out.bin", query], format].concat());
    let row: Value = serde_json::from_str(&ask(&["--format", "jsonl"])).unwrap();
    assert_eq!([&row["note"], &row["host"]], [&expected[0], &expected[1]].map(|text| *text));
    assert_eq!(row["number"], -7);
    let rows: Value = serde_json::from_str(&ask(&["--format", "json"])).unwrap();
    assert_eq!(rows[0], row);
    let tsv = ask(&["--format", "tsv"]);
    let cells: Vec<_> = tsv.lines().nth(1).unwrap().split('\t').map(unescaped).collect();
    assert_eq!(cells, expected);
    let cells: Vec<_> =
        csv_row(&ask(&["--format", "csv"])).iter().map(|text| unescaped(text)).collect();
    assert_eq!(cells, expected);

    // Formulas are escaped for spreadsheets, and the escape can be undone.
    for args in [&["--for-spreadsheet"][..], &["--for-spreadsheet", "--format", "csv"]] {
        let cells = csv_row(&ask(args));
        assert!(
            cells.iter().all(|cell| cell == "-7" || !cell.starts_with(['=', '-'])),
            "{cells:?}"
        );
        assert_eq!((&cells[2][..], &cells[3][..], &cells[4][..]), ("''=1", "-7", "'-7"));
        let undone: Vec<_> =
            cells.iter().map(|cell| unescaped(cell.strip_prefix('\'').unwrap_or(cell))).collect();
        assert_eq!(undone, expected);
    }
    let export = |more: &[&str]| {
        let args = ["export", "out.bin", "--format", "csv", "--frame", "job"];
        csv_row(&bench.done(&[&args, more].concat()))
    };
    let (plain, guarded) = (export(&[]), export(&["--for-spreadsheet"]));
    let hostile: Vec<_> = plain.iter().filter(|cell| cell.starts_with('=')).collect();
    assert_eq!(hostile.iter().map(|cell| unescaped(cell)).collect::<Vec<_>>(), [HOSTILE]);
    assert!(guarded.contains(&format!("'{}", hostile[0])), "{guarded:?}");
    let undone: Vec<_> =
        guarded.iter().map(|text| text.strip_prefix('\'').unwrap_or(text).to_owned()).collect();
    assert_eq!(undone, plain);

    // COPY to CSV escapes as well; Parquet has the original text.
    for (to, more) in [("a.csv", &[][..]), ("b.csv", &["--for-spreadsheet"]), ("c.parquet", &[])] {
        let copy = format!("COPY (SELECT note FROM job LIMIT 1) TO '{}'", bench.path(to).display());
        bench.done(&[&["sql", "out.bin", &copy], more].concat());
    }
    let copied = |name: &str| csv_row(&fs::read_to_string(bench.path(name)).unwrap()).remove(0);
    assert_eq!(unescaped(&copied("a.csv")), HOSTILE);
    assert_eq!(copied("b.csv"), format!("'{}", copied("a.csv")));
    let follow = ["export", "out.bin", "--follow", "--format", "parquet", "-o", "followed"];
    bench.done(&follow);
    let folders = fs::read_dir(bench.path("followed")).unwrap();
    let mut folders = folders.map(|entry| entry.unwrap().path());
    let job = folders.find(|path| path.to_str().unwrap().ends_with(".job")).unwrap();
    for from in [format!("{}", bench.path("c.parquet").display()), format!("{}/", job.display())] {
        let read = format!(
            "CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION '{from}'; \
             SELECT note FROM t LIMIT 1"
        );
        bench.write("read.sql", read);
        let row = bench.done(&["sql", "out.bin", "-f", "read.sql", "--format", "jsonl"]);
        assert_eq!(serde_json::from_str::<Value>(&row).unwrap()["note"], HOSTILE, "{from}");
    }

    bench.done(&["export", "out.bin", "--format", "otlp-json", "-o", "spans.jsonl"]);
    let lines = fs::read_to_string(bench.path("spans.jsonl")).unwrap();
    let texts = std::cell::RefCell::new(Vec::new());
    for line in lines.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        each(&line, &|text| texts.borrow_mut().push(text.to_owned()));
    }
    assert!(texts.borrow().iter().any(|text| text == HOSTILE), "{lines}");
    bench.done(&["export", "out.bin", "--format", "otlp", "-o", "otlp"]);
    let bytes = fs::read(bench.path("otlp/traces.pb")).unwrap();
    assert!(bytes.windows(HOSTILE.len()).any(|window| window == HOSTILE.as_bytes()));

    for args in [
        vec!["sql", "out.bin", query, "--for-spreadsheet", "--format", "tsv"],
        vec!["export", "out.bin", "--for-spreadsheet", "--format", "parquet", "-o", "x"],
    ] {
        let (said, code) = bench.fails(&args);
        assert!(said.contains("--for-spreadsheet writes CSV") && code == 2, "{args:?}: {said}");
    }
}
