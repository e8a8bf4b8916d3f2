//! `family_main.c` in Rust.
#![deny(warnings)]

ppt_probe::include_frames!("job");
use std::io::{Write, stdin, stdout};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::atomic::AtomicI32;
use std::sync::atomic::Ordering::Relaxed;

use job::Login;

static WHO: AtomicI32 = AtomicI32::new(0);
static WRITTEN: AtomicI32 = AtomicI32::new(0);

fn one() {
    Login::write(|f| {
        f.who = WHO.fetch_add(1, Relaxed);
        WRITTEN.fetch_add(1, Relaxed);
    });
}

/// One write per line, because other processes write, too.
fn say(what: &str) {
    let line = format!("{what}\n");
    // SAFETY: bytes of our own.
    let count = unsafe { libc::write(1, line.as_ptr().cast(), line.len()) };
    assert_eq!(count, line.len() as isize);
}

extern "C" fn ignored(_: i32) {}

extern "C" fn measured(_: i32) {
    // SAFETY: a signal with a handler.
    unsafe { libc::raise(libc::SIGUSR1) };
    let before = WRITTEN.load(Relaxed);
    for _ in 0..100 {
        one();
    }
    // SAFETY: the same.
    unsafe { libc::raise(libc::SIGUSR1) };
    let written = WRITTEN.load(Relaxed) - before;
    say(&format!("round {} {written} {}", std::process::id(), i32::from(job::on())));
}

/// Until stdin is closed.
fn live() -> ! {
    let mut closed = libc::pollfd { fd: 0, events: 0, revents: 0 };
    // SAFETY: one descriptor, and the end of the process.
    unsafe {
        while libc::poll(&mut closed, 1, -1) < 0 {}
        libc::_exit(0)
    }
}

fn child(was_on: bool) -> ! {
    // SAFETY: the handlers have the required signature.
    unsafe {
        libc::signal(libc::SIGUSR1, ignored as *const () as usize);
        libc::signal(libc::SIGUSR2, measured as *const () as usize);
    }
    say(&format!("child {} {}", std::process::id(), i32::from(was_on)));
    live()
}

/// Both processes continue. Returns whether this is the child, and whether it is on.
fn fork() -> (bool, bool) {
    // SAFETY: what the child does needs nothing that another thread may hold.
    let pid = unsafe { libc::fork() };
    (pid == 0, job::on())
}

/// The second child continues.
fn twice(daemon: bool) {
    if !fork().0 {
        return;
    }
    if daemon {
        // SAFETY: no pointers.
        unsafe { libc::setsid() };
    }
    match fork() {
        (true, was_on) => child(was_on),
        // SAFETY: the end of the process.
        _ if daemon => unsafe { libc::_exit(0) },
        _ => live(),
    }
}

fn once() {
    if let (true, was_on) = fork() {
        child(was_on);
    }
}

fn make(kind: &str) {
    match kind {
        "fork" => once(),
        "grandchild" => twice(false),
        "daemon" => twice(true),
        "thread" => std::thread::spawn(once).join().unwrap(),
        "exec" => {
            if fork().0 {
                let error = Command::new("/proc/self/exe").arg("child").exec();
                panic!("{error}");
            }
        }
        other => panic!("{other}"),
    }
}

fn main() {
    if std::env::args().len() > 1 {
        child(job::on());
    }
    println!("ready");
    let mut line = String::new();
    while stdin().read_line(&mut line).unwrap() != 0 {
        match line.trim().strip_prefix("write ") {
            Some(count) => {
                WRITTEN.store(0, Relaxed);
                for _ in 0..count.parse().unwrap() {
                    one();
                }
                println!("written {}", WRITTEN.load(Relaxed));
            }
            None => {
                make(line.trim());
                say(&format!("made {} {}", std::process::id(), i32::from(job::on())));
            }
        }
        stdout().flush().unwrap();
        line.clear();
    }
}
