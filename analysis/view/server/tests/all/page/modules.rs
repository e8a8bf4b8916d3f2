//! The modules of the page in node, compared with the manual.

use std::path::Path;
use std::process::Command;

use crate::browser::program;

/// Runs the modules that need no browser with the test runner of node.
#[test]
fn modules_do_what_they_say() {
    let Some(node) = program(&["node", "nodejs"]) else {
        println!("skipped: no node: apt-get install nodejs");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    // This makes node treat them as modules.
    std::fs::write(folder.path().join("package.json"), "{\"type\": \"module\"}").unwrap();
    for from in ["page", "tests/modules"] {
        for file in std::fs::read_dir(here.join(from)).unwrap().map(Result::unwrap) {
            std::fs::copy(file.path(), folder.path().join(file.file_name())).unwrap();
        }
    }
    let output = Command::new(node).arg("--test").current_dir(folder.path()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("\n# fail 0\n") && !said.contains("\n# pass 0\n"), "{said}");
}

/// The list of keys in the page is that of docs/view.md.
#[test]
fn the_manual_has_every_key() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let keys = std::fs::read_to_string(here.join("page/keys.js")).unwrap();
    let manual = std::fs::read_to_string(here.join("../../../docs/view.md")).unwrap();
    let lines: Vec<&str> = keys.lines().filter(|line| line.starts_with("  ['")).collect();
    assert!(lines.len() > 20);
    for line in lines {
        let mut words = line.split('\'').skip(1).step_by(2);
        let (key, what) = (words.next().unwrap(), words.next().unwrap());
        assert!(manual.contains(&format!("| `{key}` | {what} |")), "| `{key}` | {what} |");
    }
}
