//! A folder in which commands run, and small captures.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use ppt_capture::frame_dsl::schema::Schema;
use ppt_capture::{CaptureWriter, End, EndReason, FileHeader, FramesHead, Segment, Source};
use serde_json::Value;

pub fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Six frames, eleven lost, three dropped.
pub fn golden() -> Vec<u8> {
    fs::read(root().join("dump/tests/golden/capture.bin")).unwrap()
}

pub fn schema(json: &str) -> Schema {
    Schema::from_json(json.as_bytes()).unwrap()
}

/// A capture with these runs of frames of one thread, and their schema.
pub fn capture(header: &FileHeader, schema: &Schema, runs: &[(FramesHead, Vec<u8>)]) -> Vec<u8> {
    let mut writer = CaptureWriter::create(Vec::new(), header).unwrap();
    let stride = schema.stride;
    writer.source(0, &source(schema)).unwrap();
    for (head, frames) in runs {
        let count = (frames.len() / stride as usize) as u32;
        let head = FramesHead { nonce: 7, tid: 77, stride, count, ..*head };
        writer.frames(&head, frames).unwrap();
    }
    let end = End::new(EndReason::Stopped, 9, 9);
    writer.end(&end).unwrap()
}

/// The source of a buffer with one ring.
pub fn source(schema: &Schema) -> Source {
    let (slots, stride) = (schema.slots, schema.stride);
    Source {
        schema_json: schema.to_json().into_bytes(),
        schema_hash: schema.hash(),
        buffer: schema.buffer.clone(),
        segments: vec![Segment { nonce: 7, rings: 1, slots, stride }],
        ..Source::default()
    }
}

/// The head of a run of frames: first sequence number, and time of the drain.
pub fn head(first_seq: u64, drained_mono_ns: u64) -> FramesHead {
    FramesHead { first_seq, drained_mono_ns, ..FramesHead::default() }
}

/// A folder in which commands run.
pub struct Bench {
    folder: tempfile::TempDir,
}

impl Bench {
    pub fn empty() -> Bench {
        Bench { folder: tempfile::tempdir().unwrap() }
    }

    /// A folder with the golden capture as `out.bin`.
    pub fn new() -> Bench {
        let bench = Bench::empty();
        bench.write("out.bin", golden());
        bench
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder().join(name)
    }

    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::write(self.path(name), content).unwrap();
    }

    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ppt"));
        command.args(args).current_dir(self.folder()).stdin(Stdio::null());
        command
    }

    /// Like `command`, with a folder `tmp` for temporary files, and without ignored signals: the shell
    /// that runs the tests may ignore some.
    pub fn with_tmp(&self, args: &[&str]) -> Command {
        let tmp = self.path("tmp");
        fs::create_dir_all(&tmp).unwrap();
        let mut command = Command::new("env");
        command.args(["--default-signal", env!("CARGO_BIN_EXE_ppt")]).args(args);
        command.current_dir(self.folder()).stdin(Stdio::null()).env("TMPDIR", tmp);
        command
    }

    pub fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    /// The output of a command, which must succeed.
    pub fn done(&self, args: &[&str]) -> String {
        let output = self.run(args);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{args:?}: {said}");
        String::from_utf8(output.stdout).unwrap()
    }

    pub fn json(&self, args: &[&str]) -> Value {
        serde_json::from_str(&self.done(args)).unwrap()
    }

    /// The rows of an answer.
    pub fn rows(&self, query: &str) -> Vec<serde_json::Map<String, Value>> {
        let lines = self.done(&["sql", "out.bin", query, "--format", "jsonl"]);
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The messages of a command, which must fail, and its exit code.
    pub fn fails(&self, args: &[&str]) -> (String, i32) {
        let output = self.run(args);
        (String::from_utf8(output.stderr).unwrap(), output.status.code().unwrap())
    }

    /// The names in the folder.
    pub fn names(&self) -> Vec<String> {
        names(self.folder())
    }
}

/// The process that answers for the command `pid`, if it exists.
pub fn question_of(pid: u32) -> Option<u32> {
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).ok()?;
    children.split_whitespace().next()?.parse().ok()
}

/// Waits until `there` returns a value, for at most 20 s.
pub fn wait_for<T>(what: &str, mut there: impl FnMut() -> Option<T>) -> T {
    let since = Instant::now();
    loop {
        if let Some(found) = there() {
            return found;
        }
        assert!(since.elapsed() < Duration::from_secs(20), "waited for {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// The names in a folder, in alphabetical order.
pub fn names(folder: &Path) -> Vec<String> {
    let files = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> =
        files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}
