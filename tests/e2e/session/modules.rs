//! The code mappings of a process in captures.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::fixtures::support::{Attach, Bench, Target, ppt, text, wait_until};

fn built() -> Bench {
    let bench = Bench::new();
    bench.copy_all(&["addresses.frame", "addresses_main.c"]);
    bench.pptc(&["addresses.frame"]);
    bench.cc(&["-O1", "addresses_main.c", "addresses.c", "-o", "calls", "-ldl"]);
    bench.write("plug.c", "void plugged(void); void plugged(void) {}\n");
    bench.cc(&["-shared", "-fPIC", "plug.c", "-o", "libplug.so"]);
    bench
}

fn say(target: &mut Target, what: &str) {
    target.say(what);
    target.stdout.wait_for("done");
}

/// A module of `ppt info --json` whose path has this suffix.
fn module(info: &Value, name: &str) -> Option<Value> {
    let modules = info["modules"].as_array()?;
    modules.iter().find(|module| module["path"].as_str().unwrap().ends_with(name)).cloned()
}

/// The build id of a file, according to binutils.
fn build_id(path: &Path) -> String {
    let shown = text(&Command::new("readelf").arg("-n").arg(path).output().unwrap().stdout);
    let id = shown.split_once("Build ID: ").expect("a build id").1;
    id.split_whitespace().next().unwrap().to_owned()
}

/// The executable mappings of a file, according to the kernel.
fn of_kernel(target: &Target, name: &str) -> Vec<(String, String)> {
    let maps = std::fs::read_to_string(format!("/proc/{}/maps", target.pid())).unwrap();
    let code = maps.lines().filter(|line| line.contains(" r-xp ") && line.ends_with(name));
    let range = |line: &str| {
        let (start, end) = line.split_once(' ').unwrap().0.split_once('-').unwrap();
        (format!("{start:0>16}"), format!("{end:0>16}"))
    };
    code.map(range).collect()
}

#[test]
fn modules_are_as_the_kernel_has_them() {
    let bench = built();
    let mut target = bench.start("calls", &[]);
    let session = bench.attach(&target, &[]);
    say(&mut target, "work");
    wait_until("the capture has the program", || {
        module(&bench.info("out.bin"), "/calls").is_some()
    });
    assert_eq!(module(&bench.info("out.bin"), "/libplug.so"), None);
    say(&mut target, &format!("load {}", bench.path("libplug.so").display()));
    wait_until("the capture has the library", || {
        module(&bench.info("out.bin"), "/libplug.so").is_some()
    });
    let expected = |name| {
        let ranges = of_kernel(&target, name);
        assert_eq!(ranges.len(), 1, "{ranges:?}");
        ranges[0].clone()
    };
    let (program, library) = (expected("/calls"), expected("/libplug.so"));
    say(&mut target, "unload");
    session.stop();
    let info = bench.info("out.bin");
    for (name, (start, end)) in [("/calls", program), ("/libplug.so", library)] {
        let found = module(&info, name).unwrap();
        assert_eq!((&found["start"], &found["end"]), (&start.into(), &end.into()), "{name}");
        assert_eq!(found["build_id"], build_id(&bench.path(&name[1..])), "{name}");
        assert_eq!(found["pid"], target.pid());
    }
    assert!(module(&info, "/libc.so.6").is_some() && module(&info, "[vdso]").is_some(), "{info}");
    let told = bench.ppt(&["info", "out.bin"]).stdout;
    let line = format!("/calls, {}", build_id(&bench.path("calls")));
    assert!(told.lines().any(|it| it.starts_with("module    ") && it.ends_with(&line)), "{told}");
    target.finish();
}

/// A library that is loaded right before the end is listed, too.
#[test]
fn the_end_states_what_came_last() {
    let bench = built();
    let mut target = bench.start("calls", &[]);
    let session = bench.attach(&target, &[]);
    say(&mut target, &format!("load {}", bench.path("libplug.so").display()));
    session.stop();
    assert!(module(&bench.info("out.bin"), "/libplug.so").is_some());
    target.finish();
}

/// The target chooses the names of files: they are escaped in output for people.
#[test]
fn names_of_files_are_escaped() {
    let bench = built();
    let odd = "lib\u{1b}[31m plug\n.so";
    std::fs::rename(bench.path("libplug.so"), bench.path(odd)).unwrap();
    std::os::unix::fs::symlink(odd, bench.path("link.so")).unwrap();
    let mut target = bench.start("calls", &[]);
    let session = bench.attach(&target, &[]);
    say(&mut target, &format!("load {}", bench.path("link.so").display()));
    session.stop();
    let stdout = bench.ppt(&["info", "out.bin"]).stdout;
    assert!(stdout.contains("lib\\x1b[31m plug"), "{stdout}");
    assert!(!stdout.contains('\u{1b}'), "{stdout}");
    let id = build_id(&bench.path(odd));
    let info = bench.info("out.bin");
    let found = info["modules"].as_array().unwrap().iter().find(|value| value["build_id"] == *id);
    assert!(found.is_some(), "{info}");
    target.finish();
}

