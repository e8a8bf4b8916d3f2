//! Buffers in programs, libraries and plugins, alone and together: which of them merge, which are
//! told apart, and what happens when one goes away.

use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;

use crate::support::{self, Account, Bench, Table, Target, available};

/// Threads that one `go` of host.c makes.
const CREW: u64 = 4;

/// A folder with `host.c`, `plugin.c`, and both frame files compiled: `left/` and `right/`.
fn bench() -> Bench {
    let bench = Bench::new();
    bench.copy_all(&["host.c", "plugin.c"]);
    for side in ["left", "right"] {
        fs::create_dir(bench.path(side)).unwrap();
        let frames = format!("{side}/example.frame");
        let from = support::root().join("tests/targets").join(&frames);
        fs::copy(from, bench.path(&frames)).unwrap();
        bench.pptc(&[&frames]);
    }
    bench
}

/// Compiles `plugin.c` with the frames of `side` into library `name`, whose function is `function`.
fn library(bench: &Bench, side: &str, name: &str, function: &str, args: &[&str]) {
    let (include, source) = (format!("-I{side}"), format!("{side}/example.c"));
    let function = format!("-DWRITE={function}");
    let mut all = vec!["-shared", "-fPIC", &include, &function, "plugin.c", &source, "-o", name];
    if side == "right" {
        all.push("-DRIGHT");
    }
    bench.cc(&[&all, args].concat());
}

const LINK: [&str; 3] = ["-lpthread", "-ldl", "-Wl,-rpath,$ORIGIN"];

fn host(bench: &Bench, args: &[&str]) {
    bench.cc(&[&["-o", "host", "host.c"], args, &LINK].concat());
}

fn path(bench: &Bench, name: &str) -> String {
    bench.path(name).to_str().unwrap().into()
}

/// Tells it to do something and waits until it has.
fn tell(target: &mut Target, line: &str, answer: &str) {
    target.say(line);
    target.stdout.wait_for(answer);
}

fn load(bench: &Bench, target: &mut Target, name: &str, mode: &str) {
    tell(target, &format!("load {} {mode}", path(bench, name)), "loaded");
}

fn go(target: &mut Target, frames: u32) -> u64 {
    target.say(&format!("go {frames}"));
    target.written()
}

/// Text with every run of spaces as one, and pids and the folder as placeholders.
fn plain(bench: &Bench, text: &str, pids: &[(u32, &str)]) -> String {
    let folder = bench.path("").to_str().unwrap().to_string();
    let mut text = text.replace(folder.trim_end_matches('/'), "DIR");
    for (pid, name) in pids {
        text = text.replace(&pid.to_string(), name);
    }
    let line = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ") + "\n";
    text.lines().map(line).collect()
}

/// `ppt list` of a target, plain.
fn list(bench: &Bench, target: &Target, pids: &[(u32, &str)]) -> String {
    let ran = bench.ppt(&["list", &target.pid().to_string()]);
    assert_eq!((ran.code(), ran.stderr.as_str()), (0, ""));
    plain(bench, &ran.stdout, pids)
}

/// Hash of a side's schema, as names show it.
fn hash8(bench: &Bench, side: &str) -> String {
    let header = fs::read_to_string(bench.path(&format!("{side}/example.h"))).unwrap();
    let (_, rest) = header.split_once("\n * Schema ").unwrap();
    rest[..8].into()
}

/// Checks every frame of a thread's rounds, written `times` times each.
fn check(table: &Table, side: &str, times: u64) -> u64 {
    let (threads, rounds) = (table.numbers("thread"), table.numbers("i"));
    let mut seen: HashMap<(i64, i64), u64> = HashMap::new();
    for (row, (&thread, &i)) in threads.iter().zip(&rounds).enumerate() {
        let cell = |name: &str| table.rows[row][table.column(name)].as_str();
        *seen.entry((thread, i)).or_default() += 1;
        if side == "left" {
            let mix = (thread as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ i as u64;
            assert_eq!(cell("mix").parse(), Ok(mix));
        } else {
            assert_eq!(cell("half").parse(), Ok(i as f64 * 0.5));
            assert_eq!(cell("minus").parse(), Ok(-i));
            assert_eq!(cell("text"), format!("right {}", i % 10000));
        }
    }
    assert!(seen.values().all(|&count| count == times), "each {times} times");
    let mut names: Vec<_> = table.cells("ring").into_iter().zip(table.cells("seqno")).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), table.rows.len(), "ring and number name one frame");
    table.rows.len() as u64
}

