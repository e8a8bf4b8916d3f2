//! Steps with captures: they begin, end, are killed, refused, and run out of space.

use std::fs;
use std::time::Duration;

use super::world::{KeptFile, World, WorldSession};
use crate::fixtures::limits::limit_file_size;
use crate::fixtures::support::{Account, Attach, wait_until};

/// Whether a child that was not waited for has ended.
fn has_ended(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.is_empty() || stat.contains(") Z ")
}

impl World {
    pub(super) fn attach(&mut self) {
        let name = self.name();
        let force = self.force();
        let Some(program) = self.idle_program() else { return };
        self.attach_to(program, &name, force);
    }

    pub(super) fn attach_to(&mut self, program: usize, name: &str, force: &[&str]) {
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

    pub(super) fn begin(&mut self, attach: Attach, program: usize, name: &str, rotates: bool) {
        self.totals.agents.push(attach.pid());
        self.totals.sessions += 1;
        self.killed = false;
        self.files.insert(name.into(), KeptFile::Live);
        self.sessions.push(WorldSession {
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

    /// A program writes frames; if a session is attached, they must be in its capture.
    pub(super) fn write(&mut self) {
        let program = self.random.below(2) as usize;
        let count = 1 + self.random.below(200);
        self.write_from(program, count);
    }

    pub(super) fn write_from(&mut self, program: usize, count: u64) {
        self.log(format!("{program} writes {count}"));
        let world_program = &mut self.programs[program];
        world_program.target.say(&format!("burst {count}"));
        let before =
            std::mem::replace(&mut world_program.begun, world_program.target.written() as i64);
        let written = before..world_program.begun;
        if let Some(session) = self.sessions.iter_mut().find(|session| session.program == program) {
            assert_eq!(written.end - written.start, count as i64, "its gate is open");
            session.frames.extend(written);
        }
    }

    pub(super) fn stop(&mut self) {
        let Some(session) = self.session() else { return };
        self.stop_one(session);
    }

    pub(super) fn stop_one(&mut self, session: usize) {
        let session = self.sessions.swap_remove(session);
        self.log(format!("stop {}", session.file));
        session.attach.signal(libc::SIGINT);
        let moved = session.file != session.opened;
        let stderr = session.attach.ended(i32::from(session.displaced || moved));
        let found = self.frames(&session.file);
        assert_eq!(found.as_ref(), Some(&session.frames), "{}: {stderr}", session.file);
        let info = self.bench.info(&session.file);
        assert_eq!(info["complete"], true, "{}", session.file);
        let account = Account::of(&info);
        assert_eq!((account.captured, account.lost), (session.frames.len() as u64, 0));
        self.totals.captured += account.captured;
        self.keep(&session.file);
    }

    pub(super) fn kill(&mut self) {
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

    /// Killed at any moment, possibly before it is attached: there is the old file or a capture.
    pub(super) fn attach_and_kill(&mut self) {
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
    pub(super) fn replaced_or_not(&mut self, name: &str, force: &[&str]) {
        let found = self.read(name);
        let before = match self.files.get(name) {
            Some(KeptFile::Live) => return,
            Some(KeptFile::Whole(bytes)) => Some(bytes.clone()),
            None => None,
        };
        if found != before {
            assert!(self.may_write(name, force), "{name}");
            assert!(self.frames(name).is_some(), "{name} can be read");
            self.keep(name);
        }
    }

    /// Two sessions want the same file: one gets it, the other is refused.
    pub(super) fn two_at_once(&mut self) {
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

    /// There is no process to attach to: nothing changes.
    pub(super) fn refused(&mut self) {
        let (name, force) = (self.name(), self.force());
        let us = std::process::id().to_string();
        let mut choices = vec![us, i32::MAX.to_string()];
        choices.extend(self.sessions.first().map(|session| self.pid(session.program)));
        let pid = self.random.pick(&choices).unwrap();
        self.log(format!("attach {pid} in vain -o {name} {force:?}"));
        let ran = self.ppt(&[&["attach", &pid, "-o", &name][..], force].concat());
        assert_eq!(ran.code(), 1, "{}", ran.stderr);
        self.totals.refusals += 1;
    }

    pub(super) fn wait_in_vain(&mut self) {
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
        attach.ended(128 + signal);
    }

    /// `ppt run` of a program that writes frames, of one that does not, and of a missing one.
    pub(super) fn run_command(&mut self) {
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

    /// A disk with room for this many bytes of one file.
    pub(super) fn full_disk(&mut self) {
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
        // Until it is full, or the command was refused.
        let before = self.programs[program].begun;
        wait_until("it has ended", || {
            if attach.has_ended() {
                return true;
            }
            let world_program = &mut self.programs[program];
            world_program.target.say("burst 100");
            world_program.begun = world_program.target.written() as i64;
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
}
