//! Names that users' scripts rely on: lists next to this file, which only grow.
//!
//! A listed name must exist. A name that is not yet listed may still change; a release adds it
//! (`PPT_BLESS=1`), and from then on it stays. `docs/stability.md` says so to users.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// The listed type of a key without a value.
const NULL: &str = ": null";

/// Compares the existing names with the list `name`: one name per line.
#[track_caller]
pub fn hold(root: &Path, name: &str, there: &BTreeSet<String>) {
    let path = root.join("tests/stable").join(name);
    let text = fs::read_to_string(&path).unwrap_or_default();
    let listed: BTreeSet<String> = text.lines().map(str::to_owned).collect();
    if std::env::var_os("PPT_BLESS").is_some() {
        let all = listed.union(there).map(String::as_str);
        let all: Vec<&str> = all.filter(|name| !name.ends_with(NULL)).collect();
        fs::write(&path, all.join("\n") + "\n").unwrap();
        return;
    }
    // A key without a value here may have one elsewhere.
    let is_null = |name: &str| {
        let key = name.split(": ").next().unwrap_or(name);
        there.contains(&format!("{key}{NULL}"))
    };
    let gone: Vec<&String> = listed.difference(there).filter(|name| !is_null(name)).collect();
    assert!(gone.is_empty(), "users rely on these, which are gone (docs/stability.md): {gone:?}");
    assert!(!listed.is_empty(), "there is no list {name}");
}

/// The options in the text of `--help`, each prefixed with its command.
#[allow(dead_code, reason = "each test that includes this file needs a part of it")]
pub fn options(command: &str, help: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::from([command.to_owned()]);
    for line in help.lines().map(str::trim_start).filter(|line| line.starts_with('-')) {
        let words = line.split([' ', ',', '=', '[']).filter(|word| word.starts_with('-'));
        // `-p, --pid <PID>`: the words before the value.
        let names = words.take(2).filter(|word| word.len() > 1);
        found.extend(names.map(|name| format!("{command} {name}")));
    }
    found
}

/// The keys of a JSON value, each with its parent keys and the type of its value. The objects in
/// `maps` have keys from a capture, which are replaced by `*`.
#[allow(dead_code, reason = "each test that includes this file needs a part of it")]
pub fn keys(path: &str, value: &serde_json::Value, maps: &[&str], found: &mut BTreeSet<String>) {
    use serde_json::Value;
    let ty = match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(values) => {
            values.iter().for_each(|value| keys(&format!("{path}[]"), value, maps, found));
            return;
        }
        Value::Object(fields) => {
            let is_map = maps.iter().any(|map| path.rsplit('.').next() == Some(map));
            for (key, value) in fields {
                let key = if is_map { "*" } else { key };
                keys(&format!("{path}.{key}"), value, maps, found);
            }
            return;
        }
    };
    found.insert(format!("{path}: {ty}"));
}
