//! Describes slices by the frames of `libppt-with.so`: which lock, which file, which service.

use std::collections::HashMap;

use datafusion::arrow::datatypes::DataType;
use datafusion::logical_expr::{cast as cast_to, lit};
use datafusion::prelude::ident;
use ppt_tables::{Bounded, BoundedNumber, BoundedText};

use super::answer::{FrameOrigin, SliceDescription, SlowInterval, ThreadSlice};
use super::cells::{long, text};
use super::find;
use crate::engine::{Engine, FrameTable};
use crate::error::QueryError;

/// A slice of the library: its buffer, frame and name, the columns that describe it, and the words for them.
struct LibrarySlice {
    buffer: &'static str,
    frame: &'static str,
    slice: &'static str,
    columns: &'static [&'static str],
    words: fn(&[Option<String>]) -> SliceDescription,
}

const LIBRARY: [LibrarySlice; 3] = [
    LibrarySlice {
        buffer: "locks",
        frame: "waited",
        slice: "waited.wait",
        columns: &["kind", "lock", "lock_symbol", "from", "from_symbol"],
        words: describe_lock,
    },
    LibrarySlice {
        buffer: "files",
        frame: "io",
        slice: "io.took",
        columns: &["call", "fd"],
        words: describe_file,
    },
    LibrarySlice {
        buffer: "net",
        frame: "called",
        slice: "called.call",
        columns: &["port", "peer"],
        words: describe_call,
    },
];

/// `waiting for lock 0x558ee4bba1a0 taken from fill+0x1c (server)`.
fn describe_lock(cells: &[Option<String>]) -> SliceDescription {
    let [kind, lock, lock_symbol, from, from_symbol] = cells else {
        return SliceDescription::shared(String::new());
    };
    let hex = |cell: &Option<String>| {
        let number = cell.as_ref().and_then(|cell| cell.parse::<u64>().ok());
        number.map_or_else(String::new, |number| format!("{number:#x}"))
    };
    let lock = lock_symbol.clone().unwrap_or_else(|| hex(lock));
    let from = from_symbol.clone().unwrap_or_else(|| hex(from));
    SliceDescription::shared(match kind.as_deref() {
        Some("CONDITION") => format!("waiting for condition {lock} in {from}"),
        Some("SEMAPHORE") => format!("waiting for semaphore {lock} taken from {from}"),
        _ => format!("waiting for lock {lock} taken from {from}"),
    })
}

/// `io fsync fd 7`.
fn describe_file(cells: &[Option<String>]) -> SliceDescription {
    let [call, fd] = cells else { return SliceDescription::shared(String::new()) };
    let call = call.as_deref().unwrap_or_default().to_lowercase();
    let own = match fd.as_deref() {
        None | Some("-1") => String::new(),
        Some(fd) => format!(" fd {fd}"),
    };
    SliceDescription { shared: format!("io {call}"), own }
}

/// `called :5432`, or the path of a Unix socket.
fn describe_call(cells: &[Option<String>]) -> SliceDescription {
    let [port, peer] = cells else { return SliceDescription::shared(String::new()) };
    SliceDescription::shared(match port.as_deref() {
        None | Some("0") => format!("called {}", peer.as_deref().unwrap_or_default()),
        Some(port) => format!("called :{port}"),
    })
}

impl Engine {
    /// Describes the slices that the preloaded library recorded.
    pub(super) async fn ask_library(&self, slow: &mut [SlowInterval]) -> Result<(), QueryError> {
        for kind in &LIBRARY {
            let seqnos: Vec<i64> = slices(slow)
                .filter(|slice| slice.name == kind.slice)
                .filter_map(|slice| slice.frame.seqno)
                .collect();
            if seqnos.is_empty() {
                continue;
            }
            let tables = match self.frames(Some(kind.frame)) {
                Err(QueryError::NoFrame { .. }) => continue,
                tables => tables?,
            };
            let mut found = HashMap::new();
            for table in tables.iter().filter(|table| table.buffer.starts_with(kind.buffer)) {
                self.rows_of(kind, table, &seqnos, &mut found).await?;
            }
            for slice in slices(slow).filter(|slice| slice.name == kind.slice) {
                slice.about = found.get(&slice.frame).map(|cells| (kind.words)(cells));
            }
        }
        Ok(())
    }

