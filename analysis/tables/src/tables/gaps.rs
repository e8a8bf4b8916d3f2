//! `gaps`: runs of missing sequence numbers, with their cause and the bounds of their times.

use std::collections::HashMap;
use std::sync::Arc;

use super::named::NamedTable;
use crate::error::{SetError, TableError};
use crate::gap_times::Neighbours;
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
        ("tid", CellType::Int),
        ("first_seq", CellType::Long),
        ("count", CellType::Long),
        ("cause", CellType::Word),
        ("ts_lo", CellType::Time),
        ("ts_hi", CellType::Time),
    ]);
    Ok(vec![NamedTable::fixed("gaps", SmallTable { set: set.clone(), schema, rows })])
}

fn rows(set: &CaptureSet) -> Result<Vec<Vec<Cell>>, TableError> {
    let mut rows = Vec::new();
    for capture in set.captures() {
        let catalog = capture.verified()?;
        let neighbours = Neighbours::new(catalog);
        let sources: HashMap<u16, _> =
            catalog.sources.iter().map(|source| (source.id, source)).collect();
        for at in &catalog.gaps {
            let gap = &at.gap;
            let Some(info) = sources.get(&gap.source) else { continue };
            let (lo, hi) = neighbours.times(at);
            rows.push(vec![
                Cell::word(&capture.id),
                Cell::word(&info.source.buffer),
                Cell::word(&format!("{:016x}", gap.nonce)),
                Cell::int(gap.ring),
                Cell::word(catalog.host()),
                Cell::int(info.source.process.pid),
                neighbours.tid(gap).map_or(Cell::Null, Cell::int),
                Cell::count(gap.first_seq),
                Cell::count(gap.count),
                Cell::word(gap.cause.name()),
                Cell::time(lo),
                Cell::time(hi),
            ]);
        }
    }
    Ok(rows)
}
