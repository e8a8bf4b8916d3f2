//! `triggers`: the reasons for which a flight recorder wrote its windows.

use std::sync::Arc;

use super::named::NamedTable;
use crate::error::{SetError, TableError};
use crate::set::CaptureSet;
use crate::small::{Cell, CellType, SmallTable, schema};

pub(super) fn make(set: &Arc<CaptureSet>) -> Result<Vec<NamedTable>, SetError> {
    let schema = schema([
        ("capture", CellType::Word),
        ("ts", CellType::Time),
        ("why", CellType::Word),
        ("expression", CellType::Text),
        ("buffer", CellType::Word),
        ("segment", CellType::Word),
        ("ring", CellType::Int),
        ("seqno", CellType::Long),
        ("note", CellType::Text),
    ]);
    Ok(vec![NamedTable::fixed("triggers", SmallTable { set: set.clone(), schema, rows })])
}

fn rows(set: &CaptureSet) -> Result<Vec<Vec<Cell>>, TableError> {
    let mut rows = Vec::new();
    for capture in set.captures() {
        let catalog = capture.catalog();
        for trigger in &catalog.triggers {
            let info = catalog.sources.iter().find(|info| Some(info.id) == trigger.source);
            rows.push(vec![
                Cell::word(&capture.id),
                Cell::time(catalog.epoch(trigger.mono_ns)),
                Cell::word(trigger.why.name()),
                Cell::text(&trigger.expression),
                info.map_or(Cell::Null, |info| Cell::word(&info.source.buffer)),
                trigger.ring.map_or(Cell::Null, |(nonce, _)| Cell::word(&format!("{nonce:016x}"))),
                trigger.ring.map_or(Cell::Null, |(_, ring)| Cell::int(ring)),
                trigger
                    .seqno
                    .filter(|_| trigger.further().is_none())
                    .map_or(Cell::Null, Cell::count),
                Cell::text(&trigger.note),
            ]);
        }
    }
    Ok(rows)
}
