//! Why a `.sync` file is refused.

use thiserror::Error;

use super::limits::{MAX_HOSTS, MAX_HZ, MAX_NAME};

/// Why a whole file is refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SyncError {
    /// The file has another first line.
    #[error("this is not a .sync file; its first line is not \"ppt sync 1\"")]
    NotSync,
    /// A later version wrote it.
    #[error("the file has format {found}, but this program reads format 1; use a newer ppt")]
    Newer {
        /// The format that the file states.
        found: u64,
    },
    /// One of its lines is wrong.
    #[error("line {line}: {error}")]
    Line {
        /// The number of the line, from 1.
        line: usize,
        /// The fault.
        error: RecordError,
    },
}

/// The fault of a line.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RecordError {
    /// The line has more or fewer fields than its first word requires.
    #[error("\"{word}\" has {expected} fields after it, but here are {found}")]
    Fields {
        /// The first word.
        word: &'static str,
        /// The required number of fields.
        expected: usize,
        /// The actual number of fields.
        found: usize,
    },
    /// A field is not a decimal number, or the number is too large.
    #[error("field {field} is not a decimal number in range")]
    Number {
        /// The number of the field; the first word is field 0.
        field: usize,
    },
    /// A field is not a valid name.
    #[error("field {field} is not a name of 1 to {MAX_NAME} bytes of printable UTF-8")]
    Name {
        /// The number of the field.
        field: usize,
    },
    /// A field is not the name of a clock.
    #[error("field {field} is not the name of a clock")]
    Clock {
        /// The number of the field.
        field: usize,
    },
    /// A clock is read between two readings of itself.
    #[error("a clock is read beside itself")]
    SameClock,
    /// A message goes from a host to itself.
    #[error("both hosts are host {host}")]
    SameHost {
        /// The index of the host.
        host: u32,
    },
    /// A later reading is smaller than an earlier one.
    #[error("what was read after ({after}) is less than what was read before ({before})")]
    Backwards {
        /// The reading before.
        before: u64,
        /// The reading after.
        after: u64,
    },
    /// The tick rate is 0, or above the limit.
    #[error("the rate of a host's ticks is not between 1 and {MAX_HZ} Hz")]
    TickHz,
    /// No earlier line declares the host.
    #[error("host {host} is not declared by a line before this one")]
    UnknownHost {
        /// The index of the host.
        host: u32,
    },
    /// Two lines declare a host with the same index.
    #[error("host {host} is declared twice")]
    Redeclared {
        /// The index of the host.
        host: u32,
    },
    /// More hosts than the limit.
    #[error("there are more than {MAX_HOSTS} hosts")]
    TooManyHosts,
}
