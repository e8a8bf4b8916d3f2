//! The kernel's events of a thread.

use std::sync::Arc;

use strum::IntoEnumIterator;

/// Kinds of frames, named as in the buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::EnumIter, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub(crate) enum KernelFrameKind {
    Watched,
    ThreadStart,
    ThreadEnd,
    SwitchIn,
    SwitchOut,
    Successor,
    Wakeup,
    SyscallEnter,
    SyscallExit,
    PageFault,
    Lost,
    WatchEnd,
}

impl KernelFrameKind {
    /// The kind with this name.
    pub fn named(name: &str) -> Option<KernelFrameKind> {
        KernelFrameKind::iter().find(|kind| name == <&str>::from(kind))
    }

    pub fn number(self) -> i32 {
        self as i32
    }

    /// The kind with this number.
    pub fn numbered(number: i32) -> Option<KernelFrameKind> {
        KernelFrameKind::iter().find(|kind| kind.number() == number)
    }
}

/// Words of the tables. They come first in the dictionary, in this order; names of calls and other words
/// follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::EnumIter, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub(crate) enum KernelWord {
    Running,
    Runnable,
    Blocked,
    Unknown,
    PageFault,
    /// A call, a waker or a kind of fault without a name.
    Other,
    #[strum(serialize = "THREAD")]
    Thread,
}

impl KernelWord {
    /// The key of the word in the dictionary.
    pub fn key(self) -> i32 {
        self as i32
    }
}

/// An event of a thread. `call`, `by` and `kind` are keys of the tables' words; `waker`, `next` and
/// `parent` are thread ids.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ThreadEvent {
    Watched,
    Start { parent: i32 },
    End,
    In { cpu: i32 },
    Out { cpu: i32, preempted: bool },
    Successor { next: i32, name: Arc<str> },
    Wake { cpu: i32, by: i32, waker: i32 },
    Enter { cpu: i32, call: i32 },
    Exit { cpu: i32, call: i32, result: i64 },
    Fault { cpu: i32, kind: i32, address: i64 },
}
