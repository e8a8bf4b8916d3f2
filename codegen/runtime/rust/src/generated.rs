//! The items that generated code uses. Do not use them directly.

pub use crate::bytes::{array_bytes, f32_word, f64_word};
pub use crate::frame::{Frame, Put, scope, update, update_as, written};
pub use crate::writer::{
    Buffer, Control, Descriptor, Layout, Thread, Write, begin, busy, clock, loaded, prepare, stamp,
};
