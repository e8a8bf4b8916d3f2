//! Every byte that a target, an agent and a listener share: ABI version 1, little-endian.
//!
//! ```text
//! target, read-only     Descriptor (128 B)   address of the control page, layout of frames
//! target, private       Control (one page)   the mailbox: gate, geometry, claim │ error, drops, segments
//! shared                segment              4 KiB header │ masks │ process │ ring headers │ slots │ rows of cells
//! ```
//!
//! | words of              | written by | when                              | read by           |
//! |-----------------------|------------|-----------------------------------|-------------------|
//! | Descriptor            | linker     | never after relocation            | agent             |
//! | Control, first half   | agent      | while it holds the target's claim | target            |
//! | Control, second half  | target     | slow path only                    | agent             |
//! | SegmentHeader         | its maker  | before any other process knows it | target (compares) |
//! | MaskPage              | its maker  | before the first frame            | target            |
//! | the same              | agent      | at each open, and while it holds the claim | target   |
//! | SlowdownWords         | agent      | while it slows an interval down   | target            |
//! | ProcessPage           | target     | drops, releases (RMW)             | agent, listener   |
//! | RingHeader            | its owner  | tail once a frame; owner a claim  | listener          |
//! | RingHeader::attended  | listener   | when a capture states more        | next agent        |
//! | slots                 | its owner  | every frame                       | listener          |
//! | rows of cells         | its owner  | every add and observation         | listener          |
//! | the first row         | any thread | the same, by RMW, without a row   | listener          |
//!
//! # Cells
//! Counters and histograms are made of *cells*, u64 words that only grow (a counter of `i64` adds
//! modulo 2^64). A buffer states in [`Descriptor::cells`] how many one *row* has. Rows follow the
//! slots. Row 0 is shared: a thread without its own row adds to it atomically. Row `r + 1` belongs
//! to ring `r`, and only the ring's owner writes there; a ring beyond the last row has none. No
//! process ever resets a cell: a session subtracts the values that it found. The agent writes
//! [`Control::cells`] before the gate, and the words are valid only under the nonce of the segment
//! that the gate names. A segment without the section `CELLS` has no rows. Earlier agents compare
//! the whole table of sections, so they never adopt a segment that has rows.
//!
//! # Masks
//! A session may want only some frames, counters and histograms. The agent states that in two
//! places. [`MaskPage::enable`] is in the segment, and every version of the code that writes frames
//! reads it. [`Control::disabled`] is read by generated code before it runs any code of a frame;
//! earlier programs ignore it. These words are valid only under the nonce of the claim that they
//! name. So they never apply to the next session, whatever its version, and they stay as they are
//! while rings grow. A segment whose mask page may have been written after its creation has a
//! section `MASKED`: earlier agents, which would leave the masks as they are, never adopt one.
//!
//! Sequence number = frame index + 1, so that a zero word is never a frame. The C text in
//! `codegen/runtime/c` repeats these offsets; a conformance test compiles it and compares.

use std::mem::{offset_of, size_of};

/// Version of everything in this file.
pub const ABI_VERSION: u32 = 1;

/// Alignment of a control page and of the sections: the largest page the architecture may use.
pub const PAGE: u64 = if cfg!(target_arch = "aarch64") { 65536 } else { 4096 };

/// First bytes of a [`Descriptor`]. They are random, to avoid accidental matches.
pub const DESCRIPTOR_MAGIC: [u8; 16] = *b"\xb7ppt\xd1\x9e\x04\xc3\x5a\xf8\x21\x6d\x93\x0f\xe2\x7c";

/// First word of a segment: "pptsegm1".
pub const SEGMENT_MAGIC: u64 = u64::from_le_bytes(*b"pptsegm1");

/// Bytes of the header at the start of a segment.
pub const HEADER_LENGTH: u32 = 4096;

/// Upper half of the key of every segment, until IPC_RMID resets it; the lower half is random.
pub const SHM_KEY_PREFIX: u32 = 0x7074_0000;

/// A value that means "this thread has no ring". No agent makes this handle, and no half of a
/// handle equals it: generation 0 never occurs, and kind 1 with id 2^31-1 is never chosen.
pub const NO_GATE: u64 = 0xffff_ffff;

/// In place of a segment's id, with kind 0: the gate is moving to another segment. Frames and adds
/// go to the previous one. An agent uses it only for buffers with cells, because their programs
/// know it.
pub const MOVING: u32 = 0x7fff_ffff;

/// Frames kept away from the writer's slot: a reader keeps index `i` if `i + N >= tail + MARGIN`.
pub const MARGIN: u32 = 1;

