//! The examples whose points are followed between programs: the paths agree with the programs' own
//! counts.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use crate::fixtures::support::{Bench, available, ppt, root, text};

const PPTC: &str = env!("CARGO_BIN_EXE_pptc");

fn done(output: Output) -> String {
    let said = text(&output.stdout) + &text(&output.stderr);
    assert!(output.status.success(), "{said}");
    text(&output.stdout)
}

/// An example that `make` builds.
fn built(example: &str) -> Bench {
    let bench = Bench::new();
    let files = fs::read_dir(root().join("examples").join(example)).unwrap().map(Result::unwrap);
    for file in files.filter(|file| file.file_type().unwrap().is_file()) {
        fs::copy(file.path(), bench.path(file.file_name().to_str().unwrap())).unwrap();
    }
    let mut make = bench.command("make");
    done(make.arg(format!("PPTC={PPTC}")).env_remove("MAKEFLAGS").output().unwrap());
    bench
}

/// A number that a program reports: `NAME NUMBER`.
fn counted(said: &str, name: &str) -> u64 {
    let found = said.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
    found.unwrap_or_else(|| panic!("{name}: {said}"))
}

fn rows(bench: &Bench, captures: &[&str], query: &str) -> Vec<Value> {
    let ran = bench.ppt(&[&["sql", "--format", "jsonl"], captures, &[query]].concat());
    assert_eq!(ran.code(), 0, "{}", ran.stderr);
    ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Stages of a path, sorted by name, and how often each was taken.
fn stages(bench: &Bench, captures: &[&str], from: &str, to: &str) -> BTreeMap<String, u64> {
    let ran =
        bench.ppt(&[&["graph", "--format", "json", "--from", from, "--to", to], captures].concat());
    assert_eq!(ran.code(), 0, "{}", ran.stderr);
    let ways: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((&ways["ambiguous"], &ways["no_route"]), (&0.into(), &Value::Null), "{ways}");
    let stages = ways["stages"].as_array().unwrap().iter();
    stages
        .map(|stage| (stage["stage"].as_str().unwrap().into(), stage["count"].as_u64().unwrap()))
        .collect()
}

#[test]
fn requests_are_followed_through_a_server_that_others_wrote() {
    if !available("patch") {
        return;
    }
    // Kept between runs, as cargo keeps what it built.
    let examples = Path::new(env!("CARGO_TARGET_TMPDIR")).join("examples-of-others");
    let example = examples.join("mini-redis");
    fs::create_dir_all(&example).unwrap();
    // With their times, so that unchanged files are not built again.
    let copy = |names: &str, to: &Path| {
        let command = format!(
            "cd '{}' && cp -p {names} '{}'",
            root().join("examples").display(),
            to.display()
        );
        done(Command::new("bash").args(["-c", &command]).output().unwrap());
    };
    copy("side_by_side.sh", &examples);
    copy("mini-redis/{build,build.rs,clients.rs,mini-redis.patch,request.frame,session}", &example);
    let mut build = Command::new("bash");
    build.arg(example.join("build")).arg("patched");
    build.envs([("PROFILE", "dev"), ("CARGO_PROFILE_DEV_DEBUG", "0"), ("CARGO_INCREMENTAL", "0")]);
    build.env("PPT_SOURCE", root()).env_remove("RUSTFLAGS");
    let built = build.output().unwrap();
    if built.status.code() == Some(77) {
        return eprintln!("{}", text(&built.stderr));
    }
    done(built);

    let bench = Bench::new();
    let mut run = bench.command(ppt());
    run.args(["run", "-o", "out.bin", "--", "bash"]).arg(example.join("session"));
    let said = done(run.args(["4", "1000"]).output().unwrap());
    let answered = counted(&said, "answered ");
    assert_eq!(answered, 1000);

    let found = stages(&bench, &["out.bin"], "asked", "answered");
    let expected = ["asked -> taken", "replied -> answered", "taken -> replied"];
    assert_eq!(found, expected.map(|it| (it.to_owned(), answered)).into());
    let sums = fs::read_to_string(root().join("examples/mini-redis/stages.sql")).unwrap();
    let sums = rows(&bench, &["out.bin"], &sums).remove(0);
    assert_eq!((&sums["requests"], &sums["furthest_apart"]), (&answered.into(), &0.into()));
    assert!(sums["ns"].as_u64() > Some(0) && sums["ns"] == sums["ns_of_stages"], "{sums}");
    // Server and clients are two processes, and the stage between is the server's only.
    let query = "SELECT src_point, count(DISTINCT src_pid) AS pids, \
                 count(*) FILTER (WHERE src_pid = dst_pid) AS inside FROM edges \
                 WHERE kind = 'hash' GROUP BY src_point ORDER BY src_point";
    let inside = rows(&bench, &["out.bin"], query);
    let inside: Vec<_> = inside
        .iter()
        .map(|value| (&value["src_point"], &value["pids"], &value["inside"]))
        .collect();
    let (one, none, all) = (1.into(), 0.into(), answered.into());
    let points = ["asked", "replied", "taken"].map(Value::from);
    assert_eq!(
        inside,
        [(&points[0], &one, &none), (&points[1], &one, &none), (&points[2], &one, &all)]
    );
}

/// A program, and a camera that records its screen.
#[test]
fn what_a_camera_saw_is_what_a_program_drew() {
    if !available("make") {
        return;
    }
    let bench = built("camera");
    let mut run = bench.command(ppt());
    run.args(["run", "-o", "scene.bin", "--", "./scene", "60"]);
    let said = done(run.output().unwrap());
    let [received, processed, samples] =
        ["received ", "processed ", "samples "].map(|text| counted(&said, text));
    assert_eq!(processed, 60);
    let import = |more: &[&str]| {
        let args = [
            "import",
            "samples.csv",
            "--schema",
            "camera.frame",
            "--column",
            "taken=Time",
            "--unit",
            "taken=s",
            "--column",
            "code=Code",
            "--column",
            "sample=Sample",
            "--force",
            "-o",
            "camera.bin",
        ];
        bench.ppt(&[&args, more].concat())
    };
    // Nothing is reported for a clock that was not compared with the program's.
    assert_eq!(import(&[]).code(), 0);
    let captures = ["scene.bin", "camera.bin"];
    let refused = bench.ppt(&["sql", "scene.bin", "camera.bin", "SELECT * FROM edges"]);
    assert!(
        refused.code() == 1 && refused.stderr.contains("clocks-not-comparable"),
        "{}",
        refused.stderr
    );
    let refused = import(&["--clock-of", "camera.bin"]);
    assert!(refused.code() == 1 && refused.stderr.contains("which boot"), "{}", refused.stderr);
    let imported = import(&["--clock-of", "scene.bin", "--clock-error", "600us"]);
    assert_eq!(imported.code(), 0, "{}", imported.stderr);

    let found = stages(&bench, &captures, "created", "seen");
    let expected = ["created -> received", "processed -> seen", "received -> processed"];
    assert_eq!(found, expected.map(|it| (it.to_owned(), samples)).into());
    let counts = "SELECT dst_point AS point, count(*) AS n FROM edges GROUP BY 1 ORDER BY 1";
    let counts = rows(&bench, &captures, counts);
    let counts: Vec<_> =
        counts.iter().map(|count| (count["point"].as_str(), count["n"].as_u64())).collect();
    let expected = [("processed", processed), ("received", received), ("seen", samples)];
    assert_eq!(counts, expected.map(|it| (Some(it.0), Some(it.1))));

    let query = "SELECT CAST(min(dst_ts) AS BIGINT) AS first, count(*) AS samples, min(latency) AS latency, \
                 min(latency_hi) - min(latency) AS off FROM paths('created', 'seen') \
                 GROUP BY src_segment, src_ring, src_seqno ORDER BY first";
    let found = rows(&bench, &captures, query);
    let truth = fs::read_to_string(bench.path("truth.csv")).unwrap();
    let truth: Vec<Vec<i64>> = truth
        .lines()
        .skip(1)
        .map(|line| line.split(',').map(|piece| piece.parse().unwrap()).collect())
        .collect();
    assert_eq!(found.len(), truth.len());
    for (found, truth) in found.iter().zip(&truth) {
        let [_, before, after, first, seen] = truth[..] else { panic!("{truth:?}") };
        let get = |name: &str| found[name].as_i64().unwrap();
        assert_eq!((get("first"), get("samples")), (first, seen));
        // The camera's clock is the expected one; the rest is the conversion of ticks to time.
        let off = get("off") - 600_000 + 50_000;
        assert!(off >= 50_000, "{found}");
        let within = first - after - off..=first - before + off;
        assert!(within.contains(&get("latency")), "{} in {within:?}", get("latency"));
    }
}

/// Three nodes, and how they are connected.
#[test]
fn each_copy_of_a_message_is_followed_through_every_topology() {
    if !available("make") {
        return;
    }
    let bench = built("topologies");
    for topology in ["mesh", "local", "remote"] {
        let mut run = bench.command(ppt());
        run.args(["run", "-o", "out.bin", "--force", "--", "./nodes", topology, "30"]);
        let said = done(run.output().unwrap());
        let [created, processed] = ["created ", "processed "].map(|text| counted(&said, text));
        assert_eq!((created, processed), (90, 180));

        // A node sends one copy to each other node, or one to the router, which forwards it to two.
        let is_mesh = topology == "mesh";
        let expected: &[_] =
            if is_mesh { &["sent -> received"] } else { &["sent -> routed", "routed -> received"] };
        let all = ["created -> sent", "received -> taken", "taken -> processed"];
        let all = all.iter().chain(expected).map(|text| ((*text).to_owned(), processed)).collect();
        assert_eq!(stages(&bench, &["out.bin"], "created", "processed"), all, "{topology}");
        let copies = "SELECT point, count(*) AS n FROM points WHERE point IN ('sent', 'routed') \
                      GROUP BY 1 ORDER BY 1 DESC";
        let copies = rows(&bench, &["out.bin"], copies);
        let copies: Vec<_> = copies.iter().map(|copy| copy["n"].as_u64().unwrap()).collect();
        assert_eq!(copies, if is_mesh { vec![180] } else { vec![90, 180] });

        let args =
            ["graph", "out.bin", "--from", "created", "--to", "processed", "--slowest", "1000"];
        let ran = bench.ppt(&[&args[..], &["--format", "json"]].concat());
        assert_eq!(ran.code(), 0, "{}", ran.stderr);
        let ways: Value = serde_json::from_str(&ran.stdout).unwrap();
        let ways = ways["slowest"].as_array().unwrap();
        assert_eq!(ways.len() as u64, processed);
        for way in ways {
            let hops = way["hops"].as_array().unwrap();
            let sum: i64 = hops.iter().map(|hop| hop["ns"].as_i64().unwrap()).sum();
            assert_eq!(sum, way["latency"].as_i64().unwrap(), "{way}");
            // The relay delays each message in both directions.
            let held = if topology == "remote" { 6_000_000 } else { 0 };
            assert!(sum > held, "{way}");
        }

        let query = fs::read_to_string(bench.path("metrics.sql")).unwrap();
        let metrics = rows(&bench, &["out.bin"], &query);
        let names = metrics
            .iter()
            .map(|metric| metric["metric"].as_str().unwrap().split(' ').next().unwrap());
        let expected = ["M4", "M4", "M4", "M4", "M4", "M5", "M5", "M5", "M5", "M8", "M11", "M12"];
        assert_eq!(names.collect::<Vec<_>>(), expected, "{metrics:?}");
        assert!(metrics.iter().all(|it| it["mean"].as_f64() > Some(0.0)), "{metrics:?}");
    }
}
