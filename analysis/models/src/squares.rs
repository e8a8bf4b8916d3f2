//! Least squares by a QR decomposition with pivots.

use nalgebra::{ColPivQR, DMatrix, DVector, RowDVector};

/// A column that stands out of the others by less than this part of its length follows from them.
const DEPENDENT: f64 = 1e-9;

/// The columns as `basis · to_coefficients⁻¹`, where those of `basis` are orthogonal and of length 1.
#[derive(Debug, Clone)]
pub(crate) struct Squares {
    pub basis: DMatrix<f64>,
    /// From coordinates in that basis to coefficients. Times its transpose it is the covariance of
    /// the coefficients, for a variance of 1.
    pub to_coefficients: DMatrix<f64>,
}

/// A column that follows from others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Dependent {
    pub column: usize,
    pub of: Vec<usize>,
}

impl Squares {
    /// Every column has as many rows as there are, more than columns, and is not 0.
    pub fn new(inputs: &DMatrix<f64>) -> Result<Squares, Dependent> {
        let count = inputs.ncols();
        // Columns of one length: what is small then depends on no unit.
        let lengths: Vec<f64> =
            inputs.column_iter().map(|matrix| length(matrix.as_slice())).collect();
        if let Some(column) = lengths.iter().position(|length| *length == 0.0) {
            return Err(Dependent { column, of: Vec::new() });
        }
        let mut scaled = inputs.clone();
        scaled.column_iter_mut().zip(&lengths).for_each(|(mut matrix, length)| matrix /= *length);
        let decomposed = ColPivQR::new(scaled);
        let triangle = decomposed.r();
        let mut order = RowDVector::from_fn(count, |_, at| at);
        decomposed.p().permute_columns(&mut order);
        if let Some(at) = (0..count).find(|&at| triangle[(at, at)].abs() < DEPENDENT) {
            // What is left of it is a sum of those before it.
            let before = triangle.view((0, 0), (at, at)).into_owned();
            let part = triangle.view((0, at), (at, 1)).into_owned();
            let weights = before.solve_upper_triangular(&part).unwrap_or(part);
            let of = (0..at).filter(|&index| weights[index].abs() > 1e-6).map(|index| order[index]);
            let mut of: Vec<usize> = of.collect();
            let mut column = order[at];
            // The later one in the formula is the one to leave out.
            if let Some(last) = of.iter_mut().max().filter(|last| **last > column) {
                std::mem::swap(last, &mut column);
            }
            of.sort_unstable();
            return Err(Dependent { column, of });
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

    /// The coordinates of what is nearest to `response`, and what is left of it.
    pub fn nearest(&self, response: &DVector<f64>) -> (DVector<f64>, DVector<f64>) {
        let mut place = self.basis.tr_mul(response);
        let mut rest = response - &self.basis * &place;
        // Once more: the first pass leaves what rounding made.
        let correction = self.basis.tr_mul(&rest);
        rest -= &self.basis * &correction;
        place += correction;
        (place, rest)
    }

    /// The variance of a sum of coefficients with these weights, for a variance of 1.
    pub fn variance(&self, weights: &DVector<f64>) -> f64 {
        self.to_coefficients.tr_mul(weights).norm_squared()
    }

    /// How much each row decides about its own fitted value: 0 to 1.
    pub fn leverages(&self) -> Vec<f64> {
        self.basis.row_iter().map(|matrix| matrix.norm_squared()).collect()
    }
}

/// Without leaving the range of numbers on the way.
fn length(values: &[f64]) -> f64 {
    let largest = values.iter().fold(0.0, |most: f64, value| most.max(value.abs()));
    if largest == 0.0 {
        return 0.0;
    }
    let sum: f64 = values.iter().map(|value| (value / largest) * (value / largest)).sum();
    largest * sum.sqrt()
}
