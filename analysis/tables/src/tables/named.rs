//! What a file of a table answers with.

use std::sync::Arc;

use crate::table::Table;

/// A table with its name.
#[derive(Debug)]
pub(crate) struct Named {
    pub of: TableSubject,
    pub name: String,
    pub table: Arc<dyn Table>,
}

impl Named {
    pub fn fixed(name: &str, table: impl Table + 'static) -> Named {
        Named { of: TableSubject::Set, name: name.to_owned(), table: Arc::new(table) }
    }

    pub fn frame(buffer: &str, name: &str, table: impl Table + 'static) -> Named {
        Named {
            of: TableSubject::Frame(buffer.to_owned()),
            name: name.to_owned(),
            table: Arc::new(table),
        }
    }

    /// The table `name` of the spans of a frame.
    pub fn spans(frame: (&str, &str), name: String, table: impl Table + 'static) -> Named {
        Named::derived(frame, false, name, Arc::new(table))
    }

    /// The table `name` of the chains of a frame.
    pub fn chains(frame: (&str, &str), name: String, table: impl Table + 'static) -> Named {
        Named::derived(frame, true, name, Arc::new(table))
    }

    fn derived(
        (buffer, frame): (&str, &str),
        is_chain: bool,
        name: String,
        table: Arc<dyn Table>,
    ) -> Named {
        let (buffer, frame) = (buffer.to_owned(), frame.to_owned());
        Named { of: TableSubject::Derived { buffer, frame, is_chain }, name, table }
    }
}

/// What a table is of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TableSubject {
    /// The whole set: a fixed table, which every set has.
    Set,
    /// A kind of frames of this buffer.
    Frame(String),
    /// Whatever is made of such a kind; its frames are another table's.
    Derived {
        buffer: String,
        /// The frame.
        frame: String,
        /// Whether these are its chains; else they are its spans.
        is_chain: bool,
    },
}
