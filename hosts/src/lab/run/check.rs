//! Checks and reports: `ppt` answers in a separate process that ends with this one and may
//! only read.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, getpid, pidfd_open};
use serde_json::Value;

use super::options::LabOptions;
use crate::lab::plan::Report;

/// The most bytes of a result and of its error output.
const MAX_ANSWER_BYTES: u64 = 64 << 10;

/// Whether a query over captures holds; if not, why.
pub(super) fn check(
    options: &LabOptions,
    captures: &[PathBuf],
    sql: &str,
    limit: Duration,
) -> Result<(), String> {
    if captures.is_empty() {
        return Err("the cell has no capture: add `capture = true` to a program".to_owned());
    }
    let mut words = vec!["sql".into(), "--format".into(), "jsonl".into(), "--".into()];
    words.extend(captures.iter().map(PathBuf::from));
    words.push(sql.into());
    let answer = ask(options, &words, limit, None)?;
    let rows: Vec<&str> = answer.lines().filter(|line| !line.trim().is_empty()).collect();
    let [row] = rows[..] else {
        return Err(format!("it has {} rows: a check has one row with one column", rows.len()));
    };
    let row: Value = serde_json::from_str(row).map_err(|error| error.to_string())?;
    let columns: Vec<&Value> = row.as_object().into_iter().flat_map(|map| map.values()).collect();
    match columns[..] {
        [Value::Bool(true)] => Ok(()),
        [value] => Err(format!("it is {value}, and should be true")),
        _ => Err(format!("it has {} columns: a check has one", columns.len())),
    }
}

/// Makes the report of a plan from all captures.
pub(super) fn report(
    options: &LabOptions,
    captures: &[PathBuf],
    report: &Report,
    folder: &Path,
    limit: Duration,
) -> Result<(), String> {
    if captures.is_empty() {
        return Err("there is no capture: add `capture = true` to a program".to_owned());
    }
    let mut words: Vec<PathBuf> = Vec::new();
    let target = match (&report.html, &report.sql) {
        (Some(html), sql) => {
            words.push("report".into());
            words.extend(sql.iter().flat_map(|path| ["--sql".into(), path.clone()]));
            folder.join(html)
        }
        (None, sql) => {
            words.extend(["sql", "--format", "table"].map(PathBuf::from));
            words.extend(sql.iter().flat_map(|path| ["--file".into(), path.clone()]));
            folder.join("report.txt")
        }
    };
    words.push("--".into());
    words.extend(captures.iter().cloned());
    // The reader runs as a user who may not write here.
    let file = tempfile::Builder::new().prefix(".report").tempfile_in(folder);
    let file = file.map_err(|error| error.to_string())?;
    ask(options, &words, limit, Some(file.as_file()))?;
    file.persist_noclobber(target).map(drop).map_err(|error| error.error.to_string())
}

/// The first 64 KiB that `ppt` writes to stdout, which may be `file`; its error message if
/// it fails.
fn ask(
    options: &LabOptions,
    words: &[PathBuf],
    limit: Duration,
    file: Option<&File>,
) -> Result<String, String> {
    run(options, words, limit, file).unwrap_or_else(|error| Err(error.to_string()))
}

fn run(
    options: &LabOptions,
    words: &[PathBuf],
    limit: Duration,
    file: Option<&File>,
) -> io::Result<Result<String, String>> {
    let mut out = file.map_or_else(tempfile::tempfile, File::try_clone)?;
    let mut err = tempfile::tempfile()?;
    let mut command: Command = options.own.command("reader");
    let user = options.invoker.filter(|invoker| invoker.uid != 0);
    let user =
        user.map(|invoker| format!("{}:{}", invoker.uid, invoker.gid.unwrap_or(invoker.uid)));
    command.arg(getpid().as_raw_nonzero().to_string()).arg(user.as_deref().unwrap_or("root"));
    command.arg("--").arg(options.answers.as_deref().unwrap_or(Path::new("ppt")));
    command.args(words).stdin(Stdio::null());
    command.stdout(out.try_clone()?).stderr(err.try_clone()?);
    let mut child = command.spawn()?;
    let ended = pidfd_open(Pid::from_child(&child), PidfdFlags::empty())?;
    let wait = Timespec::try_from(limit).ok();
    let ready = poll(&mut [PollFd::new(&ended, PollFlags::IN)], wait.as_ref())?;
    if ready == 0 {
        child.kill()?;
        child.wait()?;
        return Ok(Err(format!("no answer after {limit:?}")));
    }
    let status = child.wait()?;
    let text = |file: &mut File| -> io::Result<String> {
        file.rewind()?;
        let mut bytes = Vec::new();
        file.take(MAX_ANSWER_BYTES).read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    };
    if status.success() {
        return Ok(Ok(text(&mut out)?));
    }
    let message = text(&mut err)?;
    Ok(Err(if message.trim().is_empty() { status.to_string() } else { message.trim().to_owned() }))
}
