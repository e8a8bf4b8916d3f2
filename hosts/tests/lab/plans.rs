//! The messages for mistakes in an experiment. `PPT_BLESS=1` writes them again.

use std::path::Path;

use libtest_mimic::Trial;
use ppt_hosts::lab::LabPlan;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use crate::rig::{RigResult, same, trial};

pub(crate) fn tests() -> Vec<Trial> {
    vec![
        trial("plans::mistakes_are_named_where_they_are", mistakes),
        trial("plans::the_example_of_the_page_is_read", example),
        trial("plans::any_text_is_read_or_refused", any_text),
    ]
}

const GOOD: &str = r#"name = "pipeline"
repeat = 5
seed = 7
timeout = "60s"
host.a = { via = "netns:a", addr = "10.0.0.1" }
host.b = { via = "ssh:user@b" }
matrix = { load = ["none", "cpu"], size = [48, 1400] }
[[phase]]
name = "sync"
all = { clock = { until = "10us", give-up = "30s" } }
[[phase]]
name = "attach"
b = { start = ["./pipe", "--node"], ready = "listening", capture = true }
[[phase]]
name = "load"
when = "load = 'cpu'"
b = { start = ["stress-ng", "--cpu", "1"] }
[[phase]]
name = "run"
a = { run = ["./pipe", "--source", "--size", "{size}", "-n", "10000"] }
[[phase]]
name = "stop"
all = { stop = true, collect = ["*.bin", "*.log"] }
[check]
sql = ["SELECT count(*) = 0 FROM edges WHERE latency_hi < 0", "SELECT sum(lost) = 0 FROM rings"]
[report]
sql = "views.sql"
html = "report.html"
"#;

/// Each replaces a part of the valid text and makes it invalid.
const BAD: [(&str, &str); 50] = [
    ("name = \"pipeline\"\n", ""),
    ("\"pipeline\"", "\"../x\""),
    ("\"pipeline\"", "7"),
    ("\"pipeline\"", "\"pipeline"),
    ("repeat", "repeats"),
    ("repeat = 5", "repeat = 0"),
    ("\"60s\"", "\"60 sheep\""),
    ("\"60s\"", "\"0s\""),
    ("netns:a", "netsn:a"),
    ("netns:a", "netns:-a"),
    ("netns:a\", addr = \"10.0.0.1\"", "netns\", addr = \"10.0.0.1\""),
    ("ssh:user@b", "ssh:-oProxyCommand=reboot"),
    ("ssh:user@b", "ssh:b; reboot"),
    ("{ via = \"ssh:user@b\" }", "{ vai = \"ssh:user@b\" }"),
    ("{ via = \"ssh:user@b\" }", "{ }"),
    ("{ via = \"ssh:user@b\" }", "{ via = \"ssh:b\", helper = \"a b\" }"),
    ("addr = \"10.0.0.1\"", "helper = \"x\""),
    ("host.b", "host.\"b/c\""),
    ("host.b", "host.all"),
    ("[48, 1400]", "[48, \"1400\"]"),
    ("[48, 1400]", "[48, 48]"),
    ("[48, 1400]", "[]"),
    ("[48, 1400]", "[[48]]"),
    ("matrix = { load", "matrix = { seed"),
    ("[48, 1400]", "[1,2,3,4,5,6,7,8,9,10]\nrepeat2 = 1"),
    ("repeat = 5", "repeat = 10000\nmatrix.x = [1,2,3,4,5,6,7,8,9,10,11]\n#"),
    ("\"10us\"", "10"),
    ("give-up", "giveup"),
    ("name = \"run\"", "name = \"load\""),
    ("name = \"run\"\na", "name = \"run\"\nc"),
    ("name = \"run\"\na", "name = \"run\"\nwhne"),
    ("load = 'cpu'", "load = cpu"),
    ("load = 'cpu'", "laod = 'cpu'"),
    ("load = 'cpu'", "size = 'cpu'"),
    ("load = 'cpu'", "load = 'cpu' and"),
    ("run = [", "start = [\"x\"], run = ["),
    ("a = { run = [", "a = { ready = \"x\", run = ["),
    ("{ stop = true,", "{ capture = true,"),
    ("a = { run = [\"./pipe\",", "a = { run = \"./pipe\" }\nb = { run = [\"./pipe\","),
    ("[\"./pipe\", \"--source\"", "[\"\", \"--source\""),
    ("{size}", "{sise}"),
    ("a\", addr = \"10.0.0.1\"", "a\""),
    ("clock = {", "start = [\"x\"], clock = {"),
    ("{size}", "{b.dir}"),
    ("{size}", "{size"),
    ("ready = \"listening\"", "ready = { tpc = 80 }"),
    ("ready = \"listening\"", "ready = { tcp = 0 }"),
    ("stop = true", "stop = \"atach\""),
    ("\"*.bin\"", "\"../*.bin\""),
    ("[report]\nsql = \"views.sql\"\nhtml = \"report.html\"", "[report]"),
];

