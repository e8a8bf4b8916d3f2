//! Facts about frames from one common pass over all chunks. Other facts need a query each.

use std::collections::HashMap;

use ppt_query::arrow::array::RecordBatch;
use ppt_query::summary::{FrameSummary, SummaryValues, Sweep, Swept, TimeSlices};
use ppt_query::{Engine, FrameColumns, FrameTable};

use super::fields::{DRAWN, KnownFields, likely_kinds};
use super::metrics::ReadingTimes;
use crate::error::ReportError;
use crate::frame_facts::SLOWEST;
use crate::span::{self, ChartSpan};

/// Maximum number of numeric fields that are summarised by slice at a time: each may need memory for
/// each slice.
const MAX_FIELDS: usize = 32;

/// Facts about kinds of frames from the common pass.
#[derive(Debug, Default)]
pub(super) struct SweptFacts {
    /// One for each kind, in the order of `frames`.
    frames: Vec<SweptKind>,
    /// The first and the last time at which the listener drained frames, ns since the epoch.
    pub drained: Option<(i64, i64)>,
    /// When the first interval on a chart began. The outer None: not determined.
    pub began: Option<Option<i64>>,
    /// The range that the slices divide.
    guess: Option<ChartSpan>,
}

/// Facts about one kind of frames.
#[derive(Debug)]
struct SweptKind {
    table: FrameTable,
    total: FrameSummary,
    known: KnownFields,
    longest: HashMap<String, Vec<RecordBatch>>,
}

impl SweptFacts {
    /// Reads all `frames`. None: the captures cannot be read in one pass.
    pub async fn gather(
        engine: &Engine,
        memory: usize,
        frames: &[FrameTable],
        readings: &ReadingTimes,
    ) -> Result<Option<SweptFacts>, ReportError> {
        let Some(guess) = guess(engine, frames, readings)? else { return Ok(None) };
        let Some(facts) = SweptFacts::read(engine, memory, frames, guess).await? else {
            return Ok(None);
        };
        // Heads of chunks bound the times of frames, but do not give them exactly.
        let right = facts.span(readings);
        let (Some(guess), Some(right)) = (guess, right) else { return Ok(Some(facts)) };
        if facts.fits(&guess, &right) {
            return Ok(Some(facts));
        }
        SweptFacts::read(engine, memory, frames, Some(right)).await
    }

    async fn read(
        engine: &Engine,
        memory: usize,
        frames: &[FrameTable],
        span: Option<ChartSpan>,
    ) -> Result<Option<SweptFacts>, ReportError> {
        let mut facts = SweptFacts { guess: span, ..SweptFacts::default() };
        let slices = span.map(|span| TimeSlices {
            first: span.first,
            last: span.last,
            every: span.every,
            least: least(&span),
        });
        let sweep = Sweep {
            memory,
            slices: None,
            sliced: DRAWN,
            by: Vec::new(),
            longest: SLOWEST,
            is_sample: true,
        };
        let mut rest = frames;
        while !rest.is_empty() {
            let Some(sample) = engine.sweep(rest, &sweep).await? else { return Ok(None) };
            let (these, others) = rest.split_at(kinds_per_pass(engine, rest, &sample, memory));
            let by = these.iter().zip(&sample.frames);
            let by: Vec<_> = by.map(|(table, some)| likely_kinds(table, &some.total)).collect();
            let whole = Sweep { slices, by: by.clone(), is_sample: false, ..sweep.clone() };
            let Some(swept) = engine.sweep(these, &whole).await? else { return Ok(None) };
            facts.add(these, by, swept, span.is_some());
            rest = others;
        }
        Ok(Some(facts))
    }

    fn add(
        &mut self,
        tables: &[FrameTable],
        by: Vec<Option<String>>,
        swept: Swept,
        has_slices: bool,
    ) {
        self.drained = span::union(self.drained, swept.drained);
        if has_slices {
            let began = self.began.flatten().into_iter().chain(swept.began).min();
            self.began = Some(began);
        }
        for ((table, by), frames) in tables.iter().zip(by).zip(swept.frames) {
            let fields = KnownFields {
                slices: has_slices.then_some(frames.slices),
                grouped: by.map(|column| (column, frames.groups)),
            };
            self.frames.push(SweptKind {
                table: table.clone(),
                total: frames.total,
                known: fields,
                longest: frames.longest.into_iter().collect(),
            });
        }
    }

    /// The times of the first and the last frame.
    fn taken(&self) -> Option<(i64, i64)> {
        let times = self.frames.iter().map(|kind| kind.total.groups.first()?.time);
        times.fold(None, span::union)
    }

