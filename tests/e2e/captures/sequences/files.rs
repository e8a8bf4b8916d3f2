//! Steps with files: commands convert them, and users move, remove and damage them.

use std::fs::{self, File, OpenOptions};
use std::process::Stdio;
use std::time::Duration;

use super::world::{KeptFile, World};
use super::{CAPTURES, ONE_SHOT, TABLES};

impl World {
    /// Converts a capture, or a file that is not a capture, into a file.
    pub(super) fn one_shot(&mut self) {
        self.one_shot_command(None);
    }

    pub(super) fn one_shot_killed(&mut self) {
        let delay = self.random.below(15_000);
        self.one_shot_command(Some(delay));
    }

    pub(super) fn one_shot_command(&mut self, kill_after: Option<u64>) {
        let words = self.random.pick(&ONE_SHOT).unwrap();
        let names: Vec<_> = self.files.keys().cloned().chain(["nowhere.bin".into()]).collect();
        let input = self.random.pick(&names).unwrap();
        let outputs: Vec<_> = CAPTURES.iter().chain(&TABLES).copied().chain([&*input]).collect();
        let output = self.random.pick(&outputs).unwrap().to_owned();
        let force = self.force();
        if let Some(session) = self.sessions.iter().position(|session| session.file == input) {
            // It does not grow during this time, except for its clocks.
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
            // A command that cannot read its input may not have checked its output.
            self.killed &= !(may && ran.code() == 0);
            self.totals.refusals += u64::from(!may);
        }
        let before = match self.files.get(&output) {
            Some(KeptFile::Live) => return,
            Some(KeptFile::Whole(bytes)) => Some(bytes.clone()),
            None => None,
        };
        let found = self.read(&output);
        if found != before {
            assert!(may && found.as_deref() == Some(printed.stdout.as_bytes()), "{output}");
            self.keep(&output);
        }
    }

    /// Makes a capture from a table.
    pub(super) fn import(&mut self) {
        let rows = 1 + self.random.below(300) as i64;
        let outputs: Vec<_> = CAPTURES.iter().chain(&TABLES).copied().collect();
        let output = self.random.pick(&outputs).unwrap();
        let force = self.force();
        self.log(format!("import of {rows} rows -o {output} {force:?}"));
        let (table, schema) = ("steady_imported.csv", "steady_imported.frame");
        let numbers: Vec<_> = (0..rows).map(|n| n.to_string()).collect();
        fs::write(self.bench.path(table), format!("n\n{}\n", numbers.join("\n"))).unwrap();
        fs::write(self.bench.path(schema), "frame imported { int n; }").unwrap();
        let may = self.may_write(output, force);
        let args = ["import", table, "--schema", schema, "-o", output];
        let ran = self.ppt(&[&args[..], force].concat());
        assert_eq!(ran.code(), i32::from(!may), "{}", ran.stderr);
        self.totals.refusals += u64::from(!may);
        if may {
            assert!(self.frames(output).expect("it can be read").into_iter().eq(0..rows));
            self.keep(output);
            self.killed = false;
        }
    }

    pub(super) fn move_file(&mut self) {
        let (Some(from), Some(to)) = (self.whole(), self.free_name()) else { return };
        self.log(format!("mv {from} {to}"));
        fs::rename(self.bench.path(&from), self.bench.path(&to)).unwrap();
        let kept = self.files.remove(&from).unwrap();
        self.files.insert(to, kept);
    }

    pub(super) fn delete_file(&mut self) {
        let Some(name) = self.whole() else { return };
        self.log(format!("rm {name}"));
        fs::remove_file(self.bench.path(&name)).unwrap();
        self.files.remove(&name);
    }

    /// An accident with a file that is being written.
    pub(super) fn accident(&mut self) {
        let Some(session) = self.session().filter(|&session| !self.sessions[session].rotates)
        else {
            return;
        };
        // The frames expected in copies must have been written.
        self.settle(session);
        let file = self.sessions[session].file.clone();
        let path = self.bench.path(&file);
        let (free, other) = (self.free_name(), self.whole());
        let kind = self.random.below(6);
        self.log(format!("accident {kind} to {file}, {free:?}, {other:?}"));
        self.totals.accidents += 1;
        let next = match (kind, free, other) {
            (0, Some(free), _) => {
                // The capture continues there.
                fs::rename(&path, self.bench.path(&free)).unwrap();
                self.files.remove(&file);
                self.files.insert(free.clone(), KeptFile::Live);
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
        self.files.insert(next.clone(), KeptFile::Live);
        let world_session = &mut self.sessions[session];
        (world_session.file, world_session.displaced) = (next, true);
        world_session.frames.clear();
        let program = world_session.program;
        self.write_from(program, 3);
        self.settle(session);
    }

    /// The name of the file that replaces one that was taken away: the same name, if the file was
    /// removed and the name is free.
    pub(super) fn next_name(&mut self, session: usize, removed: bool) -> String {
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
}