/// Ends the target, checks the sum and notes it.
fn account(
    bench: &Bench,
    row: &str,
    case: &str,
    target: Target,
    attach: (u32, &str),
    written: u64,
) -> Account {
    target.finish();
    let (pid, said) = attach;
    let info = bench.info("out.bin");
    let account = Account::of(&info);
    account.check(written);
    assert_eq!(account.captured, written, "{said}");
    support::record(row, case, written, account, &info, support::segments_of(&[pid]));
    account
}

/// Two libraries with different frames under the same names: each is its own.
fn two_of_a_name(case: &str, prepare: impl Fn(&Bench) -> Target) {
    let bench = bench();
    let mut target = prepare(&bench);
    let hashes = ["left", "right"].map(|side| hash8(&bench, side));
    let name = |side: usize| format!("example#{}", hashes[side]);
    let mut lines = [0, 1].map(|side| {
        let object = ["left", "right"][side];
        format!("{} work off symtab DIR/lib{object}.so\n", name(side))
    });
    lines.sort();
    let expected = format!("BUFFER FRAMES STATE FOUND OBJECT\n{}", lines.concat());
    assert_eq!(list(&bench, &target, &[]), expected);

    let attach = bench.attach(&target, &[]);
    let pid = attach.pid();
    let written = go(&mut target, 500);
    assert_eq!(written, CREW * 500 * 2);
    tell(&mut target, "join", "joined");
    let said = attach.stop();
    let mut names = [name(0), name(1)];
    names.sort();
    let attached = format!("attached: pid {}, buffers {}, {}", target.pid(), names[0], names[1]);
    assert!(said.contains(&attached), "{said}");
    account(&bench, "45", case, target, (pid, &said), written);
    for (side, hash) in hashes.iter().enumerate() {
        let table = bench.table("out.bin", &["-b", &format!("example#{hash}")]);
        assert_eq!(check(&table, ["left", "right"][side], 1), CREW * 500);
    }
    // Together: a column says whose row it is.
    let all = bench.table("out.bin", &[]);
    for name in &names {
        assert_eq!(all.cells("buffer").iter().filter(|it| *it == name).count(), 2000);
    }
}

#[test]
fn two_libraries_of_one_name_are_linked() {
    two_of_a_name("two different example.frame, linked", |bench| {
        library(bench, "left", "libleft.so", "left_write", &[]);
        library(bench, "right", "libright.so", "right_write", &[]);
        host(bench, &["-DFIRST=left_write", "-DSECOND=right_write", "-L.", "-lleft", "-lright"]);
        bench.start("host", &[])
    });
}

#[test]
fn two_libraries_of_one_name_are_loaded_for_all() {
    two_of_a_name("two different example.frame, dlopen RTLD_GLOBAL", |bench| {
        library(bench, "left", "libleft.so", "plugin_write", &[]);
        library(bench, "right", "libright.so", "plugin_write", &[]);
        host(bench, &[]);
        let mut target = bench.start("host", &[]);
        load(bench, &mut target, "libleft.so", "global");
        load(bench, &mut target, "libright.so", "global");
        target
    });
}

/// Two parts with the same frames: one buffer, as the linker has it.
fn merged(case: &str, prepare: impl Fn(&Bench) -> Target) {
    let bench = bench();
    let mut target = prepare(&bench);
    let listed = list(&bench, &target, &[]);
    assert_eq!(listed.lines().count(), 2, "{listed}");
    assert!(listed.contains("\nexample work off symtab DIR/"), "{listed}");
    let attach = bench.attach(&target, &[]);
    let pid = attach.pid();
    let written = go(&mut target, 500);
    assert_eq!(written, CREW * 500 * 2);
    tell(&mut target, "join", "joined");
    let said = attach.stop();
    account(&bench, "21", case, target, (pid, &said), written);
    let table = bench.table("out.bin", &[]);
    assert_eq!(check(&table, "left", 2), written);
    let rings: std::collections::HashSet<_> = table.cells("ring").into_iter().collect();
    assert_eq!(rings.len() as u64, CREW, "both parts write into the thread's one ring");
}

#[test]
fn one_frame_file_in_two_libraries_is_one_buffer() {
    merged("the same frame file in two shared libraries", |bench| {
        library(bench, "left", "libone.so", "one_write", &[]);
        library(bench, "left", "libtwo.so", "two_write", &[]);
        host(bench, &["-DFIRST=one_write", "-DSECOND=two_write", "-L.", "-lone", "-ltwo"]);
        bench.start("host", &[])
    });
}

