//! Every input that a fuzzer found, or somebody thought of, once more: in every test run.

use std::path::Path;
use std::sync::{Mutex, PoisonError, mpsc};
use std::time::Duration;

use ppt_fuzz::{Bounded, FUZZERS, Fuzzer};

#[global_allocator]
static MEMORY: Bounded = Bounded;

/// More than any input takes on any machine: what takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(60);

/// One fuzzer at a time: memory is counted for the whole process.
static ALONE: Mutex<()> = Mutex::new(());

fn replay(name: &str) {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let fuzzer = Fuzzer::by_name(name).unwrap();
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(name);
    let mut inputs: Vec<_> =
        std::fs::read_dir(&corpus).unwrap().map(|result| result.unwrap().path()).collect();
    inputs.sort();
    assert!(!inputs.is_empty(), "{}", corpus.display());
    for path in inputs {
        let input = std::fs::read(&path).unwrap();
        let (done, wait) = mpsc::channel::<()>();
        // The message that names the input, whatever way it ends.
        let shown = path.display().to_string();
        let watch = std::thread::spawn(move || match wait.recv_timeout(PATIENCE) {
            Err(mpsc::RecvTimeoutError::Timeout) => {
                eprintln!("{shown}: hangs");
                std::process::abort();
            }
            _ => drop(shown),
        });
        eprintln!("{}", path.display());
        fuzzer.survive(&input);
        drop(done);
        watch.join().unwrap();
    }
}

#[test]
fn frame_files() {
    replay("frame-file");
}

#[test]
fn schemas() {
    replay("schema");
}

#[test]
fn view_indexes() {
    replay("view-index");
}

#[test]
fn symbols() {
    replay("symbols");
}

#[test]
fn predicates() {
    replay("predicate");
}

#[test]
fn texts_of_mappings() {
    replay("maps");
}

#[test]
fn programs() {
    replay("elf");
}

#[test]
fn descriptors() {
    replay("memory");
}

#[test]
fn captures() {
    replay("capture");
}

#[test]
fn segments() {
    replay("segment");
}

#[test]
fn readings_of_clocks() {
    replay("sync");
}

#[test]
fn packets() {
    replay("packet");
}

#[test]
fn requests_for_metrics() {
    replay("request");
}

#[test]
fn series_of_metrics() {
    replay("series");
}

#[test]
fn experiments() {
    replay("experiment");
}

/// No folder of inputs that nobody runs, no fuzzer without inputs.
#[test]
fn folders_are_fuzzers() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let folders = std::fs::read_dir(corpus).unwrap();
    let mut folders: Vec<_> =
        folders.map(|folder| folder.unwrap().file_name().into_string().unwrap()).collect();
    folders.sort();
    let mut names = FUZZERS.map(|fuzzer| fuzzer.name);
    names.sort_unstable();
    assert_eq!(folders, names);
}
