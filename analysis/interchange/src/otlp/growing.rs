//! OpenTelemetry's protocol while captures grow. Each span is exported once, when no later frame can enclose,
//! cause or end it.
//!
//! A range of a capture is read as rows, as [`Otlp`](super::Otlp) reads captures, and each row becomes a
//! draft: a span without its parent. Drafts wait until all spans that they refer to are complete. The waiting
//! drafts are the state of an export, which passes from range to range as bytes.

mod assembly;
mod drafts;
mod meters;
pub(super) mod state;

use std::collections::{BTreeMap, HashSet};
use std::io;

use ppt_query::arrow::array::RecordBatch;
use ppt_query::{Engine, Processes, QueryError};
use prost::Message as _;

use super::batch::{Encoding, Spans, write_metrics};
use super::ids::{FrameId, frame_id};
use super::message::Resource;
use super::resource::Resources;
use crate::event::TraceFormat;
use crate::events::Events;
use crate::merge::{Merge, RowRun};
use crate::selection::TraceSelection;
use crate::values::{Column, FieldValue};
use assembly::{Assembly, Limits};
use drafts::Drafts;
use state::{Cause, State};

/// The complete spans and chains of a range.
#[derive(Debug, Default)]
pub struct RangeWholes {
    /// The complete spans, by buffer and frame.
    pub spans: BTreeMap<(String, String), Vec<RecordBatch>>,
    /// The edges between their frames, with the kind of those edges.
    pub links: Vec<(&'static str, RecordBatch)>,
    /// Their frames: capture, segment, ring and number.
    pub done: Vec<RecordBatch>,
}

/// A range to read.
#[derive(Debug, Clone, Copy)]
pub struct ReadRange<'a> {
    /// The frames of the range.
    pub engine: &'a Engine,
    /// The kinds that are wanted.
    pub selection: &'a TraceSelection,
    /// The id of the capture.
    pub capture: &'a str,
    /// Whether this is the last range of the capture.
    pub is_last: bool,
    /// The maximum bytes of frames that wait for earlier ones.
    pub memory: usize,
}

/// The files of a range. A file without content is None.
#[derive(Debug, Default)]
pub struct OtlpFiles {
    /// Requests with spans, and the number of spans.
    pub traces: Option<(Vec<u8>, u64)>,
    /// Requests with points of metrics, and the number of points.
    pub metrics: Option<(Vec<u8>, u64)>,
    /// The number of spans exported before they were complete, because too many waited.
    pub let_go: u64,
}

/// An export for OpenTelemetry of captures that grow.
#[derive(Debug, Default)]
pub struct GrowingOtlp {
    state: State,
    /// Frames of complete spans and chains.
    done: HashSet<FrameId>,
    meters: meters::Points,
}

impl GrowingOtlp {
    /// Decodes the state that [`GrowingOtlp::encode`] returned; None if the bytes are invalid.
    pub fn decode(bytes: &[u8]) -> Option<GrowingOtlp> {
        let state = State::decode(bytes).ok()?;
        state.is_sound().then(|| GrowingOtlp { state, ..GrowingOtlp::default() })
    }

    /// Encodes the state for the next range.
    pub fn encode(&self) -> Vec<u8> {
        self.state.encode_to_vec()
    }

