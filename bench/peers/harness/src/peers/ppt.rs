use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use nix::sys::signal::Signal;
use serde_json::Value;

use crate::peer::{Attached, Collected, Peer, Place, Said, compile};
use crate::process::{Daemon, bytes_in, line, run};
use crate::program::Program;

/// Bytes of the larger frame.
pub const STRIDE: u64 = 48;

/// ppt, by how its listener chooses when to look.
#[derive(Clone, Copy, PartialEq)]
pub enum Ppt {
    /// As it does by itself.
    Peak,
    /// Seldom at rest.
    LowPower,
    /// As in the paper.
    Paper,
}

impl Ppt {
    fn rate(&self) -> &'static str {
        match self {
            Ppt::Peak => "peak",
            Ppt::LowPower => "low-power",
            Ppt::Paper => "paper",
        }
    }
}

impl Peer for Ppt {
    fn name(&self) -> &'static str {
        match self {
            Ppt::Peak => "ppt",
            Ppt::LowPower => "ppt-low-power",
            Ppt::Paper => "ppt-paper",
        }
    }

    fn about(&self) -> String {
        match self {
            Ppt::Peak => "block form, 65,536 slots a thread (3 MiB), ppt attach to a file",
            Ppt::LowPower | Ppt::Paper => {
                return format!("the same with --rate {}", self.rate());
            }
        }
        .into()
    }

    fn idle(&self, place: &Place) -> Result<Program> {
        Program::start(Command::new(place.built("ppt")))
    }

    fn build(&self, place: &Place) -> Result<String> {
        let folder = place.of("ppt");
        let generated = place.build.join("generated");
        run(Command::new(place.ppt.join("pptc"))
            .args(["--emit", "c", "-o"])
            .arg(&generated)
            .args([folder.join("bare.frame"), folder.join("stamped.frame")]))?;
        let files = [folder.join("main.c"), generated.join("bare.c"), generated.join("stamped.c")];
        let files = files.iter().map(|file| file.display().to_string());
        let output = ["-o".into(), place.built("ppt").display().to_string()];
        let include = format!("-I{}", generated.display());
        compile("gcc", files.chain(output).chain([include]))?;
        line(&place.ppt.join("ppt").to_string_lossy(), &["--version"])
    }

    fn ways(&self) -> &'static [&'static str] {
        &["stamped", "bare"]
    }

    fn attach<'a>(
        &'a self,
        place: &'a Place,
        program: &mut Program,
        _: &str,
        folder: &'a Path,
        memory: Option<u64>,
    ) -> Result<Attached<'a>> {
        let file = folder.join("out.bin");
        let mut command = Command::new(place.ppt.join("ppt"));
        command.args(["attach", &program.pid().to_string(), "-v", "-o"]).arg(&file);
        command.args(["--rate", self.rate()]);
        if let Some(memory) = memory {
            command.args([
                "--slots",
                &(1 << (memory / STRIDE).ilog2()).to_string(),
                "--memory",
                "1G",
            ]);
        }
        let mut daemon = Daemon::start(command.stderr(Stdio::piped()))?;
        let mut said = BufReader::new(daemon.child().stderr.take().context("stderr")?).lines();
        let (mut held, mut all) = (None, String::new());
        loop {
            let Some(line) = said.next().transpose()? else { bail!("{}", all.trim()) };
            if let Some((_, time)) = line.split_once("held the target for ") {
                held = time.split(' ').next().and_then(|piece| piece.parse().ok());
            }
            if line.starts_with("attached:") {
                break;
            }
            all = format!("{all}\n{line}");
        }
        let pids = vec![daemon.id()];
        // What it says from now on would else fill the pipe.
        std::thread::spawn(move || said.for_each(drop));
        let stop = move |_: &mut Program| {
            daemon.end(Signal::SIGINT)?;
            let info =
                run(Command::new(place.ppt.join("ppt")).args(["info", "--json"]).arg(&file))?;
            let info: Value = serde_json::from_slice(&info.stdout)?;
            let sum = |what: &dyn Fn(&Value) -> u64| {
                info["buffers"].as_array().into_iter().flatten().map(what).sum()
            };
            let dropped = |it: &Value| {
                let causes = it["dropped"].as_object();
                causes.into_iter().flatten().filter_map(|cause| cause.1.as_u64()).sum::<u64>()
            };
            Ok(Collected {
                events: sum(&|it| it["frames"].as_u64().unwrap_or(0)),
                said: Said::Events(sum(&|it| it["lost"].as_u64().unwrap_or(0) + dropped(it))),
                bytes: bytes_in(&file),
            })
        };
        Ok(Attached { pids, held, stop: Box::new(stop) })
    }

    // What does not depend on the rate is measured once.
    fn attaches(&self) -> bool {
        *self == Ppt::Peak
    }

    fn sizes(&self) -> bool {
        *self == Ppt::Peak
    }

    fn to_text(&self, place: &Place, folder: &Path) -> Option<Command> {
        if *self != Ppt::Peak {
            return None;
        }
        let mut command = Command::new(place.ppt.join("ppt"));
        command.args(["dump", "-b", "stamped"]).arg(folder.join("out.bin"));
        Some(command)
    }
}
