//! A target whose name and data contain characters that must not reach a terminal.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;

use serde_json::Value;

use crate::fixtures::support::{Account, Bench, Target, record, segments_of};

/// The program's file name.
const PROGRAM: &[u8] = b"e\x1b[31m\n\t\xff\xc2\x9b\xe2\x80\xae";
/// The same as shown by ppt; in /proc/PID/maps the kernel writes a line end as `\012`.
const OBJECT: &str = "DIR/e\\x1b[31m\\012\\t\u{fffd}\\xc2\\x9b\\xe2\\x80\\xae";
const EXE: &str = "DIR/e\\x1b[31m\\n\\t\u{fffd}\\xc2\\x9b\\xe2\\x80\\xae";
/// The name that hostile_main.c gives itself.
const COMM: &str = "\\x1b[1m\\n\\t\u{fffd}\\xc2\\x9b\\xe2\\x80\\xae";

/// `text` columns of its frames, in TSV.
const TSV: [&str; 8] = [
    r"esc \x1b[31m bell \x07",
    r"line\nfeed\x0d",
    r"tab\there",
    r"bad \xff\xc0\x80 utf",
    r"c1 \xc2\x9b del \x7f",
    r"bidi \xe2\x80\xae \xe2\x81\xa6",
    r#"quote " comma , back \\"#,
    r"cut \xe2\x80",
];
/// The same for JSON readers.
const JSON: [&str; 8] = [
    "esc \x1b[31m bell \x07",
    "line\nfeed\r",
    "tab\there",
    "bad \u{fffd}\u{fffd}\u{fffd} utf",
    "c1 \u{9b} del \x7f",
    "bidi \u{202e} \u{2066}",
    "quote \" comma , back \\",
    "cut \u{fffd}",
];
const RAW: &str = "1b0a09ffc29b0022";

/// Output as text, after a check for control characters: only line ends and `allowed`.
fn harmless(bench: &Bench, args: &[&str], allowed: &[char]) -> String {
    let output = bench.command(crate::fixtures::support::ppt()).args(args).output().unwrap();
    assert!(output.status.success(), "{args:?}: {output:?}");
    // A list of every process may include another user's process that is too large to be searched.
    let is_others = |text: &str| {
        [" was not searched completely", " not readable; "].iter().any(|said| text.contains(said))
            || text.starts_with("  more: ")
    };
    let said = String::from_utf8(output.stderr).expect("UTF-8");
    check(&said, allowed);
    assert!(said.lines().all(|it| args[0] == "list" && is_others(it)), "{args:?}: {said}");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    check(&text, allowed);
    plain(bench, &text)
}

#[track_caller]
fn check(text: &str, allowed: &[char]) {
    // The set of characters again, in another form than in the program.
    let obeyed = |c: char| {
        let directions = "\u{61c}\u{200e}\u{200f}\u{202a}\u{202b}\u{202c}\u{202d}\u{202e}";
        let hidden = "\u{200b}\u{200c}\u{200d}\u{2028}\u{2029}\u{feff}";
        let control = matches!(u32::from(c), 0..=0x1f | 0x7f..=0x9f | 0x2060..=0x2069);
        control || directions.contains(c) || hidden.contains(c)
    };
    let bad = |c: &char| obeyed(*c) && *c != '\n' && !allowed.contains(c);
    assert_eq!(text.chars().find(bad), None, "{text:?}");
}

fn plain(bench: &Bench, text: &str) -> String {
    text.replace(bench.path("").to_str().unwrap().trim_end_matches('/'), "DIR")
}

