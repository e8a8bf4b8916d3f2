//! The arrows between folders, held against `cargo metadata`, and within each of them.

mod circles;
mod pages;
mod silence;
mod stability;
mod unsafety;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The allowed dependencies; all other dependencies between our packages are forbidden.
const ARROWS: &[(&str, &[&str])] = &[
    (
        "ppt",
        &[
            "ppt-agent",
            "ppt-analysis",
            "ppt-codegen",
            "ppt-dump",
            "ppt-foreign",
            "ppt-kernel",
            "ppt-lab",
            "ppt-listener",
            "ppt-metrics",
            "ppt-now",
            "ppt-output",
            "ppt-predicate",
            "ppt-sources",
            "ppt-symbols",
            "ppt-text",
        ],
    ),
    ("ppt-agent", &["ppt-foreign", "ppt-frame-dsl", "ppt-now", "ppt-segment", "ppt-text"]),
    (
        "ppt-analysis",
        &[
            "ppt-delivery",
            "ppt-import",
            "ppt-interchange",
            "ppt-live",
            "ppt-models",
            "ppt-now",
            "ppt-output",
            "ppt-query",
            "ppt-report",
            "ppt-signals",
            "ppt-text",
            "ppt-view-server",
        ],
    ),
    ("ppt-capture", &["ppt-clock", "ppt-frame-dsl"]),
    ("ppt-causality", &["ppt-stats"]),
    ("ppt-clock", &[]),
    ("ppt-codegen", &["ppt-frame-dsl", "ppt-text"]),
    ("ppt-delivery", &["ppt-capture", "ppt-output", "ppt-tables"]),
    ("ppt-dump", &["ppt-capture", "ppt-predicate", "ppt-symbols", "ppt-text"]),
    ("ppt-foreign", &[]),
    ("ppt-frame-dsl", &["ppt-text"]),
    (
        "ppt-fuzz",
        &[
            "ppt-agent",
            "ppt-capture",
            "ppt-clock",
            "ppt-codegen",
            "ppt-dump",
            "ppt-hosts",
            "ppt-listener",
            "ppt-metrics",
            "ppt-predicate",
            "ppt-segment",
            "ppt-symbols",
            "ppt-view",
        ],
    ),
    ("ppt-hosts", &["ppt-clock", "ppt-now", "ppt-output", "ppt-text"]),
    ("ppt-import", &["ppt-capture", "ppt-frame-dsl", "ppt-text"]),
    ("ppt-interchange", &["ppt-query", "ppt-tables", "ppt-text"]),
    ("ppt-kernel", &["ppt-frame-dsl", "ppt-segment"]),
    ("ppt-lab", &["ppt-hosts", "ppt-output", "ppt-signals", "ppt-text"]),
    ("ppt-listener", &["ppt-capture", "ppt-now", "ppt-segment"]),
    ("ppt-live", &["ppt-capture", "ppt-stats"]),
    ("ppt-metrics", &["ppt-capture", "ppt-listener", "ppt-text"]),
    ("ppt-models", &["ppt-stats", "ppt-text"]),
    ("ppt-now", &["ppt-clock", "ppt-text"]),
    ("ppt-output", &["ppt-text"]),
    ("ppt-predicate", &["ppt-capture", "ppt-frame-dsl", "ppt-text"]),
    ("ppt-probe", &["ppt-segment"]),
    ("ppt-query", &["ppt-causality", "ppt-predicate", "ppt-stats", "ppt-tables", "ppt-text"]),
    ("ppt-report", &["ppt-query", "ppt-text"]),
    ("ppt-segment", &[]),
    ("ppt-signals", &["ppt-text"]),
    ("ppt-sources", &[]),
    ("ppt-stats", &[]),
    ("ppt-symbols", &["ppt-capture", "ppt-foreign"]),
    ("ppt-tables", &["ppt-capture", "ppt-causality", "ppt-symbols"]),
    ("ppt-text", &[]),
    ("ppt-tracing", &["ppt-probe"]),
    (
        "ppt-view-server",
        &["ppt-interchange", "ppt-models", "ppt-predicate", "ppt-query", "ppt-text", "ppt-view"],
    ),
    ("ppt-view", &["ppt-capture", "ppt-output", "ppt-predicate", "ppt-tables"]),
];

