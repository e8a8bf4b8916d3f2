//! Existing content of a file is never lost, whatever a command is asked to do.
//!
//! Failed commands: `unfinished.rs`; disturbed files: `taken_away.rs`; two writers of one file:
//! `two_writers.rs`; the same in any order: `sequences.rs`. Which files may be written:
//! `hostile_user.rs`, rule (i).

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::fixtures::output::{files, whole};
use crate::fixtures::steady::{assert_message, build, is_root, start};
use crate::fixtures::support::{Attach, ppt, text, wait_until};

const READ: &str =
    "is also the input, and writing to it would destroy it; choose another name with -o";

#[test]
fn a_dump_does_not_overwrite_what_it_reads() {
    let bench = build(&[]);
    let mut target = start(&bench);
    let before = whole(&bench, &mut target, "in.bin");
    fs::hard_link(bench.path("in.bin"), bench.path("hard.bin")).unwrap();
    symlink("in.bin", bench.path("symbolic.bin")).unwrap();
    for (input, output) in [
        ("in.bin", "in.bin"),
        ("in.bin", "hard.bin"),
        ("hard.bin", "./in.bin"),
        ("symbolic.bin", "in.bin"),
    ] {
        for force in [&[][..], &["--force"]] {
            let ran = bench.ppt(&[&["dump", input, "-o", output][..], force].concat());
            assert_message(&ran.stderr, &format!("ppt: {output} {READ}\n"));
            assert_eq!(ran.code(), 1);
            assert!(fs::read(bench.path("in.bin")).unwrap() == before, "{input} to {output}");
        }
    }
    // If the shell opens it.
    for command in ["dump", "info"] {
        for input in ["in.bin", "hard.bin", "-"] {
            let stdout = OpenOptions::new().append(true).open(bench.path("in.bin")).unwrap();
            let stdin = File::open(bench.path("in.bin")).unwrap();
            let mut child = bench.command(ppt());
            child.args([command, input]).stdin(stdin).stdout(stdout);
            let output = child.output().unwrap();
            assert_message(&text(&output.stderr), &format!("ppt: standard output {READ}\n"));
            assert_eq!(output.status.code(), Some(1));
            assert!(fs::read(bench.path("in.bin")).unwrap() == before, "{command} {input}");
        }
    }
    target.finish();
}

#[test]
fn a_dump_overwrites_nothing_by_itself() {
    let bench = build(&[]);
    let mut target = start(&bench);
    whole(&bench, &mut target, "in.bin");
    let table = bench.ppt(&["dump", "in.bin"]).stdout;
    let dump = |output: &str, more: &[&str]| {
        bench.ppt(&[&["dump", "in.bin", "-o", output], more].concat())
    };
    let said = |ran: &crate::fixtures::support::Ran, expected: &str| {
        assert_message(&ran.stderr, &format!("ppt: {expected}\n"));
        assert_eq!(ran.code(), 1);
    };
    bench.write("mine.tsv", "mine");
    let exists = "exists; choose another name with -o, or overwrite it with --force";
    said(&dump("mine.tsv", &[]), &format!("mine.tsv {exists}"));
    symlink("mine.tsv", bench.path("link.tsv")).unwrap();
    let link = "is a symbolic link, which ppt does not follow; choose another name with -o";
    said(&dump("link.tsv", &["--force"]), &format!("link.tsv {link}"));
    // A command that fails halfway leaves the existing file.
    let ran = dump("mine.tsv", &["--force", "-b", "other"]);
    assert_eq!(ran.code(), 2, "{ran:?}");
    assert_eq!(fs::read_to_string(bench.path("mine.tsv")).unwrap(), "mine");
    // A new file has the mode that the umask leaves; `-` is stdout.
    assert_eq!((dump("new.tsv", &[]).code(), dump("mine.tsv", &["--force"]).code()), (0, 0));
    assert_eq!(dump("-", &[]).stdout, table);
    for name in ["new.tsv", "mine.tsv"] {
        assert_eq!(fs::read_to_string(bench.path(name)).unwrap(), table);
        let like = File::create(bench.path("like")).unwrap().metadata().unwrap().mode();
        assert_eq!(fs::metadata(bench.path(name)).unwrap().mode(), like);
    }
    assert_eq!(files(&bench), ["in.bin", "like", "link.tsv", "mine.tsv", "new.tsv"]);

    // A dump that is killed halfway.
    assert!(Command::new("mkfifo").arg(bench.path("pipe")).status().unwrap().success());
    let mut command = bench.command(ppt());
    command.args(["dump", "pipe", "-o", "mine.tsv", "--force"]);
    let mut dump = command.spawn().unwrap();
    // It waits for the rest.
    let _half = {
        use std::io::Write;
        let mut pipe = OpenOptions::new().write(true).open(bench.path("pipe")).unwrap();
        let capture = fs::read(bench.path("in.bin")).unwrap();
        pipe.write_all(&capture[..capture.len() - 100]).unwrap();
        pipe
    };
    dump.kill().unwrap();
    dump.wait().unwrap();
    assert_eq!(fs::read_to_string(bench.path("mine.tsv")).unwrap(), table);
    assert_eq!(files(&bench), ["in.bin", "like", "link.tsv", "mine.tsv", "new.tsv", "pipe"]);
    target.finish();
}

