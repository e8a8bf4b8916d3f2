//! A step: a flight recorder, whose windows are files of the model like any others.

use std::time::Duration;

use super::world::World;
use crate::fixtures::support::{Attach, wait_until};

/// The folder of all recorders.
pub(super) const FOLDER: &str = "flight";

impl World {
    /// Windows are requested by hand; then the recorder is stopped, or killed at any moment.
    pub(super) fn record(&mut self) {
        let Some(program) = self.idle_program() else { return };
        let before = self.random.pick(&["60s", "1ms"]).unwrap();
        self.log(format!("attach {program} --flight 60s --before {before} -o {FOLDER}"));
        let pid = self.pid(program);
        let args =
            ["attach", &pid, "--flight", "60s", "--before", before, "-o", FOLDER, "--on-exit"];
        let attach = Attach::start(self.command(&args));
        self.totals.agents.push(attach.pid());
        self.totals.sessions += 1;
        let first = self.programs[program].begun;
        for _ in 0..self.random.below(4) {
            let count = 1 + self.random.below(200);
            self.write_from(program, count);
            self.trigger(program, first, before == "60s");
        }
        self.plain_beside(program);
        if self.random.one_in(2) {
            self.log(format!("stop the recorder of {program}"));
            attach.signal(libc::SIGINT);
            attach.ended(0);
            self.spilled = false;
        } else {
            let delay = self.random.below(20_000);
            self.log(format!("trigger the recorder of {program}, kill -9 after {delay} us"));
            self.write_from(program, 100);
            let there = self.windows();
            let ran = self.ppt(&["trigger", &pid]);
            assert_eq!(ran.code(), 0, "{}", ran.stderr);
            std::thread::sleep(Duration::from_micros(delay));
            attach.kill();
            (self.spilled, self.totals.kills) = (true, self.totals.kills + 1);
            let new: Vec<_> =
                self.windows().into_iter().filter(|window| !there.contains(window)).collect();
            assert!(new.len() <= 1, "{new:?}");
            for window in new {
                self.takes(&window, program, first, before == "60s");
            }
        }
        let ran = self.ppt(&["trigger", &pid]);
        assert_eq!(ran.code(), 1, "nobody records it any more");
        self.totals.refusals += 1;
    }

    fn trigger(&mut self, program: usize, first: i64, all: bool) {
        let (there, pid) = (self.windows(), self.pid(program));
        self.log(format!("trigger {program}"));
        let ran = self.ppt(&["trigger", &pid, "--note", "by hand"]);
        assert_eq!(ran.code(), 0, "{}", ran.stderr);
        wait_until("the window is there", || self.windows().len() > there.len());
        let new: Vec<_> =
            self.windows().into_iter().filter(|window| !there.contains(window)).collect();
        let [window] = &new[..] else { panic!("{new:?}") };
        self.takes(window, program, first, all);
    }

    /// A complete capture, which ends with the last written frame, and begins with the first one of
    /// the session if `all` is set.
    fn takes(&mut self, window: &str, program: usize, first: i64, all: bool) {
        let found = self.frames(window).expect("it can be read");
        let written: Vec<_> = (first..self.programs[program].begun).collect();
        assert!(written.ends_with(&found), "{window}: {found:?} of {written:?}");
        assert!(!all || found == written, "{window}: {found:?} of {written:?}");
        assert_eq!(self.bench.info(window)["complete"], true, "{window}");
        self.totals.captured += found.len() as u64;
        self.keep(window);
    }

    /// A recording and a capture to a file exclude each other, and the folder is not a file.
    fn plain_beside(&mut self, program: usize) {
        let pid = self.pid(program);
        let ran = self.ppt(&["attach", &pid, "-o", "e.bin"]);
        assert_eq!(ran.code(), 1, "{}", ran.stderr);
        self.totals.refusals += 1;
    }

    /// The existing windows.
    pub(super) fn windows(&self) -> Vec<String> {
        self.of_recorders(false)
    }

    /// Files that did not become windows, left by a killed recorder.
    pub(super) fn of_recorders(&self, hidden: bool) -> Vec<String> {
        let names =
            if self.bench.path(FOLDER).exists() { self.bench.names(FOLDER) } else { Vec::new() };
        let names = names.into_iter().filter(|name| name.starts_with('.') == hidden);
        names.map(|name| format!("{FOLDER}/{name}")).collect()
    }
}
