//! Messages for wrong commands, and common spellings that are accepted.

use std::io::Write;
use std::process::Stdio;
use std::time::Duration;

use ppt_capture::{CaptureWriter, End, EndReason, FileHeader, FramesHead};

use crate::support::{self, Bench, head, schema};

#[test]
fn a_name_that_is_none_is_not_taken_for_another() {
    let bench = Bench::new();
    let (said, code) = bench.fails(&["sql", "out.bin", "SELECT end FROM pass"]);
    assert!(said.contains("there is no column `end` (a text needs quotes: 'end')"), "{said}");
    assert!(!said.contains("did you mean") && code == 2, "{said}");
    for args in [
        ["sql", "out.bin", "SELECT n FROM (SELECT seqno AS n, kind FROM pass) WHERE kind = SELECT"],
        ["sql", "out.bin", "SELECT seqno FROM pass WHERE kind = TIMEOUT"],
    ] {
        let (said, code) = bench.fails(&args);
        let word = args[2].rsplit(' ').next().unwrap();
        assert!(said.contains(&format!("(a text needs quotes: '{word}')")), "{said}");
        assert_eq!(code, 2);
    }
    // `login` has no field of that name, `pass` has one: that is not the error.
    let (said, code) = bench.fails(&["stat", "out.bin", "--where", "kind = TIMEOUT"]);
    let text = "there is no column `TIMEOUT` (a text needs quotes: 'TIMEOUT')";
    assert!(said.contains(text) && code == 2, "{said}");
}

#[test]
fn sql_takes_the_units_of_expressions() {
    let bench = Bench::new();
    let count = |query: &str| bench.done(&["sql", "out.bin", query]);
    let plain = count("SELECT count(*) AS c FROM pass WHERE spent > -15 AND bytes > 4096");
    assert_eq!(count("SELECT count(*) AS c FROM pass WHERE spent > -15ns AND bytes > 4KiB"), plain);
    assert_eq!(count("SELECT 50ms AS x, '50ms' AS y"), "x\ty\n50000000\t50ms\n");
    bench.write("all.sql", "CREATE VIEW v AS SELECT 2us AS x; SELECT x FROM v");
    assert_eq!(bench.done(&["sql", "out.bin", "-f", "all.sql"]), "x\n2000\n");
    bench.write("views.sql", "SELECT spent FROM pass WHERE spent < 1s");
    bench.done(&["report", "out.bin", "--sql", "views.sql", "-o", "all.html"]);
    let plot = bench.done(&["plot", "out.bin", "SELECT seqno FROM pass WHERE spent < 1s"]);
    assert!(plot.contains("<svg"));
}

