//! Exports that are traces: what happened, in the order of time.

use std::io::{self, BufWriter, IsTerminal};

use ppt_interchange::{COLUMNS, Chrome, Ctf, Kind, Perfetto, Reading, Trace, What};
use ppt_query::arrow::array::{Array, AsArray};
use ppt_query::arrow::datatypes::{DataType, Field, Int64Type};
use ppt_query::datafusion::functions::core::expr_fn::coalesce;
use ppt_query::datafusion::logical_expr::{Expr, lit};
use ppt_query::datafusion::prelude::{DataFrame, cast, ident};
use ppt_query::{
    Bounded, Engine, FrameTable, Number, Processes, QueryError, Table, TotalValue, Word,
    dropped_causes,
};

use super::folder::Folder;
use super::merge::Merge;
use crate::args::{self, ExportFormat};
use crate::failure::Failure;
use crate::{message, open};
use ppt_query::text::grouped;

/// Bytes that are written at once.
const BUFFER: usize = 1 << 20;

/// What a trace is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Perfetto,
    Chrome,
    Ctf,
}

impl Form {
    pub(super) fn of(format: ExportFormat) -> Option<Form> {
        match format {
            ExportFormat::Perfetto => Some(Form::Perfetto),
            ExportFormat::Chrome => Some(Form::Chrome),
            ExportFormat::Ctf => Some(Form::Ctf),
            _ => None,
        }
    }
}

pub(super) async fn export(
    form: Form,
    args: &args::Export,
    engine: &Engine,
) -> Result<(), Failure> {
    if !args.partition_by.is_empty() {
        let why = "a trace is one whole: --partition-by is for tables";
        return Err(Failure::Usage(why.to_owned()));
    }
    let to = &args.to.output;
    let is_stdout = to.as_os_str() == "-";
    let frames = engine.frames(args.frame.as_deref())?;
    let start = engine.set().began().unwrap_or(0);
    let asked = Asked { engine, form, start };
    let (kinds, rows) = asked.all(&frames, args.frame.is_none()).await?;
    let processes = Processes::of(engine.set());
    if form == Form::Ctf {
        if is_stdout {
            let why = "CTF is a folder: name it with -o";
            return Err(Failure::Usage(why.to_owned()));
        }
        let folder = Folder::new(to)?;
        let name = to.display().to_string();
        let trace = Ctf::new(folder.inside(), &kinds).map_err(Failure::writing(&name))?;
        write(trace, &kinds, rows, &name).await?;
        return folder.publish();
    }
    if is_stdout && form == Form::Perfetto && io::stdout().is_terminal() {
        let why = "this format is not for terminals: name a file with -o";
        return Err(Failure::Usage(why.to_owned()));
    }
    let mut output = open::output(to, args.to.force, engine)?;
    let name = output.name();
    let file = BufWriter::with_capacity(BUFFER, output.file());
    let fail = Failure::writing(&name);
    if form == Form::Perfetto {
        let readings = asked.readings().await?;
        let trace = Perfetto::new(file, &kinds, processes, &readings).map_err(&fail)?;
        write(trace, &kinds, rows, &name).await?;
    } else {
        let trace = Chrome::new(file, &kinds, processes).map_err(&fail)?;
        write(trace, &kinds, rows, &name).await?;
    }
    Ok(output.publish()?)
}

/// Writes all rows; says how many have no time.
async fn write(
    mut trace: impl Trace,
    kinds: &[Kind],
    rows: Vec<DataFrame>,
    name: &str,
) -> Result<(), Failure> {
    let fail = Failure::writing(name);
    let mut streams = Vec::new();
    for rows in rows {
        streams.push(rows.execute_stream().await.map_err(QueryError::from)?);
    }
    let mut merge = Merge::of(streams).await?;
    let (mut timeless, mut done) = (0u64, None);
    while let Some(run) = merge.next(done).await? {
        done = Some(run.kind);
        if run.is_new {
            trace.next_batch(run.kind);
        }
        for row in run.which {
            let is_frame = matches!(kinds[run.kind].what, What::Frames | What::Unknown);
            if is_frame && !run.rows.placed(row) {
                timeless += 1;
            }
            trace.event(run.kind, run.rows, row).map_err(&fail)?;
        }
    }
    trace.finish().map_err(&fail)?;
    if timeless > 0 {
        let subject = match timeless {
            1 => "1 frame has no time: its place".to_owned(),
            count => format!("{} frames have no time: their place", grouped(count)),
        };
        message::note(format_args!("{subject} in the trace is the beginning of the first capture"));
    }
    Ok(())
}

