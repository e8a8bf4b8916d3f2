//! The table that a formula is fitted to.

use std::collections::{BTreeMap, BTreeSet};

use crate::error::TableError;

/// Named columns of numbers, and the run of each row.
#[derive(Debug, Clone, Default)]
pub struct RunTable {
    columns: Vec<(String, Vec<f64>)>,
    rows: usize,
    runs: Option<Runs>,
}

/// The runs of rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Runs {
    /// The sorted names of runs: queries return rows in any order, but the bootstrap must not depend on it.
    pub names: Vec<String>,
    /// The run of each row.
    pub of_row: Vec<usize>,
}

impl Runs {
    /// Groups rows by the name of their run.
    pub fn new<T: AsRef<str>>(of_rows: impl IntoIterator<Item = T>) -> Runs {
        let of_rows: Vec<T> = of_rows.into_iter().collect();
        let names: BTreeSet<&str> = of_rows.iter().map(AsRef::as_ref).collect();
        let places: BTreeMap<&str, usize> =
            names.iter().enumerate().map(|(place, name)| (*name, place)).collect();
        let of_row = of_rows.iter().map(|name| places[name.as_ref()]).collect();
        Runs { names: names.into_iter().map(str::to_owned).collect(), of_row }
    }

    /// The number of runs.
    pub fn count(&self) -> usize {
        self.names.len()
    }
}

impl RunTable {
    /// A table of columns of the same length. NULL is NaN.
    ///
    /// # Errors
    /// Columns have different lengths, or two have the same name.
    pub fn new<T: Into<String>>(
        columns: impl IntoIterator<Item = (T, Vec<f64>)>,
    ) -> Result<RunTable, TableError> {
        let mut table = RunTable::default();
        for (name, values) in columns {
            let column = name.into();
            if table.column(&column).is_some() {
                return Err(TableError::Twice { column });
            }
            if table.columns.is_empty() {
                table.rows = values.len();
            } else if values.len() != table.rows {
                return Err(TableError::Length {
                    column,
                    found: values.len(),
                    expected: table.rows,
                });
            }
            table.columns.push((column, values));
        }
        Ok(table)
    }

    /// Adds the run of each row.
    ///
    /// # Errors
    /// The number of runs differs from that of rows.
    pub fn with_runs(mut self, runs: Runs) -> Result<RunTable, TableError> {
        if runs.of_row.len() != self.rows {
            let (found, expected) = (runs.of_row.len(), self.rows);
            return Err(TableError::Length { column: "runs".to_owned(), found, expected });
        }
        self.runs = Some(runs);
        Ok(self)
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The values of a column.
    pub fn column(&self, name: &str) -> Option<&[f64]> {
        self.columns.iter().find(|column| column.0 == name).map(|column| &column.1[..])
    }

    /// The names of the columns.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().map(|column| &column.0[..])
    }

    /// The runs of the rows, if they are known.
    pub fn runs(&self) -> Option<&Runs> {
        self.runs.as_ref()
    }
}
