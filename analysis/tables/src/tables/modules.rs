//! `modules`: the files that processes mapped as code, and the time of mapping.

use std::sync::Arc;

use super::named::NamedTable;
use crate::error::{SetError, TableError};
use crate::set::CaptureSet;
use crate::small::{Cell, CellType, SmallTable, schema};

pub(super) fn make(set: &Arc<CaptureSet>) -> Result<Vec<NamedTable>, SetError> {
    let schema = schema([
        ("capture", CellType::Word),
        ("host", CellType::Word),
        ("pid", CellType::Int),
        ("ts", CellType::Time),
        ("start_address", CellType::Text),
        ("end_address", CellType::Text),
        ("offset", CellType::Long),
        ("path", CellType::Word),
        ("build_id", CellType::Text),
        ("deleted", CellType::Bool),
    ]);
    Ok(vec![NamedTable::fixed("modules", SmallTable { set: set.clone(), schema, rows })])
}

fn rows(set: &CaptureSet) -> Result<Vec<Vec<Cell>>, TableError> {
    let mut rows = Vec::new();
    for capture in set.captures() {
        let catalog = capture.catalog();
        for (program, history) in catalog.modules.iter() {
            rows.extend(history.seen().map(|(mono_ns, module)| {
                vec![
                    Cell::word(&capture.id),
                    Cell::word(catalog.host()),
                    Cell::int(program.process.pid),
                    Cell::time(catalog.epoch(mono_ns)),
                    Cell::Text(format!("{:#x}", module.start)),
                    Cell::Text(format!("{:#x}", module.end)),
                    Cell::count(module.offset),
                    Cell::word(&module.path_text()),
                    Cell::text(&module.build_id_text()),
                    Cell::Bool(module.is_deleted),
                ]
            }));
        }
    }
    Ok(rows)
}
