//! One small program in every kind of binary: its buffer is found by the expected method, and every
//! frame is captured.

use std::collections::HashSet;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::fixtures::steady::{NOBODY, is_root};
use crate::fixtures::support::{self, Account, Attach, Bench, Target, available};

/// Number of frames of the four threads of crew.c.
const WRITTEN: u64 = 4 * 500;

/// The location of the writing code.
#[derive(Clone, Copy, PartialEq, Eq)]
enum BinaryShape {
    Program,
    Library,
    Plugin,
}

/// A modification of the object that holds the buffer.
#[derive(Clone, Copy)]
enum Then {
    Nothing,
    /// `strip -s`
    Strip,
    /// No section headers at all.
    Behead,
}

/// How a binary is made, and how its buffer is found.
#[derive(Clone, Copy)]
struct BinaryForm {
    row: &'static str,
    shape: BinaryShape,
    flags: &'static [&'static str],
    then: Then,
    /// A required tool other than the compiler.
    needs: &'static str,
    found: &'static str,
}

impl BinaryForm {
    const fn new(row: &'static str, shape: BinaryShape) -> Self {
        Self { row, shape, flags: &[], then: Then::Nothing, needs: "true", found: "symtab" }
    }
    const fn flags(self, flags: &'static [&'static str]) -> Self {
        Self { flags, ..self }
    }
    const fn then(self, then: Then, found: &'static str) -> Self {
        Self { then, found, ..self }
    }
    const fn needs(self, needs: &'static str) -> Self {
        Self { needs, ..self }
    }
}

const PROGRAM: BinaryForm = BinaryForm::new("17", BinaryShape::Program);
const LINKED: BinaryForm = BinaryForm::new("19", BinaryShape::Program);
const LIBRARY: BinaryForm = BinaryForm::new("17", BinaryShape::Library);
const PLUGIN: BinaryForm = BinaryForm::new("17", BinaryShape::Plugin);

const GC: &[&str] = &["-flto", "-Wl,--gc-sections", "-ffunction-sections", "-fdata-sections"];

