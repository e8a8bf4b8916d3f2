//! Facts about the fields of one kind of frames.

use ppt_query::arrow::datatypes::{Field, Schema};
use ppt_query::stats::{Histogram, Sketch};
use ppt_query::summary::{FieldSummary, FrameSummary, Group, SummaryRequest, SummaryValues, ends};
use ppt_query::{Engine, FrameTable, RowUnit, SYMBOL, sql_identifier};

use crate::error::ReportError;
use crate::frame_facts::{FieldFacts, FieldKeys, FieldWords, FrameFacts, GroupFacts, Groups};
use crate::span::ChartSpan;

/// Bins of a histogram.
const BINS: usize = 48;
/// Maximum number of groups in a comparison, the most frequent first.
const GROUPS: usize = 12;
/// Maximum number of distinct integers for which a column counts as a category.
const KINDS: usize = 12;
/// Maximum number of values that are listed for a field.
const WORDS: usize = 12;
/// Maximum number of fields of a kind that are drawn; the others are numbers in a table.
pub(super) const DRAWN: usize = 16;

pub(super) async fn frame(
    engine: &Engine,
    request: &SummaryRequest,
    (table, total): (&FrameTable, &FrameSummary),
    tables: &[(FrameTable, FrameSummary)],
    (span, known): (Option<&ChartSpan>, Option<KnownFields>),
) -> Result<FrameFacts, ReportError> {
    let of_name = |name: &str| tables.iter().filter(|table| table.0.frame == name).count();
    let label = match of_name(&table.frame) {
        1 => table.frame.clone(),
        _ => format!("{}.{}", table.buffer, table.frame),
    };
    let mut facts = FrameFacts {
        unit: total.unit,
        buffer: table.buffer.clone(),
        frame: table.frame.clone(),
        label,
        count: 0,
        time: None,
        threads: 0,
        rate: None,
        counts: Vec::new(),
        fields: Vec::new(),
        words: Vec::new(),
        keys: Vec::new(),
    };
    let Some(group) = whole(total).filter(|whole| whole.count > 0) else { return Ok(facts) };
    (facts.count, facts.time, facts.threads) = (group.count, group.time, group.threads);
    facts.rate = group.rate(None);
    let KnownFields { slices, grouped } = known.unwrap_or_default();
    let slices = match (span, slices) {
        (None, _) => Vec::new(),
        (Some(span), Some(slices)) => by_number(slices, span),
        (Some(span), None) => self::slices(engine, request, (table, total.unit), span).await?,
    };
    facts.counts = vec![0; span.map_or(0, |span| span.slices)];
    for (at, slice) in &slices {
        facts.counts[*at] = slice.count;
    }
    let schema = table.table.schema();
    let mut spreads = Vec::new();
    for (field, is_drawn) in group.fields.iter().zip(drawn(schema, total.unit, group)) {
        spreads.push(match &field.values {
            SummaryValues::Numbers { spread: Some(spread), .. } if is_drawn => {
                Some((**spread).clone())
            }
            SummaryValues::Numbers { .. } if is_drawn => {
                spread(engine, request, (table, total.unit), field).await?
            }
            _ => None,
        });
    }
    let kinds = kinds_column(schema, group, &spreads);
    let drawn = drawn(schema, total.unit, group);
    for ((field, is_drawn), spread) in group.fields.iter().zip(drawn).zip(spreads) {
        let drawn = is_drawn.then_some(Drawn { slices: &slices, spread });
        add_field(&mut facts, schema, field, drawn);
    }
    join_halves(&mut facts.words);
    if let Some(column) = kinds {
        let groups = match grouped.filter(|grouped| grouped.0 == column) {
            Some((_, groups)) => groups,
            None => {
                let request = SummaryRequest { by: vec![column.clone()], ..request.clone() };
                groups(engine, request, (table, total.unit)).await?
            }
        };
        add_groups(groups, &column, &mut facts);
    }
    Ok(facts)
}

/// The data of a field's charts.
struct Drawn<'a> {
    /// Summaries of slices, each with its number.
    slices: &'a [(usize, Group)],
    spread: Option<Sketch>,
}

