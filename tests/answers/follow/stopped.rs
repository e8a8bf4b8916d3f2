//! Ctrl-C, and what ends without an end.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;

use ppt_capture::EndReason;
use rustix::fs::{FlockOperation, flock};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::follow::delivered::{MANIFEST, check, manifest, rows};
use crate::follow::series::{EACH, EXPORT, SeriesFile, export_as};
use crate::support::{Bench, wait_for};

#[test]
fn ctrl_c_writes_what_is_whole_and_the_same_command_goes_on() {
    stops_and_goes_on("parquet", "b.it");
}

#[test]
fn ctrl_c_keeps_the_spans_that_wait_for_the_same_command() {
    stops_and_goes_on("otlp", "traces");
    stops_and_goes_on("otlp-json", "traces");
}

fn stops_and_goes_on(format: &str, table: &str) {
    let export = export_as(format);
    let bench = Bench::empty();
    let ended = SeriesFile { number: 1, chunks: 30, end: Some(EndReason::Stopped) }.bytes(0);
    let growing = SeriesFile { number: 1, chunks: 30, end: None }.bytes(0);
    // In the middle of a chunk.
    let (begun, rest) = growing.split_at(growing.len() - 100);
    assert!(ended.starts_with(&growing) && !rest.is_empty());
    bench.write("out.bin", begun);
    let writer = fs::OpenOptions::new().append(true).open(bench.path("out.bin")).unwrap();
    flock(&writer, FlockOperation::LockExclusive).unwrap();
    // Nothing is due for an hour.
    let mut command = bench.command(&[&export[..], &["--every", "1h"]].concat());
    let child = command.stderr(Stdio::piped()).spawn().unwrap();
    wait_for("the manifest", || bench.path("ex").join(MANIFEST).exists().then_some(()));
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.signal(), Some(2), "{said}");
    assert!(said.contains("stopped: all that is whole by now is exported"), "{said}");
    assert!(said.contains("the same command goes on"), "{said}");
    let stopped = manifest(&bench.path("ex"));
    assert_eq!(
        (&stopped["state"], &stopped["captures"][0]["frames"]),
        (&json!("running"), &json!(29 * EACH))
    );
    if format == "parquet" {
        assert_eq!(rows(&bench.path("ex"))[table], 29 * EACH);
    }

    drop(writer);
    bench.write("out.bin", &ended);
    bench.done(&export);
    check(&bench.path("ex"));
    assert_eq!(rows(&bench.path("ex"))[table], 30 * EACH);
    assert_eq!(manifest(&bench.path("ex"))["state"], "complete");
}

#[test]
fn a_capture_whose_writer_was_killed_is_exported_as_far_as_it_is_whole() {
    let bench = Bench::empty();
    let growing = SeriesFile { number: 1, chunks: 5, end: None }.bytes(0);
    bench.write("out.bin", &growing[..growing.len() - 100]);
    bench.done(&[&EXPORT[..], &["--bytes", "1K"]].concat());
    check(&bench.path("ex"));
    let manifest = manifest(&bench.path("ex"));
    assert_eq!(manifest["captures"][0]["state"], "cut");
    assert_eq!(manifest["captures"][0]["frames"].as_u64(), Some(4 * EACH));
    assert_eq!(manifest["files"].as_array().unwrap().len(), 4, "a file for each chunk");
}
