//! Every frame is captured, lost or dropped with a cause, even when things go wrong.

use std::ffi::CString;
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::fixtures::flood::{self, count, frames, gaps};
use crate::fixtures::limits::limit_file_size;
use crate::fixtures::support::{
    Account, Attach, Bench, Kind, of_both_kinds, ppt, record, segments_of, stopped, wait_until,
};

/// Checks that `gaps` and `info` state the same lost frames.
fn gaps_agree(bench: &Bench, capture: &str, info: &serde_json::Value) {
    let gaps = gaps(bench, capture);
    for cause in ["overrun", "disk", "corrupt"] {
        let sum: u64 = gaps.iter().filter(|gap| gap.3 == cause).map(|gap| gap.2).sum();
        assert_eq!(sum, count(info, "lost_by", cause), "{cause}");
    }
}

of_both_kinds! {
    eight_threads_outrun_small_rings
}

fn eight_threads_outrun_small_rings(kind: Kind) {
    let bench = flood::build().of(kind);
    let mut target = bench.start("flood", &["8", "100000"]);
    let attach = bench.attach(&target, &["--slots", "64"]);
    let agent = attach.pid();
    let written = target.run();
    let published = flood::published(&target);
    let stderr = attach.stop();
    target.finish();

    assert_eq!((written, published), (800_000, 800_000));
    let info = bench.info("out.bin");
    let account = Account::of(&info);
    account.check(written);
    assert_eq!(count(&info, "lost_by", "overrun"), account.lost, "nothing else is a cause");
    assert!(account.lost > 0 && account.captured > 0, "{account:?}");
    assert!(stderr.contains("would have sufficed"), "{stderr}");
    assert_eq!(frames(&bench, "out.bin").len() as u64, account.captured);
    gaps_agree(&bench, "out.bin", &info);
    record(
        "16",
        &kind.case("8 threads outrun rings of 64"),
        written,
        account,
        &info,
        segments_of(&[agent]),
    );
}

#[test]
fn a_stopped_listener_loses_laps_and_counts_them() {
    let bench = flood::build();
    let mut target = bench.start("flood", &["4", "30000"]);
    let attach = bench.attach(&target, &["--slots", "1024"]);
    let agent = attach.pid();
    let mut written = target.run();
    attach.signal(libc::SIGSTOP);
    stopped(agent);
    for _ in 0..10 {
        written += target.run();
    }
    attach.signal(libc::SIGCONT);
    written += target.run();
    attach.stop();
    target.finish();

    let info = bench.info("out.bin");
    let account = Account::of(&info);
    account.check(written);
    // Of the frames written while it was stopped, a lap of each ring was left.
    let least = 10 * 4 * 30_000 - 4 * 1024;
    assert!(count(&info, "lost_by", "overrun") >= least, "{account:?}");
    let rows = frames(&bench, "out.bin");
    assert_eq!(rows.len() as u64, account.captured);
    assert!(rows.iter().any(|row| row.n >= 11 * 30_000), "it went on");
    gaps_agree(&bench, "out.bin", &info);
    record("16", "listener stopped over laps", written, account, &info, segments_of(&[agent]));
}

#[test]
fn a_disk_that_stalls_does_not_stop_the_drain() {
    let bench = Bench::new();
    bench.copy_all(&["fat.frame", "fat_main.c"]);
    bench.pptc(&["fat.frame"]);
    bench.cc(&["fat_main.c", "fat.c", "-o", "fat", "-lpthread"]);
    let mut target = bench.start("fat", &[]);

    let (mut reader, writer) = std::io::pipe().unwrap();
    let mut command = bench.command(ppt());
    command.args(["attach", &target.pid().to_string(), "-o", "-"]);
    // Room for as long as a busy machine may delay the drain.
    command.args(["--slots", "4096", "--memory", "64M"]);
    let attach = Attach::spawn_into(command, writer.into());
    attach.stderr.wait_for("attached:");
    let agent = attach.pid();
    // There is no reader: the pipe is full at once, and then the queue, at 64 MiB of 4 KiB frames.
    let mut written = 0;
    for _ in 0..24 {
        target.say("1000");
        written += target.written();
    }
    let capture = bench.path("out.bin");
    let reading = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        reader.read_to_end(&mut bytes).unwrap();
        std::fs::write(capture, bytes).unwrap();
    });
    target.say("1000");
    written += target.written();
    let said = attach.stop();
    reading.join().unwrap();
    target.finish();

    let info = bench.info("out.bin");
    assert_eq!(info["complete"], true, "{said}");
    let account = Account::of(&info);
    account.check(written);
    // The drain continued; otherwise all missing frames would be overrun. A busy machine causes
    // some overruns.
    let (disk, overrun) = (count(&info, "lost_by", "disk"), count(&info, "lost_by", "overrun"));
    assert!(disk > 1000 && overrun < disk / 2, "{said}");
    assert!(account.captured > 10_000, "{account:?}");
    gaps_agree(&bench, "out.bin", &info);
    let table = bench.table("out.bin", &[]);
    let text = table.column("text");
    for row in &table.rows {
        let n: usize = row[table.column("n")].parse().unwrap();
        let letter = (b'a' + (n % 26) as u8) as char;
        assert!(row[text].len() == 4000 && row[text].chars().all(|it| it == letter), "torn: {n}");
    }
    assert_eq!(table.rows.len() as u64, account.captured);
    record("47", "disk stalls", written, account, &info, segments_of(&[agent]));
}

