use std::cell::RefCell;
use std::path::Path;
use std::process::{Command, Stdio};
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::peer::{Attached, Collected, Peer, Place, Said, compile};
use crate::process::{Daemon, bytes_in, children, line, run, until};
use crate::program::Program;

/// Sub-buffers of a CPU; LTTng's own number.
const SUB_BUFFERS: u64 = 4;
const SESSION: &str = "ppt-bench";

/// What to do when buffers are full.
#[derive(Clone, Copy)]
enum Full {
    Discard,
    Overwrite,
}

pub struct Lttng {
    full: Full,
    sessiond: Rc<RefCell<Option<Daemon>>>,
}

impl Lttng {
    /// Both modes; they share the daemon.
    pub fn both() -> [Lttng; 2] {
        let sessiond = Rc::new(RefCell::new(None));
        [Full::Discard, Full::Overwrite].map(|full| Lttng { full, sessiond: sessiond.clone() })
    }

    /// Starts the daemon, once, and says its process.
    fn sessiond(&self, place: &Place) -> Result<u32> {
        let mut sessiond = self.sessiond.borrow_mut();
        if let Some(daemon) = &*sessiond {
            return Ok(daemon.id());
        }
        if lttng(place, &["list"]).is_ok() {
            bail!("a lttng-sessiond is running already; its sessions are not ours");
        }
        let mut command = Command::new("lttng-sessiond");
        command.env("LTTNG_HOME", &place.build).arg("--no-kernel");
        let daemon = Daemon::start(command.stdout(Stdio::null()).stderr(Stdio::null()))?;
        let id = daemon.id();
        *sessiond = Some(daemon);
        until(Duration::from_secs(20), || lttng(place, &["list"]).ok())
            .context("lttng-sessiond")?;
        Ok(id)
    }

    fn begin(&self, place: &Place, folder: &Path, memory: Option<u64>) -> Result<()> {
        let output = format!("--output={}", folder.display());
        lttng(place, &["create", SESSION, &output])?;
        let full = match self.full {
            Full::Discard => "--discard",
            Full::Overwrite => "--overwrite",
        };
        let mut channel = vec![
            "enable-channel".into(),
            "-u".into(),
            "-s".into(),
            SESSION.into(),
            full.to_owned(),
        ];
        if let Some(memory) = memory {
            channel.push(format!("--subbuf-size={}", memory / SUB_BUFFERS));
            channel.push(format!("--num-subbuf={SUB_BUFFERS}"));
        }
        channel.push("events".into());
        lttng(place, &channel)?;
        lttng(place, &["enable-event", "-u", "-s", SESSION, "-c", "events", "ppt_bench:payload"])?;
        lttng(place, &["start", SESSION])?;
        Ok(())
    }
}

fn lttng<S: AsRef<std::ffi::OsStr>>(place: &Place, args: &[S]) -> Result<String> {
    let output = run(Command::new("lttng").env("LTTNG_HOME", &place.build).args(args))?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The number behind `name:` in what `lttng list` says.
fn stated(list: &str, name: &str) -> u64 {
    let lines = list.lines().filter_map(|line| line.trim().strip_prefix(name)?.strip_prefix(':'));
    lines.filter_map(|line| line.trim().parse::<u64>().ok()).sum()
}

/// Events in a trace, counted by babeltrace2 without making text of them.
fn count(folder: &Path) -> Result<u64> {
    let output = run(Command::new("babeltrace2")
        .arg(folder)
        .args(["--component=counter:sink.utils.counter", "--params=step=+0"]))?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = said.lines().rfind(|line| line.contains(" Event message")).context("no count")?;
    Ok(line.trim().split(' ').next().context("no number")?.parse()?)
}

impl Peer for Lttng {
    fn name(&self) -> &'static str {
        match self.full {
            Full::Discard => "lttng-discard",
            Full::Overwrite => "lttng-overwrite",
        }
    }

    fn about(&self) -> String {
        let full = match self.full {
            Full::Discard => "new events are lost when buffers are full",
            Full::Overwrite => "the oldest packet is lost when buffers are full",
        };
        format!("{full}; buffers a user and CPU of 4 × 512 KiB; daemons pinned, not real-time")
    }

    fn packages(&self) -> &'static [&'static str] {
        &["lttng-tools", "liblttng-ust-dev", "babeltrace2"]
    }

    fn build(&self, place: &Place) -> Result<String> {
        let folder = place.of("lttng");
        compile(
            "gcc",
            [
                format!("-I{}", folder.display()),
                folder.join("main.c").display().to_string(),
                "-o".into(),
                place.built(self.name()).display().to_string(),
                "-llttng-ust".into(),
                "-ldl".into(),
            ],
        )?;
        self.sessiond(place)?;
        let (tools, babeltrace) =
            (line("lttng", &["--version"])?, line("babeltrace2", &["--version"])?);
        Ok(format!("{tools}; {babeltrace}"))
    }

    fn idle(&self, place: &Place) -> Result<Program> {
        self.sessiond(place)?;
        let mut command = Command::new(place.built(self.name()));
        command.env("LTTNG_HOME", &place.build).env("LTTNG_UST_REGISTER_TIMEOUT", "5000");
        Program::start(command)
    }

    fn attach<'a>(
        &'a self,
        place: &'a Place,
        _: &mut Program,
        _: &str,
        folder: &'a Path,
        memory: Option<u64>,
    ) -> Result<Attached<'a>> {
        let sessiond = self.sessiond(place)?;
        let begun = self.begin(place, folder, memory);
        if begun.is_err() {
            let _ = lttng(place, &["destroy", SESSION]);
        }
        begun?;
        let mut pids = children(sessiond);
        pids.push(sessiond);
        let stop = move |_: &mut Program| {
            lttng(place, &["stop", SESSION])?;
            let list = lttng(place, &["list", SESSION])?;
            lttng(place, &["destroy", SESSION])?;
            let said = match self.full {
                Full::Discard => Said::Events(stated(&list, "Discarded events")),
                Full::Overwrite => Said::Somewhere(stated(&list, "Lost packets")),
            };
            Ok(Collected { events: count(folder)?, said, bytes: bytes_in(folder) })
        };
        Ok(Attached { pids, held: None, stop: Box::new(stop) })
    }

    fn attaches(&self) -> bool {
        true
    }

    fn sizes(&self) -> bool {
        true
    }

    fn to_text(&self, _: &Place, folder: &Path) -> Option<Command> {
        // Of its two modes, whose traces are alike, one is enough.
        let mut command = Command::new("babeltrace2");
        command.arg(folder);
        matches!(self.full, Full::Discard).then_some(command)
    }
}