/// Adds the facts about a field. `drawn`: None if the field has no charts.
fn add_field(
    facts: &mut FrameFacts,
    schema: &Schema,
    field: &FieldSummary,
    drawn: Option<Drawn<'_>>,
) {
    match &field.values {
        SummaryValues::Words { counts, nulls } => {
            let mut counts = counts.clone();
            let rest: u64 = counts.iter().skip(WORDS).map(|count| count.1).sum();
            if rest > 0 {
                let text = format!("{} more", counts.len() - WORDS);
                counts.truncate(WORDS);
                counts.push((text, rest));
            }
            facts.words.push(FieldWords { name: field.label(), counts, nulls: *nulls });
        }
        SummaryValues::Keys { distinct, count, .. } => {
            facts.keys.push(FieldKeys { label: field.label(), distinct: *distinct, count: *count });
        }
        SummaryValues::Numbers { summary, busy, .. } => {
            let kind = kind(schema, &field.name);
            let (over, spread) = match drawn {
                Some(drawn) => (over(drawn.slices, field, &facts.counts), drawn.spread),
                None => (Vec::new(), None),
            };
            facts.fields.push(FieldFacts {
                name: field.name.clone(),
                label: field.label(),
                unit: field.unit.clone(),
                interval: (kind == ReportedField::Interval).then_some(0),
                summary: (**summary).clone(),
                busy: *busy,
                spread: spread.and_then(|spread| Histogram::from_sketch(&spread, BINS, None)),
                over,
                groups: None,
                is_step: kind == ReportedField::Step,
                slowest: Vec::new(),
                why: Vec::new(),
                columns: Vec::new(),
            });
        }
    }
}

/// Facts about one kind of frames from the common pass over all frames.
#[derive(Debug, Default)]
pub(super) struct KnownFields {
    /// Summaries of each slice.
    pub slices: Option<Vec<Group>>,
    /// The column of categories, and the intervals of each.
    pub grouped: Option<(String, Vec<Group>)>,
}

/// The fields of a kind that are drawn.
fn drawn(schema: &Schema, unit: RowUnit, group: &Group) -> Vec<bool> {
    let mut numbers = 0;
    let is_drawn = |field: &FieldSummary| {
        let SummaryValues::Numbers { summary, .. } = &field.values else { return false };
        numbers += 1;
        // A span or a chain is described by its times and by its frames.
        let wanted = match unit {
            RowUnit::Frame => numbers <= DRAWN,
            RowUnit::Span | RowUnit::Chain => kind(schema, &field.name) == ReportedField::Interval,
        };
        wanted && summary.count > 0
    };
    group.fields.iter().map(is_drawn).collect()
}

/// The column that divides frames into categories, if there is one: text, or few distinct integers.
fn kinds_column(schema: &Schema, group: &Group, spreads: &[Option<Sketch>]) -> Option<String> {
    let is_kind = |(field, spread): &(&FieldSummary, &Option<Sketch>)| match &field.values {
        SummaryValues::Words { counts, .. } => counts.len() > 1,
        SummaryValues::Numbers { .. } => {
            let few = |spread: &Sketch| (2..=KINDS).contains(&spread.buckets().count());
            let is_number =
                kind(schema, &field.name) == ReportedField::Number && field.unit.is_empty();
            is_number && spread.as_ref().is_some_and(few)
        }
        SummaryValues::Keys { .. } => false,
    };
    let found = group.fields.iter().zip(spreads).find(is_kind);
    found.map(|(field, _)| field.name.clone())
}

/// The probable column of categories, from a sample of the frames.
pub(super) fn likely_kinds(table: &FrameTable, some: &FrameSummary) -> Option<String> {
    let (schema, group) = (table.table.schema(), whole(some)?);
    let spread = |(field, is_drawn): (&FieldSummary, bool)| match &field.values {
        SummaryValues::Numbers { spread, .. } if is_drawn => spread.as_deref().cloned(),
        _ => None,
    };
    let drawn = drawn(schema, some.unit, group);
    let spreads: Vec<_> = group.fields.iter().zip(drawn).map(spread).collect();
    kinds_column(schema, group, &spreads)
}

/// Values that begins and ends of spans share are listed once.
fn join_halves(words: &mut Vec<FieldWords>) {
    for begin in (0..words.len()).rev() {
        let Some(name) = words[begin].name.strip_prefix("begin_").map(str::to_owned) else {
            continue;
        };
        let is_its = |other: &FieldWords| other.name.strip_prefix("end_") == Some(&name);
        let Some(end) = words.iter().position(is_its) else { continue };
        let same =
            words[begin].counts == words[end].counts && words[begin].nulls == words[end].nulls;
        if same && words.iter().all(|other| other.name != name) {
            words[begin].name = name;
            words.remove(end);
        }
    }
}

/// The role of a field.
#[derive(PartialEq, Eq)]
enum ReportedField {
    /// An interval whose ends are times.
    Interval,
    /// The time between two steps of a chain.
    Step,
    Number,
    Other,
}

fn kind(schema: &Schema, name: &str) -> ReportedField {
    let Ok(field) = schema.field_with_name(name) else { return ReportedField::Other };
    let metadata = |field: &Field, key: &str| field.metadata().get(key).cloned();
    match metadata(field, "role").as_deref() {
        Some("length") => match ends(schema, field) {
            Some(_) => ReportedField::Interval,
            None => ReportedField::Other,
        },
        Some("dur" | "total") => ReportedField::Interval,
        Some("between") => ReportedField::Step,
        // An address is not a quantity.
        _ if field.metadata().contains_key(SYMBOL) => ReportedField::Other,
        _ if field.data_type().is_integer() => ReportedField::Number,
        _ => ReportedField::Other,
    }
}

