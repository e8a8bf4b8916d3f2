//! What a frame costs the program that writes it, and what capturing costs beside it.
//!
//! ```text
//! $ cargo bench --bench writer
//! ```
//!
//! Compiles `writer.c` with the generated code (and the same frame in C++ and Rust), runs it, and attaches and detaches `ppt` around its
//! measurements, round after round, so that off and on see the same process and the same machine.
//! Nothing here passes or fails.

#[path = "../tests/instructions/program.rs"]
mod program;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::time::ClockId;
use nix::unistd::Pid;

const ROUNDS: usize = 9;
/// The paper's load: frames a second, and for how long.
const STEADY: (u32, u32) = (2_500, 8);

const TICKS: &str = include_str!("ticks.frame");
const EVENTS: &str = include_str!("events.frame");
const PROGRAM: &str = include_str!("writer.c");
const COMMANDS: &str = include_str!("commands.h");

fn main() {
    // `cargo test --benches` runs it, too.
    if !std::env::args().any(|arg| arg == "--bench") {
        println!("measures only when run by `cargo bench`");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let compiler = std::env::var("CC").unwrap_or("gcc".into());
    build(folder.path(), &compiler);
    let mut writer = Writer::start(folder.path());
    let [mut off, mut on, mut disabled] = [(); 3].map(|()| Figures::default());
    for round in 1..=ROUNDS {
        eprint!("\rround {round} of {ROUNDS} ");
        off.add(writer.measure());
        for (figures, args) in [(&mut on, &[][..]), (&mut disabled, &["--except", "*"])] {
            let attached = Attached::to(&writer, args);
            figures.add(writer.measure());
            attached.detach();
        }
    }
    eprint!("\rCPU share of ppt attach ");
    let share = cpu_share(&mut writer);
    eprintln!("\r                        ");
    machine(&compiler);
    table(&off, &on, &disabled);
    println!(
        "\nppt attach at {} frames a second: {:.2} % of one CPU, over {} s",
        STEADY.0,
        100.0 * share,
        STEADY.1
    );
}

/// Generates the code of the frame files and compiles it with `writer.c`.
fn build(folder: &Path, compiler: &str) {
    let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).join("block-form");
    let parts = program::parts(folder, &kept);
    let parts: Vec<_> = parts.iter().map(String::as_str).collect();
    for (text, name) in [(TICKS, "ticks.frame"), (EVENTS, "events.frame")] {
        let frames = ppt_codegen::parse(text.as_bytes(), name).unwrap();
        let outputs = ppt_codegen::generate(&frames, name, &[ppt_codegen::Language::C]);
        ppt_codegen::write_outputs(folder, &outputs.unwrap()).unwrap();
    }
    std::fs::write(folder.join("bench.c"), PROGRAM).unwrap();
    std::fs::write(folder.join("commands.h"), COMMANDS).unwrap();
    let c = ["-std=c11", "-DLANGUAGES", "-DEVENTS", "-pthread", "-c"];
    let files = ["bench.c", "writer.c", "ticks.c", "events.c"];
    program::run(folder, compiler, &[&c[..], &files].concat());
    let objects = ["bench.o", "writer.o", "ticks.o", "events.o", "-o", "writer"];
    program::run(folder, "g++", &[&objects[..], &parts].concat());
}

