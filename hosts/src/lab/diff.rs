//! The differences between two runs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::error::LabError;
use super::manifest::{CellRecord, HostRecord, Manifest};
use super::wire::FileIdentity;

/// A difference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The category of the difference.
    pub kind: DifferenceKind,
    /// The fact that differs.
    pub fact: String,
    /// The value in the first run; None if it has none.
    pub a: Option<String>,
    /// The value in the second run; None if it has none.
    pub b: Option<String>,
}

/// The category of a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DifferenceKind {
    /// The runs were set up differently.
    Setup,
    /// The cells ended differently.
    Result,
    /// Files of the same name differ. Captures always do, because they hold times.
    Content,
}

/// The differences between two folders of results, except times. Empty if one is a rerun of the
/// other, apart from contents of files.
///
/// # Errors
/// A manifest cannot be read.
pub fn diff(a: &Path, b: &Path) -> Result<Vec<Difference>, LabError> {
    let (a, b) = (facts(&Manifest::read(a)?), facts(&Manifest::read(b)?));
    let names: BTreeSet<_> = a.keys().chain(b.keys()).collect();
    let mut differences = Vec::new();
    for name in names {
        let (in_a, in_b) = (a.get(name), b.get(name));
        if in_a != in_b {
            let (kind, fact) = name.clone();
            differences.push(Difference { kind, fact, a: in_a.cloned(), b: in_b.cloned() });
        }
    }
    Ok(differences)
}

type NamedFacts = BTreeMap<(DifferenceKind, String), String>;

/// Every fact of a manifest except times, by name.
fn facts(manifest: &Manifest) -> NamedFacts {
    let mut facts = NamedFacts::new();
    let mut setup =
        |name: &str, value: String| facts.insert((DifferenceKind::Setup, name.to_owned()), value);
    setup("version of ppt", manifest.version.clone());
    setup("seed", manifest.seed.to_string());
    let order: Vec<&str> = manifest.cells.iter().map(|cell| &*cell.key).collect();
    setup("order of the cells", order.join(" "));
    for (number, line) in manifest.text.lines().enumerate() {
        setup(&format!("experiment, line {:4}", number + 1), line.to_owned());
    }
    manifest.hosts.iter().for_each(|record| host(record, &mut facts));
    manifest.cells.iter().for_each(|record| cell(record, &mut facts));
    facts.insert(
        (DifferenceKind::Result, "state".to_owned()),
        format!("{:?}", manifest.state).to_lowercase(),
    );
    facts
}

fn host(host: &HostRecord, facts: &mut NamedFacts) {
    let host_facts = &host.facts;
    let mut add = |name: &str, value: &str| {
        facts.insert(
            (DifferenceKind::Setup, format!("host {}: {name}", host.name)),
            value.to_owned(),
        );
    };
    add("via", &host.via);
    add("address", host.addr.as_deref().unwrap_or("none"));
    add("boot", &host_facts.boot_id);
    add("kernel", &host_facts.kernel);
    add("machine", &host_facts.machine);
    add("CPU", &host_facts.cpu);
    add("CPUs", &host_facts.cpus.to_string());
    add("governor", &host_facts.governor);
    add("clock source", &host_facts.clock_source);
    add("isolation", &format!("{:?}", host_facts.isolation).to_lowercase());
    for (name, value) in &host_facts.environment {
        add(&format!("variable {name}"), value);
    }
    for (word, identity) in &host.programs {
        match identity {
            FileIdentity::Missing { .. } => add(&format!("program {word}"), "missing"),
            FileIdentity::Found { path, sha256, build_id } => {
                add(&format!("program {word}: path"), path);
                add(&format!("program {word}: sha256"), sha256);
                let build = build_id.as_deref().unwrap_or("none");
                add(&format!("program {word}: build id"), build);
            }
        }
    }
}

fn cell(cell: &CellRecord, facts: &mut NamedFacts) {
    let name = match cell.attempt {
        1 => format!("cell {}", cell.key),
        attempt => format!("cell {}, attempt {attempt}", cell.key),
    };
    let mut add = |kind, fact: String, value: String| {
        facts.insert((kind, format!("{name}: {fact}")), value);
    };
    let passed = if cell.passed { "passed" } else { "failed" };
    add(DifferenceKind::Result, "result".to_owned(), passed.to_owned());
    for ran_command in &cell.ran.commands {
        let env = ran_command.env.iter().map(|(name, value)| format!("{name}={value} "));
        let command = env.collect::<String>() + &ran_command.words.join(" ");
        add(
            DifferenceKind::Setup,
            format!("phase {}, host {}", ran_command.phase, ran_command.host),
            command,
        );
    }
    for ran_end in &cell.ran.ends {
        let end = if ran_end.ended.stopped {
            "was stopped".into()
        } else {
            ran_end.ended.end.to_string()
        };
        add(
            DifferenceKind::Result,
            format!("phase {}, host {}", ran_end.ended.phase, ran_end.host),
            end,
        );
    }
    for check in &cell.checks {
        let passed = if check.passed { "true" } else { "not true" };
        add(DifferenceKind::Result, format!("check {}", check.sql), passed.to_owned());
    }
    for output in &cell.ran.outputs {
        add(DifferenceKind::Result, format!("file {}", output.name), "there".to_owned());
        add(DifferenceKind::Content, format!("file {}", output.name), output.sha256.clone());
    }
}
