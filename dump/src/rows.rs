//! From frames to rows.

use ppt_capture::{ClockTable, Damage, DamageKind, FramesHead, Stamps};

use crate::plan::{FramePlan, Plan, SourcePlan};
use crate::table::{TableWriter, Value};

/// What must be known to write the rows of a chunk.
#[derive(Clone, Copy)]
pub(crate) struct Rows<'a> {
    pub plan: &'a Plan,
    pub clocks: &'a ClockTable,
}

/// How it went.
#[derive(Debug, Default)]
pub(crate) struct Written {
    pub rows: u64,
    /// The first frame of a kind that the schema does not have.
    pub damage: Option<Damage>,
}

impl Rows<'_> {
    /// Appends a row for each wanted one of `frames`, which are a chunk's: its offset, its head,
    /// and the numbers and bytes of its frames.
    pub fn write<'f>(
        self,
        (offset, head): (u64, &FramesHead),
        frames: impl Iterator<Item = (u64, &'f [u8])>,
        writer: &mut dyn TableWriter,
        out: &mut Vec<u8>,
    ) -> Written {
        let mut written = Written::default();
        let Some(source) = self.plan.sources.get(&head.source) else { return written };
        let stamps = Stamps {
            table: self.clocks,
            drained_ns: head.drained_mono_ns,
            monotonic_offset: source.monotonic_offset,
        };
        for (seq, bytes) in frames {
            let Some(frame) = kind_of(&source.frames, bytes) else {
                let kind = DamageKind::UnknownFrame { ring: head.ring, seq, id: frame_id(bytes) };
                written.damage.get_or_insert(Damage { offset, kind });
                continue;
            };
            if !frame.wanted {
                continue;
            }
            self.standard(seq, head, source, frame, writer, out);
            let bytes = bytes.get(..frame.size).unwrap_or(bytes);
            for cell in &frame.cells {
                let value = cell.as_ref().map_or(Value::Empty, |cell| cell.read(bytes, stamps));
                writer.cell(value, out);
            }
            writer.end_row(out);
            written.rows += 1;
        }
        written
    }

    /// The cells that every row begins with.
    fn standard(
        self,
        seq: u64,
        head: &FramesHead,
        source: &SourcePlan,
        frame: &FramePlan,
        writer: &mut dyn TableWriter,
        out: &mut Vec<u8>,
    ) {
        writer.cell(Value::Unsigned(seq), out);
        writer.cell(Value::Unsigned(head.ring.into()), out);
        let tid = match head.tid {
            0 => Value::Empty,
            tid => Value::Unsigned(tid.into()),
        };
        writer.cell(tid, out);
        if self.plan.by_segment {
            writer.cell(Value::Bytes(&head.nonce.to_be_bytes()), out);
        }
        if self.plan.by_process {
            writer.cell(Value::Unsigned(source.pid.into()), out);
        }
        if self.plan.by_buffer {
            writer.cell(Value::Text(source.label.as_bytes()), out);
        }
        if self.plan.by_frame {
            writer.cell(Value::Text(frame.name.as_bytes()), out);
        }
    }
}

/// Where several frames share a buffer: the u16 after the sequence number.
fn frame_id(bytes: &[u8]) -> u16 {
    bytes.get(8..10).map_or(0, |id| u16::from_le_bytes([id[0], id[1]]))
}

fn kind_of<'a>(frames: &'a [FramePlan], bytes: &[u8]) -> Option<&'a FramePlan> {
    match frames {
        [only] => Some(only),
        several => several.get(usize::from(frame_id(bytes))),
    }
}
