//! Follows threads through their frames, one after the other, and makes the rows of a table.

use std::sync::Arc;

use arrow_array::{Array, RecordBatch, RecordBatchOptions};
use arrow_schema::SchemaRef;

use super::columns::{KernelColumn, KernelTable, ROWS};
use super::frames::{Group, KernelFrames};
use super::read::KernelBatch;
use crate::builder::Builder;
use crate::error::TableError;
use crate::kernel::{Call, Calls, Knows, Records, Stretch, ThreadEvent, ThreadTrack};
use crate::set::CaptureSet;
use crate::table::Runner;

/// A row on its way out.
enum KernelRow {
    State(Stretch),
    Call(Call),
    Fault { ts: i64, capture: i32, kind: i32, address: i64, cpu: i32 },
}

/// What follows a thread.
enum Follower {
    States(Box<ThreadTrack>),
    Calls(Calls),
    Faults(Vec<KernelRow>),
}

impl Follower {
    fn new(what: KernelTable, knows: Knows) -> Follower {
        match what {
            KernelTable::States => Follower::States(Box::new(ThreadTrack::new(knows))),
            KernelTable::Calls => Follower::Calls(Calls::default()),
            KernelTable::Faults => Follower::Faults(Vec::new()),
        }
    }

    /// The CPU that the thread has all the time until its next event, if it has one.
    fn cpu(&self) -> Option<i32> {
        match self {
            Follower::States(thread) => thread.cpu(),
            _ => None,
        }
    }

    fn add_event(&mut self, at: i64, capture: i32, event: &ThreadEvent) {
        match (self, event) {
            (Follower::States(thread), _) => thread.add_event(at, capture, event),
            (Follower::Calls(calls), _) => calls.add_event(at, capture, event),
            (Follower::Faults(rows), &ThreadEvent::Fault { cpu, kind, address }) => {
                rows.push(KernelRow::Fault { ts: at, capture, kind, address, cpu });
            }
            (Follower::Faults(_), _) => {}
        }
    }

    fn lose(&mut self, at: i64, capture: i32) {
        match self {
            Follower::States(thread) => thread.lose(at, capture),
            Follower::Calls(calls) => calls.lose(),
            Follower::Faults(_) => {}
        }
    }

    fn finish(&mut self, at: i64) {
        match self {
            Follower::States(thread) => thread.finish(at),
            Follower::Calls(calls) => calls.lose(),
            Follower::Faults(_) => {}
        }
    }

    fn done(&mut self, to: &mut Vec<KernelRow>) {
        match self {
            Follower::States(thread) => to.extend(thread.done().map(KernelRow::State)),
            Follower::Calls(calls) => to.extend(calls.done().map(KernelRow::Call)),
            Follower::Faults(rows) => to.append(rows),
        }
    }
}

/// Follows threads, one after the other.
pub(super) struct ThreadWalk {
    set: Arc<CaptureSet>,
    frames: Arc<KernelFrames>,
    records: Option<Arc<Vec<Records>>>,
    what: KernelTable,
    /// Group and thread that are followed, and the capture of its latest frame.
    thread: Option<(i32, i32, i32)>,
    follower: Follower,
    /// Number and time of its latest frame.
    latest: (u64, i64),
    columns: Vec<KernelColumn>,
    schema: SchemaRef,
    /// Each with its group and thread.
    rows: Vec<(i32, i32, KernelRow)>,
}

impl Runner for ThreadWalk {
    fn push(&mut self, batch: RecordBatch) -> Result<Vec<RecordBatch>, TableError> {
        if batch.num_rows() == 0 {
            return Ok(Vec::new());
        }
        let records = self.known()?;
        let batch = KernelBatch::new(&batch);
        let mut done = Vec::new();
        for row in (0..batch.rows).filter(|&row| batch.times.is_valid(row)) {
            let (group, thread) = (batch.groups.value(row), batch.threads.value(row));
            let capture = batch.captures.value(row);
            if self.thread.is_none_or(|entry| (entry.0, entry.1) != (group, thread)) {
                self.end(&records);
                let knows =
                    records.get(group as usize).map(|record| record.knows).unwrap_or_default();
                self.follower = Follower::new(self.what, knows);
                self.latest = (0, i64::MIN);
            } else if batch.seqno(row) <= self.latest.0 {
                // Two captures of one session have the same frame.
                continue;
            }
            self.thread = Some((group, thread, capture));
            // Clocks of two files of one session may differ by a few ns.
            let here = (batch.seqno(row), batch.times.value(row).max(self.latest.1));
            let Some(event) = batch.event(row) else { continue };
            self.lose(&records, group, here, capture);
            self.latest = here;
            self.follower.add_event(here.1, capture, &event);
            self.collect();
            if self.rows.len() >= ROWS {
                done.push(self.batch()?);
            }
        }
        Ok(done)
    }

    fn finish(&mut self) -> Result<Vec<RecordBatch>, TableError> {
        if self.thread.is_some() {
            let records = self.known()?;
            self.end(&records);
        }
        if self.rows.is_empty() { Ok(Vec::new()) } else { Ok(vec![self.batch()?]) }
    }
}

