//! Asks other people's tools about a file, for tests.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The answers of a tool; None where it is not there.
pub fn ask(tool: &str, file: &Path, questions: &Value) -> Option<Vec<Value>> {
    let python = root().join("target/oracles/bin/python");
    let there = Command::new(&python).args(["-c", &format!("import {tool}")]).output();
    if !there.is_ok_and(|it| it.status.success()) {
        eprintln!("skipped: {tool} is not installed (analysis/oracles/install)");
        return None;
    }
    let mut child = Command::new(python)
        .arg(root().join("analysis/oracles/ask.py"))
        .arg(tool)
        .arg(file)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(questions.to_string().as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{tool}");
    Some(serde_json::from_slice(&output.stdout).unwrap())
}