#[test]
fn one_frame_file_loaded_twice_for_all_is_one_buffer() {
    merged("the same frame file in two plugins, dlopen RTLD_GLOBAL", |bench| {
        library(bench, "left", "libone.so", "plugin_write", &[]);
        library(bench, "left", "libtwo.so", "plugin_write", &[]);
        host(bench, &[]);
        let mut target = bench.start("host", &[]);
        load(bench, &mut target, "libone.so", "global");
        load(bench, &mut target, "libtwo.so", "global");
        target
    });
}

#[test]
fn one_frame_file_twice_in_a_static_link_is_one_buffer() {
    merged("the same frame file twice in a static link", |bench| {
        for part in ["one", "two"] {
            let function = format!("-DWRITE={part}_write");
            let (code, frames) = (format!("{part}.o"), format!("{part}_frames.o"));
            bench.cc(&["-c", "-Ileft", &function, "plugin.c", "-o", &code]);
            bench.cc(&["-c", "-Ileft", "left/example.c", "-o", &frames]);
        }
        let parts = ["one.o", "one_frames.o", "two.o", "two_frames.o"];
        host(
            bench,
            &[&["-static", "-DFIRST=one_write", "-DSECOND=two_write"], &parts[..]].concat(),
        );
        bench.start("host", &[])
    });
}

#[test]
fn one_frame_file_in_two_local_plugins_is_two_buffers() {
    let bench = bench();
    library(&bench, "left", "one.so", "plugin_write", &[]);
    library(&bench, "left", "two.so", "plugin_write", &[]);
    host(&bench, &[]);
    let mut target = bench.start("host", &[]);
    load(&bench, &mut target, "one.so", "local");
    load(&bench, &mut target, "two.so", "local");
    assert_eq!(
        list(&bench, &target, &[]),
        "BUFFER FRAMES STATE FOUND OBJECT\n\
         example@one.so work off symtab DIR/one.so\n\
         example@two.so work off symtab DIR/two.so\n"
    );
    let attach = bench.attach(&target, &[]);
    let pid = attach.pid();
    let written = go(&mut target, 500);
    tell(&mut target, "join", "joined");
    let said = attach.stop();
    account(
        &bench,
        "21",
        "the same frame file in two RTLD_LOCAL plugins",
        target,
        (pid, &said),
        written,
    );
    for name in ["example@one.so", "example@two.so"] {
        let table = bench.table("out.bin", &["-b", name]);
        assert_eq!(check(&table, "left", 1), CREW * 500, "{name}");
    }
}

#[test]
fn plugins_of_one_file_name_are_named_by_their_folders() {
    let bench = bench();
    for folder in ["a", "b"] {
        fs::create_dir(bench.path(folder)).unwrap();
        library(&bench, "left", &format!("{folder}/same.so"), "plugin_write", &[]);
    }
    host(&bench, &[]);
    let mut target = bench.start("host", &[]);
    load(&bench, &mut target, "a/same.so", "local");
    load(&bench, &mut target, "b/same.so", "local");
    assert_eq!(
        list(&bench, &target, &[]),
        "BUFFER FRAMES STATE FOUND OBJECT\n\
         example@DIR/a/same.so work off symtab DIR/a/same.so\n\
         example@DIR/b/same.so work off symtab DIR/b/same.so\n"
    );
    let chosen = format!("example@{}", path(&bench, "b/same.so"));
    let attach = bench.attach(&target, &["-b", &chosen]);
    // One of the two is off: half of what is written passes no gate.
    let written = go(&mut target, 100) / 2;
    attach.stop();
    target.finish();
    Account::of(&bench.info("out.bin")).check(written);
}

/// A program that uses the header of a library's buffer, linked to that library; `pie` or `no-pie`.
fn header_in_program(bench: &Bench, compiler: &str, library_args: &[&str], kind: &str) {
    library(bench, "left", "libleft.so", "left_write", library_args);
    let (compile, link) = (format!("-f{kind}"), format!("-{kind}"));
    let own = ["-c", "-Ileft", "-DWRITE=own_write", "plugin.c", "-o", "own.o", &compile];
    bench.compile(compiler, &[&["-std=c11"], &own[..]].concat());
    let parts = ["-DFIRST=left_write", "-DSECOND=own_write", "host.c", "own.o", "-L.", "-lleft"];
    let all = [&["-std=c11", "-o", "host", &compile, &link], &parts[..], &LINK].concat();
    bench.compile(compiler, &all);
}

