//! The library in programs of every kind: they behave as without it.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{fs, iter};

use crate::fixtures::explained::explained;
use crate::fixtures::go::go;
use crate::fixtures::preloaded::{Requests, exchange, preload};
use crate::fixtures::support::{
    Bench, Ran, Target, available, copy_program, ppt, root, rounds, status, text, wait_until,
};

/// Programs of this machine that use a dynamic linker.
fn programs() -> Vec<PathBuf> {
    let entries = fs::read_dir("/usr/bin").unwrap().map(|entry| entry.unwrap().path());
    let is_program = |path: &PathBuf| {
        let executable =
            fs::metadata(path).is_ok_and(|metadata| metadata.is_file() && metadata.mode_allows());
        let head = fs::read(path).unwrap_or_default();
        executable
            && head.starts_with(b"\x7fELF")
            && head[..head.len().min(4096)].windows(8).any(|window| window == b"ld-linux")
    };
    let mut programs: Vec<_> = entries.filter(is_program).collect();
    programs.sort();
    programs
}

trait Executable {
    fn mode_allows(&self) -> bool;
}

impl Executable for fs::Metadata {
    /// Whether any user may run it, without gaining other privileges.
    fn mode_allows(&self) -> bool {
        let mode = self.permissions().mode();
        mode & 0o001 != 0 && mode & 0o6000 == 0
    }
}

/// The exit status of a program that is asked for its version, and its output without numbers,
/// which may be pids, addresses and times.
fn version(bench: &Bench, program: &Path, library: Option<&str>) -> (Option<i32>, String) {
    let mut command = bench.command("timeout");
    command.arg("60").arg(program).arg("--version").stdin(Stdio::null());
    command.env("HOME", bench.path("")).envs(iter::zip(["LD_PRELOAD"], library));
    let output = command.output().unwrap();
    let said = text(&output.stdout) + &text(&output.stderr);
    (output.status.code(), said.chars().filter(|c| !c.is_ascii_digit()).collect())
}

/// Every tenth program; all of them in the long form.
#[test]
fn programs_say_the_same_with_it() {
    let bench = Bench::new();
    let library = preload(&bench);
    let programs = programs();
    let every = rounds(10, 1);
    let mut compared = 0;
    for program in programs.iter().step_by(every) {
        let plain = version(&bench, program, None);
        let with = version(&bench, program, Some(&library));
        if plain != with {
            // The output may differ in each run.
            assert_ne!(plain, version(&bench, program, None), "{}: {with:?}", program.display());
            eprintln!("{} never says the same twice", program.display());
        } else {
            compared += 1;
        }
    }
    eprintln!("compared {compared} of {} programs in /usr/bin", programs.len());
    assert!(compared > programs.len() / every / 2, "{compared}");
}

/// `ppt run --with net,locks,files` of `exchange_main`, with an additional earlier preload.
#[track_caller]
fn exchanged(bench: &Bench, program: &str, before: Option<&str>) {
    let mut command = bench.command(ppt());
    command.args(["run", "--with", "net,locks,files", "-q", "--", program, "plain", "300"]);
    command.envs(iter::zip(["LD_PRELOAD"], before)).stdin(Stdio::null());
    let ran = Ran::of(command.output().unwrap());
    assert_eq!(ran.code(), 0, "{ran:?}");
    let requests = Requests::of(bench, "out.bin");
    assert_eq!((requests.served.len(), requests.called.len()), (300, 300), "{ran:?}");
}

/// The path of a library of this machine; none, with a message, if its package is not installed.
fn library(name: &str, package: &str) -> Option<String> {
    let places = ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64"];
    let found = places.map(|place| format!("{place}/{name}"));
    let path = found.into_iter().find(|path| Path::new(path).exists());
    if path.is_none() {
        eprintln!("skipped: {package} is not installed");
    }
    path
}

#[test]
fn behind_another_allocator() {
    let Some(jemalloc) = library("libjemalloc.so.2", "libjemalloc2") else { return };
    exchanged(&exchange(), "./exchange", Some(&jemalloc));
}

