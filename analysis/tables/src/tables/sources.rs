//! `sources`: each buffer of each process.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::named::NamedTable;
use crate::catalog::Catalog;
use crate::error::{SetError, TableError};
use crate::set::CaptureSet;
use crate::small::{Cell, CellType, SmallTable, schema};

const FIXED: [(&str, CellType); 9] = [
    ("capture", CellType::Word),
    ("buffer", CellType::Word),
    ("host", CellType::Word),
    ("boot_id", CellType::Word),
    ("pid", CellType::Int),
    ("started", CellType::Time),
    ("schema_hash", CellType::Word),
    ("exe", CellType::Word),
    ("build_id", CellType::Word),
];

pub(super) fn make(set: &Arc<CaptureSet>) -> Result<Vec<NamedTable>, SetError> {
    let tags: Vec<String> = tags(set).into_iter().map(|tag| format!("tag_{tag}")).collect();
    let tags = tags.iter().map(|name| (name.as_str(), CellType::Word));
    let schema = schema(FIXED.into_iter().chain(tags));
    Ok(vec![NamedTable::fixed("sources", SmallTable { set: set.clone(), schema, rows })])
}

/// The names of all tags.
fn tags(set: &CaptureSet) -> BTreeSet<String> {
    let sources = set.captures().iter().flat_map(|capture| &capture.catalog().sources);
    sources.flat_map(|info| &info.source.tags).map(|(name, _)| name.clone()).collect()
}

fn rows(set: &CaptureSet) -> Result<Vec<Vec<Cell>>, TableError> {
    let tags = tags(set);
    let mut rows = Vec::new();
    for capture in set.captures() {
        let catalog = capture.catalog();
        for info in &catalog.sources {
            let (source, process) = (&info.source, &info.source.process);
            let mut row = vec![
                Cell::word(&capture.id),
                Cell::word(&source.buffer),
                Cell::word(catalog.host()),
                Cell::word(catalog.header.as_ref().map_or("", |header| &header.boot_id)),
                Cell::int(process.pid),
                Cell::time(started(catalog, process.start_time)),
                Cell::word(&format!("{:016x}", source.schema_hash)),
                Cell::word(&process.exe),
                Cell::word(&process.build_id),
            ];
            // The last value counts: tags of the command line follow those of the frame file.
            let tag = |name: &String| source.tags.iter().rfind(|tag| tag.0 == *name);
            row.extend(
                tags.iter().map(|name| tag(name).map_or(Cell::Null, |tag| Cell::word(&tag.1))),
            );
            rows.push(row);
        }
    }
    Ok(rows)
}

/// Length of a clock tick in `/proc`, in ns. Linux shows 100 ticks per second on all platforms.
const CLOCK_TICK: i128 = 10_000_000;

/// The start time of a process, ns since the epoch. `/proc` counts from the boot, including sleep.
fn started(catalog: &Catalog, start_time: u64) -> Option<i64> {
    let boot = catalog.clocks.boottime_offset()?;
    let started = (start_time != 0).then_some(i128::from(start_time) * CLOCK_TICK + boot)?;
    i64::try_from(started).ok()
}
