//! `ppt demo slow`: a server with slow requests, and their cause.
//!
//! The server holds a lock while it writes to a slow disk. `ppt stat` shows which times are long,
//! `ppt why` shows what the slow requests wait for, and `ppt report` shows both on a page.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use nix::sys::signal::Signal;

use super::programs::{
    BuiltProgram, RunningProgram, SourceFile, answer, build, hand_over, new_folder, ppt, step, text,
};
use crate::args;
use crate::stdout;

const SOURCES: [SourceFile; 4] = [
    ("store.frame", include_str!("../../../examples/slow/store.frame")),
    ("protocol.h", include_str!("../../../examples/slow/protocol.h")),
    ("server.c", SERVER),
    ("clients.c", include_str!("../../../examples/slow/clients.c")),
];

const SERVER: &str = include_str!("../../../examples/slow/server.c");

const PROGRAMS: [BuiltProgram; 2] = [
    BuiltProgram { name: "server", sources: &["server.c", "store.c"] },
    BuiltProgram { name: "clients", sources: &["clients.c"] },
];

/// The beginning of the comment that marks the faulty line of the server's source.
const BLAMED: &str = "the mistake: ";

/// Returns the capture.
pub(super) fn run(args: &args::Demo) -> Result<PathBuf, String> {
    let folder = new_folder()?;
    step(format_args!("building a key-value store in {}", folder.display()));
    build(&folder, &SOURCES, &PROGRAMS)?;
    let capture = folder.join("out.bin");
    record(args, &folder, text(&capture)?)?;
    hand_over(&folder)?;
    ask(&folder, text(&capture)?)?;
    Ok(capture)
}

/// Captures the server under load.
fn record(args: &args::Demo, folder: &Path, capture: &str) -> Result<(), String> {
    let start = |name: &str, shown, arguments: &[&str]| {
        let mut command = Command::new(folder.join(name));
        // The path of a socket is short.
        command.current_dir(folder).args(arguments);
        RunningProgram::start(command, shown)
    };
    let (mut server, mut says) = start("server", "the server", &["."])?;
    let socket = says.wait_for("listening on ")?;
    let clients = args.users.unwrap_or(8).to_string();
    let (mut load, mut load_says) = start("clients", "the clients", &[&socket, &clients])?;
    load_says.wait_for("started ")?;
    step(format_args!("server with pid {} is running; {clients} clients use it", server.pid()));
    let duration = args.duration.unwrap_or(Duration::from_secs(3));
    let duration = format!("{}ms", duration.as_millis().max(1));
    let pid = server.pid().to_string();
    let kernel = ["--kernel", "sched,syscalls"];
    ppt(&[&["attach", &pid], &kernel[..], &["-d", &duration, "-o", capture]].concat())?.wait()?;
    load.stop(Signal::SIGTERM)?;
    server.stop(Signal::SIGTERM)
}

/// Asks what is slow, and why.
fn ask(folder: &Path, capture: &str) -> Result<(), String> {
    let page = folder.join("report.html");
    let page = text(&page)?;
    let as_text = ["--format", "text"];
    step("which times are long?");
    answer(&[&["stat", capture, "-b", "store"], &as_text[..]].concat())?;
    step("most requests take microseconds: what do the slowest wait for?");
    let why = ["why", capture, "--frame", "request", "--slowest", "3"];
    let why = answer(&[&why[..], &as_text].concat())?;
    ppt(&["report", capture, "-o", page])?.wait()?;
    let source = folder.join("server.c");
    let line = SERVER.lines().position(|line| line.contains(BLAMED)).unwrap_or_default() + 1;
    // Without the right to see wake-ups, ppt does not know which thread held the lock.
    let is_named = why.is_some_and(|text| text.contains("in journal.flush"));
    let missing =
        "\n  (the kernel did not show who held the lock: `ppt doctor` says what is missing)";
    let out = format!(
        "\nthe cause: a PUT holds `index.lock` during `journal.flush`, and waits for the disk\n  \
         ({}, line {line}){}\n\ncapture: {capture}\nreport:  {page}, for any browser\n\nwhat next:\n  \
         ppt view {capture}    the same on a timeline in the browser\n  \
         ppt why {capture} --frame request --where \"begin_op = 'GET'\"    GETs only read memory\n  \
         ppt whatif {capture} --speed journal.flush=10x --metric request    with a faster disk\n  \
         ppt demo    a game server, and the table of its frames\n",
        source.display(),
        if is_named { "" } else { missing }
    );
    stdout::plain(&out).map_err(|error| error.to_string())
}
