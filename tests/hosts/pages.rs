//! Explanations of messages, and malicious names.

use std::fs;

use crate::support::{Bench, root};

/// The page explains under `## Several hosts` exactly the messages that exist.
#[test]
fn every_message_is_explained() {
    let page = fs::read_to_string(root().join("docs/troubleshooting.md")).unwrap();
    let (_, rest) = page.split_once("\n## Several hosts\n").unwrap();
    let sections = rest.split("\n## ").next().unwrap().split("\n### ").skip(1);
    let mut explained: Vec<_> = sections.map(|text| text.lines().next().unwrap()).collect();
    explained.sort_unstable();
    let mut said = Vec::new();
    for name in ["error.rs", "sync.rs", "lab.rs", "lab/progress.rs"] {
        let source = root().join("hosts/cli/src").join(name);
        let source = fs::read_to_string(source).unwrap();
        let words = source.split('"').skip(1).step_by(2).map(str::to_owned);
        said.extend(words.filter(|word| {
            ["no-sync", "sync-", "no-lab", "lab-"].iter().any(|begin| word.starts_with(begin))
        }));
    }
    said.sort_unstable();
    said.dedup();
    assert_eq!(said, explained);
    assert!(page.contains("\n### no-analysis\n"));
}

/// Names in a plan do not reach a terminal unescaped.
#[test]
fn what_a_plan_is_called_is_shown_safely() {
    let bench = Bench::empty();
    let name = "a\u{1b}]0;owned\u{7}\u{202e}b";
    bench.write("plan.toml", format!("name = '{name}'\n[[host]]\nname = '{name}'\n"));
    for args in [vec!["lab", "plan", name], vec!["lab", "plan", "plan.toml"], vec![name]] {
        let (said, code) = bench.fails(&args);
        let is_harmful = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
        assert!(code != 0 && !said.is_empty() && !said.contains(is_harmful), "{said:?}");
    }
}

/// A key is required, and a key that others can read is rejected.
#[test]
fn a_key_is_asked_for() {
    let bench = Bench::empty();
    for args in [&["sync", "host.invalid"][..], &["sync", "serve"]] {
        let (said, code) = bench.fails(args);
        assert!(said.contains("--key FILE is needed") && code == 2, "{said}");
    }
    let (said, code) = bench.fails(&["sync", "serve", "--key", "none"]);
    assert!(said.contains("ppt explain sync-key") && code == 2, "{said}");
}