/// A nested text: opening of a level, innermost part, closing of a level, and depth.
type Nest = (&'static str, &'static str, &'static str, usize);

#[test]
fn what_nests_too_deep_is_refused_at_once() {
    let bench = Bench::new();
    let nests: [Nest; 14] = [
        ("CASE WHEN 1 = 1 THEN ", "1", " END", 490),
        ("CASE WHEN 1 = 2 THEN 0 ELSE ", "1", " END", 490),
        ("(", "1", ")", 500),
        ("(", "1", ")", 100_000),
        ("NOT ", "true", "", 490),
        ("- ", "1", "", 100_000),
        ("INTERVAL ", "'1 day'", "", 100_000),
        ("abs(", "1", ")", 500),
        ("[", "1", "]", 490),
        ("CAST(", "1", " AS INT)", 500),
        ("(SELECT ", "1", ")", 500),
        // These took minutes, and this one for an error in it.
        ("(SELECT ", "1", ")", 20),
        ("EXISTS (SELECT 1 WHERE ", "true", ")", 20),
        ("CAST(", "1 1", " AS INT)", 24),
    ];
    let mut queries: Vec<String> = nests
        .iter()
        .map(|(opens, middle, closes, count)| {
            format!("SELECT {}{middle}{}", opens.repeat(*count), closes.repeat(*count))
        })
        .collect();
    let tables = |count: usize| "(SELECT * FROM ".repeat(count) + "captures" + &")".repeat(count);
    queries.push(format!("SELECT * FROM {}", tables(400)));
    let with = "WITH a AS (".repeat(40) + "SELECT 1" + &") SELECT * FROM a".repeat(40);
    queries.push(with);
    queries.push("EXPLAIN ".repeat(100_000) + "SELECT 1");
    let begun = std::time::Instant::now();
    for query in &queries {
        bench.write("deep.sql", query);
        for args in [
            vec!["sql", "out.bin", "-f", "deep.sql"],
            vec!["report", "out.bin", "--sql", "deep.sql", "-o", "deep.html"],
        ] {
            let (said, code) = bench.fails(&args);
            let shown = &query[..query.len().min(60)];
            assert!(said.contains(" stand in each other ") && code == 2, "{shown}: {code} {said}");
            assert!(said.contains("name the inner ones by WITH, or by CREATE VIEW"), "{said}");
            assert!(said.contains("ppt explain too-deep"), "{said}");
        }
    }
    // Each of them takes less than a second, and more on a busy machine.
    let each = begun.elapsed() / (2 * queries.len() as u32);
    assert!(each < Duration::from_secs(5), "{each:?}");
    for args in [["plot", "out.bin"], ["sql", "out.bin"]] {
        let (said, code) = bench.fails(&[args[0], args[1], &queries[2]]);
        assert!(said.contains("500 deep, and at most 40 are planned") && code == 2, "{said}");
    }
    for word in ["stat", "why"] {
        let filter = "NOT ".repeat(400) + "spent > 1";
        let (said, code) = bench.fails(&[word, "out.bin", "--frame", "pass", "--where", &filter]);
        assert!(said.contains("400 deep") || word == "why", "{said}");
        assert!((1..=2).contains(&code), "{word}: {code} {said}");
    }
    let many = "NOT ".repeat(2000) + "true";
    let (said, code) = bench.fails(&["sql", "out.bin", &format!("SELECT {many}")]);
    assert!(said.contains("2000 operators") && code == 2, "{said}");

    // Queries of realistic depth are answered.
    let ten = "(SELECT * FROM ".repeat(9) + "captures" + &")".repeat(9);
    bench.done(&["sql", "out.bin", &format!("SELECT count(*) AS n FROM {ten}")]);
    let deep = "CASE WHEN 1 = 2 THEN 0 ELSE (".repeat(20) + "7" + &") END".repeat(20);
    assert_eq!(bench.done(&["sql", "out.bin", &format!("SELECT {deep} AS n")]), "n\n7\n");
}

#[test]
fn mistakes_of_sql_are_told_in_plain_words() {
    let bench = Bench::new();
    let (said, code) = bench.fails(&["sql", "out.bin", "SELEC 1"]);
    let expected =
        "the SQL cannot be read: Expected: an SQL statement, found: SELEC at Line: 1, Column: 1";
    assert!(said.contains(expected) && said.contains("ppt explain bad-sql") && code == 1, "{said}");
    let (said, code) = bench.fails(&["sql", "out.bin", "SELECT 'a"]);
    assert!(
        said.contains("the SQL cannot be read: Unterminated string literal") && code == 1,
        "{said}"
    );
}

#[test]
fn tables_are_listed_without_a_terminal() {
    let bench = Bench::new();
    let listed = |text: &str| {
        let mut command = bench.command(&["sql", "out.bin"]);
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{text}");
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(listed("\\d").contains("\npass ("));
    let text = listed("SELECT 1\nAS x;\n\\d pass\nSELECT 2 AS y;\n\\q\nSELECT 3 AS z\n");
    assert!(text.starts_with("x\n1\n  capture ") && text.ends_with("\ny\n2\n"), "{text}");
    assert!(listed("\\d nothing").contains("there is no table nothing; \\d lists them"));
    let (said, code) = bench.fails(&["sql", "out.bin", "\\d pass", "--format", "parquet"]);
    assert!(said.contains("this format is for rows: \\d writes text") && code == 2, "{said}");
}

/// A capture of frames `it` whose field `n` has this type, with these bytes.
fn of_type(ty: &str, values: &[&[u8]], id: u8) -> Vec<u8> {
    let json = format!(
        r#"{{"v":1,"buffer":"b","slots":16,"stride":16,"frames":[{{"name":"it","kind":"plain",
        "size":16,"fields":[{{"name":"n","type":"{ty}","offset":8}}]}}]}}"#
    );
    let frames = (1u64..).zip(values).flat_map(|(seq, value)| {
        let mut frame = seq.to_le_bytes().to_vec();
        frame.extend(*value);
        frame.resize(16, 0);
        frame
    });
    let header = FileHeader { capture_id: [id; 16], ..FileHeader::default() };
    support::capture(&header, &schema(&json), &[(head(1, 1), frames.collect())])
}

