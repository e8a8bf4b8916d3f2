//! Every statement ends: soon after a signal, within its memory, and with a message. It leaves nothing
//! behind: no process, no temporary folder, no part of an output.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use ppt_capture::FileHeader;
use rustix::process::{Pid, Signal, kill_process};

use crate::cli::interrupted::bench;
use crate::support::{Bench, capture, head, names, question_of, wait_for};

/// Maximum time from a signal to the end of a question; longer on machines that are known to be busy.
fn soon() -> Duration {
    let patience = std::env::var("PPT_PATIENCE").ok().and_then(|text| text.parse().ok());
    Duration::from_secs(patience.unwrap_or(1))
}

const MIB: u64 = 1 << 20;

/// Pairs of 500,000 rows each: days of work.
const JOIN: &str = "SELECT count(*) AS c FROM it a JOIN it b ON a.n < b.seqno + 1";
/// More than 24 MiB of rows.
const SORT: &str = "SELECT * FROM it ORDER BY n % 7, n";

fn send(signal: Signal, pid: u32) {
    kill_process(Pid::from_raw(pid as i32).unwrap(), signal).unwrap();
}

/// Waits until the command's question has used some CPU time.
fn wait_for_work(child: &Child) -> u32 {
    wait_for("a question at work", || {
        let question = question_of(child.id())?;
        (ticks(question)? > 20).then_some(question)
    })
}

/// The user time of a process, in clock ticks (proc_pid_stat(5)).
fn ticks(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit(')').next()?.split_whitespace().nth(11)?.parse().ok()
}

/// Whether a process exists that has not ended.
fn runs(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')').next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with(" Z"))
}

/// Ends a command by a signal; returns its status and the time that it took.
fn stopped(mut child: Child, signal: Signal) -> (ExitStatus, Duration) {
    let since = Instant::now();
    send(signal, child.id());
    let status = child.wait().unwrap();
    (status, since.elapsed())
}

#[test]
fn a_question_ends_soon_after_a_signal() {
    let bench = bench(100);
    let fifo = bench.path("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let external =
        "CREATE EXTERNAL TABLE f (x BIGINT) STORED AS CSV LOCATION 'fifo'; SELECT * FROM f";
    let cross = "SELECT sum(a.n * b.n % 3) AS c FROM it a, it b";
    for (signal, query) in [
        (Signal::INT, JOIN),
        (Signal::TERM, JOIN),
        (Signal::HUP, cross),
        (Signal::INT, external),
        (Signal::TERM, "SELECT max(length(repeat('a', 10000) || n)) AS x FROM it"),
    ] {
        let mut command = bench.with_tmp(&["sql", "out.bin", query, "-o", "answer.csv"]);
        let child = command.spawn().unwrap();
        let question = match query == external {
            // The command waits for a writer of the FIFO.
            true => wait_for("a question that waits", || {
                let question = question_of(child.id())?;
                let tasks = fs::read_dir(format!("/proc/{question}/task")).ok()?.flatten();
                let waits = |task: fs::DirEntry| {
                    let waits = fs::read_to_string(task.path().join("wchan")).unwrap_or_default();
                    waits.contains("fifo") || waits.contains("wait_for_partner")
                };
                let wchan_is_hidden = fs::read_to_string("/proc/self/wchan").is_err();
                tasks.map(waits).any(|waits| waits || wchan_is_hidden).then_some(question)
            }),
            false => wait_for_work(&child),
        };
        let (status, took) = stopped(child, signal);
        assert_eq!(status.signal(), Some(signal.as_raw()), "{query}");
        assert!(took < soon(), "{query}: {took:?}");
        assert!(!runs(question), "{query}");
        assert_eq!(bench.names(), ["fifo", "out.bin", "tmp"], "{query}");
        assert_eq!(names(&bench.path("tmp")), [""; 0], "{query}");
    }
}

/// The maximum resident memory of a command, in bytes. The kernel reports it for all children of a
/// process together, so this test runs itself again, with one command.
fn peak(bench: &Bench, args: &[&str]) -> (u64, String, Option<i32>) {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "cli::limits::one_command", "--nocapture"])
        .env("PPT_TEST_COMMAND", args.join("\n"))
        .env("RUST_BACKTRACE", "1")
        .current_dir(bench.folder())
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let line = text.lines().find_map(|line| line.split_once("peak ")).unwrap().1;
    let (kib, code) = line.split_once(' ').unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    (kib.parse::<u64>().unwrap() << 10, said, code.parse().ok())
}

