//! `ppt list [PID]`: prints the buffers that ppt can attach to.
//!
//! ```text
//! $ ppt list
//! PID   PROGRAM  BUFFER   FRAMES   STATE                          FOUND   OBJECT
//! 4711  server   example  example  attached by ppt with pid 4720  symtab  /srv/game/server
//! ```

use ppt_agent::{AgentError, Buffer, Remarks, Searcher, Status, System, Target};
use serde::Serialize;

use crate::args;
use crate::cmd::select;
use crate::code::Code;
use crate::exit::ExitStatus;
use crate::failure::{Failure, Outcome};
use crate::{json, report, signals, stdout};

pub(crate) fn run(args: &args::List) -> Outcome {
    signals::needs_stdout()?;
    let rows = match args.pid() {
        Some(pid) => one(pid)?,
        None => all(),
    };
    let text = match args.json {
        true => json(&rows),
        // The caller knows the process that it named, so its column is left out.
        false => table(&rows, if args.pid().is_some() { 2 } else { 0 }),
    };
    stdout::plain(&text).map_err(Failure::stdout)?;
    Ok(ExitStatus::DONE)
}

/// A buffer and its process.
struct Row {
    pid: i32,
    program: String,
    buffer: Buffer,
    status: Status,
}

fn one(pid: i32) -> Result<Vec<Row>, AgentError> {
    let target = Target::open(&System::default(), pid)?;
    let found = target.buffers()?;
    let remarks = Remarks::of(&found);
    rows(&target, target.choose(found, &[])?, &remarks)
}

/// The buffers of every process. Processes that ppt may not read, and processes that end meanwhile,
/// are left out.
fn all() -> Vec<Row> {
    let system = System::default();
    let mut searcher = Searcher::of_many();
    let mut of = |pid: i32| {
        let target = Target::open(&system, pid).ok()?;
        let found = searcher.buffers(&target).ok()?;
        let remarks = Remarks::of(&found);
        rows(&target, found.buffers, &remarks).ok()
    };
    ppt_agent::processes(&system).into_iter().filter_map(&mut of).flatten().collect()
}

fn rows(target: &Target, buffers: Vec<Buffer>, remarks: &Remarks) -> Result<Vec<Row>, AgentError> {
    let pid = target.pid();
    if let Some(unsearched) = remarks.unsearched.as_ref().filter(|it| it.of_objects) {
        select::not_searched(pid, unsearched);
    }
    if !buffers.is_empty() {
        for refused in &remarks.refused {
            report::warning(Code::BufferRefused, format_args!("process {pid}: {refused}"));
        }
    }
    let row = |buffer| {
        let status = ppt_agent::status(target, &buffer)?;
        Ok(Row { pid, program: target.comm().into(), buffer, status })
    };
    buffers.into_iter().map(row).collect()
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

fn frames(buffer: &Buffer) -> Vec<&str> {
    let frames = buffer.schema.frames.iter().filter(|frame| !frame.is_hidden());
    frames.map(|it| it.name.as_str()).collect()
}

fn table(rows: &[Row], first_column: usize) -> String {
    let heads = ["PID", "PROGRAM", "BUFFER", "FRAMES", "STATE", "FOUND", "OBJECT"];
    let mut lines = vec![heads.map(String::from)];
    for Row { pid, program, buffer, status } in rows {
        lines.push([
            pid.to_string(),
            program.clone(),
            buffer.name.clone(),
            frames(buffer).join(","),
            state(status),
            buffer.path.to_string(),
            buffer.object.clone(),
        ]);
    }
    let width =
        |column: usize| lines.iter().map(|it| it[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; 7] = std::array::from_fn(width);
    let mut out = String::new();
    for line in &lines {
        let cells = line
            .iter()
            .zip(widths)
            .skip(first_column)
            .map(|(cell, width)| format!("{cell:width$}"));
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
    on: bool,
    agent_pid: Option<u64>,
    agent_alive: Option<bool>,
    found: String,
    object: &'a str,
    build_id: &'a str,
}

impl<'a> From<&'a Row> for Listed<'a> {
    fn from(Row { pid, program, buffer, status }: &'a Row) -> Self {
        Self {
            pid: *pid,
            program,
            buffer: &buffer.name,
            schema_hash: format!("{:016x}", buffer.schema_hash),
            frames: frames(buffer),
            on: status.on,
            agent_pid: status.holder.as_ref().map(|it| it.pid),
            agent_alive: status.holder.as_ref().and_then(|it| it.alive),
            found: buffer.path.to_string(),
            object: &buffer.object,
            build_id: &buffer.build_id,
        }
    }
}

fn json(rows: &[Row]) -> String {
    json::lines(&rows.iter().map(Listed::from).collect::<Vec<_>>())
}
