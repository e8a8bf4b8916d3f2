//! What can go wrong with a query.

use std::error::Error;

use datafusion::common::SchemaError;
use datafusion::error::DataFusionError;
use datafusion::sql::sqlparser::parser::ParserError;
use ppt_tables::{SetError, TableError};
use ppt_text::{did_you_mean, nearest};
use strum::VariantNames;

use crate::nesting::RECURSION;

/// Why a query has no answer.
#[derive(Debug, thiserror::Error, strum::IntoStaticStr, strum::VariantNames)]
#[strum(serialize_all = "kebab-case")]
pub enum QueryError {
    /// The captures cannot be asked.
    #[error(transparent)]
    Set(#[from] SetError),
    /// The name of a frame that several buffers have.
    #[error("several buffers have a frame `{name}`: say which, {}", list(.buffers, .name))]
    #[strum(serialize = "ambiguous-frame")]
    Ambiguous {
        /// The name.
        name: String,
        /// The buffers.
        buffers: Vec<String>,
    },
    /// No table of that name.
    #[error("there is no table `{name}`{}; there are: {}", did_you_mean(.nearest), .there.join(", "))]
    #[strum(serialize = "no-table")]
    NoTable {
        /// The name.
        name: String,
        /// One that is spelt nearly so.
        nearest: Option<String>,
        /// All of them.
        there: Vec<String>,
    },
    /// No kind of frames of that name.
    #[error("there is no frame `{name}`{}; there are: {}", did_you_mean(.nearest), .there.join(", "))]
    #[strum(serialize = "no-such-frame")]
    NoFrame {
        /// The name.
        name: String,
        /// One that is spelt nearly so.
        nearest: Option<String>,
        /// All of them.
        there: Vec<String>,
    },
    /// No buffer of that name.
    #[error("there is no buffer `{name}`{}; there are: {}", did_you_mean(.nearest), .there.join(", "))]
    #[strum(serialize = "no-such-buffer")]
    NoBuffer {
        /// The name.
        name: String,
        /// One that is spelt nearly so.
        nearest: Option<String>,
        /// All of them.
        there: Vec<String>,
    },
    /// No column of that name.
    #[error("there is no column `{name}`{}; there are: {}", near_or_text(.name, .nearest), .there.join(", "))]
    #[strum(serialize = "no-column")]
    NoColumn {
        /// The name.
        name: String,
        /// One that is spelt nearly so.
        nearest: Option<String>,
        /// All of them.
        there: Vec<String>,
    },
    /// No interval of time of that name, or none at all.
    #[error("there is no interval of time{}{}; there are: {}", named(.name), did_you_mean(.nearest), some(.there))]
    #[strum(serialize = "no-interval")]
    NoInterval {
        /// The name; empty where the captures have none at all.
        name: String,
        /// One that is spelt nearly so.
        nearest: Option<String>,
        /// All of them.
        there: Vec<String>,
    },
    /// Frames of a kind take no time, or chains: nothing says how long they took.
    #[error("`{frame}` has no interval of time and no span; these have: {}", some(.there))]
    #[strum(serialize = "frame-without-interval")]
    Untimed {
        /// The kind of frames, or the chains.
        frame: String,
        /// Kinds of frames that have some.
        there: Vec<String>,
    },
    /// No point is called so.
    #[error("{0}")]
    #[strum(serialize = "no-point")]
    NoPoint(String),
    /// No capture has frames of the kernel.
    #[error(
        "the captures do not say what the kernel did: they have no frames of the kernel; capture with \
         --kernel sched,syscalls,faults"
    )]
    #[strum(serialize = "no-kernel-frames")]
    NoKernel,
    /// No stacks.
    #[error("the captures have no stacks: capture with --stacks")]
    NoStacks,
    /// The captures do not say when they began, and a bound counts from there.
    #[error("nothing in the captures says when they began: bound by UTC or by numbers instead")]
    #[strum(serialize = "no-start")]
    NoBeginning,
    /// Times of several hosts, which nothing relates to each other.
    #[error("{0}")]
    #[strum(serialize = "clocks-not-comparable")]
    Incomparable(String),
    /// One identity would have too many edges.
    #[error("{0}: bound it by `within` or `nearest` in an edge line")]
    #[strum(serialize = "hot-identity")]
    Hot(String),
    /// An expression that planning might not survive.
    #[error(
        "an expression has {count} operators, and at most {most} are planned: use a list (IN), or several views"
    )]
    #[strum(serialize = "too-many-operators")]
    TooLong {
        /// Operators of the longest.
        count: usize,
        /// How many there may be.
        most: usize,
    },
    /// Parts of a query that stand in each other: planning might not survive, or take minutes.
    #[error(
        "{what} stand in each other {depth} deep, and at most {most} are planned: name the inner ones by WITH, or by CREATE VIEW"
    )]
    #[strum(serialize = "too-deep")]
    TooDeep {
        /// What stands in each other.
        what: &'static str,
        /// How deep.
        depth: usize,
        /// How deep it may be.
        most: usize,
    },
    /// The text is no SQL.
    #[error("the SQL cannot be read: {0}")]
    #[strum(serialize = "bad-sql")]
    NoSql(String),
    /// A statement that is not answered here.
    #[error("{0}")]
    #[strum(serialize = "not-in-sql")]
    NotHere(String),
    /// Somebody asked for it to stop.
    #[error("cancelled")]
    Cancelled,
    /// It takes more memory than is allowed, and cannot do with less.
    #[error("the query needs more memory than it is allowed: {0}")]
    #[strum(serialize = "query-memory")]
    Memory(String),
    /// The disk has no room for what does not fit into memory.
    #[error("no room for what the query moves out of memory: {0}")]
    #[strum(serialize = "spill-full")]
    Spill(String),
    /// DataFusion refuses it, or fails.
    #[error("{0}")]
    #[strum(serialize = "query-refused")]
    Query(DataFusionError),
    /// A step of it failed; a bug.
    #[error("a step of the query failed: {0}")]
    #[strum(serialize = "bug")]
    Failed(String),
    /// The answer cannot be written; a closed pipe is `BrokenPipe`.
    #[error("could not write the answer: {0}")]
    #[strum(serialize = "cannot-write")]
    Output(#[from] std::io::Error),
}