/// A test of each kind with each compiler.
macro_rules! kinds {
    ($($name:ident: $kind:expr;)*) => {
        mod gcc {
            use super::*;
            $(#[test] fn $name() { run("gcc", stringify!($name), $kind); })*
        }
        mod clang {
            use super::*;
            $(#[test] fn $name() { run("clang", stringify!($name), $kind); })*
        }
    };
}

kinds! {
    pie: PROGRAM.flags(&["-fPIE", "-pie"]);
    no_pie: PROGRAM.flags(&["-fno-pie", "-no-pie"]);
    static_: PROGRAM.flags(&["-static"]);
    static_pie: PROGRAM.flags(&["-static-pie", "-fPIE"]);
    stripped: PROGRAM.then(Then::Strip, "scan");
    stripped_no_pie: PROGRAM.flags(&["-fno-pie", "-no-pie"]).then(Then::Strip, "scan");
    stripped_static: PROGRAM.flags(&["-static"]).then(Then::Strip, "scan");
    stripped_static_pie: PROGRAM.flags(&["-static-pie", "-fPIE"]).then(Then::Strip, "scan");
    without_section_headers: PROGRAM.then(Then::Behead, "scan");
    o0: LINKED.flags(&["-O0"]);
    o3: LINKED.flags(&["-O3"]);
    lld: LINKED.flags(&["-fuse-ld=lld"]).needs("ld.lld");
    gold: LINKED.flags(&["-fuse-ld=gold"]).needs("ld.gold");
    mold: LINKED.flags(&["-fuse-ld=mold"]).needs("mold");
    gc_sections: LINKED.flags(&["-Wl,--gc-sections", "-ffunction-sections", "-fdata-sections"]);
    gc_sections_lld: LINKED
        .flags(&["-fuse-ld=lld", "-Wl,--gc-sections", "-ffunction-sections", "-fdata-sections"])
        .needs("ld.lld");
    norelro: LINKED.flags(&["-Wl,-z,norelro"]);
    norelro_stripped: LINKED.flags(&["-Wl,-z,norelro"]).then(Then::Strip, "scan");
    noseparate_code: LINKED.flags(&["-Wl,-z,noseparate-code"]);
    // Constants in the same segment as code: the descriptor lies in an executable mapping.
    noseparate_code_stripped: LINKED
        .flags(&["-fno-pie", "-no-pie", "-Wl,-z,noseparate-code"])
        .then(Then::Strip, "scan");
    initial_exec: LINKED.flags(&["-DPPT_TLS_MODEL=\"initial-exec\""]);
    library: LIBRARY;
    library_stripped: LIBRARY.then(Then::Strip, "dynsym");
    library_without_section_headers: LIBRARY.then(Then::Behead, "dynsym");
    library_initial_exec: LIBRARY.flags(&["-DPPT_TLS_MODEL=\"initial-exec\""]);
    library_noseparate_code: LIBRARY
        .flags(&["-Wl,-z,noseparate-code", "-Wl,-z,norelro"])
        .then(Then::Strip, "dynsym");
    library_lld: LIBRARY.flags(&["-fuse-ld=lld"]).needs("ld.lld");
    plugin: PLUGIN;
    plugin_stripped: PLUGIN.then(Then::Strip, "dynsym");
    plugin_initial_exec: PLUGIN.flags(&["-DPPT_TLS_MODEL=\"initial-exec\""]);
}

#[test]
fn gcc_lto_and_gc_sections() {
    run("gcc", "lto_gc_sections", LINKED.flags(GC));
}

#[test]
fn gcc_lto_and_gc_sections_in_a_library() {
    run("gcc", "library_lto_gc_sections", BinaryForm { row: "19", ..LIBRARY.flags(GC) });
}

#[test]
fn clang_lto_and_gc_sections() {
    // The compiler's own linker, because GNU ld may lack a plugin of the same version.
    const FLAGS: &[&str] = &[GC[0], GC[1], GC[2], GC[3], "-fuse-ld=lld"];
    run("clang", "lto_gc_sections", LINKED.flags(FLAGS).needs("ld.lld"));
}

#[test]
fn musl() {
    run("musl-gcc", "dynamic", PROGRAM);
}

#[test]
fn musl_static() {
    run("musl-gcc", "static", PROGRAM.flags(&["-static"]));
}

#[test]
fn musl_static_stripped() {
    run("musl-gcc", "static_stripped", PROGRAM.flags(&["-static"]).then(Then::Strip, "scan"));
}

#[test]
fn musl_library() {
    run("musl-gcc", "library", LIBRARY);
}

#[test]
fn musl_plugin() {
    run("musl-gcc", "plugin", PLUGIN);
}

/// The object that holds the buffer.
fn object(bench: &Bench, kind: BinaryForm) -> PathBuf {
    bench.path(if kind.shape == BinaryShape::Program { "crew" } else { "libcrew.so" })
}

fn build(bench: &Bench, compiler: &str, kind: BinaryForm) {
    bench.copy_all(&["crew.c", "crew_main.c", "matrix.frame"]);
    bench.pptc(&["matrix.frame"]);
    let mut base = vec!["-std=c11", "-lpthread"];
    if compiler == "musl-gcc" {
        // gcc's specs of musl name no loader for position-independent programs.
        base.extend(["-fPIC"]);
    }
    let sources: &[&str] = &["crew.c", "matrix.c"];
    let compile =
        |parts: &[&[&str]]| bench.compile(compiler, &[&parts.concat(), &base[..]].concat());
    match kind.shape {
        BinaryShape::Program => compile(&[&["-o", "crew", "crew_main.c"], sources, kind.flags]),
        BinaryShape::Library => {
            compile(&[&["-shared", "-fPIC", "-o", "libcrew.so"], sources, kind.flags]);
            compile(&[&["-o", "crew", "crew_main.c", "-L.", "-lcrew", "-Wl,-rpath,$ORIGIN"]]);
        }
        BinaryShape::Plugin => {
            compile(&[&["-shared", "-fPIC", "-o", "libcrew.so"], sources, kind.flags]);
            compile(&[&["-DPLUGIN", "-o", "crew", "crew_main.c", "-ldl"]]);
        }
    }
    let object = object(bench, kind);
    match kind.then {
        Then::Nothing => {}
        Then::Strip => {
            assert!(bench.command("strip").arg("-s").arg(&object).status().unwrap().success());
        }
        Then::Behead => behead(&object),
    }
}

/// Removes the section headers of an ELF file: e_shoff, e_shentsize, e_shnum, e_shstrndx.
fn behead(path: &Path) {
    let mut bytes = fs::read(path).unwrap();
    bytes[0x28..0x30].fill(0);
    bytes[0x3a..0x40].fill(0);
    fs::write(path, bytes).unwrap();
}

fn start(bench: &Bench, kind: BinaryForm) -> Target {
    let library = bench.path("libcrew.so");
    let args: &[&str] = match kind.shape {
        BinaryShape::Plugin => &[library.to_str().unwrap()],
        _ => &[],
    };
    bench.start("crew", args)
}

fn run(compiler: &str, name: &str, kind: BinaryForm) {
    if !available(compiler) || !available(kind.needs) {
        return;
    }
    let bench = Bench::new();
    build(&bench, compiler, kind);
    let target = start(&bench, kind);
    let case = format!("{compiler}, {}", name.trim_end_matches('_').replace('_', " "));
    capture(&bench, kind.row, &case, target, &object(&bench, kind), &[kind.found]);
}

/// Lists, attaches, captures all frames, and checks them.
fn capture(
    bench: &Bench,
    row: &str,
    case: &str,
    mut target: Target,
    object: &Path,
    expected: &[&str],
) {
    let listed = bench.ppt(&["list", &target.pid().to_string()]);
    assert_eq!((listed.code(), listed.stderr.as_str()), (0, ""), "{case}");
    let words: Vec<_> = listed.stdout.split_whitespace().collect();
    let object = object.to_str().unwrap();
    let found = *words.get(8).expect(&listed.stdout);
    assert_eq!(
        words,
        ["BUFFER", "FRAMES", "STATE", "FOUND", "OBJECT", "matrix", "crew", "off", found, object]
    );
    assert!(expected.contains(&found), "{case}: found by {found}, not {expected:?}");

    let mut sessions = Vec::new();
    for (kind, how) in [("sysv", "made"), ("memfd", "awaiting memfd")] {
        let attach = bench.attach(&target, &["-v", "-o", kind, "--segment", kind]);
        let pid = attach.pid();
        let written = target.run();
        let stderr = attach.stop();
        let line = format!("ppt: matrix: found by {found} in {object}; {how} segment ");
        assert!(stderr.contains(&line), "{case}: {stderr}");
        sessions.push((kind, written, pid));
    }
    target.finish();
    for (kind, written, pid) in sessions {
        let case = if kind == "memfd" { format!("memfd: {case}") } else { case.into() };
        check((bench, kind), row, &case, written, pid);
    }
}

/// Checks that every frame is there, once and right.
fn check((bench, capture): (&Bench, &str), row: &str, case: &str, written: u64, attach: u32) {
    assert_eq!(written, WRITTEN);
    let info = bench.info(capture);
    let account = Account::of(&info);
    account.check(written);
    assert_eq!(account.captured, written, "{case}");
    let table = bench.table(capture, &[]);
    let (thread, i, mix) = (table.numbers("thread"), table.numbers("i"), table.cells("mix"));
    let mut seen = HashSet::new();
    for ((&thread, &i), mix) in thread.iter().zip(&i).zip(mix) {
        let expected = (thread as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ i as u64;
        assert_eq!(mix.parse(), Ok(expected), "{case}");
        assert!(seen.insert((thread, i)), "{case}: twice");
    }
    assert_eq!(seen.len() as u64, written, "{case}");
    support::record(row, case, written, account, &info, support::segments_of(&[attach]));
}

#[test]
fn a_deleted_program() {
    let bench = Bench::new();
    build(&bench, "gcc", PROGRAM);
    let target = start(&bench, PROGRAM);
    fs::remove_file(bench.path("crew")).unwrap();
    capture(&bench, "20", "program deleted", target, &bench.path("crew"), &["scan"]);
}

#[test]
fn a_deleted_library() {
    let bench = Bench::new();
    build(&bench, "gcc", LIBRARY);
    let target = start(&bench, LIBRARY);
    fs::remove_file(bench.path("libcrew.so")).unwrap();
    capture(&bench, "20", "library deleted", target, &bench.path("libcrew.so"), &["scan"]);
}

/// Another build of the same program replaces the file: its symbols would mislead.
#[test]
fn an_upgraded_program() {
    let bench = Bench::new();
    build(&bench, "gcc", PROGRAM);
    let target = start(&bench, PROGRAM);
    fs::remove_file(bench.path("crew")).unwrap();
    build(&bench, "gcc", PROGRAM.flags(&["-O0", "-fno-pie", "-no-pie"]));
    capture(&bench, "20", "program upgraded", target, &bench.path("crew"), &["scan"]);
}

#[test]
fn an_upgraded_library() {
    let bench = Bench::new();
    build(&bench, "gcc", PLUGIN);
    let target = start(&bench, PLUGIN);
    fs::write(bench.path("new"), "not even an ELF file").unwrap();
    fs::rename(bench.path("new"), bench.path("libcrew.so")).unwrap();
    capture(&bench, "20", "library upgraded", target, &bench.path("libcrew.so"), &["scan"]);
}

/// The command that runs a program as nobody.
fn as_nobody(bench: &Bench, program: &Path) -> std::process::Command {
    let mut command = bench.command("setpriv");
    let nobody = NOBODY.to_string();
    command.args(["--reuid", &nobody, "--regid", &nobody, "--clear-groups"]).arg(program);
    command
}

/// A folder of nobody, with the program and a ppt that nobody may run. `None` if a test cannot
/// become nobody.
fn nobodys_bench() -> Option<Bench> {
    if !is_root() || !available("setpriv") {
        return None;
    }
    let bench = Bench::new();
    build(&bench, "gcc", PROGRAM);
    support::copy_program(support::ppt(), bench.path("ppt"));
    std::os::unix::fs::chown(bench.path(""), Some(NOBODY), Some(NOBODY)).unwrap();
    Some(bench)
}

/// nobody attaches to its own program, which it may execute but not read.
fn unreadable(bench: &Bench, case: &str, mut target: Target) {
    let mut command = as_nobody(bench, &bench.path("ppt"));
    command.args(["attach", "-v", &target.pid().to_string()]);
    let attach = Attach::start(command);
    let pid = attach.pid();
    let written = target.run();
    let stderr = attach.stop();
    let object = bench.path("crew").to_str().unwrap().to_string();
    assert!(stderr.contains(&format!("ppt: matrix: found by scan in {object}; made")), "{stderr}");
    target.finish();
    check((bench, "out.bin"), "20", case, written, pid);
}

#[test]
fn a_program_that_became_unreadable() {
    let Some(bench) = nobodys_bench() else { return };
    let target = Target::start(as_nobody(&bench, &bench.path("crew")));
    fs::set_permissions(bench.path("crew"), Permissions::from_mode(0o711)).unwrap();
    unreadable(&bench, "program made unreadable (0711), unprivileged", target);
}

#[test]
fn a_program_that_never_was_readable() {
    let Some(bench) = nobodys_bench() else { return };
    fs::set_permissions(bench.path("crew"), Permissions::from_mode(0o711)).unwrap();
    let target = Target::start(as_nobody(&bench, &bench.path("crew")));
    // Most kernels make such a process not dumpable, so only a privileged ppt may attach.
    let mut probe = as_nobody(&bench, Path::new("head"));
    let memory = format!("/proc/{}/mem", target.pid());
    if probe.args(["-c0", &memory]).output().unwrap().status.success() {
        unreadable(&bench, "program unreadable (0711) from the start, unprivileged", target);
        return;
    }
    let mut command = as_nobody(&bench, &bench.path("ppt"));
    command.args(["attach", "-d", "5s", &target.pid().to_string()]);
    let refused = command.output().unwrap();
    assert_eq!(refused.status.code(), Some(1));
    let stderr = support::text(&refused.stderr);
    assert!(stderr.contains("it is not dumpable"), "{stderr}");
    assert!(!bench.path("out.bin").exists());
    let case = "program unreadable (0711) from the start, root";
    capture(&bench, "20", case, target, &bench.path("crew"), &["symtab"]);
}

/// A program on an overlay, as in a container: the mapped inode differs from the visible one.
#[test]
fn a_program_on_an_overlay() {
    if !is_root() || !available("unshare") {
        return;
    }
    let bench = Bench::new();
    build(&bench, "gcc", PROGRAM);
    fs::create_dir(bench.path("at")).unwrap();
    let script = "mount -t tmpfs none at && cd at && mkdir lower upper work all && \
                  cp ../crew lower && mount -t overlay overlay \
                  -o lowerdir=lower,upperdir=upper,workdir=work all && echo mounted && \
                  exec \"$PWD/all/crew\" || echo refused";
    let mut command = bench.command("unshare");
    command.args(["-m", "sh", "-c", script]);
    let target = Target::spawn(command);
    let first = target.stdout.wait_for("");
    if first != "mounted" {
        eprintln!("skipped: no overlay can be mounted here");
        return;
    }
    target.stdout.wait_for("ready");
    let object = bench.path("at/all/crew");
    capture(&bench, "20", "program on an overlay", target, &object, &["symtab", "scan"]);
}
