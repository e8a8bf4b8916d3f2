//! The exporter is killed again and again while a program is captured.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::ask::ask;
use crate::follow::delivered::{MANIFEST, check, manifest, pattern, rows};
use crate::follow::group::ProcessGroup;
use crate::follow::store::{ADDRESS, Store, reach};
use crate::support::{Bench, wait_for};

/// Numbers that look as if they were random, the same in each run.
pub struct Numbers(pub u64);

impl Numbers {
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

pub fn ppt() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_ppt"))
}

/// Builds a program and captures it in files that are no larger or longer than `rotate`, until a signal ends it. None: it cannot be built here.
pub fn capture(
    bench: &Bench,
    (folder, name): (&str, &str),
    args: &[&str],
    rotate: &str,
) -> Option<ProcessGroup> {
    let ppt = ppt();
    if !build(bench, &ppt, (folder, name)) {
        return None;
    }
    let mut command = Command::new(ppt);
    command.args(["run", "-o", "out.bin", "--rotate", rotate, "--"]);
    command.arg(format!("./{name}")).args(args).current_dir(bench.folder()).stderr(Stdio::null());
    // `ppt run` goes on while a child of the program lives.
    let child = ProcessGroup::spawn(&mut command);
    wait_for("the first file", || bench.path("out.000001.bin").exists().then_some(()));
    Some(child)
}

/// Builds the program `NAME_main.c` of a folder, which writes the frames of `NAME.frame`.
fn build(bench: &Bench, ppt: &Path, (folder, name): (&str, &str)) -> bool {
    if Command::new("gcc").arg("--version").output().is_err() {
        eprintln!("skipped: gcc is not installed");
        return false;
    }
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/answers").join(folder);
    let [frame, main, code] =
        ["NAME.frame", "NAME_main.c", "NAME.c"].map(|file| file.replace("NAME", name));
    for file in [&frame, &main] {
        fs::copy(sources.join(file), bench.path(file)).unwrap();
    }
    let run = |program: &Path, args: &[&str]| {
        let done = Command::new(program).args(args).current_dir(bench.folder()).status().unwrap();
        assert!(done.success(), "{args:?}");
    };
    run(&ppt.with_file_name("pptc"), &[&frame]);
    run(Path::new("gcc"), &["-O1", &main, &code, "-o", name, "-pthread"]);
    true
}

fn export(bench: &Bench, to: &str) -> Command {
    let args = ["export", "out.bin", "--follow", "--format", "parquet", "-o", to];
    let mut command = bench.with_tmp(&args);
    command.args(["--every", "50ms", "--bytes", "100K", "--threads", "1"]);
    command.stderr(Stdio::piped());
    command
}

/// The captures of the bench.
fn captures(bench: &Bench) -> impl Iterator<Item = String> {
    bench.names().into_iter().filter(|name| name.starts_with("out."))
}

/// Frames of all captures, as `ppt info` counts them.
pub fn captured(bench: &Bench) -> u64 {
    let count = |file: String| {
        let mut command = Command::new(ppt());
        command.args(["info", &file, "--json"]).current_dir(bench.folder());
        let output = command.output().unwrap();
        assert!(output.status.success(), "{file}: {}", String::from_utf8_lossy(&output.stderr));
        let info: Value = serde_json::from_slice(&output.stdout).unwrap();
        let buffers = info["buffers"].as_array().unwrap().iter();
        buffers.map(|buffer| buffer["frames"].as_u64().unwrap()).sum::<u64>()
    };
    captures(bench).map(count).sum()
}

/// Frames of a kind in all captures, as `ppt dump` counts them.
pub fn dumped(bench: &Bench, frame: &str) -> u64 {
    let count = |file: String| {
        let output = Command::new(ppt())
            .args(["dump", &file, "--frame", frame])
            .current_dir(bench.folder())
            .output()
            .unwrap();
        assert!(output.status.success(), "{file}: {}", String::from_utf8_lossy(&output.stderr));
        // Without the headings.
        output.stdout.iter().filter(|byte| **byte == b'\n').count() as u64 - 1
    };
    captures(bench).map(count).sum()
}

/// Readings of counters or histograms are those of the captures.
fn readings(bench: &Bench, folder: &Path, table: &str, delivered: u64) {
    let query =
        |from: &str| format!("SELECT count(*) AS a, CAST(sum(delta) AS BIGINT) AS b FROM {from}");
    let args = ["sql", "out.bin", &query(table), "--format", "jsonl"];
    let row: Value = serde_json::from_str(&bench.done(&args)).unwrap();
    assert!(delivered > 10 && row["a"] == delivered, "{table}: {delivered} {row}");
    if let Some(answers) = ask("duckdb", &pattern(folder, table), &json!([query("t")])) {
        assert_eq!(answers[0][0], json!([row["a"], row["b"]]), "{table}");
    }
}

