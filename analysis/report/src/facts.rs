//! The facts of a page, from an engine. Their size is bounded for captures of any size.

mod account;
mod clocks;
mod fields;
mod kernel;
mod lanes;
mod metrics;
mod points;
mod single;
mod slowest;
mod spans;
mod sweep;
mod triggers;

use std::cmp::Ordering;

use ppt_query::graph::PointGraph;
use ppt_query::summary::FrameSummary;
use ppt_query::{CaptureLoss, Engine, FrameTable, RowUnit, summary, why};

use crate::error::ReportError;
use crate::frame_facts::{FieldFacts, FrameFacts, SLOWEST};
use crate::span::{self, ChartSpan};
use crate::timeline_data::Timeline;
use crate::views::ReportView;

pub use account::{Account, CaptureAccount, ProcessAccount};
pub use clocks::HostClock;
use fields::KnownFields;
pub use kernel::{Calls, KernelFacts, STATES};
use metrics::ReadingTimes;
pub use metrics::{CounterFacts, HistogramFacts, MetricFacts};
use sweep::SweptFacts;
pub use triggers::Trigger;

/// A requested page.
#[derive(Debug, Clone)]
pub struct PageRequest {
    /// The command line, which the page shows.
    pub command: String,
    /// SQL that adds sections: a view or a SELECT each.
    pub views: Option<String>,
    /// Bytes for values; values beyond are rounded to three digits.
    pub memory: usize,
}

/// The facts of a page.
#[derive(Debug)]
pub struct Facts {
    pub(crate) command: String,
    pub(crate) loss: CaptureLoss,
    pub(crate) programs: Vec<ProcessAccount>,
    pub(crate) captures: Vec<CaptureAccount>,
    pub(crate) span: Option<ChartSpan>,
    pub(crate) frames: Vec<FrameFacts>,
    /// Spans and chains.
    pub(crate) wholes: Vec<FrameFacts>,
    pub(crate) metrics: MetricFacts,
    pub(crate) kernel: Option<KernelFacts>,
    /// Causes of the time above the 99th percentile of each interval.
    pub(crate) tails: Vec<why::Tail>,
    pub(crate) triggers: Vec<Trigger>,
    pub(crate) points: Option<PointGraph>,
    pub(crate) clocks: Vec<HostClock>,
    pub(crate) timeline: Timeline,
    pub(crate) account: Account,
    pub(crate) views: Vec<ReportView>,
}

impl Facts {
    /// Gathers all facts.
    ///
    /// # Errors
    /// A query failed: a capture cannot be read, or the query was cancelled or exceeds its memory.
    pub async fn gather(engine: &Engine, request: &PageRequest) -> Result<Facts, ReportError> {
        let summary_request = summary::SummaryRequest {
            memory: request.memory,
            ..summary::SummaryRequest::default()
        };
        let frames = engine.frames(None)?.into_iter();
        let frames: Vec<FrameTable> = frames.filter(|table| !is_kernel(engine, table)).collect();
        let readings = ReadingTimes::ask(engine).await?;
        let mut swept = SweptFacts::gather(engine, request.memory, &frames, &readings).await?;
        let tables = summaries(engine, &summary_request, frames, swept.as_ref()).await?;
        let drained = match &swept {
            Some(swept) if !engine.set().has_kernel() => swept.drained,
            _ => account::drained(engine).await?,
        };
        let times = tables.iter().filter_map(|table| table.1.groups.first()?.time);
        let span =
            span::shown(times.chain(readings.during()), span::union(drained, readings.during()));
        let (mut frames, mut wholes) =
            table_facts(engine, &summary_request, &tables, swept.as_mut(), span.as_ref()).await?;
        [&mut frames, &mut wholes].into_iter().for_each(|facts| sort_by_cost(facts));
        let intervals = number_intervals(&mut frames, 0);
        let names = [&intervals[..], &number_intervals(&mut wholes, intervals.len())].concat();
        let tables_of =
            |facts: &[FrameFacts]| facts.iter().map(|facts| find(&tables, facts)).collect();
        let frame_tables: Vec<_> = tables_of(&frames);
        let whole_tables: Vec<_> = tables_of(&wholes);
        slowest::add(engine, &frame_tables, &mut frames, swept.as_mut()).await?;
        slowest::add(engine, &whole_tables, &mut wholes, None).await?;
        let answer = engine.why_each(SLOWEST).await?;
        for slow in answer.slowest {
            let spans = spans_of(engine, &frame_tables, &slow);
            add_why(slow, spans.as_deref(), frames.iter_mut().chain(&mut wholes));
        }
        let account = Account::gather(engine).await?;
        let kernel = KernelFacts::gather(engine).await?;
        let triggers = triggers::gather(engine).await?;
        let drawn = lanes::Drawn {
            tables: &frame_tables,
            frames: &frames,
            wholes: &wholes,
            gaps: &account.gaps,
            triggers: &triggers,
            swept: swept.as_ref(),
        };
        let named = lanes::LaneNames { names, intervals: intervals.len() };
        let timeline = lanes::gather(engine, &drawn, named, span.as_ref()).await?;
        let views = match &request.views {
            None => Vec::new(),
            Some(text) => crate::views::all(engine, text).await?,
        };
        Ok(Facts {
            command: request.command.clone(),
            loss: engine.loss(),
            programs: account::programs(engine).await?,
            captures: account::captures(engine).await?,
            metrics: MetricFacts::gather(engine, &readings, span.as_ref()).await?,
            clocks: clocks::gather(engine, span.as_ref()).await?,
            span,
            frames,
            wholes,
            kernel,
            tails: answer.tails,
            triggers,
            points: points::gather(engine).await?,
            timeline,
            account,
            views,
        })
    }
}

