//! What a page tells, asked of an engine: everything is bounded, however much was captured.

mod account;
mod fields;
mod slowest;

use ppt_query::stats::{Histogram, Summary};
use ppt_query::summary::{self, Group};
use ppt_query::{Engine, FrameTable, Loss};

use crate::axis::round_step;
use crate::error::ReportError;
use crate::timeline::Timeline;
use crate::views::View;

pub use account::{Account, Capture, Gap, Program};
pub use slowest::{SLOWEST, Slow};

/// What is asked.
#[derive(Debug, Clone)]
pub struct Ask {
    /// The command that makes the page.
    pub command: String,
    /// SQL that adds sections: a view or a SELECT each.
    pub views: Option<String>,
    /// Bytes for values; what does not fit is told to three digits.
    pub memory: usize,
}

/// What a page tells.
#[derive(Debug)]
pub struct Facts {
    pub(crate) command: String,
    pub(crate) loss: Loss,
    pub(crate) programs: Vec<Program>,
    pub(crate) captures: Vec<Capture>,
    pub(crate) span: Option<Span>,
    pub(crate) frames: Vec<FrameFacts>,
    pub(crate) timeline: Timeline,
    pub(crate) account: Account,
    pub(crate) views: Vec<View>,
}

/// The time that charts show, in slices. ns since the epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// The first and the last time that was taken.
    pub first: i64,
    pub last: i64,
    /// The beginning of the first slice.
    pub from: i64,
    /// How long each is.
    pub every: i64,
    /// How many there are.
    pub slices: usize,
}

/// At most so many slices: a chart is about 1,000 pixels wide.
const SLICES: f64 = 120.0;

impl Span {
    fn new(first: i64, last: i64) -> Span {
        let every = (round_step((last as f64 - first as f64) / SLICES) as i64).max(1);
        let from = first.div_euclid(every) * every;
        let slices = (last.saturating_sub(from) / every) as usize + 1;
        Span { first, last, from, every, slices }
    }

    /// How long it is, in ns.
    pub fn len(&self) -> i64 {
        self.last.saturating_sub(self.first)
    }

    fn slice(&self, time: i64) -> Option<usize> {
        let slice = usize::try_from(time.checked_sub(self.from)?.div_euclid(self.every)).ok()?;
        (slice < self.slices).then_some(slice)
    }
}

/// What is told of a kind of frames.
#[derive(Debug)]
pub struct FrameFacts {
    pub buffer: String,
    pub frame: String,
    /// How it is called on the page.
    pub label: String,
    pub count: u64,
    pub time: Option<(i64, i64)>,
    pub threads: u64,
    pub rate: Option<f64>,
    /// Frames in each slice.
    pub counts: Vec<u64>,
    pub fields: Vec<FieldFacts>,
    /// Enums and the like: how often each word is there.
    pub words: Vec<Words>,
}

/// Words of a field.
#[derive(Debug)]
pub struct Words {
    pub name: String,
    pub counts: Vec<(String, u64)>,
    pub nulls: u64,
}

/// What is told of a field of numbers.
#[derive(Debug)]
pub struct FieldFacts {
    pub name: String,
    pub unit: String,
    /// Its name on the timeline, where it is an interval of time.
    pub interval: Option<usize>,
    pub summary: Summary,
    pub busy: Option<f64>,
    pub spread: Option<Histogram>,
    /// In each slice; empty where nothing is drawn.
    pub over: Vec<Option<Summary>>,
    /// By the words of a column.
    pub groups: Option<Groups>,
    pub slowest: Vec<Slow>,
    /// Columns of `slowest` beside the standard ones.
    pub columns: Vec<String>,
}

/// Frames of a kind by the words of a column.
#[derive(Debug)]
pub struct Groups {
    pub column: String,
    pub rows: Vec<(String, Summary, Option<f64>)>,
}

impl FieldFacts {
    /// What all of it together took, in ns; an interval of time only.
    pub fn cost(&self) -> f64 {
        if self.interval.is_some() { self.summary.sum.float() } else { 0.0 }
    }
}

impl FrameFacts {
    /// What it costs at most.
    pub fn cost(&self) -> f64 {
        self.fields.iter().map(FieldFacts::cost).fold(0.0, f64::max)
    }
}