/// Segments that one control page can list; a ninth geometry is refused.
pub const MAX_SEGMENTS: usize = 8;

/// Owners that a ring header remembers.
pub const OWNER_HISTORY: usize = 4;

/// Frame kinds that one buffer can have: bits of [`MaskPage::enable`].
pub const MAX_FRAMES: usize = 256;

/// Counters and histograms that one buffer can have.
pub const MAX_METRICS: usize = 256;

/// Words of [`DisabledWords::bits`].
pub const MASK_WORDS: usize = (MAX_FRAMES + MAX_METRICS) / 64;

/// Limits of the number of slots in a ring, as powers of two.
pub const LOG2_SLOTS: std::ops::RangeInclusive<u32> = 1..=26;

/// Largest slot in bytes.
pub const MAX_STRIDE: u32 = 4096;

/// Most rings that a segment may have.
pub const MAX_RINGS: u32 = 65536;

/// Most cells of a row.
pub const MAX_CELLS: u32 = 1 << 21;

/// Rows of cells begin at multiples of this: a pair of cache lines, so that no two threads share
/// one.
pub const ROW_ALIGN: u32 = 128;

/// Constant after relocation; in `.data.rel.ro` or `.rodata` of the object that holds the buffer.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Descriptor {
    /// [`DESCRIPTOR_MAGIC`].
    pub magic: [u8; 16],
    /// Its own address, which proves the load bias and distinguishes a live descriptor from a copy.
    pub self_address: u64,
    /// [`ABI_VERSION`].
    pub abi_version: u32,
    /// Bytes of this structure.
    pub length: u32,
    /// Hash of the schema's layout part.
    pub schema_hash: u64,
    /// Address of the schema's JSON text.
    pub schema_address: u64,
    /// Bytes of the schema's JSON text.
    pub schema_length: u64,
    /// Address of the [`Control`] page.
    pub control_address: u64,
    /// Bytes of one slot.
    pub stride: u32,
    /// Default slots per ring, as a power of two.
    pub log2_slots: u32,
    /// Number of frame kinds.
    pub frames: u32,
    /// [`descriptor_flags`].
    pub flags: u32,
    /// Cells of one row, for the counters and histograms of the buffer; 0 if it has none. Earlier
    /// programs state 0.
    pub cells: u64,
    /// Zero.
    pub reserved: [u64; 5],
}

/// Bits of [`Descriptor::flags`].
pub mod descriptor_flags {
    /// Compiled as shared-library code, which may be unloaded.
    pub const UNLOADABLE: u32 = 1;
    /// It reads [`super::SlowdownWords`]. Earlier programs would leave out frames instead.
    pub const SLOWS_DOWN: u32 = 2;
}

/// The layout of a segment; chosen by the agent, copied by the target, never read back.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GeometryWords {
    /// Bytes of the segment.
    pub size: u64,
    /// Bytes of one slot.
    pub stride: u32,
    /// Slots per ring, as a power of two.
    pub log2_slots: u32,
    /// Number of rings.
    pub rings: u32,
    /// Bytes from one ring header to the next.
    pub ring_pitch: u32,
    /// Offset of the [`MaskPage`].
    pub masks: u64,
    /// Offset of the [`ProcessPage`].
    pub process: u64,
    /// Offset of the first [`RingHeader`].
    pub ring_headers: u64,
    /// Offset of the first slot.
    pub slots: u64,
}

/// The location of the rows of cells of a segment.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CellWords {
    /// Nonce of the segment that these words describe. Earlier agents neither set nor clear them,
    /// so they are invalid under another nonce.
    pub nonce: u64,
    /// Offset of row 0 in the segment.
    pub offset: u64,
    /// Bytes from one row to the next.
    pub pitch: u32,
    /// Number of rows, at least 1.
    pub rows: u32,
}

impl CellWords {
    /// No rows.
    pub const NONE: CellWords = CellWords { nonce: 0, offset: 0, pitch: 0, rows: 0 };
}

/// The frames, counters and histograms that the session has disabled.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DisabledWords {
    /// Nonce of the claim that these words belong to, written after them. Earlier agents neither
    /// set nor clear them, so they are invalid under another claim.
    pub nonce: u64,
    /// One bit for each frame, by its id, and from bit [`MAX_FRAMES`] on one for each counter or
    /// histogram, in the order of the schema.
    pub bits: [u64; MASK_WORDS],
}

/// The attached agent. All words are zero if there is none.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claim {
    /// Pid of the agent, in the agent's pid namespace.
    pub agent_pid: u64,
    /// Start time of the agent: field 22 of /proc/PID/stat.
    pub start_time: u64,
    /// Inode of the agent's pid namespace.
    pub pid_namespace: u64,
    /// Random, never 0. It identifies this session.
    pub nonce: u64,
}