/// The summary of a whole table.
pub(super) async fn total(
    engine: &Engine,
    request: SummaryRequest,
    (table, unit): (&FrameTable, RowUnit),
) -> Result<Option<FrameSummary>, ReportError> {
    let request = SummaryRequest { frame: Some(table.frame.clone()), ..request };
    let summaries = engine.summary(&request).await?;
    // A kind of frames and a kind of spans may have the same name.
    Ok(summaries.into_iter().find(|summary| summary.buffer == table.buffer && summary.unit == unit))
}

/// The groups of a summary. Empty if the table has no rows.
async fn groups(
    engine: &Engine,
    request: SummaryRequest,
    table: (&FrameTable, RowUnit),
) -> Result<Vec<Group>, ReportError> {
    Ok(total(engine, request, table).await?.map(|total| total.groups).unwrap_or_default())
}

/// The summaries of each slice, by its number.
async fn slices(
    engine: &Engine,
    request: &SummaryRequest,
    (table, unit): (&FrameTable, RowUnit),
    span: &ChartSpan,
) -> Result<Vec<(usize, Group)>, ReportError> {
    let request =
        SummaryRequest { every: Some(span.every), filter: within(table, span), ..request.clone() };
    Ok(by_number(groups(engine, request, (table, unit)).await?, span))
}

/// Summaries of the slices within the span, each with its number.
fn by_number(groups: Vec<Group>, span: &ChartSpan) -> Vec<(usize, Group)> {
    let numbered = |group: Group| Some((span.slice(group.slice?)?, group));
    groups.into_iter().filter_map(numbered).collect()
}

/// A condition that selects rows within charts. It bounds the number of slices for all times of rows.
fn within(table: &FrameTable, span: &ChartSpan) -> Option<String> {
    let time = crate::times::time_columns(table.table.as_ref()).map(|name| sql_identifier(&name));
    let time: Vec<String> = time.collect();
    (!time.is_empty()).then(|| {
        let at = |ns: i64| format!("arrow_cast({ns}, 'Timestamp(Nanosecond, Some(\"UTC\"))')");
        let (from, to) = (at(span.first), at(span.last));
        format!("coalesce({}) BETWEEN {from} AND {to}", time.join(", "))
    })
}

/// Whether both summaries are of the same field in frames of the same step.
fn is_same(field: &FieldSummary, other: &FieldSummary) -> bool {
    (&field.name, &field.step) == (&other.name, &other.step)
}

/// The summary of a field in each slice.
fn over(
    slices: &[(usize, Group)],
    field: &FieldSummary,
    counts: &[u64],
) -> Vec<Option<ppt_query::stats::Summary>> {
    let mut over = vec![None; counts.len()];
    for (at, slice) in slices {
        if let Some(FieldSummary { values: SummaryValues::Numbers { summary, .. }, .. }) =
            slice.fields.iter().find(|summary| is_same(summary, field))
        {
            over[*at] = Some((**summary).clone()).filter(|summary| summary.count > 0);
        }
    }
    over
}

/// The distribution of a field. None if it has no numbers.
async fn spread(
    engine: &Engine,
    request: &SummaryRequest,
    table: (&FrameTable, RowUnit),
    field: &FieldSummary,
) -> Result<Option<Sketch>, ReportError> {
    let request = SummaryRequest { spread: Some(field.name.clone()), ..request.clone() };
    let groups = groups(engine, request, table).await?;
    let fields = groups.into_iter().flat_map(|group| group.fields);
    Ok(fields.filter(|summary| is_same(summary, field)).find_map(|summary| match summary.values {
        SummaryValues::Numbers { spread, .. } => spread.map(|spread| *spread),
        SummaryValues::Words { .. } | SummaryValues::Keys { .. } => None,
    }))
}

/// Adds summaries of intervals for each category.
fn add_groups(mut groups: Vec<Group>, column: &str, facts: &mut FrameFacts) {
    groups.sort_by_key(|group| std::cmp::Reverse(group.count));
    groups.truncate(GROUPS);
    for field in facts.fields.iter_mut().filter(|field| field.interval.is_some()) {
        let mut rows = Vec::new();
        for group in &groups {
            let value = group.by.first().cloned().flatten().unwrap_or_else(|| "none".to_owned());
            let in_group = group.fields.iter().find(|summary| summary.label() == field.label);
            if let Some(FieldSummary {
                values: SummaryValues::Numbers { summary, busy, .. }, ..
            }) = in_group
                && summary.count > 0
            {
                rows.push(GroupFacts { value, summary: (**summary).clone(), busy: *busy });
            }
        }
        field.groups = (rows.len() > 1).then(|| Groups { column: column.to_owned(), rows });
    }
}

/// The first group, which is the whole table if it is not grouped.
fn whole(total: &FrameSummary) -> Option<&Group> {
    total.groups.first()
}