#[test]
fn one_command() {
    let Ok(words) = std::env::var("PPT_TEST_COMMAND") else { return };
    let mut command = Command::new(env!("CARGO_BIN_EXE_ppt"));
    let status = command.args(words.split('\n')).stdout(Stdio::null()).status().unwrap();
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: getrusage(2) writes a `rusage` to a pointer that is valid for one; all zeros are one, too.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_CHILDREN, usage.as_mut_ptr());
        usage.assume_init()
    };
    println!("peak {} {}", usage.ru_maxrss, status.code().unwrap_or(-1));
}

#[test]
fn a_question_keeps_within_its_memory() {
    let bench = bench(100);
    let (idle, ..) = peak(&bench, &["sql", "out.bin", "SELECT 1 AS x"]);
    // As deep as SQL may nest, in addition to the surrounding call.
    let case = (0..39)
        .fold("n".to_owned(), |inner, at| format!("CASE WHEN n = {at} THEN 2 ELSE {inner} END"));
    let case = format!("SELECT sum({case}) AS x FROM it");
    let too_much = [
        "SELECT length(repeat('a', 2000000000)) AS x",
        "SELECT sum(length(repeat('name' || n, 100000))) AS x FROM it",
        "SELECT unnest(range(0, 1000000000)) AS x LIMIT 1",
        "SELECT length(string_agg(repeat('a', 1000), '')) AS x FROM it",
    ];
    let too_much = too_much.map(|query| vec!["sql", "out.bin", query]);
    let stat = vec!["stat", "out.bin", "--by", "seqno", "--every", "1us"];
    let fits: [&[&str]; 4] = [
        &["sql", "out.bin", SORT],
        &["sql", "out.bin", &case],
        &["stat", "out.bin"],
        &["report", "out.bin"],
    ];
    let too_much = too_much.into_iter().chain([stat]).map(|args| (args, 1));
    let fits = fits.into_iter().map(|args| (args.to_vec(), 0));
    for (mut args, expected) in too_much.chain(fits) {
        args.extend(["--memory", "24M"]);
        let (most, said, code) = peak(&bench, &args);
        // An idle question needs its code, too.
        let beside = most.saturating_sub(idle) / MIB;
        assert!(beside <= 24 + 40, "{args:?}: {beside} MiB more than an idle question");
        assert_eq!(code, Some(expected), "{args:?}: {said}");
        let memory =
            "ppt: out of memory: the question needs more than --memory 24M: allow more, or ask";
        assert_eq!(said.contains(memory), expected == 1, "{args:?}: {said}");
        for noise in ["panicked", "backtrace", "allocation"] {
            assert!(!said.contains(noise), "{args:?}: {said}");
        }
    }
}

/// Text of 3,900 bytes in each frame: of 62 MB, only little waits at a time.
#[test]
fn wide_text_is_exported_within_its_memory() {
    const FRAMES: u64 = 16_000;
    let text = "emit C; buffer w; option time ns realtime; frame w { time at; char text[3900]; }";
    let schema = ppt_frame_dsl::compile(text.as_bytes(), "w.frame").unwrap().schema;
    let stride = schema.stride as usize;
    let runs = (0..FRAMES).step_by(100).map(|first| {
        let frames = (first..first + 100).flat_map(|n| {
            let mut bytes = vec![b'a' + (n % 26) as u8; stride];
            bytes[..8].copy_from_slice(&(n + 1).to_le_bytes());
            bytes[8..16].copy_from_slice(&(1_700_000_000_000_000_000 + n).to_le_bytes());
            bytes
        });
        (head(first + 1, 9), frames.collect())
    });
    let runs: Vec<_> = runs.collect();
    let bench = bench(100);
    bench.write("wide.bin", capture(&FileHeader::default(), &schema, &runs));
    let (idle, ..) = peak(&bench, &["sql", "out.bin", "SELECT 1 AS x"]);
    for format in ["perfetto", "chrome", "otlp-json"] {
        let args = ["export", "wide.bin", "--format", format, "--memory", "64M"];
        let (most, said, code) = peak(&bench, &args);
        assert_eq!(code, Some(0), "{format}: {said}");
        let beside = most.saturating_sub(idle) / MIB;
        assert!(beside <= 64, "{format}: {beside} MiB more than an idle question");
    }
}

