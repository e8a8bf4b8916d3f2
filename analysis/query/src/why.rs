//! Where the slowest intervals spent their time, as the kernel says: what `ppt why` shows, typed.

mod cut;
mod said;

use datafusion::arrow::array::{Array, AsArray, RecordBatch, StringArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Int64Type};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::logical_expr::{Expr, cast as cast_to, lit};
use datafusion::prelude::{DataFrame, ident};
use futures::StreamExt;
use ppt_predicate::to_sql;
use ppt_tables::{Bounded, Number, Table, Word};

use crate::engine::{Engine, FrameTable};
use crate::error::QueryError;
use crate::limits::within_limits;
use crate::nearest::nearest;
use crate::summary::ends;
use cut::Cut;
pub use cut::{By, Part, Spent};

/// What is asked.
#[derive(Debug, Clone, Default)]
pub struct Why {
    /// Only this kind of frames.
    pub frame: Option<String>,
    /// Only this interval of it, or `dur` of a span.
    pub field: Option<String>,
    /// Only rows of which this expression is true.
    pub filter: Option<String>,
    /// So many of the slowest.
    pub slowest: usize,
}

/// A slow interval.
#[derive(Debug, Clone, PartialEq)]
pub struct Slow {
    /// The frame and the interval, `job.handle`; of a span the frame.
    pub name: String,
    /// What identifies the frame: capture, buffer, segment, ring and number.
    pub capture: String,
    #[expect(missing_docs, reason = "see `capture`")]
    pub buffer: String,
    #[expect(missing_docs, reason = "see `capture`")]
    pub segment: String,
    #[expect(missing_docs, reason = "see `capture`")]
    pub ring: Option<i64>,
    #[expect(missing_docs, reason = "see `capture`")]
    pub seqno: Option<i64>,
    /// Whose it is.
    pub host: String,
    #[expect(missing_docs, reason = "see `host`")]
    pub pid: Option<i32>,
    /// Its thread; of a span the one that began it.
    pub tid: Option<i32>,
    /// When it began, ns since the epoch.
    pub ts: i64,
    /// Its length, ns: what its parts add up to.
    pub dur: i64,
    /// It is a span, which may have been elsewhere meanwhile.
    pub is_span: bool,
    /// The parts, the largest first.
    pub parts: Vec<SlowPart>,
}

/// A part of it.
#[derive(Debug, Clone, PartialEq)]
pub struct SlowPart {
    /// What it went to.
    pub part: Part,
    /// How much.
    pub spent: Spent,
    /// What the waker's own frames say that it was doing while the longest piece of a wait lasted: of
    /// the slices around its end the innermost, or else the one that shares most of it.
    pub doing: Option<Doing>,
}

/// What a thread was doing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Doing {
    /// The slice.
    pub name: String,
    /// How long it overlapped the wait, ns.
    pub ns: i64,
    /// When it began.
    ts: i64,
    /// It was on when the wait ended.
    around: bool,
}

impl Engine {
    /// Where the slowest intervals spent their time.
    ///
    /// # Errors
    /// See [`QueryError`].
    pub async fn why(&self, why: &Why) -> Result<Vec<Slow>, QueryError> {
        if !self.set().has_kernel() {
            return Err(QueryError::NoKernel);
        }
        let mut slow = self.slowest(why).await?;
        slow.sort_by_cached_key(rank);
        slow.truncate(why.slowest);
        self.tell(slow).await
    }

