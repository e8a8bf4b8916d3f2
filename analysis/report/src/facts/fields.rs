//! What is told of the fields of a kind of frames.

use ppt_query::arrow::datatypes::{Field, Schema};
use ppt_query::stats::{Histogram, Sketch};
use ppt_query::summary::{Ask, FieldSummary, FrameSummary, Group, Values, ends};
use ppt_query::{Engine, FrameTable, SYMBOL, Unit};

use crate::error::ReportError;
use crate::frames::{FieldFacts, FrameFacts, Groups, Keys, Words};
use crate::span::Span;

/// Bars of a histogram.
const BINS: usize = 48;
/// Groups that stand side by side; the others are rarer.
const GROUPS: usize = 12;
/// Whole numbers that take more values are no kinds of something.
const KINDS: usize = 12;
/// Words of a field that are told.
const WORDS: usize = 12;
/// Fields of a kind that are drawn; the others are told as numbers.
const DRAWN: usize = 16;

pub(super) async fn frame(
    engine: &Engine,
    ask: &Ask,
    (table, total): (&FrameTable, &FrameSummary),
    tables: &[(FrameTable, FrameSummary)],
    span: Option<&Span>,
) -> Result<FrameFacts, ReportError> {
    let of_name = |name: &str| tables.iter().filter(|it| it.0.frame == name).count();
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
    let Some(group) = whole(total).filter(|it| it.count > 0) else { return Ok(facts) };
    (facts.count, facts.time, facts.threads) = (group.count, group.time, group.threads);
    facts.rate = group.rate(None);
    let slices = match span {
        Some(span) => slices(engine, ask, (table, total.unit), span).await?,
        None => Vec::new(),
    };
    facts.counts = vec![0; span.map_or(0, |it| it.slices)];
    for (at, slice) in &slices {
        facts.counts[*at] = slice.count;
    }
    let schema = table.table.schema();
    let mut kinds = None;
    for field in &group.fields {
        match &field.values {
            Values::Words { counts, nulls } => {
                if kinds.is_none() && counts.len() > 1 {
                    kinds = Some((field.name.clone(), true));
                }
                let mut counts = counts.clone();
                let rest: u64 = counts.iter().skip(WORDS).map(|it| it.1).sum();
                if rest > 0 {
                    let text = format!("{} more", counts.len() - WORDS);
                    counts.truncate(WORDS);
                    counts.push((text, rest));
                }
                facts.words.push(Words { name: field.label(), counts, nulls: *nulls });
            }
            Values::Keys { distinct, count, .. } => {
                facts.keys.push(Keys { label: field.label(), distinct: *distinct, count: *count });
            }
            Values::Numbers { summary, busy, .. } => {
                let kind = kind(schema, &field.name);
                // A span or a chain is told by its times: its frames tell the rest.
                let wanted = match total.unit {
                    Unit::Frame => facts.fields.len() < DRAWN,
                    Unit::Span | Unit::Chain => kind == Kind::Interval,
                };
                let drawn = wanted && summary.count > 0;
                let spread = match drawn {
                    true => spread(engine, ask, (table, total.unit), field).await?,
                    false => None,
                };
                let is_kind = kind == Kind::Number
                    && spread
                        .as_ref()
                        .is_some_and(|it| (2..=KINDS).contains(&it.buckets().count()));
                if is_kind && field.unit.is_empty() && kinds.is_none() {
                    kinds = Some((field.name.clone(), false));
                }
                let over = if drawn { over(&slices, field, &facts.counts) } else { Vec::new() };
                facts.fields.push(FieldFacts {
                    name: field.name.clone(),
                    label: field.label(),
                    unit: field.unit.clone(),
                    interval: (kind == Kind::Interval).then_some(0),
                    summary: (**summary).clone(),
                    busy: *busy,
                    spread: spread.and_then(|it| Histogram::of(&it, BINS, None)),
                    over,
                    groups: None,
                    is_step: kind == Kind::Step,
                    slowest: Vec::new(),
                    why: Vec::new(),
                    columns: Vec::new(),
                });
            }
        }
    }
    join_halves(&mut facts.words);
    if let Some((column, _)) = kinds {
        add_groups(engine, ask, (table, total.unit), &column, &mut facts).await?;
    }
    Ok(facts)
}

/// Words that the begins and the ends of spans have alike are told once.
fn join_halves(words: &mut Vec<Words>) {
    for begin in (0..words.len()).rev() {
        let Some(name) = words[begin].name.strip_prefix("begin_").map(str::to_owned) else {
            continue;
        };
        let is_its = |other: &Words| other.name.strip_prefix("end_") == Some(&name);
        let Some(end) = words.iter().position(is_its) else { continue };
        let same =
            words[begin].counts == words[end].counts && words[begin].nulls == words[end].nulls;
        if same && words.iter().all(|other| other.name != name) {
            words[begin].name = name;
            words.remove(end);
        }
    }
}

/// What a field is.
#[derive(PartialEq, Eq)]
enum Kind {
    /// An interval whose ends have a place in time.
    Interval,
    /// Between two steps of a chain.
    Step,
    Number,
    Other,
}

