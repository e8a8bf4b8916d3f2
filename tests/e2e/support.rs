//! What every end-to-end test needs: a folder, a compiler, a target, a `ppt`.
//!
//! Nothing here sleeps: targets and `ppt` say when they are ready, and a guard ends what it started
//! whatever happens to the test.

use std::cell::RefCell;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Output, Stdio};
use std::sync::LazyLock;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::Value;

/// How long anything that is waited for may take before the test gives up: a minute, or as many as
/// PPT_PATIENCE says, for machines that are emulated.
pub static PATIENCE: LazyLock<Duration> = LazyLock::new(|| {
    let minutes = std::env::var("PPT_PATIENCE").map_or(1, |it| it.parse().expect("minutes"));
    Duration::from_secs(60 * minutes)
});

/// The root of the repository.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Who makes the segments: what many tests are run for both of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    SysV,
    Memfd,
}

impl Kind {
    fn args(self) -> &'static [&'static str] {
        match self {
            Kind::SysV => &[],
            Kind::Memfd => &["--segment", "memfd"],
        }
    }

    /// What is said of a segment that is new.
    pub fn had(self) -> &'static str {
        match self {
            Kind::SysV => "made",
            Kind::Memfd => "awaiting",
        }
    }

    /// The name of a case in docs/reliability.md.
    pub fn case(self, case: &str) -> String {
        match self {
            Kind::SysV => case.into(),
            Kind::Memfd => format!("memfd: {case}"),
        }
    }
}

/// Tests of both kinds of segments: functions that take a [`Kind`].
macro_rules! of_both_kinds {
    ($($test:ident)*) => {
        mod sysv {
            $(#[test] fn $test() { super::$test(crate::support::Kind::SysV); })*
        }
        mod memfd {
            $(#[test] fn $test() { super::$test(crate::support::Kind::Memfd); })*
        }
    };
}
pub(crate) use of_both_kinds;

/// A folder of a test's own.
pub struct Bench {
    folder: tempfile::TempDir,
    kind: Kind,
}

impl Bench {
    pub fn new() -> Self {
        let folder = tempfile::Builder::new().prefix("ppt-test-").tempdir().unwrap();
        Self { folder, kind: Kind::SysV }
    }

    /// Attaches by segments of this kind from now on.
    pub fn of(self, kind: Kind) -> Self {
        Self { kind, ..self }
    }

    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// What an attach is told because of the kind.
    pub fn kind_args(&self) -> &'static [&'static str] {
        self.kind.args()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, text).unwrap();
        path
    }

    /// Copies a file of `tests/targets`, which may also be reached as `name` says.
    pub fn copy(&self, name: &str) -> PathBuf {
        let path = self.path(Path::new(name).file_name().unwrap().to_str().unwrap());
        fs::copy(root().join("tests/targets").join(name), &path)
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        path
    }

    pub fn copy_all(&self, names: &[&str]) {
        for name in names {
            self.copy(name);
        }
    }

    /// Runs `pptc` on frame files of the folder.
    pub fn pptc(&self, files: &[&str]) {
        let output = self.command(env!("CARGO_BIN_EXE_pptc")).args(files).output().unwrap();
        assert!(output.status.success(), "pptc: {}", text(&output.stderr));
    }

    /// Runs a compiler in the folder; warnings are errors.
    pub fn compile(&self, compiler: &str, args: &[&str]) {
        let output = self
            .command(compiler)
            .args(["-O2", "-g", "-Wall", "-Wextra", "-Wpedantic", "-Werror"])
            .args(args)
            .output()
            .unwrap_or_else(|error| panic!("{compiler}: {error}"));
        assert!(output.status.success(), "{compiler} {args:?}:\n{}", text(&output.stderr));
    }

    /// `gcc -std=c11`.
    pub fn cc(&self, args: &[&str]) {
        self.compile("gcc", &[&["-std=c11"], args].concat());
    }

    pub fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.folder.path());
        command
    }

    /// Starts a program of the folder and waits until it says `ready`.
    pub fn start(&self, program: &str, args: &[&str]) -> Target {
        let mut command = self.command(self.path(program));
        command.args(args);
        Target::start(command)
    }

    /// Runs `ppt` to its end.
    pub fn ppt(&self, args: &[&str]) -> Ran {
        self.ppt_and_pid(args).0
    }

    /// The same, and which process it was.
    pub fn ppt_and_pid(&self, args: &[&str]) -> (Ran, u32) {
        let mut command = self.command(ppt());
        command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().unwrap();
        let pid = child.id();
        let Output { status, stdout, stderr } = child.wait_with_output().unwrap();
        (Ran { status, stdout: text(&stdout), stderr: text(&stderr) }, pid)
    }

    /// Starts `ppt attach` and waits until it is attached.
    pub fn attach(&self, target: &Target, args: &[&str]) -> Attach {
        let pid = target.pid().to_string();
        let mut command = self.command(ppt());
        command.args(["attach", &pid]).args(self.kind_args()).args(args);
        Attach::start(command)
    }

    /// A table as rows of named cells.
    pub fn table(&self, capture: &str, args: &[&str]) -> Table {
        let ran = self.ppt(&[&["dump", capture], args].concat());
        assert!(ran.status.success(), "{}", ran.stderr);
        Table::parse(&ran.stdout)
    }

    /// `ppt info --json`.
    pub fn info(&self, capture: &str) -> Value {
        let ran = self.ppt(&["info", "--json", capture]);
        assert!(ran.status.success(), "{}", ran.stderr);
        serde_json::from_str(&ran.stdout).unwrap()
    }
}

