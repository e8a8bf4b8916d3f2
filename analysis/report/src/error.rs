//! Errors of reports and plots.

use ppt_query::QueryError;

/// Why a report or a plot could not be made.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// The query failed.
    #[error(transparent)]
    Query(#[from] QueryError),
    /// The statement is not a SELECT, so only `ppt sql` accepts it.
    #[error("{0}")]
    SelectOnly(String),
    /// The answer cannot be drawn.
    #[error("{0}")]
    NotDrawn(String),
}

impl ReportError {
    /// The code under which `docs/troubleshooting.md` explains the message.
    pub fn code(&self) -> &'static str {
        match self {
            ReportError::Query(error) => error.code(),
            ReportError::SelectOnly(_) => "select-only",
            ReportError::NotDrawn(_) => "not-drawn",
        }
    }

    /// The codes of this type; the others are those of [`QueryError`].
    pub const CODES: [&'static str; 2] = ["select-only", "not-drawn"];

    /// Whether the request itself is wrong, as opposed to a failure while it was carried out.
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
