//! Another program truncates, changes, removes, replaces or moves a file while ppt writes it: the
//! capture continues in a readable file, and ppt reports the event.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::PermissionsExt;

use crate::fixtures::output::{burst, files, numbers, whole};
use crate::fixtures::steady::{as_nobody, build, is_root, open_to_nobody, start, start_as_nobody};
use crate::fixtures::support::{
    Account, Attach, Bench, Target, ppt, record, segments_of, wait_until,
};

/// An accident with a file that is being written.
struct Accident {
    name: &'static str,
    happens: fn(&Bench, &str),
    /// The code of the message.
    said: &'static str,
    /// The resulting files, with the bursts in them: before and after.
    files: &'static [(&'static str, Bursts)],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bursts {
    Before,
    After,
    Both,
}

use Bursts::{After, Before, Both};

const ACCIDENTS: [Accident; 9] = [
    Accident {
        name: "copied and truncated",
        happens: |bench, file| {
            fs::copy(bench.path(file), bench.path("copy.bin")).unwrap();
            File::create(bench.path(file)).unwrap();
        },
        said: "output-truncated",
        files: &[("copy.bin", Before), ("out.bin", After)],
    },
    Accident {
        name: "emptied",
        happens: |bench, file| drop(File::create(bench.path(file)).unwrap()),
        said: "output-truncated",
        files: &[("out.bin", After)],
    },
    Accident {
        name: "cut",
        happens: |bench, file| {
            let size = fs::metadata(bench.path(file)).unwrap().len();
            let file = OpenOptions::new().write(true).open(bench.path(file)).unwrap();
            file.set_len(size - 1).unwrap();
        },
        said: "output-changed",
        // The last chunk is incomplete: that of the clocks, after the frames.
        files: &[("out.000002.bin", After), ("out.bin", Before)],
    },
    Accident {
        name: "cut, and longer than before",
        happens: |bench, file| {
            let size = fs::metadata(bench.path(file)).unwrap().len();
            let file = OpenOptions::new().write(true).open(bench.path(file)).unwrap();
            file.set_len(size - 1).unwrap();
            file.set_len(size + 1000).unwrap();
        },
        said: "output-changed",
        files: &[("out.000002.bin", After), ("out.bin", Before)],
    },
    Accident {
        name: "appended to",
        happens: |bench, file| {
            use std::io::Write;
            let mut file = OpenOptions::new().append(true).open(bench.path(file)).unwrap();
            file.write_all(&[0; 100]).unwrap();
        },
        said: "output-changed",
        files: &[("out.000002.bin", After), ("out.bin", Before)],
    },
    Accident {
        name: "removed",
        happens: |bench, file| fs::remove_file(bench.path(file)).unwrap(),
        said: "output-removed",
        files: &[("out.bin", After)],
    },
    Accident {
        name: "replaced",
        happens: |bench, file| {
            fs::copy(bench.path("in.bin"), bench.path("other.bin")).unwrap();
            fs::rename(bench.path("other.bin"), bench.path(file)).unwrap();
        },
        said: "output-removed",
        files: &[("out.000002.bin", After)],
    },
    Accident {
        name: "moved",
        happens: |bench, file| fs::rename(bench.path(file), bench.path("moved.bin")).unwrap(),
        said: "output-moved",
        files: &[("moved.bin", Both)],
    },
    Accident {
        name: "moved, and another put there",
        happens: |bench, file| {
            fs::rename(bench.path(file), bench.path("moved.bin")).unwrap();
            fs::copy(bench.path("in.bin"), bench.path(file)).unwrap();
        },
        said: "output-moved",
        files: &[("moved.bin", Both)],
    },
];

/// The program is reported; the capture continues in a readable file; the other program's content
/// is intact.
#[test]
fn a_file_that_is_taken_away_while_it_is_written() {
    let bench = build(&[]);
    let mut target = start(&bench);
    let other = whole(&bench, &mut target, "in.bin");
    let mut agents = Vec::new();
    for args in [&[][..], &["--compress", "lz4"]] {
        for accident in &ACCIDENTS {
            happens(&bench, &mut target, accident, args, &mut agents);
            assert!(fs::read(bench.path("in.bin")).unwrap() == other);
            for file in files(&bench).iter().filter(|file| *file != "in.bin") {
                fs::remove_file(bench.path(file)).unwrap();
            }
        }
    }
    target.finish();
    assert_eq!(segments_of(&agents), 0);
}