/// Whether the control page was copied into the program, as the linker says.
fn copied(bench: &Bench) -> bool {
    let relocations = bench.command("readelf").args(["-rW", "host"]).output().unwrap();
    support::text(&relocations.stdout)
        .lines()
        .any(|line| line.contains("_COPY") && line.contains("_control"))
}

fn copy_relocation(case: &str, compiler: &str, kind: &str) {
    let bench = bench();
    header_in_program(&bench, compiler, &[], kind);
    assert!(copied(&bench), "this is a test of R_X86_64_COPY");
    let mut target = bench.start("host", &[]);
    assert_eq!(
        list(&bench, &target, &[]),
        "BUFFER FRAMES STATE FOUND OBJECT\nexample work off symtab DIR/libleft.so\n"
    );
    let attach = bench.attach(&target, &[]);
    let pid = attach.pid();
    let written = go(&mut target, 500);
    assert_eq!(written, CREW * 500 * 2);
    tell(&mut target, "join", "joined");
    let said = attach.stop();
    account(&bench, "18", case, target, (pid, &said), written);
    assert_eq!(check(&bench.table("out.bin", &[]), "left", 2), written);
}

#[test]
fn a_control_page_that_the_program_copied_is_found() {
    copy_relocation("copy relocation, PIE", "gcc", "pie");
}

#[test]
fn a_control_page_that_a_fixed_program_copied_is_found() {
    copy_relocation("copy relocation, non-PIE", "gcc", "no-pie");
}

#[test]
fn a_control_page_that_a_program_of_clang_copied_is_found() {
    if available("clang") {
        copy_relocation("copy relocation, non-PIE, clang", "clang", "no-pie");
    }
}

#[test]
fn a_library_that_keeps_its_control_page_to_itself_is_refused() {
    let bench = bench();
    header_in_program(&bench, "gcc", &["-Wl,-Bsymbolic"], "pie");
    assert!(copied(&bench));
    let mut target = bench.start("host", &[]);
    let pid = target.pid().to_string();
    for command in [&["attach", &pid][..], &["list", &pid], &["detach", &pid]] {
        let ran = bench.ppt(command);
        assert_eq!((ran.code(), ran.stdout.as_str()), (1, ""), "{command:?}");
        assert_eq!(
            plain(&bench, &ran.stderr, &[(target.pid(), "PID")]),
            "ppt: process PID: buffer example in DIR/libleft.so: that library was linked with -Bsymbolic, and the \
             program uses its header, so they see different control pages. Link the library \
             without -Bsymbolic, or the .c file into the program\n",
            "{command:?}"
        );
    }
    assert!(!bench.path("out.bin").exists(), "refused before a file is made");
    assert_eq!(go(&mut target, 10), CREW * 20, "the target is none the wiser");
    target.finish();
}

#[test]
fn a_symbolic_library_of_which_nobody_uses_the_header_is_attached() {
    let bench = bench();
    library(&bench, "left", "libleft.so", "left_write", &["-Wl,-Bsymbolic"]);
    host(&bench, &["-DFIRST=left_write", "-L.", "-lleft"]);
    let mut target = bench.start("host", &[]);
    let attach = bench.attach(&target, &[]);
    let pid = attach.pid();
    let written = go(&mut target, 500);
    let said = attach.stop();
    account(&bench, "18", "-Bsymbolic, header unused", target, (pid, &said), written);
    assert_eq!(check(&bench.table("out.bin", &[]), "left", 1), written);
}

/// A host that has loaded one plugin.
fn one_plugin(bench: &Bench) -> Target {
    library(bench, "left", "plugin.so", "plugin_write", &[]);
    host(bench, &[]);
    let mut target = bench.start("host", &[]);
    load(bench, &mut target, "plugin.so", "local");
    target
}

#[test]
fn an_unloaded_plugin_ends_its_capture() {
    let bench = bench();
    let mut target = one_plugin(&bench);
    let attach = bench.attach(&target, &[]);
    let pid = attach.pid();
    let written = go(&mut target, 500);
    tell(&mut target, "unload 0", "unloaded");
    let said = attach.ended(0);
    let expected = format!("ppt: example: its library was unloaded by process {}\n", target.pid());
    assert!(said.contains(&expected), "{said}");
    // The threads that used it outlive it.
    tell(&mut target, "join", "joined");
    account(&bench, "22", "dlclose while attached", target, (pid, &said), written);
    assert_eq!(check(&bench.table("out.bin", &[]), "left", 1), written);
    let info = bench.ppt(&["info", "out.bin"]);
    assert!(info.stdout.contains("its library was unloaded"), "{}", info.stdout);
}

