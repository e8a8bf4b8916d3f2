//! Reads the kernel's frames of some kinds and threads from chunks.

use std::sync::Arc;

use arrow_array::StringArray;
use arrow_schema::SchemaRef;
use ppt_capture::columns::Time;

use super::fields::{FieldPlace, KernelFrameFields, NumberField};
use super::frames::KernelFrames;
use super::read::{READ, ReadColumn};
use crate::bounds::{Bounds, Range};
use crate::builder::Builder;
use crate::chunk_scan::{ChunkRowSource, Ts, Wanted, kind_bit};
use crate::kernel::KernelFrameKind;
use crate::rows::RowsInChunk;
use crate::standard::{ChunkRows, STANDARD, Standard};

/// The kernel's frames of some kinds and threads.
#[derive(Debug)]
pub(super) struct Chosen {
    pub frames: Arc<KernelFrames>,
    pub kinds: &'static [KernelFrameKind],
    /// Thread ids; None for all threads.
    pub threads: Option<Range>,
}

impl Chosen {
    /// Whether a frame is of a requested thread. A frame of an unknown thread is not.
    fn is_requested(&self, kind: &KernelFrameFields, frame: &[u8]) -> bool {
        let thread = kind.thread.map_or(0, |thread| thread.number(frame));
        match self.threads {
            Some((from, to)) => thread != 0 && from <= thread && thread <= to,
            None => thread != 0 || kind.kind == KernelFrameKind::Lost,
        }
    }
}

impl ChunkRowSource for Chosen {
    fn schema(&self) -> &SchemaRef {
        &self.frames.schema
    }

    fn dictionary(&self, _: usize) -> Option<Arc<StringArray>> {
        None
    }

    fn wanted(&self, capture: usize, source: u16, _: &Bounds) -> Wanted {
        let Some(form) = self.frames.forms.get(&(capture, source)) else { return Wanted::NOTHING };
        let wanted = form.kinds.iter().filter(|kind| self.kinds.contains(&kind.1.kind));
        let kinds = wanted.fold(0, |kinds, entry| kinds | kind_bit(entry.0.into()));
        Wanted { kinds, frame_is_row: false, ts: Ts::Other }
    }

    fn append(&self, chunk: &ChunkRows<'_>, columns: &[usize], to: &mut [Builder]) -> usize {
        let owner = chunk.owner;
        let Some(form) = self.frames.forms.get(&(chunk.capture, owner.source)) else { return 0 };
        let Some(&group) = self.frames.group_of.get(&(owner.process, owner.nonce)) else {
            return 0;
        };
        let (mut scratch, mut count) = (Vec::new(), 0);
        for (id, kind) in form.kinds.iter().filter(|kind| self.kinds.contains(&kind.1.kind)) {
            let rows = if form.multi { chunk.rows.of_kind(*id, &mut scratch) } else { chunk.rows };
            let mut requested = Vec::new();
            rows.each_row(|row, frame| {
                if self.is_requested(kind, frame) {
                    requested.push(row);
                }
            });
            let rows = RowsInChunk { selected: Some(&requested), ..rows };
            count += rows.len();
            for (&column, builder) in columns.iter().zip(&mut *to) {
                append_column(chunk, group, kind, rows, column, builder);
            }
        }
        count
    }
}

/// Appends a column of frames of one kind.
fn append_column(
    chunk: &ChunkRows<'_>,
    group: i32,
    kind: &KernelFrameFields,
    rows: RowsInChunk<'_>,
    column: usize,
    builder: &mut Builder,
) {
    let values = chunk.values(rows);
    let time = |time: Option<Time>, builder: &mut Builder| match time {
        Some(time) => builder.time(time, &values),
        None => builder.nulls(rows.len()),
    };
    let place = |place: Option<FieldPlace>, builder: &mut Builder| match place {
        // −1 for numbers above 31 bits, which no thread and no CPU has.
        Some(place) => {
            let number = |frame: &[u8]| i32::try_from(place.number(frame)).unwrap_or(-1);
            builder.each(rows, |frame| Some(number(frame)));
        }
        None => builder.repeat(Some(-1), rows.len()),
    };
    let value = |value: &Option<NumberField>, builder: &mut Builder| match value {
        Some(value) => builder.each(rows, |frame| Some(value.read(frame))),
        None => builder.repeat(Some(0i64), rows.len()),
    };
    match (STANDARD.get(column), READ.get(column.wrapping_sub(STANDARD.len()))) {
        (Some(Standard::Ts), _) => time(kind.at, builder),
        (Some(standard), _) => chunk.standard(*standard, rows, builder),
        (None, Some((read, ..))) => match read {
            ReadColumn::Group => builder.repeat(Some(group), rows.len()),
            ReadColumn::Thread => place(kind.thread, builder),
            ReadColumn::Kind => builder.repeat(Some(kind.kind.number()), rows.len()),
            ReadColumn::Cpu => place(kind.cpu, builder),
            ReadColumn::A if kind.kind == KernelFrameKind::Lost => time(kind.since, builder),
            ReadColumn::A => value(&kind.a, builder),
            ReadColumn::B => value(&kind.b, builder),
            ReadColumn::Name => builder.texts(rows, |frame| {
                let bytes = kind.name?.bytes(frame);
                Some(bytes.split(|&byte| byte == 0).next().unwrap_or_default())
            }),
            ReadColumn::Capture => builder.repeat(Some(chunk.owner.capture), rows.len()),
        },
        (None, None) => builder.nulls(rows.len()),
    }
}