/// A separate file system, removed when dropped.
pub(super) struct SmallDisk(pub(super) PathBuf);

impl SmallDisk {
    /// `None` if mounting is not permitted.
    pub(super) fn new(bench: &Bench) -> Option<Self> {
        let path = bench.path("small");
        std::fs::create_dir(&path).unwrap();
        let text = |text: &[u8]| CString::new(text).unwrap();
        let (kind, data) = (text(b"tmpfs"), text(b"size=1m"));
        let folder = text(path.as_os_str().as_bytes());
        // SAFETY: all of them are NUL-terminated strings.
        let mounted = unsafe {
            libc::mount(kind.as_ptr(), folder.as_ptr(), kind.as_ptr(), 0, data.as_ptr().cast())
        };
        if mounted != 0 {
            eprintln!("skipped: mounting needs root");
        }
        (mounted == 0).then_some(Self(path))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let folder = CString::new(self.0.as_os_str().as_bytes()).unwrap();
        // SAFETY: a NUL-terminated string.
        unsafe { libc::umount2(folder.as_ptr(), libc::MNT_DETACH) };
    }
}

#[test]
fn a_full_disk_ends_the_capture() {
    let bench = flood::build();
    let Some(disk) = SmallDisk::new(&bench) else { return };
    let capture = disk.0.join("out.bin");
    let command = bench.command(ppt());
    cannot_grow(&bench, command, &capture, "No space left on device (os error 28)", "no space");
}

#[test]
fn a_limit_of_file_size_ends_the_capture() {
    let bench = flood::build();
    let mut command = bench.command(ppt());
    limit_file_size(&mut command, 1 << 20);
    let capture = bench.path("out.bin");
    cannot_grow(&bench, command, &capture, "File too large (os error 27)", "file size limit");
}

/// A capture that cannot grow beyond 1 MiB.
fn cannot_grow(
    bench: &Bench,
    mut command: std::process::Command,
    capture: &Path,
    cause: &str,
    case: &str,
) {
    let mut target = bench.start("flood", &["2", "1000"]);
    let capture = capture.to_str().unwrap();
    command.args(["attach", &target.pid().to_string(), "-o", capture]);
    let attach = Attach::start(command);
    let agent = attach.pid();
    // On a busy machine, the first chunk of a flood may be too large for the file.
    target.say("go");
    target.written();
    let before = flood::published(&target);
    let is_written = || std::fs::metadata(capture).is_ok_and(|metadata| metadata.len() > 32_000);
    wait_until("the first frames are in the file", is_written);
    target.say("start");
    let stderr = attach.ended(1);
    let expected =
        format!("ppt: {capture}: {cause}\n  the frames captured before that are in the file\n");
    assert!(stderr.contains(&expected), "{stderr}");
    bench.check_off(&target);
    target.say("stop");
    let published = before + flood::published(&target);
    target.finish();

    let ran = bench.ppt(&["info", "--json", capture]);
    let info: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(info["complete"], false);
    let account = Account::of(&info);
    let rows = frames(bench, capture);
    assert_eq!(rows.len() as u64, account.captured);
    // The full file cannot state later frames; the summary does.
    let summary = Summary::of(&stderr);
    assert!(summary.captured > 1000, "{stderr}");
    // A chunk that did not fit completely is lost completely.
    assert_eq!(summary.captured, account.captured, "{stderr}");
    assert_eq!(summary.dropped, 0);
    // A thread that was writing a frame when the gate closed finished it after the last drain.
    let late = published - (summary.captured + summary.lost);
    assert!(late <= 2, "{published} published, but: {stderr}");
    let leaks = segments_of(&[agent]);
    let written = account.captured + account.lost;
    record("34", case, written, account, &info, leaks);
}