#[test]
fn memory_that_an_unloaded_plugin_left_is_not_written_to() {
    let bench = bench();
    let mut target = one_plugin(&bench);
    let attach = bench.attach(&target, &[]);
    let pid = attach.pid();
    let written = go(&mut target, 500);
    tell(&mut target, "unload 0", "unloaded");
    tell(&mut target, "reuse", "reused");
    // At once: mostly before the look of once a second has noticed.
    let said = attach.stop();
    tell(&mut target, "check", "intact");
    let ran = bench.ppt(&["detach", &target.pid().to_string()]);
    assert_eq!(ran.code(), 1, "{}", ran.stderr);
    tell(&mut target, "check", "intact");
    tell(&mut target, "join", "joined");
    account(&bench, "54", "dlclose, address reused, detach", target, (pid, &said), written);
}

#[test]
fn a_plugin_that_is_unloaded_leaves_the_others_attached() {
    let bench = bench();
    library(&bench, "left", "libleft.so", "left_write", &[]);
    library(&bench, "right", "plugin.so", "plugin_write", &[]);
    host(&bench, &["-DFIRST=left_write", "-L.", "-lleft"]);
    let mut target = bench.start("host", &[]);
    load(&bench, &mut target, "plugin.so", "local");
    let attach = bench.attach(&target, &[]);
    let pid = attach.pid();
    let mut written = go(&mut target, 300);
    tell(&mut target, "unload 1", "unloaded");
    tell(&mut target, "reuse", "reused");
    let name = format!("example#{}", hash8(&bench, "right"));
    let line = format!("ppt: {name}: its library was unloaded by process {}", target.pid());
    attach.stderr.wait_for(&line);
    // The threads of the plugin end, others come, and the rest of the capture goes on.
    tell(&mut target, "join", "joined");
    written += go(&mut target, 300);
    let said = attach.stop();
    tell(&mut target, "check", "intact");
    account(&bench, "22", "dlclose of one of two while attached", target, (pid, &said), written);
    let right = bench.table("out.bin", &["-b", &name]);
    assert_eq!(check(&right, "right", 1), CREW * 300);
    let left = bench.table("out.bin", &["-b", &format!("example#{}", hash8(&bench, "left"))]);
    assert_eq!(check(&left, "left", 2), CREW * 600);
}

#[test]
fn a_plugin_that_comes_back_is_attached_again() {
    let bench = bench();
    let mut target = one_plugin(&bench);
    let (mut pids, mut total) = (Vec::new(), 0);
    for round in 0..3 {
        let attach = bench.attach(&target, &["--force"]);
        pids.push(attach.pid());
        let written = go(&mut target, 100);
        tell(&mut target, &format!("unload {round}"), "unloaded");
        attach.ended(0);
        Account::of(&bench.info("out.bin")).check(written);
        total += written;
        load(&bench, &mut target, "plugin.so", "local");
        tell(&mut target, "join", "joined");
    }
    assert_eq!(total, 3 * CREW * 100);
    target.finish();
    assert_eq!(support::segments_of(&pids), 0);
}

#[test]
fn a_library_loaded_after_the_attach_is_listed() {
    let bench = bench();
    library(&bench, "left", "libleft.so", "left_write", &[]);
    library(&bench, "right", "late.so", "plugin_write", &[]);
    host(&bench, &["-DFIRST=left_write", "-L.", "-lleft"]);
    let mut target = bench.start("host", &[]);
    let attach = bench.attach(&target, &[]);
    let pids = [(attach.pid(), "AGENT")];
    assert_eq!(
        list(&bench, &target, &pids),
        "BUFFER FRAMES STATE FOUND OBJECT\n\
         example work attached by ppt with pid AGENT symtab DIR/libleft.so\n"
    );
    load(&bench, &mut target, "late.so", "local");
    let (left, right) = (hash8(&bench, "left"), hash8(&bench, "right"));
    let mut lines = [
        format!("example#{left} work attached by ppt with pid AGENT symtab DIR/libleft.so\n"),
        format!("example#{right} work off symtab DIR/late.so\n"),
    ];
    lines.sort();
    let expected = format!("BUFFER FRAMES STATE FOUND OBJECT\n{}", lines.concat());
    assert_eq!(list(&bench, &target, &pids), expected);
    // It is off: only the first one's frames count. A second ppt may take it.
    let written = go(&mut target, 100) / 2;
    let late = bench.attach(&target, &["-b", &format!("example#{right}"), "-o", "late.bin"]);
    let both = go(&mut target, 100) / 2;
    late.stop();
    let pid = attach.pid();
    let said = attach.stop();
    Account::of(&bench.info("late.bin")).check(both);
    let case = "dlopen after the attach";
    account(&bench, "22", case, target, (pid, &said), written + both);
}