fn happens(
    bench: &Bench,
    target: &mut Target,
    accident: &Accident,
    args: &[&str],
    agents: &mut Vec<u32>,
) {
    let name = accident.name;
    let attach = bench.attach(target, &[&["-o", "out.bin"], args].concat());
    agents.push(attach.pid());
    burst(target, 100, bench, "out.bin");
    let before = numbers(bench, "out.bin");
    // Followed by clocks.
    settled(bench, "out.bin");
    (accident.happens)(bench, "out.bin");
    let first = before.last().unwrap() + 1;
    let after: Vec<_> = (first..first + 200).collect();
    target.say("burst 200");
    target.written();
    if accident.said != "output-moved" {
        // It is detected while the capture continues, not at the end.
        attach.stderr.wait_for(&format!("  more: ppt explain {}", accident.said));
    }
    attach.signal(libc::SIGINT);
    let said = attach.ended(1);
    crate::fixtures::explained::explained(&said);
    assert!(said.contains(&format!("ppt explain {}\n", accident.said)), "{name}: {said}");
    assert!(said.contains("ppt: captured 300 frames"), "{name}: {said}");
    // The statements of the summary about the file are true.
    let last = said.lines().rfind(|line| line.starts_with("ppt: captured ")).unwrap();
    let whole = accident.said == "output-moved";
    assert_eq!(last.ends_with(" does not hold all of them"), !whole, "{name}: {last}");
    for (file, bursts) in accident.files {
        let expected = match bursts {
            Before => before.clone(),
            After => after.clone(),
            Both => before.iter().chain(&after).copied().collect(),
        };
        assert!(damaged_at_most(bench, file, *bursts) == expected, "{name}: {file}");
    }
    let last = accident.files.iter().find(|file| file.1 != Before).unwrap().0;
    let info = bench.info(last);
    assert_eq!(info["complete"], true, "{name}");
    let account = Account::of(&info);
    assert_eq!((account.lost, account.dropped), (0, 0), "{name}");
    if args.is_empty() {
        let case = format!("{name} while it is written: the file after");
        // The target has it mapped, and unmaps it at the end.
        record("-", &case, account.captured, account, &info, 0);
    }
}

/// Frames of a file. If another program damaged it, damage may follow them.
fn damaged_at_most(bench: &Bench, file: &str, bursts: Bursts) -> Vec<i64> {
    let ran = bench.ppt(&["dump", file]);
    assert!(ran.code() == 0 || bursts == Before, "{file}: {}", ran.stderr);
    let mut lines = ran.stdout.lines();
    let column = lines.next().unwrap().split('\t').position(|piece| piece == "n").unwrap();
    lines.map(|line| line.split('\t').nth(column).unwrap().parse().unwrap()).collect()
}

/// Waits until nothing has been written for a while, except the clocks of each second.
fn settled(bench: &Bench, file: &str) {
    let size = || fs::metadata(bench.path(file)).unwrap().len();
    let before = size();
    wait_until("the clocks are written", || size() > before);
}

/// Overwriting a capture from its start does not change its length.
#[test]
fn a_file_that_is_overwritten_in_place() {
    use std::os::unix::fs::FileExt;
    let bench = build(&[]);
    let mut target = start(&bench);
    let attach = bench.attach(&target, &["-o", "out.bin"]);
    burst(&mut target, 100, &bench, "out.bin");
    settled(&bench, "out.bin");
    let file = OpenOptions::new().write(true).open(bench.path("out.bin")).unwrap();
    file.write_all_at(b"somebody else's", 0).unwrap();
    attach.signal(libc::SIGINT);
    let stderr = attach.ended(1);
    crate::fixtures::explained::explained(&stderr);
    assert!(stderr.contains("its first or last bytes are not those that ppt wrote"), "{stderr}");
    assert!(stderr.contains(" does not hold all of them"), "{stderr}");
    assert_eq!(files(&bench), ["out.000002.bin", "out.bin"]);
    assert_eq!(bench.info("out.000002.bin")["complete"], true);
    target.finish();
}

