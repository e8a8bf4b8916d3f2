//! Frames of wholes in pairs: begins with ends, or steps with the next ones.

use std::sync::Arc;

use arrow_array::StringArray;
use arrow_schema::SchemaRef;
use ppt_capture::frame_dsl::role::Across;

use super::parts::{Hidden, Parts, ReadParts, missing_of};
use crate::bounds::BoundedNumber;
use crate::error::TableError;
use crate::of_chunks::ChunkScan;
use crate::pair::{Pair, PairColumn};
use crate::set::CaptureSet;
use crate::standard::Standard;
use crate::table::{Planned, Scan, Start, TableRequest};

/// A column of pairs in a table of other things.
#[derive(Debug)]
pub(super) enum LinkColumn {
    /// Of the first of the two.
    Own(Standard),
    /// Of the other one.
    End(Standard),
    /// From the one to the other.
    Dur,
    Word(Arc<StringArray>),
    Zero,
    Null,
}

/// The frames that make pairs.
#[derive(Debug)]
pub(super) struct Paired<'a> {
    pub set: &'a Arc<CaptureSet>,
    pub parts: &'a Arc<Parts>,
    /// What EXPLAIN says.
    pub told: String,
    /// Each step with the next one.
    pub steps: bool,
}

impl Paired<'_> {
    /// The pairs of which both are there.
    pub fn links(
        &self,
        request: &TableRequest<'_>,
        columns: &[LinkColumn],
        schema: SchemaRef,
    ) -> Result<Planned, TableError> {
        let own = columns.iter().filter_map(|column| match column {
            LinkColumn::Own(standard) | LinkColumn::End(standard) => {
                Some(Parts::standard(*standard))
            }
            _ => None,
        });
        let read = ReadParts::new(self.parts, own);
        let out = |shown: &LinkColumn| match shown {
            LinkColumn::Own(standard) => PairColumn::Own(read.at(Parts::standard(*standard))),
            LinkColumn::End(standard) => PairColumn::End(read.at(Parts::standard(*standard))),
            LinkColumn::Dur => PairColumn::Dur,
            LinkColumn::Word(word) => PairColumn::Word(word.clone()),
            LinkColumn::Zero => PairColumn::Zero,
            LinkColumn::Null => PairColumn::Null,
        };
        let out = columns.iter().map(out).collect();
        self.plan(request, &read, (out, schema), true)
    }

    /// All pairs, or those of which both are there.
    pub fn plan(
        &self,
        request: &TableRequest<'_>,
        read: &ReadParts,
        (columns, schema): (Vec<PairColumn>, SchemaRef),
        closed: bool,
    ) -> Result<Planned, TableError> {
        let (scan, pair) = self.pair(request, read, (columns, schema.clone()), closed)?;
        let start = Start(Arc::new(move || pair.runner()));
        let pass = read.pass(self.parts, schema, &self.told, start);
        Ok(Planned { scan, pass: Some(pass), beside: Vec::new() })
    }

    /// What is read, and what makes pairs of it.
    pub fn pair(
        &self,
        request: &TableRequest<'_>,
        read: &ReadParts,
        (columns, schema): (Vec<PairColumn>, SchemaRef),
        closed: bool,
    ) -> Result<(Arc<dyn Scan>, Pair), TableError> {
        let parts = self.parts;
        // Whole processes can be left out, where nothing leaves its own.
        let is_own = parts.plans.iter().all(|plan| plan.across == Across::Process);
        let numbers: &[BoundedNumber] = if is_own { &[BoundedNumber::Pid] } else { &[] };
        let bounds = request.bounds.only(numbers, &[]);
        let inner =
            TableRequest { columns: &read.columns, bounds: &bounds, limit: None, ..*request };
        let scan: Arc<dyn Scan> = Arc::new(ChunkScan::new(self.set, parts, &inner)?);
        let asks = columns.iter().any(|column| matches!(column, PairColumn::State));
        let pair = Pair {
            group: read.at(parts.hidden(Hidden::Group)),
            key: read.at(parts.hidden(Hidden::Key)),
            mark: read.at(parts.hidden(Hidden::Mark)),
            ts: read.at(Parts::standard(Standard::Ts)),
            fifo: parts.groups.iter().map(|group| parts.plans[group.plan].fifo).collect(),
            columns,
            schema,
            closed,
            steps: self.steps,
            missing: asks.then(|| missing_of(self.set, parts)),
        };
        Ok((scan, pair))
    }
}
