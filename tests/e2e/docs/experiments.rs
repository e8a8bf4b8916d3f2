//! The examples that run on several hosts, shortened: their checks hold, and detect wrong clocks.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::fixtures::support::{Bench, available, root, text};

const PPTC: &str = env!("CARGO_BIN_EXE_pptc");

/// Why no experiment can run here.
fn cannot() -> Option<&'static str> {
    let may = |words: &[&str]| {
        Command::new(words[0])
            .args(&words[1..])
            .output()
            .is_ok_and(|output| output.status.success())
    };
    let sources = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    if !["make", "ip", "tc"].into_iter().all(available) {
        Some("it needs make, ip and tc")
    } else if !may(&[
        "unshare", "--net", "--pid", "--fork", "tc", "qdisc", "replace", "dev", "lo", "root",
        "tbf", "rate", "1mbit", "burst", "32k", "latency", "10ms",
    ]) {
        Some("network namespaces, or queues in them, are not allowed")
    } else if !fs::read_to_string(sources)
        .is_ok_and(|text| text.trim() == "tsc" || text.contains("arch_sys"))
    {
        Some("the ticks of this machine cannot be trusted")
    } else {
        None
    }
}

/// The results of an experiment.
struct Results {
    bench: Bench,
    manifest: Value,
}

impl Results {
    /// The folders of its cells, all of which passed with this number of checks.
    fn cells(&self, checks: usize) -> Vec<String> {
        let cells = self.manifest["cells"].as_array().unwrap();
        for cell in cells {
            let passed =
                cell["checks"].as_array().unwrap().iter().filter(|value| value["passed"] == true);
            assert_eq!((&cell["passed"], passed.count()), (&Value::Bool(true), checks), "{cell}");
        }
        cells.iter().map(|cell| format!("results/{}", cell["folder"].as_str().unwrap())).collect()
    }

