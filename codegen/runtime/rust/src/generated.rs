//! The items that generated code uses. Do not use them directly.

pub use ppt_segment::cells::{exponential, linear};

pub use crate::bytes::{array_bytes, f32_word, f64_word};
pub use crate::frame::{Frame, Half, Put, scope, set, update, update_as, update_half, written};
pub use crate::writer::{
    Buffer, Control, Descriptor, Layout, Thread, Write, add, begin, busy, clock, loaded,
    ns_between, observe, prepare, stamp,
};
