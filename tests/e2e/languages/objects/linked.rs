//! Buffers linked into the program, or into libraries that it is linked to.

use std::fs;

use super::{
    CREW, LINK, account, bench, check, go, hash8, host, library, list, merged, plain, tell,
    two_of_a_name,
};
use crate::fixtures::explained::explained;
use crate::fixtures::support::{self, Account, Bench, available};

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
fn one_frame_file_in_two_libraries_is_one_buffer() {
    merged("the same frame file in two shared libraries", |bench| {
        library(bench, "left", "libone.so", "one_write", &[]);
        library(bench, "left", "libtwo.so", "two_write", &[]);
        host(bench, &["-DFIRST=one_write", "-DSECOND=two_write", "-L.", "-lone", "-ltwo"]);
        bench.start("host", &[])
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
        let stderr = attach.stop();
        assert!(stderr.contains(&said), "{stderr}");
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

/// Whether the linker copied the control page into the program.
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
    let stderr = attach.stop();
    account(&bench, "18", case, target, (pid, &stderr), written);
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
    refused_as_symbolic(&bench());
}

/// The linker symbols of a newer pptc may contain more than this version knows.
#[test]
fn such_a_library_of_a_newer_pptc_is_refused() {
    let bench = bench();
    let prefix = format!("ppt1_example_{}_", hash8(&bench, "left"));
    for file in ["left/example.h", "left/example.c"] {
        let text = fs::read_to_string(bench.path(file)).unwrap();
        assert!(text.contains(&prefix), "{file}");
        fs::write(bench.path(file), text.replace(&prefix, &format!("{prefix}0badc0de_"))).unwrap();
    }
    refused_as_symbolic(&bench);
}

fn refused_as_symbolic(bench: &Bench) {
    header_in_program(bench, "gcc", &["-Wl,-Bsymbolic"], "pie");
    assert!(copied(bench));
    let mut target = bench.start("host", &[]);
    let pid = target.pid().to_string();
    for command in [&["attach", &pid][..], &["list", &pid], &["detach", &pid]] {
        let ran = bench.ppt(command);
        assert_eq!((ran.code(), ran.stdout.as_str()), (1, ""), "{command:?}");
        assert_eq!(
            plain(bench, &explained(&ran.stderr), &[(target.pid(), "PID")]),
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
    let stderr = attach.stop();
    account(&bench, "18", "-Bsymbolic, header unused", target, (pid, &stderr), written);
    assert_eq!(check(&bench.table("out.bin", &[]), "left", 1), written);
}
