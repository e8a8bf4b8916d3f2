//! A compromised target with wrong data: one test for each rule that keeps the listener from
//! trusting it. The user's output is compared word for word.
//!
//! | rule | what is held | also |
//! |---|---|---|
//! | 1 | ppt uses the geometry that it computed, never the stored one | |
//! | 2 | a cursor that no writer moves closes its ring, and no other | `listener/tests` |
//! | 3 | no text of a target controls a terminal | `hostile_text.rs`, `dump/tests` |
//! | 4 | schemas are bounded, and hashed again | `fuzz` schema, memory |
//! | 5 | memory that is taken away is reported, and is no fault | |
//! | 6 | the content of a program's file is bounded by its size | `fuzz` elf, maps |
//! | 7 | nothing is written before magic and self-address were read back | `fuzz` memory |
//! | 8 | the self-address proves addresses, symbols do not | |
//! | 9 | a target that spins costs bounded time, memory and disk | `fuzz` segment |

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use crate::fixtures::limits::bounded;
use crate::fixtures::steady::{assert_message, build, check_frames, link, page};
use crate::fixtures::support::{Account, Attach, Bench, Target, ppt, text, wait_until};

/// Checks that `ppt attach PID` fails within those limits, with code 1 and the message `expected`.
#[track_caller]
fn refused(bench: &Bench, pid: u32, expected: &str) {
    let mut command = bounded(bench.command(ppt()));
    let output = command.args(["attach", &pid.to_string()]).output().unwrap();
    assert_message(&text(&output.stderr), &format!("ppt: {expected}\n"));
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(1), &b""[..]));
}

/// A folder with the target `rewriter`.
fn rewriter() -> Bench {
    let bench = Bench::new();
    bench.copy_all(&["rewriter_main.c", "steady.frame"]);
    bench.pptc(&["steady.frame"]);
    let header = fs::read_to_string(bench.path("steady.h")).unwrap();
    let declared = header.lines().find_map(|line| line.strip_prefix("extern ppt1_control "));
    let control = declared.unwrap().trim_end_matches(';');
    let descriptor = control.replace("_control", "_descriptor");
    let names = [format!("-DCONTROL={control}"), format!("-DDESCRIPTOR={descriptor}")];
    let files = ["rewriter_main.c", "steady.c", "-o", "rewriter", "-lpthread"];
    bench.cc(&[&[names[0].as_str(), &names[1]], &files[..]].concat());
    bench
}

/// Makes a thread of the rewriter write. Returns the number of frames of all threads.
fn burst(target: &mut Target, thread: u32, count: u32) -> u64 {
    target.say(&format!("burst {thread} {count}"));
    target.written()
}

/// Waits until this many frames have been drained from a ring, as `ppt` notes in the segment.
fn drained(target: &Target, ring: u64, count: u64) {
    let maps = fs::read_to_string(format!("/proc/{}/maps", target.pid())).unwrap();
    let line = maps.lines().find(|line| line.contains("/SYSV")).expect("a mapped segment");
    let start = u64::from_str_radix(line.split('-').next().unwrap(), 16).unwrap();
    let memory = fs::File::open(format!("/proc/{}/mem", target.pid())).unwrap();
    let attended = start + 3 * 4096 + 512 * ring + ATTENDED;
    wait_until("the ring is drained", || {
        let mut word = [0; 8];
        std::os::unix::fs::FileExt::read_exact_at(&memory, &mut word, attended).unwrap();
        u64::from_le_bytes(word) == count
    });
}

/// The offset in a ring header of the drained cursor.
const ATTENDED: u64 = 200;

#[test]
fn rule_1_geometry_is_what_its_creator_remembers() {
    let bench = rewriter();
    let mut target = bench.start("rewriter", &[]);
    let attach = bench.attach(&target, &[]);
    burst(&mut target, 0, 100);
    target.say("header");
    target.stdout.wait_for("spoilt");
    burst(&mut target, 0, 900);
    let written = burst(&mut target, 1, 1000);
    attach.stop();
    let info = bench.info("out.bin");
    Account::of(&info).check(written);
    assert_eq!(Account::of(&info).captured, written);
    check_frames(&bench.table("out.bin", &[]), &info);
    // A segment that has changed is not adopted.
    let attach = bench.attach(&target, &["-v", "-o", "again.bin"]);
    let written = burst(&mut target, 0, 10) - written;
    let stderr = attach.stop();
    assert!(stderr.contains("made segment"), "{stderr}");
    Account::of(&bench.info("again.bin")).check(written);
    target.finish();
}

