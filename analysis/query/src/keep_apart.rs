//! An analyzer rule that keeps DataFusion from merging tests of one value incorrectly.
//!
//! DataFusion simplifies `a IN (1) AND a IN (2)` to `false`, and `a NOT IN (1) OR a NOT IN (2)` to `true`.
//! If `a` is NULL, both should be NULL: a filter on the negation of the first, or on the second, would accept
//! rows without a value. It also simplifies `1 = a AND a = 1` to `false`, because the two tests look
//! different, and `a >= 1 AND 1 < a` to `a >= 1`. In lists, and only there, it distinguishes 0.0 and -0.0.
//!
//! The rule moves literals to the right, adds the other zero to lists with a zero, and wraps values whose
//! tests would be merged into calls with different numbers. Other expressions remain unchanged.

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

/// The rule.
#[derive(Debug)]
pub(crate) struct KeepApart {
    as_is: Arc<ScalarUDF>,
}

impl KeepApart {
    pub fn new() -> KeepApart {
        let signature = Signature::any(2, Volatility::Immutable);
        KeepApart { as_is: Arc::new(ScalarUDF::new_from_impl(AsIs { signature })) }
    }

    /// Rewrites the expressions of a plan node.
    fn rewrite(&self, plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
        // A filter distinguishes only true from the rest.
        let is_filter = matches!(plan, LogicalPlan::Filter(_));
        let context =
            ExpressionContext { wanted: is_filter.then_some(true), is_conjunct: is_filter };
        let names = NamePreserver::new(&plan);
        plan.map_expressions(|expr| {
            let name = names.save(&expr);
            let normalized = expr.transform_up(|expr| Ok(normalized(expr)))?;
            let mut tests = HashMap::new();
            collect(&normalized.data, context, &mut tests)?;
            tests.retain(|_, test| test.count > 1 && (test.may_be_false || test.equal > 1));
            if tests.is_empty() {
                return Ok(normalized.update_data(|expr| name.restore(expr)));
            }
            let mut count = 0u64;
            let apart = normalized.data.transform_up(|expr| {
                let Some(value) = tested(&expr).filter(|tested| tests.contains_key(*tested)) else {
                    return Ok(Transformed::no(expr));
                };
                let value = value.clone();
                count += 1;
                let wrapped = |expr: Expr| {
                    if *bare(&expr) == value {
                        self.as_is.call(vec![expr, lit(count)])
                    } else {
                        expr
                    }
                };
                Ok(Transformed::yes(match expr {
                    Expr::InList(InList { expr, list, negated }) => {
                        Expr::InList(InList { expr: Box::new(wrapped(*expr)), list, negated })
                    }
                    Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
                        let (left, right) = (Box::new(wrapped(*left)), Box::new(wrapped(*right)));
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
        Ok(plan.transform_up_with_subqueries(|plan| self.rewrite(plan))?.data)
    }

    fn name(&self) -> &str {
        "keep_apart"
    }
}

/// Tests of one value against literals.
#[derive(Debug, Default)]
struct Tests {
    count: usize,
    /// The whole expression may be wanted when one of them is false.
    may_be_false: bool,
    /// Number of equality tests that all must be true.
    equal: usize,
}

/// The context of an expression within the whole expression.
#[derive(Debug, Clone, Copy)]
struct ExpressionContext {
    /// The value that it must have for the whole expression to be wanted; None if either will do.
    wanted: Option<bool>,
    /// Whether only AND joins the expression with the rest.
    is_conjunct: bool,
}

/// Finds the tests in `expr`.
fn collect(
    expr: &Expr,
    context: ExpressionContext,
    tests: &mut HashMap<Expr, Tests>,
) -> Result<()> {
    let ExpressionContext { wanted, is_conjunct } = context;
    if let Some(value) = tested(expr) {
        let is_negated = match expr {
            Expr::InList(list) => list.negated,
            Expr::BinaryExpr(binary_expr) => binary_expr.op == Operator::NotEq,
            _ => false,
        };
        let entry = tests.entry(value.clone()).or_default();
        entry.count += 1;
        entry.may_be_false |= wanted.is_none_or(|flag| flag == is_negated);
        entry.equal += usize::from(is_conjunct && !is_negated);
    }
    let within = ExpressionContext { wanted, is_conjunct: false };
    match expr {
        Expr::Not(operand) => collect(
            operand,
            ExpressionContext { wanted: wanted.map(|flag| !flag), ..within },
            tests,
        ),
        Expr::BinaryExpr(BinaryExpr { left, op: op @ (Operator::And | Operator::Or), right }) => {
            let context = if *op == Operator::And { context } else { within };
            collect(left, context, tests)?;
            collect(right, context, tests)
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

/// Moves the literal of a comparison to the right, and adds the other zero to a list with a zero.
fn normalized(expr: Expr) -> Transformed<Expr> {
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

/// Both zeros of a floating-point type, if `expr` is one of them. They are equal in SQL, but DataFusion
/// compares list values by their bits.
fn zeros(expr: &Expr) -> Option<Vec<Expr>> {
    let (value, ty) = match expr {
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

/// The value without casts, which DataFusion removes.
fn bare(expr: &Expr) -> &Expr {
    match expr {
        Expr::Cast(cast) => bare(&cast.expr),
        Expr::TryCast(cast) => bare(&cast.expr),
        other => other,
    }
}

/// The identity function. Its second argument is a number that makes each call different.
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
