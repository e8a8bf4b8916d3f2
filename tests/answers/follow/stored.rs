//! Exports into an object store: each row once, also if the exporter is killed, and for every
//! failure of the store.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use ppt_capture::EndReason;
use rustix::fs::{FlockOperation, flock};
use serde_json::{Value, json};

use crate::ask::ask;
use crate::follow::delivered::{check, manifest, pattern, rows};
use crate::follow::series::{EACH, SeriesFile, whole};
use crate::follow::store::{ADDRESS, Line, OtherStore, Store, is_built, reach};
use crate::support::{Bench, wait_for};

/// The command, without options of its own.
const EXPORT: [&str; 7] = ["export", "out.bin", "--follow", "--format", "parquet", "-o", ADDRESS];

fn export(bench: &Bench, port: u16, more: &[&str]) -> Command {
    let mut command = bench.command(&EXPORT);
    reach(&mut command, port).args(["--every", "50ms", "--bytes", "20K"]).args(more);
    command.stderr(Stdio::piped());
    command
}

#[track_caller]
fn fails(output: Output, code: &str, said: &str) -> String {
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains(said) && text.contains(&format!("ppt explain {code}")), "{text}");
    assert_eq!(output.status.code(), Some(1), "{text}");
    text
}

#[track_caller]
fn succeeds(output: Output) -> String {
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && text.contains(": complete\n"), "{text}");
    text
}

/// Each row of the chunks is there, once, as the manifest and as DuckDB count.
#[track_caller]
fn holds(bench: &Bench, store: &mut Store, chunks: u64) -> Value {
    let folder = store.fetch(bench);
    check(&folder);
    assert_eq!(rows(&folder)["b.it"], chunks * EACH);
    let questions = json!(["SELECT count(*), count(DISTINCT seqno), min(n), max(n) FROM t"]);
    if let Some(answers) = ask("duckdb", &pattern(&folder, "b.it"), &questions) {
        let count = chunks * EACH;
        assert_eq!(answers[0][0][0], count);
        assert_eq!(answers[0][0][1], count);
    }
    manifest(&folder)
}

/// A capture that grows, and is locked by its writer.
struct Growing {
    chunks: u64,
    file: fs::File,
    /// The bytes of the ended capture; this many are there.
    bytes: Vec<u8>,
    there: usize,
}

impl Growing {
    fn begin(bench: &Bench, chunks: u64) -> Growing {
        let part = |chunks, end| SeriesFile { number: 1, chunks, end }.bytes(0);
        let (bytes, there) = (part(chunks, Some(EndReason::Stopped)), part(chunks / 3, None).len());
        bench.write("out.bin", &bytes[..there]);
        let file = fs::OpenOptions::new().append(true).open(bench.path("out.bin")).unwrap();
        flock(&file, FlockOperation::LockExclusive).unwrap();
        Growing { chunks, file, bytes, there }
    }

    fn end(mut self) -> u64 {
        std::io::Write::write_all(&mut self.file, &self.bytes[self.there..]).unwrap();
        self.chunks
    }
}

/// Waits until an export has put something.
fn wait_for_objects(store: &mut Store, many: u64) {
    wait_for("objects", || {
        (store.order("count frames").parse::<u64>().unwrap() > many).then_some(())
    });
}

#[test]
fn a_store_that_is_away_for_seconds_is_waited_for() {
    let Some(mut store) = Store::start() else { return };
    let (bench, mut line) = (Bench::empty(), Line::to(store.port));
    let capture = Growing::begin(&bench, 60);
    let child = export(&bench, line.port, &[]).spawn().unwrap();
    wait_for_objects(&mut store, 3);
    line.cut();
    let chunks = capture.end();
    // Long enough to be worth a word: its length is what is tested.
    thread::sleep(Duration::from_secs(4));
    line.mend();
    let said = succeeds(child.wait_with_output().unwrap());
    assert_eq!(said.matches("takes no requests").count(), 1, "{said}");
    assert_eq!(said.matches("takes requests again").count(), 1, "{said}");
    assert!(said.contains("ppt explain store-away"), "{said}");
    assert_eq!(holds(&bench, &mut store, chunks)["state"], "complete");
    // Once more: there is nothing to do.
    succeeds(export(&bench, line.port, &[]).output().unwrap());
    holds(&bench, &mut store, chunks);
}

