//! The design matrix and the response of a formula over a table.

use std::ops::Range;

use nalgebra::{DMatrix, DVector};
use ppt_text::nearest;

use crate::error::FitError;
use crate::formula::{Formula, Term};
use crate::table::{RunTable, Runs};

/// The input of least squares.
#[derive(Debug, Clone)]
pub(crate) struct Design {
    /// The names of the coefficients.
    pub names: Vec<String>,
    /// A column for each coefficient.
    pub inputs: DMatrix<f64>,
    pub response: DVector<f64>,
    /// The smallest and the largest value of each column of the right side.
    pub measured: Vec<(String, f64, f64)>,
    /// The columns of the right side, from which a verdict makes terms that the formula lacks.
    pub columns: Vec<(String, Vec<f64>)>,
    pub runs: Option<Runs>,
}

impl Design {
    pub fn new(formula: &Formula, table: &RunTable) -> Result<Design, FitError> {
        let mut places = Vec::new();
        for term in std::iter::once(&formula.response).chain(&formula.terms) {
            term.expression.columns(&mut |name, span| places.push((name, span.clone())));
        }
        for (name, span) in &places {
            check_column(table, name, span)?;
        }
        let names = formula.names();
        if table.rows() <= names.len() {
            return Err(FitError::TooFew { points: table.rows(), terms: names });
        }
        let response = column_of(&formula.response, table)?;
        if let (Some(value), true) = (constant(&response), formula.constant) {
            let term = formula.response.expression.to_string();
            let span = formula.response.span.clone();
            return Err(FitError::Constant { term, span, value, response: true });
        }
        let mut columns = Vec::new();
        if formula.constant {
            columns.push(DVector::from_element(table.rows(), 1.0));
        }
        for term in &formula.terms {
            let column = column_of(term, table)?;
            if let (Some(value), true) = (constant(&column), formula.constant) {
                let (term, span) = (term.to_string(), term.span.clone());
                return Err(FitError::Constant { term, span, value, response: false });
            }
            columns.push(DVector::from_vec(column));
        }
        let inputs = formula.inputs().into_iter();
        let columns_of: Vec<_> = inputs
            .filter_map(|input| Some((input.to_owned(), table.column(input)?.to_vec())))
            .collect();
        let range = |values: &[f64]| {
            let low = values.iter().copied().fold(f64::INFINITY, f64::min);
            (low, values.iter().copied().fold(f64::NEG_INFINITY, f64::max))
        };
        Ok(Design {
            names,
            inputs: DMatrix::from_columns(&columns),
            response: DVector::from_vec(response),
            measured: columns_of
                .iter()
                .map(|(name, values)| {
                    let (low, high) = range(values);
                    (name.clone(), low, high)
                })
                .collect(),
            columns: columns_of,
            runs: table.runs().cloned(),
        })
    }
}

fn check_column(table: &RunTable, name: &str, span: &Range<usize>) -> Result<(), FitError> {
    let Some(values) = table.column(name) else {
        let available: Vec<String> = table.names().map(str::to_owned).collect();
        let nearest = nearest(name, table.names()).map(str::to_owned);
        return Err(FitError::NoColumn {
            name: name.to_owned(),
            span: span.clone(),
            nearest,
            available,
        });
    };
    check_numbers(name.to_owned(), span, values)
}

fn check_numbers(term: String, span: &Range<usize>, values: &[f64]) -> Result<(), FitError> {
    let mut bad = values.iter().enumerate().filter(|entry| !entry.1.is_finite());
    let Some((row, &value)) = bad.next() else { return Ok(()) };
    let (rows, of) = (1 + bad.count(), values.len());
    Err(FitError::NoNumber { term, span: span.clone(), row, value, rows, of })
}

fn column_of(term: &Term, table: &RunTable) -> Result<Vec<f64>, FitError> {
    let value = |row: usize| {
        let cell = |name: &str| table.column(name).map_or(f64::NAN, |column| column[row]);
        term.expression.value(&cell)
    };
    let values: Vec<f64> = (0..table.rows()).map(value).collect();
    check_numbers(term.to_string(), &term.span, &values)?;
    Ok(values)
}

/// The common value, if all are equal.
fn constant(values: &[f64]) -> Option<f64> {
    let first = *values.first()?;
    values.iter().all(|value| *value == first).then_some(first)
}
