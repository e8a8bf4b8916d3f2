//! Spans and chains of what is followed. Each goes out once, when it is done; the frames of those that are
//! not are in a file of their own until then.

use ppt_delivery::{CaptureState, Delivery, DeliveryError, OpenWholes, PlannedRange, file_name};
use ppt_query::arrow::array::RecordBatch;
use ppt_query::{Engine, QueryError, Settling, SpansOrChains, WaitingWholes};

use super::super::tables::{parquet_of_rows, safe};
use super::waiting::{WaitingTable, WaitingTables, WholeTable, decode, encode};
use crate::args::Time;
use crate::failure::Failure;

/// How much later than its stamp a frame may be published, ns. Its thread may have lost its CPU in between.
const SLACK_NS: i64 = 1_000_000_000;
/// Frames that may wait for others, of each table.
const MOST_WAITING: usize = 1_000_000;

/// What is exported of spans and chains.
pub(super) struct WholesExport<'a> {
    pub frame: Option<&'a str>,
    pub time: Time,
}

impl WholesExport<'_> {
    fn wants(&self, table: &WholeTable) -> bool {
        self.frame.is_none_or(|name| name == table.1)
    }

    /// Puts the files of a range, and what is open behind it. `engine` has its frames; None: nobody reads
    /// them.
    pub async fn deliver(
        &self,
        delivery: &mut Delivery,
        range: &PlannedRange,
        engine: Option<&Engine>,
    ) -> Result<(), Failure> {
        let manifest = delivery.manifest();
        let progress = manifest.progress(&range.capture);
        let series = progress.map_or(&range.capture, |progress| &progress.series).clone();
        let known = manifest.open_of(&series).cloned();
        let mut open = known.unwrap_or_else(|| OpenWholes { series, ..OpenWholes::default() });
        if engine.is_none() && !range.ends {
            return Ok(());
        }
        let mut waiting = read(delivery, &open).await?;
        let mut kept = WaitingTables::new();
        if let Some(engine) = engine {
            let until = (!range.ends).then(|| complete(engine, open.until));
            let with_absent = !goes_on(delivery, range);
            for whole in engine.growing_wholes() {
                let table = (whole.buffer.clone(), whole.name.clone());
                if !self.wants(&table) {
                    continue;
                }
                let before = waiting.remove(&table).unwrap_or_default();
                let is_next = before.capture != range.capture;
                let settling = Settling { settled: open.until, until, is_next, most: MOST_WAITING };
                let settled = settle(whole, before.wholes, settling, with_absent)?;
                open.late += settled.late;
                open.let_go += settled.let_go;
                self.put(delivery, range, &table, &settled.rows).await?;
                let capture = range.capture.clone();
                kept.insert(table, WaitingTable { capture, wholes: settled.waiting });
            }
            open.until = until.or(open.until);
        }
        if range.ends {
            // Their frames are in no capture that is there.
            for (table, waiting) in &waiting {
                let rows: Vec<RecordBatch> = waiting.wholes.last_rows().into_iter().collect();
                self.put(delivery, range, table, &rows).await?;
            }
            kept.clear();
        } else {
            kept.append(&mut waiting);
        }
        let frames = encode(&kept).map_err(Failure::writing("frames that wait"))?;
        Ok(delivery.keep_open(open, frames).await?)
    }

    async fn put(
        &self,
        delivery: &mut Delivery,
        range: &PlannedRange,
        (buffer, table): &WholeTable,
        rows: &[RecordBatch],
    ) -> Result<(), Failure> {
        let Some((bytes, count)) = parquet_of_rows(rows, (buffer, table), self.time)? else {
            return Ok(());
        };
        let name = file_name(&safe(&format!("{buffer}.{table}")), range, "parquet");
        Ok(delivery.put(name, count, bytes).await?)
    }
}

async fn read(delivery: &Delivery, open: &OpenWholes) -> Result<WaitingTables, Failure> {
    let Some(bytes) = delivery.open_frames(&open.series).await? else {
        return Ok(WaitingTables::new());
    };
    let bad = || DeliveryError::BadOpenFile {
        name: open.file.as_ref().map(|file| file.name.clone()).unwrap_or_default(),
        why: "another version of ppt wrote it".to_owned(),
    };
    Ok(decode(&bytes).ok_or_else(bad)?)
}

fn settle(
    whole: &SpansOrChains,
    waiting: WaitingWholes,
    settling: Settling,
    with_absent: bool,
) -> Result<ppt_query::SettledWholes, Failure> {
    let growing = whole.growing.growing(with_absent).map_err(QueryError::from)?;
    Ok(growing.settle(waiting, settling).map_err(QueryError::from)?)
}

/// Up to when all frames are there, as far as the part says; never earlier than `before`.
fn complete(engine: &Engine, before: Option<i64>) -> i64 {
    let contents = engine.set().contents();
    let said = contents.first().and_then(|contents| {
        // An earlier version of ppt says only when it had the frames that are there.
        let drained = || contents.epoch(contents.chunks().last()?.drained);
        contents.complete().or_else(drained)
    });
    let until = said.map_or(i64::MIN, |said| said.saturating_sub(SLACK_NS));
    until.max(before.unwrap_or(i64::MIN))
}

/// Whether all frames of the series before the capture of a range were read.
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
