//! Programs that use the crate `tracing`: compares the captures with the programs' counts.

use std::collections::{HashMap, HashSet};

use crate::fixtures::rust::programs;
use crate::fixtures::support::{Account, Attach, Bench, Table, Target, wait_until};

const REQUESTS: usize = 1000;

fn start(bench: &Bench, mode: &str) -> Target {
    let mut command = bench.command(programs().join("traced"));
    command.args([mode, &REQUESTS.to_string()]);
    let target = Target::spawn(command);
    // Without a session there is no interest and no logging.
    target.stdout.wait_for("before false false");
    target.stdout.wait_for("ready");
    target
}

/// Attaches, and waits until the program has noticed.
fn attach(bench: &Bench, target: &mut Target) -> Attach {
    let attach = bench.attach(target, &[]);
    target.say("wait");
    target.stdout.wait_for("done");
    attach
}

/// The counts of the program's own layer in one round.
fn round(target: &mut Target, line: &str) -> usize {
    target.say(line);
    let counted = target.stdout.wait_for("counted ").parse().unwrap();
    target.stdout.wait_for("done");
    counted
}

/// The tables of a capture without losses.
struct Tables {
    tasks: Table,
    entered: Table,
    recorded: Table,
    events: Table,
    sites: Table,
}

impl Tables {
    fn read(bench: &Bench, capture: &str) -> Self {
        let table = |frame| bench.table(capture, &["--frame", frame]);
        let [tasks, entered, recorded, events, sites] =
            ["task", "entered", "recorded", "event", "callsite"].map(table);
        let rows: usize = [&tasks, &entered, &recorded, &events, &sites]
            .map(|table| table.rows.len())
            .iter()
            .sum();
        Account::of(&bench.info(capture)).check(rows as u64);
        Self { tasks, entered, recorded, events, sites }
    }

    fn counts(&self) -> [usize; 4] {
        [&self.tasks, &self.entered, &self.recorded, &self.events].map(|table| table.rows.len())
    }

    /// The callsite with this value in a column.
    fn site(&self, column: &str, value: &str) -> &str {
        let at = self.sites.cells(column).iter().position(|cell| *cell == value);
        self.sites.cells("id")[at.unwrap_or_else(|| panic!("no callsite with {column} {value}"))]
    }
}

