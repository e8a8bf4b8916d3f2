//! Events of counters and histograms, from each of their readings.

use ppt_query::arrow::array::{Array, AsArray};
use ppt_query::datafusion::prelude::DataFrame;
use ppt_query::{Engine, QueryError, TotalValue, sql_literal};

use crate::event::{COLUMNS, EventRole, EventSchema, MAY_FALL, TraceFormat};
use crate::source::column;

/// The counters and histograms of an engine.
pub(crate) struct EngineMetrics<'a> {
    engine: &'a Engine,
    form: TraceFormat,
    /// Time for events that have none, ns since the epoch.
    start: i64,
}

impl<'a> EngineMetrics<'a> {
    pub fn new(engine: &'a Engine, form: TraceFormat, start: i64) -> EngineMetrics<'a> {
        EngineMetrics { engine, form, start }
    }

    /// Each counter, summed over the threads of a process.
    pub async fn counters(&self) -> Result<Vec<(EventSchema, DataFrame)>, QueryError> {
        let names = "SELECT DISTINCT arrow_cast(buffer, 'Utf8'), arrow_cast(name, 'Utf8'), \
                            arrow_cast(unit, 'Utf8') FROM counters ORDER BY 1, 2, 3";
        let mut all = Vec::new();
        for [buffer, name, unit] in self.names(names).await? {
            all.push(
                self.counter(&buffer, &name, Some(&*unit).filter(|text| !text.is_empty())).await?,
            );
        }
        Ok(all)
    }

    /// Each histogram.
    pub async fn histograms(&self) -> Result<Vec<(EventSchema, DataFrame)>, QueryError> {
        let mut all = Vec::new();
        for total in self.engine.totals()? {
            let TotalValue::Histogram(_, is_time) = total.value else { continue };
            let of = (&*total.buffer, &*total.name);
            let unit = if is_time && total.unit.is_empty() { "ns" } else { &total.unit };
            match self.form {
                TraceFormat::Ctf => all.push(self.histogram(of).await?),
                TraceFormat::Otlp => {
                    let (mut kind, rows) = self.histogram(of).await?;
                    let said = ("unit".to_owned(), unit.to_owned());
                    kind.fields[0].set_metadata([said].into());
                    all.push((kind, rows));
                }
                // Trace viewers show curves.
                _ => {
                    for (what, unit) in [("count", ""), ("p50", unit), ("p99", unit)] {
                        all.push(self.curve(of, what, unit).await?);
                    }
                }
            }
        }
        Ok(all)
    }

    /// Rows of three texts; NULL becomes empty.
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

    /// The buckets of a histogram in each ring, at each reading.
    async fn histogram(
        &self,
        (buffer, name): (&str, &str),
    ) -> Result<(EventSchema, DataFrame), QueryError> {
        let [begin, dur, placed, first, capture, of_buffer, segment, ring, seqno, host, pid, tid] =
            COLUMNS.map(|text| format!("AS \"{}\"", column(text)));
        let long = "arrow_cast(NULL, 'Int64')";
        let sql = format!(
            "SELECT coalesce(arrow_cast(ts, 'Int64'), {start}) {begin}, {long} {dur}, \
                    ts IS NOT NULL {placed}, true {first}, capture {capture}, buffer {of_buffer}, \
                    segment {segment}, ring {ring}, {long} {seqno}, host {host}, pid {pid}, \
                    tid {tid}, lo, hi, count, sum \
             FROM histograms WHERE buffer = {buffer} AND name = {name} \
             ORDER BY 1, ring, lo NULLS FIRST",
            start = self.start,
            buffer = sql_literal(buffer),
            name = sql_literal(name),
        );
        let rows = self.engine.sql(&sql).await?;
        let fields = rows.schema().as_arrow().fields().iter().skip(COLUMNS.len());
        let kind = EventSchema {
            what: EventRole::Histogram,
            buffer: buffer.to_owned(),
            frame: name.to_owned(),
            interval: None,
            fields: fields.map(|field| field.as_ref().clone()).collect(),
            seqno: "seqno".to_owned(),
        };
        Ok((kind, rows))
    }

    /// A curve of a histogram: the number of values since the session began, or a percentile of the
    /// values since the previous reading, which is the greatest value of its bucket.
    async fn curve(
        &self,
        (buffer, name): (&str, &str),
        what: &str,
        unit: &str,
    ) -> Result<(EventSchema, DataFrame), QueryError> {
        let [begin, dur, placed, first, capture, of_buffer, segment, ring, seqno, host, pid, tid] =
            COLUMNS.map(|text| format!("AS \"{}\"", column(text)));
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
        // New values are the difference to the previous reading.
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
            buffer = sql_literal(buffer),
            name = sql_literal(name),
        );
        let rows = self.engine.sql(&sql).await?;
        let value = rows.schema().as_arrow().field(COLUMNS.len()).clone();
        let said = (!unit.is_empty()).then(|| ("unit".to_owned(), unit.to_owned()));
        let kind = EventSchema {
            what: EventRole::Counter,
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
    ) -> Result<(EventSchema, DataFrame), QueryError> {
        let [begin, dur, placed, first, capture, of_buffer, segment, ring, seqno, host, pid, tid] =
            COLUMNS.map(|text| format!("AS \"{}\"", column(text)));
        let none = |ty: &str| format!("arrow_cast(NULL, '{ty}')");
        let (long, int, word) = (none("Int64"), none("Int32"), none("Dictionary(Int32, Utf8)"));
        let unit_is =
            unit.map_or("unit IS NULL".to_owned(), |unit| format!("unit = {}", sql_literal(unit)));
        // The rings of a reading have the same time.
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
            buffer = sql_literal(buffer),
            name = sql_literal(name),
        );
        let rows = self.engine.sql(&sql).await?;
        let value = rows.schema().as_arrow().field(COLUMNS.len()).clone();
        let unit = unit.map(|unit| ("unit".to_owned(), unit.to_owned()));
        let falls = self.engine.set().may_fall(buffer, name);
        let falls = falls.then(|| (MAY_FALL.to_owned(), String::new()));
        let said = unit.into_iter().chain(falls);
        let kind = EventSchema {
            what: EventRole::Counter,
            buffer: buffer.to_owned(),
            frame: name.to_owned(),
            interval: None,
            fields: vec![value.with_metadata(said.collect())],
            seqno: "seqno".to_owned(),
        };
        Ok((kind, rows))
    }
}
