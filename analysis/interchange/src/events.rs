//! Kinds of events in the captures of an engine, and their rows.

use std::collections::BTreeMap;

use ppt_query::arrow::array::{AsArray, RecordBatch};
use ppt_query::arrow::datatypes::{DataType, Field, Int64Type};
use ppt_query::datafusion::functions::core::expr_fn::coalesce;
use ppt_query::datafusion::logical_expr::{Expr, lit};
use ppt_query::datafusion::prelude::{DataFrame, cast, ident};
use ppt_query::{CaptureTable, Engine, FrameTable, QueryError, dropped_causes, sql_literal};

use crate::edges::edges;
use crate::event::{COLUMNS, ClockPair, EventRole, EventSchema, TraceFormat};
use crate::frame_kind::{ColumnNames, FrameKinds, IntervalColumns, fields};
use crate::metrics::EngineMetrics;
use crate::selection::TraceSelection;
use crate::source::{Sources, TraceRows, column, order};

/// The events of the captures of an engine, for one format.
#[derive(Debug)]
pub struct Events<'a> {
    engine: &'a Engine,
    form: TraceFormat,
    /// Time for events that have none, ns since the epoch.
    start: i64,
    growing: Option<GrowingEvents>,
}

/// The state of a capture that grows.
#[derive(Debug)]
struct GrowingEvents {
    /// The complete spans, by buffer and frame, wherever they began.
    spans: BTreeMap<(String, String), Vec<RecordBatch>>,
    /// Whether this is the last part of the capture.
    is_last: bool,
}

/// Kinds of events, and for each the source of its rows.
#[derive(Default)]
struct FoundKinds {
    kinds: Vec<EventSchema>,
    all: Vec<TraceRows>,
    frames: Vec<FrameKinds>,
}

impl FoundKinds {
    fn add(&mut self, kind: EventSchema, rows: TraceRows) {
        self.kinds.push(kind);
        self.all.push(rows);
    }

    fn add_sorted(&mut self, new: impl IntoIterator<Item = (EventSchema, DataFrame)>) {
        for (kind, rows) in new {
            self.add(kind, TraceRows::Sorted(rows));
        }
    }
}

fn any(intervals: &[IntervalColumns]) -> Expr {
    intervals.iter().map(IntervalColumns::is_there).reduce(Expr::or).unwrap_or(lit(false))
}

fn ns(column: &str) -> Expr {
    cast(ident(column), DataType::Int64)
}

