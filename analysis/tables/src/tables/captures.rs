//! `captures`: each capture, with totals of its frames.

use std::sync::Arc;

use ppt_capture::Dropped;

use super::named::NamedTable;
use crate::error::{SetError, TableError};
use crate::set::CaptureSet;
use crate::small::{Cell, CellType, SmallTable, schema};

pub(super) fn make(set: &Arc<CaptureSet>) -> Result<Vec<NamedTable>, SetError> {
    let schema = schema([
        ("capture", CellType::Word),
        ("path", CellType::Text),
        ("host", CellType::Word),
        ("boot_id", CellType::Word),
        ("created", CellType::Time),
        ("ended", CellType::Time),
        ("reason", CellType::Word),
        ("complete", CellType::Bool),
        ("frames", CellType::Long),
        ("lost", CellType::Long),
        ("dropped", CellType::Long),
        ("bytes", CellType::Long),
        ("absent", CellType::Long),
        ("part", CellType::Int),
        ("removed", CellType::Int),
    ]);
    Ok(vec![NamedTable::fixed("captures", SmallTable { set: set.clone(), schema, rows })])
}

fn rows(set: &CaptureSet) -> Result<Vec<Vec<Cell>>, TableError> {
    let mut rows = Vec::new();
    for capture in set.captures() {
        let catalog = capture.verified()?;
        let (mut frames, mut lost) = (0u64, 0u64);
        for (_, ring) in catalog.account.rings() {
            frames = frames.saturating_add(ring.captured);
            lost = lost.saturating_add(ring.lost_with_damage().total());
        }
        let mut dropped = Dropped::default();
        catalog.sources.iter().for_each(|info| dropped += catalog.account.dropped(info.id));
        let time = |ns: u64| Cell::time(i64::try_from(ns).ok().filter(|&ns| ns != 0));
        let header = catalog.header.as_ref();
        let end = catalog.end.as_ref();
        let part = catalog.part.as_ref();
        rows.push(vec![
            Cell::word(&capture.id),
            Cell::text(&capture.path.to_string_lossy()),
            Cell::word(catalog.host()),
            Cell::word(header.map_or("", |header| &header.boot_id)),
            header.map_or(Cell::Null, |header| time(header.created_realtime_ns)),
            end.map_or(Cell::Null, |end| time(end.realtime_ns)),
            Cell::word(end.map_or("", |end| end.reason.name())),
            Cell::Bool(end.is_some()),
            Cell::count(frames),
            Cell::count(lost),
            Cell::count(dropped.total()),
            Cell::count(capture.bytes),
            Cell::count(catalog.absent(|_| true)),
            part.map_or(Cell::Null, |part| Cell::int(part.number)),
            part.map_or(Cell::Null, |part| Cell::int(part.removed())),
        ]);
    }
    Ok(rows)
}
