//! The peers that take part, and rounds over them.

use std::path::Path;

use anyhow::{Result, bail};
use tempfile::TempDir;

use crate::peer::{Attached, Collected, Peer, Place};
use crate::program::Program;
use crate::table::Table;

/// How much of everything.
pub struct Amount {
    pub rounds: usize,
    /// Of writing at full rate.
    pub flood_ns: f64,
    /// Of writing at a steady rate.
    pub steady_seconds: u64,
    /// Of bursts, and of a rate without a pause.
    pub follow_seconds: u64,
    /// Of a rate of a million a second, whose events become text.
    pub text_seconds: u64,
    /// Attaches in all rounds, for how long they pause a thread.
    pub pauses: usize,
    /// The most threads, or others, that are watched.
    pub crowd: u64,
    /// How long each number of them is.
    pub growth_ms: u64,
    /// Frames that questions are asked of.
    pub asked: u64,
}

pub struct Bench {
    pub place: Place,
    pub peers: Vec<Box<dyn Peer>>,
    pub amount: Amount,
    pub table: Table,
    /// Who does not take part, and why.
    pub skipped: Vec<(String, String)>,
    /// Who is not installed, which is no fault.
    pub absent: Vec<(String, String)>,
}

/// What writing at full rate came to.
pub struct Flood {
    /// CPU time an event.
    pub ns: f64,
    /// Events a second, all threads.
    pub rate: f64,
    pub written: u64,
}

/// A peer in a round.
pub struct Turn<'a> {
    pub place: &'a Place,
    pub peer: &'a dyn Peer,
    pub amount: &'a Amount,
    pub table: &'a mut Table,
}

impl Bench {
    /// Round after round, each peer after the other, so that what changes with time hits all. Who
    /// fails is struck from the section, and named.
    pub fn rounds(
        &mut self,
        section: &'static str,
        takes_part: impl Fn(&dyn Peer) -> bool,
        measure: impl FnMut(&mut Turn) -> Result<()>,
    ) {
        self.some_rounds(self.amount.rounds, section, takes_part, measure);
    }

    /// The same, with a number of rounds.
    pub fn some_rounds(
        &mut self,
        rounds: usize,
        section: &'static str,
        takes_part: impl Fn(&dyn Peer) -> bool,
        mut measure: impl FnMut(&mut Turn) -> Result<()>,
    ) {
        let mut failed: Vec<&str> = Vec::new();
        for round in 1..=rounds {
            for peer in self.peers.iter().filter(|peer| takes_part(peer.as_ref())) {
                if failed.contains(&peer.name()) {
                    continue;
                }
                eprint!("\r\x1b[K{section}: round {round} of {rounds}, {}", peer.name());
                let (place, amount, table) = (&self.place, &self.amount, &mut self.table);
                let mut turn = Turn { place, peer: peer.as_ref(), amount, table };
                if let Err(error) = measure(&mut turn) {
                    self.table.strike(section, peer.name());
                    self.skipped.push((peer.name().into(), format!("{section}: {error:#}")));
                    failed.push(peer.name());
                }
            }
        }
        eprint!("\r\x1b[K");
    }
}

impl<'p> Turn<'p> {
    pub fn launch<'a>(
        &self,
        idle: Program,
        way: &str,
        folder: &'a Path,
        memory: Option<u64>,
    ) -> Result<(Program, Attached<'a>)>
    where
        'p: 'a,
    {
        self.peer.launch(self.place, idle, way, folder, memory)
    }

    /// Writes at full rate for about the time meant.
    pub fn flood(&self, program: &mut Program, way: &str, threads: u64) -> Result<Flood> {
        let trial = program.ask(&format!("write {way} 10000 {threads}"))?;
        let ns = trial.get("ns")?.max(0.1);
        let count = (self.amount.flood_ns / ns).clamp(20_000.0, 20e6) as u64;
        let answer = program.ask(&format!("write {way} {count} {threads}"))?;
        let written = trial.count("written")? + answer.count("written")?;
        Ok(Flood { ns: answer.get("ns")?, rate: answer.get("rate")?, written })
    }
}

/// Events arrived, and no more than were written.
pub fn believe(collected: &Collected, written: u64) -> Result<()> {
    if collected.events == 0 {
        bail!("no event arrived of {written} written");
    }
    if collected.events > written {
        bail!("{} events arrived of {written} written", collected.events);
    }
    Ok(())
}

/// A folder for what is collected, gone when dropped.
pub fn folder() -> Result<TempDir> {
    Ok(tempfile::Builder::new().prefix("ppt-bench-").tempdir()?)
}
