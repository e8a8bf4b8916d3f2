//! Where the slowest intervals spent their time, as the kernel says: what `ppt why` shows, typed.
//!
//! This file chooses the slowest intervals ([`Engine::why`]), and asks the modules about them.
//!
//! | module | decides |
//! |---|---|
//! | `request` | which fields of a frame name its request |
//! | `during` | what threads did in an interval: their states and their slices |
//! | `cells` | how a cell of a batch is read |
//! | `cut` | the parts of an interval, the largest first |
//! | `running` | to which slices the running time of a thread belongs |
//! | `hops` | which thread woke the waker, and so on |
//! | `services`, `identity` | which process answered a call: by connections, by points |
//! | `about`, `names` | how slices of `libppt-with.so` and threads are called |
//! | `stacks`, `functions` | in which functions threads ran |
//! | `tail` | where all intervals above the 99th percentile spent their time |
//! | `sentence` | which sentences describe an interval, and what the causes of its parts are called |
//! | `answer` | the types of the answer |

mod about;
mod answer;
mod cells;
mod cut;
mod during;
mod functions;
mod hops;
mod identity;
mod names;
mod request;
mod running;
mod sentence;
mod services;
mod stacks;
mod tail;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::logical_expr::{Expr, cast as cast_to, lit};
use datafusion::prelude::{DataFrame, ident};
use ppt_predicate::to_sql;
use ppt_tables::{Bounded, BoundedNumber, BoundedText, CaptureTable, ThreadLabels};
use ppt_text::nearest;

use crate::engine::{BoxedAnswer, Engine, FrameTable, RowUnit};
use crate::error::QueryError;
use crate::limits::within_limits;
use crate::summary::ends;
use answer::LongestIntervals;
pub use answer::{
    FrameOrigin, RunningIn, ServiceCall, SliceDescription, SlowInterval, SlowPart, ThreadSlice,
    WakerHop,
};
use cells::{long, text};
pub use cut::{Spent, TimeUse, WokenBy};
use during::ThreadStretch;
pub use functions::FunctionCounts;
use running::RunningTime;
pub use tail::{Tail, TailCause};

/// A question of `ppt why`: the intervals to explain.
#[derive(Debug, Clone, Default)]
pub struct WhyQuestion {
    /// Only this kind of frames.
    pub frame: Option<String>,
    /// Only this interval of it, or `dur` of a span.
    pub field: Option<String>,
    /// Only rows for which this expression is true.
    pub filter: Option<String>,
    /// The number of slowest intervals.
    pub slowest: usize,
    /// Fields that identify a request; none: the keys of spans, then enums and texts.
    pub show: Vec<String>,
}

/// An answer of `ppt why`: the slowest intervals, and all intervals above the 99th percentile.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct WhyAnswer {
    /// The slowest first.
    pub slowest: Vec<SlowInterval>,
    /// A summary for each interval and each kind of spans, the one with the most time first.
    pub tails: Vec<Tail>,
}

impl Engine {
    /// Explains the slowest intervals, and all intervals above the 99th percentile.
    ///
    /// # Errors
    /// No capture has frames of the kernel, the question names an unknown frame, interval or column, a capture
    /// cannot be read, or the query is cancelled or exceeds its memory.
    pub fn why<'a>(&'a self, why: &'a WhyQuestion) -> BoxedAnswer<'a, WhyAnswer> {
        Box::pin(async move {
            if !self.set().has_kernel() {
                return Err(QueryError::NoKernel);
            }
            let found = self.slowest(why).await?;
            let mut answer = self.answer(found).await?;
            answer.slowest.sort_by_cached_key(rank);
            answer.slowest.truncate(why.slowest);
            answer.slowest = self.follow_calls(answer.slowest).await?;
            Ok(answer)
        })
    }

