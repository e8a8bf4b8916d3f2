//! The ids of rows.

use std::fmt;
use std::str::FromStr;

use crate::error::ViewError;

/// Identifies a row. Its text (`depth.3.0`) is the same each time the same captures are opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RowId {
    /// A process. Its row has no cells.
    Process(u32),
    /// A thread. Its cells count frames, from the heads of chunks.
    Thread(u32),
    /// The slices of a thread with one depth.
    Depth {
        /// The number of the thread.
        thread: u32,
        /// The number of slices that contain each of them.
        depth: u32,
    },
    /// The frames of one kind without an interval, of a thread.
    Moments {
        /// The number of the thread.
        thread: u32,
        /// The index of the kind in [`About::names`](crate::About::names).
        name: u32,
    },
    /// A counter of a process.
    Counter(u32),
}

impl fmt::Display for RowId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RowId::Process(number) => write!(out, "process.{number}"),
            RowId::Thread(number) => write!(out, "thread.{number}"),
            RowId::Depth { thread, depth } => write!(out, "depth.{thread}.{depth}"),
            RowId::Moments { thread, name } => write!(out, "moments.{thread}.{name}"),
            RowId::Counter(number) => write!(out, "counter.{number}"),
        }
    }
}

impl FromStr for RowId {
    type Err = ViewError;

    fn from_str(text: &str) -> Result<RowId, ViewError> {
        let mut words = text.split('.');
        let kind = words.next().unwrap_or_default();
        let mut number = || words.next()?.parse::<u32>().ok();
        let row = match kind {
            "process" => number().map(RowId::Process),
            "thread" => number().map(RowId::Thread),
            "depth" => number().zip(number()).map(|(thread, depth)| RowId::Depth { thread, depth }),
            "moments" => {
                number().zip(number()).map(|(thread, name)| RowId::Moments { thread, name })
            }
            "counter" => number().map(RowId::Counter),
            _ => None,
        };
        // A row has only one text.
        row.filter(|row| row.to_string() == text)
            .ok_or_else(|| ViewError::NoSuchRow(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_found_by_its_text() {
        let rows = [
            RowId::Process(0),
            RowId::Thread(7),
            RowId::Depth { thread: 7, depth: 2 },
            RowId::Moments { thread: 1, name: u32::MAX },
            RowId::Counter(3),
        ];
        for row in rows {
            assert_eq!(row.to_string().parse::<RowId>().unwrap(), row);
        }
        for bad in ["", "depth.1", "depth.1.2.3", "thread.+1", "thread.01", "thread.4294967296"] {
            assert!(bad.parse::<RowId>().is_err(), "{bad}");
        }
    }
}