pub fn kills() -> usize {
    if std::env::var_os("PPT_LONG").is_some() { 100 } else { 20 }
}

/// 100 kills with `PPT_LONG=1`.
#[test]
fn each_row_is_in_one_file_however_often_the_exporter_is_killed() {
    let bench = Bench::empty();
    let folder = bench.path("ex");
    survives(&bench, kills(), |bench| export(bench, "ex"), |_| folder.clone());
}

/// The same into an object store.
#[test]
fn each_row_is_in_one_object_however_often_the_exporter_is_killed() {
    let Some(mut store) = Store::start() else { return };
    let port = store.port;
    let export = |bench: &Bench| {
        let mut command = export(bench, ADDRESS);
        reach(&mut command, port);
        command
    };
    survives(&Bench::empty(), kills(), export, |bench| store.fetch(bench));
}

/// An exporter that is killed this often, and then not any more, has each row that was captured in one file.
/// `look` says where the files are by now.
fn survives(
    bench: &Bench,
    kills: usize,
    export: impl Fn(&Bench) -> Command,
    mut look: impl FnMut(&Bench) -> PathBuf,
) {
    let program = capture(bench, ("numbers", "live"), &["2000000", "40000"], "1M");
    let Some(mut capturing) = program else { return };
    let mut numbers = Numbers(7);
    let (mut in_the_middle, mut further, mut before) = (0, 0, 0);
    // How long an exporter takes for its first files here, at this load.
    let since = Instant::now();
    let mut first = ProcessGroup::spawn(&mut export(bench));
    first.until("files", || {
        let folder = look(bench);
        folder.exists() && !crate::follow::delivered::files(&folder).is_empty()
    });
    drop(first);
    let longest = (2 * since.elapsed().as_millis()).max(1200) as u64;
    for _ in 0..kills {
        let mut exporter = ProcessGroup::spawn(&mut export(bench));
        thread::sleep(Duration::from_millis(numbers.below(longest)));
        exporter.runs();
        drop(exporter);
        let folder = look(bench);
        if !folder.exists() {
            continue;
        }
        check(&folder);
        let count = crate::follow::delivered::files(&folder).len();
        further += usize::from(count > before);
        before = count;
        let planned = folder.join(MANIFEST).exists() && !manifest(&folder)["planned"].is_null();
        in_the_middle += usize::from(planned);
    }
    assert!(further > kills / 5, "hardly anything was written between kills");
    eprintln!("{kills} kills, {in_the_middle} of them while a range was written");
    capturing.signal(Signal::TERM);
    capturing.wait();
    let done = export(bench).output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success() && said.contains(": complete\n"), "{said}");
    let folder = look(bench);
    check(&folder);
    let whole = manifest(&folder);
    assert_eq!((&whole["state"], &whole["missing"]), (&json!("complete"), &json!([])));
    assert!(whole["captures"].as_array().unwrap().len() > 2, "it did not rotate");

    let kinds = [("live.job", "job"), ("live.request", "request")];
    let counted: BTreeMap<String, u64> =
        kinds.iter().map(|(kind, frame)| ((*kind).to_owned(), dumped(bench, frame))).collect();
    let mut delivered = rows(&folder);
    for table in ["counters", "histograms"] {
        readings(bench, &folder, table, delivered.remove(table).unwrap());
    }
    assert_eq!(delivered.remove("live.request_spans"), Some(100), "half of them have an end");
    assert_eq!(delivered, counted);
    assert_eq!(counted.values().sum::<u64>(), captured(bench));
    for (kind, _) in kinds {
        let questions =
            json!(["SELECT count(*), count(DISTINCT (capture, segment, ring, seqno)) FROM t",]);
        if let Some(answers) = ask("duckdb", &pattern(&folder, kind), &questions) {
            let count = Value::from(counted[kind]);
            assert_eq!(answers[0][0], json!([count, count]), "{kind}");
        }
    }
    // Once more: there is nothing to do, and nothing changes but who wrote the manifest.
    assert!(export(bench).output().unwrap().status.success());
    let mut again = manifest(&look(bench));
    for signed in ["exporter", "crc32c"] {
        if let Some(before) = whole.get(signed) {
            again[signed] = before.clone();
        }
    }
    assert_eq!(again, whole);
}
