//! The columns that a scan reads from the kernel's frames, and the events in a batch of them.

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type, TimestampNanosecondType};
use arrow_array::{RecordBatch, StringArray};
use arrow_schema::DataType;

use crate::kernel::{KernelFrameKind, ThreadEvent};
use crate::standard::{STANDARD, Standard};

/// A column that is read, after the standard columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReadColumn {
    /// Number of the [`Group`].
    Group,
    Thread,
    /// [`KernelFrameKind`], as a number.
    Kind,
    Cpu,
    /// The first number of the event.
    A,
    /// The second number of the event.
    B,
    Name,
    /// Key of the capture.
    Capture,
}

pub(super) const READ: [(ReadColumn, &str, DataType); 8] = [
    (ReadColumn::Group, "ppt_group", DataType::Int32),
    (ReadColumn::Thread, "ppt_thread", DataType::Int32),
    (ReadColumn::Kind, "ppt_kind", DataType::Int32),
    (ReadColumn::Cpu, "ppt_cpu", DataType::Int32),
    (ReadColumn::A, "ppt_a", DataType::Int64),
    (ReadColumn::B, "ppt_b", DataType::Int64),
    (ReadColumn::Name, "ppt_name", DataType::Utf8),
    (ReadColumn::Capture, "ppt_capture", DataType::Int32),
];

/// Indices of the columns in a batch: two standard columns, followed by those of [`READ`].
pub(super) const SEQNO: usize = 0;
pub(super) const TS: usize = 1;
pub(super) const FIRST: usize = 2;

/// The columns that a scan reads, in the order of a batch.
pub(super) fn columns_read() -> Vec<usize> {
    let standard =
        |standard| STANDARD.iter().position(|column| *column == standard).unwrap_or_default();
    let own = STANDARD.len()..STANDARD.len() + READ.len();
    [standard(Standard::Seqno), standard(Standard::Ts)].into_iter().chain(own).collect()
}

/// The index of a column in a batch.
pub(super) fn at(read: ReadColumn) -> usize {
    FIRST + READ.iter().position(|entry| entry.0 == read).unwrap_or_default()
}

/// A batch of frames.
pub(super) struct KernelBatch {
    pub rows: usize,
    pub seqnos: arrow_array::Int64Array,
    pub times: arrow_array::TimestampNanosecondArray,
    pub groups: arrow_array::Int32Array,
    pub threads: arrow_array::Int32Array,
    pub kinds: arrow_array::Int32Array,
    pub cpus: arrow_array::Int32Array,
    pub a: arrow_array::Int64Array,
    pub b: arrow_array::Int64Array,
    pub names: StringArray,
    pub captures: arrow_array::Int32Array,
}

impl KernelBatch {
    pub fn new(batch: &RecordBatch) -> KernelBatch {
        let int = |read| batch.column(at(read)).as_primitive::<Int32Type>().clone();
        let long = |column: usize| batch.column(column).as_primitive::<Int64Type>().clone();
        KernelBatch {
            rows: batch.num_rows(),
            seqnos: long(SEQNO),
            times: batch.column(TS).as_primitive::<TimestampNanosecondType>().clone(),
            groups: int(ReadColumn::Group),
            threads: int(ReadColumn::Thread),
            kinds: int(ReadColumn::Kind),
            cpus: int(ReadColumn::Cpu),
            a: long(at(ReadColumn::A)),
            b: long(at(ReadColumn::B)),
            names: batch.column(at(ReadColumn::Name)).as_string::<i32>().clone(),
            captures: int(ReadColumn::Capture),
        }
    }

    pub fn seqno(&self, row: usize) -> u64 {
        self.seqnos.value(row).max(0) as u64
    }

    /// The CPU; −1: unknown.
    pub fn cpu(&self, row: usize) -> i32 {
        self.cpus.value(row)
    }

    /// The event of a frame; None if the frame is no event.
    pub fn event(&self, row: usize) -> Option<ThreadEvent> {
        let (cpu, a, b) = (self.cpu(row), self.a.value(row), self.b.value(row));
        let int = |value: i64| i32::try_from(value).unwrap_or(-1);
        Some(match KernelFrameKind::numbered(self.kinds.value(row))? {
            KernelFrameKind::Watched => ThreadEvent::Watched,
            KernelFrameKind::ThreadStart => ThreadEvent::Start { parent: int(a) },
            KernelFrameKind::ThreadEnd => ThreadEvent::End,
            KernelFrameKind::SwitchIn => ThreadEvent::In { cpu },
            KernelFrameKind::SwitchOut => ThreadEvent::Out { cpu, preempted: a != 0 },
            KernelFrameKind::Successor => {
                ThreadEvent::Successor { next: int(a), name: self.names.value(row).into() }
            }
            KernelFrameKind::Wakeup => ThreadEvent::Wake { cpu, by: int(a), waker: int(b) },
            KernelFrameKind::SyscallEnter => ThreadEvent::Enter { cpu, call: int(a) },
            KernelFrameKind::SyscallExit => ThreadEvent::Exit { cpu, call: int(a), result: b },
            KernelFrameKind::PageFault => ThreadEvent::Fault { cpu, kind: int(a), address: b },
            KernelFrameKind::Lost | KernelFrameKind::WatchEnd => return None,
        })
    }
}