/// The numbers of the last line.
struct Summary {
    captured: u64,
    lost: u64,
    dropped: u64,
}

impl Summary {
    fn of(said: &str) -> Self {
        let after = |word: &str| {
            let rest = said.rsplit(word).next().unwrap();
            let digits = rest.chars().take_while(|c| c.is_ascii_digit() || *c == ',');
            digits.filter(char::is_ascii_digit).collect::<String>().parse().unwrap()
        };
        Self { captured: after("captured "), lost: after("lost "), dropped: after("dropped ") }
    }
}

/// The paper's rate loses more frames, and counts them as exactly.
#[test]
fn the_papers_rate() {
    let bench = flood::build();
    let mut target = bench.start("flood", &["2", "20000"]);
    let attach = bench.attach(&target, &["--rate", "paper", "--slots", "1024"]);
    let written = target.run();
    attach.stop();
    target.finish();
    let info = bench.info("out.bin");
    let account = Account::of(&info);
    account.check(written);
    assert_eq!(flood::frames(&bench, "out.bin").len() as u64, account.captured);
    assert!(account.lost > 0, "two threads fill their rings within the first 100 ms");
}

/// Infrequent looks lose nothing that fits into the rings, and end immediately on request.
#[test]
fn the_rate_of_low_power() {
    let bench = flood::build();
    let mut target = bench.start("flood", &["2", "20000"]);
    let attach = bench.attach(&target, &["--rate", "low-power", "--slots", "32768"]);
    let written = target.run();
    attach.stop();
    target.finish();
    let account = Account::of(&bench.info("out.bin"));
    account.check(written);
    assert_eq!(account.captured, written, "{account:?}");
}

/// A closed terminal returns EIO.
#[test]
fn an_output_that_fails_ends_the_capture() {
    let bench = flood::build();
    let mut target = flood::start_endless(&bench, "2");
    let (mut ours, theirs) = terminal();
    let mut command = bench.command(ppt());
    command.args(["attach", &target.pid().to_string(), "-o", "-"]);
    let attach = Attach::spawn_into(command, theirs.into());
    let agent = attach.pid();
    let mut some = [0; 1 << 16];
    let mut read = 0;
    while read < 1 << 20 {
        read += ours.read(&mut some).unwrap();
    }
    drop(ours);
    let stderr = attach.ended(1);
    assert!(stderr.contains("stdout: Input/output error"), "{stderr}");
    // The target continues, and can be attached to again.
    let next = bench.attach(&target, &["-o", "next.bin"]);
    let makers = [agent, next.pid()];
    target.say("stop");
    target.written();
    next.stop();
    let info = bench.info("next.bin");
    assert_eq!(frames(&bench, "next.bin").len() as u64, Account::of(&info).captured);
    target.finish();
    assert_eq!(segments_of(&makers), 0);
}

/// Both ends of a raw terminal; children of other tests do not inherit them.
fn terminal() -> (File, File) {
    let flags = libc::O_RDWR | libc::O_NOCTTY | libc::O_CLOEXEC;
    // SAFETY: no pointers; the new descriptor is used only here.
    let (ours, theirs) = unsafe {
        let ours = libc::posix_openpt(flags);
        assert!(ours >= 0 && libc::grantpt(ours) == 0 && libc::unlockpt(ours) == 0);
        let theirs = libc::ioctl(ours, libc::TIOCGPTPEER, flags);
        assert!(theirs >= 0, "{}", std::io::Error::last_os_error());
        (File::from_raw_fd(ours), File::from_raw_fd(theirs))
    };
    // SAFETY: all zeros is a valid termios; it is ours, and outlives the calls.
    unsafe {
        let mut raw = std::mem::zeroed::<libc::termios>();
        assert_eq!(libc::tcgetattr(theirs.as_raw_fd(), &mut raw), 0);
        libc::cfmakeraw(&mut raw);
        assert_eq!(libc::tcsetattr(theirs.as_raw_fd(), libc::TCSANOW, &raw), 0);
    }
    (ours, theirs)
}
