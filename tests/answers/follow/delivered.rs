//! A folder with an export, as a reader that lists it sees it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// The name of the manifest.
pub const MANIFEST: &str = "_ppt-manifest.json";

/// What is in the manifest.
pub fn manifest(folder: &Path) -> Value {
    serde_json::from_slice(&fs::read(folder.join(MANIFEST)).unwrap()).unwrap()
}

/// The files that a reader finds, from the folder on: those that neither `_` nor `.` hides.
pub fn files(folder: &Path) -> Vec<String> {
    let is_hidden = |name: &str| name.starts_with(['_', '.']);
    let mut found = Vec::new();
    for kind in crate::support::names(folder).into_iter().filter(|name| !is_hidden(name)) {
        let names = crate::support::names(&folder.join(&kind)).into_iter();
        found.extend(names.filter(|name| !is_hidden(name)).map(|name| format!("{kind}/{name}")));
    }
    found
}

/// Holds the files of a folder against its manifest: no two have a chunk in common, none is missing, and
/// all others are of the range that is planned.
pub fn check(folder: &Path) {
    let files = files(folder);
    let mut ranges: BTreeMap<(&str, &str), Vec<(u64, u64)>> = BTreeMap::new();
    for file in &files {
        let (kind, name) = file.split_once('/').unwrap();
        let (stem, extension) = name.split_once('.').unwrap();
        assert!(["parquet", "pb", "jsonl"].contains(&extension), "{file}");
        let [capture, from, until] = stem.split('-').collect::<Vec<_>>()[..] else {
            panic!("{file}")
        };
        let range = (from.parse().unwrap(), until.parse().unwrap());
        ranges.entry((kind, capture)).or_default().push(range);
    }
    for (of, ranges) in &mut ranges {
        ranges.sort_unstable();
        let is_apart = |pair: &[(u64, u64)]| pair[0].1 <= pair[1].0;
        assert!(ranges.windows(2).all(is_apart), "{of:?}: {ranges:?}");
    }
    if !folder.join(MANIFEST).exists() {
        assert!(files.is_empty(), "{files:?}");
        return;
    }
    let manifest = manifest(folder);
    let listed: Vec<&str> = manifest["files"]
        .as_array()
        .unwrap()
        .iter()
        .map(|value| value["name"].as_str().unwrap())
        .collect();
    for name in &listed {
        assert!(files.iter().any(|file| file == name), "{name} is not there");
    }
    let planned = &manifest["planned"];
    for file in files.iter().filter(|file| !listed.contains(&file.as_str())) {
        let number = |key: &str| planned[key].as_u64().unwrap();
        let capture = &planned["capture"].as_str().expect(file)[..16];
        let stem = format!("{capture}-{:08}-{:08}", number("from_chunk"), number("until_chunk"));
        assert!(file.contains(&format!("/{stem}.")), "{file}: {planned}");
    }
}

/// Rows of the files that the manifest has, by their folder.
pub fn rows(folder: &Path) -> BTreeMap<String, u64> {
    let mut rows = BTreeMap::new();
    for file in manifest(folder)["files"].as_array().unwrap() {
        let kind = file["name"].as_str().unwrap().split('/').next().unwrap().to_owned();
        *rows.entry(kind).or_default() += file["rows"].as_u64().unwrap();
    }
    rows
}

/// All files of a kind of frames, as a pattern.
pub fn pattern(folder: &Path, kind: &str) -> PathBuf {
    folder.join(kind).join("*.parquet")
}
