//! Spans and chains of captures that grow. Each is exported once, when it is complete. Until then, its frames
//! are in a separate file.

use ppt_delivery::{CaptureState, Delivery, DeliveryError, OpenWholes, PlannedRange, file_name};
use ppt_query::arrow::array::RecordBatch;
use ppt_query::{Engine, QueryError, SettledWholes, Settling, SpansOrChains};

use super::super::tables::{parquet_file_of_rows, path_component};
use super::waiting::{WaitingTable, WaitingTables, WholeTable, decode, encode};
use crate::args::Time;
use crate::error::AnswerError;

/// The maximum time in ns between a frame's stamp and its publication. Its thread may lose its CPU in between.
const SLACK_NS: i64 = 1_000_000_000;
/// The maximum number of waiting frames of each table.
const MAX_WAITING: usize = 1_000_000;

/// An export of spans and chains.
pub(super) struct WholesExport<'a> {
    pub frame: Option<&'a str>,
    pub time: Time,
}

impl WholesExport<'_> {
    fn wants(&self, table: &WholeTable) -> bool {
        self.frame.is_none_or(|name| name == table.1)
    }

    /// Writes the files of a range, and keeps its open spans and chains for the next range. `engine` has the
    /// range's frames; None if they are not read.
    pub async fn deliver(
        &self,
        delivery: &mut Delivery,
        range: &PlannedRange,
        engine: Option<&Engine>,
    ) -> Result<(), AnswerError> {
        let mut wholes = WholesOfRange::read(delivery, range).await?;
        let mut done = Vec::new();
        if let Some(engine) = engine {
            let wanted = |whole: &SpansOrChains| self.wants(&table_of(whole));
            wholes.settle((&*delivery, engine), range, (wanted, false), |whole, settled| {
                done.push((table_of(whole), std::mem::take(&mut settled.rows)));
            })?;
        }
        if range.ends {
            // No existing capture has their frames.
            let last = wholes.finish().into_iter();
            done.extend(last.map(|(table, rows)| (table, vec![rows])));
        }
        for (table, rows) in &done {
            self.put(delivery, range, table, rows).await?;
        }
        wholes.keep(delivery).await
    }

    async fn put(
        &self,
        delivery: &mut Delivery,
        range: &PlannedRange,
        (buffer, table): &WholeTable,
        rows: &[RecordBatch],
    ) -> Result<(), AnswerError> {
        let Some((bytes, count)) = parquet_file_of_rows(rows, (buffer, table), self.time)? else {
            return Ok(());
        };
        let name = file_name(&path_component(&format!("{buffer}.{table}")), range, "parquet");
        Ok(delivery.put(name, count, bytes).await?)
    }
}

fn table_of(whole: &SpansOrChains) -> WholeTable {
    (whole.buffer.clone(), whole.name.clone())
}

/// Spans and chains while a range is written.
pub(super) struct WholesOfRange {
    /// Their entry in the manifest.
    pub open: OpenWholes,
    /// Bytes that another format keeps with the waiting frames.
    pub beside: Vec<u8>,
    waiting: WaitingTables,
}

impl WholesOfRange {
    /// Reads the frames that wait before a range.
    pub async fn read(
        delivery: &Delivery,
        range: &PlannedRange,
    ) -> Result<WholesOfRange, AnswerError> {
        let manifest = delivery.manifest();
        let progress = manifest.progress(&range.capture);
        let series = progress.map_or(&range.capture, |progress| &progress.series).clone();
        let known = manifest.open_of(&series).cloned();
        let open = known.unwrap_or_else(|| OpenWholes { series, ..OpenWholes::default() });
        let mut wholes = WholesOfRange { open, beside: Vec::new(), waiting: WaitingTables::new() };
        if let Some(bytes) = delivery.open_frames(&wholes.open.series).await? {
            (wholes.waiting, wholes.beside) = decode(&bytes).ok_or_else(|| wholes.bad())?;
        }
        Ok(wholes)
    }

    /// The error for an invalid file of waiting frames.
    pub fn bad(&self) -> DeliveryError {
        DeliveryError::BadOpenFile {
            name: self.open.file.as_ref().map(|file| file.name.clone()).unwrap_or_default(),
            why: "another version of ppt wrote it".to_owned(),
        }
    }

    /// Adds the frames of a range. Calls `take` with the complete spans or chains of each table that is `wanted`,
    /// and, if `with_links`, with the links between their frames.
    pub fn settle(
        &mut self,
        (delivery, engine): (&Delivery, &Engine),
        range: &PlannedRange,
        (wanted, with_links): (impl Fn(&SpansOrChains) -> bool, bool),
        mut take: impl FnMut(&SpansOrChains, &mut SettledWholes),
    ) -> Result<(), AnswerError> {
        let until = (!range.ends).then(|| complete(engine, self.open.until));
        let with_absent = !goes_on(delivery, range);
        for whole in engine.growing_spans_and_chains().filter(|whole| wanted(whole)) {
            let table = table_of(whole);
            let before = self.waiting.remove(&table).unwrap_or_default();
            let settling = Settling {
                settled: self.open.until,
                until,
                is_new_capture: before.capture != range.capture,
                max_waiting: MAX_WAITING,
                with_links,
            };
            let growing = whole.growing.growing(with_absent).map_err(QueryError::from)?;
            let mut settled = growing.settle(before.wholes, settling).map_err(QueryError::from)?;
            self.open.late += settled.late;
            self.open.let_go += settled.let_go;
            take(whole, &mut settled);
            if until.is_some() {
                let (capture, wholes) = (range.capture.clone(), settled.waiting);
                self.waiting.insert(table, WaitingTable { capture, wholes });
            }
        }
        self.open.until = until.or(self.open.until);
        Ok(())
    }

    /// Returns the remaining rows, when no frame follows.
    pub fn finish(&mut self) -> Vec<(WholeTable, RecordBatch)> {
        let waiting = std::mem::take(&mut self.waiting).into_iter();
        waiting.filter_map(|(table, of)| Some((table, of.wholes.last_rows()?))).collect()
    }

    /// Writes the frames that wait for the next range.
    pub async fn keep(self, delivery: &mut Delivery) -> Result<(), AnswerError> {
        let frames = encode(&self.waiting, &self.beside);
        let frames = frames.map_err(AnswerError::writing("frames that wait"))?;
        Ok(delivery.keep_open(self.open, frames).await?)
    }
}

/// The time up to which all frames have arrived, as the part states; at least `before`.
fn complete(engine: &Engine, before: Option<i64>) -> i64 {
    let contents = engine.set().contents();
    let said = contents.first().and_then(|contents| {
        // An earlier version of ppt states only the time at which it drained frames.
        let drained = || contents.epoch(contents.chunks().last()?.drained);
        contents.complete().or_else(drained)
    });
    let until = said.map_or(i64::MIN, |said| said.saturating_sub(SLACK_NS));
    until.max(before.unwrap_or(i64::MIN))
}

/// Whether the file of the series before the capture of a range was read to its end.
fn goes_on(delivery: &Delivery, range: &PlannedRange) -> bool {
    let manifest = delivery.manifest();
    let Some(progress) = manifest.progress(&range.capture) else { return false };
    let mut others = manifest.captures.iter();
    others.any(|known| {
        known.series == progress.series
            && known.number + 1 == progress.number
            && known.state == CaptureState::Continued
    })
}
