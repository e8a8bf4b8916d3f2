//! A table with its name: the result of each module of tables.

use std::sync::Arc;

use crate::growing::GrowingTable;
use crate::table::CaptureTable;

/// A table with its name.
#[derive(Debug)]
pub(crate) struct NamedTable {
    pub subject: TableSubject,
    pub name: String,
    pub table: Arc<dyn CaptureTable>,
    /// The table for captures that grow, if it has spans or chains.
    pub growing: Option<Arc<dyn GrowingTable>>,
}

impl NamedTable {
    pub fn fixed(name: &str, table: impl CaptureTable + 'static) -> NamedTable {
        NamedTable {
            subject: TableSubject::Set,
            name: name.to_owned(),
            table: Arc::new(table),
            growing: None,
        }
    }

    pub fn frame(buffer: &str, name: &str, table: impl CaptureTable + 'static) -> NamedTable {
        NamedTable {
            subject: TableSubject::Frame(buffer.to_owned()),
            name: name.to_owned(),
            table: Arc::new(table),
            growing: None,
        }
    }

    /// The table `name` of the spans of a frame.
    pub fn spans(
        frame: (&str, &str),
        name: String,
        table: impl CaptureTable + GrowingTable + 'static,
    ) -> NamedTable {
        NamedTable::derived(frame, false, name, table)
    }

    /// The table `name` of the chains of a frame.
    pub fn chains(
        frame: (&str, &str),
        name: String,
        table: impl CaptureTable + GrowingTable + 'static,
    ) -> NamedTable {
        NamedTable::derived(frame, true, name, table)
    }

    fn derived(
        (buffer, frame): (&str, &str),
        is_chain: bool,
        name: String,
        table: impl CaptureTable + GrowingTable + 'static,
    ) -> NamedTable {
        let (buffer, frame) = (buffer.to_owned(), frame.to_owned());
        let (subject, table) = (TableSubject::Derived { buffer, frame, is_chain }, Arc::new(table));
        NamedTable { subject, name, table: table.clone(), growing: Some(table) }
    }
}

/// The subject of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TableSubject {
    /// The set: a fixed table, which every set has.
    Set,
    /// A kind of frames of this buffer.
    Frame(String),
    /// The spans or chains of a kind of frames.
    Derived {
        buffer: String,
        /// The kind of frames.
        frame: String,
        /// True: chains; false: spans.
        is_chain: bool,
    },
}
