//! How ppt's cost grows: with threads, slots, the size of frames, the number of buffers.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::bench::{Bench, Turn, folder};
use crate::peer::{Peer, Place, compile};
use crate::peers::ppt::Ppt;
use crate::plot;
use crate::process::run;
use crate::program::Program;

const THREADS: &str = "scaling: threads, on, one time; CPU time, ns an event";
const SLOTS: &str = "scaling: slots a thread, on, one time, 1 thread";
const SIZE: &str = "scaling: bytes of a frame, on, no time; CPU time, ns an event";
const BUFFERS: &str = "scaling: buffers written in turn, on, no time; CPU time, ns an event";

const SIZES: [u64; 6] = [16, 32, 64, 128, 256, 512];
const FANS: u64 = 8;
const SLOTS_LOG: std::ops::RangeInclusive<u64> = 10..=22;

pub fn build(place: &Place) -> Result<()> {
    let generated = place.build.join("generated");
    let mut frames = Vec::new();
    for size in SIZES {
        frames.push((format!("size{size}"), format!("u64 words[{}];", size / 8 - 1)));
    }
    for fan in 1..=FANS {
        frames.push((format!("fan{fan}"), "i32 a, b; u64 c, d, e;".into()));
    }
    let mut args = vec![place.of("scaling").join("main.c").display().to_string()];
    for (name, fields) in frames {
        let file = generated.join(format!("{name}.frame"));
        std::fs::write(&file, format!("frame {name} {{ {fields} }}\n"))?;
        run(Command::new(place.ppt.join("pptc")).args(["--emit", "c"]).arg(&file))?;
        args.push(file.with_extension("c").display().to_string());
    }
    args.extend(["-o".into(), place.built("scaling").display().to_string()]);
    args.push(format!("-I{}", generated.display()));
    compile("gcc", args)
}

/// Measures, and draws into a folder.
pub fn measure(bench: &mut Bench, plots: &Path) -> Result<()> {
    bench.rounds(THREADS, |peer| peer.attaches() && peer.sizes(), threads);
    bench.rounds(SLOTS, |peer| peer.name() == "ppt", slots);
    bench.rounds(SIZE, |peer| peer.name() == "ppt", |turn| ways(turn, SIZE, "size", &SIZES));
    let buffers = [1, 2, 4, 8];
    bench.rounds(
        BUFFERS,
        |peer| peer.name() == "ppt",
        |turn| ways(turn, BUFFERS, "buffers", &buffers),
    );
    std::fs::create_dir_all(plots)?;
    for (section, name) in
        [(THREADS, "threads"), (SLOTS, "slots"), (SIZE, "size"), (BUFFERS, "buffers")]
    {
        let lines = plot::lines(&bench.table, section);
        let file = plots.join(format!("scaling-{name}.svg"));
        std::fs::write(&file, plot::svg(section, &lines))
            .with_context(|| file.display().to_string())?;
    }
    Ok(())
}

fn threads(turn: &mut Turn) -> Result<()> {
    for threads in (0..=6).map(|it| 1 << it) {
        let folder = folder()?;
        let idle = turn.peer.idle(turn.place)?;
        let (mut program, attached) = turn.launch(idle, "stamped", folder.path(), None)?;
        let flood = turn.flood(&mut program, "stamped", threads)?;
        (attached.stop)(&mut program)?;
        turn.table.add(THREADS, &threads.to_string(), turn.peer.name(), flood.ns);
    }
    Ok(())
}

fn slots(turn: &mut Turn) -> Result<()> {
    for log in SLOTS_LOG {
        let folder = folder()?;
        let idle = turn.peer.idle(turn.place)?;
        let memory = Some(crate::peers::ppt::STRIDE << log);
        let (mut program, attached) = turn.launch(idle, "stamped", folder.path(), memory)?;
        let flood = turn.flood(&mut program, "stamped", 1)?;
        let collected = (attached.stop)(&mut program)?;
        let what = (1_u64 << log).to_string();
        let kept = flood.rate * collected.events as f64 / flood.written as f64;
        turn.table.add(SLOTS, &what, "CPU time, ns an event", flood.ns);
        turn.table.add(SLOTS, &what, "kept at full rate, million events/s", kept / 1e6);
    }
    Ok(())
}

/// Ways of the program of this section, whose names end in a number.
fn ways(turn: &mut Turn, section: &'static str, way: &str, numbers: &[u64]) -> Result<()> {
    let mut program = Program::start(Command::new(turn.place.built("scaling")))?;
    let folder = folder()?;
    let attached = Ppt::Peak.attach(turn.place, &mut program, "", folder.path(), None)?;
    for number in numbers {
        let flood = turn.flood(&mut program, &format!("{way}{number}"), 1)?;
        turn.table.add(section, &number.to_string(), "ppt", flood.ns);
    }
    (attached.stop)(&mut program)?;
    Ok(())
}