/// They replace functions that the library replaces, too: of locks, of descriptors, of fork.
#[test]
fn behind_the_wrappers_of_lttng() {
    let names = ["pthread-wrapper", "libc-wrapper", "fd", "fork"];
    let paths = names.map(|name| library(&format!("liblttng-ust-{name}.so.1"), "liblttng-ust1"));
    let Some(paths) = paths.into_iter().collect::<Option<Vec<_>>>() else { return };
    let bench = exchange();
    exchanged(&bench, "./exchange", Some(&paths.join(":")));
    let mut command = bench.command(ppt());
    command.args(["run", "--force", "--with", "net,locks,files", "-q", "--", "./exchange"]);
    command.args(["children", "24"]).env("LD_PRELOAD", paths.join(":")).stdin(Stdio::null());
    let ran = Ran::of(command.output().unwrap());
    assert_eq!(ran.code(), 0, "{ran:?}");
    assert_eq!(Requests::of(&bench, "out.bin").served.len(), 24);
}

#[test]
fn behind_the_address_sanitizer() {
    let output = Command::new("gcc").arg("-print-file-name=libasan.so").output().unwrap();
    let sanitizer = text(&output.stdout).trim().to_owned();
    if !Path::new(&sanitizer).is_absolute() {
        return eprintln!("skipped: gcc has no libasan.so");
    }
    exchanged(&exchange(), "./exchange", Some(&sanitizer));
}

/// The same file works with another C library.
#[test]
fn with_musl() {
    if !available("musl-gcc") {
        return;
    }
    let bench = exchange();
    bench.compile("musl-gcc", &["-std=c11", "exchange_main.c", "-o", "musl", "-lpthread"]);
    exchanged(&bench, "./musl", None);
}

/// A table of 64 descriptors: higher ones are counted, and nothing breaks.
#[test]
fn descriptors_above_the_table_are_counted() {
    let bench = exchange();
    let sources = root().join("sources");
    let frame_files = ["net.frame", "hops.frame", "locks.frame", "files.frame"];
    for name in frame_files {
        fs::copy(sources.join(name), bench.path(name)).unwrap();
    }
    bench.pptc(&frame_files);
    let control = |stem: &str| {
        let header = fs::read_to_string(bench.path(&format!("{stem}.h"))).unwrap();
        let mut names = header.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let begin = format!("ppt1_{stem}_");
        let name =
            names.find(|name| name.starts_with(&begin) && name.ends_with("_control")).unwrap();
        format!("-DPPT_{}_CONTROL={name}", stem.to_uppercase())
    };
    let folder = sources.join("c").display().to_string();
    let files = fs::read_dir(sources.join("c")).unwrap().map(|entry| entry.unwrap().path());
    let files = files.filter(|path| path.extension().is_some_and(|extension| extension == "c"));
    let mut args =
        vec!["-std=gnu11".into(), "-fPIC".into(), "-shared".into(), "-Wno-pedantic".into()];
    args.extend([
        "-ftls-model=initial-exec".into(),
        "-Wno-address".into(),
        "-DPPT_DESCRIPTORS=64".into(),
    ]);
    args.extend(["-I.".into(), format!("-I{folder}"), "-fno-optimize-sibling-calls".into()]);
    args.extend(["net", "locks", "files"].map(control));
    args.extend(frame_files.map(|name| name.replace(".frame", ".c")));
    args.extend(files.map(|path| path.display().to_string()));
    args.extend(["-o".into(), "small.so".into()]);
    bench.compile("gcc", &args.iter().map(String::as_str).collect::<Vec<_>>());
    let mut command = bench.command(ppt());
    command.args(["run", "-q", "--", "./exchange", "above", "64"]);
    let ran = Ran::of(command.env("LD_PRELOAD", bench.path("small.so")).output().unwrap());
    assert_eq!(ran.code(), 0, "{ran:?}");
    let said = ran.stdout.lines().find_map(|line| line.strip_prefix("beyond "));
    let requests = Requests::of(&bench, "out.bin");
    assert_eq!(requests.counters["beyond"].to_string(), said.unwrap());
    assert_eq!((requests.served.len(), requests.called.len()), (0, 0));
}

