//! `rings`: each drained ring, with totals of its frames.

use std::collections::HashMap;
use std::sync::Arc;

use ppt_capture::{Cause, RingKey};

use super::named::NamedTable;
use crate::error::{SetError, TableError};
use crate::set::CaptureSet;
use crate::small::{Cell, CellType, SmallTable, schema};

pub(super) fn make(set: &Arc<CaptureSet>) -> Result<Vec<NamedTable>, SetError> {
    let schema = schema([
        ("capture", CellType::Word),
        ("buffer", CellType::Word),
        ("segment", CellType::Word),
        ("ring", CellType::Int),
        ("host", CellType::Word),
        ("pid", CellType::Int),
        ("first_seq", CellType::Long),
        ("next_seq", CellType::Long),
        ("frames", CellType::Long),
        ("lost", CellType::Long),
        ("left_out", CellType::Long),
        ("unattended", CellType::Long),
        ("absent", CellType::Long),
    ]);
    Ok(vec![NamedTable::fixed("rings", SmallTable { set: set.clone(), schema, rows })])
}

fn rows(set: &CaptureSet) -> Result<Vec<Vec<Cell>>, TableError> {
    let mut rows = Vec::new();
    for capture in set.captures() {
        let catalog = capture.verified()?;
        let sources: HashMap<u16, _> =
            catalog.sources.iter().map(|source| (source.id, source)).collect();
        let mut absent: HashMap<RingKey, u64> = HashMap::new();
        for gap in catalog.gaps.iter().map(|at| at.gap).filter(|gap| gap.cause == Cause::Absent) {
            *absent.entry(RingKey::of_gap(&gap)).or_default() += gap.count;
        }
        for (key, ring) in catalog.account.rings() {
            let Some(info) = sources.get(&key.source) else { continue };
            rows.push(vec![
                Cell::word(&capture.id),
                Cell::word(&info.source.buffer),
                Cell::word(&format!("{:016x}", key.nonce)),
                Cell::int(key.ring),
                Cell::word(catalog.host()),
                Cell::int(info.source.process.pid),
                Cell::count(ring.first_seq),
                Cell::count(ring.next_seq),
                Cell::count(ring.captured),
                Cell::count(ring.lost_with_damage().total()),
                Cell::count(ring.left_out),
                Cell::count(ring.unattended),
                Cell::count(absent.get(&key).copied().unwrap_or(0)),
            ]);
        }
    }
    Ok(rows)
}
