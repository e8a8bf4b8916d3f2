//! `ppt view`: its output, its errors, and its end.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::ask::ask as oracle;
use crate::support::{Bench, root};

struct ViewProcess {
    child: Child,
    url: String,
    /// stderr up to the line that mentions how to end it.
    said: String,
}

fn shown(bench: &Bench, args: &[&str]) -> ViewProcess {
    shown_as(bench, &[&["view", "out.bin", "--no-open"], args].concat())
}

fn shown_as(bench: &Bench, args: &[&str]) -> ViewProcess {
    started(bench, bench.command(args))
}

fn started(bench: &Bench, mut command: Command) -> ViewProcess {
    for name in ["DISPLAY", "WAYLAND_DISPLAY"] {
        command.env_remove(name);
    }
    command.env("XDG_CACHE_HOME", bench.path("cache"));
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut url = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut url).unwrap();
    let mut said = String::new();
    let mut stderr = BufReader::new(child.stderr.as_mut().unwrap());
    while !said.contains("Ctrl-C ends it") {
        assert!(stderr.read_line(&mut said).unwrap() > 0, "{said}");
    }
    ViewProcess { child, url: url.trim().to_owned(), said }
}

fn address(url: &str) -> &str {
    url.strip_prefix("http://").unwrap().split('/').next().unwrap()
}

/// The head and the body of an answer.
fn answer(url: &str, method: &str, path: &str, body: &str) -> (String, Vec<u8>) {
    let address = address(url);
    let token = url.split_once("#token=").unwrap().1;
    let mut stream = TcpStream::connect(address).unwrap();
    let length = body.len();
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\n\
         content-length: {length}\r\nconnection: close\r\n\r\n{body}"
    )
    .unwrap();
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").unwrap() + 4;
    (String::from_utf8(bytes[..end].to_vec()).unwrap(), bytes[end..].to_vec())
}

/// The body of an answer.
fn ask(url: &str, path: &str) -> String {
    String::from_utf8(answer(url, "GET", path, "").1).unwrap()
}

/// A file that the page saves.
fn saved(bench: &Bench, url: &str, name: &str, asked: &Value) -> PathBuf {
    let (head, bytes) = answer(url, "POST", "/v1/export", &asked.to_string());
    assert!(head.starts_with("HTTP/1.1 200 "), "{asked}: {}", String::from_utf8_lossy(&bytes));
    assert!(head.contains("content-disposition: attachment; filename=\"selection."), "{head}");
    bench.write(name, bytes);
    bench.path(name)
}

/// The events of a trace, read with Perfetto's own messages; None if these are not installed.
fn events(trace: &Path) -> Option<Vec<Value>> {
    let python = root().join("target/oracles/bin/python");
    let there = Command::new(&python).args(["-c", "import perfetto"]).output();
    if !there.is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: perfetto is not installed (analysis/oracles/install says how)");
        return None;
    }
    let script = root().join("analysis/oracles/trace.py");
    let output = Command::new(python).arg(script).arg("perfetto").arg(trace).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    Some(text.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
}