/// The library as it is: its table has 65,536 entries.
#[test]
fn descriptors_above_65535_are_counted() {
    let bench = exchange();
    let script = "ulimit -n 65600 2>/dev/null || exit 77; exec ./exchange above 65536";
    let ran = bench.ppt(&["run", "--with", "net", "-q", "--", "sh", "-c", script]);
    if ran.code() == 77 {
        return eprintln!("skipped: nobody here may open that many");
    }
    assert_eq!(ran.code(), 0, "{ran:?}");
    let said = ran.stdout.lines().find_map(|line| line.strip_prefix("beyond "));
    let requests = Requests::of(&bench, "out.bin");
    assert_eq!(requests.counters["beyond"].to_string(), said.unwrap());
    assert_eq!((requests.served.len(), requests.called.len()), (0, 0));
}

/// Of a program in Go that is linked against the C library, its C code alone would be seen.
#[test]
fn a_program_in_go_is_named() {
    if !available("go") {
        return;
    }
    let bench = Bench::new();
    bench.write("main.go", "package main\n\n// int one() { return 1; }\nimport \"C\"\n\nfunc main() { println(C.one()) }\n");
    bench.write("go.mod", "module main\n");
    let built = go(&bench, &["build", "-o", "gone", "."]).env("CGO_ENABLED", "1").output().unwrap();
    assert!(built.status.success(), "{}", text(&built.stderr));
    let ran = bench.ppt(&["run", "--with", "net", "--", "./gone"]);
    assert_eq!(ran.code(), 0, "the command's own: {ran:?}");
    let why = "./gone: --with shows nothing of it, because programs in Go call the kernel without the C library";
    assert!(ran.stderr.contains(why), "{ran:?}");
}

#[test]
fn programs_that_cannot_have_it_are_named() {
    let bench = exchange();
    bench.cc(&["-static", "exchange_main.c", "-o", "static", "-lpthread"]);
    let ran = bench.ppt(&["run", "--with", "net", "--", "./static", "nothing"]);
    assert_eq!(ran.code(), 0, "the command's own: {ran:?}");
    assert!(
        ran.stderr
            .contains("./static: --with shows nothing of it, because it is linked statically")
    );
    assert!(ran.stderr.contains("more: ppt explain not-preloaded"), "{ran:?}");
    // The set-group-ID bit has an effect for any group except our own, and only root can change the
    // group.
    if !nix::unistd::geteuid().is_root() {
        return;
    }
    fs::set_permissions(bench.path(""), fs::Permissions::from_mode(0o755)).unwrap();
    copy_program("/bin/true", bench.path("privileged"));
    std::os::unix::fs::chown(bench.path("privileged"), Some(1), Some(1)).unwrap();
    fs::set_permissions(bench.path("privileged"), fs::Permissions::from_mode(0o4755)).unwrap();
    let ran = bench.ppt(&["run", "--with", "net", "--", "./privileged"]);
    assert_eq!(ran.code(), 0, "{ran:?}");
    assert!(ran.stderr.contains("because it gets rights that its caller does not have"), "{ran:?}");
}

/// The lines about processes that were not captured.
fn named(stderr: &str) -> Vec<&str> {
    stderr
        .lines()
        .filter(|line| line.contains("not captured") || line.contains("same of"))
        .collect()
}

#[test]
fn a_captured_process_that_loses_the_library_is_named() {
    let bench = Bench::new();
    let mut command = bench.command(ppt());
    command.args(["run", "-v", "--with", "files", "--", "sh", "-c", "echo $$; exec env -i cat"]);
    let (mut run, stderr) = Target::spawn_loud(command);
    let pid = run.stdout.wait_for("");
    wait_until("cat runs", || status(&pid, "Name:").as_deref() == Some("cat"));
    // The first exec was of a program with the library.
    for _ in 0..2 {
        stderr.wait_for(&format!("ppt: process {pid} started another program (exec)"));
    }
    run.close();
    assert!(run.wait().success());
    let said = stderr.rest();
    explained(&said);
    let [line] = named(&said)[..] else { panic!("{said}") };
    assert!(
        line.starts_with(&format!(
            "ppt: process {pid} (cat) was not captured: it does not have libppt-with.so: its program \
             is linked statically"
        )),
        "{said}"
    );
}