fn kind(schema: &Schema, name: &str) -> Kind {
    let Ok(field) = schema.field_with_name(name) else { return Kind::Other };
    let says = |field: &Field, key: &str| field.metadata().get(key).cloned();
    match says(field, "role").as_deref() {
        Some("length") => match ends(schema, field) {
            Some(_) => Kind::Interval,
            None => Kind::Other,
        },
        Some("dur" | "total") => Kind::Interval,
        Some("between") => Kind::Step,
        // An address is a number that measures nothing.
        _ if field.metadata().contains_key(SYMBOL) => Kind::Other,
        _ if field.data_type().is_integer() => Kind::Number,
        _ => Kind::Other,
    }
}

/// What a question says of all of a table.
pub(super) async fn total(
    engine: &Engine,
    ask: Ask,
    (table, unit): (&FrameTable, Unit),
) -> Result<Option<FrameSummary>, ReportError> {
    let ask = Ask { frame: Some(table.frame.clone()), ..ask };
    let all = engine.summary(&ask).await?;
    // A kind of frames may be called as spans are.
    Ok(all.into_iter().find(|it| it.buffer == table.buffer && it.unit == unit))
}

async fn asked(
    engine: &Engine,
    ask: Ask,
    of: (&FrameTable, Unit),
) -> Result<Vec<Group>, ReportError> {
    Ok(total(engine, ask, of).await?.map(|it| it.groups).unwrap_or_default())
}

/// By the number of the slice.
async fn slices(
    engine: &Engine,
    ask: &Ask,
    (table, unit): (&FrameTable, Unit),
    span: &Span,
) -> Result<Vec<(usize, Group)>, ReportError> {
    let mut of = ask.clone();
    of.every = Some(span.every);
    of.filter = within(table, span);
    let groups = asked(engine, of, (table, unit)).await?.into_iter();
    Ok(groups.filter_map(|it| Some((span.slice(it.slice?)?, it))).collect())
}

/// What is true of rows that are on charts. There are no more slices than those, whatever times say.
fn within(table: &FrameTable, span: &Span) -> Option<String> {
    let time = crate::times::time_columns(table.table.as_ref())
        .map(|name| format!("\"{}\"", name.replace('"', "\"\"")));
    let time: Vec<String> = time.collect();
    (!time.is_empty()).then(|| {
        let at = |ns: i64| format!("arrow_cast({ns}, 'Timestamp(Nanosecond, Some(\"UTC\"))')");
        let (from, to) = (at(span.first), at(span.last));
        format!("coalesce({}) BETWEEN {from} AND {to}", time.join(", "))
    })
}

/// Whether both are said of one field, and of frames of one step.
fn is_same(one: &FieldSummary, other: &FieldSummary) -> bool {
    (&one.name, &one.step) == (&other.name, &other.step)
}

fn over(
    slices: &[(usize, Group)],
    field: &FieldSummary,
    counts: &[u64],
) -> Vec<Option<ppt_query::stats::Summary>> {
    let mut over = vec![None; counts.len()];
    for (at, slice) in slices {
        if let Some(FieldSummary { values: Values::Numbers { summary, .. }, .. }) =
            slice.fields.iter().find(|it| is_same(it, field))
        {
            over[*at] = Some((**summary).clone()).filter(|it| it.count > 0);
        }
    }
    over
}

async fn spread(
    engine: &Engine,
    ask: &Ask,
    table: (&FrameTable, Unit),
    field: &FieldSummary,
) -> Result<Option<Sketch>, ReportError> {
    let mut of = ask.clone();
    of.spread = Some(field.name.clone());
    let groups = asked(engine, of, table).await?;
    let fields = groups.into_iter().flat_map(|it| it.fields);
    Ok(fields.filter(|it| is_same(it, field)).find_map(|it| match it.values {
        Values::Numbers { spread, .. } => spread.map(|it| *it),
        Values::Words { .. } | Values::Keys { .. } => None,
    }))
}

/// Intervals side by side, by what kind of thing the frames tell.
async fn add_groups(
    engine: &Engine,
    ask: &Ask,
    table: (&FrameTable, Unit),
    column: &str,
    facts: &mut FrameFacts,
) -> Result<(), ReportError> {
    let mut of = ask.clone();
    of.by = vec![column.to_owned()];
    let mut groups = asked(engine, of, table).await?;
    groups.sort_by_key(|it| std::cmp::Reverse(it.count));
    groups.truncate(GROUPS);
    for field in facts.fields.iter_mut().filter(|it| it.interval.is_some()) {
        let mut rows = Vec::new();
        for group in &groups {
            let word = group.by.first().cloned().flatten().unwrap_or_else(|| "none".to_owned());
            let own = group.fields.iter().find(|it| it.label() == field.label);
            if let Some(FieldSummary { values: Values::Numbers { summary, busy, .. }, .. }) = own
                && summary.count > 0
            {
                rows.push((word, (**summary).clone(), *busy));
            }
        }
        field.groups = (rows.len() > 1).then(|| Groups { column: column.to_owned(), rows });
    }
    Ok(())
}

/// The first group of a kind, which is all of it where nothing is grouped.
fn whole(total: &FrameSummary) -> Option<&Group> {
    total.groups.first()
}
