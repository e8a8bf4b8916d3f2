//! `thread_states`, `syscalls` and `faults`: the kernel's events of threads.
//!
//! - `columns` defines the tables, `fields` locates fields in frames, `frames` finds the kernel's frames, and
//!   `losses` the missing ones.
//! - `chosen` and `read` read frames; `walk` follows each thread and makes rows; `wakes` makes edges.

mod chosen;
mod columns;
mod fields;
mod frames;
mod losses;
mod read;
pub(super) mod wakes;
mod walk;

use std::sync::Arc;

use arrow_schema::{Field, Schema, SchemaRef};

use self::chosen::Chosen;
use self::columns::{KernelColumn, KernelTable};
use self::frames::KernelFrames;
use self::read::{ReadColumn, SEQNO, at, columns_read};
use self::walk::ThreadWalk;
use super::named::NamedTable;
use crate::bounds::{Bounded, BoundedNumber, BoundedText};
use crate::chunk_scan::ChunkScan;
use crate::error::{SetError, TableError};
use crate::set::CaptureSet;
use crate::table::{CaptureTable, Pass, Planned, Scan, Start, TableRequest};

pub(super) fn make(set: &Arc<CaptureSet>) -> Result<Vec<NamedTable>, SetError> {
    let frames = Arc::new(KernelFrames::new(set));
    let named = |(table, name): (KernelTable, &str)| {
        let fields = table.columns().into_iter().map(|column| {
            let unit = (column == KernelColumn::Dur).then(|| ("unit".to_owned(), "ns".to_owned()));
            let field = Field::new(column.name(), column.data_type(), true);
            field.with_metadata(unit.into_iter().collect())
        });
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let (set, frames) = (set.clone(), frames.clone());
        NamedTable::fixed(name, KernelCaptureTable { table, set, frames, schema })
    };
    let all = [
        (KernelTable::States, "thread_states"),
        (KernelTable::Calls, "syscalls"),
        (KernelTable::Faults, "faults"),
    ];
    Ok(all.map(named).into())
}

/// One of the tables.
#[derive(Debug)]
struct KernelCaptureTable {
    table: KernelTable,
    set: Arc<CaptureSet>,
    frames: Arc<KernelFrames>,
    schema: SchemaRef,
}

impl CaptureTable for KernelCaptureTable {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn bounded(&self, column: usize) -> Option<Bounded> {
        match self.table.columns().get(column)? {
            KernelColumn::Host => Some(Bounded::Word(BoundedText::Host)),
            KernelColumn::Pid => Some(Bounded::Number(BoundedNumber::Pid)),
            KernelColumn::Tid => Some(Bounded::Number(BoundedNumber::Tid)),
            _ => None,
        }
    }

    fn plan(&self, request: &TableRequest<'_>) -> Result<Planned, TableError> {
        // A row depends on earlier events of its thread, so only whole threads can be skipped.
        let bounds = request.bounds.only(&[BoundedNumber::Pid], &[BoundedText::Host]);
        let threads = request.bounds.range(BoundedNumber::Tid);
        let frames = self.frames.clone();
        let chosen =
            Arc::new(Chosen { frames: frames.clone(), kinds: self.table.frame_kinds(), threads });
        let read = columns_read();
        let inner = TableRequest { columns: &read, bounds: &bounds, limit: None, ..*request };
        let scan: Arc<dyn Scan> = Arc::new(ChunkScan::new(&self.set, &chosen, &inner)?);
        let schema = Arc::new(self.schema.project(request.columns)?);
        let all = self.table.columns();
        let columns: Vec<KernelColumn> =
            request.columns.iter().map(|&column| all[column]).collect();
        let (table, set, out) = (self.table, self.set.clone(), schema.clone());
        let start = Start(Arc::new(move || {
            let (set, frames) = (set.clone(), frames.clone());
            Box::new(ThreadWalk::new(table, set, frames, columns.clone(), out.clone()))
        }));
        let group_by = vec![at(ReadColumn::Group), at(ReadColumn::Thread)];
        let order = group_by.iter().copied().chain([SEQNO]).map(|column| (column, false)).collect();
        let explain_text = "threads: what the kernel did with each".to_owned();
        let pass = Pass { schema, group_by, order, start, explain_text };
        Ok(Planned { scan, pass: Some(pass), more: Vec::new() })
    }
}
