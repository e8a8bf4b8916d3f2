//! What goes wrong is said, by a code that `ppt explain` knows; captures stay as they are.

use std::fs;
use std::process::Command;

use ppt_capture::EndReason;
use serde_json::json;

use crate::follow::delivered::{MANIFEST, check, manifest, rows};
use crate::follow::series::{EACH, EXPORT, SeriesFile, export_as, whole};
use crate::support::{Bench, wait_for};

/// Says `code`, and exits with 1.
#[track_caller]
fn fails(bench: &Bench, args: &[&str], code: &str, said: &str) {
    let (text, exit) = bench.fails(args);
    assert!(text.contains(said) && text.contains(&format!("ppt explain {code}")), "{text}");
    assert_eq!(exit, 1, "{text}");
}

#[test]
fn a_folder_that_cannot_be_written() {
    let bench = whole(3);
    bench.write("file", "");
    let args = [&EXPORT[..6], &["file/ex"]].concat();
    fails(&bench, &args, "cannot-write", "cannot write file/ex: Not a directory");
    let args = [&EXPORT[..6], &["none/ex"]].concat();
    fails(&bench, &args, "cannot-write", "cannot write none/ex: No such file or directory");
}

#[test]
fn a_full_disk_is_said_and_the_same_command_goes_on() {
    goes_on_after_a_full_disk("parquet", 400);
}

/// Spans are larger than their frames, and these wait until the end.
#[test]
fn a_disk_that_is_full_of_spans_is_said_and_the_same_command_goes_on() {
    goes_on_after_a_full_disk("otlp", 60);
}

fn goes_on_after_a_full_disk(format: &str, chunks: u64) {
    let bench = whole(chunks);
    let capture = fs::read(bench.path("out.bin")).unwrap();
    fs::create_dir(bench.path("small")).unwrap();
    let script = "mount -t tmpfs -o size=800k none small && {
        \"$0\" \"$@\"; echo first $?
        mount -o remount,size=64m small && \"$0\" \"$@\"; echo second $?
        mkdir kept && cp -r small/ex kept
    }";
    let output = Command::new("unshare")
        .args(["-m", "sh", "-c", script, env!("CARGO_BIN_EXE_ppt")])
        .args(&export_as(format)[..6])
        .args(["small/ex", "--bytes", "200K"])
        .current_dir(bench.folder())
        .output();
    let Ok(output) = output else { return eprintln!("skipped: unshare is not installed") };
    let said = String::from_utf8(output.stderr).unwrap();
    if said.contains("unshare") || said.contains("mount:") {
        return eprintln!("skipped: only root mounts a file system: {said}");
    }
    assert!(
        said.contains("No space left on device") && said.contains("explain cannot-write"),
        "{said}"
    );
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "first 1\nsecond 0\n", "{said}");
    let folder = bench.path("kept/ex");
    check(&folder);
    assert_eq!(rows(&folder).into_values().sum::<u64>(), chunks * EACH);
    assert!(fs::read(bench.path("out.bin")).unwrap() == capture, "the capture is another one");
}

#[test]
fn a_manifest_that_was_cut_or_edited() {
    let bench = whole(3);
    bench.done(&EXPORT);
    let path = bench.path("ex").join(MANIFEST);
    let whole = fs::read_to_string(&path).unwrap();
    let rows = format!("\"rows\": {}", 3 * EACH);
    assert!(whole.contains(&rows));
    let edits =
        [whole[..whole.len() / 2].to_owned(), whole.replace(&rows, "\"rows\": 7"), String::new()];
    for text in edits {
        fs::write(&path, &text).unwrap();
        fails(&bench, &EXPORT, "bad-manifest", "the manifest is not as ppt wrote it");
        assert_eq!(fs::read_to_string(&path).unwrap(), text, "it was replaced");
    }
    fs::remove_file(&path).unwrap();
    fails(&bench, &EXPORT, "no-manifest", "no manifest that says what they hold");
}

#[test]
fn a_manifest_of_another_capture_or_of_other_options() {
    let bench = whole(3);
    bench.done(&EXPORT);
    let other = SeriesFile { number: 9, chunks: 2, end: Some(EndReason::Stopped) };
    bench.write("other.bin", other.bytes(0));
    let before = fs::read(bench.path("ex").join(MANIFEST)).unwrap();
    // Of file 9 of the same series, it may be: of a series of its own, it is not.
    let golden = crate::support::golden();
    bench.write("golden.bin", golden);
    let args = [&["export", "golden.bin"], &EXPORT[2..]].concat();
    fails(&bench, &args, "other-manifest", "the manifest is of other captures (out.bin ");
    let args = [&EXPORT[..], &["--time", "ns"]].concat();
    fails(&bench, &args, "other-settings", "was begun with --format parquet --time both");
    assert_eq!(fs::read(bench.path("ex").join(MANIFEST)).unwrap(), before);
}

