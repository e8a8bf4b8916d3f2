//! `ppt whatif --live`: a program that is slowed down, beside the same program that really is slower.

use std::path::Path;
use std::process::Stdio;

use serde_json::Value;

use crate::fixtures::explained::explained;
use crate::fixtures::support::{Attach, Bench, Target, ppt, wait_until};

fn built() -> Bench {
    let bench = Bench::new();
    bench.copy_all(&["requests.frame", "requests_main.c"]);
    bench.pptc(&["requests.frame"]);
    bench.cc(&["-O2", "requests_main.c", "requests.c", "-o", "requests", "-pthread"]);
    bench
}

/// Without it, nothing is slowed down.
fn can_ask() -> bool {
    let is_there = Path::new(ppt()).with_file_name("ppt-analysis").exists();
    if !is_there {
        eprintln!("ppt-analysis is not built beside ppt: skipped");
    }
    is_there
}

fn live(bench: &Bench, target: &Target, args: &[&str]) -> std::process::Command {
    let mut command = bench.command(ppt());
    command.args(["whatif", "--live", &target.pid().to_string(), "-o", "out.bin", "--force"]);
    command.args(args);
    command
}

fn asked(bench: &Bench, args: &[&str]) -> Result<Vec<Value>, String> {
    let ran = bench.ppt(&[&["whatif", "out.bin", "--format", "json"], args].concat());
    if ran.code() != 0 {
        return Err(ran.stderr);
    }
    Ok(serde_json::from_str(&ran.stdout).unwrap())
}

/// The mean of the requests of a program whose work takes so long, in ns.
fn really(bench: &Bench, work: &str) -> f64 {
    let target = bench.start("requests", &[work]);
    let pid = target.pid().to_string();
    let ran = bench.ppt(&["attach", &pid, "-o", "truth.bin", "--force", "-d", "2s", "-q"]);
    assert_eq!(ran.code(), 0, "{}", ran.stderr);
    target.finish();
    let query = "SELECT CAST(avg(dur) AS DOUBLE) AS mean FROM slices WHERE name = 'served.request'";
    let ran = bench.ppt(&["sql", "truth.bin", query, "--format", "tsv"]);
    assert_eq!(ran.code(), 0, "{}", ran.stderr);
    ran.stdout.lines().nth(1).unwrap().parse().unwrap()
}

#[test]
fn a_slowdown_is_worth_what_a_slower_program_is() {
    if !can_ask() {
        return;
    }
    let bench = built();
    let mut refused = String::new();
    // On a machine that changes by itself, the two baselines may differ, and it says so.
    for _ in 0..4 {
        let target = bench.start("requests", &["1000"]);
        let args = ["--speed", "work=0.8x,0.5x", "--wall", "work", "--metric", "request"];
        let command = live(&bench, &target, &[&args[..], &["--for", "24s"]].concat());
        let ran = Attach::spawn_into(command, Stdio::null());
        let _ = ran.stderr.rest();
        drop(ran);
        target.finish();
        let answers = match asked(&bench, &[]) {
            Ok(answers) => answers,
            Err(said) => {
                assert!(said.contains("baselines"), "{said}");
                refused = said;
                continue;
            }
        };
        assert_eq!(answers.len(), 2, "{answers:?}");
        for (answer, work) in answers.iter().zip(["1250", "2000"]) {
            assert_eq!((&answer["how"], &answer["metric"]), (&"slowed".into(), &"request".into()));
            let (predicted, truth) =
                (answer["predicted"]["mean"].as_f64().unwrap(), really(&bench, work));
            println!("{work} us: predicted {predicted}, really {truth}: {answer}");
            assert!((predicted / truth - 1.0).abs() < 0.10, "{work} us: {truth}: {answer}");
            assert!(
                answer["rounds"].as_u64().unwrap() >= 8 && answer["gain"].as_f64().unwrap() < 0.0
            );
        }
        // The interval itself is as much longer.
        if let Ok(work) = asked(&bench, &["--metric", "part.work", "--speed", "work=0.5x"]) {
            let median = |of: &str| work[0][of]["p50"].as_f64().unwrap();
            let longer = median("predicted") / median("was");
            assert!((longer / 2.0 - 1.0).abs() < 0.05, "{longer}: {work:?}");
        }
        return;
    }
    panic!("refused each time: {refused}");
}

/// How long the work takes now, in us.
fn takes(target: &mut Target) -> u64 {
    target.say("?");
    target.stdout.wait_for("took ").parse().unwrap()
}

#[test]
fn a_killed_ppt_slows_nothing_down() {
    if !can_ask() {
        return;
    }
    let bench = built();
    for how in [&[][..], &["--wall", "work"]] {
        let mut target = bench.start("requests", &["2000"]);
        let args = ["--speed", "work=0.1x", "--for", "60s", "--round", "2s"];
        let ran = Attach::start(live(&bench, &target, &[&args[..], how].concat()));
        wait_until("a round slows the work down", || takes(&mut target) > 15_000);
        ran.kill();
        wait_until("it is as it was", || takes(&mut target) < 6_000);
        // The next session finds everything as usual.
        let pid = target.pid().to_string();
        let ran = bench.ppt(&["attach", &pid, "-o", "next.bin", "--force", "-d", "500ms"]);
        assert_eq!(ran.code(), 0, "{}", ran.stderr);
        let info = bench.ppt(&["dump", "next.bin", "--frame", "part"]);
        assert!(info.stdout.lines().count() > 10, "{}", info.stdout);
        target.finish();
    }
}

#[test]
fn what_cannot_be_had_is_refused() {
    if !can_ask() {
        return;
    }
    let bench = built();
    let target = bench.start("requests", &["1000"]);
    let refused = |args: &[&str]| {
        let output = live(&bench, &target, args).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        (output.status.code(), explained(&said))
    };
    let (code, said) = refused(&["--speed", "work=2x"]);
    assert!(code == Some(2) && said.contains("ask for work=1.25x, or capture it"), "{said}");
    let (code, said) = refused(&["--speed", "wrk=0.5x"]);
    assert!(code == Some(2) && said.contains("part.work, served.request"), "{said}");
    let (code, said) = refused(&["--speed", "work=0.5x", "--wall", "request"]);
    assert!(code == Some(2) && said.contains("--wall request"), "{said}");
    let (code, said) = refused(&["--speed", "work=0.5x", "--metric", "request", "--for", "4s"]);
    assert!(code == Some(1) && said.contains("permutations are too few"), "{said}");
    target.finish();
    // Code of an earlier pptc does not have the flag.
    let text = std::fs::read_to_string(bench.path("requests.c")).unwrap();
    let flag = "#define PPT1_SLOWS_DOWN 2";
    assert!(text.contains(flag));
    bench.write("requests.c", &text.replace(flag, "#define PPT1_SLOWS_DOWN 0"));
    bench.cc(&["-O2", "requests_main.c", "requests.c", "-o", "requests", "-pthread"]);
    let target = bench.start("requests", &["1000"]);
    let output = live(&bench, &target, &["--speed", "work=0.5x"]).output().unwrap();
    let said = explained(&String::from_utf8(output.stderr).unwrap());
    assert!(
        output.status.code() == Some(1) && said.contains("translate the frame file again"),
        "{said}"
    );
    target.finish();
}
