//! Least squares by a QR decomposition with pivots.

use nalgebra::{ColPivQR, DMatrix, DVector, RowDVector};

/// A column whose distance from the span of the others is below this share of its length depends on them.
const DEPENDENT: f64 = 1e-9;

/// The columns of a formula as `basis · to_coefficients⁻¹`, with orthonormal columns of `basis`.
#[derive(Debug, Clone)]
pub(crate) struct Squares {
    pub basis: DMatrix<f64>,
    /// Converts coordinates in that basis to coefficients. Its product with its transpose is the covariance of
    /// the coefficients, for a variance of 1.
    pub to_coefficients: DMatrix<f64>,
}

/// A column that depends on others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Dependent {
    pub column: usize,
    pub others: Vec<usize>,
}

impl Squares {
    /// There are more rows than columns.
    pub fn new(inputs: &DMatrix<f64>) -> Result<Squares, Dependent> {
        let count = inputs.ncols();
        // Columns are scaled to the same length, so that tolerances do not depend on units.
        let lengths: Vec<f64> =
            inputs.column_iter().map(|matrix| length(matrix.as_slice())).collect();
        if let Some(column) = lengths.iter().position(|length| *length == 0.0) {
            return Err(Dependent { column, others: Vec::new() });
        }
        let mut scaled = inputs.clone();
        scaled.column_iter_mut().zip(&lengths).for_each(|(mut matrix, length)| matrix /= *length);
        let decomposed = ColPivQR::new(scaled);
        let triangle = decomposed.r();
        let mut order = RowDVector::from_fn(count, |_, at| at);
        decomposed.p().permute_columns(&mut order);
        if let Some(at) = (0..count).find(|&at| triangle[(at, at)].abs() < DEPENDENT) {
            // The column is a sum of the previous ones.
            let before = triangle.view((0, 0), (at, at)).into_owned();
            let part = triangle.view((0, at), (at, 1)).into_owned();
            let weights = before.solve_upper_triangular(&part).unwrap_or(part);
            let parts = (0..at).filter(|&index| weights[index].abs() > 1e-6);
            let mut others: Vec<usize> = parts.map(|index| order[index]).collect();
            let mut column = order[at];
            // The later term of the formula is the one to leave out.
            if let Some(last) = others.iter_mut().max().filter(|last| **last > column) {
                std::mem::swap(last, &mut column);
            }
            others.sort_unstable();
            return Err(Dependent { column, others });
        }
        let inverse = triangle
            .solve_upper_triangular(&DMatrix::identity(count, count))
            .unwrap_or_else(|| DMatrix::zeros(count, count));
        let mut to_coefficients = DMatrix::zeros(count, count);
        for (at, &column) in order.iter().enumerate() {
            let row = inverse.row(at) / lengths[column];
            to_coefficients.set_row(column, &row);
        }
        Ok(Squares { basis: decomposed.q(), to_coefficients })
    }

    /// The coordinates of the vector nearest to `response`, and the residuals.
    pub fn nearest(&self, response: &DVector<f64>) -> (DVector<f64>, DVector<f64>) {
        let mut place = self.basis.tr_mul(response);
        let mut residuals = response - &self.basis * &place;
        // A second pass removes the rounding errors of the first.
        let correction = self.basis.tr_mul(&residuals);
        residuals -= &self.basis * &correction;
        place += correction;
        (place, residuals)
    }

    /// The variance of a sum of coefficients with these weights, for a variance of 1.
    pub fn variance(&self, weights: &DVector<f64>) -> f64 {
        self.to_coefficients.tr_mul(weights).norm_squared()
    }

    /// The leverage of each row: its influence on its own fitted value, 0 to 1.
    pub fn leverages(&self) -> Vec<f64> {
        self.basis.row_iter().map(|matrix| matrix.norm_squared()).collect()
    }
}

/// The Euclidean length, without overflow of intermediate values.
fn length(values: &[f64]) -> f64 {
    let largest = values.iter().fold(0.0, |most: f64, value| most.max(value.abs()));
    if largest == 0.0 {
        return 0.0;
    }
    let sum: f64 = values.iter().map(|value| (value / largest) * (value / largest)).sum();
    largest * sum.sqrt()
}