/// One segment that the target has mapped; all zero when the entry is free.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MappedSegment {
    /// Address in the target; set first, by compare-and-swap from 0.
    pub base: u64,
    /// Handle by which it was mapped.
    pub handle: u64,
    /// Nonce of the segment; 0 while the entry is being filled.
    pub nonce: u64,
    /// Number of mapped bytes.
    pub size: u64,
}

/// The clocks that a stamp of `option time tsc` may count.
///
/// Each stamp states its kind itself. Bit 63
/// ([`STAMP_IS_MONOTONIC`](clock_kind::STAMP_IS_MONOTONIC)) is clear in ticks, so stamps that were
/// taken before the kind changed are still read correctly.
pub mod clock_kind {
    /// No field needs a clock, so none was chosen. Stamps are as with [`MONOTONIC`].
    pub const UNDECIDED: u32 = 0;
    /// The CPU's counter (TSC, CNTVCT_EL0), unscaled.
    pub const TICKS: u32 = 1;
    /// CLOCK_MONOTONIC in ns, with [`STAMP_IS_MONOTONIC`] set.
    pub const MONOTONIC: u32 = 2;
    /// Set in a stamp that is CLOCK_MONOTONIC in ns.
    pub const STAMP_IS_MONOTONIC: u64 = 1 << 63;
}

/// The mailbox between agent and target: zero at start, alone in its page, wiped in a forked child.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Control {
    /// Handle of the segment to write into; 0 is off. See [`crate::handle::Handle`].
    pub gate: u64,
    /// Nonce of the segment that `gate` names.
    pub nonce: u64,
    /// Geometry of the segment that `gate` names.
    pub geometry: GeometryWords,
    /// The clock that stamps of `option time tsc` count in this session: see [`clock_kind`]. The
    /// agent may change it while the gate is open, when the kernel stops trusting the CPU's
    /// counter.
    pub clock_kind: u32,
    /// Pid of the target in its innermost pid namespace. A forked child has another pid.
    pub target_pid: u32,
    /// The session.
    pub claim: Claim,
    /// Generation of the last poke: the next one is greater.
    pub generation: u64,
    /// The socket to which forked children report, see [`crate::follow`]. 0 if no agent follows.
    pub follow_socket: u64,
    /// Nonce of the claim that `follow_socket` belongs to, written after both. Earlier agents
    /// neither set nor clear these two words, which are invalid under another claim.
    pub follow_claim: u64,
    /// The rows of cells of the segment that `gate` names. Written after `nonce` and before `gate`.
    pub cells: CellWords,
    /// What the session has disabled.
    pub disabled: DisabledWords,
    /// Nonce of the claim whose session is to end. A process that detaches from outside writes it
    /// before the gate closes. A gate that is moving may open again after that; this word stays. It
    /// is invalid under another claim.
    pub detach: u64,
    /// Nanoseconds per tick of the CPU's counter, times 2^32. 0: no agent has stated it, because
    /// stamps of this buffer were never ticks or the agents were earlier versions. Written before
    /// `gate`. It stays from session to session: the counter has a constant rate.
    pub tick_scale: u64,
    /// Reserved for later words of the agent.
    pub agent_reserved: [u64; 1],

    /// `generation << 32 | errno` of the last segment that could not be mapped.
    pub error: u64,
    /// The gate whose segment could not be mapped. The target does not try again until the gate
    /// changes.
    pub failed_gate: u64,
    /// The segment nonce that belongs to `failed_gate`; written before it.
    pub failed_nonce: u64,
    /// Frames refused because the thread found no free ring, while nothing was mapped.
    pub no_ring: u64,
    /// Frames refused inside another write, while nothing was mapped.
    pub nested: u64,
    /// Frames refused because the segment could not be mapped.
    pub not_mapped: u64,
    /// Adds and observations that were lost because the segment could not be mapped. Never reset: a
    /// session subtracts the value that it found.
    pub adds_not_mapped: u64,
    /// Reserved for later words of the target.
    pub target_reserved: [u64; 25],

    /// Segments that the target has mapped; never unmapped.
    pub segments: [MappedSegment; MAX_SEGMENTS],

    /// For each of [`Self::segments`] that the target made (kind 1), the number of its memfd in the
    /// target, plus 1. It stays open, so that this agent and later ones can fetch it.
    pub memfd: [u64; MAX_SEGMENTS],
}

