//! The target `steady`, which does as it is told and counts what it wrote in a file that outlives
//! it; and a comparison of what was said with what should be.

use std::fs;
use std::ops::RangeInclusive;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use serde_json::Value;

use crate::explained::explained;
use crate::support::{Account, Bench, Table, Target};

/// A folder with the target built as `steady`, with further arguments for gcc.
pub fn build(args: &[&str]) -> Bench {
    let bench = Bench::new();
    bench.copy_all(&["steady_main.c", "steady.frame"]);
    bench.pptc(&["steady.frame"]);
    link(&bench, "steady", "steady.c", args);
    fs::write(bench.path("counters"), [0; 4096]).unwrap();
    bench
}

/// Builds `program` with the generated source `source`.
pub fn link(bench: &Bench, program: &str, source: &str, args: &[&str]) {
    let header = fs::read_to_string(bench.path("steady.h")).unwrap();
    let declared = header.lines().find_map(|line| line.strip_prefix("extern ppt1_control "));
    let control = format!("-DCONTROL={}", declared.unwrap().trim_end_matches(';'));
    let files = [&control, "steady_main.c", source, "-o", program, "-lpthread"];
    bench.cc(&[&files[..], args].concat());
}

pub fn start(bench: &Bench) -> Target {
    bench.start("steady", &["counters"])
}

/// How many frames found the gate open: all of them, and those that were finished. Of a thread
/// that was ended, or switched off, in the middle of a frame that frame may count or not.
pub fn counted(bench: &Bench) -> RangeInclusive<u64> {
    let bytes = fs::read(bench.path("counters")).unwrap();
    let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    let (begun, done) = (word(0), word(8));
    assert!(done <= begun && begun <= done + 1, "{done} of {begun}");
    done..=begun
}

pub fn total(account: Account) -> u64 {
    account.captured + account.lost + account.dropped
}

/// Checks that no frame is torn or there twice, and that what the table has is what the account
/// says.
pub fn check_frames(table: &Table, info: &Value) {
    let account = Account::of(info);
    assert_eq!(table.rows.len() as u64, account.captured);
    let mut names = Vec::new();
    let columns = ["seqno", "ring", "n", "twice", "inverse"].map(|name| table.column(name));
    for row in &table.rows {
        let [seqno, ring, n, twice, inverse] = columns.map(|at| row[at].parse::<u64>().unwrap());
        assert_eq!((twice, inverse), (2 * n, !n), "torn: {row:?}");
        names.push((ring, seqno));
    }
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), table.rows.len(), "a frame is there twice");
}

/// What the target says about its gate.
pub fn gate(target: &mut Target) -> bool {
    target.say("gate");
    target.stdout.wait_for("gate ") == "1"
}

/// Where the target's control page is, and a hash of it.
pub fn page(target: &mut Target) -> String {
    target.say("page");
    target.stdout.wait_for("page ")
}

/// Fails unless `said`, but for the way to the explanation, is `expected`, in which each `{}` stands for anything within a line.
#[track_caller]
pub fn assert_said(said: &str, expected: &str) {
    let said = &explained(said);
    assert!(matches(said, expected), "said:\n{said}\n\nexpected:\n{expected}");
}

/// Whether `said` is `expected`, in which each `{}` stands for anything within a line.
pub fn matches(said: &str, expected: &str) -> bool {
    let Some((before, after)) = expected.split_once("{}") else { return said == expected };
    let Some(rest) = said.strip_prefix(before) else { return false };
    let end = rest.find('\n').unwrap_or(rest.len());
    (0..=end).any(|at| rest.is_char_boundary(at) && matches(&rest[at..], after))
}

/// Whether this test may do what only root may.
pub fn is_root() -> bool {
    // SAFETY: no pointers.
    let root = unsafe { libc::geteuid() } == 0;
    if !root {
        eprintln!("skipped: needs root");
    }
    root
}

/// A user that owns nothing.
pub const NOBODY: u32 = 65534;

/// Lets `nobody` into the folder, with a `ppt` that can be run from there.
pub fn open_to_nobody(bench: &Bench) {
    let mode = |name: &str, mode| {
        fs::set_permissions(bench.path(name), fs::Permissions::from_mode(mode)).unwrap();
    };
    fs::copy(crate::support::ppt(), bench.path("ppt")).unwrap();
    mode("", 0o755);
    mode("counters", 0o666);
}

/// The same command as a user without rights.
pub fn as_nobody(mut command: Command) -> Command {
    use std::os::unix::process::CommandExt;
    command.uid(NOBODY).gid(NOBODY);
    command
}

#[test]
fn braces_stand_for_anything_within_a_line() {
    assert!(matches("a 12 b\nc", "a {} b\nc"));
    assert!(matches("1 2", "{} {}"));
    assert!(!matches("a\nb c", "a{} c"));
    assert!(!matches("a b", "a"));
}
