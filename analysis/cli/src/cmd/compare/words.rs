//! Comparisons for people.

use std::collections::BTreeMap;
use std::io::{self, Write};

use ppt_models::Unit;
use ppt_query::plain;
use ppt_query::text::{grouped, three};

use super::row::Row;

/// The field, and its group.
pub(super) fn name(row: &Row) -> String {
    called(&row.field, &row.by)
}

pub(super) fn called(field: &str, by: &BTreeMap<String, String>) -> String {
    let mut name = plain(field);
    for (column, value) in by {
        name.push_str(&format!("   {}={}", plain(column), plain(value)));
    }
    name
}

fn units((unit, count): (Unit, usize)) -> String {
    match (unit, count) {
        (Unit::Part, _) => "1 run".to_owned(),
        (Unit::Run, count) => format!("{} runs", grouped(count as u64)),
    }
}

pub(super) fn write(rows: &[Row], out: &mut impl Write) -> io::Result<()> {
    for row in rows {
        let [one, other] = row.comparison.units.map(units);
        writeln!(out, "{}   {one} against {other}", name(row))?;
        for it in &row.comparison.changes {
            let [one, other] = it.values.map(three);
            writeln!(out, "  {one} → {other}   {it}")?;
        }
    }
    Ok(())
}
