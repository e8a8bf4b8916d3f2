//! Packets between hosts, whose times of sending and arriving the kernels stamp.

mod key;

pub use key::{Key, KeyError, MIN_KEY, TAG};
