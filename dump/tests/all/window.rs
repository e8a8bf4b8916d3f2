//! A part of a capture: the rows read and shown are those that a filter over the whole table keeps.

use std::fs;
use std::io::Cursor;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ppt_dump::{
    Bound, DumpError, DumpOutcome, DumpRequest, RowOrder, SortLimits, TableFormat, TimeFormat,
    dump, dump_stream,
};
use proptest::prelude::*;

use crate::windows::{self, CaptureModel, Damage, FrameTime, MONO, REAL, SECOND, model};

fn table(path: &Path, options: &DumpRequest) -> Result<(Vec<String>, DumpOutcome), DumpError> {
    let mut out = Vec::new();
    let outcome = dump(path, options, &mut out)?;
    let text = String::from_utf8(out).unwrap();
    Ok((text.lines().skip(1).map(str::to_owned).collect(), outcome))
}

fn streamed(bytes: &[u8], options: &DumpRequest) -> Result<(Vec<String>, DumpOutcome), DumpError> {
    let mut out = Vec::new();
    let outcome = dump_stream(Cursor::new(bytes.to_vec()), options, &mut out)?;
    let text = String::from_utf8(out).unwrap();
    Ok((text.lines().skip(1).map(str::to_owned).collect(), outcome))
}

fn bounds(from: Option<Bound>, to: Option<Bound>) -> DumpRequest {
    DumpRequest { from, to, time: Some(TimeFormat::Ns), ..DumpRequest::default() }
}

fn seq(seq: u64) -> Option<Bound> {
    Some(Bound::Seq(seq))
}

/// This many ns after the start of the capture.
fn epoch(ns: i64) -> Option<Bound> {
    Some(Bound::Epoch(REAL.checked_add_signed(ns).unwrap()))
}

/// The rows that the bounds keep, and the number of undecidable ones.
fn left(model: &CaptureModel, rows: &[String], options: &DumpRequest) -> (Vec<String>, u64) {
    let mut untimed = 0;
    let mut wanted = |row: &&String| {
        let (seq, time) = model.of_row(row);
        let within = |bound: Option<Bound>, after: bool| match bound {
            None => Some(true),
            Some(Bound::Seq(bound)) => Some(if after { seq >= bound } else { seq <= bound }),
            Some(Bound::Epoch(bound)) => {
                let bound = i128::from(bound);
                time.map(|time| if after { time >= bound } else { time <= bound })
            }
            Some(Bound::Since(_)) => unreachable!(),
        };
        match (within(options.from, true), within(options.to, false)) {
            (Some(from), Some(to)) => from && to,
            // A sequence number outside of the bounds decides.
            (Some(false), None) | (None, Some(false)) => false,
            _ => {
                untimed += 1;
                false
            }
        }
    };
    let rows = rows.iter().filter(&mut wanted).cloned().collect();
    (rows, untimed)
}

