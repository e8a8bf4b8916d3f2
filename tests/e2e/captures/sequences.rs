//! Random sequences of what people and accidents do to captures and tables, against a model of what
//! must be in the folder after each step: none is ever lost.
//!
//! A sequence has a number, which is its seed: `PPT_SEQUENCE=17 cargo test --test e2e sequences`
//! repeats one. What a step did is printed when it fails.
//!
//! A command that writes a file from a capture is one line of [`ONE_SHOT`]; anything else that is to
//! happen, one line of [`STEPS`].

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::Value;

use crate::captures::outputs::{files, limit_file_size, without_nameless_files};
use crate::fixtures::steady::build;
use crate::fixtures::support::{
    Account, Attach, Bench, Ran, Target, ppt, record, rounds, segments_of, text, wait_until,
};

/// Commands that write a file, `-o FILE [--force]`, from a capture: what they write is what they print
/// without. Those of `ppt-analysis` are left out where it was not built.
const ONE_SHOT: [&[&str]; 6] = [
    &["dump"],
    &["dump", "--format", "jsonl"],
    &["stat", "--format", "json"],
    &["sql", "SELECT * FROM frames"],
    &["plot", "SELECT seqno FROM frames"],
    &["export", "--format", "chrome"],
];

fn one_shot_commands() -> &'static [&'static [&'static str]] {
    let there = Path::new(ppt()).with_file_name("ppt-analysis").exists();
    if there { &ONE_SHOT } else { &ONE_SHOT[..2] }
}

type Step = fn(&mut World);

/// What may happen next, and how often.
const STEPS: [(u32, Step); 16] = [
    (6, World::attach),
    (8, World::write),
    (3, World::stop),
    (3, World::kill),
    (3, World::attach_and_kill),
    (2, World::two_at_once),
    (2, World::refused),
    (1, World::wait_in_vain),
    (2, World::run_command),
    (2, World::full_disk),
    (5, World::one_shot),
    (2, World::one_shot_killed),
    (2, World::move_file),
    (2, World::delete_file),
    (3, World::accident),
    (1, World::rotate),
];

/// Steps of one sequence.
const LENGTH: usize = 14;
const CAPTURES: [&str; 4] = ["a.bin", "b.bin", "c.bin", "d.bin"];
const TABLES: [&str; 2] = ["a.tsv", "b.tsv"];

#[test]
fn none_is_lost() {
    if let Some(number) = std::env::var_os("PPT_SEQUENCE") {
        let number = number.to_str().and_then(|it| it.parse().ok()).expect("a number");
        return drop(sequence(&build(&[]), number));
    }
    let (count, next) = (rounds(40, 1000), AtomicUsize::new(0));
    let source = build(&[]);
    let totals = std::thread::scope(|scope| {
        let worker = || {
            let mut total = Totals::default();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= count {
                    return total;
                }
                total.add(&sequence(&source, number as u64));
            }
        };
        let workers: Vec<_> = (0..2).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().fold(Totals::default(), |mut total, worker| {
            total.add(&worker.join().unwrap());
            total
        })
    });
    eprintln!("{totals}, {} frames", totals.captured);
    let case = format!("{count} random sequences: {totals}");
    let account = Account { captured: totals.captured, lost: 0, dropped: 0 };
    record("-", &case, totals.captured, account, &Value::Null, segments_of(&totals.agents));
}

/// What all sequences came to.
#[derive(Debug, Default)]
struct Totals {
    /// Frames that were in captures when these ended, and were found there in the end.
    captured: u64,
    sessions: u64,
    kills: u64,
    accidents: u64,
    refusals: u64,
    agents: Vec<u32>,
}

impl Totals {
    fn add(&mut self, other: &Self) {
        self.captured += other.captured;
        self.sessions += other.sessions;
        self.kills += other.kills;
        self.accidents += other.accidents;
        self.refusals += other.refusals;
        self.agents.extend(&other.agents);
    }
}

impl std::fmt::Display for Totals {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { sessions, kills, accidents, refusals, .. } = self;
        write!(f, "{sessions} captures, {kills} kills, {accidents} accidents, {refusals} refusals")
    }
}

fn sequence(source: &Bench, number: u64) -> Totals {
    let mut world = World::new(source, number);
    let weights: u32 = STEPS.iter().map(|it| it.0).sum();
    for _ in 0..LENGTH {
        let mut at = world.random.below(weights.into()) as u32;
        let step = STEPS.iter().find(|(weight, _)| {
            let found = at < *weight;
            at = at.saturating_sub(*weight);
            found
        });
        step.unwrap().1(&mut world);
        world.check();
    }
    world.end()
}