    /// Reads a range.
    ///
    /// # Errors
    /// A capture cannot be read, or the query is cancelled or exceeds its memory.
    pub async fn read(
        &mut self,
        range: ReadRange<'_>,
        wholes: RangeWholes,
    ) -> Result<(), QueryError> {
        let ReadRange { engine, selection, .. } = range;
        for batch in &wholes.done {
            self.done.extend((0..batch.num_rows()).filter_map(|row| frame_at(batch, 0, row)));
        }
        for (word, batch) in &wholes.links {
            self.state.causes.extend(causes(word, batch));
        }
        let mut events = Events::new(engine, TraceFormat::Otlp);
        if self.state.start == 0 {
            self.state.start = u64::try_from(events.start()).unwrap_or(0);
        }
        events.grow(wholes.spans, range.is_last);
        let (kinds, sources) = events.sources(selection).await?;
        let mut merge = Merge::new(&events, sources, range.memory).await?;
        let processes = Processes::new(engine.set());
        let resources = Resources::new(engine, &processes).await?.of_growing();
        let told = (processes, resources);
        self.state.turn_to(range.capture);
        let mut drafts = Drafts::new(&mut self.state, &mut self.meters, &kinds, told);
        let mut take = |run: RowRun<'_>| {
            drafts.take(run);
            Ok::<_, QueryError>(())
        };
        while merge.next(&mut take).await? > 0 {}
        drafts.finish();
        self.meters.keep(&mut self.state);
        Ok(())
    }

    /// Returns the complete spans and points. `until` is the time up to which all frames have arrived; None if no
    /// frame follows.
    ///
    /// # Errors
    /// The spans cannot be encoded.
    pub fn settle(&mut self, until: Option<i64>, encoding: Encoding) -> io::Result<OtlpFiles> {
        let drafts = std::mem::take(&mut self.state.drafts);
        let causes = std::mem::take(&mut self.state.causes);
        let mut assembly = Assembly::new(drafts, causes);
        assembly.resolve();
        let let_go = assembly.settle(until, &std::mem::take(&mut self.done), Limits::default());
        let mut spans = Spans::default();
        let mut count = 0;
        for (resource, span) in assembly.done() {
            spans.push(resource, span);
            count += 1;
        }
        (self.state.drafts, self.state.causes) = assembly.rest();
        spans.close();
        let mut files = OtlpFiles { let_go, ..OtlpFiles::default() };
        let mut bytes = Vec::new();
        let resource = |number: usize| -> Resource {
            let known = self.state.resources.get(number);
            known.and_then(|known| known.resource.clone()).unwrap_or_default()
        };
        spans.write(&mut bytes, encoding, resource)?;
        files.traces = (count > 0).then_some((bytes, count));
        let mut bytes = Vec::new();
        let count =
            self.meters.write(|metrics| write_metrics(&mut bytes, encoding, metrics, resource))?;
        files.metrics = (count > 0).then_some((bytes, count));
        if until.is_none() {
            self.state = State::default();
        }
        self.state.forget_unused();
        Ok(files)
    }
}

/// The frame that four columns of a batch name, from the column `at` on.
fn frame_at(batch: &RecordBatch, at: usize, row: usize) -> Option<FrameId> {
    let column = |of: usize| Column::from_column(batch.column(at + of)).ok();
    let columns = [column(0)?, column(1)?, column(2)?, column(3)?];
    let word = |of: usize| match columns[of].get(row)? {
        FieldValue::Word(text) | FieldValue::Text(text) => Some(text.to_owned()),
        _ => None,
    };
    let long = |of: usize| match columns[of].get(row)? {
        FieldValue::Int(value) => Some(value),
        _ => None,
    };
    frame_id(word(0).as_deref(), word(1).as_deref(), long(2), long(3))
}

/// Edges between frames of spans and chains. The columns are the time of the cause, the four columns that name
/// it, and those that name the effect.
fn causes(word: &str, batch: &RecordBatch) -> Vec<Cause> {
    let times = Column::from_column(batch.column(0)).ok();
    let of_row = |row: usize| {
        let ts = match times.as_ref()?.get(row)? {
            FieldValue::Int(ts) => ts,
            _ => return None,
        };
        let (cause, effect) = (frame_at(batch, 1, row)?, frame_at(batch, 5, row)?);
        let (is_of_whole, word) = (true, Some(word.to_owned()));
        Some(Cause { cause, effect, ts, is_of_whole, word, ty: None, context: None })
    };
    (0..batch.num_rows()).filter_map(of_row).collect()
}