pub fn ppt() -> &'static str {
    env!("CARGO_BIN_EXE_ppt")
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A finished command.
#[derive(Debug)]
pub struct Ran {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
}

impl Ran {
    /// Exit code, or what ended it.
    pub fn code(&self) -> i32 {
        self.status.code().unwrap_or_else(|| panic!("ended by a signal: {self:?}"))
    }
}

/// Lines of a pipe, read by a thread so that waiting for one has an end.
pub struct Lines {
    receiver: Receiver<String>,
    seen: RefCell<Vec<String>>,
    name: String,
}

impl Lines {
    pub fn new(pipe: impl Read + Send + 'static, name: &str) -> Self {
        let (sender, receiver) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(pipe).split(b'\n') {
                let Ok(line) = line else { return };
                if sender.send(text(&line)).is_err() {
                    return;
                }
            }
        });
        Self { receiver, seen: RefCell::default(), name: name.into() }
    }

    /// The rest of the next line that starts with `prefix`.
    pub fn wait_for(&self, prefix: &str) -> String {
        loop {
            match self.receiver.recv_timeout(*PATIENCE) {
                Ok(line) => {
                    self.seen.borrow_mut().push(line.clone());
                    if let Some(rest) = line.strip_prefix(prefix) {
                        return rest.trim().into();
                    }
                }
                Err(_) => {
                    panic!("{} never said `{prefix}`, but: {:?}", self.name, self.seen.borrow())
                }
            }
        }
    }

    /// Whether a line that starts with `prefix` has come by now.
    pub fn has(&self, prefix: &str) -> bool {
        self.seen.borrow_mut().extend(self.receiver.try_iter());
        self.seen.borrow().iter().any(|line| line.starts_with(prefix))
    }

    /// Everything until the pipe is closed, and what was seen before.
    pub fn rest(&self) -> String {
        while let Ok(line) = self.receiver.recv_timeout(*PATIENCE) {
            self.seen.borrow_mut().push(line);
        }
        self.seen.borrow().join("\n")
    }
}

/// A running program, ended when dropped.
pub struct Target {
    child: Child,
    stdin: Option<ChildStdin>,
    pub stdout: Lines,
}

impl Target {
    /// Starts it and waits until it says `ready`.
    pub fn start(command: Command) -> Self {
        let target = Self::spawn(command);
        target.stdout.wait_for("ready");
        target
    }

    pub fn spawn(mut command: Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let stdout = Lines::new(child.stdout.take().unwrap(), "the target");
        Self { stdin: child.stdin.take(), child, stdout }
    }

