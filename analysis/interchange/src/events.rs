//! Events of captures: the kinds that an engine has, and the rows of each.

use std::sync::Arc;

use ppt_query::arrow::array::AsArray;
use ppt_query::arrow::datatypes::{DataType, Field, Int64Type};
use ppt_query::datafusion::functions::core::expr_fn::coalesce;
use ppt_query::datafusion::logical_expr::{Expr, lit};
use ppt_query::datafusion::prelude::{DataFrame, cast, ident};
use ppt_query::{Bounded, Engine, FrameTable, Number, QueryError, Table, Word, dropped_causes};

use crate::event::{COLUMNS, Form, Kind, Reading, What};
use crate::metrics::Metrics;
use crate::source::{FileOrder, Source, WANTED, column, order};

/// The events of the captures of an engine, as a format has them.
#[derive(Debug)]
pub struct Events<'a> {
    engine: &'a Engine,
    form: Form,
    /// The time of what has none, ns since the epoch.
    start: i64,
}

/// What the columns of a table are called.
struct Names {
    ts: String,
    drained: String,
    /// As in [`COLUMNS`], from the capture on.
    identity: [String; 8],
}

impl Names {
    fn of(table: &dyn Table) -> Names {
        let schema = table.schema();
        let name = |what: Bounded, known: &str| {
            let found = (0..schema.fields().len()).find(|&it| table.bounded(it) == Some(what));
            found.map_or(known.to_owned(), |it| schema.field(it).name().clone())
        };
        let word = |word, known| name(Bounded::Word(word), known);
        let number = |number, known| name(Bounded::Number(number), known);
        Names {
            ts: number(Number::Ts, "ts"),
            drained: number(Number::Drained, "drained"),
            identity: [
                word(Word::Capture, "capture"),
                word(Word::Buffer, "buffer"),
                word(Word::Segment, "segment"),
                number(Number::Ring, "ring"),
                number(Number::Seqno, "seqno"),
                word(Word::Host, "host"),
                number(Number::Pid, "pid"),
                number(Number::Tid, "tid"),
            ],
        }
    }

    fn seqno(&self) -> &str {
        &self.identity[4]
    }
}

/// An interval of time.
struct Interval {
    name: String,
    start: String,
}

impl Interval {
    /// Those of a table that have a place in time. CPU time has none.
    fn all(table: &dyn Table) -> Vec<Interval> {
        let fields = table.schema().fields();
        let said = |field: &Field, key: &str| field.metadata().get(key).cloned();
        let lengths = fields.iter().filter(|it| said(it, "role").as_deref() == Some("length"));
        let interval = |length: &Arc<Field>| {
            let name = said(length, "interval")?;
            let is_start = |it: &&Arc<Field>| {
                matches!(it.data_type(), DataType::Timestamp(..))
                    && said(it, "role").as_deref() == Some("start")
                    && said(it, "interval").as_ref() == Some(&name)
            };
            let mut starts = fields.iter().filter(is_start);
            let start = starts.next()?.name().clone();
            // Of an array, nobody knows which belongs to which.
            let is_one = starts.next().is_none() && *length.data_type() == DataType::Int64;
            is_one.then(|| Interval { name: length.name().clone(), start })
        };
        lengths.filter_map(interval).collect()
    }

    /// The whole of a span.
    fn whole(spans: &FrameTable) -> Option<Interval> {
        let table = spans.table.as_ref();
        let is_dur = |it: &&Arc<Field>| it.metadata().get("role").is_some_and(|role| role == "dur");
        let dur = table.schema().fields().iter().find(is_dur)?;
        Some(Interval { name: dur.name().clone(), start: Names::of(table).ts })
    }

    /// Whether a row has it.
    fn is_there(&self) -> Expr {
        let there = ident(self.start.as_str()).is_not_null();
        let length = ident(self.name.as_str());
        there.and(length.clone().is_not_null()).and(length.gt_eq(lit(0i64)))
    }
}

fn any(intervals: &[Interval]) -> Expr {
    intervals.iter().map(Interval::is_there).reduce(Expr::or).unwrap_or(lit(false))
}

