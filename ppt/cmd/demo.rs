//! `ppt demo`: starts the example server under load and attaches to it while it runs.
//!
//! Everything is real: the demo compiles the frame file, builds the server and its users with the
//! machine's C compiler, starts them, and runs this very program as `ppt attach` and `ppt dump`.
//! The binary contains the sources, so that the demo works from any folder.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::args;
use crate::cmd::other;
use crate::code::Code;
use crate::exit::ExitStatus;
use crate::failure::{Failure, Outcome};
use crate::{report, stdout};

/// The files of the example.
const SOURCES: [(&str, &str); 6] = [
    ("example.frame", include_str!("../../examples/dve/example.frame")),
    ("protocol.h", include_str!("../../examples/dve/protocol.h")),
    ("server.c", include_str!("../../examples/dve/server.c")),
    ("users.c", include_str!("../../examples/dve/users.c")),
    ("world.c", include_str!("../../examples/dve/world.c")),
    ("world.h", include_str!("../../examples/dve/world.h")),
];

/// The meanings of the example's `kind`.
const KINDS: [(&str, &str); 4] =
    [("-1", "simulation step"), ("0", "update"), ("1", "login"), ("2", "logout")];

pub(crate) fn run(args: &args::Demo) -> Outcome {
    match demo(args) {
        Ok(()) => Ok(ExitStatus::DONE),
        Err(message) => Err(Failure::failed(Code::Demo, message)),
    }
}

fn demo(args: &args::Demo) -> Result<(), String> {
    let folder = new_folder()?;
    step(format_args!("building the example server in {}", folder.display()));
    build(&folder)?;

    let (mut server, mut says) = Running::start(Command::new(folder.join("server")), "the server")?;
    let address = says.wait_for("listening on ")?;
    let port = address.rsplit(':').next().unwrap_or_default().to_string();
    let mut command = Command::new(folder.join("users"));
    command.args(["--port", &port, "--users", &args.users.to_string()]);
    let (mut users, mut users_say) = Running::start(command, "the users")?;
    step(format_args!("server with pid {} is running; users log in", server.pid()));
    // ppt attaches while the users log in, so that the first rows show logins.
    let capture = folder.join("out.bin");
    let table = folder.join("table.tsv");
    let pid = server.pid().to_string();
    let mut attach = ppt(&["attach", &pid, "-o"], &capture, None)?;
    std::thread::sleep(args.duration);
    // The users log out: the last rows of the table.
    users.stop(Signal::SIGTERM)?;
    users_say.rest();
    attach.stop(Signal::SIGINT)?;
    ppt(&["dump"], &capture, Some(&table))?.wait()?;
    server.stop(Signal::SIGTERM)?;
    let written = says.wait_for("written ").unwrap_or_default();
    step(format_args!("server ended after {written} passes of its loop\n"));

    let text = summary(&table)?;
    let loss = account(&capture)?;
    let report = report_page(&capture, &folder.join("report.html"));
    let (capture, table) = (capture.display(), table.display());
    let mut out = format!("{text}\n{loss}\ncapture: {capture}\ntable:   {table}\n");
    match report {
        Some(page) => {
            let _ = writeln!(out, "report:  {}, for any browser", page.display());
            let _ = write!(
                out,
                "\nwhat next:\n  ppt stat {capture} --by kind\n  ppt sql {capture} 'SELECT who, \
                 count(*) FROM example GROUP BY who'\n  ppt top PID    while a program runs\n"
            );
        }
        None => out.push_str(
            "\n`ppt stat`, `ppt sql`, `ppt report` and `ppt top` answer more, once ppt-analysis is \
             there: `ppt explain no-analysis`\n",
        ),
    }
    stdout::plain(&out).map_err(|error| error.to_string())
}

/// Writes a page about the capture, if `ppt-analysis` is installed; returns its path.
fn report_page(capture: &Path, page: &Path) -> Option<PathBuf> {
    if !other::can_ask() {
        return None;
    }
    let written = ppt(&["report"], capture, Some(page)).and_then(|mut report| report.wait());
    written.is_ok().then(|| page.to_owned())
}

