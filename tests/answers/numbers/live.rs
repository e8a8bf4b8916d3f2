//! Captures of a real program, `live_main.c`: overrun rings, a forked child, kernel activity, and a
//! window of the flight recorder.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use ppt_capture::Capture;

use crate::numbers::made::MadeCapture;

/// Empty if there is no compiler.
pub fn all(ppt: &Path) -> &'static [MadeCapture] {
    static ALL: OnceLock<Vec<MadeCapture>> = OnceLock::new();
    ALL.get_or_init(|| capture_all(ppt))
}

fn capture_all(ppt: &Path) -> Vec<MadeCapture> {
    let folder = tempfile::tempdir().unwrap();
    if Command::new("gcc").arg("--version").output().is_err() {
        eprintln!("gcc is not installed: no real program is captured");
        return Vec::new();
    }
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/answers/numbers");
    for name in ["live.frame", "live_main.c"] {
        fs::copy(sources.join(name), folder.path().join(name)).unwrap();
    }
    let run = |program: &Path, args: &[&str]| {
        let mut command = Command::new(program);
        command.args(args).current_dir(folder.path()).stdin(Stdio::null());
        let output = command.output().unwrap();
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    };
    run(&ppt.with_file_name("pptc"), &["live.frame"]);
    run(Path::new("gcc"), &["-O1", "live_main.c", "live.c", "-o", "live", "-pthread"]);
    run(ppt, &["run", "-o", "overrun.bin", "--slots", "64", "--", "./live", "1000", "0"]);
    // Without permission, only the program's frames are captured.
    let kernel = ["--kernel", "sched,syscalls,faults", "--", "./live", "100", "100"];
    run(ppt, &[&["run", "-o", "watched.bin"], &kernel[..]].concat());
    let flight = ["--flight", "60s", "--before", "60s", "--after", "10ms", "--on", "n = 100"];
    run(ppt, &[&["run", "-o", "flight"], &flight[..], &["--", "./live", "150", "100"]].concat());
    let window =
        fs::read_dir(folder.path().join("flight")).unwrap().map(|file| file.unwrap().path());
    let window = window.filter(|path| path.extension().is_some_and(|extension| extension == "bin"));
    let path = |name: &str| folder.path().join(name);
    vec![
        read("overrun", vec![path("overrun.bin")]),
        read("watched", vec![path("watched.bin")]),
        read("flight", window.collect()),
    ]
}

fn read(name: &'static str, mut paths: Vec<PathBuf>) -> MadeCapture {
    paths.sort();
    assert!(!paths.is_empty(), "{name}");
    let mut schemas = Vec::new();
    for path in &paths {
        let mut capture = Capture::open(path).unwrap();
        while capture.read_heads().unwrap().is_some() {}
        schemas.extend(capture.sources().map(|source| source.schema.to_json()));
    }
    schemas.sort();
    schemas.dedup();
    let files = paths.iter().map(|path| fs::read(path).unwrap()).collect();
    MadeCapture { name, files, schemas, told: None, offset: None }
}