/// Each process once: those of vfork(2), which were never captured, too.
#[test]
fn processes_that_live_without_the_library_are_named() {
    let bench = Bench::new();
    bench.write("pause.c", "#include <unistd.h>\nint main(void) { return (int)sleep(4); }\n");
    bench.cc(&["-static", "pause.c", "-o", "pause"]);
    let script = "./pause & echo $!; env -i sleep 4 & echo $!; env -i sh -c 'sleep 4; :' & echo $!
        sleep 0.1; env true; wait";
    let ran = bench.ppt(&["run", "--with", "files", "--", "sh", "-c", script]);
    assert_eq!(ran.code(), 0, "{ran:?}");
    let said = named(&ran.stderr).join("\n");
    for (pid, name) in ran.stdout.lines().zip(["pause", "sleep", "sh"]) {
        assert_eq!(said.matches(&format!("{pid} ({name})")).count(), 1, "{ran:?}");
    }
    // The fourth one is the sleep of that sh.
    assert_eq!((said.matches("(sleep)").count(), said.matches('(').count()), (2, 4), "{ran:?}");
    let ran = bench.ppt(&["run", "--force", "--with", "files", "--", "sh", "-c", "exec env true"]);
    assert!(named(&ran.stderr).is_empty(), "{ran:?}");
}

#[test]
fn the_library_needs_no_version_of_anything() {
    let bench = Bench::new();
    let library = preload(&bench);
    let read = |args: &[&str]| {
        let output = bench.command("readelf").args(args).arg(&library).output().unwrap();
        assert!(output.status.success());
        text(&output.stdout)
    };
    let dynamic = read(&["-dW"]);
    assert_eq!(dynamic.matches("(NEEDED)").count(), 1, "{dynamic}");
    assert!(!dynamic.contains("VERNEED"), "{dynamic}");
    let symbols = read(&["--dyn-syms", "-W"]);
    assert!(!symbols.contains("malloc") && !symbols.contains("printf"), "{symbols}");
}

/// Their calls pass the library, which says how many there are. The dynamic linker still sees the real caller: by the
/// path that is compiled into the program, it finds what has no path.
#[test]
fn libraries_that_are_loaded_apart_are_counted() {
    let bench = Bench::new();
    fs::create_dir(bench.path("inner")).unwrap();
    bench.write("plugin.c", "int plugged(void);\nint plugged(void) { return 1; }\n");
    bench.write(
        "main.c",
        "#define _GNU_SOURCE\n#include <dlfcn.h>\n#include <stddef.h>\n\
         int main(void) {\n\
         \x20   return !dlopen(\"plugin.so\", RTLD_NOW) || !dlopen(\"./other.so\", RTLD_NOW | RTLD_DEEPBIND) ||\n\
         \x20          !dlmopen(LM_ID_NEWLM, \"./other.so\", RTLD_NOW) ||\n\
         \x20          !dlopen(\"./other.so\", RTLD_NOW | RTLD_NOLOAD | RTLD_DEEPBIND);\n\
         }\n",
    );
    for library in ["inner/plugin.so", "other.so"] {
        bench.cc(&["-fPIC", "-shared", "plugin.c", "-o", library]);
    }
    bench.cc(&["main.c", "-o", "main", "-ldl", "-Wl,--disable-new-dtags,-rpath,$ORIGIN/inner"]);
    let ran = bench.ppt(&["run", "--with", "net", "-q", "--", "./main"]);
    assert_eq!(ran.code(), 0, "{ran:?}");
    assert_eq!(Requests::of(&bench, "out.bin").counters["apart"], 2);
}