fn words(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn start(bench: &Bench) -> Target {
    bench.copy_all(&["hostile.frame", "hostile_main.c"]);
    bench.pptc(&["hostile.frame"]);
    for name in ["hostile.h", "hostile.c"] {
        let text = fs::read_to_string(bench.path(name)).unwrap();
        check(&text, &[]);
        // In a string it is an escape, in a comment a question mark.
        assert!(!text.contains('\u{202e}'), "{name}");
    }
    bench.cc(&["hostile_main.c", "hostile.c", "-o", "hostile", "-lpthread"]);
    let program = bench.path("").join(OsStr::from_bytes(PROGRAM));
    fs::rename(bench.path("hostile"), &program).unwrap();
    Target::start(bench.command(program))
}

fn check_list(bench: &Bench, pid: &str) {
    let list = harmless(bench, &["list", pid], &[]);
    let expected =
        ["BUFFER FRAMES STATE FOUND OBJECT", &format!("hostile word off symtab {OBJECT}")];
    assert_eq!(list.lines().map(words).collect::<Vec<_>>(), expected);

    let list: Value =
        serde_json::from_str(&harmless(bench, &["list", "--json", pid], &[])).unwrap();
    assert_eq!((&list[0]["program"], &list[0]["object"]), (&COMM.into(), &OBJECT.into()));
    assert_eq!(list[0]["threads"][0]["name"], COMM);
}

fn check_info(bench: &Bench, pid: &str) {
    let info = harmless(bench, &["info", "out.bin"], &[]);
    for line in [
        format!("target    pid {pid}, {COMM}, {EXE}"),
        format!("object    {OBJECT}"),
        r"tag       build = a\x1b[31m\x7f\xc2\x9b\xe2\x80\xaeb".into(),
        format!("thread    {pid}, \\x1b[1m\\n\\t\u{fffd}\\xc2\\x9b\\xe2\\x80\\xae"),
    ] {
        assert!(info.lines().any(|it| it == line), "{line} is not in:\n{info}");
    }
    let info: Value = serde_json::from_str(&harmless(bench, &["info", "--json", "out.bin"], &[]))
        .expect("valid JSON");
    assert_eq!((&info["target"]["comm"], &info["target"]["exe"]), (&COMM.into(), &EXE.into()));
    assert_eq!(info["buffers"][0]["object"], OBJECT);
    assert_eq!(info["threads"][0]["name"], "\x1b[1m\n\t\u{fffd}\u{9b}\u{202e}");
    assert_eq!(info["buffers"][0]["tags"]["build"], "a\x1b[31m\x7f\u{9b}\u{202e}b");
}

fn check_dump(bench: &Bench, pid: &str) {
    let dump = |format, allowed| harmless(bench, &["dump", "--format", format, "out.bin"], allowed);
    let mut tsv = String::from("seqno\tring\ttid\tn\ttext\traw\n");
    let mut csv = tsv.replace('\t', ",");
    for (n, text) in TSV.iter().enumerate() {
        let seqno = n + 1;
        tsv += &format!("{seqno}\t0\t{pid}\t{n}\t{text}\t{RAW}\n");
        let quoted = if text.contains(['"', ',']) {
            format!("\"{}\"", text.replace('"', "\"\""))
        } else {
            text.to_string()
        };
        csv += &format!("{seqno},0,{pid},{n},{quoted},{RAW}\n");
    }
    assert_eq!(dump("tsv", &['\t']), tsv);
    assert_eq!(dump("csv", &[]), csv);
    // No text begins like a formula, so nothing is guarded.
    let guarded = harmless(bench, &["dump", "--for-spreadsheet", "out.bin"], &[]);
    assert_eq!(guarded, csv);
    let wrong = ["dump", "--for-spreadsheet", "--format", "jsonl", "out.bin"];
    let output = bench.command(crate::fixtures::support::ppt()).args(wrong).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("--for-spreadsheet writes CSV"), "{said}");
    assert_eq!(output.status.code(), Some(2));
    let rows = dump("jsonl", &[]);
    let rows: Vec<Value> = rows.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let texts: Vec<_> = rows.iter().map(|row| row["text"].as_str().unwrap()).collect();
    assert_eq!(texts, JSON);
    assert!(rows.iter().all(|row| row["raw"] == RAW));
    let named = harmless(bench, &["dump", "--names", "out.bin"], &['\t']);
    let name = "\t\\x1b[1m\\n\\t\\xff\\xc2\\x9b\\xe2\\x80\\xae\t";
    assert!(named.lines().skip(1).all(|line| line.contains(name)), "{named}");
}

#[test]
fn rules_3_and_4_nothing_that_a_terminal_obeys_gets_out() {
    let bench = Bench::new();
    let mut target = start(&bench);
    let pid = target.pid().to_string();
    check_list(&bench, &pid);

    let attach = bench.attach(&target, &["-v"]);
    let agent = attach.pid();
    let all = harmless(&bench, &["list", "--json"], &[]);
    assert!(all.contains(&COMM.replace('\\', "\\\\")), "{all}");
    let written = target.run();
    let stderr = attach.stop();
    target.finish();
    check(&stderr, &[]);
    let expected = format!("hostile: found by symtab in {OBJECT}; made segment ");
    assert!(plain(&bench, &stderr).contains(&expected), "{stderr}");

    check_info(&bench, &pid);
    check_dump(&bench, &pid);
    let info = bench.info("out.bin");
    let account = Account::of(&info);
    account.check(written);
    assert_eq!(account.captured, written);
    record("35", "hostile text", written, account, &info, segments_of(&[agent]));
}

