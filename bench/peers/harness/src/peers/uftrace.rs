use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::peer::{Attached, Collected, Peer, Place, Said, compile};
use crate::process::{bytes_in, children, line, run};
use crate::program::Program;

pub struct Uftrace;

/// Calls of the function, in what it wrote.
fn count(folder: &Path) -> Result<u64> {
    let output = run(Command::new("uftrace").args(["report", "--no-pager", "-d"]).arg(folder))?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = said.lines().find(|line| line.trim_end().ends_with(" payload")).context("no calls")?;
    let words: Vec<&str> = line.split_whitespace().collect();
    Ok(words[words.len() - 2].parse()?)
}

impl Peer for Uftrace {
    fn name(&self) -> &'static str {
        "uftrace"
    }

    fn about(&self) -> String {
        "one function, patched when the program starts: entry with arguments, and return".into()
    }

    fn packages(&self) -> &'static [&'static str] {
        &["uftrace"]
    }

    fn build(&self, place: &Place) -> Result<String> {
        let main = place.of("uftrace").join("main.c").display().to_string();
        compile("gcc", [main, "-o".into(), place.built(self.name()).display().to_string()])?;
        line("uftrace", &["--version"])
    }

    fn attach<'a>(
        &'a self,
        _: &'a Place,
        _: &mut Program,
        _: &str,
        _: &'a Path,
        _: Option<u64>,
    ) -> Result<Attached<'a>> {
        bail!("it starts its programs itself")
    }

    fn launch<'a>(
        &'a self,
        place: &'a Place,
        _: Program,
        _: &str,
        folder: &'a Path,
        _: Option<u64>,
    ) -> Result<(Program, Attached<'a>)> {
        let trace = folder.join("trace");
        let mut command = Command::new("uftrace");
        command
            .args(["record", "--no-pager", "-P", "payload", "-d"])
            .arg(&trace)
            .args(["-A", "payload@arg1/i32,arg2/i32,arg3/i64,arg4/i64,arg5/i64"])
            .arg(place.built(self.name()));
        let program = Program::start(command)?;
        let recorder = program.pid();
        let pids = [vec![recorder], children(recorder)].concat();
        let name = place.built(self.name());
        let writes =
            |pid: &u32| std::fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|it| it == name);
        let pids = pids.into_iter().filter(|pid| !writes(pid)).collect();
        let stop = move |program: &mut Program| {
            program.end()?;
            let events = count(&trace)?;
            Ok(Collected { events, said: Said::Nothing, bytes: bytes_in(&trace) })
        };
        Ok((program, Attached { pids, held: None, stop: Box::new(stop) }))
    }

    fn to_text(&self, _: &Place, folder: &Path) -> Option<Command> {
        let mut command = Command::new("uftrace");
        command.args(["replay", "--no-pager", "-d"]).arg(folder.join("trace"));
        Some(command)
    }
}