#[test]
fn files_that_were_removed_before_they_were_read_are_counted() {
    let bench = Bench::empty();
    let rotated = Some(EndReason::Rotated);
    let first = SeriesFile { number: 1, chunks: 4, end: rotated };
    bench.write("out.000001.bin", first.bytes(0));
    // It waits for the next file for a while.
    bench.done(&EXPORT);
    assert_eq!(manifest(&bench.path("ex"))["captures"][0]["state"], "continued");
    fs::remove_file(bench.path("out.000001.bin")).unwrap();
    let fourth = SeriesFile { number: 4, chunks: 2, end: Some(EndReason::Stopped) };
    bench.write("out.000004.bin", fourth.bytes(4 + 5));
    let (said, code) = bench.fails(&EXPORT);
    assert!(said.contains("2,500 frames of the capture are in no file of the export"), "{said}");
    assert!(said.contains("files 2 to 3 of the series") && code == 1, "{said}");
    assert!(said.contains("explain capture-gone"), "{said}");
    let manifest = manifest(&bench.path("ex"));
    assert_eq!(manifest["missing"][0]["frames"], 5 * EACH);
    assert_eq!(rows(&bench.path("ex"))["b.it"], 6 * EACH);
    check(&bench.path("ex"));
}

#[test]
fn a_capture_that_was_truncated_under_it() {
    let bench = Bench::empty();
    let growing = SeriesFile { number: 1, chunks: 20, end: None };
    let bytes = growing.bytes(0);
    bench.write("out.bin", &bytes);
    // Somebody writes it.
    let writer = fs::OpenOptions::new().append(true).open(bench.path("out.bin")).unwrap();
    rustix::fs::flock(&writer, rustix::fs::FlockOperation::LockExclusive).unwrap();
    let mut command = bench.command(&[&EXPORT[..], &["--every", "50ms"]].concat());
    let child = command.stderr(std::process::Stdio::piped()).spawn().unwrap();
    let file = bench.path("ex").join(MANIFEST);
    wait_for("the first rows", || {
        let is_there = fs::read_to_string(&file).is_ok_and(|text| text.contains("\"rows\""));
        is_there.then_some(())
    });
    fs::OpenOptions::new().write(true).open(bench.path("out.bin")).unwrap().set_len(300).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("was truncated") && said.contains("explain capture-gone"), "{said}");
    let manifest = manifest(&bench.path("ex"));
    assert_eq!(manifest["captures"][0]["state"], "gone");
    assert_eq!(manifest["missing"][0]["frames"], json!(null));
    assert_eq!(rows(&bench.path("ex"))["b.it"], 20 * EACH);
}

#[test]
fn two_exporters_do_not_write_into_one_folder() {
    let bench = whole(3);
    fs::create_dir(bench.path("ex")).unwrap();
    let folder = fs::File::open(bench.path("ex")).unwrap();
    rustix::fs::flock(&folder, rustix::fs::FlockOperation::LockExclusive).unwrap();
    fails(&bench, &EXPORT, "output-in-use", "ex is being written by process ");
}

#[test]
fn a_manifest_that_is_a_pipe_is_not_waited_for() {
    let bench = whole(3);
    bench.done(&EXPORT);
    fs::remove_file(bench.path("ex").join(MANIFEST)).unwrap();
    let made = Command::new("mkfifo").arg(bench.path("ex").join(MANIFEST)).status();
    if !made.is_ok_and(|status| status.success()) {
        return eprintln!("skipped: mkfifo is not installed");
    }
    fails(&bench, &EXPORT, "cannot-read", "it is no regular file");
}

#[test]
fn what_the_kernel_did_is_not_followed() {
    let bench = Bench::empty();
    bench.write("out.bin", crate::every::write("").0);
    for table in ["thread_states", "syscalls", "faults"] {
        let args = [&EXPORT[..], &["--frame", table]].concat();
        let (text, code) = bench.fails(&args);
        let said = format!("--follow cannot write `{table}`");
        assert!(text.contains(&said) && text.contains("ppt explain kernel-not-followed"), "{text}");
        assert_eq!((code, bench.names()), (2, vec!["out.bin".to_owned()]));
    }
    let output = bench.command(&EXPORT).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("ex: the export has the kernel's frames, but neither"), "{said}");
    assert!(said.contains("ppt explain kernel-not-followed"), "{said}");
    // The frames are there, all of them.
    let delivered = rows(&bench.path("ex"));
    let of_kernel = delivered.iter().filter(|(kind, _)| kind.starts_with("kernel."));
    for (kind, count) in of_kernel.clone() {
        let table = kind.replace("kernel.", "");
        let counted = bench.rows(&format!("SELECT count(*) AS n FROM kernel.{table}"));
        assert_eq!(counted[0]["n"], json!(count), "{kind}");
    }
    assert!(of_kernel.count() > 2, "{delivered:?}");
    // Whoever asks for one kind of frames does not miss the others.
    let args = [&EXPORT[..6], &["one", "--frame", "request"]].concat();
    let output = bench.command(&args).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(!said.contains("kernel-not-followed"), "{said}");
}

#[test]
fn what_makes_no_sense_is_a_usage_error() {
    let bench = whole(1);
    for (args, said) in [
        (&[&EXPORT[..], &["--from", "1s"]].concat()[..], "cannot be used with"),
        (&["export", "out.bin", "--every", "1s", "--format", "parquet", "-o", "ex"], "--follow"),
        (
            &["export", "out.bin", "--follow", "--format", "csv", "-o", "ex"],
            "--follow writes --format",
        ),
        (&["export", "out.bin", "--follow", "--format", "parquet"], "name it with -o"),
        (&["export", "-", "--follow", "--format", "parquet", "-o", "ex"], "name it with -o"),
    ] {
        let (text, code) = bench.fails(args);
        assert!(text.contains(said) && code == 2, "{args:?}: {code} {text}");
        assert_eq!(bench.names(), ["out.bin"], "{args:?}");
    }
}
