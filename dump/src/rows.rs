//! Converts frames to rows.

use ppt_capture::columns::frame_id;
use ppt_capture::{ClockTable, Damage, DamageKind, FramesHead, Stamps, ThreadTable};
use ppt_predicate::{Chunk, PredicateRow};
use ppt_symbols::Symbols;

use crate::cell;
use crate::plan::CellPlan;
use crate::plan::{FramePlan, SourcePlan, TablePlan};
use crate::sorter::{KeyedRow, RowKey};
use crate::table::{CellValue, TableWriter, digits};
use crate::time_cells::TimeCells;
use crate::window::TableBounds;

/// The context for writing the rows of a chunk.
#[derive(Clone, Copy)]
pub(crate) struct RowContext<'a> {
    pub plan: &'a TablePlan,
    pub clocks: &'a ClockTable,
    pub threads: &'a ThreadTable,
    /// Names code addresses. `None` if names are not requested.
    pub symbols: Option<&'a Symbols>,
    /// Realtime − monotonic, ns.
    pub offset: Option<i128>,
    /// `None`: all rows.
    pub window: Option<&'a TableBounds>,
    /// The format of times. `None`: as they are.
    pub times: Option<TimeCells>,
    /// Whether each row gets a key.
    pub with_keys: bool,
}

/// The result of writing rows.
#[derive(Debug, Default)]
pub(crate) struct WrittenRows {
    pub rows: u64,
    /// The rows, if they get keys.
    pub keyed: Vec<KeyedRow>,
    /// Number of frames that may or may not be in the window.
    pub untimed: u64,
    /// The first frame of a kind that the schema does not have.
    pub damage: Option<Damage>,
}

