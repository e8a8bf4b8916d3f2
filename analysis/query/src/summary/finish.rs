//! Finishes summaries. Most of the time is spent in the selection of percentiles.

use std::sync::Arc;

use datafusion::common::runtime::SpawnedTask;
use futures::{StreamExt, stream};

use super::answer::{FieldSummary, Group, SummaryRequest, SummaryValues};
use super::gathered::{Gathered, hull, total_and_slices};
use super::partial_summary::{GroupedRows, PartialSummary};
use super::steps::{StepValues, by_group};
use crate::error::QueryError;

impl PartialSummary {
    /// The summary of all rows, with distributions of numbers, and that of each slice, for which only
    /// numbers are summarised.
    pub(super) async fn finish_slices(
        self,
        threads: usize,
    ) -> Result<(Option<Group>, Vec<Group>), QueryError> {
        let (plan, every) = (self.plan, self.slicing.map(|slicing| slicing.every));
        let (mut gathered, mut slices) = (Vec::new(), Vec::new());
        let mut all: Option<GroupedRows> = None;
        for rows in self.groups {
            slices.push(group_of(&rows));
            gathered.push(rows.fields);
            match &mut all {
                None => all = Some(GroupedRows { fields: Vec::new(), slice: None, ..rows }),
                Some(all) => {
                    all.count += rows.count;
                    all.time = hull(all.time, rows.time);
                    all.threads.extend(rows.threads);
                }
            }
        }
        // By field: the values of each slice.
        let mut fields: Vec<(usize, Option<String>, Vec<Gathered>)> = Vec::new();
        for steps in by_group(&plan, gathered, &self.steps.words, &self.budget) {
            for (number, StepValues { at, step, gathered }) in steps.into_iter().enumerate() {
                match fields.get_mut(number) {
                    Some(field) => field.2.push(gathered),
                    None => fields.push((at, step, vec![gathered])),
                }
            }
        }
        let finish = |(at, step, all): (usize, Option<String>, Vec<Gathered>)| {
            let (plan, budget) = (plan.clone(), self.budget.clone());
            let finish = async move {
                total_and_slices(all, &plan.summarised[at], step.as_ref(), every, &budget)
            };
            SpawnedTask::spawn(finish).join()
        };
        let mut whole = all.map(|rows| group_of(&rows));
        let mut finished = stream::iter(fields).map(finish).buffered(threads.max(1));
        while let Some(field) = finished.next().await {
            let (field, summaries) =
                field.map_err(|error| QueryError::Failed(error.to_string()))?;
            let FieldSummary { name, step, unit, .. } = &field;
            for (slice, summary) in slices.iter_mut().zip(summaries) {
                let Some(summary) = summary.map(Box::new) else { continue };
                let values = SummaryValues::Numbers { summary, busy: None, spread: None };
                let (name, step, unit) = (name.clone(), step.clone(), unit.clone());
                slice.fields.push(FieldSummary { name, step, unit, values });
            }
            whole.iter_mut().for_each(|whole| whole.fields.push(field.clone()));
        }
        slices.sort_by_key(|slice| slice.slice);
        Ok((whole, slices))
    }

    /// The summaries of all groups. Fields are finished in parallel.
    pub(super) async fn finish(
        self,
        request: &SummaryRequest,
        threads: usize,
    ) -> Result<Vec<Group>, QueryError> {
        let (plan, request) = (self.plan, Arc::new(request.clone()));
        let (mut gathered, mut groups) = (Vec::new(), Vec::new());
        for rows in self.groups {
            groups.push(group_of(&rows));
            gathered.push(rows.fields);
        }
        let steps_of_groups =
            by_group(&plan, gathered, &self.steps.words, &self.budget).into_iter().enumerate();
        let fields: Vec<(usize, StepValues)> = steps_of_groups
            .flat_map(|(group, fields)| fields.into_iter().map(move |field| (group, field)))
            .collect();
        let finish = |(group, field): (usize, StepValues)| {
            let (plan, request) = (plan.clone(), request.clone());
            let finish = async move {
                let StepValues { at, step, gathered } = field;
                (group, gathered.finish(&plan.summarised[at], step, &request))
            };
            SpawnedTask::spawn(finish).join()
        };
        let mut finished = stream::iter(fields).map(finish).buffered(threads.max(1));
        while let Some(field) = finished.next().await {
            let (group, field) = field.map_err(|error| QueryError::Failed(error.to_string()))?;
            groups[group].fields.push(field);
        }
        groups.sort_by(|a, b| (&a.by, a.slice).cmp(&(&b.by, b.slice)));
        Ok(groups)
    }
}

/// The summary of a group, without its fields.
fn group_of(rows: &GroupedRows) -> Group {
    Group {
        by: rows.by.clone(),
        slice: rows.slice,
        count: rows.count,
        time: rows.time,
        threads: rows.threads.len() as u64,
        fields: Vec::new(),
    }
}