    /// Adds to `found` the cells of the frames with these sequence numbers.
    async fn rows_of(
        &self,
        kind: &LibrarySlice,
        of: &FrameTable,
        seqnos: &[i64],
        found: &mut HashMap<FrameOrigin, Vec<Option<String>>>,
    ) -> Result<(), QueryError> {
        let schema = of.table.schema();
        let columns = kind.columns.iter().map(|name| schema.column_with_name(name));
        let standard =
            |what| schema.column_with_name(schema.field(find(of.table.as_ref(), what)?).name());
        let words = [BoundedText::Capture, BoundedText::Buffer, BoundedText::Segment]
            .map(|text| standard(Bounded::Word(text)));
        let numbers = [BoundedNumber::Ring, BoundedNumber::Seqno]
            .map(|number| standard(Bounded::Number(number)));
        // A program's own frame may have the same name.
        if columns.clone().chain(words).chain(numbers).any(|column| column.is_none()) {
            return Ok(());
        }
        let texts = words.into_iter().chain(columns).flatten();
        let texts = texts.map(|column| cast_to(ident(column.1.name().as_str()), DataType::Utf8));
        let numbers: Vec<_> = numbers.into_iter().flatten().collect();
        let number = |at: usize| cast_to(ident(numbers[at].1.name().as_str()), DataType::Int64);
        let select = texts.chain([number(0), number(1)]).zip(0..);
        let select: Vec<_> = select.map(|(column, n)| column.alias(format!("c{n}"))).collect();
        let first = 3 + kind.columns.len();
        let rows = self.context().table(of.name.clone()).await?;
        let is_wanted = number(1).in_list(seqnos.iter().map(|seqno| lit(*seqno)).collect(), false);
        for batch in rows.filter(is_wanted)?.select(select)?.collect().await? {
            for row in 0..batch.num_rows() {
                let word = |at| text(&batch, at, row).unwrap_or_default().to_owned();
                let name = FrameOrigin {
                    capture: word(0),
                    buffer: word(1),
                    segment: word(2),
                    ring: long(&batch, first, row),
                    seqno: long(&batch, first + 1, row),
                };
                let cells = (3..first).map(|at| text(&batch, at, row).map(str::to_owned));
                found.insert(name, cells.collect());
            }
        }
        Ok(())
    }
}

/// All slices in the answer.
fn slices(slow: &mut [SlowInterval]) -> impl Iterator<Item = &mut ThreadSlice> {
    slow.iter_mut().flat_map(|one| &mut one.parts).flat_map(|part| {
        let hops = part.hops.iter_mut().filter_map(|hop| hop.slice.as_mut());
        part.own_slice.iter_mut().chain(part.waker_slice.iter_mut()).chain(hops)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cells(all: &[Option<&str>]) -> Vec<Option<String>> {
        all.iter().map(|cell| cell.map(str::to_owned)).collect()
    }

    #[test]
    fn words_for_each() {
        let lock =
            |kind| cells(&[Some(kind), Some("4096"), None, Some("255"), Some("fill+0x1c (app)")]);
        let text_of_kind = |kind| describe_lock(&lock(kind)).to_string();
        assert_eq!(text_of_kind("MUTEX"), "waiting for lock 0x1000 taken from fill+0x1c (app)");
        assert_eq!(text_of_kind("CONDITION"), "waiting for condition 0x1000 in fill+0x1c (app)");
        assert_eq!(
            text_of_kind("SEMAPHORE"),
            "waiting for semaphore 0x1000 taken from fill+0x1c (app)"
        );
        assert_eq!(describe_file(&cells(&[Some("FSYNC"), Some("7")])).to_string(), "io fsync fd 7");
        assert_eq!(describe_file(&cells(&[Some("RENAME"), Some("-1")])).to_string(), "io rename");
        assert_eq!(describe_call(&cells(&[Some("5432"), Some("::1")])).to_string(), "called :5432");
        assert_eq!(
            describe_call(&cells(&[Some("0"), Some("/run/socket")])).to_string(),
            "called /run/socket"
        );
    }

    #[test]
    fn writes_to_several_files_share_their_words() {
        let [one, two] = ["7", "8"].map(|fd| describe_file(&cells(&[Some("WRITE"), Some(fd)])));
        assert_ne!(one, two);
        assert_eq!((one.shared.as_str(), two.shared.as_str()), ("io write", "io write"));
    }
}
