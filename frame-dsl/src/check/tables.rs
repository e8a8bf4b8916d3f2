//! The names of tables and of their columns.

use std::collections::{HashMap, HashSet};

use super::frames::FramePlaces;
use crate::columns::{
    self, ColumnType, STANDARD_COLUMNS, Style, WholeColumn, WholePart, whole_columns, whole_table,
};
use crate::diagnostic::{DiagnosticNote, DiagnosticSink};
use crate::mistake::TableMistake;
use crate::schema::{Frame, MAX_FRAME_BYTES, Schema};

/// Checks that no two columns have one name in any style of table, and that none has a standard
/// name. SQL ignores case.
pub(super) fn columns(schema: &Schema, places: &[FramePlaces], sink: &mut DiagnosticSink) {
    for (frame, place) in schema.frames.iter().zip(places) {
        // Bounds the number of cells; a larger frame has been reported.
        if frame.size > MAX_FRAME_BYTES {
            continue;
        }
        let mut seen: HashMap<String, usize> = HashMap::new();
        let mut reported = Vec::new();
        let columns = columns::columns(schema, frame, Style::Sql).into_iter();
        // The length of an interval gets another name in a conflict, so it reserves none.
        for column in columns.filter(|column| !matches!(column.ty, ColumnType::Length { .. })) {
            let folded = column.name.to_ascii_lowercase();
            let name = |index: usize| frame.fields[index].name.clone();
            let span = place.fields[column.field].clone();
            let mistake = if STANDARD_COLUMNS.contains(&folded.as_str()) {
                Some((TableMistake::StandardColumn { name: column.name.clone() }, None))
            } else {
                seen.insert(folded, column.field).filter(|other| *other != column.field).map(
                    |other| {
                        let (first, second) = (name(other), name(column.field));
                        let column = column.name.clone();
                        let mistake = TableMistake::SameColumn { column, first, second };
                        (mistake, Some(other))
                    },
                )
            };
            let Some((mistake, other)) = mistake else { continue };
            if reported.contains(&column.field) || differ_in_case_only(frame, column.field, other) {
                continue;
            }
            reported.push(column.field);
            let note = other.map(|other| DiagnosticNote {
                span: place.fields[other].clone(),
                label: "the other one".to_owned(),
            });
            sink.report_with(span, mistake, note);
        }
    }
}

/// Such fields clash in the macros of C already, and are reported there.
fn differ_in_case_only(frame: &Frame, field: usize, other: Option<usize>) -> bool {
    let name = |index: usize| frame.fields[index].name.as_str();
    other.is_some_and(|other| name(field).eq_ignore_ascii_case(name(other)))
}

/// Checks the tables of whole spans and chains: no two columns with one name, and no frame with the
/// name of a table. SQL ignores case.
pub(super) fn whole(schema: &Schema, places: &[FramePlaces], sink: &mut DiagnosticSink) {
    for (frame, place) in schema.frames.iter().zip(places) {
        let Some(table) = whole_table(frame) else { continue };
        let at = schema.frames.iter().position(|frame| frame.name.eq_ignore_ascii_case(&table));
        if let Some(at) = at {
            let (table, of) = (schema.frames[at].name.clone(), frame.name.clone());
            sink.report(places[at].name.clone(), TableMistake::WholeTable { table, of });
        }
        // Bounds the number of columns; a larger frame has been reported.
        if frame.size > MAX_FRAME_BYTES {
            continue;
        }
        let mut seen: HashSet<String> = STANDARD_COLUMNS.map(str::to_owned).into();
        let mut keys: HashMap<String, usize> = HashMap::new();
        for WholeColumn { name: column, part } in whole_columns(schema, frame) {
            let folded = column.to_ascii_lowercase();
            let is_key = matches!(part, WholePart::Key(_));
            if let WholePart::Key(key) = part {
                keys.insert(folded.clone(), key.field);
            }
            // Two keys with one name are reported as fields.
            if !seen.insert(folded.clone()) && !is_key {
                let at = keys.get(&folded).map_or(&place.name, |key| &place.fields[*key]);
                let mistake = TableMistake::WholeColumn { column, table: table.clone() };
                sink.report(at.clone(), mistake);
            }
        }
    }
}
