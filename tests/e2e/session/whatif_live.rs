//! `ppt whatif --live`: a program that is slowed down, beside the same program that really is slower.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use serde_json::Value;

use super::whatif_numbers as numbers;
use crate::fixtures::busy::wait_for_calm;
use crate::fixtures::explained::explained;
use crate::fixtures::steady::{NOBODY, is_root};
use crate::fixtures::support::{Attach, Bench, Target, ppt, wait_until};

pub fn built() -> Bench {
    let bench = Bench::new();
    bench.copy_all(&["requests.frame", "requests_main.c"]);
    bench.pptc(&["requests.frame"]);
    bench.cc(&["-O2", "requests_main.c", "requests.c", "-o", "requests", "-pthread"]);
    bench
}

pub fn live(bench: &Bench, target: &Target, args: &[&str]) -> std::process::Command {
    let mut command = bench.command(ppt());
    command.args(["whatif", "--live", &target.pid().to_string(), "-o", "out.bin", "--force"]);
    command.args(args);
    command
}

pub fn asked(bench: &Bench, args: &[&str]) -> Result<Vec<Value>, String> {
    let ran = bench.ppt(&[&["whatif", "out.bin", "--format", "json"], args].concat());
    if ran.code() != 0 {
        return Err(ran.stderr);
    }
    Ok(serde_json::from_str(&ran.stdout).unwrap())
}

/// The median of the requests of a program whose work takes so long, in ns.
fn really(bench: &Bench, work: &str) -> f64 {
    let target = bench.start("requests", &[work]);
    let pid = target.pid().to_string();
    let ran = bench.ppt(&["attach", &pid, "-o", "truth.bin", "--force", "-d", "2s", "-q"]);
    assert_eq!(ran.code(), 0, "{}", ran.stderr);
    target.finish();
    let query =
        "SELECT CAST(median(dur) AS DOUBLE) AS p50 FROM slices WHERE name = 'served.request'";
    let ran = bench.ppt(&["sql", "truth.bin", query, "--format", "tsv"]);
    assert_eq!(ran.code(), 0, "{}", ran.stderr);
    ran.stdout.lines().nth(1).unwrap().parse().unwrap()
}

#[test]
fn a_slowdown_is_worth_what_a_slower_program_is() {
    wait_for_calm();
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
        numbers::hold(&bench, ("served", "request"), &answers);
        numbers::stay(&bench, &answers);
        for (answer, work) in answers.iter().zip(["1250", "2000"]) {
            assert_eq!((&answer["how"], &answer["metric"]), (&"slowed".into(), &"request".into()));
            let (predicted, truth) =
                (answer["predicted"]["p50"].as_f64().unwrap(), really(&bench, work));
            println!("{work} us: predicted {predicted}, really {truth}: {answer}");
            assert!((predicted / truth - 1.0).abs() < 0.10, "{work} us: {truth}: {answer}");
            assert!(
                answer["rounds"].as_u64().unwrap() >= 8 && answer["gain"].as_f64().unwrap() < 0.0
            );
        }
        let said = asked(&bench, &["--speed", "work=0.7x"]).unwrap_err();
        assert!(explained(&said).contains("shows nothing of what is asked"), "{said}");
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
pub fn takes(target: &mut Target) -> u64 {
    target.say("?");
    target.stdout.wait_for("took ").parse().unwrap()
}

#[test]
fn a_killed_ppt_slows_nothing_down() {
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

/// The median of how long the requests of two programs take whose work takes so long, by the clock of the client,
/// in ns.
fn exchanged(bench: &Bench, work: &str) -> f64 {
    let (server, client) = exchange(bench, work);
    let took = client.stdout.wait_for("took ");
    client.finish();
    server.finish();
    took.split(' ').next().unwrap().parse().unwrap()
}

fn exchange(bench: &Bench, work: &str) -> (Target, Target) {
    let _ = std::fs::remove_file(bench.path("socket"));
    let server = bench.start("exchange", &["serve", "socket", work]);
    let client = bench.start("exchange", &["ask", "socket", "3000", "2"]);
    (server, client)
}

/// Two processes, and a socket between them.
#[test]
fn a_slower_server_is_what_its_client_sees() {
    let bench = Bench::new();
    bench.copy_all(&["exchange.frame", "exchange_main.c"]);
    bench.pptc(&["exchange.frame"]);
    bench.cc(&["-O2", "exchange_main.c", "exchange.c", "-o", "exchange", "-pthread"]);
    let mut refused = String::new();
    for _ in 0..4 {
        let (server, client) = exchange(&bench, "2000");
        let pid = client.pid().to_string();
        let args = ["--speed", "work=0.5x", "--wall", "work", "--metric", "path(asked, got)"];
        let command = live(&bench, &server, &[&[&pid[..]], &args[..], &["--for", "20s"]].concat());
        let ran = Attach::spawn_into(command, Stdio::null());
        let _ = ran.stderr.rest();
        drop(ran);
        client.finish();
        server.finish();
        let answers = match asked(&bench, &[]) {
            Ok(answers) => answers,
            Err(said) => {
                // On a machine that is never idle, rounds are run again.
                assert!(["baselines", "too few"].iter().any(|why| said.contains(why)), "{said}");
                refused = said;
                continue;
            }
        };
        let predicted = answers[0]["predicted"]["p50"].as_f64().unwrap();
        let truth = exchanged(&bench, "4000");
        println!("predicted {predicted}, really {truth}: {answers:?}");
        assert!((predicted / truth - 1.0).abs() < 0.10, "{truth}: {answers:?}");
        return;
    }
    panic!("refused each time: {refused}");
}

/// Rounds go on until the metric has ended 30 times.
#[test]
fn rounds_last_as_long_as_the_metric_needs() {
    let bench = built();
    // A request takes 10 ms, and so 20 of them take 200 ms.
    let target = bench.start("requests", &["9000"]);
    let args = ["--speed", "work=0.9x", "--metric", "request", "--round", "200ms", "--for", "3s"];
    let mut command = live(&bench, &target, &args);
    if is_root() {
        // Under sudo, the answer reads the capture as its user.
        fs::set_permissions(bench.path(""), fs::Permissions::from_mode(0o755)).unwrap();
        command.env("SUDO_UID", NOBODY.to_string()).env("SUDO_GID", NOBODY.to_string());
    }
    let ran = Attach::spawn_into(command, Stdio::null());
    let said = explained(&ran.stderr.rest());
    assert!(said.contains("permutations are too few"), "{said}");
    target.finish();
    let rounds = numbers::rounds(&bench);
    let ends = numbers::lengths(&bench, "served", "request");
    let rounds: Vec<_> = rounds.iter().filter(|round| round.permutation > 0).collect();
    assert!(rounds.len() > 2, "{rounds:?}");
    for round in rounds {
        let there = ends.iter().filter(|end| round.start <= end.1 && end.1 <= round.end).count();
        assert!((30..60).contains(&there), "{there}: {round:?}");
        assert!(round.end - round.start > 270_000_000, "{round:?}");
    }
}

#[test]
fn what_cannot_be_had_is_refused() {
    let bench = built();
    let target = bench.start("requests", &["1000"]);
    let refused = |args: &[&str]| {
        let output = live(&bench, &target, args).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        (output.status.code(), explained(&said))
    };
    let (code, said) = refused(&["--speed", "work=2x"]);
    assert!(code == Some(2) && said.contains("ask for work=1.25x, pause CPUs"), "{said}");
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
