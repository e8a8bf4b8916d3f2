//! What the number of a descriptor means after it was closed, made, copied or passed in any way: programs that
//! count themselves, compared with their frames.

use std::collections::HashMap;

use crate::fixtures::preloaded::{Requests, counts, exchange, frames, nonzero, python, tally};
use crate::fixtures::support::{Bench, available, rounds};

/// Runs a program, whose children may be in the capture, too. Returns its output and its requests.
#[track_caller]
fn run(bench: &Bench, with: &str, program: &[&str]) -> (HashMap<String, u64>, Requests) {
    let options = ["run", "--force", "-q", "--slots", "262144", "--with", with, "--"];
    let ran = bench.ppt(&[&options, program].concat());
    assert_eq!(ran.code(), 0, "{ran:?}");
    (counts(&ran.stdout), Requests::of(bench, "out.bin"))
}

/// The numbers of requests, none of which was taken for something else.
#[track_caller]
fn check(requests: &Requests, served: usize, called: usize) {
    assert_eq!((requests.served.len(), requests.called.len()), (served, called));
    for name in ["open", "unanswered", "unasked", "contended", "undecided"] {
        assert_eq!(requests.counters[name], 0, "{name}");
    }
}

/// `descriptors_main`, with another seed each time: what it counted, and what is in the capture.
fn random(how: &str) -> (HashMap<String, u64>, Requests, HashMap<String, u64>) {
    let seed = std::env::var("PPT_SEQUENCE").unwrap_or_else(|_| std::process::id().to_string());
    let operations = rounds(100_000, 1_000_000).to_string();
    eprintln!("PPT_SEQUENCE={seed} repeats this");
    let bench = Bench::new();
    bench.copy("with/descriptors_main.c");
    bench.compile("gcc", &["-std=gnu11", "descriptors_main.c", "-o", "descriptors", "-lpthread"]);
    let program = ["./descriptors", &seed, &operations, how];
    let (mut said, requests) = run(&bench, "net,files", &program);
    let found = tally(&bench.table("out.bin", &["-b", "files", "--frame", "io"]), "call");
    let opened: u64 = said["OPEN"];
    assert_eq!(found["OPEN"], opened);
    said.retain(|_, count| *count > 0);
    (said, requests, found)
}

#[test]
fn at_random_are_counted_exactly() {
    let (said, requests, io) = random("plain");
    check(&requests, said["served"] as usize, said["called"] as usize);
    assert_eq!(requests.counters["undecided_io"], 0);
    let mut expected = nonzero(said);
    expected.retain(|name, _| name.chars().all(|c| c.is_ascii_uppercase()));
    assert_eq!(io, expected);
}

/// Whatever the program does without the C library, no more is wrong than what counts as undecided.
#[test]
fn at_random_and_without_the_c_library_are_wrong_by_no_more_than_is_said() {
    let (said, requests, io) = random("raw");
    let undecided = requests.counters["undecided"];
    for (name, found) in [("served", requests.served.len()), ("called", requests.called.len())] {
        let off = said[name].abs_diff(found as u64);
        assert!(off <= undecided, "{name}: {found}, said {}, undecided {undecided}", said[name]);
    }
    let off = said["READ"].abs_diff(io["READ"]) + said["WRITE"].abs_diff(io["WRITE"]);
    let undecided = requests.counters["undecided_io"];
    assert!(off <= undecided, "{io:?}, said {said:?}, undecided {undecided}");
}

/// std::ifstream closes by fclose(3).
#[test]
fn of_streams_in_cpp() {
    if !available("g++") {
        return;
    }
    let bench = Bench::new();
    bench.write(
        "stream.cpp",
        "#include <fstream>\n#include <string>\n#include <sys/eventfd.h>\n#include <unistd.h>\n\
         int main() {\n\
         \x20   { std::ifstream in(\"/proc/self/exe\"); std::string line; std::getline(in, line); }\n\
         \x20   int fd = eventfd(0, 0);\n\
         \x20   for (unsigned long i = 0, n = 1; i < 100; i++, n = 1)\n\
         \x20       if (write(fd, &n, 8) != 8 || read(fd, &n, 8) != 8) return 1;\n\
         }\n",
    );
    bench.compile("g++", &["stream.cpp", "-o", "stream"]);
    run(&bench, "net,files", &["./stream"]);
    let sizes = bench.table("out.bin", &["-b", "files", "--frame", "io"]).numbers("bytes");
    assert_eq!(sizes.iter().filter(|&&size| size == 8).count(), 0, "{sizes:?}");
    assert!(!sizes.is_empty(), "the stream reads");
}

/// Runs a case of `descriptors.py`.
#[track_caller]
fn in_python(case: &str, requests: usize) {
    let Some(python) = python() else { return };
    let bench = Bench::new();
    bench.copy("with/descriptors.py");
    let (_, found) = run(&bench, "net", &[python, "-I", "-S", "-B", "descriptors.py", case]);
    check(&found, requests, requests);
}

#[test]
fn that_come_from_another_process() {
    in_python("passed", 100);
}

#[test]
fn that_fcntl_copies() {
    in_python("copied", 100);
}

#[test]
fn whose_first_packet_has_bytes() {
    in_python("fast", 400);
}

#[test]
fn that_a_child_of_vfork_replaces() {
    let bench = exchange();
    let (said, requests) = run(&bench, "net", &["./exchange", "vfork", "100"]);
    requests.check(&said);
}

/// With Node's default scheduling, the first process accepts, and passes each connection on.
#[test]
fn of_a_cluster_in_node() {
    if !available("node") {
        return;
    }
    let bench = Bench::new();
    bench.copy("with/cluster.js");
    let (_, requests) = run(&bench, "net", &["node", "cluster.js"]);
    assert_eq!((requests.served.len(), requests.called.len()), (100, 100));
}

/// libuv closes by syscall(2).
#[test]
fn of_files_and_connections_in_node() {
    if !available("node") {
        return;
    }
    let bench = Bench::new();
    bench.write("data", &"x".repeat(20_000));
    bench.copy("with/reading.js");
    let (_, requests) = run(&bench, "net,files", &["node", "reading.js"]);
    check(&requests, 100, 100);
    let sizes = bench.table("out.bin", &["-b", "files", "--frame", "io"]).numbers("bytes");
    assert_eq!(sizes.iter().filter(|&&size| size == 20_000).count(), 100);
}

/// The program makes its segment by ftruncate(2), which is none of its operations.
#[test]
fn of_segments_are_nobodys() {
    let bench = Bench::new();
    bench.copy("with/filing_main.c");
    bench.cc(&["filing_main.c", "-o", "filing"]);
    let options = ["run", "--force", "-q", "--segment", "memfd", "--with", "files", "--"];
    let ran = bench.ppt(&[&options[..], &["./filing", "calls", "3"]].concat());
    assert_eq!(ran.code(), 0, "{ran:?}");
    let (io, _) = frames(&bench, "out.bin", "files", "io", "skipped"); // none is dropped
    let mut said = nonzero(counts(&ran.stdout));
    said.retain(|name, _| name.chars().all(|c| c.is_ascii_uppercase()));
    assert_eq!(tally(&io, "call"), said);
}
