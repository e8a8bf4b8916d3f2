//! `\d`: tables, and the columns of a table.

use std::io::{self, Write};

use ppt_query::{Engine, plain};

/// Lines that begin with a backslash.
pub(super) const HELP: &str =
    "\\d lists tables, \\d TABLE its columns, \\q ends; anything else is SQL and ends with ;";

/// Whether a line asks for tables instead of being SQL.
pub(super) fn is_request(line: &str) -> bool {
    line.trim_start().starts_with('\\')
}

/// Answers such a line.
pub(super) fn answer(engine: &Engine, line: &str, out: &mut impl Write) -> io::Result<()> {
    match line.split_whitespace().collect::<Vec<_>>()[..] {
        ["\\d"] => list(engine, out),
        ["\\d", table] => describe(engine, table.trim_end_matches(';'), out),
        ["\\q"] => Ok(()),
        _ => writeln!(out, "{HELP}"),
    }
}

fn list(engine: &Engine, out: &mut impl Write) -> io::Result<()> {
    for (name, table) in engine.tables() {
        writeln!(out, "{} ({} columns)", plain(&name), table.schema().fields().len())?;
    }
    Ok(())
}

fn describe(engine: &Engine, wanted: &str, out: &mut impl Write) -> io::Result<()> {
    let found = engine.tables().into_iter().find(|(name, _)| name == wanted);
    let Some((_, table)) = found else {
        return writeln!(out, "there is no table {wanted}; \\d lists them");
    };
    for field in table.schema().fields() {
        let metadata = |key: &str| field.metadata().get(key).map_or("", String::as_str);
        let unit = if metadata("unit").is_empty() {
            String::new()
        } else {
            format!(" [{}]", metadata("unit"))
        };
        let text = format!("{:<20} {}{unit}  {}", field.name(), field.data_type(), metadata("doc"));
        writeln!(out, "  {}", plain(text.trim_end()))?;
    }
    Ok(())
}
