//! A pass that follows one thread after the other through its frames, and makes the rows of a table.

use std::sync::Arc;

use arrow_array::{Array, RecordBatch, RecordBatchOptions};
use arrow_schema::SchemaRef;

use super::columns::{KernelColumn, KernelTable};
use super::frames::{Group, KernelFrames};
use super::read::KernelBatch;
use crate::builder::Builder;
use crate::error::TableError;
use crate::kernel::{
    Call, Calls, FramePosition, Recorded, Records, StateStretch, ThreadEvent, ThreadTrack,
};
use crate::set::CaptureSet;
use crate::table::{ROWS_PER_BATCH, Runner};

/// A row of a table.
enum KernelRow {
    State(StateStretch),
    Call(Call),
    Fault { ts: i64, capture: i32, kind: i32, address: i64, cpu: i32 },
}

/// Follows a thread.
enum Follower {
    States(Box<ThreadTrack>),
    Calls(Calls),
    Faults(Vec<KernelRow>),
}

impl Follower {
    fn new(table: KernelTable, recorded: Recorded) -> Follower {
        match table {
            KernelTable::States => Follower::States(Box::new(ThreadTrack::new(recorded))),
            KernelTable::Calls => Follower::Calls(Calls::default()),
            KernelTable::Faults => Follower::Faults(Vec::new()),
        }
    }

    /// The CPU on which the thread runs until its next event, if it runs.
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

    fn take_done(&mut self, to: &mut Vec<KernelRow>) {
        match self {
            Follower::States(thread) => to.extend(thread.take_done().map(KernelRow::State)),
            Follower::Calls(calls) => to.extend(calls.take_done().map(KernelRow::Call)),
            Follower::Faults(rows) => to.append(rows),
        }
    }
}

/// Follows one thread after the other.
pub(super) struct ThreadWalk {
    set: Arc<CaptureSet>,
    frames: Arc<KernelFrames>,
    records: Option<Arc<Vec<Records>>>,
    table: KernelTable,
    /// The current thread.
    thread: Option<WalkedThread>,
    follower: Follower,
    /// The latest frame of the current thread.
    latest: FramePosition,
    columns: Vec<KernelColumn>,
    schema: SchemaRef,
    rows: Vec<RowOfThread>,
}

/// A thread, and the capture of its latest frame.
#[derive(Clone, Copy)]
struct WalkedThread {
    group: i32,
    tid: i32,
    capture: i32,
}

/// A row, and its thread.
struct RowOfThread {
    group: i32,
    tid: i32,
    row: KernelRow,
}

impl Runner for ThreadWalk {
    fn push(&mut self, batch: RecordBatch) -> Result<Vec<RecordBatch>, TableError> {
        if batch.num_rows() == 0 {
            return Ok(Vec::new());
        }
        let records = self.records()?;
        let batch = KernelBatch::new(&batch);
        let mut done = Vec::new();
        for row in (0..batch.rows).filter(|&row| batch.times.is_valid(row)) {
            let (group, tid) = (batch.groups.value(row), batch.threads.value(row));
            let capture = batch.captures.value(row);
            if self.thread.is_none_or(|thread| (thread.group, thread.tid) != (group, tid)) {
                self.end(&records);
                let recorded =
                    records.get(group as usize).map(|records| records.recorded).unwrap_or_default();
                self.follower = Follower::new(self.table, recorded);
                self.latest = FramePosition::BEGIN;
            } else if batch.seqno(row) <= self.latest.seqno {
                // Two captures of one session have the same frame.
                continue;
            }
            self.thread = Some(WalkedThread { group, tid, capture });
            // Clocks of two files of one session may differ by a few ns.
            let ts = batch.times.value(row).max(self.latest.ts);
            let here = FramePosition { seqno: batch.seqno(row), ts };
            let Some(event) = batch.event(row) else { continue };
            self.lose(&records, group, here, capture);
            self.latest = here;
            self.follower.add_event(ts, capture, &event);
            self.collect();
            if self.rows.len() >= ROWS_PER_BATCH {
                done.push(self.batch()?);
            }
        }
        Ok(done)
    }

    fn finish(&mut self) -> Result<Vec<RecordBatch>, TableError> {
        if self.thread.is_some() {
            let records = self.records()?;
            self.end(&records);
        }
        if self.rows.is_empty() { Ok(Vec::new()) } else { Ok(vec![self.batch()?]) }
    }
}

impl ThreadWalk {
    pub fn new(
        table: KernelTable,
        set: Arc<CaptureSet>,
        frames: Arc<KernelFrames>,
        columns: Vec<KernelColumn>,
        schema: SchemaRef,
    ) -> ThreadWalk {
        ThreadWalk {
            set,
            frames,
            records: None,
            table,
            thread: None,
            follower: Follower::new(table, Recorded::default()),
            latest: FramePosition::BEGIN,
            columns,
            schema,
            rows: Vec::new(),
        }
    }

    /// By group.
    fn records(&mut self) -> Result<Arc<Vec<Records>>, TableError> {
        if let Some(records) = &self.records {
            return Ok(records.clone());
        }
        Ok(self.records.insert(self.frames.records(&self.set)?).clone())
    }

    /// Reports a loss to the follower if records are missing before `here`.
    fn lose(&mut self, records: &[Records], group: i32, here: FramePosition, capture: i32) {
        let Some(records) = records.get(group as usize).filter(|_| self.latest.seqno > 0) else {
            return;
        };
        if let Some(since) = records.missing(self.latest, here, self.follower.cpu()) {
            self.follower.lose(since, capture);
        }
    }

    /// Ends the current thread.
    fn end(&mut self, records: &[Records]) {
        let Some(WalkedThread { group, capture, .. }) = self.thread else { return };
        let end = records.get(group as usize).map_or(i64::MIN, |records| records.end);
        let end = end.max(self.latest.ts);
        self.lose(records, group, FramePosition { seqno: u64::MAX, ts: end }, capture);
        self.follower.finish(end);
        self.collect();
        self.thread = None;
    }

    fn collect(&mut self) {
        let Some(WalkedThread { group, tid, .. }) = self.thread else { return };
        let mut rows = Vec::new();
        self.follower.take_done(&mut rows);
        self.rows.extend(rows.into_iter().map(|row| RowOfThread { group, tid, row }));
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
            for row in &rows {
                let group = self.frames.groups.get(row.group as usize);
                cell(*column, group, row, &mut builder);
            }
            builder.finish()
        };
        let columns = self.columns.iter().map(column).collect::<Result<Vec<_>, _>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
        Ok(RecordBatch::try_new_with_options(self.schema.clone(), columns, &options)?)
    }
}

/// Appends a cell.
fn cell(column: KernelColumn, group: Option<&Group>, row: &RowOfThread, to: &mut Builder) {
    let RowOfThread { tid, row, .. } = row;
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
        (KernelColumn::Tid, _) => to.repeat(Some(*tid), 1),
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
            to.text(stretch.successor_name.as_ref().map(|name| name.as_bytes()));
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