fn step(message: impl std::fmt::Display) {
    report::line(format_args!("demo: {message}"));
}

/// A new folder.
fn new_folder() -> Result<PathBuf, String> {
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

fn build(folder: &Path) -> Result<(), String> {
    for (name, text) in SOURCES {
        let path = folder.join(name);
        fs::write(&path, text)
            .map_err(|error| format!("cannot write {}: {error}", path.display()))?;
    }
    let frames = ppt_codegen::parse(SOURCES[0].1.as_bytes(), SOURCES[0].0)
        .map_err(|failure| failure.render(false))?;
    let outputs = ppt_codegen::generate(&frames, SOURCES[0].0, &[ppt_codegen::Language::C])
        .map_err(|error| error.to_string())?;
    ppt_codegen::write_outputs(folder, &outputs).map_err(|error| error.to_string())?;
    let compiler = std::env::var("CC").unwrap_or("cc".into());
    for (output, sources) in
        [("server", &["server.c", "world.c", "example.c"][..]), ("users", &["users.c"][..])]
    {
        let status = Command::new(&compiler)
            .current_dir(folder)
            .args(["-O2", "-g", "-o", output])
            .args(sources)
            .args(["-lm", "-lpthread"])
            .status()
            .map_err(|error| {
                format!(
                    "cannot run the C compiler `{compiler}`: {error}\n  install one (Debian: apt \
                     install gcc), or name it in CC"
                )
            })?;
        if !status.success() {
            return Err(format!("`{compiler}` could not build {output} in {}", folder.display()));
        }
    }
    Ok(())
}

/// Prints a command line of this very program, and starts it.
fn ppt(words: &[&str], capture: &Path, output: Option<&Path>) -> Result<Running, String> {
    let exe = std::env::current_exe().map_err(|error| format!("cannot find ppt: {error}"))?;
    let mut command = Command::new(exe);
    command.args(words).arg(capture);
    let mut shown = format!("$ ppt {} {}", words.join(" "), capture.display());
    if let Some(path) = output {
        command.arg("-o").arg(path);
        let _ = write!(shown, " -o {}", path.display());
    }
    report::line(shown);
    let child = command.stdin(Stdio::null()).spawn();
    Ok(Running { child: child.map_err(|error| format!("cannot run ppt: {error}"))?, name: "ppt" })
}

/// A program that the demo started. It never outlives the demo.
struct Running {
    child: Child,
    name: &'static str,
}

/// Its output, line by line.
struct Lines {
    stdout: BufReader<ChildStdout>,
    name: &'static str,
}

impl Running {
    fn start(mut command: Command, name: &'static str) -> Result<(Self, Lines), String> {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("cannot start {name}: {error}"))?;
        let stdout = BufReader::new(child.stdout.take().expect("piped"));
        Ok((Self { child, name }, Lines { stdout, name }))
    }

    fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Asks the program to end, and waits for its end.
    fn stop(&mut self, signal: Signal) -> Result<(), String> {
        let _ = kill(Pid::from_raw(self.pid() as i32), signal);
        self.wait()
    }

    /// Waits for the program's end; fails unless its status is 0.
    fn wait(&mut self) -> Result<(), String> {
        match self.child.wait() {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(format!("{} ended with {status}", self.name)),
            Err(error) => Err(format!("cannot wait for {}: {error}", self.name)),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Lines {
    /// The rest of the next line that starts with `prefix`.
    fn wait_for(&mut self, prefix: &str) -> Result<String, String> {
        let mut line = String::new();
        loop {
            line.clear();
            match self.stdout.read_line(&mut line) {
                Ok(0) => return Err(format!("{} ended before it said `{prefix}`", self.name)),
                Err(error) => return Err(format!("cannot hear {}: {error}", self.name)),
                Ok(_) => {}
            }
            if let Some(rest) = line.strip_prefix(prefix) {
                return Ok(rest.trim().to_string());
            }
        }
    }

    fn rest(&mut self) {
        let _ = io::copy(&mut self.stdout, &mut io::sink());
    }
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