/// The same for parts of a series, and for stdout.
#[test]
fn a_part_that_is_taken_away_while_it_is_written() {
    let bench = build(&[]);
    let mut target = start(&bench);
    let attach = bench.attach(&target, &["-o", "out.bin", "--rotate", "1h"]);
    burst(&mut target, 10, &bench, "out.000001.bin");
    bench.write("out.000002.bin", "somebody else's");
    bench.write("theirs", "theirs, too");
    fs::rename(bench.path("theirs"), bench.path("out.000001.bin")).unwrap();
    target.say("burst 10");
    target.written();
    attach.stderr.wait_for("  the capture continues in out.000003.bin");
    burst(&mut target, 10, &bench, "out.000003.bin");
    File::create(bench.path("out.000003.bin")).unwrap();
    target.say("burst 10");
    target.written();
    attach.stderr.wait_for("  the capture continues from the start of the file");
    attach.signal(libc::SIGINT);
    attach.ended(1);
    assert_eq!(files(&bench), ["out.000001.bin", "out.000002.bin", "out.000003.bin"]);
    assert_eq!(fs::read_to_string(bench.path("out.000001.bin")).unwrap(), "theirs, too");
    assert_eq!(fs::read_to_string(bench.path("out.000002.bin")).unwrap(), "somebody else's");
    assert_eq!(numbers(&bench, "out.000003.bin"), (30..40).collect::<Vec<_>>());
    target.finish();
}

#[test]
fn standard_output_that_is_truncated_while_it_is_written() {
    let bench = build(&[]);
    let mut target = start(&bench);
    for append in [false, true] {
        let mut command = bench.command(ppt());
        command.args(["attach", "-o", "-", &target.pid().to_string()]);
        let mut options = OpenOptions::new();
        let file = options.create(true).write(true).append(append).open(bench.path("out.bin"));
        let attach = Attach::spawn_into(command, file.unwrap().into());
        attach.stderr.wait_for("attached:");
        burst(&mut target, 10, &bench, "out.bin");
        let before = numbers(&bench, "out.bin");
        File::create(bench.path("out.bin")).unwrap();
        target.say("burst 10");
        target.written();
        attach.stderr.wait_for("ppt: stdout was truncated while ppt wrote it");
        attach.signal(libc::SIGINT);
        attach.ended(1);
        let last = before.last().unwrap();
        assert_eq!(numbers(&bench, "out.bin"), (last + 1..=last + 10).collect::<Vec<_>>());
        fs::remove_file(bench.path("out.bin")).unwrap();
    }
    target.finish();
}

/// If no other file can be created, that is reported, and writing stops.
#[test]
fn a_file_that_is_removed_where_no_other_can_be_made() {
    if !is_root() {
        return;
    }
    let bench = build(&[]);
    open_to_nobody(&bench);
    let theirs = bench.path("theirs");
    fs::create_dir(&theirs).unwrap();
    let mode = |mode| fs::set_permissions(&theirs, fs::Permissions::from_mode(mode)).unwrap();
    mode(0o1777);
    let mut target = start_as_nobody(&bench);
    let mut command = as_nobody(bench.command(bench.path("ppt")));
    command.args(["attach", &target.pid().to_string(), "-o", "theirs/out.bin"]);
    let attach = Attach::start(command);
    target.say("burst 10");
    target.written();
    fs::remove_file(theirs.join("out.bin")).unwrap();
    mode(0o755);
    let stderr = attach.ended(1);
    let expected = "ppt: theirs/out.bin: it was removed or replaced while ppt wrote it, and there \
                    is no other file: cannot write theirs/out.";
    assert!(stderr.contains(expected), "{stderr}");
    assert!(!crate::fixtures::steady::gate(&mut target));
    target.finish();
}

/// Removing a folder removes the capture: the summary does not claim that frames are in a file.
#[test]
fn a_folder_that_is_removed_while_a_capture_is_written_there() {
    let bench = build(&[]);
    let mut target = start(&bench);
    fs::create_dir(bench.path("q")).unwrap();
    let attach = bench.attach(&target, &["-o", "q/out.bin"]);
    burst(&mut target, 10, &bench, "q/out.bin");
    fs::remove_dir_all(bench.path("q")).unwrap();
    target.say("burst 10");
    target.written();
    let stderr = attach.ended(1);
    crate::fixtures::explained::explained(&stderr);
    assert!(!stderr.contains("are in the file") && !stderr.contains("out.bin: 1"), "{stderr}");
    assert!(stderr.contains("\n  there is no file any more: the frames captured"), "{stderr}");
    assert!(stderr.contains("; q/out.bin is gone, and they with it"), "{stderr}");

    // If nothing is written after that, only the end detects it.
    fs::create_dir(bench.path("q")).unwrap();
    let attach = bench.attach(&target, &["-o", "q/out.bin", "-d", "2s"]);
    fs::remove_dir_all(bench.path("q")).unwrap();
    let stderr = attach.ended(1);
    assert!(stderr.contains("; q/out.bin is gone, and they with it"), "{stderr}");
    target.finish();
}
