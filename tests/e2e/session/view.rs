//! `ppt view PID`: captures and shows. In every case of its end, the capture stays, and the program is as before the
//! attach.

use std::fs::{self, Permissions};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::process::{Child, Command, Stdio};

use nix::sys::signal::Signal::{SIGCONT, SIGINT, SIGKILL, SIGSTOP, SIGTERM};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::fixtures::steady::{build, gate, is_root, start};
use crate::fixtures::support::{
    Account, Bench, Lines, Target, child_of, ppt, segments_of, status, wait_until,
};

/// The user who calls sudo(8).
const CALLER: u32 = 1234;

type Start = fn(&Bench, &[&str]) -> ViewProcess;

/// As the user of this test and, if that is root, also under sudo.
fn starts() -> Vec<Start> {
    let under_sudo: Option<Start> = is_root().then_some(ViewProcess::start_under_sudo);
    [ViewProcess::start as Start].into_iter().chain(under_sudo).collect()
}

/// A running `ppt view`.
struct ViewProcess {
    child: Child,
    stderr: Lines,
    url: String,
}

impl ViewProcess {
    fn start(bench: &Bench, args: &[&str]) -> ViewProcess {
        Self::started(bench.command(ppt()), bench, args)
    }

    /// The view runs as the user who calls sudo.
    fn start_under_sudo(bench: &Bench, args: &[&str]) -> ViewProcess {
        fs::set_permissions(bench.path(""), Permissions::from_mode(0o755)).unwrap();
        fs::create_dir_all(bench.path("cache")).unwrap();
        chown(bench.path("cache"), Some(CALLER), Some(CALLER)).unwrap();
        let mut command = bench.command(ppt());
        command.env("SUDO_UID", CALLER.to_string()).env("SUDO_GID", CALLER.to_string());
        let shown = Self::started(command, bench, args);
        for field in ["Uid:", "Gid:"] {
            let ids = status(shown.view(), field).unwrap();
            assert_eq!(ids, [CALLER.to_string().as_str(); 4].join("\t"), "{field}");
        }
        assert_eq!(u64::from_str_radix(&status(shown.view(), "CapEff:").unwrap(), 16), Ok(0));
        shown
    }

    fn started(mut command: Command, bench: &Bench, args: &[&str]) -> ViewProcess {
        command.arg("view").args(args).arg("--no-open").env("XDG_CACHE_HOME", bench.path("cache"));
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let stdout = Lines::new(child.stdout.take().unwrap(), "stdout of ppt view");
        let stderr = Lines::new(child.stderr.take().unwrap(), "stderr of ppt view");
        let rest = stdout.wait_for("http://127.0.0.1:");
        ViewProcess { child, stderr, url: format!("http://127.0.0.1:{rest}") }
    }

    fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id() as i32), signal).unwrap();
    }

    /// The process of the view.
    fn view(&self) -> u32 {
        child_of(self.child.id())
    }

    fn signal_view(&self, signal: Signal) {
        kill(Pid::from_raw(self.view() as i32), signal).unwrap();
    }

    /// Waits until no process serves the page.
    fn wait_for_the_end(&self) {
        let address = self.url.split('/').nth(2).unwrap();
        wait_until("the server has ended", || TcpStream::connect(address).is_err());
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

impl Drop for ViewProcess {
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
    for start_view in starts() {
        check_ends(start_view);
    }
}

/// If either of the two ends in any way, both end, and the capture is complete.
fn check_ends(start_view: Start) {
    let bench = build(&[]);
    let mut target = start(&bench);
    let pid = target.pid().to_string();
    let mut makers = Vec::new();
    type End = fn(&ViewProcess);
    // A name that is a number is no process.
    let ends: [(&str, End, i32); 4] = [
        ("int.bin", |shown| shown.signal(SIGINT), 0),
        ("4711", |shown| shown.signal(SIGTERM), 0),
        ("child.bin", |shown| shown.signal_view(SIGINT), 0),
        ("killed.bin", |shown| shown.signal_view(SIGKILL), 1),
    ];
    for (file, end, code) in ends {
        let mut shown = start_view(&bench, &[&pid, "-o", file]);
        let owner = status(shown.view(), "Uid:").unwrap();
        assert!(gate(&mut target));
        burst(&mut target, 700);
        shown.wait_for(700);
        burst(&mut target, 300);
        shown.wait_for(1000);
        assert_eq!(shown.about()["captures"][0]["ended"], false);
        let view = shown.view();
        end(&shown);
        assert_eq!(shown.child.wait().unwrap().code(), Some(code), "{file}");
        assert_eq!(status(view, "Name:"), None, "{file}");
        let stderr = shown.stderr.wait_for("ppt: captured 1,000 frames");
        assert!(stderr.contains(&format!("; {file}: ")), "{stderr}");
        assert!(!gate(&mut target), "{file}: off again");
        let account = Account::of(&bench.info(file));
        assert_eq!(account, Account { captured: 1000, ..Account::default() }, "{file}");
        let uid = fs::metadata(bench.path(file)).unwrap().uid().to_string();
        assert_eq!(owner.split('\t').next(), Some(uid.as_str()), "{file}");
        makers.push(shown.child.id());
    }
    target.finish();
    assert_eq!(segments_of(&makers), 0);
}

#[test]
fn a_view_ends_with_a_killed_ppt() {
    for start_view in starts() {
        let bench = build(&[]);
        let mut target = start(&bench);
        let shown = start_view(&bench, &[&target.pid().to_string()]);
        burst(&mut target, 100);
        shown.wait_for(100);
        shown.signal(SIGKILL);
        shown.wait_for_the_end();
        target.finish();
    }
}

#[test]
fn ppt_does_not_wait_for_a_view_that_cannot_end() {
    for start_view in starts() {
        let bench = build(&[]);
        let mut target = start(&bench);
        let mut shown = start_view(&bench, &[&target.pid().to_string(), "-o", "out.bin"]);
        burst(&mut target, 100);
        shown.wait_for(100);
        let view = shown.view();
        shown.signal_view(SIGSTOP);
        shown.signal(SIGINT);
        assert_eq!(shown.child.wait().unwrap().code(), Some(1));
        kill(Pid::from_raw(view as i32), SIGCONT).unwrap();
        shown.stderr.wait_for("ppt: captured 100 frames");
        let expected = format!("cannot end the view: process {view} still runs");
        let stderr = shown.stderr.rest();
        assert!(stderr.contains(&expected), "{stderr}");
        shown.wait_for_the_end();
        assert!(!gate(&mut target));
        assert_eq!(Account::of(&bench.info("out.bin")).captured, 100);
        target.finish();
    }
}

#[test]
fn view_goes_on_when_the_process_has_ended() {
    let bench = build(&[]);
    let mut target = start(&bench);
    let mut shown = ViewProcess::start(&bench, &[&target.pid().to_string()]);
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
    let bench = build(&[]);
    let mut target = start(&bench);
    let pid = target.pid().to_string();
    for args in [&[][..], &["--rotate", "1h"]] {
        let attach = bench.attach(&target, args);
        burst(&mut target, 200);
        let mut shown = ViewProcess::start(&bench, &[&pid, "-b", "steady"]);
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
