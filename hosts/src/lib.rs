//! Several hosts: how their clocks run, and experiments over them.
//!
//! [`lab`] runs an experiment over several hosts from one file.
//!
//! [`probe`] exchanges packets between hosts; the kernels stamp their sending and arrival.
#![forbid(unsafe_code)]

// The code that pest derives uses this crate if pest is built without std.
extern crate alloc;

pub mod lab;
pub mod probe;
