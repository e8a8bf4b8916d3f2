//! `pptc fmt` in use: which files it changes, and which it leaves unchanged.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::process::Stdio;

use crate::fixtures::support::{Bench, Ran, assert_ran, text};

const UGLY: &str = "frame  f{int a ;time t;}// end";
const PRETTY: &str = "frame f { int a; time t; } // end\n";

fn fmt(bench: &Bench, args: &[&str]) -> Ran {
    let mut command = bench.command(env!("CARGO_BIN_EXE_pptc"));
    let output = command.arg("fmt").args(args).output().unwrap();
    Ran::of(output)
}

fn contents(bench: &Bench, name: &str) -> String {
    fs::read_to_string(bench.path(name)).unwrap()
}

#[test]
fn files_are_replaced_and_keep_their_mode() {
    let bench = Bench::new();
    let path = bench.write("a.frame", UGLY);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    let old = fs::metadata(&path).unwrap();
    assert_ran(&fmt(&bench, &["a.frame"]), 0, "", "");
    let new = fs::metadata(&path).unwrap();
    assert_eq!(contents(&bench, "a.frame"), PRETTY);
    assert_eq!((new.mode(), new.uid(), new.gid()), (old.mode(), old.uid(), old.gid()));
    assert_eq!(bench.names(""), ["a.frame"]);
    // A formatted file is not written.
    assert_ran(&fmt(&bench, &["a.frame"]), 0, "", "");
    assert_eq!(fs::metadata(&path).unwrap().ino(), new.ino());
}

#[test]
fn symbolic_links_stay_links() {
    let bench = Bench::new();
    bench.write("a.frame", UGLY);
    symlink("a.frame", bench.path("b.frame")).unwrap();
    assert_ran(&fmt(&bench, &["b.frame"]), 0, "", "");
    assert!(fs::symlink_metadata(bench.path("b.frame")).unwrap().is_symlink());
    assert_eq!(contents(&bench, "a.frame"), PRETTY);
}

#[test]
fn check_names_what_would_change_and_writes_nothing() {
    let bench = Bench::new();
    for (name, text) in [("a.frame", UGLY), ("b.frame", PRETTY), ("c.frame", UGLY)] {
        bench.write(name, text);
    }
    let ran = fmt(&bench, &["--check", "a.frame", "b.frame", "c.frame"]);
    let advice = "pptc: 2 files would change; `pptc fmt` without --check formats them\n";
    assert_ran(&ran, 1, "a.frame\nc.frame\n", advice);
    assert_eq!(contents(&bench, "a.frame"), UGLY);
    assert_ran(&fmt(&bench, &["--check", "b.frame"]), 0, "", "");
}

#[test]
fn what_does_not_parse_stays_as_it_is_and_the_others_are_formatted() {
    let bench = Bench::new();
    bench.write("a.frame", "frame  f { int a }");
    bench.write("b.frame", UGLY);
    let ran = fmt(&bench, &["a.frame", "b.frame", "none.frame"]);
    assert_ran(
        &ran,
        1,
        "",
        "error[syntax]: expected `;`, `,`, `[` or an attribute, found `}`
 --> a.frame:1:16
  |
1 | frame  f { int a }
  |                ^ expected `;` after this
pptc: cannot read none.frame: No such file or directory (os error 2)
",
    );
    assert_eq!(contents(&bench, "a.frame"), "frame  f { int a }");
    assert_eq!(contents(&bench, "b.frame"), PRETTY);
}

#[test]
fn from_standard_input_to_standard_output() {
    let bench = Bench::new();
    for (args, code, stdout) in
        [(&["fmt", "-"][..], 0, PRETTY), (&["fmt", "--check", "-"], 1, "<stdin>\n")]
    {
        let mut command = bench.command(env!("CARGO_BIN_EXE_pptc"));
        command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(UGLY.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(code), stdout));
    }
}

/// The word is the command; a file with that name needs a folder prefix.
#[test]
fn a_file_called_fmt() {
    let bench = Bench::new();
    bench.write("fmt", PRETTY);
    let ran = fmt(&bench, &[]);
    assert_eq!(ran.code(), 2, "{}", ran.stderr);
    assert_eq!(bench.names(""), ["fmt"]);
    let output = bench.command(env!("CARGO_BIN_EXE_pptc")).arg("./fmt").output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(bench.names(""), ["fmt", "fmt.c", "fmt.h"]);
}
