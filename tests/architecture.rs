//! The arrows between folders, held against `cargo metadata`.

use std::collections::BTreeSet;
use std::process::Command;

/// Who may use whom; everything else that is ours is forbidden.
const ARROWS: [(&str, &[&str]); 8] = [
    ("ppt", &["ppt-agent", "ppt-codegen", "ppt-dump", "ppt-listener"]),
    ("ppt-agent", &["ppt-frame-dsl", "ppt-segment"]),
    ("ppt-capture", &["ppt-frame-dsl"]),
    ("ppt-codegen", &["ppt-frame-dsl"]),
    ("ppt-dump", &["ppt-capture"]),
    ("ppt-frame-dsl", &[]),
    ("ppt-listener", &["ppt-capture", "ppt-segment"]),
    ("ppt-segment", &[]),
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
    let segment = packages.iter().find(|it| it["name"] == "ppt-segment").unwrap();
    let dependencies = segment["dependencies"].as_array().unwrap();
    let normal: Vec<_> = dependencies.iter().filter(|it| it["kind"].is_null()).collect();
    assert_eq!(normal.len(), 1);
    assert_eq!(normal[0]["name"], "libc");
}
