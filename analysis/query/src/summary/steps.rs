//! Selects the steps of spans and chains for which a field is summarised: those that set it.

use std::collections::BTreeSet;

use datafusion::arrow::datatypes::{DataType, Field};
use ppt_stats::Budget;

use super::gathered::Gathered;
use super::plan::{ReadPlan, Steps, SummarisedField};

/// The gathered values of a group, by field and by key of the step. Key 0 has the values of fields that are
/// summarised over all rows.
pub(super) type ByStep = Vec<Vec<Option<Gathered>>>;

/// The values of a field in a group, for the frames of one step or of all.
pub(super) struct StepValues {
    /// Index of the summarised field.
    pub at: usize,
    pub step: Option<String>,
    pub gathered: Gathered,
}

/// Whether the frames of each step are summarised separately.
pub(super) fn by_step(steps: &Steps) -> bool {
    matches!(steps, Steps::Each | Steps::Only(_))
}

/// The values of each group; all groups have the same fields and steps. `steps`: names of steps, from key
/// 1 on.
pub(super) fn by_group(
    plan: &ReadPlan,
    mut groups: Vec<ByStep>,
    steps: &[String],
    budget: &Budget,
) -> Vec<Vec<StepValues>> {
    let mut all: Vec<Vec<StepValues>> = groups.iter().map(|_| Vec::new()).collect();
    let sets: Vec<BTreeSet<usize>> = plan
        .summarised
        .iter()
        .enumerate()
        .map(|(at, summarised)| set(&groups, at, summarised))
        .collect();
    for (at, (summarised, set)) in plan.summarised.iter().zip(&sets).enumerate() {
        let mut wanted: Vec<(Option<String>, Vec<usize>)> = Vec::new();
        let name = |number: &usize| number.checked_sub(1).map_or("NULL", |at| &steps[at]);
        match &summarised.steps {
            Steps::Half(half) if set.is_empty() && other_is_set(plan, &sets, summarised, half) => {}
            Steps::Only(step) => {
                let number = steps.iter().position(|word| word == step).map(|at| at + 1);
                wanted.push((Some(step.clone()), number.into_iter().collect()));
                // The program sets the field in other steps than its frame file states.
                let others = set.iter().filter(|other| Some(**other) != number);
                wanted.extend(others.map(|other| (Some(name(other).to_owned()), vec![*other])));
                wanted.sort_by_key(|(_, numbers)| numbers.first().copied());
            }
            Steps::Each if !set.is_empty() => {
                wanted.extend(set.iter().map(|one| (Some(name(one).to_owned()), vec![*one])));
            }
            Steps::All | Steps::Each | Steps::Half(_) => {
                wanted.push((None, (0..=steps.len()).collect()));
            }
        }
        for (step, numbers) in wanted {
            for (fields, of_group) in groups.iter_mut().zip(&mut all) {
                let mut gathered = Gathered::new(summarised.kind, budget);
                let known = numbers.iter().filter_map(|&number| fields[at].get_mut(number)?.take());
                known.for_each(|known| gathered.join(known));
                of_group.push(StepValues { at, step: step.clone(), gathered });
            }
        }
    }
    all
}

/// The steps that set a field: those with a value other than 0 in some group.
fn set(groups: &[ByStep], at: usize, summarised: &SummarisedField) -> BTreeSet<usize> {
    let zero = zero(&summarised.field);
    let is_set = |(_, gathered): &(usize, &Option<Gathered>)| {
        gathered.as_ref().is_some_and(|gathered| !gathered.is_unset(zero))
    };
    let steps_of = |fields: &ByStep| -> Vec<usize> {
        fields[at].iter().enumerate().filter(is_set).map(|(step, _)| step).collect()
    };
    groups.iter().flat_map(steps_of).collect()
}

/// The word of a field for 0.
fn zero(field: &Field) -> Option<&str> {
    match field.data_type() {
        DataType::Boolean => Some("false"),
        _ => field.metadata().get("zero").map(String::as_str),
    }
}

/// Whether the other half of a span sets the field, in a table of spans.
fn other_is_set(
    plan: &ReadPlan,
    sets: &[BTreeSet<usize>],
    summarised: &SummarisedField,
    half: &str,
) -> bool {
    let field = |summarised: &SummarisedField| summarised.field.metadata().get("of").cloned();
    let is_other = |other: &SummarisedField| {
        let is_half = matches!(&other.steps, Steps::Half(theirs) if theirs != half);
        is_half && field(other) == field(summarised)
    };
    plan.summarised.iter().zip(sets).any(|(other, set)| is_other(other) && !set.is_empty())
}