fn bound() -> impl Strategy<Value = Option<Bound>> {
    prop_oneof![
        1 => Just(None),
        3 => (0u64..60).prop_map(seq),
        6 => (-2 * SECOND..14 * SECOND).prop_map(epoch),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn a_part_is_what_a_filter_leaves_of_the_whole(
        model in model(), from in bound(), to in bound(), damage in any::<Damage>(),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.bin");
        let options = bounds(from, to);
        for bytes in [model.bytes.clone(), damage.of(&model.bytes)] {
            fs::write(&path, &bytes).unwrap();
            let Ok((whole, outcome)) = table(&path, &bounds(None, None)) else { continue };
            if bytes == model.bytes {
                prop_assert_eq!((outcome.damaged, whole.len()), (vec![], model.frames()));
            }
            let known = model.as_read(&path);
            let (expected, untimed) = left(&known, &whole, &options);
            match table(&path, &options) {
                Ok((part, outcome)) => {
                    prop_assert_eq!(&part, &expected);
                    prop_assert_eq!((outcome.rows, outcome.untimed), (part.len() as u64, untimed));
                }
                Err(error) => {
                    prop_assert!(matches!(error, DumpError::EmptyWindow { .. }), "{}", error);
                    prop_assert!(expected.is_empty());
                }
            }
        }
        let (whole, _) = streamed(&model.bytes, &bounds(None, None)).unwrap();
        let (expected, untimed) = left(&model, &whole, &options);
        match streamed(&model.bytes, &options) {
            Ok((part, outcome)) => prop_assert_eq!((part, outcome.untimed), (expected, untimed)),
            Err(error) => prop_assert!(expected.is_empty(), "{}", error),
        }
    }

    #[test]
    fn the_order_of_time_is_that_of_a_stable_sort(
        model in model(), memory in prop_oneof![Just(1 << 20), Just(600)],
    ) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.bin");
        fs::write(&path, &model.bytes).unwrap();
        let sorted = |mut rows: Vec<String>| {
            rows.sort_by_cached_key(|row| {
                let (seq, time) = model.of_row(row);
                let (source, ring) = model.ring_of_row(row);
                (time.unwrap_or(i128::MAX), source, ring, seq)
            });
            rows
        };
        let expected = sorted(table(&path, &bounds(None, None)).unwrap().0);
        let order = RowOrder::Time(SortLimits { memory, folder: folder.path().to_owned() });
        let options = DumpRequest { order, ..bounds(None, None) };
        let (rows, outcome) = table(&path, &options).unwrap();
        prop_assert_eq!(outcome.rows, rows.len() as u64);
        prop_assert_eq!(&rows, &expected);
        // A stream converts ticks by the clock readings so far.
        let expected = sorted(streamed(&model.bytes, &bounds(None, None)).unwrap().0);
        prop_assert_eq!(&streamed(&model.bytes, &options).unwrap().0, &expected);
    }

    #[test]
    fn gaps_of_a_part_are_those_that_touch_it(
        model in model(), from in 0u64..60, to in 0u64..60, damage in any::<Damage>(),
    ) {
        let (from, to) = (from.min(to), from.max(to));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.bin");
        for bytes in [model.bytes.clone(), damage.of(&model.bytes)] {
            fs::write(&path, &bytes).unwrap();
            let gaps = DumpRequest { gaps: true, ..DumpRequest::default() };
            let Ok((mut whole, _)) = table(&path, &gaps) else { continue };
            whole.retain(|row| {
                let cells: Vec<_> = row.rsplit('\t').collect();
                let (first, count): (u64, u64) =
                    (cells[2].parse().unwrap(), cells[1].parse().unwrap());
                first <= to && from < first + count
            });
            let part = DumpRequest { gaps: true, ..bounds(seq(from), seq(to)) };
            let (part, _) = table(&path, &part).unwrap();
            // Losses by damage outside of the part are found only if everything is read.
            let sure = |row: &&String| !row.ends_with("corrupt");
            prop_assert!(part.iter().filter(sure).eq(whole.iter().filter(sure)));
            prop_assert!(part.iter().all(|row| whole.contains(row) || !sure(&row)));
        }
    }
}

#[test]
fn both_bounds_belong_to_the_part() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.bin");
    // A frame each second, in two chunks.
    let times: Vec<_> = (0..10).map(|number| FrameTime::At(number * SECOND)).collect();
    let model = CaptureModel::simple(&[&times[..5], &times[5..]]);
    fs::write(&path, &model.bytes).unwrap();
    let seqs = |options: &DumpRequest| -> Vec<u64> {
        let (rows, _) = table(&path, options).unwrap();
        rows.iter().map(|row| model.of_row(row).0).collect()
    };
    let since = |ms| Some(Bound::Since(Duration::from_millis(ms)));
    assert_eq!(seqs(&bounds(seq(3), seq(4))), [3, 4]);
    assert_eq!(seqs(&bounds(None, seq(2))), [1, 2]);
    assert_eq!(seqs(&bounds(seq(9), None)), [9, 10]);
    assert_eq!(seqs(&bounds(since(3000), since(5000))), [4, 5, 6]);
    assert_eq!(seqs(&bounds(since(3001), since(4999))), [5]);
    assert_eq!(seqs(&bounds(epoch(8 * SECOND), since(60_000))), [9, 10]);
    assert_eq!(seqs(&bounds(since(7000), seq(9))), [8, 9], "a time and a number");
    assert_eq!(seqs(&bounds(seq(11), None)), [0; 0]);
    for (from, to) in [(seq(2), seq(1)), (since(2), since(1)), (since(2), epoch(0))] {
        let error = table(&path, &bounds(from, to)).unwrap_err();
        assert!(error.is_usage() && matches!(error, DumpError::EmptyWindow { .. }), "{error}");
    }
}

