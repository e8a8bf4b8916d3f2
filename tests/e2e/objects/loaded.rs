//! Loaded with dlopen.

use std::fs;

use super::{
    CREW, account, bench, check, go, hash8, host, library, list, load, merged, path, tell,
    two_of_a_name,
};
use crate::support::Account;

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