/// Characters of every kind that is not shown, and those that end comments and strings. Tabs and
/// line ends divide the text, as in a file.
const DOC: &str = "\u{1b}[31m\u{9b}\u{61c}\u{200b}\u{200f}\u{2028}\u{202e}\u{2069}\u{feff}\u{7f} \\ \" ' \"\"\" ??/ <b>";

#[test]
fn generated_code_and_its_messages_are_harmless() {
    let bench = Bench::new();
    let folder = "f\u{202e}\u{200b}\u{1b}[31m";
    fs::create_dir(bench.path(folder)).unwrap();
    let file = format!("{folder}/odd.frame");
    let frames = format!(
        "option tag build \"a\u{1b}\u{202e}\u{200b}b\";\n/// {DOC}\nenum Kind : u8 {{ A, B }}\n\
         /// {DOC}\nframe word {{\n    /// {DOC}\n    Kind k; u64 n; char text[8];\n}}\n\
         /// {DOC}\ncounter bytes;\n"
    );
    fs::write(bench.path(&file), frames).unwrap();
    let pptc = |args: &[&str]| {
        let output = bench.command(env!("CARGO_BIN_EXE_pptc")).args(args).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        check(&said, &[]);
        let text = String::from_utf8(output.stdout).unwrap();
        (output.status.success(), text, said)
    };
    let emitted = pptc(&["--emit", "c,cpp,rust,python", "-o", "out", &file]);
    assert!(emitted.0, "{}", emitted.2);
    let mut files = 0;
    for entry in fs::read_dir(bench.path("out")).unwrap() {
        let path = entry.unwrap().path();
        check(&fs::read_to_string(&path).unwrap(), &['\t']);
        files += 1;
    }
    assert!(files >= 5, "{files}");
    // The layout is for people; the schema and the canonical form are data.
    check(&pptc(&["--print", "layout", &file]).1, &[]);

    for bad in [
        format!("frame a {{ u32 {DOC}; }}\n"),
        format!("frame a {{ u32 a @unit(\"{DOC}); }}\n"),
        format!("{DOC}\n"),
        format!("/* {DOC}\n"),
        format!("frame a {{ u32 a; u32 a; /* {DOC} */ }}\n"),
    ] {
        let file = format!("{folder}/bad.frame");
        fs::write(bench.path(&file), bad).unwrap();
        let (is_done, _, said) = pptc(&[&file]);
        assert!(!is_done && !said.is_empty());
        let (is_done, _, said) = pptc(&["fmt", "--check", &file]);
        assert!(!is_done || said.is_empty(), "{said}");
    }
    let missing = format!("{folder}/missing.frame");
    for args in [&[&*missing][..], &["fmt", &missing], &[folder], &["--emit", DOC, &file]] {
        let (is_done, _, said) = pptc(args);
        assert!(!is_done && !said.is_empty(), "{args:?}");
    }
    let (_, listed, _) = pptc(&["fmt", "--check", &file]);
    check(&listed, &[]);
}

#[test]
fn messages_of_ppt_are_harmless() {
    let bench = Bench::new();
    let odd = "x\u{1b}[31m\u{61c}\u{200b}\u{2028}\u{202e}\u{2060}\u{feff}\u{9b}\u{7f}y";
    fs::write(bench.path("no.bin"), odd).unwrap();
    let own = std::process::id().to_string();
    for args in [
        vec!["dump", odd],
        vec!["info", odd],
        vec!["dump", "no.bin", "--where", odd],
        vec!["dump", "no.bin", "--from", odd],
        vec!["dump", "no.bin", "--format", odd],
        vec!["attach", "--name", odd],
        vec!["attach", &own, "-o", odd, "--only", odd],
        vec!["attach", &own, "--flight", odd],
        vec!["enable", "--name", odd, odd],
        vec!["trigger", "--name", odd],
        vec!["list", odd],
        vec!["explain", odd],
        vec!["run", "--", odd],
        vec![odd],
    ] {
        let ppt = crate::fixtures::support::ppt();
        let output = bench.command(ppt).args(&args).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && !stderr.is_empty(), "{args:?}: {stderr}");
        check(&stderr, &[]);
    }
}