#[test]
fn what_the_page_saves_is_what_began_then() {
    let bench = Bench::empty();
    imported(&bench, "out.bin", |_| 500_000);
    let mut shown = shown(&bench, &["--no-index"]);
    let of_jobs = "SELECT arrow_cast(ts, 'Int64') AS at, who FROM job ORDER BY at";
    let rows = bench.rows(of_jobs);
    let times: Vec<i64> = rows.iter().map(|row| row["at"].as_i64().unwrap()).collect();
    let middle = times[times.len() / 2];
    let (first, last) = (times[0], times[times.len() - 1]);
    assert!(first < middle && middle <= last);
    let mut parts = Vec::new();
    for (from, to) in [(first, last + 1), (first, middle), (middle, last + 1)] {
        let asked = |format: &str| {
            json!({
                "format": format, "from": from.to_string(), "to": to.to_string(), "table": "job",
            })
        };
        let within: Vec<i64> = rows
            .iter()
            .filter(|row| (from..to).contains(&row["at"].as_i64().unwrap()))
            .map(|row| row["who"].as_i64().unwrap())
            .collect();
        let table = saved(&bench, &shown.url, "saved.parquet", &asked("parquet"));
        if let Some(answers) = oracle("pyarrow", &table, &json!([["rows"], ["sum", "who"]])) {
            assert_eq!(Value::from(answers), json!([within.len(), within.iter().sum::<i64>()]));
        }
        let trace = saved(&bench, &shown.url, "saved.pftrace", &asked("perfetto"));
        let at = |ns: i64| format!("@{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000);
        bench.done(&[
            "export",
            "out.bin",
            "--format",
            "perfetto",
            "--frame",
            "job",
            "--from",
            &at(from),
            "--to",
            &at(to - 1),
            "--force",
            "-o",
            "exported.pftrace",
        ]);
        let Some(found) = events(&trace) else { continue };
        assert_eq!(found, events(&bench.path("exported.pftrace")).unwrap());
        let jobs = found.iter().filter(|event| event["args"].get("who").is_some());
        parts.push(jobs.count());
        assert_eq!(parts.last(), Some(&within.len()));
    }
    if let [all, before, behind] = parts[..] {
        assert_eq!(all, before + behind);
        assert_eq!(all, rows.len());
    }
    // Everything, without a name.
    let all = json!({ "format": "perfetto", "from": "0", "to": (last + 1).to_string() });
    saved(&bench, &shown.url, "all.pftrace", &all);
    bench.done(&[
        "export",
        "out.bin",
        "--format",
        "perfetto",
        "--to",
        &format!("@{}.{:09}", last / 1_000_000_000, last % 1_000_000_000),
        "-o",
        "all-exported.pftrace",
    ]);
    if let Some(found) = events(&bench.path("all.pftrace")) {
        assert_eq!(found, events(&bench.path("all-exported.pftrace")).unwrap());
    }
    let beside = bench.names();
    assert!(!beside.iter().any(|name| name.starts_with("selection")), "the server writes no file");
    shown.child.kill().unwrap();
    shown.child.wait().unwrap();
}

/// A capture of intervals with these lengths.
fn imported(bench: &Bench, name: &str, length: impl Fn(i64) -> i64) {
    let frames =
        "option time ns realtime;\nframe job { time at @at; i64 who; interval time run; }\n";
    bench.write("job.frame", frames);
    let mut table = "at,who,run_start,run_end\n".to_owned();
    for who in 0..301 {
        let at = 1_700_000_000_000_000_000 + who * 1_000_003_i64;
        table += &format!("{at},{who},{at},{}\n", at + length(who));
    }
    bench.write("job.csv", table);
    bench.run(&["import", "job.csv", "--schema", "job.frame", "-o", name]);
}

#[test]
fn two_sets_differ_as_compare_and_sql_say() {
    let bench = Bench::empty();
    imported(&bench, "out.bin", |who| 300_000 + who % 7 * 10_000);
    imported(&bench, "after.bin", |who| 360_000 + who % 11 * 10_000);
    let mut shown = shown(&bench, &["--no-index", "--", "after.bin"]);
    let body = |from: i64, to: i64| {
        let stretch = json!({ "from": from.to_string(), "to": to.to_string() });
        json!({ "first": stretch, "second": stretch }).to_string()
    };
    let compared = |body: &str| -> Value {
        let (head, bytes) = answer(&shown.url, "POST", "/v1/compare", body);
        assert!(head.starts_with("HTTP/1.1 200 "), "{}", String::from_utf8_lossy(&bytes));
        serde_json::from_slice(&bytes).unwrap()
    };
    let told = compared(&body(0, i64::MAX));
    let said = bench.json(&[
        "compare",
        "out.bin",
        "--field",
        "job.run",
        "--format",
        "json",
        "--",
        "after.bin",
    ]);
    let said = said[0]["changes"].as_array().unwrap();
    let changes = told["rows"][0]["changes"].as_array().unwrap();
    assert_eq!((told["rows"].as_array().unwrap().len(), changes.len(), said.len()), (1, 3, 3));
    for (change, said) in changes.iter().zip(said) {
        assert_eq!(change["statistic"], said["statistic"]);
        assert_eq!(change["values"], json!([said["first"], said["second"]]));
        assert_eq!(change["verdict"], said["verdict"], "{change} {said}");
    }
    assert_eq!(changes[0]["verdict"], "higher", "by more than chance: {}", changes[0]);
    // The commands that the page shows give the same totals, also for a part.
    let middle = 1_700_000_000_000_000_000 + 150 * 1_000_003;
    let told = compared(&body(middle, middle + 20 * 1_000_003));
    for ((command, side), file) in told["commands"]
        .as_array()
        .unwrap()
        .iter()
        .zip(["first", "second"])
        .zip(["out.bin", "after.bin"])
    {
        let words = command.as_str().unwrap().strip_prefix("ppt sql CAPTURE \"").unwrap();
        let sql = words.strip_suffix('"').unwrap();
        let line = bench.done(&["sql", file, sql, "--format", "jsonl"]);
        let row: Value = serde_json::from_str(line.trim()).unwrap();
        assert_eq!(row["count"].to_string(), told["rows"][0][side]["count"].as_str().unwrap());
        assert_eq!(row["count"], 20);
        assert_eq!(row["total"].to_string(), told["rows"][0][side]["total"].as_str().unwrap());
    }
    let about = ask(&shown.url, "/v1/second/about");
    assert!(about.contains("after.bin") && about.contains("\"sets\":2"), "{about:.300}");
    shown.child.kill().unwrap();
    shown.child.wait().unwrap();
    let (said, code) = bench.fails(&["view", "out.bin", "--no-open", "--", "none.bin"]);
    assert!(said.contains("none.bin") && code == 1, "{said}");
    // Without captures before it, `--` only separates names from options.
    std::fs::rename(bench.path("after.bin"), bench.path("-after.bin")).unwrap();
    let mut alone = shown_as(&bench, &["view", "--no-open", "--no-index", "--", "-after.bin"]);
    let about: Value = serde_json::from_str(&ask(&alone.url, "/v1/about")).unwrap();
    assert_eq!((&about["captures"][0]["path"], &about["sets"]), (&json!("-after.bin"), &json!(1)));
    alone.child.kill().unwrap();
    alone.child.wait().unwrap();
    let (said, code) = bench.fails(&["view", "--no-open"]);
    assert!(said.contains("required") && code == 2, "{said}");
}

#[test]
fn it_answers_until_a_signal_ends_it() {
    let bench = Bench::new();
    for signal in [Signal::INT, Signal::TERM] {
        let mut shown = shown(&bench, &[]);
        let address = address(&shown.url).to_owned();
        let port = address.strip_prefix("127.0.0.1:").unwrap();
        let hint = format!("ssh -L {port}:127.0.0.1:{port} THIS-HOST");
        assert!(shown.said.contains(&hint), "{}", shown.said);
        assert!(shown.said.contains("whoever knows the address sees the captures"));
        let about: Value = serde_json::from_str(&ask(&shown.url, "/v1/about")).unwrap();
        let rows = bench.rows("SELECT sum(count) AS n FROM account WHERE cause = 'captured'");
        assert_eq!(about["captures"][0]["captured"], rows[0]["n"].to_string());
        assert_eq!(about["command"], "ppt view out.bin --no-open");
        kill_process(Pid::from_child(&shown.child), signal).unwrap();
        assert_eq!(shown.child.wait().unwrap().code(), Some(0), "{signal:?}");
        assert!(TcpStream::connect(address).is_err());
    }
    // The index is in the folder for caches, and only its user can read it.
    use std::os::unix::fs::PermissionsExt;
    let cache = bench.path("cache/ppt/view");
    assert_eq!(std::fs::metadata(&cache).unwrap().permissions().mode() & 0o777, 0o700);
    assert_eq!(std::fs::read_dir(cache).unwrap().count(), 1);
}

#[test]
fn what_cannot_be_shown_is_refused() {
    let bench = Bench::new();
    let (said, code) = bench.fails(&["view", "none.bin"]);
    assert!(said.contains("none.bin"), "{said}");
    assert_eq!(code, 1);
    bench.write("text.bin", "text");
    let (said, code) = bench.fails(&["view", "text.bin"]);
    assert!(said.contains("text.bin") && code == 1, "{said}");
    let (said, code) = bench.fails(&["view", "out.bin", "--index", "x", "--no-index"]);
    assert!(said.contains("cannot be used with") && code == 2, "{said}");
    let mut first = shown(&bench, &["--no-index"]);
    let port = address(&first.url).rsplit(':').next().unwrap().to_owned();
    let (said, code) = bench.fails(&["view", "out.bin", "--no-index", "--port", &port]);
    let expected = format!("port {port} of 127.0.0.1 cannot be used: ");
    assert!(said.contains(&expected) && code == 1, "{said}");
    assert!(said.contains("leave --port out, and any free one is taken"), "{said}");
    first.child.kill().unwrap();
    first.child.wait().unwrap();
    assert!(!bench.path("cache").exists(), "--no-index keeps nothing");
}

/// A command whose folder `index` is a full file system, mounted with these options; None: there cannot be one, which
/// is said.
fn with_own_index(bench: &Bench, options: &str, args: &[&str]) -> Option<Command> {
    let may = Command::new("unshare").args(["-Urm", "true"]).output();
    if !may.is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: namespaces of a user of its own are not allowed here");
        return None;
    }
    let folder = bench.path("index");
    std::fs::create_dir_all(&folder).unwrap();
    let own = bench.command(args);
    let script = "mount -t tmpfs -o \"$1\" none \"$2\" || exit; \
                  cat /dev/zero 2>&- >\"$2/others\"; shift 2; exec \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["-Urm", "sh", "-c", script, "sh", options]).arg(folder);
    command.arg(own.get_program()).args(own.get_args());
    command.current_dir(own.get_current_dir().unwrap());
    for (name, value) in own.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    Some(command)
}

