//! What can go wrong with a query.

use datafusion::error::DataFusionError;
use ppt_tables::SetError;
use thiserror::Error;

/// Why a query has no answer.
#[derive(Debug, Error, strum::IntoStaticStr, strum::VariantNames)]
#[strum(serialize_all = "kebab-case")]
pub enum QueryError {
    /// The captures cannot be asked.
    #[error(transparent)]
    Set(#[from] SetError),
    /// The name of a frame that several buffers have.
    #[error("several buffers have a frame `{name}`: say which, {}", list(.buffers, .name))]
    Ambiguous {
        /// The name.
        name: String,
        /// The buffers.
        buffers: Vec<String>,
    },
    /// No table of that name.
    #[error("there is no table `{name}`{}; there are: {}", near(.nearest), .there.join(", "))]
    NoTable {
        /// The name.
        name: String,
        /// One that is spelt nearly so.
        nearest: Option<String>,
        /// All of them.
        there: Vec<String>,
    },
    /// It takes more memory than is allowed, and cannot do with less.
    #[error("the query needs more memory than it is allowed: {0}")]
    Memory(String),
    /// DataFusion refuses it, or fails.
    #[error("{0}")]
    Query(DataFusionError),
    /// The answer cannot be written; a closed pipe is `BrokenPipe`.
    #[error("could not write the answer: {0}")]
    Output(#[from] std::io::Error),
}

impl QueryError {
    /// The short name of what is said, under which `docs/troubleshooting.md` explains it.
    pub fn code(&self) -> &'static str {
        match self {
            QueryError::Set(error) => error.code(),
            other => other.into(),
        }
    }
}

impl From<DataFusionError> for QueryError {
    fn from(error: DataFusionError) -> Self {
        match error.find_root() {
            DataFusionError::ResourcesExhausted(why) => QueryError::Memory(why.clone()),
            _ => QueryError::Query(error),
        }
    }
}

fn list(buffers: &[String], name: &str) -> String {
    let names: Vec<String> = buffers.iter().map(|it| format!("`{it}.{name}`")).collect();
    names.join(" or ")
}

fn near(nearest: &Option<String>) -> String {
    nearest.as_ref().map_or_else(String::new, |name| format!(" (did you mean `{name}`?)"))
}
