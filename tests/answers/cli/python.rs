//! The Python module over this build's ppt: its own tests, by the interpreter of
//! `analysis/oracles/install`, which has pyarrow, pandas and Polars.

use std::path::Path;
use std::process::Command;

#[test]
fn the_python_module_passes_its_tests() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let python = root.join("target/oracles/bin/python");
    let there = Command::new(&python).args(["-c", "import pyarrow"]).output();
    if !there.is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: pyarrow is not installed (analysis/oracles/install)");
        return;
    }
    let module = root.join("analysis/python");
    let built = Path::new(env!("CARGO_BIN_EXE_ppt")).parent().unwrap();
    let path = std::env::var("PATH").unwrap_or_default();
    let output = Command::new(python)
        .args(["-m", "unittest", "discover", "-s"])
        .arg(module.join("tests"))
        .env("PYTHONPATH", &module)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("PATH", format!("{}:{path}", built.display()))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
