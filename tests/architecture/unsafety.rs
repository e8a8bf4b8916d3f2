//! `unsafe` is in few files, which are listed here. A crate without any forbids it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::{TokenStream, TokenTree};

use super::{metadata, sources};

/// The files of a package that contain `unsafe`, relative to its folder.
const FILES: [(&str, &[&str]); 9] = [
    ("ppt", &["ppt/cmd/run/command.rs", "ppt/live/follow/reception.rs", "ppt/signals.rs"]),
    ("ppt-agent", &["src/confined.rs", "src/death.rs", "src/fork.rs", "src/threads.rs"]),
    ("ppt-analysis", &["src/heap.rs"]),
    ("ppt-capture", &["src/codec.rs"]),
    ("ppt-fuzz", &["src/capture.rs", "src/memory.rs", "src/segment.rs"]),
    ("ppt-kernel", &["src/host_pause/scheduling.rs", "src/perf.rs"]),
    ("ppt-now", &["src/counter.rs"]),
    (
        "ppt-probe",
        &[
            "src/bytes.rs",
            "src/cells.rs",
            "src/claim.rs",
            "src/clock.rs",
            "src/descriptor.rs",
            "src/enabled.rs",
            "src/errno.rs",
            "src/exit.rs",
            "src/fork.rs",
            "src/guard.rs",
            "src/hello.rs",
            "src/list.rs",
            "src/loaded.rs",
            "src/made.rs",
            "src/mapped.rs",
            "src/refuses.rs",
            "src/slow.rs",
            "src/table.rs",
            "src/thread.rs",
            "src/ticks.rs",
        ],
    ),
    (
        "ppt-segment",
        &["src/guard.rs", "src/mapping.rs", "src/memfd.rs", "src/segment.rs", "src/sysv.rs"],
    ),
];

/// Whether `unsafe` is among the tokens, including those of macros and attributes.
fn is_unsafe(tokens: TokenStream) -> bool {
    tokens.into_iter().any(|tree| match tree {
        TokenTree::Group(group) => is_unsafe(group.stream()),
        TokenTree::Ident(ident) => ident == "unsafe",
        _ => false,
    })
}

fn listed(package: &str) -> &'static [&'static str] {
    FILES.iter().find(|file| file.0 == package).map_or(&[], |file| file.1)
}

/// The root files of the libraries, programs and examples of a package.
fn roots(package: &serde_json::Value) -> Vec<PathBuf> {
    let shipped = |target: &&serde_json::Value| {
        let kinds = target["kind"].as_array().unwrap();
        kinds.iter().any(|kind| ["lib", "bin", "example"].iter().any(|text| kind == text))
    };
    let targets = package["targets"].as_array().unwrap();
    targets
        .iter()
        .filter(shipped)
        .map(|target| target["src_path"].as_str().unwrap().into())
        .collect()
}

#[test]
fn few_files_are_unsafe_and_the_other_crates_forbid_it() {
    let metadata = metadata();
    let mut seen = 0;
    let mut wrong = Vec::new();
    for package in metadata["packages"].as_array().unwrap() {
        let name = package["name"].as_str().unwrap();
        let folder = Path::new(package["manifest_path"].as_str().unwrap()).parent().unwrap();
        let roots = roots(package);
        let mut files = Vec::new();
        let folders: BTreeSet<_> = roots.iter().map(|root| root.parent().unwrap()).collect();
        folders.iter().for_each(|folder| sources(folder, &mut files));
        let mut found: Vec<_> = files
            .iter()
            .filter(|file| is_unsafe(fs::read_to_string(file).unwrap().parse().unwrap()))
            .map(|file| file.strip_prefix(folder).unwrap().to_str().unwrap())
            .collect();
        found.sort_unstable();
        if found != listed(name) {
            wrong.push(format!("(\"{name}\", &{found:?}),"));
        }
        for root in roots.iter().filter(|_| found.is_empty()) {
            let text = fs::read_to_string(root).unwrap();
            if !text.contains("\n#![forbid(unsafe_code)]\n") {
                wrong.push(format!("{} does not forbid unsafe code", root.display()));
            }
        }
        seen += files.len();
    }
    assert!(wrong.is_empty(), "not as listed:\n{}", wrong.join("\n"));
    assert!(seen > 200, "{seen} files");
}
