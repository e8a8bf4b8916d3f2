//! The table of missing frames: one row per run of sequence numbers of one cause.
//!
//! `lost_before` of a frames chunk does not state the order of its causes: they are shown as
//! overrun, disk, corrupt. Losses by damage to the file come last, as `corrupt`.

use ppt_capture::{Cause, ChunkFrames, Gap};

use crate::table::{CellValue, TableWriter};

/// Names of the columns. With several processes, one is the process's.
pub(crate) fn columns(by_process: bool) -> Vec<String> {
    let names = ["buffer", "pid", "segment", "ring", "first_seq", "count", "cause"];
    let names = names.into_iter().filter(|&name| by_process || name != "pid");
    names.map(str::to_owned).collect()
}

/// Writes one row.
pub(crate) fn write(
    writer: &mut dyn TableWriter,
    label: &str,
    pid: Option<u32>,
    gap: &Gap,
    out: &mut Vec<u8>,
) {
    let nonce = gap.nonce.to_be_bytes();
    let cells = [
        Some(CellValue::Text(label.as_bytes())),
        pid.map(|pid| CellValue::Unsigned(pid.into())),
        Some(CellValue::Bytes(&nonce)),
        Some(CellValue::Unsigned(gap.ring.into())),
        Some(CellValue::Unsigned(gap.first_seq)),
        Some(CellValue::Unsigned(gap.count)),
        Some(CellValue::Text(gap.cause.name().as_bytes())),
    ];
    for (column, value) in cells.into_iter().flatten().enumerate() {
        writer.cell(column, value, out);
    }
    writer.end_row(out);
}

/// The missing frames of a frames chunk: before its first frame, and damaged ones.
pub(crate) fn of_frames(frames: &ChunkFrames<'_>) -> Vec<Gap> {
    let head = &frames.head;
    let gap = |first_seq, count, cause| Gap {
        source: head.source,
        nonce: head.nonce,
        ring: head.ring,
        first_seq,
        count,
        cause,
    };
    let mut gaps: Vec<Gap> = Vec::new();
    if frames.loss_is_new {
        let mut seq = head.first_seq.saturating_sub(head.lost_before.total());
        for (cause, count) in head.lost_before.by_cause().into_iter().filter(|(_, n)| *n > 0) {
            gaps.push(gap(seq, count, cause));
            seq += count;
        }
    }
    for seq in frames.wrong() {
        match gaps.last_mut() {
            Some(last) if last.cause == Cause::Corrupt && last.next_seq() == seq => last.count += 1,
            _ => gaps.push(gap(seq, 1, Cause::Corrupt)),
        }
    }
    gaps
}
