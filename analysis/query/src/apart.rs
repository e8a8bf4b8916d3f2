//! Keeps tests of one value apart that DataFusion takes together to something else.
//!
//! It makes `false` of `a IN (1) AND a IN (2)`, and `true` of `a NOT IN (1) OR a NOT IN (2)`. Both
//! are NULL if `a` is. A filter that takes rows for which the first is false, or the second true, then
//! takes rows without a value. It makes `false` of `1 = a AND a = 1`, because the two do not look the
//! same, and `a >= 1` of `a >= 1 AND 1 < a`.
//!
//! It also distinguishes 0.0 and -0.0 in lists, and nowhere else: a list that has one of them has both.
//!
//! So literals stand on the right, and where tests would be taken together, each gets a value of its
//! own, which is the same. Other expressions stay as they are, and are planned as ever.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::{
    BinaryExpr, ColumnarValue, Expr, LogicalPlan, Operator, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, Volatility, lit,
};
use datafusion::optimizer::AnalyzerRule;
use datafusion::optimizer::utils::NamePreserver;

/// The rule, for every plan.
#[derive(Debug)]
pub(crate) struct KeepApart {
    as_is: Arc<ScalarUDF>,
}

impl KeepApart {
    pub fn new() -> KeepApart {
        let signature = Signature::any(2, Volatility::Immutable);
        KeepApart { as_is: Arc::new(ScalarUDF::new_from_impl(AsIs { signature })) }
    }

    fn of_plan(&self, plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
        // A filter cares for what is true only.
        let is_filter = matches!(plan, LogicalPlan::Filter(_));
        let place = ExpressionContext { wanted: is_filter.then_some(true), is_conjunct: is_filter };
        let names = NamePreserver::new(&plan);
        plan.map_expressions(|expr| {
            let name = names.save(&expr);
            let turned = expr.transform_up(|expr| Ok(turned(expr)))?;
            let mut tests = HashMap::new();
            collect(&turned.data, place, &mut tests)?;
            tests.retain(|_, test| test.count > 1 && (test.may_be_false || test.equal > 1));
            if tests.is_empty() {
                return Ok(turned.update_data(|expr| name.restore(expr)));
            }
            let mut count = 0u64;
            let apart = turned.data.transform_up(|expr| {
                let Some(known) = tested(&expr).filter(|tested| tests.contains_key(*tested)) else {
                    return Ok(Transformed::no(expr));
                };
                let known = known.clone();
                count += 1;
                let same = |expr: Expr| {
                    if *bare(&expr) == known {
                        self.as_is.call(vec![expr, lit(count)])
                    } else {
                        expr
                    }
                };
                Ok(Transformed::yes(match expr {
                    Expr::InList(InList { expr, list, negated }) => {
                        Expr::InList(InList { expr: Box::new(same(*expr)), list, negated })
                    }
                    Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
                        let (left, right) = (Box::new(same(*left)), Box::new(same(*right)));
                        Expr::BinaryExpr(BinaryExpr { left, op, right })
                    }
                    other => other,
                }))
            })?;
            Ok(apart.update_data(|expr| name.restore(expr)))
        })
    }
}

impl AnalyzerRule for KeepApart {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        Ok(plan.transform_up_with_subqueries(|plan| self.of_plan(plan))?.data)
    }

    fn name(&self) -> &str {
        "keep_apart"
    }
}

/// The tests of one value against literals.
#[derive(Debug, Default)]
struct Tests {
    count: usize,
    /// The whole may be wanted where one of them is false.
    may_be_false: bool,
    /// Tests for equality that all have to be true.
    equal: usize,
}

/// Where an expression stands in its whole.
#[derive(Debug, Clone, Copy)]
struct ExpressionContext {
    /// What it has to be for the whole to be wanted; None: either.
    wanted: Option<bool>,
    /// Only AND joins it with the rest.
    is_conjunct: bool,
}

