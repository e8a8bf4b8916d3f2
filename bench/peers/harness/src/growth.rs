//! How the collector's cost grows with what it watches: threads, rings, buffers, processes.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::sys::signal::{Signal, kill};
use serde_json::Value;
use tempfile::TempDir;

use crate::bench::{Bench, Turn, folder};
use crate::peer::{Place, compile};
use crate::process::{Daemon, cpu_time, pid, run};
use crate::program::Program;

pub const GROWTH: &str = "(i) how the collector grows, while one thread writes 2,500 events/s";
const RATE: u64 = 2_500;

/// From one process that ppt attaches to, to the next, at most.
const ATTACH_TIMEOUT: Duration = Duration::from_secs(30);

/// What there may be many of.
#[derive(Clone, Copy, PartialEq)]
enum Crowd {
    /// Threads that never write.
    Threads,
    /// Threads that wrote once, and so have a ring.
    Rings,
    /// Threads that take turns: every ring is a little busy.
    Turns,
    /// Libraries with a buffer each, in one process.
    Buffers,
    /// Processes with a buffer each, which wrote once.
    Processes,
}

const CROWDS: [Crowd; 5] =
    [Crowd::Threads, Crowd::Rings, Crowd::Turns, Crowd::Buffers, Crowd::Processes];

impl Crowd {
    fn name(self) -> &'static str {
        match self {
            Crowd::Threads => "threads that never write",
            Crowd::Rings => "threads that wrote once",
            Crowd::Turns => "threads that take turns",
            Crowd::Buffers => "buffers",
            Crowd::Processes => "processes",
        }
    }

    /// A process takes ppt eight descriptors, of which it often may have 20,000; a process has 1,024
    /// keys for the ends of threads, and a buffer takes one.
    fn sizes(self) -> &'static [u64] {
        match self {
            Crowd::Threads | Crowd::Rings | Crowd::Turns => &[1, 10, 100, 1_000, 10_000],
            Crowd::Buffers | Crowd::Processes => &[1, 10, 100, 1_000],
        }
    }

    /// How it comes to be, before anybody attaches.
    fn begin(self, size: u64, folder: &Path) -> String {
        match self {
            Crowd::Threads | Crowd::Rings | Crowd::Turns => format!("threads {size}"),
            Crowd::Buffers => format!("load {size} {}", folder.join("library").display()),
            Crowd::Processes => format!("children {}", size - 1),
        }
    }
}

/// The row of a crowd's CPU time.
pub fn cpu_of_idle_threads() -> String {
    row(Crowd::Rings, "CPU time, % of one CPU")
}

/// The row of how long ppt takes to end.
pub fn stop_with_threads() -> String {
    row(Crowd::Rings, "from Ctrl-C to the end, ms")
}

fn row(crowd: Crowd, what: &str) -> String {
    format!("{}: {what}", crowd.name())
}

pub fn build(place: &Place) -> Result<()> {
    let (sources, generated) = (place.of("growth"), place.build.join("generated"));
    let frame = generated.join("growth.frame");
    let fields = "i32 a, b; u64 c, d, e; time at;";
    fs::write(&frame, format!("option time tsc;\nframe growth {{ {fields} }}\n"))?;
    run(Command::new(place.ppt.join("pptc")).args(["--emit", "c"]).arg(&frame))?;
    let text = |path: std::path::PathBuf| path.display().to_string();
    let common = [text(frame.with_extension("c")), format!("-I{}", generated.display())];
    let output = |name| ["-o".into(), text(place.built(name))];
    let main = [text(sources.join("main.c"))].into_iter();
    compile("gcc", main.chain(common.clone()).chain(output("growth")))?;
    let library = ["-shared".into(), "-fPIC".into(), text(sources.join("library.c"))].into_iter();
    compile("gcc", library.chain(common).chain(output("growth-library")))
}

pub fn measure(bench: &mut Bench) {
    let takes_part = |peer: &dyn crate::peer::Peer| peer.name() == "ppt";
    // There are many sizes, and each figure is one of thousands.
    let rounds = bench.amount.rounds.min(2);
    bench.some_rounds(rounds, GROWTH, takes_part, |turn| {
        for crowd in CROWDS {
            for &size in crowd.sizes().iter().filter(|&&size| size <= turn.amount.crowd) {
                one(turn, crowd, size).with_context(|| format!("{size} {}", crowd.name()))?;
            }
        }
        Ok(())
    });
}

