//! What an event costs the program that writes it, what is lost at full rate, and its bytes.

use anyhow::Result;

use crate::bench::{Bench, Flood, Turn, believe, folder};
use crate::peer::{Collected, Said};

pub const COST: &str = "(a) CPU time of the writer, ns an event, at full rate";
pub const LOSS: &str = "(b) lost at full rate, % of what the program counted itself";
pub const KEPT: &str = "(b) kept at full rate, million events/s";
pub const BYTES: &str = "(d) bytes an event in the output";

/// Buffers of the same size for those whose buffers can be sized: bytes a thread or CPU.
const EQUAL: u64 = 16 << 20;

/// What cost and loss of the floor and of the peers are called.
pub fn label(state: &str, way: &str, threads: u64) -> String {
    let way = if way == "bare" { "no time" } else { "one time" };
    format!("{state}, {way}, {} thread{}", threads, if threads > 1 { "s" } else { "" })
}

pub fn measure(bench: &mut Bench) {
    // The first name strikes all three sections of a peer that fails.
    bench.rounds(
        COST,
        |_| true,
        |turn| {
            for way in turn.peer.ways() {
                for threads in [1, 2] {
                    one(turn, way, threads)?;
                }
            }
            Ok(())
        },
    );
    bench.rounds(
        LOSS,
        |peer| peer.sizes(),
        |turn| {
            let folder = folder()?;
            let idle = turn.peer.idle(turn.place)?;
            let (mut program, attached) =
                turn.launch(idle, "stamped", folder.path(), Some(EQUAL))?;
            let flood = turn.flood(&mut program, "stamped", 1)?;
            let collected = (attached.stop)(&mut program)?;
            lost(turn, &label("16 MiB of buffers", "stamped", 1), &collected, &flood)
        },
    );
}

fn one(turn: &mut Turn, way: &str, threads: u64) -> Result<()> {
    let name = turn.peer.name();
    let mut idle = turn.peer.idle(turn.place)?;
    let off = turn.flood(&mut idle, way, threads)?;
    turn.table.add(COST, &label("off", way, threads), name, off.ns);
    if turn.peer.collects().is_err() {
        return Ok(());
    }
    let folder = folder()?;
    let (mut program, attached) = turn.launch(idle, way, folder.path(), None)?;
    let on = turn.flood(&mut program, way, threads)?;
    let collected = (attached.stop)(&mut program)?;
    believe(&collected, on.written)?;
    turn.table.add(COST, &label("on", way, threads), name, on.ns);
    if threads == 1 {
        let bytes = collected.bytes as f64 / collected.events as f64;
        let what = if way == "bare" { "no time" } else { "one time" };
        turn.table.add(BYTES, what, name, bytes);
    }
    lost(turn, &label("default buffers", way, threads), &collected, &on)
}

fn lost(turn: &mut Turn, what: &str, collected: &Collected, flood: &Flood) -> Result<()> {
    let written = flood.written;
    believe(collected, written)?;
    let lost = written - collected.events;
    turn.table.add(LOSS, what, turn.peer.name(), 100.0 * lost as f64 / written as f64);
    let kept = flood.rate * collected.events as f64 / written as f64;
    turn.table.add(KEPT, what, turn.peer.name(), kept / 1e6);
    let says = match collected.said {
        Said::Events(said) if said == lost => "states it exactly".to_owned(),
        Said::Events(said) => format!("states {said} of {lost}"),
        Said::Somewhere(times) => format!("says that some are missing, {times} times"),
        Said::Nothing if lost == 0 => String::new(),
        Said::Nothing => "says nothing".to_owned(),
    };
    turn.table.note(LOSS, what, turn.peer.name(), says);
    Ok(())
}
