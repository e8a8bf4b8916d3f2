//! `thread_states`, `syscalls` and `faults`: what the kernel did with the threads of programs.
//!
//! - `columns` has the tables, `fields` where fields are in frames; `frames` finds the frames, `losses` what is missing.
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
use crate::bounds::{Bounded, BoundedNumber, BoundedText as Bounding};
use crate::error::{SetError, TableError};
use crate::of_chunks::ChunkScan;
use crate::set::CaptureSet;
use crate::table::{CaptureTable, Pass, Planned, Scan, Start, TableRequest};

pub(super) fn make(set: &Arc<CaptureSet>) -> Result<Vec<NamedTable>, SetError> {
    let frames = Arc::new(KernelFrames::new(set));
    let table = |(what, name): (KernelTable, &str)| {
        let fields = what.columns().into_iter().map(|column| {
            let unit = (column == KernelColumn::Dur).then(|| ("unit".to_owned(), "ns".to_owned()));
            let field = Field::new(column.name(), column.data_type(), true);
            field.with_metadata(unit.into_iter().collect())
        });
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let (set, frames) = (set.clone(), frames.clone());
        NamedTable::fixed(name, KernelScan { what, set, frames, schema })
    };
    let all = [
        (KernelTable::States, "thread_states"),
        (KernelTable::Calls, "syscalls"),
        (KernelTable::Faults, "faults"),
    ];
    Ok(all.map(table).into())
}

#[derive(Debug)]
struct KernelScan {
    what: KernelTable,
    set: Arc<CaptureSet>,
    frames: Arc<KernelFrames>,
    schema: SchemaRef,
}

impl CaptureTable for KernelScan {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn bounded(&self, column: usize) -> Option<Bounded> {
        match self.what.columns().get(column)? {
            KernelColumn::Host => Some(Bounded::Word(Bounding::Host)),
            KernelColumn::Pid => Some(Bounded::Number(BoundedNumber::Pid)),
            KernelColumn::Tid => Some(Bounded::Number(BoundedNumber::Tid)),
            _ => None,
        }
    }

    fn plan(&self, request: &TableRequest<'_>) -> Result<Planned, TableError> {
        // What a thread does depends on what it did before: whole threads can be left out.
        let bounds = request.bounds.only(&[BoundedNumber::Pid], &[Bounding::Host]);
        let threads = request.bounds.range(BoundedNumber::Tid);
        let frames = self.frames.clone();
        let chosen =
            Arc::new(Chosen { frames: frames.clone(), kinds: self.what.frame_kinds(), threads });
        let read = columns_read();
        let inner = TableRequest { columns: &read, bounds: &bounds, limit: None, ..*request };
        let scan: Arc<dyn Scan> = Arc::new(ChunkScan::new(&self.set, &chosen, &inner)?);
        let schema = Arc::new(self.schema.project(request.columns)?);
        let all = self.what.columns();
        let columns: Vec<KernelColumn> =
            request.columns.iter().map(|&column| all[column]).collect();
        let (what, set, out) = (self.what, self.set.clone(), schema.clone());
        let start = Start(Arc::new(move || {
            let (set, frames) = (set.clone(), frames.clone());
            Box::new(ThreadWalk::new(what, set, frames, columns.clone(), out.clone()))
        }));
        let together = vec![at(ReadColumn::Group), at(ReadColumn::Thread)];
        let order = together.iter().copied().chain([SEQNO]).map(|column| (column, false)).collect();
        let told = "threads: what the kernel did with each".to_owned();
        let pass = Pass { schema, together, order, start, told };
        Ok(Planned { scan, pass: Some(pass), beside: Vec::new() })
    }
}