/// The running program.
struct Writer {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Writer {
    fn start(folder: &Path) -> Writer {
        let mut child = Command::new(folder.join("writer"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        Writer { child, input, output: BufReader::new(output) }
    }

    /// Sends a command and returns the lines of its answer.
    fn ask(&mut self, command: &str) -> Vec<String> {
        writeln!(self.input, "{command}").unwrap();
        let lines = self.output.by_ref().lines().map(Result::unwrap);
        lines.take_while(|line| line != "end").collect()
    }

    /// Nanoseconds by name.
    fn measure(&mut self) -> Vec<(String, f64)> {
        let lines = self.ask("measure");
        let pairs = lines.iter().map(|line| line.split_once(' ').unwrap());
        pairs.map(|(name, ns)| (name.to_owned(), ns.parse().unwrap())).collect()
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A `ppt attach` that has attached.
struct Attached {
    child: Child,
}

impl Attached {
    fn to(writer: &Writer, args: &[&str]) -> Attached {
        let child = Command::new(env!("CARGO_BIN_EXE_ppt"))
            .args(["attach", &writer.child.id().to_string(), "-q", "-o", "-"])
            .args(args)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn();
        let mut attached = Attached { child: child.unwrap() };
        let stderr = BufReader::new(attached.child.stderr.as_mut().unwrap());
        let mut said = Vec::new();
        for line in stderr.lines().map(Result::unwrap) {
            if line.starts_with("attached:") {
                return attached;
            }
            said.push(line);
        }
        panic!("ppt attach ended: {}", said.join("\n"));
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(i32::try_from(self.child.id()).unwrap())
    }

    fn detach(mut self) {
        kill(self.pid(), Signal::SIGINT).unwrap();
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// CPU time of `ppt attach` by time passed, at the steady rate.
fn cpu_share(writer: &mut Writer) -> f64 {
    let attached = Attached::to(writer, &[]);
    // The first look at the program, and the first chunk, are not what capturing costs.
    writer.ask(&format!("steady block_form_three_stamps {} 1", STEADY.0));
    let clock = ClockId::pid_cpu_clock_id(attached.pid()).unwrap();
    let cpu = || Duration::from(clock.now().unwrap());
    let (started, before) = (Instant::now(), cpu());
    writer.ask(&format!("steady block_form_three_stamps {} {}", STEADY.0, STEADY.1));
    let share = (cpu() - before).as_secs_f64() / started.elapsed().as_secs_f64();
    attached.detach();
    share
}

/// The measurements of all rounds, by name.
#[derive(Default)]
struct Figures(BTreeMap<String, Vec<f64>>);

impl Figures {
    fn add(&mut self, round: Vec<(String, f64)>) {
        for (name, ns) in round {
            self.0.entry(name).or_default().push(ns);
        }
    }

    fn sorted(&self, name: &str) -> Vec<f64> {
        let mut all = self.0[name].clone();
        all.sort_by(f64::total_cmp);
        all
    }

    fn median(&self, name: &str) -> f64 {
        self.sorted(name)[ROUNDS / 2]
    }
}

fn table(off: &Figures, on: &Figures, disabled: &Figures) {
    println!(
        "ns per frame of 64 bytes: median (min–max) of {ROUNDS} rounds, and net of the empty call"
    );
    println!("  or, for the floor, of the empty loop\n");
    row("empty loop", on, "empty_loop", None);
    row("floor: 8 stores and a cursor", on, "floor_loop", Some("empty_loop"));
    row("empty call", on, "empty_call", None);
    for (label, figures, name) in [
        ("floor as a function", on, "floor_call"),
        ("off, block form", off, "block_form"),
        ("off, block form, C++", off, "block_form_cpp"),
        ("off, block form, Rust", off, "block_form_rust"),
        ("off, macro form, 8 fields", off, "macro_form"),
        ("off, macro form, write alone", off, "macro_write"),
        ("on, block form", on, "block_form"),
        ("on, block form, C++", on, "block_form_cpp"),
        ("on, block form, Rust", on, "block_form_rust"),
        ("on, macro form, 8 fields", on, "macro_form"),
        ("on, macro form, write alone", on, "macro_write"),
        ("on, block form, one stamp", on, "block_form_one_stamp"),
        ("on, block form, three stamps", on, "block_form_three_stamps"),
        ("clock_gettime alone", on, "clock_alone"),
        ("floor as a function, one tick", on, "floor_one_tick"),
        ("on, block form, one tick", on, "block_form_one_tick"),
        ("floor as a function, 3 ticks", on, "floor_three_ticks"),
        ("on, block form, three ticks", on, "block_form_three_ticks"),
        ("the CPU's counter alone", on, "tick_alone"),
        ("add to a thread's variable", on, "thread_local_add"),
        ("off, counter", off, "counter_add"),
        ("on, counter", on, "counter_add"),
        ("off, histogram", off, "exponential_observe"),
        ("on, histogram, exponential", on, "exponential_observe"),
        ("on, histogram, linear", on, "linear_observe"),
        ("on, frame of 40 bytes, one tick", on, "plain_frame"),
        ("off, span", off, "span_begin"),
        ("on, span, begin", on, "span_begin"),
        ("on, chain, step", on, "chain_step"),
        ("off, point of 100 bytes", off, "point_of_100_bytes"),
        ("on, point of 100 bytes", on, "point_of_100_bytes"),
        ("disabled, block form", disabled, "block_form"),
        ("disabled, block form, C++", disabled, "block_form_cpp"),
        ("disabled, block form, Rust", disabled, "block_form_rust"),
        ("disabled, one tick", disabled, "block_form_one_tick"),
        ("disabled, span", disabled, "span_begin"),
        ("disabled, counter", disabled, "counter_add"),
        ("disabled, histogram", disabled, "exponential_observe"),
    ] {
        row(label, figures, name, Some("empty_call"));
    }
    let net = |figures: &Figures, name, less| figures.median(name) - figures.median(less);
    let floor = net(on, "floor_loop", "empty_loop");
    println!();
    for (label, name) in [("block form", "block_form"), ("macro form, 8 fields", "macro_form")] {
        println!(
            "{label}: on {:.2} × the floor net, {:.2} × as measured; off {:+.2} ns over an empty call",
            net(on, name, "empty_call") / floor,
            on.median(name) / on.median("floor_loop"),
            net(off, name, "empty_call")
        );
    }
    for (label, name) in [("C++", "block_form_cpp"), ("Rust", "block_form_rust")] {
        let ratio = |figures: &Figures| figures.median(name) / figures.median("block_form");
        println!("block form, {label}: off {:.2} × C, on {:.2} × C", ratio(off), ratio(on));
    }
    for (label, name, floor) in [
        ("one tick", "block_form_one_tick", "floor_one_tick"),
        ("three ticks", "block_form_three_ticks", "floor_three_ticks"),
    ] {
        let (cost, floor) = (net(on, name, "empty_call"), net(on, floor, "empty_call"));
        println!("block form, {label}: {:.2} × the floor with as many", cost / floor);
    }
    let times = |name, of| on.median(name) / on.median(of);
    println!(
        "counter: {:.2} × an add to a thread's variable",
        times("counter_add", "thread_local_add")
    );
    for (label, name) in [("span, begin", "span_begin"), ("chain, step", "chain_step")] {
        println!("{label}: {:.2} × a frame of the same fields", times(name, "plain_frame"));
    }
    println!(
        "point of 100 bytes: the CPU's counter and {:.2} ns",
        net(on, "point_of_100_bytes", "empty_call") - net(on, "tick_alone", "empty_call")
    );
}

fn row(label: &str, figures: &Figures, name: &str, less: Option<&str>) {
    let all = figures.sorted(name);
    let median = figures.median(name);
    let net = less.map_or(String::new(), |less| format!("{:8.2}", median - figures.median(less)));
    println!("{label:30} {median:7.2} ({:.2}–{:.2}) {net}", all[0], all[ROUNDS - 1]);
}

/// What was measured on.
fn machine(compiler: &str) {
    let read = |path| std::fs::read_to_string(path).unwrap_or_default();
    let cpuinfo = read("/proc/cpuinfo");
    let model = cpuinfo.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let version = Command::new(compiler).arg("--version").output().unwrap().stdout;
    let version = String::from_utf8_lossy(&version);
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    println!("{}, {cpus} CPUs", model.map_or("unknown CPU", |it| it.1));
    println!("Linux {}", read("/proc/sys/kernel/osrelease").trim());
    println!("{}, -O2\n", version.lines().next().unwrap_or(compiler));
}