impl<'a> Events<'a> {
    /// The events of `engine`'s captures for a trace of that `form`.
    pub fn new(engine: &'a Engine, form: TraceFormat) -> Events<'a> {
        let start = engine.set().began().unwrap_or(0);
        Events { engine, form, start, growing: None }
    }

    /// Declares that the captures are a part of one that grows. `spans` are the spans that this part completes.
    pub(crate) fn grow(
        &mut self,
        spans: BTreeMap<(String, String), Vec<RecordBatch>>,
        is_last: bool,
    ) {
        self.growing = Some(GrowingEvents { spans, is_last });
    }

    /// The kinds of events of the selection, and for each the source of its rows.
    ///
    /// # Errors
    /// A capture cannot be read, or a table lacks a column that events need.
    pub async fn sources(
        &self,
        selection: &TraceSelection,
    ) -> Result<(Vec<EventSchema>, Sources), QueryError> {
        let mut found = FoundKinds::default();
        for frame in &selection.frames {
            self.add_frames(frame, &mut found);
            found.add_sorted(self.closed_spans(frame).await?);
        }
        if selection.unknown
            && let Some((kind, rows)) = self.unknown_frames().await?
        {
            found.add(kind, TraceRows::Unknown(rows));
        }
        for frame in &selection.with_spans_alone {
            found.add_sorted(self.closed_spans(frame).await?);
        }
        let metrics = EngineMetrics::new(self.engine, self.form, self.start);
        if selection.counters {
            found.add_sorted(metrics.counters().await?);
        }
        if selection.histograms {
            found.add_sorted(metrics.histograms().await?);
        }
        if selection.states {
            found.add_sorted([self.states().await?]);
        }
        found.add_sorted([self.missing(selection).await?]);
        let mut edges_are_unknown = None;
        if self.form == TraceFormat::Otlp {
            match edges(self.engine, &found.kinds, self.growing.is_some()).await {
                Ok(edges) => found.add_sorted(edges),
                // Everything except edges can be exported.
                Err(QueryError::Incomparable(why)) => edges_are_unknown = Some(why),
                Err(error) => return Err(error),
            }
        }
        let FoundKinds { kinds, all, frames } = found;
        Ok((kinds, Sources { all, frames, edges_are_unknown }))
    }

    fn add_frames(&self, frame: &FrameTable, found: &mut FoundKinds) {
        let intervals = match self.form {
            // CTF has only points in time; fields contain durations.
            TraceFormat::Ctf => Vec::new(),
            _ => IntervalColumns::all(frame.table.as_ref()),
        };
        let first = found.kinds.len();
        found.kinds.extend(intervals.iter().map(|interval| self.kind(frame, Some(interval))));
        found.kinds.push(self.kind(frame, None));
        found.all.resize_with(found.kinds.len(), || TraceRows::Frames);
        found.frames.push(FrameKinds { frame: frame.clone(), intervals, first });
    }

    /// Frames whose kind is missing in their schema, if the captures have the table `frames`.
    async fn unknown_frames(&self) -> Result<Option<(EventSchema, DataFrame)>, QueryError> {
        let frames_table = self.engine.tables().into_iter().find(|table| table.0 == "frames");
        let Some((_, table)) = frames_table else { return Ok(None) };
        let table = table.as_ref();
        let drained = fields(table).next().map(|field| table.schema().field(field).clone());
        let of = self.engine.context().table("frames").await?;
        let of = of.filter(ident("frame").is_null())?;
        let kind = EventSchema {
            what: EventRole::Unknown,
            buffer: String::new(),
            frame: String::new(),
            interval: None,
            fields: drained.into_iter().collect(),
            seqno: ColumnNames::from_table(table).seqno().to_owned(),
        };
        let rows = of.select(self.columns(table, None, lit(true)))?;
        Ok(Some((kind, rows.sort(order(self.last_is_outer(false)))?)))
    }

    /// The complete spans of a kind of frames, if it has spans. CTF has their begins and ends instead.
    async fn closed_spans(
        &self,
        frame: &FrameTable,
    ) -> Result<Option<(EventSchema, DataFrame)>, QueryError> {
        let spans = self.engine.spans(frame).filter(|_| self.form != TraceFormat::Ctf);
        let spans = spans.and_then(|spans| Some((IntervalColumns::whole(&spans)?, spans)));
        let Some((interval, spans)) = spans else { return Ok(None) };
        let context = self.engine.context();
        let rows = match &self.growing {
            None => context.table(spans.name.clone()).await?,
            Some(growing) => {
                let table = (frame.buffer.clone(), frame.frame.clone());
                let Some(done) = growing.spans.get(&table) else { return Ok(None) };
                context.read_batches(done.iter().cloned())?
            }
        };
        let columns = self.columns(spans.table.as_ref(), Some(&interval), lit(false));
        let rows = rows.filter(interval.is_there())?.select(columns)?;
        let kind = EventSchema { what: EventRole::Spans, ..self.kind(&spans, None) };
        Ok(Some((kind, rows.sort(order(self.last_is_outer(true)))?)))
    }

    /// The rows of a kind of frames, sorted by a query. `interval`: index of the kind's interval.
    pub(crate) async fn sorted(
        &self,
        of: &FrameKinds,
        interval: Option<usize>,
    ) -> Result<DataFrame, QueryError> {
        let table = of.frame.table.as_ref();
        let rows = self.engine.context().table(of.frame.name.clone()).await?;
        let (first, wanted) = match interval {
            Some(at) => {
                let first = Expr::Not(Box::new(any(&of.intervals[..at])));
                (first, Some(of.intervals[at].is_there()))
            }
            None => {
                let none = Expr::Not(Box::new(any(&of.intervals)));
                (lit(true), (!of.intervals.is_empty()).then_some(none))
            }
        };
        let rows = match wanted {
            Some(wanted) => rows.filter(wanted)?,
            None => rows,
        };
        let interval = interval.map(|at| &of.intervals[at]);
        let rows = rows.select(self.columns(table, interval, first))?;
        Ok(rows.sort(order(self.last_is_outer(interval.is_some())))?)
    }

    /// The engine whose captures are exported.
    pub(crate) fn engine(&self) -> &'a Engine {
        self.engine
    }

    /// The begin of the first capture, ns since the epoch: the time of events that have none.
    pub fn start(&self) -> i64 {
        self.start
    }

