//! What ends in the middle leaves nothing behind: Ctrl-C, after which the command ends soon, as by a
//! signal; a disk that is full.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use ppt_capture::frame_dsl::schema::{Extra, Field, FieldType, Frame, Schema};
use ppt_capture::{CaptureWriter, End, EndReason, FileHeader, FramesHead, Segment, Source};

/// Frames of a chunk.
const EACH: u32 = 5000;

/// A capture of so many chunks.
fn capture(chunks: u32) -> Vec<u8> {
    let field = Field {
        name: "n".to_owned(),
        ty: FieldType::U64,
        array: None,
        offset: 8,
        interval: None,
        at: false,
        unit: String::new(),
        doc: String::new(),
        attributes: Vec::new(),
        extra: Extra::new(),
    };
    let frame = Frame {
        name: "it".to_owned(),
        kind: "plain".to_owned(),
        size: 16,
        fields: vec![field],
        doc: String::new(),
        attributes: Vec::new(),
        extra: Extra::new(),
    };
    let schema = Schema {
        v: 1,
        buffer: "b".to_owned(),
        slots: 16,
        stride: 16,
        frames: vec![frame],
        enums: Vec::new(),
        tags: Vec::new(),
        extra: Extra::new(),
    };
    let mut writer = CaptureWriter::create(Vec::new(), &FileHeader::default()).unwrap();
    let source = Source {
        schema_json: schema.to_json().into_bytes(),
        schema_hash: schema.hash(),
        buffer: schema.buffer.clone(),
        segments: vec![Segment { nonce: 7, rings: 1, slots: 16, stride: 16 }],
        ..Source::default()
    };
    writer.source(0, &source).unwrap();
    for chunk in 0..chunks {
        let first_seq = u64::from(chunk * EACH) + 1;
        let numbers = (first_seq..).take(EACH as usize);
        let payload: Vec<u8> =
            numbers.flat_map(|it| [it, it].map(u64::to_le_bytes)).flatten().collect();
        let head = FramesHead {
            nonce: 7,
            tid: 1,
            first_seq,
            count: EACH,
            stride: 16,
            drained_mono_ns: u64::from(chunk) + 1,
            ..FramesHead::default()
        };
        writer.frames(&head, &payload).unwrap();
    }
    let end = End {
        reason: EndReason::Stopped,
        message: String::new(),
        rings: Vec::new(),
        drops: Vec::new(),
        realtime_ns: 9,
        mono_ns: 9,
    };
    writer.end(&end).unwrap()
}

fn start(folder: &Path, args: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_ppt-analysis"))
        .args(args)
        .current_dir(folder)
        .stdin(Stdio::null())
        .spawn()
        .unwrap()
}

/// Waits until a process wrote something of its answer.
fn wait_for_rows(child: &mut Child) {
    let wrote = |pid: u32| {
        let text = fs::read_to_string(format!("/proc/{pid}/io")).unwrap_or_default();
        let line = text.lines().find_map(|it| it.strip_prefix("wchar: "));
        line.and_then(|it| it.parse::<u64>().ok()).unwrap_or_default()
    };
    while wrote(child.id()) < 1 << 16 && child.try_wait().unwrap().is_none() {
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn ctrl_c_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    // So many that there is much to do when the first of them are written.
    fs::write(folder.path().join("out.bin"), capture(100)).unwrap();
    let numbers = "SELECT value FROM generate_series(1, 1000000000000)";
    let copy = format!("COPY ({numbers}) TO 'all.csv'");
    for args in [
        vec!["sql", "out.bin", numbers, "-o", "all.parquet"],
        vec!["sql", "out.bin", numbers, "-o", "all.csv"],
        vec!["sql", "out.bin", &copy],
        vec!["sql", "out.bin", "SELECT * FROM it", "-o", "all.csv"],
        vec!["export", "out.bin", "--format", "csv", "-o", "all.csv"],
        vec!["export", "out.bin", "--format", "perfetto", "-o", "all.pftrace"],
        vec!["export", "out.bin", "--format", "chrome", "-o", "all.json"],
        vec!["export", "out.bin", "--format", "ctf", "-o", "all"],
        vec!["export", "out.bin", "--format", "jsonl", "--partition-by", "frame", "-o", "all"],
    ] {
        let mut child = start(folder.path(), &args);
        wait_for_rows(&mut child);
        let pid = child.id().to_string();
        assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success(), "{args:?}");
        assert_eq!(child.wait().unwrap().signal(), Some(2), "{args:?}");
        let left = fs::read_dir(folder.path()).unwrap().map(|it| it.unwrap().file_name());
        assert_eq!(left.collect::<Vec<_>>(), ["out.bin"], "{args:?}");
    }
}

#[test]
fn a_full_disk_is_said_and_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("out.bin"), capture(20)).unwrap();
    let mut outputs = vec![
        vec!["sql", "out.bin", "SELECT * FROM it", "-o", "all.csv"],
        vec!["sql", "out.bin", "COPY (SELECT * FROM it) TO 'all.csv'"],
        vec!["export", "out.bin", "--format", "csv", "--partition-by", "frame", "-o", "all"],
        vec!["report", "out.bin", "-o", "all.html"],
        vec!["plot", "out.bin", "SELECT seqno, n FROM it", "-o", "all.svg"],
    ];
    for format in ["parquet", "arrow", "csv", "jsonl", "perfetto", "ctf", "chrome"] {
        outputs.push(vec!["export", "out.bin", "--format", format, "-o", "all"]);
    }
    for args in outputs {
        // Room for one block.
        let output = Command::new("sh")
            .args(["-c", "ulimit -f 1 && exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_ppt-analysis")])
            .args(&args)
            .current_dir(folder.path())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{args:?}: {said}");
        assert!(said.contains("all") && said.contains("File too large"), "{args:?}: {said}");
        let left = fs::read_dir(folder.path()).unwrap().map(|it| it.unwrap().file_name());
        assert_eq!(left.collect::<Vec<_>>(), ["out.bin"], "{args:?}");
    }
}
