//! What a page tells, asked of an engine: everything is bounded, however much was captured.

mod account;
mod fields;
mod lanes;
mod single;
mod slowest;

use ppt_query::{Engine, FrameTable, Loss, summary};

use crate::error::ReportError;
use crate::frames::FrameFacts;
use crate::span::{self, Span};
use crate::timeline::Timeline;
use crate::views::View;

pub use account::{Account, Capture, Program};

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

impl Facts {
    /// Asks all of it.
    ///
    /// # Errors
    /// See [`ReportError`].
    pub async fn gather(engine: &Engine, ask: &Ask) -> Result<Facts, ReportError> {
        let tables = engine.frames(None)?;
        let whole = summary::Ask { memory: ask.memory, ..summary::Ask::default() };
        let totals = engine.summary(&whole).await?;
        let drained = account::drained(engine).await?;
        let times = totals.iter().filter_map(|it| it.groups.first()?.time);
        let span = span::shown(times, drained);
        let mut frames = Vec::new();
        for (table, total) in tables.iter().zip(&totals) {
            frames.push(fields::frame(engine, &whole, table, total, &tables, span.as_ref()).await?);
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
            lanes::gather(engine, &tables, &frames, names, span.as_ref(), &account.gaps).await?;
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

fn find<'a>(tables: &'a [FrameTable], facts: &FrameFacts) -> &'a FrameTable {
    let is_it = |it: &&FrameTable| it.buffer == facts.buffer && it.frame == facts.frame;
    // Each of them was made of one.
    tables.iter().find(is_it).unwrap_or(&tables[0])
}
