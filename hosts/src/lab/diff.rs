//! The differences between two runs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::error::LabError;
use super::manifest::{CellRecord, HostRecord, Manifest};
use super::wire::Identity;

/// A difference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Its category.
    pub kind: DifferenceKind,
    /// The fact that differs.
    pub what: String,
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
    /// They ended differently.
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
            let (kind, what) = name.clone();
            differences.push(Difference { kind, what, a: in_a.cloned(), b: in_b.cloned() });
        }
    }
    Ok(differences)
}

type Named = BTreeMap<(DifferenceKind, String), String>;

/// Every fact of a manifest except times, by name.
fn facts(manifest: &Manifest) -> Named {
    let mut facts = Named::new();
    let mut setup =
        |what: &str, value: String| facts.insert((DifferenceKind::Setup, what.to_owned()), value);
    setup("version of ppt", manifest.version.clone());
    setup("seed", manifest.seed.to_string());
    let order: Vec<&str> = manifest.cells.iter().map(|it| &*it.key).collect();
    setup("order of the cells", order.join(" "));
    for (number, line) in manifest.text.lines().enumerate() {
        setup(&format!("experiment, line {:4}", number + 1), line.to_owned());
    }
    manifest.hosts.iter().for_each(|it| host(it, &mut facts));
    manifest.cells.iter().for_each(|it| cell(it, &mut facts));
    facts.insert(
        (DifferenceKind::Result, "state".to_owned()),
        format!("{:?}", manifest.state).to_lowercase(),
    );
    facts
}

fn host(host: &HostRecord, facts: &mut Named) {
    let it = &host.facts;
    let mut add = |what: &str, value: &str| {
        facts.insert(
            (DifferenceKind::Setup, format!("host {}: {what}", host.name)),
            value.to_owned(),
        );
    };
    add("via", &host.via);
    add("address", host.addr.as_deref().unwrap_or("none"));
    add("boot", &it.boot_id);
    add("kernel", &it.kernel);
    add("machine", &it.machine);
    add("CPU", &it.cpu);
    add("CPUs", &it.cpus.to_string());
    add("governor", &it.governor);
    add("clock source", &it.clock_source);
    add("isolation", &format!("{:?}", it.isolation).to_lowercase());
    for (name, value) in &it.environment {
        add(&format!("variable {name}"), value);
    }
    for (word, identity) in &host.programs {
        match identity {
            Identity::Missing { .. } => add(&format!("program {word}"), "missing"),
            Identity::Found { path, sha256, build_id } => {
                add(&format!("program {word}: path"), path);
                add(&format!("program {word}: sha256"), sha256);
                let build = build_id.as_deref().unwrap_or("none");
                add(&format!("program {word}: build id"), build);
            }
        }
    }
}

fn cell(cell: &CellRecord, facts: &mut Named) {
    let name = match cell.attempt {
        1 => format!("cell {}", cell.key),
        attempt => format!("cell {}, attempt {attempt}", cell.key),
    };
    let mut add = |kind, what: String, value: String| {
        facts.insert((kind, format!("{name}: {what}")), value);
    };
    let passed = if cell.passed { "passed" } else { "failed" };
    add(DifferenceKind::Result, "result".to_owned(), passed.to_owned());
    for it in &cell.ran.commands {
        let env = it.env.iter().map(|(name, value)| format!("{name}={value} "));
        let command = env.collect::<String>() + &it.words.join(" ");
        add(DifferenceKind::Setup, format!("phase {}, host {}", it.phase, it.host), command);
    }
    for it in &cell.ran.ends {
        let end = if it.ended.stopped { "was stopped".into() } else { it.ended.end.to_string() };
        add(DifferenceKind::Result, format!("phase {}, host {}", it.ended.phase, it.host), end);
    }
    for it in &cell.checks {
        let passed = if it.passed { "true" } else { "not true" };
        add(DifferenceKind::Result, format!("check {}", it.sql), passed.to_owned());
    }
    for it in &cell.ran.outputs {
        add(DifferenceKind::Result, format!("file {}", it.name), "there".to_owned());
        add(DifferenceKind::Content, format!("file {}", it.name), it.sha256.clone());
    }
}
