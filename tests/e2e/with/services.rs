//! A request through several unmodified services: each edge is right, and `ppt why` follows it to
//! the process that took the time.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::fixtures::preloaded::python;
use crate::fixtures::support::{Bench, available, ppt, root, rounds, text};

fn rows(bench: &Bench, sql: &str) -> Vec<Vec<i64>> {
    let ran = bench.ppt(&["sql", "out.bin", sql]);
    assert_eq!(ran.code(), 0, "{ran:?}");
    let cells = |line: &str| line.split('\t').map(|cell| cell.parse().unwrap()).collect();
    ran.stdout.lines().skip(1).map(cells).collect()
}

/// The numbers that each thread recorded, in order.
fn written(bench: &Bench, name: &str) -> HashMap<i64, Vec<i64>> {
    let mut threads: HashMap<i64, Vec<i64>> = HashMap::new();
    for line in fs::read_to_string(bench.path(name)).unwrap().lines() {
        let (thread, number) = line.split_once(' ').unwrap();
        threads.entry(thread.parse().unwrap()).or_default().push(number.parse().unwrap());
    }
    threads
}

/// Threads share connections at random. Client and server record the number of each request, which
/// ppt does not see; every edge must connect equal numbers.
#[test]
fn each_edge_leads_to_the_right_request() {
    let Some(python) = python() else { return };
    let bench = Bench::new();
    bench.copy("with/numbered.py");
    let count = rounds(4_000, 100_000);
    let number = count.to_string();
    let ran = bench.ppt(&["run", "--with", "net", "-q", "--", python, "numbered.py", &number]);
    assert_eq!((ran.code(), ran.stdout.trim()), (0, &*format!("asked {count}")), "{ran:?}");
    let (asked, answered) = (written(&bench, "asked.txt"), written(&bench, "answered.txt"));

    // The n-th point of a thread belongs to the n-th number that it recorded.
    let of_thread = |threads: &HashMap<i64, Vec<i64>>, point: &str| -> HashMap<(i64, i64), i64> {
        let sql = format!(
            "SELECT tid, seqno, row_number() OVER (PARTITION BY tid ORDER BY seqno) - 1 \
             FROM (SELECT DISTINCT tid, seqno FROM points WHERE point = '{point}') AS once"
        );
        let points = rows(&bench, &sql);
        assert_eq!(points.len(), count, "{point}");
        let number = |row: &Vec<i64>| threads[&row[0]][usize::try_from(row[2]).unwrap()];
        points.iter().map(|row| ((row[0], row[1]), number(row))).collect()
    };
    let client = |point| of_thread(&asked, point);
    let server = |point| of_thread(&answered, point);
    for (from, sources, to, targets) in [
        ("asked", client("asked"), "taken", server("taken")),
        ("answered", server("answered"), "got", client("got")),
    ] {
        let sql = format!(
            "SELECT src_tid, src_seqno, dst_tid, dst_seqno FROM edges \
             WHERE src_point = '{from}' AND dst_point = '{to}' AND certainty = 'certain'"
        );
        let edges = rows(&bench, &sql);
        assert_eq!(edges.len(), count, "{from} -> {to}");
        let wrong =
            edges.iter().find(|row| sources[&(row[0], row[1])] != targets[&(row[2], row[3])]);
        assert_eq!(wrong, None, "{from} -> {to}");
    }

    // The slice of each request and call is in the thread that began it, not in the one that wrote its frame.
    for (slice, point) in [("served.request", "taken"), ("called.call", "asked")] {
        let sql = format!(
            "SELECT count(*) FROM slices AS slice JOIN points AS point \
             ON slice.pid = point.pid AND slice.tid = point.tid AND slice.ts = point.ts \
             WHERE slice.name = '{slice}' AND point.point = '{point}'"
        );
        assert_eq!(rows(&bench, &sql), [[i64::try_from(count).unwrap()]], "{slice}");
    }
}

