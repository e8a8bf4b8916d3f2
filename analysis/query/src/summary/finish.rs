//! What is said of rows in the end: most of the time is spent in choosing percentiles.

use std::sync::Arc;

use datafusion::common::runtime::SpawnedTask;
use futures::{StreamExt, stream};

use super::answer::{Ask, FieldSummary, Group, SummaryValues};
use super::gathered::{Gathered, reach, whole_and_slices};
use super::part::{GroupedRows, PartialSummary};
use super::steps::{OfStep, by_group};
use crate::error::QueryError;

impl PartialSummary {
    /// All rows together, with how numbers are spread, and those of each slice: of their fields, only numbers
    /// are summarised.
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
                    all.time = reach(all.time, rows.time);
                    all.threads.extend(rows.threads);
                }
            }
        }
        // By field: what was gathered in each slice.
        let mut fields: Vec<(usize, Option<String>, Vec<Gathered>)> = Vec::new();
        for told in by_group(&plan, gathered, &self.steps.words, &self.budget) {
            for (number, OfStep { at, step, gathered }) in told.into_iter().enumerate() {
                match fields.get_mut(number) {
                    Some(field) => field.2.push(gathered),
                    None => fields.push((at, step, vec![gathered])),
                }
            }
        }
        let finish = |(at, step, all): (usize, Option<String>, Vec<Gathered>)| {
            let (plan, budget) = (plan.clone(), self.budget.clone());
            let finish = async move {
                whole_and_slices(all, &plan.roles[at], step.as_ref(), every, &budget)
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

    /// Each field by itself, side by side.
    pub(super) async fn finish(self, ask: &Ask, threads: usize) -> Result<Vec<Group>, QueryError> {
        let (plan, ask) = (self.plan, Arc::new(ask.clone()));
        let (mut gathered, mut groups) = (Vec::new(), Vec::new());
        for rows in self.groups {
            groups.push(group_of(&rows));
            gathered.push(rows.fields);
        }
        let told =
            by_group(&plan, gathered, &self.steps.words, &self.budget).into_iter().enumerate();
        let fields: Vec<(usize, OfStep)> = told
            .flat_map(|(group, fields)| fields.into_iter().map(move |field| (group, field)))
            .collect();
        let finish = |(group, field): (usize, OfStep)| {
            let (plan, ask) = (plan.clone(), ask.clone());
            let finish = async move {
                let OfStep { at, step, gathered } = field;
                (group, gathered.finish(&plan.roles[at], step, &ask))
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

/// What is said of rows, but not of their fields.
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