#[test]
fn a_store_that_stays_away_ends_the_export_and_the_next_one_goes_on() {
    let Some(mut store) = Store::start() else { return };
    let (bench, mut line) = (Bench::empty(), Line::to(store.port));
    let capture = Growing::begin(&bench, 30);
    let child = export(&bench, line.port, &["--outage", "1500ms"]).spawn().unwrap();
    wait_for_objects(&mut store, 3);
    line.cut();
    let chunks = capture.end();
    let said =
        fails(child.wait_with_output().unwrap(), "store-away", "has not taken requests for 1 s");
    assert!(said.contains("takes no requests, which are repeated for 1s 500ms"), "{said}");
    line.mend();
    succeeds(export(&bench, line.port, &[]).output().unwrap());
    holds(&bench, &mut store, chunks);
}

#[test]
fn a_store_behind_tls_is_trusted_by_its_certificate_alone() {
    let bench = whole(6);
    let file = bench.path("tls.pem");
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=store"])
        .args(["-addext", "subjectAltName=IP:127.0.0.1"])
        .args(["-addext", "basicConstraints=critical,CA:FALSE"])
        .args(["-keyout", file.to_str().unwrap(), "-out", file.to_str().unwrap()])
        .output();
    if !made.is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: there is no openssl");
        return;
    }
    let Some(mut store) = Store::with_tls(file.to_str().unwrap()) else { return };
    let address = format!("https://127.0.0.1:{}", store.port);
    let mut command = export(&bench, store.port, &["--outage", "300ms"]);
    let said = fails(command.env("AWS_ENDPOINT_URL", &address).output().unwrap(), "store-away", "");
    assert!(said.contains("certificate"), "{said}");
    let mut command = export(&bench, store.port, &[]);
    command.env("AWS_ENDPOINT_URL", &address).env("SSL_CERT_FILE", &file);
    succeeds(command.output().unwrap());
    holds(&bench, &mut store, 6);
}

#[test]
fn answers_that_get_lost_do_no_harm() {
    let Some(mut store) = Store::start() else { return };
    let (bench, line) = (whole(60), Line::to(store.port));
    line.lose_each(5);
    succeeds(export(&bench, line.port, &[]).output().unwrap());
    line.lose_each(0);
    assert!(holds(&bench, &mut store, 60)["files"].as_array().unwrap().len() > 15);
}

#[test]
fn spans_are_in_one_object_each_though_answers_get_lost() {
    let Some(mut store) = Store::start() else { return };
    let (bench, line) = (whole(6), Line::to(store.port));
    line.lose_each(5);
    let mut command = bench.command(&EXPORT.map(|it| if it == "parquet" { "otlp" } else { it }));
    reach(&mut command, line.port).args(["--bytes", "40K"]);
    succeeds(command.output().unwrap());
    line.lose_each(0);
    let folder = store.fetch(&bench);
    check(&folder);
    assert_eq!(rows(&folder)["traces"], 6 * EACH);
    if let Some(all) = crate::follow::otlp::read(&folder) {
        assert_eq!(all.len() as u64, 6 * EACH);
    }
}

#[test]
fn of_two_exporters_the_later_one_goes_on() {
    let Some(mut store) = Store::start() else { return };
    let bench = Bench::empty();
    let capture = Growing::begin(&bench, 60);
    let first = export(&bench, store.port, &[]).spawn().unwrap();
    wait_for_objects(&mut store, 3);
    let exporter = |store: &mut Store| manifest(&store.fetch(&bench))["exporter"].clone();
    let before = exporter(&mut store);
    let second = export(&bench, store.port, &[]).spawn().unwrap();
    // The first one has nothing to write before the capture grows.
    let mut is_second = || (exporter(&mut store) != before).then_some(());
    wait_for("the manifest of the second one", &mut is_second);
    let chunks = capture.end();
    let output = first.wait_with_output().unwrap();
    fails(output, "other-exporter", "another exporter has begun to write there");
    succeeds(second.wait_with_output().unwrap());
    holds(&bench, &mut store, chunks);
}

