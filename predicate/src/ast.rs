//! The syntax tree.

use ppt_frame_dsl::SourceRange;

/// A condition on a frame: true, false or NULL.
#[derive(Debug, Clone)]
pub(crate) enum Expr {
    /// All of these; at least two.
    All(Vec<Expr>),
    /// Any of these; at least two.
    Any(Vec<Expr>),
    Not(Box<Expr>),
    /// A bool field or literal.
    Bare(Operand),
    Comparison(Operand, Comparison, Operand),
    Between {
        of: Operand,
        negated: bool,
        low: Operand,
        high: Operand,
    },
    In {
        of: Operand,
        negated: bool,
        list: Vec<Literal>,
    },
    Like {
        of: Operand,
        negated: bool,
        pattern: String,
    },
    IsNull {
        of: Operand,
        negated: bool,
    },
}

/// A comparison operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Comparison {
    Equal,
    Unequal,
    Less,
    AtMost,
    Greater,
    AtLeast,
}

/// An operand of a test.
#[derive(Debug, Clone)]
pub(crate) enum Operand {
    Field(FieldName),
    Literal(Literal),
}

/// The name of a field: `handle`, `job.handle`, `dve.job.handle`.
#[derive(Debug, Clone)]
pub(crate) struct FieldName {
    /// One to three.
    pub parts: Vec<NameSegment>,
    pub span: SourceRange,
}

/// A part of a name.
#[derive(Debug, Clone)]
pub(crate) struct NameSegment {
    pub text: String,
    pub span: SourceRange,
}

/// A value in the text.
#[derive(Debug, Clone)]
pub(crate) struct Literal {
    pub value: ComparedValue,
    pub span: SourceRange,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ComparedValue {
    /// Fits i64 or u64.
    Whole(i128),
    Real(f64),
    /// ns.
    Duration(i64),
    /// Bytes.
    Size(i64),
    Text(String),
    Bytes(Vec<u8>),
    Bool(bool),
    Null,
}

impl Comparison {
    /// The operator with its sides exchanged.
    pub fn mirrored(self) -> Comparison {
        match self {
            Comparison::Less => Comparison::Greater,
            Comparison::AtMost => Comparison::AtLeast,
            Comparison::Greater => Comparison::Less,
            Comparison::AtLeast => Comparison::AtMost,
            same => same,
        }
    }

    /// Whether it holds for two values with this order.
    #[inline]
    pub fn holds(self, order: std::cmp::Ordering) -> bool {
        match self {
            Comparison::Equal => order.is_eq(),
            Comparison::Unequal => order.is_ne(),
            Comparison::Less => order.is_lt(),
            Comparison::AtMost => order.is_le(),
            Comparison::Greater => order.is_gt(),
            Comparison::AtLeast => order.is_ge(),
        }
    }
}

impl Operand {
    pub fn span(&self) -> &SourceRange {
        match self {
            Operand::Field(name) => &name.span,
            Operand::Literal(literal) => &literal.span,
        }
    }
}

impl Expr {
    /// Every name, in the order of the text.
    pub fn names<'a>(&'a self, found: &mut Vec<&'a FieldName>) {
        let mut see = |operand: &'a Operand| {
            if let Operand::Field(name) = operand {
                found.push(name);
            }
        };
        match self {
            Expr::All(all) | Expr::Any(all) => all.iter().for_each(|expr| expr.names(found)),
            Expr::Not(of) => of.names(found),
            Expr::Comparison(left, _, right) => [left, right].into_iter().for_each(see),
            Expr::Between { of, low, high, .. } => [of, low, high].into_iter().for_each(see),
            Expr::Bare(of)
            | Expr::In { of, .. }
            | Expr::Like { of, .. }
            | Expr::IsNull { of, .. } => see(of),
        }
    }
}
