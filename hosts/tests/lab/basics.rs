//! Experiments on this machine.

use std::fs;

use libtest_mimic::Trial;
use ppt_clock::sync::ClockReadings;
use ppt_hosts::lab::{self, DifferenceKind, FileIdentity, ProgramEnd, RunState};
use ppt_hosts::probe::HostClock;

use crate::rig::{Rig, RigResult, contains, has_networks, is_root, same, skip, trial};

pub(crate) fn tests() -> Vec<Trial> {
    vec![
        trial("basics::every_cell_runs_and_leaves_its_files", every_cell),
        trial("basics::phases_are_barriers", barriers),
        trial("basics::ready_by_port_and_by_file", ready),
        trial("basics::programs_get_the_variables_of_the_manifest", environment),
        trial("basics::a_failure_names_phase_host_and_program", failure),
        trial("basics::a_program_that_dies_in_a_later_phase", dies_later),
        trial("basics::a_phase_that_never_ends", never_ends),
        trial("basics::a_program_that_is_never_ready", never_ready),
        trial("basics::a_cell_that_fails_is_tried_again", retry),
        trial("basics::stop_is_in_reverse_order_and_not_only_asked_for", stop),
        trial("basics::checks_must_be_true", checks),
        trial("basics::a_report_is_made_of_all_captures", report),
        trial("basics::results_are_never_written_over", never_over),
        trial("basics::a_missing_program_is_named_before_the_run", missing),
        trial("basics::what_differs_between_hosts_is_named", differs),
        trial("basics::a_rerun_differs_in_nothing", rerun),
        trial("basics::links_are_left_out", links),
        trial("basics::namespaces_reach_each_other", namespaces),
        trial("basics::a_namespace_of_the_user", named),
        trial("basics::the_example_of_the_page", page),
        trial("basics::phases_begin_by_measured_clocks", clocks),
        trial("basics::without_namespaces_nothing_is_left", plain),
    ]
}

fn every_cell() -> RigResult {
    let mut rig = Rig::new(
        r#"
name = "all"
repeat = 2
seed = 3
host.a = { via = "local" }
host.b = { via = "local" }
matrix = { size = [1, 2], load = ["none", "cpu"] }
[[phase]]
name = "run"
all = { run = ["OWN", "program", "write", "{host}.txt", "{size} {load} {repeat} {{}}"], collect = "*.txt" }
[[phase]]
name = "say"
when = "load = 'cpu'"
a = { run = ["OWN", "program", "say", "loaded"] }
"#,
    );
    let manifest = rig.passes();
    assert_eq!((manifest.cells.len(), manifest.state), (8, RunState::Complete));
    for cell in &manifest.cells {
        let [size, load] = [&cell.parameters[0].1, &cell.parameters[1].1];
        for host in ["a", "b"] {
            let text = rig.read(&format!("{}/{host}/{host}.txt", cell.folder));
            same(&text, &format!("{size} {load} {} {{}}", cell.repeat))?;
        }
        let loaded = load.to_string() == "cpu";
        assert_eq!(cell.ran.commands.len(), if loaded { 3 } else { 2 });
        assert_eq!(cell.ran.outputs.iter().any(|it| it.name == "say.a.out"), loaded);
        assert!(cell.ran.ends.iter().all(|it| it.ended.end == ProgramEnd::Code(0)));
    }
    let order: Vec<_> = manifest.cells.iter().map(|cell| cell.key.clone()).collect();
    let planned = lab::plan(&rig.file()).unwrap();
    assert_eq!(order, planned.cells.iter().map(|it| it.key.clone()).collect::<Vec<_>>());
    let host = &manifest.hosts[0];
    assert!(
        matches!(&host.programs[0].1, FileIdentity::Found { sha256, .. } if sha256.len() == 64)
    );
    same(&rig.read("experiment.toml"), &fs::read_to_string(rig.file()).unwrap())
}