#[test]
fn what_the_store_refuses_is_said_at_once() {
    let Some(mut store) = Store::start() else { return };
    let bench = whole(3);
    let to = |address: &str, port: u16| {
        let mut command = bench.command(&[&EXPORT[..6], &[address]].concat());
        reach(&mut command, port).output().unwrap()
    };
    fails(to("s3://none/ex", store.port), "store-refused", "NoSuchBucket");
    // Other people's objects are there.
    store.order("put frames full/object");
    fails(to("s3://frames/full", store.port), "no-manifest", "has files (full/object)");
    let key = "<Error><Code>SignatureDoesNotMatch</Code><Message>\u{1b}[31mno</Message></Error>";
    let refusing = OtherStore::start(move |_| ("403 Forbidden", key));
    let said = fails(to(ADDRESS, refusing.port), "store-refused", "SignatureDoesNotMatch");
    assert!(!said.contains('\u{1b}'), "{said:?}");
    assert_eq!(bench.names(), ["out.bin"]);
}

/// A request may take minutes. Who asks to stop waits for it only so long.
#[test]
fn a_store_that_never_answers_ends_soon_after_a_signal() {
    if !is_built() {
        return;
    }
    let bench = whole(3);
    let (asked, requests) = std::sync::mpsc::channel();
    let store = OtherStore::start(move |_| {
        asked.send(()).unwrap();
        loop {
            thread::park();
        }
    });
    let child = export(&bench, store.port, &["--outage", "500ms"]).spawn().unwrap();
    requests.recv().unwrap();
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    fails(child.wait_with_output().unwrap(), "store-away", "it has not answered");
}

#[test]
fn an_endpoint_that_is_not_there() {
    if !is_built() {
        return;
    }
    let bench = whole(3);
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let output = export(&bench, port, &["--outage", "300ms"]).output().unwrap();
    fails(output, "store-away", "the object store has not taken requests for 0 s");
}

#[test]
fn a_store_without_conditions_is_refused_or_trusted() {
    if !is_built() {
        return;
    }
    let bench = whole(3);
    let none = "<Error><Code>NoSuchKey</Code></Error>";
    let empty = "<ListBucketResult></ListBucketResult>";
    let answer = |put: &'static str| {
        move |request: &str| match request {
            get if get.starts_with("GET") && get.contains("list-type") => ("200 OK", empty),
            get if get.starts_with("GET") => ("404 Not Found", none),
            _ => (put, ""),
        }
    };
    for put in ["200 OK", "501 Not Implemented"] {
        let store = OtherStore::start(answer(put));
        let output = export(&bench, store.port, &[]).output().unwrap();
        fails(output, "no-conditional-put", "so two exporters would not notice each other");
    }
    let Some(mut store) = Store::start() else { return };
    let mut command = export(&bench, store.port, &[]);
    let said = succeeds(command.env("AWS_CONDITIONAL_PUT", "disabled").output().unwrap());
    assert!(said.contains("make sure that only one exporter runs"), "{said}");
    holds(&bench, &mut store, 3);
}

#[test]
fn captures_of_others_and_options_of_others_do_not_disturb_an_exporter() {
    let Some(mut store) = Store::start() else { return };
    let bench = Bench::empty();
    let capture = Growing::begin(&bench, 30);
    let child = export(&bench, store.port, &[]).spawn().unwrap();
    wait_for_objects(&mut store, 3);
    bench.write("golden.bin", crate::support::golden());
    let mut other = bench.command(&[&["export", "golden.bin"], &EXPORT[2..]].concat());
    let output = reach(&mut other, store.port).output().unwrap();
    fails(output, "other-manifest", "the manifest is of other captures (out.bin ");
    let output = export(&bench, store.port, &["--time", "ns"]).output().unwrap();
    fails(output, "other-settings", "was begun with --format parquet --time both");
    let chunks = capture.end();
    succeeds(child.wait_with_output().unwrap());
    holds(&bench, &mut store, chunks);
}

#[test]
fn addresses_that_are_none_are_usage_errors() {
    let bench = whole(1);
    for (address, said) in [
        ("gs://b/p", "object stores that speak S3 alone"),
        ("s3:///p", "name a bucket"),
        ("s3://a@b/p", "name a bucket"),
    ] {
        let (text, code) = bench.fails(&[&EXPORT[..6], &[address]].concat());
        assert!(text.contains(said) && code == 2, "{address}: {code} {text}");
    }
    if !is_built() {
        let (text, code) = bench.fails(&EXPORT);
        assert!(
            text.contains("s3://frames/ex: this build of ppt has no client") && code == 2,
            "{text}"
        );
    }
    assert!(!Path::new(&bench.path("s3:")).exists());
}