impl RowContext<'_> {
    /// Appends a row for each wanted one of `frames`, which come from one chunk: its offset, its
    /// head, and the sequence numbers and bytes of its frames.
    pub fn write<'f, W: TableWriter>(
        self,
        (offset, head): (u64, &FramesHead),
        frames: impl Iterator<Item = (u64, &'f [u8])>,
        writer: &mut W,
        out: &mut Vec<u8>,
    ) -> WrittenRows {
        let mut written = WrittenRows::default();
        let Some(source) = self.plan.sources.get(&head.source) else { return written };
        let stamps = Stamps::new(self.clocks, head.drained_mono_ns, source.namespace);
        let chunk = Chunk { stamps: &stamps, offset: self.offset, head, pid: source.pid };
        let mut standard = Standard::default();
        let symbols = self.symbols.filter(|_| source.is_named);
        let mut namer = symbols.map(|symbols| symbols.namer(&source.facts));
        if let Some(namer) = &mut namer {
            namer.at(head.drained_mono_ns);
        }
        for (seq, bytes) in frames {
            let Some((id, frame)) = kind_of(&source.frames, bytes) else {
                let kind = DamageKind::UnknownFrame { ring: head.ring, seq, id: frame_id(bytes) };
                written.damage.get_or_insert(Damage { offset, kind });
                continue;
            };
            if !frame.wanted {
                continue;
            }
            if let Some(window) = self.window {
                match window.has_frame(seq, bytes, frame.at, head, &stamps) {
                    Some(true) => {}
                    Some(false) => continue,
                    None => {
                        written.untimed += 1;
                        continue;
                    }
                }
            }
            let bytes = bytes.get(..frame.size).unwrap_or(bytes);
            if let Some(program) = &frame.matching
                && program.matches(&PredicateRow { chunk: &chunk, seqno: seq, bytes }) != Some(true)
            {
                continue;
            }
            let tid = source.other_threads.as_ref().and_then(|others| others.of(bytes));
            let kind_and_thread = (id, tid.map_or(head.tid, i32::cast_unsigned));
            if standard.kind_and_thread != Some(kind_and_thread) {
                self.standard(&mut standard, head, source, (frame, kind_and_thread.1), writer);
                standard.kind_and_thread = Some(kind_and_thread);
            }
            let begin = out.len();
            writer.begin_cell(0, out);
            digits(seq, out);
            standard.append(out);
            for (column, cell) in (standard.columns..).zip(&frame.cells) {
                match cell {
                    Some(CellPlan { reader, is_named: true, .. }) => {
                        let address = reader.address(bytes).unwrap_or(0);
                        let name = namer.as_mut().and_then(|namer| namer.name(address));
                        let name =
                            name.map_or(CellValue::Empty, |name| CellValue::Text(name.as_bytes()));
                        writer.cell(column, name, out);
                    }
                    Some(CellPlan { reader, time: None, .. }) => {
                        cell::write(reader, column, bytes, &stamps, writer, out);
                    }
                    Some(CellPlan { time: Some(time), .. }) => {
                        if let Some(times) = self.times {
                            times.write((*time, bytes), &stamps, column, (writer, out));
                        }
                    }
                    None => writer.cell(column, CellValue::Empty, out),
                }
            }
            writer.end_row(out);
            written.rows += 1;
            if self.with_keys {
                let own = frame.at.and_then(|at| at.epoch(at.word(bytes), &stamps, self.offset));
                let time = own.or_else(|| self.drained(head)).unwrap_or(i128::MAX);
                let FramesHead { source, nonce, ring, .. } = *head;
                let key = RowKey { time, source, nonce, ring, seq };
                written.keyed.push(KeyedRow { key, len: out.len() - begin });
            }
        }
        written
    }

    /// The time at which frames were drained, ns since the epoch.
    fn drained(self, head: &FramesHead) -> Option<i128> {
        let ns = Some(head.drained_mono_ns).filter(|&ns| ns != 0)?;
        Some(i128::from(ns) + self.offset?)
    }

    /// The cells that every row begins with, except the first one.
    fn standard<W: TableWriter>(
        self,
        standard: &mut Standard,
        head: &FramesHead,
        source: &SourcePlan,
        (frame, tid): (&FramePlan, u32),
        writer: &mut W,
    ) {
        let named = self.threads.at(source.process, tid, head.drained_mono_ns);
        let tid = match tid {
            0 => CellValue::Empty,
            tid => CellValue::Unsigned(tid.into()),
        };
        let nonce = head.nonce.to_be_bytes();
        let plan = self.plan;
        let name = named.map_or(CellValue::Empty, |named| CellValue::Text(named.bytes()));
        let cells = [
            Some(CellValue::Unsigned(head.ring.into())),
            Some(tid),
            plan.by_name.then_some(name),
            plan.by_segment.then_some(CellValue::Bytes(&nonce)),
            plan.by_process.then_some(CellValue::Unsigned(source.pid.into())),
            plan.by_buffer.then_some(CellValue::Text(source.label.as_bytes())),
            plan.by_frame.then_some(CellValue::Text(frame.name.as_bytes())),
        ];
        standard.text.clear();
        standard.columns = 1;
        for value in cells.into_iter().flatten() {
            writer.cell(standard.columns, value, &mut standard.text);
            standard.columns += 1;
        }
        let short = standard.text.len().min(SHORT);
        standard.short[..short].copy_from_slice(&standard.text[..short]);
    }
}

/// Number of bytes for which a copy of fixed length is faster than one of the exact length.
const SHORT: usize = 32;

/// The common cells of all rows of one kind in a chunk that are about one thread.
#[derive(Debug, Default)]
struct Standard {
    /// The number of the kind, and the thread.
    kind_and_thread: Option<(usize, u32)>,
    /// The cells after the first one, as text.
    text: Vec<u8>,
    /// The first bytes of that text.
    short: [u8; SHORT],
    /// The number of columns up to these cells.
    columns: usize,
}

impl Standard {
    /// Appends the cells. A short text is copied with a fixed length, which costs almost nothing.
    #[inline]
    fn append(&self, out: &mut Vec<u8>) {
        let end = out.len() + self.text.len();
        match self.text.len() {
            0..=SHORT => out.extend_from_slice(&self.short),
            _ => out.extend_from_slice(&self.text),
        }
        out.truncate(end);
    }
}

#[inline]
fn kind_of<'a>(frames: &'a [FramePlan], bytes: &[u8]) -> Option<(usize, &'a FramePlan)> {
    let id = if frames.len() == 1 { 0 } else { usize::from(frame_id(bytes)) };
    Some((id, frames.get(id)?))
}
