//! Frames of 64 bytes beside the stores that no ring can do without: `bench/writer.c`.

use std::process::Command;

use anyhow::Result;

use crate::bench::{Bench, folder};
use crate::peer::{Peer, Place, compile};
use crate::peers::ppt::Ppt;
use crate::process::{run, while_stopped};
use crate::program::{Answer, Program};
use crate::table::Table;

pub const FLOOR: &str = "(a) the floor: 64 bytes, in one thread, loop included";
pub const NS: &str = "ns";
pub const RATIO: &str = "ratio, each less its empty loop or call";
pub const TO_FLOOR: &str = "ppt on, block form, no clock, to the floor";
pub const THREE: &str = "ppt on, three ticks, to the floor with as many, calls included";

/// Ways of writer.c, and what they are called.
const WAYS: [(&str, &str); 13] = [
    ("empty_loop", "empty loop"),
    ("floor_loop", "eight stores and a cursor"),
    ("floor_loop_tick", "the same with the CPU's counter (rdtsc)"),
    ("tick_alone", "the CPU's counter alone, in a call"),
    ("clock_alone", "clock_gettime, vDSO, in a call"),
    ("copy_loop", "memcpy of 64 bytes"),
    ("empty_call", "empty call"),
    ("floor_call", "eight stores and a cursor, in a call"),
    ("floor_one_tick", "the same with the CPU's counter"),
    ("floor_three_ticks", "the same with the CPU's counter, three times"),
    ("block_form", "ppt on, block form, no clock, in a call"),
    ("block_form_one_tick", "ppt on, block form, one tick, in a call"),
    ("block_form_three_ticks", "ppt on, block form, three ticks, in a call"),
];

pub fn build(place: &Place) -> Result<()> {
    let generated = place.build.join("generated");
    run(Command::new(place.ppt.join("pptc"))
        .args(["--emit", "c", "-o"])
        .arg(&generated)
        .args(["writer.frame", "ticks.frame"].map(|it| place.source.join(it))))?;
    let files =
        [place.source.join("writer.c"), generated.join("writer.c"), generated.join("ticks.c")];
    let files = files.map(|file| file.display().to_string());
    let include = format!("-I{}", generated.display());
    let output = |name: &str| ["-o".into(), place.built(name).display().to_string()];
    compile("gcc", files.iter().cloned().chain(output("floor")).chain([include.clone()]))?;
    // The same in a library, which finds its thread's place in another way.
    let shared = ["-shared", "-fPIC", "-Dmain=library_main", include.as_str()].map(String::from);
    compile("gcc", files.into_iter().chain(output("libfloor.so")).chain(shared))?;
    let caller = generated.join("floor_caller.c");
    std::fs::write(
        &caller,
        "int library_main(void);\nint main(void) { return library_main(); }\n",
    )?;
    let args = [caller, place.built("libfloor.so")].map(|it| it.display().to_string());
    let found = format!("-Wl,-rpath,{}", place.build.display());
    compile("gcc", args.into_iter().chain(output("floor-shared")).chain([found]))
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

/// All ways of a program: off, on, and on while `ppt attach` is stopped.
fn ways(place: &Place, name: &str) -> Result<[Answer; 3]> {
    let mut program = Program::start(Command::new(place.built(name)))?;
    let off = program.ask("measure")?;
    let folder = folder()?;
    let attached = Ppt::Peak.attach(place, &mut program, "", folder.path(), None)?;
    let on = program.ask("measure")?;
    let unread = while_stopped(&attached.pids, || program.ask("measure"))?;
    (attached.stop)(&mut program)?;
    Ok([off, on, unread])
}

fn one(place: &Place, table: &mut Table) -> Result<()> {
    let [off, on, unread] = ways(place, "floor")?;
    for (way, called) in WAYS {
        if let Some(ns) = on.may(way) {
            table.add(FLOOR, NS, called, ns);
        }
    }
    table.add(FLOOR, NS, "ppt off, block form, in a call", off.get("block_form")?);
    let alone = unread.get("block_form")?;
    table.add(FLOOR, NS, "ppt on, block form, no clock, while nobody reads", alone);
    let [off, shared, _] = ways(place, "floor-shared")?;
    table.add(FLOOR, NS, "ppt on, in a shared library", shared.get("block_form")?);
    table.add(FLOOR, NS, "ppt off, in a shared library", off.get("block_form")?);
    let floor = on.get("floor_loop")? - on.get("empty_loop")?;
    let block = on.get("block_form")? - on.get("empty_call")?;
    table.add(FLOOR, RATIO, TO_FLOOR, block / floor);
    let alone = alone - unread.get("empty_call")?;
    table.add(FLOOR, RATIO, "the same while nobody reads", alone / floor);
    let three = on.get("block_form_three_ticks")? / on.get("floor_three_ticks")?;
    table.add(FLOOR, RATIO, THREE, three);
    table.add(FLOOR, "memory bandwidth, GB/s", "memcpy of 64 bytes", 64.0 / on.get("copy_loop")?);
    Ok(())
}