    fn span(&self, readings: &ReadingTimes) -> Option<ChartSpan> {
        let during = readings.during();
        span::shown(self.taken().into_iter().chain(during), span::union(self.drained, during))
    }

    /// Whether the slices of both ranges agree: all frames are within both.
    fn fits(&self, guess: &ChartSpan, right: &ChartSpan) -> bool {
        let holds = |span: &ChartSpan| {
            self.taken().is_none_or(|(first, last)| span.first <= first && last <= span.last)
        };
        let same = (guess.from, guess.every) == (right.from, right.every);
        guess == right || same && holds(guess) && holds(right)
    }

    /// Whether the summaries by slice belong to this range.
    pub fn is_of(&self, span: Option<&ChartSpan>) -> bool {
        match (&self.guess, span) {
            (Some(guess), Some(span)) => self.fits(guess, span),
            (_, span) => span.is_none(),
        }
    }

    /// When the first interval began for which charts of this range may be extended. The outer None:
    /// not determined.
    pub fn began(&self, span: &ChartSpan) -> Option<Option<i64>> {
        let began = self.began.filter(|_| self.is_of(Some(span)))?;
        let looked_at = least(self.guess.as_ref()?);
        let is_covered = looked_at <= least(span) && began.is_none_or(|began| least(span) <= began);
        is_covered.then_some(began)
    }

    /// Number of frames that were read.
    pub fn count(&self) -> u64 {
        let counts = self.frames.iter().filter_map(|kind| Some(kind.total.groups.first()?.count));
        counts.sum()
    }

    /// The summary of each kind.
    pub fn totals(&self) -> impl Iterator<Item = (FrameTable, FrameSummary)> {
        self.frames.iter().map(|kind| (kind.table.clone(), kind.total.clone()))
    }

    fn kind(&mut self, table: &FrameTable) -> Option<&mut SweptKind> {
        self.frames.iter_mut().find(|kind| kind.table.name == table.name)
    }

    /// Takes the other facts about a kind.
    pub fn take_fields(&mut self, table: &FrameTable) -> Option<KnownFields> {
        self.kind(table).map(|kind| std::mem::take(&mut kind.known))
    }

    /// Takes the frames with the longest values of each interval of a kind.
    pub fn take_longest(&mut self, table: &FrameTable) -> HashMap<String, Vec<RecordBatch>> {
        self.kind(table).map(|kind| std::mem::take(&mut kind.longest)).unwrap_or_default()
    }
}

/// The earliest time that a chart can show: an interval that began earlier is on no chart.
pub(super) fn least(span: &ChartSpan) -> i64 {
    span.first.saturating_sub(span.len() / 10)
}

/// The range that charts show, if frames are at both ends of the ranges in the heads of chunks. The
/// outer None: the captures cannot be read in one pass; the inner None: no frame has a time.
fn guess(
    engine: &Engine,
    frames: &[FrameTable],
    readings: &ReadingTimes,
) -> Result<Option<Option<ChartSpan>>, ReportError> {
    let columns = |frame: &FrameTable| FrameColumns { frame: frame.clone(), columns: Vec::new() };
    let read: Vec<FrameColumns> = frames.iter().map(columns).collect();
    let Some(together) = engine.joint_frame_scan(&read)? else { return Ok(None) };
    let (times, during) = (together.times(), readings.during());
    let taken = times.taken.into_iter().chain(during);
    Ok(Some(span::shown(taken, span::union(times.drained, during))))
}

/// The number of kinds that are read in one pass.
fn kinds_per_pass(engine: &Engine, tables: &[FrameTable], sample: &Swept, memory: usize) -> usize {
    let numbers = |frames: &ppt_query::summary::SweptFrames| {
        let fields = frames.total.groups.first().map_or(&[][..], |group| &group.fields);
        fields.iter().filter(|field| matches!(field.values, SummaryValues::Numbers { .. })).count()
    };
    let buffer_is_read = |buffer: &str| tables.iter().any(|table| table.buffer == buffer);
    let frames: u64 =
        engine.set().thread_frames(buffer_is_read).iter().map(|thread| thread.frames).sum();
    let most = sample.frames.iter().map(numbers).max().unwrap_or(0) as u64;
    // If all values fit into memory, one pass is enough.
    let bytes = frames.saturating_mul(most.saturating_mul(size_of::<u64>() as u64));
    if bytes <= memory as u64 / 4 {
        return tables.len();
    }
    let mut fields = 0;
    let few = sample.frames.iter().take_while(|frames| {
        fields += numbers(frames).min(DRAWN);
        fields <= MAX_FIELDS
    });
    few.count().clamp(1, tables.len().max(1))
}