/// Finds the tests in `expr`.
fn collect(expr: &Expr, place: ExpressionContext, tests: &mut HashMap<Expr, Tests>) -> Result<()> {
    let ExpressionContext { wanted, is_conjunct } = place;
    if let Some(value) = tested(expr) {
        let is_negated = match expr {
            Expr::InList(list) => list.negated,
            Expr::BinaryExpr(binary_expr) => binary_expr.op == Operator::NotEq,
            _ => false,
        };
        let known = tests.entry(value.clone()).or_default();
        known.count += 1;
        known.may_be_false |= wanted.is_none_or(|flag| flag == is_negated);
        known.equal += usize::from(is_conjunct && !is_negated);
    }
    let within = ExpressionContext { wanted, is_conjunct: false };
    match expr {
        Expr::Not(of) => {
            collect(of, ExpressionContext { wanted: wanted.map(|flag| !flag), ..within }, tests)
        }
        Expr::BinaryExpr(BinaryExpr { left, op: op @ (Operator::And | Operator::Or), right }) => {
            let place = if *op == Operator::And { place } else { within };
            collect(left, place, tests)?;
            collect(right, place, tests)
        }
        other => {
            other.apply_children(|expr| {
                collect(expr, ExpressionContext { wanted: None, ..within }, tests)?;
                Ok(TreeNodeRecursion::Continue)
            })?;
            Ok(())
        }
    }
}

fn is_comparison(op: Operator) -> bool {
    use Operator::{Eq, Gt, GtEq, Lt, LtEq, NotEq};
    matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq)
}

/// A comparison with its literal on the right.
fn turned(expr: Expr) -> Transformed<Expr> {
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right })
            if is_comparison(op)
                && matches!(bare(&left), Expr::Literal(..))
                && !matches!(bare(&right), Expr::Literal(..)) =>
        {
            match op.swap() {
                Some(swapped) => Transformed::yes(Expr::BinaryExpr(BinaryExpr {
                    left: right,
                    op: swapped,
                    right: left,
                })),
                None => Transformed::no(Expr::BinaryExpr(BinaryExpr { left, op, right })),
            }
        }
        Expr::InList(mut list) => {
            let zeros: Vec<Expr> = list.list.iter().find_map(zeros).unwrap_or_default();
            let is_new = !zeros.is_empty();
            list.list.extend(zeros);
            Transformed::new_transformed(Expr::InList(list), is_new)
        }
        other => Transformed::no(other),
    }
}

/// The zeros of a type with a sign, if this is one of them: to SQL they are equal, but DataFusion finds
/// values in lists by their bits.
fn zeros(of: &Expr) -> Option<Vec<Expr>> {
    let (value, ty) = match of {
        Expr::Literal(value, _) => (value.clone(), value.data_type()),
        Expr::Cast(cast) => match &*cast.expr {
            Expr::Literal(value, _) => (value.clone(), cast.field.data_type().clone()),
            _ => return None,
        },
        _ => return None,
    };
    let is_zero = value.cast_to(&DataType::Float64).ok()? == ScalarValue::Float64(Some(0.0))
        || value.cast_to(&DataType::Float64).ok()? == ScalarValue::Float64(Some(-0.0));
    let zeros = match ty {
        DataType::Float32 => [0.0, -0.0].map(|value| ScalarValue::Float32(Some(value))),
        DataType::Float64 => [0.0, -0.0].map(|value| ScalarValue::Float64(Some(value))),
        _ => return None,
    };
    is_zero.then(|| zeros.map(|zero| Expr::Literal(zero, None)).to_vec())
}

/// The value that a test compares with literals.
fn tested(expr: &Expr) -> Option<&Expr> {
    match expr {
        Expr::InList(list) => Some(bare(&list.expr)),
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq | Operator::NotEq, right }) => {
            match (bare(left), bare(right)) {
                (value, Expr::Literal(..)) | (Expr::Literal(..), value) => Some(value),
                _ => None,
            }
        }
        _ => None,
    }
}

/// The value itself: DataFusion takes casts away.
fn bare(expr: &Expr) -> &Expr {
    match expr {
        Expr::Cast(cast) => bare(&cast.expr),
        Expr::TryCast(cast) => bare(&cast.expr),
        other => other,
    }
}

/// A value as it is, called by a number so that no two calls are the same.
#[derive(Debug, PartialEq, Eq, Hash)]
struct AsIs {
    signature: Signature,
}

impl ScalarUDFImpl for AsIs {
    fn name(&self) -> &str {
        "as_is"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(types[0].clone())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Ok(args.args[0].clone())
    }
}
