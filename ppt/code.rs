//! Names of the command line's own messages. The errors of the libraries have their names beside
//! them. `ppt explain NAME` explains each message.

/// A message of the command line.
#[derive(Debug, Clone, Copy, strum::IntoStaticStr, strum::VariantNames)]
#[strum(serialize_all = "kebab-case")]
pub(crate) enum Code {
    AmbiguousName,
    BufferRefused,
    CannotMap,
    CannotRun,
    CannotWrite,
    CaptureFailed,
    ChildrenSpared,
    CountersDamaged,
    CutOff,
    Damaged,
    Demo,
    FilteredProgram,
    NoAnalysis,
    NoTerminal,
    NoSuchMessage,
    NoSuchCommand,
    NoSuchName,
    NotCaptured,
    NotSearched,
    NothingCaptured,
    NothingToAttach,
    NotFetched,
    OutputChanged,
    OutputMoved,
    OutputRemoved,
    OutputTruncated,
    RingGivenUp,
    RingsStay,
    RowsNotShown,
    RowsWithoutTime,
    SegmentTruncated,
    SetUserId,
    StdoutTaken,
    System,
    TicksGivenUp,
    TooSmall,
}