/// Debian's nginx, Python and PostgreSQL: every request is seen in each of them, and the slowest is
/// followed from the proxy to the database.
#[test]
fn a_slow_request_is_followed_to_the_database() {
    if !available("unshare") {
        return;
    }
    let bench = Bench::new();
    for name in ["services", "side_by_side.sh"] {
        let from = root().join("examples").join(name);
        let copied = Command::new("cp").arg("-r").args([&from, &bench.path(name)]).status();
        assert!(copied.unwrap().success());
    }
    // `ppt attach --all` finds only the processes of this namespace.
    let script =
        "mount -t tracefs nodev /sys/kernel/tracing; exec services/run --clients 2 --requests 100";
    let mut command = bench.command("unshare");
    command.args([
        "--mount",
        "--pid",
        "--fork",
        "--mount-proc",
        "--kill-child",
        "sh",
        "-c",
        script,
    ]);
    command.env("PPT", ppt()).env("PPTC", env!("CARGO_BIN_EXE_pptc"));
    let output = command.output().unwrap();
    let (said, trouble) = (text(&output.stdout), text(&output.stderr));
    if output.status.code() == Some(77) || trouble.contains("unshare failed") {
        eprintln!("skipped: {trouble}");
        return;
    }
    assert!(output.status.success(), "{said}{trouble}");
    assert!(said.contains("answered 200: "), "{said}");
    fs::rename(bench.path("services/work/out.bin"), bench.path("out.bin")).unwrap();

    // Each service handled each request. The database has not ended the last answer of each
    // connection yet.
    let served =
        rows(&bench, "SELECT port, count(*) FROM served GROUP BY port ORDER BY count(*) DESC");
    assert_eq!(served.len(), 3, "{said}");
    assert_eq!((served[0][1], served[1][1]), (200, 200));
    assert!((196..=200).contains(&served[2][1]), "{served:?}");
    let database = served[2][0];

    let why = ["why", "out.bin", "--frame", "served", "--slowest", "500", "--format", "json"];
    let ran = bench.ppt(&why);
    if ran.stderr.contains("no-kernel") {
        eprintln!("skipped: the kernel's frames cannot be had here");
        return;
    }
    assert_eq!(ran.code(), 0, "{ran:?}");
    let slow: Vec<Value> = serde_json::from_str(&ran.stdout).unwrap();
    let process = |call: &Value| call["answered_by"]["process_name"].as_str().map(str::to_owned);
    let proxied: Vec<_> = slow.iter().filter(|one| one["thread"] == "nginx").collect();
    assert_eq!(proxied.len(), 200);
    let mut complete = 0;
    let mut added = HashSet::new();
    for one in &proxied {
        if process(one).as_deref() != Some("python3") {
            continue;
        }
        let server = &one["answered_by"]["request"];
        // Concurrent requests have different lengths, and the proxy adds the same to each.
        let bytes =
            |of: &Value| -> i64 { of["request"]["bytes_in"].as_str().unwrap().parse().unwrap() };
        added.insert(bytes(server) - bytes(one));
        if process(server).as_deref() != Some("postgres") {
            continue;
        }
        complete += 1;
        let call = &server["answered_by"];
        assert_eq!(call["service"], format!(":{database}"));
        // A call lies within the request that made it, and the called request within the call.
        let within = |inner: &Value, outer: &Value| {
            let ends = |of: &Value| (of["ts"].as_i64().unwrap(), of["dur"].as_i64().unwrap());
            let ((from, dur), (outer_from, outer_dur)) = (ends(inner), ends(outer));
            from >= outer_from && from + dur <= outer_from + outer_dur
        };
        assert!(within(call, server) && within(&call["request"], call), "{one}");
        let parts = call["request"]["parts"].as_array().unwrap();
        let sum: i64 = parts.iter().map(|part| part["ns"].as_i64().unwrap()).sum();
        assert_eq!(sum, call["request"]["dur"].as_i64().unwrap(), "the parts add up");
    }
    assert_eq!(added.len(), 1, "each is followed to its own request: {added:?}");
    // A short call is not worth following.
    let slowest = proxied.iter().take(5);
    assert!(complete >= 5, "{complete} are followed to the database");
    for one in slowest {
        let sentence = one["sentence"].as_str().unwrap();
        assert!(sentence.contains("(postgres) answered its call, of :"), "{sentence}");
    }
    // The proxy waits for the server, and the summary names that service.
    let ran = bench.ppt(&["why", "out.bin", "--frame", "served", "--summary"]);
    assert_eq!(ran.code(), 0, "{ran:?}");
    let server = proxied.iter().map(|one| &one["answered_by"]["service"]);
    let server = server.filter_map(Value::as_str).next().unwrap();
    assert!(ran.stdout.contains(&format!("(called {server})")), "{server}: {}", ran.stdout);
}

/// The predicted and the recorded mean of a metric, ns.
fn means(bench: &Bench, speed: &str, metric: &str) -> (f64, f64) {
    let args = ["whatif", "out.bin", "--speed", speed, "--metric", metric, "--format", "json"];
    let ran = bench.ppt(&args);
    assert_eq!(ran.code(), 0, "{ran:?}");
    let answers: Value = serde_json::from_str(&ran.stdout).unwrap();
    let mean = |side: &str| answers[0][side]["mean"].as_f64().unwrap();
    (mean("predicted"), mean("was"))
}

/// A service has the name of its port, so that one of several can be made faster.
#[test]
fn a_faster_service_shortens_the_requests_in_front_of_it() {
    let Some(python) = python() else { return };
    let bench = Bench::new();
    bench.copy("with/tiers.py");
    let ran = bench.ppt(&["run", "--with", "net", "-q", "--", python, "tiers.py", "100"]);
    assert_eq!(ran.code(), 0, "{ran:?}");
    let (front, back) = ran.stdout.trim().split_once(' ').unwrap();
    let [front, back] = [front, back].map(|port| format!("served.request@{port}"));
    let (_, at_the_back) = means(&bench, &format!("{back}=2x"), &back);
    assert!(at_the_back >= 9e6, "{at_the_back}");
    // What the back service no longer takes is missing from the front one's requests.
    let (predicted, was) = means(&bench, &format!("{back}=2x"), &front);
    let less_behind = was - predicted;
    assert!(
        (less_behind / (at_the_back / 2.0) - 1.0).abs() < 0.05,
        "{less_behind} of {at_the_back}"
    );
    // The front service's own work is what remains.
    let (predicted, was) = means(&bench, &format!("{front}=2x"), &front);
    let (less, own) = (was - predicted, was - at_the_back);
    assert!(less > 0.45 * 3e6 && less < 0.55 * own, "{less} of {own}");
    // Without a port, all services are meant. On a busy machine, a good part of the time is in none.
    let (predicted, was) = means(&bench, "served.request=2x", &front);
    let both = less + less_behind;
    assert!(((was - predicted) / both - 1.0).abs() < 0.05, "{predicted} of {was}, {both} less");
    let ran = bench.ppt(&["whatif", "out.bin", "--speed", "served.request@1=2x"]);
    assert_eq!(ran.code(), 2, "{ran:?}");
    assert!(ran.stderr.contains(&front) && ran.stderr.contains(&back), "{}", ran.stderr);
}
