//! Loaded with dlopen.

use std::collections::HashSet;
use std::fs;

use super::{
    CREW, account, bench, check, go, hash8, host, library, list, load, merged, path, tell,
    two_of_a_name,
};
use crate::fixtures::explained::explained;
use crate::fixtures::support::{Account, record, segments_of};

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
    let stderr = attach.stop();
    account(
        &bench,
        "21",
        "the same frame file in two RTLD_LOCAL plugins",
        target,
        (pid, &stderr),
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
    // One of the two is off, so half of the frames is not written.
    let written = go(&mut target, 100) / 2;
    attach.stop();
    target.finish();
    Account::of(&bench.info("out.bin")).check(written);
}

/// A plugin is replaced on disk and loaded again, as in development of a running program.
#[test]
fn copies_of_one_plugin_are_named_by_where_they_are() {
    let bench = bench();
    library(&bench, "left", "built.so", "plugin_write", &[]);
    host(&bench, &[]);
    let mut target = bench.start("host", &[]);
    // The loader treats a known path as the library that it already has.
    for path in ["same.so", "./same.so", "././same.so"] {
        fs::copy(bench.path("built.so"), bench.path("new.so")).unwrap();
        fs::rename(bench.path("new.so"), bench.path("same.so")).unwrap();
        load(&bench, &mut target, path, "local");
    }
    let listed = list(&bench, &target, &[]);
    let names: Vec<&str> =
        listed.lines().skip(1).map(|line| line.split(' ').next().unwrap()).collect();
    let distinct: HashSet<_> = names.iter().collect();
    assert!(names.iter().all(|it| it.starts_with("example@same.so:")), "{listed}");
    assert_eq!((names.len(), distinct.len()), (3, 3), "{listed}");

    let nowhere = "example@same.so:1";
    let ran = bench.ppt(&["attach", &target.pid().to_string(), "-b", nowhere]);
    let stderr = explained(&ran.stderr);
    let pid = target.pid();
    let expected =
        format!("ppt: process {pid} has no buffer `{nowhere}`; it has: {}\n", names.join(", "));
    assert_eq!((ran.code(), stderr), (2, expected));

    let attach = bench.attach(&target, &["-b", names[1]]);
    let written = go(&mut target, 300) / 3;
    attach.stop();
    Account::of(&bench.info("out.bin")).check(written);
    // All three by their common name.
    let attach = bench.attach(&target, &["-b", "example@same.so", "-o", "all.bin"]);
    let pid = attach.pid();
    let all = go(&mut target, 300);
    attach.stop();
    target.finish();
    let info = bench.info("all.bin");
    let account = Account::of(&info);
    account.check(all);
    record("21", "three copies of one plugin", all, account, &info, segments_of(&[pid]));
    for index in 0..3 {
        let table = bench.table("all.bin", &["-b", &format!("example.{index}")]);
        assert_eq!(check(&table, "left", 1), CREW * 300);
    }
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
    let stderr = attach.stop();
    Account::of(&bench.info("late.bin")).check(both);
    let case = "dlopen after the attach";
    account(&bench, "22", case, target, (pid, &stderr), written + both);
}
