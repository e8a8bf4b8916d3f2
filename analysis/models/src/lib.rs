//! Models of measurements and their comparison: arithmetic only, no I/O.
//!
//! A [`Formula`] states from which terms a column of a [`RunTable`] follows. A [`Fit`] calibrates it:
//! coefficients with intervals by Student's t, which assumes that rows are independent, and by a bootstrap over
//! runs, which does not. [`Residuals`] has the patterns that the formula leaves, a [`Judgement`] whether
//! measurements confirm it. A [`Resource`] is a sum of fits: its value at a load, the load at which it meets a
//! bound, and the component whose uncertainty decides that answer. A [`Comparison`] compares two sets of runs,
//! and a [`Gate`] bounds a change.
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
pub use limit::{Crossing, CrossingRange};
pub use measured::{CompareError, MeasuredField, NoStatistic, Repetition, Statistic, Units};
pub use plan::{ModelPlan, PlanError, PlannedComponent, PlannedResource};
pub use residuals::{Finding, Residuals};
pub use resource::{Component, ComponentShare, Limit, Resource, ResourceError, ResourceUse};
pub use robust::{Method, Robust, Slope};
pub use table::{RunTable, Runs};
pub use verdict::{FormulaVerdict, Judgement, Reason};
