//! Other processes: commands that must succeed, daemons that end with their owner, CPU time.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::{Signal, kill};
use nix::time::ClockId;
use nix::unistd::Pid;

pub fn pid(of: u32) -> Pid {
    Pid::from_raw(of.cast_signed())
}

/// Runs to its end; what it said becomes the error if it fails.
pub fn run(command: &mut Command) -> Result<Output> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("run {name}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let line = said.lines().find(|line| line.contains("rror")).or(said.lines().last());
        bail!("{name}: {}", line.unwrap_or("failed").trim());
    }
    Ok(output)
}

/// The first line of stdout.
pub fn line(program: &str, args: &[&str]) -> Result<String> {
    let output = run(Command::new(program).args(args))?;
    let said = String::from_utf8_lossy(&output.stdout);
    Ok(said.lines().next().unwrap_or_default().trim().to_owned())
}

/// The last CPU that this process may use: where what collects runs, so that a program with one
/// thread has the first one to itself.
fn last_cpu() -> Option<CpuSet> {
    let allowed = sched_getaffinity(Pid::from_raw(0)).ok()?;
    let last = (0..CpuSet::count()).rfind(|&cpu| allowed.is_set(cpu) == Ok(true))?;
    let mut one = CpuSet::new();
    one.set(last).ok()?;
    Some(one)
}

/// How long a process may take to end when told to.
const ENDING: Duration = Duration::from_secs(60);

/// A process that collects: pinned, and ended with its owner, however that ends.
pub struct Daemon {
    child: Child,
}

impl Daemon {
    pub fn start(command: &mut Command) -> Result<Daemon> {
        let name = command.get_program().to_string_lossy().into_owned();
        let cpus = last_cpu();
        let begin = move || {
            set_pdeathsig(Signal::SIGTERM)?;
            // Before it runs: what it takes to begin is not taken from the program.
            cpus.map_or(Ok(()), |cpus| sched_setaffinity(Pid::from_raw(0), &cpus))?;
            Ok(())
        };
        // SAFETY: two system calls and nothing else: they may stand between fork and exec.
        unsafe { command.pre_exec(begin) };
        let child =
            command.stdin(Stdio::null()).spawn().with_context(|| format!("start {name}"))?;
        Ok(Daemon { child })
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    pub fn has_ended(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(Some(_)) | Err(_))
    }

    /// Sends a signal and waits for the end.
    pub fn end(mut self, signal: Signal) -> Result<()> {
        kill(pid(self.id()), signal)?;
        self.wait()
    }

    /// Ends one that does not always listen: its status says nothing.
    pub fn insist(mut self, signal: Signal) {
        for _ in 0..5 {
            let told = kill(pid(self.id()), signal);
            let ended = || self.has_ended().then_some(());
            if told.is_err() || until(Duration::from_secs(2), ended).is_ok() {
                return;
            }
        }
    }

    pub fn wait(&mut self) -> Result<()> {
        let status = until(ENDING, || self.child.try_wait().transpose())??;
        if !status.success() {
            bail!("ended with {status}");
        }
        Ok(())
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if !self.has_ended() {
            let _ = kill(pid(self.id()), Signal::SIGTERM);
            let _ = until(Duration::from_secs(5), || self.has_ended().then_some(()));
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// User and system time of these processes, ended children aside.
pub fn cpu_time(pids: &[u32]) -> Result<Duration> {
    pids.iter()
        .map(|&it| Ok(Duration::from(ClockId::pid_cpu_clock_id(pid(it))?.now()?)))
        .sum::<Result<Duration>>()
}

/// Children of a process, by `/proc`.
pub fn children(of: u32) -> Vec<u32> {
    let tasks = std::fs::read_dir(format!("/proc/{of}/task")).into_iter().flatten().flatten();
    tasks
        .filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok())
        .flat_map(|it| it.split_whitespace().filter_map(|word| word.parse().ok()).collect::<Vec<_>>())
        .collect()
}

/// Waits until there is something, looking every 5 ms.
pub fn until<T>(patience: Duration, mut look: impl FnMut() -> Option<T>) -> Result<T> {
    let started = Instant::now();
    loop {
        if let Some(found) = look() {
            return Ok(found);
        }
        if started.elapsed() > patience {
            bail!("waited {} s in vain", patience.as_secs());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Bytes of all files below a folder, or of a file.
pub fn bytes_in(path: &Path) -> u64 {
    let Ok(files) = std::fs::read_dir(path) else {
        return std::fs::metadata(path).map_or(0, |metadata| metadata.len());
    };
    files.flatten().map(|file| bytes_in(&file.path())).sum()
}

/// Stops processes while something is done.
pub fn while_stopped<T>(pids: &[u32], act: impl FnOnce() -> Result<T>) -> Result<T> {
    let all = |signal| pids.iter().try_for_each(|&it| kill(pid(it), signal));
    all(Signal::SIGSTOP)?;
    let done = act();
    all(Signal::SIGCONT)?;
    done
}

/// Lines of a text.
pub fn lines_in(path: &Path) -> Result<u64> {
    use std::io::Read;
    let mut file = std::fs::File::open(path).with_context(|| path.display().to_string())?;
    let (mut buffer, mut lines) = (vec![0; 1 << 20], 0);
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(lines),
            read => lines += buffer[..read].iter().filter(|&&buffer| buffer == b'\n').count() as u64,
        }
    }
}
