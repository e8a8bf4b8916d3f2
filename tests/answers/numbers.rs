//! Every number that a command shows, computed once more in another way: by programs in Python that
//! know nothing but what `ppt dump` says, over captures with everything that is hard.
//!
//! `recount/` has a program for each command: `check_stat.py` and the like. `NUMBERS=FOLDER` keeps the
//! captures, to look at them.

mod kinds;
mod live;
mod made;
mod maker;
mod shop;
mod values;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use self::made::MadeCapture;

/// The captures from the capture writer.
fn all() -> Vec<MadeCapture> {
    vec![
        values::values(),
        values::far(),
        values::ticks(),
        shop::lossy(),
        shop::forked(),
        shop::kernel(),
        shop::single(1, "one"),
        shop::single(0, "none"),
        shop::cut(),
        kinds::series(),
        kinds::kinds(),
        kinds::points(),
    ]
}

/// Writes all captures into a folder, with a list of facts that the programs need.
fn write(folder: &Path, ppt: &Path) {
    let mut list = Vec::new();
    for capture in all().iter().chain(live::all(ppt)) {
        let mut names = Vec::new();
        for (number, bytes) in (1..).zip(&capture.files) {
            let name = match capture.files.len() {
                1 => format!("{}.bin", capture.name),
                _ => format!("{}.{number:06}.bin", capture.name),
            };
            fs::write(folder.join(&name), bytes).unwrap();
            names.push(name);
        }
        let schemas: Vec<Value> =
            capture.schemas.iter().map(|json| serde_json::from_str(json).unwrap()).collect();
        list.push(json!({
            "name": capture.name, "files": names, "schemas": schemas, "offset": capture.offset,
            "told": capture.told,
        }));
    }
    fs::write(folder.join("captures.json"), Value::from(list).to_string()).unwrap();
}

/// Checks a command with all captures.
#[track_caller]
fn check(name: &str) {
    let ppt = Path::new(env!("CARGO_BIN_EXE_ppt"));
    if Command::new("python3").arg("--version").output().is_err() {
        eprintln!("python3 is not installed: skipped");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let kept = std::env::var_os("NUMBERS").map(|kept| PathBuf::from(kept).join(name));
    let path = kept.as_deref().unwrap_or(folder.path());
    fs::create_dir_all(path).unwrap();
    write(path, ppt);
    let recount = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/answers/numbers/recount");
    let output = Command::new("python3")
        .args([Path::new("-B"), &recount, Path::new(name), path, ppt])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
}

macro_rules! checks {
    ($($command:ident)*) => {$(
        #[test]
        fn $command() {
            check(stringify!($command));
        }
    )*};
}

checks! { compare counts dump export info kernel plot points report spans stat tables top }