    /// Explains the `slowest` of each interval and of each kind of span, in one pass. Empty if no capture
    /// has frames of the kernel.
    ///
    /// # Errors
    /// A capture cannot be read, or the query is cancelled or exceeds its memory.
    pub fn why_each(&self, slowest: usize) -> BoxedAnswer<'_, WhyAnswer> {
        Box::pin(async move {
            if !self.set().has_kernel() {
                return Ok(WhyAnswer::default());
            }
            match self.slowest(&WhyQuestion { slowest, ..WhyQuestion::default() }).await {
                Ok(found) => {
                    let mut answer = self.answer(found).await?;
                    answer.slowest = self.follow_calls(answer.slowest).await?;
                    Ok(answer)
                }
                Err(QueryError::NoInterval { .. }) => Ok(WhyAnswer::default()),
                Err(error) => Err(error),
            }
        })
    }

    /// Fills in what the threads did, and what the threads that woke them did.
    pub(crate) async fn explain_time(
        &self,
        mut slow: Vec<SlowInterval>,
    ) -> Result<Vec<SlowInterval>, QueryError> {
        let running = self.fill_parts(&mut slow).await?;
        self.follow_wakers(&mut slow).await?;
        self.ask_slices(&mut slow, running).await?;
        self.ask_stacks(&mut slow).await?;
        self.ask_library(&mut slow).await?;
        let labels = ThreadLabels::new(self.set());
        slow.iter_mut().for_each(|one| one.name_threads(&labels));
        Ok(slow)
    }

    /// The slowest of each kind, and a summary of its tail.
    async fn answer(&self, mut found: Vec<LongestIntervals>) -> Result<WhyAnswer, QueryError> {
        let all = found.iter_mut().flat_map(|kind| std::mem::take(&mut kind.longest)).collect();
        let mut all = self.explain_time(all).await?.into_iter();
        let mut answer = WhyAnswer::default();
        for kind in found {
            let mut longest: Vec<SlowInterval> = all.by_ref().take(kind.count).collect();
            answer.tails.extend(Tail::new(&kind, &longest));
            longest.truncate(kind.slowest);
            answer.slowest.append(&mut longest);
        }
        answer.tails.sort_by_key(|tail| std::cmp::Reverse(tail.ns));
        Ok(answer)
    }

    /// The slowest of all requested intervals, with their times and threads only.
    pub(crate) async fn slowest_only(
        &self,
        why: &WhyQuestion,
    ) -> Result<Vec<SlowInterval>, QueryError> {
        let found = self.slowest(why).await?;
        let mut all: Vec<SlowInterval> = found.into_iter().flat_map(|kind| kind.longest).collect();
        all.sort_by_cached_key(rank);
        all.truncate(why.slowest);
        Ok(all)
    }

    /// The slowest intervals of each requested kind.
    async fn slowest(&self, why: &WhyQuestion) -> Result<Vec<LongestIntervals>, QueryError> {
        let (mut all, mut available) = (Vec::new(), Vec::new());
        let (mut found, mut columns) = (false, Vec::new());
        let requested = self.requested_kinds(why.frame.as_deref())?;
        for (table, only_spans) in requested {
            let spans = self.spans(&table);
            let intervals = if only_spans { Vec::new() } else { intervals(&table) };
            let intervals = intervals.into_iter().map(|interval| (table.clone(), interval, false));
            let spans = spans.and_then(|span| Some((span.clone(), span_interval(&span)?, true)));
            for (table, interval, is_span) in intervals.chain(spans) {
                available.push(interval.field.clone());
                if why.field.as_ref().is_some_and(|field| *field != interval.field) {
                    continue;
                }
                found = true;
                columns.extend(request::fields(&table));
                // Another kind of frames may have the columns.
                match self.slowest_of(why, &table, &interval, is_span).await {
                    Err(QueryError::NoColumn { .. }) if why.frame.is_none() => {}
                    rows => all.push(rows?),
                }
            }
        }
        if let (Some(frame), true) = (&why.frame, available.is_empty()) {
            return Err(QueryError::Untimed {
                frame: frame.clone(),
                available: self.timed_kinds()?,
            });
        }
        match &why.field {
            Some(name) if !found => {
                available.sort();
                available.dedup();
                let nearest = nearest(name, &available).cloned();
                return Err(QueryError::NoInterval { name: name.clone(), nearest, available });
            }
            None if !found => {
                return Err(QueryError::NoInterval {
                    name: String::new(),
                    nearest: None,
                    available,
                });
            }
            _ => {}
        }
        columns.sort();
        columns.dedup();
        match why.show.iter().find(|name| !columns.contains(name)) {
            Some(name) => {
                let nearest = nearest(name, &columns).cloned();
                Err(QueryError::NoColumn { name: name.clone(), nearest, available: columns })
            }
            None => Ok(all),
        }
    }

    /// The requested kinds of frames, and whether only their spans were requested. `stmt_spans` means
    /// only the spans of `stmt`, as in `ppt stat`.
    fn requested_kinds(&self, name: Option<&str>) -> Result<Vec<(FrameTable, bool)>, QueryError> {
        let Some(name) = name else {
            return Ok(self.frames(None)?.into_iter().map(|table| (table, false)).collect());
        };
        let mut requested = Vec::new();
        for (table, unit) in self.frames_spans_or_chains(name)? {
            match unit {
                RowUnit::Frame => requested.push((table, false)),
                RowUnit::Span => {
                    requested.extend(self.frames_of(&table).map(|(frames, _)| (frames, true)));
                }
                RowUnit::Chain => {}
            }
        }
        Ok(requested)
    }

    /// The kinds of frames that have intervals or spans.
    fn timed_kinds(&self) -> Result<Vec<String>, QueryError> {
        let mut timed = self.frames(None)?;
        timed.retain(|table| {
            let spans = self.spans(table);
            !intervals(table).is_empty()
                || spans.is_some_and(|spans| span_interval(&spans).is_some())
        });
        Ok(timed.into_iter().map(|table| table.frame).collect())
    }

    async fn slowest_of(
        &self,
        why: &WhyQuestion,
        of: &FrameTable,
        interval: &WhyInterval,
        is_span: bool,
    ) -> Result<LongestIntervals, QueryError> {
        let schema = of.table.schema();
        let mut rows = self.context().table(of.name.clone()).await?;
        if let Some(text) = &why.filter {
            let df_schema = DFSchema::try_from_qualified_schema(of.name.clone(), schema)?;
            within_limits(text)?;
            rows = rows.filter(self.context().parse_sql_expr(&to_sql(text), &df_schema)?)?;
        }
        let shown = request::shown(of, is_span, &why.show);
        let rows = as_intervals(rows, of, interval, &shown)?;
        let order = [(DUR, false), (TS, true), (TID, true), (SEQNO, true)];
        let order = order.map(|(n, ascends)| ident(column_name(n)).sort(ascends, false));
        let all = rows.clone().count().await? as u64;
        let above = tail::above(all);
        let max_rows = why.slowest.max(above.map_or(0, |count| count.min(tail::MAX_INTERVALS) + 1));
        let rows = rows.sort(order.into())?.limit(0, Some(max_rows))?;
        let longest = self.read_intervals(rows, of, interval, is_span, &shown).await?;
        let count = longest.len();
        Ok(LongestIntervals {
            name: interval.name(of, is_span),
            all,
            above,
            slowest: why.slowest,
            count,
            longest,
        })
    }

    /// The intervals of rows that [`as_intervals`] has selected.
    async fn read_intervals(
        &self,
        rows: DataFrame,
        of: &FrameTable,
        interval: &WhyInterval,
        is_span: bool,
        shown: &[request::ShownField],
    ) -> Result<Vec<SlowInterval>, QueryError> {
        let name = interval.name(of, is_span);
        let mut intervals = Vec::new();
        for batch in rows.collect().await? {
            for row in 0..batch.num_rows() {
                let text = |at| text(&batch, at, row).unwrap_or_default().to_owned();
                let long = |at| long(&batch, at, row);
                let (Some(ts), Some(dur)) = (long(TS), long(DUR)) else { continue };
                // No real interval ends after the largest possible time.
                if ts.checked_add(dur).is_none() {
                    continue;
                }
                let small = |at| long(at).and_then(|number| i32::try_from(number).ok());
                intervals.push(SlowInterval {
                    name: name.clone(),
                    capture: text(CAPTURE),
                    buffer: text(BUFFER),
                    segment: text(SEGMENT),
                    host: text(HOST),
                    ring: long(RING),
                    seqno: long(SEQNO),
                    pid: small(PID),
                    tid: small(TID),
                    thread: None,
                    ts,
                    dur,
                    is_span,
                    request: request::values(shown, |index| text(INTERVAL_COLUMNS + index)),
                    parts: Vec::new(),
                    answered_by: None,
                });
            }
        }
        Ok(intervals)
    }

    /// Fills in the parts from the states of their threads. Returns when each thread ran.
    async fn fill_parts(&self, slow: &mut [SlowInterval]) -> Result<Vec<RunningTime>, QueryError> {
        let threads: Vec<ThreadStretch> = slow.iter().map(SlowInterval::during).collect();
        let mut running = Vec::new();
        for (slow, did) in slow.iter_mut().zip(self.states_during(&threads).await?) {
            slow.parts = did.parts.into_iter().map(SlowPart::new).collect();
            running.push(RunningTime::new(did.running));
        }
        Ok(running)
    }

    /// Adds the slices of waiting threads, of their wakers, and of running threads.
    async fn ask_slices(
        &self,
        slow: &mut [SlowInterval],
        running: Vec<RunningTime>,
    ) -> Result<(), QueryError> {
        let mut running: Vec<_> = slow.iter().map(SlowInterval::inner).zip(running).collect();
        let mut threads = Vec::new();
        for slow in &*slow {
            for part in slow.parts.iter().filter(|part| part.state.is_wait()) {
                let (from, to) = part.spent.longest;
                let outer_interval = Some((slow.ts, slow.ts + slow.dur));
                threads.push(ThreadStretch { from, to, outer_interval, ..slow.during() });
                threads.push(slow.waker_during(part));
                // The first hop is the waker itself, which is already in the list.
                let hops = part.hops.iter().skip(1);
                threads.extend(hops.map(|hop| slow.thread_during(Some(hop.thread), hop.within)));
            }
        }
        let mut found = self.slices_during(&threads, &mut running).await?.into_iter();
        let mut next = || found.next().flatten();
        for (slow, (_, running)) in slow.iter_mut().zip(running) {
            if let Some(ran) = slow.parts.iter_mut().find(|part| part.state == TimeUse::Running) {
                ran.running_in = running.finish();
            }
            for part in slow.parts.iter_mut().filter(|part| part.state.is_wait()) {
                (part.own_slice, part.waker_slice) = (next(), next());
                for (at, hop) in part.hops.iter_mut().enumerate() {
                    hop.slice = if at == 0 { part.waker_slice.clone() } else { next() };
                }
            }
        }
        Ok(())
    }
}