fn mistakes() -> RigResult {
    let mut drawn_errors = String::new();
    for (part, wrong) in BAD {
        assert!(GOOD.contains(part), "{part}");
        let text = GOOD.replacen(part, wrong, 1);
        let error = match LabPlan::parse(&text, Path::new("/x")) {
            Ok(_) => return Err(format!("it is read:\n{text}").into()),
            Err(error) => error,
        };
        let code: &'static str = (&error.mistake).into();
        drawn_errors += &format!("{code}\n{}\n\n", error.drawn("exp.toml", &text));
    }
    let expected = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/lab/plans.stderr");
    if std::env::var_os("PPT_BLESS").is_some() {
        std::fs::write(&expected, &drawn_errors).unwrap();
    }
    same(&drawn_errors, &std::fs::read_to_string(&expected).unwrap_or_default())
}

fn example() -> RigResult {
    let plan =
        LabPlan::parse(GOOD, Path::new("/x")).map_err(|error| error.drawn("exp.toml", GOOD))?;
    assert_eq!((plan.cells.len(), plan.hosts.len(), plan.checks(&plan.cells[0]).len()), (20, 2, 2));
    let loaded = |cell: &&ppt_hosts::lab::Cell| cell.parameters[0].to_string() == "cpu";
    let cell = plan.cells.iter().find(loaded).unwrap();
    let phases = plan.resolve(cell);
    let names: Vec<_> = phases.iter().map(|phase| &*phase.name).collect();
    assert_eq!(names, ["sync", "attach", "load", "run", "stop"]);
    let command = phases[3].actions[0].1.command.as_ref().unwrap();
    assert_eq!(command.words[3], cell.parameters[1].to_string());
    let text = page();
    LabPlan::parse(&text, Path::new("/x")).map_err(|error| error.drawn("lab.md", &text))?;
    Ok(())
}

/// The example of docs/lab.md.
pub(crate) fn page() -> String {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/lab.md");
    let page = std::fs::read_to_string(page).unwrap();
    page.split("```toml\n").nth(1).unwrap().split("```").next().unwrap().to_owned()
}

/// Pieces of experiments, and random bytes, in any order.
fn any_text() -> RigResult {
    let lines: Vec<&'static str> = GOOD.lines().collect();
    let piece = prop_oneof![
        4 => proptest::sample::select(lines).prop_map(str::to_owned),
        1 => "\\PC{0,20}",
        1 => "[\\[\\]{}=\"'a-z0-9 .,:\\\\\n]{0,30}",
    ];
    let text = proptest::collection::vec(piece, 0..30).prop_map(|texts| texts.join("\n"));
    let mut runner = TestRunner::new(Config { failure_persistence: None, ..Config::default() });
    let tested = runner.run(&text, |text| {
        match LabPlan::parse(&text, Path::new("/x")) {
            Ok(plan) => {
                let cell = plan.cells.first().cloned();
                let phases = cell.map(|cell| plan.resolve(&cell)).unwrap_or_default();
                // `when` may leave none.
                prop_assert!(phases.len() <= text.matches("phase").count());
            }
            Err(error) => {
                prop_assert!(error.span.end <= text.len().max(1), "{error:?}");
                let drawn = error.drawn("exp.toml", &text);
                let shown = !error.to_string().is_empty() && drawn.starts_with("error: ");
                prop_assert!(shown, "{drawn}");
            }
        }
        Ok(())
    });
    tested.map_err(|error| error.to_string().into())
}
