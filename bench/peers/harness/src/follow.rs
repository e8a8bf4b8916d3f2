//! What the listener follows: bursts, and a rate without a pause.

use std::time::Instant;

use anyhow::Result;

use crate::bench::{Bench, Turn, believe, folder};
use crate::peers::ppt::STRIDE;
use crate::process::cpu_time;

pub const FOLLOW: &str = "(g) lost of what is written in bursts, or without a pause, %";
pub const FOLLOW_CPU: &str = "(g) CPU time of what collects meanwhile, % of one CPU";

/// The pattern that is not one.
pub const STEADY: &str = "5 million/s without a pause, 2^20 slots";

/// A pattern of writing; without a pause where it is `on` all the time. Times in µs.
struct Pattern {
    what: &'static str,
    slots: u64,
    rate: u64,
    on: u64,
    period: u64,
}

const PATTERNS: [Pattern; 5] = [
    Pattern {
        what: "1 million/s for 50 ms each second, 2^14 slots",
        slots: 1 << 14,
        rate: 1_000_000,
        on: 50_000,
        period: 1_000_000,
    },
    Pattern {
        what: "5 million/s for 20 ms each second, 2^14 slots",
        slots: 1 << 14,
        rate: 5_000_000,
        on: 20_000,
        period: 1_000_000,
    },
    Pattern {
        what: "5 million/s for 20 ms each second, 2^18 slots",
        slots: 1 << 18,
        rate: 5_000_000,
        on: 20_000,
        period: 1_000_000,
    },
    Pattern {
        what: "20 million/s for 5 ms each 0.2 s, 2^18 slots",
        slots: 1 << 18,
        rate: 20_000_000,
        on: 5_000,
        period: 200_000,
    },
    Pattern { what: STEADY, slots: 1 << 20, rate: 5_000_000, on: 100_000, period: 100_000 },
];

pub fn measure(bench: &mut Bench) {
    bench.rounds(
        FOLLOW,
        |peer| peer.name().starts_with("ppt"),
        |turn| PATTERNS.iter().try_for_each(|pattern| one(turn, pattern)),
    );
}

fn one(turn: &mut Turn, pattern: &Pattern) -> Result<()> {
    let (name, &Pattern { what, slots, rate, on, period }) = (turn.peer.name(), pattern);
    let folder = folder()?;
    let idle = turn.peer.idle(turn.place)?;
    let memory = Some(slots * STRIDE);
    let (mut program, attached) = turn.launch(idle, "stamped", folder.path(), memory)?;
    let count = (turn.amount.follow_seconds * 1_000_000 / period).max(1);
    let (started, cpu) = (Instant::now(), cpu_time(&attached.pids)?);
    let answer = program.ask(&format!("bursts stamped {rate} {on} {period} {count}"))?;
    let cpu = (cpu_time(&attached.pids)? - cpu).as_secs_f64() / started.elapsed().as_secs_f64();
    let collected = (attached.stop)(&mut program)?;
    let written = answer.count("written")?;
    believe(&collected, written)?;
    let lost = 100.0 * (written - collected.events) as f64 / written as f64;
    turn.table.add(FOLLOW, what, name, lost);
    turn.table.add(FOLLOW_CPU, what, name, 100.0 * cpu);
    let reached = answer.get("rate")?;
    if reached < 0.95 * rate as f64 {
        turn.table.note(FOLLOW, what, name, format!("only {reached:.0} events/s were reached"));
    }
    Ok(())
}
