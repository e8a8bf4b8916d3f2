//! Frames of 64 bytes beside the stores that no ring can do without: `bench/writer.c`.

use std::process::Command;

use anyhow::Result;

use crate::bench::{Bench, folder};
use crate::peer::{Peer, Place, compile};
use crate::peers::ppt::Ppt;
use crate::process::run;
use crate::program::Program;
use crate::table::Table;

pub const FLOOR: &str = "(a) the floor: 64 bytes, in one thread, loop included";
pub const NS: &str = "ns";
pub const RATIO: &str = "ratio, each less its empty loop or call";
pub const TO_FLOOR: &str = "ppt on, block form, no clock, to the floor";

/// Ways of writer.c, and what they are called.
const WAYS: [(&str, &str); 11] = [
    ("empty_loop", "empty loop"),
    ("floor_loop", "eight stores and a cursor"),
    ("floor_loop_tick", "the same with the CPU's counter (rdtsc)"),
    ("tick_alone", "the CPU's counter alone, in a call"),
    ("clock_alone", "clock_gettime, vDSO, in a call"),
    ("copy_loop", "memcpy of 64 bytes"),
    ("empty_call", "empty call"),
    ("floor_call", "eight stores and a cursor, in a call"),
    ("floor_one_tick", "the same with the CPU's counter"),
    ("block_form", "ppt on, block form, no clock, in a call"),
    ("block_form_one_tick", "ppt on, block form, one tick, in a call"),
];

pub fn build(place: &Place) -> Result<()> {
    let generated = place.build.join("generated");
    run(Command::new(place.ppt.join("pptc"))
        .args(["--emit", "c", "-o"])
        .arg(&generated)
        .args(["writer.frame", "ticks.frame"].map(|it| place.source.join(it))))?;
    let files =
        [place.source.join("writer.c"), generated.join("writer.c"), generated.join("ticks.c")];
    let output = ["-o".into(), place.built("floor").display().to_string()];
    let include = format!("-I{}", generated.display());
    let files = files.iter().map(|it| it.display().to_string());
    compile("gcc", files.chain(output).chain([include]))
}

pub fn measure(bench: &mut Bench) {
    for round in 1..=bench.amount.rounds {
        eprint!("\r\x1b[K{FLOOR}: round {round} of {}", bench.amount.rounds);
        if let Err(error) = one(&bench.place, &mut bench.table) {
            bench.skipped.push(("floor".into(), format!("{error:#}")));
            return;
        }
    }
    eprint!("\r\x1b[K");
}

fn one(place: &Place, table: &mut Table) -> Result<()> {
    let mut program = Program::start(Command::new(place.built("floor")))?;
    let off = program.ask("measure")?;
    let folder = folder()?;
    let attached = Ppt.attach(place, &mut program, "", folder.path(), None)?;
    let on = program.ask("measure")?;
    (attached.stop)(&mut program)?;
    for (way, called) in WAYS {
        if let Some(ns) = on.may(way) {
            table.add(FLOOR, NS, called, ns);
        }
    }
    table.add(FLOOR, NS, "ppt off, block form, in a call", off.get("block_form")?);
    let floor = on.get("floor_loop")? - on.get("empty_loop")?;
    let block = on.get("block_form")? - on.get("empty_call")?;
    table.add(FLOOR, RATIO, TO_FLOOR, block / floor);
    table.add(FLOOR, "memory bandwidth, GB/s", "memcpy of 64 bytes", 64.0 / on.get("copy_loop")?);
    Ok(())
}