fn one(turn: &mut Turn, crowd: Crowd, size: u64) -> Result<()> {
    let (folder, frames) = (folder()?, RATE * turn.amount.growth_ms / 1000);
    // What the first look at the program costs is not what watching it costs.
    let before = RATE / 2;
    if crowd == Crowd::Buffers {
        libraries(turn.place, &folder, size)?;
    }
    let mut program = Program::start(Command::new(turn.place.built("growth")))?;
    program.ask(&crowd.begin(size, folder.path()))?;
    let file = folder.path().join("out.bin");
    let processes = if crowd == Crowd::Processes { size } else { 1 };
    let attached = attach(turn.place, program.pid(), processes, &file)?;
    let mut expected = before;
    if crowd != Crowd::Threads {
        program.ask("touch")?;
        expected += 1 + if crowd == Crowd::Processes { size - 1 } else { size };
    }
    program.ask(&format!("steady {RATE} {before}"))?;
    let (started, cpu) = (Instant::now(), cpu_time(&[attached.daemon.id()])?);
    let way = if crowd == Crowd::Turns { "turns" } else { "steady" };
    expected += program.ask(&format!("{way} {RATE} {frames}"))?.count("written")?;
    let spent = (cpu_time(&[attached.daemon.id()])? - cpu).as_secs_f64();
    let passed = started.elapsed().as_secs_f64();
    let memory = memory(attached.daemon.id())?;
    let Attaching { daemon, took } = attached;
    let stopping = Instant::now();
    end(daemon)?;
    let stop = stopping.elapsed().as_secs_f64() * 1e3;
    program.end()?;
    account(turn.place, &file, expected)?;
    let mut add = |what: &str, value| {
        turn.table.add(GROWTH, &row(crowd, what), &size.to_string(), value);
    };
    add("CPU time, % of one CPU", 100.0 * spent / passed);
    add("from Ctrl-C to the end, ms", stop);
    add("from the start to the last gate, ms", took);
    add("memory, MiB", memory);
    Ok(())
}

/// Copies of the library: one that is loaded twice is the same.
fn libraries(place: &Place, folder: &TempDir, count: u64) -> Result<()> {
    for number in 0..count {
        let copy = folder.path().join(format!("library.{number}"));
        fs::copy(place.built("growth-library"), copy)?;
    }
    Ok(())
}

struct Attaching {
    daemon: Daemon,
    /// Until the last process was attached to, ms.
    took: f64,
}

fn attach(place: &Place, of: u32, processes: u64, file: &Path) -> Result<Attaching> {
    let mut command = Command::new(place.ppt.join("ppt"));
    command.args(["attach", "-v", &of.to_string(), "-o"]).arg(file);
    if processes > 1 {
        command.arg("--follow");
    }
    let begun = Instant::now();
    let mut daemon = Daemon::start(command.stderr(Stdio::piped()))?;
    let said = BufReader::new(daemon.child().stderr.take().context("stderr")?).lines();
    let (send, lines) = channel();
    // To the end: it must not find its stderr full.
    std::thread::spawn(move || said.map_while(Result::ok).for_each(|line| _ = send.send(line)));
    let (mut all, mut attached) = (String::new(), 0);
    while attached < processes {
        match lines.recv_timeout(ATTACH_TIMEOUT) {
            Ok(line) if line.contains("attached:") => attached += 1,
            Ok(line) => all = format!("{all}\n{line}"),
            Err(_) => bail!("{attached} of {processes} attached to; {}", all.trim()),
        }
    }
    let took = begun.elapsed().as_secs_f64() * 1e3;
    Ok(Attaching { daemon, took })
}

fn end(mut daemon: Daemon) -> Result<()> {
    kill(pid(daemon.id()), Signal::SIGINT)?;
    // `Daemon::wait` looks now and then.
    let status = daemon.child().wait()?;
    if !status.success() {
        bail!("ppt attach ended with {status}");
    }
    Ok(())
}

/// All that is resident, in MiB: rings, too.
fn memory(of: u32) -> Result<f64> {
    let status = fs::read_to_string(format!("/proc/{of}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("VmRSS")?;
    let kib: f64 = line.trim().trim_end_matches(" kB").parse()?;
    Ok(kib / 1024.0)
}

/// Every frame is in the capture.
fn account(place: &Place, file: &Path, expected: u64) -> Result<()> {
    let info = run(Command::new(place.ppt.join("ppt")).args(["info", "--json"]).arg(file))?;
    let info: Value = serde_json::from_slice(&info.stdout)?;
    let buffers = info["buffers"].as_array().into_iter().flatten();
    let captured: u64 = buffers.filter_map(|buffer| buffer["frames"].as_u64()).sum();
    if captured != expected {
        bail!("{captured} frames of {expected} were captured");
    }
    Ok(())
}
