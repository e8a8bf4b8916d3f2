//! `ppt list [PID]`: prints the buffers that ppt can attach to.
//!
//! ```text
//! $ ppt list
//! PID   PROGRAM  BUFFER   FRAMES   STATE                          FOUND   OBJECT
//! 4711  server   example  example  attached by ppt with pid 4720  symtab  /srv/game/server
//! ```
//!
//! A column lists the frames, counters and histograms that [are disabled](crate::cmd::choose), if there
//! are any.

use ppt_agent::{
    AgentError, Buffer, NAMES_A_LOOK, Remarks, Searcher, Status, System, Target, ThreadName,
    ThreadNames, escaped,
};
use ppt_text::exit::ExitStatus;
use serde::Serialize;

use crate::args;
use crate::cmd::select;
use crate::code::Code;
use crate::failure::{CommandResult, Failure};
use crate::{json, report, session, signals, stdout};

mod unreadable;

use unreadable::Unreadable;

pub(crate) fn run(args: &args::List) -> CommandResult {
    signals::needs_stdout()?;
    let mut rows = match args.pid() {
        Some(pid) => of_process(pid)?,
        None => of_all_processes(),
    };
    add_disabled(&mut rows);
    let text = match args.json {
        true => json(&rows),
        // The caller knows the process that it named, so its column is left out.
        false => table(&rows, if args.pid().is_some() { 2 } else { 0 }),
    };
    stdout::plain(&text).map_err(Failure::stdout)?;
    Ok(ExitStatus::DONE)
}

/// The column of disabled frames, counters and histograms. It is left out if nothing is disabled.
const DISABLED: usize = 4;
/// The column of threads. It is left out unless a single process is listed, whose threads have names
/// of their own.
const THREADS: usize = 5;
/// The most names of threads that a row shows.
const MAX_NAMES: usize = 8;

/// A buffer and its process.
struct BufferRow {
    pid: i32,
    program: String,
    buffer: Buffer,
    status: Status,
    /// Frames, counters and histograms that are not written, as the attached ppt reports.
    disabled: Vec<String>,
    /// The threads of the process, by number; empty if all processes are listed.
    threads: Vec<ListedThread>,
}

impl BufferRow {
    /// Whether no thread has another name than the program.
    fn has_plain_threads(&self) -> bool {
        self.threads.iter().all(|thread| thread.name == self.program)
    }
}

/// A thread: its number in the process's own pid namespace, and its name.
#[derive(Clone, Serialize)]
struct ListedThread {
    tid: u32,
    name: String,
}

impl From<&ThreadName> for ListedThread {
    fn from(thread: &ThreadName) -> Self {
        let end = thread.name.iter().position(|&byte| byte == 0).unwrap_or(thread.name.len());
        let name = escaped(&String::from_utf8_lossy(&thread.name[..end]));
        Self { tid: thread.tid, name }
    }
}

fn of_process(pid: i32) -> Result<Vec<BufferRow>, AgentError> {
    let target = Target::open(&System::default(), pid)?;
    let found = target.buffers()?;
    let remarks = Remarks::from_search(&found);
    let mut rows = rows(&target, target.choose(found, &[])?, &remarks)?;
    let mut named = ThreadNames::default().look(&target, NAMES_A_LOOK).named;
    named.sort_by_key(|thread| thread.tid);
    let threads: Vec<ListedThread> = named.iter().map(ListedThread::from).collect();
    rows.iter_mut().for_each(|row| row.threads.clone_from(&threads));
    Ok(rows)
}

/// The buffers of every process. Leaves out processes that end during the search; counts and reports those
/// that ppt may not read.
fn of_all_processes() -> Vec<BufferRow> {
    let system = System::default();
    let mut searcher = Searcher::of_many();
    let mut unreadable = Unreadable::default();
    let mut of_pid = |pid: i32| {
        let rows = Target::open(&system, pid).and_then(|target| {
            let found = searcher.buffers(&target)?;
            let remarks = Remarks::from_search(&found);
            rows(&target, found.buffers, &remarks)
        });
        rows.inspect_err(|error| unreadable.note(pid, error)).ok()
    };
    let rows =
        ppt_agent::processes(&system).into_iter().filter_map(&mut of_pid).flatten().collect();
    if let Some(message) = unreadable.message() {
        report::note(message);
    }
    rows
}

fn rows(
    target: &Target,
    buffers: Vec<Buffer>,
    remarks: &Remarks,
) -> Result<Vec<BufferRow>, AgentError> {
    let pid = target.pid();
    if let Some(unsearched) = remarks.unsearched.as_ref().filter(|unsearched| unsearched.of_objects)
    {
        select::not_searched(pid, unsearched);
    }
    if !buffers.is_empty() {
        for refused in &remarks.refused {
            report::warning(Code::BufferRefused, format_args!("process {pid}: {refused}"));
        }
    }
    let row = |buffer| {
        let status = ppt_agent::status(target, &buffer)?;
        let program = target.comm().into();
        Ok(BufferRow { pid, program, buffer, status, disabled: Vec::new(), threads: Vec::new() })
    };
    buffers.into_iter().map(row).collect()
}

