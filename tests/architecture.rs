//! The arrows between folders, held against `cargo metadata`.

use std::collections::BTreeSet;
use std::process::Command;

/// Who may use whom; everything else that is ours is forbidden.
const ARROWS: [(&str, &[&str]); 14] = [
    ("ppt", &["ppt-agent", "ppt-codegen", "ppt-dump", "ppt-listener"]),
    ("ppt-agent", &["ppt-frame-dsl", "ppt-segment"]),
    ("ppt-analysis", &["ppt-query"]),
    ("ppt-capture", &["ppt-clock", "ppt-frame-dsl"]),
    ("ppt-clock", &[]),
    ("ppt-codegen", &["ppt-frame-dsl"]),
    ("ppt-dump", &["ppt-capture"]),
    ("ppt-frame-dsl", &[]),
    (
        "ppt-fuzz",
        &["ppt-agent", "ppt-capture", "ppt-codegen", "ppt-dump", "ppt-listener", "ppt-segment"],
    ),
    ("ppt-listener", &["ppt-capture", "ppt-segment"]),
    ("ppt-probe", &["ppt-segment"]),
    ("ppt-query", &["ppt-tables"]),
    ("ppt-segment", &[]),
    ("ppt-tables", &["ppt-capture"]),
];

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
    for package in packages {
        let name = package["name"].as_str().unwrap();
        let (_, allowed) = ARROWS.iter().find(|it| it.0 == name).expect("listed");
        let dependencies = package["dependencies"].as_array().unwrap();
        let ours: BTreeSet<_> = dependencies
            .iter()
            .filter(|it| it["kind"].is_null())
            .filter_map(|it| it["name"].as_str())
            .filter(|it| it.starts_with("ppt"))
            .collect();
        assert_eq!(ours, allowed.iter().copied().collect(), "dependencies of {name}");
    }
}

#[test]
fn what_runs_in_targets_depends_on_libc_alone() {
    let metadata = metadata();
    let packages = metadata["packages"].as_array().unwrap();
    for (package, expected) in
        [("ppt-segment", &["libc"][..]), ("ppt-probe", &["libc", "ppt-segment"])]
    {
        let package = packages.iter().find(|it| it["name"] == package).unwrap();
        let dependencies = package["dependencies"].as_array().unwrap();
        let normal = dependencies.iter().filter(|it| it["kind"].is_null());
        let names: BTreeSet<_> = normal.filter_map(|it| it["name"].as_str()).collect();
        assert_eq!(names, expected.iter().copied().collect());
    }
}

/// What `cargo tree` lists for `ppt` along these edges: names and versions, each once.
fn tree(edges: &str) -> BTreeSet<String> {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--package", "ppt", "--edges", edges, "--format", "{p}"])
        .args(["--prefix", "none", "--no-dedupe", "--offline"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let words = |line: &str| line.split(' ').take(2).collect::<Vec<_>>().join(" ");
    text.lines().map(words).collect()
}

/// What runs with the right to write into other processes stays small enough to know by name. A
/// crate of our own that is divided in two counts, too.
#[test]
fn the_binaries_link_few_packages() {
    let packages = tree("normal,no-proc-macro");
    let packages: BTreeSet<_> = packages.iter().filter_map(|it| it.split(' ').next()).collect();
    assert!(packages.contains("ppt-agent"), "{packages:?}");
    assert!(packages.len() <= 64, "{} packages: {packages:?}", packages.len());
    for rich in ["arrow", "datafusion", "parquet", "prost", "ratatui", "tokio"] {
        let is_part = |it: &&str| it.split('-').next() == Some(rich);
        assert!(!packages.iter().any(|it| is_part(it)), "{rich} belongs into a binary of its own");
    }
}

/// How long a build takes follows from what is compiled: macros and build scripts count too, and a
/// package in two versions counts twice. A timed test would say how busy the machine is.
#[test]
fn a_build_compiles_few_packages() {
    let packages = tree("normal,build");
    assert!(packages.iter().any(|it| it.starts_with("serde_derive ")), "{packages:?}");
    assert!(packages.len() <= 84, "{} packages: {packages:?}", packages.len());
}
