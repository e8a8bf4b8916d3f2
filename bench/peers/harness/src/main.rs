//! `bench/run`: ppt beside its peers, measured in one run, in one table.

mod bench;
mod cost;
mod disturbance;
mod floor;
mod follow;
mod goals;
mod growth;
mod load;
mod machine;
mod page;
mod pause;
mod peer;
mod peers;
mod plot;
mod process;
mod program;
mod questions;
mod scaling;
mod table;
mod text;

use std::fmt::Write;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result};
use clap::{Parser, ValueEnum};

use crate::bench::{Amount, Bench};
use crate::peer::{Peer, Place};
use crate::table::Table;

/// Measures ppt beside its peers: one run, one table.
#[derive(Parser)]
#[command(name = "bench/run")]
struct Args {
    /// Only these peers, and ppt [default: all].
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    only: Vec<String>,
    /// Only these parts [default: all].
    #[arg(long, value_name = "PART,…", value_delimiter = ',')]
    parts: Vec<Part>,
    /// Little of everything: to see whether it runs.
    #[arg(long)]
    quick: bool,
    /// Quick, and only the floor, what ppt costs, and a little growth; fails if that cannot be
    /// measured.
    #[arg(long)]
    check: bool,
    /// Measure how cost grows with threads, slots, sizes and buffers instead, and draw it here.
    #[arg(long, value_name = "FOLDER")]
    scaling: Option<PathBuf>,
    /// Rounds over all peers.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    rounds: Option<u16>,
    /// Attaches of the part `pause`, in all rounds.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pauses: Option<u16>,
    /// All figures, by round, as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Put the table into docs/measured/performance.md.
    #[arg(long)]
    page: bool,
    /// Install nothing.
    #[arg(long)]
    no_install: bool,
    /// The folder `bench`.
    #[arg(long, hide = true)]
    source: PathBuf,
    /// What is built goes here.
    #[arg(long, hide = true)]
    build: PathBuf,
    /// The folder of ppt and pptc.
    #[arg(long, hide = true)]
    ppt: PathBuf,
}

/// What is measured.
#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Part {
    /// 64 bytes beside the stores that no ring can do without.
    Floor,
    /// What an event costs, what is lost at full rate, its bytes.
    Cost,
    /// CPU time of what collects, at steady rates.
    Load,
    /// What attaching does to a program.
    Attach,
    /// How long it pauses a busy thread, beside how long that pauses anyway.
    Pause,
    /// What ppt loses of bursts, and by the paper's rate.
    Follow,
    /// How the collector grows: threads, rings, buffers, processes.
    Growth,
    /// From the output to text.
    Text,
    /// From a capture to an answer: statistics, SQL, exports, beside tools that read the exports.
    Analysis,
}

