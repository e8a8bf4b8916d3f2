//! Programs with very large mappings, or with files that change during the search.

use std::fs::{self, File};
use std::os::unix::process::ExitStatusExt;

use super::{bench, go, host, library, list, load, path, tell};
use crate::fixtures::support::{Account, Bench, Target, record, rounds, segments_of};

const GIB: u64 = 1 << 30;

/// A file of `size` bytes that begins like `like`.
fn sparse(bench: &Bench, name: &str, size: u64, like: Option<&str>) -> String {
    match like {
        Some(like) => drop(fs::copy(bench.path(like), bench.path(name)).unwrap()),
        None => drop(File::create(bench.path(name)).unwrap()),
    }
    File::options().write(true).open(bench.path(name)).unwrap().set_len(size).unwrap();
    path(bench, name)
}

fn map(target: &mut Target, bytes: u64, path: &str) {
    tell(target, &format!("map {bytes} {path}"), "mapped");
}

/// The plugin has no symbols: it can only be found in its memory.
#[test]
fn a_large_mapping_hides_no_plugin() {
    let bench = bench();
    bench.write("hidden", "{ global: plugin_write; local: *; };\n");
    let hidden = ["-Wl,--version-script=hidden", "-s"];
    library(&bench, "left", "plugin.so", "plugin_write", &hidden);
    library(&bench, "right", "libfirst.so", "first_write", &[]);
    host(&bench, &["-DFIRST=first_write", "-L.", "-lfirst"]);
    let mut target = bench.start("host", &[]);
    map(&mut target, 3 * GIB, &sparse(&bench, "table", 3 * GIB, None));
    load(&bench, &mut target, "plugin.so", "local");
    let listed = list(&bench, &target, &[]);
    for expected in ["off scan DIR/plugin.so", "off symtab DIR/libfirst.so"] {
        assert!(listed.contains(expected), "{listed}");
    }
    let attach = bench.attach(&target, &[]);
    let pid = attach.pid();
    let written = go(&mut target, 500);
    let stderr = attach.stop();
    target.finish();
    let info = bench.info("out.bin");
    let account = Account::of(&info);
    account.check(written);
    assert_eq!(account.captured, written, "{stderr}");
    record("30", "a mapping of 3 GiB", written, account, &info, segments_of(&[pid]));
}

/// A user who may write to a file can shrink it during the search: reading a mapping of it would
/// kill ppt by SIGBUS.
#[test]
fn a_file_that_shrinks_ends_nobody() {
    const SIZE: u64 = 64 << 20;
    let bench = bench();
    library(&bench, "left", "libleft.so", "left_write", &[]);
    host(&bench, &["-DFIRST=left_write", "-L.", "-lleft"]);
    let mut target = bench.start("host", &[]);
    let file = sparse(&bench, "shrinks.so", SIZE, Some("libleft.so"));
    map(&mut target, 4096, &file);
    tell(&mut target, &format!("shrink {SIZE} {file}"), "shrinking");
    let pid = target.pid().to_string();
    for _ in 0..rounds(20, 500) {
        let ran = bench.ppt(&["list", &pid]);
        assert_eq!(ran.status.signal(), None);
        assert!(ran.status.success() && ran.stdout.contains("libleft.so"), "{ran:?}");
    }
    let ran = bench.ppt(&["list", "--json"]);
    assert!(ran.status.success() && ran.stdout.contains("libleft.so"), "{ran:?}");
    let attach = bench.attach(&target, &[]);
    let agent = attach.pid();
    let written = go(&mut target, 500);
    attach.stop();
    target.finish();
    let info = bench.info("out.bin");
    let account = Account::of(&info);
    account.check(written);
    record("30", "a mapped file that shrinks", written, account, &info, segments_of(&[agent]));
}
