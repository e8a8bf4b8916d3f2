//! A trace is the same whether its rows are merged as they are read, or sorted by a query.

use std::fs;
use std::path::Path;

use ppt_capture::frame_dsl::schema::Schema;
use ppt_capture::{CaptureWriter, End, EndReason, FileHeader, FramesHead, Segment, Source};
use ppt_interchange::{Chrome, Events, Merge, RowRun, Trace, TraceFormat, TraceSelection};
use ppt_query::{Bound, CaptureSet, Engine, EngineOptions, Processes, QueryError, Window};

/// Chrome's JSON of a capture, with `memory` bytes for rows that wait; and the times of its events.
async fn trace(engine: &Engine, memory: usize) -> (Vec<u8>, Vec<i64>) {
    let everything = TraceSelection::everything(engine, TraceFormat::Chrome).unwrap();
    let events = Events::new(engine, TraceFormat::Chrome);
    let (kinds, sources) = events.sources(&everything).await.unwrap();
    let mut merge = Merge::new(&events, sources, memory).await.unwrap();
    let (mut out, mut times) = (Vec::new(), Vec::new());
    let mut trace = Chrome::new(&mut out, &kinds, Processes::new(engine.set())).unwrap();
    let mut take = |run: RowRun<'_>| {
        trace.turn_to(run.kind, run.rows);
        for row in run.which.iter().map(|&row| row as usize) {
            times.push(run.rows.begin(row));
            trace.event(run.kind, run.rows, row)?;
        }
        Ok::<_, QueryError>(())
    };
    while merge.next(&mut take).await.unwrap() > 0 {}
    trace.finish().unwrap();
    drop(trace);
    (out, times)
}

#[test]
fn rows_are_merged_as_a_query_sorts_them() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    for name in ["capture.bin", "written.bin"] {
        let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../dump/tests/golden");
        let set = CaptureSet::open(&[golden.join(name)]).unwrap();
        let engine = Engine::new(set, &EngineOptions::default()).unwrap();
        let (merged, times) = runtime.block_on(trace(&engine, usize::MAX));
        let (sorted, _) = runtime.block_on(trace(&engine, 0));
        assert!(times.len() > 10, "{name}: {}", times.len());
        assert!(times.is_sorted(), "{name}");
        assert_eq!(
            String::from_utf8(merged).unwrap(),
            String::from_utf8(sorted).unwrap(),
            "{name}"
        );
    }
}

/// CLOCK_REALTIME when captures begin, whose CLOCK_MONOTONIC is 1,000.
const EPOCH: i64 = 1_700_000_000_000_000_000;

/// A capture of runs of frames, each in ring 0 of the segment with that nonce.
fn made(id: u8, schema: &Schema, runs: &[(u64, Vec<u8>)]) -> Vec<u8> {
    let header = FileHeader {
        capture_id: [id; 16],
        boot_id: "boot".to_owned(),
        created_realtime_ns: EPOCH as u64,
        created_mono_ns: 1_000,
        ..FileHeader::default()
    };
    let (slots, stride) = (schema.slots, schema.stride);
    let segment = |run: &(u64, Vec<u8>)| Segment { nonce: run.0, rings: 1, slots, stride };
    let source = Source {
        schema_json: schema.to_json().into_bytes(),
        schema_hash: schema.hash(),
        buffer: schema.buffer.clone(),
        segments: runs.iter().map(segment).collect(),
        ..Source::default()
    };
    let mut writer = CaptureWriter::create(Vec::new(), &header).unwrap();
    writer.source(0, &source).unwrap();
    for (nonce, bytes) in runs {
        let count = (bytes.len() / stride as usize) as u32;
        let (nonce, tid, first_seq) = (*nonce, 7, 1);
        let head = FramesHead { nonce, tid, stride, count, first_seq, ..FramesHead::default() };
        writer.frames(&head, bytes).unwrap();
    }
    writer.end(&End::new(EndReason::Stopped, EPOCH as u64 + 8_000, 9_000)).unwrap()
}

