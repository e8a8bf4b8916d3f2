//! What can be measured: a program that writes, and something that collects.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, bail};

use crate::program::Program;

/// Where things are.
pub struct Place {
    /// The folder `bench`.
    pub source: PathBuf,
    /// What is built goes here.
    pub build: PathBuf,
    /// The folder of `ppt` and `pptc`.
    pub ppt: PathBuf,
}

impl Place {
    pub fn built(&self, name: &str) -> PathBuf {
        self.build.join(name)
    }

    /// The sources of a peer.
    pub fn of(&self, peer: &str) -> PathBuf {
        self.source.join("peers").join(peer)
    }
}

/// What was collected.
#[derive(Debug)]
pub struct Collected {
    /// Events that are there, counted in the output.
    pub events: u64,
    /// What the tool says is missing: events, if it counts them.
    pub said: Said,
    pub bytes: u64,
}

/// What a tool says of events that are missing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Said {
    /// So many.
    Events(u64),
    /// This many packets, buffers or moments lack some.
    Somewhere(u64),
    /// It has no word for it.
    Nothing,
}

/// Ends what collects.
pub type Stop<'a> = Box<dyn FnOnce(&mut Program) -> Result<Collected> + 'a>;

/// Something collects.
pub struct Attached<'a> {
    /// The processes that do, without the program itself.
    pub pids: Vec<u32>,
    /// How long the program was held, as the tool says, in µs.
    pub held: Option<f64>,
    /// Ends it, flushes, counts.
    pub stop: Stop<'a>,
}

/// A tool to measure.
pub trait Peer {
    fn name(&self) -> &'static str;

    /// How it is set up, in a line.
    fn about(&self) -> String;

    /// Debian packages that it needs.
    fn packages(&self) -> &'static [&'static str] {
        &[]
    }

    /// Builds its program and says its version. An error is the reason to skip it.
    fn build(&self, place: &Place) -> Result<String>;

    /// Ways to write, as its program names them.
    fn ways(&self) -> &'static [&'static str] {
        &["stamped"]
    }

    /// Starts its program; nobody collects.
    fn idle(&self, place: &Place) -> Result<Program> {
        Program::start(Command::new(place.built(self.name())))
    }

    /// Collects from a running program into an empty folder. `memory` bounds the buffers, in bytes
    /// a thread or CPU; None is what the tool does by itself.
    fn attach<'a>(
        &'a self,
        place: &'a Place,
        program: &mut Program,
        way: &str,
        folder: &'a Path,
        memory: Option<u64>,
    ) -> Result<Attached<'a>>;

    /// Collects from its program: from the idle one, unless the tool starts programs itself.
    fn launch<'a>(
        &'a self,
        place: &'a Place,
        mut program: Program,
        way: &str,
        folder: &'a Path,
        memory: Option<u64>,
    ) -> Result<(Program, Attached<'a>)> {
        let attached = self.attach(place, &mut program, way, folder, memory)?;
        Ok((program, attached))
    }

    /// Whether it can collect at all; if not, why.
    fn collects(&self) -> Result<()> {
        Ok(())
    }

    /// Whether it collects from a program that is already running, from outside.
    fn attaches(&self) -> bool {
        false
    }

    /// Whether its buffers can be sized.
    fn sizes(&self) -> bool {
        false
    }

    /// The command that turns what is in a folder into text on stdout.
    fn to_text(&self, _: &Place, _: &Path) -> Option<Command> {
        None
    }
}

/// Compiles a program of C or C++.
pub fn compile(compiler: &str, args: impl IntoIterator<Item = String>) -> Result<()> {
    let standard = if compiler == "g++" { "-std=c++17" } else { "-std=gnu11" };
    crate::process::run(
        Command::new(compiler)
            .args([standard, "-O2", "-Wall", "-Wextra", "-pthread"])
            // Where a loop happens to lie would otherwise show.
            .args(["-falign-functions=64", "-falign-loops=64"])
            .args(args),
    )?;
    Ok(())
}

/// Builds a peer in Rust and says the version of the crate that it measures.
pub fn cargo(place: &Place, peer: &str, krate: &str) -> Result<String> {
    let manifest = place.source.join("peers/Cargo.toml");
    let package = format!("peer-{peer}");
    crate::process::run(
        Command::new("cargo")
            .args(["build", "--release", "--quiet", "--locked", "-p", &package, "--manifest-path"])
            .arg(&manifest)
            .arg("--target-dir")
            .arg(&place.build),
    )?;
    std::fs::copy(place.build.join("release").join(package), place.built(peer))?;
    let lock = std::fs::read_to_string(manifest.with_file_name("Cargo.lock"))?;
    let of = format!("name = \"{krate}\"\nversion = \"");
    match lock.split_once(&of).and_then(|(_, rest)| rest.split_once('"')) {
        Some((version, _)) => Ok(format!("{krate} {version}")),
        None => bail!("{krate} is not in Cargo.lock"),
    }
}

/// Peers that collect inside of the program, into a file, when told `on`.
pub fn inside<'a>(
    program: &mut Program,
    way: &str,
    folder: &'a Path,
    count: fn(&Path) -> Result<u64>,
) -> Result<Attached<'a>> {
    let file = folder.join("collected");
    program.ask(&format!("on {way} {}", file.display()))?;
    let stop = move |program: &mut Program| {
        let answer = program.ask("off")?;
        let said = answer.may("lost").map_or(Said::Nothing, |may| Said::Events(may as u64));
        let events = count(&file)?;
        Ok(Collected { events, said, bytes: crate::process::bytes_in(&file) })
    };
    Ok(Attached { pids: Vec::new(), held: None, stop: Box::new(stop) })
}