#[test]
fn one_of_two_buffers_is_chosen() {
    let bench = bench();
    library(&bench, "left", "libleft.so", "left_write", &[]);
    library(&bench, "right", "libright.so", "right_write", &[]);
    host(&bench, &["-DFIRST=left_write", "-DSECOND=right_write", "-L.", "-lleft", "-lright"]);
    let mut target = bench.start("host", &[]);
    let name = format!("example#{}", hash8(&bench, "right"));
    let mut ran = Vec::new();
    for (wanted, said) in [
        (name.as_str(), format!("buffers {name}")),
        ("example@libright.so", format!("buffers {name}")),
    ] {
        let attach = bench.attach(&target, &["-b", wanted, "--force"]);
        let pid = attach.pid();
        let written = go(&mut target, 200) / 2;
        let told = attach.stop();
        assert!(told.contains(&said), "{told}");
        let info = bench.info("out.bin");
        Account::of(&info).check(written);
        assert_eq!(info["buffers"].as_array().unwrap().len(), 1);
        assert_eq!(check(&bench.table("out.bin", &[]), "right", 1), written);
        ran.push((pid, wanted, written, info));
    }
    target.finish();
    for (pid, wanted, written, info) in ran {
        let case = format!("-b {wanted}");
        let leaks = support::segments_of(&[pid]);
        support::record("41", &case, written, Account::of(&info), &info, leaks);
    }
}

/// A counter that a target and a test both map.
fn counts(file: &PathBuf) -> u64 {
    let bytes = fs::read(file).unwrap();
    let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    (0..4).map(|thread| word(thread * 64 * 8)).sum()
}

/// exit() while threads write: no crash, and nothing is lost but what a thread was in the midst of.
fn exits_while_writing(case: &str, prepare: impl Fn(&Bench)) {
    const THREADS: u64 = 4;
    const TIMES: u32 = 25;
    let bench = bench();
    bench.copy_all(&["exiting.c", "exiting_plugin.c"]);
    prepare(&bench);
    let file = bench.path("counts");
    let mut pids = Vec::new();
    for time in 0..TIMES {
        fs::write(&file, [0; 4096]).unwrap();
        let mut target = bench.start("exiting", &[file.to_str().unwrap()]);
        let attach = bench.attach(&target, &["--force", "--slots", "1024"]);
        pids.push(attach.pid());
        target.say("go");
        let status = target.wait();
        assert!(status.success(), "time {time}: {status}");
        let said = attach.ended(0);
        // A library closes its gate when its process begins to end, which may take its time.
        let ended = format!("process {} ended", target.pid());
        let closed = case.ends_with("library") && said.contains("example: switched off");
        assert!(said.contains(&ended) || closed, "{said}");
        let info = bench.info("out.bin");
        let account = Account::of(&info);
        let (begun, told) = (counts(&file), account.captured + account.lost + account.dropped);
        assert!(told <= begun && begun - told <= THREADS, "{begun} begun, {account:?}");
        if time + 1 == TIMES {
            let table = bench.table("out.bin", &[]);
            assert_eq!(check(&table, "left", 1), account.captured);
            support::record("54", case, told, account, &info, support::segments_of(&pids));
        }
    }
}

#[test]
fn a_program_exits_while_its_threads_write() {
    exits_while_writing("exit() with threads writing, program", |bench| {
        let sources = ["exiting.c", "exiting_plugin.c", "left/example.c"];
        bench.cc(&[&["-Ileft", "-o", "exiting"], &sources[..], &LINK].concat());
    });
}

#[test]
fn a_program_exits_while_its_threads_write_in_a_library() {
    exits_while_writing("exit() with threads writing, library", |bench| {
        let plugin = ["exiting_plugin.c", "left/example.c"];
        bench.cc(&[&["-shared", "-fPIC", "-Ileft", "-o", "libplugin.so"], &plugin[..]].concat());
        bench.cc(&[&["-o", "exiting", "exiting.c", "-L.", "-lplugin"], &LINK[..]].concat());
    });
}
