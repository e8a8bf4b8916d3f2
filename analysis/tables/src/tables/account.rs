//! `account`: counts of captured frames, and of lost and dropped frames by cause, as in `ppt info`.

use std::sync::Arc;

use ppt_capture::{Cause, Lost};

use super::named::NamedTable;
use crate::error::{SetError, TableError};
use crate::set::CaptureSet;
use crate::small::{Cell, CellType, SmallTable, schema};

pub(super) fn make(set: &Arc<CaptureSet>) -> Result<Vec<NamedTable>, SetError> {
    let schema = schema([
        ("capture", CellType::Word),
        ("buffer", CellType::Word),
        ("host", CellType::Word),
        ("pid", CellType::Int),
        ("cause", CellType::Word),
        ("count", CellType::Long),
    ]);
    Ok(vec![NamedTable::fixed("account", SmallTable { set: set.clone(), schema, rows })])
}

fn rows(set: &CaptureSet) -> Result<Vec<Vec<Cell>>, TableError> {
    let mut rows = Vec::new();
    for capture in set.captures() {
        let catalog = capture.verified()?;
        for info in &catalog.sources {
            let mut lost = Lost::default();
            let (mut captured, mut left_out) = (0u64, 0u64);
            for (_, ring) in catalog.account.rings().filter(|(key, _)| key.source == info.id) {
                lost += ring.lost_with_damage();
                captured = captured.saturating_add(ring.captured);
                left_out = left_out.saturating_add(ring.left_out);
            }
            let dropped = catalog.account.dropped(info.id);
            let by_cause = |(cause, count): (Cause, u64)| (cause.name(), count);
            let left_out = (left_out > 0).then_some((Cause::LeftOut.name(), left_out));
            let absent = catalog.absent(|gap| gap.source == info.id);
            let absent = (absent > 0).then_some((Cause::Absent.name(), absent));
            let counts = [("captured", captured)].into_iter().chain(left_out).chain(absent);
            let counts = counts.chain(lost.by_cause().map(by_cause));
            for (cause, count) in counts.chain(dropped.by_cause().map(by_cause)) {
                rows.push(vec![
                    Cell::word(&capture.id),
                    Cell::word(&info.source.buffer),
                    Cell::word(catalog.host()),
                    Cell::int(info.source.process.pid),
                    Cell::word(cause),
                    Cell::count(count),
                ]);
            }
        }
    }
    Ok(rows)
}
