//! Why there is no picture.

use ppt_query::QueryError;

/// Why there is no picture.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// The captures do not answer.
    #[error(transparent)]
    Query(#[from] QueryError),
    /// A statement that only `ppt sql` takes.
    #[error("{0}")]
    SelectOnly(String),
    /// An answer that cannot be drawn.
    #[error("{0}")]
    NotDrawn(String),
}

impl ReportError {
    /// The short name of what is said, under which `docs/troubleshooting.md` explains it.
    pub fn code(&self) -> &'static str {
        match self {
            ReportError::Query(error) => error.code(),
            ReportError::SelectOnly(_) => "select-only",
            ReportError::NotDrawn(_) => "not-drawn",
        }
    }

    /// The codes of its own; the others are those of queries.
    pub const CODES: [&'static str; 2] = ["select-only", "not-drawn"];

    /// Whether what was asked for cannot be had, rather than that something failed.
    pub fn is_usage(&self) -> bool {
        match self {
            ReportError::Query(error) => error.is_usage(),
            _ => true,
        }
    }
}

impl From<ppt_query::datafusion::error::DataFusionError> for ReportError {
    fn from(error: ppt_query::datafusion::error::DataFusionError) -> Self {
        ReportError::Query(error.into())
    }
}

impl From<ppt_query::arrow::error::ArrowError> for ReportError {
    fn from(error: ppt_query::arrow::error::ArrowError) -> Self {
        ReportError::Query(QueryError::Failed(error.to_string()))
    }
}
