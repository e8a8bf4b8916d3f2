//! What the kernel recorded of a thread.

use std::sync::Arc;

use strum::IntoEnumIterator;

/// Kinds of frames, by the names that they have in the buffer.
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
    /// The kind of frames that is called so.
    pub fn named(name: &str) -> Option<KernelFrameKind> {
        KernelFrameKind::iter().find(|it| name == <&str>::from(it))
    }

    /// Its number.
    pub fn number(self) -> i32 {
        self as i32
    }

    /// The kind that has this number.
    pub fn numbered(number: i32) -> Option<KernelFrameKind> {
        KernelFrameKind::iter().find(|it| it.number() == number)
    }
}

/// Words that the tables say, beside the names of calls: the first ones of their dictionary, in this
/// order.
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
    /// Its key.
    pub fn key(self) -> i32 {
        self as i32
    }
}

/// What happened to a thread. Calls, wakers and kinds are keys of the tables' words.
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
