//! Names of what the command line itself has to say, beside those of the libraries' errors:
//! `ppt explain NAME` explains each.

/// A message of ours.
#[derive(Debug, Clone, Copy, strum::IntoStaticStr, strum::VariantNames)]
#[strum(serialize_all = "kebab-case")]
pub(crate) enum Code {
    AmbiguousName,
    BufferRefused,
    CannotMap,
    CannotRun,
    CannotWrite,
    CaptureFailed,
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