fn main() -> ExitCode {
    let args = Args::parse();
    match run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench/run: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> Result<()> {
    let place =
        Place { source: args.source.clone(), build: args.build.clone(), ppt: args.ppt.clone() };
    std::fs::create_dir_all(place.build.join("generated"))?;
    if !args.check {
        room()?;
    }
    let machine = machine::Machine::this();
    let part = |it| match args.check {
        true => matches!(it, Part::Floor | Part::Cost | Part::Growth | Part::Analysis),
        false if args.scaling.is_some() => false,
        false => args.parts.is_empty() || args.parts.contains(&it),
    };
    let (peers, versions, skipped) = ready(args, &place)?;
    let (table, amount) = (Table::default(), amount(args));
    let mut bench = Bench { place, peers, amount, table, skipped, absent: Vec::new() };
    if part(Part::Floor) {
        floor::build(&bench.place)?;
        floor::measure(&mut bench);
    }
    if part(Part::Cost) {
        cost::measure(&mut bench);
    }
    if part(Part::Load) {
        load::measure(&mut bench);
    }
    if part(Part::Attach) {
        disturbance::measure(&mut bench);
    }
    if part(Part::Pause) {
        pause::measure(&mut bench);
    }
    if part(Part::Follow) {
        follow::measure(&mut bench);
    }
    if part(Part::Growth) {
        growth::build(&bench.place)?;
        growth::measure(&mut bench);
    }
    if part(Part::Text) {
        text::measure(&mut bench);
    }
    if part(Part::Analysis) {
        questions::build(&bench.place)?;
        questions::measure(&mut bench);
    }
    if let Some(plots) = &args.scaling {
        scaling::build(&bench.place)?;
        scaling::measure(&mut bench, plots)?;
    }
    if args.check && !bench.skipped.is_empty() {
        anyhow::bail!("{}", bench.skipped[0].1);
    }
    bench.skipped.append(&mut bench.absent);
    let goals = goals::goals(&bench.table);
    let mut out = machine.print();
    for (name, version, about) in &versions {
        let _ = writeln!(out, "{name:<16} {version}: {about}");
    }
    let _ = writeln!(out, "{} rounds, the peers in turn", bench.amount.rounds);
    let _ = write!(out, "{}{}", bench.table, goals::print(&goals));
    if !bench.skipped.is_empty() {
        let _ = writeln!(out, "\nNot measured");
    }
    for (name, why) in &bench.skipped {
        let _ = writeln!(out, "    {name:<16} {why}");
    }
    print!("{out}");
    if let Some(file) = &args.json {
        let all = serde_json::json!({
            "machine": machine, "versions": versions, "rows": bench.table.rows, "goals": goals,
            "skipped": bench.skipped,
        });
        std::fs::write(file, serde_json::to_vec_pretty(&all)?)
            .with_context(|| file.display().to_string())?;
    }
    if args.page {
        page::put(&args.source.join("../docs/measured/performance.md"), &out)?;
    }
    Ok(())
}

/// What peers write at most, together, and some.
const ROOM: u64 = 4 << 30;

fn room() -> Result<()> {
    let folder = std::env::temp_dir();
    let there = nix::sys::statvfs::statvfs(&folder)?;
    let free = there.blocks_available() * there.fragment_size();
    if free < ROOM {
        let (free, folder) = (free >> 20, folder.display());
        anyhow::bail!(
            "{free} MiB are free in {folder}, 4096 are needed; TMPDIR names another folder"
        );
    }
    Ok(())
}

fn amount(args: &Args) -> Amount {
    let mut amount = Amount {
        rounds: 5,
        flood_ns: 0.3e9,
        steady_seconds: 3,
        follow_seconds: 5,
        text_seconds: 10,
        pauses: 200,
        crowd: 10_000,
        growth_ms: 2000,
        asked: 10_000_000,
    };
    if args.quick || args.check {
        amount = Amount {
            rounds: 2,
            flood_ns: 0.02e9,
            steady_seconds: 1,
            follow_seconds: 1,
            text_seconds: 1,
            pauses: 4,
            crowd: if args.check { 10 } else { 100 },
            growth_ms: 100,
            asked: 50_000,
        };
    }
    if let Some(rounds) = args.rounds {
        amount.rounds = rounds.into();
    }
    if let Some(pauses) = args.pauses {
        amount.pauses = pauses.into();
    }
    amount
}

type Ready = (Vec<Box<dyn Peer>>, Vec<(String, String, String)>, Vec<(String, String)>);

/// Installs and builds the peers that were asked for: those that can take part, their versions and
/// settings, and why the others cannot.
fn ready(args: &Args, place: &Place) -> Result<Ready> {
    let all = peers::all();
    for name in &args.only {
        if !all.iter().any(|it| it.name() == name) {
            let names: Vec<_> = all.iter().map(|it| it.name()).collect();
            anyhow::bail!("no peer is called {name}; there are {}", names.join(", "));
        }
    }
    let wanted = |name: &str| match args.check {
        true => name == "ppt",
        // The others have nothing to scale.
        false if args.scaling.is_some() => matches!(name, "ppt" | "lttng-discard"),
        false => name == "ppt" || args.only.is_empty() || args.only.iter().any(|only| only == name),
    };
    let all: Vec<_> = all.into_iter().filter(|it| wanted(it.name())).collect();
    if !args.no_install && !args.check {
        install(&all);
    }
    let (mut peers, mut versions, mut skipped) = (Vec::new(), Vec::new(), Vec::new());
    for peer in all {
        let name = peer.name().to_owned();
        eprint!("\r\x1b[Kbuild {name}");
        match peer.build(place) {
            Ok(version) => {
                versions.push((name.clone(), version, peer.about()));
                if let Err(why) = peer.collects() {
                    skipped.push((name, format!("on: {why:#}")));
                }
                peers.push(peer);
            }
            Err(why) if name == "ppt" => return Err(why),
            Err(why) => skipped.push((name, format!("{why:#}"))),
        }
    }
    eprint!("\r\x1b[K");
    Ok((peers, versions, skipped))
}

/// Debian packages that are missing, where we may; without them a peer says what it lacks.
fn install(peers: &[Box<dyn Peer>]) {
    let installed = |package: &str| {
        let status = process::line("dpkg-query", &["-W", "-f=${Status}", package]);
        status.is_ok_and(|status| status.ends_with(" installed"))
    };
    let mut missing: Vec<&str> =
        peers.iter().flat_map(|peer| peer.packages()).copied().filter(|it| !installed(it)).collect();
    missing.dedup();
    if missing.is_empty() {
        return;
    }
    if !nix::unistd::geteuid().is_root() {
        eprintln!("not installed, and only root may: {}", missing.join(" "));
        return;
    }
    let apt = |args: &[&str]| {
        process::run(Command::new("apt-get").env("DEBIAN_FRONTEND", "noninteractive").args(args))
    };
    eprintln!("installing {}", missing.join(" "));
    let done = apt(&["update", "-qq"]).and_then(|_| {
        apt(&[&["install", "-y", "-qq", "--no-install-recommends"], &missing[..]].concat())
    });
    if let Err(error) = done {
        eprintln!("{error:#}");
    }
}
