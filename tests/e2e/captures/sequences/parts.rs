//! A step: a capture in many files.

use std::time::Duration;

use super::world::{KeptFile, World};
use crate::fixtures::support::{Attach, wait_until};

impl World {
    /// A capture in many files, a new one each second with frames, until it is stopped or killed.
    /// Complete files are kept, except the oldest.
    pub(super) fn rotate(&mut self) {
        let Some(program) = self.idle_program() else { return };
        let (force, keep) = (self.force(), self.random.one_in(2));
        let part = |number: usize| format!("r.{number:06}.bin");
        let there = self.files.keys().any(|key| key.starts_with("r."));
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
        // A second capture with the same files is refused during this time.
        let other = self.idle_program().map(|program| self.pid(program));
        if let Some(other) = other {
            let ran = self.ppt(&["attach", &other, "-o", "r.bin", "--rotate", "1s", "--force"]);
            assert_eq!(ran.code(), 1, "{}", ran.stderr);
            assert!(ran.stderr.contains(" is being written by "), "{}", ran.stderr);
        }
        let before = self.files.clone();
        let is_new = |world: &Self, number: usize| {
            let found = world.read(&part(number));
            found.is_some()
                && !matches!(before.get(&part(number)), Some(KeptFile::Whole(it)) if found.as_ref() == Some(it))
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
        let last = (1..).take_while(|&index| is_new(self, index) || index <= last).last().unwrap();
        let oldest = if keep { last - 1 } else { 1 };
        let mut all = Vec::new();
        for number in 1..=last {
            if number < oldest && !self.bench.path(&part(number)).exists() {
                self.files.remove(&part(number));
                continue;
            }
            // If it was killed between two files, there is one more than the number to keep.
            assert!(number >= oldest || !stopped, "{} stays", part(number));
            all.extend(self.frames(&part(number)).expect("it can be read"));
            self.keep(&part(number));
        }
        let written: Vec<_> = (first..self.programs[program].begun).collect();
        let expected = if stopped {
            written.ends_with(&all) && (keep || all == written)
        } else {
            written.windows(all.len().max(1)).any(|window| window == all)
        };
        assert!(expected, "{all:?} of {written:?}");
        self.totals.captured += all.len() as u64;
    }
}
