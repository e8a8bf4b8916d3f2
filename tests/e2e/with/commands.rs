//! `ppt with`, and the reports of `ppt list` and `ppt doctor` about the library.

use std::fs;

use serde_json::Value;

use crate::fixtures::preloaded::{exchange, preload};
use crate::fixtures::support::{
    Bench, Ran, Target, assert_ran, available, copy_program, ppt, text,
};

#[test]
fn the_variable_and_a_drop_in() {
    let bench = Bench::new();
    let library = preload(&bench);
    assert_ran(&bench.ppt(&["with", "--env"]), 0, &format!("LD_PRELOAD={library}\n"), "");
    let expected = format!(
        "# /etc/systemd/system/web@1.service.d/ppt.conf\n[Service]\n\
         Environment=\"LD_PRELOAD={library}\"\n"
    );
    assert_ran(&bench.ppt(&["with", "--systemd", "web@1"]), 0, &expected, "");
    let wrong = bench.ppt(&["with", "--systemd", "../web"]);
    assert_eq!(wrong.code(), 2, "{wrong:?}");
}

/// systemd accepts the file, also with a path of characters that have a meaning there.
#[test]
fn systemd_accepts_the_drop_in() {
    if !available("systemd-analyze") {
        return;
    }
    let bench = Bench::new();
    let folder = bench.path("100%n\"or\\n");
    fs::create_dir(&folder).unwrap();
    copy_program(ppt(), folder.join("ppt"));
    fs::write(folder.join("libppt-with.so"), "").unwrap();
    let output = bench.command(folder.join("ppt")).args(["with", "--systemd", "web"]).output();
    let ran = Ran::of(output.unwrap());
    assert_eq!(ran.code(), 0, "{ran:?}");
    assert!(ran.stdout.contains("100%%n\\\"or\\\\n/libppt-with.so\"\n"), "{ran:?}");
    bench.write("web.service", "[Service]\nExecStart=/bin/sleep 1\n");
    fs::create_dir(bench.path("web.service.d")).unwrap();
    // The messages of systemd about that file. There is none about a valid one.
    let complaints = |drop_in: &str| {
        bench.write("web.service.d/ppt.conf", drop_in);
        let mut command = bench.command("systemd-analyze");
        let output = command.args(["verify", "--man=no"]).arg(bench.path("web.service")).output();
        let output = output.unwrap();
        let lines = text(&output.stderr);
        let of_it = lines.lines().filter(|line| line.contains("ppt.conf")).count();
        (output.status.success(), of_it)
    };
    assert_eq!(complaints(&ran.stdout), (true, 0));
    assert!(complaints(&ran.stdout.replacen('"', "", 1)).1 > 0);
}

/// A ppt that was installed alone names the location that it checked, and installs the library
/// there.
#[test]
fn a_ppt_without_the_library_makes_one() {
    let bench = exchange();
    fs::create_dir(bench.path("bin")).unwrap();
    copy_program(ppt(), bench.path("bin/ppt"));
    let run = |args: &[&str]| {
        let output = bench.command(bench.path("bin/ppt")).args(args).output().unwrap();
        Ran::of(output)
    };
    let ran = run(&["run", "--with", "net", "--", "./exchange", "nothing"]);
    assert_eq!(ran.code(), 125, "{ran:?}");
    assert!(ran.stderr.starts_with("ppt: there is no libppt-with.so: looked for "), "{ran:?}");
    assert!(ran.stderr.contains("more: ppt explain no-library"), "{ran:?}");
    assert!(!bench.path("out.bin").exists(), "the command was not run");
    let path = bench.path("lib/ppt/libppt-with.so");
    assert!(ran.stderr.contains(path.to_str().unwrap()), "{ran:?}");
    assert_eq!(run(&["with", "--install"]).code(), 0);
    let ran = run(&["with", "--env"]);
    assert_eq!(ran.stdout, format!("LD_PRELOAD={}\n", path.display()));
    let ran = run(&["run", "--with", "net", "--", "./exchange", "plain", "5"]);
    assert_eq!(ran.code(), 0, "{ran:?}");
    assert_eq!(bench.table("out.bin", &["-b", "net"]).rows.len(), 10);
}

#[test]
fn a_path_that_the_variable_cannot_have() {
    let bench = Bench::new();
    fs::create_dir(bench.path("a b")).unwrap();
    copy_program(ppt(), bench.path("a b/ppt"));
    fs::write(bench.path("a b/libppt-with.so"), "").unwrap();
    let output = bench.command(bench.path("a b/ppt")).args(["with", "--env"]).output().unwrap();
    let ran = Ran::of(output);
    assert_eq!(ran.code(), 1);
    assert!(ran.stderr.contains("because a space or a colon is in the path"), "{ran:?}");
    assert!(ran.stderr.contains("more: ppt explain cannot-preload"), "{ran:?}");
}

/// The report of doctor about the library in a process.
fn examined(bench: &Bench, target: &Target) -> (String, String, Value) {
    let ran = bench.ppt(&["doctor", "--json", &target.pid().to_string()]);
    let report: Value = serde_json::from_str(&ran.stdout).unwrap();
    let checks = report["checks"].as_array().unwrap();
    let check = checks.iter().find(|check| check["check"] == "--with").unwrap();
    let word = |name: &str| check[name].as_str().unwrap_or_default().to_owned();
    (word("verdict"), word("found"), check["remedy"].clone())
}

#[test]
fn whether_a_process_has_it() {
    let bench = exchange();
    let start = |library: &str| {
        let mut command = bench.command(bench.path("exchange"));
        command.arg("silent").env("LD_PRELOAD", library);
        let target = Target::spawn(command);
        target.stdout.wait_for("answered");
        target
    };
    let with = start(&preload(&bench));
    let (verdict, found, _) = examined(&bench, &with);
    assert_eq!(
        (&*verdict, &*found),
        (
            "ok",
            "libppt-with.so is loaded: an attach shows requests, waits for locks, and operations on files"
        )
    );
    let listed = bench.ppt(&["list", &with.pid().to_string()]);
    for buffer in ["net ", "hops ", "locks ", "files "] {
        let line = listed.stdout.lines().find(|line| line.starts_with(buffer));
        assert!(line.is_some_and(|it| it.ends_with("/libppt-with.so")), "{listed:?}");
    }
    let without = start("");
    let (verdict, found, remedy) = examined(&bench, &without);
    assert_eq!(verdict, "note");
    assert!(found.starts_with("libppt-with.so is not loaded"), "{found}");
    assert!(remedy.as_str().unwrap().contains("ppt with --"), "{remedy}");
    let listed = bench.ppt(&["list", &without.pid().to_string()]);
    assert!(listed.stderr.contains("`ppt run --with net -- …`"), "{listed:?}");
}

/// A shell has the library, and so has each program that it starts: none of that is reported.
#[test]
fn a_quiet_run_of_a_script_says_nothing_of_its_programs() {
    let bench = Bench::new();
    let script = "for i in 1 2 3 4 5; do /bin/true; done; echo done";
    let ran = bench.ppt(&["run", "-q", "--with", "net", "--", "sh", "-c", script]);
    assert_eq!((ran.code(), ran.stdout.as_str()), (0, "done\n"), "{ran:?}");
    assert!(!ran.stderr.contains("another program"), "{}", ran.stderr);
}