    /// States of threads, as the kernel recorded them. Waits have the names of their system calls.
    async fn states(&self) -> Result<(EventSchema, DataFrame), QueryError> {
        let [begin, dur, placed, first, capture, of_buffer, segment, ring, seqno, host, pid, tid] =
            COLUMNS.map(|text| format!("AS \"{}\"", column(text)));
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
        let mut fields: Vec<Field> = fields.map(|field| field.as_ref().clone()).collect();
        let named = ("attributes".to_owned(), "name".to_owned());
        fields[0].set_metadata([named].into());
        let kind = EventSchema {
            what: EventRole::States,
            buffer: "kernel".to_owned(),
            frame: "thread_states".to_owned(),
            interval: None,
            fields,
            seqno: "seqno".to_owned(),
        };
        Ok((kind, rows))
    }

    fn kind(&self, frame: &FrameTable, interval: Option<&IntervalColumns>) -> EventSchema {
        let table = frame.table.as_ref();
        EventSchema {
            what: EventRole::Frames,
            buffer: frame.buffer.clone(),
            frame: frame.frame.clone(),
            interval: interval.map(|interval| interval.name.clone()),
            fields: fields(table).map(|field| table.schema().field(field).clone()).collect(),
            seqno: ColumnNames::from_table(table).seqno().to_owned(),
        }
    }

    /// The SELECT list of a table: [`COLUMNS`], and the fields.
    fn columns(
        &self,
        table: &dyn CaptureTable,
        interval: Option<&IntervalColumns>,
        first: Expr,
    ) -> Vec<Expr> {
        let names = ColumnNames::from_table(table);
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
        let identity = names.identity.iter().map(|text| ident(text.as_str()));
        let fixed = made.chain(identity).zip(COLUMNS);
        let mut select: Vec<Expr> = fixed.map(|(expr, name)| expr.alias(column(name))).collect();
        // A computed column is selected in addition to its field.
        let name = |column: usize| ident(table.schema().field(column).name().as_str());
        select.extend(fields(table).map(name));
        select
    }

    /// Whether, of equal slices, the one that was written last encloses the others.
    pub(crate) fn last_is_outer(&self, is_slice: bool) -> bool {
        is_slice && self.form != TraceFormat::Ctf
    }

    /// Missing frames of the exported buffers.
    async fn missing(
        &self,
        selection: &TraceSelection,
    ) -> Result<(EventSchema, DataFrame), QueryError> {
        let mut buffers = selection.buffers();
        let words = |words: &[&str]| {
            let quoted = words.iter().map(|text| sql_literal(text));
            quoted.collect::<Vec<_>>().join(", ")
        };
        if buffers.is_empty() {
            buffers.push("");
        }
        let (buffers, causes) = (words(&buffers), words(&dropped_causes()));
        let start = self.start;
        // Dropped frames are counted until the end.
        let is_told = self.growing.as_ref().is_none_or(|growing| growing.is_last);
        let [begin, dur, placed, first, capture, buffer, segment, ring, seqno, host, pid, tid] =
            COLUMNS.map(|text| format!("AS \"{}\"", column(text)));
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
             FROM account WHERE {is_told} AND count > 0 AND buffer IN ({buffers}) AND cause IN ({causes}) \
             ORDER BY 1, \"ppt:seqno\", \"ppt:ring\""
        );
        let rows = self.engine.sql(&sql).await?;
        let schema = rows.schema().as_arrow().clone();
        let fields = schema.fields()[COLUMNS.len()..].iter().map(|field| field.as_ref().clone());
        let kind = EventSchema {
            what: EventRole::Missing,
            buffer: String::new(),
            frame: String::new(),
            interval: None,
            fields: fields.collect(),
            seqno: "seqno".to_owned(),
        };
        Ok((kind, rows))
    }

    /// Pairs of the monotonic and the realtime clock; empty for several boots, which have no common monotonic clock.
    ///
    /// # Errors
    /// A capture cannot be read, or the query is cancelled or exceeds its memory.
    pub async fn readings(&self) -> Result<Vec<ClockPair>, QueryError> {
        let sql = "SELECT a_before + (a_after - a_before) / 2 AS a, b FROM clocks \
                   WHERE clock_a = 'monotonic' AND clock_b = 'realtime' \
                     AND (SELECT count(DISTINCT boot_id) FROM captures) = 1 ORDER BY a";
        let mut readings = Vec::new();
        for batch in self.engine.sql(sql).await?.collect().await? {
            let long = |at: usize| batch.column(at).as_primitive::<Int64Type>().values().iter();
            let known = long(0).zip(long(1)).filter_map(|(&a, &b)| {
                let (monotonic, realtime) = (u64::try_from(a).ok()?, u64::try_from(b).ok()?);
                Some(ClockPair { monotonic, realtime })
            });
            readings.extend(known);
        }
        Ok(readings)
    }
}
