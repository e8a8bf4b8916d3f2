//! The promises of `docs/stability.md`: the tests that it names exist, and message codes stay.

#[path = "../stable/hold.rs"]
mod list;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::sources;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// `docs/troubleshooting.md` has exactly one section for each message; other tests check that.
#[test]
fn codes_of_messages_stay() {
    let page = fs::read_to_string(root().join("docs/troubleshooting.md")).unwrap();
    let there = page.lines().filter_map(|line| line.strip_prefix("### "));
    let there: BTreeSet<String> = there.map(str::to_owned).collect();
    assert!(there.contains("already-attached"), "{there:?}");
    list::hold(root(), "codes.txt", &there);
}

#[test]
fn every_promise_names_tests_that_exist() {
    let page = fs::read_to_string(root().join("docs/stability.md")).unwrap();
    let (_, table) = page.split_once("\n## What stays\n").unwrap();
    let (table, _) = table.split_once("\n## ").unwrap();
    let rows: Vec<_> = table.lines().filter(|line| line.starts_with("| ")).skip(1).collect();
    assert!(rows.len() >= 10, "{rows:?}");
    let mut files = Vec::new();
    sources(root(), &mut files);
    for row in rows {
        let tests = row.trim_end_matches(" |").rsplit(" | ").next().unwrap();
        let names: Vec<_> = tests.split('`').skip(1).step_by(2).collect();
        assert!(!names.is_empty(), "no test: {row}");
        for name in names {
            let (module, function) = name.split_once("::").unwrap_or_else(|| panic!("{name}"));
            let is_there = files.iter().any(|file| {
                file.file_stem().is_some_and(|stem| stem == module)
                    && fs::read_to_string(file).unwrap().contains(&format!("fn {function}("))
            });
            assert!(is_there, "there is no test {name}: {row}");
        }
    }
}

/// Every released version of the program has an entry, which states breaking changes.
#[test]
fn the_changelog_has_this_version() {
    let log = fs::read_to_string(root().join("CHANGELOG.md")).unwrap();
    let version = env!("CARGO_PKG_VERSION");
    assert!(log.contains(&format!("\n## {version}")), "CHANGELOG.md: {version}");
    for heading in ["ABI", "capture format"] {
        assert!(log.contains(heading), "CHANGELOG.md does not state the {heading}");
    }
}