/// Adds what the sessions of this user, for root those of all users, have disabled.
fn add_disabled(rows: &mut [BufferRow]) {
    if rows.iter().all(|row| row.status.holder.is_none()) {
        return;
    }
    for session in session::sessions() {
        let answer = session.answer;
        for row in rows.iter_mut() {
            let holder = row.status.holder.as_ref().map(|holder| holder.pid);
            let captured = answer.processes.iter().filter(|process| process.pid == row.pid);
            if holder == Some(answer.ppt.into()) {
                let names = captured.flat_map(|captured| &captured.names);
                let disabled = names.filter(|name| name.buffer == row.buffer.name && !name.enabled);
                row.disabled = disabled.map(|choosable| choosable.name.clone()).collect();
            }
        }
    }
}

fn state(status: &Status) -> String {
    match &status.holder {
        Some(holder) if holder.alive == Some(false) => format!("left by {holder}, which died"),
        Some(holder) => format!("attached by {holder}"),
        None if status.copied => "left open by a fork".into(),
        None if status.on => "on".into(),
        None => "off".into(),
    }
}

/// The names of threads, each once: `main, worker ×4`.
fn threads(threads: &[ListedThread]) -> String {
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for thread in threads {
        match counts.iter_mut().find(|(name, _)| *name == thread.name) {
            Some((_, count)) => *count += 1,
            None => counts.push((&thread.name, 1)),
        }
    }
    let more = counts.len().saturating_sub(MAX_NAMES);
    let shown = counts.into_iter().take(MAX_NAMES).map(|(name, count)| match count {
        1 => name.to_owned(),
        count => format!("{name}×{count}"),
    });
    let mut shown: Vec<String> = shown.collect();
    shown.extend((more > 0).then(|| format!("and {more} more")));
    shown.join(",")
}

fn frames(buffer: &Buffer) -> Vec<&str> {
    let frames = buffer.schema.frames.iter().filter(|frame| !frame.is_hidden());
    frames.map(|frame| frame.name.as_str()).collect()
}

fn table(rows: &[BufferRow], first_column: usize) -> String {
    let heads =
        ["PID", "PROGRAM", "BUFFER", "FRAMES", "DISABLED", "THREADS", "STATE", "FOUND", "OBJECT"];
    let mut lines = vec![heads.map(String::from)];
    // These columns are usually empty.
    let left_out = [
        rows.iter().all(|row| row.disabled.is_empty()).then_some(DISABLED),
        rows.iter().all(BufferRow::has_plain_threads).then_some(THREADS),
    ];
    for BufferRow { pid, program, buffer, status, disabled, threads: process_threads } in rows {
        let disabled = match disabled[..] {
            [] => "-".into(),
            _ => disabled.join(","),
        };
        lines.push([
            pid.to_string(),
            program.clone(),
            buffer.name.clone(),
            frames(buffer).join(","),
            disabled,
            threads(process_threads),
            state(status),
            buffer.found_by.to_string(),
            buffer.object.clone(),
        ]);
    }
    let width =
        |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; 9] = std::array::from_fn(width);
    let mut out = String::new();
    for line in &lines {
        let cells = line
            .iter()
            .zip(widths)
            .enumerate()
            .filter(|&(column, _)| column >= first_column && !left_out.contains(&Some(column)))
            .map(|(_, (cell, width))| format!("{cell:width$}"));
        out += cells.collect::<Vec<_>>().join("  ").trim_end();
        out.push('\n');
    }
    out
}

/// The JSON that scripts read.
#[derive(Serialize)]
struct Listed<'a> {
    pid: i32,
    program: &'a str,
    buffer: &'a str,
    schema_hash: String,
    frames: Vec<&'a str>,
    disabled: &'a [String],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    threads: &'a [ListedThread],
    on: bool,
    agent_pid: Option<u64>,
    agent_alive: Option<bool>,
    found: String,
    object: &'a str,
    build_id: &'a str,
}

impl<'a> From<&'a BufferRow> for Listed<'a> {
    fn from(BufferRow { pid, program, buffer, status, disabled, threads }: &'a BufferRow) -> Self {
        Self {
            pid: *pid,
            program,
            buffer: &buffer.name,
            schema_hash: format!("{:016x}", buffer.schema_hash),
            frames: frames(buffer),
            disabled,
            threads,
            on: status.on,
            agent_pid: status.holder.as_ref().map(|holder| holder.pid),
            agent_alive: status.holder.as_ref().and_then(|holder| holder.alive),
            found: buffer.found_by.to_string(),
            object: &buffer.object,
            build_id: &buffer.build_id,
        }
    }
}

fn json(rows: &[BufferRow]) -> String {
    json::lines(&rows.iter().map(Listed::from).collect::<Vec<_>>())
}
