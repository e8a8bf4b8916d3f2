//! Several hosts: how their clocks go, and experiments over them.
//!
//! [`lab`] runs what one file describes on all of them.
//!
//! [`probe`] exchanges packets between hosts whose times of sending and arriving the kernels stamp.
#![forbid(unsafe_code)]

// The code that pest derives uses this crate if pest is built without std.
extern crate alloc;

pub mod lab;
pub mod probe;
