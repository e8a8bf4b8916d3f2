//! Turning what was collected into text.

use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Result, bail};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use tempfile::TempDir;

use crate::bench::{Bench, Turn, believe, folder};
use crate::peer::Collected;

pub const TEXT: &str = "(f) from the output to text, ns an event";
const RATE: u64 = 1_000_000;

pub fn measure(bench: &mut Bench) {
    let mut there: Vec<(&'static str, TempDir, u64)> = Vec::new();
    bench.rounds(
        TEXT,
        |_| true,
        |turn| {
            let name = turn.peer.name();
            if !there.iter().any(|it| it.0 == name) {
                let folder = folder()?;
                if turn.peer.to_text(turn.place, folder.path()).is_none() {
                    return Ok(());
                }
                let collected = collect(turn, folder.path())?;
                let command = turn.peer.to_text(turn.place, folder.path());
                let lines = command.map(lines_of).transpose()?.unwrap_or(0);
                if lines < collected.events {
                    bail!("{lines} lines of text of {} events", collected.events);
                }
                there.push((name, folder, collected.events));
            }
            let Some((_, folder, events)) = there.iter().find(|it| it.0 == name) else {
                return Ok(());
            };
            let Some(mut command) = turn.peer.to_text(turn.place, folder.path()) else {
                return Ok(());
            };
            let (started, cpu) = (Instant::now(), children_cpu()?);
            let status = command
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status()?;
            if !status.success() {
                bail!("{}: {status}", command.get_program().display());
            }
            let (wall, cpu) = (started.elapsed().as_secs_f64(), children_cpu()? - cpu);
            turn.table.add(TEXT, "wall", name, wall * 1e9 / *events as f64);
            turn.table.add(TEXT, "CPU time, all threads", name, cpu * 1e9 / *events as f64);
            turn.table.note(TEXT, "wall", name, format!("of {events} events"));
            Ok(())
        },
    );
}

/// Fills a folder.
fn collect(turn: &Turn, folder: &Path) -> Result<Collected> {
    let idle = turn.peer.idle(turn.place)?;
    let (mut program, attached) = turn.launch(idle, "stamped", folder, None)?;
    let seconds = turn.amount.text_seconds;
    let answer = program.ask(&format!("steady stamped {RATE} {seconds}"))?;
    let collected = (attached.stop)(&mut program)?;
    believe(&collected, answer.count("written")?)?;
    Ok(collected)
}

/// Seconds of CPU time of children that have ended.
fn children_cpu() -> Result<f64> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    Ok((usage.user_time() + usage.system_time()).num_microseconds() as f64 / 1e6)
}

/// Lines that a command prints.
fn lines_of(mut command: Command) -> Result<u64> {
    let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn()?;
    let (mut buffer, mut lines) = (vec![0; 1 << 20], 0);
    let Some(stdout) = &mut child.stdout else { bail!("no stdout") };
    loop {
        match stdout.read(&mut buffer)? {
            0 => break,
            read => lines += buffer[..read].iter().filter(|&&buffer| buffer == b'\n').count() as u64,
        }
    }
    child.wait()?;
    Ok(lines)
}