impl Facts {
    /// Asks all of it.
    ///
    /// # Errors
    /// See [`ReportError`].
    pub async fn gather(engine: &Engine, ask: &Ask) -> Result<Facts, ReportError> {
        let tables = engine.frames(None)?;
        let whole = ask_of(ask);
        let totals = engine.summary(&whole).await?;
        let drained = account::drained(engine).await?;
        let times = totals.iter().filter_map(|it| it.groups.first()?.time);
        let span = span(times, drained);
        let mut frames = Vec::new();
        for (table, total) in tables.iter().zip(&totals) {
            frames.push(fields::frame(engine, ask, table, total, &tables, span.as_ref()).await?);
        }
        frames.sort_by(|a, b| {
            b.cost().total_cmp(&a.cost()).then(b.count.cmp(&a.count)).then(a.label.cmp(&b.label))
        });
        // The same number, and so the same colour, everywhere: by what costs most.
        let mut names = Vec::new();
        let mut intervals: Vec<(f64, usize, usize)> = Vec::new();
        for (at, frame) in frames.iter_mut().enumerate() {
            frame.fields.sort_by(|a, b| {
                b.interval.is_some().cmp(&a.interval.is_some()).then(b.cost().total_cmp(&a.cost()))
            });
            let of = frame.fields.iter().enumerate().filter(|it| it.1.interval.is_some());
            intervals.extend(of.map(|(field, it)| (it.cost(), at, field)));
        }
        intervals.sort_by(|a, b| b.0.total_cmp(&a.0));
        for (number, &(_, frame, field)) in intervals.iter().enumerate() {
            let facts = &mut frames[frame];
            names.push(format!("{}.{}", facts.label, facts.fields[field].name));
            facts.fields[field].interval = Some(number);
        }
        let tables: Vec<&FrameTable> = frames.iter().map(|it| find(&tables, it)).collect();
        slowest::add(engine, &tables, &mut frames).await?;
        let account = Account::gather(engine).await?;
        let timeline =
            Timeline::gather(engine, &tables, &frames, names, span.as_ref(), &account.gaps).await?;
        let views = match &ask.views {
            None => Vec::new(),
            Some(text) => crate::views::all(engine, text).await?,
        };
        Ok(Facts {
            command: ask.command.clone(),
            loss: engine.loss(),
            programs: account::programs(engine).await?,
            captures: account::captures(engine).await?,
            span,
            frames,
            timeline,
            account,
            views,
        })
    }
}

fn ask_of(ask: &Ask) -> summary::Ask {
    summary::Ask { memory: ask.memory, ..summary::Ask::default() }
}

fn find<'a>(tables: &'a [FrameTable], facts: &FrameFacts) -> &'a FrameTable {
    let is_it = |it: &&FrameTable| it.buffer == facts.buffer && it.frame == facts.frame;
    // Each of them was made of one.
    tables.iter().find(is_it).unwrap_or(&tables[0])
}

/// The first group of a kind, which is all of it where nothing is grouped.
fn whole(total: &summary::FrameSummary) -> Option<&Group> {
    total.groups.first()
}

/// The time that is shown: what was taken, as far as the listener's own times make it likely. A field
/// that holds anything else but a time does not stretch all charts.
fn span(times: impl Iterator<Item = (i64, i64)>, drained: Option<(i64, i64)>) -> Option<Span> {
    let taken = times.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
    let (first, last) = taken.or(drained)?;
    let Some((from, to)) = drained else { return Some(Span::new(first, last)) };
    let slack = to.saturating_sub(from).max(1_000_000_000);
    let (least, most) = (from.saturating_sub(slack), to.saturating_add(slack));
    let first = first.clamp(least, most);
    Some(Span::new(first, last.clamp(first, most)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_are_round_and_hold_everything() {
        let span = Span::new(1_000_000_123, 6_000_000_000);
        assert_eq!(span.every, 50_000_000);
        assert_eq!((span.slice(span.first), span.slice(span.last)), (Some(0), Some(100)));
        assert!(span.slices <= 1 + SLICES as usize);
        assert_eq!(Span::new(5, 5).slices, 1);
        assert_eq!(span.slice(i64::MIN), None);
        assert_eq!(span.slice(999_999_999), None);
    }

    #[test]
    fn a_wild_time_does_not_stretch_the_charts() {
        const S: i64 = 1_000_000_000;
        let shown = span([(-7 * S, 110 * S)].into_iter(), Some((101 * S, 111 * S))).unwrap();
        assert_eq!((shown.first, shown.last), (91 * S, 110 * S));
        let shown = span([(100 * S, i64::MAX)].into_iter(), Some((101 * S, 111 * S))).unwrap();
        assert_eq!((shown.first, shown.last), (100 * S, 121 * S));
        assert!(span([].into_iter(), None).is_none());
    }
}