impl ThreadWalk {
    pub fn new(
        what: KernelTable,
        set: Arc<CaptureSet>,
        frames: Arc<KernelFrames>,
        columns: Vec<KernelColumn>,
        schema: SchemaRef,
    ) -> ThreadWalk {
        ThreadWalk {
            set,
            frames,
            records: None,
            what,
            thread: None,
            follower: Follower::new(what, Knows::default()),
            latest: (0, i64::MIN),
            columns,
            schema,
            rows: Vec::new(),
        }
    }

    fn known(&mut self) -> Result<Arc<Vec<Records>>, TableError> {
        if let Some(known) = &self.records {
            return Ok(known.clone());
        }
        Ok(self.records.insert(self.frames.records(&self.set)?).clone())
    }

    /// What is missing before `here`.
    fn lose(&mut self, records: &[Records], group: i32, here: (u64, i64), capture: i32) {
        let Some(records) = records.get(group as usize).filter(|_| self.latest.0 > 0) else {
            return;
        };
        if let Some(since) = records.missing(self.latest, here, self.follower.cpu()) {
            self.follower.lose(since, capture);
        }
    }

    /// The thread has no more frames.
    fn end(&mut self, records: &[Records]) {
        let Some((group, _, capture)) = self.thread else { return };
        let end =
            records.get(group as usize).map_or(i64::MIN, |record| record.end).max(self.latest.1);
        self.lose(records, group, (u64::MAX, end), capture);
        self.follower.finish(end);
        self.collect();
        self.thread = None;
    }

    fn collect(&mut self) {
        let Some((group, thread, _)) = self.thread else { return };
        let mut rows = Vec::new();
        self.follower.done(&mut rows);
        self.rows.extend(rows.into_iter().map(|row| (group, thread, row)));
    }

    fn batch(&mut self) -> Result<RecordBatch, TableError> {
        let rows = std::mem::take(&mut self.rows);
        let names = self.set.names();
        let column = |column: &KernelColumn| {
            let words = match column {
                KernelColumn::Capture => &names.captures,
                KernelColumn::Buffer => &names.buffers,
                KernelColumn::Host => &names.hosts,
                _ => &self.frames.words,
            };
            let mut builder = Builder::new(&column.data_type(), Some(words));
            for (group, thread, row) in &rows {
                let group = self.frames.groups.get(*group as usize);
                cell(*column, (group, *thread, row), &mut builder);
            }
            builder.finish()
        };
        let columns = self.columns.iter().map(column).collect::<Result<Vec<_>, _>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
        Ok(RecordBatch::try_new_with_options(self.schema.clone(), columns, &options)?)
    }
}

/// Appends a cell.
fn cell(
    column: KernelColumn,
    (group, thread, row): (Option<&Group>, i32, &KernelRow),
    to: &mut Builder,
) {
    let cpu = |cpu: i32| Some(cpu).filter(|&number| number >= 0);
    let (ts, capture) = match row {
        KernelRow::State(stretch) => (stretch.ts, stretch.capture),
        KernelRow::Call(call) => (call.ts, call.capture),
        KernelRow::Fault { ts, capture, .. } => (*ts, *capture),
    };
    match (column, row) {
        (KernelColumn::Capture, _) => to.repeat(Some(capture), 1),
        (KernelColumn::Buffer, _) => to.repeat(group.map(|group| group.buffer), 1),
        (KernelColumn::Host, _) => to.repeat(group.map(|group| group.host), 1),
        (KernelColumn::Pid, _) => to.repeat(group.and_then(|group| group.pid), 1),
        (KernelColumn::Tid, _) => to.repeat(Some(thread), 1),
        (KernelColumn::Ts, _) => to.repeat(Some(ts), 1),
        (KernelColumn::Dur, KernelRow::State(stretch)) => {
            to.repeat(stretch.end.checked_sub(stretch.ts), 1);
        }
        (KernelColumn::State, KernelRow::State(stretch)) => to.repeat(Some(stretch.state.key()), 1),
        (KernelColumn::Cpu, KernelRow::State(stretch)) => to.repeat(stretch.cpu.and_then(cpu), 1),
        (KernelColumn::BlockedIn, KernelRow::State(stretch)) => to.repeat(stretch.blocked_in, 1),
        (KernelColumn::WokenBy, KernelRow::State(stretch)) => to.repeat(stretch.woken_by, 1),
        (KernelColumn::Waker, KernelRow::State(stretch)) => to.repeat(stretch.waker, 1),
        (KernelColumn::Successor, KernelRow::State(stretch)) => to.repeat(stretch.successor, 1),
        (KernelColumn::SuccessorName, KernelRow::State(stretch)) => {
            to.text(
                stretch.successor_name.as_ref().map(|successor_name| successor_name.as_bytes()),
            );
        }
        (KernelColumn::Dur, KernelRow::Call(call)) => to.repeat(call.dur, 1),
        (KernelColumn::Name, KernelRow::Call(call)) => to.repeat(Some(call.name), 1),
        (KernelColumn::Result, KernelRow::Call(call)) => to.repeat(call.result, 1),
        (KernelColumn::Cpu, KernelRow::Call(call)) => to.repeat(cpu(call.cpu), 1),
        (KernelColumn::Kind, KernelRow::Fault { kind, .. }) => to.repeat(Some(*kind), 1),
        (KernelColumn::Address, KernelRow::Fault { address, .. }) => {
            to.repeat(Some(*address as u64), 1);
        }
        (KernelColumn::Cpu, KernelRow::Fault { cpu: n, .. }) => to.repeat(cpu(*n), 1),
        _ => to.nulls(1),
    }
}
