//! What attaching does to a program that runs.

use std::time::Duration;

use anyhow::Result;

use crate::bench::{Bench, Turn, folder};

pub const ATTACH: &str = "(e) attaching to a running program";

pub const FIRST: &str = "first event of a thread, on, ns";

/// How long what was attached is left alone.
const SETTLE_TIME: Duration = Duration::from_millis(300);

pub fn measure(bench: &mut Bench) {
    bench.rounds(ATTACH, |peer| peer.attaches(), one);
}

fn one(turn: &mut Turn) -> Result<()> {
    let name = turn.peer.name();
    let mut idle = turn.peer.idle(turn.place)?;
    let off = idle.ask("first stamped")?.get("first")?;

    let folder_first = folder()?;
    let (mut program, attached) = turn.launch(idle, "stamped", folder_first.path(), None)?;
    std::thread::sleep(SETTLE_TIME);
    let (first, held) = (program.ask("first stamped")?.get("first")?, attached.held);
    (attached.stop)(&mut program)?;

    let mut idle = turn.peer.idle(turn.place)?;
    idle.ask("block")?;
    let folder_blocked = folder()?;
    let (mut program, attached) = turn.launch(idle, "stamped", folder_blocked.path(), None)?;
    std::thread::sleep(SETTLE_TIME / 3);
    let interrupted = program.ask("unblock")?.get("eintr")?;
    let prepared = program.ask("prepared stamped")?.get("first")?;
    (attached.stop)(&mut program)?;

    let table = &mut turn.table;
    table.add(ATTACH, "interruptions of a blocked epoll_wait", name, interrupted);
    if let Some(held) = held {
        table.add(ATTACH, "the target is held, as the tool says, µs", name, held);
    }
    table.add(ATTACH, "first event of a thread, off, ns", name, off);
    table.add(ATTACH, FIRST, name, first);
    if name == "ppt" {
        table.add(ATTACH, "first event of a thread, on, after prepare, ns", name, prepared);
    }
    Ok(())
}