#[test]
fn rule_2_a_cursor_that_no_writer_moves_closes_its_ring_alone() {
    for (delta, to) in [(-5i64, 95u64), (i64::MIN, (1 << 63) + 100), (1 << 49, (1 << 49) + 100)] {
        let bench = rewriter();
        let mut target = bench.start("rewriter", &[]);
        let attach = bench.attach(&target, &[]);
        burst(&mut target, 0, 100);
        burst(&mut target, 1, 50);
        drained(&target, 0, 100);
        target.say(&format!("cursor 0 {delta}"));
        target.stdout.wait_for("moved");
        burst(&mut target, 1, 1000);
        drained(&target, 1, 1050);
        attach.signal(libc::SIGINT);
        let stderr = attach.ended(1);
        let expected = format!(
            "ppt: ring 0 was given up: its cursor went from 100 to {to}: the shared memory is \
             probably corrupted"
        );
        assert!(stderr.lines().any(|line| line == expected), "{stderr}");
        // The frames drained before are there, and all of the other ring.
        let info = bench.info("out.bin");
        assert_eq!(Account::of(&info), Account { captured: 1150, ..Account::default() });
        check_frames(&bench.table("out.bin", &[]), &info);
        target.finish();
    }
}

/// Corruption that affects several rings is reported in one message with their number.
#[test]
fn rule_2_rings_that_are_given_up_are_counted() {
    let bench = rewriter();
    let mut target = bench.start("rewriter", &[]);
    let attach = bench.attach(&target, &[]);
    for ring in 0..2 {
        burst(&mut target, ring, 100);
        drained(&target, u64::from(ring), 100);
    }
    for ring in 0..2 {
        target.say(&format!("cursor {ring} -5"));
        target.stdout.wait_for("moved");
    }
    attach.signal(libc::SIGINT);
    let stderr = attach.ended(1);
    let told: Vec<_> = stderr.lines().filter(|line| line.contains("given up")).collect();
    let expected = "ppt: 2 rings of steady were given up, ring 0 because its cursor went from 100 \
                    to 95: the shared memory is probably corrupted";
    assert_eq!(told, [expected], "{stderr}");
    target.finish();
}

/// The cursor of a ring that was given up is not used to judge ring sizes.
#[test]
fn rule_2_a_ring_that_was_given_up_gives_no_advice() {
    let bench = rewriter();
    let mut target = bench.start("rewriter", &[]);
    let attach = bench.attach(&target, &[]);
    burst(&mut target, 0, 100);
    drained(&target, 0, 100);
    target.say("cursor 0 1000000000");
    target.stdout.wait_for("moved");
    for count in [1000, 2000] {
        burst(&mut target, 1, 1000);
        drained(&target, 1, count);
    }
    target.say("cursor 0 -5");
    target.stdout.wait_for("moved");
    attach.signal(libc::SIGINT);
    let stderr = attach.ended(1);
    assert!(stderr.contains("ppt: ring 0 was given up: "), "{stderr}");
    assert!(!stderr.contains("--slots"), "{stderr}");
    target.finish();
}

