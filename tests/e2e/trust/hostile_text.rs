//! A target that calls itself, and writes, what no terminal should be shown.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;

use serde_json::Value;

use crate::fixtures::support::{Account, Bench, Target, record, segments_of};

/// The program's file name.
const PROGRAM: &[u8] = b"e\x1b[31m\n\t\xff\xc2\x9b\xe2\x80\xae";
/// The same as ppt shows it; in /proc/PID/maps the kernel writes a line end as `\012`.
const OBJECT: &str = "DIR/e\\u{1b}[31m\\012\\t\u{fffd}\\u{9b}\\u{202e}";
const EXE: &str = "DIR/e\\u{1b}[31m\\n\\t\u{fffd}\\u{9b}\\u{202e}";
/// What hostile_main.c calls itself.
const COMM: &str = "\\u{1b}[1m\\n\\t\u{fffd}\\u{9b}\\u{202e}";

/// `text` columns of its frames, as TSV has them.
const TSV: [&str; 8] = [
    r"esc \x1b[31m bell \x07",
    r"line\nfeed\x0d",
    r"tab\there",
    r"bad \xff\xc0\x80 utf",
    r"c1 \xc2\x9b del \x7f",
    "bidi \u{202e} \u{2066}",
    r#"quote " comma , back \\"#,
    r"cut \xe2\x80",
];
/// The same as JSON readers get them.
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

/// Output as text, after a look for what a terminal obeys: nothing but line ends and `allowed`.
fn harmless(bench: &Bench, args: &[&str], allowed: &[char]) -> String {
    let output = bench.command(crate::fixtures::support::ppt()).args(args).output().unwrap();
    assert!(output.status.success(), "{args:?}: {output:?}");
    // Who lists every process may meet one of somebody else's that is too large to be searched.
    let is_others = |it: &str| {
        [" was not searched completely", " not readable; "].iter().any(|said| it.contains(said))
            || it.starts_with("  more: ")
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
    let bad = |c: &char| c.is_control() && *c != '\n' && !allowed.contains(c);
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
    let expected = ["BUFFER FRAMES STATE FOUND OBJECT", &format!("hostile word off scan {OBJECT}")];
    assert_eq!(list.lines().map(words).collect::<Vec<_>>(), expected);

    let list: Value =
        serde_json::from_str(&harmless(bench, &["list", "--json", pid], &[])).unwrap();
    assert_eq!((&list[0]["program"], &list[0]["object"]), (&COMM.into(), &OBJECT.into()));
    assert_eq!(list[0]["threads"][0]["name"], COMM);
}

fn check_info(bench: &Bench, pid: &str) {
    let info = harmless(bench, &["info", "out.bin"], &[]);
    // What the agent escaped is text with backslashes.
    let (comm, exe) = (COMM.replace('\\', "\\\\"), EXE.replace('\\', "\\\\"));
    let object = OBJECT.replace('\\', "\\\\");
    for line in [
        format!("target    pid {pid}, {comm}, {exe}"),
        format!("object    {object}"),
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
        let quoted = match text.contains(['"', ',']) {
            true => format!("\"{}\"", text.replace('"', "\"\"")),
            false => text.to_string(),
        };
        csv += &format!("{seqno},0,{pid},{n},{quoted},{RAW}\n");
    }
    assert_eq!(dump("tsv", &['\t']), tsv);
    assert_eq!(dump("csv", &[]), csv);
    let rows = dump("jsonl", &[]);
    let rows: Vec<Value> = rows.lines().map(|it| serde_json::from_str(it).unwrap()).collect();
    let texts: Vec<_> = rows.iter().map(|row| row["text"].as_str().unwrap()).collect();
    assert_eq!(texts, JSON);
    assert!(rows.iter().all(|row| row["raw"] == RAW));
    let named = harmless(bench, &["dump", "--names", "out.bin"], &['\t']);
    let name = "\t\\x1b[1m\\n\\t\\xff\\xc2\\x9b\u{202e}\t";
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
    let said = attach.stop();
    target.finish();
    check(&said, &[]);
    let expected = format!("hostile: found by scan in {OBJECT}; made segment ");
    assert!(plain(&bench, &said).contains(&expected), "{said}");

    check_info(&bench, &pid);
    check_dump(&bench, &pid);
    let info = bench.info("out.bin");
    let account = Account::of(&info);
    account.check(written);
    assert_eq!(account.captured, written);
    record("35", "hostile text", written, account, &info, segments_of(&[agent]));
}