#[test]
fn a_capture_without_its_first_bytes_has_no_start() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.bin");
    let model = CaptureModel::simple(&[&[FrameTime::At(0), FrameTime::At(SECOND)]]);
    let mut bytes = model.bytes.clone();
    bytes[70] ^= 1;
    fs::write(&path, &bytes).unwrap();
    let error = table(&path, &bounds(Some(Bound::Since(Duration::ZERO)), None)).unwrap_err();
    assert!(matches!(error, DumpError::NoStart), "{error}");
    let (rows, _) = table(&path, &bounds(epoch(SECOND), None)).unwrap();
    assert_eq!(rows.len(), 1, "clock readings say what time it was");
}

#[test]
fn gaps_are_as_old_as_the_chunk_that_states_them() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.bin");
    let (mut bytes, at) = windows::with_gaps();
    fs::write(&path, &bytes).unwrap();
    let gaps = |from, to| {
        let options = DumpRequest { gaps: true, ..bounds(epoch(from), epoch(to)) };
        let (rows, outcome) = table(&path, &options).unwrap();
        let first = |row: &String| row.rsplit('\t').nth(2).unwrap().parse::<u64>().unwrap();
        (rows.iter().map(first).collect::<Vec<_>>(), outcome.untimed)
    };
    // Lost before the chunks of 1 s and 3 s; stated by a gap chunk after that of 3 s.
    assert_eq!(gaps(0, 5 * SECOND), (vec![1, 8, 14], 0));
    assert_eq!(gaps(0, 2 * SECOND), (vec![1], 0));
    assert_eq!(gaps(2 * SECOND, 5 * SECOND), (vec![8, 14], 0));
    // The second chunk is damaged: the times of its frames are unknown.
    bytes[at] ^= 1;
    fs::write(&path, bytes).unwrap();
    let (rows, untimed) = gaps(0, 5 * SECOND);
    assert_eq!((rows, untimed), (vec![1, 14], 1));
}

#[test]
fn a_chunk_that_lost_bytes_hides_none_of_those_behind_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.bin");
    let times: Vec<_> = (0..3000).map(|number| FrameTime::At(number * 1000)).collect();
    let chunks: Vec<_> = times.chunks(1000).collect();
    let mut bytes = CaptureModel::simple(&chunks).bytes;
    // Removes most of the first chunk's frames: the others begin inside its stated length.
    bytes.drain(4096..4096 + 192 * 64);
    fs::write(&path, &bytes).unwrap();
    let (whole, _) = table(&path, &bounds(None, None)).unwrap();
    assert_eq!(whole.len(), 2000);
    let (part, _) = table(&path, &bounds(seq(1500), None)).unwrap();
    assert!(part == whole[499..], "{} rows", part.len());
}

#[test]
fn a_counter_that_jumps_within_a_chunk_hides_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.bin");
    let model = CaptureModel::jumped(&[3900, 4600].map(|ms| FrameTime::At(ms * 1_000_000)));
    fs::write(&path, &model.bytes).unwrap();
    let (whole, _) = table(&path, &bounds(None, None)).unwrap();
    let mut found = 0;
    for ms in (3000..6000).step_by(100) {
        let options = bounds(epoch(ms * 1_000_000), epoch((ms + 150) * 1_000_000));
        let (part, _) = table(&path, &options).unwrap();
        assert_eq!(part, left(&model, &whole, &options).0, "{ms}");
        found += part.len();
    }
    assert_eq!(found, 4, "each frame is in two windows");
}

/// Number of bytes that this thread has read so far.
fn bytes_read() -> u64 {
    let io = fs::read_to_string("/proc/thread-self/io").unwrap();
    io.lines().find_map(|line| line.strip_prefix("rchar: ")).unwrap().parse().unwrap()
}

#[test]
fn a_narrow_part_of_a_large_capture_is_read_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.bin");
    let times: Vec<_> = (0..400_000).map(|number| FrameTime::At(number * 1_000)).collect();
    let chunks: Vec<_> = times.chunks(10_000).collect();
    let model = CaptureModel::simple(&chunks);
    fs::write(&path, &model.bytes).unwrap();
    let whole = model.bytes.len() as u64;
    let read = |options: &DumpRequest| {
        let before = bytes_read();
        let (rows, _) = table(&path, options).unwrap();
        (rows.len(), bytes_read() - before)
    };
    let (rows, all) = read(&bounds(None, None));
    assert!(rows == 400_000 && all > whole, "{rows} rows of {all} bytes");
    let parts = [
        (bounds(seq(123_456), seq(123_465)), 10),
        (bounds(epoch(300_000_000), epoch(300_009_999)), 10),
        (bounds(epoch(500_000_000), None), 0),
    ];
    for (options, expected) in parts {
        let (rows, read) = read(&options);
        assert_eq!(rows, expected, "{options:?}");
        assert!(read < whole / 10, "{read} of {whole} bytes for {options:?}");
    }
    // Small chunks, as from a program that writes little.
    let small = CaptureModel::simple(&times[..40_000].chunks(500).collect::<Vec<_>>());
    fs::write(&path, &small.bytes).unwrap();
    let (rows, few) = read(&bounds(seq(12_345), seq(12_346)));
    let whole_of_small = small.bytes.len() as u64;
    assert!(rows == 2 && few < whole_of_small / 4, "{few} of {whole_of_small} bytes");
    // Truncated: no index, no end.
    fs::write(&path, &model.bytes[..model.bytes.len() - 100_000]).unwrap();
    let (rows, read) = read(&bounds(seq(123_456), seq(123_465)));
    assert!(rows == 10 && read < whole / 10, "{rows} rows of {read} bytes");
}

