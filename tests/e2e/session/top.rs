//! `ppt top PID`, in a separate terminal: it works, and however it ends, the program is as if it
//! had never been attached to.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;

use nix::pty::{Winsize, openpty};

use crate::fixtures::steady::{build, gate, start};
use crate::fixtures::support::{
    Account, Bench, Target, available, child_of, ppt, segments_of, text, wait_until,
};

fn can_show() -> bool {
    available("setsid")
}

/// A terminal with a program in it.
struct Terminal {
    child: Child,
    keys: Option<File>,
    seen: Arc<Mutex<Vec<u8>>>,
}

impl Terminal {
    fn start(bench: &Bench, args: &[&str]) -> Terminal {
        let size = Winsize { ws_row: 24, ws_col: 100, ws_xpixel: 0, ws_ypixel: 0 };
        let pty = openpty(&size, None).unwrap();
        let copy = |fd: &OwnedFd| Stdio::from(fd.try_clone().unwrap());
        // In a separate session, this becomes its terminal; the process stays the same.
        let mut command: Command = bench.command("setsid");
        // The parent of the tests may ignore SIGHUP (nohup(1)).
        command.args(["--ctty", "env", "--default-signal=HUP", ppt(), "top"]);
        command.args(args).env("TERM", "xterm");
        command.stdin(copy(&pty.slave)).stdout(copy(&pty.slave)).stderr(copy(&pty.slave));
        let child = command.spawn().unwrap();
        drop(command);
        let keys = File::from(pty.master);
        let mut screen = keys.try_clone().unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let ours = seen.clone();
        thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = screen.read(&mut bytes) {
                ours.lock().unwrap().extend_from_slice(&bytes[..count]);
            }
        });
        Terminal { child, keys: Some(keys), seen }
    }

    fn bytes(&self) -> String {
        text(&self.seen.lock().unwrap())
    }

    /// The drawn text, word by word.
    fn text(&self) -> String {
        let mut words = String::new();
        for part in self.bytes().split("\x1b[") {
            let rest = part.trim_start_matches(|c: char| c.is_ascii_digit() || ";?".contains(c));
            words.push(' ');
            words.push_str(rest.get(1..).unwrap_or(""));
        }
        words.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    fn wait_for(&self, what: &str) {
        // Unchanged text is not drawn again unless requested.
        let mut looks = 0;
        wait_until("it is shown, or nothing comes any more", || {
            looks += 1;
            if looks % 200 == 0 {
                self.press("\x0c");
            }
            self.text().contains(what) || looks > 15_000
        });
        assert!(self.text().contains(what), "no `{what}` in {:?}", self.text());
    }

    fn press(&self, keys: &str) {
        self.keys.as_ref().unwrap().write_all(keys.as_bytes()).unwrap();
    }

    /// Waits for its end, and returns its exit code.
    fn ended(&mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn send(pid: u32, signal: nix::sys::signal::Signal) {
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid as i32), signal).unwrap();
}

/// A terminal that shows a target with 1,000 written frames.
fn shown(bench: &Bench, target: &mut Target) -> Terminal {
    let terminal = Terminal::start(bench, &[&target.pid().to_string(), "--every", "100ms"]);
    wait_until("the gate is open", || gate(target));
    target.say("burst 1000");
    target.written();
    terminal.wait_for("captured 1,000");
    terminal
}

