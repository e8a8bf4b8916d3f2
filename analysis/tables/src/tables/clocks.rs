//! `clocks`: readings of a clock between two readings of another.

use std::sync::Arc;

use super::named::NamedTable;
use crate::error::{SetError, TableError};
use crate::set::CaptureSet;
use crate::small::{Cell, CellType, SmallTable, schema};

pub(super) fn make(set: &Arc<CaptureSet>) -> Result<Vec<NamedTable>, SetError> {
    let schema = schema([
        ("capture", CellType::Word),
        ("host", CellType::Word),
        ("clock_a", CellType::Word),
        ("clock_b", CellType::Word),
        ("a_before", CellType::Long),
        ("b", CellType::Long),
        ("a_after", CellType::Long),
        ("flags", CellType::Int),
    ]);
    Ok(vec![NamedTable::fixed("clocks", SmallTable { set: set.clone(), schema, rows })])
}

/// Bit of `flags`: the system does not trust its tick counter.
const DISTRUSTED: i32 = 1;

fn rows(set: &CaptureSet) -> Result<Vec<Vec<Cell>>, TableError> {
    let mut rows = Vec::new();
    for capture in set.captures() {
        let catalog = capture.catalog();
        for reading in &catalog.clock_readings {
            rows.push(vec![
                Cell::word(&capture.id),
                Cell::word(catalog.host()),
                Cell::word(reading.a.name()),
                Cell::word(reading.b.name()),
                Cell::count(reading.a_before),
                Cell::count(reading.b_value),
                Cell::count(reading.a_after),
                Cell::Int(if reading.distrusted { DISTRUSTED } else { 0 }),
            ]);
        }
    }
    Ok(rows)
}
