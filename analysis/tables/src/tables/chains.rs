//! `<name>_chains`: the chains of a kind of frames, one for each key and boot.

use std::sync::Arc;

use arrow_schema::SchemaRef;
use ppt_capture::frame_dsl::columns::whole_table;

use super::frame::{FrameOfSource, kinds};
use super::keyed_frames::{
    Hidden, KeyedColumns, KeyedFrames, SpanOrChainColumn, find_missing, is_chain, whole_schema,
};
use super::named::NamedTable;
use super::pair_planner::{LinkColumn, PairPlanner};
use crate::bounds::{Bounded, Bounds};
use crate::chain_pass::{ChainColumn, ChainPass};
use crate::chunk_scan::ChunkScan;
use crate::error::{SetError, TableError};
use crate::growing::{GrowingTable, GrowingWholes, WholeForm, everything};
use crate::pair_pass::FindMissing;
use crate::set::CaptureSet;
use crate::spans_and_chains::Missing;
use crate::standard::{STANDARD, Standard};
use crate::table::{CaptureTable, Planned, Scan, Start, TableRequest};

pub(super) fn make(set: &Arc<CaptureSet>) -> Result<Vec<NamedTable>, SetError> {
    let named = |chains: Chains| {
        let (buffer, frame) = (chains.frames.buffer.clone(), chains.name.clone());
        NamedTable::chains((&buffer, &frame), chains.table.clone(), chains)
    };
    Ok(all(set)?.into_iter().map(named).collect())
}

/// The chains of each kind of frames.
pub(super) fn all(set: &Arc<CaptureSet>) -> Result<Vec<Chains>, SetError> {
    let tables = kinds(set, is_chain).into_iter().filter_map(|((buffer, name), kinds)| {
        let table = whole_table(kinds.first()?.frame)?;
        Some(Chains::new(set, (buffer, name), table, &kinds))
    });
    tables.collect()
}

/// The chains of a kind of frames.
#[derive(Debug)]
pub(super) struct Chains {
    set: Arc<CaptureSet>,
    /// Name of the frames.
    name: String,
    table: String,
    frames: Arc<KeyedFrames>,
    columns: Vec<SpanOrChainColumn>,
    schema: SchemaRef,
}

impl Chains {
    fn new(
        set: &Arc<CaptureSet>,
        name: (&str, &str),
        table: String,
        kinds: &[FrameOfSource<'_>],
    ) -> Result<Chains, SetError> {
        let frames = Arc::new(KeyedFrames::new(set, name, kinds)?);
        let (columns, schema) = whole_schema(&frames, kinds);
        Ok(Chains { set: set.clone(), name: name.1.to_owned(), table, frames, columns, schema })
    }

    /// The name of the frames.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Plans pairs of each step and the next taken one in another table with these columns.
    pub fn links(
        &self,
        request: &TableRequest<'_>,
        columns: &[LinkColumn],
        schema: SchemaRef,
    ) -> Result<Planned, TableError> {
        let explain_text = format!("chains: each step of {} with the next one", self.name);
        let planner =
            PairPlanner { set: &self.set, frames: &self.frames, explain_text, steps: true };
        planner.links(request, columns, schema)
    }
}

impl CaptureTable for Chains {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn bounded(&self, column: usize) -> Option<Bounded> {
        STANDARD.get(column).map(|standard| standard.bounded())
    }

    fn plan(&self, request: &TableRequest<'_>) -> Result<Planned, TableError> {
        let (scan, read, pass) = self.scan_and_pass(request)?;
        let schema = pass.schema.clone();
        let start = Start(Arc::new(move || pass.runner()));
        let pass = read.pass(&self.frames, schema, "chains: the steps of each key", start);
        Ok(Planned { scan, pass: Some(pass), more: Vec::new() })
    }
}

impl GrowingTable for Chains {
    fn growing(&self, with_absent: bool) -> Result<GrowingWholes, TableError> {
        let (all, bounds) = everything(&self.schema);
        let (scan, read, pass) = self.scan_and_pass(&TableRequest::all_rows(&all, &bounds))?;
        let steps = |&plan: &usize| WholeForm::Chain { steps: pass.steps[plan].len() };
        let forms = pass.plans.iter().map(steps);
        let groups = self.frames.growing_groups(&self.set, forms, with_absent);
        let runner = move |missing: Vec<Missing>| {
            let missing: FindMissing = Arc::new(move || Ok(missing.clone()));
            ChainPass { missing: Some(missing), ..pass.clone() }.runner()
        };
        let (schema, columns) = (self.schema.clone(), read.half_columns(&self.frames));
        Ok(GrowingWholes::new(scan, schema, columns, groups, runner))
    }
}

impl Chains {
    /// The scan of the frames, the columns that it reads, and the pass that makes chains.
    fn scan_and_pass(
        &self,
        request: &TableRequest<'_>,
    ) -> Result<(Arc<dyn Scan>, KeyedColumns, ChainPass), TableError> {
        let frames = &self.frames;
        let read = KeyedColumns::new(
            frames,
            request.columns.iter().filter_map(|&column| match &self.columns[column] {
                SpanOrChainColumn::Standard(place) => Some(*place),
                SpanOrChainColumn::Key(name) => frames.column(name),
                _ => None,
            }),
        );
        let step = |steps: &[String], name: &String| steps.iter().position(|step| step == name);
        let steps = || frames.plans.iter().map(|plan| &plan.steps);
        let out = |&column: &usize| match &self.columns[column] {
            SpanOrChainColumn::Standard(place) => ChainColumn::Own(read.at(*place)),
            SpanOrChainColumn::Key(name) => {
                ChainColumn::Own(read.at(frames.column(name).unwrap_or_default()))
            }
            SpanOrChainColumn::Step(name) => {
                ChainColumn::Step(steps().map(|texts| step(texts, name)).collect())
            }
            SpanOrChainColumn::Between(from, to) => {
                let from = |steps: &Vec<String>| {
                    step(steps, from).filter(|from| steps.get(from + 1) == Some(to))
                };
                ChainColumn::Between(steps().map(from).collect())
            }
            SpanOrChainColumn::State => ChainColumn::State,
            _ => ChainColumn::Total,
        };
        // Steps may be in any process, so bounds of one step do not apply to the others.
        let bounds = Bounds::default();
        let inner =
            TableRequest { columns: &read.columns, bounds: &bounds, limit: None, ..*request };
        let scan: Arc<dyn Scan> = Arc::new(ChunkScan::new(&self.set, frames, &inner)?);
        let columns: Vec<ChainColumn> = request.columns.iter().map(out).collect();
        let needs_missing = columns.iter().any(|column| matches!(column, ChainColumn::State));
        let pass = ChainPass {
            group: read.at(frames.hidden(Hidden::Group)),
            key: read.at(frames.hidden(Hidden::Key)),
            mark: read.at(frames.hidden(Hidden::Mark)),
            ts: read.at(KeyedFrames::standard(Standard::Ts)),
            plans: frames.groups.iter().map(|group| group.plan).collect(),
            steps: frames.plans.iter().map(|plan| plan.steps.clone()).collect(),
            columns,
            schema: Arc::new(self.schema.project(request.columns)?),
            missing: needs_missing.then(|| find_missing(&self.set, frames)),
        };
        Ok((scan, read, pass))
    }
}