/// Ends the question behind a command, and waits for the command.
fn murdered(bench: &Bench, args: &[&str], signal: Signal) -> (ExitStatus, String) {
    let mut command = bench.with_tmp(args);
    let mut child = command.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let question = wait_for_work(&child);
    assert_eq!(names(&bench.path("tmp")).len(), 1);
    send(signal, question);
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    (child.wait().unwrap(), said)
}

#[test]
fn a_question_that_is_killed_leaves_nothing_behind() {
    let bench = bench(100);
    let partitioned =
        ["export", "out.bin", "--format", "jsonl", "--partition-by", "frame", "-o", "all"];
    let sort = ["sql", "out.bin", SORT, "--memory", "24M", "-o", "all.csv"];
    for (args, signal, text) in [
        (&partitioned[..], Signal::KILL, "something killed the question (SIGKILL)"),
        (&sort[..], Signal::KILL, "something killed the question (SIGKILL)"),
        (&sort[..], Signal::ABORT, "a bug ended the question (signal 6): please report it"),
    ] {
        let (status, said) = murdered(&bench, args, signal);
        assert_eq!(status.code(), Some(1), "{args:?}: {said}");
        assert!(said.contains(text) && !said.contains("panicked"), "{args:?}: {said}");
        assert_eq!(bench.names(), ["out.bin", "tmp"], "{args:?}");
        assert_eq!(names(&bench.path("tmp")), [""; 0], "{args:?}");
    }
}

#[test]
fn a_question_ends_with_its_supervisor() {
    let bench = bench(100);
    let export = ["export", "out.bin", "--format", "jsonl", "--partition-by", "frame", "-o", "all"];
    for args in [&["sql", "out.bin", JOIN][..], &export] {
        let mut child = bench.with_tmp(args).spawn().unwrap();
        let question = wait_for_work(&child);
        child.kill().unwrap();
        child.wait().unwrap();
        wait_for("the end of the question", || (!runs(question)).then_some(()));
        assert_eq!(bench.names(), ["out.bin", "tmp"], "{args:?}");
        assert_eq!(names(&bench.path("tmp")), [""; 0], "{args:?}");
    }
}

#[test]
fn a_spill_to_a_full_disk_names_the_folder() {
    let bench = bench(100);
    fs::create_dir(bench.path("small")).unwrap();
    let script = "mount -t tmpfs -o size=1m none small && exec \"$0\" \"$@\"";
    let output = Command::new("unshare")
        .args(["-m", "sh", "-c", script, env!("CARGO_BIN_EXE_ppt")])
        .args(["sql", "out.bin", SORT, "--memory", "24M", "-o", "all.csv"])
        .env("TMPDIR", bench.path("small"))
        .current_dir(bench.folder())
        .output();
    let Ok(output) = output else { return eprintln!("skipped: unshare is not installed") };
    let said = String::from_utf8(output.stderr).unwrap();
    if said.contains("unshare") || said.contains("mount:") {
        return eprintln!("skipped: only root mounts a file system: {said}");
    }
    let small = bench.path("small");
    let text =
        format!("ppt: {}: no room for what the query moves out of memory: ", small.display());
    assert!(said.contains(&text), "{said}");
    assert!(said.contains("free some room, set TMPDIR to a folder with more"), "{said}");
    assert!(said.ends_with("  more: ppt explain spill-full\n"), "{said}");
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert_eq!(bench.names(), ["out.bin", "small"]);
}

/// A program with a terminal of its own, which script(1) makes.
struct AtTerminal {
    child: Child,
    shown: File,
    all: String,
}

