//! The demos run from any folder, leave their files and no process, and name the cause of the shown
//! problem.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::fixtures::steady::{as_nobody, is_root};
use crate::fixtures::support::{Bench, Ran, Target, available, copy_program, ppt, text};
use crate::session::kernel::with_tracefs;

/// Removes a folder when dropped.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Processes that run a program of the folder.
fn running_in(folder: &Path) -> Vec<PathBuf> {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let programs = processes.filter_map(|process| fs::read_link(process.path().join("exe")).ok());
    programs.filter(|path| path.starts_with(folder)).collect()
}

#[test]
fn the_demo_runs_from_anywhere_and_leaves_a_table() {
    if !available("cc") {
        return;
    }
    let bench = Bench::new();
    fs::create_dir(bench.path("elsewhere")).unwrap();
    let mut folders = Vec::new();
    for _ in 0..2 {
        let mut command = bench.command(ppt());
        command.args(["demo", "-d", "1s", "--users", "20"]);
        command.current_dir(bench.path("elsewhere")).env("TMPDIR", bench.path(""));
        let output = command.output().unwrap();
        let (said, stderr) = (text(&output.stdout), text(&output.stderr));
        assert!(output.status.success(), "{said}\n{stderr}");
        let table = said.split_whitespace().find(|word| word.ends_with("/table.tsv"));
        let table = PathBuf::from(table.unwrap_or_else(|| panic!("no path of a table: {said}")));
        let folder = Folder(table.parent().unwrap().into());
        assert!(folder.0.is_absolute() && folder.0.starts_with(bench.path("")), "{said}");
        assert!(folder.0.join("out.bin").exists());
        let page = fs::read_to_string(folder.0.join("report.html")).unwrap();
        assert!(page.contains("example") && said.contains("  ppt stat /"), "{said}");
        let rows = fs::read_to_string(&table).unwrap().lines().count();
        assert!(rows > 20, "{rows} rows");
        assert_eq!(running_in(&folder.0), [] as [PathBuf; 0]);
        assert!(folders.iter().all(|it: &Folder| it.0 != folder.0));
        folders.push(folder);
    }
    assert_eq!(fs::read_dir(bench.path("elsewhere")).unwrap().count(), 0);
}

/// On a terminal, the demo shows the timeline if its user presses Enter.
#[test]
fn the_demo_offers_the_view() {
    if !available("cc") || !available("script") {
        return;
    }
    let bench = Bench::new();
    let mut command = bench.command("script");
    let line = format!("exec '{}' demo -d 300ms --users 5", ppt());
    command.args(["-qefc", &line, "/dev/null"]).env("TMPDIR", bench.path(""));
    // Nothing opens a browser.
    command
        .env_remove("DISPLAY")
        .env_remove("WAYLAND_DISPLAY")
        .env("XDG_CACHE_HOME", bench.path("cache"));
    let mut shown = Target::spawn(command);
    shown.stdout.wait_for("Enter shows the capture as a timeline");
    shown.say("");
    shown.stdout.wait_for("http://127.0.0.1:");
    // Ctrl-C, as a terminal sends it.
    shown.say("\u{3}");
    shown.wait();
}

/// Runs `ppt demo slow`, and returns the folder that it leaves.
fn slow(bench: &Bench, mut command: Command) -> (Ran, Folder) {
    let left = bench.path("left");
    if !left.exists() {
        fs::create_dir(&left).unwrap();
    }
    command.args(["demo", "slow"]).env("TMPDIR", left);
    let output = command.output().unwrap();
    let (status, stdout, stderr) = (output.status, text(&output.stdout), text(&output.stderr));
    assert!(status.success(), "{stdout}\n{stderr}");
    let capture = stdout.lines().find_map(|line| line.strip_prefix("capture: "));
    let capture = PathBuf::from(capture.unwrap_or_else(|| panic!("no capture: {stdout}")));
    let folder = Folder(capture.parent().unwrap().into());
    assert_eq!(running_in(&folder.0), [] as [PathBuf; 0]);
    assert!(!folder.0.join("socket").exists() && !folder.0.join("journal").exists());
    (Ran { status, stdout, stderr }, folder)
}

