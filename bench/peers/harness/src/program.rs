//! A program under measurement, and the commands that it takes (`bench/commands.h`).

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};

use crate::process::until;

/// No command takes longer than this.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(180);

/// The running program.
pub struct Program {
    child: Child,
    /// None once it has been told to end.
    input: Option<ChildStdin>,
    output: Receiver<String>,
}

/// Numbers by name.
pub struct Answer(BTreeMap<String, f64>);

impl Answer {
    pub fn get(&self, name: &str) -> Result<f64> {
        self.may(name).with_context(|| format!("the program did not say `{name}`"))
    }

    pub fn may(&self, name: &str) -> Option<f64> {
        self.0.get(name).copied()
    }

    /// A count.
    pub fn count(&self, name: &str) -> Result<u64> {
        Ok(self.get(name)? as u64)
    }
}

impl Program {
    pub fn start(mut command: Command) -> Result<Program> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("start {}", command.get_program().display()))?;
        let (send, output) = channel();
        let stdout = child.stdout.take().context("stdout")?;
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if send.send(line).is_err() {
                    break;
                }
            }
        });
        let mut program = Program { input: child.stdin.take(), child, output };
        // Before it runs, its buffers and probes are not there yet.
        program.ask("hello")?;
        Ok(program)
    }

    /// The process that was started; a tool around the program, where one starts it.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends a command and reads its answer.
    pub fn ask(&mut self, command: &str) -> Result<Answer> {
        let input = self.input.as_mut().context("the program was told to end")?;
        writeln!(input, "{command}").with_context(|| format!("send `{command}`"))?;
        let mut answer = BTreeMap::new();
        loop {
            let line = self
                .output
                .recv_timeout(COMMAND_TIMEOUT)
                .map_err(|error| anyhow!("no answer to `{command}`: {error}"))?;
            if line == "end" {
                return Ok(Answer(answer));
            }
            if let Some((name, number)) = line.split_once(' ') {
                answer.insert(name.to_owned(), number.parse()?);
            }
        }
    }

    /// Closes its stdin and waits for it.
    pub fn end(&mut self) -> Result<()> {
        drop(self.input.take());
        let status = until(COMMAND_TIMEOUT, || self.child.try_wait().transpose())??;
        if !status.success() {
            bail!("the program ended with {status}");
        }
        Ok(())
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
