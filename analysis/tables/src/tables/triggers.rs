//! `triggers`: why a flight recorder wrote the windows that the captures are.

use std::sync::Arc;

use super::named::Named;
use crate::error::{SetError, TableError};
use crate::set::CaptureSet;
use crate::small::{Cell, CellType, Small, schema};

pub(super) fn make(set: &Arc<CaptureSet>) -> Result<Vec<Named>, SetError> {
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
    Ok(vec![Named::fixed("triggers", Small { set: set.clone(), schema, rows })])
}

fn rows(set: &CaptureSet) -> Result<Vec<Vec<Cell>>, TableError> {
    let mut rows = Vec::new();
    for capture in set.captures() {
        let catalog = capture.catalog();
        for it in &catalog.triggers {
            let info = catalog.sources.iter().find(|info| Some(info.id) == it.source);
            rows.push(vec![
                Cell::word(&capture.id),
                Cell::Time(catalog.epoch(it.mono_ns)),
                Cell::word(it.why.name()),
                Cell::text(&it.expression),
                info.map_or(Cell::Null, |info| Cell::word(&info.source.buffer)),
                it.ring.map_or(Cell::Null, |(nonce, _)| Cell::word(&format!("{nonce:016x}"))),
                it.ring.map_or(Cell::Null, |(_, ring)| Cell::int(ring)),
                it.seqno.filter(|_| it.further().is_none()).map_or(Cell::Null, Cell::count),
                Cell::text(&it.note),
            ]);
        }
    }
    Ok(rows)
}
