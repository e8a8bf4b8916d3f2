//! What a file of a table answers with.

use std::sync::Arc;

use crate::table::Table;

/// A table with its name.
#[derive(Debug)]
pub(crate) struct Named {
    pub of: Of,
    pub name: String,
    pub table: Arc<dyn Table>,
}

impl Named {
    pub fn fixed(name: &str, table: impl Table + 'static) -> Named {
        Named { of: Of::Set, name: name.to_owned(), table: Arc::new(table) }
    }

    pub fn frame(buffer: &str, name: &str, table: impl Table + 'static) -> Named {
        Named { of: Of::Frame(buffer.to_owned()), name: name.to_owned(), table: Arc::new(table) }
    }

    pub fn spans(
        (buffer, frame): (&str, &str),
        name: String,
        table: impl Table + 'static,
    ) -> Named {
        let of = Of::Derived { buffer: buffer.to_owned(), spans_of: Some(frame.to_owned()) };
        Named { of, name, table: Arc::new(table) }
    }

    pub fn chains(buffer: &str, name: String, table: impl Table + 'static) -> Named {
        let of = Of::Derived { buffer: buffer.to_owned(), spans_of: None };
        Named { of, name, table: Arc::new(table) }
    }
}

/// What a table is of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Of {
    /// The whole set: a fixed table, which every set has.
    Set,
    /// A kind of frames of this buffer.
    Frame(String),
    /// Whatever is made of such a kind; its frames are another table's.
    Derived {
        buffer: String,
        /// The frame, where these are its spans.
        spans_of: Option<String>,
    },
}
