//! The bytes of a row of a window.
//!
//! A row has the length of the head (`u32`), the length of the columns (`u32`), the head (JSON, with spaces up
//! to a multiple of 8), and the columns. Each column begins at a multiple of 8, and is little-endian:
//!
//! | part | columns |
//! |---|---|
//! | cells | `from to busy longest count`: f64; `chunk frame bestName name`: u32; `share flags lane`: u16 |
//! | counters | `from to first min max last count`: f64 |
//! | losses | `from to count`: f64; `cause`: u32 |
//!
//! `from` and `to` are nanoseconds after the `origin` in the head, exact up to 104 days. Names are indexes of
//! `names` in `/v1/about`, causes are indexes of its `causes`. The flags are those of [`ppt_view::Cell`].

use ppt_view::{Cause, Cell, RowId, WindowRow};
use serde_json::json;

/// The names of causes of losses, indexed by the numbers in rows.
pub(crate) fn causes() -> Vec<&'static str> {
    Cause::ALL.iter().map(|cause| cause.name()).collect()
}

/// The bytes of a row with cells from a table.
pub(crate) fn encode_cells(id: &str, cells: Vec<Cell>, origin: i64) -> Vec<u8> {
    let row = WindowRow {
        row: RowId::Process(0),
        cells,
        counters: Vec::new(),
        losses: Vec::new(),
        is_built: true,
        has_more: false,
    };
    encode(id, &row, origin)
}

/// The bytes of a row with this id. Times are relative to `origin`.
pub(crate) fn encode(id: &str, row: &WindowRow, origin: i64) -> Vec<u8> {
    let mut columns = Columns { bytes: Vec::new(), origin };
    let cells = &row.cells;
    columns.times(cells.iter().map(|cell| cell.from));
    columns.times(cells.iter().map(|cell| cell.to));
    columns.numbers(cells.iter().map(|cell| cell.busy as f64));
    columns.numbers(cells.iter().map(|cell| cell.longest as f64));
    columns.numbers(cells.iter().map(|cell| cell.count as f64));
    columns.push_words(cells.iter().map(|cell| cell.best.chunk));
    columns.push_words(cells.iter().map(|cell| cell.best.frame));
    columns.push_words(cells.iter().map(|cell| cell.best_name));
    columns.push_words(cells.iter().map(|cell| cell.name));
    columns.halves(cells.iter().map(|cell| cell.share));
    columns.halves(cells.iter().map(|cell| cell.flags));
    columns.halves(cells.iter().map(|cell| cell.lane));
    let counters = &row.counters;
    columns.times(counters.iter().map(|cell| cell.from));
    columns.times(counters.iter().map(|cell| cell.to));
    columns.numbers(counters.iter().map(|cell| cell.first as f64));
    columns.numbers(counters.iter().map(|cell| cell.min as f64));
    columns.numbers(counters.iter().map(|cell| cell.max as f64));
    columns.numbers(counters.iter().map(|cell| cell.last as f64));
    columns.numbers(counters.iter().map(|cell| cell.count as f64));
    let losses = &row.losses;
    columns.times(losses.iter().map(|loss| loss.from));
    columns.times(losses.iter().map(|loss| loss.to));
    columns.numbers(losses.iter().map(|loss| loss.count as f64));
    let number = |cause: Cause| Cause::ALL.iter().position(|&other| other == cause);
    columns.push_words(losses.iter().map(|loss| number(loss.cause).unwrap_or_default() as u32));
    let head = json!({
        "row": id,
        "origin": origin.to_string(),
        "cells": cells.len(),
        "counters": counters.len(),
        "losses": losses.len(),
        "built": row.is_built,
        "more": row.has_more,
    });
    message(&head, &columns.bytes)
}

/// The bytes of a row with an error instead of cells.
pub(crate) fn encode_failure(row: &str, error: &str) -> Vec<u8> {
    message(&json!({ "row": row, "error": error }), &[])
}

fn message(head: &serde_json::Value, columns: &[u8]) -> Vec<u8> {
    let mut head = head.to_string().into_bytes();
    head.resize(head.len().next_multiple_of(8), b' ');
    let mut bytes = Vec::with_capacity(8 + head.len() + columns.len());
    bytes.extend((head.len() as u32).to_le_bytes());
    bytes.extend((columns.len() as u32).to_le_bytes());
    bytes.extend(head);
    bytes.extend(columns);
    bytes
}

struct Columns {
    bytes: Vec<u8>,
    origin: i64,
}

impl Columns {
    fn times(&mut self, times: impl Iterator<Item = i64>) {
        let origin = i128::from(self.origin);
        self.numbers(times.map(|time| (i128::from(time) - origin) as f64));
    }

    fn numbers(&mut self, numbers: impl Iterator<Item = f64>) {
        numbers.for_each(|number| self.bytes.extend(number.to_le_bytes()));
    }

    fn push_words(&mut self, words: impl Iterator<Item = u32>) {
        words.for_each(|word| self.bytes.extend(word.to_le_bytes()));
        self.align();
    }

    fn halves(&mut self, halves: impl Iterator<Item = u16>) {
        halves.for_each(|half| self.bytes.extend(half.to_le_bytes()));
        self.align();
    }

    fn align(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(8), 0);
    }
}
