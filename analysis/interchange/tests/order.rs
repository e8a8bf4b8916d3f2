//! A trace is the same whether its rows are merged as they are read, or sorted by a query.

use std::path::Path;

use ppt_interchange::{Chrome, Events, Form, Merge, Run, Trace};
use ppt_query::{CaptureSet, Engine, Options, Processes, QueryError};

/// Chrome's JSON of a capture, with so much memory for rows that wait; and the times of its events.
async fn trace(engine: &Engine, memory: usize) -> (Vec<u8>, Vec<i64>) {
    let frames = engine.frames(None).unwrap();
    let (kinds, sources) = Events::new(engine, Form::Chrome).sources(&frames, true).await.unwrap();
    let mut merge = Merge::new(sources, memory).await.unwrap();
    let (mut out, mut times) = (Vec::new(), Vec::new());
    let mut trace = Chrome::new(&mut out, &kinds, Processes::of(engine.set())).unwrap();
    let mut take = |run: Run<'_>| {
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
        let engine = Engine::new(set, &Options::default()).unwrap();
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