/// Whether a child has ended that was not waited for yet.
fn has_ended(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.is_empty() || stat.contains(") Z ")
}

/// xorshift64*: the same sequence for the same number, on every machine.
struct Random(u64);

impl Random {
    fn below(&mut self, count: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % count
    }

    fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }

    fn pick<T: Clone>(&mut self, all: &[T]) -> Option<T> {
        (!all.is_empty()).then(|| all[self.below(all.len() as u64) as usize].clone())
    }
}

/// What the model says of a file.
#[derive(Clone, PartialEq)]
enum Kept {
    /// These bytes, until it is replaced, moved or removed by somebody who may.
    Whole(Vec<u8>),
    /// It is being written.
    Live,
}

/// A program that is attached to, and how many frames it has begun so far.
struct Program {
    target: Target,
    begun: i64,
}

/// A `ppt attach` that runs.
struct Session {
    attach: Attach,
    program: usize,
    /// The file that it writes, as it is called now, as it was when it was opened, and what it was
    /// told to write.
    file: String,
    opened: String,
    told: String,
    /// The numbers of the frames that must be in that file.
    frames: Vec<i64>,
    /// Of files that come in the place of others: the last number that was used.
    number: u32,
    /// Something happened to what was in its file: it exits with 1, as it does if that was moved.
    displaced: bool,
    /// Its parts, which all are in the model: `NAME.000001.bin`, ….
    rotates: bool,
}

struct World {
    bench: Bench,
    number: u64,
    random: Random,
    log: Vec<String>,
    programs: [Program; 2],
    sessions: Vec<Session>,
    files: BTreeMap<String, Kept>,
    /// As on file systems that have no files without names.
    nameless: bool,
    /// A `ppt` was killed since the last one that opened an output, and may have left a hidden file.
    killed: bool,
    totals: Totals,
}

impl Drop for World {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("sequence {}:\n  {}", self.number, self.log.join("\n  "));
            for session in &self.sessions {
                session.attach.signal(libc::SIGKILL);
                eprintln!("{} said:\n{}", session.file, session.attach.stderr.rest());
            }
        }
    }
}

impl World {
    fn new(source: &Bench, number: u64) -> Self {
        let bench = Bench::new();
        // A copy could not be run while a child that another thread forks has it open for writing.
        fs::hard_link(source.path("steady"), bench.path("steady")).unwrap();
        let program = |counters: &str| {
            fs::write(bench.path(counters), [0; 4096]).unwrap();
            Program { target: bench.start("steady", &[counters]), begun: 0 }
        };
        let programs = [program("steady.0"), program("steady.1")];
        fs::write(bench.path("steady.run"), [0; 4096]).unwrap();
        Self {
            programs,
            bench,
            number,
            // Neighbours are to differ at once.
            random: Random((number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)),
            log: Vec::new(),
            sessions: Vec::new(),
            files: BTreeMap::new(),
            nameless: !number.is_multiple_of(3),
            killed: false,
            totals: Totals::default(),
        }
    }

    fn log(&mut self, what: String) {
        self.log.push(what);
    }

    // What there is to choose from.

    fn name(&mut self) -> String {
        self.random.pick(&CAPTURES).unwrap().to_owned()
    }

    fn whole(&mut self) -> Option<String> {
        let whole = self.files.iter().filter(|it| *it.1 != Kept::Live);
        let whole: Vec<_> = whole.map(|it| it.0.clone()).collect();
        self.random.pick(&whole)
    }

    fn free_name(&mut self) -> Option<String> {
        let names = CAPTURES.iter().chain(&TABLES).map(ToString::to_string);
        let free: Vec<_> = names.filter(|it| !self.files.contains_key(it)).collect();
        self.random.pick(&free)
    }

    fn session(&mut self) -> Option<usize> {
        (!self.sessions.is_empty()).then(|| self.random.below(self.sessions.len() as u64) as usize)
    }

    fn idle_program(&mut self) -> Option<usize> {
        let idle = |it: &usize| self.sessions.iter().all(|session| session.program != *it);
        let idle: Vec<_> = (0..self.programs.len()).filter(idle).collect();
        self.random.pick(&idle)
    }