fn barriers() -> RigResult {
    let mut rig = Rig::new(
        r#"
name = "barriers"
host.a = { via = "local" }
host.b = { via = "local" }
[[phase]]
name = "serve"
b = { start = ["OWN", "program", "serve", "127.0.0.1:0"], ready = "listening" }
[[phase]]
name = "write"
a = { run = ["OWN", "program", "write", "x", "1"] }
[[phase]]
name = "stop"
all = { stop = true, collect = ["x", "nothing*"] }
"#,
    );
    let manifest = rig.passes();
    let cell = &manifest.cells[0];
    let names: Vec<_> = cell.ran.phases.iter().map(|phase| &*phase.name).collect();
    assert_eq!(names, ["serve", "write", "stop"]);
    let at = |phase: usize| cell.ran.phases[phase].started[0].1;
    assert!(at(0) < at(1));
    let ended = &cell.ran.ends.iter().find(|end| end.host == "b").unwrap().ended;
    assert!(ended.stopped, "{ended:?}");
    assert_eq!(ended.end, ProgramEnd::Signal(15));
    same(&rig.read("r1/serve.b.out"), "listening\n")?;
    same(&rig.read("r1/a/x"), "1")?;
    contains(&rig.messages.0.join("\n"), r#"Unmatched { host: "b", pattern: "x" }"#)
}

fn ready() -> RigResult {
    if !has_networks() {
        return skip(
            "only in a namespace of one's own is a port surely free: that needs root and ip",
        );
    }
    let mut rig = Rig::new(
        r#"
name = "ready"
host.a = { via = "netns" }
matrix = { port = [4000] }
[[phase]]
name = "udp"
a = { start = ["OWN", "program", "udp", "127.0.0.1:{port}"], ready = { udp = "{port}" } }
[[phase]]
name = "tcp"
a = { start = ["OWN", "program", "serve", "127.0.0.1:4000"], ready = { tcp = 4000 } }
[[phase]]
name = "file"
a = { start = ["OWN", "program", "write", "there", "x"], ready = { file = "there" } }
"#,
    );
    rig.passes();
    Ok(())
}

fn environment() -> RigResult {
    let mut rig = Rig::new(
        r#"
name = "environment"
host.a = { via = "local" }
[[phase]]
name = "run"
a = { run = ["OWN", "program", "environment"], env = { SIZE = "{seed}" } }
"#,
    );
    let manifest = rig.passes();
    let mut expected = manifest.hosts[0].facts.environment.clone();
    expected.push(("SIZE".to_owned(), "0".to_owned()));
    let mut lines: Vec<_> = expected.iter().map(|(name, text)| format!("{name}={text}")).collect();
    lines.sort();
    let text = rig.read("r1/run.a.out");
    let mut found: Vec<_> = text.lines().map(str::to_owned).collect();
    found.sort();
    // Cargo and this test set more variables; none of them is passed on.
    same(&found.join("\n"), &lines.join("\n"))
}

fn failure() -> RigResult {
    let mut rig = Rig::new(
        r#"
name = "failure"
host.a = { via = "local" }
host.b = { via = "local" }
[[phase]]
name = "serve"
a = { start = ["OWN", "program", "forever"] }
[[phase]]
name = "go-wrong"
a = { run = ["OWN", "program", "forever"] }
b = { run = ["OWN", "program", "exit", "7"] }
"#,
    );
    let failure = rig.fails();
    let own = crate::rig::own();
    same(
        &failure,
        &format!(
            "phase go-wrong: host b: `{} program exit 7` ended with status 7\n  | first line\n  | it \
             goes wrong",
            own.display()
        ),
    )?;
    // Earlier output is kept, and everything else was stopped.
    same(&rig.read("r1/go-wrong.b.err"), "first line\nit goes wrong\n")?;
    let ends = &rig.manifest().cells[0].ran.ends;
    assert_eq!(ends.iter().filter(|it| it.host == "a" && it.ended.stopped).count(), 2, "{ends:?}");
    Ok(())
}

fn dies_later() -> RigResult {
    let mut rig = Rig::new(
        r#"
name = "later"
host.a = { via = "local" }
host.b = { via = "local" }
[[phase]]
name = "serve"
a = { start = ["OWN", "program", "die", "FIFO"] }
b = { start = ["sleep", "0"] }
[[phase]]
name = "run"
b = { run = ["OWN", "program", "provoke", "FIFO"] }
"#,
    );
    let fifo = rig.folder.path().join("fifo");
    let made = std::process::Command::new("mkfifo").arg(&fifo).status();
    assert!(made.unwrap().success());
    let text = fs::read_to_string(rig.file()).unwrap();
    fs::write(rig.file(), text.replace("FIFO", fifo.to_str().unwrap())).unwrap();
    // A program that ends with status 0 has done its work; a server that dies has not.
    let failure = rig.fails();
    same(
        &failure,
        &format!(
            "phase run: host a: `{} program die {}` of phase serve ended with status 9",
            crate::rig::own().display(),
            fifo.display()
        ),
    )
}

/// The error of a phase that takes too long. On a busy machine the program may not even have
/// started by then, which proves nothing.
fn late(step: &str, expected: &str) -> RigResult {
    let mut failure = String::new();
    for seconds in [1, 4, 16, 64] {
        let mut rig = Rig::new(&format!(
            r#"
name = "late"
timeout = "1h"
host.a = {{ via = "local" }}
[[phase]]
name = "run"
timeout = "{seconds}s"
a = {step}
"#
        ));
        failure = rig.fails();
        if failure == format!("phase run has not ended after {seconds}s\nhost a: {expected}") {
            return Ok(());
        }
        contains(&failure, "phase run has not ended after")?;
    }
    Err(failure.into())
}

fn never_ends() -> RigResult {
    late(r#"{ run = ["sleep", "1000000"] }"#, "`sleep 1000000` still runs")
}

fn never_ready() -> RigResult {
    late(
        r#"{ start = ["sleep", "1000000"], ready = "listening" }"#,
        "`sleep 1000000` is not ready: it has not written `listening`",
    )?;
    // A program that ends before it is ready fails at once.
    let mut rig = Rig::new(
        r#"
name = "ends"
host.a = { via = "local" }
[[phase]]
name = "run"
a = { start = ["sleep", "0"], ready = "listening" }
"#,
    );
    same(&rig.fails(), "phase run: host a: `sleep 0` ended with status 0")
}

fn retry() -> RigResult {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mark");
    let mut rig = Rig::new(&format!(
        r#"
name = "retry"
retry = 1
host.a = {{ via = "local" }}
[[phase]]
name = "run"
a = {{ run = ["OWN", "program", "second-time", "{}"] }}
"#,
        file.display()
    ));
    let summary = rig.run().unwrap();
    assert_eq!((summary.cells, summary.failed), (1, 0));
    let cells = rig.manifest().cells;
    let seen: Vec<_> =
        cells.iter().map(|cell| (cell.attempt, cell.passed, &*cell.folder)).collect();
    assert_eq!(seen, [(1, false, "r1"), (2, true, "r1-try2")]);
    contains(&rig.messages.0.join("\n"), "failed r1 true: phase run: host a: ")
}

fn stop() -> RigResult {
    let mut rig = Rig::new(
        r#"
name = "stop"
host.a = { via = "local" }
[[phase]]
name = "first"
a = { start = ["OWN", "program", "stubborn"], ready = "running" }
[[phase]]
name = "second"
a = { start = ["sleep", "1000000"] }
[[phase]]
name = "stop-one"
a = { stop = "first" }
[[phase]]
name = "still"
a = { run = ["sleep", "0"] }
"#,
    );
    let manifest = rig.passes();
    let ends = &manifest.cells[0].ran.ends;
    let ends: Vec<_> = ends.iter().map(|end| (&*end.ended.phase, end.ended.end)).collect();
    assert_eq!(ends[0], ("first", ProgramEnd::Signal(9)));
    assert_eq!(ends[1], ("second", ProgramEnd::Signal(15)));
    Ok(())
}

fn checks() -> RigResult {
    let rig = |sql: &str, capture: bool| {
        Rig::new(&format!(
            r#"
name = "checks"
host.a = {{ via = "local", ppt = "./ppt" }}
[[phase]]
name = "run"
a = {{ run = ["sleep", "0"], capture = {capture} }}
[check]
sql = ["SELECT true", "{sql}"]
"#
        ))
    };
    let with_ppt = |rig: &Rig| fake_ppt(rig.folder.path());
    let mut good = rig("SELECT true", true);
    with_ppt(&good);
    let manifest = good.passes();
    assert!(manifest.cells[0].checks.iter().all(|it| it.passed));
    let outputs = &manifest.cells[0].ran.outputs;
    assert_eq!((&*outputs[0].name, outputs[0].capture), ("run.a.bin", true));
    for (sql, why) in [
        ("SELECT false", "it is false, and should be true"),
        ("SELECT two rows", "it has 2 rows: a check has one row with one column"),
        ("SELECT two columns", "it has 2 columns: a check has one"),
        ("SELECT nothing", "ppt: there is no table `nothing`"),
    ] {
        let mut bad = rig(sql, true);
        with_ppt(&bad);
        same(&bad.fails(), &format!("check `{sql}`: {why}"))?;
    }
    let mut none = rig("SELECT true", false);
    contains(&none.fails(), "the cell has no capture: add `capture = true`")
}

/// A `ppt` that runs a command and writes the requested files. Another test covers the real one.
pub(crate) fn fake_ppt(folder: &std::path::Path) {
    let script = "#!/bin/sh\n[ \"$1 $2 $3\" = 'run --quiet -o' ] || exit 9\necho capture > \"$4\"\n\
                  shift 5\nexec \"$@\"\n";
    let path = folder.join("ppt");
    // Another process writes it, so that no process forked at the same time holds it open for
    // writing.
    let source = folder.join("ppt.text");
    fs::write(&source, script).unwrap();
    let mode = ["-m", "755"];
    let made = std::process::Command::new("install").args(mode).args([&source, &path]).status();
    assert!(made.unwrap().success());
}

fn report() -> RigResult {
    let mut rig = Rig::new(
        r#"
name = "report"
repeat = 2
host.a = { via = "local", ppt = "./ppt" }
[[phase]]
name = "run"
a = { run = ["sleep", "0"], capture = true }
[report]
sql = "views.sql"
html = "report.html"
"#,
    );
    fake_ppt(rig.folder.path());
    rig.passes();
    let said = rig.read("report.html");
    let folder = rig.results().canonicalize().unwrap();
    let (root, folder) = (folder.parent().unwrap().display(), folder.display());
    same(
        &said,
        &format!(
            "report\n--sql\n{root}/views.sql\n--\n{folder}/{}/run.a.bin\n\
             {folder}/{}/run.a.bin",
            rig.manifest().cells[0].key,
            rig.manifest().cells[1].key
        ),
    )
}

const SMALL: &str = r#"
name = "small"
host.a = { via = "local" }
[[phase]]
name = "run"
a = { run = ["OWN", "program", "say", "x"] }
"#;

fn never_over() -> RigResult {
    let mut rig = Rig::new(SMALL);
    rig.passes();
    let before = rig.read("MANIFEST.json");
    let error = rig.run().unwrap_err().to_string();
    contains(&error, "results exists: results are never written over others")?;
    same(&rig.read("MANIFEST.json"), &before)
}

fn missing() -> RigResult {
    let mut rig = Rig::new(&SMALL.replace("OWN", "./not-there"));
    let error = rig.run().unwrap_err().to_string();
    contains(&error, "host a: ")?;
    contains(&error, "not-there: No such file")?;
    // No file is created before it is certain that the experiment can run.
    assert!(!rig.results().exists());
    let mut rig = Rig::new(&SMALL.replace("OWN", "not-there"));
    let error = rig.run().unwrap_err().to_string();
    same(&error, "host a: there is no program `not-there` along PATH")
}

fn differs() -> RigResult {
    let mut rig = Rig::new(
        r#"
name = "differs"
host.a = { via = "local", dir = "a" }
host.b = { via = "local", dir = "b" }
[[phase]]
name = "run"
all = { run = ["./program", "0"] }
"#,
    );
    for (host, program) in [("a", "sleep"), ("b", "echo")] {
        let folder = rig.folder.path().join(host);
        fs::create_dir(&folder).unwrap();
        let from = format!("/bin/{program}");
        let made = std::process::Command::new("cp").arg(from).arg(folder.join("program")).status();
        assert!(made.unwrap().success());
    }
    rig.passes();
    contains(&rig.messages.0.join("\n"), r#"Differs { program: "./program", hosts: [("a", ""#)
}

fn rerun() -> RigResult {
    let mut rig = Rig::new(
        r#"
name = "again"
repeat = 3
seed = 5
host.a = { via = "local" }
matrix = { size = [1, 2, 3] }
[[phase]]
name = "run"
a = { start = ["OWN", "program", "pid"], ready = "1" }
[[phase]]
name = "stop"
a = { stop = true }
"#,
    );
    // In a PID namespace every program has the same number in each run, with a 1 in it or not.
    let text = fs::read_to_string(rig.file()).unwrap();
    fs::write(rig.file(), text.replace(", ready = \"1\"", "")).unwrap();
    rig.passes();
    let again = rig.folder.path().join("again");
    rig.options.folder = Some(again.clone());
    lab::rerun(&rig.results(), &rig.options, &mut rig.messages).unwrap();
    let differences = lab::diff(&rig.results(), &again).unwrap();
    let setup: Vec<_> =
        differences.iter().filter(|difference| difference.kind == DifferenceKind::Setup).collect();
    assert!(setup.is_empty(), "{setup:?}");
    // Another experiment does differ.
    let other = fs::read_to_string(rig.file()).unwrap().replace("seed = 5", "seed = 6");
    fs::write(rig.file(), other).unwrap();
    rig.options.folder = Some(rig.folder.path().join("other"));
    rig.run().unwrap();
    let differences = lab::diff(&rig.results(), &rig.folder.path().join("other")).unwrap();
    let differing: Vec<_> = differences.iter().map(|difference| &*difference.fact).collect();
    assert!(
        differing.contains(&"seed") && differing.contains(&"order of the cells"),
        "{differing:?}"
    );
    assert!(differing.contains(&"experiment, line    4"), "{differing:?}");
    let error = lab::diff(&rig.results(), rig.folder.path()).unwrap_err();
    contains(&error.to_string(), "is no manifest of ppt lab")
}

fn links() -> RigResult {
    let mut rig = Rig::new(
        r#"
name = "links"
host.a = { via = "local" }
[[phase]]
name = "link"
a = { run = ["ln", "-s", "/etc/passwd", "out.txt"] }
[[phase]]
name = "folder"
a = { run = ["ln", "-s", "/etc", "etc"] }
[[phase]]
name = "collect"
a = { run = ["sleep", "0"], collect = ["*.txt", "etc/hosts"] }
"#,
    );
    let manifest = rig.passes();
    assert!(manifest.cells[0].ran.outputs.is_empty(), "{:?}", manifest.cells[0].ran.outputs);
    let messages = rig.messages.0.join("\n");
    contains(&messages, r#"LeftOut { host: "a", name: "out.txt" }"#)?;
    contains(&messages, r#"LeftOut { host: "a", name: "etc/hosts" }"#)
}

fn namespaces() -> RigResult {
    if !has_networks() {
        return skip("network namespaces need root and ip");
    }
    let mut rig = Rig::new(
        r#"
name = "namespaces"
host.a = { via = "netns" }
host.b = { via = "netns" }
host.c = { via = "netns" }
[[phase]]
name = "serve"
b = { start = ["OWN", "program", "serve", "{b.addr}:80"], ready = { tcp = 80 } }
c = { start = ["OWN", "program", "serve", "{c.addr}:80"], ready = { tcp = 80 } }
[[phase]]
name = "send"
a = { run = ["OWN", "program", "send", "{b.addr}:80", "to b from a"] }
b = { run = ["OWN", "program", "send", "{c.addr}:80", "to c from b"] }
[[phase]]
name = "own"
all = { run = ["OWN", "program", "pid"] }
[[phase]]
name = "name"
all = { run = ["uname", "-n"] }
"#,
    );
    let manifest = rig.passes();
    same(&rig.read("r1/serve.b.out"), "listening\nto b from a\n")?;
    same(&(rig.read("r1/name.a.out") + &rig.read("r1/name.b.out")), "a\nb\n")?;
    same(&rig.read("r1/serve.c.out"), "listening\nto c from b\n")?;
    // Small numbers: the programs are alone in a PID namespace.
    let pid: u32 = rig.read("r1/own.a.out").trim().parse().unwrap();
    assert!(pid < 100, "{pid}");
    assert_eq!(manifest.hosts[1].addr.as_deref(), Some("10.77.0.2"));
    Ok(())
}

fn named() -> RigResult {
    if !is_root() {
        return skip("network namespaces need root");
    }
    let name = format!("ppt-lab-test-{}", std::process::id());
    let ip = |words: &[&str]| {
        std::process::Command::new("ip").args(words).status().is_ok_and(|status| status.success())
    };
    if !ip(&["netns", "add", &name]) {
        return skip("ip netns is not there");
    }
    let result = std::panic::catch_unwind(|| {
        let mut rig = Rig::new(&format!(
            r#"
name = "named"
host.a = {{ via = "netns:{name}" }}
[[phase]]
name = "list"
a = {{ run = ["ip", "-o", "link"] }}
"#
        ));
        rig.passes();
        rig.read("r1/list.a.out")
    });
    assert!(ip(&["netns", "delete", &name]));
    let links = result.map_err(|_| "it failed")?;
    assert_eq!(links.lines().count(), 1, "{links}");
    contains(&links, "lo: <LOOPBACK>")
}

fn clocks() -> RigResult {
    if !has_networks() || HostClock::of_this_host().is_err() {
        return skip("it needs root, ip, and ticks that can be trusted");
    }
    let text = |until: &str| {
        format!(
            r#"
name = "clocks"
timeout = "1h"
host.a = {{ via = "netns" }}
host.b = {{ via = "netns" }}
host.c = {{ via = "netns" }}
[[phase]]
name = "sync"
all = {{ clock = {{ until = "{until}", give-up = "2s" }} }}
[[phase]]
name = "run"
all = {{ run = ["sleep", "0"] }}
[[phase]]
name = "stop"
all = {{ stop = true }}
[[phase]]
name = "after"
all = {{ run = ["sleep", "0"] }}
"#
        )
    };
    let mut rig = Rig::new(&text("10s"));
    let manifest = rig.passes();
    let phases = &manifest.cells[0].ran.phases;
    let began = phases[1].began.as_ref().unwrap();
    assert_eq!(began.len(), 3);
    // The hosts share a machine, so the true difference between their clocks is zero.
    for (_, at, half) in &began[1..] {
        assert!((at - began[0].1).abs() <= *half, "{began:?}");
        assert!(*half > 0);
    }
    assert_eq!(phases[3].began, None);
    let mut readings = ClockReadings::default();
    readings.read(rig.read("r1/sync.a.sync").as_bytes()).unwrap();
    let mut names: Vec<_> = readings.hosts().iter().map(|host| host.name()).collect();
    // The asking host, then the others in the order of their first answers.
    names[1..].sort_unstable();
    assert_eq!(names, ["a", "b", "c"]);
    assert!(!readings.probes().is_empty());
    // A bound that no measurement can meet.
    let mut rig = Rig::new(&text("1ns"));
    let failure = rig.fails();
    contains(&failure, "phase sync: host a: ")?;
    contains(&failure, "the clock of b is known within ")?;
    contains(&failure, "that is not within 1ns")
}

fn page() -> RigResult {
    let is_there = |program: &str| {
        std::process::Command::new(program)
            .arg("--version")
            .output()
            .is_ok_and(|output| output.status.success())
    };
    if !has_networks() || !is_there("python3") || !is_there("curl") {
        return skip("it needs root, ip, python3 and curl");
    }
    let mut rig = Rig::new(&crate::plans::page().replace("30s", "1h"));
    let manifest = rig.passes();
    assert_eq!(manifest.cells.len(), 12);
    for cell in &manifest.cells {
        let size = rig.read(&format!("{}/client/got", cell.folder)).len();
        same(&size.to_string(), &cell.parameters[1].1.to_string())?;
    }
    Ok(())
}

fn plain() -> RigResult {
    let marker = crate::kills::Marker::new();
    let mut rig = Rig::new(&format!(
        r#"
name = "plain"
host.a = {{ via = "local", isolate = false }}
[[phase]]
name = "start"
a = {{ start = ["OWN", "program", "stubborn"], env = {{ LAB_TEST = "{}" }} }}
"#,
        marker.0
    ));
    let manifest = rig.passes();
    assert_eq!(manifest.hosts[0].facts.isolation, lab::Isolation::Guard);
    marker.is_gone()
}