    /// The same, and what it says on stderr.
    pub fn spawn_loud(mut command: Command) -> (Self, Lines) {
        command.stderr(Stdio::piped());
        let mut target = Self::spawn(command);
        let stderr = Lines::new(target.child.stderr.take().unwrap(), "the target");
        (target, stderr)
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends it a line.
    pub fn say(&mut self, line: &str) {
        // In one write: the target may act on its first byte.
        self.stdin.as_mut().unwrap().write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    /// Lets it write its frames; returns how many it says it wrote.
    pub fn run(&mut self) -> u64 {
        self.say("go");
        self.written()
    }

    pub fn written(&self) -> u64 {
        self.stdout.wait_for("written ").parse().unwrap()
    }

    pub fn signal(&self, signal: i32) {
        send(self.pid(), signal);
    }

    /// Closes its stdin.
    pub fn close(&mut self) {
        drop(self.stdin.take());
    }

    /// Closes its stdin and waits for its end, which must be a good one.
    pub fn finish(mut self) {
        self.close();
        let status = self.child.wait().unwrap();
        assert!(status.success(), "the target ended with {status}");
    }

    /// Waits for its end.
    pub fn wait(&mut self) -> ExitStatus {
        self.child.wait().unwrap()
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A running `ppt attach`.
pub struct Attach {
    child: Child,
    pub stderr: Lines,
}

impl Attach {
    pub fn start(command: Command) -> Self {
        let attach = Self::spawn(command);
        attach.stderr.wait_for("attached:");
        attach
    }

    pub fn spawn(command: Command) -> Self {
        Self::spawn_into(command, Stdio::null())
    }

    /// The same with a stdout of the caller's.
    pub fn spawn_into(mut command: Command, stdout: Stdio) -> Self {
        let mut child =
            command.stdin(Stdio::null()).stdout(stdout).stderr(Stdio::piped()).spawn().unwrap();
        let stderr = Lines::new(child.stderr.take().unwrap(), "ppt attach");
        Self { child, stderr }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn signal(&self, signal: i32) {
        send(self.pid(), signal);
    }

    /// Ctrl-C; returns what it said.
    pub fn stop(self) -> String {
        self.signal(libc::SIGINT);
        self.ended(0)
    }

    /// Waits for its end by itself.
    pub fn ended(mut self, code: i32) -> String {
        let said = self.stderr.rest();
        let status = self.child.wait().unwrap();
        assert_eq!(status.code(), Some(code), "ppt attach ended with {status}:\n{said}");
        said
    }

    /// Whether it has ended by itself.
    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// kill -9.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Attach {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn send(pid: u32, signal: i32) {
    // SAFETY: no pointers; the process is a child of ours that has not been waited for.
    assert_eq!(unsafe { libc::kill(pid as i32, signal) }, 0);
}

/// A dumped table.
pub struct Table {
    pub columns: Vec<String>,
    pub rows: Vec<Vec<String>>,
}

impl Table {
    fn parse(tsv: &str) -> Self {
        let mut lines = tsv.lines().map(|line| line.split('\t').map(String::from).collect());
        Self { columns: lines.next().expect("a header line"), rows: lines.collect() }
    }

    pub fn column(&self, name: &str) -> usize {
        let at = self.columns.iter().position(|it| it == name);
        at.unwrap_or_else(|| panic!("no column {name} in {:?}", self.columns))
    }

    pub fn cells(&self, name: &str) -> Vec<&str> {
        let at = self.column(name);
        self.rows.iter().map(|row| row[at].as_str()).collect()
    }

    pub fn numbers(&self, name: &str) -> Vec<i64> {
        self.cells(name).iter().map(|cell| cell.parse().expect("a number")).collect()
    }

    /// The same where a time that was not taken is an empty cell.
    pub fn numbers_or_0(&self, name: &str) -> Vec<i64> {
        let number =
            |cell: &&str| if cell.is_empty() { 0 } else { cell.parse().expect("a number") };
        self.cells(name).iter().map(number).collect()
    }
}

/// The account of a capture, summed over its buffers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Account {
    pub captured: u64,
    pub lost: u64,
    pub dropped: u64,
}

impl Account {
    pub fn of(info: &Value) -> Self {
        let mut account = Self::default();
        for buffer in info["buffers"].as_array().unwrap() {
            let number = |value: &Value| value.as_u64().unwrap();
            account.captured += number(&buffer["frames"]);
            account.lost += number(&buffer["lost"]);
            let dropped = buffer["dropped"].as_object().unwrap();
            account.dropped += dropped.values().map(number).sum::<u64>();
            // Ring by ring, too.
            for ring in buffer["rings"].as_array().unwrap() {
                let (frames, lost) = (number(&ring["frames"]), number(&ring["lost"]));
                let range = number(&ring["next_seq"]) - number(&ring["first_seq"]);
                assert_eq!(frames + lost, range, "ring {ring}");
            }
        }
        account
    }

    /// written = captured + lost + dropped.
    pub fn check(&self, written: u64) {
        assert_eq!(self.captured + self.lost + self.dropped, written, "{self:?}");
    }
}

/// Shared memory segments that the given processes made before they ended, and that are still there.
pub fn segments_of(makers: &[u32]) -> usize {
    let table = fs::read_to_string("/proc/sysvipc/shm").unwrap();
    let maker = |line: &str| line.split_whitespace().nth(4)?.parse::<u32>().ok();
    // A number that runs is another's by now: in thousands of sessions numbers come again.
    let ended = |pid: &u32| !Path::new("/proc").join(pid.to_string()).exists();
    table.lines().skip(1).filter_map(maker).filter(|pid| makers.contains(pid) && ended(pid)).count()
}

/// Of many agents, one after the other: the first, which made what the others adopt, and the latest.
/// The numbers of those between may be others' by now.
pub fn first_and_latest(agents: &[u32]) -> Vec<u32> {
    let latest = &agents[agents.len().saturating_sub(100)..];
    agents.iter().take(1).chain(latest).copied().collect()
}

/// Mappings of segments in a process.
pub fn segments_mapped(pid: u32) -> usize {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
    maps.lines().filter(|line| line.contains("/SYSV") || line.contains("/memfd:ppt")).count()
}

/// Waits until `ppt attach` has `count` segments: those that a target makes come with its first
/// frame.
pub fn fetched(attach: &Attach, count: usize) {
    wait_until("the segments are fetched", || segments_mapped(attach.pid()) == count);
}

/// The only child of a process.
pub fn child_of(pid: u32) -> u32 {
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
    children.trim().parse().unwrap()
}

/// Waits for what the kernel tells by no event.
pub fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = std::time::Instant::now();
    while !is_so() {
        assert!(start.elapsed() < *PATIENCE, "it never came to be that {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Waits until all threads of a process are stopped.
pub fn stopped(pid: u32) {
    let state = |task: fs::DirEntry| {
        let stat = fs::read_to_string(task.path().join("stat")).unwrap();
        stat.rsplit(") ").next().unwrap().starts_with('T')
    };
    let all = || {
        let tasks = fs::read_dir(format!("/proc/{pid}/task")).unwrap();
        tasks.map(Result::unwrap).all(state)
    };
    wait_until("every thread is stopped", all);
}

/// Whether a program can be run here; a test that needs it says so and goes on.
pub fn available(program: &str) -> bool {
    let found = Command::new("sh").args(["-c", &format!("command -v {program}")]).output();
    let found = found.is_ok_and(|output| output.status.success());
    if !found {
        eprintln!("skipped: {program} is not installed");
    }
    found
}

/// How often to try something: a few times in every run of the tests, and often in the long form
/// that `tests/reliability --long` asks for.
pub fn rounds(few: usize, many: usize) -> usize {
    if std::env::var_os("PPT_LONG").is_some() { many } else { few }
}

/// One line of docs/reliability.md: what a test of a fault saw. Written where PPT_RELIABILITY names
/// a folder; `tests/reliability` makes the page of it.
pub fn record(row: &str, case: &str, written: u64, account: Account, info: &Value, leaks: usize) {
    assert_eq!(leaks, 0, "{case}: segments are left");
    let Some(folder) = std::env::var_os("PPT_RELIABILITY") else { return };
    let sum = |group: &str, cause: &str| {
        let buffers = info["buffers"].as_array().into_iter().flatten();
        buffers.map(|it| it[group][cause].as_u64().unwrap_or(0)).sum::<u64>()
    };
    let causes = [
        sum("lost_by", "overrun"),
        sum("lost_by", "disk"),
        sum("lost_by", "corrupt"),
        sum("dropped", "no_ring"),
        sum("dropped", "nested"),
        sum("dropped", "not_mapped"),
    ];
    let causes = causes.map(|it| it.to_string()).join("\t");
    let line = format!("{row}\t{case}\t{written}\t{}\t{causes}\t{leaks}\n", account.captured);
    let name = case.replace(|c: char| !c.is_ascii_alphanumeric(), "-");
    fs::write(Path::new(&folder).join(format!("{row:0>3}-{name}.tsv")), line).unwrap();
}