/// Impossible counters of refused frames are reported as such, once, and do not count.
#[test]
fn rule_2_counters_of_refused_frames_that_cannot_be_do_not_count() {
    for lies in [&[u64::MAX][..], &[1 << 60], &[7, 5]] {
        let bench = rewriter();
        let mut target = bench.start("rewriter", &[]);
        let attach = bench.attach(&target, &[]);
        burst(&mut target, 0, 100);
        drained(&target, 0, 100);
        for (index, lie) in lies.iter().enumerate() {
            target.say(&format!("refused {lie}"));
            target.stdout.wait_for("refused");
            if *lie == 7 && index == 0 {
                wait_until("it is in the capture", || {
                    Account::of(&bench.info("out.bin")).dropped == 7
                });
            }
        }
        attach.signal(libc::SIGINT);
        let said = attach.ended(1);
        let dropped = if lies[0] == 7 { "7 (no ring 7)" } else { "0" };
        let expected = format!(
            "attached: pid {}, buffers steady\n\
             ppt: steady: the program's counters of refused frames are damaged: what it has \
             refused since is not counted\n\
             ppt: captured 100 frames in {{}}, lost 0, dropped {dropped}; out.bin: {{}}",
            target.pid()
        );
        let said = crate::fixtures::explained::explained(&said);
        let said = said.split("\nppt: more threads").next().unwrap();
        assert_message(said, &expected);
        target.finish();
    }
}

/// Replaces a mapped program's file with anything that its user may put there.
fn replace(bench: &Bench, with: impl FnOnce(&Path)) {
    let program = bench.path("steady");
    fs::remove_file(&program).unwrap();
    with(&program);
}

/// The program's file is no longer the mapped one: ppt does not wait for it, read all of it, or
/// trust it. The mapping suffices.
#[test]
fn rule_6_what_stands_in_a_programs_place_is_not_opened() {
    let fifo = |path: &Path| {
        assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
    };
    let sparse = |path: &Path| {
        fs::write(path, b"\x7fELF").unwrap();
        fs::OpenOptions::new().write(true).open(path).unwrap().set_len(8 << 30).unwrap();
    };
    let device = |path: &Path| symlink("/dev/zero", path).unwrap();
    let folder = |path: &Path| fs::create_dir(path).unwrap();
    type HostileEdit = fn(&Path);
    let places: [(&str, HostileEdit); 4] =
        [("FIFO", fifo), ("8 GiB", sparse), ("device", device), ("folder", folder)];
    for (name, put) in places {
        let bench = build(&[]);
        let mut target = crate::fixtures::steady::start(&bench);
        replace(&bench, put);
        let mut command = bounded(bench.command(ppt()));
        command.args(["attach", &target.pid().to_string(), "-v", "--memory", "1M"]);
        let attach = Attach::start(command);
        target.say("burst 100");
        let written = target.written();
        let stderr = attach.stop();
        assert!(stderr.contains("found by scan"), "{name}: {stderr}");
        Account::of(&bench.info("out.bin")).check(written);
        target.finish();
    }
}

/// A symbol with the right name points to a copy of the descriptor, whose self-address is wrong.
#[test]
fn rule_8_a_symbol_that_leads_to_a_copy_is_not_believed() {
    let bench = build(&[]);
    let more = "char ppt1_steady_00000000_descriptor[128];\n\
                static __attribute__((constructor)) void copy(void) {\n    \
                memcpy(ppt1_steady_00000000_descriptor, &PPT1_(descriptor), 128);\n}\n";
    altered(&bench, "twice", SELF, SELF, more);
    let mut target = bench.start("twice", &["counters"]);
    let attach = bench.attach(&target, &[]);
    target.say("burst 100");
    let written = target.written();
    attach.stop();
    let info = bench.info("out.bin");
    assert_eq!(info["buffers"].as_array().unwrap().len(), 1, "{info}");
    Account::of(&info).check(written);
    target.finish();
}