/// No room for the index, or a folder that is only read: the page works, and says so once.
#[test]
fn an_index_that_has_no_room_is_told_and_answers_stay() {
    let bench = Bench::empty();
    imported(&bench, "out.bin", |_| 500_000);
    let told = |about: &Value| -> Vec<String> {
        let troubles = about["troubles"].as_array().unwrap().iter();
        troubles.map(|text| text.as_str().unwrap().to_owned()).collect()
    };
    let about = |shown: &ViewProcess| -> Value {
        loop {
            let about: Value = serde_json::from_str(&ask(&shown.url, "/v1/about")).unwrap();
            if about["built"] == true {
                return about;
            }
        }
    };
    let args = ["view", "out.bin", "--no-open", "--index", "index"];
    let kept = shown_as(&bench, &args);
    let expected = about(&kept);
    assert_eq!(told(&expected), Vec::<String>::new());
    let index = std::fs::read_dir(bench.path("index")).unwrap().next().unwrap().unwrap();
    assert!(index.metadata().unwrap().len() > 0);
    let stop = |mut shown: ViewProcess| {
        shown.child.kill().unwrap();
        shown.child.wait().unwrap();
    };
    stop(kept);
    for (options, why) in [
        ("nr_inodes=1,mode=0700", "No space left on device"),
        ("size=4k,mode=0700", "No space left on device"),
        ("ro,mode=0700", "Read-only file system"),
    ] {
        let Some(command) = with_own_index(&bench, options, &args) else { return };
        let shown = started(&bench, command);
        let found = about(&shown);
        let troubles = told(&found);
        assert_eq!(troubles.len(), 1, "{options}: {troubles:?}");
        assert!(troubles[0].starts_with("the index is not kept, "), "{options}: {troubles:?}");
        assert!(troubles[0].contains(why), "{options}: {troubles:?}");
        assert_eq!((&found["rows"], &found["names"]), (&expected["rows"], &expected["names"]));
        stop(shown);
    }
}
