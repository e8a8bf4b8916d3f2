//! CPU time of what collects, at steady rates.

use std::time::Instant;

use anyhow::Result;

use crate::bench::{Bench, Turn, believe, folder};
use crate::process::cpu_time;

pub const LOAD: &str = "(c) CPU time of what collects, % of one CPU (user and system)";
pub const KEPT: &str = "(b) lost at steady rates, default buffers, %";

pub const RATES: [(u64, &str); 3] =
    [(2_500, "2,500 events/s"), (100_000, "100,000 events/s"), (1_000_000, "1,000,000 events/s")];

pub fn measure(bench: &mut Bench) {
    bench.rounds(
        LOAD,
        |peer| peer.collects().is_ok(),
        |turn| RATES.iter().try_for_each(|&(rate, what)| one(turn, rate, what)),
    );
}

fn one(turn: &mut Turn, rate: u64, what: &str) -> Result<()> {
    let (name, seconds) = (turn.peer.name(), turn.amount.steady_seconds);
    let folder = folder()?;
    let idle = turn.peer.idle(turn.place)?;
    let (mut program, attached) = turn.launch(idle, "stamped", folder.path(), None)?;
    // The first look at the program, and the first file, are not what collecting costs.
    let before = program.ask(&format!("steady stamped {rate} 1"))?;
    let (started, cpu) = (Instant::now(), cpu_time(&attached.pids)?);
    let answer = program.ask(&format!("steady stamped {rate} {seconds}"))?;
    let outside = (cpu_time(&attached.pids)? - cpu).as_secs_f64();
    let inside = (answer.get("process")? - answer.get("writer")?) / 1e9;
    let passed = started.elapsed().as_secs_f64();
    let collected = (attached.stop)(&mut program)?;
    let written = before.count("written")? + answer.count("written")?;
    believe(&collected, written)?;
    turn.table.add(LOAD, what, name, 100.0 * (outside + inside) / passed);
    let reached = answer.get("written")? / passed;
    if reached < 0.95 * rate as f64 {
        turn.table.note(LOAD, what, name, format!("only {reached:.0} events/s were reached"));
    }
    let lost = 100.0 * (written - collected.events) as f64 / written as f64;
    turn.table.add(KEPT, what, name, lost);
    Ok(())
}