/// While attach, list and detach run, random words are written to every location that they read.
/// They may end with any explained result, in bounded time, memory and disk, and the target
/// survives.
#[test]
fn rule_9_a_target_that_rewrites_everything_costs_bounded_time_memory_and_disk() {
    let bench = rewriter();
    for seed in 1..=4 {
        let mut target = bench.start("rewriter", &[]);
        let pid = target.pid().to_string();
        let attach = ["attach", &pid, "--force", "--max-size", "8M", "--memory", "1M"];
        // From before the attach on: it may refuse anything that it finds.
        target.say(&format!("scribble {seed}"));
        target.stdout.wait_for("scribbling");
        let run = |args: &[&str]| {
            let output = bounded(bench.command(ppt())).args(args).output().unwrap();
            let said = text(&output.stderr);
            assert!(matches!(output.status.code(), Some(0 | 1)), "{args:?}: {output:?}");
            assert!(!said.contains("panicked"), "{said}");
            assert_eq!(said.is_empty(), output.status.success() && args[0] != "attach", "{said}");
        };
        for _ in 0..3 {
            run(&[&attach[..], &["-d", "50ms"]].concat());
            run(&["list", &pid]);
            run(&["detach", &pid]);
        }
        target.say("calm");
        target.stdout.wait_for("calm");

        // From after the attach on.
        let mut command = bounded(bench.command(ppt()));
        command.args(&attach[..]).args(["-d", "1s"]);
        let mut attach = Attach::start(command);
        burst(&mut target, 0, 100);
        target.say(&format!("scribble {}", seed * 1000));
        target.stdout.wait_for("scribbling");
        crate::fixtures::support::wait_until("it has ended", || attach.has_ended());
        let said = attach.stderr.rest();
        assert!(!said.contains("panicked"), "{said}");
        target.say("calm");
        target.stdout.wait_for("calm");
        assert!(fs::metadata(bench.path("out.bin")).unwrap().len() <= 8 << 20);
        // The capture is complete and readable.
        let ran = bench.ppt(&["dump", "out.bin"]);
        assert_eq!((ran.code(), ran.stderr.as_str()), (0, ""));
        bench.info("out.bin");

        // The target continues, and can be attached to again.
        let attach = bench.attach(&target, &["--force"]);
        let before = burst(&mut target, 1, 1);
        let written = burst(&mut target, 1, 100) - before;
        attach.stop();
        assert_eq!(written, 100);
        target.finish();
    }
}

/// The descriptor's initializers in the generated source.
const ABI: &str = "    PPT1_ABI,\n    sizeof(ppt1_descriptor),";
const SELF: &str = "    &PPT1_(descriptor),\n    PPT1_ABI,";
const HASH: &str = "    PPT1_SCHEMA_HASH,\n";
const SCHEMA: &str = "    ppt1_schema,\n    sizeof(ppt1_schema) - 1,";
const CONTROL: &str = "    &PPT1_(control),\n    PPT1_STRIDE";

/// A target whose descriptor has `new` instead of `old`, with `more` at the end of its source.
fn altered(bench: &Bench, name: &str, old: &str, new: &str, more: &str) {
    altered_with(bench, name, (old, new), more, &[]);
}

fn altered_with(bench: &Bench, name: &str, (old, new): (&str, &str), more: &str, args: &[&str]) {
    let source = fs::read_to_string(bench.path("steady.c")).unwrap();
    assert_eq!(source.matches(old).count(), 1, "{old}");
    let source = source.replace(old, new);
    let before = "#define _GNU_SOURCE\nextern char deep[1000000];";
    let after = "const char *used(void);\nconst char *used(void) { return ppt1_schema; }";
    bench.write(&format!("{name}.c"), &format!("{before}\n{source}{more}\n{after}\n"));
    link(bench, name, &format!("{name}.c"), args);
}

/// Checks that such a target is refused for `why` immediately, and that nothing is written into it.
fn not_believed(bench: &Bench, name: &str, why: &str) {
    let mut target = bench.start(name, &["counters"]);
    let readable = !name.starts_with("unmapped");
    let before = readable.then(|| page(&mut target));
    let (pid, object) = (target.pid(), bench.path(name).display().to_string());
    let expected = match why {
        "" => format!("process {pid} has no ppt buffers\n{{}}\n{{}}\n{{}}"),
        _ => format!("process {pid}: buffer in {object}: {why}"),
    };
    refused(bench, pid, &expected);
    assert_eq!(readable.then(|| page(&mut target)), before, "{name}");
    assert!(!bench.path("out.bin").exists());
    if readable {
        target.finish();
    }
}

#[test]
fn rule_7_another_abi_is_refused_alone() {
    let bench = build(&[]);
    altered(&bench, "newer", ABI, "    2,\n    sizeof(ppt1_descriptor),", "");
    not_believed(
        &bench,
        "newer",
        "it was built for ppt ABI 2, which is newer; this ppt knows ABI 1: use the ppt that came \
         with its pptc",
    );
}