/// Under sudo: input files belong to another user, output files to the caller.
#[test]
fn a_dump_belongs_to_the_caller_wherever_it_goes() {
    if !is_root() {
        return;
    }
    let bench = build(&[]);
    let mut target = start(&bench);
    whole(&bench, &mut target, "in.bin");
    fs::create_dir(bench.path("theirs")).unwrap();
    std::os::unix::fs::chown(bench.path("theirs"), Some(1234), Some(1234)).unwrap();
    for (folder, mode) in [("theirs", 0o700), ("theirs", 0o1777), ("", 0o700)] {
        fs::set_permissions(bench.path(folder), fs::Permissions::from_mode(mode)).unwrap();
        let path = Path::new(folder).join("table.tsv");
        for force in [&[][..], &["--force"]] {
            let mut command = bench.command(ppt());
            command.args(["dump", "in.bin", "-o"]).arg(&path).args(force);
            let output = command.env("SUDO_UID", "1234").env("SUDO_GID", "1234").output().unwrap();
            assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), String::new()));
            let found = fs::metadata(bench.path(path.to_str().unwrap())).unwrap();
            assert_eq!((found.uid(), found.gid(), found.len() > 100), (1234, 1234, true));
        }
        fs::remove_file(bench.path(path.to_str().unwrap())).unwrap();
    }
    target.finish();
}

/// The same for captures, and for series of captures.
#[test]
fn a_capture_belongs_to_the_caller_wherever_it_goes() {
    if !is_root() {
        return;
    }
    let bench = build(&[]);
    let mut target = start(&bench);
    fs::create_dir(bench.path("theirs")).unwrap();
    std::os::unix::fs::chown(bench.path("theirs"), Some(1234), Some(1234)).unwrap();
    for mode in [0o700, 0o1777] {
        fs::set_permissions(bench.path("theirs"), fs::Permissions::from_mode(mode)).unwrap();
        for (output, first, last, args) in [
            ("theirs/out.bin", "theirs/out.bin", "theirs/out.bin", &[][..]),
            (
                "theirs/parts.bin",
                "theirs/parts.000001.bin",
                "theirs/parts.000002.bin",
                &["--rotate", "1s", "--keep", "1"],
            ),
        ] {
            for force in [&[][..], &["--force"]] {
                let mut command = bench.command(ppt());
                command.args(["attach", &target.pid().to_string(), "-o", output]);
                command.args(args).args(force).env("SUDO_UID", "1234").env("SUDO_GID", "1234");
                let attach = Attach::start(command);
                target.say("burst 10");
                target.written();
                wait_until("the last one is there", || bench.path(last).exists());
                attach.stop();
                let found = fs::metadata(bench.path(last)).unwrap();
                assert_eq!((found.uid(), found.mode() & 0o777), (1234, 0o600), "{last}");
                assert_eq!(fs::read_dir(bench.path("theirs")).unwrap().count(), 1, "one is kept");
                fs::rename(bench.path(last), bench.path(first)).unwrap();
            }
            fs::remove_file(bench.path(first)).unwrap();
        }
    }
    assert_eq!(fs::read_dir(bench.path("theirs")).unwrap().count(), 0);
    target.finish();
}

/// A shell's `>&-`: the runtime opens /dev/null there, which accepts everything.
#[test]
fn a_closed_stdout_takes_no_capture_and_no_table() {
    let bench = build(&[]);
    let mut target = start(&bench);
    whole(&bench, &mut target, "in.bin");
    let pid = target.pid().to_string();
    let choose = |what| format!("choose a file for the {what} with -o");
    let redirect = || "redirect it to a file, or to /dev/null".to_owned();
    for (args, what) in [
        (&["attach", &pid, "-d", "1s", "-o", "-"][..], choose("capture")),
        (&["dump", "in.bin"], choose("table")),
        (&["info", "in.bin"], redirect()),
        (&["list"], redirect()),
        (&["list", &pid, "--json"], redirect()),
    ] {
        let mut command = bench.command("sh");
        command.args(["-c", "exec \"$0\" \"$@\" >&-", ppt()]).args(args);
        let output = command.output().unwrap();
        let expected = format!("ppt: stdout is closed; {what}\n");
        assert_message(&text(&output.stderr), &expected);
        assert_eq!(output.status.code(), Some(2), "{what}");
        // An intended /dev/null is accepted.
        let null = OpenOptions::new().read(true).write(true).open("/dev/null").unwrap();
        let mut command = bench.command(ppt());
        command.args(args).stdout(null).stderr(Stdio::null());
        assert_eq!(command.status().unwrap().code(), Some(0), "{what}");
    }
    target.finish();
}

/// An always full device, and several captures, which have no common table.
#[test]
fn a_full_disk_names_the_table_and_several_captures_have_no_table() {
    let bench = build(&[]);
    let mut target = start(&bench);
    whole(&bench, &mut target, "in.bin");
    target.finish();
    let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut command = bench.command(ppt());
    let output = command.args(["dump", "in.bin"]).stdout(full).output().unwrap();
    let expected =
        "ppt: stdout: could not write the table: No space left on device (os error 28)\n";
    assert_message(&text(&output.stderr), expected);
    assert_eq!(output.status.code(), Some(1));
    let output = bench.ppt(&["dump", "in.bin", "in.bin", "in.bin"]);
    let expected = "ppt: ppt dump makes a table of one capture, and 3 are given; `ppt info` and `ppt sql` \
                    take several\n";
    assert_message(&output.stderr, expected);
    assert_eq!((output.code(), &*output.stdout), (2, ""));
}