/// One part of the segment; unknown kinds are skipped.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Section {
    /// [`section_kind`]; 0 ends the table.
    pub kind: u32,
    /// Zero.
    pub flags: u32,
    /// Bytes from the start of the segment.
    pub offset: u64,
    /// Bytes of the section.
    pub length: u64,
    /// Bytes from one item to the next.
    pub item: u64,
}

/// Values of [`Section::kind`].
#[expect(missing_docs, reason = "named after the structures")]
pub mod section_kind {
    pub const MASKS: u32 = 1;
    pub const PROCESS: u32 = 2;
    pub const RING_HEADERS: u32 = 3;
    pub const SLOTS: u32 = 4;
    pub const CELLS: u32 = 5;
    /// The mask page again: it may have been written since the segment was made. This is the last
    /// entry. The maker writes it if the agent has written [`super::Control::disabled`]; the agent
    /// writes it before it writes a mask into a segment that an earlier program made.
    pub const MASKED: u32 = 6;
}

/// Offset 0 of a segment; written once, before the first gate.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct SegmentHeader {
    /// [`SEGMENT_MAGIC`].
    pub magic: u64,
    /// [`ABI_VERSION`].
    pub abi_version: u32,
    /// [`HEADER_LENGTH`].
    pub length: u32,
    /// Random, never 0. It identifies the segment.
    pub nonce: u64,
    /// [`MARGIN`].
    pub margin: u32,
    /// Zero.
    pub reserved: u32,
    /// Hash of the schema's layout part.
    pub schema_hash: u64,
    /// Bytes of one slot.
    pub stride: u32,
    /// Slots per ring, as a power of two.
    pub log2_slots: u32,
    /// Number of rings.
    pub rings: u32,
    /// Bytes from one ring header to the next.
    pub ring_pitch: u32,
    /// Pid of the agent for which the segment was made.
    pub agent_pid: u64,
    /// CLOCK_MONOTONIC at creation, ns.
    pub created_mono_ns: u64,
    /// CLOCK_REALTIME at creation, ns.
    pub created_real_ns: u64,
    /// The table of sections.
    pub sections: [Section; 16],
}

/// Agent → target. Used as masks only, never as offsets.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct MaskPage {
    /// One bit per frame id; all ones when the agent wants everything, and when no agent is
    /// attached.
    pub enable: [u64; MAX_FRAMES / 64],
    /// Incremented when `enable` changes.
    pub epoch: u64,
}

/// Offset of [`SlowdownWords`] in the mask page, whose words behind [`MaskPage`] are reserved.
pub const SLOWDOWN_OFFSET: u64 = 64;

/// Agent → target: one interval takes longer, while a round of `ppt whatif --live` lasts.
///
/// Its frame's bit in [`MaskPage::enable`] is 0, which sends the frame to code that reads this. It is
/// written all the same, unless [`Control::disabled`] says that it is not wanted. Programs know it if
/// their descriptor has the flag [`SLOWS_DOWN`](descriptor_flags::SLOWS_DOWN).
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SlowdownWords {
    /// Nonce of the claim that these words belong to. They are invalid under another claim.
    pub session: u64,
    /// CLOCK_MONOTONIC in the target's time namespace, in ns, when the agent last stated that it
    /// lives. 100 ms later, no thread waits any more.
    pub beat: u64,
    /// Number of the round; 0: no thread waits. It is 0 while the words below change.
    pub round: u64,
    /// The frame of the interval.
    pub frame: u64,
    /// The word of the slot with the interval's start.
    pub start: u64,
    /// The word with its end.
    pub end: u64,
    /// Which of the slot's first 64 words are stamps of the same clock, one bit each. Those at or
    /// after the interval's end come later, too.
    pub stamps: u64,
    /// 0: stamps of `option time tsc`. Otherwise the number of the clock that they count in ns,
    /// plus 1.
    pub clock: u64,
    /// The wait, as a share of the interval's length, times 2^32.
    pub share: u64,
    /// 0: the thread waits on its CPU; 1: it sleeps.
    pub sleeps: u64,
}

/// Target → agent; outlives the target. Counters never decrease.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct ProcessPage {
    /// Number of rings given back.
    pub released: u64,
    /// Frames refused inside another write.
    pub nested: u64,
    /// Frames refused because no ring was free.
    pub no_ring: u64,
}

/// One owner of a ring. A reader uses it only if `epoch` is the expected one.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct OwnerRecord {
    /// First sequence number that this owner may have written.
    pub first_seq: u64,
    /// Thread id in the target's own pid namespace.
    pub tid: u32,
    /// Claim that this entry belongs to.
    pub epoch: u32,
}

