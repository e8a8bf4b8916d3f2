//! `ppt view CAPTURE…`: a page on 127.0.0.1 with a timeline, until Ctrl-C. `ppt view PID` attaches, and runs
//! this with the capture.

use std::env;
use std::io::{Read, Write, stdin};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use ppt_query::EngineOptions;
use ppt_signals::SignalPipe;
use ppt_text::exit::ExitStatus;
use ppt_view_server::{Captures, ViewServer};
use tempfile::NamedTempFile;

use crate::error::AnswerError;
use crate::{args, message};

pub(crate) fn run(args: &args::ViewArgs) -> Result<ExitStatus, AnswerError> {
    let input = args.written.is_some().then(stdin);
    // Without that byte, there is no capture, and ppt reports why.
    if let Some(mut input) = input.as_ref()
        && !input.read(&mut [0]).is_ok_and(|count| count == 1)
    {
        return Ok(ExitStatus::FAILED);
    }
    let wakes = SignalPipe::take().map_err(|error| AnswerError::System("set up signals", error))?;
    let captures = |paths: &[PathBuf]| Captures {
        paths: paths.to_vec(),
        sync: args.hosts.sync.clone(),
        reference: args.hosts.reference.clone(),
        memory: args.memory,
        threads: args.threads.unwrap_or_else(|| EngineOptions::default().threads),
    };
    let index = match (args.no_index, &args.index) {
        (true, _) => None,
        (false, Some(folder)) => Some(folder.clone()),
        (false, None) => cache_folder(),
    };
    let port = args.port;
    let command = match &args.written {
        Some(capture) => format!("ppt view {}", super::report::quoted(&capture.to_string_lossy())),
        None => super::report::command(),
    };
    // Without captures before it, `--` only separates names from options.
    let written = args.written.as_slice();
    let (first, second) = match (&args.captures[..], &args.second[..]) {
        _ if !written.is_empty() => (written, None),
        ([], alone) => (alone, None),
        (first, []) => (first, None),
        (first, second) => (first, Some(captures(second))),
    };
    let captures = captures(first);
    let options = ppt_view_server::ServeOptions { captures, second, index, port, command };
    let server = ViewServer::start(options)?;
    let url = server.url();
    // The address, for scripts.
    let mut stdout = std::io::stdout();
    let shown = writeln!(stdout, "{url}").and_then(|()| stdout.flush());
    shown.map_err(AnswerError::writing("standard output"))?;
    // The browser may read it at any time.
    let _page = if !args.no_open && has_display() { open(&url) } else { None };
    if !has_display() {
        let port = server.address().port();
        message::note(format_args!(
            "open this address in a browser of this machine; from another one, first: \
             ssh -L {port}:127.0.0.1:{port} THIS-HOST"
        ));
    }
    message::note("whoever knows the address sees the captures; Ctrl-C ends it");
    // After that byte, only the end of the input follows.
    while wakes.stop().is_none() && !wakes.wait(input.as_ref().map(AsFd::as_fd), None) {}
    drop(server);
    Ok(ExitStatus::DONE)
}

/// The user's folder for caches.
fn cache_folder() -> Option<PathBuf> {
    let absolute =
        |name: &str| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))?;
    Some(cache.join("ppt/view"))
}

fn has_display() -> bool {
    ["DISPLAY", "WAYLAND_DISPLAY"]
        .iter()
        .any(|name| env::var_os(name).is_some_and(|value| !value.is_empty()))
}

/// Opens the page in a browser. Arguments of processes are public, so the browser gets the name of a
/// file that only its user can read, which redirects to the page.
fn open(url: &str) -> Option<NamedTempFile> {
    let mut page = tempfile::Builder::new().prefix("ppt-view-").suffix(".html").tempfile().ok()?;
    let text = format!("<!doctype html><meta http-equiv=\"refresh\" content=\"0; url={url}\">\n");
    page.write_all(text.as_bytes()).ok()?;
    let mut browser = Command::new("xdg-open");
    browser.arg(page.path()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    match browser.spawn() {
        Ok(_) => Some(page),
        Err(_) => {
            message::note("there is no xdg-open, which opens a browser: open the address yourself");
            None
        }
    }
}
