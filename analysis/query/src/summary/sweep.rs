//! The numbers of a report about frames, in one pass over all chunks.

mod frames;
mod kind;
mod longest;
mod request;

use std::ops::Range;
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::common::runtime::JoinSet;
use ppt_stats::Budget;

use super::answer::{FrameSummary, Group};
use crate::engine::{BoxedAnswer, Engine, FrameTable};
use crate::error::QueryError;
use crate::joint_frame_scan::{FrameColumns, JointFrameScan};
use frames::rows_of;
use kind::{KindState, SweptKind};
pub use request::{Sweep, TimeSlices};

/// The summaries of several kinds of frames.
#[derive(Debug)]
pub struct Swept {
    /// By kind.
    pub frames: Vec<SweptFrames>,
    /// Times at which the first and the last frame were drained, ns since the epoch.
    pub drained: Option<(i64, i64)>,
    /// Begin of the first interval at or after [`TimeSlices::least`], ns since the epoch.
    pub began: Option<i64>,
}

/// The summary of a kind of frames.
#[derive(Debug)]
pub struct SweptFrames {
    /// The summary of all frames, with distributions of numbers.
    pub total: FrameSummary,
    /// The numbers of each slice of time.
    pub slices: Vec<Group>,
    /// The intervals for each word of the column of [`Sweep::by`].
    pub groups: Vec<Group>,
    /// By column: the frames of its longest intervals, each in a batch.
    pub longest: Vec<(String, Vec<RecordBatch>)>,
}

/// The partial result for some batches.
struct SweepState {
    kinds: Vec<KindState>,
    drained: Option<(i64, i64)>,
    began: Option<i64>,
}

impl Engine {
    /// Summarises these kinds of frames in one pass over their chunks. None if they cannot be read this way.
    ///
    /// # Errors
    /// A capture cannot be read, or the query is cancelled or exceeds its memory.
    pub fn sweep<'a>(
        &'a self,
        frames: &'a [FrameTable],
        sweep: &'a Sweep,
    ) -> BoxedAnswer<'a, Option<Swept>> {
        Box::pin(async move {
            let budget = Budget::new(sweep.memory);
            let mut kinds = Vec::new();
            for (number, frame) in frames.iter().enumerate() {
                let by = sweep.by.get(number).cloned().flatten();
                kinds.push(SweptKind::new(self, sweep, (frame, by), &budget)?);
            }
            let read = |kind: &SweptKind| FrameColumns {
                frame: kind.frame.clone(),
                columns: kind.columns(),
            };
            let read: Vec<FrameColumns> = kinds.iter().map(read).collect();
            let Some(scan) = self.joint_frame_scan(&read)? else { return Ok(None) };
            let kinds = Arc::new(kinds);
            let mut parts = JoinSet::new();
            for batches in batches(&scan, sweep.is_sample, self.threads()) {
                let mut read_batches = scan.read(batches.clone());
                let (kinds, slices) = (kinds.clone(), sweep.slices);
                parts.spawn(async move {
                    let mut state = SweepState::new(&kinds);
                    for position in batches {
                        let Some(read) = read_batches.next().await else { break };
                        for (number, batch) in read?.batches {
                            state.batch(&kinds, (number, &batch), position, slices)?;
                        }
                    }
                    Ok::<SweepState, QueryError>(state)
                });
            }
            let mut all: Option<SweepState> = None;
            while let Some(part) = parts.join_next().await {
                let part = part.map_err(|error| QueryError::Failed(error.to_string()))??;
                match &mut all {
                    None => all = Some(part),
                    Some(all) => all.join(part, sweep.longest),
                }
            }
            let mut state = all.unwrap_or_else(|| SweepState::new(&kinds));
            let mut longest = if sweep.is_sample {
                Vec::new()
            } else {
                rows_of(self, &kinds, &mut state.kinds).await?
            };
            longest.resize_with(kinds.len(), Vec::new);
            let mut answer = Vec::new();
            for ((kind, state), longest) in kinds.iter().zip(state.kinds).zip(longest) {
                let (total, slices, groups) = state.finish(kind, self.threads()).await?;
                answer.push(SweptFrames { total, slices, groups, longest });
            }
            Ok(Some(Swept { frames: answer, drained: state.drained, began: state.began }))
        })
    }
}

/// The ranges of batches that are read in parallel.
fn batches(scan: &JointFrameScan, is_sample: bool, threads: usize) -> Vec<Range<usize>> {
    let all = scan.batch_count();
    if is_sample {
        let middle = all / 2;
        return [0, middle]
            .into_iter()
            .take(all.min(2))
            .map(|position| position..position + 1)
            .collect();
    }
    let parts = threads.clamp(1, all.max(1));
    (0..parts).map(|part| all * part / parts..all * (part + 1) / parts).collect()
}

impl SweepState {
    fn new(kinds: &[SweptKind]) -> SweepState {
        SweepState { kinds: kinds.iter().map(KindState::new).collect(), drained: None, began: None }
    }

    /// Adds rows of the kind with this number. `position`: number of their batch in the scan.
    fn batch(
        &mut self,
        kinds: &[SweptKind],
        (number, batch): (usize, &RecordBatch),
        position: usize,
        slices: Option<TimeSlices>,
    ) -> Result<(), QueryError> {
        if batch.num_rows() == 0 {
            return Ok(());
        }
        let kind = &kinds[number];
        self.drained = super::gathered::hull(self.drained, kind.drained(batch)?);
        if let Some(slices) = slices {
            self.began = self.began.into_iter().chain(kind.began(batch, slices.least)?).min();
        }
        self.kinds[number].batch(kind, batch, position)
    }

    fn join(&mut self, other: SweepState, longest: usize) {
        self.drained = super::gathered::hull(self.drained, other.drained);
        self.began = self.began.into_iter().chain(other.began).min();
        for (ours, theirs) in self.kinds.iter_mut().zip(other.kinds) {
            ours.join(theirs, longest);
        }
    }
}
