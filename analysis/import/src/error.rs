//! Why an import failed.

use std::io;

/// Why an import failed. [`ImportError::code`] names each in `docs/troubleshooting.md`.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "each says what it is")]
pub enum ImportError {
    /// The input could not be read.
    #[error("cannot read the input: {0}")]
    Read(#[source] io::Error),
    /// The capture could not be written.
    #[error("cannot write the capture: {0}")]
    Write(#[source] io::Error),
    /// What was asked for is not in the frame file.
    #[error("{0}")]
    Frames(String),
    /// The headings and the columns differ.
    #[error("{0}")]
    Headings(String),
    /// A row of a table that cannot be a frame.
    #[error("line {line}{}: {what}", column.as_ref().map_or(String::new(), |it| format!(", column {it}")))]
    Row { line: u64, column: Option<String>, what: String },
    /// A packet that cannot be a frame.
    #[error("packet {number}: {what}")]
    Packet { number: u64, what: String },
    /// A capture that was named for its clocks.
    #[error("this capture does not say which boot it is of: name one that ppt made on that host")]
    Clock,
    /// Bytes that are not a file of this kind.
    #[error("{0}")]
    Format(String),
}

impl ImportError {
    /// All codes that are of imports alone.
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