#[test]
fn a_table_has_one_clock() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.bin");
    let model = CaptureModel::of_two_clocks(&[
        FrameTime::At(0),
        FrameTime::At(SECOND),
        FrameTime::NotTaken,
    ]);
    fs::write(&path, &model.bytes).unwrap();
    let cells = |options: &DumpRequest| -> Vec<String> {
        let (rows, _) = table(&path, options).unwrap();
        rows.iter().map(|row| row.rsplit(['\t', ',']).next().unwrap().to_owned()).collect()
    };
    let shown = |time| DumpRequest { time, ..DumpRequest::default() };
    let [first, second] = [REAL, REAL + SECOND as u64].map(|ns| ns.to_string());
    let both = [&first, &second, "", &first, &second, ""];
    // Ticks and the monotonic clock, in one column.
    assert_eq!(cells(&shown(None)), both);
    assert_eq!(cells(&shown(Some(TimeFormat::Ns))), both);
    assert_eq!(
        cells(&shown(Some(TimeFormat::Own)))[3],
        CaptureModel::own_monotonic(MONO).to_string()
    );
    let rel = ["0.000000000", "1.000000000", "", "0.000000000", "1.000000000", ""];
    assert_eq!(cells(&shown(Some(TimeFormat::Rel))), rel);
    let utc = cells(&DumpRequest { format: TableFormat::Csv, ..shown(Some(TimeFormat::Utc)) });
    assert_eq!(utc[..3], ["2023-11-14T22:13:20.000000000Z", "2023-11-14T22:13:21.000000000Z", ""]);
    assert_eq!(utc[..3], utc[3..]);

    // In one buffer, all times are of one clock: they stay as the program wrote them.
    let only =
        |name: &str| DumpRequest { buffers: vec![name.to_owned()], ..DumpRequest::default() };
    let own = CaptureModel::own_monotonic(MONO);
    assert_eq!(cells(&only("b1"))[0], own.to_string());
    assert_eq!(cells(&only("b0"))[0], first);

    let json = |time| {
        let (rows, _) =
            table(&path, &DumpRequest { format: TableFormat::JsonLines, ..shown(time) }).unwrap();
        // The first line of JSON lines is a row.
        serde_json::from_str::<serde_json::Value>(&rows[1]).unwrap()["at"].clone()
    };
    assert!(json(Some(TimeFormat::Rel)).is_null());
    let (rows, _) =
        table(&path, &DumpRequest { format: TableFormat::JsonLines, ..shown(None) }).unwrap();
    assert!(rows[0].contains(&format!("\"at\":{second}")), "{}", rows[0]);
    let (rows, _) = table(
        &path,
        &DumpRequest { format: TableFormat::JsonLines, ..shown(Some(TimeFormat::Rel)) },
    )
    .unwrap();
    assert!(rows[0].contains("\"at\":1.000000000"), "{}", rows[0]);
}

#[test]
fn a_folder_that_cannot_be_written_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.bin");
    let times: Vec<_> = (0..100).map(|number| FrameTime::At(number * SECOND)).collect();
    fs::write(&path, CaptureModel::simple(&[&times]).bytes).unwrap();
    let nowhere = PathBuf::from("/nowhere/at/all");
    let order = RowOrder::Time(SortLimits { memory: 100, folder: nowhere });
    let error = table(&path, &DumpRequest { order, ..DumpRequest::default() }).unwrap_err();
    assert_eq!(error.code(), "cannot-sort");
    assert!(error.to_string().contains("/nowhere/at/all"), "{error}");
}
