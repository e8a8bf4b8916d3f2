//! `masks`: changes that enabled or disabled frames, counters and histograms, with the first affected
//! numbers.

use std::sync::Arc;

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
        ("ts", CellType::Time),
        ("name", CellType::Word),
        ("enabled", CellType::Bool),
        ("first_seq", CellType::Long),
    ]);
    Ok(vec![NamedTable::fixed("masks", SmallTable { set: set.clone(), schema, rows })])
}

fn rows(set: &CaptureSet) -> Result<Vec<Vec<Cell>>, TableError> {
    let mut rows = Vec::new();
    for capture in set.captures() {
        let catalog = capture.catalog();
        for flip in &catalog.flips {
            let Some(info) = catalog.sources.iter().find(|info| info.id == flip.source) else {
                continue;
            };
            for &(chosen, enabled) in &flip.changes {
                let Some(name) = chosen.name(&info.schema) else { continue };
                let row = |ring: Cell, first_seq: Cell| {
                    vec![
                        Cell::word(&capture.id),
                        Cell::word(&info.source.buffer),
                        Cell::word(&format!("{:016x}", flip.nonce)),
                        ring,
                        Cell::word(catalog.host()),
                        Cell::int(info.source.process.pid),
                        Cell::time(catalog.epoch(flip.mono_ns)),
                        Cell::word(&name),
                        Cell::Bool(enabled),
                        first_seq,
                    ]
                };
                let rings = flip.rings.iter().filter(|_| chosen.is_frame());
                let before = rows.len();
                rows.extend(rings.map(|ring| {
                    let first = if enabled { ring.first_enabled } else { ring.first_disabled };
                    row(Cell::int(ring.ring), Cell::count(first))
                }));
                if rows.len() == before {
                    rows.push(row(Cell::Null, Cell::Null));
                }
            }
        }
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ppt_capture::{CaptureWriter, Chosen, FileHeader, Flip, FlipRing, Segment, Source};

    const JSON: &str = r#"{"v":1,"buffer":"b","slots":2,"stride":16,"frames":[
        {"name":"one","kind":"plain","size":16,"fields":[{"name":"x","type":"u32","offset":12}]},
        {"name":"two","kind":"plain","size":16,"fields":[{"name":"x","type":"u32","offset":12}]}],
        "metrics":[{"kind":"counter","name":"seen","type":"u64"}]}"#;

    #[test]
    fn a_row_for_each_name_and_ring() {
        let header = FileHeader {
            capture_id: [1; 16],
            created_realtime_ns: 100_000,
            created_mono_ns: 1000,
            ..FileHeader::default()
        };
        let mut writer = CaptureWriter::create(Vec::new(), &header).unwrap();
        let schema = ppt_capture::frame_dsl::Schema::from_json(JSON.as_bytes()).unwrap();
        let source = Source {
            schema_json: JSON.into(),
            schema_hash: schema.hash(),
            buffer: "b".into(),
            segments: vec![Segment { nonce: 7, rings: 3, slots: 2, stride: 16 }],
            ..Source::default()
        };
        writer.source(0, &source).unwrap();
        let ring = |ring, first_enabled| FlipRing {
            ring,
            first_enabled,
            first_disabled: first_enabled + 2,
        };
        let start = Flip { nonce: 7, mono_ns: 2000, ..Flip::default() };
        writer.masks(&Flip { changes: vec![(Chosen(0), false)], ..start.clone() }).unwrap();
        let changes = vec![(Chosen(0), true), (Chosen(1), false), (Chosen(256), false)];
        let rings = vec![ring(0, 11), ring(2, 21)];
        writer.masks(&Flip { changes, rings, mono_ns: 3000, ..start }).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.bin");
        let end = ppt_capture::End::new(ppt_capture::EndReason::Stopped, 0, 0);
        std::fs::write(&path, writer.end(&end).unwrap()).unwrap();
        let set = CaptureSet::open(&[path]).unwrap();
        let rows = rows(&set).unwrap();
        let found: Vec<_> = rows.iter().map(|row| format!("{:?}", &row[7..])).collect();
        let expected = [
            r#"[Word("one"), Bool(false), Null]"#,
            r#"[Word("one"), Bool(true), Long(11)]"#,
            r#"[Word("one"), Bool(true), Long(21)]"#,
            r#"[Word("two"), Bool(false), Long(13)]"#,
            r#"[Word("two"), Bool(false), Long(23)]"#,
            r#"[Word("seen"), Bool(false), Null]"#,
        ];
        assert_eq!(found, expected);
        let rings: Vec<_> = rows.iter().map(|row| row[3].clone()).collect();
        let [zero, two] = [0, 2].map(Cell::int);
        assert_eq!(rings, [Cell::Null, zero.clone(), two.clone(), zero, two, Cell::Null]);
        assert_eq!(rows[1][6], Cell::Time(102_000));
    }
}
