//! The shared-memory protocol between a target and ppt. Nothing else defines it.
//!
//! [`abi`] lists every byte. [`ring`], [`owner`], [`cells`] and [`handshake`] hold the orderings;
//! they are generic over [`word::SharedWord`], so that `tests/loom` model-checks this very code.
//! [`segment`] is the memory itself.

pub mod abi;
pub mod cells;
pub mod follow;
pub mod geometry;
mod guard;
pub mod handle;
pub mod handshake;
mod mapping;
pub mod masks;
mod memfd;
pub mod owner;
pub mod ring;
pub mod segment;
mod slowdown;
pub mod sysv;
pub mod word;

pub use geometry::{Geometry, RowGeometry};
pub use handle::Handle;
pub use masks::Masks;
pub use ring::{BrokenCursor, PollResult, Ring, RingReader, RingWriter, lost_mark};
pub use segment::{
    AdoptError, Created, FIRST_BYTES, RINGS_AHEAD, RefusedFrames, Segment, SegmentIdentity, User,
};
pub use slowdown::{Slowdown, SlowedInterval};