/// Each file of a series, and each window of a flight recorder, has the modules.
#[test]
fn every_file_has_the_modules() {
    let bench = built();
    let mut target = bench.start("calls", &[]);
    let session = bench.attach(&target, &["-o", "out.bin", "--rotate", "1s"]);
    let files = || bench.names("").into_iter().filter(|name| name.starts_with("out.")).count();
    wait_until("there are files", || {
        say(&mut target, "work");
        files() >= 3
    });
    session.stop();
    for capture in bench.names("").into_iter().filter(|name| name.starts_with("out.")) {
        assert!(module(&bench.info(&capture), "/calls").is_some(), "{capture}");
    }
    std::fs::create_dir(bench.path("windows")).unwrap();
    let pid = target.pid().to_string();
    let mut command = bench.command(ppt());
    command.args(["attach", &pid, "--flight", "1s", "-o", "windows"]);
    command.env("XDG_RUNTIME_DIR", bench.path(""));
    let session = Attach::start(command);
    say(&mut target, "work");
    let mut trigger = bench.command(ppt());
    trigger.args(["trigger", &pid]).env("XDG_RUNTIME_DIR", bench.path(""));
    assert!(trigger.status().unwrap().success());
    wait_until("there is a window", || !bench.names("windows").is_empty());
    session.stop();
    let window = format!("windows/{}", bench.names("windows")[0]);
    assert!(module(&bench.info(&window), "/calls").is_some(), "{window}");
    target.finish();
}

/// Each address of the capture, according to its program.
#[test]
fn addresses_have_the_names_of_functions() {
    let bench = built();
    let mut target = bench.start("calls", &[]);
    let session = bench.attach(&target, &[]);
    say(&mut target, "work");
    say(&mut target, &format!("load {}", bench.path("libplug.so").display()));
    say(&mut target, "plugin");
    target.say("jit");
    let made = target.stdout.wait_for("made 0x");
    target.stdout.wait_for("done");
    let map = format!("/tmp/perf-{}.map", target.pid());
    std::fs::write(&map, format!("{made} 10 LazyCompile:run script.js\n")).unwrap();
    session.stop();
    let of_calls = |args: &[&str]| {
        let table = bench.table("out.bin", args);
        let cells =
            |name: &str| table.cells(name).into_iter().map(str::to_owned).collect::<Vec<_>>();
        (cells("function"), cells("caller"))
    };
    let (functions, callers) = of_calls(&[]);
    std::fs::remove_file(&map).unwrap();
    assert_eq!(functions[..2], ["process_command (calls)", "save (calls)"]);
    assert!(
        functions[2].starts_with("puts (calls)") || functions[2].ends_with("puts (libc.so.6)"),
        "{functions:?}"
    );
    assert_eq!(functions[3..], ["plugged (libplug.so)", "LazyCompile:run script.js (jit)"]);
    for (caller, function) in
        callers.iter().zip(["process_command", "save", "work", "main", "main"])
    {
        assert!(caller.starts_with(&format!("{function}+0x")), "{callers:?}");
        assert!(caller.ends_with(" (calls)"), "{callers:?}");
    }
    // The numbers are those of the program.
    let (raw, _) = of_calls(&["--addresses", "raw"]);
    assert_eq!(raw[4], format!("0x{made}"));
    // JIT code without its map, and a program that was replaced.
    let (gone, _) = of_calls(&[]);
    assert_eq!(gone[4], format!("0x{made}"));
    bench.cc(&["-O0", "addresses_main.c", "addresses.c", "-o", "other", "-ldl"]);
    std::fs::rename(bench.path("other"), bench.path("calls")).unwrap();
    target.finish();
    let ran = bench.ppt(&["dump", "out.bin"]);
    assert!(ran.stdout.contains("calls+0x"), "{}", ran.stdout);
    let told = "out.bin: functions of these modules have no names: ";
    assert!(
        ran.stderr.contains(told)
            && ran.stderr.contains("/calls (the file there has another build id)"),
        "{}",
        ran.stderr
    );
    assert_eq!(ran.code(), 0);
}