/// One ring. `tail` is alone in its (pair of) cache lines: the only line a reader polls.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct RingHeader {
    /// The cursor: frames published so far. Release-stored once per frame, never reset.
    pub tail: u64,
    /// Keeps the owner's words off the reader's line.
    pub pad: [u64; 15],
    /// `epoch << 32 | state`, changed together by one compare-and-swap. See [`ring_state`].
    pub owner: u64,
    /// The last owners; claim `epoch` is entry `epoch % 4`.
    pub history: [OwnerRecord; OWNER_HISTORY],
    /// Cursor up to which captures account for the frames. Frames between it and the next session's
    /// first cursor were unattended.
    pub attended: u64,
    /// Zero: per-thread words of later versions.
    pub reserved: [u64; 38],
}

/// Lower half of [`RingHeader::owner`].
#[expect(missing_docs, reason = "the names say it")]
pub mod ring_state {
    pub const FREE: u32 = 0;
    pub const ACTIVE: u32 = 1;
}

/// Bytes from one ring header to the next.
pub const RING_PITCH: u32 = size_of::<RingHeader>() as u32;

/// Words of a ring header, as the ring code addresses them.
pub mod ring_word {
    use super::{OwnerRecord, RingHeader, offset_of, size_of};
    /// Words of the whole header.
    pub const COUNT: usize = size_of::<RingHeader>() / 8;
    /// [`RingHeader::tail`].
    pub const TAIL: usize = offset_of!(RingHeader, tail) / 8;
    /// [`RingHeader::owner`].
    pub const OWNER: usize = offset_of!(RingHeader, owner) / 8;
    /// First word of [`RingHeader::history`].
    pub const HISTORY: usize = offset_of!(RingHeader, history) / 8;
    /// [`RingHeader::attended`].
    pub const ATTENDED: usize = offset_of!(RingHeader, attended) / 8;
    /// Words of one [`OwnerRecord`].
    pub const OWNER_WORDS: usize = size_of::<OwnerRecord>() / 8;
}

macro_rules! at {
    ($($type:ident { $($field:ident: $offset:literal),* } size $size:literal;)*) => {
        $(const _: () = {
            $(assert!(offset_of!($type, $field) == $offset);)*
            assert!(size_of::<$type>() == $size);
        };)*
    };
}

at! {
    Descriptor { magic: 0, self_address: 16, abi_version: 24, length: 28, schema_hash: 32,
        schema_address: 40, schema_length: 48, control_address: 56, stride: 64, log2_slots: 68,
        frames: 72, flags: 76, cells: 80, reserved: 88 } size 128;
    CellWords { nonce: 0, offset: 8, pitch: 16, rows: 20 } size 24;
    DisabledWords { nonce: 0, bits: 8 } size 72;
    GeometryWords { size: 0, stride: 8, log2_slots: 12, rings: 16, ring_pitch: 20, masks: 24,
        process: 32, ring_headers: 40, slots: 48 } size 56;
    Claim { agent_pid: 0, start_time: 8, pid_namespace: 16, nonce: 24 } size 32;
    MappedSegment { base: 0, handle: 8, nonce: 16, size: 24 } size 32;
    Control { gate: 0, nonce: 8, geometry: 16, clock_kind: 72, target_pid: 76, claim: 80,
        generation: 112, follow_socket: 120, follow_claim: 128, cells: 136, disabled: 160,
        detach: 232, tick_scale: 240, agent_reserved: 248,
        error: 256, failed_gate: 264, failed_nonce: 272, no_ring: 280, nested: 288, not_mapped: 296,
        adds_not_mapped: 304, target_reserved: 312, segments: 512, memfd: 768 } size 832;
    Section { kind: 0, flags: 4, offset: 8, length: 16, item: 24 } size 32;
    SegmentHeader { magic: 0, abi_version: 8, length: 12, nonce: 16, margin: 24, reserved: 28,
        schema_hash: 32, stride: 40, log2_slots: 44, rings: 48, ring_pitch: 52, agent_pid: 56,
        created_mono_ns: 64, created_real_ns: 72, sections: 80 } size 592;
    MaskPage { enable: 0, epoch: 32 } size 40;
    SlowdownWords { session: 0, beat: 8, round: 16, frame: 24, start: 32, end: 40,
        stamps: 48, clock: 56, share: 64, sleeps: 72 } size 80;
    ProcessPage { released: 0, nested: 8, no_ring: 16 } size 24;
    OwnerRecord { first_seq: 0, tid: 8, epoch: 12 } size 16;
    RingHeader { tail: 0, pad: 8, owner: 128, history: 136, attended: 200, reserved: 208 } size 512;
}
