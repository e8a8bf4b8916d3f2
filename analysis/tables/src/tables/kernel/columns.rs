//! The tables, their columns, and the kinds of frames that each needs.

use arrow_schema::DataType;

use crate::builder::{timestamp, word_type};
use crate::kernel::KernelFrameKind;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KernelTable {
    States,
    Calls,
    Faults,
}

/// A column of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub(super) enum KernelColumn {
    Capture,
    Buffer,
    Host,
    Pid,
    Tid,
    Ts,
    Dur,
    State,
    Name,
    Kind,
    Cpu,
    BlockedIn,
    WokenBy,
    Waker,
    Successor,
    SuccessorName,
    Result,
    Address,
}

impl KernelColumn {
    pub fn name(self) -> &'static str {
        self.into()
    }

    pub fn data_type(self) -> DataType {
        match self {
            KernelColumn::Pid
            | KernelColumn::Tid
            | KernelColumn::Cpu
            | KernelColumn::Waker
            | KernelColumn::Successor => DataType::Int32,
            KernelColumn::Dur | KernelColumn::Result => DataType::Int64,
            KernelColumn::Address => DataType::UInt64,
            KernelColumn::Ts => timestamp(),
            KernelColumn::SuccessorName => DataType::Utf8,
            _ => word_type(),
        }
    }
}

/// The columns with which each table begins.
pub(super) const OWNER: [KernelColumn; 6] = [
    KernelColumn::Capture,
    KernelColumn::Buffer,
    KernelColumn::Host,
    KernelColumn::Pid,
    KernelColumn::Tid,
    KernelColumn::Ts,
];

impl KernelTable {
    pub fn columns(self) -> Vec<KernelColumn> {
        let own: &[KernelColumn] = match self {
            KernelTable::States => &[
                KernelColumn::Dur,
                KernelColumn::State,
                KernelColumn::Cpu,
                KernelColumn::BlockedIn,
                KernelColumn::WokenBy,
                KernelColumn::Waker,
                KernelColumn::Successor,
                KernelColumn::SuccessorName,
            ],
            KernelTable::Calls => {
                &[KernelColumn::Dur, KernelColumn::Name, KernelColumn::Result, KernelColumn::Cpu]
            }
            KernelTable::Faults => &[KernelColumn::Kind, KernelColumn::Address, KernelColumn::Cpu],
        };
        OWNER.iter().chain(own).copied().collect()
    }

    /// The kinds of frames that it needs.
    pub fn frame_kinds(self) -> &'static [KernelFrameKind] {
        match self {
            KernelTable::States => &[
                KernelFrameKind::Watched,
                KernelFrameKind::ThreadStart,
                KernelFrameKind::ThreadEnd,
                KernelFrameKind::SwitchIn,
                KernelFrameKind::SwitchOut,
                KernelFrameKind::Successor,
                KernelFrameKind::Wakeup,
                KernelFrameKind::SyscallEnter,
                KernelFrameKind::SyscallExit,
                KernelFrameKind::PageFault,
            ],
            KernelTable::Calls => &[
                KernelFrameKind::ThreadStart,
                KernelFrameKind::ThreadEnd,
                KernelFrameKind::SyscallEnter,
                KernelFrameKind::SyscallExit,
            ],
            KernelTable::Faults => &[KernelFrameKind::PageFault],
        }
    }
}
