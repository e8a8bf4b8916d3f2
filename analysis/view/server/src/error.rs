//! The errors of the server, and refusals of requests.

use hyper::StatusCode;
use ppt_query::{QueryError, SetError};
use ppt_view::ViewError;
use thiserror::Error;

/// The cause for which the server cannot start.
#[derive(Debug, Error)]
pub enum ServeError {
    /// The view of the captures cannot be made.
    #[error(transparent)]
    View(#[from] ViewError),
    /// The captures cannot be opened or queried.
    #[error(transparent)]
    Query(#[from] QueryError),
    /// The port cannot be bound.
    #[error(
        "port {port} of 127.0.0.1 cannot be used: {error}; leave --port out, and any free one is taken"
    )]
    Bind {
        /// The number of the port.
        port: u16,
        /// The error of the system.
        error: std::io::Error,
    },
    /// The system refuses another resource.
    #[error("{what}: {error}")]
    System {
        /// The resource, in words.
        what: &'static str,
        /// The error of the system.
        error: std::io::Error,
    },
}

impl ServeError {
    /// The code of the message for `ppt explain`.
    pub fn code(&self) -> &'static str {
        match self {
            ServeError::Query(error) => error.code(),
            ServeError::View(ViewError::Output(error)) => error.code(),
            ServeError::View(_) => "cannot-read",
            ServeError::Bind { .. } => "port-in-use",
            ServeError::System { .. } => "system",
        }
    }

    /// Whether the command line is the cause.
    pub fn is_usage(&self) -> bool {
        matches!(self, ServeError::Query(error) if error.is_usage())
    }
}

/// Errors of opening captures have the codes of queries.
impl From<SetError> for ServeError {
    fn from(error: SetError) -> ServeError {
        ServeError::Query(error.into())
    }
}

/// A refusal of a request: a status, and a text for people.
#[derive(Debug)]
pub(crate) struct HttpRefusal {
    pub status: StatusCode,
    pub text: String,
}

impl HttpRefusal {
    pub fn new(status: StatusCode, text: impl Into<String>) -> HttpRefusal {
        HttpRefusal { status, text: text.into() }
    }

    /// A refusal of an invalid request.
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
