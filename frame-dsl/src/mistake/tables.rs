//! Clashes of tables and columns.

use crate::wording::{Wording, say};

/// A clash of tables or columns. `of` is the frame that has the table already.
#[derive(Debug, Clone)]
pub(crate) enum TableMistake {
    StandardColumn { name: String },
    SameColumn { column: String, first: String, second: String },
    WholeColumn { column: String, table: String },
    WholeTable { table: String, of: String },
}

impl TableMistake {
    /// The stable name of the rule.
    pub fn code(&self) -> &'static str {
        match self {
            TableMistake::StandardColumn { .. } => "standard-column",
            TableMistake::SameColumn { .. } => "column-clash",
            TableMistake::WholeColumn { .. } => "column-clash",
            TableMistake::WholeTable { .. } => "table-clash",
        }
    }

    /// Message, label and help.
    pub fn wording(&self) -> Wording {
        match self {
            TableMistake::StandardColumn { name } => say(
                format!("`{name}` is a column that every table has"),
                "a second column of that name",
            )
            .other_name(name),
            TableMistake::SameColumn { column, first, second } => say(
                format!("`{first}` and `{second}` both have a column `{column}`"),
                format!("column `{column}` again"),
            )
            .help("rename one of the two (upper and lower case are the same in SQL)"),
            TableMistake::WholeColumn { column, table } => say(
                format!("the table `{table}` would have two columns `{column}`"),
                "one of them comes from here",
            )
            .help("rename the key or the step (upper and lower case are the same in SQL)"),
            TableMistake::WholeTable { table, of } => say(
                format!("a table `{table}` belongs to the frame `{of}`"),
                "a second table of that name",
            )
            .other_name(table),
        }
    }
}
