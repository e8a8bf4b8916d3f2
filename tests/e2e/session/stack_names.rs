//! Compares the names of addresses in stacks with those of binutils.

use std::collections::{BTreeMap, BTreeSet};

use crate::fixtures::steady::may_capture;
use crate::fixtures::support::{Bench, available, text};

/// The rows of an answer of `ppt sql`.
fn rows(bench: &Bench, sql: &str) -> Vec<Vec<String>> {
    let ran = bench.ppt(&["sql", "out.bin", sql]);
    assert_eq!(ran.code(), 0, "{ran:?}");
    let row = |line: &str| line.split('\t').map(str::to_owned).collect();
    ran.stdout.lines().skip(1).map(row).collect()
}

/// The name that addr2line gives each address of a file.
fn by_binutils(bench: &Bench, file: &str, addresses: &[u64]) -> Vec<String> {
    let mut command = bench.command("addr2line");
    command.args(["-f", "-e", file]).args(addresses.iter().map(|address| format!("{address:#x}")));
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    // Two lines each: the function, and its place in the source.
    text(&output.stdout).lines().step_by(2).map(str::to_owned).collect()
}

/// In a program that was not stripped, at least 95 % of all addresses have a name, and each name of the program's own
/// code is that of binutils.
#[test]
fn addresses_have_the_names_of_binutils() {
    if !may_capture("stacks") || !available("addr2line") {
        return;
    }
    let bench = Bench::new();
    bench.copy("chains_main.c");
    bench.cc(&["-O1", "-fno-omit-frame-pointer", "chains_main.c", "-o", "chains"]);
    let mut target = bench.start("chains", &[]);
    let attach = bench.attach(&target, &["--stacks=500"]);
    target.say("1");
    target.stdout.wait_for("done ");
    attach.stop();
    // While it lives, its own view of the files is asked for a map of made code.
    let dumped = bench.ppt(&["dump", "out.bin", "-b", "stacks", "--frame", "stack"]).stderr;
    assert!(!dumped.contains("does not answer"), "{dumped}");
    target.finish();

    let one = |at: usize| {
        format!(
            "SELECT frames_{at} AS address, frames_{at}_symbol AS symbol FROM stack WHERE frames_{at} <> 0"
        )
    };
    let all = (0..30).map(one).collect::<Vec<_>>().join(" UNION ALL ");
    let sql = format!("SELECT address, symbol, count(*) FROM ({all}) AS each GROUP BY 1, 2");
    let found = rows(&bench, &sql);
    let number = |text: &str| text.parse::<u64>().unwrap();
    // Without a name, there is no module in brackets.
    let is_named = |row: &&Vec<String>| row[1].ends_with(')');
    let total: u64 = found.iter().map(|row| number(&row[2])).sum();
    let named: u64 = found.iter().filter(is_named).map(|row| number(&row[2])).sum();
    assert!(total > 5_000, "{total}");
    assert!(named * 100 >= total * 95, "{named} of {total}: {found:?}");

    let sql =
        "SELECT start_address, end_address, \"offset\" FROM modules WHERE path LIKE '%/chains'";
    let hex = |text: &str| u64::from_str_radix(text.trim_start_matches("0x"), 16).unwrap();
    let modules = rows(&bench, sql);
    let module = &modules[0];
    let (start, end, offset) = (hex(&module[0]), hex(&module[1]), number(&module[2]));
    let own: BTreeMap<u64, &str> = found
        .iter()
        .map(|row| (number(&row[0]), row[1].as_str()))
        .filter(|(address, _)| (start..end).contains(address))
        .collect();
    // The first segment of the file is at 0, so code has its offset as its address.
    let places: Vec<u64> = own.keys().map(|address| address - start + offset).collect();
    let expected = by_binutils(&bench, "chains", &places);
    assert_eq!(expected.len(), own.len());
    for (symbol, expected) in own.values().zip(&expected) {
        // Neither names what the linker has made, such as the calls of libraries' functions.
        let name = if symbol.ends_with(')') { symbol.split(['+', ' ']).next() } else { Some("??") };
        assert_eq!(name, Some(expected.as_str()), "{symbol}");
    }
    let functions: BTreeSet<&String> = expected.iter().filter(|name| *name != "??").collect();
    assert!(functions.len() >= 9, "{functions:?}");
    eprintln!(
        "{named} of {total} addresses have names; {} of the program's own compared",
        own.len()
    );
}