/// The packages of commands: they print, and read the environment.
const COMMANDS: [&str; 3] = ["ppt", "ppt-analysis", "ppt-lab"];

fn metadata() -> serde_json::Value {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn packages_depend_on_what_they_may() {
    let metadata = metadata();
    let packages = metadata["packages"].as_array().unwrap();
    assert_eq!(packages.len(), ARROWS.len(), "a package is missing from this test");
    let built = metadata["workspace_default_members"].as_array().unwrap();
    assert_eq!(built.len(), packages.len(), "`cargo test` leaves a member out: default-members");
    for package in packages {
        let name = package["name"].as_str().unwrap();
        let (_, allowed) = ARROWS.iter().find(|arrow| arrow.0 == name).expect("listed");
        let dependencies = package["dependencies"].as_array().unwrap();
        let ours: BTreeSet<_> = dependencies
            .iter()
            .filter(|dependency| dependency["kind"].is_null())
            .filter_map(|dependency| dependency["name"].as_str())
            .filter(|text| text.starts_with("ppt"))
            .collect();
        assert_eq!(ours, allowed.iter().copied().collect(), "dependencies of {name}");
    }
}

#[test]
fn what_runs_in_targets_depends_on_little() {
    let metadata = metadata();
    let packages = metadata["packages"].as_array().unwrap();
    for (package, expected) in
        [("ppt-segment", &["libc"][..]), ("ppt-probe", &["libc", "ppt-segment", "xxhash-rust"])]
    {
        let package = packages.iter().find(|value| value["name"] == package).unwrap();
        let dependencies = package["dependencies"].as_array().unwrap();
        let normal = dependencies.iter().filter(|dependency| dependency["kind"].is_null());
        let names: BTreeSet<_> = normal.filter_map(|value| value["name"].as_str()).collect();
        assert_eq!(names, expected.iter().copied().collect());
    }
}

/// Captures and tables are written by `ppt-output`, which never loses existing data. Other code
/// writes only what can be regenerated: `pptc` its code, the demo its sources, `ppt man` its pages,
/// `ppt with` the library that it contains.
#[test]
fn commands_write_files_through_one_crate() {
    let others = [
        "ppt/cmd/demo/programs.rs",
        "ppt/cmd/man.rs",
        "ppt/cmd/with.rs",
        "ppt/fmt.rs",
        "ppt/translate.rs",
    ];
    let ways =
        ["File::create", "fs::write", "OpenOptions", "File::options", "fs::copy", "fs::rename"];
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut folders = vec![root.join("ppt")];
    let mut seen = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let name = path.strip_prefix(root).unwrap().to_str().unwrap();
            let text = std::fs::read_to_string(&path).unwrap();
            let code = text.split("#[cfg(test)]").next().unwrap();
            let found = ways.iter().find(|way| code.contains(**way));
            assert!(found.is_none() || others.contains(&name), "{name}: {found:?}");
            seen += 1;
        }
    }
    assert!(seen > 30, "{seen} files");
}

/// One function decides which characters are not shown. The other uses reject names, or handle keys
/// of a keyboard.
#[test]
fn text_is_escaped_by_one_crate() {
    let others = [
        "analysis/cli/src/cmd/top/app.rs",
        "hosts/src/probe/address.rs",
        "hosts/src/probe/packet.rs",
        "clock/src/sync/limits.rs",
    ];
    let ways = ["is_control", "escape_debug", "escape_default", "u{202e}", "u{feff}"];
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    sources(root, &mut files);
    let mut seen = 0;
    for file in files {
        let place = file.strip_prefix(root).unwrap().to_str().unwrap();
        let parts: Vec<_> = place.split('/').collect();
        let is_test =
            parts.iter().any(|part| ["tests", "tests.rs", "fuzz", "bench"].contains(part));
        if is_test || parts[0] == "text" {
            continue;
        }
        let text = fs::read_to_string(&file).unwrap();
        let code = text.split("#[cfg(test)]").next().unwrap();
        let found = ways.iter().find(|way| code.contains(**way));
        assert!(found.is_none() || others.contains(&place), "{place}: {found:?}: use ppt-text");
        seen += 1;
    }
    assert!(seen > 300, "{seen} files");
}

