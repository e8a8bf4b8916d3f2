use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use nix::sys::signal::Signal;

use crate::peer::{Attached, Collected, Peer, Place, Said, compile};
use crate::process::{Daemon, bytes_in, line, until};
use crate::program::Program;

pub struct Usdt;

/// Whether a breakpoint is in the program's text: its memory differs from its file.
fn patched(pid: u32) -> Result<bool> {
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps"))?;
    let text = maps.lines().find(|line| line.contains(" r-xp ")).context("no text")?;
    let words: Vec<&str> = text.split_whitespace().collect();
    let (start, end) = words[0].split_once('-').context("no range")?;
    let [start, end, offset] =
        [start, end, words[2]].map(|it| u64::from_str_radix(it, 16).unwrap_or(0));
    let part = |path: &str, at: u64| -> Result<Vec<u8>> {
        let mut file = File::open(path)?;
        file.seek(SeekFrom::Start(at))?;
        let mut bytes = Vec::new();
        file.take(end - start).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let memory = part(&format!("/proc/{pid}/mem"), start)?;
    let file = part(&format!("/proc/{pid}/exe"), offset)?;
    Ok(memory.iter().zip(&file).any(|(memory, file)| memory != file))
}

/// Lines of events, and how many bpftrace says it lost.
fn count(file: &Path) -> Result<(u64, u64)> {
    let (mut events, mut lost) = (0, 0);
    for line in String::from_utf8_lossy(&std::fs::read(file)?).lines() {
        if line.starts_with("at ") {
            events += 1;
        } else if let Some(rest) = line.strip_prefix("Lost ") {
            lost += rest.split(' ').next().and_then(|piece| piece.parse::<u64>().ok()).unwrap_or(0);
        }
    }
    Ok((events, lost))
}

impl Peer for Usdt {
    fn name(&self) -> &'static str {
        "usdt"
    }

    fn about(&self) -> String {
        "a probe of systemtap-sdt-dev; bpftrace prints a line an event, its own buffers".into()
    }

    fn packages(&self) -> &'static [&'static str] {
        &["systemtap-sdt-dev", "bpftrace"]
    }

    fn build(&self, place: &Place) -> Result<String> {
        let main = place.of("usdt").join("main.c").display().to_string();
        compile("gcc", [main, "-o".into(), place.built(self.name()).display().to_string()])?;
        line("bpftrace", &["--version"])
    }

    fn attach<'a>(
        &'a self,
        place: &'a Place,
        program: &mut Program,
        _: &str,
        folder: &'a Path,
        _: Option<u64>,
    ) -> Result<Attached<'a>> {
        let (file, errors) = (folder.join("events"), folder.join("errors"));
        let probe = format!(
            "usdt:{}:ppt_bench:payload {{ printf(\"at %lld %d %d %lld %lld %lld\\n\", \
             nsecs, arg0, arg1, arg2, arg3, arg4); }}",
            place.built(self.name()).display()
        );
        let mut command = Command::new("bpftrace");
        command.args(["-p", &program.pid().to_string(), "-o"]).arg(&file).args(["-e", &probe]);
        let both = File::create(&errors)?;
        let mut daemon =
            Daemon::start(command.stdout(Stdio::from(both.try_clone()?)).stderr(both))?;
        let pid = program.pid();
        until(Duration::from_secs(30), || {
            (daemon.has_ended() || patched(pid).unwrap_or(false)).then_some(())
        })?;
        if daemon.has_ended() {
            let said = std::fs::read_to_string(&errors)?;
            bail!("bpftrace: {}", said.lines().last().unwrap_or("ended"));
        }
        // The breakpoint is there before what it is for.
        std::thread::sleep(Duration::from_millis(300));
        let pids = vec![daemon.id()];
        let stop = move |_: &mut Program| {
            // It does not empty its buffers when told to end.
            let mut size = 0;
            while std::mem::replace(&mut size, bytes_in(&file)) != size {
                std::thread::sleep(Duration::from_millis(300));
            }
            // It fails at the end where tracefs is not mounted, and may wait for a second signal; what
            // it wrote is there.
            daemon.insist(Signal::SIGINT);
            let ((events, lost), (_, elsewhere)) = (count(&file)?, count(&errors)?);
            let said = Said::Events(lost + elsewhere);
            Ok(Collected { events, said, bytes: bytes_in(&file) })
        };
        Ok(Attached { pids, held: None, stop: Box::new(stop) })
    }

    fn attaches(&self) -> bool {
        true
    }
}
