//! Errors of queries.

use std::error::Error;

use datafusion::common::SchemaError;
use datafusion::error::DataFusionError;
use datafusion::sql::sqlparser::parser::ParserError;
use ppt_tables::{SetError, TableError};
use ppt_text::{did_you_mean, nearest};
use strum::VariantNames;

use crate::sql_depth::RECURSION;

/// Why a query has no answer.
#[derive(Debug, thiserror::Error, strum::IntoStaticStr, strum::VariantNames)]
#[strum(serialize_all = "kebab-case")]
pub enum QueryError {
    /// The captures cannot be opened or queried.
    #[error(transparent)]
    Set(#[from] SetError),
    /// Several buffers have a frame of this name.
    #[error("several buffers have a frame `{name}`: say which, {}", list(.buffers, .name))]
    #[strum(serialize = "ambiguous-frame")]
    Ambiguous {
        /// The name.
        name: String,
        /// The buffers.
        buffers: Vec<String>,
    },
    /// No table has this name.
    #[error("there is no table `{name}`{}; there are: {}", did_you_mean(.nearest), .available.join(", "))]
    #[strum(serialize = "no-table")]
    NoTable {
        /// The name.
        name: String,
        /// The most similar name, if one is similar.
        nearest: Option<String>,
        /// All names.
        available: Vec<String>,
    },
    /// No kind of frames has this name.
    #[error("there is no frame `{name}`{}; there are: {}", did_you_mean(.nearest), .available.join(", "))]
    #[strum(serialize = "no-such-frame")]
    NoFrame {
        /// The name.
        name: String,
        /// The most similar name, if one is similar.
        nearest: Option<String>,
        /// All names.
        available: Vec<String>,
    },
    /// No buffer has this name.
    #[error("there is no buffer `{name}`{}; there are: {}", did_you_mean(.nearest), .available.join(", "))]
    #[strum(serialize = "no-such-buffer")]
    NoBuffer {
        /// The name.
        name: String,
        /// The most similar name, if one is similar.
        nearest: Option<String>,
        /// All names.
        available: Vec<String>,
    },
    /// No column has this name.
    #[error("there is no column `{name}`{}; there are: {}", near_or_text(.name, .nearest), .available.join(", "))]
    #[strum(serialize = "no-column")]
    NoColumn {
        /// The name.
        name: String,
        /// The most similar name, if one is similar.
        nearest: Option<String>,
        /// All names.
        available: Vec<String>,
    },
    /// No interval of time has this name, or there are none.
    #[error("there is no interval of time{}{}; there are: {}", named(.name), did_you_mean(.nearest), or_none(.available))]
    #[strum(serialize = "no-interval")]
    NoInterval {
        /// The name; empty if the captures have no intervals.
        name: String,
        /// The most similar name, if one is similar.
        nearest: Option<String>,
        /// All names.
        available: Vec<String>,
    },
    /// A kind of frames, or chains, without a duration.
    #[error("`{frame}` has no interval of time and no span; these have: {}", or_none(.available))]
    #[strum(serialize = "frame-without-interval")]
    Untimed {
        /// The kind of frames, or the chains.
        frame: String,
        /// Kinds of frames with durations.
        available: Vec<String>,
    },
    /// No point has this name.
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
    /// No capture has stacks.
    #[error("the captures have no stacks: capture with --stacks")]
    NoStacks,
    /// A bound is relative to the beginning of the captures, which is unknown.
    #[error("nothing in the captures says when they began: bound by UTC or by numbers instead")]
    #[strum(serialize = "no-start")]
    NoBeginning,
    /// Times of several hosts whose clocks are not related.
    #[error("{0}")]
    #[strum(serialize = "clocks-not-comparable")]
    Incomparable(String),
    /// One identity has too many edges.
    #[error("{0}: bound it by `within` or `nearest` in an edge line")]
    #[strum(serialize = "hot-identity")]
    Hot(String),
    /// An expression with too many operators: planning it might overflow the stack.
    #[error(
        "an expression has {count} operators, and at most {limit} are planned: use a list (IN), or several views"
    )]
    #[strum(serialize = "too-many-operators")]
    TooLong {
        /// Number of operators of the longest expression.
        count: usize,
        /// Largest allowed number.
        limit: usize,
    },
    /// Nesting that is too deep: planning might overflow the stack, or take minutes.
    #[error(
        "{constructs} stand in each other {depth} deep, and at most {limit} are planned: name the inner ones by WITH, or by CREATE VIEW"
    )]
    #[strum(serialize = "too-deep")]
    TooDeep {
        /// The nested constructs.
        constructs: &'static str,
        /// The depth.
        depth: usize,
        /// The largest allowed depth.
        limit: usize,
    },
    /// The text is not SQL.
    #[error("the SQL cannot be read: {0}")]
    #[strum(serialize = "bad-sql")]
    NoSql(String),
    /// A statement that is not supported.
    #[error("{0}")]
    #[strum(serialize = "not-in-sql")]
    NotHere(String),
    /// The query was cancelled.
    #[error("cancelled")]
    Cancelled,
    /// The query needs more memory than is allowed, even if it spills.
    #[error("the query needs more memory than it is allowed: {0}")]
    #[strum(serialize = "query-memory")]
    Memory(String),
    /// The disk has no room for spilled rows.
    #[error("no room for what the query moves out of memory: {0}")]
    #[strum(serialize = "spill-full")]
    Spill(String),
    /// DataFusion refuses the query, or fails.
    #[error("{0}")]
    #[strum(serialize = "query-refused")]
    Query(DataFusionError),
    /// A step of the query panicked or failed; a bug.
    #[error("a step of the query failed: {0}")]
    #[strum(serialize = "bug")]
    Failed(String),
    /// The answer cannot be written. A closed pipe is `BrokenPipe`.
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
    /// The short name of the message, under which `docs/troubleshooting.md` explains it.
    pub fn code(&self) -> &'static str {
        match self {
            QueryError::Set(error) => error.code(),
            other => other.into(),
        }
    }

    /// Whether the request is at fault: it names something unknown, or is not supported.
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

    /// All codes, without those of captures that cannot be read.
    pub fn codes() -> impl Iterator<Item = &'static str> {
        // `set` and `capture` have the codes of the inner errors; `cancelled` has no message.
        let has_message = |text: &&str| !["set", "capture", "cancelled"].contains(text);
        QueryError::VARIANTS.iter().chain(SetError::VARIANTS).copied().filter(has_message)
    }
}