/// The packages of a ppt with these features, as `cargo tree` lists them along these edges: names and
/// versions, each once.
fn tree(features: &[&str], edges: &str) -> BTreeSet<String> {
    let output = Command::new(env!("CARGO"))
        .args([
            "tree",
            "--package",
            "ppt",
            "--edges",
            edges,
            "--format",
            "{p}",
            "--no-default-features",
        ])
        .args(features)
        // The dependencies of a package are printed once: printed in full everywhere, the tree of
        // unified features takes minutes and gigabytes.
        .args(["--prefix", "none", "--offline"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let words = |line: &str| line.split(' ').take(2).collect::<Vec<_>>().join(" ");
    text.lines().map(words).collect()
}

/// The packages of a query engine.
const ENGINE: [&str; 7] =
    ["arrow", "datafusion", "parquet", "ppt-query", "prost", "ratatui", "tokio"];

fn is_of_engine(package: &&String) -> bool {
    let name = package.split(' ').next().unwrap_or_default();
    ENGINE.iter().any(|rich| name == *rich || name.starts_with(&format!("{rich}-")))
}

/// The code that runs with the right to write into other processes stays small enough to know every
/// package. A crate of our own that is divided in two counts, too. The man pages of `ppt man` take
/// two, the preloaded library takes one, files that may not answer take one, and metrics take two: the
/// parser of requests runs only in the process without privileges.
#[test]
fn the_binaries_link_few_packages() {
    let packages = tree(&[], "normal,no-proc-macro");
    let names: BTreeSet<_> =
        packages.iter().filter_map(|package| package.split(' ').next()).collect();
    assert!(names.contains("ppt-agent"), "{names:?}");
    assert!(names.len() <= 82, "{} packages: {names:?}", names.len());
    assert_eq!(packages.iter().find(is_of_engine), None, "the recorder links a query engine");
}

/// Hosts of an experiment need `ppt lab` and no answers, so that such a ppt builds in about a minute.
#[test]
fn ppt_lab_has_no_query_engine() {
    let hosts = ["--features", "hosts"];
    let linked = tree(&hosts, "normal,no-proc-macro");
    assert!(linked.iter().any(|it| it.starts_with("ppt-hosts ")), "{linked:?}");
    assert_eq!(linked.iter().find(is_of_engine), None, "`ppt lab` links a query engine");
    let compiled = tree(&hosts, "normal,build");
    assert!(compiled.len() <= 140, "{} packages: {compiled:?}", compiled.len());
}

/// The answers run in processes without privileges: nothing that attaches names them.
#[test]
fn what_attaches_names_no_answers() {
    let may = [
        "ppt/answers.rs",
        "ppt/args.rs",
        "ppt/args/top.rs",
        "ppt/args/view.rs",
        "ppt/failure.rs",
        "ppt/main.rs",
    ];
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    sources(&root.join("ppt"), &mut files);
    let mut named = BTreeSet::new();
    for file in files {
        let place = file.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
        let text = fs::read_to_string(&file).unwrap();
        if text.contains("ppt_analysis") {
            named.insert(place.clone());
        }
        let attaches = ["ppt/live", "ppt/rounds", "ppt/cmd/attach", "ppt/cmd/run"];
        if attaches.iter().any(|begin| place.starts_with(begin)) {
            let is_answer =
                ["ppt_analysis", "ppt_lab", "answers::"].iter().find(|it| text.contains(**it));
            assert_eq!(is_answer, None, "{place}");
        }
    }
    assert_eq!(named, may.map(str::to_owned).into());
}

/// Only commands print; another library with this feature could, too.
#[test]
fn only_commands_have_messages() {
    let metadata = metadata();
    for package in metadata["packages"].as_array().unwrap() {
        let has_messages = package["dependencies"].as_array().unwrap().iter().any(|value| {
            value["name"] == "ppt-text"
                && value["features"].as_array().unwrap().iter().any(|feature| feature == "messages")
        });
        let has_commands = COMMANDS.iter().any(|it| package["name"] == *it);
        assert!(!has_messages || has_commands, "{}: a library has no messages", package["name"]);
    }
}

/// The duration of a build depends on the compiled packages: macros and build scripts count, and a
/// package in two versions counts twice. A timed test would depend on the load of the machine.
#[test]
fn a_build_compiles_few_packages() {
    let packages = tree(&[], "normal,build");
    assert!(packages.iter().any(|it| it.starts_with("serde_derive ")), "{packages:?}");
    assert!(packages.len() <= 105, "{} packages: {packages:?}", packages.len());
}

/// What cargo compiles for a command: package, target, features and profile of each unit. None if a package has
/// not been downloaded. The graph is an unstable output, which this variable allows.
fn units(command: &[&str]) -> Option<BTreeSet<String>> {
    let output = Command::new(env!("CARGO"))
        .args(command)
        .args(["--unit-graph", "-Zunstable-options", "--offline"])
        .env("RUSTC_BOOTSTRAP", "1")
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    if said.contains("--offline was specified") {
        return None;
    }
    assert!(output.status.success(), "{said}");
    let graph: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let text = |unit: &serde_json::Value| {
        let mut profile = unit["profile"].clone();
        profile.as_object_mut().unwrap().remove("name");
        let rest = ["pkg_id", "target", "mode", "features", "platform"].map(|key| &unit[key]);
        format!("{rest:?} {profile}")
    };
    Some(graph["units"].as_array().unwrap().iter().map(text).collect())
}

/// Features are unified over all packages of a command, and over dev-dependencies if it builds tests. With
/// other features, DataFusion would be built twice.
#[test]
fn commands_build_nothing_twice() {
    let tests = units(&["test"]).expect("this test was built");
    for (command, least) in [(&["build", "--bin", "ppt"][..], 100), (&["build", "--bins"], 400)] {
        let built = units(command).expect("it is a part of the tests");
        let twice: Vec<_> = built.difference(&tests).collect();
        assert!(built.len() > least && twice.is_empty(), "{command:?} and cargo test: {twice:#?}");
    }
    // The server of the view is built anew: S3 needs the client of HTTP, too.
    let Some(with) = units(&["test", "--features", "s3"]) else {
        eprintln!("skipped: the packages of the feature s3 are not here: cargo fetch");
        return;
    };
    let is_other = |unit: &&String| unit.contains("registry+") && !unit.contains("#hyper");
    let anew: Vec<_> = tests.difference(&with).filter(is_other).collect();
    assert!(anew.is_empty() && tests != with, "{anew:#?}");
}

/// The source files below `folder`, as paths from the root.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let path = entry.path();
        let built = ["target", ".git"].iter().any(|text| entry.file_name() == *text);
        if entry.file_type().unwrap().is_dir() && !built {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// An incomplete recipe is worse than none. Code that decides by the type of a field or column
/// contains distinctive type names.
#[test]
fn the_recipe_of_a_field_type_names_every_place() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(root.join("CONTRIBUTING.md")).unwrap();
    let recipe = page.split("- **A field type**").nth(1).unwrap();
    let recipe = recipe.split("- **A warning**").next().unwrap();
    let telling = ["FieldType", "ColumnType", "Stored"]
        .map(|ty| ["Bool", "Bytes", "Timespec"].map(|case| format!("{ty}::{case}")))
        .concat();
    let mut files = Vec::new();
    sources(root, &mut files);
    let mut decided = 0;
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        let code = text.split("#[cfg(test)]").next().unwrap();
        let place = file.strip_prefix(root).unwrap().to_str().unwrap();
        let decides =
            telling.iter().any(|text| code.contains(text)) || code.contains(" Visitor for ");
        if decides && !["dump/tests/all/support.rs", "dump/tests/all/windows.rs"].contains(&place) {
            assert!(recipe.contains(&format!("`{place}`")), "not in the recipe: {place}");
            decided += 1;
        }
    }
    assert!(decided > 10, "{decided}");
    let named = recipe.split('`').skip(1).step_by(2).filter(|piece| piece.contains(".rs"));
    for place in named {
        assert!(root.join(place).is_file(), "the recipe names {place}");
    }
}