    fn force(&mut self) -> &'static [&'static str] {
        if self.random.one_in(2) { &["--force"] } else { &[] }
    }

    /// Whether an output of that name may be written.
    fn may_write(&self, name: &str, force: &[&str]) -> bool {
        match self.files.get(name) {
            None => true,
            Some(Kept::Whole(_)) => !force.is_empty(),
            Some(Kept::Live) => false,
        }
    }

    fn pid(&self, program: usize) -> String {
        self.programs[program].target.pid().to_string()
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = self.bench.command(ppt());
        command.args(args);
        if !self.nameless {
            without_nameless_files(&mut command);
        }
        command
    }

    /// Runs `ppt` to its end.
    fn ppt(&mut self, args: &[&str]) -> Ran {
        let mut command = self.command(args);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().unwrap();
        self.totals.agents.push(child.id());
        let Output { status, stdout, stderr } = child.wait_with_output().unwrap();
        Ran { status, stdout: text(&stdout), stderr: text(&stderr) }
    }

    // What must be so.

    fn read(&self, name: &str) -> Option<Vec<u8>> {
        fs::read(self.bench.path(name)).ok()
    }

    /// The numbers of its frames, if it can be read as a table.
    fn frames(&self, name: &str) -> Option<Vec<i64>> {
        let ran = self.bench.ppt(&["dump", name]);
        let mut lines = ran.stdout.lines();
        // Of no frame at all, or no table.
        let column = lines.next()?.split('\t').position(|it| it == "n");
        let number = |line: &str| line.split('\t').nth(column.unwrap()).unwrap().parse().unwrap();
        Some(lines.map(number).collect())
    }

    /// The folder is as the model has it.
    #[track_caller]
    fn check(&mut self) {
        let (hidden, there): (Vec<_>, Vec<_>) =
            files(&self.bench).into_iter().partition(|it| it.starts_with('.'));
        let expected: Vec<_> = self.files.keys().cloned().collect();
        assert_eq!(there, expected, "after {:?}", self.log.last());
        assert!(hidden.is_empty() || self.killed, "left: {hidden:?} after {:?}", self.log.last());
        for (name, kept) in &self.files {
            if let Kept::Whole(bytes) = kept {
                assert!(self.read(name).as_ref() == Some(bytes), "{name} has changed");
            }
        }
    }

    /// What is in the file now stays there.
    fn keep(&mut self, name: &str) {
        let bytes = self.read(name).unwrap_or_else(|| panic!("{name} is lost"));
        self.files.insert(name.into(), Kept::Whole(bytes));
    }

    /// Waits until a capture has all the frames that it must have.
    fn settle(&mut self, session: usize) {
        let session = &self.sessions[session];
        let (file, frames) = (session.file.clone(), session.frames.clone());
        wait_until("the frames are in the file", || self.frames(&file).as_ref() == Some(&frames));
    }

    // What happens.

    fn attach(&mut self) {
        let name = self.name();
        let force = self.force();
        let Some(program) = self.idle_program() else { return };
        self.attach_to(program, &name, force);
    }

    fn attach_to(&mut self, program: usize, name: &str, force: &[&str]) {
        self.log(format!("attach {program} -o {name} {force:?}"));
        let pid = self.pid(program);
        let args = [&["attach", &pid, "-o", name], force].concat();
        if !self.may_write(name, force) {
            let ran = self.ppt(&args);
            assert_eq!(ran.code(), 1, "{}", ran.stderr);
            self.totals.refusals += 1;
            return;
        }
        let attach = Attach::start(self.command(&args));
        self.begin(attach, program, name, false);
    }

    fn begin(&mut self, attach: Attach, program: usize, name: &str, rotates: bool) {
        self.totals.agents.push(attach.pid());
        self.totals.sessions += 1;
        self.killed = false;
        self.files.insert(name.into(), Kept::Live);
        self.sessions.push(Session {
            attach,
            program,
            file: name.into(),
            opened: name.into(),
            told: name.into(),
            frames: Vec::new(),
            number: 1,
            displaced: false,
            rotates,
        });
    }

    /// A program writes frames; those of one that is attached must be in its capture.
    fn write(&mut self) {
        let program = self.random.below(2) as usize;
        let count = 1 + self.random.below(200);
        self.write_from(program, count);
    }

    fn write_from(&mut self, program: usize, count: u64) {
        self.log(format!("{program} writes {count}"));
        let it = &mut self.programs[program];
        it.target.say(&format!("burst {count}"));
        let before = std::mem::replace(&mut it.begun, it.target.written() as i64);
        let written = before..it.begun;
        if let Some(session) = self.sessions.iter_mut().find(|it| it.program == program) {
            assert_eq!(written.end - written.start, count as i64, "its gate is open");
            session.frames.extend(written);
        }
    }

    fn stop(&mut self) {
        let Some(session) = self.session() else { return };
        self.stop_one(session);
    }

    fn stop_one(&mut self, session: usize) {
        let session = self.sessions.swap_remove(session);
        self.log(format!("stop {}", session.file));
        session.attach.signal(libc::SIGINT);
        let moved = session.file != session.opened;
        let said = session.attach.ended(i32::from(session.displaced || moved));
        let found = self.frames(&session.file);
        assert_eq!(found.as_ref(), Some(&session.frames), "{}: {said}", session.file);
        let info = self.bench.info(&session.file);
        assert_eq!(info["complete"], true, "{}", session.file);
        let account = Account::of(&info);
        assert_eq!((account.captured, account.lost), (session.frames.len() as u64, 0));
        self.totals.captured += account.captured;
        self.keep(&session.file);
    }

    fn kill(&mut self) {
        let Some(session) = self.session() else { return };
        let settled = self.random.one_in(2);
        if settled {
            self.settle(session);
        } else {
            // At any moment.
            std::thread::sleep(Duration::from_micros(self.random.below(20_000)));
        }
        let session = self.sessions.swap_remove(session);
        self.log(format!("kill -9 {}, settled: {settled}", session.file));
        session.attach.kill();
        self.totals.kills += 1;
        let found = self.frames(&session.file).expect("it can be read");
        assert!(session.frames.starts_with(&found), "{found:?} of {:?}", session.frames);
        assert!(!settled || found == session.frames);
        self.keep(&session.file);
    }

    /// Killed at any moment, also before it is attached: there is what there was, or a capture.
    fn attach_and_kill(&mut self) {
        let (name, force) = (self.name(), self.force());
        let Some(program) = self.idle_program() else { return };
        let delay = self.random.below(60_000);
        self.log(format!("attach {program} -o {name} {force:?}, kill -9 after {delay} us"));
        let pid = self.pid(program);
        let command = self.command(&[&["attach", &pid, "-o", &name], force].concat());
        let attach = Attach::spawn(command);
        self.totals.agents.push(attach.pid());
        std::thread::sleep(Duration::from_micros(delay));
        attach.kill();
        (self.killed, self.totals.kills) = (true, self.totals.kills + 1);
        self.replaced_or_not(&name, force);
    }

    /// A new capture has the name, or nothing has changed.
    fn replaced_or_not(&mut self, name: &str, force: &[&str]) {
        let found = self.read(name);
        let before = match self.files.get(name) {
            Some(Kept::Live) => return,
            Some(Kept::Whole(bytes)) => Some(bytes.clone()),
            None => None,
        };
        if found != before {
            assert!(self.may_write(name, force), "{name}");
            assert!(self.frames(name).is_some(), "{name} can be read");
            self.keep(name);
        }
    }

    /// Both want the same file: one has it, the other is told.
    fn two_at_once(&mut self) {
        let (name, force) = (self.name(), self.force());
        if !self.sessions.is_empty() {
            return;
        }
        self.log(format!("two attach -o {name} {force:?}"));
        let both = [0, 1].map(|program| {
            let pid = self.pid(program);
            Attach::spawn(self.command(&[&["attach", &pid, "-o", &name], force].concat()))
        });
        let may = self.may_write(&name, force);
        for (program, attach) in both.into_iter().enumerate() {
            let pid = attach.pid();
            let attached = || attach.stderr.has("attached:");
            wait_until("it is attached, or has ended", || attached() || has_ended(pid));
            if attached() {
                assert!(may && self.sessions.is_empty(), "{name} has two writers");
                self.begin(attach, program, &name, false);
            } else {
                self.totals.agents.push(pid);
                self.totals.refusals += 1;
                let said = attach.ended(1);
                assert!(
                    said.contains(" exists; ") || said.contains(" is being written by "),
                    "{said}"
                );
            }
        }
        assert_eq!(self.sessions.len(), usize::from(may), "one of them has it");
    }

    /// Nobody can be attached to: nothing changes.
    fn refused(&mut self) {
        let (name, force) = (self.name(), self.force());
        let us = std::process::id().to_string();
        let mut choices = vec![us, i32::MAX.to_string()];
        choices.extend(self.sessions.first().map(|it| self.pid(it.program)));
        let pid = self.random.pick(&choices).unwrap();
        self.log(format!("attach {pid} in vain -o {name} {force:?}"));
        let ran = self.ppt(&[&["attach", &pid, "-o", &name][..], force].concat());
        assert_eq!(ran.code(), 1, "{}", ran.stderr);
        self.totals.refusals += 1;
    }

    fn wait_in_vain(&mut self) {
        let (name, force) = (self.name(), self.force());
        let signal = self.random.pick(&[libc::SIGINT, libc::SIGTERM, libc::SIGKILL]).unwrap();
        self.log(format!("attach --wait-for nobody -o {name} {force:?}, signal {signal}"));
        let args = [&["attach", "--wait-for", "no-such-name", "-o", &name], force].concat();
        let attach = Attach::spawn(self.command(&args));
        self.totals.agents.push(attach.pid());
        if !self.may_write(&name, force) {
            self.totals.refusals += 1;
            return drop(attach.ended(1));
        }
        attach.stderr.wait_for("ppt: waiting for");
        if signal == libc::SIGKILL {
            (self.killed, self.totals.kills) = (true, self.totals.kills + 1);
            return attach.kill();
        }
        attach.signal(signal);
        attach.ended(0);
    }

    /// `ppt run` of a program that writes frames, of one that does not, and of none.
    fn run_command(&mut self) {
        let (name, force) = (self.name(), self.force());
        let program = self.bench.path("steady").display().to_string();
        let script = format!("echo burst 20 | {program} steady.run");
        let choices: [(&[&str], i32, bool); 3] = [
            (&["sh", "-c", &script], 0, true),
            (&["true"], 0, false),
            (&["./no-such-command"], 127, false),
        ];
        let (command, code, writes) = self.random.pick(&choices).unwrap();
        self.log(format!("run {command:?} -o {name} {force:?}"));
        let args = [&["run", "-q", "-o", &name][..], force, &["--"], command].concat();
        let ran = self.ppt(&args);
        if !self.may_write(&name, force) {
            self.totals.refusals += 1;
            assert_eq!(ran.code(), 125, "{}", ran.stderr);
            return;
        }
        assert_eq!(ran.code(), code, "{}", ran.stderr);
        if writes {
            assert_eq!(self.frames(&name).map(|it| it.len()), Some(20), "{}", ran.stderr);
            self.totals.captured += 20;
            self.totals.sessions += 1;
            self.keep(&name);
        }
    }

    /// A disk that has room for so many bytes of one file.
    fn full_disk(&mut self) {
        let (name, force) = (self.name(), self.force());
        let Some(program) = self.idle_program() else { return };
        let room = self.random.below(9000);
        self.log(format!("attach {program} -o {name} {force:?}, room for {room}"));
        let pid = self.pid(program);
        let mut command = self.command(&[&["attach", &pid, "-o", &name], force].concat());
        limit_file_size(&mut command, room);
        let mut attach = Attach::spawn(command);
        self.totals.agents.push(attach.pid());
        self.killed &= !self.may_write(&name, force);
        // Until it is full, or was refused.
        let before = self.programs[program].begun;
        wait_until("it has ended", || {
            if attach.has_ended() {
                return true;
            }
            let it = &mut self.programs[program];
            it.target.say("burst 100");
            it.begun = it.target.written() as i64;
            false
        });
        let said = attach.ended(1);
        if self.may_write(&name, force) {
            assert!(said.contains("File too large (os error 27)"), "{said}");
        }
        self.replaced_or_not(&name, force);
        if said.contains("attached: ") {
            let found = self.frames(&name).expect("it can be read");
            let all: Vec<_> = (before..self.programs[program].begun).collect();
            assert!(all.windows(found.len().max(1)).any(|it| it == found) || found.is_empty());
        }
    }

    /// A file made of a capture, or of what is none.
    fn one_shot(&mut self) {
        self.one_shot_command(None);
    }

    fn one_shot_killed(&mut self) {
        let delay = self.random.below(15_000);
        self.one_shot_command(Some(delay));
    }

    fn one_shot_command(&mut self, kill_after: Option<u64>) {
        let words = self.random.pick(one_shot_commands()).unwrap();
        let names: Vec<_> = self.files.keys().cloned().chain(["nowhere.bin".into()]).collect();
        let input = self.random.pick(&names).unwrap();
        let outputs: Vec<_> = CAPTURES.iter().chain(&TABLES).copied().chain([&*input]).collect();
        let output = self.random.pick(&outputs).unwrap().to_owned();
        let force = self.force();
        if let Some(session) = self.sessions.iter().position(|it| it.file == input) {
            // It grows no more meanwhile, but for its clocks.
            self.settle(session);
        }
        self.log(format!("{words:?} {input} -o {output} {force:?}, kill after {kill_after:?}"));
        let printed = self.ppt(&[words, &[&input]].concat());
        let args = [words, &[&input, "-o", &output], force].concat();
        let may = self.may_write(&output, force) && input != output;
        if let Some(delay) = kill_after {
            let mut child = self.command(&args).stderr(Stdio::null()).spawn().unwrap();
            std::thread::sleep(Duration::from_micros(delay));
            child.kill().unwrap();
            child.wait().unwrap();
            (self.killed, self.totals.kills) = (true, self.totals.kills + 1);
        } else {
            let ran = self.ppt(&args);
            assert_eq!(ran.code(), if may { printed.code() } else { 1 }, "{}", ran.stderr);
            if may && ran.code() == 0 {
                let written = self.read(&output).expect("it is there");
                assert!(written == printed.stdout.as_bytes(), "{output}");
            }
            self.killed &= !may;
            self.totals.refusals += u64::from(!may);
        }
        let before = match self.files.get(&output) {
            Some(Kept::Live) => return,
            Some(Kept::Whole(bytes)) => Some(bytes.clone()),
            None => None,
        };
        let found = self.read(&output);
        if found != before {
            assert!(may && found.as_deref() == Some(printed.stdout.as_bytes()), "{output}");
            self.keep(&output);
        }
    }

    fn move_file(&mut self) {
        let (Some(from), Some(to)) = (self.whole(), self.free_name()) else { return };
        self.log(format!("mv {from} {to}"));
        fs::rename(self.bench.path(&from), self.bench.path(&to)).unwrap();
        let kept = self.files.remove(&from).unwrap();
        self.files.insert(to, kept);
    }

    fn delete_file(&mut self) {
        let Some(name) = self.whole() else { return };
        self.log(format!("rm {name}"));
        fs::remove_file(self.bench.path(&name)).unwrap();
        self.files.remove(&name);
    }

    /// Something happens to a file that is being written.
    fn accident(&mut self) {
        let Some(session) = self.session().filter(|&it| !self.sessions[it].rotates) else { return };
        // What is to be found in copies must be there.
        self.settle(session);
        let file = self.sessions[session].file.clone();
        let path = self.bench.path(&file);
        let (free, other) = (self.free_name(), self.whole());
        let kind = self.random.below(6);
        self.log(format!("accident {kind} to {file}, {free:?}, {other:?}"));
        self.totals.accidents += 1;
        let next = match (kind, free, other) {
            (0, Some(free), _) => {
                // It goes on there.
                fs::rename(&path, self.bench.path(&free)).unwrap();
                self.files.remove(&file);
                self.files.insert(free.clone(), Kept::Live);
                self.sessions[session].file = free;
                return;
            }
            (1, Some(free), _) => {
                fs::copy(&path, self.bench.path(&free)).unwrap();
                File::create(&path).unwrap();
                let found = self.frames(&free).expect("it can be read");
                assert_eq!(found, self.sessions[session].frames, "{free}");
                self.keep(&free);
                file
            }
            (2, _, Some(other)) => {
                fs::rename(self.bench.path(&other), &path).unwrap();
                let kept = self.files.remove(&other).unwrap();
                self.files.insert(file, kept);
                self.next_name(session, true)
            }
            (3, ..) => {
                fs::remove_file(&path).unwrap();
                self.files.remove(&file);
                self.next_name(session, true)
            }
            (4, ..) => {
                let open = OpenOptions::new().write(true).open(&path).unwrap();
                open.set_len(fs::metadata(&path).unwrap().len() - 1).unwrap();
                self.keep(&file);
                self.next_name(session, false)
            }
            _ => {
                File::create(&path).unwrap();
                file
            }
        };
        self.files.insert(next.clone(), Kept::Live);
        let it = &mut self.sessions[session];
        (it.file, it.displaced) = (next, true);
        it.frames.clear();
        let program = it.program;
        self.write_from(program, 3);
        self.settle(session);
    }

    /// The name of the file that comes in the place of one that was taken away: the same, if that was
    /// removed, and the name is free.
    fn next_name(&mut self, session: usize, removed: bool) -> String {
        let session = &mut self.sessions[session];
        let stem = session.told.strip_suffix(".bin").unwrap();
        let mut name = session.opened.clone();
        while !removed || self.files.contains_key(&name) || name != session.opened {
            session.number += 1;
            name = format!("{stem}.{:06}.bin", session.number);
            if !self.files.contains_key(&name) {
                break;
            }
        }
        session.opened.clone_from(&name);
        name
    }

    /// A capture in many files, which begin each second where there are frames, until it is stopped
    /// or killed. Those that are whole stay, but for the oldest.
    fn rotate(&mut self) {
        let Some(program) = self.idle_program() else { return };
        let (force, keep) = (self.force(), self.random.one_in(2));
        let part = |number: usize| format!("r.{number:06}.bin");
        let there = self.files.keys().any(|it| it.starts_with("r."));
        self.log(format!("attach {program} -o r.bin --rotate 1s {force:?}, keep 2: {keep}"));
        let pid = self.pid(program);
        let mut args = vec!["attach", &pid, "-o", "r.bin", "--rotate", "1s"];
        args.extend(force);
        args.extend(keep.then_some(["--keep", "2"]).iter().flatten());
        if there && force.is_empty() {
            let ran = self.ppt(&args);
            assert_eq!(ran.code(), 1, "{}", ran.stderr);
            self.totals.refusals += 1;
            return;
        }
        let attach = Attach::start(self.command(&args));
        self.begin(attach, program, &part(1), true);
        // Another one of the same files is refused meanwhile.
        let other = self.idle_program().map(|it| self.pid(it));
        if let Some(other) = other {
            let ran = self.ppt(&["attach", &other, "-o", "r.bin", "--rotate", "1s", "--force"]);
            assert_eq!(ran.code(), 1, "{}", ran.stderr);
            assert!(ran.stderr.contains(" is being written by "), "{}", ran.stderr);
        }
        let before = self.files.clone();
        let is_new = |world: &Self, number: usize| {
            let found = world.read(&part(number));
            found.is_some()
                && !matches!(before.get(&part(number)), Some(Kept::Whole(it)) if found.as_ref() == Some(it))
        };
        let last = 2 + self.random.below(2) as usize;
        let first = self.programs[program].begun;
        wait_until("there are some parts", || {
            self.write_from(program, 5);
            std::thread::sleep(Duration::from_millis(10));
            is_new(self, last)
        });
        let session = self.sessions.pop().unwrap();
        let stopped = self.random.one_in(2);
        if stopped {
            session.attach.signal(libc::SIGINT);
            session.attach.ended(0);
        } else {
            session.attach.kill();
            self.totals.kills += 1;
        }
        let last = (1..).take_while(|&it| is_new(self, it) || it <= last).last().unwrap();
        let oldest = if keep { last - 1 } else { 1 };
        let mut all = Vec::new();
        for number in 1..=last {
            if number < oldest && !self.bench.path(&part(number)).exists() {
                self.files.remove(&part(number));
                continue;
            }
            // Killed between two of them, one more is there than is kept.
            assert!(number >= oldest || !stopped, "{} stays", part(number));
            all.extend(self.frames(&part(number)).expect("it can be read"));
            self.keep(&part(number));
        }
        let written: Vec<_> = (first..self.programs[program].begun).collect();
        let expected = match stopped {
            true => written.ends_with(&all) && (keep || all == written),
            false => written.windows(all.len().max(1)).any(|it| it == all),
        };
        assert!(expected, "{all:?} of {written:?}");
        self.totals.captured += all.len() as u64;
    }

    /// Everything ends; what is there stays to the last.
    fn end(mut self) -> Totals {
        while !self.sessions.is_empty() {
            self.stop_one(0);
            self.check();
        }
        // What is left beside is removed by the next one.
        let name = "last.bin";
        let attach = self.bench.attach(&self.programs[0].target, &["-o", name]);
        self.begin(attach, 0, name, false);
        self.stop_one(0);
        self.check();
        for program in &mut self.programs {
            program.target.close();
            assert!(program.target.wait().success(), "no program is harmed");
        }
        std::mem::take(&mut self.totals)
    }
}
