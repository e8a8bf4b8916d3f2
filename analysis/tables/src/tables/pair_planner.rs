//! Plans of pairs of frames: begins with ends, or steps with the next steps.

use std::sync::Arc;

use arrow_array::StringArray;
use arrow_schema::SchemaRef;
use ppt_capture::frame_dsl::role::Across;

use super::keyed_frames::{Hidden, KeyedColumns, KeyedFrames, find_missing};
use crate::bounds::BoundedNumber;
use crate::chunk_scan::ChunkScan;
use crate::error::TableError;
use crate::pair_pass::{PairColumn, PairPass};
use crate::set::CaptureSet;
use crate::standard::Standard;
use crate::table::{Planned, Scan, Start, TableRequest};

/// A column of pairs in `edges` or `slices`.
#[derive(Debug)]
pub(super) enum LinkColumn {
    /// A column of the first frame.
    Own(Standard),
    /// A column of the second frame.
    End(Standard),
    /// The time from the first frame to the second, in ns.
    Dur,
    Word(Arc<StringArray>),
    Zero,
    Null,
}

/// Plans the pairs that frames make.
#[derive(Debug)]
pub(super) struct PairPlanner<'a> {
    pub set: &'a Arc<CaptureSet>,
    pub frames: &'a Arc<KeyedFrames>,
    /// The text for EXPLAIN.
    pub explain_text: String,
    /// Pairs of steps, instead of begins and ends.
    pub steps: bool,
}

impl PairPlanner<'_> {
    /// Plans the complete pairs, with the columns of another table.
    pub fn links(
        &self,
        request: &TableRequest<'_>,
        columns: &[LinkColumn],
        schema: SchemaRef,
    ) -> Result<Planned, TableError> {
        let own = columns.iter().filter_map(|column| match column {
            LinkColumn::Own(standard) | LinkColumn::End(standard) => {
                Some(KeyedFrames::standard(*standard))
            }
            _ => None,
        });
        let read = KeyedColumns::new(self.frames, own);
        let out = |shown: &LinkColumn| match shown {
            LinkColumn::Own(standard) => PairColumn::Own(read.at(KeyedFrames::standard(*standard))),
            LinkColumn::End(standard) => PairColumn::End(read.at(KeyedFrames::standard(*standard))),
            LinkColumn::Dur => PairColumn::Dur,
            LinkColumn::Word(word) => PairColumn::Word(word.clone()),
            LinkColumn::Zero => PairColumn::Zero,
            LinkColumn::Null => PairColumn::Null,
        };
        let out = columns.iter().map(out).collect();
        self.plan(request, &read, (out, schema), true)
    }

    /// Plans the pairs; `closed`: complete pairs only.
    pub fn plan(
        &self,
        request: &TableRequest<'_>,
        read: &KeyedColumns,
        (columns, schema): (Vec<PairColumn>, SchemaRef),
        closed: bool,
    ) -> Result<Planned, TableError> {
        let (scan, pass) = self.scan_and_pass(request, read, (columns, schema.clone()), closed)?;
        let start = Start(Arc::new(move || pass.runner()));
        let pass = read.pass(self.frames, schema, &self.explain_text, start);
        Ok(Planned { scan, pass: Some(pass), more: Vec::new() })
    }

    /// The scan of the frames, and the pass that pairs them.
    pub fn scan_and_pass(
        &self,
        request: &TableRequest<'_>,
        read: &KeyedColumns,
        (columns, schema): (Vec<PairColumn>, SchemaRef),
        closed: bool,
    ) -> Result<(Arc<dyn Scan>, PairPass), TableError> {
        let frames = self.frames;
        // If pairs lie within a process, whole processes can be skipped.
        let within_process = frames.plans.iter().all(|plan| plan.across == Across::Process);
        let numbers: &[BoundedNumber] = if within_process { &[BoundedNumber::Pid] } else { &[] };
        let bounds = request.bounds.only(numbers, &[]);
        let inner =
            TableRequest { columns: &read.columns, bounds: &bounds, limit: None, ..*request };
        let scan: Arc<dyn Scan> = Arc::new(ChunkScan::new(self.set, frames, &inner)?);
        let needs_missing = columns.iter().any(|column| matches!(column, PairColumn::State));
        let pass = PairPass {
            group: read.at(frames.hidden(Hidden::Group)),
            key: read.at(frames.hidden(Hidden::Key)),
            mark: read.at(frames.hidden(Hidden::Mark)),
            ts: read.at(KeyedFrames::standard(Standard::Ts)),
            fifo: frames.groups.iter().map(|group| frames.plans[group.plan].fifo).collect(),
            columns,
            schema,
            closed,
            steps: self.steps,
            missing: needs_missing.then(|| find_missing(self.set, frames)),
        };
        Ok((scan, pass))
    }
}