/// The message of an error for a full disk, if that is the cause. Queries write no files but spilled
/// rows. File errors may be nested in each other.
fn disk_full(error: &DataFusionError) -> Option<String> {
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
        if let Some(why) = disk_full(&error) {
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
                // Our own limits are lower.
                ParserError::RecursionLimitExceeded => {
                    let constructs = "parts of the query";
                    QueryError::TooDeep { constructs, depth: RECURSION + 1, limit: RECURSION }
                }
                ParserError::TokenizerError(why) | ParserError::ParserError(why) => {
                    QueryError::NoSql(why.clone())
                }
            },
            DataFusionError::SchemaError(cause, _) => match &**cause {
                SchemaError::FieldNotFound { field, valid_fields } => {
                    let available: Vec<_> =
                        valid_fields.iter().map(|field| field.name.clone()).collect();
                    let name = field.name.clone();
                    QueryError::NoColumn {
                        nearest: nearest(&name, &available).cloned(),
                        name,
                        available,
                    }
                }
                _ => QueryError::Query(error),
            },
            _ => QueryError::Query(error),
        }
    }
}

/// Wraps an error of this crate in one of DataFusion.
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

fn or_none(names: &[String]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

/// A suggestion for an unknown column. A text without quotes is taken for a column.
fn near_or_text(name: &str, nearest: &Option<String>) -> String {
    match nearest {
        Some(_) => did_you_mean(nearest),
        None => format!(" (a text needs quotes: '{name}')"),
    }
}