#[test]
fn rule_7_a_descriptor_that_contradicts_itself_is_written_to_by_nobody() {
    let bench = build(&[]);
    altered(
        &bench,
        "elsewhere",
        SELF,
        "    (const char *)&PPT1_(descriptor) + 8,\n    PPT1_ABI,",
        "",
    );
    not_believed(&bench, "elsewhere", "");
    altered(&bench, "magic", "{0xb7, 'p'", "{0xb8, 'p'", "");
    not_believed(&bench, "magic", "");
    altered(&bench, "hash", HASH, "    PPT1_SCHEMA_HASH ^ 1,\n", "");
    not_believed(&bench, "hash", "its schema does not have the hash that its descriptor states");
    altered(&bench, "stride", "    PPT1_STRIDE,\n", "    PPT1_STRIDE + 8,\n", "");
    not_believed(&bench, "stride", "its stride is not that of its schema");
}

#[test]
fn rule_4_schemas_are_bounded_and_hashed_again() {
    let bench = build(&[]);
    let schema = |name: &str, text: &str, length: &str, more: &str| {
        altered(&bench, name, SCHEMA, &format!("    {text},\n    {length},"), more);
    };
    schema("length0", "ppt1_schema", "0", "");
    not_believed(&bench, "length0", "its schema claims to be 0 bytes long");
    schema("length63", "ppt1_schema", "UINT64_C(1) << 63", "");
    not_believed(&bench, "length63", "its schema claims to be 9223372036854775808 bytes long");
    schema("past", "ppt1_schema", "1 << 20", "");
    not_believed(&bench, "past", "its schema points out of its memory");
    schema("nowhere", "(const char *)4096", "100", "");
    not_believed(&bench, "nowhere", "its schema points out of its memory");
    schema("bytes", "\"{\\\"v\\\":1,\\xff\\xfe\"", "9", "");
    let why = "its schema is not valid: the schema is not what ppt writes: key must be a string at \
               line 1 column 8";
    not_believed(&bench, "bytes", why);
    bench.copy("deep.c");
    let deep = |name: &str, args: &[&str]| {
        altered_with(&bench, name, (SCHEMA, "    deep,\n    sizeof deep,"), "", args);
    };
    deep("nested", &["-DNESTED", "deep.c"]);
    let why = "its schema is not valid: the schema is nested more than 16 deep";
    not_believed(&bench, "nested", why);
    deep("many", &["deep.c"]);
    let why = "its schema is not valid: 20000 fields; there must be at least 1 and at most 1024";
    not_believed(&bench, "many", why);
}

#[test]
fn rule_6_a_control_page_is_private_writable_and_nobodys_stack() {
    let bench = build(&[]);
    let misaligned = "    (ppt1_control *)((char *)&PPT1_(control) + 8),\n    PPT1_STRIDE";
    altered(&bench, "misaligned", CONTROL, misaligned, "");
    not_believed(&bench, "misaligned", "its control page is misaligned");
    let at_start = |name: &str, code: &str| {
        let more = format!(
            "static __attribute__((constructor)) void spoil(void) {{\n    \
             void *page = &PPT1_(control);\n    {code}\n}}\n"
        );
        altered(&bench, name, CONTROL, CONTROL, &more);
    };
    at_start("readonly", "mprotect(page, 4096, PROT_READ);");
    not_believed(&bench, "readonly", "its control page is not writable");
    at_start(
        "public",
        "mmap(page, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_ANONYMOUS, -1, 0);",
    );
    not_believed(&bench, "public", "its control page is in shared memory");
    at_start("unmapped", "munmap(page, 4096);");
    not_believed(&bench, "unmapped", "its control page is not mapped");
    at_start(
        "stack",
        "uintptr_t at = (uintptr_t)&PPT1_(descriptor), stack = (uintptr_t)&page & -4096ul;\n    \
         mprotect((void *)(at & -4096ul), 8192, PROT_READ | PROT_WRITE);\n    \
         memcpy((char *)at + 56, &stack, 8);",
    );
    not_believed(&bench, "stack", "its control page is on a stack");
}
