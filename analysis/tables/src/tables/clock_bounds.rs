//! `clock_bounds`: the bounds of a host's times, and their width, over time.

use std::sync::Arc;

use super::named::NamedTable;
use crate::error::{SetError, TableError};
use crate::set::CaptureSet;
use crate::small::{Cell, CellType, SmallTable, schema};

pub(super) fn make(set: &Arc<CaptureSet>) -> Result<Vec<NamedTable>, SetError> {
    let schema = schema([
        ("capture", CellType::Word),
        ("host", CellType::Word),
        ("reference", CellType::Word),
        ("ts", CellType::Time),
        ("own", CellType::Time),
        ("lo", CellType::Time),
        ("hi", CellType::Time),
        ("width", CellType::Long),
        ("known", CellType::Bool),
    ]);
    Ok(vec![NamedTable::fixed("clock_bounds", SmallTable { set: set.clone(), schema, rows })])
}

fn rows(set: &CaptureSet) -> Result<Vec<Vec<Cell>>, TableError> {
    let clocks = set.clocks();
    let reference = clocks.reference().unwrap_or_default();
    let mut rows = Vec::new();
    for (number, capture) in set.captures().iter().enumerate() {
        let Some(alignment) = clocks.alignment(number) else { continue };
        for time in alignment.times() {
            rows.push(vec![
                Cell::word(&capture.id),
                Cell::word(capture.catalog().host()),
                Cell::word(reference),
                Cell::Time(time.ts),
                Cell::Time(time.own),
                Cell::Time(time.lo),
                Cell::Time(time.hi),
                Cell::Long(time.hi.saturating_sub(time.lo)),
                Cell::Bool(!time.gap),
            ]);
        }
    }
    Ok(rows)
}