#[test]
fn a_field_that_became_wider_is_one_column() {
    let bench = Bench::empty();
    let write = |name: &str, ty: &str, value: &[u8], id: u8| {
        bench.write(name, of_type(ty, &[value], id));
    };
    write("u32.bin", "u32", &u32::MAX.to_le_bytes(), 1);
    write("u64.bin", "u64", &u64::MAX.to_le_bytes(), 2);
    write("i8.bin", "i8", &[0xff], 3);
    write("u8.bin", "u8", &[0xff], 4);
    write("i64.bin", "i64", &i64::MIN.to_le_bytes(), 5);
    write("f32.bin", "f32", &1.5f32.to_le_bytes(), 6);
    write("f64.bin", "f64", &2.5f64.to_le_bytes(), 7);
    for (files, ty, values) in [
        (["u32.bin", "u64.bin"], "UInt64", "4294967295\n18446744073709551615"),
        (["u64.bin", "u32.bin"], "UInt64", "4294967295\n18446744073709551615"),
        (["i8.bin", "u8.bin"], "Int16", "-1\n255"),
        (["u32.bin", "i8.bin"], "Int64", "-1\n4294967295"),
        (["u32.bin", "i64.bin"], "Int64", "-9223372036854775808\n4294967295"),
        (["f32.bin", "f64.bin"], "Float64", "1.5\n2.5"),
    ] {
        let query = "SELECT arrow_typeof(n) AS t, n FROM it ORDER BY n";
        let text = bench.done(&["sql", files[0], files[1], query]);
        let cells: Vec<_> =
            text.lines().skip(1).map(|line| line.split_once('\t').unwrap()).collect();
        assert!(cells.iter().all(|cell| cell.0 == ty), "{files:?}: {text}");
        let numbers: Vec<_> = cells.iter().map(|cell| cell.1).collect();
        assert_eq!(numbers.join("\n"), values, "{files:?}");
        bench.done(&["stat", files[0], files[1]]);
    }
    let (said, code) = bench.fails(&["stat", "u64.bin", "i8.bin"]);
    assert!(said.contains("`b.it` has a column `n` of two types: ") && code == 1, "{said}");
}

/// A capture of two buffers: `torn` lacks its frame 2, and `whole` is complete.
fn of_two_buffers() -> Vec<u8> {
    let mut writer = CaptureWriter::create(Vec::new(), &FileHeader::default()).unwrap();
    for (number, (buffer, runs)) in
        [("torn", vec![(1, 1), (3, 1)]), ("whole", vec![(1, 3)])].into_iter().enumerate()
    {
        let json = format!(
            r#"{{"v":1,"buffer":"{buffer}","slots":16,"stride":16,"frames":[
            {{"name":"{buffer}","kind":"plain","size":16,"fields":[
            {{"name":"n","type":"u64","offset":8}}]}}]}}"#
        );
        let number = number as u16;
        writer.source(number, &support::source(&schema(&json))).unwrap();
        for (first_seq, count) in runs {
            let words = (first_seq..first_seq + u64::from(count)).flat_map(|seqno| [seqno, 7]);
            let bytes: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
            let (source, nonce, tid, stride) = (number, 7, 77, 16);
            let head = FramesHead {
                source,
                nonce,
                tid,
                stride,
                count,
                ..head(first_seq, first_seq * 100)
            };
            writer.frames(&head, &bytes).unwrap();
        }
    }
    writer.end(&End::new(EndReason::Stopped, 900, 900)).unwrap()
}

#[test]
fn a_loss_names_its_buffer() {
    let bench = Bench::empty();
    bench.write("out.bin", of_two_buffers());
    let said = |args: &[&str]| {
        let output = bench.run(&[&["stat", "out.bin"], args].concat());
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    let text = "ppt: 1 of 6 frames are missing in 1 gap: counts of buffer torn are lower bounds\n";
    assert_eq!(said(&[]), text);
    let text = "ppt: 1 of 3 frames are missing in 1 gap: counts are lower bounds\n";
    assert_eq!(said(&["-b", "torn"]), text);
    assert_eq!(said(&["-b", "whole"]), "");
}