fn ns(column: &str) -> Expr {
    cast(ident(column), DataType::Int64)
}

impl<'a> Events<'a> {
    /// The events of `engine`'s captures for a trace of that `form`.
    pub fn new(engine: &'a Engine, form: Form) -> Events<'a> {
        Events { engine, form, start: engine.set().began().unwrap_or(0) }
    }

    /// The kinds of events, and for each the source of its rows: those of `frames`, and, if these are
    /// all frames, also what belongs to none of them.
    ///
    /// # Errors
    /// See [`QueryError`].
    pub async fn sources(
        &self,
        frames: &[FrameTable],
        whole: bool,
    ) -> Result<(Vec<Kind>, Vec<Source>), QueryError> {
        let (mut kinds, mut sources) = (Vec::new(), Vec::new());
        let mut add = |kind, source| {
            kinds.push(kind);
            sources.push(source);
        };
        let file_order = self.engine.file_order();
        for frame in frames {
            let table = frame.table.as_ref();
            let intervals = match self.form {
                // Events of CTF are points; their fields tell how long things took.
                Form::Ctf => Vec::new(),
                _ => Interval::all(table),
            };
            for (at, interval) in intervals.iter().enumerate() {
                let before = &intervals[..at];
                let kind = self.kind(frame, Some(interval));
                let of = file_order.table(frame.name.clone()).await?;
                let first = Expr::Not(Box::new(any(before)));
                let rows = self.columns(table, Some(interval), first);
                let there = Some(interval.is_there());
                add(kind, self.in_file_order(of, rows, there, true)?);
            }
            let of = file_order.table(frame.name.clone()).await?;
            let none = (!intervals.is_empty()).then(|| Expr::Not(Box::new(any(&intervals))));
            let rows = self.columns(table, None, lit(true));
            add(self.kind(frame, None), self.in_file_order(of, rows, none, false)?);
            // CTF has the begins and the ends.
            let spans = self.engine.spans(frame).filter(|_| self.form != Form::Ctf);
            if let Some((spans, whole)) = spans.and_then(|it| Some((Interval::whole(&it)?, it))) {
                let of = self.engine.context().table(whole.name.clone()).await?;
                let of = of.filter(spans.is_there())?;
                let rows = self.columns(whole.table.as_ref(), Some(&spans), lit(false));
                let rows = self.sorted(of, rows, true)?;
                add(Kind { what: What::Spans, ..self.kind(&whole, None) }, rows);
            }
        }
        let all = self.engine.tables().into_iter().find(|it| it.0 == "frames");
        if let (true, Some((_, table))) = (whole, all) {
            let names = Names::of(table.as_ref());
            let drained = fields(table.as_ref()).next().cloned();
            let of = self.engine.context().table("frames").await?;
            let of = of.filter(ident("frame").is_null())?;
            let kind = Kind {
                what: What::Unknown,
                buffer: String::new(),
                frame: String::new(),
                interval: None,
                fields: drained.map(|it| it.as_ref().clone()).into_iter().collect(),
                seqno: names.seqno().to_owned(),
            };
            add(kind, self.sorted(of, self.columns(table.as_ref(), None, lit(true)), false)?);
        }
        if whole {
            for (kind, rows) in Metrics::new(self.engine, self.form, self.start).all().await? {
                add(kind, Source::Sorted(rows));
            }
        }
        // CTF has the kernel's frames.
        if whole && self.form != Form::Ctf && self.engine.set().has_kernel() {
            let (kind, rows) = self.states().await?;
            add(kind, Source::Sorted(rows));
        }
        let (kind, rows) = self.missing(frames).await?;
        add(kind, Source::Sorted(rows));
        Ok((kinds, sources))
    }

    /// What threads did, as the kernel tells. Waits are called by their calls.
    async fn states(&self) -> Result<(Kind, DataFrame), QueryError> {
        let [begin, dur, placed, first, capture, of_buffer, segment, ring, seqno, host, pid, tid] =
            COLUMNS.map(|it| format!("AS \"{}\"", column(it)));
        let none = |ty: &str| format!("arrow_cast(NULL, '{ty}')");
        let (long, int, word) = (none("Int64"), none("Int32"), none("Dictionary(Int32, Utf8)"));
        let sql = format!(
            "SELECT arrow_cast(ts, 'Int64') {begin}, dur {dur}, true {placed}, true {first}, \
                    capture {capture}, buffer {of_buffer}, {word} {segment}, {int} {ring}, \
                    {long} {seqno}, host {host}, pid {pid}, tid {tid}, \
                    arrow_cast(coalesce(blocked_in, state), 'Utf8') AS name, \
                    state, cpu, woken_by, waker, successor, successor_name \
             FROM thread_states ORDER BY 1"
        );
        let rows = self.engine.sql(&sql).await?;
        let fields = rows.schema().as_arrow().fields().iter().skip(COLUMNS.len());
        let mut fields: Vec<Field> = fields.map(|it| it.as_ref().clone()).collect();
        let named = ("attributes".to_owned(), "name".to_owned());
        fields[0].set_metadata([named].into());
        let kind = Kind {
            what: What::States,
            buffer: "kernel".to_owned(),
            frame: "thread_states".to_owned(),
            interval: None,
            fields,
            seqno: "seqno".to_owned(),
        };
        Ok((kind, rows))
    }

    fn kind(&self, frame: &FrameTable, interval: Option<&Interval>) -> Kind {
        let table = frame.table.as_ref();
        Kind {
            what: What::Frames,
            buffer: frame.buffer.clone(),
            frame: frame.frame.clone(),
            interval: interval.map(|it| it.name.clone()),
            fields: fields(table).map(|it| it.as_ref().clone()).collect(),
            seqno: Names::of(table).seqno().to_owned(),
        }
    }

    /// What is selected of a table: [`COLUMNS`], and the fields.
    fn columns(&self, table: &dyn Table, interval: Option<&Interval>, first: Expr) -> Vec<Expr> {
        let names = Names::of(table);
        let time = coalesce(vec![ns(&names.ts), ns(&names.drained)]);
        let placed = match interval {
            Some(_) => lit(true),
            None => time.clone().is_not_null(),
        };
        let begin = match interval {
            Some(interval) => ns(&interval.start),
            None => coalesce(vec![time, lit(self.start)]),
        };
        let dur = match interval {
            Some(interval) => ident(interval.name.as_str()),
            None => cast(lit(ppt_query::datafusion::common::ScalarValue::Null), DataType::Int64),
        };
        let made = [begin, dur, placed, first].into_iter();
        let identity = names.identity.iter().map(|it| ident(it.as_str()));
        let fixed = made.chain(identity).zip(COLUMNS);
        let mut select: Vec<Expr> = fixed.map(|(expr, name)| expr.alias(column(name))).collect();
        // One that is made is selected beside the field that it is made of.
        select.extend(fields(table).map(|it| ident(it.name().as_str())));
        select
    }

    /// The rows of `of` that are `wanted`, in the order of the file: the merge sorts them as it goes.
    fn in_file_order(
        &self,
        of: DataFrame,
        mut columns: Vec<Expr>,
        wanted: Option<Expr>,
        is_slice: bool,
    ) -> Result<Source, QueryError> {
        columns.push(wanted.unwrap_or(lit(true)).alias(column(WANTED)));
        let last_is_outer = self.last_is_outer(is_slice);
        Ok(Source::FileOrder(FileOrder { rows: of.select(columns)?, last_is_outer }))
    }

    /// Whether, of equal slices, the one that was written last is around the others.
    fn last_is_outer(&self, is_slice: bool) -> bool {
        is_slice && self.form != Form::Ctf
    }

    /// Rows that DataFusion sorts.
    fn sorted(
        &self,
        of: DataFrame,
        columns: Vec<Expr>,
        is_slice: bool,
    ) -> Result<Source, QueryError> {
        Ok(Source::Sorted(of.select(columns)?.sort(order(self.last_is_outer(is_slice)))?))
    }

    /// What is missing, of the buffers that are told of.
    async fn missing(&self, frames: &[FrameTable]) -> Result<(Kind, DataFrame), QueryError> {
        let mut buffers: Vec<&str> = frames.iter().map(|it| it.buffer.as_str()).collect();
        buffers.sort_unstable();
        buffers.dedup();
        let words = |words: &[&str]| {
            let quoted = words.iter().map(|it| format!("'{}'", it.replace('\'', "''")));
            quoted.collect::<Vec<_>>().join(", ")
        };
        buffers.extend(frames.is_empty().then_some(""));
        let (buffers, causes) = (words(&buffers), words(&dropped_causes()));
        let start = self.start;
        let [begin, dur, placed, first, capture, buffer, segment, ring, seqno, host, pid, tid] =
            COLUMNS.map(|it| format!("AS \"{}\"", column(it)));
        let long = |of: &str| format!("arrow_cast({of}, 'Int64')");
        let (lo, hi, none) = (long("ts_lo"), long("ts_hi"), long("NULL"));
        let int = "arrow_cast(NULL, 'Int32')";
        let sql = format!(
            "SELECT coalesce({lo}, {hi}, {start}) {begin}, {none} {dur}, \
                    ts_lo IS NOT NULL OR ts_hi IS NOT NULL {placed}, true {first}, \
                    capture {capture}, buffer {buffer}, segment {segment}, ring {ring}, \
                    first_seq {seqno}, host {host}, pid {pid}, tid {tid}, count, cause, \
                    {hi} AS until \
             FROM gaps WHERE buffer IN ({buffers}) \
             UNION ALL \
             SELECT arrow_cast({start}, 'Int64'), {none}, false, true, capture, buffer, \
                    arrow_cast(NULL, 'Dictionary(Int32, Utf8)'), {int}, {none}, host, pid, {int}, \
                    count, cause, {none} \
             FROM account WHERE count > 0 AND buffer IN ({buffers}) AND cause IN ({causes}) \
             ORDER BY 1, \"ppt:seqno\", \"ppt:ring\""
        );
        let rows = self.engine.sql(&sql).await?;
        let schema = rows.schema().as_arrow().clone();
        let fields = schema.fields()[COLUMNS.len()..].iter().map(|it| it.as_ref().clone());
        let kind = Kind {
            what: What::Missing,
            buffer: String::new(),
            frame: String::new(),
            interval: None,
            fields: fields.collect(),
            seqno: "seqno".to_owned(),
        };
        Ok((kind, rows))
    }

    /// How the monotonic clock went; of several boots there is no one such clock.
    ///
    /// # Errors
    /// See [`QueryError`].
    pub async fn readings(&self) -> Result<Vec<Reading>, QueryError> {
        let sql = "SELECT a_before + (a_after - a_before) / 2 AS a, b FROM clocks \
                   WHERE clock_a = 'monotonic' AND clock_b = 'realtime' \
                     AND (SELECT count(DISTINCT boot_id) FROM captures) = 1 ORDER BY a";
        let mut readings = Vec::new();
        for batch in self.engine.sql(sql).await?.collect().await? {
            let long = |at: usize| batch.column(at).as_primitive::<Int64Type>().values().iter();
            let known = long(0).zip(long(1)).filter_map(|(&a, &b)| {
                let (monotonic, realtime) = (u64::try_from(a).ok()?, u64::try_from(b).ok()?);
                Some(Reading { monotonic, realtime })
            });
            readings.extend(known);
        }
        Ok(readings)
    }
}

/// The columns that events tell: when the listener had the frame, and the fields.
fn fields(table: &dyn Table) -> impl Iterator<Item = &Arc<Field>> {
    let is_told = |it: &usize| match table.bounded(*it) {
        None | Some(Bounded::Number(Number::Drained)) => true,
        Some(_) => false,
    };
    let fields = table.schema().fields();
    (0..fields.len()).filter(is_told).map(|it| &fields[it])
}
