//! The messages for bad input, word for word: each file of `tests/e2e/docs/messages` is a
//! transcript, rewritten with `PPT_BLESS=1`. Targets with wrong data are in `hostile.rs`, and
//! refused outputs in `hostile_user.rs`, with their messages.

use std::fmt::Write;
use std::fs;

use crate::fixtures::limits::bounded;
use crate::fixtures::support::{Bench, ppt, root, text};

/// Commands and their output, with the folder of the test as `DIR`.
struct Transcript {
    bench: Bench,
    text: String,
}

impl Transcript {
    fn new() -> Self {
        Self { bench: Bench::new(), text: String::new() }
    }

    /// Puts `bytes` into the file `name`.
    fn file(&self, name: &str, bytes: &[u8]) {
        fs::write(self.bench.path(name), bytes).unwrap();
    }

    /// Runs `ppt` or `pptc`. Only the number of lines on stdout is recorded.
    fn run(&mut self, what: &str, args: &[&str]) {
        let program = match args[0] {
            "ppt" => ppt(),
            _ => env!("CARGO_BIN_EXE_pptc"),
        };
        let output = bounded(self.bench.command(program)).args(&args[1..]).output().unwrap();
        let folder = self.bench.path("").display().to_string();
        let stderr = text(&output.stderr).replace(folder.trim_end_matches('/'), "DIR");
        let lines = text(&output.stdout).lines().count();
        let end = match output.status.code() {
            Some(code) => format!("exit {code}, {lines} lines"),
            None => output.status.to_string(),
        };
        let command = args.join(" ");
        write!(self.text, "# {what}\n$ {command}\n{stderr}({end})\n\n").unwrap();
    }

    #[track_caller]
    fn check(self, name: &str) {
        let path = root().join("tests/e2e/docs/messages").join(name);
        if std::env::var_os("PPT_BLESS").is_some() {
            fs::write(&path, &self.text).unwrap();
        }
        let expected = fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(self.text, expected, "see PPT_BLESS in CONTRIBUTING.md");
    }
}

/// Offset of the chunk number `index`, from 0.
fn chunk(bytes: &[u8], index: usize) -> usize {
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
    let mut at = 256;
    for _ in 0..index {
        at += (word(at + 16) + word(at + 32)).next_multiple_of(64);
    }
    at
}

#[test]
fn captures() {
    let mut all = Transcript::new();
    let whole = fs::read(root().join("dump/tests/golden/capture.bin")).unwrap();
    let frames = (0..).map(|index| chunk(&whole, index)).find(|&at| whole[at + 20] == 2).unwrap();
    let changed = |at: usize, bytes: &[u8]| {
        let mut changed = whole.clone();
        changed[at..at + bytes.len()].copy_from_slice(bytes);
        changed
    };
    fs::create_dir(all.bench.path("folder")).unwrap();
    let files: [(&str, &str, Vec<u8>); 12] = [
        ("whole", "whole", whole.clone()),
        ("nothing in it", "empty", Vec::new()),
        ("something else", "text", b"seqno\tring\n1\t0\n".repeat(20)),
        ("less than its first bytes", "short", b"PPT".to_vec()),
        ("less than a header", "header", whole[..100].to_vec()),
        ("cut off inside of the first chunk", "first", whole[..300].to_vec()),
        ("cut off inside of frames", "cut", whole[..frames + 200].to_vec()),
        ("a later version of the format", "later", {
            let mut later = changed(8, &2u32.to_le_bytes());
            later[16..20].fill(0);
            let crc = crc32c::crc32c(&later[..256]);
            later[16..20].copy_from_slice(&crc.to_le_bytes());
            later
        }),
        ("a bit flipped in the file's header", "flipped", changed(100, &[whole[100] ^ 1])),
        (
            "a bit flipped in the header of frames",
            "head",
            changed(frames + 64, &[!whole[frames + 64]]),
        ),
        ("a bit flipped in frames", "frame", changed(frames + 300, &[!whole[frames + 300]])),
        ("line ends translated", "crlf", {
            whole
                .iter()
                .flat_map(|&byte| if byte == b'\n' { vec![b'\r', byte] } else { vec![byte] })
                .collect()
        }),
    ];
    for command in ["dump", "info"] {
        all.run("no such file", &["ppt", command, "nowhere.bin"]);
        all.run("a folder", &["ppt", command, "folder"]);
    }
    for (what, name, bytes) in files {
        let name = format!("{name}.bin");
        all.file(&name, &bytes);
        all.run(what, &["ppt", "dump", &name]);
        all.run(what, &["ppt", "info", &name]);
    }
    all.check("captures.txt");
}

/// Errors in frame files have separate expectations: `frame-dsl/tests/fail`.
#[test]
fn frame_files() {
    let mut all = Transcript::new();
    fs::create_dir(all.bench.path("folder.frame")).unwrap();
    all.run("no such file", &["pptc", "nowhere.frame"]);
    all.run("a folder", &["pptc", "folder.frame"]);
    let files: [(&str, &str, Vec<u8>); 8] = [
        ("nothing in it", "empty", Vec::new()),
        ("10 MB", "long", b"frame f { int a; }\n".repeat(1 << 19)),
        ("not text", "binary", (0..=255).collect()),
        ("NUL", "nul", b"frame f { int \0a; }".to_vec()),
        ("not UTF-8", "latin1", b"frame f { int gr\xf6sse; }".to_vec()),
        ("an array of nothing", "none", b"frame f { int a[0]; }".to_vec()),
        ("an array of 2^40", "huge", b"frame f { int a[1099511627776]; }".to_vec()),
        ("a comment without an end", "comment", b"frame f { int a; } /* and so on".to_vec()),
    ];
    for (what, name, bytes) in files {
        let name = format!("{name}.frame");
        all.file(&name, &bytes);
        all.run(what, &["pptc", &name]);
    }
    all.check("frame_files.txt");
}
