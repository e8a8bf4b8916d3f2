//! The exporter is killed again and again while a program is captured.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};

use crate::ask::ask;
use crate::delivered::{check, manifest, pattern, rows};
use crate::support::{Bench, wait_for};

/// Numbers that look as if they were random, the same in each run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

/// Builds the program of `tests/numbers`, which writes two kinds of frames in three threads.
fn build(bench: &Bench, ppt: &Path) -> bool {
    if !ppt.exists() || Command::new("gcc").arg("--version").output().is_err() {
        eprintln!("skipped: ppt is not built beside ppt-analysis, or gcc is not installed");
        return false;
    }
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/numbers");
    for name in ["live.frame", "live_main.c"] {
        fs::copy(sources.join(name), bench.path(name)).unwrap();
    }
    let run = |program: &Path, args: &[&str]| {
        let done = Command::new(program).args(args).current_dir(bench.folder()).status().unwrap();
        assert!(done.success(), "{args:?}");
    };
    run(&ppt.with_file_name("pptc"), &["live.frame"]);
    run(Path::new("gcc"), &["-O1", "live_main.c", "live.c", "-o", "live", "-pthread"]);
    true
}

fn export(bench: &Bench, more: &[&str]) -> Command {
    let args = ["export", "out.bin", "--follow", "--format", "parquet", "-o", "ex"];
    let mut command = bench.with_tmp(&args);
    command.args(["--every", "50ms", "--bytes", "100K", "--threads", "1"]).args(more);
    command.process_group(0).stderr(Stdio::piped());
    command
}

fn group(child: &Child) -> Pid {
    Pid::from_child(child)
}

/// Frames of a kind in all captures, as `ppt dump` counts them.
fn dumped(bench: &Bench, ppt: &Path, frame: &str) -> u64 {
    let files = bench.names().into_iter().filter(|name| name.starts_with("out."));
    let count = |file: String| {
        let output = Command::new(ppt)
            .args(["dump", &file, "--frame", frame])
            .current_dir(bench.folder())
            .output()
            .unwrap();
        assert!(output.status.success(), "{file}: {}", String::from_utf8_lossy(&output.stderr));
        // Without the headings.
        output.stdout.iter().filter(|byte| **byte == b'\n').count() as u64 - 1
    };
    files.map(count).sum()
}

/// 100 kills with `PPT_LONG=1`.
#[test]
fn each_row_is_in_one_file_however_often_the_exporter_is_killed() {
    let bench = Bench::empty();
    let ppt: PathBuf = Path::new(env!("CARGO_BIN_EXE_ppt-analysis")).with_file_name("ppt");
    if !build(&bench, &ppt) {
        return;
    }
    let kills = if std::env::var_os("PPT_LONG").is_some() { 100 } else { 15 };
    let mut capturing = Command::new(&ppt)
        .args(["run", "-o", "out.bin", "--rotate", "1M", "--", "./live", "100000000", "40000"])
        .current_dir(bench.folder())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .unwrap();
    wait_for("the first file", || bench.path("out.000001.bin").exists().then_some(()));
    let mut numbers = Numbers(7);
    let (mut in_the_middle, mut further) = (0, 0);
    for _ in 0..kills {
        let mut child = export(&bench, &[]).spawn().unwrap();
        thread::sleep(Duration::from_millis(numbers.below(1200)));
        assert!(child.try_wait().unwrap().is_none(), "it ended by itself");
        let _ = kill_process_group(group(&child), Signal::KILL);
        child.wait().unwrap();
        check(&bench.path("ex"));
        let files = crate::delivered::files(&bench.path("ex")).len();
        further += usize::from(files > 0);
        let planned = bench.path("ex/_ppt-manifest.json").exists()
            && !manifest(&bench.path("ex"))["planned"].is_null();
        in_the_middle += usize::from(planned);
    }
    assert!(further > kills / 2, "hardly anything was written between kills");
    eprintln!("{kills} kills, {in_the_middle} of them while a range was written");
    // `ppt run` goes on while a child of the program lives.
    kill_process_group(group(&capturing), Signal::TERM).unwrap();
    capturing.wait().unwrap();
    let done = export(&bench, &[]).output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success() && said.contains(": complete\n"), "{said}");
    check(&bench.path("ex"));
    let manifest = manifest(&bench.path("ex"));
    assert_eq!((&manifest["state"], &manifest["missing"]), (&json!("complete"), &json!([])));
    assert!(manifest["captures"].as_array().unwrap().len() > 2, "it did not rotate");

    let kinds = [("live.job", "job"), ("live.request", "request")];
    let counted: BTreeMap<String, u64> = kinds
        .iter()
        .map(|(kind, frame)| ((*kind).to_owned(), dumped(&bench, &ppt, frame)))
        .collect();
    assert_eq!(rows(&bench.path("ex")), counted);
    for (kind, _) in kinds {
        let questions =
            json!(["SELECT count(*), count(DISTINCT (capture, segment, ring, seqno)) FROM t",]);
        if let Some(answers) = ask("duckdb", &pattern(&bench.path("ex"), kind), &questions) {
            let count = Value::from(counted[kind]);
            assert_eq!(answers[0][0], json!([count, count]), "{kind}");
        }
    }
    // Once more: there is nothing to do, and nothing changes.
    let before = fs::read(bench.path("ex/_ppt-manifest.json")).unwrap();
    assert!(export(&bench, &[]).output().unwrap().status.success());
    assert_eq!(fs::read(bench.path("ex/_ppt-manifest.json")).unwrap(), before);
}