impl AtTerminal {
    /// None if script(1) is not installed.
    fn start(bench: &Bench, args: &[&str]) -> Option<AtTerminal> {
        let quoted = args.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" ");
        let command = format!("exec '{}' {quoted}", env!("CARGO_BIN_EXE_ppt"));
        let tmp = bench.path("tmp");
        fs::create_dir_all(&tmp).unwrap();
        let child = Command::new("script")
            .args(["-qefc", &command, "typescript"])
            .env("TMPDIR", tmp)
            .env("XDG_STATE_HOME", bench.path("state"))
            .env("TERM", "dumb")
            .current_dir(bench.folder())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn();
        let Ok(child) = child else {
            eprintln!("skipped: script(1) is not installed");
            return None;
        };
        let shown = wait_for("a terminal", || File::open(bench.path("typescript")).ok());
        Some(AtTerminal { child, shown, all: String::new() })
    }

    fn types(&mut self, text: &str) {
        self.child.stdin.as_mut().unwrap().write_all(text.as_bytes()).unwrap();
    }

    /// Waits for new output that contains `text`.
    fn shows(&mut self, text: &str) {
        let (shown, all) = (&mut self.shown, &mut self.all);
        wait_for(text, || {
            let mut bytes = Vec::new();
            shown.read_to_end(&mut bytes).unwrap();
            all.push_str(&String::from_utf8_lossy(&bytes));
            let (_, rest) = all.split_once(text)?;
            let rest = rest.to_owned();
            *all = rest;
            Some(())
        });
    }
}

#[test]
fn a_prompt_keeps_its_views_when_a_question_is_ended() {
    let bench = bench(100);
    let args = ["sql", "out.bin", "--memory", "16M"];
    let Some(mut terminal) = AtTerminal::start(&bench, &args) else { return };
    terminal.shows("ppt> ");
    terminal.types("CREATE VIEW v AS SELECT count(*) + 1 AS c FROM it;\n");
    terminal.shows("ppt> ");
    terminal.types("SELECT length(repeat('a', 2000000000)) AS x;\n");
    terminal.shows("out of memory: the question needs more than --memory 16M");
    terminal.shows("the views and settings of the session are there again");
    terminal.shows("ppt> ");
    terminal.types("SELECT c + 1 AS c FROM v;\n");
    terminal.shows("500002");
    terminal.shows("ppt> ");
    // Ctrl-C ends only the question.
    let question = question_of(question_of(terminal.child.id()).unwrap()).unwrap();
    let before = ticks(question).unwrap();
    terminal.types(&format!("{JOIN};\n"));
    let works = || (ticks(question)? > before + 50).then_some(());
    wait_for("a question at work", works);
    let since = Instant::now();
    terminal.types("\u{3}");
    terminal.shows("ppt> ");
    assert!(since.elapsed() < soon(), "{:?}", since.elapsed());
    terminal.types("SELECT c + 2 AS c FROM v;\n");
    terminal.shows("500003");
    terminal.types("\\d it\n");
    terminal.shows("UInt64");
    terminal.shows("ppt> ");
    terminal.types("\\q\n");
    assert_eq!(terminal.child.wait().unwrap().code(), Some(0));
    assert_eq!(names(&bench.path("tmp")), [""; 0]);
}

#[test]
fn what_is_not_for_a_terminal_asks_for_a_file() {
    let bench = Bench::new();
    for args in [
        &["report", "out.bin"][..],
        &["plot", "out.bin", "SELECT seqno FROM pass"],
        &["sql", "out.bin", "SELECT 1 AS x", "--format", "parquet"],
        &["export", "out.bin", "--format", "arrow", "--frame", "pass"],
    ] {
        let Some(mut terminal) = AtTerminal::start(&bench, args) else { return };
        terminal.shows("is not for terminals: name a file with -o");
        assert_eq!(terminal.child.wait().unwrap().code(), Some(2), "{args:?}");
        fs::remove_file(bench.path("typescript")).unwrap();
    }
}

#[test]
fn a_question_says_what_it_is() {
    let bench = bench(100);
    let mut child = bench.with_tmp(&["sql", "out.bin", JOIN]).spawn().unwrap();
    let question = wait_for_work(&child);
    let words = fs::read_to_string(format!("/proc/{question}/cmdline")).unwrap();
    assert!(words.starts_with("ppt-question\0sql\0out.bin\0"), "{words}");
    let tmp = bench.path("tmp");
    let scratch = names(&tmp);
    assert!(scratch.len() == 1 && scratch[0].starts_with("ppt-question-"), "{scratch:?}");
    let mode = std::os::unix::fs::PermissionsExt::mode(
        &fs::metadata(tmp.join(&scratch[0])).unwrap().permissions(),
    );
    assert_eq!(mode & 0o777, 0o700);
    send(Signal::TERM, child.id());
    child.wait().unwrap();
}
