//! `ppt demo game`: a game server under load, and the table of its frames.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use nix::sys::signal::Signal;

use super::programs::{
    BuiltProgram, RunningProgram, SourceFile, build, hand_over, new_folder, ppt, step, text,
};
use crate::args;
use crate::stdout;

/// The files of the example.
const SOURCES: [SourceFile; 6] = [
    ("example.frame", include_str!("../../../examples/dve/example.frame")),
    ("protocol.h", include_str!("../../../examples/dve/protocol.h")),
    ("server.c", include_str!("../../../examples/dve/server.c")),
    ("users.c", include_str!("../../../examples/dve/users.c")),
    ("world.c", include_str!("../../../examples/dve/world.c")),
    ("world.h", include_str!("../../../examples/dve/world.h")),
];

const PROGRAMS: [BuiltProgram; 2] = [
    BuiltProgram { name: "server", sources: &["server.c", "world.c", "example.c"] },
    BuiltProgram { name: "users", sources: &["users.c"] },
];

/// The meanings of the example's `kind`.
const KINDS: [(&str, &str); 4] =
    [("-1", "simulation step"), ("0", "update"), ("1", "login"), ("2", "logout")];

/// Returns the capture.
pub(super) fn run(args: &args::Demo) -> Result<PathBuf, String> {
    let folder = new_folder()?;
    step(format_args!("building the example server in {}", folder.display()));
    build(&folder, &SOURCES, &PROGRAMS)?;

    let (mut server, mut says) =
        RunningProgram::start(Command::new(folder.join("server")), "the server")?;
    let address = says.wait_for("listening on ")?;
    let port = address.rsplit(':').next().unwrap_or_default().to_string();
    let mut command = Command::new(folder.join("users"));
    command.args(["--port", &port, "--users", &args.users.unwrap_or(70).to_string()]);
    let (mut users, mut users_say) = RunningProgram::start(command, "the users")?;
    step(format_args!("server with pid {} is running; users log in", server.pid()));
    // ppt attaches while the users log in, so that the first rows show logins.
    let capture = folder.join("out.bin");
    let table = folder.join("table.tsv");
    let mut attach = ppt(&["attach", &server.pid().to_string(), "-o", text(&capture)?])?;
    std::thread::sleep(args.duration.unwrap_or(Duration::from_secs(5)));
    // The users log out: the last rows of the table.
    users.stop(Signal::SIGTERM)?;
    users_say.rest();
    attach.stop(Signal::SIGINT)?;
    ppt(&["dump", text(&capture)?, "-o", text(&table)?])?.wait()?;
    server.stop(Signal::SIGTERM)?;
    let written = says.wait_for("written ").unwrap_or_default();
    step(format_args!("server ended after {written} passes of its loop\n"));

    let rows = summary(&table)?;
    let loss = account(&capture)?;
    hand_over(&folder)?;
    let page = folder.join("report.html");
    ppt(&["report", text(&capture)?, "-o", text(&page)?])?.wait()?;
    let (shown, table, page) = (capture.display(), table.display(), page.display());
    let out = format!(
        "{rows}\n{loss}\ncapture: {shown}\ntable:   {table}\nreport:  {page}, for any browser\n\nwhat \
         next:\n  ppt view {shown}    a timeline in the browser\n  ppt demo slow    why a request is \
         slow\n  ppt stat {shown} --by kind\n  ppt sql {shown} 'SELECT who, count(*) FROM example \
         GROUP BY who'\n  ppt top PID    while a program runs\n"
    );
    stdout::plain(&out).map_err(|error| error.to_string())?;
    Ok(capture)
}

/// Prints the first and last rows, and the number of rows of each kind.
fn summary(table: &Path) -> Result<String, String> {
    const SHOWN: usize = 6;
    let fail = |error: io::Error| format!("{}: {error}", table.display());
    let lines = BufReader::new(File::open(table).map_err(fail)?).lines();
    let mut first = Vec::new();
    let mut last = std::collections::VecDeque::new();
    let mut kinds: BTreeMap<String, u64> = BTreeMap::new();
    let mut kind_column = None;
    for line in lines {
        let line = line.map_err(fail)?;
        match kind_column {
            None => kind_column = line.split('\t').position(|name| name == "kind"),
            Some(column) => {
                let kind = line.split('\t').nth(column).unwrap_or_default();
                *kinds.entry(kind.into()).or_default() += 1;
            }
        }
        if first.len() <= SHOWN {
            first.push(line);
        } else {
            last.push_back(line);
            if last.len() > SHOWN {
                last.pop_front();
            }
        }
    }
    let mut out = String::new();
    let dots = if last.is_empty() { None } else { Some("…".to_string()) };
    for line in first.into_iter().chain(dots).chain(last) {
        out += &aligned(&line);
        out.push('\n');
    }
    out += "\nevents by kind\n";
    for (kind, meaning) in KINDS {
        let count = kinds.get(kind).copied().unwrap_or(0);
        let _ = writeln!(out, "{kind:>4}  {meaning:<16} {count:>8}");
    }
    Ok(out)
}

/// A row in columns whose width fits most values.
fn aligned(line: &str) -> String {
    let cells = line.split('\t').map(|cell| format!("{cell:>14}")).collect::<Vec<_>>();
    let narrow = cells.iter().enumerate().map(|(index, cell)| {
        if index < 5 { format!("{:>6}", cell.trim_start()) } else { cell.clone() }
    });
    narrow.collect::<Vec<_>>().join(" ")
}

/// The account of the capture, from its last chunk.
fn account(capture: &Path) -> Result<String, String> {
    let info = ppt_dump::Info::read(capture).map_err(|error| error.to_string())?;
    let mut out = String::new();
    for buffer in &info.buffers {
        let (lost, dropped) = (buffer.lost, buffer.dropped.total());
        let _ = writeln!(
            out,
            "buffer {}: {} frames captured, {lost} lost, {dropped} dropped",
            buffer.name, buffer.frames
        );
    }
    Ok(out)
}
