//! The ids of traces and spans. They follow from the frames alone, so two exports of one capture have the
//! same ones.

use xxhash_rust::xxh3::Xxh3;

use crate::event::{EventRole, EventRows, EventSchema, Marks};
use crate::values::FieldValue;

/// The number of a frame: of its capture, segment, ring and number there.
pub(super) type FrameId = u64;

/// The ids of a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SpanContext {
    pub trace: [u8; 16],
    pub span: [u8; 8],
}

fn add(hash: &mut Xxh3, text: Option<&str>) {
    // No text has this byte, so it separates adjacent texts.
    hash.update(text.unwrap_or("").as_bytes());
    hash.update(&[0xff]);
}

/// The number of a frame; None if the row has no frame.
pub(super) fn frame_id(
    capture: Option<&str>,
    segment: Option<&str>,
    ring: Option<i64>,
    seqno: Option<i64>,
) -> Option<FrameId> {
    let (ring, seqno) = (ring?, seqno?);
    let mut hash = Xxh3::new();
    add(&mut hash, capture);
    add(&mut hash, segment);
    hash.update(&ring.to_le_bytes());
    hash.update(&seqno.to_le_bytes());
    Some(hash.digest())
}

/// The number of the frame of a row.
pub(super) fn frame_of(rows: &EventRows, row: usize) -> Option<FrameId> {
    let (capture, segment) = rows.origin(row);
    frame_id(capture, segment, rows.ring(row).map(i64::from), rows.seqno(row))
}

/// The context of a row that is in no trace of another row. `label` distinguishes the rows of a frame, and
/// `number` those that no frame names.
pub(super) fn root(
    (kind, label): (&EventSchema, &str),
    number: u64,
    rows: &EventRows,
    row: usize,
) -> SpanContext {
    let mut hash = Xxh3::new();
    let (capture, segment) = rows.origin(row);
    add(&mut hash, capture);
    add(&mut hash, segment);
    add(&mut hash, Some(label));
    hash.update(&[kind.what as u8]);
    hash.update(&rows.ring(row).unwrap_or(-1).to_le_bytes());
    hash.update(&rows.seqno(row).unwrap_or(-1).to_le_bytes());
    match kind.what {
        EventRole::Frames | EventRole::Spans | EventRole::Unknown => {}
        EventRole::Missing => {
            add(&mut hash, rows.buffer.get(row));
            add(&mut hash, Some(rows.missing(row).1));
            hash.update(&rows.pid(row).unwrap_or(-1).to_le_bytes());
        }
        _ => {
            hash.update(&rows.begin(row).to_le_bytes());
            hash.update(&number.to_le_bytes());
        }
    }
    let both = hash.digest128();
    let trace = stated_id(kind, rows, row).unwrap_or(both);
    // No id is all zeros.
    SpanContext {
        trace: trace.max(1).to_be_bytes(),
        span: ((both >> 64) as u64).max(1).to_be_bytes(),
    }
}

/// The trace that a row names itself: an identity of 16 bytes, as it is, or else the value of `@flow`.
fn stated_id(kind: &EventSchema, rows: &EventRows, row: usize) -> Option<u128> {
    if !kind.is_of_frames() {
        return None;
    }
    let value = |at: usize| rows.fields.get(at)?.get(row);
    for (at, _) in kind.identities() {
        if let Some(FieldValue::Bytes(bytes)) = value(at)
            && let Ok(bytes) = <[u8; 16]>::try_from(bytes)
            && bytes != [0; 16]
        {
            return Some(u128::from_be_bytes(bytes));
        }
    }
    let flow = match value(kind.marked(|marks: Marks| marks.flow)?)? {
        FieldValue::Int(flow) => flow as u64,
        FieldValue::Uint(flow) => flow,
        _ => return None,
    };
    // 0 is no flow.
    let mut hash = Xxh3::new();
    hash.update(b"flow");
    hash.update(&flow.to_le_bytes());
    (flow != 0).then(|| hash.digest128())
}
