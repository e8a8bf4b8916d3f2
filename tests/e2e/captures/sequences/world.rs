//! The model: a folder, two programs, the running captures, and the required content of each file.

use std::collections::BTreeMap;
use std::fs;
use std::process::{Command, Output, Stdio};

use super::clocks::ClockServer;
use super::recorder::FOLDER;
use super::{CAPTURES, TABLES, Totals};
use crate::fixtures::output::{files, without_nameless_files};
use crate::fixtures::support::{Attach, Bench, Ran, Target, ppt, text, wait_until};

/// xorshift64*: the same sequence for the same number, on every machine.
pub(super) struct Random(u64);

impl Random {
    pub(super) fn below(&mut self, count: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % count
    }

    pub(super) fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }

    pub(super) fn pick<T: Clone>(&mut self, all: &[T]) -> Option<T> {
        (!all.is_empty()).then(|| all[self.below(all.len() as u64) as usize].clone())
    }
}

/// The model's expectation for a file.
#[derive(Clone, PartialEq)]
pub(super) enum KeptFile {
    /// These bytes, until a permitted replacement, move or removal.
    Whole(Vec<u8>),
    /// It is being written.
    Live,
}

/// A program to attach to, and the number of frames that it has begun so far.
pub(super) struct WorldProgram {
    pub(super) target: Target,
    pub(super) begun: i64,
}

/// A running `ppt attach`.
pub(super) struct WorldSession {
    pub(super) attach: Attach,
    pub(super) program: usize,
    /// The current name of the file that it writes, the name when it was opened, and the name that
    /// was requested.
    pub(super) file: String,
    pub(super) opened: String,
    pub(super) told: String,
    /// The numbers of the frames that must be in that file.
    pub(super) frames: Vec<i64>,
    /// The last number used for replacement files.
    pub(super) number: u32,
    /// Whether its file's content was disturbed: it exits with 1, as it does if the file was moved.
    pub(super) displaced: bool,
    /// Its parts, which are all in the model: `NAME.000001.bin`, ….
    pub(super) rotates: bool,
}

pub(super) struct World {
    pub(super) bench: Bench,
    pub(super) number: u64,
    pub(super) random: Random,
    pub(super) log: Vec<String>,
    pub(super) programs: [WorldProgram; 2],
    pub(super) sessions: Vec<WorldSession>,
    pub(super) files: BTreeMap<String, KeptFile>,
    /// Whether to simulate a file system without unnamed files.
    pub(super) nameless: bool,
    /// Whether a `ppt` was killed since the last one that opened an output, and may have left a
    /// hidden file.
    pub(super) killed: bool,
    /// The same for a flight recorder and its folder.
    pub(super) spilled: bool,
    pub(super) totals: Totals,
    /// Answers probes.
    pub(super) server: Option<ClockServer>,
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
    pub(super) fn new(source: &Bench, number: u64) -> Self {
        let bench = Bench::new();
        // A copy could not be executed while a child that another thread forks has it open for
        // writing.
        fs::hard_link(source.path("steady"), bench.path("steady")).unwrap();
        let program = |counters: &str| {
            fs::write(bench.path(counters), [0; 4096]).unwrap();
            WorldProgram { target: bench.start("steady", &[counters]), begun: 0 }
        };
        let programs = [program("steady.0"), program("steady.1")];
        fs::write(bench.path("steady.run"), [0; 4096]).unwrap();
        Self {
            programs,
            bench,
            number,
            // Neighbouring seeds must differ at once.
            random: Random((number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)),
            log: Vec::new(),
            sessions: Vec::new(),
            files: BTreeMap::new(),
            nameless: !number.is_multiple_of(3),
            killed: false,
            spilled: false,
            totals: Totals::default(),
            server: None,
        }
    }

    pub(super) fn log(&mut self, what: String) {
        self.log.push(what);
    }

    pub(super) fn name(&mut self) -> String {
        self.random.pick(&CAPTURES).unwrap().to_owned()
    }

    pub(super) fn whole(&mut self) -> Option<String> {
        let whole = self.files.iter().filter(|file| *file.1 != KeptFile::Live);
        let whole: Vec<_> = whole.map(|entry| entry.0.clone()).collect();
        self.random.pick(&whole)
    }