/// Sorts the slowest first.
fn rank(slow: &SlowInterval) -> (i64, i64, Option<i32>, String, Option<i64>) {
    (-slow.dur, slow.ts, slow.tid, slow.name.clone(), slow.seqno)
}

/// An interval of a kind of frames: its name, and the numbers of its two columns.
struct WhyInterval {
    field: String,
    start: usize,
    length: usize,
}

impl WhyInterval {
    /// The name of the interval; for a span, the name of its frame.
    fn name(&self, of: &FrameTable, is_span: bool) -> String {
        if is_span { of.frame.clone() } else { format!("{}.{}", of.frame, self.field) }
    }
}

/// The columns of an interval, in the order in which [`as_intervals`] selects them.
const CAPTURE: usize = 0;
const BUFFER: usize = 1;
const SEGMENT: usize = 2;
const HOST: usize = 3;
const RING: usize = 4;
const SEQNO: usize = 5;
const PID: usize = 6;
const TID: usize = 7;
const TS: usize = 8;
const DUR: usize = 9;
/// The number of columns before those of the request.
const INTERVAL_COLUMNS: usize = 10;

/// The name of a column by its number: `c0`, `c1`, and so on.
fn column_name(number: usize) -> String {
    format!("c{number}")
}

/// Selects intervals from rows of frames. The columns have the names of [`column_name`].
fn as_intervals(
    rows: DataFrame,
    of: &FrameTable,
    interval: &WhyInterval,
    shown: &[request::ShownField],
) -> Result<DataFrame, QueryError> {
    let schema = of.table.schema();
    let column = |index: usize| ident(schema.field(index).name().as_str());
    let standard = |what| find(of.table.as_ref(), what).map_or_else(null, column);
    let number = |number| cast_to(standard(Bounded::Number(number)), DataType::Int64);
    let word = |text| cast_to(standard(Bounded::Word(text)), DataType::Utf8);
    let (ts, dur) = (column(interval.start), column(interval.length));
    let select: [Expr; INTERVAL_COLUMNS] = [
        word(BoundedText::Capture),
        word(BoundedText::Buffer),
        word(BoundedText::Segment),
        word(BoundedText::Host),
        number(BoundedNumber::Ring),
        number(BoundedNumber::Seqno),
        number(BoundedNumber::Pid),
        number(BoundedNumber::Tid),
        cast_to(ts, DataType::Int64),
        dur,
    ];
    let of_request = shown.iter().map(|field| cast_to(column(field.column), DataType::Utf8));
    let select = select.into_iter().chain(of_request).zip(0..);
    let select = select.map(|(column, n)| column.alias(column_name(n)));
    let is_one = ident(column_name(DUR)).gt_eq(lit(0i64)).and(ident(column_name(TS)).is_not_null());
    Ok(rows.select(select.collect::<Vec<_>>())?.filter(is_one)?)
}

fn intervals(of: &FrameTable) -> Vec<WhyInterval> {
    let schema = of.table.schema();
    let fields = schema.fields().iter().enumerate().filter_map(|(length, field)| {
        let is_length = field.metadata().get("role").is_some_and(|metadata| metadata == "length");
        let (start, _) = is_length.then(|| ends(schema, field)).flatten()?;
        Some(WhyInterval { field: field.name().clone(), start, length })
    });
    fields.collect()
}

fn span_interval(of: &FrameTable) -> Option<WhyInterval> {
    let is_dur = |role: Option<&String>| role.is_some_and(|role| role == "dur");
    let fields = of.table.schema().fields();
    let length = fields.iter().position(|field| is_dur(field.metadata().get("role")))?;
    let start = find(of.table.as_ref(), Bounded::Number(BoundedNumber::Ts))?;
    Some(WhyInterval { field: fields[length].name().clone(), start, length })
}

fn find(table: &dyn CaptureTable, what: Bounded) -> Option<usize> {
    (0..table.schema().fields().len()).find(|&index| table.bounded(index) == Some(what))
}

fn null() -> Expr {
    Expr::Literal(ScalarValue::Null, None)
}
