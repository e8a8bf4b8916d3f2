//! What can go wrong.

use hyper::StatusCode;
use ppt_query::{QueryError, SetError};
use ppt_view::ViewError;
use thiserror::Error;

/// Why captures cannot be shown.
#[derive(Debug, Error)]
pub enum ServeError {
    /// They cannot be looked at.
    #[error(transparent)]
    View(#[from] ViewError),
    /// They cannot be opened, or asked.
    #[error(transparent)]
    Query(#[from] QueryError),
    /// The port cannot be bound.
    #[error(
        "port {port} of 127.0.0.1 cannot be used: {error}; leave --port out, and any free one is taken"
    )]
    Bind {
        /// Which one.
        port: u16,
        /// Why.
        error: std::io::Error,
    },
    /// The system refuses something else.
    #[error("{what}: {error}")]
    System {
        /// What was tried.
        what: &'static str,
        /// Why it failed.
        error: std::io::Error,
    },
}

impl ServeError {
    /// The name under which `ppt explain` knows it.
    pub fn code(&self) -> &'static str {
        match self {
            ServeError::Query(error) => error.code(),
            ServeError::View(ViewError::Output(error)) => error.code(),
            ServeError::View(_) => "cannot-read",
            ServeError::Bind { .. } => "port-in-use",
            ServeError::System { .. } => "system",
        }
    }

    /// Whether the command line was wrong.
    pub fn is_usage(&self) -> bool {
        matches!(self, ServeError::Query(error) if error.is_usage())
    }
}

/// Opening captures fails as it does for a question.
impl From<SetError> for ServeError {
    fn from(error: SetError) -> ServeError {
        ServeError::Query(error.into())
    }
}

/// Why a request gets no answer: a status, and a text for people.
#[derive(Debug)]
pub(crate) struct HttpRefusal {
    pub status: StatusCode,
    pub text: String,
}

impl HttpRefusal {
    pub fn new(status: StatusCode, text: impl Into<String>) -> HttpRefusal {
        HttpRefusal { status, text: text.into() }
    }

    /// What was asked makes no sense.
    pub fn bad(text: impl Into<String>) -> HttpRefusal {
        HttpRefusal::new(StatusCode::BAD_REQUEST, text)
    }
}

impl From<ViewError> for HttpRefusal {
    fn from(error: ViewError) -> HttpRefusal {
        let status = match error {
            ViewError::NoSuchRow(_) | ViewError::NoSuchFrame => StatusCode::NOT_FOUND,
            ViewError::Expression(_) => StatusCode::BAD_REQUEST,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        HttpRefusal::new(status, error.to_string())
    }
}

impl From<QueryError> for HttpRefusal {
    fn from(error: QueryError) -> HttpRefusal {
        HttpRefusal::bad(error.to_string())
    }
}

impl From<ServeError> for HttpRefusal {
    fn from(error: ServeError) -> HttpRefusal {
        HttpRefusal::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string())
    }
}