    pub(super) fn free_name(&mut self) -> Option<String> {
        let names = CAPTURES.iter().chain(&TABLES).map(ToString::to_string);
        let free: Vec<_> = names.filter(|name| !self.files.contains_key(name)).collect();
        self.random.pick(&free)
    }

    pub(super) fn session(&mut self) -> Option<usize> {
        (!self.sessions.is_empty()).then(|| self.random.below(self.sessions.len() as u64) as usize)
    }

    pub(super) fn idle_program(&mut self) -> Option<usize> {
        let idle = |index: &usize| self.sessions.iter().all(|session| session.program != *index);
        let idle: Vec<_> = (0..self.programs.len()).filter(idle).collect();
        self.random.pick(&idle)
    }

    pub(super) fn force(&mut self) -> &'static [&'static str] {
        if self.random.one_in(2) { &["--force"] } else { &[] }
    }

    /// Whether an output of that name may be written.
    pub(super) fn may_write(&self, name: &str, force: &[&str]) -> bool {
        match self.files.get(name) {
            None => true,
            Some(KeptFile::Whole(_)) => !force.is_empty(),
            Some(KeptFile::Live) => false,
        }
    }

    pub(super) fn pid(&self, program: usize) -> String {
        self.programs[program].target.pid().to_string()
    }

    pub(super) fn command(&self, args: &[&str]) -> Command {
        let mut command = self.bench.command(ppt());
        command.args(args);
        if !self.nameless {
            without_nameless_files(&mut command);
        }
        command
    }

    /// Runs `ppt` to its end.
    pub(super) fn ppt(&mut self, args: &[&str]) -> Ran {
        let mut command = self.command(args);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().unwrap();
        self.totals.agents.push(child.id());
        let Output { status, stdout, stderr } = child.wait_with_output().unwrap();
        Ran { status, stdout: text(&stdout), stderr: text(&stderr) }
    }

    pub(super) fn read(&self, name: &str) -> Option<Vec<u8>> {
        fs::read(self.bench.path(name)).ok()
    }

    /// The numbers of its frames, if it is readable as a table.
    pub(super) fn frames(&self, name: &str) -> Option<Vec<i64>> {
        let ran = self.bench.ppt(&["dump", name]);
        let mut lines = ran.stdout.lines();
        // There are no frames, or it is not a table.
        let column = lines.next()?.split('\t').position(|piece| piece == "n");
        let number = |line: &str| line.split('\t').nth(column.unwrap()).unwrap().parse().unwrap();
        Some(lines.map(number).collect())
    }

    /// Checks that the folder matches the model.
    #[track_caller]
    pub(super) fn check(&mut self) {
        let (hidden, mut there): (Vec<_>, Vec<_>) =
            files(&self.bench).into_iter().partition(|file| file.starts_with('.'));
        let spilled = self.of_recorders(true);
        there.retain(|text| text != FOLDER);
        there.extend(self.windows());
        there.sort();
        assert!(spilled.is_empty() || self.spilled, "left: {spilled:?}");
        let expected: Vec<_> = self.files.keys().cloned().collect();
        assert_eq!(there, expected, "after {:?}", self.log.last());
        assert!(hidden.is_empty() || self.killed, "left: {hidden:?} after {:?}", self.log.last());
        for (name, kept) in &self.files {
            if let KeptFile::Whole(bytes) = kept {
                assert!(self.read(name).as_ref() == Some(bytes), "{name} has changed");
            }
        }
    }

    /// The current content of the file must stay.
    pub(super) fn keep(&mut self, name: &str) {
        let bytes = self.read(name).unwrap_or_else(|| panic!("{name} is lost"));
        self.files.insert(name.into(), KeptFile::Whole(bytes));
    }

    /// Waits until a capture has all required frames.
    pub(super) fn settle(&mut self, session: usize) {
        let session = &self.sessions[session];
        let (file, frames) = (session.file.clone(), session.frames.clone());
        wait_until("the frames are in the file", || self.frames(&file).as_ref() == Some(&frames));
    }

    /// Ends everything; the content must stay.
    pub(super) fn end(mut self) -> Totals {
        while !self.sessions.is_empty() {
            self.stop_one(0);
            self.check();
        }
        // The next command removes leftover files.
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
