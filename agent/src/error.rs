//! The errors of the agent: what happened, and why. The command line adds the remedy, because it
//! knows its options.

use std::io;

use strum::VariantNames;

use crate::claim::Holder;
use crate::denied::{Denied, Rule};
use ppt_now::Distrust;

/// Why a target cannot be attached to, read or released.
#[derive(
    Debug, thiserror::Error, strum::IntoStaticStr, strum::VariantNames, strum::EnumDiscriminants,
)]
#[strum(serialize_all = "kebab-case")]
#[strum_discriminants(name(Failing), vis(pub(crate)), derive(strum::IntoStaticStr))]
#[strum_discriminants(strum(serialize_all = "kebab-case"))]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum AgentError {
    #[error("no process {pid}: it does not exist, or it has ended")]
    NoProcess { pid: i32 },
    #[error("process {pid} ended while ppt was attaching")]
    Ended { pid: i32 },
    #[error("process {pid} ({comm}) is a kernel thread: it has no program to attach to")]
    KernelThread { pid: i32, comm: String },
    #[error("process {pid} ({comm}) is a zombie: it has ended and waits for its parent {parent}")]
    Zombie { pid: i32, comm: String, parent: i32 },
    #[error("process {pid} shares the memory of process {lender}, which created it by vfork(2)")]
    SharesMemory { pid: i32, lender: i32 },
    #[error("process {pid} is {found}, and this ppt attaches only to {ours} programs")]
    Architecture { pid: i32, found: String, ours: &'static str },
    #[error(
        "process {pid} was replaced by another process while ppt examined it; nothing was written"
    )]
    ProcessChanged { pid: i32 },
    #[error(
        "process {pid} started another program (exec) while ppt examined it; nothing was written"
    )]
    ProgramChanged { pid: i32 },
    #[error("{0}")]
    Denied(#[from] Box<Denied>),
    #[error(
        "process {pid} has no ppt buffers\n  searched: {searched}{unsearched}\n  looked for: symbols \
         `ppt1_*_descriptor`, and descriptors in the mapped data of each object"
    )]
    NoBuffers { pid: i32, searched: String, unsearched: String },
    #[error("process {pid}: {refused}")]
    BufferRefused { pid: i32, refused: String },
    #[error("process {pid} has no buffer `{wanted}`; it has: {available}{unsearched}")]
    NoSuchBuffer { pid: i32, wanted: String, available: String, unsearched: String },
    #[error("buffer {buffer} of process {pid} is already attached by {holder}")]
    AlreadyAttached { pid: i32, buffer: String, holder: Holder },
    #[error("process {pid} is traced by {tracer}")]
    Traced { pid: i32, tracer: String },
    #[error(
        "process {pid} filters its system calls (seccomp), and the filter might end it at shmat(2)"
    )]
    Seccomp { pid: i32 },
    #[error(
        "thread {thread} of process {pid} is in seccomp's strict mode: its first frame would make \
         system calls, and every call except read, write and exit ends it"
    )]
    StrictSeccomp { pid: i32, thread: i32 },
    #[error("process {pid} is in another IPC namespace and cannot map segments that ppt makes")]
    IpcNamespace { pid: i32 },
    #[error(
        "process {pid} would have to make its segment itself, and this system reserves no memory \
         for that. With vm.overcommit_memory = 2, a frame could then end the process"
    )]
    StrictOvercommit { pid: i32 },
    #[error("the segment of buffer {buffer} that process {pid} made cannot {what}: {cause}")]
    NotFetched { pid: i32, buffer: String, what: &'static str, cause: io::Error },
    #[error(
        "buffer {buffer} of process {pid} has mapped segments of 8 geometries (numbers of slots \
         and rings), which is the limit"
    )]
    TableFull { pid: i32, buffer: String },
    #[error("cannot make a segment of {bytes} bytes: {cause}")]
    SegmentRefused { bytes: u64, cause: io::Error, refused: MemoryRefusal },
    #[error(
        "{limit} bytes are too few for buffer {buffer}: {rings} rings of the smallest size need \
         {needed} bytes"
    )]
    MemoryTooSmall { buffer: String, limit: u64, rings: u32, needed: u64 },
    #[error(
        "control group {group} of process {pid} leaves {left} bytes of its memory limit, and the \
         smallest rings of buffer {buffer} need {needed}; beyond the limit, the kernel ends the process"
    )]
    ControlGroupFull { pid: i32, buffer: String, group: String, left: u64, needed: u64 },
    #[error(
        "process {pid} locks its memory (mlockall(2)): rings get {limit} bytes, and the smallest of \
         buffer {buffer} need {needed}"
    )]
    LockedMemory { pid: i32, buffer: String, limit: u64, needed: u64 },
    #[error("process {pid}: the CPU's counter cannot be trusted: {why}")]
    TicksRefused { pid: i32, why: Distrust },
    #[error("{0}")]
    Geometry(#[from] ppt_segment::geometry::GeometryError),
    #[error("cannot {action} process {pid}: {cause}")]
    System { action: &'static str, pid: i32, cause: io::Error },
    #[error("cannot examine process {pid}: {cause}")]
    TooManyFiles { pid: i32, cause: io::Error },
    #[error("writing into process {pid} stopped after {written} of {wanted} bytes")]
    PartialWrite { pid: i32, written: usize, wanted: usize },
    #[error("process {pid} does not hold what ppt wrote into {what}")]
    ReadBack { pid: i32, what: &'static str },
    #[error(
        "buffer {buffer} of process {pid} is gone because its library was unloaded; nothing was \
         written"
    )]
    Unloaded { pid: i32, buffer: String },
}

/// The kind of memory that was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoryRefusal {
    /// A segment of System V shared memory.
    Segment,
    /// Address space for the segment that the target will make.
    Room,
    /// The rings of the existing threads.
    Rings,
}

impl AgentError {
    /// The name of the message in `docs/troubleshooting.md`.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Denied(denied) => denied.code(),
            other => other.into(),
        }
    }

    /// All codes.
    pub fn codes() -> impl Iterator<Item = &'static str> {
        Self::VARIANTS.iter().chain(Rule::VARIANTS).copied()
    }
}

/// The usual result here.
pub(crate) type Result<T> = std::result::Result<T, AgentError>;