/// Whether a table has records of the kernel, which have a section of their own.
fn is_kernel(engine: &Engine, table: &FrameTable) -> bool {
    engine.set().is_kernel(&table.buffer)
}

/// The summaries of all tables. If there was a common pass, it has those of `frames`.
async fn summaries(
    engine: &Engine,
    request: &summary::SummaryRequest,
    frames: Vec<FrameTable>,
    swept: Option<&SweptFacts>,
) -> Result<Vec<(FrameTable, FrameSummary)>, ReportError> {
    let mut tables: Vec<_> = swept.into_iter().flat_map(SweptFacts::totals).collect();
    let frames = frames.into_iter().filter(|_| swept.is_none());
    let frames = frames.map(|table| (table, RowUnit::Frame));
    let others = engine.spans_and_chains(None).into_iter();
    let others = others.filter(|(table, _)| !is_kernel(engine, table));
    for (table, unit) in frames.chain(others) {
        if let Some(total) = fields::total(engine, request.clone(), (&table, unit)).await? {
            tables.push((table, total));
        }
    }
    Ok(tables)
}

/// The facts of all tables: of frames, and of spans and chains. Takes the fields that a common pass has
/// summed up out of `swept`.
async fn table_facts(
    engine: &Engine,
    request: &summary::SummaryRequest,
    tables: &[(FrameTable, FrameSummary)],
    mut swept: Option<&mut SweptFacts>,
    span: Option<&ChartSpan>,
) -> Result<(Vec<FrameFacts>, Vec<FrameFacts>), ReportError> {
    let (mut frames, mut wholes) = (Vec::new(), Vec::new());
    for (table, total) in tables {
        let swept = swept.as_deref_mut().filter(|_| total.unit == RowUnit::Frame);
        let known = swept.and_then(|swept| {
            let is_of_span = swept.is_of(span);
            let fields = swept.take_fields(table)?;
            Some(KnownFields { slices: fields.slices.filter(|_| is_of_span), ..fields })
        });
        let facts = fields::frame(engine, request, (table, total), tables, (span, known)).await?;
        if total.unit == RowUnit::Frame { &mut frames } else { &mut wholes }.push(facts);
    }
    Ok((frames, wholes))
}

/// Sorts kinds by cost, and their fields by [`by_cost`].
fn sort_by_cost(facts: &mut [FrameFacts]) {
    facts.sort_by(|a, b| {
        let cost = b.cost().total_cmp(&a.cost());
        cost.then(b.count.cmp(&a.count)).then(a.label.cmp(&b.label))
    });
    facts.iter_mut().for_each(|facts| facts.fields.sort_by(by_cost));
}

/// The order of fields: intervals first, then by cost. The steps of a chain keep their order.
fn by_cost(a: &FieldFacts, b: &FieldFacts) -> Ordering {
    let first = b.interval.is_some().cmp(&a.interval.is_some());
    first.then(b.cost().total_cmp(&a.cost()))
}

/// Numbers intervals from `first` on, by cost. The number is the colour of the interval in all charts.
/// Returns the names of the intervals.
fn number_intervals(kinds: &mut [FrameFacts], first: usize) -> Vec<String> {
    let mut intervals: Vec<(f64, usize, usize)> = Vec::new();
    for (at, frame) in kinds.iter().enumerate() {
        let fields = frame.fields.iter().enumerate().filter(|entry| entry.1.interval.is_some());
        intervals.extend(fields.map(|(field, facts)| (facts.cost(), at, field)));
    }
    intervals.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mut names = Vec::new();
    for (number, &(_, frame, field)) in intervals.iter().enumerate() {
        let facts = &mut kinds[frame];
        names.push(format!("{}.{}", facts.label, facts.fields[field].label));
        facts.fields[field].interval = Some(first + number);
    }
    names
}

/// The name of the table of spans that has `slow`; None if it is not a span.
fn spans_of(engine: &Engine, tables: &[&FrameTable], slow: &why::SlowInterval) -> Option<String> {
    let has_name = |table: &&&FrameTable| table.buffer == slow.buffer && table.frame == slow.name;
    let table = tables.iter().find(has_name).filter(|_| slow.is_span)?;
    Some(engine.spans(table)?.name.table().to_owned())
}

/// Adds the reasons to the interval of a frame, or to the spans named `spans`.
fn add_why<'a>(
    slow: why::SlowInterval,
    spans: Option<&str>,
    mut kinds: impl Iterator<Item = &'a mut FrameFacts>,
) {
    let found = kinds.find_map(|facts| {
        if facts.buffer != slow.buffer {
            return None;
        }
        let (frame, unit) = (facts.frame.clone(), facts.unit);
        facts.fields.iter_mut().filter(|field| field.interval.is_some()).find(|field| match unit {
            RowUnit::Frame => !slow.is_span && slow.name == format!("{frame}.{}", field.name),
            RowUnit::Span => spans == Some(&frame),
            RowUnit::Chain => false,
        })
    });
    if let Some(field) = found {
        field.why.push(slow);
    }
}

fn find<'a>(tables: &'a [(FrameTable, FrameSummary)], facts: &FrameFacts) -> &'a FrameTable {
    let is_same = |entry: &&(FrameTable, FrameSummary)| {
        (&entry.0.buffer, &entry.0.frame, entry.1.unit) == (&facts.buffer, &facts.frame, facts.unit)
    };
    // `facts` were made from one of `tables`.
    &tables.iter().find(is_same).unwrap_or(&tables[0]).0
}
