//! Traces and metrics for OpenTelemetry, of captures that grow.

use ppt_delivery::{Delivery, PlannedRange, file_name};
use ppt_interchange::{
    Encoding, GrowingOtlp, OtlpFiles, RangeWholes, ReadRange, TraceFormat, TraceSelection,
};
use ppt_query::{Engine, QueryError, SettledWholes, SpansOrChains};

use super::wholes::WholesOfRange;
use crate::args::{self, ExportFormat};
use crate::error::AnswerError;
use crate::question_settings;

/// The encoding of spans; None if the format has no spans.
pub(super) fn encoding(format: ExportFormat) -> Option<Encoding> {
    match format {
        ExportFormat::Otlp => Some(Encoding::Protobuf),
        ExportFormat::OtlpJson => Some(Encoding::Json),
        ExportFormat::Parquet
        | ExportFormat::Arrow
        | ExportFormat::Csv
        | ExportFormat::Jsonl
        | ExportFormat::Perfetto
        | ExportFormat::Ctf
        | ExportFormat::Chrome => None,
    }
}

/// An export of traces and metrics.
pub(super) struct OtlpExport<'a> {
    pub args: &'a args::Export,
    pub encoding: Encoding,
}

impl OtlpExport<'_> {
    /// Writes the files of a range, and keeps the frames that wait for the next range. `engine` has the range's
    /// frames; None if they are not read.
    pub async fn deliver(
        &self,
        delivery: &mut Delivery,
        range: &PlannedRange,
        engine: Option<&Engine>,
    ) -> Result<(), AnswerError> {
        let mut wholes = WholesOfRange::read(delivery, range).await?;
        let mut otlp = match wholes.beside.is_empty() {
            true => GrowingOtlp::default(),
            false => GrowingOtlp::decode(&wholes.beside).ok_or_else(|| wholes.bad())?,
        };
        if let Some(engine) = engine {
            let mut of_range = RangeWholes::default();
            let wanted = |whole: &SpansOrChains| {
                let name = self.args.frame.as_deref();
                name.is_none_or(|name| name == whole.name || name == whole.frame)
            };
            wholes.settle((&*delivery, engine), range, (wanted, true), |whole, settled| {
                take(&mut of_range, whole, settled);
            })?;
            if let Some(selection) = self.selection(engine)? {
                let memory =
                    question_settings::memory(self.args.captures.memory).bytes.unwrap_or(1 << 30)
                        / 4;
                let (capture, is_last) = (&*range.capture, has_end(engine));
                let selection = &selection;
                let read = ReadRange { engine, selection, capture, is_last, memory };
                otlp.read(read, of_range).await?;
            }
        }
        if range.ends {
            wholes.finish();
        }
        let until = if range.ends { None } else { Some(wholes.open.until.unwrap_or(i64::MIN)) };
        let files = otlp.settle(until, self.encoding).map_err(AnswerError::writing("spans"))?;
        let OtlpFiles { traces, metrics, let_go } = files;
        wholes.open.let_go += let_go;
        let extension = if self.encoding == Encoding::Json { "jsonl" } else { "pb" };
        for (folder, file) in [("traces", traces), ("metrics", metrics)] {
            if let Some((bytes, count)) = file {
                delivery.put(file_name(folder, range, extension), count, bytes).await?;
            }
        }
        wholes.beside = if range.ends { Vec::new() } else { otlp.encode() };
        wholes.keep(delivery).await
    }

    /// The selection of the exported frames of a range; None if no frames have the requested name.
    fn selection(&self, engine: &Engine) -> Result<Option<TraceSelection>, AnswerError> {
        let form = TraceFormat::Otlp;
        let selection = match &self.args.frame {
            None => TraceSelection::everything(engine, form),
            Some(name) => TraceSelection::named(engine, form, name),
        };
        match selection {
            Ok(selection) => Ok(Some(selection.without_states())),
            Err(QueryError::NoFrame { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

fn take(of_range: &mut RangeWholes, whole: &SpansOrChains, settled: &mut SettledWholes) {
    of_range.done.extend(settled.done.take());
    let word = if whole.is_chain { "chain" } else { "span" };
    of_range.links.extend(settled.links.drain(..).map(|links| (word, links)));
    let rows = std::mem::take(&mut settled.rows);
    if !whole.is_chain && !rows.is_empty() {
        of_range.spans.insert((whole.buffer.clone(), whole.frame.clone()), rows);
    }
}

/// Whether the end of the capture is in the range, or before it.
fn has_end(engine: &Engine) -> bool {
    engine.set().contents().first().is_some_and(|contents| contents.end().is_some())
}
