//! Models of measurements and their comparison: arithmetic only, no I/O.
//!
//! A [`Formula`] says which column of a [`RunTable`] follows from which terms. A [`Fit`] calibrates it:
//! coefficients with intervals by Student's t, which believe that rows are independent, and beside
//! them by a bootstrap over runs, which does not. [`Residuals`] say in words what the formula leaves;
//! a [`Judgement`] whether measurements confirm it. A [`Resource`] is a sum of fits: what it takes at
//! a load, the load at which it meets a bound, and whose uncertainty decides that answer. A
//! [`Comparison`] holds two sets of runs against each other, and a [`Gate`] says which change is too
//! much.
#![forbid(unsafe_code)]

// pest's derive names it.
extern crate alloc;

mod baseline;
mod bootstrap;
mod chance;
mod compare;
mod design;
mod error;
mod fit;
mod formula;
mod gate;
mod interval;
mod limit;
mod measured;
mod parse;
mod plan;
mod residuals;
mod resource;
mod robust;
mod squares;
mod table;
mod verdict;

pub use baseline::{Baseline, Entry};
pub use bootstrap::{Bootstrap, Resampling};
pub use compare::{Change, Comparing, Comparison, Direction, Estimate};
pub use error::{
    ColumnValues, FitError, FormulaError, FormulaMistake, NoBootstrap, PredictError, TableError,
    carets,
};
pub use fit::{Beyond, Coefficient, Fit, FitOptions, Prediction, Test};
pub use formula::{Expression, Formula, Function, Operator, Term};
pub use gate::{Bound, Gate, GateError, GateMistake, GateResult, NoRatio, Relation, is_called};
pub use interval::ConfidenceInterval;
pub use limit::Meets;
pub use measured::{CompareError, MeasuredField, NoStatistic, Repetition, Statistic, Units};
pub use plan::{ModelPlan, PlanError, PlannedComponent, PlannedResource};
pub use residuals::{Finding, Residuals};
pub use resource::{Component, ComponentShare, Limit, Resource, ResourceError, Total};
pub use robust::{Method, Robust, Slope};
pub use table::{RunTable, Runs};
pub use verdict::{FormulaVerdict, Judgement, Reason};