#[test]
fn a_subscriber_sees_everything_while_ppt_is_attached() {
    let bench = Bench::new();
    let mut target = start(&bench, "subscriber");
    let first = attach(&bench, &mut target);
    round(&mut target, "go");
    first.stop();
    let tables = Tables::read(&bench, "out.bin");
    assert_eq!(tables.counts(), [4, 2, 1, 3].map(|each| each * REQUESTS));

    // Each span begins and ends, and its events, polls and records refer to it.
    let (names, edges) = (tables.tasks.cells("name"), tables.tasks.cells("edge"));
    let (ids, parents) = (tables.tasks.cells("id"), tables.tasks.cells("parent"));
    let texts = tables.tasks.cells("text");
    let begins: Vec<usize> = (0..ids.len()).filter(|&row| edges[row] == "begin").collect();
    let spans: HashMap<&str, usize> = begins.iter().map(|&row| (ids[row], row)).collect();
    for (n, pair) in begins.chunks_exact(2).enumerate() {
        let [request, query] = pair else { unreachable!() };
        assert_eq!((names[*request], names[*query]), ("request", "query"), "request {n}");
        assert_eq!((parents[*request], parents[*query]), ("0", ids[*request]));
        assert_eq!((texts[*request], texts[*query]), ("method=GET", "table=users"));
    }
    let requests: Vec<&str> = begins.iter().step_by(2).map(|&row| ids[row]).collect();
    assert_eq!(tables.recorded.cells("id"), requests);
    assert!(tables.entered.cells("id").iter().all(|id| spans.contains_key(id)));
    let (from, to) = (tables.entered.numbers("poll_start"), tables.entered.numbers("poll_end"));
    assert!(from.iter().zip(&to).all(|(from, to)| 0 < *from && from <= to));

    // Numbers by their type, texts in order.
    let (a, b) = (tables.tasks.numbers("a"), tables.tasks.numbers("b"));
    assert_eq!((a[begins[0]], b[begins[0]], a[begins[2]], b[begins[2]]), (1, 0, 2, 1));
    let events = &tables.events;
    assert_eq!((events.cells("x")[0], events.cells("x")[1]), ("0.5", "0.0"));
    let a = events.numbers("a");
    assert_eq!((a[0], a[1], a[3]), (-1, 1, -2));
    let rows = events.cells("text");
    assert_eq!(rows[..3], ["served 1 path=/index", "rows", "from log 1"]);
    assert_eq!(events.cells("level")[..3], ["INFO", "DEBUG", "WARN"]);
    assert_eq!(events.cells("target")[..3], ["traced"; 3]);

    // A callsite is described once.
    let sites = &tables.sites;
    let all: HashSet<&str> = sites.cells("id").into_iter().collect();
    assert_eq!(all.len(), sites.rows.len());
    assert_eq!(tables.tasks.cells("callsite")[begins[0]], tables.site("name", "request"));
    let request = sites.cells("name").iter().position(|name| *name == "request").unwrap();
    assert_eq!(sites.cells("fields")[request], "n,ok,method,status");
    assert!(sites.cells("file")[request].ends_with("traced.rs"));

    // A second session gets everything again. Omitted values are counted: a text, and a fifth
    // number.
    let second = attach_to(&bench, &mut target, "again.bin");
    round(&mut target, "long");
    second.stop();
    target.finish();
    let again = Tables::read(&bench, "again.bin");
    assert_eq!(again.counts(), [4 * REQUESTS, 2 * REQUESTS, REQUESTS, 3 * REQUESTS + 1]);
    assert_eq!(again.site("name", "request"), tables.site("name", "request"));
    let long = *again.events.cells("text").last().unwrap();
    assert!(long.starts_with("long long=größe0 größe1 ") && long.len() <= 64, "{long}");
    let buffers = bench.info("again.bin")["buffers"].clone();
    let tracing = buffers.as_array().unwrap().iter().find(|buffer| buffer["name"] == "tracing");
    let counters = tracing.unwrap()["counters"].as_array().unwrap();
    let cut = counters.iter().find(|counter| counter["name"] == "cut").unwrap();
    assert_eq!(cut["value"], REQUESTS + 1, "{cut}");
}

fn attach_to(bench: &Bench, target: &mut Target, capture: &str) -> Attach {
    let attach = bench.attach(target, &["-o", capture]);
    target.say("wait");
    target.stdout.wait_for("done");
    attach
}

/// A layer sees what other layers let through; they see the same with it as without.
#[test]
fn layers_leave_the_others_alone() {
    for (mode, wanted) in [("layer", [2, 1, 1, 1]), ("all", [4, 2, 1, 2])] {
        let bench = Bench::new();
        let mut target = start(&bench, mode);
        assert_eq!(round(&mut target, "go"), REQUESTS, "{mode}: nobody is attached");
        let attach = attach(&bench, &mut target);
        assert_eq!(round(&mut target, "go"), REQUESTS, "{mode}: attached");
        // The thread of ppt-tracing describes the callsites a little later.
        let sites = || bench.ppt(&["dump", "out.bin", "--frame", "callsite"]).stdout;
        wait_until("callsites are described", || sites().contains("request"));
        attach.stop();
        assert_eq!(round(&mut target, "go"), REQUESTS, "{mode}: detached");
        target.finish();
        let tables = Tables::read(&bench, "out.bin");
        assert_eq!(tables.counts(), wanted.map(|each| each * REQUESTS), "{mode}");
        let sites = tables.sites.cells("name");
        assert!(sites.contains(&"request"), "{mode}: {sites:?}");
    }
}