/// What is asked of the captures.
struct Asked<'a> {
    engine: &'a Engine,
    form: Form,
    /// Where what has no time stands.
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
        let interval = |length: &std::sync::Arc<Field>| {
            let name = said(length, "interval")?;
            let is_start = |it: &&std::sync::Arc<Field>| {
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
        let is_dur = |it: &&std::sync::Arc<Field>| {
            it.metadata().get("role").is_some_and(|role| role == "dur")
        };
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

/// A text in SQL.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

fn any(intervals: &[Interval]) -> Expr {
    intervals.iter().map(Interval::is_there).reduce(Expr::or).unwrap_or(lit(false))
}

fn ns(column: &str) -> Expr {
    cast(ident(column), DataType::Int64)
}

/// A column of [`COLUMNS`]: no field has such a name.
fn column(name: &str) -> String {
    format!("ppt:{name}")
}

impl Asked<'_> {
    /// The kinds of events, and for each its rows in order.
    async fn all(
        &self,
        frames: &[FrameTable],
        whole: bool,
    ) -> Result<(Vec<Kind>, Vec<DataFrame>), QueryError> {
        let (mut kinds, mut rows) = (Vec::new(), Vec::new());
        let mut add = |kind, of| {
            kinds.push(kind);
            rows.push(of);
        };
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
                let of = self.engine.context().table(frame.name.clone()).await?;
                let of = of.filter(interval.is_there())?;
                let first = Expr::Not(Box::new(any(before)));
                add(kind, self.rows(of, table, Some(interval), first)?);
            }
            let mut of = self.engine.context().table(frame.name.clone()).await?;
            if !intervals.is_empty() {
                of = of.filter(Expr::Not(Box::new(any(&intervals))))?;
            }
            add(self.kind(frame, None), self.rows(of, table, None, lit(true))?);
            // CTF has the begins and the ends.
            let spans = self.engine.spans(frame).filter(|_| self.form != Form::Ctf);
            if let Some((spans, whole)) = spans.and_then(|it| Some((Interval::whole(&it)?, it))) {
                let of = self.engine.context().table(whole.name.clone()).await?;
                let of = of.filter(spans.is_there())?;
                let rows = self.rows(of, whole.table.as_ref(), Some(&spans), lit(false))?;
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
            add(kind, self.rows(of, table.as_ref(), None, lit(true))?);
        }
        if whole {
            for (kind, of) in self.metrics().await? {
                add(kind, of);
            }
        }
        // CTF has the kernel's frames.
        if whole && self.form != Form::Ctf && self.engine.set().has_kernel() {
            let (kind, of) = self.states().await?;
            add(kind, of);
        }
        let (kind, of) = self.missing(frames).await?;
        add(kind, of);
        Ok((kinds, rows))
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

    /// Each counter, added up over the threads of a process, and each histogram.
    async fn metrics(&self) -> Result<Vec<(Kind, DataFrame)>, QueryError> {
        let names = "SELECT DISTINCT arrow_cast(buffer, 'Utf8'), arrow_cast(name, 'Utf8'), \
                            arrow_cast(unit, 'Utf8') FROM counters ORDER BY 1, 2, 3";
        let mut all = Vec::new();
        for [buffer, name, unit] in self.names(names).await? {
            all.push(self.counter(&buffer, &name, Some(&*unit).filter(|it| !it.is_empty())).await?);
        }
        for total in self.engine.totals()? {
            let TotalValue::Histogram(_, is_time) = total.value else { continue };
            let of = (&*total.buffer, &*total.name);
            let unit = if is_time && total.unit.is_empty() { "ns" } else { &total.unit };
            match self.form {
                Form::Ctf => all.push(self.histogram(of).await?),
                // Viewers have curves.
                _ => {
                    for (what, unit) in [("count", ""), ("p50", unit), ("p99", unit)] {
                        all.push(self.curve(of, what, unit).await?);
                    }
                }
            }
        }
        Ok(all)
    }

    /// Rows of three texts; what is NULL is empty.
    async fn names(&self, sql: &str) -> Result<Vec<[String; 3]>, QueryError> {
        let mut all = Vec::new();
        for batch in self.engine.sql(sql).await?.collect().await? {
            let text = |row: usize, at: usize| {
                let column = batch.column(at).as_string::<i32>();
                if column.is_valid(row) { column.value(row).to_owned() } else { String::new() }
            };
            all.extend((0..batch.num_rows()).map(|row| [0, 1, 2].map(|at| text(row, at))));
        }
        Ok(all)
    }

    /// The buckets of a histogram in each ring, as each reading found them.
    async fn histogram(
        &self,
        (buffer, name): (&str, &str),
    ) -> Result<(Kind, DataFrame), QueryError> {
        let [begin, dur, placed, first, capture, of_buffer, segment, ring, seqno, host, pid, tid] =
            COLUMNS.map(|it| format!("AS \"{}\"", column(it)));
        let long = "arrow_cast(NULL, 'Int64')";
        let sql = format!(
            "SELECT coalesce(arrow_cast(ts, 'Int64'), {start}) {begin}, {long} {dur}, \
                    ts IS NOT NULL {placed}, true {first}, capture {capture}, buffer {of_buffer}, \
                    segment {segment}, ring {ring}, {long} {seqno}, host {host}, pid {pid}, \
                    tid {tid}, lo, hi, count, sum \
             FROM histograms WHERE buffer = {buffer} AND name = {name} \
             ORDER BY 1, ring, lo NULLS FIRST",
            start = self.start,
            buffer = quoted(buffer),
            name = quoted(name),
        );
        let rows = self.engine.sql(&sql).await?;
        let fields = rows.schema().as_arrow().fields().iter().skip(COLUMNS.len());
        let kind = Kind {
            what: What::Histogram,
            buffer: buffer.to_owned(),
            frame: name.to_owned(),
            interval: None,
            fields: fields.map(|it| it.as_ref().clone()).collect(),
            seqno: "seqno".to_owned(),
        };
        Ok((kind, rows))
    }

    /// A curve of a histogram: how many values there were since the session began, or a percentile of
    /// those that came since the reading before, which is the greatest value of its bucket.
    async fn curve(
        &self,
        (buffer, name): (&str, &str),
        what: &str,
        unit: &str,
    ) -> Result<(Kind, DataFrame), QueryError> {
        let [begin, dur, placed, first, capture, of_buffer, segment, ring, seqno, host, pid, tid] =
            COLUMNS.map(|it| format!("AS \"{}\"", column(it)));
        let none = |ty: &str| format!("arrow_cast(NULL, '{ty}')");
        let (long, int, word) = (none("Int64"), none("Int32"), none("Dictionary(Int32, Utf8)"));
        let at = |share: f64| {
            format!("min(CASE WHEN below >= total * {share} THEN coalesce(hi - 1, lo) END)")
        };
        let value = match what {
            "p50" => at(0.5),
            "p99" => at(0.99),
            _ => "sum(max(total)) OVER (PARTITION BY host, pid ORDER BY ts, capture \
                  ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)"
                .to_owned(),
        };
        // What came is what is more than in the reading before.
        let sql = format!(
            "WITH came AS (SELECT capture, buffer, host, pid, ts, lo, hi, sum(n) AS n FROM \
               (SELECT *, count - coalesce(lag(count) OVER (PARTITION BY capture, segment, ring, \
                   host, pid, lo, hi ORDER BY ts), 0) AS n \
                FROM histograms WHERE buffer = {buffer} AND name = {name}) \
               WHERE n > 0 GROUP BY capture, buffer, host, pid, ts, lo, hi), \
             ranked AS (SELECT *, \
               sum(n) OVER (PARTITION BY capture, host, pid, ts ORDER BY lo NULLS FIRST \
                   ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS below, \
               sum(n) OVER (PARTITION BY capture, host, pid, ts) AS total FROM came) \
             SELECT coalesce(arrow_cast(ts, 'Int64'), {start}) {begin}, {long} {dur}, \
                    ts IS NOT NULL {placed}, true {first}, capture {capture}, \
                    buffer {of_buffer}, {word} {segment}, {int} {ring}, {long} {seqno}, \
                    host {host}, pid {pid}, {int} {tid}, arrow_cast({value}, 'Int64') AS value \
             FROM ranked GROUP BY capture, buffer, host, pid, ts ORDER BY 1",
            start = self.start,
            buffer = quoted(buffer),
            name = quoted(name),
        );
        let rows = self.engine.sql(&sql).await?;
        let value = rows.schema().as_arrow().field(COLUMNS.len()).clone();
        let said = (!unit.is_empty()).then(|| ("unit".to_owned(), unit.to_owned()));
        let kind = Kind {
            what: What::Counter,
            buffer: buffer.to_owned(),
            frame: format!("{name}.{what}"),
            interval: None,
            fields: vec![value.with_metadata(said.into_iter().collect())],
            seqno: "seqno".to_owned(),
        };
        Ok((kind, rows))
    }

    async fn counter(
        &self,
        buffer: &str,
        name: &str,
        unit: Option<&str>,
    ) -> Result<(Kind, DataFrame), QueryError> {
        let [begin, dur, placed, first, capture, of_buffer, segment, ring, seqno, host, pid, tid] =
            COLUMNS.map(|it| format!("AS \"{}\"", column(it)));
        let none = |ty: &str| format!("arrow_cast(NULL, '{ty}')");
        let (long, int, word) = (none("Int64"), none("Int32"), none("Dictionary(Int32, Utf8)"));
        let unit_is = unit.map_or("unit IS NULL".to_owned(), |it| format!("unit = {}", quoted(it)));
        // The rings of a reading have one time.
        let sql = format!(
            "SELECT coalesce(arrow_cast(ts, 'Int64'), {start}) {begin}, {long} {dur}, \
                    ts IS NOT NULL {placed}, true {first}, capture {capture}, \
                    buffer {of_buffer}, {word} {segment}, {int} {ring}, {long} {seqno}, \
                    host {host}, pid {pid}, {int} {tid}, \
                    sum(added) OVER (PARTITION BY host, pid ORDER BY ts, capture \
                        ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS value \
             FROM (SELECT capture, buffer, host, pid, ts, sum(delta) AS added FROM counters \
                   WHERE buffer = {buffer} AND name = {name} AND {unit_is} \
                   GROUP BY capture, buffer, host, pid, ts) \
             ORDER BY 1",
            start = self.start,
            buffer = quoted(buffer),
            name = quoted(name),
        );
        let rows = self.engine.sql(&sql).await?;
        let value = rows.schema().as_arrow().field(COLUMNS.len()).clone();
        let said = unit.map(|unit| ("unit".to_owned(), unit.to_owned()));
        let kind = Kind {
            what: What::Counter,
            buffer: buffer.to_owned(),
            frame: name.to_owned(),
            interval: None,
            fields: vec![value.with_metadata(said.into_iter().collect())],
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

    fn rows(
        &self,
        of: DataFrame,
        table: &dyn Table,
        interval: Option<&Interval>,
        first: Expr,
    ) -> Result<DataFrame, QueryError> {
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
        let inner_first = self.form != Form::Ctf && interval.is_some();
        let order = [
            ident(column("begin")).sort(true, true),
            ident(column("dur")).sort(false, false),
            // Of equal slices, the one that was written last is around the others.
            ident(column("seqno")).sort(!inner_first, true),
            ident(column("ring")).sort(true, true),
        ];
        Ok(of.select(select)?.sort(order.to_vec())?)
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
    async fn readings(&self) -> Result<Vec<Reading>, QueryError> {
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
fn fields(table: &dyn Table) -> impl Iterator<Item = &std::sync::Arc<Field>> {
    let is_told = |it: &usize| match table.bounded(*it) {
        None | Some(Bounded::Number(Number::Drained)) => true,
        Some(_) => false,
    };
    let fields = table.schema().fields();
    (0..fields.len()).filter(is_told).map(|it| &fields[it])
}
