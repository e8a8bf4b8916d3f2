//! Comparisons as text.

use std::collections::BTreeMap;
use std::io::{self, Write};

use ppt_models::Repetition;
use ppt_query::plain;
use ppt_query::text::{grouped, three};

use super::row::ComparedField;

/// Name of the field, and its group.
pub(super) fn name(row: &ComparedField) -> String {
    called(&row.field, &row.by)
}

pub(super) fn called(field: &str, by: &BTreeMap<String, String>) -> String {
    let mut name = plain(field);
    for (column, value) in by {
        name.push_str(&format!("   {}={}", plain(column), plain(value)));
    }
    name
}

fn units((unit, count): (Repetition, usize)) -> String {
    match (unit, count) {
        (Repetition::Part, _) => "1 run".to_owned(),
        (Repetition::Run, count) => format!("{} runs", grouped(count as u64)),
    }
}

pub(super) fn write(rows: &[ComparedField], out: &mut impl Write) -> io::Result<()> {
    for row in rows {
        let [one, other] = row.comparison.units.map(units);
        writeln!(out, "{}   {one} against {other}", name(row))?;
        for change in &row.comparison.changes {
            let [one, other] = change.values.map(three);
            writeln!(out, "  {one} → {other}   {change}")?;
        }
    }
    Ok(())
}