    fn read(&self, name: &str) -> String {
        let path = self.bench.path(name);
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// The single value that a query over the captures of a folder returns.
    fn asked(&self, folder: &str, query: &str) -> Value {
        let captures = self.bench.names(folder).into_iter().filter(|name| name.ends_with(".bin"));
        let captures: Vec<String> = captures.map(|capture| format!("{folder}/{capture}")).collect();
        let mut words = vec!["sql", "--format", "jsonl"];
        words.extend(captures.iter().map(String::as_str));
        words.push(query);
        let ran = self.bench.ppt(&words);
        assert_eq!(ran.code(), 0, "{}", ran.stderr);
        let row: Value = serde_json::from_str(&ran.stdout).unwrap();
        row.as_object().unwrap().values().next().unwrap().clone()
    }

    /// Whether a check of a cell holds if the clock of host `number` is shifted ahead by a second.
    fn holds_of_a_liar(&self, cell: &str, number: &str, check: usize) -> bool {
        let folder = format!("a-liar-{check}");
        fs::create_dir(self.bench.path(&folder)).unwrap();
        for name in self.bench.names(cell) {
            let (from, to) =
                (format!("{cell}/{name}"), self.bench.path(&format!("{folder}/{name}")));
            if name.ends_with(".sync") {
                fs::write(to, lied(&self.read(&from), number)).unwrap();
            } else {
                fs::copy(self.bench.path(&from), to).unwrap();
            }
        }
        let sql = self.manifest["cells"][0]["checks"][check]["sql"].as_str().unwrap();
        self.asked(&folder, sql) == true
    }
}

/// Readings with the ticks of a host shifted ahead by a second.
fn lied(readings: &str, number: &str) -> String {
    // The last line may be truncated.
    let whole = &readings[..=readings.rfind('\n').unwrap()];
    let mut hz = 0;
    let mut line = |line: &str| {
        let mut fields: Vec<String> = line.split('\t').map(str::to_owned).collect();
        let words: Vec<&str> = fields.iter().take(3).map(String::as_str).collect();
        let ticks: &[usize] = match words[..] {
            ["host", word, _] if word == number => {
                hz = fields[4].parse::<u64>().unwrap();
                &[]
            }
            ["clock", word, "tick"] if word == number => &[4, 6],
            ["probe", _, word] if word == number => &[4],
            _ => &[],
        };
        for &at in ticks {
            fields[at] = (fields[at].parse::<u64>().unwrap() + hz).to_string();
        }
        fields.join("\t") + "\n"
    };
    let text = whole.lines().map(&mut line).collect();
    assert!(hz > 0, "{readings}");
    text
}

/// Builds an example and runs its experiment, with these changes.
fn results(example: &str, target: &str, changes: &[(&str, &str)]) -> Option<Results> {
    if let Some(why) = cannot() {
        eprintln!("skipped: {why}");
        return None;
    }
    let bench = Bench::new();
    let folder = bench.path(example);
    fs::create_dir(&folder).unwrap();
    let examples = root().join("examples");
    let copy = |from: PathBuf, to: &Path| {
        fs::copy(&from, to.join(from.file_name().unwrap())).unwrap();
    };
    ["net.h", "blast.c"].iter().for_each(|text| copy(examples.join(text), &bench.path(".")));
    for file in fs::read_dir(examples.join(example)).unwrap().map(Result::unwrap) {
        if file.file_type().unwrap().is_file() {
            copy(file.path(), &folder);
        }
    }
    let mut make = bench.command("make");
    make.args(["-B", "-C", example, target, &format!("PPTC={PPTC}")]).env_remove("MAKEFLAGS");
    let made = make.output().unwrap();
    assert!(made.status.success(), "{}", text(&made.stderr));

    let file = folder.join("exp.toml");
    let mut experiment = fs::read_to_string(&file).unwrap();
    // However slow this machine is.
    let patient =
        [("timeout = \"60s\"", "timeout = \"1h\""), ("until = \"10us\"", "until = \"1s\"")];
    for (from, to) in patient.iter().chain(changes) {
        assert_eq!(experiment.matches(from).count(), 1, "{from}");
        experiment = experiment.replace(from, to);
    }
    fs::write(&file, experiment).unwrap();
    let ran = bench.ppt(&["lab", "run", file.to_str().unwrap(), "-o", "results"]);
    let manifest = fs::read_to_string(bench.path("results/MANIFEST.json"));
    let manifest = manifest.unwrap_or_else(|_| panic!("{}", ran.stderr));
    assert_eq!(ran.code(), 0, "{}\n{manifest}", ran.stderr);
    Some(Results { manifest: serde_json::from_str(&manifest).unwrap(), bench })
}

/// Two hosts: there and back.
#[test]
fn one_way_latencies_are_within_their_bounds() {
    let changes = [
        ("repeat = 2", "repeat = 1"),
        ("\"traffic\"] }", "] }"),
        ("\"1000\", \"500\", \"{size}\"", "\"100\", \"500\", \"{size}\""),
    ];
    let Some(results) = results("stimulus-response", "all", &changes) else { return };
    let cells = results.cells(3);
    assert_eq!(cells.len(), 4);
    for cell in &cells {
        assert_eq!(results.read(&format!("{cell}/ask.client.out")), "answered 100\n");
        let sent = "SELECT count(DISTINCT src_seqno) FROM edges WHERE src_point = 'stimulus_sent'";
        assert_eq!(results.asked(cell, sent), 100);
    }
    // Each size and load, there and back.
    let report = results.read("results/report.txt");
    assert_eq!(report.lines().count(), 1 + 4 * 2 + 1 + 2, "{report}");
    assert!(!results.holds_of_a_liar(&cells[0], "1", 2));
}

/// Five nodes on four hosts, the first and the last on one host.
#[test]
fn the_stages_of_a_loop_agree_with_the_whole() {
    let changes = [
        ("repeat = 4", "repeat = 1"),
        ("\"none\", \"cpu\", \"traffic\"", "\"none\", \"traffic\""),
        ("\"1000\", \"500\", \"48\"", "\"100\", \"500\", \"48\""),
    ];
    let Some(results) = results("control-loop", "all", &changes) else { return };
    let cells = results.cells(4);
    assert_eq!(cells.len(), 2);
    for cell in &cells {
        assert_eq!(results.read(&format!("{cell}/source.a.out")), "created 100\n");
        assert_eq!(results.read(&format!("{cell}/nodes.a.out")), "arrived 100\n");
        let way = "SELECT count(*) FROM paths('created', 'arrived') WHERE hops = 7";
        assert_eq!(results.asked(cell, way), 100);
    }
    let report = results.read("results/report.txt");
    assert_eq!(report.lines().count(), 1 + 2 * 7 + 1 + 2 + 1 + 2, "{report}");
    // The total cannot detect a wrong clock in the middle: a late arrival means a late departure.
    assert!(!results.holds_of_a_liar(&cells[0], "2", 3));
}

/// A game server, and its users on two other hosts.
#[test]
fn what_a_server_and_users_on_other_hosts_counted_was_captured() {
    let changes = [("repeat = 2", "repeat = 1"), ("users = [10, 100]", "users = [10]")];
    let Some(results) = results("dve", "points", &changes) else { return };
    let cells = results.cells(4);
    let [cell] = &cells[..] else { panic!("{cells:?}") };
    let said = results.read(&format!("{cell}/serve.server.out"));
    let written = said.lines().find_map(|line| line.strip_prefix("written ")).unwrap();
    let captured = "SELECT sum(frames + lost) FROM rings WHERE buffer = 'example'";
    assert_eq!(results.asked(cell, captured).to_string(), written);
    // States sent to both hosts contain updates of both.
    let hosts = "SELECT count(DISTINCT src_capture) + count(DISTINCT dst_capture) \
                 FROM paths('update_sent', 'state_received')";
    assert_eq!(results.asked(cell, hosts), 4);
}