impl From<TableError> for QueryError {
    fn from(error: TableError) -> Self {
        DataFusionError::External(Box::new(error)).into()
    }
}

impl QueryError {
    /// The short name of what is said, under which `docs/troubleshooting.md` explains it.
    pub fn code(&self) -> &'static str {
        match self {
            QueryError::Set(error) => error.code(),
            other => other.into(),
        }
    }

    /// Whether what was asked for is not there, rather than that something failed.
    pub fn is_usage(&self) -> bool {
        matches!(
            self,
            QueryError::Set(SetError::NoCapture | SetError::NoMatch { .. })
                | QueryError::Ambiguous { .. }
                | QueryError::NoTable { .. }
                | QueryError::NoFrame { .. }
                | QueryError::NoBuffer { .. }
                | QueryError::NoColumn { .. }
                | QueryError::TooLong { .. }
                | QueryError::TooDeep { .. }
                | QueryError::NoInterval { .. }
                | QueryError::Untimed { .. }
                | QueryError::NoPoint(_)
                | QueryError::NotHere(_)
        )
    }

    /// Every code but those of captures that cannot be read.
    pub fn codes() -> impl Iterator<Item = &'static str> {
        // Those are of the errors in them; no message says that the user pressed Ctrl-C.
        let known = |text: &&str| !["set", "capture", "cancelled"].contains(text);
        QueryError::VARIANTS.iter().chain(SetError::VARIANTS).copied().filter(known)
    }
}

/// Why a file could not grow, if that is what went wrong: the only files that queries write are those of
/// spills. Errors of files are wrapped in errors of files.
fn full(error: &DataFusionError) -> Option<String> {
    use std::io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    let mut next: Option<&dyn Error> = Some(error);
    while let Some(error) = next {
        next = match error.downcast_ref::<std::io::Error>() {
            Some(cause) if [StorageFull, QuotaExceeded, FileTooLarge].contains(&cause.kind()) => {
                return Some(cause.to_string());
            }
            Some(cause) => cause.get_ref().map(|inner| inner as &dyn Error),
            None => error.source(),
        };
    }
    None
}

impl From<DataFusionError> for QueryError {
    fn from(error: DataFusionError) -> Self {
        if let Some(why) = full(&error) {
            return QueryError::Spill(why);
        }
        match error.find_root() {
            DataFusionError::ExecutionJoin(cause) if cause.is_panic() => {
                QueryError::Failed(cause.to_string())
            }
            DataFusionError::ResourcesExhausted(why) => QueryError::Memory(why.clone()),
            DataFusionError::External(cause)
                if matches!(cause.downcast_ref(), Some(TableError::Cancelled)) =>
            {
                QueryError::Cancelled
            }
            DataFusionError::External(cause)
                if matches!(cause.downcast_ref(), Some(TableError::Incomparable { .. })) =>
            {
                QueryError::Incomparable(cause.to_string())
            }
            DataFusionError::External(cause)
                if matches!(cause.downcast_ref(), Some(TableError::Hot { .. })) =>
            {
                QueryError::Hot(cause.to_string())
            }
            DataFusionError::SQL(cause, _) => match &**cause {
                // Our limits are reached before.
                ParserError::RecursionLimitExceeded => {
                    let what = "parts of the query";
                    QueryError::TooDeep { what, depth: RECURSION + 1, most: RECURSION }
                }
                ParserError::TokenizerError(why) | ParserError::ParserError(why) => {
                    QueryError::NoSql(why.clone())
                }
            },
            DataFusionError::SchemaError(cause, _) => match &**cause {
                SchemaError::FieldNotFound { field, valid_fields } => {
                    let there: Vec<_> =
                        valid_fields.iter().map(|valid_field| valid_field.name.clone()).collect();
                    let name = field.name.clone();
                    QueryError::NoColumn { nearest: nearest(&name, &there).cloned(), name, there }
                }
                _ => QueryError::Query(error),
            },
            _ => QueryError::Query(error),
        }
    }
}

/// An error of ours, inside DataFusion's.
pub(crate) fn external(error: impl std::error::Error + Send + Sync + 'static) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

fn list(buffers: &[String], name: &str) -> String {
    let names: Vec<String> = buffers.iter().map(|buffer| format!("`{buffer}.{name}`")).collect();
    names.join(" or ")
}

fn named(name: &str) -> String {
    if name.is_empty() { String::new() } else { format!(" `{name}`") }
}

fn some(there: &[String]) -> String {
    if there.is_empty() { "none".to_owned() } else { there.join(", ") }
}

/// Without quotes, a text is a name.
fn near_or_text(name: &str, nearest: &Option<String>) -> String {
    match nearest {
        Some(_) => did_you_mean(nearest),
        None => format!(" (a text needs quotes: '{name}')"),
    }
}