/// A capture of `frames` frames in ring 0 of each of two segments, all at one time.
fn at_one_time(id: u8, frames: u64) -> Vec<u8> {
    let json = r#"{"v":1,"buffer":"b","slots":16,"stride":16,"frames":[
        {"name":"tick","kind":"plain","size":16,"fields":[
        {"name":"at","type":"ns","clock":"monotonic","offset":8,"at":true,"stamp":true}]}]}"#;
    let schema = Schema::from_json(json.as_bytes()).unwrap();
    let frames = (1..=frames).flat_map(|seqno| [seqno, 5_000]).flat_map(u64::to_le_bytes);
    let frames: Vec<u8> = frames.collect();
    made(id, &schema, &[(9, frames.clone()), (4, frames)])
}

/// A capture of two frames of each of `kinds` kinds, one of which is missing in its schema.
fn of_many_kinds(kinds: u64) -> Vec<u8> {
    let frame = |kind: u64| {
        format!(
            r#"{{"name":"k{kind}","kind":"plain","size":24,"fields":[
            {{"name":"at","type":"ns","clock":"monotonic","offset":16,"at":true,"stamp":true}}]}}"#
        )
    };
    let frames: Vec<String> = (0..kinds - 1).map(frame).collect();
    let json =
        format!(r#"{{"v":1,"buffer":"b","slots":16,"stride":24,"frames":[{}]}}"#, frames.join(","));
    let schema = Schema::from_json(json.as_bytes()).unwrap();
    let words = (1..=2 * kinds).flat_map(|seqno| [seqno, seqno * 7 % kinds, 1_000 + seqno]);
    let bytes: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
    made(9, &schema, &[(5, bytes)])
}

#[test]
fn all_kinds_are_read_at_once() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.bin");
    let all = of_many_kinds(90);
    fs::write(&path, &all).unwrap();
    let engine = |window| {
        let set = CaptureSet::open(std::slice::from_ref(&path)).unwrap();
        Engine::new(set, &EngineOptions { window, ..EngineOptions::default() }).unwrap()
    };
    let whole = engine(Window::default());
    let (merged, times) = runtime.block_on(trace(&whole, usize::MAX));
    assert_eq!(times.len(), 2 * 90);
    // One pass for the times, one for the rows, and one for unknown frames.
    let (read, _) = whole.set().watch().bytes();
    assert!(read <= 3 * all.len() as u64, "{read} of {}", all.len());
    assert!(merged == runtime.block_on(trace(&whole, 0)).0);

    let window = |from: i64, to: i64| Window {
        from: Some(Bound::Epoch((EPOCH + from) as u64)),
        to: Some(Bound::Epoch((EPOCH + to) as u64)),
        ..Window::default()
    };
    let part = engine(window(50, 59));
    let (merged, times) = runtime.block_on(trace(&part, usize::MAX));
    assert_eq!(times, (50..=59).map(|at| EPOCH + at).collect::<Vec<_>>());
    assert!(merged == runtime.block_on(trace(&part, 0)).0);
    let none = engine(window(5_000, 6_000));
    assert!(runtime.block_on(trace(&none, usize::MAX)).1.is_empty());
}

#[test]
fn rows_of_one_time_have_one_order() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    let folder = tempfile::tempdir().unwrap();
    // Neither captures nor segments are in the order of their names.
    let paths = [("a.bin", 8), ("b.bin", 3)].map(|(name, id)| {
        let path = folder.path().join(name);
        fs::write(&path, at_one_time(id, 3)).unwrap();
        path
    });
    let engine = Engine::new(CaptureSet::open(&paths).unwrap(), &EngineOptions::default()).unwrap();
    let order = |memory: usize| {
        runtime.block_on(async {
            let frames = TraceSelection::named(&engine, TraceFormat::Chrome, "tick").unwrap();
            let events = Events::new(&engine, TraceFormat::Chrome);
            let (_, sources) = events.sources(&frames).await.unwrap();
            let mut merge = Merge::new(&events, sources, memory).await.unwrap();
            let mut order = Vec::new();
            let mut take = |run: RowRun<'_>| {
                for row in run.which.iter().map(|&row| row as usize) {
                    let (capture, segment) = run.rows.origin(row);
                    let owned = [capture, segment].map(|word| word.unwrap_or_default().to_owned());
                    order.push((run.rows.seqno(row), owned));
                }
                Ok::<_, QueryError>(())
            };
            while merge.next(&mut take).await.unwrap() > 0 {}
            order
        })
    };
    let merged = order(usize::MAX);
    assert_eq!(merged.len(), 12);
    assert!(merged.is_sorted(), "{merged:#?}");
    assert_eq!(merged, order(0));
}
