//! Files of a rotated series, one of which is missing.

use ppt_capture::{CaptureWriter, Cause, End, EndReason, FileHeader, FramesHead, Gap, SeriesPart};

use crate::support::{self, Bench, head};

const SCHEMA: &str = r#"{"v":1,"buffer":"b","slots":16,"stride":16,"frames":[{"name":"it",
    "kind":"plain","size":16,"fields":[{"name":"said","type":"u64","offset":8}]}]}"#;

/// Frames of ring 0 in each file, followed by one lost frame.
const FRAMES: u32 = 10;
const LAST: u32 = 4;

/// File `number` of a series that keeps the last `keep` files.
fn file(number: u32, keep: u32) -> Vec<u8> {
    let schema = support::schema(SCHEMA);
    let header = FileHeader {
        capture_id: [number as u8; 16],
        created_mono_ns: u64::from(number) * 1_000_000,
        created_realtime_ns: 1_700_000_000_000_000_000 + u64::from(number) * 1_000_000,
        ..FileHeader::default()
    };
    let mut writer = CaptureWriter::create(Vec::new(), &header).unwrap();
    if number > 1 {
        let part = SeriesPart {
            series: [1; 16],
            previous: [number as u8 - 1; 16],
            number,
            keep,
            captured_before: u64::from((number - 1) * FRAMES),
        };
        writer.series(&part).unwrap();
    }
    writer.source(0, &support::source(&schema)).unwrap();
    let first_seq = u64::from((number - 1) * (FRAMES + 1) + 1);
    let drained = header.created_mono_ns + 500_000;
    let frames =
        FramesHead { nonce: 7, tid: 77, stride: 16, count: FRAMES, ..head(first_seq, drained) };
    let payload: Vec<u8> = (first_seq..first_seq + u64::from(FRAMES))
        .flat_map(|seq| [seq, 7])
        .flat_map(u64::to_le_bytes)
        .collect();
    writer.frames(&frames, &payload).unwrap();
    let FramesHead { source, nonce, ring, .. } = frames;
    let first_seq = frames.next_seq();
    let lost = Gap { source, nonce, ring, first_seq, count: 1, cause: Cause::Disk };
    writer.gap(&lost).unwrap();
    let end = End::new(
        if number == LAST { EndReason::Stopped } else { EndReason::Rotated },
        header.created_realtime_ns + 900_000,
        header.created_mono_ns + 900_000,
    );
    writer.end(&end).unwrap()
}

/// A series without the files that are `missing`.
fn series(missing: &[u32], keep: u32) -> Bench {
    let bench = Bench::empty();
    for number in (1..=LAST).filter(|number| !missing.contains(number)) {
        bench.write(&format!("out.{number:06}.bin"), file(number, keep));
    }
    bench
}

fn notes(bench: &Bench, args: &[&str]) -> String {
    let ran = bench.run(args);
    assert!(ran.status.success(), "{ran:?}");
    String::from_utf8(ran.stderr).unwrap()
}

#[test]
fn a_whole_series_lacks_nothing() {
    let bench = series(&[], 0);
    let text = bench.done(&["stat", "out.bin", "--format", "text"]);
    assert!(text.contains("4 missing in all") && !text.contains("absent"), "{text}");
    assert!(!notes(&bench, &["stat", "out.bin"]).contains("in none of them"));
    let query = "SELECT count(*) AS n FROM gaps WHERE cause = 'absent'";
    assert_eq!(bench.done(&["sql", "out.bin", query]), "n\n0\n");
    // A single file lacks nothing either.
    assert_eq!(bench.done(&["sql", "out.000003.bin", query]), "n\n0\n");
}

#[test]
fn every_answer_says_what_a_missing_file_takes() {
    let bench = series(&[2, 3], 0);
    let text = bench.done(&["stat", "out.bin", "--format", "text"]);
    assert!(text.contains("2 missing in all, 22 absent"), "{text}");
    let said = notes(&bench, &["stat", "out.bin"]);
    let note = "22 frames were written between these captures and are in none of them";
    assert!(said.contains(note), "{said}");
    assert!(said.contains("files 2 to 3 of the series are not among these captures"), "{said}");

    let sql = |query: &str| bench.done(&["sql", "out.bin", query]);
    let gaps = "SELECT capture, ring, first_seq, count, cause, ts_lo, ts_hi FROM gaps \
                ORDER BY first_seq, count";
    let gaps = sql(gaps);
    let absent = gaps.lines().find(|line| line.contains("absent")).unwrap();
    let cells: Vec<&str> = absent.split('\t').collect();
    assert_eq!(cells[..5], ["0404040404040404", "0", "12", "22", "absent"]);
    // After the last drain of file 1, and before the drain of file 4.
    assert!(cells[5].ends_with("00:00.001500Z") || cells[5].contains(".0015"), "{cells:?}");
    assert!(cells[6].contains(".0045"), "{cells:?}");
    let account = sql("SELECT cause, sum(count) AS n FROM account GROUP BY cause ORDER BY cause");
    assert!(account.contains("absent\t22\n") && account.contains("captured\t20\n"), "{account}");
    let captures = sql("SELECT absent, part, removed FROM captures ORDER BY created");
    assert_eq!(captures, "absent\tpart\tremoved\n0\t\t\n22\t4\t0\n");
    // Every number of a ring is counted exactly once.
    let sum = "SELECT sum(frames + lost + left_out + unattended + absent) AS all, \
               max(next_seq) - min(first_seq) AS numbers FROM rings";
    assert_eq!(sql(sum), "all\tnumbers\n44\t44\n");

    let page = bench.done(&["report", "out.bin"]);
    assert!(page.contains("22 frames were written between these captures"), "no verdict");
    assert!(page.contains("absent"), "no gap");
    let trace = bench.done(&["export", "out.bin", "--format", "chrome"]);
    assert!(trace.contains("22 absent"), "{trace}");
    let parquet = ["export", "out.bin", "--format", "parquet", "--frame", "it", "-o", "it.parquet"];
    assert!(notes(&bench, &parquet).contains(note));
}

#[test]
fn what_keep_removed_is_told_from_a_missing_file() {
    // A copy of file 1 exists.
    let bench = series(&[2], 2);
    let said = notes(&bench, &["stat", "out.bin"]);
    assert!(said.contains("--keep: file 2 of the series was removed"), "{said}");
    let captures = bench.done(&["sql", "out.bin", "SELECT removed FROM captures ORDER BY created"]);
    assert_eq!(captures, "removed\n\n1\n2\n");
}