/// The first screen of each answer shows the cause: the thread that slow requests wait for, and
/// what that thread waits for.
#[test]
fn the_slow_demo_names_its_cause() {
    let bench = Bench::new();
    let Some(command) = with_tracefs(&bench).filter(|_| available("cc")) else { return };
    let (ran, folder) = slow(&bench, command);
    let said = &ran.stdout;
    let (stat, rest) = said.split_once(" request took longer than p99").unwrap();
    let flush = stat.lines().find(|line| line.starts_with("  flush ")).unwrap();
    assert!(flush.contains(" ms ") && stat.lines().count() < 24, "{stat}");
    let screen: Vec<&str> = rest.lines().take(24).collect();
    let screen = screen.join("\n");
    assert!(screen.contains("waiting in futex (index.lock) for thread "), "{said}");
    assert!(screen.contains(" in journal.flush"), "{said}");
    // The file system of the test may never wait for a disk, and on a busy machine the threads wait
    // mainly for a CPU.
    let waits = [
        "waiting in fdatasync (journal.flush)",
        "waiting in write (journal.flush)",
        "blocked in fdatasync (journal.flush)",
        "blocked in write (journal.flush)",
    ];
    assert!(waits.iter().any(|wait| screen.contains(wait)), "{said}");
    let page = fs::read_to_string(folder.0.join("report.html")).unwrap();
    assert!(page.contains("index.lock") && page.contains("in journal.flush"), "the page");
    // The named line is the cause.
    let (_, place) = said.split_once("server.c, line ").unwrap();
    let line: usize = place.split(')').next().unwrap().parse().unwrap();
    let source = fs::read_to_string(folder.0.join("server.c")).unwrap();
    assert!(source.lines().nth(line - 1).unwrap().contains("flush();"), "{line}");
    // The suggested next commands work.
    let (_, next) = said.split_once("what next:\n").unwrap();
    let commands: Vec<&str> = next.lines().filter(|line| line.contains("out.bin")).collect();
    assert!(commands.len() >= 2, "{next}");
    for line in commands {
        let command = line.trim().split("    ").next().unwrap();
        let args = command.strip_prefix("ppt").unwrap();
        if args.starts_with(" view ") {
            // It answers until a signal ends it.
            let mut shown = bench.command("sh");
            shown.args(["-c", &format!("exec '{}' {args} --no-open --no-index", ppt())]);
            let shown = Target::spawn(shown);
            shown.stdout.wait_for("http://127.0.0.1:");
            shown.signal(libc::SIGINT);
            shown.finish();
            continue;
        }
        let asked = bench.command("sh").args(["-c", &format!("'{}' {args}", ppt())]).output();
        let asked = asked.unwrap();
        // While other programs are busy, a run does not show what it shows on an idle machine.
        let busy = ["that none of the program's threads had", "and no edge shows for which"];
        if busy.iter().any(|why| text(&asked.stderr).contains(why)) {
            continue;
        }
        assert!(asked.status.success(), "{command}: {}", text(&asked.stderr));
        assert!(text(&asked.stdout).lines().count() > 1, "{command}");
    }
}

/// Without kernel data, the demo reports what is missing, and shows the rest.
#[test]
fn the_slow_demo_shows_what_it_can() {
    if !available("cc") || !is_root() {
        return;
    }
    let bench = Bench::new();
    copy_program(ppt(), bench.path("ppt"));
    fs::set_permissions(bench.path(""), fs::Permissions::from_mode(0o755)).unwrap();
    fs::create_dir(bench.path("left")).unwrap();
    fs::set_permissions(bench.path("left"), fs::Permissions::from_mode(0o777)).unwrap();
    let (ran, folder) = slow(&bench, as_nobody(bench.command(bench.path("ppt"))));
    assert!(ran.stdout.contains("  flush "), "{}", ran.stdout);
    assert!(folder.0.join("report.html").exists());
    let is_told = ran.stdout.contains("the kernel did not show who held the lock");
    assert!(is_told != ran.stdout.contains(" in journal.flush"), "{}\n{}", ran.stdout, ran.stderr);
}
