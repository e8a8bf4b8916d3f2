//! Texts and names in quotes, for SQL.

/// A text literal of SQL.
pub fn sql_literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// An identifier of SQL in quotes, such as the name of a column.
pub fn sql_identifier(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