#[test]
fn top_shows_what_goes_on_and_leaves_no_trace() {
    use nix::sys::signal::Signal::{SIGINT, SIGKILL, SIGTERM};
    if !can_show() {
        return;
    }
    let bench = build(&[]);
    let mut target = start(&bench);
    let mut makers = Vec::new();
    type TerminalEnd = fn(&mut Terminal);
    let ends: [(&str, TerminalEnd, Option<i32>); 6] = [
        ("q", |terminal| terminal.press("q"), Some(0)),
        ("Ctrl-C", |terminal| terminal.press("\x03"), Some(0)),
        ("SIGTERM", |terminal| send(terminal.child.id(), SIGTERM), Some(1)),
        ("SIGINT to the view", |terminal| send(child_of(terminal.child.id()), SIGINT), Some(1)),
        ("the view is killed", |terminal| send(child_of(terminal.child.id()), SIGKILL), Some(1)),
        ("the terminal is closed", |terminal| drop(terminal.keys.take()), None),
    ];
    for (what, end, code) in ends {
        let mut terminal = shown(&bench, &mut target);
        if what == "q" {
            terminal.press("\t");
            terminal.wait_for("PROCESS, THREAD");
            terminal.press("\tp");
            terminal.wait_for("paused");
            terminal.press("pw");
            terminal.wait_for("the latest 1,000 frames are in top-");
        }
        if what == "the terminal is closed" {
            // The reading thread has the other copy.
            send(terminal.child.id(), nix::sys::signal::Signal::SIGHUP);
        }
        end(&mut terminal);
        let ended = terminal.ended();
        assert!(code.is_none() || ended == code, "{what}: {ended:?} {:?}", terminal.text());
        assert!(terminal.text().contains("nothing lost"), "{what}");
        wait_until(&format!("the screen is as it was, after {what}"), || {
            let said = terminal.bytes();
            said.rfind("\x1b[?1049h") < said.rfind("\x1b[?1049l") || code.is_none()
        });
        assert!(!gate(&mut target), "{what}: off again");
        makers.push(terminal.child.id());
    }
    target.say("burst 10");
    target.written();
    target.finish();
    assert_eq!(segments_of(&makers), 0);
    // The written part is a capture.
    let names = fs::read_dir(bench.path("")).unwrap().map(|result| result.unwrap().file_name());
    let saved = names.map(|name| name.into_string().unwrap()).find(|text| text.starts_with("top-"));
    let account = Account::of(&bench.info(&saved.unwrap()));
    assert_eq!(account, Account { captured: 1000, ..Account::default() });
}

#[test]
fn top_once_is_a_table() {
    if !can_show() {
        return;
    }
    let bench = build(&[]);
    let mut target = start(&bench);
    let pid = target.pid().to_string();
    target.say("run");
    target.stdout.wait_for("running");
    let ran = bench.ppt(&["top", &pid, "--once", "--every", "300ms"]);
    assert_eq!((ran.code(), ran.stderr.as_str()), (0, ""));
    let steady = ran.stdout.lines().find(|line| line.starts_with("steady ")).expect("a row");
    let count: u64 = steady.split_whitespace().nth(2).unwrap().replace(',', "").parse().unwrap();
    assert!(count > 0, "{}", ran.stdout);
    assert!(ran.stdout.contains("\n  twice "), "{}", ran.stdout);
    assert!(!gate(&mut target));
    target.say("halt");
    target.written();

    let ran = bench.ppt(&["top", &pid]);
    assert_eq!(ran.code(), 2);
    assert!(ran.stderr.contains("standard output is none: --once prints a table"), "{ran:?}");
    let ran = bench.ppt(&["top", "nothing.bin", "--once"]);
    assert_eq!(ran.code(), 1);
    assert!(ran.stderr.contains("nothing.bin: No such file"), "{ran:?}");
    target.finish();
}

#[test]
fn top_of_a_capture_that_grows_does_it_no_harm() {
    if !can_show() {
        return;
    }
    let bench = build(&[]);
    let mut target = start(&bench);
    let attach = bench.attach(&target, &[]);
    target.say("burst 500");
    target.written();
    let mut killed = Terminal::start(&bench, &["out.bin", "--every", "100ms"]);
    killed.wait_for("captured 500");
    target.say("burst 700");
    target.written();
    killed.wait_for("captured 1,200");
    send(killed.child.id(), nix::sys::signal::Signal::SIGKILL);
    assert_eq!(killed.ended(), None);
    let mut other = Terminal::start(&bench, &["out.bin", "--every", "100ms"]);
    other.wait_for("captured 1,200");
    attach.stop();
    other.wait_for("ended: stopped");
    other.press("q");
    assert_eq!(other.ended(), Some(0));
    let account = Account::of(&bench.info("out.bin"));
    assert_eq!(account, Account { captured: 1200, ..Account::default() });
    let ran = bench.ppt(&["top", "out.bin", "--once"]);
    assert!(ran.stdout.contains("captured 1,200") && ran.code() == 0, "{ran:?}");
    target.finish();
}