    /// The same of so many of each interval and of each kind of spans, in one pass; of none, where
    /// nothing tells of the kernel.
    ///
    /// # Errors
    /// See [`QueryError`].
    pub async fn why_each(&self, slowest: usize) -> Result<Vec<Slow>, QueryError> {
        if !self.set().has_kernel() {
            return Ok(Vec::new());
        }
        match self.slowest(&Why { slowest, ..Why::default() }).await {
            Ok(slow) => self.tell(slow).await,
            Err(QueryError::NoInterval { .. }) => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    /// Takes what threads did, and what those who woke them did.
    pub(crate) async fn tell(&self, mut slow: Vec<Slow>) -> Result<Vec<Slow>, QueryError> {
        self.spend(&mut slow).await?;
        self.ask_wakers(&mut slow).await?;
        Ok(slow)
    }

    /// So many of each that is asked for.
    async fn slowest(&self, why: &Why) -> Result<Vec<Slow>, QueryError> {
        let (mut all, mut there) = (Vec::new(), Vec::new());
        let mut found = false;
        for table in self.frames(why.frame.as_deref())? {
            let spans = self.spans(&table);
            let intervals = intervals(&table).into_iter().map(|it| (table.clone(), it, false));
            let spans = spans.and_then(|it| Some((it.clone(), of_spans(&it)?, true)));
            for (table, interval, is_span) in intervals.chain(spans) {
                there.push(interval.field.clone());
                if why.field.as_ref().is_some_and(|it| *it != interval.field) {
                    continue;
                }
                found = true;
                // Another kind of frames may have the columns.
                match self.slowest_of(why, &table, &interval, is_span).await {
                    Err(QueryError::NoColumn { .. }) if why.frame.is_none() => {}
                    rows => all.extend(rows?),
                }
            }
        }
        match &why.field {
            Some(name) if !found => {
                there.sort();
                there.dedup();
                let nearest = nearest(name, &there);
                Err(QueryError::NoInterval { name: name.clone(), nearest, there })
            }
            None if !found => {
                let name = why.frame.clone().unwrap_or_default();
                Err(QueryError::NoInterval { name, nearest: None, there })
            }
            _ => Ok(all),
        }
    }

    async fn slowest_of(
        &self,
        why: &Why,
        of: &FrameTable,
        interval: &Interval,
        is_span: bool,
    ) -> Result<Vec<Slow>, QueryError> {
        let schema = of.table.schema();
        let column = |index: usize| ident(schema.field(index).name().as_str());
        let mut rows = self.context().table(of.name.clone()).await?;
        if let Some(text) = &why.filter {
            let known = DFSchema::try_from_qualified_schema(of.name.clone(), schema)?;
            within_limits(text)?;
            rows = rows.filter(self.context().parse_sql_expr(&to_sql(text), &known)?)?;
        }
        let standard = |what| find(of.table.as_ref(), what).map_or_else(null, column);
        let number = |it| cast_to(standard(Bounded::Number(it)), DataType::Int64);
        let word = |it| cast_to(standard(Bounded::Word(it)), DataType::Utf8);
        let (ts, dur) = (column(interval.start), column(interval.length));
        let select = [
            word(Word::Capture),
            word(Word::Buffer),
            word(Word::Segment),
            word(Word::Host),
            number(Number::Ring),
            number(Number::Seqno),
            number(Number::Pid),
            number(Number::Tid),
            cast_to(ts, DataType::Int64),
            dur,
        ];
        let select = select.into_iter().zip(0..).map(|(it, n)| it.alias(format!("c{n}")));
        let order = [(9, false), (8, true), (7, true), (5, true)];
        let order = order.map(|(n, ascends)| ident(format!("c{n}")).sort(ascends, false));
        let rows = rows
            .select(select.collect::<Vec<_>>())?
            .filter(ident("c9").gt_eq(lit(0i64)).and(ident("c8").is_not_null()))?
            .sort(order.into())?
            .limit(0, Some(why.slowest))?;
        let name = match is_span {
            true => of.frame.clone(),
            false => format!("{}.{}", of.frame, interval.field),
        };
        let mut all = Vec::new();
        for batch in rows.collect().await? {
            for row in 0..batch.num_rows() {
                let text = |at| text(&batch, at, row).unwrap_or_default().to_owned();
                let long = |at| long(&batch, at, row);
                let (Some(ts), Some(dur)) = (long(8), long(9)) else { continue };
                // No time is so late.
                if ts.checked_add(dur).is_none() {
                    continue;
                }
                let small = |at| long(at).and_then(|it| i32::try_from(it).ok());
                all.push(Slow {
                    name: name.clone(),
                    capture: text(0),
                    buffer: text(1),
                    segment: text(2),
                    host: text(3),
                    ring: long(4),
                    seqno: long(5),
                    pid: small(6),
                    tid: small(7),
                    ts,
                    dur,
                    is_span,
                    parts: Vec::new(),
                });
            }
        }
        Ok(all)
    }

    /// Takes the states of their threads.
    async fn spend(&self, slow: &mut [Slow]) -> Result<(), QueryError> {
        let mut cuts: Vec<Cut> = slow.iter().map(|it| Cut::new(it.ts, it.ts + it.dur)).collect();
        let threads: Vec<_> = slow.iter().filter_map(|it| Some((it.pid?, it.tid?))).collect();
        let during = slow.iter().map(|it| (it.ts, it.ts + it.dur)).collect::<Vec<_>>();
        if let Some(states) = self.beside("thread_states", &threads, &during)? {
            let words = ["state", "blocked_in", "woken_by", "successor_name"];
            let numbers = ["waker", "successor"];
            let words = words.map(|it| cast_to(ident(it), DataType::Utf8).alias(it));
            let numbers = numbers.map(|it| cast_to(ident(it), DataType::Int64).alias(it));
            let select = owner().into_iter().chain(words).chain(numbers).collect::<Vec<_>>();
            let order = vec![ident("c3").sort(true, false), ident("c4").sort(true, false)];
            let mut stream = states.select(select)?.sort(order)?.execute_stream().await?;
            while let Some(batch) = stream.next().await {
                let batch = batch?;
                for row in 0..batch.num_rows() {
                    let Some(of) = Owned::of(&batch, row) else { continue };
                    let is_its = |it: &Slow| of.is_of(it.pid, it.tid, &it.host);
                    if let Some(part) = part(&batch, row) {
                        let its = slow.iter().zip(&mut cuts).filter(|it| is_its(it.0));
                        its.for_each(|it| it.1.take(of.from, of.to, &part));
                    }
                }
            }
        }
        for (slow, cut) in slow.iter_mut().zip(cuts) {
            let part = |(part, spent)| SlowPart { part, spent, doing: None };
            slow.parts = cut.finish().into_iter().map(part).collect();
        }
        Ok(())
    }

    /// Asks what those who ended waits were doing.
    async fn ask_wakers(&self, slow: &mut [Slow]) -> Result<(), QueryError> {
        let (mut wakers, mut during) = (Vec::new(), Vec::new());
        for slow in &*slow {
            for part in slow.parts.iter().filter(|it| it.part.is_wait()) {
                let waker = part.part.woken().and_then(|it| it.thread);
                if let (Some(pid), Some(waker)) = (slow.pid, waker) {
                    wakers.push((pid, waker));
                    during.push(part.spent.longest);
                }
            }
        }
        let Some(slices) = self.beside("slices", &wakers, &during)? else { return Ok(()) };
        let name = cast_to(ident("name"), DataType::Utf8).alias("name");
        let select = owner().into_iter().chain([name]).collect::<Vec<_>>();
        let mut stream = slices.select(select)?.execute_stream().await?;
        while let Some(batch) = stream.next().await {
            let batch = batch?;
            for row in 0..batch.num_rows() {
                let Some(of) = Owned::of(&batch, row) else { continue };
                let Some(name) = text(&batch, 5, row) else { continue };
                for slow in &mut *slow {
                    for part in slow.parts.iter_mut().filter(|it| it.part.is_wait()) {
                        let waker = part.part.woken().and_then(|it| it.thread);
                        let (from, to) = part.spent.longest;
                        let ns = of.to.min(to) - of.from.max(from);
                        if waker.is_none() || !of.is_of(slow.pid, waker, &slow.host) || ns <= 0 {
                            continue;
                        }
                        let around = of.to >= to;
                        let doing = Doing { name: name.to_owned(), ns, ts: of.from, around };
                        if part.doing.as_ref().is_none_or(|it| it.rank() < doing.rank()) {
                            part.doing = Some(doing);
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// The rows of a table with `ts` and `dur` that are of these processes and threads, and share time
    /// with one of `during`, whatever window is seen; None: of none.
    fn beside(
        &self,
        table: &str,
        threads: &[(i32, i32)],
        during: &[(i64, i64)],
    ) -> Result<Option<DataFrame>, QueryError> {
        let (Some(from), Some(to)) =
            (during.iter().map(|it| it.0).min(), during.iter().map(|it| it.1).max())
        else {
            return Ok(None);
        };
        let numbers = |of: fn(&(i32, i32)) -> i32| {
            let mut all: Vec<i32> = threads.iter().map(of).collect();
            all.sort_unstable();
            all.dedup();
            all.into_iter().map(lit).collect::<Vec<Expr>>()
        };
        let (pids, tids) = (numbers(|it| it.0), numbers(|it| it.1));
        let Some(rows) = self.whole(table)?.filter(|_| !pids.is_empty()) else { return Ok(None) };
        let ts = || cast_to(ident("ts"), DataType::Int64);
        let rows = rows.filter(ident("pid").in_list(pids, false))?;
        let rows = rows.filter(ident("tid").in_list(tids, false))?;
        let rows = rows.filter(ts().lt(lit(to)).and((ts() + ident("dur")).gt(lit(from))))?;
        Ok(Some(rows))
    }
}

/// The slowest first.
fn rank(it: &Slow) -> (i64, i64, Option<i32>, String, Option<i64>) {
    (-it.dur, it.ts, it.tid, it.name.clone(), it.seqno)
}

impl Doing {
    /// More is better.
    fn rank(&self) -> (bool, i64, i64, std::cmp::Reverse<&str>) {
        let (first, then) = if self.around { (self.ts, self.ns) } else { (self.ns, self.ts) };
        (self.around, first, then, std::cmp::Reverse(&self.name))
    }
}

/// An interval of a kind of frames: columns.
struct Interval {
    field: String,
    start: usize,
    length: usize,
}

fn intervals(of: &FrameTable) -> Vec<Interval> {
    let schema = of.table.schema();
    let fields = schema.fields().iter().enumerate().filter_map(|(length, field)| {
        let is_length = field.metadata().get("role").is_some_and(|it| it == "length");
        let (start, _) = is_length.then(|| ends(schema, field)).flatten()?;
        Some(Interval { field: field.name().clone(), start, length })
    });
    fields.collect()
}

fn of_spans(of: &FrameTable) -> Option<Interval> {
    let is_dur = |role: Option<&String>| role.is_some_and(|it| it == "dur");
    let fields = of.table.schema().fields();
    let length = fields.iter().position(|it| is_dur(it.metadata().get("role")))?;
    let start = find(of.table.as_ref(), Bounded::Number(Number::Ts))?;
    Some(Interval { field: fields[length].name().clone(), start, length })
}

fn find(table: &dyn Table, what: Bounded) -> Option<usize> {
    (0..table.schema().fields().len()).find(|&it| table.bounded(it) == Some(what))
}

fn null() -> Expr {
    Expr::Literal(ScalarValue::Null, None)
}

/// Whose a row is, and when: `host pid tid from dur`.
fn owner() -> Vec<Expr> {
    let long = |name: &str| cast_to(ident(name), DataType::Int64);
    let host = cast_to(ident("host"), DataType::Utf8);
    let all = [host, long("pid"), long("tid"), long("ts"), ident("dur")];
    all.into_iter().zip(0..).map(|(it, n)| it.alias(format!("c{n}"))).collect()
}

struct Owned {
    host: String,
    pid: i64,
    tid: i64,
    from: i64,
    to: i64,
}

impl Owned {
    fn of(batch: &RecordBatch, row: usize) -> Option<Owned> {
        let long = |at| long(batch, at, row);
        let from = long(3)?;
        Some(Owned {
            host: text(batch, 0, row).unwrap_or_default().to_owned(),
            pid: long(1)?,
            tid: long(2)?,
            from,
            to: from.saturating_add(long(4)?),
        })
    }

    fn is_of(&self, pid: Option<i32>, tid: Option<i32>, host: &str) -> bool {
        let same = |it: Option<i32>, own: i64| it.is_some_and(|it| i64::from(it) == own);
        same(pid, self.pid) && same(tid, self.tid) && self.host == host
    }
}

/// What a state is to an interval; None: no state that there is.
fn part(batch: &RecordBatch, row: usize) -> Option<Part> {
    let text = |at| text(batch, at, row).map(str::to_owned);
    let small = |at| long(batch, at, row).and_then(|it| i32::try_from(it).ok());
    let by = || By { kind: text(7), thread: small(9) };
    Some(match text(5)?.as_str() {
        "running" => Part::Running,
        "runnable" if text(7).is_some() => Part::WokenLate(by()),
        "runnable" => Part::Preempted { by: small(10), name: text(8) },
        "blocked" if text(6).as_deref() == Some("page_fault") => Part::Faulting(by()),
        "blocked" => Part::Blocked { call: text(6), by: by() },
        "unknown" => Part::Unknown,
        _ => return None,
    })
}

/// A cell of text, which may be of any type of text.
fn text(batch: &RecordBatch, at: usize, row: usize) -> Option<&str> {
    let column = batch.column(at);
    if column.is_null(row) {
        return None;
    }
    match column.data_type() {
        DataType::Utf8View => Some(column.as_string_view().value(row)),
        DataType::Utf8 => column.as_any().downcast_ref::<StringArray>().map(|it| it.value(row)),
        _ => None,
    }
}

fn long(batch: &RecordBatch, at: usize, row: usize) -> Option<i64> {
    let column = batch.column(at);
    let column = match column.data_type() {
        DataType::Int64 => column.clone(),
        _ => cast(column, &DataType::Int64).ok()?,
    };
    column.is_valid(row).then(|| column.as_primitive::<Int64Type>().value(row))
}
