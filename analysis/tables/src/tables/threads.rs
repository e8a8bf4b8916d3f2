//! `threads`: the names of threads, and the period of each.

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
        ("tid", CellType::Int),
        ("ts", CellType::Time),
        ("ts_end", CellType::Time),
        ("name", CellType::Word),
    ]);
    Ok(vec![NamedTable::fixed("threads", SmallTable { set: set.clone(), schema, rows })])
}

fn rows(set: &CaptureSet) -> Result<Vec<Vec<Cell>>, TableError> {
    let mut rows = Vec::new();
    for capture in set.captures() {
        let catalog = capture.catalog();
        for (process, names) in catalog.threads.iter() {
            let ends = names.iter().skip(1).map(|next| catalog.epoch(next.mono_ns)).chain([None]);
            rows.extend(names.iter().zip(ends).map(|(name, end)| {
                vec![
                    Cell::word(&capture.id),
                    Cell::word(catalog.host()),
                    Cell::int(process.pid),
                    Cell::int(name.tid),
                    Cell::time(catalog.epoch(name.mono_ns)),
                    Cell::time(end),
                    Cell::Word(name.text().into_owned()),
                ]
            }));
        }
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ppt_capture::{CaptureWriter, FileHeader, Process, Source, ThreadName, ThreadNames};

    const JSON: &str = r#"{"v":1,"buffer":"b","slots":2,"stride":16,"frames":[
        {"name":"one","kind":"plain","size":16,"fields":[{"name":"x","type":"u32","offset":12}]}]}"#;

    #[test]
    fn a_row_for_each_name_of_a_thread() {
        let header = FileHeader {
            capture_id: [1; 16],
            created_realtime_ns: 100_000,
            created_mono_ns: 1000,
            ..FileHeader::default()
        };
        let mut writer = CaptureWriter::create(Vec::new(), &header).unwrap();
        let schema = ppt_capture::frame_dsl::Schema::from_json(JSON.as_bytes()).unwrap();
        let source = |start_time| Source {
            schema_json: JSON.into(),
            schema_hash: schema.hash(),
            buffer: "b".into(),
            process: Process { pid: 77, start_time, ..Process::default() },
            ..Source::default()
        };
        writer.source(0, &source(1)).unwrap();
        writer.source(1, &source(1)).unwrap();
        writer.source(2, &source(2)).unwrap();
        let named = |tid, mono_ns, text: &[u8]| {
            let mut name = [0; 16];
            name[..text.len()].copy_from_slice(text);
            ThreadName { tid, mono_ns, name }
        };
        let mut state = |source, is_base, names| {
            writer.thread_names(&ThreadNames { source, is_base, names }).unwrap();
        };
        state(0, true, vec![named(5, 2000, b"main"), named(6, 2001, b"\xff\n")]);
        state(0, false, vec![named(5, 3000, b"renamed")]);
        // The other buffer of the process.
        state(1, false, vec![named(5, 3500, b"renamed")]);
        // Another process with the same pid.
        state(2, false, vec![named(5, 4000, b"other")]);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.bin");
        let end = ppt_capture::End::new(ppt_capture::EndReason::Stopped, 0, 0);
        std::fs::write(&path, writer.end(&end).unwrap()).unwrap();
        let set = CaptureSet::open(&[path]).unwrap();
        let rows = rows(&set).unwrap();
        let time = Cell::Time;
        let expected = [
            (5, time(101_000), time(102_000), "main"),
            (5, time(102_000), Cell::Null, "renamed"),
            (6, time(101_001), Cell::Null, "\u{fffd}\n"),
            (5, time(103_000), Cell::Null, "other"),
        ];
        let expected = expected.map(|(tid, from, to, name)| {
            vec![Cell::int(77), Cell::int(tid), from, to, Cell::Word(name.to_owned())]
        });
        assert_eq!(rows.iter().map(|row| row[2..].to_vec()).collect::<Vec<_>>(), expected);
        let names = crate::ThreadLabels::new(&set);
        assert_eq!(names.name("", 77, 5), Some("other"), "the last one");
        assert_eq!(names.label("", Some(77), 6).as_deref(), Some("6 (\u{fffd}\n)"));
        assert_eq!(names.label("", Some(77), 9).as_deref(), Some("9"));
    }
}
