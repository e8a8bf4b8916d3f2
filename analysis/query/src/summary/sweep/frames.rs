//! Reads the frames of the longest intervals.

use std::collections::{BTreeMap, BTreeSet};

use datafusion::arrow::array::{RecordBatch, UInt32Array};
use datafusion::arrow::compute::take_record_batch;

use super::kind::{KindState, SweptKind};
use crate::engine::Engine;
use crate::error::QueryError;
use crate::joint_frame_scan::FrameColumns;
use crate::summary::gathered::arrow;

/// By kind and interval: the frames of the longest intervals.
pub(super) async fn rows_of(
    engine: &Engine,
    kinds: &[SweptKind],
    states: &mut [KindState],
) -> Result<Vec<Vec<(String, Vec<RecordBatch>)>>, QueryError> {
    let read: Vec<FrameColumns> = kinds.iter().map(SweptKind::whole_frames).collect();
    let Some(scan) = engine.joint_frame_scan(&read)? else { return Ok(Vec::new()) };
    // By batch: kinds, and their wanted rows.
    let mut wanted: BTreeMap<usize, BTreeSet<(usize, usize)>> = BTreeMap::new();
    for (number, state) in states.iter().enumerate() {
        for candidate in state.longest.iter().flat_map(|longest| &longest.found) {
            wanted.entry(candidate.position).or_default().insert((number, candidate.row));
        }
    }
    let mut frames: BTreeMap<(usize, usize, usize), RecordBatch> = BTreeMap::new();
    for (position, wanted) in wanted {
        let mut batches = scan.read(position..position + 1);
        let Some(read) = batches.next().await else { continue };
        for (number, batch) in read?.batches {
            for &(_, row) in wanted.iter().filter(|(kind, _)| *kind == number) {
                let one_row = UInt32Array::from(vec![row as u32]);
                let frame = take_record_batch(&batch, &one_row).map_err(arrow)?;
                frames.insert((number, position, row), frame);
            }
        }
    }
    let of_kind = |(number, (kind, state)): (usize, (&SweptKind, &mut KindState))| {
        let longest = kind.intervals.iter().zip(std::mem::take(&mut state.longest));
        let rows = longest.map(|(interval, longest)| {
            let found = longest.found.iter();
            let rows =
                found.filter_map(|found| frames.get(&(number, found.position, found.row)).cloned());
            (interval.name.clone(), rows.collect())
        });
        rows.collect()
    };
    Ok(kinds.iter().zip(states).enumerate().map(of_kind).collect())
}
