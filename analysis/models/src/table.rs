//! The numbers that a formula is fitted to.

use std::collections::{BTreeMap, BTreeSet};

use crate::error::TableError;

/// Named columns of numbers, and of which run each row is.
#[derive(Debug, Clone, Default)]
pub struct RunTable {
    columns: Vec<(String, Vec<f64>)>,
    rows: usize,
    runs: Option<Runs>,
}

/// Rows by run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Runs {
    /// What names each run, in the order of the alphabet: queries return rows in any order, and the same
    /// runs are the same to the bootstrap.
    pub names: Vec<String>,
    /// The run of each row.
    pub of_row: Vec<usize>,
}

impl Runs {
    /// From the name of each row's run.
    pub fn new<T: AsRef<str>>(of_rows: impl IntoIterator<Item = T>) -> Runs {
        let of_rows: Vec<T> = of_rows.into_iter().collect();
        let names: BTreeSet<&str> = of_rows.iter().map(AsRef::as_ref).collect();
        let places: BTreeMap<&str, usize> =
            names.iter().enumerate().map(|(place, name)| (*name, place)).collect();
        let of_row = of_rows.iter().map(|name| places[name.as_ref()]).collect();
        Runs { names: names.into_iter().map(str::to_owned).collect(), of_row }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.names.len()
    }
}

impl RunTable {
    /// Of these columns, which are of one length. NULL is NaN.
    ///
    /// # Errors
    /// Columns are of different lengths, or two have one name.
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

    /// The same, and the run of each row.
    ///
    /// # Errors
    /// The runs are not as many as the rows.
    pub fn with_runs(mut self, runs: Runs) -> Result<RunTable, TableError> {
        if runs.of_row.len() != self.rows {
            let (found, expected) = (runs.of_row.len(), self.rows);
            return Err(TableError::Length { column: "runs".to_owned(), found, expected });
        }
        self.runs = Some(runs);
        Ok(self)
    }

    /// So many rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The values of a column.
    pub fn column(&self, name: &str) -> Option<&[f64]> {
        self.columns.iter().find(|column| column.0 == name).map(|column| &column.1[..])
    }

    /// The names of its columns.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().map(|column| &column.0[..])
    }

    /// Which rows are of one run.
    pub fn runs(&self) -> Option<&Runs> {
        self.runs.as_ref()
    }
}
