//! `ppt list [PID]`: what there is to attach to.
//!
//! ```text
//! $ ppt list
//! PID   PROGRAM  BUFFER   FRAMES   STATE                          FOUND   OBJECT
//! 4711  server   example  example  attached by ppt with pid 4720  symtab  /srv/game/server
//! ```

use std::io::Write;
use std::process::ExitCode;

use ppt_agent::{AgentError, Buffer, Remarks, Searcher, Status, System, Target};

use crate::args;
use crate::cmd::select;
use crate::code::Code;
use crate::{exit, report, wording};

pub(crate) fn run(args: &args::List) -> ExitCode {
    let rows = match args.pid() {
        Some(pid) => match one(pid) {
            Ok(rows) => rows,
            Err(error) => {
                report::error(error.code(), wording::message(&error));
                return exit::FAILED;
            }
        },
        None => all(),
    };
    let text = match args.json {
        true => json(&rows),
        // Who asks for one process knows which.
        false => table(&rows, if args.pid().is_some() { 2 } else { 0 }),
    };
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            report::error(Code::CannotWrite, format_args!("cannot write to stdout: {error}"));
            exit::FAILED
        }
        _ => exit::DONE,
    }
}

/// A buffer, and whose it is.
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

/// Those of every process. Of those that we may not look at, and those that end meanwhile, there is
/// nothing to say.
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
    buffer.schema.frames.iter().map(|it| it.name.as_str()).collect()
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

fn json(rows: &[Row]) -> String {
    let mut out = String::from("[");
    for (index, Row { pid, program, buffer, status }) in rows.iter().enumerate() {
        let holder = status.holder.as_ref();
        let agent = holder.map_or("null".into(), |holder| holder.pid.to_string());
        let alive = match holder.and_then(|holder| holder.alive) {
            Some(alive) => alive.to_string(),
            None => "null".into(),
        };
        let frames: Vec<String> = frames(buffer).iter().map(|it| format!("{it:?}")).collect();
        out += if index == 0 { "\n" } else { ",\n" };
        out += &format!(
            "{{\"pid\":{pid},\"program\":{},\"buffer\":{},\"schema_hash\":\"{:016x}\",\"frames\":[{}],\"on\":{},\
             \"agent_pid\":{agent},\"agent_alive\":{alive},\"found\":\"{}\",\"object\":{},\
             \"build_id\":\"{}\"}}",
            report::json_string(program),
            report::json_string(&buffer.name),
            buffer.schema_hash,
            frames.join(","),
            status.on,
            buffer.path,
            report::json_string(&buffer.object),
            buffer.build_id
        );
    }
    out + "\n]\n"
}
