//! The fleet that `analysis/cluster/fleet` measures has the form of exports, and engines find the
//! generated rows in it.
//!
//! `analysis/cluster/install` installs pyarrow, DuckDB and Spark; the test names a missing one and
//! skips it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use ppt_capture::FileHeader;

use crate::support::{self, Bench, head, root};

/// More frames than a row group of an export.
const FRAMES: u64 = (1 << 20) + 5000;
/// Frames of a chunk.
const AT_ONCE: u64 = 5000;

/// The interpreter that has these modules.
fn python(modules: &[&str]) -> Option<PathBuf> {
    let python = root().join("target/cluster/bin/python");
    let there = |module: &&str| {
        let output = Command::new(&python).args(["-c", &format!("import {module}")]).output();
        output.is_ok_and(|output| output.status.success())
    };
    if let Some(missing) = modules.iter().find(|module| !there(module)) {
        eprintln!("skipped: {missing} is not installed (analysis/cluster/install)");
        return None;
    }
    Some(python)
}

fn script(python: &Path, name: &str, args: &[&str]) -> Output {
    let script = root().join("analysis/cluster/fleet").join(name);
    let mut command = Command::new(python);
    command.arg(script).args(args).env("PYTHONDONTWRITEBYTECODE", "1");
    command.output().unwrap()
}

/// A capture of frames of `request.frame`, of one thread, as `out.bin`.
fn bench() -> Bench {
    let text = fs::read(root().join("analysis/cluster/fleet/request.frame")).unwrap();
    let schema = ppt_frame_dsl::compile(&text, "request.frame").unwrap().schema;
    let offset = |name: &str| {
        let mut fields = schema.frames[0].fields.iter();
        fields.find(|field| field.name == name).unwrap().offset as usize
    };
    let (op, status) = (offset("op"), offset("status"));
    let (customer, bytes) = (offset("customer"), offset("bytes"));
    let (start, end) = (offset("handle_start"), offset("handle_end"));
    let stride = schema.stride as usize;
    let chunk = |number: u64| {
        let first = number * AT_ONCE;
        let drained = 1_000_000 + (number + 1) * AT_ONCE * 1000;
        let mut frames = vec![0; AT_ONCE as usize * stride];
        for (index, frame) in frames.chunks_exact_mut(stride).enumerate() {
            let seq = first + index as u64 + 1;
            let mixed = seq.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
            let at = drained - (AT_ONCE - index as u64) * 1000;
            frame[..8].copy_from_slice(&seq.to_le_bytes());
            frame[op] = (mixed % 4) as u8;
            frame[status..][..2].copy_from_slice(&(200 + (mixed % 2 * 300) as u16).to_le_bytes());
            frame[customer..][..4].copy_from_slice(&((mixed % 9973) as u32).to_le_bytes());
            frame[bytes..][..8].copy_from_slice(&(mixed % 65_521).to_le_bytes());
            frame[start..][..8].copy_from_slice(&(at - mixed % 1_000_000).to_le_bytes());
            frame[end..][..8].copy_from_slice(&at.to_le_bytes());
        }
        (head(first + 1, drained), frames)
    };
    let header = FileHeader {
        created_realtime_ns: 1_700_000_000_000_000_000,
        created_mono_ns: 1_000_000,
        host: "h0001".to_owned(),
        ..FileHeader::default()
    };
    let runs: Vec<_> = (0..FRAMES.div_ceil(AT_ONCE)).map(chunk).collect();
    let bench = Bench::empty();
    bench.write("out.bin", support::capture(&header, &schema, &runs));
    bench
}

#[test]
fn a_generated_fleet_has_the_form_of_an_export() {
    let Some(python) = python(&["numpy", "pyarrow"]) else { return };
    let bench = bench();
    let like = |folder: &str, more: &[&str]| {
        let args = ["export", "out.bin", "--format", "parquet", "--partition-by", "host,frame"];
        bench.done(&[&args[..], &["-o", folder], more].concat());
        let file = bench.path(&format!("{folder}/host=h0001/frame=request/part-0.parquet"));
        let output = script(&python, "generate.py", &["--like", file.to_str().unwrap()]);
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (same, said) = like("frames", &[]);
    assert!(same, "{said}");
    // The comparison detects differences.
    let (same, said) = like("ns", &["--time", "ns"]);
    assert!(
        !same && said.contains("handle_end_ns: {'type'") && said.contains("columns:"),
        "{said}"
    );
}

#[test]
fn engines_find_in_a_fleet_what_was_generated() {
    let Some(python) = python(&["numpy", "pyarrow", "duckdb"]) else { return };
    let spark = self::python(&["pyspark"]).is_some();
    let engines = if spark { "duckdb,spark" } else { "duckdb" };
    let output = script(&python, "measure.py", &["--check", "--engines", engines]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let table = String::from_utf8(output.stdout).unwrap();
    for engine in engines.split(',') {
        assert!(table.contains(&format!("\n{engine}\n| fleet | files |")), "{table}");
    }
}
