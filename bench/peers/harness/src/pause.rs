//! How long a busy thread pauses while it is attached to, compared with how long it pauses anyway.
//!
//! A machine that serves several takes its CPUs away for milliseconds, and so does a scheduler. So:
//! hundreds of attaches, and as many moments of the same length without one; a thread of real-time
//! priority, where that is allowed; and what was stolen or switched away during a moment does not
//! count.

use std::fs::read_to_string;
use std::time::{Duration, Instant};

use anyhow::Result;

use crate::bench::{Bench, Turn, folder};
use crate::program::Program;

pub const PAUSE: &str = "(h) the longest pause of a busy thread, of hundreds of attaches";

/// What the thread does between its looks at the clock.
const BUSY: [(&str, &str); 2] =
    [("spin", "it only looks at the clock"), ("churn", "it maps, touches and unmaps pages")];

const ATTACHED: &str = "attached to";

fn row(busy: usize, when: &str, part: &str) -> String {
    format!("{}, {when}, {part}, µs", BUSY[busy].1)
}

/// The row of a thread that only looks at the clock while it is attached to: `median` or `p99`.
pub fn longest(part: &str) -> String {
    row(0, ATTACHED, part)
}

/// The longest moment: a real-time thread that took more than 95 % of a second would be stopped.
const MOMENT: Duration = Duration::from_millis(450);

/// The pauses of one peer by what its thread did, with and without an attach.
struct Found {
    peer: String,
    busy: usize,
    attached: Pauses,
    calm: Pauses,
}

#[derive(Default)]
struct Pauses {
    /// Of moments that count, in µs.
    longest: Vec<f64>,
    disturbed: usize,
}

pub fn measure(bench: &mut Bench) {
    let mut all: Vec<Found> = Vec::new();
    let each = bench.amount.pauses.div_ceil(bench.amount.rounds);
    let takes_part = |peer: &dyn crate::peer::Peer| peer.attaches();
    bench.rounds(PAUSE, takes_part, |turn| {
        for busy in 0..BUSY.len() {
            let peer = turn.peer.name().to_owned();
            let known = all.iter().position(|it| it.peer == peer && it.busy == busy);
            let index = known.unwrap_or_else(|| {
                let (attached, calm) = (Pauses::default(), Pauses::default());
                all.push(Found { peer, busy, attached, calm });
                all.len() - 1
            });
            moments(turn, each, &mut all[index])?;
        }
        Ok(())
    });
    for Found { peer, busy, attached, calm } in all {
        for (pauses, when) in [(calm, "nobody attaching"), (attached, ATTACHED)] {
            let what = |part: &str| row(busy, when, part);
            let note =
                format!("{} moments, {} more disturbed", pauses.longest.len(), pauses.disturbed);
            for (part, name) in [(0.5, "median"), (0.99, "p99")] {
                if let Some(value) = quantile(&pauses.longest, part) {
                    bench.table.add(PAUSE, &what(name), &peer, value);
                    bench.table.note(PAUSE, &what(name), &peer, note.clone());
                }
            }
        }
    }
}

/// Attaches again and again; after each, a moment as long without.
fn moments(turn: &mut Turn, count: usize, found: &mut Found) -> Result<()> {
    let mut program = turn.peer.idle(turn.place)?;
    let command = BUSY[found.busy].0;
    for _ in 0..count {
        let folder = folder()?;
        let (stolen, start) = (stolen(), Instant::now());
        program.ask(command)?;
        let attached;
        (program, attached) = turn.launch(program, "stamped", folder.path(), None)?;
        let length = start.elapsed();
        found.attached.add(&mut program, stolen)?;
        (attached.stop)(&mut program)?;
        rest(length);

        let stolen = self::stolen();
        program.ask(command)?;
        std::thread::sleep(length.min(MOMENT));
        found.calm.add(&mut program, stolen)?;
        rest(length);
    }
    Ok(())
}

/// Leaves the CPU to others for as long as the thread had it.
fn rest(length: Duration) {
    std::thread::sleep(length.min(MOMENT));
}

impl Pauses {
    fn add(&mut self, program: &mut Program, stolen_before: u64) -> Result<()> {
        let answer = program.ask("unspin")?;
        if answer.count("switches")? > 0 || stolen() > stolen_before {
            self.disturbed += 1;
        } else {
            self.longest.push(answer.get("gap")? / 1e3);
        }
        Ok(())
    }
}

/// Ticks that the hypervisor took from the first CPU, which is that of the busy thread.
fn stolen() -> u64 {
    let stat = read_to_string("/proc/stat").unwrap_or_default();
    let first = stat.lines().find(|line| line.starts_with("cpu") && !line.starts_with("cpu "));
    first.and_then(|first| first.split_whitespace().nth(8)?.parse().ok()).unwrap_or(0)
}

fn quantile(values: &[f64], part: f64) -> Option<f64> {
    let mut all = values.to_vec();
    all.sort_by(f64::total_cmp);
    let index = (all.len() as f64 * part) as usize;
    all.get(index.min(all.len().checked_sub(1)?)).copied()
}
