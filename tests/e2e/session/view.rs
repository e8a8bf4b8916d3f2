//! `ppt view PID`: captures and shows. However it ends, the capture stays, and the program is as if
//! it had never been attached to.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Stdio};

use nix::sys::signal::Signal::{SIGINT, SIGKILL, SIGTERM};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::fixtures::steady::{build, gate, start};
use crate::fixtures::support::{
    Account, Bench, Lines, Target, child_of, ppt, segments_of, wait_until,
};

fn can_show() -> bool {
    let there = Path::new(ppt()).with_file_name("ppt-analysis").exists();
    if !there {
        eprintln!("ppt-analysis is not built beside ppt: skipped");
    }
    there
}

/// A running `ppt view`.
struct Shown {
    child: Child,
    stderr: Lines,
    url: String,
}

impl Shown {
    fn start(bench: &Bench, args: &[&str]) -> Shown {
        let mut command = bench.command(ppt());
        command.arg("view").args(args).arg("--no-open").env("XDG_CACHE_HOME", bench.path("cache"));
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let stdout = Lines::new(child.stdout.take().unwrap(), "stdout of ppt view");
        let stderr = Lines::new(child.stderr.take().unwrap(), "stderr of ppt view");
        let rest = stdout.wait_for("http://127.0.0.1:");
        Shown { child, stderr, url: format!("http://127.0.0.1:{rest}") }
    }

    fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id() as i32), signal).unwrap();
    }

    /// The data of the page.
    fn about(&self) -> Value {
        let (address, token) =
            self.url.strip_prefix("http://").unwrap().split_once("/#token=").unwrap();
        let mut stream = TcpStream::connect(address).unwrap();
        write!(
            stream,
            "GET /v1/about HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\n\
             connection: close\r\n\r\n"
        )
        .unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        serde_json::from_str(text.split_once("\r\n\r\n").unwrap().1).unwrap()
    }

    /// Waits until the page has this many frames.
    fn wait_for(&self, frames: u64) {
        wait_until("the page knows of the frames", || {
            self.about()["captures"][0]["captured"].as_str() == Some(&frames.to_string())
        });
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn captures(bench: &Bench) -> Vec<String> {
    let names = std::fs::read_dir(bench.path("")).unwrap();
    let names = names.map(|name| name.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.starts_with("view-") && name.ends_with(".bin")).collect()
}

fn burst(target: &mut Target, frames: u64) {
    target.say(&format!("burst {frames}"));
    target.written();
}

#[test]
fn view_shows_a_process_and_keeps_the_capture() {
    if !can_show() {
        return;
    }
    let bench = build(&[]);
    let mut target = start(&bench);
    let pid = target.pid().to_string();
    let mut makers = Vec::new();
    type End = fn(&Shown);
    let ends: [(&str, End, i32); 4] = [
        ("int.bin", |shown| shown.signal(SIGINT), 0),
        ("term.bin", |shown| shown.signal(SIGTERM), 0),
        (
            "child.bin",
            |shown| kill(Pid::from_raw(child_of(shown.child.id()) as i32), SIGINT).unwrap(),
            0,
        ),
        (
            "killed.bin",
            |shown| kill(Pid::from_raw(child_of(shown.child.id()) as i32), SIGKILL).unwrap(),
            1,
        ),
    ];
    for (file, end, code) in ends {
        let mut shown = Shown::start(&bench, &[&pid, "-o", file]);
        assert!(gate(&mut target));
        burst(&mut target, 700);
        shown.wait_for(700);
        burst(&mut target, 300);
        shown.wait_for(1000);
        assert_eq!(shown.about()["captures"][0]["ended"], false);
        end(&shown);
        assert_eq!(shown.child.wait().unwrap().code(), Some(code), "{file}");
        let said = shown.stderr.wait_for("ppt: captured 1,000 frames");
        assert!(said.contains(&format!("; {file}: ")), "{said}");
        assert!(!gate(&mut target), "{file}: off again");
        let account = Account::of(&bench.info(file));
        assert_eq!(account, Account { captured: 1000, ..Account::default() }, "{file}");
        makers.push(shown.child.id());
    }
    target.finish();
    assert_eq!(segments_of(&makers), 0);
}

#[test]
fn a_view_ends_with_a_killed_ppt() {
    if !can_show() {
        return;
    }
    let bench = build(&[]);
    let mut target = start(&bench);
    let shown = Shown::start(&bench, &[&target.pid().to_string()]);
    burst(&mut target, 100);
    shown.wait_for(100);
    shown.signal(SIGKILL);
    let address = shown.url.split('/').nth(2).unwrap();
    wait_until("the server has ended", || TcpStream::connect(address).is_err());
    target.finish();
}

#[test]
fn view_goes_on_when_the_process_has_ended() {
    if !can_show() {
        return;
    }
    let bench = build(&[]);
    let mut target = start(&bench);
    let mut shown = Shown::start(&bench, &[&target.pid().to_string()]);
    burst(&mut target, 500);
    target.finish();
    shown.stderr.wait_for("ppt: the capture has ended, and is still shown; Ctrl-C ends that");
    shown.wait_for(500);
    shown.signal(SIGINT);
    assert_eq!(shown.child.wait().unwrap().code(), Some(0));
    let [capture] = &captures(&bench)[..] else { panic!("one capture") };
    let account = Account::of(&bench.info(capture));
    assert_eq!(account, Account { captured: 500, ..Account::default() });
}

#[test]
fn view_of_a_captured_process_shows_that_capture() {
    if !can_show() {
        return;
    }
    let bench = build(&[]);
    let mut target = start(&bench);
    let pid = target.pid().to_string();
    for args in [&[][..], &["--rotate", "1h"]] {
        let attach = bench.attach(&target, args);
        burst(&mut target, 200);
        let mut shown = Shown::start(&bench, &[&pid, "-b", "steady"]);
        shown.stderr.wait_for(&format!("ppt: process {pid} is captured into "));
        burst(&mut target, 100);
        shown.wait_for(300);
        shown.signal(SIGINT);
        assert_eq!(shown.child.wait().unwrap().code(), Some(0));
        assert!(gate(&mut target), "the other goes on");
        burst(&mut target, 50);
        attach.stop();
    }
    assert_eq!(Account::of(&bench.info("out.bin")).captured, 350);
    assert!(captures(&bench).is_empty());
    target.finish();
}

#[test]
fn view_of_nothing_says_why_and_leaves_nothing() {
    if !can_show() {
        return;
    }
    let bench = build(&[]);
    let mut target = start(&bench);
    let pid = target.pid().to_string();
    let own = std::process::id().to_string();
    for (args, expected, code) in [
        (&["999999999"][..], "999999999", 1),
        (&[&own], "has no ppt buffers", 1),
        (&[&pid, "-b", "nobody"], "nobody", 2),
        (&[&pid, "--kernel", "nonsense"], "nonsense", 2),
        (&[&pid, &own], "No such file", 1),
        (&[&pid, "-o", "no/folder/x.bin"], "no/folder/x.bin", 1),
        (&["out.bin", "-o", "x.bin"], "are for a process, alone", 2),
    ] {
        let ran = bench.ppt(&[&["view", "--no-open"], args].concat());
        assert!(ran.stderr.contains(expected) && ran.code() == code, "{args:?}: {ran:?}");
        assert!(!gate(&mut target), "{args:?}");
    }
    assert!(captures(&bench).is_empty());
    target.finish();
}
