//! The errors of an import.

use std::io;

/// The cause for which an import failed. [`ImportError::code`] is its name in `docs/troubleshooting.md`.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The input could not be read.
    #[error("cannot read the input: {0}")]
    Read(#[source] io::Error),
    /// The capture could not be written.
    #[error("cannot write the capture: {0}")]
    Write(#[source] io::Error),
    /// A requested item is not in the frame file.
    #[error("{0}")]
    Frames(String),
    /// The headers and the columns differ.
    #[error("{0}")]
    Headings(String),
    /// A table row is not a valid frame.
    #[error("line {line}{}: {what}", column.as_ref().map_or(String::new(), |column| format!(", column {column}")))]
    Row {
        /// The line of the table, from 1.
        line: u64,
        /// The heading of the column. None if the whole line is at fault.
        column: Option<String>,
        /// The mistake.
        what: String,
    },
    /// A packet cannot become a frame.
    #[error("packet {number}: {what}")]
    Packet {
        /// The number of the packet in the file.
        number: u64,
        /// The mistake.
        what: String,
    },
    /// The capture that was named for its clocks cannot be used.
    #[error("this capture does not say which boot it is of: name one that ppt made on that host")]
    Clock,
    /// The input is not a file of this type.
    #[error("{0}")]
    Format(String),
}

impl ImportError {
    /// All message codes that only imports have.
    pub const CODES: [&str; 6] = [
        "import-cut",
        "import-format",
        "import-frames",
        "import-headings",
        "import-packet",
        "import-row",
    ];

    /// The name of the message in `docs/troubleshooting.md`.
    pub fn code(&self) -> &'static str {
        match self {
            ImportError::Read(_) => "cannot-read",
            ImportError::Write(_) => "cannot-write",
            ImportError::Frames(_) => "import-frames",
            ImportError::Headings(_) => "import-headings",
            ImportError::Row { .. } => "import-row",
            ImportError::Packet { .. } => "import-packet",
            ImportError::Clock => "import-clock",
            ImportError::Format(_) => "import-format",
        }
    }
}
