//! The cost of a frame in ppt itself, for draining and dumping, compared with `figures.tsv`.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Allowed deviation of a count from its figure, due to compilers and C libraries.
const TOLERANCE: f64 = 0.10;
/// Four and eight full chunks: the difference removes the fixed cost.
const FRAMES: [u64; 2] = [4 * 10_922, 8 * 10_922];

/// Builds `kernels.rs` with optimisation, separately from other optimised builds: in a debug build,
/// all inlined code would count.
fn build(folder: &Path) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let path = |name: &str| root.join(name);
    let manifest = format!(
        "[package]\nname = \"kernels\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\
         [[bin]]\nname = \"kernels\"\npath = {:?}\n\
         [profile.release]\nstrip = \"debuginfo\"\n[workspace]\n[dependencies]\n\
         ppt-capture = {{ path = {:?} }}\nppt-dump = {{ path = {:?} }}\n\
         ppt-listener = {{ path = {:?} }}\nppt-segment = {{ path = {:?} }}\n",
        path("tests/instructions/kernels.rs"),
        path("capture"),
        path("dump"),
        path("listener"),
        path("segment"),
    );
    fs::write(folder.join("Cargo.toml"), manifest).unwrap();
    fs::copy(path("Cargo.lock"), folder.join("Cargo.lock")).unwrap();
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let status = Command::new(env!("CARGO"))
        .args(["build", "--release", "--offline", "--quiet"])
        .current_dir(folder)
        .env("CARGO_TARGET_DIR", target)
        .status()
        .unwrap();
    assert!(status.success(), "cargo: {status}");
    target.join("release/kernels")
}

/// Instructions of a whole run, over all threads.
fn count(folder: &Path, kernels: &Path, args: &[&str]) -> u64 {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(kernels)
        .args(args)
        .current_dir(folder)
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}: {stderr}");
    // ==4711== Collected : 123456789
    let line = stderr.lines().find_map(|line| line.split_once("Collected : "));
    line.unwrap_or_else(|| panic!("{stderr}")).1.trim().parse().unwrap()
}

/// Instructions per frame.
fn of_a_frame(count: impl Fn(u64) -> u64) -> f64 {
    let [few, many] = FRAMES.map(count);
    (many as f64 - few as f64) / (FRAMES[1] - FRAMES[0]) as f64
}

/// The figures of every architecture in the file: architecture, kernel, instructions.
fn figures(file: &Path) -> BTreeMap<(String, String), f64> {
    let text = fs::read_to_string(file).unwrap();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let figure = |line: &str| {
        let cells: Vec<&str> = line.split('\t').collect();
        ((cells[0].to_owned(), cells[1].to_owned()), cells[2].parse().unwrap())
    };
    lines.map(figure).collect()
}

#[test]
fn a_frame_costs_what_it_did() {
    if !crate::runs("valgrind") {
        eprintln!("skipped: valgrind is not installed");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let kernels = build(folder.path());
    let counted = [
        ("drain", of_a_frame(|n| count(folder.path(), &kernels, &["drain", &n.to_string()]))),
        (
            "dump",
            of_a_frame(|n| {
                let args = ["capture", &n.to_string(), "it.bin"];
                let made = Command::new(&kernels).args(args).current_dir(&folder).status();
                assert!(made.unwrap().success());
                count(folder.path(), &kernels, &["dump", "it.bin"])
            }),
        ),
    ];
    println!("instructions of a frame: {counted:?}");

    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/instructions/figures.tsv");
    let mut figures = figures(&file);
    let arch = std::env::consts::ARCH;
    if std::env::var_os("PPT_BLESS").is_some_and(|var_os| var_os == "1") {
        let new = counted.map(|(kernel, count)| ((arch.to_owned(), kernel.to_owned()), count));
        figures.extend(new);
        let mut text = "# Instructions of a frame. PPT_BLESS=1 cargo test --test instructions \
                        a_frame_costs_what_it_did\n"
            .to_owned();
        for ((arch, kernel), count) in figures {
            writeln!(text, "{arch}\t{kernel}\t{count:.1}").unwrap();
        }
        fs::write(&file, text).unwrap();
        return;
    }
    for (kernel, count) in counted {
        let Some(figure) = figures.get(&(arch.to_owned(), kernel.to_owned())) else {
            eprintln!("skipped: {} has no figure of {kernel} on {arch}", file.display());
            continue;
        };
        assert!(
            (count / figure - 1.0).abs() <= TOLERANCE,
            "{kernel}: {count:.1} instructions a frame, {figure} in {}; if that is meant, run \
             again with PPT_BLESS=1",
            file.display(),
        );
    }
}
