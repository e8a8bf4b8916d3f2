//! The parts that the demos share: a folder, programs that are built there and end with the demo, and
//! command lines of `ppt` itself.

use std::fmt::Write as _;
use std::fs;
use std::io::{self, BufRead, BufReader};
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, geteuid};

use crate::{privileges, report, stdout};

/// A source file: its name and its text.
pub(super) type SourceFile = (&'static str, &'static str);

/// A program to build.
pub(super) struct BuiltProgram {
    pub(super) name: &'static str,
    /// The C files that it consists of.
    pub(super) sources: &'static [&'static str],
}

/// Reports a step on stderr.
pub(super) fn step(message: impl std::fmt::Display) {
    report::line(format_args!("demo: {message}"));
}

/// Makes a new folder.
pub(super) fn new_folder() -> Result<PathBuf, String> {
    let base = std::env::temp_dir();
    let mut name = base.join(format!("ppt-demo-{}", std::process::id()));
    for attempt in 1.. {
        match fs::create_dir(&name) {
            Ok(()) => break,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && attempt < 1000 => {
                name = base.join(format!("ppt-demo-{}-{attempt}", std::process::id()));
            }
            Err(error) => return Err(format!("cannot make {}: {error}", name.display())),
        }
    }
    Ok(name)
}

/// Under sudo, answers are made as the user who called sudo, who writes into the folder. No program
/// of the folder runs as root afterwards: that user may replace it.
pub(super) fn hand_over(folder: &Path) -> Result<(), String> {
    let Some(invoker) = privileges::invoker().filter(|_| geteuid().is_root()) else {
        return Ok(());
    };
    chown(folder, Some(invoker.uid), invoker.gid)
        .map_err(|error| format!("cannot give {} away: {error}", folder.display()))
}

/// Writes the sources into the folder, and builds `programs`. The first source is the frame file.
pub(super) fn build(
    folder: &Path,
    sources: &[SourceFile],
    programs: &[BuiltProgram],
) -> Result<(), String> {
    for (name, text) in sources {
        let path = folder.join(name);
        fs::write(&path, text)
            .map_err(|error| format!("cannot write {}: {error}", path.display()))?;
    }
    let (file, text) = sources[0];
    let frames =
        ppt_codegen::parse(text.as_bytes(), file).map_err(|failure| failure.render(false))?;
    let outputs = ppt_codegen::generate(&frames, file, &[ppt_codegen::Language::C])
        .map_err(|error| error.to_string())?;
    ppt_codegen::write_outputs(folder, &outputs).map_err(|error| error.to_string())?;
    let compiler = std::env::var("CC").unwrap_or("cc".into());
    for BuiltProgram { name, sources } in programs {
        let status = Command::new(&compiler)
            .current_dir(folder)
            .args(["-O2", "-g", "-o", name])
            .args(*sources)
            .args(["-lm", "-lpthread"])
            .status()
            .map_err(|error| {
                format!(
                    "cannot run the C compiler `{compiler}`: {error}\n  install one (Debian: apt \
                     install gcc), or name it in CC"
                )
            })?;
        if !status.success() {
            return Err(format!("`{compiler}` could not build {name} in {}", folder.display()));
        }
    }
    Ok(())
}

/// Prints a command line of `ppt`, and starts it.
pub(super) fn ppt(words: &[&str]) -> Result<RunningProgram, String> {
    let child = command_line(words)?.spawn();
    Ok(RunningProgram {
        child: child.map_err(|error| format!("cannot run ppt: {error}"))?,
        name: "ppt",
    })
}

/// Prints a command line of `ppt`, runs it to its end, and prints its output; None if it failed.
pub(super) fn answer(words: &[&str]) -> Result<Option<String>, String> {
    let output = command_line(words)?.stderr(Stdio::inherit()).output();
    let output = output.map_err(|error| format!("cannot run ppt: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    stdout::plain(&text).map_err(|error| error.to_string())?;
    Ok(output.status.success().then_some(text))
}

fn command_line(words: &[&str]) -> Result<Command, String> {
    let exe = std::env::current_exe().map_err(|error| format!("cannot find ppt: {error}"))?;
    let mut shown = "$ ppt".to_owned();
    for word in words {
        let plain = !word.contains(|c: char| c.is_whitespace() || "\"'".contains(c));
        let _ = if plain { write!(shown, " {word}") } else { write!(shown, " \"{word}\"") };
    }
    report::line(shown);
    let mut command = Command::new(exe);
    command.args(words).stdin(Stdio::null());
    Ok(command)
}

/// A path as an argument.
pub(super) fn text(path: &Path) -> Result<&str, String> {
    path.to_str().ok_or_else(|| format!("{} is no UTF-8: set TMPDIR", path.display()))
}

/// A program that the demo started. It never outlives the demo.
pub(super) struct RunningProgram {
    child: Child,
    name: &'static str,
}

/// The output of a program, line by line.
pub(super) struct OutputLines {
    stdout: BufReader<ChildStdout>,
    name: &'static str,
}

impl RunningProgram {
    pub(super) fn start(
        mut command: Command,
        name: &'static str,
    ) -> Result<(Self, OutputLines), String> {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("cannot start {name}: {error}"))?;
        let stdout = BufReader::new(child.stdout.take().expect("piped"));
        Ok((Self { child, name }, OutputLines { stdout, name }))
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Asks the program to end, and waits for its end.
    pub(super) fn stop(&mut self, signal: Signal) -> Result<(), String> {
        let _ = kill(Pid::from_raw(self.pid() as i32), signal);
        self.wait()
    }

    /// Waits for the program's end; fails unless its status is 0.
    pub(super) fn wait(&mut self) -> Result<(), String> {
        match self.child.wait() {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(format!("{} ended with {status}", self.name)),
            Err(error) => Err(format!("cannot wait for {}: {error}", self.name)),
        }
    }
}

impl Drop for RunningProgram {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl OutputLines {
    /// The rest of the next line that starts with `prefix`.
    pub(super) fn wait_for(&mut self, prefix: &str) -> Result<String, String> {
        let mut line = String::new();
        loop {
            line.clear();
            match self.stdout.read_line(&mut line) {
                Ok(0) => return Err(format!("{} ended before it printed `{prefix}`", self.name)),
                Err(error) => {
                    return Err(format!("cannot read the output of {}: {error}", self.name));
                }
                Ok(_) => {}
            }
            if let Some(rest) = line.strip_prefix(prefix) {
                return Ok(rest.trim().to_string());
            }
        }
    }

    pub(super) fn rest(&mut self) {
        let _ = io::copy(&mut self.stdout, &mut io::sink());
    }
}
